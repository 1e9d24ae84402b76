"""Decoding speed: Attendo's search and Hugging Face's `generate` in turns, on the same sentences.

Weights are drawn by chance and every translation has the same number of tokens, so that only speed
differs. Before the clock runs, both must write the same tokens in float32.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bench.agreement import Agreement
from attendo.bench.flops import synchronise
from attendo.bench.peers import PEERS, build_marian
from attendo.bench.report import describe_machine, name_precision
from attendo.bench.training import choose_peers, stir
from attendo.core.seeding import seed_everything
from attendo.data.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.decoding.options import DecodingOptions, Symbols
from attendo.decoding.search import search
from attendo.training.steps import choose_precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from attendo.bench.config import DecodingBench, Shape
    from attendo.model.transformer import Transformer

DECODERS = PEERS[1:]
"""Peers that decode: `nn.Transformer` does not."""
SYMBOLS = Symbols(START_ID, END_ID, PAD_ID, UNK_ID)
NUM_CHECKED = 4
HEADERS = ("batch", "beam", "system", "sentences/s", "ms a token", "Attendo is")


class Case(NamedTuple):
    """One batch and one width of the beam."""

    shape: Shape
    beam_size: int

    @property
    def options(self) -> DecodingOptions:
        """Give what makes every translation exactly as long as asked for."""
        length = self.shape.tgt_length
        return DecodingOptions(beam_size=self.beam_size, min_length=length, max_length=length)


def measure_decoding(
    config: DecodingBench, *, tell: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Time every batch with every beam; give all figures, as JSON can hold them."""
    say = tell or (lambda _line: None)
    chosen = choose_peers(config.peers, DECODERS)
    has_peer = bool(chosen) and chosen[0].is_installed
    seed_everything(config.seed)
    device, precision = config.place, choose_precision(config.precision, config.place)
    model = stir(config.build()).eval()
    peer = build_marian(model).to(device).eval() if has_peer else None
    model.to(device)
    cases = [Case(shape, beam) for shape in config.shapes for beam in config.beam_sizes]
    agreements = {beam: _compare(model, peer, beam, config) for beam in config.beam_sizes}
    for system in (model, peer):
        if system is not None:
            system.to(precision)
    if chosen and peer is None:
        say(f"{chosen[0].name}: not installed")
    rows = []
    for case in cases:
        row = _time_case(model, peer, case, agreements[case.beam_size], config)
        rows.append(row)
        say(name_case(row))
    return {
        "kind": "attendo bench decode",
        "machine": describe_machine(device),
        "size": config.size,
        "num_parameters": model.num_parameters(),
        "vocab_size": config.num_pieces,
        "precision": name_precision(precision),
        "repeats": config.repeats,
        "cases": rows,
    }


def decode(model: Transformer, src_ids: Tensor, case: Case) -> list[list[int]]:
    """Write by our search."""
    found = search(model, src_ids, SYMBOLS, case.options)
    return [one.hypotheses[0].ids for one in found]


def generate(peer: Any, src_ids: Tensor, case: Case, **options: Any) -> list[list[int]]:
    """Write by Hugging Face's."""
    length = case.shape.tgt_length
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # it comments on its own options
        output = peer.generate(
            src_ids,
            attention_mask=(src_ids != PAD_ID).long(),
            num_beams=case.beam_size,
            min_new_tokens=length,
            max_new_tokens=length,
            do_sample=False,
            **options,
        )
    return [row[1:].tolist() for row in output]


def _draw(config: DecodingBench, shape: Shape, num_sentences: int) -> Tensor:
    draw = torch.Generator().manual_seed(config.seed)
    size = (num_sentences, shape.src_length - 1)
    ids = torch.randint(END_ID + 1, config.num_pieces, size, generator=draw)
    return torch.nn.functional.pad(ids, (0, 1), value=END_ID).to(config.place)


def _compare(
    model: Transformer, peer: Any, beam_size: int, config: DecodingBench
) -> Agreement | None:
    """Let both write some sentences in float32; one may differ where two scores are too near."""
    if peer is None:
        return None
    case = Case(config.shapes[0], beam_size)
    src_ids = _draw(config, case.shape, NUM_CHECKED)
    ours = decode(model, src_ids, case)
    theirs = generate(peer, src_ids, case, suppress_tokens=[PAD_ID, UNK_ID, START_ID])
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    return Agreement(same >= NUM_CHECKED - 1, f"{same} of {NUM_CHECKED} written alike in float32")


def _time_case(
    model: Transformer, peer: Any, case: Case, agreement: Agreement | None, config: DecodingBench
) -> dict[str, Any]:
    src_ids = _draw(config, case.shape, case.shape.num_sentences)
    is_compared = agreement is not None and agreement.is_met
    ours, theirs = [], []
    for number in range(config.repeats + 1):  # the first one warms up
        ours.append(_time(lambda: decode(model, src_ids, case), config))
        if is_compared:
            theirs.append(_time(lambda: generate(peer, src_ids, case), config))
        if number == 0:
            ours, theirs = [], []
    pairs = zip(ours, theirs, strict=True) if theirs else ()
    ratios = [slow / fast for fast, slow in pairs]
    return {
        "batch": str(case.shape),
        "num_sentences": case.shape.num_sentences,
        "length": case.shape.tgt_length,
        "beam_size": case.beam_size,
        "seconds": statistics.median(ours),
        "peer": DECODERS[0].name if agreement else None,
        "peer_seconds": statistics.median(theirs) if theirs else None,
        "attendo_is_times_as_fast": statistics.median(ratios) if ratios else None,
        "agreement": agreement.text if agreement else "",
    }


def _time(run: Callable[[], object], config: DecodingBench) -> float:
    synchronise(config.place)
    begin = time.perf_counter()
    run()
    synchronise(config.place)
    return time.perf_counter() - begin


def name_case(row: dict[str, Any]) -> str:
    """Tell a case in a line."""
    text = f"{row['batch']}, beam {row['beam_size']}: {row['num_sentences'] / row['seconds']:,.1f}"
    text += f" sentences/s, {1000 * row['seconds'] / row['length']:.2f} ms a token"
    ratio = row["attendo_is_times_as_fast"]
    if ratio is not None:
        return f"{text}; {ratio:.2f} times as fast as {row['peer']} ({row['agreement']})"
    return f"{text}; {row['peer']} disagrees: {row['agreement']}" if row["peer"] else text


def make_rows(report: dict[str, Any]) -> list[list[str]]:
    """Give the cells below `HEADERS`."""
    rows = []
    for case in report["cases"]:
        heads = [case["batch"], str(case["beam_size"])]
        rows.append([*heads, "Attendo", *_figures(case, case["seconds"]), ""])
        if case["peer_seconds"] is not None:
            ratio = f"{case['attendo_is_times_as_fast']:.2f} x"
            rows.append([*heads, case["peer"], *_figures(case, case["peer_seconds"]), ratio])
    return rows


def _figures(case: dict[str, Any], seconds: float) -> list[str]:
    per_token = 1000 * seconds / case["length"]
    return [f"{case['num_sentences'] / seconds:,.1f}", f"{per_token:.2f}"]


def name_setting(report: dict[str, Any]) -> str:
    """Say in a line what was measured."""
    machine, millions = report["machine"], report["num_parameters"] / 1e6
    return (
        f"{report['size']} ({millions:.1f}M parameters), random weights, {report['precision']}, "
        f"{report['repeats']} repeats in turns; {machine['device']}, {machine['threads']} threads, "
        f"torch {machine['torch']}"
    )
