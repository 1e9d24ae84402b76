"""`attendo doctor`: the machine, the installed versions and extras, with a hint for each problem.

`attendo doctor RUN` explains why a run scores below the paper. Neither loads a tensor library.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attendo.core.errors import ConfigError
from attendo.core.hardware import SystemInfo, inspect_system
from attendo.core.message import message
from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.hardware import Requirement
    from attendo.diagnosis.diagnose import Diagnosis
    from attendo.diagnosis.run_summary import RunSummary

MIN_MEMORY_GIB = 4
MIN_DISK_GIB = 5


class Problem(NamedTuple):
    """A problem and how to fix it."""

    what: str
    hint: str


def doctor(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="Run or model folder to compare with the paper's recipe.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    tensors: Annotated[
        bool,
        typer.Option("--tensors", help="Also load PyTorch: GPU, threads, and a self-check."),
    ] = False,
) -> None:
    """Check this machine for missing libraries and other problems."""
    if run is not None:
        if tensors:
            reason = "both RUN and --tensors"
            raise ConfigError(reason, hint="use --tensors without RUN: it checks this machine")
        diagnose_run(run, as_json=as_json)
        return
    hardware = inspect_system()
    findings = find_problems(hardware)
    tensor_facts: dict[str, Any] = {}
    if tensors:
        from attendo.cli.tensor_check import check_tensors

        tensor_facts, tensor_problems = check_tensors(hardware)
        findings += [Problem(*fault) for fault in tensor_problems]
    if as_json:
        typer.echo(to_json(hardware, findings, tensor_facts))
    else:
        print_report(hardware, findings, tensor_facts)
    if any(requirement.version is None for requirement in hardware.needed):
        raise typer.Exit(1)


def find_problems(hardware: SystemInfo) -> list[Problem]:
    """Return the problems of this machine."""
    problems = [
        Problem(
            message("{library} is not installed", library=requirement.name),
            f"pip install {requirement.name}",
        )
        for requirement in hardware.needed
        if requirement.version is None
    ]
    if hardware.threads and hardware.threads.isdigit() and int(hardware.threads) > hardware.cores:
        problems.append(
            Problem(
                f"OMP_NUM_THREADS is {hardware.threads}, but there are {hardware.cores} cores",
                f"export OMP_NUM_THREADS={hardware.cores}",
            )
        )
    if hardware.memory_gib is not None and hardware.memory_gib < MIN_MEMORY_GIB:
        problems.append(
            Problem(
                f"only {hardware.memory_gib:.1f} GiB of memory",
                "use the preset tiny and small batches",
            )
        )
    if hardware.free_disk_gib < MIN_DISK_GIB:
        problems.append(
            Problem(
                f"only {hardware.free_disk_gib:.1f} GiB of free disk space",
                "keep runs on another disk, or free some space",
            )
        )
    if hardware.compiler is None and not hardware.gpus:
        problems.append(
            Problem(
                "no C++ compiler: torch.compile does not work on this CPU",
                "install g++ or clang (optional)",
            )
        )
    return problems


def to_json(hardware: SystemInfo, findings: list[Problem], tensor_facts: dict[str, Any]) -> str:
    """Return everything as one JSON object."""
    facts = hardware._asdict() | {
        "attendo": __version__,
        "needed": {need.name: need.version for need in hardware.needed},
        "extras": {
            extra: {need.name: need.version for need in needs}
            for extra, needs in hardware.extras.items()
        },
        "findings": [finding._asdict() for finding in findings],
        "tensors": tensor_facts or None,
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def print_report(
    hardware: SystemInfo, findings: list[Problem], tensor_facts: dict[str, Any]
) -> None:
    """Print the facts as a table and the findings below it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    memory = "unknown" if hardware.memory_gib is None else f"{hardware.memory_gib:.1f} GiB"
    rows = {
        "attendo": __version__,
        "system": hardware.system,
        "python": hardware.python,
        "cpu": f"{hardware.cpu}, {hardware.cores} usable cores",
        "memory": memory,
        "free disk space": f"{hardware.free_disk_gib:.0f} GiB",
        "gpu": ", ".join(hardware.gpus) or "none found (by the NVIDIA driver)",
        "threads": f"OMP_NUM_THREADS={hardware.threads}"
        if hardware.threads
        else "default of PyTorch",
        "c++ compiler": hardware.compiler or "none",
        "needed": format_versions(hardware.needed),
    }
    rows |= {f"extra {name}": format_versions(needs) for name, needs in hardware.extras.items()}
    for name, value in (rows | tensor_facts).items():
        table.add_row(name, str(value))
    console.print(table)
    console.print()
    for finding in findings:
        console.print(f"[yellow]![/] {finding.what}\n  hint: {finding.hint}")
    if not findings:
        console.print("[green]no problems found[/]")
    if not tensor_facts:
        console.print("[dim]attendo doctor --tensors also checks PyTorch[/]")


def format_versions(requirements: list[Requirement]) -> str:
    """Return the installed versions in one line; missing libraries are marked."""
    return "  ".join(
        f"{need.name} {need.version}" if need.version else f"[red]{need.name} missing[/]"
        for need in requirements
    )


# --- a run


def diagnose_run(directory: Path, *, as_json: bool) -> None:
    """Print the differences of a run from the paper's recipe and their known effects."""
    from attendo.diagnosis.diagnose import diagnose
    from attendo.diagnosis.run_summary import read_run_summary

    facts = read_run_summary(directory)
    diagnosis = diagnose(facts)
    if as_json:
        typer.echo(run_to_json(facts, diagnosis))
    else:
        print_diagnosis(facts, diagnosis)


def run_to_json(facts: RunSummary, diagnosis: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    payload = {
        "run": str(facts.directory),
        "is_finished": facts.is_finished,
        "steps": facts.steps,
        "pairs": facts.num_pairs,
        "dev_bleu": facts.dev.get("bleu"),
        "recipe": diagnosis.recipe.name,
        "paper_bleu": diagnosis.recipe.newstest2014,
        "findings": [finding.to_json() for finding in diagnosis.findings],
        "as_in_the_paper": diagnosis.matching,
        "unknown": diagnosis.unknown,
    }
    return json.dumps(payload, ensure_ascii=False, indent=2)


HEADINGS = {
    "below": ("red", "lowers the score"),
    "measure": ("yellow", "measured differently from the paper"),
    "on purpose": ("green", "intended for a corpus of {pairs} pairs"),
    "no loss known": ("dim", "differs without a known effect"),
}


def print_diagnosis(facts: RunSummary, diagnosis: Diagnosis) -> None:
    """Print the differences, the most costly first, with effects and hints."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    pairs = f"{facts.num_pairs or 0:,}"
    for line in introduction_lines(facts, diagnosis):
        console.print(Text(line))
    for verdict, (color, heading) in HEADINGS.items():
        chosen = [finding for finding in diagnosis.findings if finding.verdict == verdict]
        if not chosen:
            continue
        console.print(Text(f"\n{heading.format(pairs=pairs)}", style=f"bold {color}"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
        for name, share in (("", 3), ("this run", 3), ("the paper", 3), ("known effect", 8)):
            table.add_column(name, overflow="fold", ratio=share)
        for finding in chosen:
            hint = f"\nhint: {finding.hint}" if finding.hint else ""
            space = "\n" if finding is not chosen[-1] else ""
            cells = (finding.what, finding.ours, finding.paper, finding.effect + hint + space)
            table.add_row(*map(Text, cells))
        console.print(table)
    console.print()
    for line in conclusion_lines(diagnosis):
        console.print(Text(line))


def introduction_lines(facts: RunSummary, diagnosis: Diagnosis) -> list[str]:
    """Return lines that name the run and the recipe."""
    name, bleu = diagnosis.recipe.name, diagnosis.recipe.newstest2014
    progress = f", not finished: step {facts.steps} of {facts.planned_steps}"
    lines = [
        f"{facts.directory}{'' if facts.is_finished else progress}",
        f"compared with the paper's {name} model: {bleu} BLEU on English-German newstest2014, "
        "tokenized, with compound splitting",
    ]
    if "bleu" in facts.dev:
        lines.append(f"this run on its dev: {facts.dev['bleu']:.1f} BLEU")
    if not facts.train:
        lines.append(
            "a model folder does not record how it was trained and on how much text, and a small "
            "corpus needs another recipe: pass the run folder"
        )
    return lines


def conclusion_lines(diagnosis: Diagnosis) -> list[str]:
    """Return lines with what matches the paper, what is unknown, and how to use the hints."""
    lines = [f"as in the paper: {', '.join(diagnosis.matching) or 'nothing'}"]
    if diagnosis.unknown:
        lines.append(f"not recorded in this folder: {', '.join(diagnosis.unknown)}")
    if any(finding.hint.startswith("--") for finding in diagnosis.findings):
        lines.append(
            "effects do not add up; pass --set and --preset to attendo train, with a new --out"
        )
    return lines
