from __future__ import annotations

import random

import numpy as np
import pytest

from attendo.data import alignment
from attendo.data.alignment import AlignmentTracker, max_segment
from attendo.data.corpus_config import Pair


@pytest.fixture(scope="module")
def pairs(everyday_pairs):
    """Return everyday sentences with varied lengths: neighbors are joined at random."""
    rng = random.Random(1)  # noqa: S311 - text, no secret
    sentences = iter(everyday_pairs)
    joined = []
    for _ in range(1500):
        parts = [next(sentences) for _ in range(rng.choice((1, 1, 2, 3)))]
        joined.append(Pair(" ".join(p.src for p in parts), " ".join(p.tgt for p in parts)))
    return joined


def track(pairs):
    tracker = AlignmentTracker()
    assert list(tracker.watch(pairs)) == pairs
    return tracker


def with_targets(pairs, targets):
    return [Pair(pair.src, target) for pair, target in zip(pairs, targets, strict=True)]


def shift_targets(pairs, line, shift):
    """Return pairs whose targets are shifted from a line (from 1) on."""
    targets = [pair.tgt for pair in pairs]
    before, after = targets[: line - 1], targets[line - 1 :]
    if shift > 0:
        shifted = [*before, *(f"Extra {number}" for number in range(shift)), *after]
        return with_targets(pairs, shifted[: len(pairs)])
    return with_targets(pairs, [*before, *after[-shift:], *after[shift:]])


def find(pairs):
    return track(pairs).find_misalignment(lambda: pairs)


def test_aligned_sides_have_no_misalignment(pairs):
    tracker = track(pairs)
    assert tracker.score > 4
    assert tracker.find_misalignment(lambda: pairs) is None
    assert not tracker.is_shuffled()


@pytest.mark.parametrize("shift", [1, -1, 3, -4])
@pytest.mark.parametrize("line", [151, 740, 1300])
def test_a_shift_is_found_near_its_line(pairs, line, shift):
    found = find(shift_targets(pairs, line, shift))
    assert found.shift == shift
    assert abs(found.first_line - line) <= 10
    assert found.last_line is None


def test_a_shift_of_the_whole_corpus_is_found(pairs):
    found = find(shift_targets(pairs, 1, 1))
    assert (found.shift, found.last_line) == (1, None)
    assert found.first_line <= 10


def test_a_shift_that_ends_is_found(pairs):
    targets = [pair.tgt for pair in pairs]
    lost = [*targets[:400], *targets[401:900], "One more line.", *targets[900:]]
    found = find(with_targets(pairs, lost))
    assert found.shift == -1
    assert abs(found.first_line - 401) <= 10
    assert abs(found.last_line - 900) <= 100


def test_shuffled_sides_are_found(pairs):
    targets = [pair.tgt for pair in pairs]
    random.Random(2).shuffle(targets)  # noqa: S311
    tracker = track(with_targets(pairs, targets))
    assert tracker.is_shuffled()
    assert tracker.find_misalignment(list) is None


def test_a_half_that_is_shuffled_is_found(pairs):
    targets = [pair.tgt for pair in pairs]
    rest = targets[700:]
    random.Random(2).shuffle(rest)  # noqa: S311
    found = find(with_targets(pairs, [*targets[:700], *rest]))
    assert found.shift is None
    assert abs(found.first_line - 701) <= 100


def test_sorting_by_length_raises_no_alarm(pairs):
    tracker = track(sorted(pairs, key=lambda pair: (len(pair.src), pair.src)))
    assert tracker.find_misalignment(list) is None
    assert not tracker.is_shuffled()


def test_labels_are_not_judged():
    rng = random.Random(3)  # noqa: S311
    texts = ["word " * rng.randint(1, 20) for _ in range(500)]
    tracker = track([Pair(text, rng.choice(("good", "very bad"))) for text in texts])
    assert not tracker.is_shuffled()
    assert tracker.find_misalignment(list) is None


def test_few_lines_are_not_judged(pairs):
    tracker = track(pairs[: alignment.MIN_WINDOW_LINES - 1])
    assert tracker.score is None
    assert not tracker.is_shuffled()


def test_a_large_corpus_is_sampled_and_still_found(pairs, monkeypatch):
    monkeypatch.setattr(alignment, "MAX_WINDOWS", 8)
    shifted = shift_targets(pairs, 501, 1)
    tracker = track(shifted)
    assert len(tracker._windows) < 8
    found = tracker.find_misalignment(lambda: shifted)
    assert found.shift == 1
    assert abs(found.first_line - 501) <= 10


def test_max_segment_of_losses_is_empty():
    assert max_segment(np.array([-1.0, -2.0])) == (0, 0)


def test_bug_a_few_hundred_shuffled_lines_must_be_found_in_a_corpus(pairs):
    targets = [pair.tgt for pair in pairs]
    middle = targets[600:1000]
    random.Random(1).shuffle(middle)  # noqa: S311 - text, no secret
    found = find(with_targets(pairs, [*targets[:600], *middle, *targets[1000:]]))
    assert found is not None
    assert (found.shift, found.first_line, found.last_line) == (None, 601, 1000)
