"""A glossary: which words of a source must be translated how, and where a phrase stands in a text.

The rule for both sides, and for `attendo.text.phrase_constraints`: a phrase stands where words begin and end.
"cat" is not in "catalog". A Korean noun takes particles, so its right side is open ("서울" is in
"서울에서", not in "남서울"), in a source to particles and the copula only; Chinese, Japanese and
Thai write no spaces, so both sides are. Words also end where the script changes: "BLEU" is in
"BLEU는". A phrase all in lower case is found in capitals too, any other as it is written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attendo.core.errors import InputError
from attendo.text.lines import check_readable, read_lines
from attendo.text.normalize import normalize
from attendo.text.particles import is_particle_suffix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

MAX_ENTRIES = 100_000
MAX_CHARACTERS = 200
MAX_REPORTED_ERRORS = 10
"""So many bad lines are named; the others are counted."""
PREFIX_LENGTH = 4
"""Phrases are looked up by so many first characters."""

SpacingScript = Literal["none", "spaced", "hangul", "open"]
HANGUL_CHARACTERS = re.compile(
    r"[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa1-\uffdc]"
)
UNSPACED_SCRIPTS = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese, Khmer
    r"\u3005-\u3007\u3041-\u312f\u31a0-\u31ff"  # kana, bopomofo
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
JOINERS = ("\u200c", "\u200d")


def casefold_1to1(text: str) -> str:
    """Give the text in lower case, every character in its place ("İ" would become two)."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(
        character if len(character.lower()) > 1 else character.lower() for character in text
    )


def ignores_case(phrase: str) -> bool:
    """Tell whether a phrase is found in capitals too: it has none itself."""
    return phrase == casefold_1to1(phrase)


def is_word_match(text: str, start: int, end: int, *, is_whole: bool = True) -> bool:
    """Tell whether what stands at `start:end` begins and ends where words do.

    Where the text is not whole, more may follow: whether "cat" ends there, nobody knows yet.

    >>> stands_at("the cat", 4, 7), stands_at("the catalog", 4, 7)
    (True, False)
    >>> stands_at("the cat", 4, 7, is_whole=False)
    False
    """
    first, last = _script_of(text[start]), _script_of(text[end - 1])
    if first in ("spaced", "hangul") and start > 0 and _script_of(text[start - 1]) == first:
        return False
    if end == len(text):
        return is_whole or last != "spaced"
    following = text[end]
    if unicodedata.category(following)[0] == "M" or following in JOINERS:
        return False  # an accent or a vowel of the last letter
    return last != "spaced" or _script_of(following) != "spaced"


def find_occurrences(phrase: str, text: str, *, is_whole: bool = True) -> Iterator[int]:
    """Give every place where a phrase stands in a text; the caller has folded both alike.

    >>> list(find_places("서울", "서울에서 남서울로, 서울"))
    [0, 11]
    """
    index = text.find(phrase)
    while index >= 0:
        if is_word_match(text, index, index + len(phrase), is_whole=is_whole):
            yield index
        index = text.find(phrase, index + 1)


def _leading_hangul(text: str, start: int) -> str:
    """Give the Hangul that stands right there."""
    end = start
    while end < len(text) and HANGUL_CHARACTERS.match(text[end]):
        end += 1
    return text[start:end]


def _script_of(character: str) -> SpacingScript:
    """Sort a character by how its words are parted; a mark belongs to the word before it."""
    if HANGUL_CHARACTERS.match(character):
        return "hangul"
    if UNSPACED_SCRIPTS.match(character):
        return "open"
    is_word = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return "spaced" if is_word else "none"


class Glossary:
    """Source phrases with their target phrases.

    >>> Glossary({"서울": "Seoul", "서울역": "Seoul Station"}).find("서울역에서 만나자.")
    ['Seoul Station']
    """

    def __init__(self, entries: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        rows = ((f"entry {number}", pair) for number, pair in enumerate(pairs, 1))
        self._targets = _collect_entries(rows, "the glossary")
        self._lengths: dict[str, set[int]] = {}
        for source in self._targets:
            self._lengths.setdefault(casefold_1to1(source)[:PREFIX_LENGTH], set()).add(len(source))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a TSV file: source, tab, target; blank lines and lines that begin with # are left.

        Every bad line is named in one `InputError`.
        """
        file = Path(path)
        check_readable(file)
        return cls(_collect_entries(_read_rows(file), str(path)))

    def __len__(self) -> int:
        return len(self._targets)

    def find_targets(self, source: str) -> list[str]:
        """Give the target phrases that must stand in the translation of this source, in order.

        The longest entries win where entries overlap. Each target comes once, however often its
        source occurs: a good translation may say "it" the second time, and must not be forced to
        repeat itself.
        """
        text = normalize(source)
        occupied = bytearray(len(text))
        selected: list[tuple[int, str]] = []
        matches = self._all_matches(text)
        for start, end, target in sorted(matches, key=lambda match: (match[0] - match[1], match)):
            if not any(occupied[start:end]):
                occupied[start:end] = b"\x01" * (end - start)
                selected.append((start, target))
        return list(dict.fromkeys(target for _, target in sorted(selected)))

    def _all_matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        folded = casefold_1to1(text)
        for start in range(len(text)):
            for size in range(1, PREFIX_LENGTH + 1):
                for length in self._lengths.get(folded[start : start + size], ()):
                    end = start + length
                    target = self._lookup_target(text[start:end], folded[start:end])
                    if target is None or end > len(text) or not is_word_match(text, start, end):
                        continue
                    if not HANGUL_CHARACTERS.match(text[end - 1]) or is_particle_suffix(
                        _leading_hangul(text, end)
                    ):
                        yield start, end, target

    def _lookup_target(self, phrase: str, folded: str) -> str | None:
        """Look a part up as it is written, then in lower case."""
        target = self._targets.get(phrase)
        return self._targets.get(folded) if target is None else target


def _read_rows(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    for number, line in enumerate(read_lines(path), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            cells = line.split("\t")
            while len(cells) > 2 and not cells[-1].strip():  # spreadsheets write tabs at the end
                cells.pop()
            yield f"line {number}", cells


def _collect_entries(rows: Iterable[tuple[str, Sequence[str]]], title: str) -> dict[str, str]:
    """Check and gather the entries; all faults come in one error."""
    targets: dict[str, str] = {}
    locations: dict[str, str] = {}
    errors: list[str] = []
    num_errors = 0
    for location, cells in rows:
        row = [normalize(cell) for cell in cells]
        message = _entry_error(row) or _conflict_error(row, targets, locations)
        if message:
            num_errors += 1
            if num_errors <= MAX_REPORTED_ERRORS:
                errors.append(f"\n  {location}: {message}")
            continue
        targets[row[0]] = row[1]
        locations.setdefault(row[0], location)
        if len(targets) > MAX_ENTRIES:
            reason = f"{title} has more than {MAX_ENTRIES:,} entries"
            raise InputError(reason, hint="keep the terms that a translation must not miss")
    if num_errors:
        raise _glossary_error(title, errors, num_errors)
    return targets


def _entry_error(row: Sequence[str]) -> str | None:
    if len(row) == 1:
        return "no tab between source and target"
    if len(row) != 2:
        return f"{len(row)} columns, not 2"
    for side, phrase in zip(("source", "target"), row, strict=True):
        if not phrase:
            return f"the {side} is empty"
        if len(phrase) > MAX_CHARACTERS:
            return f"the {side} has {len(phrase)} characters, more than {MAX_CHARACTERS}"
    return None


def _conflict_error(
    row: Sequence[str], targets: Mapping[str, str], locations: Mapping[str, str]
) -> str | None:
    source, target = row
    if targets.get(source, target) == target:
        return None
    return f"'{source}' is '{target}' here and '{targets[source]}' in {locations[source]}"


def _glossary_error(title: str, errors: Sequence[str], num_errors: int) -> InputError:
    more = num_errors - len(errors)
    listing = "".join(errors) + (f"\n  and {more:,} more" if more else "")
    count = "1 entry" if num_errors == 1 else f"{num_errors:,} entries"
    return InputError(
        f"{title}: {count} cannot be used{listing}",
        hint=f"write source, a tab and target on each line, each source once, at most "
        f"{MAX_CHARACTERS} characters a side; a line that begins with # is a comment",
    )
