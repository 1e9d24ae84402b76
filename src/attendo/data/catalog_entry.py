"""What the catalogue says of one corpus, as typed data.

An `Entry` is one corpus. For a language pair it gives `Edition`s, the published one first: the
files to fetch, and where the texts lie in them. Later editions are other forms in which a mirror
may hold the same corpus; the last are always `train.<language>` and `dev.<language>`, with .gz or
without.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from attendo.core.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

Markup = Literal["text", "tags", "sgm", "xml"]
"""How a member of an archive is written: plain lines, IWSLT's training format, WMT's SGML, XML."""
PAIR = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)-([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file to fetch; without an address only a mirror can have it."""

    name: str
    url: str | None = None
    sha256: str | None = None
    num_bytes: int | None = None
    also_named: tuple[str, ...] = ()
    """Other names under which a mirror may hold it."""


class Place(NamedTuple):
    """A text: a fetched file, or a member of a fetched archive."""

    file: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One parallel text in the languages of its edition: two places, or one table with tabs."""

    first: Place
    second: Place | None
    markup: Markup = "text"


@dataclass(frozen=True, slots=True)
class Edition:
    """One form in which a corpus is held; without dev, one is taken out of train."""

    languages: tuple[str, str]
    files: tuple[RemoteFile, ...]
    train: tuple[Part, ...]
    dev: tuple[Part, ...] = ()
    test: tuple[Part, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether every file has an address."""
        return all(file.url is not None for file in self.files)


@dataclass(frozen=True, slots=True)
class Entry:
    """One corpus of the catalogue."""

    name: str
    title: str
    homepage: str
    licence: str
    size: str
    pairs: tuple[str, ...]
    """Known language pairs, each in both directions; empty when there are too many to list."""
    publish: Callable[[str, str], tuple[Edition, ...]]

    def editions(self, pair: str) -> tuple[Edition, ...]:
        """Give every form in which the pair may be held, the published one first."""
        first, second = parse_pair(pair)
        if self.pairs and pair not in self.pairs:
            first, second = second, first
            if f"{first}-{second}" not in self.pairs:
                remedy = f"{suggest(pair, self.pairs)} (and the other way round)"
                raise InputError(f"{self.name} has no pair '{pair}'", remedy=remedy)
        published = self.publish(first, second)
        return (*published, *(prepared_edition(first, second, end) for end in (".gz", "")))

    def checksums(self, pair: str) -> str:
        """Say whether the published files of a pair are held to a checksum."""
        files = next(edition.files for edition in self.editions(pair) if edition.is_published)
        num_held = sum(file.sha256 is not None for file in files)
        if num_held == len(files):
            return "held"
        return f"held for {num_held} of {len(files)} files" if num_held else "not held"


def parse_pair(pair: str) -> tuple[str, str]:
    """Read 'en-ko' as source and target language."""
    match = PAIR.fullmatch(pair)
    if match is None or match[1] == match[2]:
        raise InputError(f"'{pair}' is no language pair", remedy="write source-target, e.g. en-ko")
    return match[1], match[2]


def pair_texts(stem: str, first: str, second: str, ending: str) -> Part:
    """Pair up two files that are named <stem>.<language><ending>."""
    return Part(Place(f"{stem}.{first}{ending}"), Place(f"{stem}.{second}{ending}"))


def prepared_edition(first: str, second: str, ending: str) -> Edition:
    """Whatever the corpus: a mirror may hold it split, one sentence a line."""
    texts = [f"{stem}.{language}" for stem in ("train", "dev") for language in (first, second)]
    return Edition(
        (first, second),
        tuple(RemoteFile(f"{text}{ending}") for text in texts),
        train=(pair_texts("train", first, second, ending),),
        dev=(pair_texts("dev", first, second, ending),),
    )
