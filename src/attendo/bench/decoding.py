"""Decoding speed: our search and other decoders in turns, on the same sentences and weights.

Weights are drawn by chance and every translation has the same number of tokens, so that only speed
differs. Before the clock runs, each must write what we write, in float32.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from attendo.bench.agreement import Agreement
from attendo.bench.decoders import DECODERS, Case, OwnDecoder
from attendo.bench.flops import Search, measure_ceiling, measure_reading, synchronise
from attendo.bench.report import describe_machine, name_spread
from attendo.bench.training import OURS, choose_peers, stir
from attendo.core.seeding import seed_everything
from attendo.data.tokenizer import END_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from attendo.bench.config import DecodingBench, Shape
    from attendo.bench.decoders import Decoder
    from attendo.bench.peers import Peer

NUM_CHECKED = 4
HEADERS = ("batch", "beam", "system", "sentences/s", "ms a token", "of the ceiling", "Attendo is")


@dataclass
class Timed:
    """One decoder in one case."""

    name: str
    agreement: Agreement
    seconds: list[float] = field(default_factory=list)

    def to_json(self, ours: Timed, least: float) -> dict[str, Any]:
        """Give what JSON can hold."""
        told: dict[str, Any] = {"name": self.name, "agreement": self.agreement.text}
        if not self.seconds:
            return told
        pairs = zip(self.seconds, ours.seconds, strict=True)
        ratios = [] if self is ours else [slow / fast for slow, fast in pairs]
        middle = statistics.median(self.seconds)
        return told | {
            "seconds": middle,
            "share_of_ceiling": least / middle,
            "attendo_is_times_as_fast": statistics.median(ratios) if ratios else None,
            "ratios": ratios,
        }


def measure_decoding(
    config: DecodingBench,
    *,
    peers: Sequence[Peer] = DECODERS,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Time every batch with every beam; give all figures, as JSON can hold them."""
    say = tell or (lambda _line: None)
    seed_everything(config.seed)
    study = Study(config, choose_peers(config.peers, peers), say)
    return {
        "kind": "attendo bench decode",
        "machine": describe_machine(config.place),
        "size": config.size,
        "num_parameters": study.model.num_parameters(),
        "vocab_size": config.num_pieces,
        "precision": str(study.kind),
        "repeats": config.repeats,
        "ceiling": study.ceiling,
        "reading": study.reading,
        "missing": study.missing,
        "cases": [study.measure(case) for case in study.cases],
    }


class Study:
    """One measurement: the decoders, and what the device could do."""

    def __init__(
        self, config: DecodingBench, peers: Sequence[Peer], say: Callable[[str], None]
    ) -> None:
        self.config, self.say, self.device = config, say, config.place
        self.kind = config.kind
        self.model = stir(config.build()).eval()
        self.cases = [Case(shape, beam) for shape in config.shapes for beam in config.beam_sizes]
        self.missing = [peer.name for peer in peers if not peer.is_installed]
        self.decoders: dict[str, Decoder] = {OURS: OwnDecoder(self.model)}
        self.decoders |= {peer.name: peer.build(self.model) for peer in peers if peer.is_installed}
        self._move(torch.float32)
        self.agreements = {beam: self._compare(beam) for beam in config.beam_sizes}
        self._move(self.kind.dtype)
        weight_bytes = self._count(self.cases[0]).weight_bytes
        with self.kind.switch():
            self.ceiling = measure_ceiling(self.device, self.kind.dtype)
        self.reading = measure_reading(self.device, weight_bytes)
        for name in self.missing:
            say(f"{name}: not installed")

    def measure(self, case: Case) -> dict[str, Any]:
        """Time all decoders in turns."""
        src_ids = draw_ids(self.config, case.shape, case.shape.num_sentences)
        timed = [Timed(name, self.agreements[case.beam_size][name]) for name in self.decoders]
        chosen = [one for one in timed if one.agreement.is_met]
        with self.kind.switch():
            for one in chosen:
                for _ in range(self.config.num_warm):
                    self._time(one, src_ids, case)
                one.seconds.clear()
            for _ in range(self.config.repeats):
                for one in chosen:
                    self._time(one, src_ids, case)
        least = self._count(case).least_seconds(self.ceiling, self.reading)
        row = {
            "batch": str(case.shape),
            "num_sentences": case.shape.num_sentences,
            "length": case.shape.tgt_length,
            "beam_size": case.beam_size,
            "least_seconds": least,
            "systems": [one.to_json(timed[0], least) for one in timed],
        }
        self.say(name_case(row))
        return row

    def _move(self, precision: torch.dtype) -> None:
        for decoder in self.decoders.values():
            decoder.move(self.device, precision)

    def _count(self, case: Case) -> Search:
        return Search.of(self.model, case.shape, case.beam_size, self.kind.dtype)

    def _compare(self, beam_size: int) -> dict[str, Agreement]:
        """Let all write some sentences; one may differ where two scores are too near."""
        case = Case(self.config.shapes[0], beam_size)
        src_ids = draw_ids(self.config, case.shape, NUM_CHECKED)
        written = {
            name: decoder.write(src_ids, case, is_checked=True)
            for name, decoder in self.decoders.items()
        }
        found = {OURS: Agreement(True, "")}
        for name, theirs in written.items():
            if name != OURS:
                pairs = zip(written[OURS], theirs, strict=True)
                same = sum(one == other for one, other in pairs)
                text = f"{same} of {NUM_CHECKED} alike in float32"
                found[name] = Agreement(same >= NUM_CHECKED - 1, text)
        return found

    def _time(self, timed: Timed, src_ids: Tensor, case: Case) -> None:
        decoder = self.decoders[timed.name]
        synchronise(self.device)
        begin = time.perf_counter()
        decoder.write(src_ids, case)
        synchronise(self.device)
        timed.seconds.append(time.perf_counter() - begin)


def draw_ids(config: DecodingBench, shape: Shape, num_sentences: int) -> Tensor:
    """Draw sources, each with its end symbol."""
    draw = torch.Generator().manual_seed(config.seed)
    size = (num_sentences, shape.src_length - 1)
    ids = torch.randint(END_ID + 1, config.num_pieces, size, generator=draw)
    return torch.nn.functional.pad(ids, (0, 1), value=END_ID).to(config.place)


def name_case(row: dict[str, Any]) -> str:
    """Tell a case in a line."""
    ours, *others = row["systems"]
    speed, pace, share = _figures(row, ours)
    text = f"{row['batch']}, beam {row['beam_size']}: "
    text += f"{speed} sentences/s, {pace} ms a token, {share} of the ceiling"
    for one in others:
        if "seconds" in one:
            ratio, spread = one["attendo_is_times_as_fast"], name_spread(one["ratios"])
            text += f"; {ratio:.2f} times as fast as {one['name']}{spread} ({one['agreement']})"
        else:
            text += f"; {one['name']} disagrees: {one['agreement']}"
    return text


def _figures(row: dict[str, Any], system: dict[str, Any]) -> tuple[str, str, str]:
    """Give sentences a second, milliseconds a token, and the share of the ceiling."""
    return (
        f"{row['num_sentences'] / system['seconds']:,.1f}",
        f"{1000 * system['seconds'] / row['length']:.2f}",
        f"{100 * system['share_of_ceiling']:.1f} %",
    )


def make_rows(report: dict[str, Any]) -> list[list[str]]:
    """Give the cells below `HEADERS`; what is timed stands in the first row of it."""
    rows = []
    for case in report["cases"]:
        heads = [case["batch"].removesuffix(" tokens").replace(" ", ""), str(case["beam_size"])]
        for one in case["systems"]:
            if "seconds" in one:
                ratio = one["attendo_is_times_as_fast"]
                last = "" if ratio is None else f"{ratio:.2f} x"
                rows.append([*heads, one["name"], *_figures(case, one), last])
                heads = ["", ""]
    return rows


def name_setting(report: dict[str, Any]) -> str:
    """Say in a line what was measured."""
    machine, millions = report["machine"], report["num_parameters"] / 1e6
    return (
        f"{report['size']} ({millions:.1f}M parameters), random weights, {report['precision']}, "
        f"{report['repeats']} repeats in turns; {machine['device']}, {machine['threads']} threads, "
        f"torch {machine['torch']}; ceiling: {report['ceiling'] / 1e12:.2f} TFLOP/s, weights read "
        f"at {report['reading'] / 1e9:,.0f} GB/s"
    )
