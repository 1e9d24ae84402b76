from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import InputError
from attendo.data import dev_split
from attendo.data.cleaning import CleaningReport
from attendo.data.corpus_config import Pair
from attendo.data.dev_split import DevSelector, DevSplitConfig, select_dev, split_pairs


def make_corpus(num_pairs: int) -> list[Pair]:
    return [Pair(f"문장 {number}", f"sentence {number}") for number in range(num_pairs)]


def route_all(
    pairs: list[Pair], **options: object
) -> tuple[list[Pair], list[Pair], CleaningReport]:
    selection = select_dev(pairs, DevSplitConfig(**options))
    report = CleaningReport(num_read=len(pairs), num_kept=len(pairs))
    routed = list(split_pairs(pairs, selection, report))
    train, dev = ([p for route, p in routed if route == name] for name in ("train", "dev"))
    return train, dev, report


@pytest.mark.parametrize(
    ("num_pairs", "size", "expected"), [(1000, 2000, 50), (1000, 20, 20), (10, 2000, 1), (2, 9, 1)]
)
def test_dev_is_the_smaller_of_size_and_share(num_pairs, size, expected):
    train, dev, report = route_all(make_corpus(num_pairs), size=size)
    assert len(dev) == expected
    assert len(train) == num_pairs - expected
    assert report.num_kept == num_pairs


def test_the_choice_depends_on_the_seed_and_not_on_the_order():
    pairs = make_corpus(500)
    _, dev, _ = route_all(pairs, size=10)
    shuffled = random.Random(3).sample(pairs, len(pairs))  # noqa: S311
    _, again, _ = route_all(shuffled, size=10)
    _, other, _ = route_all(pairs, size=10, seed=2)
    assert sorted(again) == sorted(dev)
    assert sorted(other) != sorted(dev)


side = st.sampled_from(["a", "A", "b", "c", "d", "e", "f", "g"]) | st.text(max_size=3)


@given(st.lists(st.builds(Pair, side, side), min_size=2, max_size=60), st.integers(1, 9))
def test_train_and_dev_never_share_a_side(pairs, size):
    try:
        train, dev, report = route_all(pairs, size=size, share=0.3)
    except InputError:  # too few distinct pairs, or too many shared sides: said, not split
        return
    assert dev
    for index in (0, 1):
        assert not {p[index].casefold() for p in train} & {p[index].casefold() for p in dev}
    dropped = report.num_dropped.get("shares a side with dev", 0)
    assert len(train) + len(dev) + dropped == len(pairs)
    assert report.num_read == len(pairs)
    assert report.num_kept == len(train) + len(dev)


def test_a_pair_that_shares_a_side_is_dropped_and_counted():
    pairs = make_corpus(200)
    _, dev, _ = route_all(pairs, size=1)
    extra = [Pair(dev[0].src, "another"), Pair("다른", dev[0].tgt.upper())]
    selection = select_dev(pairs, DevSplitConfig(size=1))
    assert [selection.assign(pair) for pair in (dev[0], *extra)] == ["dev", "shared", "shared"]
    report = CleaningReport(num_read=202, num_kept=202)
    routed = list(split_pairs([*pairs, *extra], selection, report))
    assert len(routed) == 200
    assert [(r.what, r.num_pairs) for r in report.rows()] == [
        ("read", 202),
        ("kept", 200),
        ("shares a side with dev", 2),
    ]


def test_sides_are_compared_without_regard_to_case():
    pairs = [Pair(f"word {number}", f"낱말 {number}") for number in range(100)]
    selection = select_dev(pairs, DevSplitConfig(size=1))
    (dev,) = (pair for pair in pairs if selection.assign(pair) == "dev")
    assert selection.assign(Pair(dev.src.upper(), "another")) == "shared"
    assert selection.assign(Pair("another", dev.tgt)) == "shared"
    assert selection.assign(Pair("another", "another")) == "train"


def test_a_dev_pair_that_comes_twice_is_used_once():
    pairs = make_corpus(100)
    selection = select_dev(pairs, DevSplitConfig(size=5))
    dev = [pair for route, pair in split_pairs(pairs * 2, selection) if route == "dev"]
    assert len(dev) == len(set(dev)) == 5


def test_common_sentences_stay_out_of_dev():
    pairs = [Pair(f"질문 {number}", "Yes.") for number in range(400)] + make_corpus(600)
    train, dev, report = route_all(pairs, size=50)
    assert len(dev) == 50
    assert all(pair.tgt != "Yes." for pair in dev)
    assert len(train) == 950
    assert report.num_kept == 1000


def test_labels_can_only_be_kept_apart_by_source():
    pairs = [Pair(f"text {number}", "good" if number % 2 else "bad") for number in range(100)]
    with pytest.raises(InputError, match=r"50% or more[\s\S]*disjoint = 'source'"):
        select_dev(pairs, DevSplitConfig())
    train, dev, _ = route_all(pairs, disjoint="source")
    assert (len(train), len(dev)) == (95, 5)


@pytest.mark.parametrize("pairs", [[], [Pair("a", "b")], [Pair("a", "b")] * 9])
def test_what_cannot_be_split_is_reported(pairs):
    with pytest.raises(InputError, match="cannot be split"):
        select_dev(pairs, DevSplitConfig())


def test_the_candidates_are_bounded():
    chooser = DevSelector(DevSplitConfig(size=5))
    for pair in make_corpus(3000):
        chooser.observe(pair)
    assert len(chooser._heap) == len(chooser._members) == dev_split.OVERSAMPLING * 5
    assert len(chooser.select()) == 5
