"""The embedded corpus: what `generate` and `splits` promise."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from attendo.core.errors import InputError
from attendo.synthetic import everyday
from attendo.synthetic.everyday import (
    LESSON_PAIRS,
    MAX_PAIRS,
    MIN_TRAIN_OCCURRENCES,
    KoreanEnglishPair,
    split_words,
    synthesize_pairs,
    synthesize_splits,
)
from attendo.synthetic.grammar import colloquial, complex_sentences, copula, sentences
from attendo.synthetic.grammar.phrases import (
    NoCombinationError,
    WordSampler,
    frames_of,
    train_only_cores,
)
from attendo.synthetic.grammar.sentence_types import Sentence, sample_sentence

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = "4af49f077211b48da761625a99919053b902b28e0bbb5bc9434ba0c367108856"


@pytest.fixture(scope="module")
def corpus() -> list[KoreanEnglishPair]:
    return synthesize_pairs(20_000)


@pytest.fixture(scope="module")
def drawn() -> tuple[list[Sentence], ...]:
    return everyday.make_splits(train=20_000, dev=500, test=500, seed=1)


def test_one_seed_gives_one_corpus(corpus: list[KoreanEnglishPair]) -> None:
    assert synthesize_pairs(20_000) == corpus
    assert synthesize_pairs(500) == corpus[:500]


def test_another_seed_gives_another_corpus(corpus: list[KoreanEnglishPair]) -> None:
    shared = set(synthesize_pairs(2_000, seed=2)) & set(corpus[:2_000])
    assert len(shared) < 200


def test_the_first_thousand_pairs_never_change() -> None:
    text = "\n".join(f"{pair.ko}\t{pair.en}" for pair in synthesize_pairs(1_000))
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN


def test_a_new_interpreter_samples_the_same_and_loads_no_tensor_library() -> None:
    code = (
        "import sys; from attendo.synthetic.everyday import synthesize_pairs;"
        "print(synthesize_pairs(50)[-1].en);"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == synthesize_pairs(50)[-1].en


def test_no_sentence_comes_twice_on_either_side(corpus: list[KoreanEnglishPair]) -> None:
    assert len(corpus) == len({pair.ko for pair in corpus}) == len({pair.en for pair in corpus})


def test_each_side_reports_the_other() -> None:
    """Without the removal of repeats: one Korean sentence has one English one, and the reverse."""
    draw = WordSampler(Random(5))  # noqa: S311
    to_en: dict[str, str] = {}
    to_ko: dict[str, str] = {}
    for _ in range(40_000):
        sentence = sample_sentence(draw)
        assert sentence is not None
        assert to_en.setdefault(sentence.ko, sentence.en) == sentence.en
        assert to_ko.setdefault(sentence.en, sentence.ko) == sentence.ko
    assert len(to_en) > 30_000


def test_text_is_normal_and_clean(corpus: list[KoreanEnglishPair]) -> None:
    for ko, en in corpus:
        assert unicodedata.is_normalized("NFC", ko)
        assert re.fullmatch(r"[가-힣]+( [가-힣]+)*[.?]?", ko), ko
        assert re.fullmatch(r"[A-Za-z']+(,? [A-Za-z']+)*[.?]?", en), en


def test_both_sides_are_punctuated_alike(corpus: list[KoreanEnglishPair]) -> None:
    marks = Counter(ko[-1] if ko[-1] in ".?" else "" for ko, _ in corpus)
    assert all(ko[-1] == en[-1] or (ko + en)[-1].isalpha() for ko, en in corpus)
    assert all(en[0].isupper() for _, en in corpus if en[-1] in ".?")
    assert marks["."] > 10_000
    assert marks["?"] > 1_000
    assert marks[""] > 500


def test_sentences_are_short_and_the_lexicon_is_wide(corpus: list[KoreanEnglishPair]) -> None:
    lengths = [len(split_words(en)) for _, en in corpus]
    assert 5 <= sum(lengths) / len(lengths) <= 12
    assert max(lengths) <= 25
    assert len({word for _, en in corpus for word in split_words(en)}) > 700


@pytest.mark.parametrize("count", [-1, MAX_PAIRS + 1])
def test_a_count_out_of_reach_is_rejected_with_a_hint(count: int) -> None:
    with pytest.raises(InputError, match=f"count={count}") as caught:
        synthesize_pairs(count)
    assert str(MAX_PAIRS) in str(caught.value.hint)


def test_none_is_an_empty_corpus() -> None:
    assert synthesize_pairs(0) == []


def test_a_split_out_of_words_is_rejected_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everyday, "_MAX_CONSECUTIVE_REJECTIONS", 200)
    with pytest.raises(InputError, match="but only") as caught:
        synthesize_splits(train=50, dev=0, test=50)
    assert "larger train set" in str(caught.value.hint)


def test_training_without_space_for_the_lessons_is_rejected() -> None:
    with pytest.raises(InputError, match="train=3"):
        synthesize_splits(train=3, dev=0, test=0)


def test_splits_have_the_sizes_that_were_asked_for() -> None:
    assert [len(part) for part in synthesize_splits(train=3_000, dev=40, test=30)] == [
        3_000,
        40,
        30,
    ]


def test_splits_share_no_sentence(drawn: tuple[list[Sentence], ...]) -> None:
    for side in ("ko", "en"):
        texts = [getattr(sentence, side) for part in drawn for sentence in part]
        assert len(texts) == len(set(texts)) == 21_000


def test_dev_and_test_hold_combinations_that_training_has_not(
    drawn: tuple[list[Sentence], ...],
) -> None:
    train, dev, test = ({core for sentence in part for core in sentence.cores} for part in drawn)
    assert all(sentence.cores for part in drawn for sentence in part)
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert len(test) > 200


def test_no_pair_of_object_and_verb_is_in_training_and_in_test(
    drawn: tuple[list[Sentence], ...],
) -> None:
    """The same by the words alone: in three-word statements the last two are object and verb."""
    train, _, test = drawn
    known = {pair for sentence in train for pair in zip(*_tails(sentence.ko), strict=False)}
    short = [
        split_words(sentence.ko)[1:] for sentence in test if len(split_words(sentence.ko)) == 3
    ]
    objects = [(noun, verb) for noun, verb in short if noun[-1] in "을를" and verb[-1] == "다"]
    assert len(objects) > 20
    assert not known & set(objects)


def _tails(text: str) -> tuple[list[str], list[str]]:
    tokens = split_words(text)
    return tokens[:-1], tokens[1:]


def test_every_word_of_dev_and_test_is_known_from_training(
    drawn: tuple[list[Sentence], ...],
) -> None:
    train, dev, test = drawn
    for side in ("ko", "en"):
        seen = Counter(word for sentence in train for word in split_words(getattr(sentence, side)))
        for sentence in (*dev, *test):
            assert all(
                seen[word] >= MIN_TRAIN_OCCURRENCES for word in split_words(getattr(sentence, side))
            )


def test_no_combination_fills_a_split(drawn: tuple[list[Sentence], ...]) -> None:
    for part in drawn[1:]:
        times = Counter(core for sentence in part for core in sentence.cores)
        assert max(times.values()) <= 6


def test_the_splits_follow_the_seed(drawn: tuple[list[Sentence], ...]) -> None:
    again = synthesize_splits(seed=1)
    assert [list(part) for part in again] == [
        [KoreanEnglishPair(sentence.ko, sentence.en) for sentence in part] for part in drawn
    ]
    other = synthesize_splits(train=1_000, dev=0, test=0, seed=2)
    assert len(set(other.train) & set(again.train)) < 200


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_lessons_are_in_training(seed: int) -> None:
    assert set(LESSON_PAIRS) <= set(
        synthesize_splits(train=2_000, dev=20, test=20, seed=seed).train
    )


def test_the_lessons_are_those_of_the_lessons() -> None:
    assert (
        KoreanEnglishPair("왕자는 공주를 구했다", "the prince saved the princess") in LESSON_PAIRS
    )
    assert (
        KoreanEnglishPair("공주는 왕자를 구했다", "the princess saved the prince") in LESSON_PAIRS
    )
    assert KoreanEnglishPair("나는 학생이다.", "I am a student.") in LESSON_PAIRS
    chat = "어제 카페 갔었어 거기 사람 많더라"
    assert (
        KoreanEnglishPair(chat, "I went to the cafe there were many people there") in LESSON_PAIRS
    )
    street = "The animal did not cross the street because it was too tired."
    assert street in {pair.en for pair in LESSON_PAIRS}


@pytest.mark.parametrize(
    ("number", "kind", "core", "who"),
    [
        (0, sentences.bare_statement, ("구하다", "공주"), "person"),
        (1, sentences.bare_statement, ("구하다", "왕자"), "person"),
        (2, sentences.statement, ("구하다", "공주"), "person"),
        (3, sentences.statement, ("구하다", "왕자"), "person"),
        (4, copula.copula_noun, ("나", "학생"), ""),
        (5, colloquial.colloquial_pair, ("사람", "카페"), ""),
        (6, complex_sentences.because, ("건너다", "길"), "animal"),
    ],
)
def test_the_grammar_reaches_each_lesson(
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: Callable[[WordSampler], tuple[str, str]],
    core: tuple[str, str],
    who: str,
) -> None:
    for frame in frames_of():
        if (frame.ko, frame.who) == (core[0], who):
            monkeypatch.setattr(f"{kind.__module__}.sample_frame", lambda _draw, it=frame: it)
    draw = WordSampler(Random(3), lambda other: other == core)  # noqa: S311
    for _ in range(100_000):
        with suppress(NoCombinationError):
            if kind(draw) == LESSON_PAIRS[number]:
                return
    pytest.fail(f"{kind.__name__} never gave {LESSON_PAIRS[number]}")


def test_verbs_of_few_objects_are_never_held_out(drawn: tuple[list[Sentence], ...]) -> None:
    closed = train_only_cores()
    assert {("치다", "피아노"), ("쓰다", "모자")} <= closed
    assert not {("먹다", "사과"), ("읽다", "편지")} & closed
    held_out = {core for part in drawn[1:] for sentence in part for core in sentence.cores}
    assert not held_out & closed


@pytest.mark.parametrize(
    ("ko", "en"),
    [
        ("너는", "I"),
        ("그녀는", "He"),
        ("우리는", "They"),
    ],
)
def test_subjects_are_not_mixed_up(corpus: list[KoreanEnglishPair], ko: str, en: str) -> None:
    started = [pair for pair in corpus if pair.ko.startswith(f"{ko} ")]
    assert started
    assert not [pair for pair in started if pair.en.startswith(f"{en} ")]
