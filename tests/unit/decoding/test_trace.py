from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import torch

from attendo.decoding import trace as trace_module
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.search import search
from attendo.decoding.static.search import ENABLE_VARIABLE
from attendo.decoding.trace import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

PAD, UNK, START, END = range(4)
A, B, C = 4, 5, 6
KINDS = {
    "greedy": {"beam_size": 1},
    "sampling": {"do_sample": True, "n_best": 3, "temperature": 1.5},
    "beam": {"beam_size": 4, "n_best": 3},
    "wide": {"beam_size": 12, "n_best": 12, "alpha": 1.0, "length_norm": "power"},
    "negative": {"beam_size": 3, "n_best": 2, "alpha": -0.5},
    "ngram": {"beam_size": 6, "n_best": 6, "no_repeat_ngram": 1},
    "diverse": {"beam_size": 8, "n_best": 8, "num_groups": 4, "diversity_penalty": 2.0},
    "pairs": {"beam_size": 8, "n_best": 6, "num_groups": 2},
}


def holds(ids: Sequence[int], tokens: tuple[int, ...]) -> bool:
    size = len(tokens)
    return any(tuple(ids[at : at + size]) == tokens for at in range(len(ids) - size + 1))


@dataclass(frozen=True)
class Needed:
    tokens: tuple[int, ...]

    def is_satisfied(self, ids: Sequence[int]) -> bool:
        return holds(ids, self.tokens)


@dataclass(frozen=True)
class Banned:
    tokens: tuple[int, ...]

    def violates(self, ids: Sequence[int], next_id: int) -> bool:
        return holds([*ids, next_id], self.tokens)


def draw_constraints(seed: int) -> list[Constraints]:
    """One sentence with phrases, one with phrases that cannot be met, one free, one prefix."""
    draw = random.Random(seed)  # noqa: S311 - a test

    def phrase(size: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(4, 10), k=size))

    banned = phrase(2)
    return [
        Constraints((), (Needed(phrase(2)), Needed(phrase(1))), (Banned(phrase(3)),)),
        Constraints((), (Needed((*banned, 9)),), (Banned(banned), Banned(phrase(1)))),
        Constraints(),
        Constraints(prefix=phrase(3), forbidden=(Banned(phrase(2)),)),
    ]


@pytest.mark.parametrize(
    ("kind", "has_constraints"),
    [(kind, on) for kind in KINDS for on in (False, True) if (kind, on) != ("sampling", True)],
)
def test_replays_to_the_result(
    monkeypatch, make_peaky, make_sources, symbols, kind, has_constraints
):
    ways = set()
    for seed in range(12):
        model = make_peaky(seed, num_words=6, end=seed % 4 - 1.0)
        sources = make_sources(seed, [4, 3, 5, 2], num_words=6)
        options = DecodingOptions(**KINDS[kind], max_extra_tokens=3 + seed % 5)
        constraints = draw_constraints(seed) if has_constraints else None
        found = search(model, sources, symbols, options, constraints, trace=True)
        quick = search(model, sources, symbols, options, constraints)
        with monkeypatch.context() as switch:
            switch.setenv(ENABLE_VARIABLE, "0")
            plain = search(model, sources, symbols, options, constraints)
        for one, untraced, soon in zip(found, plain, quick, strict=True):
            record = json.loads(json.dumps(one.trace.to_dict(), allow_nan=False))
            given = one.hypotheses[: record["n_best"]]
            assert replay(record) == [hypothesis.ids for hypothesis in given]
            assert [entry["ids"] for entry in record["hypotheses"]] == replay(record)
            assert one.hypotheses == untraced.hypotheses  # to look changes nothing
            for hypothesis, other in zip(one.hypotheses, soon.hypotheses, strict=True):
                assert hypothesis.ids == other.ids
                assert hypothesis.score == pytest.approx(other.score, abs=1e-4)
            assert untraced.trace is None
            assert soon.trace is None
            check_consistency(record, options)
            ways |= {hypothesis.is_finished for hypothesis in given}
    assert ways == {True, False}


def check_consistency(record: dict, options: DecodingOptions) -> None:
    """Slots are the next step's parents, totals add up, outcomes say why."""
    assert record["format"] == "attendo.trace"
    assert record["version"] == 2
    for group in {step["group"] for step in record["steps"]}:
        steps = [step for step in record["steps"] if step["group"] == group]
        assert [step["position"] for step in steps] == list(range(len(steps)))
        assert len(steps) <= record["limit"]
        totals = {0: 0.0}
        for step in steps:
            length = step["position"] + 1
            base = length if options.length_norm == "power" else (5 + length) / 6
            for one in step["candidates"]:
                assert one["parent"] in totals
                assert one["total"] == pytest.approx(
                    totals[one["parent"]] + one["log_prob"], abs=1e-4
                )
                assert one["score"] == pytest.approx(one["total"] / base**options.alpha, abs=1e-4)
                assert (one["outcome"] == "kept") == (one["slot"] is not None)
                assert (one["outcome"] == "pruned") == bool(one["why"])
                assert one["outcome"] != "finished" or one["id"] == END
            kept = [one for one in step["candidates"] if one["outcome"] == "kept"]
            assert sorted(one["slot"] for one in kept) == list(range(len(kept)))
            assert len({(one["parent"], one["id"]) for one in kept}) == len(kept)
            totals = {one["slot"]: one["total"] for one in kept}


def test_a_trace_by_hand(make_chain, symbols):
    table = {START: {A: 0.6, B: 0.3, END: 0.1}, A: {B: 0.7, END: 0.3}, B: {END: 1.0}}
    model = make_chain({9: table}, vocab_size=10)
    options = DecodingOptions(beam_size=2, alpha=0.0)
    (found,) = search(model, torch.tensor([[9, END]]), symbols, options, trace=True)
    record = found.trace.to_dict()
    reported = [
        [(one["id"], one["parent"], one["slot"], one["outcome"]) for one in step["candidates"]]
        for step in record["steps"]
    ]
    assert reported == [
        [(A, 0, 0, "kept"), (B, 0, 1, "kept"), (END, 0, None, "pruned")],
        # 0.6 x 0.7 = 0.42, 0.3 x 1 = 0.3, 0.6 x 0.3 = 0.18
        [(B, 0, 0, "kept"), (END, 1, None, "finished"), (END, 0, None, "pruned")],
        [(END, 0, None, "finished")],
    ]
    assert record["steps"][0]["candidates"][2]["why"] == trace_module.END_NOT_IN_BEAM
    assert record["steps"][1]["candidates"][0]["total"] == pytest.approx(-0.867501)  # log 0.42
    assert record["stopped"] == trace_module.STOP_FINISHED
    assert record["limit"] == 52
    assert record["hypotheses"][0]["ids"] == [A, B] == replay(record)[0]


def test_reports_why_it_stopped(make_chain, symbols):
    endless = make_chain({9: {START: {A: 1.0}, A: {A: 1.0}}}, vocab_size=10)
    source = torch.tensor([[9, END]])
    for size in (1, 2):
        options = DecodingOptions(beam_size=size, max_length=3)
        (found,) = search(endless, source, symbols, options, trace=True)
        assert found.trace.stopped == trace_module.STOP_LIMIT
        assert replay(found.trace.to_dict()) == [[A, A, A]]
    stuck = [Constraints(forbidden=(Banned((A, A)),))]
    options = DecodingOptions(beam_size=2)
    (found,) = search(endless, source, symbols, options, stuck, trace=True)
    assert found.trace.stopped == trace_module.STOP_NO_CONTINUATION
    assert replay(found.trace.to_dict()) == [[A]]
    assert [one.why for one in found.trace.steps[-1].candidates] == [trace_module.FORBIDDEN]


def test_reports_what_phrases_did(make_chain, symbols):
    table = {
        START: {A: 0.9, B: 0.1},
        A: {END: 0.7, A: 0.2, B: 0.1},
        B: {A: 0.5, END: 0.5},
    }
    model = make_chain({9: table}, vocab_size=10)
    constraints = [Constraints(required=(Needed((B,)),), forbidden=(Banned((A, A)),))]
    options = DecodingOptions(beam_size=2, n_best=2, alpha=0.0)
    (found,) = search(model, torch.tensor([[9, END]]), symbols, options, constraints, trace=True)
    # B END: 0.1 x 0.5; A B END: 0.9 x 0.1 x 0.5
    assert [one.ids for one in found.hypotheses] == [[B], [A, B]]
    first, second, *_ = found.trace.steps
    assert {(one.id, one.met) for one in first.candidates} == {(A, 0), (B, 1)}
    outcomes = {(one.id, one.parent): (one.outcome, one.why) for one in second.candidates}
    slot = next(one.slot for one in first.candidates if one.id == A)
    assert outcomes[END, slot] == ("pruned", trace_module.MISSING_REQUIRED)
    assert outcomes[A, slot] == ("pruned", trace_module.FORBIDDEN)
    assert outcomes[END, 1 - slot] == ("finished", "")


def test_a_sampled_result_is_marked_as_sampled(make_peaky, make_sources, symbols):
    options = DecodingOptions(do_sample=True, n_best=2, temperature=2.0)
    model = make_peaky(1, num_words=8, scale=1.0)
    (found,) = search(model, make_sources(1, [4], num_words=8), symbols, options, trace=True)
    assert found.trace.method == "sampling"
    assert len(found.trace.steps) == len(found.hypotheses[0].token_log_probs)
    reasons = {one.why for step in found.trace.steps for one in step.candidates}
    assert reasons == {"", trace_module.NOT_SAMPLED}


@pytest.mark.parametrize("kind", KINDS)
def test_costs_nothing_when_off(make_peaky, make_sources, symbols, monkeypatch, kind):
    """No record is made: not a trace, not a step, not one candidate."""

    def refuse(*_, **__) -> None:
        raise AssertionError("something was recorded")

    for name in ("Trace", "Step"):
        monkeypatch.setattr(getattr(trace_module, name), "__init__", refuse)
    monkeypatch.setattr(trace_module.Candidate, "__new__", refuse)
    model, sources = make_peaky(0, num_words=6), make_sources(0, [4, 3, 5, 2], num_words=6)
    options = DecodingOptions(**KINDS[kind], max_extra_tokens=4)
    constraints = None if kind == "sampling" else draw_constraints(0)
    assert len(search(model, sources, symbols, options, constraints)) == 4
    with pytest.raises(AssertionError, match="recorded"):
        search(model, sources, symbols, options, constraints, trace=True)
