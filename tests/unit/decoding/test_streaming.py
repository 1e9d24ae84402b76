from __future__ import annotations

import math

import pytest
import torch

from attendo.core.errors import AttendoError, ConfigError
from attendo.core.protocols import Memory
from attendo.decoding.greedy import greedy
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.streaming import GreedyStream, TokenEvent

PAD, UNK, START, END = range(4)


class Script:
    """Says a written sequence; counts how often it was asked."""

    def __init__(self, line: list[int]) -> None:
        self.line, self.heard = line, []

    def encode(self, src_ids) -> Memory:
        return Memory(src_ids, src_ids)

    def start(self, _memory):
        return 0

    def step(self, ids, position):
        self.heard.append(ids.tolist())
        logits = torch.zeros(1, 20)
        logits[0, self.line[position] if position < len(self.line) else 9] = 1.0
        return logits, position + 1


def test_yields_each_token_as_it_is_generated_and_feeds_it_back(symbols):
    model = Script([7, 8, END, 11])
    steps = GreedyStream(model, torch.tensor([[5, END]]), symbols)
    printed = iter(steps)
    likely = math.e / (19 + math.e)  # the logits are one 1 and nineteen 0
    assert next(printed) == TokenEvent(7, pytest.approx(likely))
    assert model.heard == [[START]]
    assert [one.id for one in printed] == [8]
    assert model.heard == [[START], [7], [8]]
    assert steps.result.is_finished
    assert steps.result.log_prob == pytest.approx(3 * math.log(likely), abs=1e-5)


def test_a_client_that_stops_reading_stops_the_work(symbols):
    model = Script([])  # never ends
    printed = iter(GreedyStream(model, torch.tensor([[5, END]]), symbols))
    next(printed), next(printed)
    printed.close()
    assert len(model.heard) == 2


def test_the_temperature_lowers_confidence_and_keeps_the_output(symbols):
    steps = GreedyStream(Script([7, END]), torch.tensor([[5, END]]), symbols, temperature=2.0)
    flat = math.exp(0.5)
    assert list(steps) == [TokenEvent(7, pytest.approx(flat / (19 + flat)))]
    assert steps.result.log_prob == pytest.approx(2 * (1 - math.log(19 + math.e)), abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1.0},
        {"min_length": 6},
        {"no_repeat_ngram": 1},
        {"max_length": 3},
        {"unk": "keep"},
    ],
)
@pytest.mark.parametrize("prefix", [(), (7, 9)])
def test_finds_what_greedy_finds(make_model, make_ids, symbols, options, prefix):
    model = make_model()
    chosen, constraints = DecodingOptions(**options), Constraints(prefix)
    for row in make_ids(4, 6):
        src_ids = row[None]
        steps = GreedyStream(model, src_ids, symbols, chosen, constraints)
        printed = [one.id for one in steps]
        (found,) = greedy(model, src_ids, symbols, chosen, [constraints])
        expected = found.hypotheses[0]
        assert printed == expected.ids == steps.result.ids
        assert steps.result.is_finished == expected.is_finished
        assert steps.result.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
        assert steps.result.score == pytest.approx(expected.score, abs=1e-5)


def test_what_is_not_a_number_is_rejected(make_model, make_ids, symbols):
    model = make_model()
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(AttendoError, match="NaN"):
        list(GreedyStream(model, make_ids(1, 4), symbols))


def test_what_needs_a_search_is_rejected(make_model, make_ids, symbols):
    with pytest.raises(ConfigError, match="token by token"):
        GreedyStream(make_model(), make_ids(1, 4), symbols, DecodingOptions(do_sample=True))
