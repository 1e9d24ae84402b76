from __future__ import annotations

import math

import pytest
import torch

from attendo.core.errors import AttendoError, ConfigError
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.hypothesis import length_penalty
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.search import search

PAD, UNK, START, END = range(4)
A, B, C = 4, 5, 6
WIDE = 256


def options(**changes) -> DecodingOptions:
    return DecodingOptions(**{"max_extra_tokens": 200, **changes})


@pytest.mark.parametrize("length_norm", ["paper", "power"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, -0.5])
def test_a_wide_beam_finds_exactly_the_best_of_all_sequences(
    make_peaky, make_sources, slow, symbols, alpha, length_norm
):
    lengths = set()
    for seed in range(6):
        num_words, limit = (3, 4) if seed % 2 else (2, 6)
        model = make_peaky(seed, num_words=num_words, end=(seed % 3) - 1.0)
        source = make_sources(seed, [5], num_words=num_words)
        rule = {"alpha": alpha, "length_norm": length_norm}
        best = slow(model, source, limit=limit, **rule).every()
        for n_best in (1, 3):
            chosen = options(beam_size=WIDE, max_length=limit, n_best=n_best, **rule)
            (found,) = beam(model, source, symbols, chosen)
            assert [one.ids for one in found.hypotheses] == [one.ids for one in best[:n_best]]
            for one, right in zip(found.hypotheses, best, strict=False):
                assert one.is_finished
                assert one.score == pytest.approx(right.score, abs=1e-4)
                assert one.log_prob == pytest.approx(right.log_prob, abs=1e-4)
                assert len(one.token_log_probs) == len(one.ids) + 1
                assert sum(one.token_log_probs) == pytest.approx(one.log_prob, abs=1e-5)
        lengths.add(len(best[0].ids))
    assert len(lengths) > 1


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_stopping_early_gives_what_running_to_the_limit_gives(
    make_peaky, make_sources, slow, symbols, width, alpha
):
    """Next to a search in Python lists that has no batch, no cache and no early stop."""
    ways = {True: 0, False: 0}
    for seed in range(8):
        length_norm = "power" if seed % 2 else "paper"
        model = make_peaky(seed, num_words=8, end=seed % 4 - 1.0)
        source = make_sources(seed, [4], num_words=8)
        rule = {"alpha": alpha, "length_norm": length_norm}
        right = slow(model, source, limit=7, **rule).beam(width, min(3, width))
        chosen = options(beam_size=width, n_best=min(3, width), max_length=7, **rule)
        (found,) = beam(model, source, symbols, chosen)
        assert [(one.ids, one.is_finished) for one in found.hypotheses] == [
            (ids, ended) for _, ids, ended in right
        ]
        for one, (score, _, ended) in zip(found.hypotheses, right, strict=True):
            assert one.score == pytest.approx(score, abs=1e-4)
            ways[ended] += 1
    assert min(ways.values()) > 0  # some ended, some were cut


def test_what_looks_beaten_may_still_win(make_chain, symbols):
    """Saying nothing has 0.6, and after one word the other way looks worse, until it is long."""
    sure = {A: {A: 0.99, END: 0.01}, START: {END: 0.6, A: 0.3, B: 0.1}}
    model = make_chain({7: sure}, vocab_size=8)
    source = torch.tensor([[7, END]])
    rule = {"beam_size": 2, "max_length": 40, "length_norm": "power"}
    (plain,) = beam(model, source, symbols, options(alpha=0.0, **rule))
    assert plain.hypotheses[0].ids == []
    assert plain.hypotheses[0].score == pytest.approx(math.log(0.6))
    (longer,) = beam(model, source, symbols, options(alpha=1.0, **rule))
    assert math.log(0.3) / 2 < math.log(0.6)  # beaten, if it ended now for nothing
    best = (math.log(0.3) + 38 * math.log(0.99) + math.log(0.01)) / 40
    assert longer.hypotheses[0].ids == [A] * 39
    assert longer.hypotheses[0].score == pytest.approx(best, abs=1e-5)


def test_where_length_costs_the_next_end_is_the_best_candidate(make_chain, symbols):
    """With a negative alpha the limit is the worst place to end, not the best."""
    table = {START: {A: 0.8, END: 0.2}, A: {END: 0.9, A: 0.1}}
    model = make_chain({7: table}, vocab_size=8)
    rule = {"alpha": -0.5, "length_norm": "power", "max_length": 100}
    (found,) = beam(model, torch.tensor([[7, END]]), symbols, options(beam_size=2, **rule))
    assert math.log(0.8) * 100**0.5 < math.log(0.2)
    assert found.hypotheses[0].ids == [A]
    assert found.hypotheses[0].score == pytest.approx(math.log(0.72) * 2**0.5, abs=1e-5)


class Counting:
    """Counts the steps of a model."""

    def __init__(self, model) -> None:
        self.model, self.num_steps = model, 0
        self.encode, self.start, self.reorder = model.encode, model.start, model.reorder

    def step(self, ids, state):
        self.num_steps += 1
        return self.model.step(ids, state)


def test_stops_as_soon_as_nothing_can_become_better(make_chain, symbols):
    """After one word the end has 0.9; what is left has 0.1 at most, for all time."""
    table = {START: {A: 0.9, B: 0.1}, A: {END: 0.9, A: 0.1}, B: {B: 1.0}}
    model = Counting(make_chain({7: table}, vocab_size=8))
    chosen = options(beam_size=2, alpha=0.0, max_length=30)
    (found,) = beam(model, torch.tensor([[7, END]]), symbols, chosen)
    assert found.hypotheses[0].ids == [A]
    assert model.num_steps == 2
    (found,) = beam(model, torch.tensor([[7, END]]), symbols, chosen.replace(n_best=2))
    assert [one.ids for one in found.hypotheses] == [[A], [A, A]]
    assert model.num_steps > 4


def test_the_length_penalty_is_that_of_the_paper():
    """Equation 14 of Wu et al. (2016), by hand: ((5 + 7) / 6) ** 0.6 = 2 ** 0.6."""
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(16, 0.5, "power") == pytest.approx(4.0)


def test_each_sentence_has_its_own_limit(make_chain, symbols):
    """The length of the source and fifty (section 6.1), whatever else is in the batch."""
    model = make_chain({7: {START: {A: 1.0}, A: {A: 1.0}}}, vocab_size=8)  # never ends
    sources = torch.tensor([[7, 7, 7, 7, END], [7, END, 0, 0, 0]])
    found = beam(model, sources, symbols, DecodingOptions(beam_size=2))
    assert [len(one.hypotheses[0].ids) for one in found] == [55, 52]
    assert not any(one.hypotheses[0].is_finished for one in found)
    short = beam(
        model, sources, symbols, DecodingOptions(beam_size=2, max_extra_tokens=1, max_length=5)
    )
    assert [len(one.hypotheses[0].ids) for one in short] == [5, 3]


def test_what_has_ended_goes_before_what_was_cut(make_chain, symbols):
    table = {START: {A: 0.9, END: 0.1}, A: {A: 1.0}}
    model = make_chain({7: table}, vocab_size=8)
    chosen = options(beam_size=3, n_best=3, max_length=4)
    (found,) = beam(model, torch.tensor([[7, END]]), symbols, chosen)
    assert [(one.ids, one.is_finished) for one in found.hypotheses] == [
        ([], True),
        ([A] * 4, False),
    ]
    assert found.hypotheses[1].log_prob == pytest.approx(math.log(0.9), abs=1e-6)
    assert found.hypotheses[1].score == pytest.approx(math.log(0.9) / (9 / 6) ** 0.6, abs=1e-6)


@pytest.mark.parametrize("num_groups", [1, 2])
def test_company_changes_no_bit_where_shapes_are_fixed(
    make_peaky, make_sources, symbols, num_groups
):
    model = make_peaky(1, num_words=8, end=1.0, num_layers=2)
    sources = make_sources(1, [6, 3, 5, 2], num_words=8)
    chosen = options(beam_size=4, n_best=2, num_groups=num_groups, max_length=12)
    found = beam(model, sources, symbols, chosen, shrink=False)
    for seed in (2, 3, 4):
        others = make_sources(seed, [6, 6, 2, 4], num_words=8)
        for row in range(4):
            mixed = others.clone()
            mixed[row] = sources[row]
            again = beam(model, mixed, symbols, chosen, shrink=False)
            assert again[row].hypotheses == found[row].hypotheses  # every bit of every number


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("num_groups", [1, 2])
def test_the_result_does_not_depend_on_the_rest_of_the_batch(
    make_peaky, make_sources, symbols, norm, num_groups
):
    printed = set()
    for seed in range(4):
        model = make_peaky(seed, num_words=8, end=1.0, norm=norm)
        lengths = [7, 2, 5, 1, 6, 3]
        sources = make_sources(seed, lengths, num_words=8)
        chosen = options(beam_size=4, n_best=3, num_groups=num_groups, max_length=14)
        together = beam(model, sources, symbols, chosen)
        alone = [
            beam(model, sources[row : row + 1, :length], symbols, chosen)[0]
            for row, length in enumerate(lengths)
        ]
        turned = beam(model, sources.flip(0), symbols, chosen)[::-1]
        wider = beam(model, torch.nn.functional.pad(sources, (0, 5)), symbols, chosen)
        kept = beam(model, sources, symbols, chosen, shrink=False)
        for others in (alone, turned, wider, kept):
            for one, other in zip(together, others, strict=True):
                assert [h.ids for h in one.hypotheses] == [h.ids for h in other.hypotheses]
                assert [h.score for h in one.hypotheses] == pytest.approx(
                    [h.score for h in other.hypotheses], abs=1e-4
                )
        printed |= {tuple(one.hypotheses[0].ids) for one in together}
    assert len(printed) > 8


def test_a_beam_of_one_is_greedy_search(make_peaky, make_sources, symbols):
    for seed in range(6):
        model = make_peaky(seed, num_words=8, end=1.0)
        sources = make_sources(seed, [3, 6], num_words=8)
        chosen = options(beam_size=1, max_length=9)
        traversed = greedy(model, sources, symbols, chosen)
        for one, other in zip(search(model, sources, symbols, chosen), traversed, strict=True):
            assert one.hypotheses[0].ids == other.hypotheses[0].ids
            assert one.hypotheses[0].score == pytest.approx(other.hypotheses[0].score, abs=1e-5)
        # Without a length penalty the search itself has no reason to look further.
        found = beam(model, sources, symbols, chosen.replace(alpha=0.0))
        for one, other in zip(found, traversed, strict=True):
            if other.hypotheses[0].is_finished:
                assert one.hypotheses[0].ids == other.hypotheses[0].ids


def test_a_beam_wider_than_the_vocabulary(make_peaky, make_sources, slow, symbols):
    model = make_peaky(3, num_words=1, end=1.0)
    source = make_sources(3, [3], num_words=1)
    chosen = options(beam_size=12, n_best=12, max_length=5)
    (found,) = beam(model, source, symbols, chosen)
    best = slow(model, source, limit=5).every()
    assert len(best) == 5
    assert [one.ids for one in found.hypotheses] == [*(one.ids for one in best), [A] * 5]
    assert [one.is_finished for one in found.hypotheses] == [True] * 5 + [False]


def test_empty_slots_never_come_back(make_chain, symbols):
    """One word may follow another: of eight slots one is filled, and no ghost is given."""
    model = make_chain({7: {START: {A: 1.0}, A: {B: 1.0}, B: {END: 1.0}}}, vocab_size=9)
    (found,) = beam(
        model, torch.tensor([[7, END]]), symbols, options(beam_size=8, n_best=8, max_length=9)
    )
    assert [one.ids for one in found.hypotheses] == [[A, B]]
    assert found.hypotheses[0].log_prob == 0.0


def test_ends_never_within_the_first_tokens(make_peaky, make_sources, slow, symbols):
    for seed in range(4):
        model = make_peaky(seed, num_words=2, end=3.0)
        source = make_sources(seed, [4], num_words=2)
        chosen = options(beam_size=WIDE, n_best=3, min_length=3, max_length=5)
        (found,) = beam(model, source, symbols, chosen)
        best = slow(model, source, limit=5).every(shortest=3)
        assert [one.ids for one in found.hypotheses] == [one.ids for one in best[:3]]
        assert min(len(one.ids) for one in found.hypotheses) >= 3


@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_no_ngram_comes_twice(make_peaky, make_sources, slow, symbols, ngram):
    num_repeating = 0
    for seed in range(4):
        model = make_peaky(seed, num_words=2, end=-2.0)
        source = make_sources(seed, [4], num_words=2)
        chosen = options(beam_size=WIDE, no_repeat_ngram=ngram, max_length=6)
        (found,) = beam(model, source, symbols, chosen)
        every = slow(model, source, limit=6).every()
        best = next(one for one in every if not has_repetition(one.ids, ngram))
        assert found.hypotheses[0].ids == best.ids
        num_repeating += has_repetition(every[0].ids, ngram)
    assert num_repeating or ngram == 3


def has_repetition(ids: list[int], ngram: int) -> bool:
    parts = [tuple(ids[position : position + ngram]) for position in range(len(ids) - ngram + 1)]
    return len(set(parts)) < len(parts)


def test_ends_where_the_rules_leave_nothing(make_peaky, make_sources, symbols):
    """Two words, no word twice, at least ten: it ends after two, though the rule says ten."""
    model = make_peaky(0, num_words=2)
    source = make_sources(0, [4], num_words=2)
    chosen = options(beam_size=4, n_best=4, no_repeat_ngram=1, min_length=10)
    (found,) = beam(model, source, symbols, chosen)
    assert sorted(one.ids for one in found.hypotheses) == [[A, B], [B, A]]
    assert all(one.is_finished for one in found.hypotheses)


def test_something_is_given_where_nothing_may_follow(make_chain, symbols):
    """No word twice, and this model never ends: what it has said is all there is."""
    model = make_chain({7: {START: {A: 1.0}, A: {B: 1.0}, B: {A: 1.0}}}, vocab_size=8)
    chosen = options(beam_size=3, no_repeat_ngram=1)
    (found,) = beam(model, torch.tensor([[7, END]]), symbols, chosen)
    assert [(one.ids, one.is_finished) for one in found.hypotheses] == [([A, B], False)]


def test_a_prefix_is_kept(make_peaky, make_sources, slow, symbols):
    for seed in range(4):
        model = make_peaky(seed, num_words=2)
        sources = make_sources(seed, [4, 3, 4], num_words=2)
        constraints = [
            Constraints(prefix=(B, A)),
            Constraints(),
            Constraints(prefix=(B, B, B, B, B, A)),
        ]
        chosen = options(beam_size=WIDE, max_length=5)
        found = beam(model, sources, symbols, chosen, constraints)
        every = slow(model, sources[0], limit=5).every()
        best = next(one for one in every if one.ids[:2] == [B, A])
        assert found[0].hypotheses[0].ids == best.ids
        assert found[0].hypotheses[0].score == pytest.approx(best.score, abs=1e-4)
        free = slow(model, sources[1, :3], limit=5).every()[0]
        assert found[1].hypotheses[0].ids == free.ids  # the others' constraints do not touch it
        assert found[2].hypotheses[0].ids[:6] == [B, B, B, B, B, A]  # longer than the limit


def test_a_prefix_goes_before_every_rule(make_peaky, make_sources, symbols):
    model = make_peaky(0, num_words=3)
    chosen = options(beam_size=3, no_repeat_ngram=1, max_length=4)
    constraints = [Constraints(prefix=(A, A, UNK))]
    (found,) = beam(model, make_sources(0, [3]), symbols, chosen, constraints)
    assert found.hypotheses[0].ids[:3] == [A, A, UNK]


def test_tokens_without_text_are_never_generated(make_peaky, make_sources, symbols):
    printed = set()
    for seed in range(4):
        model = make_peaky(seed, num_words=3)
        model.output.weight.data *= -1  # it wants nothing more than padding, start and unknown
        sources = make_sources(seed, [3, 4])
        found = beam(model, sources, symbols, options(n_best=4, max_length=6))
        assert not {PAD, UNK, START, END} & {
            token for one in found for h in one.hypotheses for token in h.ids
        }
        kept = beam(model, sources, symbols, options(n_best=4, max_length=6, unk="keep"))
        printed |= {token for one in kept for h in one.hypotheses for token in h.ids}
    assert UNK in printed
    assert not {PAD, START, END} & printed


def test_one_sentence_with_constraints_leaves_the_others_alone(make_peaky, make_sources, symbols):
    model = make_peaky(2, num_words=8, end=1.0)
    sources = make_sources(2, [5, 5, 3], num_words=8)
    chosen = options(n_best=2, max_length=10)
    free = beam(model, sources, symbols, chosen)
    needed = Needed((9, 9))
    found = beam(
        model,
        sources,
        symbols,
        chosen,
        [Constraints(), Constraints(required=(needed,)), Constraints()],
    )
    assert [found[0], found[2]] == [free[0], free[2]]
    assert found[1] != free[1]
    assert needed.is_satisfied(found[1].hypotheses[0].ids)


class Needed:
    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.tokens = tokens

    def is_satisfied(self, ids) -> bool:
        size = len(self.tokens)
        return any(tuple(ids[at : at + size]) == self.tokens for at in range(len(ids)))


def test_a_broken_model_is_named(make_peaky, make_sources, symbols):
    model = make_peaky(0)
    model.output.weight.data[5] = math.nan
    with pytest.raises(AttendoError, match="NaN"):
        beam(model, make_sources(0, [3]), symbols)


def test_nothing_to_translate(make_peaky, symbols):
    empty = torch.zeros(0, 3, dtype=torch.long)
    for changes in ({}, {"beam_size": 1}, {"do_sample": True}):
        assert search(make_peaky(0), empty, symbols, options(**changes)) == []


def test_bad_options_are_all_named():
    with pytest.raises(ConfigError) as caught:
        DecodingOptions(beam_size=3, n_best=4, num_groups=2)
    assert len(caught.value.reasons) == 2
    for setting in ("alpha", "temperature", "diversity", "top_p"):
        for value in (math.nan, math.inf):
            with pytest.raises(ConfigError, match=setting):
                DecodingOptions(**{setting: value})
