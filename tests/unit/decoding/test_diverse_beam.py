from __future__ import annotations

import pytest
import torch

from attendo.decoding.beam import BeamSearch, beam
from attendo.decoding.options import Constraints, DecodingOptions

PAD, UNK, START, END = range(4)
A, B, C, D = 4, 5, 6, 7


def search_groups(model, sources, symbols, options) -> list[list[list[list[int]]]]:
    """What each group of each sentence has come to, best first."""
    search = BeamSearch(model, sources, symbols, options, [Constraints()] * len(sources))
    search.run()
    found: list[list[list[list[int]]]] = [[] for _ in sources]
    for beam_state in search.all_beams:
        found[beam_state.sentence].append(
            [one.ids for one in (*beam_state.finished, *beam_state.fallback)]
        )
    return found


@pytest.mark.parametrize("num_groups", [2, 4])
def test_the_first_group_is_a_plain_beam_of_its_width(
    make_peaky, make_sources, symbols, num_groups
):
    for seed in range(6):
        model = make_peaky(seed, num_words=8, end=2.0)
        sources = make_sources(seed, [5, 3], num_words=8)
        rule = {"n_best": 8, "beam_size": 8, "max_extra_tokens": 8}
        diverse = DecodingOptions(num_groups=num_groups, diversity_penalty=1.5, **rule)
        width = 8 // num_groups
        plain = DecodingOptions(**{**rule, "n_best": width, "beam_size": width})
        found = search_groups(model, sources, symbols, diverse)
        for groups, other in zip(found, beam(model, sources, symbols, plain), strict=True):
            assert len(groups) == num_groups
            assert groups[0][:width] == [one.ids for one in other.hypotheses]


@pytest.mark.parametrize("num_groups", [2, 4])
def test_groups_begin_with_different_words(make_peaky, make_sources, symbols, num_groups):
    for seed in range(6):
        model = make_peaky(seed, num_words=8)
        chosen = DecodingOptions(
            beam_size=num_groups, n_best=num_groups, num_groups=num_groups,
            diversity_penalty=1000.0, min_length=1, max_extra_tokens=4,
        )  # fmt: skip
        (found,) = beam(model, make_sources(seed, [4], num_words=8), symbols, chosen)
        firsts = [one.ids[0] for one in found.hypotheses]
        assert len(set(firsts)) == num_groups


@pytest.mark.parametrize("num_groups", [2, 4])
def test_without_diversity_the_groups_are_equal(make_peaky, make_sources, symbols, num_groups):
    for seed in range(4):
        model = make_peaky(seed, num_words=8, end=1.0)
        chosen = DecodingOptions(
            beam_size=8, n_best=8, num_groups=num_groups, diversity_penalty=0.0, max_extra_tokens=6
        )
        sources = make_sources(seed, [4], num_words=8)
        (groups,) = search_groups(model, sources, symbols, chosen)
        assert all(group == groups[0] for group in groups)
        (found,) = beam(model, sources, symbols, chosen)  # nothing is given twice
        assert [one.ids for one in found.hypotheses] == groups[0]


def test_diversity_costs_by_hand(make_chain, symbols):
    """A has 0.5, B 0.4: the second group leaves A for B when that costs more than log(5 / 4)."""
    table = {START: {A: 0.5, B: 0.4, C: 0.1}}
    model = make_chain({9: table}, vocab_size=10)
    for diversity, second in ((0.22, A), (0.23, B), (1.6, B), (100.0, B)):
        chosen = DecodingOptions(beam_size=2, n_best=2, num_groups=2, diversity_penalty=diversity)
        (groups,) = search_groups(model, torch.tensor([[9, END]]), symbols, chosen)
        assert [group[0] for group in groups] == [[A], [second]]
    # The third group counts both: two groups on A cost twice, one on A and one on B once each.
    three = DecodingOptions(beam_size=3, n_best=3, num_groups=3, diversity_penalty=0.15)
    (groups,) = search_groups(model, torch.tensor([[9, END]]), symbols, three)
    assert [group[0] for group in groups] == [[A], [A], [B]]
    (found,) = beam(model, torch.tensor([[9, END]]), symbols, three)
    assert [one.ids for one in found.hypotheses] == [[A], [B]]
    # The probabilities that are given are the model's own.
    assert found.hypotheses[1].log_prob == pytest.approx(torch.tensor(0.4).log().item(), abs=1e-6)


def test_a_group_that_is_done_no_longer_counts(make_chain, symbols):
    """Whether its rows leave the batch or not: the first group ends at once, the second goes on."""
    table = {
        START: {A: 0.6, B: 0.4},
        A: {END: 0.9, C: 0.1},
        B: {C: 0.51, D: 0.49},
        C: {C: 0.51, D: 0.49},
        D: {C: 0.51, D: 0.39, END: 0.1},
    }
    model = make_chain({9: table}, vocab_size=10)
    chosen = DecodingOptions(
        beam_size=2,
        n_best=2,
        num_groups=2,
        diversity_penalty=5.0,
        max_extra_tokens=6,
        no_repeat_ngram=3,
    )
    source = torch.tensor([[9, END]])
    kept, shrunk = (beam(model, source, symbols, chosen, shrink=is_on)[0] for is_on in (0, 1))
    assert kept == shrunk
    first, second = shrunk.hypotheses
    assert first.ids == [A]
    assert second.ids[:4] == [B, D, C, C]  # only at the second step somebody stands in its way


@pytest.mark.parametrize("num_groups", [2, 4])
def test_company_does_not_matter(make_peaky, make_sources, symbols, num_groups):
    for seed in range(6):
        model = make_peaky(seed, num_words=8, end=1.0)
        lengths = [7, 2, 5, 3]
        sources = make_sources(seed, lengths, num_words=8)
        chosen = DecodingOptions(beam_size=8, n_best=8, num_groups=num_groups, max_extra_tokens=6)
        together = beam(model, sources, symbols, chosen)
        kept = beam(model, sources, symbols, chosen, shrink=False)
        for row, length in enumerate(lengths):
            (alone,) = beam(model, sources[row : row + 1, :length], symbols, chosen)
            ids = [one.ids for one in together[row].hypotheses]
            assert ids == [one.ids for one in alone.hypotheses]
            assert ids == [one.ids for one in kept[row].hypotheses]


def test_groups_keep_apart_under_constraints_too(make_peaky, make_sources, symbols):
    class Banned:
        def violates(self, _ids, next_id) -> bool:
            return next_id == 4

    for seed in range(4):
        model = make_peaky(seed, num_words=8)
        chosen = DecodingOptions(
            beam_size=4,
            n_best=4,
            num_groups=4,
            diversity_penalty=1000.0,
            min_length=1,
            max_extra_tokens=4,
        )
        constraints = [Constraints(forbidden=(Banned(),))]
        (found,) = beam(model, make_sources(seed, [4], num_words=8), symbols, chosen, constraints)
        firsts = [one.ids[0] for one in found.hypotheses]
        assert len(set(firsts)) == 4
        assert not any(4 in one.ids for one in found.hypotheses)
