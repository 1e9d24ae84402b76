"""The embedded corpus: everyday Korean and English, made by our own grammar and lexicon.

`generate` gives any number of distinct sentence pairs, always the same for one seed; `splits` gives
training, development and test sets where the last two hold combinations of words that training has
never seen, each word of which it has seen. The mapping is one to one, so that a small model can
learn it in minutes. The grammar itself is in `sample_grammar`.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from attendo.core.errors import InputError
from attendo.synthetic.grammar.phrases import WordSampler, train_only_cores
from attendo.synthetic.grammar.sentence_types import Sentence, sample_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from attendo.synthetic.grammar.phrases import Core

MAX_PAIRS = 500_000
"""The most pairs that one call gives; the grammar has more, but they come ever more slowly."""

MIN_TRAIN_OCCURRENCES = 5
"""How often, at least, training has seen each word of the other splits."""

_MAX_CONSECUTIVE_REJECTIONS = 20_000
"""So many draws in a row without a new sentence, and the grammar counts as exhausted."""


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
"""The sentences of the lessons; always in the training split."""

_LESSON_CORES = frozenset(core for lesson in _LESSONS for core in lesson.cores)


def synthesize_pairs(count: int, *, seed: int = 1) -> list[KoreanEnglishPair]:
    """Give so many pairs; no sentence comes twice, on either side.

    >>> generate(2, seed=1) == generate(3, seed=1)[:2]
    True
    """
    _check_count("count", count)
    return _to_pairs(_sample_distinct(WordSampler(Random(seed)), count, _UsedSentences()))  # noqa: S311 - no secret


def synthesize_splits(
    *, train: int = 20_000, dev: int = 500, test: int = 500, seed: int = 1
) -> Splits:
    """Give three sets of pairs; those of dev and test are new combinations of known words.

    A combination is the core of a clause: verb and object, verb and place, subject and adjective.
    Every word of dev and test stands in training at least `MIN_SEEN` times.
    """
    return Splits(*map(_to_pairs, make_splits(train=train, dev=dev, test=test, seed=seed)))


def make_splits(*, train: int, dev: int, test: int, seed: int) -> tuple[list[Sentence], ...]:
    """Draw the sentences of the three splits, with their cores."""
    for name, count in (("train", train), ("dev", dev), ("test", test)):
        _check_count(name, count)
    if train < len(_LESSONS):
        raise InputError(
            f"train={train} is too few for the {len(_LESSONS)} sentences of the lessons",
            hint=f"ask for {len(_LESSONS)} or more",
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
    """Split a sentence into its words, punctuation left out.

    >>> words("나는 학생이다.")
    ['나는', '학생이다']
    """
    return [word.strip(".,?") for word in sentence.split()]


class _UsedSentences:
    """The sentences already given, on both sides."""

    def __init__(self, sentences: Sequence[Sentence] = ()) -> None:
        self.ko = {sentence.ko for sentence in sentences}
        self.en = {sentence.en for sentence in sentences}

    def add(self, sentence: Sentence) -> bool:
        """Take a sentence unless one of its sides is taken already; say whether it was new."""
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
    """Draw from the combinations of one split; where words are known, with those alone."""
    rng = Random(f"{seed} {split_name}")  # noqa: S311 - no secret
    sampler = WordSampler(rng, lambda core: _split_of(core, seed) == split_name)
    if train_word_counts is None:
        return list(_sample_distinct(sampler, count, used))
    core_counts: Counter[Core] = Counter()
    max_per_core = max(2, count // 100)  # so that no combination makes up the whole split

    def is_acceptable(sentence: Sentence) -> bool:
        is_rare = all(core_counts[core] < max_per_core for core in sentence.cores)
        return is_rare and _has_known_words(sentence, train_word_counts)

    selected = []
    for sentence in _sample_distinct(sampler, count, used, is_acceptable):
        core_counts.update(sentence.cores)
        selected.append(sentence)
    return selected


def _split_of(core: Core, seed: int) -> str:
    """Say which split a combination belongs to: one in twelve to dev, as many to test."""
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
    """Draw sentences until so many new ones have come."""
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
                f"{count} sentences were asked for, and no more than {num_accepted} could be found",
                hint="ask for fewer; in a split, a larger training set knows more words",
            )


def _check_count(name: str, count: int) -> None:
    if not 0 <= count <= MAX_PAIRS:
        raise InputError(
            f"{name}={count} is outside 0 to {MAX_PAIRS}, what the grammar can give",
            hint=f"ask for at most {MAX_PAIRS} pairs",
        )


def _count_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """Count the words of both sides; no Korean word is spelt like an English one."""
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
