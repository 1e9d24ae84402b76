r"""Splits a text into segments that a model can translate, and joins their translations again.

Lines are never joined. A line is split into sentences if requested or if it is too long; what is
still too long is split at clauses, then at spaces, and finally between characters. No character is
lost: the segments and the white space between them add up to the text. The rules cover English,
German and Korean. In doubt they do not split, since two sentences in a segment do less harm than
half a sentence. The caller decides how long a segment may be.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

END_PUNCTUATION = re.compile(r"(?<![.!?…‼⁇⁈⁉．。｡！？])[.!?…‼⁇⁈⁉．。｡！？]++")
FULLWIDTH_ENDS = ("。", "｡", "！", "？")
"""They end a sentence without white space after them."""
CLOSERS = re.compile(r"[\"'”’“‘»«›‹)\]}」』）］｝】〉》〕]*+")
"""Closing quotes and brackets, including the German “ and «."""
FULLWIDTH_CLOSERS = re.compile(r"[\"'”’)\]}」』）］｝】〉》〕]*+")
SENTENCE_TAIL = re.compile(rf"[.!?…‼⁇⁈⁉．。｡！？]{CLOSERS.pattern}\Z")
CLAUSE_END = re.compile(
    r"[,;:][\"'”’“‘»«›‹)\]}]*+(?=\s)|(?<![)\]}])[)\]}]++(?=\s)"
    r"|[，、；：]|(?<![」』）］｝】〉》〕])[」』）］｝】〉》〕]++(?![，、；：。！？.,;:!?])"
    r"|(?<![—―])[—―]++(?!\s)|(?<=\s)[-–—―]++(?=\s)"
)
POSSIBLE_END = re.compile(rf"[.!?…‼⁇⁈⁉．。｡！？]{CLOSERS.pattern}\s|[。｡！？]")
"""Occurs in every line of several sentences, and in few others."""
LETTER = re.compile(r"[^\W_]")
WORD = re.compile(r"\S+")

LAST_WORD = re.compile(r"[^\W_]+\Z")
ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|prof|st|mt|rev|hon|gen|col|capt|lt|sgt|gov|sen|rep"
    r"|vs|etc|eg|ie|al|cf|approx|dept"
    r"|usw|bzw|ca|evtl|ggf|inkl|exkl|zzgl|vgl|sog|geb|hr|ing|\w*str|tel|mio|mrd",
    re.IGNORECASE,
)
"""Without the full stop; single letters ("J.", "e.g.", "z. B.") need no entry."""
BEFORE_NUMBER = re.compile(
    r"no|nos|nr|pp|vol|fig|abb|kap|abs|bd"
    r"|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|okt|nov|dec|dez",
    re.IGNORECASE,
)
"""Abbreviations only before a number: "No. 5", but "No. I stay."."""
LIST_NUMBER = re.compile(r"\s*\W?(?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3})*\Z")
DATE = re.compile(r"\d\.\s+\d{1,2}\Z")
GERMAN_ORDINAL = re.compile(
    r"\s+(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November"
    r"|Dezember|Jahrhundert|Weltkrieg)"
)
CONTEXT_CHARACTERS = 24
"""Number of characters on each side that decide whether a mark ends a sentence."""
OPENERS = tuple("\"'“‘„‚«»‹›([{「『（")
"""Between an opener and a closer, the mark itself is quoted: (".")."""
UNSPACED_SCRIPTS = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese, Khmer
    r"\u3005-\u3007\u3041-\u312f\u31a0-\u31ff"  # kana, bopomofo
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
JOINER = "\u200d"


class SegmentedText(NamedTuple):
    """A text in segments: `separators[0] + segments[0] + separators[1] + ... + separators[-1]`.

    Segments begin and end with visible characters; separators are white space or empty.
    """

    segments: tuple[str, ...]
    separators: tuple[str, ...]


def split_into_segments(
    text: str, *, fits: Callable[[str], bool], by_sentence: bool
) -> SegmentedText:
    r"""Split a text into as few segments as fit, or into its sentences, never across lines.

    >>> document = split_into_segments("It rains.\n\nGood.", fits=lambda _: True, by_sentence=True)
    >>> document.segments, document.separators
    (('It rains.', 'Good.'), ('', '\n\n', ''))

    Args:
        text: The text.
        fits: Returns whether a segment is short enough. It is called a few times per segment (the
            logarithm of its number of parts).
        by_sentence: Split every line into sentences, even if the line fits.

    Returns:
        The segments and the white space around them. A segment that does not fit is one character.

    """
    if "\n" not in text and not (by_sentence and POSSIBLE_END.search(text)):
        stripped = text.strip()
        if stripped and fits(stripped):  # most texts are one sentence
            start = 0 if stripped == text else text.index(stripped)
            return SegmentedText((stripped,), (text[:start], text[start + len(stripped) :]))
    segments, separators, end = [], [], 0
    for start, stop in _segment_spans(text, fits, by_sentence):
        segments.append(text[start:stop])
        separators.append(text[end:start])
        end = stop
    return SegmentedText(tuple(segments), (*separators, text[end:]))


def join_translations(document: SegmentedText, translations: Sequence[str]) -> str:
    r"""Join the translations of the segments into a text with the layout of the original.

    Line breaks, blank lines and the white space around a line are kept; two segments of a line are
    separated by one space, or by nothing if the original has no space.

    >>> document = split_into_segments("  하나. 둘.\n", fits=lambda _: True, by_sentence=True)
    >>> join_translations(document, ["One.", "Two."])
    '  One. Two.\n'

    Args:
        document: The result of `split_into_segments`.
        translations: One translation per segment, in order.

    Returns:
        The translated text.

    Raises:
        InputError: If the number of translations is not the number of segments.

    """
    if len(translations) != len(document.segments):
        reason = f"{len(translations)} translations for {len(document.segments)} segments"
        raise InputError(reason, hint="give one translation per segment, in order")
    first, *separators = document.separators
    output, pending, last = [first], "", len(separators) - 1
    for index, (translation, separator) in enumerate(zip(translations, separators, strict=True)):
        if translation:
            output.append(pending + translation)
        if index == last or "\n" in separator:
            output.append(separator)
            pending = ""
        elif translation:  # an empty translation does not change the pending space
            pending = " " if separator else ""
    return "".join(output)


def space_segments(document: SegmentedText, segments: Sequence[str]) -> list[str]:
    """Insert spaces between translations whose sources were not separated, e.g. in Chinese."""
    spaced = list(segments[:1])
    separators = document.separators[1:]
    for separator, before, segment in zip(separators, segments, segments[1:], strict=False):
        starts_word = segment[:1].isalnum() and not UNSPACED_SCRIPTS.match(segment)
        needs_space = not separator and before and starts_word
        spaced.append(f" {segment}" if needs_space else segment)
    return spaced


def split_sentences(line: str) -> list[str]:
    """Split one line into its sentences.

    >>> split_sentences("Dr. Kim kam am 3. Mai. Sie blieb z. B. bis 8.30 Uhr!")
    ['Dr. Kim kam am 3. Mai.', 'Sie blieb z. B. bis 8.30 Uhr!']

    Args:
        line: The line; English, German and Korean are covered.

    Returns:
        The sentences, without white space around them.

    """
    return [line[start:stop] for start, stop in _spans(line, _sentence_ends(line))]


def is_one_sentence(line: str) -> bool:
    """Return True only if a line is one sentence; False says nothing.

    >>> is_one_sentence("It rains."), is_one_sentence("It rains. Good.")
    (True, False)
    """
    return not POSSIBLE_END.search(line) and not line.isspace() and bool(line)


def ends_with_punctuation(text: str) -> bool:
    """Return whether a text ends with a mark that may end a sentence.

    >>> [ends_with_punctuation(text) for text in ("Yes.", "▁.", "(No!)", "Yes", ",")]
    [True, True, True, False, False]
    """
    return SENTENCE_TAIL.search(text) is not None


def _segment_spans(
    text: str, fits: Callable[[str], bool], by_sentence: bool
) -> Iterator[tuple[int, int]]:
    offset = 0
    for line in text.split("\n"):
        units = _spans(line, _sentence_ends(line) if by_sentence else [])
        for start, stop in units:
            unit = line[start:stop]
            ends = [] if fits(unit) else _chunk(unit, fits, SPLIT_LEVELS[1 if by_sentence else 0 :])
            for inner_start, inner_stop in _spans(unit, ends):
                yield offset + start + inner_start, offset + start + inner_stop
        offset += len(line) + 1


def _spans(text: str, ends: list[int]) -> list[tuple[int, int]]:
    """Return start and stop of the parts between the ends, without the white space around them."""
    spans = []
    for start, stop in zip([0, *ends], [*ends, len(text)], strict=True):
        part = text[start:stop]
        if stripped := part.strip():
            begin = start + len(part) - len(part.lstrip())
            spans.append((begin, begin + len(stripped)))
    return spans


def _chunk(
    text: str, fits: Callable[[str], bool], levels: tuple[Callable[[str], list[int]], ...]
) -> list[int]:
    """Return the ends of the chunks, each of as many parts of the first level as fit.

    A part that does not fit alone is split at the next level; its last chunk may include the parts
    that follow.
    """
    ends = [*levels[0](text), len(text)]
    chunk_ends: list[int] = []
    start = first = 0
    while first < len(ends):
        last_fitting = _last_fitting_part(text, start, ends, first, fits)
        if last_fitting >= first:
            chunk_ends.append(ends[last_fitting])
            start, first = ends[last_fitting], last_fitting + 1
            continue
        part = text[start : ends[first]]
        inner = [start + end for end in _chunk(part, fits, levels[1:])] if levels[1:] else []
        chunk_ends += inner[:-1]
        if len(inner) > 1:
            start = inner[-2]
        else:  # no level can split it
            chunk_ends.append(ends[first])
            start, first = ends[first], first + 1
    return chunk_ends


def _last_fitting_part(
    text: str, start: int, ends: list[int], first: int, fits: Callable[[str], bool]
) -> int:
    """Return the last part that still fits after `start`, or `first - 1` if none does."""

    def is_too_long(index: int) -> bool:
        return not fits(text[start : ends[index]].strip())

    step, good = 1, first - 1
    while good + step < len(ends) and not is_too_long(good + step):
        good += step
        step *= 2
    bad = min(good + step, len(ends))
    return bisect_left(range(bad), True, lo=good + 1, key=is_too_long) - 1


def _sentence_ends(text: str) -> list[int]:
    """Return the ends of all sentences but the last; each has a letter or digit ("… Yes. ::")."""
    ends: list[int] = []
    if not POSSIBLE_END.search(text):
        return ends
    has_words, searched = False, 0
    for match in END_PUNCTUATION.finditer(text):
        is_wide = match[0].endswith(FULLWIDTH_ENDS)
        closers = (FULLWIDTH_CLOSERS if is_wide else CLOSERS).match(text, match.end())
        end = closers.end() if closers else match.end()
        has_words = has_words or LETTER.search(text, searched, end) is not None
        searched = end
        if (
            has_words
            and (is_wide or text[end : end + 1].isspace())
            and _is_sentence_end(text, match, end)
        ):
            ends.append(end)
            has_words = False
    if ends and not LETTER.search(text, ends[-1]):
        ends.pop()
    return ends


def _is_sentence_end(text: str, match: re.Match[str], end: int) -> bool:
    """Return whether a mark ends a sentence, by the words before and after it."""
    mark = match.start()
    before = text[max(0, mark - CONTEXT_CHARACTERS) : mark]
    following = text[end : end + CONTEXT_CHARACTERS].lstrip()[:1]
    is_quoted = end > match.end() and before.endswith(OPENERS)
    if following.islower() or is_quoted:
        return False
    word = LAST_WORD.search(before)
    if match[0] != "." or word is None:
        return True
    if word[0].isdecimal():
        return not _continues_after_number(text, mark, end, following)
    return not _is_abbreviation(word[0], following)


def _is_abbreviation(word: str, following: str) -> bool:
    is_initial = len(word) == 1 and word < "\u0250"  # a Latin letter; "네." is a sentence
    is_before_number = following.isdecimal() and BEFORE_NUMBER.fullmatch(word)
    return bool(is_initial or is_before_number or ABBREVIATION.fullmatch(word))


def _continues_after_number(text: str, dot: int, end: int, following: str) -> bool:
    """Distinguish "1. First", "2024. 3. 5." and "am 3. Oktober" from "in 1990. Then"."""
    is_list = dot < CONTEXT_CHARACTERS and LIST_NUMBER.match(text, 0, dot)
    is_date = following.isdecimal() or DATE.search(text, max(0, dot - CONTEXT_CHARACTERS), dot)
    return bool(is_list or is_date or GERMAN_ORDINAL.match(text, end))


def _clause_ends(text: str) -> list[int]:
    return [match.end() for match in CLAUSE_END.finditer(text) if match.end() < len(text)]


def _word_ends(text: str) -> list[int]:
    return [match.end() for match in WORD.finditer(text)][:-1]


def _grapheme_ends(text: str) -> list[int]:
    """Split between characters, but keep accents, vowel signs and joined emoji together."""
    return [index for index in range(1, len(text)) if not _is_inside_grapheme(text, index)]


def _is_inside_grapheme(text: str, index: int) -> bool:
    letter = text[index]
    return (
        JOINER in (letter, text[index - 1])
        or unicodedata.category(letter)[0] == "M"
        or "\u1160" <= letter <= "\u11ff"  # vowels and finals of decomposed Hangul
    )


def _character_ends(text: str) -> list[int]:
    return list(range(1, len(text)))


SPLIT_LEVELS = (_sentence_ends, _clause_ends, _word_ends, _grapheme_ends, _character_ends)
"""From the best split points to the last resort."""
