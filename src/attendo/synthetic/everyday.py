"""A synthetic corpus of everyday Korean and English sentences, from a grammar and a lexicon.

`synthesize_pairs` returns any number of distinct sentence pairs, the same for the same seed.
`synthesize_splits` returns train, dev and test sets; dev and test have combinations of words that
train does not have, but only words that it has. The mapping is one to one, so that a small model
can learn it in minutes. The grammar is in `attendo.synthetic.grammar`.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.synthetic.grammar.phrases import WordSampler, train_only_cores
from attendo.synthetic.grammar.sentence_types import Sentence, sample_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from attendo.synthetic.grammar.phrases import Core

MAX_PAIRS = 500_000
"""Maximum number of pairs per call; the grammar has more, but sampling slows down."""

MIN_TRAIN_OCCURRENCES = 5
"""How often, at least, each word of dev and test occurs in train."""

_MAX_CONSECUTIVE_REJECTIONS = 20_000
"""After this many samples without a new sentence, the grammar counts as exhausted."""


class KoreanEnglishPair(NamedTuple):
    """A Korean sentence and its English translation."""

    ko: str
    en: str


class Splits(NamedTuple):
    """Three sets of pairs that share no sentence on either side."""

    train: list[KoreanEnglishPair]
    dev: list[KoreanEnglishPair]
    test: list[KoreanEnglishPair]


_LESSONS = (
    Sentence("왕자는 공주를 구했다", "the prince saved the princess", (("구하다", "공주"),)),
    Sentence("공주는 왕자를 구했다", "the princess saved the prince", (("구하다", "왕자"),)),
    Sentence("왕자는 공주를 구했다.", "The prince saved the princess.", (("구하다", "공주"),)),
    Sentence("공주는 왕자를 구했다.", "The princess saved the prince.", (("구하다", "왕자"),)),
    Sentence("나는 학생이다.", "I am a student.", (("나", "학생"),)),
    Sentence(
        "어제 카페 갔었어 거기 사람 많더라",
        "I went to the cafe there were many people there",
        (("사람", "카페"),),
    ),
    Sentence(
        "동물은 너무 피곤해서 길을 건너지 않았다.",
        "The animal did not cross the street because it was too tired.",
        (("건너다", "길"),),
    ),
)
LESSON_PAIRS = tuple(KoreanEnglishPair(lesson.ko, lesson.en) for lesson in _LESSONS)
"""The sentences of the lessons; always in train."""

_LESSON_CORES = frozenset(core for lesson in _LESSONS for core in lesson.cores)


def synthesize_pairs(count: int, *, seed: int = 1) -> list[KoreanEnglishPair]:
    """Return distinct sentence pairs: no sentence occurs twice, on either side.

    >>> synthesize_pairs(2, seed=1) == synthesize_pairs(3, seed=1)[:2]
    True

    Args:
        count: Number of pairs.
        seed: Seed of the corpus.

    Returns:
        The pairs.

    Raises:
        InputError: If the grammar does not have that many pairs.

    """
    _check_count("count", count)
    return _to_pairs(_sample_distinct(WordSampler(Random(seed)), count, _UsedSentences()))  # noqa: S311 - no secret


def synthesize_splits(
    *, train: int = 20_000, dev: int = 500, test: int = 500, seed: int = 1
) -> Splits:
    """Return three splits; dev and test have new combinations of words that train has.

    A combination is the core of a clause: verb and object, verb and place, subject and adjective.
    Every word of dev and test occurs in train at least `MIN_TRAIN_OCCURRENCES` times.

    Args:
        train: Number of pairs in train.
        dev: Number of pairs in dev.
        test: Number of pairs in test.
        seed: Seed of the corpus.

    Returns:
        The three splits.

    Raises:
        InputError: If the grammar does not have that many pairs.

    """
    return Splits(*map(_to_pairs, make_splits(train=train, dev=dev, test=test, seed=seed)))


def make_splits(*, train: int, dev: int, test: int, seed: int) -> tuple[list[Sentence], ...]:
    """Return the sentences of the three splits, with their cores."""
    for name, count in (("train", train), ("dev", dev), ("test", test)):
        _check_count(name, count)
    if train < len(_LESSONS):
        raise InputError(
            message(
                "train={train} is too few for the {num_lessons} sentences of the lessons",
                train=train,
                num_lessons=len(_LESSONS),
            ),
            hint=message("request {num_lessons} or more", num_lessons=len(_LESSONS)),
        )
    used = _UsedSentences(_LESSONS)
    train_sentences = [*_LESSONS, *_sample_split("train", train - len(_LESSONS), used, seed)]
    word_counts = _count_words(train_sentences)
    held_out = (
        _sample_split(name, size, used, seed, word_counts)
        for name, size in (("dev", dev), ("test", test))
    )
    return (train_sentences, *held_out)


def split_words(sentence: str) -> list[str]:
    """Split a sentence into its words, without punctuation.

    >>> split_words("나는 학생이다.")
    ['나는', '학생이다']
    """
    return [word.strip(".,?") for word in sentence.split()]


class _UsedSentences:
    """The sentences that are already used, on both sides."""

    def __init__(self, sentences: Sequence[Sentence] = ()) -> None:
        self.ko = {sentence.ko for sentence in sentences}
        self.en = {sentence.en for sentence in sentences}

    def add(self, sentence: Sentence) -> bool:
        """Add a sentence unless one of its sides is already used; return whether it is new."""
        if sentence.ko in self.ko or sentence.en in self.en:
            return False
        self.ko.add(sentence.ko)
        self.en.add(sentence.en)
        return True


def _sample_split(
    split_name: str,
    count: int,
    used: _UsedSentences,
    seed: int,
    train_word_counts: Counter[str] | None = None,
) -> list[Sentence]:
    """Sample from the combinations of one split; dev and test use only words of train."""
    rng = Random(f"{seed} {split_name}")  # noqa: S311 - no secret
    sampler = WordSampler(rng, lambda core: _split_of(core, seed) == split_name)
    if train_word_counts is None:
        return list(_sample_distinct(sampler, count, used))
    core_counts: Counter[Core] = Counter()
    max_per_core = max(2, count // 100)  # so that no combination dominates the split

    def is_acceptable(sentence: Sentence) -> bool:
        is_rare = all(core_counts[core] < max_per_core for core in sentence.cores)
        return is_rare and _has_known_words(sentence, train_word_counts)

    selected = []
    for sentence in _sample_distinct(sampler, count, used, is_acceptable):
        core_counts.update(sentence.cores)
        selected.append(sentence)
    return selected


def _split_of(core: Core, seed: int) -> str:
    """Return the split of a combination: one in twelve belongs to dev, as many to test."""
    if core in _LESSON_CORES or core in train_only_cores():
        return "train"
    bucket = crc32(f"{seed} {core[0]} {core[1]}".encode()) % 12
    return {0: "dev", 1: "test"}.get(bucket, "train")


def _sample_distinct(
    sampler: WordSampler,
    count: int,
    used: _UsedSentences,
    is_acceptable: Callable[[Sentence], bool] | None = None,
) -> Iterator[Sentence]:
    """Yield `count` new sentences."""
    num_accepted = num_rejected = 0
    while num_accepted < count:
        sentence = sample_sentence(sampler)
        if sentence and (is_acceptable is None or is_acceptable(sentence)) and used.add(sentence):
            num_accepted, num_rejected = num_accepted + 1, 0
            yield sentence
            continue
        num_rejected += 1
        if num_rejected > _MAX_CONSECUTIVE_REJECTIONS:
            raise InputError(
                message(
                    "{count} sentences were requested, but only {num_accepted} were found",
                    count=count,
                    num_accepted=num_accepted,
                ),
                hint="request fewer; for dev and test, a larger train set has more words",
            )


def _check_count(name: str, count: int) -> None:
    if not 0 <= count <= MAX_PAIRS:
        raise InputError(
            message(
                "{name}={count} is not between 0 and {max_pairs}",
                name=name,
                count=count,
                max_pairs=MAX_PAIRS,
            ),
            hint=message("request at most {max_pairs} pairs", max_pairs=MAX_PAIRS),
        )


def _count_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """Count the words of both sides; no word belongs to both languages."""
    return Counter(
        word for sentence in sentences for side in sentence[:2] for word in split_words(side)
    )


def _has_known_words(sentence: Sentence, word_counts: Counter[str]) -> bool:
    return all(
        word_counts[word] >= MIN_TRAIN_OCCURRENCES
        for side in sentence[:2]
        for word in split_words(side)
    )


def _to_pairs(sentences: Iterable[Sentence]) -> list[KoreanEnglishPair]:
    return [KoreanEnglishPair(sentence.ko, sentence.en) for sentence in sentences]
