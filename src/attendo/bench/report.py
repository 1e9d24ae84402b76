"""Results of a benchmark as lines, table rows and JSON."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

import torch

from attendo.core.hardware import inspect_system

NOISE_RATIO = 1.15
"""If the ratios of rounds differ more, they say more about the machine than about the systems."""
HEADERS = ("system", "tokens/s", "ms/step", "% of peak", "GB", "Attendo is")


@dataclass
class Result:
    """One system: its rounds, or why it has none."""

    name: str
    status: str = "measured"
    agreement: str = ""
    rounds: list[tuple[float, float, float]] = field(default_factory=list)
    """Per round: real target tokens per second, milliseconds per step, the fraction of the peak."""
    ratios: list[float] = field(default_factory=list)
    """The speedup of Attendo in each round, compared with the round next to it."""
    memory_gb: float | None = None

    def add_round(self, metrics: tuple[float, float, float]) -> None:
        """Add a round."""
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
        """Return the median fraction of the peak over rounds."""
        return self._median(2)

    @property
    def ratio(self) -> float | None:
        """Return the median over rounds; None for Attendo itself."""
        return statistics.median(self.ratios) if self.ratios else None

    def _median(self, column: int) -> float:
        return statistics.median(metrics[column] for metrics in self.rounds) if self.rounds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        data = {"name": self.name, "status": self.status, "agreement": self.agreement}
        if not self.rounds:
            return data
        return data | {
            "tokens_per_second": self.tokens_per_second,
            "step_ms": self.step_ms,
            "fraction_of_peak": self.fraction_of_peak,
            "memory_gb": self.memory_gb,
            "attendo_is_times_as_fast": self.ratio,
            "ratios": self.ratios,
            "rounds": [metrics[0] for metrics in self.rounds],
        }


def format_result(result: Result) -> str:
    """Return a result as one line."""
    if not result.rounds:
        return f"{result.name}: {result.status}"
    text = (
        f"{result.name}: {result.tokens_per_second:,.0f} target tokens/s, "
        f"{result.step_ms:,.1f} ms/step, {100 * result.fraction_of_peak:.1f} % of peak"
    )
    if result.ratio is None:
        return f"{text} ({result.agreement})"
    comparison = f"Attendo is {result.ratio:.2f} times as fast{format_spread(result.ratios)}"
    return f"{text}; {comparison} ({result.agreement})"


def format_spread(ratios: list[float]) -> str:
    """Return the range of the rounds if they differ too much.

    >>> format_spread([1.0, 1.5]), format_spread([1.0, 1.05])
    (' (NOISY: rounds from 1.00 to 1.50)', '')
    """
    low, high = min(ratios), max(ratios)
    return f" (NOISY: rounds from {low:.2f} to {high:.2f})" if high > NOISE_RATIO * low else ""


def table_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells of the table `HEADERS`, the fastest first.

    Sorted by the ratios, which are measured side by side; absolute speeds vary over time.
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
        f"{100 * system['fraction_of_peak']:.1f} %",
        "" if memory is None else f"{memory:.1f}",
        "" if ratio is None else f"{ratio:.2f} x",
    ]


def missing_notes(report: dict[str, Any]) -> list[str]:
    """Return for each system without results why it has none."""
    return [
        f"{one['name']}: {one['status']}"
        for one in report["systems"]
        if "tokens_per_second" not in one
    ]


def format_verdict(report: dict[str, Any]) -> str:
    """Return the result in one sentence."""
    if report["fastest_peer"] is None:
        return "no peer was measured: these are the results of Attendo alone"
    ratio, peer = report["ratio"], report["fastest_peer"]
    spread = format_spread(report["ratios"])
    return f"Attendo is {ratio:.2f} times as fast as {peer}, the fastest peer{spread}"


def describe_setup(report: dict[str, Any]) -> str:
    """Return in one line what was measured."""
    padding, machine = report["padding"], report["machine"]
    millions = report["num_parameters"] / 1e6
    return (
        f"{report['size']} ({millions:.1f}M parameters), {report['batches']}, "
        f"padding {100 * padding['ours']:.1f} % (peers' {100 * padding['theirs']:.1f} %), "
        f"{report['precision']}, {report['rounds']} rounds, {report['steps']} steps in all; "
        f"{machine['device']}, {machine['threads']} threads, torch {machine['torch']}; "
        f"matrix peak {report['peak_flops'] / 1e12:.2f} TFLOP/s"
    )


def describe_hardware(device: torch.device) -> dict[str, Any]:
    """Return the device and the relevant versions."""
    is_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if is_gpu else inspect_system().cpu,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def dtype_name(precision: torch.dtype) -> str:
    """Return the name of a dtype.

    >>> dtype_name(torch.bfloat16)
    'bfloat16'
    """
    return str(precision).removeprefix("torch.")
