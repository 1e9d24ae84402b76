"""Decoding speed: our search and other decoders in turn, on the same sentences and weights.

Weights are random and every translation has the same number of tokens, so that only speed differs.
Before timing, each decoder must produce our output in float32.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from attendo.bench.correctness import Agreement
from attendo.bench.decoders import DECODERS, AttendoDecoder, Case
from attendo.bench.flops import SearchCost, measure_peak_flops, measure_read_bandwidth, synchronize
from attendo.bench.report import describe_hardware, format_spread
from attendo.bench.training import OURS, choose_peers, perturb_biases_and_norms
from attendo.core.seeding import seed_everything
from attendo.text.tokenizer import END_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from attendo.bench.config import DecodingBenchConfig, Shape
    from attendo.bench.decoders import Decoder
    from attendo.bench.reference_models import Peer

NUM_CHECKED = 4
HEADERS = ("batch", "beam", "system", "sentences/s", "ms/token", "% of peak", "Attendo is")


@dataclass
class TimedDecoder:
    """One decoder in one case."""

    name: str
    agreement: Agreement
    seconds: list[float] = field(default_factory=list)

    def to_json(self, ours: TimedDecoder, min_seconds: float) -> dict[str, Any]:
        """Return it as JSON."""
        data: dict[str, Any] = {"name": self.name, "agreement": self.agreement.text}
        if not self.seconds:
            return data
        pairs = zip(self.seconds, ours.seconds, strict=True)
        ratios = [] if self is ours else [slow / fast for slow, fast in pairs]
        median = statistics.median(self.seconds)
        return data | {
            "seconds": median,
            "fraction_of_peak": min_seconds / median,
            "attendo_is_times_as_fast": statistics.median(ratios) if ratios else None,
            "ratios": ratios,
        }


def benchmark_decoding(
    config: DecodingBenchConfig,
    *,
    peers: Sequence[Peer] = DECODERS,
    log: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Time every batch with every beam size; return all results as JSON."""
    log_line = log or (lambda _line: None)
    seed_everything(config.seed)
    benchmark = DecodingBenchmark(config, choose_peers(config.peers, peers), log_line)
    return {
        "kind": "attendo bench decode",
        "machine": describe_hardware(config.torch_device),
        "size": config.size,
        "num_parameters": benchmark.model.num_parameters(),
        "vocab_size": config.actual_vocab_size,
        "precision": str(benchmark.compute_precision),
        "repeats": config.repeats,
        "peak_flops": benchmark.peak_flops,
        "read_bandwidth": benchmark.read_bandwidth,
        "missing": benchmark.missing,
        "cases": [benchmark.time_case(case) for case in benchmark.cases],
    }


class DecodingBenchmark:
    """One benchmark: the decoders, and the peak performance of the device."""

    def __init__(
        self, config: DecodingBenchConfig, peers: Sequence[Peer], log: Callable[[str], None]
    ) -> None:
        self.config, self.log, self.device = config, log, config.torch_device
        self.compute_precision = config.compute_precision
        self.model = perturb_biases_and_norms(config.build_model()).eval()
        self.cases = [Case(shape, beam) for shape in config.shapes for beam in config.beam_sizes]
        self.missing = [peer.name for peer in peers if not peer.is_installed]
        self.decoders: dict[str, Decoder] = {OURS: AttendoDecoder(self.model)}
        self.decoders |= {peer.name: peer.build(self.model) for peer in peers if peer.is_installed}
        self._move(torch.float32)
        self.agreements = {beam: self._compare(beam) for beam in config.beam_sizes}
        self._move(self.compute_precision.dtype)
        weight_bytes = self._search_cost(self.cases[0]).weight_bytes
        with self.compute_precision.activate():
            self.peak_flops = measure_peak_flops(self.device, self.compute_precision.dtype)
        self.read_bandwidth = measure_read_bandwidth(self.device, weight_bytes)
        for name in self.missing:
            log(f"{name}: not installed")

    def time_case(self, case: Case) -> dict[str, Any]:
        """Time all decoders in turn."""
        src_ids = sample_ids(self.config, case.shape, case.shape.num_sentences)
        timed = [
            TimedDecoder(name, self.agreements[case.beam_size][name]) for name in self.decoders
        ]
        chosen = [one for one in timed if one.agreement.is_satisfied]
        with self.compute_precision.activate():
            for one in chosen:
                for _ in range(self.config.num_warmup):
                    self._time(one, src_ids, case)
                one.seconds.clear()
            for _ in range(self.config.repeats):
                for one in chosen:
                    self._time(one, src_ids, case)
        min_seconds = self._search_cost(case).min_seconds(self.peak_flops, self.read_bandwidth)
        row = {
            "batch": str(case.shape),
            "num_sentences": case.shape.num_sentences,
            "length": case.shape.tgt_length,
            "beam_size": case.beam_size,
            "min_seconds": min_seconds,
            "systems": [one.to_json(timed[0], min_seconds) for one in timed],
        }
        self.log(format_case(row))
        return row

    def _move(self, precision: torch.dtype) -> None:
        for decoder in self.decoders.values():
            decoder.move(self.device, precision)

    def _search_cost(self, case: Case) -> SearchCost:
        return SearchCost.from_model(
            self.model, case.shape, case.beam_size, self.compute_precision.dtype
        )

    def _compare(self, beam_size: int) -> dict[str, Agreement]:
        """Compare the output of some sentences; one may differ, if two scores are too close."""
        case = Case(self.config.shapes[0], beam_size)
        src_ids = sample_ids(self.config, case.shape, NUM_CHECKED)
        outputs = {
            name: decoder.decode(src_ids, case, suppress_special=True)
            for name, decoder in self.decoders.items()
        }
        agreements = {OURS: Agreement(True, "")}
        for name, theirs in outputs.items():
            if name != OURS:
                pairs = zip(outputs[OURS], theirs, strict=True)
                same = sum(one == other for one, other in pairs)
                text = f"{same} of {NUM_CHECKED} equal in float32"
                agreements[name] = Agreement(same >= NUM_CHECKED - 1, text)
        return agreements

    def _time(self, timed: TimedDecoder, src_ids: Tensor, case: Case) -> None:
        decoder = self.decoders[timed.name]
        synchronize(self.device)
        begin = time.perf_counter()
        decoder.decode(src_ids, case)
        synchronize(self.device)
        timed.seconds.append(time.perf_counter() - begin)


def sample_ids(config: DecodingBenchConfig, shape: Shape, num_sentences: int) -> Tensor:
    """Return random sources, each with its end symbol."""
    rng = torch.Generator().manual_seed(config.seed)
    size = (num_sentences, shape.src_length - 1)
    ids = torch.randint(END_ID + 1, config.actual_vocab_size, size, generator=rng)
    return torch.nn.functional.pad(ids, (0, 1), value=END_ID).to(config.torch_device)


def format_case(row: dict[str, Any]) -> str:
    """Return a case as one line."""
    ours, *others = row["systems"]
    speed, latency, share = _format_metrics(row, ours)
    text = f"{row['batch']}, beam {row['beam_size']}: "
    text += f"{speed} sentences/s, {latency} ms/token, {share} of peak"
    for one in others:
        if "seconds" in one:
            ratio, spread = one["attendo_is_times_as_fast"], format_spread(one["ratios"])
            text += f"; {ratio:.2f} times as fast as {one['name']}{spread} ({one['agreement']})"
        else:
            text += f"; {one['name']} disagrees: {one['agreement']}"
    return text


def _format_metrics(row: dict[str, Any], system: dict[str, Any]) -> tuple[str, str, str]:
    """Return sentences per second, milliseconds per token, and the fraction of the peak."""
    return (
        f"{row['num_sentences'] / system['seconds']:,.1f}",
        f"{1000 * system['seconds'] / row['length']:.2f}",
        f"{100 * system['fraction_of_peak']:.1f} %",
    )


def table_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells of the table `HEADERS`; the first row of a case names it."""
    rows = []
    for case in report["cases"]:
        heads = [case["batch"].removesuffix(" tokens").replace(" ", ""), str(case["beam_size"])]
        for one in case["systems"]:
            if "seconds" in one:
                ratio = one["attendo_is_times_as_fast"]
                last = "" if ratio is None else f"{ratio:.2f} x"
                rows.append([*heads, one["name"], *_format_metrics(case, one), last])
                heads = ["", ""]
    return rows


def describe_setup(report: dict[str, Any]) -> str:
    """Return in one line what was measured."""
    machine, millions = report["machine"], report["num_parameters"] / 1e6
    return (
        f"{report['size']} ({millions:.1f}M parameters), random weights, {report['precision']}, "
        f"{report['repeats']} repeats in turn; {machine['device']}, {machine['threads']} threads, "
        f"torch {machine['torch']}; peak: {report['peak_flops'] / 1e12:.2f} TFLOP/s, weights read "
        f"at {report['read_bandwidth'] / 1e9:,.0f} GB/s"
    )
