"""Corpora at addresses of fsspec (`s3://`, `gs://`, `https://`): read through a local cache.

Training reads the copies. A run compares the content of its files, not their names, so that it also
resumes where the cache is another folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.core.files import cache_dir
from attendo.core.message import message
from attendo.text.lines import find_address

if TYPE_CHECKING:
    from attendo.training.progress import Reporter

CACHE_DIR = "remote"
FILE_KEYS = frozenset({"src", "tgt", "path", "text", "paths", "dev"})
"""Settings of the tables `data` and `series` that name files."""


def fetch_inputs(settings: dict[str, Any], reporter: Reporter) -> dict[str, Any]:
    """Return the settings of a run with addresses replaced by the paths of local copies.

    A corpus whose addresses are patterns with * becomes one corpus per file.
    """
    tables = {name: settings[name] for name in ("data", "series") if name in settings}
    return {**settings, **{name: _fetch(one, "", reporter) for name, one in tables.items()}}


def _fetch(settings: Any, key: str, reporter: Reporter) -> Any:
    if isinstance(settings, dict):
        return {name: _fetch(one, name, reporter) for name, one in settings.items()}
    if isinstance(settings, (list, tuple)):
        parts = [part for one in settings for part in _expand_patterns(one, key)]
        return [_fetch(one, key, reporter) for one in parts]
    if key not in FILE_KEYS or not isinstance(settings, (str, Path)):
        return settings
    return _fetch_file(settings, reporter)


def _expand_patterns(entry: Any, key: str) -> list[Any]:
    """Return the entries that one with patterns stands for: a corpus, or a file of series."""
    corpus = entry if isinstance(entry, dict) else {key: entry}
    patterns = {
        name: address
        for name, file in corpus.items()
        if name in FILE_KEYS
        and isinstance(file, (str, Path))
        and "*" in str(file)
        and (address := find_address(file))
    }
    if not patterns:
        return [entry]
    from attendo.cluster.storage import list_files

    found = {name: list_files(address) for name, address in patterns.items()}
    counts = {len(files) for files in found.values()}
    if len(counts) > 1:
        (src, num_src), (tgt, num_tgt) = ((one, len(found[name])) for name, one in patterns.items())
        raise ConfigError(
            message(
                "{src} matches {num_src} files, {tgt} {num_tgt}",
                src=src, num_src=num_src, tgt=tgt, num_tgt=num_tgt,
            ),
            hint="both sides need the same number of files, in the same order",
        )  # fmt: skip
    rows = zip(*found.values(), strict=True)
    corpora = [{**corpus, **dict(zip(found, files, strict=True))} for files in rows]
    return corpora if isinstance(entry, dict) else [one[key] for one in corpora]


def _fetch_file(file: str | Path, reporter: Reporter) -> str | Path:
    address = find_address(file)
    if address is None:
        return file
    from attendo.cluster.storage import download

    def show(done: int, total: int) -> None:
        reporter.stage(f"fetching {address}", done, total)

    return str(download(address, cache_dir() / CACHE_DIR, show))
