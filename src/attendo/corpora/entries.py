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
LANGUAGE_PAIR = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)-([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file to fetch; without an address only a mirror can have it."""

    name: str
    url: str | None = None
    sha256: str | None = None
    num_bytes: int | None = None
    aliases: tuple[str, ...] = ()
    """Other names under which a mirror may hold it."""


class ArchiveMember(NamedTuple):
    """A text: a fetched file, or a member of a fetched archive."""

    file: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """One parallel text in the languages of its edition: two places, or one table with tabs."""

    first: ArchiveMember
    second: ArchiveMember | None
    markup: Markup = "text"


@dataclass(frozen=True, slots=True)
class Release:
    """One form in which a corpus is held; without dev, one is taken out of train."""

    languages: tuple[str, str]
    files: tuple[RemoteFile, ...]
    train: tuple[Split, ...]
    dev: tuple[Split, ...] = ()
    test: tuple[Split, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether every file has an address."""
        return all(file.url is not None for file in self.files)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One corpus of the catalogue."""

    name: str
    title: str
    homepage: str
    license: str
    size: str
    pairs: tuple[str, ...]
    """Known language pairs, each in both directions; empty when there are too many to list."""
    make_releases: Callable[[str, str], tuple[Release, ...]]

    def releases(self, pair: str) -> tuple[Release, ...]:
        """Give every form in which the pair may be held, the published one first."""
        first, second = parse_pair(pair)
        if self.pairs and pair not in self.pairs:
            first, second = second, first
            if f"{first}-{second}" not in self.pairs:
                hint = f"{suggest(pair, self.pairs)} (and the other way round)"
                raise InputError(f"{self.name} has no pair '{pair}'", hint=hint)
        published = self.make_releases(first, second)
        return (*published, *(prepared_release(first, second, end) for end in (".gz", "")))

    def describe_checksums(self, pair: str) -> str:
        """Say whether the published files of a pair are held to a checksum."""
        files = next(release.files for release in self.releases(pair) if release.is_published)
        num_verified = sum(file.sha256 is not None for file in files)
        if num_verified == len(files):
            return "held"
        return f"held for {num_verified} of {len(files)} files" if num_verified else "not held"


def parse_pair(pair: str) -> tuple[str, str]:
    """Read 'en-ko' as source and target language."""
    match = LANGUAGE_PAIR.fullmatch(pair)
    if match is None or match[1] == match[2]:
        raise InputError(f"'{pair}' is no language pair", hint="write source-target, e.g. en-ko")
    return match[1], match[2]


def parallel_split(stem: str, first: str, second: str, suffix: str) -> Split:
    """Pair up two files that are named <stem>.<language><ending>."""
    return Split(
        ArchiveMember(f"{stem}.{first}{suffix}"), ArchiveMember(f"{stem}.{second}{suffix}")
    )


def prepared_release(first: str, second: str, suffix: str) -> Release:
    """Whatever the corpus: a mirror may hold it split, one sentence a line."""
    texts = [f"{stem}.{language}" for stem in ("train", "dev") for language in (first, second)]
    return Release(
        (first, second),
        tuple(RemoteFile(f"{text}{suffix}") for text in texts),
        train=(parallel_split("train", first, second, suffix),),
        dev=(parallel_split("dev", first, second, suffix),),
    )
