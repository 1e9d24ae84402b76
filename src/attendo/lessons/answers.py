"""Read the answers of learners as people type them: numbers, and choices by letter or in words."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from attendo.lessons.number_words import NUMBERS, ORDINALS, replace_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LETTERS = "abcdefghij"
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?%?")
POWER_OF_TEN = re.compile(r"\s*[x*·]\s*10\s*\^?\s*(-?\d+)")
DIMENSIONS = re.compile(r"(?<=\d)\s*(?:x|\*|by|rows?(?:,| and)?|곱하기|행)\s*(?=\d)")
GROUPS = re.compile(
    r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,])|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,])"
)
"""Thousands separated by spaces, or by more than one point."""
MYRIADS = re.compile(r"(\d+)만\s*(\d[\d,]*)?")
UNCHANGED = re.compile(
    r"\b(?:(?:do|does|did|will|would) not|(?:does|do|did|would|wo)nt) change\b"
    r"|\bunchanged\b|\bno change\b|\bnothing(?: (?:changes|happens))?\b"
)
UNCHANGED_KOREAN = re.compile(
    r"(?:안\s+(?:변|바뀌|달라)|(?:변하|바뀌|달라지)지\s*않|변화\s*(?:가\s*)?없)\w*"
)
LABEL_OF_CHOICE = re.compile(r"\(?([a-j]|\d)(?:[).:]|번)?")
FILLERS = frozenset(
    re.findall(
        r"\S+",
        "a an and are answer choice i in is it its my of one or s so that the they this to will "
        "with 답 답은 것 보기 정답은 생각에는",
    )
)
NEGATIONS = re.compile(r"\b(?:no|not|never|neither|cannot|(?:is|does|do|did|wo)nt)\b|아니|않|못")
ENDINGS = re.compile(
    r"(?:입니다|됩니다|합니다|니다|이에요|예요|어요|아요|이다|이고|다|요|에서|으로|은|는|이|가|을|를|에|의|도|와|과|열)$"
)
KOREAN_NUMERALS = {"두 배": "2배", "세 배": "3배", "네 배": "4배", "절반": "1/2", "반으로": "1/2로"}
MIN_SHARED_LETTERS = 4


def parse_number(text: str) -> float | None:
    """Return the one number of a text; None without one or with several.

    >>> parse_number("1/4"), parse_number("−1.5"), parse_number("a third")
    (0.25, -1.5, None)
    >>> parse_number("1,051,648"), parse_number("0,25"), parse_number("약 16칸")
    (1051648.0, 0.25, 16.0)
    >>> parse_number("1.25 × 10⁻⁷"), parse_number("50%"), parse_number("5 or 6")
    (1.25e-07, 0.5, None)
    >>> parse_number("1 051 648"), parse_number("105만 1,648"), parse_number("four")
    (1051648.0, 1051648.0, 4.0)
    """
    cleaned = POWER_OF_TEN.sub(r"e\1", normalize(text))
    cleaned = GROUPS.sub(lambda found: re.sub(r"[ .]", "", found[0]), cleaned)
    cleaned = MYRIADS.sub(_add_myriads, cleaned)
    if not re.search(r"\d", cleaned):
        cleaned = replace_words(cleaned, NUMBERS)
    numerator, slash, denominator = cleaned.partition("/")
    if slash:
        above, below = parse_number(numerator), parse_number(denominator)
        return None if above is None or not below else above / below
    found = NUMBER.findall(cleaned)
    return _to_float(found[0]) if len(found) == 1 else None


def _add_myriads(found: re.Match[str]) -> str:
    return str(int(found[1]) * 10_000 + int((found[2] or "0").replace(",", "")))


def _to_float(number: str) -> float:
    digits = number.removesuffix("%")
    is_grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", digits)
    is_decimal_comma = not is_grouped and digits.count(",") == 1 and "." not in digits
    value = float(digits.replace(",", "." if is_decimal_comma else ""))
    return value / 100.0 if number.endswith("%") else value


class Choice(NamedTuple):
    """The names of a choice: its key, and its label in each language."""

    key: str
    names: tuple[str, ...]


def match_choice(response: str, choices: Sequence[Choice]) -> str | None:
    """Return the key of the choice that a response names; None if that is not clear.

    A choice is named by its letter, its number, its label, or words that fit no other choice.

    >>> choices = [Choice("up", ("it rises", "커진다")), Choice("same", ("it stays the same",))]
    >>> [match_choice(text, choices) for text in ("b", "1", "I think it stays", "커집니다")]
    ['same', 'up', 'same', 'up']
    >>> match_choice("it does not change", choices)
    'same'
    >>> match_choice("it rises, or it stays the same", choices), match_choice("not b", choices)
    (None, None)
    """
    given = UNCHANGED_KOREAN.sub("그대로다", UNCHANGED.sub("stays the same", normalize(response)))
    names = {one.key: [normalize(name) for name in (one.key, *one.names)] for one in choices}
    for key, own in names.items():
        if given.rstrip(".!") in own:
            return key
    label = LABEL_OF_CHOICE.fullmatch(given)
    if label is not None:
        index = _choice_index(label[1], names)
        if index is not None:
            return choices[index].key if index < len(choices) else None
    labels = {one.key: names[one.key][1:] for one in choices}
    return _match_words(given, labels) or _match_ordinal(given, labels)


def normalize(text: str) -> str:
    """Return a text in lower case, with plain digits, signs and spaces.

    >>> normalize(" X₂ "), normalize("5 × 7"), normalize("5*7"), normalize("**not** “so”")
    ('x2', '5x7', '5x7', 'not so')
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("×", "x").replace("−", "-")
    plain = re.sub(r"[“”\"'‘’`]|\*\*|(?<=[a-z])_(?=\d)", "", plain)
    for written, digits in KOREAN_NUMERALS.items():
        plain = plain.replace(written, digits)
    return " ".join(DIMENSIONS.sub("x", plain).split())


def _choice_index(label: str, names: Mapping[str, Sequence[str]]) -> int | None:
    """Return the index that a letter or a number stands for, unless choices contain the number."""
    if label in LETTERS:
        return LETTERS.index(label)
    mentioned = {word for own in names.values() for name in own for word in _words(name)}
    return None if label in mentioned or label == "0" else int(label) - 1


def _match_words(given: str, names: Mapping[str, Sequence[str]]) -> str | None:
    """Return the only choice that the response names in full, by its own word, or in part."""
    words = _content_words(given)
    is_negated = bool(NEGATIONS.search(given))
    labels = [
        (key, _content_words(name))
        for key, own in names.items()
        for name in own
        if bool(NEGATIONS.search(name)) == is_negated
    ]
    full = [(key, label) for key, label in labels if label and _contains(words, label)]
    if full:
        _, longest = max(full, key=lambda pair: len(pair[1]))
        full_keys = {
            key for key, label in full if not _contains(longest, label) or label == longest
        }
        return full_keys.pop() if len(full_keys) == 1 else None
    partial = {
        key
        for key, label in labels
        for word in label
        if _contains(words, [word])
        and not any(_contains(own, [word]) for other, own in labels if other != key)
    }
    if not partial:
        partial = {key for key, label in labels if _contains(label, words)}
    return partial.pop() if len(partial) == 1 else None


def _match_ordinal(given: str, names: Mapping[str, Sequence[str]]) -> str | None:
    """Return the only choice whose number the response names, such as x2 for "the second word"."""
    number = re.findall(r"\d+", replace_words(given, ORDINALS))
    if len(number) != 1 or NEGATIONS.search(given):
        return None
    keys = [
        key for key, own in names.items() if any(re.findall(r"\d+", one) == number for one in own)
    ]
    return keys[0] if len(keys) == 1 else None


def _content_words(text: str) -> list[str]:
    words = _words(text)
    return [word for word in words if word not in FILLERS] or words


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:[./][^\W_]+)*", text)


def _contains(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether every word of the label has a counterpart among the words."""
    return all(any(_is_same_word(word, own) for word in words) for own in label)


def _is_same_word(word: str, other: str) -> bool:
    """Return whether two words are the same but for an ending.

    >>> _is_same_word("doubled", "doubles"), _is_same_word("커집니다", "커진다")
    (True, True)
    >>> _is_same_word("2", "20"), _is_same_word("encoder", "encoded")
    (False, False)
    """
    if word == other:
        return True
    if word[0].isdigit() or other[0].isdigit():
        return ENDINGS.sub("", word) == ENDINGS.sub("", other)
    if word.isascii():
        stems = (re.sub(r"(?:ing|ed|es|s|e|d)$", "", one) for one in (word, other))
        return other.isascii() and next(stems) == next(stems)
    one, two = (unicodedata.normalize("NFD", ENDINGS.sub("", part)) for part in (word, other))
    shared = len(_common_prefix(one, two))
    if min(len(one), len(two)) < MIN_SHARED_LETTERS:
        return one == two
    return shared >= max(MIN_SHARED_LETTERS, min(len(one), len(two)) - 1)


def _common_prefix(one: str, two: str) -> str:
    length = next(
        (index for index, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )
    return one[:length]
