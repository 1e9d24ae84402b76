"""Subtitles (.srt, .vtt): the times are kept, and sentences are translated whole.

A sentence that runs over several cues is translated as one text. Its translation is distributed
over the cues in proportion to the length of their texts, so that what is read keeps its time, and
cut between words, if possible after punctuation. The lines of a cue are joined, and broken again.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.documents.document import TextDocument
from attendo.documents.markup import (
    MarkedText,
    MarkupBuilder,
    has_words,
    render,
    split_marked,
    trim,
)
from attendo.text.sentences import ends_with_punctuation

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
TIMES = re.compile(rf"[ \t]*({TIME})[ \t]*-->[ \t]*({TIME})[^\n]*")
TAG = re.compile(
    r"\{\\[^{}\n]{0,200}\}|<(?P<end>/?)(?P<name>[a-zA-Z]{1,10})?[^<>\n]{0,200}>|&[a-z]{2,6};"
)
SPEAKER = re.compile(r"<v[\s.]|(?:<[^<>]{0,200}>|\{[^{}]{0,200}\}){0,9}[-–—‐♪\[]")
"""A line of its own: <v Name>, a dash, music, a sound."""
DASH = re.compile(r"\s*[-–—‐]\s*")
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&nbsp;": "\u00a0"}
MAX_CUES = 6
"""Longer texts are not sentences: their cues have no punctuation."""
MAX_GAP = 1.5
"""Seconds between two cues of a sentence at most."""
LINE_WIDTH = 42
NEARNESS = 0.35
"""How far a cut may move to be after punctuation, as a part of a cue."""


class Cue(NamedTuple):
    """The text of a cue, and its times in seconds."""

    start: int
    end: int
    begins: float
    ends: float
    lines: list[str]


def read_subtitles(source: str) -> TextDocument:
    """Read SubRip or WebVTT subtitles."""
    document = TextDocument(source)
    is_vtt = source.lstrip("\ufeff").startswith("WEBVTT")
    cues = _cues(source)
    if source.strip() and not cues and not is_vtt:
        raise InputError("the file has no subtitles", hint="check that it is .srt or .vtt")
    group: list[Cue] = []
    for cue in cues:
        if group and not _continues(group, cue):
            _add_group(document, group, is_vtt=is_vtt)
            group = []
        group.append(cue)
    if group:
        _add_group(document, group, is_vtt=is_vtt)
    return document


def _cues(source: str) -> list[Cue]:
    cues: list[Cue] = []
    position = 0
    times, first, last, lines = None, 0, 0, []
    for line in [*source.splitlines(keepends=True), ""]:
        text = line.strip("\r\n")
        if times is not None:
            if text.strip():
                lines.append(text)
                first = first if len(lines) > 1 else position
                last = position + len(text)
            else:
                if lines:
                    cues.append(Cue(first, last, _seconds(times[1]), _seconds(times[2]), lines))
                times, lines = None, []
        elif found := TIMES.match(text):
            times = found
        position += len(line)
    return cues


def _seconds(time: str) -> float:
    seconds = 0.0
    for part in time.replace(",", ".").split(":"):
        seconds = 60.0 * seconds + float(part)
    return seconds


def _continues(group: Sequence[Cue], cue: Cue) -> bool:
    """Return whether a cue continues the sentence of the cues before it."""
    last = group[-1]
    text = TAG.sub("", last.lines[-1]).strip()
    return (
        len(group) < MAX_CUES
        and 0.0 <= cue.begins - last.ends <= MAX_GAP
        and not ends_with_punctuation(text)
        and not text.endswith(("♪", "]", ")", ":"))
        and not _has_speakers(last)
        and not _has_speakers(cue)
    )


def _has_speakers(cue: Cue) -> bool:
    return any(SPEAKER.match(line.strip()) for line in cue.lines)


def _add_group(document: TextDocument, group: Sequence[Cue], *, is_vtt: bool) -> None:
    """Add the segments of some cues: a sentence, or the lines of several speakers."""
    if len(group) == 1 and len(group[0].lines) > 1 and _has_speakers(group[0]):
        start = group[0].start
        for line in group[0].lines:
            begin = document.source.index(line, start)
            start = begin + len(line)
            dash = DASH.match(line)
            length = dash.end() if dash else 0
            _add_lines(document, [(begin + length, start, [line[length:]])], is_vtt=is_vtt)
        return
    _add_lines(document, [(cue.start, cue.end, cue.lines) for cue in group], is_vtt=is_vtt)


def _add_lines(
    document: TextDocument, cues: list[tuple[int, int, list[str]]], *, is_vtt: bool
) -> None:
    parts = [_read("\n".join(lines), is_vtt=is_vtt) for _, _, lines in cues]
    heads = [head for head, _ in parts]
    marked = _join([part for _, part in parts])
    if not has_words(marked.text):
        return
    lengths = [len(part.text) for _, part in parts]
    breaks = [len(lines) for _, _, lines in cues]
    newline = "\r\n" if "\r\n" in document.source else "\n"
    between = [document.source[one[1] : other[0]] for one, other in pairwise(cues)]

    def render_cues(translated: MarkedText) -> str:
        made = _distribute(translated, lengths)
        texts = [
            head + _break(part, num_lines, newline, is_vtt=is_vtt)
            for head, part, num_lines in zip(heads, made, breaks, strict=True)
        ]
        text = texts[0]
        for separator, one in zip(between, texts[1:], strict=True):
            text += separator + one
        return text

    document.add(cues[0][0], cues[-1][1], marked, render_cues)


def _read(text: str, *, is_vtt: bool) -> tuple[str, MarkedText]:
    """Return the tags at the start of a cue that are not closed, and its text with the others."""
    tokens = [one for one in TAG.finditer(text) if one[0] not in ENTITIES or is_vtt]
    partners: dict[int, int] = {}
    stack: list[re.Match[str]] = []
    for found in tokens:
        if not found["name"]:
            continue
        if not found["end"]:
            stack.append(found)
        elif stack and stack[-1]["name"] == found["name"]:
            begin = stack.pop()
            partners |= {begin.start(): found.start(), found.start(): begin.start()}
    builder = MarkupBuilder(collapse=True)
    head, position = "", 0
    for found in tokens:
        before = text[position : found.start()]
        builder.add_text(before)
        position = found.end()
        if found[0] in ENTITIES:
            builder.add_text(ENTITIES[found[0]])
        elif found.start() in partners:
            if found["end"]:
                builder.close(found[0])
            else:
                builder.open(found[0])
        elif not text[: found.start()].strip() or head == text[: found.start()]:
            head += found[0]
        else:
            builder.add_single(found[0])
    builder.add_text(text[position:])
    return head, trim(builder.build())[1]


def _join(parts: Sequence[MarkedText]) -> MarkedText:
    """Join the texts of cues, with spaces."""
    builder = parts[0]
    for part in parts[1:]:
        offset, number = len(builder.text) + 1, len(builder.tags)
        tags = (tag.moved(offset, number) for tag in part.tags)
        builder = MarkedText(f"{builder.text} {part.text}", (*builder.tags, *tags))
    return builder


def _distribute(marked: MarkedText, lengths: Sequence[int]) -> list[MarkedText]:
    """Split a translation into one part per cue."""
    text = marked.text
    total = sum(lengths) or 1
    spaces = [index for index, letter in enumerate(text) if letter.isspace()]
    positions: list[int] = []
    covered = 0
    for index, length in enumerate(lengths[:-1]):
        covered += length
        wanted = covered / total * len(text)
        reach = NEARNESS * len(text) * min(length, lengths[index + 1]) / total
        free = [one for one in spaces if one > (positions[-1] if positions else 0)]
        if not free:
            positions.append(len(text))
            continue
        best = min(
            free,
            key=lambda one: (
                abs(one - wanted)
                - (
                    reach
                    if ends_with_punctuation(text[:one]) or text[one - 1] in ",;:、，"
                    else 0.0
                )
            ),
        )
        positions.append(best)
    return [trim(part)[1] for part in split_marked(marked, positions)]


def _break(marked: MarkedText, num_lines: int, newline: str, *, is_vtt: bool) -> str:
    """Return the text of a cue in at most as many lines as it had, or two, of similar length."""
    text = marked.text
    wanted = min(max(num_lines, 1), 2) if len(text) <= LINE_WIDTH else max(num_lines, 2)
    positions: list[int] = []
    spaces = [index for index, letter in enumerate(text) if letter.isspace()]
    for number in range(1, wanted):
        middle = len(text) * number / wanted
        free = [one for one in spaces if not positions or one > positions[-1]]
        if free:
            positions.append(min(free, key=lambda one: abs(one - middle)))
    letters = list(text)
    for position in positions:
        letters[position] = "\n"
    broken = MarkedText("".join(letters), marked.tags)
    return render(broken, _escape_vtt if is_vtt else str).replace("\n", newline)


def _escape_vtt(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
