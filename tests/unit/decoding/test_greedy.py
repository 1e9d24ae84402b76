from __future__ import annotations

import pytest
import torch

from attendo.core.protocols import Memory
from attendo.decoding.greedy import greedy

START, END = 2, 3
SYMBOLS = {"start_id": START, "end_id": END}


class Script:
    """Says a written sequence for each row: the row's first source id chooses it."""

    def __init__(self, lines: dict[int, list[int]]) -> None:
        self.lines = lines
        self.heard: list[list[int]] = []

    def encode(self, src_ids) -> Memory:
        return Memory(src_ids, src_ids)

    def start(self, memory):
        return (memory.states[:, 0].tolist(), 0)

    def step(self, ids, state):
        rows, place = state
        self.heard.append(ids.tolist())
        logits = torch.zeros(len(rows), 20)
        for number, row in enumerate(rows):
            line = self.lines[row]
            logits[number, line[place] if place < len(line) else 9] = 1.0
        return logits, (rows, place + 1)


def test_ends_at_the_end_symbol_and_feeds_back_what_it_said():
    model = Script({5: [7, 8, END, 11, 12], 6: [10, END, 11], 7: [END]})
    said = greedy(model, torch.tensor([[5, END], [6, END], [7, END]]), **SYMBOLS)
    assert said == [[7, 8], [10], []]
    assert model.heard == [[START] * 3, [7, 10, END], [8, END, END]]  # and then it stops


def test_limit_is_each_rows_own_source_and_fifty():
    src_ids = torch.tensor([[5, 4, 4, 4, 4, END], [6, END, 0, 0, 0, 0]])
    model = Script({5: [], 6: []})  # never ends
    assert [len(row) for row in greedy(model, src_ids, **SYMBOLS)] == [56, 52]
    assert len(model.heard) == 56
    short = greedy(Script({5: [], 6: []}), src_ids, **SYMBOLS, max_extra=1)
    assert short == [[9] * 7, [9] * 3]


def test_the_end_after_the_limit_does_not_count():
    model = Script({5: [9] * 4 + [END], 6: []})
    src_ids = torch.tensor([[5, END, 0, 0], [6, 4, 4, END]])
    assert greedy(model, src_ids, **SYMBOLS, max_extra=1) == [[9] * 3, [9] * 5]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_sentence_does_not_depend_on_the_others(make_model, make_ids, norm):
    model = make_model(dtype=torch.float64, norm=norm)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)  # far from ties
    lengths = [7, 2, 5, 1, 6, 3]
    src_ids = make_ids(6, 7, lengths=lengths)
    together = greedy(model, src_ids, **SYMBOLS, max_extra=12)
    alone = [
        greedy(model, src_ids[row : row + 1, :length], **SYMBOLS, max_extra=12)[0]
        for row, length in enumerate(lengths)
    ]
    assert together == alone
    assert len({tuple(row) for row in together}) > 2
    turned = greedy(model, src_ids.flip(0), **SYMBOLS, max_extra=12)
    assert turned[::-1] == together


def test_is_the_argmax_of_teacher_forcing(make_model, make_ids):
    model = make_model(dtype=torch.float64)
    src_ids = make_ids(1, 5)
    (said,) = greedy(model, src_ids, **SYMBOLS, max_extra=6)
    fed = torch.tensor([[START, *said]])
    best = model(src_ids, fed)[0].argmax(-1).tolist()
    assert best[: len(said)] == said
    assert len(said) == 11 or best[len(said)] == END
