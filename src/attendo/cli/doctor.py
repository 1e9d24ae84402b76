"""`attendo doctor`: the machine, the versions, the extras, and a remedy for what is missing.

`attendo doctor RUN`: what keeps a run below the paper's figure. Neither loads a tensor library.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attendo.core.errors import ConfigError
from attendo.core.machine import Machine, examine
from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.machine import Requirement
    from attendo.training.diagnosis import Diagnosis
    from attendo.training.run_facts import RunFacts

MIN_MEMORY_GIB = 4
MIN_DISK_GIB = 5


class Finding(NamedTuple):
    """Something worth mending, and how."""

    what: str
    remedy: str


def doctor(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="A run's folder, or a model's: compare it with the paper's recipe instead.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    tensors: Annotated[
        bool,
        typer.Option("--tensors", help="Load PyTorch too: GPU, threads, and a self-check."),
    ] = False,
) -> None:
    """Tell what this machine has, what is missing, and what to do about it."""
    if run is not None:
        if tensors:
            reason = "--tensors checks this machine, RUN a run"
            raise ConfigError(reason, remedy="give one of the two")
        examine_run(run, as_json=as_json)
        return
    machine = examine()
    findings = find_faults(machine)
    probe: dict[str, Any] = {}
    if tensors:
        from attendo.cli.tensor_probe import probe_tensors

        probe, faults = probe_tensors(machine)
        findings += [Finding(*fault) for fault in faults]
    if as_json:
        typer.echo(to_json(machine, findings, probe))
    else:
        show(machine, findings, probe)
    if any(requirement.version is None for requirement in machine.needed):
        raise typer.Exit(1)


def find_faults(machine: Machine) -> list[Finding]:
    """List what would hold a user up."""
    faults = [
        Finding(f"{need.name} is not installed", f"pip install {need.name}")
        for need in machine.needed
        if need.version is None
    ]
    if machine.threads and machine.threads.isdigit() and int(machine.threads) > machine.cores:
        faults.append(
            Finding(
                f"OMP_NUM_THREADS is {machine.threads} on {machine.cores} cores: threads will wait",
                f"export OMP_NUM_THREADS={machine.cores}",
            )
        )
    if machine.memory_gib is not None and machine.memory_gib < MIN_MEMORY_GIB:
        faults.append(
            Finding(
                f"only {machine.memory_gib:.1f} GiB of memory",
                "use the preset tiny and small batches",
            )
        )
    if machine.free_disk_gib < MIN_DISK_GIB:
        faults.append(
            Finding(
                f"only {machine.free_disk_gib:.1f} GiB of disk free here",
                "keep runs on another disk, or free some space",
            )
        )
    if machine.compiler is None and not machine.gpus:
        faults.append(
            Finding(
                "no C++ compiler: torch.compile cannot work on this CPU",
                "install g++ or clang (Attendo runs without it)",
            )
        )
    return faults


def to_json(machine: Machine, findings: list[Finding], probe: dict[str, Any]) -> str:
    """Word everything as one JSON object."""
    facts = machine._asdict() | {
        "attendo": __version__,
        "needed": {need.name: need.version for need in machine.needed},
        "extras": {
            extra: {need.name: need.version for need in needs}
            for extra, needs in machine.extras.items()
        },
        "findings": [finding._asdict() for finding in findings],
        "tensors": probe or None,
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def show(machine: Machine, findings: list[Finding], probe: dict[str, Any]) -> None:
    """Print the facts as a table and the findings below it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    memory = "unknown" if machine.memory_gib is None else f"{machine.memory_gib:.1f} GiB"
    rows = {
        "attendo": __version__,
        "system": machine.system,
        "python": machine.python,
        "cpu": f"{machine.cpu}, {machine.cores} cores usable",
        "memory": memory,
        "disk free here": f"{machine.free_disk_gib:.0f} GiB",
        "gpu": ", ".join(machine.gpus) or "none found (NVIDIA driver)",
        "threads": f"OMP_NUM_THREADS={machine.threads}" if machine.threads else "PyTorch decides",
        "c++ compiler": machine.compiler or "none",
        "needed": list_versions(machine.needed),
    }
    rows |= {f"extra {name}": list_versions(needs) for name, needs in machine.extras.items()}
    for name, value in (rows | probe).items():
        table.add_row(name, str(value))
    console.print(table)
    console.print()
    for finding in findings:
        console.print(f"[yellow]![/] {finding.what}\n  remedy: {finding.remedy}")
    if not findings:
        console.print("[green]nothing to mend[/]")
    if not probe:
        console.print("[dim]attendo doctor --tensors also loads PyTorch and checks it[/]")


def list_versions(requirements: list[Requirement]) -> str:
    """Word installed versions in one line; what is missing is named so."""
    return "  ".join(
        f"{need.name} {need.version}" if need.version else f"[red]{need.name} missing[/]"
        for need in requirements
    )


# -- a run


def examine_run(directory: Path, *, as_json: bool) -> None:
    """Compare a run with the paper's recipe and say what keeps it below the paper's figure."""
    from attendo.training.diagnosis import diagnose
    from attendo.training.run_facts import read_run

    facts = read_run(directory)
    diagnosis = diagnose(facts)
    if as_json:
        typer.echo(run_to_json(facts, diagnosis))
    else:
        show_run(facts, diagnosis)


def run_to_json(facts: RunFacts, diagnosis: Diagnosis) -> str:
    """Word a diagnosis as one JSON object."""
    told = {
        "run": str(facts.directory),
        "is_finished": facts.is_finished,
        "steps": facts.steps,
        "pairs": facts.num_pairs,
        "dev_bleu": facts.dev.get("bleu"),
        "recipe": diagnosis.recipe.name,
        "paper_bleu": diagnosis.recipe.newstest2014,
        "findings": [finding.to_json() for finding in diagnosis.findings],
        "as_in_the_paper": diagnosis.same,
        "unknown": diagnosis.unknown,
    }
    return json.dumps(told, ensure_ascii=False, indent=2)


HEADINGS = {
    "below": ("red", "keeps it below the paper"),
    "measure": ("yellow", "measured otherwise than in the paper"),
    "on purpose": ("green", "departs on purpose for a corpus of {pairs} pairs"),
    "no loss known": ("dim", "departs without a known loss"),
}


def show_run(facts: RunFacts, diagnosis: Diagnosis) -> None:
    """Print the departures, what costs most first, each with its effect and remedy."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    pairs = f"{facts.num_pairs or 0:,}"
    for line in introduce(facts, diagnosis):
        console.print(Text(line))
    for verdict, (colour, heading) in HEADINGS.items():
        chosen = [finding for finding in diagnosis.findings if finding.verdict == verdict]
        if not chosen:
            continue
        console.print(Text(f"\n{heading.format(pairs=pairs)}", style=f"bold {colour}"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
        for name, share in (("", 3), ("this run", 3), ("the paper", 3), ("known effect", 8)):
            table.add_column(name, overflow="fold", ratio=share)
        for finding in chosen:
            remedy = f"\nremedy: {finding.remedy}" if finding.remedy else ""
            space = "\n" if finding is not chosen[-1] else ""
            words = (finding.what, finding.ours, finding.paper, finding.effect + remedy + space)
            table.add_row(*map(Text, words))
        console.print(table)
    console.print()
    for line in conclude(diagnosis):
        console.print(Text(line))


def introduce(facts: RunFacts, diagnosis: Diagnosis) -> list[str]:
    """Say what is compared with what."""
    name, bleu = diagnosis.recipe.name, diagnosis.recipe.newstest2014
    stand = f", not finished: step {facts.steps} of {facts.planned_steps}"
    lines = [
        f"{facts.directory}{'' if facts.is_finished else stand}",
        f"beside the paper's {name} model: {bleu} BLEU from English to German on newstest2014, "
        "tokenised, compounds split",
    ]
    if "bleu" in facts.dev:
        lines.append(f"this run on its dev: {facts.dev['bleu']:.1f} BLEU")
    if not facts.train:
        lines.append(
            "a model folder alone tells neither how it was trained nor on how much text, and a "
            "small corpus wants another recipe: give the run's folder"
        )
    return lines


def conclude(diagnosis: Diagnosis) -> list[str]:
    """Say what is as in the paper, what is not known, and how to use the remedies."""
    lines = [f"as in the paper: {', '.join(diagnosis.same) or 'nothing'}"]
    if diagnosis.unknown:
        lines.append(f"not told by this folder: {', '.join(diagnosis.unknown)}")
    if any(finding.remedy.startswith("--") for finding in diagnosis.findings):
        lines.append(
            "effects do not add up; --set and --preset belong to attendo train, with a new --out"
        )
    return lines
