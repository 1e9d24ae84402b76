"""Fetches a corpus of the catalog from the internet or from a mirror, ready for `read_pairs`.

    <directory>/<corpus>/downloads/   the published files, shared by all pairs
    <directory>/<corpus>/<pair>/      the extracted texts of one pair

`attendo.corpora.file_source` downloads or copies the files and verifies their checksums,
`attendo.corpora.archives` extracts the texts. Existing files are verified and kept.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.files import cache_dir
from attendo.core.message import message
from attendo.corpora.archives import extract_members, remove_markup
from attendo.corpora.download import FetchError, MissingRemoteError, RetryPolicy
from attendo.corpora.entries import parse_pair
from attendo.corpora.file_source import FileSource, ensure_file
from attendo.data.corpus_config import CorpusConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attendo.corpora.download import Progress
    from attendo.corpora.entries import ArchiveMember, CatalogEntry, Release, RemoteFile, Split


@dataclass(frozen=True, slots=True)
class FetchedCorpus:
    """A fetched corpus: the configs of each split for `read_pairs`, and the checksums."""

    name: str
    pair: str
    license: str
    train: tuple[CorpusConfig, ...]
    dev: tuple[CorpusConfig, ...]
    """Empty if the corpus has none: the pipeline then splits one off train."""
    test: tuple[CorpusConfig, ...]
    checksums: Mapping[str, str]


def corpora_dir() -> Path:
    """Return the folder of fetched corpora, within the cache folder."""
    return cache_dir() / "corpora"


def fetch(
    entry: CatalogEntry,
    pair: str,
    directory: str | Path,
    *,
    mirror: str | None = None,
    progress: Progress | None = None,
    retry: RetryPolicy | None = None,
) -> FetchedCorpus:
    """Fetch a language pair of a corpus to `directory`.

    Args:
        entry: The corpus, from `find_entry`.
        pair: Source and target language, e.g. "en-de".
        directory: The folder of all corpora.
        mirror: A folder or URL with files named `<corpus>/<file>` or `<corpus>-<pair>/<file>`.
        progress: Called with the name of a file, the bytes so far, and the total if known.
        retry: How often and after which delays to retry.

    Returns:
        The files of train, dev and test.

    Raises:
        FetchError: If a file cannot be fetched, has another checksum or cannot be extracted.

    >>> fetch(find_entry("multi30k"), "en-de", "corpora").dev  # doctest: +SKIP
    (CorpusConfig(src=PosixPath('corpora/multi30k/downloads/val.en.gz'), ...),)

    """
    source = FileSource(mirror, retry or RetryPolicy(), progress)
    folder = Path(directory) / entry.name
    release, paths, checksums = _fetch_release(source, entry, pair, folder)
    texts = _text_paths(release, paths, folder / "-".join(release.languages))
    _extract_texts(release, texts, paths, checksums)
    is_reversed = parse_pair(pair) != release.languages
    train, dev, test = (
        tuple(_to_corpus_config(split, texts, is_reversed=is_reversed) for split in splits)
        for splits in (release.train, release.dev, release.test)
    )
    return FetchedCorpus(entry.name, pair, entry.license, train, dev, test, checksums)


def _fetch_release(
    source: FileSource, entry: CatalogEntry, pair: str, folder: Path
) -> tuple[Release, dict[str, Path], dict[str, str]]:
    """Fetch the files of the published release, or of the first one complete on the mirror."""
    releases = entry.releases(pair)
    tried: dict[str, None] = {}
    for release in releases[:1] if source.mirror is None else releases:
        paths = {file.name: _local_path(file, release, folder) for file in release.files}
        try:
            checksums = {
                file.name: ensure_file(source, file, _mirror_paths(file, release, entry), path)
                for file, path in zip(release.files, paths.values(), strict=True)
            }
        except MissingRemoteError:
            _remove_empty_folders(folder)
            if source.mirror is None:
                raise
            names = (_mirror_paths(file, release, entry)[0] for file in release.files)
            tried |= dict.fromkeys(names)
        else:
            return release, paths, checksums
    folders = sorted({name.split("/")[0] for name in tried} | {entry.name})
    raise FetchError(
        message(
            "{mirror} does not have {corpus} {pair}: no {files} in the folders {folders}",
            mirror=source.mirror,
            corpus=entry.name,
            pair=pair,
            files=", ".join(sorted({name.split("/")[1] for name in tried})),
            folders=", ".join(folders),
        ),
        hint="fetch it without a mirror, or copy the files into one of these folders",
    )


def _remove_empty_folders(folder: Path) -> None:
    """Delete the folders that were created for files which do not exist."""
    for path in (*folder.glob("*"), folder):
        with suppress(OSError):  # not a folder, not empty, or not there
            path.rmdir()


def _local_path(file: RemoteFile, release: Release, folder: Path) -> Path:
    """Return the local path: published files are shared, others have equal names in all pairs."""
    return folder / ("downloads" if file.url else "-".join(release.languages)) / file.name


def _mirror_paths(file: RemoteFile, release: Release, entry: CatalogEntry) -> list[str]:
    first, second = release.languages
    folders = (f"{entry.name}-{first}-{second}", f"{entry.name}-{second}-{first}", entry.name)
    names = (file.name, *file.aliases)
    return [f"{folder}/{name}" for folder in folders for name in names]


def _text_paths(
    release: Release, paths: Mapping[str, Path], folder: Path
) -> dict[ArchiveMember, Path]:
    """Return the path of every text of a release, after extraction."""
    texts: dict[ArchiveMember, Path] = {}
    for split in ("train", "dev", "test"):
        for number, parallel_split in enumerate(getattr(release, split)):
            for member, suffix in _split_members(parallel_split, release):
                unpacked = folder / f"{split}.{number}.{suffix}"
                texts[member] = paths[member.file] if member.member is None else unpacked
    return texts


def _split_members(split: Split, release: Release) -> Iterator[tuple[ArchiveMember, str]]:
    if split.second is None:
        yield split.first, "tsv"
        return
    for member, language in zip((split.first, split.second), release.languages, strict=True):
        yield member, f"{language}.gz" if (member.member or "").endswith(".gz") else language


def _extract_texts(
    release: Release,
    texts: Mapping[ArchiveMember, Path],
    paths: Mapping[str, Path],
    checksums: Mapping[str, str],
) -> None:
    """Extract every member to its path, unless it was extracted from the same archives before."""
    archives: dict[str, dict[str, Path]] = {}
    for text_member, path in texts.items():
        if text_member.member is not None:
            archives.setdefault(text_member.file, {})[text_member.member] = path
            folder = path.parent
    if not archives:
        return
    manifest_path = folder / "unpacked.json"
    manifest = {
        path.name: [checksums[file], member]
        for file, members in archives.items()
        for member, path in members.items()
    }
    if _is_extracted(manifest_path, manifest):
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path.unlink(missing_ok=True)
    for file, members in archives.items():
        extract_members(paths[file], members)
    for split in (*release.train, *release.dev, *release.test):
        for text_member, _ in _split_members(split, release):
            remove_markup(texts[text_member], split.markup)
    manifest_path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _is_extracted(manifest_path: Path, manifest: Mapping[str, list[str]]) -> bool:
    try:
        saved_manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return saved_manifest == manifest and all(
        (manifest_path.parent / name).exists() for name in manifest
    )


def _to_corpus_config(
    split: Split, texts: Mapping[ArchiveMember, Path], *, is_reversed: bool
) -> CorpusConfig:
    if split.second is None:
        src_field, tgt_field = (2, 1) if is_reversed else (1, 2)
        return CorpusConfig(
            path=texts[split.first], format="tsv", src_field=src_field, tgt_field=tgt_field
        )
    src, tgt = texts[split.first], texts[split.second]
    return CorpusConfig(src=tgt, tgt=src) if is_reversed else CorpusConfig(src=src, tgt=tgt)
