from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import torch

from attendo.decoding.beam import beam
from attendo.decoding.constraints import DynamicBeamAllocator, matched_prefix_length
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.search import search
from attendo.decoding.trace import AFTER_END, MISSING_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

PAD, UNK, START, END = range(4)
A, B, C, D = 4, 5, 6, 7
NUM_WORDS = 8


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


def draw_phrase(draw: random.Random, longest: int = 3) -> tuple[int, ...]:
    return tuple(draw.choices(range(4, 4 + NUM_WORDS), k=draw.randint(1, longest)))


def draw_constraints(draw: random.Random, *, with_prefix: bool) -> Constraints:
    required = [draw_phrase(draw) for _ in range(draw.randint(1, 3))]
    prefix = draw_phrase(draw) if with_prefix else ()
    forbidden = [draw_phrase(draw) for _ in range(draw.randint(0, 3))]
    possible = [one for one in forbidden if not any(holds(x, one) for x in (*required, prefix))]
    return Constraints(prefix, tuple(map(Needed, required)), tuple(map(Banned, possible)))


@pytest.mark.parametrize("seed", range(20))
def test_constraints_hold_in_every_finished_translation(make_peaky, make_sources, symbols, seed):
    """Twenty models, each with a batch of eight sentences that demand different things."""
    draw = random.Random(seed)  # noqa: S311 - a test
    model = make_peaky(seed, num_words=NUM_WORDS, end=1.0)
    lengths = [draw.randint(2, 7) for _ in range(8)]
    sources = make_sources(seed, lengths, num_words=NUM_WORDS)
    requirements = [draw_constraints(draw, with_prefix=seed % 2 == 1) for _ in range(8)]
    options = DecodingOptions(beam_size=draw.randint(4, 12), n_best=3, max_extra_tokens=20)
    found = search(model, sources, symbols, options, requirements)
    num_finished = 0
    free = search(
        model, sources, symbols, options, [Constraints(one.prefix) for one in requirements]
    )
    num_free = sum(one.hypotheses[0].is_finished for one in free)
    for one, constraint in zip(found, requirements, strict=True):
        for hypothesis in one.hypotheses:
            assert tuple(hypothesis.ids[: len(constraint.prefix)]) == constraint.prefix
            assert not any(holds(hypothesis.ids, phrase.tokens) for phrase in constraint.forbidden)
            if hypothesis.is_finished:
                assert all(holds(hypothesis.ids, phrase.tokens) for phrase in constraint.required)
        num_finished += one.hypotheses[0].is_finished
    assert num_finished >= num_free - 2  # constraints hardly keep a model from ending


def test_nearly_all_constraints_are_met(make_peaky, make_sources, symbols):
    """Of a hundred random cases, phrases stand in all, and all but a few come to an end."""
    num_met, num_finished = 0, 0
    for seed in range(20, 30):
        draw = random.Random(seed)  # noqa: S311 - a test
        model = make_peaky(seed, num_words=NUM_WORDS, end=1.0)
        sources = make_sources(seed, [4] * 10, num_words=NUM_WORDS)
        requirements = [draw_constraints(draw, with_prefix=False) for _ in range(10)]
        options = DecodingOptions(beam_size=10, max_extra_tokens=20)
        for one, constraint in zip(
            search(model, sources, symbols, options, requirements), requirements, strict=True
        ):
            (best,) = one.hypotheses
            num_finished += best.is_finished
            num_met += all(holds(best.ids, phrase.tokens) for phrase in constraint.required)
    assert num_met == 100
    assert num_finished >= 95


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_the_best_of_all_that_meet_the_constraints(
    make_peaky, make_sources, slow, symbols, alpha
):
    for seed in range(6):
        draw = random.Random(seed)  # noqa: S311 - a test
        model = make_peaky(seed, num_words=2)
        source = make_sources(seed, [4], num_words=2)
        required = tuple(draw.choices((A, B), k=draw.randint(1, 3)))
        forbidden = next(
            tokens for tokens in ((A, A, A), (B, B), (A, A, B)) if not holds(required, tokens)
        )
        requirements = Constraints((), (Needed(required),), (Banned(forbidden),))
        limit = 6 + len(required)  # what is required comes on top
        options = DecodingOptions(beam_size=256, n_best=2, alpha=alpha, max_extra_tokens=2)
        (found,) = beam(model, source, symbols, options, [requirements])
        every = slow(model, source, limit=limit, alpha=alpha).every()
        meeting = [x for x in every if holds(x.ids, required) and not holds(x.ids, forbidden)]
        assert [one.ids for one in found.hypotheses] == [one.ids for one in meeting[:2]]
        assert [one.score for one in found.hypotheses] == pytest.approx(
            [one.score for one in meeting[:2]], abs=1e-4
        )


def test_a_narrow_beam_comes_near_the_best(make_peaky, make_sources, slow, symbols):
    """What a brute search finds best, a beam of eight finds nearly always."""
    gaps = []
    for seed in range(12):
        draw = random.Random(seed)  # noqa: S311 - a test
        model = make_peaky(seed, num_words=3, end=1.0)
        source = make_sources(seed, [4], num_words=3)
        required = tuple(draw.choices((A, B, C), k=2))
        options = DecodingOptions(beam_size=8, max_extra_tokens=0)
        (found,) = beam(
            model, source, symbols, options, [Constraints(required=(Needed(required),))]
        )
        every = slow(model, source, limit=6).every()
        best = next(one for one in every if holds(one.ids, required))
        assert found.hypotheses[0].is_finished
        gaps.append(best.score - found.hypotheses[0].score)
    assert min(gaps) > -1e-4
    assert sorted(gaps)[10] < 1e-4  # nothing is lost in eleven of twelve


def test_words_that_occur_anyway_change_nothing(make_peaky, make_sources, symbols):
    """Required and already said, or forbidden and never said."""
    num_tried = 0
    for seed in range(12):
        model = make_peaky(seed, num_words=NUM_WORDS, end=1.0)
        source = make_sources(seed, [5], num_words=NUM_WORDS)
        options = DecodingOptions(beam_size=8, n_best=2, max_extra_tokens=5)
        (free,) = beam(model, source, symbols, options)
        printed = {token for one in free.hypotheses for token in one.ids}
        unsaid = next(token for token in range(4, 4 + NUM_WORDS) if token not in printed)
        # At no step does the beam of `free` hold what is forbidden, so not one bit may change.
        absent = Constraints(forbidden=(Banned((unsaid, unsaid, unsaid, unsaid)),))
        assert beam(model, source, symbols, options, [absent]) == [free]
        best = free.hypotheses[0]
        if len(best.ids) < 2 or not best.is_finished:
            continue
        num_tried += 1
        wide = options.replace(beam_size=64, n_best=1, max_length=10)
        (free,) = beam(model, source, symbols, wide)
        ids = free.hypotheses[0].ids
        requirements = Constraints(required=(Needed(tuple(ids[:2])),))
        (found,) = beam(model, source, symbols, wide, [requirements])
        assert found.hypotheses[0].ids == ids
        assert found.hypotheses[0].log_prob == pytest.approx(free.hypotheses[0].log_prob, abs=1e-4)
    assert num_tried >= 2


@pytest.mark.parametrize("width", [1, 4, 12])
def test_contradicting_constraints_terminate(make_peaky, make_sources, symbols, width):
    model = make_peaky(0, num_words=NUM_WORDS, end=3.0)
    sources = make_sources(0, [4, 4, 4], num_words=NUM_WORDS)
    requirements = [
        Constraints(required=(Needed((A, B, C)),), forbidden=(Banned((B,)),)),
        Constraints(required=(Needed((A,)),), forbidden=(Banned((C,)),)),
        Constraints(
            required=(Needed((A,)), Needed((B,))), forbidden=(Banned((A, B)), Banned((B,)))
        ),
    ]
    options = DecodingOptions(beam_size=width, max_extra_tokens=6)
    found = search(model, sources, symbols, options, requirements)
    assert [one.hypotheses[0].is_finished for one in found] == [False, True, False]
    assert [len(found[row].hypotheses[0].ids) for row in (0, 2)] == [4 + 6 + 3, 4 + 6 + 2]
    assert B not in found[0].hypotheses[0].ids


def test_an_output_is_empty_where_everything_is_forbidden(make_peaky, make_sources, symbols):
    class Everything:
        def violates(self, ids, _next_id) -> bool:
            return len(ids) >= 2

    model = make_peaky(0, num_words=3)
    for forbidden, printed in (((Everything(),), 2), ((Banned((END,)), Everything()), 2)):
        options = DecodingOptions(n_best=3, min_length=2)
        requirements = [Constraints(forbidden=forbidden)]
        (found,) = beam(model, make_sources(0, [3]), symbols, options, requirements)
        assert found.hypotheses
        assert all(len(one.ids) == printed for one in found.hypotheses)
        assert not any(one.is_finished for one in found.hypotheses)


def test_what_has_ended_is_not_given_again_as_cut(make_chain, symbols):
    """A may be followed by the end alone; then nothing is left, and one translation is all."""
    model = make_chain({9: {START: {A: 1.0}, A: {B: 0.5, END: 0.5}}}, vocab_size=10)
    requirements = [Constraints(forbidden=(Banned((B,)),))]
    options = DecodingOptions(beam_size=4, n_best=4)
    (found,) = beam(model, torch.tensor([[9, END]]), symbols, options, requirements)
    assert [(one.ids, one.is_finished) for one in found.hypotheses] == [([A], True)]


def test_a_prefix_may_contain_what_is_forbidden(make_peaky, make_sources, symbols):
    """It was given; a phrase that counts only what is new leaves the rest free."""

    @dataclass(frozen=True)
    class BannedAgain:
        token: int

        def violates(self, _ids: Sequence[int], next_id: int) -> bool:
            return next_id == self.token

    model = make_peaky(0, num_words=3, end=1.0)
    requirements = [Constraints(prefix=(B, A, B), forbidden=(BannedAgain(A), BannedAgain(B)))]
    options = DecodingOptions(max_extra_tokens=6)
    (found,) = beam(model, make_sources(0, [4]), symbols, options, requirements)
    (best,) = found.hypotheses
    assert best.is_finished
    assert best.ids[:3] == [B, A, B]
    assert not {A, B} & set(best.ids[3:])
    strict = [Constraints(prefix=(B, A, B), forbidden=(Banned((B, A)),))]
    (found,) = beam(model, make_sources(0, [4]), symbols, options, strict)
    assert (found.hypotheses[0].ids, found.hypotheses[0].is_finished) == ([B, A, B], False)


def test_a_phrase_may_occur_in_other_ids(make_peaky, make_sources, symbols):
    """Only the text decides: the stand-in takes D for (A, B), as if both were one word."""

    @dataclass(frozen=True)
    class Either:
        tokens: tuple[int, ...] = (A, B)

        def is_satisfied(self, ids: Sequence[int]) -> bool:
            return D in ids or holds(ids, self.tokens)

    num_better = 0
    for seed in range(8):
        model = make_peaky(seed, num_words=4, end=2.0)
        source = make_sources(seed, [4], num_words=4)
        scores = []
        for phrase in (Needed((A, B)), Either()):
            options = DecodingOptions(beam_size=6)
            (found,) = beam(model, source, symbols, options, [Constraints(required=(phrase,))])
            (best,) = found.hypotheses
            assert best.is_finished
            assert phrase.is_satisfied(best.ids)
            scores.append(best.score)
        num_better += scores[1] > scores[0] + 0.1
    assert num_better >= 4


def test_rules_hold_next_to_constraints(make_peaky, make_sources, symbols):
    for seed in range(6):
        model = make_peaky(seed, num_words=NUM_WORDS, end=1.0)
        options = DecodingOptions(beam_size=8, min_length=6, no_repeat_ngram=2, max_extra_tokens=15)
        requirements = [Constraints((D,), (Needed((A, B)), Needed((C,))), (Banned((D, D)),))]
        sources = make_sources(seed, [4], num_words=NUM_WORDS)
        (found,) = beam(model, sources, symbols, options, requirements)
        (best,) = found.hypotheses
        assert best.is_finished
        assert best.ids[0] == D
        assert len(best.ids) >= 6
        assert holds(best.ids, (A, B))
        assert C in best.ids
        pairs = list(zip(best.ids, best.ids[1:], strict=False))
        assert len(set(pairs)) == len(pairs)


def test_company_does_not_matter(make_peaky, make_sources, symbols):
    draw = random.Random(3)  # noqa: S311 - a test
    model = make_peaky(3, num_words=NUM_WORDS, end=1.0)
    lengths = [6, 3, 5, 2]
    sources = make_sources(3, lengths, num_words=NUM_WORDS)
    requirements = [draw_constraints(draw, with_prefix=row == 1) for row in range(3)] + [
        Constraints()
    ]
    options = DecodingOptions(beam_size=6, n_best=2, max_extra_tokens=10)
    together = beam(model, sources, symbols, options, requirements)
    kept = beam(model, sources, symbols, options, requirements, shrink=False)
    for row, length in enumerate(lengths):
        source = sources[row : row + 1, :length]
        (alone,) = beam(model, source, symbols, options, requirements[row : row + 1])
        for other in (alone, kept[row]):
            assert [one.ids for one in other.hypotheses] == [
                one.ids for one in together[row].hypotheses
            ]


@pytest.mark.parametrize(
    ("ids", "steps"),
    [((), 0), ((A,), 1), ((C, A, B), 2), ((A, B, D), 0), ((A, B, A), 1), ((A, B, C, D), 3)],
)
def test_progress_is_what_the_end_still_holds(ids, steps):
    assert matched_prefix_length(Needed((A, B, C)), ids) == steps


class TestPositionInTheSentence:
    """A full stop ends the sentence with near certainty; the phrase C is still missing."""

    FULL_STOP = 7

    def select(self, ending_ids, *, end=0.9, sequences=((4, 7), (4, 5))):
        requirements = Constraints((), (Needed((C,)),), ending_ids=frozenset(ending_ids))
        allocator = DynamicBeamAllocator(requirements, width=2, end_id=END)
        probabilities = torch.full((2, 8), 0.01)
        probabilities[0, END] = end  # after the full stop
        probabilities[1, self.FULL_STOP] = 0.5
        log_probs = probabilities.log()
        totals = log_probs + torch.tensor([[-1.0], [-3.0]])
        return allocator.select([list(one) for one in sequences], log_probs, totals, totals)

    def test_a_sentence_that_is_over_is_given_up(self):
        assert {one.parent for one in self.select([self.FULL_STOP]).kept} == {1}
        reasons = {why for one, why in self.select([self.FULL_STOP]).pruned if one.parent == 0}
        assert reasons == {AFTER_END, MISSING_REQUIRED}

    def test_a_full_stop_that_ends_nothing_is_not_an_end(self):
        """As in "Mr. Smith"."""
        assert 0 in {one.parent for one in self.select([self.FULL_STOP], end=0.01).kept}
        assert 0 in {one.parent for one in self.select([]).kept}

    def test_if_every_sentence_is_over_the_phrase_comes_after_it(self):
        kept = self.select([self.FULL_STOP, 5], sequences=((4, 7), (4, 7))).kept
        assert C in {one.token for one in kept}
