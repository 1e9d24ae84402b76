"""`attendo corpus`: list public corpora and download them.

`attendo.corpora.catalog` describes the corpora, `attendo.corpora.fetch` downloads them; this module
prints. The progress bar goes to stderr, so that results can be piped.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.download_progress import DownloadProgress
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.corpora.catalog import CATALOG, find_entry

if TYPE_CHECKING:
    from attendo.corpora.entries import CatalogEntry, RemoteFile
    from attendo.corpora.fetch import FetchedCorpus
    from attendo.data.corpus_config import CorpusConfig

ANY_PAIR = "XX-YY"
"""Placeholder for a pair if the catalog does not list them all."""
MAX_LISTED_PAIRS = 4


def corpus(
    name: Annotated[
        str | None,
        typer.Argument(help="Corpus name; without it, all are listed.", show_default=False),
    ] = None,
    pair: Annotated[
        str | None, typer.Option(help="Language pair, source first, e.g. en-de.")
    ] = None,
    should_fetch: Annotated[bool, typer.Option("--fetch", help="Download it.")] = False,
    to: Annotated[
        Path | None, typer.Option(help="Download to this folder instead of the cache.")
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(help="Download from this mirror: a folder or a URL.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List known public corpora, and download one."""
    check_options(name, pair, should_fetch=should_fetch, to=to, mirror=mirror)
    if name is None:
        if as_json:
            echo_json([describe_entry(entry) for entry in CATALOG])
        else:
            print_catalog()
        return
    entry = find_entry(name)
    if should_fetch and pair is not None:
        files = fetch_with_progress(entry, pair, to, mirror)
        command = (
            format_train_command(entry, name, pair, mirror)
            if to is None
            else format_file_train_command(files)
        )
        if as_json:
            echo_json(describe_files(files, command))
        else:
            print_files(files, command)
    elif as_json:
        echo_json(describe_entry(entry) | describe_usage(entry, name, pair))
    else:
        print_entry(entry, name, pair)


def check_options(
    name: str | None, pair: str | None, *, should_fetch: bool, to: Path | None, mirror: str | None
) -> None:
    """Raise an error that lists all options without effect."""
    reasons = []
    if name is None and (pair is not None or should_fetch):
        reasons.append(message("--pair and --fetch need a corpus: name it, e.g. multi30k"))
    if should_fetch and pair is None:
        reasons.append(message("--fetch needs a language pair, e.g. --pair en-de"))
    if not should_fetch and (to is not None or mirror is not None):
        reasons.append(message("--to and --mirror need --fetch"))
    if reasons:
        raise ConfigError.from_reasons("attendo corpus", reasons)


# --- descriptions


def describe_entry(entry: CatalogEntry) -> dict[str, Any]:
    """Return the description of a corpus; empty pairs mean that there are too many to list."""
    return {
        "name": entry.name,
        "title": entry.title,
        "homepage": entry.homepage,
        "license": entry.license,
        "size": entry.size,
        "pairs": list(entry.pairs),
        "checksums": format_checksums(entry),
    }


def describe_usage(entry: CatalogEntry, name: str, pair: str | None) -> dict[str, Any]:
    """Return the published files of one pair or of every pair, and the commands that use them."""
    pairs = (pair,) if pair else entry.pairs or (ANY_PAIR,)
    return {
        "files": {one: [describe_file(file) for file in list_files(entry, one)] for one in pairs},
        "fetch": shlex.join(["attendo", "corpus", name, "--pair", pairs[0], "--fetch"]),
        "train": format_train_command(entry, name, pairs[0]),
    }


def list_files(entry: CatalogEntry, pair: str) -> tuple[RemoteFile, ...]:
    """Return the published files of a pair."""
    return entry.releases(pair)[0].files


def describe_file(file: RemoteFile) -> dict[str, Any]:
    """Describe one file; unknown values are None."""
    return {"url": file.url, "num_bytes": file.num_bytes, "sha256": file.sha256}


def format_checksums(entry: CatalogEntry) -> str:
    """Return whether the files of a corpus have checksums."""
    states = {entry.describe_checksums(pair) for pair in entry.pairs or (ANY_PAIR,)}
    return states.pop() if len(states) == 1 else "known for some pairs"


def format_pairs(entry: CatalogEntry) -> str:
    """Return the first pairs of a corpus and the number of further ones."""
    listed, num_more = entry.pairs[:MAX_LISTED_PAIRS], len(entry.pairs) - MAX_LISTED_PAIRS
    return ", ".join(listed) + (f" and {num_more} more" if num_more > 0 else "") or "many"


def print_catalog() -> None:
    """Print the corpora as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    # Two facts per cell: six columns would wrap every URL on a terminal of 100 columns.
    table = Table(box=SIMPLE_HEAD, leading=1, pad_edge=False)
    table.add_column("name\npairs", overflow="fold", max_width=18)
    table.add_column("size\nchecksums", overflow="fold", max_width=24)
    table.add_column("license\nURL", overflow="fold")
    for entry in CATALOG:
        table.add_row(
            f"[bold]{entry.name}[/]\n{format_pairs(entry)}",
            f"{entry.size}\nchecksums {format_checksums(entry)}",
            f"{entry.license}\n[link={entry.homepage}]{entry.homepage}[/link]",
        )
    console = make_console()
    console.print(table)
    console.print(
        "Any other OPUS corpus: opus:<corpus>/<version>, e.g. opus:GNOME/v1\n"
        "Unknown checksums are recorded by the first download and verified by later ones.\n"
        "Details: attendo corpus <name>",
        markup=False,
    )


def print_entry(entry: CatalogEntry, name: str, pair: str | None) -> None:
    """Print the details of one corpus and how to use it."""
    from rich.filesize import decimal
    from rich.table import Table

    usage = describe_usage(entry, name, pair)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in describe_entry(entry).items():
        table.add_row(key, ", ".join(value) or "many" if key == "pairs" else value)
    console = make_console()
    console.print(table)
    for one, files in usage["files"].items():
        console.print(f"\n[bold]files of {one}[/]")
        for file in files:
            num_bytes, sha256 = file["num_bytes"], file["sha256"]
            size = "size unknown" if num_bytes is None else decimal(num_bytes)
            checksum = f"sha256 {sha256}" if sha256 else "checksum unknown"
            console.print(f"  {file['url']}\n    {size}, {checksum}", soft_wrap=True)
    console.print("\n[bold]usage[/] (train downloads missing files)")
    console.print(f"  {usage['fetch']}\n  {usage['train']}", markup=False, soft_wrap=True)


# --- download


def fetch_with_progress(
    entry: CatalogEntry, pair: str, to: Path | None, mirror: str | None
) -> FetchedCorpus:
    """Download a pair of a corpus with a progress bar."""
    from attendo.corpora.fetch import corpora_dir, fetch
    from attendo.corpora.file_source import FileSource

    directory = corpora_dir() if to is None else to
    console = make_console(stderr=True)
    try:
        with DownloadProgress(console, is_resumable=FileSource(mirror).is_remote) as bar:
            files = fetch(entry, pair, directory, mirror=mirror, progress=bar.update)
    except OSError as error:
        raise InputError(
            message(
                "cannot download {name} to {directory}: {error}",
                name=entry.name,
                directory=directory,
                error=error,
            ),
            hint="free some disk space, or choose a writable folder with --to",
        ) from None
    for name in files.checksums:
        if name not in bar.tasks:
            console.print(f"{name}: already downloaded", markup=False)
    return files


def describe_files(files: FetchedCorpus, command: str) -> dict[str, Any]:
    """Return the files of a downloaded corpus by split, and the command that trains on them."""
    splits = {
        split: [[str(path) for path in part.paths] for part in parts]
        for split, parts in (("train", files.train), ("dev", files.dev), ("test", files.test))
    }
    return {
        "name": files.name,
        "pair": files.pair,
        "license": files.license,
        "splits": splits,
        "checksums": dict(files.checksums),
        "train": command,
    }


def print_files(files: FetchedCorpus, command: str) -> None:
    """Print the files of a downloaded corpus by split, and the command that trains on them."""
    console = make_console()
    for split, parts in describe_files(files, command)["splits"].items():
        for paths in parts or [["none: split off train" if split == "dev" else "none"]]:
            console.print(f"{split:7}{'  '.join(paths)}", markup=False, soft_wrap=True)
    console.print(f"license: {files.license}", markup=False, soft_wrap=True)
    console.print(f"\nTo train on it:\n  {command}", markup=False, soft_wrap=True)


# --- next commands


def format_train_command(
    entry: CatalogEntry, name: str, pair: str, mirror: str | None = None
) -> str:
    """Return the command that trains on a corpus of the catalog.

    >>> format_train_command(find_entry("multi30k"), "multi30k", "en-de")
    'attendo train --corpus multi30k --pair en-de --out runs/multi30k-en-de'
    """
    source = [] if mirror is None else ["--mirror", mirror]
    out = f"runs/{entry.name}-{pair}"
    return shlex.join(["attendo", "train", "--corpus", name, "--pair", pair, *source, "--out", out])


def format_file_train_command(files: FetchedCorpus) -> str:
    """Return the command that trains on files outside the cache."""
    arguments = [word for part in files.train for word in _file_options(part)]
    if files.dev:
        arguments += _file_options(files.dev[0], "--dev-")
    fields = next((part.fields for part in files.train if part.path is not None), None)
    if fields:  # all tables of a corpus have the same columns
        arguments += ["--src-field", str(fields[0]), "--tgt-field", str(fields[1])]
    return shlex.join(["attendo", "train", *arguments, "--out", f"runs/{files.name}-{files.pair}"])


def _file_options(part: CorpusConfig, prefix: str = "--") -> list[str]:
    if part.path is not None:
        return [f"{prefix}path", str(part.path)]
    return [f"{prefix}src", str(part.src), f"{prefix}tgt", str(part.tgt)]


def echo_json(value: Any) -> None:
    """Print JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
