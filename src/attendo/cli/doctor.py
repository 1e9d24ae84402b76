"""`attendo doctor`: the machine, the versions, the extras, and a remedy for what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attendo.core.machine import Machine, examine
from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.machine import Requirement

MIN_MEMORY_GIB = 4
MIN_DISK_GIB = 5


class Finding(NamedTuple):
    """Something worth mending, and how."""

    what: str
    remedy: str


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    tensors: Annotated[
        bool,
        typer.Option("--tensors", help="Load PyTorch too: GPU, threads, and a self-check."),
    ] = False,
) -> None:
    """Tell what this machine has, what is missing, and what to do about it."""
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
