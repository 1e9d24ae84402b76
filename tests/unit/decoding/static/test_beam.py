"""The fast beam search over models whose probabilities are written down, with answers by hand."""

from __future__ import annotations

import math

import pytest
import torch

from attendo.decoding.options import DecodingOptions
from attendo.decoding.static.search import search_static

PAD, UNK, START, END = range(4)
A, B = 4, 5
SOURCE = torch.tensor([[7, END]])


class FixedChain:
    """Says each token by a table: `tables[first source id][last token]` are the logits."""

    def __init__(self, tables, counter, **sizes) -> None:
        self.tables, self.counter, self.sizes = tables, counter, sizes
        for name, size in sizes.items():
            setattr(self, name, size)
        self.position = torch.zeros(1, dtype=torch.long)
        self.num_bytes = 0

    def set_sources(self, src_ids) -> None:
        kinds = src_ids[:, 0].tolist()
        idle = self.num_sentences - len(kinds)
        self.rows = torch.stack([self.tables[kind] for kind in [*kinds, *kinds[-1:] * idle]])

    def start(self) -> None:
        self.position.zero_()

    def prepack_weights(self, num_steps) -> None:
        pass

    def step(self, ids, *, window):
        self.counter.append(len(ids))
        assert window > int(self.position)
        sentences = torch.arange(self.num_sentences).repeat_interleave(self.width)
        return self.rows[sentences, ids]

    def project(self, x):
        return x

    def reorder_beams(self, parents) -> None:
        assert parents.shape == (self.num_sentences, self.width)

    def copy_rows_from(self, other, rows, *, num_steps) -> None:
        assert int(other.position) == num_steps
        self.rows = other.rows[rows]
        self.position.copy_(other.position)

    def resize(self, **sizes):
        return FixedChain(self.tables, self.counter, **sizes)

    def weights_unchanged(self) -> bool:
        return True


class FixableChain:
    """A model of which only the fast search can make use."""

    def __init__(self, chain) -> None:
        self.tables, self.decoding_cache, self.num_rows = chain.tables, {}, []
        self.tgt_vocab_size = len(next(iter(chain.tables.values())))

    def supports_static_decoding(self, max_length) -> bool:
        return max_length > 0

    def make_static_decoder(self, **sizes):
        return FixedChain(self.tables, self.num_rows, **sizes)


@pytest.fixture(params=[False, True], ids=["fresh", "kept"])
def find(request, make_chain, symbols):
    """Search: `find(tables, sources, **options)` gives what was found and the rows of each step."""

    def run(tables, sources=SOURCE, *, vocab_size: int = 8, **options):
        model = FixableChain(make_chain(tables, vocab_size=vocab_size))
        chosen = DecodingOptions(**{"max_extra_tokens": 200, **options})
        found = search_static(model, sources, symbols, chosen, reuse_buffers=request.param)
        return found, model.num_rows

    return run


def test_what_looks_beaten_may_still_win(find):
    """Saying nothing has 0.6, and after one word the other way looks worse, until it is long."""
    sure = {7: {A: {A: 0.99, END: 0.01}, START: {END: 0.6, A: 0.3, B: 0.1}}}
    rule = {"beam_size": 2, "max_length": 40, "length_norm": "power"}
    ((plain,), _) = find(sure, alpha=0.0, **rule)
    assert plain.hypotheses[0].ids == []
    assert plain.hypotheses[0].score == pytest.approx(math.log(0.6))
    ((longer,), _) = find(sure, alpha=1.0, **rule)
    assert math.log(0.3) / 2 < math.log(0.6)  # beaten, if it ended now for nothing
    best = (math.log(0.3) + 38 * math.log(0.99) + math.log(0.01)) / 40
    assert longer.hypotheses[0].ids == [A] * 39
    assert longer.hypotheses[0].score == pytest.approx(best, abs=1e-5)


def test_where_length_costs_the_next_end_is_the_best_candidate(find):
    """With a negative alpha the limit is the worst place to end, not the best."""
    table = {7: {START: {A: 0.8, END: 0.2}, A: {END: 0.9, A: 0.1}}}
    rule = {"alpha": -0.5, "length_norm": "power", "max_length": 100}
    ((found,), _) = find(table, beam_size=2, **rule)
    assert math.log(0.8) * 100**0.5 < math.log(0.2)
    assert found.hypotheses[0].ids == [A]
    assert found.hypotheses[0].score == pytest.approx(math.log(0.72) * 2**0.5, abs=1e-5)


def test_stops_as_soon_as_nothing_can_become_better(find):
    """After one word the end has 0.9; what is left has 0.1 at most, for all time."""
    table = {7: {START: {A: 0.9, B: 0.1}, A: {END: 0.9, A: 0.1}, B: {B: 1.0}}}
    ((found,), rows) = find(table, beam_size=2, alpha=0.0, max_length=30)
    assert found.hypotheses[0].ids == [A]
    assert found.hypotheses[0].token_log_probs == pytest.approx([math.log(0.9)] * 2, abs=1e-6)
    assert len(rows) == 2
    ((found,), rows) = find(table, beam_size=2, alpha=0.0, max_length=30, n_best=2)
    assert [one.ids for one in found.hypotheses] == [[A], [A, A]]
    assert len(rows) > 2


def test_each_sentence_has_its_own_limit_and_leaves_at_it(find):
    sources = torch.tensor([[7, 7, 7, 7, END], [7, END, 0, 0, 0]])
    never = {7: {START: {A: 1.0}, A: {A: 1.0}}}
    found, rows = find(never, sources, beam_size=2, max_extra_tokens=50)
    assert [len(one.hypotheses[0].ids) for one in found] == [55, 52]
    assert not any(one.hypotheses[0].is_finished for one in found)
    assert rows == [4] * 52 + [2] * 3
    found, _ = find(never, sources, beam_size=2, max_extra_tokens=1, max_length=5)
    assert [len(one.hypotheses[0].ids) for one in found] == [5, 3]


def test_what_has_ended_goes_before_what_was_cut(find):
    table = {7: {START: {A: 0.9, END: 0.1}, A: {A: 1.0}}}
    ((found,), _) = find(table, beam_size=3, n_best=3, max_length=4)
    assert [(one.ids, one.is_finished) for one in found.hypotheses] == [
        ([], True),
        ([A] * 4, False),
    ]
    assert found.hypotheses[1].log_prob == pytest.approx(math.log(0.9), abs=1e-6)
    assert found.hypotheses[1].score == pytest.approx(math.log(0.9) / (9 / 6) ** 0.6, abs=1e-6)


def test_empty_slots_never_come_back(find):
    """One word may follow another: of eight slots one is filled, and no ghost is given."""
    table = {7: {START: {A: 1.0}, A: {B: 1.0}, B: {END: 1.0}}}
    ((found,), _) = find(table, beam_size=8, n_best=8, max_length=9, vocab_size=9)
    assert [one.ids for one in found.hypotheses] == [[A, B]]
    assert found.hypotheses[0].log_prob == 0.0


def test_an_end_outside_the_beam_does_not_count(find):
    """Two words are likelier than the end, so that with two hypotheses it is not taken."""
    table = {7: {START: {A: 0.4, B: 0.35, END: 0.25}, A: {END: 1.0}, B: {END: 1.0}}}
    ((found,), _) = find(table, beam_size=2, n_best=2, alpha=0.0)
    assert [one.ids for one in found.hypotheses] == [[A], [B]]
    ((found,), _) = find(table, beam_size=3, n_best=3, alpha=0.0)
    assert [one.ids for one in found.hypotheses] == [[A], [B], []]


def test_sentences_are_kept_apart(find):
    """Three tables; the second is done first and the last goes on alone."""
    tables = {
        7: {START: {A: 1.0}, A: {B: 1.0}, B: {END: 1.0}},
        6: {START: {END: 1.0}},
        5: {START: {B: 1.0}, B: {A: 1.0}, A: {6: 1.0}, 6: {7: 1.0}, 7: {END: 1.0}},
    }
    sources = torch.tensor([[7, END], [6, END], [5, END], [6, END]])
    for beam_size in (1, 3):
        found, rows = find(tables, sources, beam_size=beam_size)
        assert [one.hypotheses[0].ids for one in found] == [[A, B], [], [B, A, 6, 7], []]
        assert rows[0] == 4 * beam_size
        assert rows[-1] == beam_size
