"""Glossaries (source phrases with required translations) and the search for phrases in a text.

The matching rule, also used by `attendo.text.phrase_constraints`: a phrase matches at word
boundaries, so "cat" does not match in "catalog". Korean nouns take particles, so more Hangul may
follow ("서울" matches in "서울에서", not in "남서울"); in a source only particles and the copula.
Chinese, Japanese and Thai have no spaces, so boundaries are not checked. A word also ends where the
script changes: "BLEU" matches in "BLEU는". A phrase in lower case ignores case, any other is
case-sensitive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.text.lines import check_readable, read_lines
from attendo.text.normalize import normalize
from attendo.text.sentences import UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

MAX_ENTRIES = 100_000
MAX_CHARACTERS = 200
MAX_REPORTED_ERRORS = 10
"""Number of bad lines that an error lists; the others are counted."""
PREFIX_LENGTH = 4
"""Number of leading characters by which phrases are indexed."""

SpacingScript = Literal["none", "spaced", "hangul", "unspaced"]
HANGUL_CHARACTERS = re.compile(
    r"[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa1-\uffdc]"
)
JOINERS = ("\u200c", "\u200d")

# What may follow a Korean noun within the same word: plural, particles, the copula. 사자를,
# 사자들에게서는 and 사자입니다 are forms of 사자; 사자자리 is another word. The list is closed and
# short: a wrong match costs more than a rare or colloquial ending that is missed.
PARTICLES = (
    "은|는|이|가|을|를|의|에|도|만|와|과|로|으로|야|아|여|이여|랑|이랑|하고|나|이나|께|께서|에게|에게서|한테|한테서"
    "|에서|에서부터|으로서|로서|으로써|로써|으로부터|로부터|부터|까지|마저|조차|처럼|같이|보다|마다|밖에|대로|만큼|뿐"
    "|라도|이라도|든지|이든지|치고|더러|보고|이야|커녕|은커녕|는커녕|요|이요"
)
COPULA_FORMS = (
    "이다|다|입니다|이에요|예요|이야|이었다|였다|이었습니다|였습니다|이었어요|였어요|이고|고|이며|며|이지만|지만"
    "|이라는|라는|이라고|라고|인|이라서|라서|이니까|니까|이면|면|이어서|여서|인데|이지|지|일까|인가|입니까|이냐|냐"
    "|이었던|였던|이거나|거나|이므로|므로"
)
PLURAL = "들"
PARTICLE_SET, COPULA_SET = (frozenset(forms.split("|")) for forms in (PARTICLES, COPULA_FORMS))
MAX_PARTICLE_LENGTH = max(map(len, PARTICLE_SET))


def casefold_1to1(text: str) -> str:
    """Return the text in lower case, with the same length ("İ" would become two characters)."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(
        character if len(character.lower()) > 1 else character.lower() for character in text
    )


def ignores_case(phrase: str) -> bool:
    """Return whether matching ignores case: the phrase has no capitals itself."""
    return phrase == casefold_1to1(phrase)


def is_word_match(text: str, start: int, end: int, *, is_whole: bool = True) -> bool:
    """Return whether `text[start:end]` begins and ends at word boundaries.

    If the text is not whole, more may follow: the last word may still become longer.

    >>> is_word_match("the cat", 4, 7), is_word_match("the catalog", 4, 7)
    (True, False)
    >>> is_word_match("the cat", 4, 7, is_whole=False)
    False
    """
    first, last = _script_of(text[start]), _script_of(text[end - 1])
    if first in ("spaced", "hangul") and start > 0 and _script_of(text[start - 1]) == first:
        return False
    if end == len(text):
        return is_whole or last != "spaced"
    following = text[end]
    if unicodedata.category(following)[0] == "M" or following in JOINERS:
        return False  # an accent or a vowel sign of the last letter
    return last != "spaced" or _script_of(following) != "spaced"


def find_occurrences(phrase: str, text: str, *, is_whole: bool = True) -> Iterator[int]:
    """Yield every index at which a phrase occurs in a text; the caller folds the case of both.

    >>> list(find_occurrences("서울", "서울에서 남서울로, 서울"))
    [0, 11]
    """
    index = text.find(phrase)
    while index >= 0:
        if is_word_match(text, index, index + len(phrase), is_whole=is_whole):
            yield index
        index = text.find(phrase, index + 1)


def is_particle_suffix(suffix: str) -> bool:
    """Return whether Hangul right after a noun is only an inflection of that noun.

    >>> [is_particle_suffix(suffix) for suffix in ("를", "들에게서는", "입니다", "", "자리", "일")]
    [True, True, True, True, False, False]
    """
    # Not a regular expression: 이나 is one particle or two, and n of them 2^n sequences.
    starts = {0, len(PLURAL)} if suffix.startswith(PLURAL) else {0}
    for start in range(len(suffix)):
        if start in starts:
            longest = min(start + MAX_PARTICLE_LENGTH, len(suffix))
            ends = range(start + 1, longest + 1)
            starts.update(end for end in ends if suffix[start:end] in PARTICLE_SET)
    return any(start == len(suffix) or suffix[start:] in COPULA_SET for start in starts)


def _leading_hangul(text: str, start: int) -> str:
    """Return the Hangul characters from `start` on."""
    end = start
    while end < len(text) and HANGUL_CHARACTERS.match(text[end]):
        end += 1
    return text[start:end]


def _script_of(character: str) -> SpacingScript:
    """Return how the script of a character separates words; a mark belongs to its word."""
    if HANGUL_CHARACTERS.match(character):
        return "hangul"
    if UNSPACED_SCRIPTS.match(character):
        return "unspaced"
    is_word = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return "spaced" if is_word else "none"


class Glossary:
    """Source phrases with their required target phrases.

    >>> glossary = Glossary({"서울": "Seoul", "서울역": "Seoul Station"})
    >>> glossary.find_targets("서울역에서 만나자.")
    ['Seoul Station']

    Args:
        entries: Source and target phrases, as a mapping or as pairs.

    Raises:
        InputError: If an entry is empty, too long or contradicts another one; all such entries are
            listed in one error.

    """

    def __init__(self, entries: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        rows = (
            (message("entry {number}", number=number), pair) for number, pair in enumerate(pairs, 1)
        )
        self._targets = _collect_entries(rows, message("the glossary"))
        self._lengths: dict[str, set[int]] = {}
        for source in self._targets:
            self._lengths.setdefault(casefold_1to1(source)[:PREFIX_LENGTH], set()).add(len(source))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a TSV file of source, tab, target; blank lines and lines with # are skipped.

        Args:
            path: The file.

        Returns:
            The glossary.

        Raises:
            InputError: If the file cannot be read or has bad lines, which are all listed.

        """
        file = Path(path)
        check_readable(file)
        return cls(_collect_entries(_read_rows(file), str(path)))

    def __len__(self) -> int:
        return len(self._targets)

    def find_targets(self, source: str) -> list[str]:
        """Return the target phrases that the translation of this source must contain.

        Where entries overlap, the longest one wins. Each target is listed once, however often its
        source occurs: a good translation may use a pronoun the second time.

        Args:
            source: The source text.

        Returns:
            The target phrases, in the order of their sources.

        """
        return list(dict.fromkeys(target for _, _, target in self.find_matches(source)))

    def find_matches(self, source: str) -> list[tuple[int, int, str]]:
        """Return start, end and target phrase of each match in a normalized source, in order."""
        text = normalize(source)
        occupied = bytearray(len(text))
        selected: list[tuple[int, int, str]] = []
        matches = self._all_matches(text)
        for start, end, target in sorted(matches, key=lambda match: (match[0] - match[1], match)):
            if not any(occupied[start:end]):
                occupied[start:end] = b"\x01" * (end - start)
                selected.append((start, end, target))
        return sorted(selected)

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
        """Look up a phrase as it is written, then in lower case."""
        target = self._targets.get(phrase)
        return self._targets.get(folded) if target is None else target


def _read_rows(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    for number, line in enumerate(read_lines(path), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            cells = line.split("\t")
            while len(cells) > 2 and not cells[-1].strip():  # spreadsheets write tabs at the end
                cells.pop()
            yield message("line {number}", number=number), cells


def _collect_entries(rows: Iterable[tuple[str, Sequence[str]]], title: str) -> dict[str, str]:
    """Validate and collect the entries; all errors are raised at once."""
    targets: dict[str, str] = {}
    locations: dict[str, str] = {}
    errors: list[str] = []
    num_errors = 0
    for location, cells in rows:
        row = [normalize(cell) for cell in cells]
        error = _entry_error(row) or _conflict_error(row, targets, locations)
        if error:
            num_errors += 1
            if num_errors <= MAX_REPORTED_ERRORS:
                errors.append(message("{location}: {detail}", location=location, detail=error))
            continue
        targets[row[0]] = row[1]
        locations.setdefault(row[0], location)
        if len(targets) > MAX_ENTRIES:
            reason = message(
                "{title} has more than {limit:,} entries",
                title=title,
                limit=MAX_ENTRIES,
            )
            raise InputError(reason, hint="keep only the most important terms")
    if num_errors:
        raise _glossary_error(title, errors, num_errors)
    return targets


def _entry_error(row: Sequence[str]) -> str | None:
    if len(row) == 1:
        return "no tab between source and target"
    if len(row) != 2:
        return message("{count} columns, not 2", count=len(row))
    for side, phrase in zip(("source", "target"), row, strict=True):
        if not phrase:
            return message("the {side} is empty", side=message(side))
        if len(phrase) > MAX_CHARACTERS:
            return message(
                "the {side} has {count} characters, more than {limit}",
                side=message(side),
                count=len(phrase),
                limit=MAX_CHARACTERS,
            )
    return None


def _conflict_error(
    row: Sequence[str], targets: Mapping[str, str], locations: Mapping[str, str]
) -> str | None:
    source, target = row
    if targets.get(source, target) == target:
        return None
    return message(
        "'{source}' is '{target}' here and '{other}' in {location}",
        source=source,
        target=target,
        other=targets[source],
        location=locations[source],
    )


def _glossary_error(title: str, errors: Sequence[str], num_errors: int) -> InputError:
    more = num_errors - len(errors)
    lines = [*errors, *([message("and {count:,} more", count=more)] if more else [])]
    listing = join_messages("\n  ", ["", *lines])
    count = (
        message("1 entry") if num_errors == 1 else message("{count:,} entries", count=num_errors)
    )
    return InputError(
        message(
            "{title}: {count} cannot be used{listing}", title=title, count=count, listing=listing
        ),
        hint=message(
            "write source, a tab and target on each line, each source once, at most "
            "{limit} characters per side; a line that begins with # is a "
            "comment",
            limit=MAX_CHARACTERS,
        ),
    )
