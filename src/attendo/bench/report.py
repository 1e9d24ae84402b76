"""What a benchmark found, as lines, rows and JSON."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

import torch

from attendo.core.hardware import inspect_system

NOISE_RATIO = 1.15
"""Rounds whose ratios lie further apart say more about the machine than about the systems."""
HEADERS = ("system", "tokens/s", "ms a step", "of the ceiling", "GB", "Attendo is")


@dataclass
class Result:
    """One system: its rounds, or why it has none."""

    name: str
    status: str = "measured"
    agreement: str = ""
    rounds: list[tuple[float, float, float]] = field(default_factory=list)
    """Of each: real target tokens a second, milliseconds a step, the share of the ceiling."""
    ratios: list[float] = field(default_factory=list)
    """How many times as fast Attendo is, in each round beside it."""
    memory_gb: float | None = None

    def add_round(self, metrics: tuple[float, float, float]) -> None:
        """Note a round."""
        self.rounds.append(metrics)

    @property
    def tokens_per_second(self) -> float:
        """Return the median over rounds."""
        return self._median(0)

    @property
    def step_ms(self) -> float:
        """Return the median over rounds."""
        return self._median(1)

    @property
    def fraction_of_peak(self) -> float:
        """Return the share of the ceiling, the median over rounds."""
        return self._median(2)

    @property
    def ratio(self) -> float | None:
        """Return the median over rounds; none where Attendo would stand beside itself."""
        return statistics.median(self.ratios) if self.ratios else None

    def _median(self, column: int) -> float:
        return statistics.median(metrics[column] for metrics in self.rounds) if self.rounds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        data = {"name": self.name, "status": self.status, "agreement": self.agreement}
        if not self.rounds:
            return data
        return data | {
            "tokens_per_second": self.tokens_per_second,
            "step_ms": self.step_ms,
            "share_of_ceiling": self.fraction_of_peak,
            "memory_gb": self.memory_gb,
            "attendo_is_times_as_fast": self.ratio,
            "ratios": self.ratios,
            "rounds": [metrics[0] for metrics in self.rounds],
        }


def format_result(result: Result) -> str:
    """Tell a result in a line."""
    if not result.rounds:
        return f"{result.name}: {result.status}"
    text = (
        f"{result.name}: {result.tokens_per_second:,.0f} target tokens/s, "
        f"{result.step_ms:,.1f} ms a step, {100 * result.fraction_of_peak:.1f} % of the ceiling"
    )
    if result.ratio is None:
        return f"{text} ({result.agreement})"
    comparison = f"Attendo is {result.ratio:.2f} times as fast{format_spread(result.ratios)}"
    return f"{text}; {comparison} ({result.agreement})"


def format_spread(ratios: list[float]) -> str:
    """Tell how far rounds lie apart where that is too much for a figure.

    >>> format_spread([1.0, 1.5]), format_spread([1.0, 1.05])
    (' (NOISY: rounds from 1.00 to 1.50)', '')
    """
    low, high = min(ratios), max(ratios)
    return f" (NOISY: rounds from {low:.2f} to {high:.2f})" if high > NOISE_RATIO * low else ""


def table_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells below `HEADERS`, the fastest first.

    Ratios decide: they were taken side by side, while a figure is of its own time.
    """
    measured = [one for one in report["systems"] if "tokens_per_second" in one]
    measured.sort(key=lambda one: one["attendo_is_times_as_fast"] or 1.0)
    return [_table_row(one) for one in measured]


def _table_row(system: dict[str, Any]) -> list[str]:
    memory, ratio = system["memory_gb"], system["attendo_is_times_as_fast"]
    return [
        system["name"],
        f"{system['tokens_per_second']:,.0f}",
        f"{system['step_ms']:,.1f}",
        f"{100 * system['share_of_ceiling']:.1f} %",
        "" if memory is None else f"{memory:.1f}",
        "" if ratio is None else f"{ratio:.2f} x",
    ]


def missing_notes(report: dict[str, Any]) -> list[str]:
    """Tell of each system without figures why it has none."""
    return [
        f"{one['name']}: {one['status']}"
        for one in report["systems"]
        if "tokens_per_second" not in one
    ]


def format_verdict(report: dict[str, Any]) -> str:
    """Say in a sentence what came out."""
    if report["fastest_peer"] is None:
        return "no peer was measured: these are Attendo's figures alone"
    ratio, peer = report["ratio"], report["fastest_peer"]
    spread = format_spread(report["ratios"])
    return f"Attendo is {ratio:.2f} times as fast as {peer}, the fastest peer{spread}"


def describe_setup(report: dict[str, Any]) -> str:
    """Say in a line what was measured."""
    padding, machine = report["padding"], report["machine"]
    millions = report["num_parameters"] / 1e6
    return (
        f"{report['size']} ({millions:.1f}M parameters), {report['batches']}, "
        f"padding {100 * padding['ours']:.1f} % (peers' {100 * padding['theirs']:.1f} %), "
        f"{report['precision']}, {report['rounds']} rounds, {report['steps']} steps in all; "
        f"{machine['device']}, {machine['threads']} threads, torch {machine['torch']}; "
        f"matrix ceiling {report['ceiling'] / 1e12:.2f} TFLOP/s"
    )


def describe_hardware(device: torch.device) -> dict[str, Any]:
    """Name the device and the versions that matter."""
    is_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if is_gpu else inspect_system().cpu,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def dtype_name(precision: torch.dtype) -> str:
    """Name a type of numbers.

    >>> dtype_name(torch.bfloat16)
    'bfloat16'
    """
    return str(precision).removeprefix("torch.")
