"""Fetch a corpus of the catalogue from the net or from a mirror, ready for `read_pairs`.

    <directory>/<corpus>/downloads/   the published files, shared by all pairs
    <directory>/<corpus>/<pair>/      the texts of one pair, unpacked

`attendo.data.mirror` brings the files and holds them to their checksums, `attendo.data.unpack`
takes the texts out of them. What is here already is checked and kept; nothing is executed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.files import cache_dir
from attendo.data.catalog_entry import parse_pair
from attendo.data.corpus_config import CorpusConfig
from attendo.data.download import FetchError, MissingRemoteError, Retry
from attendo.data.mirror import Source, obtain
from attendo.data.unpack import strip_markup, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attendo.data.catalog_entry import Edition, Entry, Part, Place, RemoteFile
    from attendo.data.download import Progress


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """A fetched corpus: each split as configs for `read_pairs`, and the checksums of its files."""

    name: str
    pair: str
    licence: str
    train: tuple[CorpusConfig, ...]
    dev: tuple[CorpusConfig, ...]
    """Empty when the corpus has none: one is taken out of train."""
    test: tuple[CorpusConfig, ...]
    checksums: Mapping[str, str]


def corpora_dir() -> Path:
    """Give the folder of fetched corpora: in ATTENDO_CACHE, else in the user's cache."""
    return cache_dir() / "corpora"


def fetch(
    entry: Entry,
    pair: str,
    directory: str | Path,
    *,
    mirror: str | None = None,
    progress: Progress | None = None,
    retry: Retry | None = None,
) -> CorpusFiles:
    """Bring a language pair of a corpus to `directory`.

    `mirror` is a folder or an address that has `<corpus>/<file>` or `<corpus>-<pair>/<file>` below
    it. `progress` is called with a file's name, the bytes that are here, and all of them if known.

    >>> fetch(find_entry("multi30k"), "en-de", "corpora").dev  # doctest: +SKIP
    (CorpusConfig(src=PosixPath('corpora/multi30k/downloads/val.en.gz'), ...),)
    """
    source = Source(mirror, retry or Retry(), progress)
    folder = Path(directory) / entry.name
    edition, paths, checksums = _obtain_edition(source, entry, pair, folder)
    texts = _place_texts(edition, paths, folder / "-".join(edition.languages))
    _unpack_texts(edition, texts, paths, checksums)
    is_reversed = parse_pair(pair) != edition.languages
    train, dev, test = (
        tuple(_config_of(part, texts, is_reversed=is_reversed) for part in parts)
        for parts in (edition.train, edition.dev, edition.test)
    )
    return CorpusFiles(entry.name, pair, entry.licence, train, dev, test, checksums)


def _obtain_edition(
    source: Source, entry: Entry, pair: str, folder: Path
) -> tuple[Edition, dict[str, Path], dict[str, str]]:
    """Bring the files of the published edition, or of the first that the mirror holds whole."""
    editions = entry.editions(pair)
    missing = []
    for edition in editions[:1] if source.mirror is None else editions:
        paths = {file.name: _path_of(file, edition, folder) for file in edition.files}
        try:
            checksums = {
                file.name: obtain(source, file, _mirror_places(file, edition, entry), path)
                for file, path in zip(edition.files, paths.values(), strict=True)
            }
        except MissingRemoteError as error:
            if source.mirror is None:
                raise
            missing.append(error.reason)
        else:
            return edition, paths, checksums
    raise FetchError(
        f"{source.mirror} does not hold {entry.name} {pair}: {'; '.join(missing)}",
        remedy="fetch it without a mirror, or put the files there under one of these names",
    )


def _path_of(file: RemoteFile, edition: Edition, folder: Path) -> Path:
    """Share the published files; the names of the others are the same for every pair."""
    return folder / ("downloads" if file.url else "-".join(edition.languages)) / file.name


def _mirror_places(file: RemoteFile, edition: Edition, entry: Entry) -> list[str]:
    first, second = edition.languages
    folders = (f"{entry.name}-{first}-{second}", f"{entry.name}-{second}-{first}", entry.name)
    names = (file.name, *file.also_named)
    return [f"{folder}/{name}" for folder in folders for name in names]


def _place_texts(edition: Edition, paths: Mapping[str, Path], folder: Path) -> dict[Place, Path]:
    """Say where every text of an edition lies, or will lie once it is unpacked."""
    texts: dict[Place, Path] = {}
    for split in ("train", "dev", "test"):
        for number, part in enumerate(getattr(edition, split)):
            for place, ending in _sides_of(part, edition):
                unpacked = folder / f"{split}.{number}.{ending}"
                texts[place] = paths[place.file] if place.member is None else unpacked
    return texts


def _sides_of(part: Part, edition: Edition) -> Iterator[tuple[Place, str]]:
    if part.second is None:
        yield part.first, "tsv"
        return
    for place, language in zip((part.first, part.second), edition.languages, strict=True):
        yield place, f"{language}.gz" if (place.member or "").endswith(".gz") else language


def _unpack_texts(
    edition: Edition,
    texts: Mapping[Place, Path],
    paths: Mapping[str, Path],
    checksums: Mapping[str, str],
) -> None:
    """Unpack every member to its path, unless they came out of the same archives before."""
    archives: dict[str, dict[str, Path]] = {}
    for place, path in texts.items():
        if place.member is not None:
            archives.setdefault(place.file, {})[place.member] = path
            folder = path.parent
    if not archives:
        return
    manifest_path = folder / "unpacked.json"
    manifest = {
        path.name: [checksums[file], member]
        for file, members in archives.items()
        for member, path in members.items()
    }
    if _is_unpacked(manifest_path, manifest):
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path.unlink(missing_ok=True)
    for file, members in archives.items():
        unpack(paths[file], members)
    for part in (*edition.train, *edition.dev, *edition.test):
        for place, _ in _sides_of(part, edition):
            strip_markup(texts[place], part.markup)
    manifest_path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _is_unpacked(manifest_path: Path, manifest: Mapping[str, list[str]]) -> bool:
    try:
        known = json.loads(manifest_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return known == manifest and all((manifest_path.parent / name).exists() for name in manifest)


def _config_of(part: Part, texts: Mapping[Place, Path], *, is_reversed: bool) -> CorpusConfig:
    if part.second is None:
        src_field, tgt_field = (2, 1) if is_reversed else (1, 2)
        return CorpusConfig(
            path=texts[part.first], format="tsv", src_field=src_field, tgt_field=tgt_field
        )
    src, tgt = texts[part.first], texts[part.second]
    return CorpusConfig(src=tgt, tgt=src) if is_reversed else CorpusConfig(src=src, tgt=tgt)
