"""Gettext catalogs (.po, .pot): untranslated messages are translated; all else keeps its bytes.

Comments, references, flags, obsolete entries and existing translations stay. A new translation is
marked as fuzzy by default, so that a person reviews it: gettext uses no fuzzy messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.document import TextDocument
from attendo.documents.inline import read_message, render_message
from attendo.documents.markup import MarkedText, has_words

QUOTED = r'(?:[^"\\]|\\.)*+'
LINE = re.compile(
    r"(?P<keyword>msgctxt|msgid_plural|msgid|msgstr)(?:\[(?P<number>\d{1,2})\])?[ \t]+"
    rf'"(?P<first>{QUOTED})"\s*|[ \t]*"(?P<more>{QUOTED})"\s*'
)
ESCAPE = re.compile(r"\\(.)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ARGUMENT = re.compile(
    r"(?<!%)%[-+0#']{0,4}[0-9*]{0,4}(?:\.[0-9*]{1,3})?(?:hh|h|ll|l|L|z|j|t)?[diouxXeEfFgGaAcsp]"
)
WIDTH = 77


@dataclass
class Entry:
    """A message: its strings, and where its translations are."""

    strings: dict[str, str] = field(default_factory=dict)
    """By keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0] ..."""
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The lines of each translation."""
    start: int = 0
    """Where the message begins: its first line that is not a comment."""
    flags: tuple[int, int] | None = None
    """The line with the flags."""

    def add(self, key: str, line: re.Match[str], start: int, end: int) -> None:
        """Add a line: the first one of a string, or another one."""
        self.strings[key] = self.strings.get(key, "") + _unescape(
            line["first"] or line["more"] or ""
        )
        if key.startswith("msgstr"):
            self.spans[key] = (self.spans[key][0] if key in self.spans else start, end)

    @property
    def is_translated(self) -> bool:
        """Whether any of its translations has words."""
        return any(text for key, text in self.strings.items() if key.startswith("msgstr"))


def read_catalog(source: str, *, fuzzy: bool = True) -> TextDocument:
    r"""Read a catalog.

    Args:
        source: the text of the file.
        fuzzy: mark new translations as fuzzy.

    >>> document = read_catalog('msgid "Open"\nmsgstr ""\n')
    >>> document.write_text([MarkedText("Öffnen")])
    '#, fuzzy\nmsgid "Open"\nmsgstr "Öffnen"\n'

    """
    document = TextDocument(source, is_bilingual=True)
    num_kept = 0
    for entry in _entries(source):
        if not entry.strings.get("msgid"):
            continue
        if entry.is_translated:
            num_kept += 1
            continue
        _add_entry(document, source, entry, fuzzy=fuzzy)
    if num_kept:
        document.notes.append(
            message("{count} messages were translated before and are kept", count=num_kept)
        )
    return document


def _add_entry(document: TextDocument, source: str, entry: Entry, *, fuzzy: bool) -> None:
    is_first = True
    is_c = entry.flags is not None and "c-format" in source[slice(*entry.flags)]
    last = sorted(entry.spans)[-1:]
    for key, (start, end) in entry.spans.items():
        plural = entry.strings.get("msgid_plural")
        # The form of "1" is first; a language with a single form uses that of "many".
        is_plural = plural is not None and (key != "msgstr[0]" or last == ["msgstr[0]"])
        text = str(plural) if is_plural else entry.strings["msgid"]
        if not has_words(text):
            continue
        before, marked, after = read_message(text)
        newline = "\r\n" if source[start:end].endswith("\r\n") else "\n"

        def render(
            translated: MarkedText,
            key: str = key,
            around: tuple[str, str] = (before, after),
            newline: str = newline,
            source_text: str = text,
        ) -> str:
            made = render_message(around[0], translated, around[1])
            lines = _format(key, order_arguments(source_text, made, may_number=is_c))
            return newline.join(lines) + newline

        document.add(start, end, marked, render)
        if fuzzy and is_first:
            _mark_fuzzy(document, source, entry, newline)
        is_first = False


def _mark_fuzzy(document: TextDocument, source: str, entry: Entry, newline: str) -> None:
    if entry.flags is None:
        document.on_change[len(document.segments) - 1] = (
            entry.start,
            entry.start,
            f"#, fuzzy{newline}",
        )
    elif "fuzzy" not in source[slice(*entry.flags)]:
        line = source[slice(*entry.flags)]
        document.on_change[len(document.segments) - 1] = (
            *entry.flags,
            line.replace("#,", "#, fuzzy,", 1),
        )


def _entries(source: str) -> list[Entry]:
    """Return the entries of a catalog, with the positions of their translations."""
    entries: list[Entry] = []
    entry, key, flags = Entry(), "", None
    position = 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        start, position = position, position + len(line)
        if line.startswith("#,"):
            flags = (start, position)
        if line.startswith("#") or not line.strip():
            continue
        found = LINE.fullmatch(line)
        if found is None:
            reason = message("line {number} is not a line of a catalog", number=number)
            raise InputError(reason, hint="check it with msgfmt -c")
        if found["keyword"]:
            key = found["keyword"] + (f"[{found['number']}]" if found["number"] else "")
            if key == "msgctxt" or (key == "msgid" and set(entry.strings) != {"msgctxt"}):
                entry = Entry(start=start, flags=flags)
                entries.append(entry)
                flags = None
        entry.add(key, found, start, position)
    return entries


def _unescape(text: str) -> str:
    return ESCAPE.sub(lambda found: ESCAPES.get(found[1], found[1]), text)


def order_arguments(source: str, text: str, *, may_number: bool) -> str:
    """Return a translation whose unnumbered arguments are read in the order of the source.

    A program passes its arguments in that order: `%s` for a number would crash it. C programs also
    know numbered arguments; in other languages the placeholders are put into the order.

    >>> order_arguments("%s: %d bytes", "%d Bytes: %s", may_number=True)
    '%2$d Bytes: %1$s'
    >>> order_arguments("%s: %d bytes", "%d Bytes: %s", may_number=False)
    '%s Bytes: %d'
    """
    expected = [found[0] for found in ARGUMENT.finditer(source)]
    given = [found[0] for found in ARGUMENT.finditer(text)]
    if given == expected or sorted(given) != sorted(expected) or "*" in "".join(expected):
        return text
    if not may_number:
        remaining = iter(expected)
        return ARGUMENT.sub(lambda _: next(remaining), text)
    numbers: dict[str, list[int]] = {}
    for number, argument in enumerate(expected, 1):
        numbers.setdefault(argument, []).append(number)

    def number_argument(found: re.Match[str]) -> str:
        return f"%{numbers[found[0]].pop(0)}${found[0][1:]}"

    return ARGUMENT.sub(number_argument, text)


def _escape(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, character in ESCAPES.items():
        text = text.replace(character, f"\\{letter}")
    return text


def _format(key: str, text: str) -> list[str]:
    """Return the lines of a translation, wrapped as gettext does."""
    escaped = _escape(text)
    if len(key) + len(escaped) + 3 <= WIDTH and "\n" not in text.rstrip("\n"):
        return [f'{key} "{escaped}"']
    lines = [f'{key} ""']
    for line in text.splitlines(keepends=True):
        current = ""
        for word in re.findall(r"\S*\s*", line):
            part = _escape(word)
            if current and len(current) + len(part) > WIDTH:
                lines.append(f'"{current}"')
                current = ""
            current += part
        if current:
            lines.append(f'"{current}"')
    return lines
