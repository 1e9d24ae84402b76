"""Robustness: training pairs with upper case, typos, missing full stops, single words, spans.

A model that has only seen edited sentences loops or invents words on what people type. Each version
of the training data (`samples`) changes a few pairs while it is tokenized; the versions alternate
from epoch to epoch. The changes depend only on the seed and the index of the pair, so that a
resumed run trains on the same bits. Spans (numbers, URLs, placeholders, tags) are added to both
sides: they are to be copied.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from attendo.core.config import Config, Count
from attendo.core.seeding import derive_seed
from attendo.data.corpus_config import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Rate = Annotated[float, Field(ge=0.0, le=1.0)]
FINAL_PUNCTUATION = re.compile(r"[.!?…。！？]+$")
LATIN_WORD = re.compile(r"(?<![\w.@/<{%-])[A-Za-z][A-Za-z0-9]{2,}(?![\w@/>}-])")
CASED = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿĀ-ɏЀ-ӿΑ-ωἀ-῾]")
LETTER = re.compile(r"[^\W\d_]")
MIN_CASED_SHARE = 0.8
SPACE = " "
PLACEHOLDERS = ("{name}", "{count}", "{0}", "{1}", "{{user}}", "%s", "%d", "%1", "${path}", "$1")
TAGS = ("b", "i", "a", "code", "strong", "em", "span", "g1", "x1")
HOSTS = ("example.com", "example.org", "docs.example.kr", "www.example.net", "test.co.kr")
PATH_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_"


class AugmentationConfig(Config):
    """How often a training pair is changed, by kind; at most one change per pair."""

    enabled: bool = False
    samples: Count = 2
    """Versions of the training data that alternate, each with other changes."""
    upper: Rate = 0.02
    """Both sides in upper case, if both scripts have cases, or the source alone."""
    title: Rate = 0.02
    """Both sides in title case, likewise."""
    lower: Rate = 0.02
    """The source in lower case."""
    no_full_stop: Rate = 0.06
    """Both sides without their final punctuation."""
    typos: Rate = 0.04
    """One or two slips in the source: letters swapped, doubled or lost, a lost space."""
    words: Rate = 0.02
    """A single word that both sides have in common instead of the pair."""
    spans: Rate = 0.04
    """A number, URL, placeholder or tag added to both sides."""

    @property
    def rates(self) -> dict[str, float]:
        """The rate of each kind of change."""
        return self.model_dump(exclude={"enabled", "samples"})


def augment_pairs(pairs: Iterable[Pair], config: AugmentationConfig, seed: int) -> Iterator[Pair]:
    """Yield the pairs, some of them changed; the same ones for the same seed.

    >>> config = AugmentationConfig(enabled=True, no_full_stop=1.0)
    >>> list(augment_pairs([Pair("나는 학생이다.", "I am a student.")], config, 1))[0].src
    '나는 학생이다'
    """
    rng = random.Random(derive_seed(seed, "augmentation"))  # noqa: S311 - not for secrets
    rates = config.rates
    order = ("no_full_stop", *(name for name in rates if name != "no_full_stop"))
    for pair in pairs:
        draw = rng.random()
        changed = pair
        for name in order:
            if draw < rates[name]:
                changed = CHANGES[name](pair, rng)
                break
            draw -= rates[name]
        yield changed if changed.src.strip() and changed.tgt.strip() else pair


def _has_case(text: str) -> bool:
    """Return whether nearly all letters of a text have an upper and a lower case."""
    return len(CASED.findall(text)) > MIN_CASED_SHARE * len(LETTER.findall(text))


def _change_case(pair: Pair, change: Callable[[str], str]) -> Pair:
    if not _has_case(pair.src):  # the source does not show how the target is written
        return pair
    return Pair(change(pair.src), change(pair.tgt) if _has_case(pair.tgt) else pair.tgt)


def _upper(pair: Pair, _rng: random.Random) -> Pair:
    return _change_case(pair, str.upper)


def _title(pair: Pair, _rng: random.Random) -> Pair:
    return _change_case(
        pair, lambda text: SPACE.join(word[:1].upper() + word[1:] for word in text.split(SPACE))
    )


def _lower(pair: Pair, _rng: random.Random) -> Pair:
    return Pair(pair.src.lower(), pair.tgt)


def _no_full_stop(pair: Pair, _rng: random.Random) -> Pair:
    sides = [FINAL_PUNCTUATION.sub("", text).rstrip() for text in pair]
    return Pair(*sides) if sides[0] != pair.src else pair


def _typos(pair: Pair, rng: random.Random) -> Pair:
    text = pair.src
    for _ in range(1 if len(text) < 40 else rng.randint(1, 2)):
        positions = [m.start() for m in re.finditer(r"(?<=[^\W\d_])[^\W\d_]", text)]
        spaces = [index for index, character in enumerate(text) if character == SPACE]
        if spaces and rng.random() < 0.25:
            index = rng.choice(spaces)
            text = text[:index] + text[index + 1 :]
        elif len(positions) > 3:
            text = _slip(text, rng.choice(positions), rng)
    return Pair(text, pair.tgt)


def _slip(text: str, index: int, rng: random.Random) -> str:
    """Swap two letters, lose one, or write one twice."""
    before, here, after = text[: index - 1], text[index - 1 : index + 1], text[index + 1 :]
    kind = rng.randrange(3)
    slipped = (here[::-1], here[0], here + here[1])[kind]
    return before + slipped + after


def _words(pair: Pair, rng: random.Random) -> Pair:
    common = sorted({*LATIN_WORD.findall(pair.src)} & {*LATIN_WORD.findall(pair.tgt)})
    if not common:
        return _no_full_stop(pair, rng)
    word = rng.choice(common)
    return Pair(word, word)


def _spans(pair: Pair, rng: random.Random) -> Pair:
    kind = rng.randrange(4)
    if kind == 0:
        tag = rng.choice(TAGS)
        src, tgt = (f"<{tag}>{text}</{tag}>" for text in pair)
        return Pair(src, tgt)
    if kind == 1:
        span = rng.choice(PLACEHOLDERS)
    elif kind == 2:
        path = "".join(rng.choices(PATH_LETTERS, k=rng.randint(2, 12)))
        span = f"https://{rng.choice(HOSTS)}/{path}"
    else:
        span = _number(rng)
    if rng.random() < 0.5:
        return Pair(f"{pair.src} {span}", f"{pair.tgt} {span}")
    separator = rng.choice((": ", " - ", " "))
    return Pair(f"{span}{separator}{pair.src}", f"{span}{separator}{pair.tgt}")


def _number(rng: random.Random) -> str:
    number = rng.randrange(10 ** rng.randint(1, 7))
    return rng.choice(
        (f"{number}", f"{number:,}", f"{number / 100:.2f}", f"({number})", f"#{number}")
    )


CHANGES: Mapping[str, Callable[[Pair, random.Random], Pair]] = {
    "upper": _upper,
    "title": _title,
    "lower": _lower,
    "no_full_stop": _no_full_stop,
    "typos": _typos,
    "words": _words,
    "spans": _spans,
}
