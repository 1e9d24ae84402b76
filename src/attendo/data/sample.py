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
from attendo.data.sample_grammar.kinds import Sentence, draw_sentence
from attendo.data.sample_grammar.phrases import Draw, closed_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from attendo.data.sample_grammar.phrases import Core

MAX_PAIRS = 500_000
"""The most pairs that one call gives; the grammar has more, but they come ever more slowly."""

MIN_SEEN = 5
"""How often, at least, training has seen each word of the other splits."""

_PATIENCE = 20_000
"""So many draws in a row without a new sentence, and the grammar counts as exhausted."""


class Pair(NamedTuple):
    """A Korean sentence and its English translation."""

    ko: str
    en: str


class Splits(NamedTuple):
    """Three sets of pairs that share no sentence on either side."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


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
LESSON_PAIRS = tuple(Pair(lesson.ko, lesson.en) for lesson in _LESSONS)
"""The sentences of the lessons; always in the training split."""

_LESSON_CORES = frozenset(core for lesson in _LESSONS for core in lesson.cores)


def generate(count: int, *, seed: int = 1) -> list[Pair]:
    """Give so many pairs; no sentence comes twice, on either side.

    >>> generate(2, seed=1) == generate(3, seed=1)[:2]
    True
    """
    _check_count("count", count)
    return _strip(_distinct(Draw(Random(seed)), count, _Taken()))  # noqa: S311 - no secret


def splits(*, train: int = 20_000, dev: int = 500, test: int = 500, seed: int = 1) -> Splits:
    """Give three sets of pairs; those of dev and test are new combinations of known words.

    A combination is the core of a clause: verb and object, verb and place, subject and adjective.
    Every word of dev and test stands in training at least `MIN_SEEN` times.
    """
    return Splits(*map(_strip, draw_splits(train=train, dev=dev, test=test, seed=seed)))


def draw_splits(*, train: int, dev: int, test: int, seed: int) -> tuple[list[Sentence], ...]:
    """Draw the sentences of the three splits, with their cores."""
    for name, count in (("train", train), ("dev", dev), ("test", test)):
        _check_count(name, count)
    if train < len(_LESSONS):
        raise InputError(
            f"train={train} is too few for the {len(_LESSONS)} sentences of the lessons",
            remedy=f"ask for {len(_LESSONS)} or more",
        )
    taken = _Taken(_LESSONS)
    learnt = [*_LESSONS, *_draw_side("train", train - len(_LESSONS), taken, seed)]
    known = _count_words(learnt)
    held_out = (
        _draw_side(name, size, taken, seed, known) for name, size in (("dev", dev), ("test", test))
    )
    return (learnt, *held_out)


def words(sentence: str) -> list[str]:
    """Split a sentence into its words, punctuation left out.

    >>> words("나는 학생이다.")
    ['나는', '학생이다']
    """
    return [word.strip(".,?") for word in sentence.split()]


class _Taken:
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


def _draw_side(
    name: str, count: int, taken: _Taken, seed: int, known: Counter[str] | None = None
) -> list[Sentence]:
    """Draw from the combinations of one split; where words are known, with those alone."""
    source = Random(f"{seed} {name}")  # noqa: S311 - no secret
    draw = Draw(source, lambda core: _side(core, seed) == name)
    if known is None:
        return list(_distinct(draw, count, taken))
    times: Counter[Core] = Counter()
    most = max(2, count // 100)  # so that no combination makes up the whole split

    def suits(sentence: Sentence) -> bool:
        is_fresh = all(times[core] < most for core in sentence.cores)
        return is_fresh and _is_known(sentence, known)

    chosen = []
    for sentence in _distinct(draw, count, taken, suits):
        times.update(sentence.cores)
        chosen.append(sentence)
    return chosen


def _side(core: Core, seed: int) -> str:
    """Say which split a combination belongs to: one in twelve to dev, as many to test."""
    if core in _LESSON_CORES or core in closed_cores():
        return "train"
    place = crc32(f"{seed} {core[0]} {core[1]}".encode()) % 12
    return {0: "dev", 1: "test"}.get(place, "train")


def _distinct(
    draw: Draw, count: int, taken: _Taken, suits: Callable[[Sentence], bool] | None = None
) -> Iterator[Sentence]:
    """Draw sentences until so many new ones have come."""
    given = misses = 0
    while given < count:
        sentence = draw_sentence(draw)
        if sentence and (suits is None or suits(sentence)) and taken.add(sentence):
            given, misses = given + 1, 0
            yield sentence
            continue
        misses += 1
        if misses > _PATIENCE:
            raise InputError(
                f"{count} sentences were asked for, and no more than {given} could be found",
                remedy="ask for fewer; in a split, a larger training set knows more words",
            )


def _check_count(name: str, count: int) -> None:
    if not 0 <= count <= MAX_PAIRS:
        raise InputError(
            f"{name}={count} is outside 0 to {MAX_PAIRS}, what the grammar can give",
            remedy=f"ask for at most {MAX_PAIRS} pairs",
        )


def _count_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """Count the words of both sides; no Korean word is spelt like an English one."""
    return Counter(word for sentence in sentences for side in sentence[:2] for word in words(side))


def _is_known(sentence: Sentence, known: Counter[str]) -> bool:
    return all(known[word] >= MIN_SEEN for side in sentence[:2] for word in words(side))


def _strip(sentences: Iterable[Sentence]) -> list[Pair]:
    return [Pair(sentence.ko, sentence.en) for sentence in sentences]
