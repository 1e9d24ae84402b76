"""Data types of the catalog.

A `CatalogEntry` is one corpus. For a language pair it lists `Release`s, the published one first:
the files to fetch, and where the texts are in them. The later releases are other forms in which a
mirror may have the same corpus; the last ones are always `train.<language>` and `dev.<language>`,
with or without .gz.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from attendo.core.errors import InputError, suggest
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable

Markup = Literal["text", "tags", "sgm", "xml"]
"""Format of an archive member: plain lines, IWSLT's training format, WMT's SGML, XML."""
LANGUAGE_PAIR = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)-([A-Za-z]{2,3}(?:_[A-Za-z]{2,8})?)")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch; without a URL only a mirror can have it."""

    name: str
    url: str | None = None
    sha256: str | None = None
    num_bytes: int | None = None
    aliases: tuple[str, ...] = ()
    """Other names that it may have on a mirror."""


class ArchiveMember(NamedTuple):
    """A text: a fetched file, or a member of a fetched archive."""

    file: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """A parallel text in the languages of its release: two members, or one tab-separated table."""

    first: ArchiveMember
    second: ArchiveMember | None
    markup: Markup = "text"


@dataclass(frozen=True, slots=True)
class Release:
    """One form in which a corpus is available; without dev, one is split off train."""

    languages: tuple[str, str]
    files: tuple[RemoteFile, ...]
    train: tuple[Split, ...]
    dev: tuple[Split, ...] = ()
    test: tuple[Split, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether every file has a URL."""
        return all(file.url is not None for file in self.files)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A corpus of the catalog."""

    name: str
    title: str
    homepage: str
    license: str
    size: str
    pairs: tuple[str, ...]
    """Language pairs, each in both directions; empty if there are too many to list."""
    make_releases: Callable[[str, str], tuple[Release, ...]]

    def releases(self, pair: str) -> tuple[Release, ...]:
        """Return every form in which the pair may be available, the published one first."""
        first, second = parse_pair(pair)
        if self.pairs and pair not in self.pairs:
            first, second = second, first
            if f"{first}-{second}" not in self.pairs:
                hint = message("{detail} (and the reverse)", detail=suggest(pair, self.pairs))
                raise InputError(
                    message("{name} has no pair '{pair}'", name=self.name, pair=pair), hint=hint
                )
        published = self.make_releases(first, second)
        return (*published, *(prepared_release(first, second, end) for end in (".gz", "")))

    def describe_checksums(self, pair: str) -> str:
        """Return whether the catalog has checksums of the published files of a pair."""
        files = next(release.files for release in self.releases(pair) if release.is_published)
        num_verified = sum(file.sha256 is not None for file in files)
        if num_verified == len(files):
            return "known"
        return f"known for {num_verified} of {len(files)} files" if num_verified else "not known"


def parse_pair(pair: str) -> tuple[str, str]:
    """Parse 'en-ko' into source and target language."""
    match = LANGUAGE_PAIR.fullmatch(pair)
    if match is None or match[1] == match[2]:
        raise InputError(
            message("'{pair}' is not a language pair", pair=pair),
            hint="write source-target, e.g. en-ko",
        )
    return match[1], match[2]


def parallel_split(stem: str, first: str, second: str, suffix: str) -> Split:
    """Return the split of two files named <stem>.<language><suffix>."""
    return Split(
        ArchiveMember(f"{stem}.{first}{suffix}"), ArchiveMember(f"{stem}.{second}{suffix}")
    )


def prepared_release(first: str, second: str, suffix: str) -> Release:
    """Return the form that any corpus may have on a mirror: one sentence per line, with dev."""
    texts = [f"{stem}.{language}" for stem in ("train", "dev") for language in (first, second)]
    return Release(
        (first, second),
        tuple(RemoteFile(f"{text}{suffix}") for text in texts),
        train=(parallel_split("train", first, second, suffix),),
        dev=(parallel_split("dev", first, second, suffix),),
    )
