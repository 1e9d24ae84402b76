from __future__ import annotations

import pytest
import torch

from attendo.core.errors import InputError
from attendo.decoding.options import DecodingOptions
from attendo.decoding.scoring import score
from attendo.decoding.search import search

PAD, UNK, START, END = range(4)


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 5, "n_best": 5}, {"do_sample": True, "n_best": 4}],
)
def test_finds_what_the_search_found(make_peaky, make_sources, symbols, options):
    """Teacher forcing in one pass against steps with a cache, beams and all."""
    ways = set()
    for seed in range(6):
        model = make_peaky(seed, num_words=8, end=1.0, num_layers=2)
        sources = make_sources(seed, [6, 2, 4], num_words=8)
        found = search(model, sources, symbols, DecodingOptions(**options, max_extra_tokens=6))
        pairs = [(row, h) for row, one in enumerate(found) for h in one.hypotheses]
        rows = torch.tensor([row for row, _ in pairs])
        scored = score(model, sources[rows], [h.ids for _, h in pairs], symbols)
        for figures, (_, hypothesis) in zip(scored, pairs, strict=True):
            assert len(figures) == len(hypothesis.ids) + 1
            size = len(hypothesis.token_log_probs)  # one that was cut has no end to score
            assert figures[:size] == pytest.approx(hypothesis.token_log_probs, abs=1e-4)
            ways.add(hypothesis.is_finished)
    assert ways == {True, False}


def test_is_the_softmax_by_hand(symbols):
    """And a temperature of 2 takes the square root of each probability, all made to sum to 1."""

    class Table:
        probabilities = torch.tensor([0.0, 0.0, 0.0, 0.16, 0.36, 0.48])

        def forward(self, _src_ids, tgt_ids, **_masks):
            return self.probabilities.log().expand(*tgt_ids.shape, 6)

    source = torch.tensor([[5, END]])
    (plain,) = score(Table(), source, [[4, 4]], symbols)
    assert torch.tensor(plain).exp().tolist() == pytest.approx([0.36, 0.36, 0.16], abs=1e-6)
    (warm,) = score(Table(), source, [[4, 4]], symbols, temperature=2.0)
    sizes = 0.4 + 0.6 + 0.48**0.5
    expected = [0.6 / sizes, 0.6 / sizes, 0.4 / sizes]
    assert torch.tensor(warm).exp().tolist() == pytest.approx(expected, abs=1e-6)


def test_padding_changes_nothing(make_peaky, make_sources, symbols):
    model = make_peaky(3, num_words=8)
    lengths = [6, 2, 4]
    sources = make_sources(3, lengths, num_words=8)
    targets = [[5, 6, 7, 8, 9], [], [10]]
    together = score(model, sources, targets, symbols)
    assert [len(row) for row in together] == [6, 1, 2]
    for row, length in enumerate(lengths):
        (alone,) = score(model, sources[row : row + 1, :length], [targets[row]], symbols)
        assert together[row] == pytest.approx(alone, abs=1e-5)
    wider = score(model, torch.nn.functional.pad(sources, (0, 4)), targets, symbols)
    for row, other in zip(together, wider, strict=True):
        assert row == pytest.approx(other, abs=1e-5)


def test_a_model_that_starts_with_the_padding_symbol(make_peaky, make_sources, symbols):
    """As Marian's do: the first position is no padding, whatever its id."""
    model = make_peaky(5, num_words=8, end=1.0)
    sources = make_sources(5, [4, 3], num_words=8)
    marian = symbols._replace(start_id=PAD)
    found = search(model, sources, marian, DecodingOptions(max_extra_tokens=5))
    best = [one.hypotheses[0] for one in found]
    scored = score(model, sources, [one.ids for one in best], marian)
    for figures, one in zip(scored, best, strict=True):
        size = len(one.token_log_probs)
        assert figures[:size] == pytest.approx(one.token_log_probs, abs=1e-4)


def test_sources_and_targets_must_be_as_many(make_peaky, make_sources, symbols):
    model, sources = make_peaky(0), make_sources(0, [4, 3])
    with pytest.raises(InputError, match="1 targets for 2 sources"):
        score(model, sources, [[5]], symbols)
    assert score(model, sources[:0], [], symbols) == []
