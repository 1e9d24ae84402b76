"""`attendo doctor`: the machine, the installed versions and extras, with a hint for each problem.

`attendo doctor RUN` (`attendo.cli.doctor_run`) explains a training run. Neither loads a tensor
library.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attendo.cli.console import make_console
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import DISTRIBUTIONS, ConfigError
from attendo.core.hardware import SystemInfo, inspect_system, installed_version
from attendo.core.message import message
from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.hardware import Requirement

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
            help="Run folder: explain its log, and compare it with the paper's recipe.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    tensors: Annotated[
        bool,
        typer.Option("--tensors", help="Also load PyTorch: GPU, threads, and a self-check."),
    ] = False,
) -> None:
    """Check this machine, or a training run: what went wrong, and the next command."""
    if run is not None:
        if tensors:
            reason = "both RUN and --tensors"
            raise ConfigError(reason, hint="use --tensors without RUN: it checks this machine")
        from attendo.cli.doctor_run import diagnose_run

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
    if all(installed_version(name) for name in DISTRIBUTIONS):
        problems.append(
            Problem(
                message(
                    "{names} are both installed, with the same files",
                    names=" and ".join(DISTRIBUTIONS),
                ),
                message("pip uninstall both, and install one of them again"),
            )
        )
    if hardware.threads and hardware.threads.isdigit() and int(hardware.threads) > hardware.cores:
        problems.append(
            Problem(
                message(
                    "OMP_NUM_THREADS is {threads}, but there are {cores} cores",
                    threads=hardware.threads,
                    cores=hardware.cores,
                ),
                f"export OMP_NUM_THREADS={hardware.cores}",
            )
        )
    if hardware.memory_gib is not None and hardware.memory_gib < MIN_MEMORY_GIB:
        problems.append(
            Problem(
                message("only {size:.1f} GiB of memory", size=hardware.memory_gib),
                "use the preset tiny and small batches",
            )
        )
    if hardware.free_disk_gib < MIN_DISK_GIB:
        problems.append(
            Problem(
                message("only {size:.1f} GiB of free disk space", size=hardware.free_disk_gib),
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
    from rich.table import Table

    console = make_console()
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
