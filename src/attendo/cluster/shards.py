"""Cuts files into shards: consecutive windows, each of which one worker translates.

The windows are those of `attendo translate` (`attendo.translator.pipeline.group_lines`): every
window has the same texts as in one process, and so the same translations.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from attendo.translator.pipeline import group_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from attendo.cluster.formats import Format, Row

WINDOWS_PER_SHARD = 4
"""By default: a shard is what a lost worker has to translate again, half a minute on a GPU."""


class Shard(NamedTuple):
    """Consecutive rows of a file."""

    source: int
    """The index of the file."""
    number: int
    num_rows: int
    window_sizes: tuple[int, ...]
    content: bytes
    """The packed rows; empty if the shard is already translated."""
    references: tuple[str, ...]
    """The references of the rows, if the output depends on them."""


def cut_shards(
    source: int,
    rows: Iterable[Row],
    row_format: Format,
    *,
    window_rows: int,
    shard_rows: int,
    done: Collection[int] = (),
    references: Iterable[str] | None = None,
) -> Iterator[Shard]:
    """Yield the shards of a file.

    If the rows end with an error, it is raised after the last complete shard: the rest would be cut
    otherwise once the file can be read.

    Args:
        source: the index of the file.
        rows: of the file.
        row_format: packs rows.
        window_rows: the most rows in a window.
        shard_rows: a shard ends with the window that reaches them.
        done: the numbers of shards that are translated: they are only counted.
        references: one per row.

    """
    read: deque[Row] = deque()

    failures: list[Exception] = []

    def texts() -> Iterator[str]:
        try:
            for row in rows:
                read.append(row)
                yield row.text
        except Exception as error:  # noqa: BLE001 - raised after the last complete shard
            failures.append(error)

    reference_lines = iter(references) if references is not None else None
    sizes: list[int] = []
    number = 0

    def make_shard() -> Shard:
        count = sum(sizes)
        taken = [read.popleft() for _ in range(count)]
        matching = () if reference_lines is None else tuple(
            next(reference_lines) for _ in range(count)
        )  # fmt: skip
        is_done = number in done
        content = b"" if is_done else row_format.pack(taken)
        return Shard(source, number, count, tuple(sizes), content, () if is_done else matching)

    for window in group_lines(texts(), window_rows):
        if failures:  # the window ends where the error is
            break
        sizes.append(len(window))
        if sum(sizes) >= shard_rows:
            yield make_shard()
            sizes, number = [], number + 1
    if failures:
        raise failures[0]
    if sizes:
        yield make_shard()


def shard_name(folder: str, number: int, suffix: str) -> str:
    """Return the name of the file of a shard.

    >>> shard_name("news.en.gz", 7, ".gz")
    'news.en.gz/part-00007.gz'
    """
    return f"{folder}/part-{number:05}{suffix}"


def name_folders(addresses: Iterable[str]) -> list[str]:
    """Return a folder for the shards of each file: its path below what all have in common.

    >>> name_folders(["s3://b/mono/a/x.en", "s3://b/mono/b/x.en"])
    ['a/x.en', 'b/x.en']
    >>> name_folders(["/data/news.en.gz"])
    ['news.en.gz']
    """
    parts = [address.replace("://", "/").strip("/").split("/") for address in addresses]
    shortest = min(len(one) for one in parts) - 1
    common = 0
    while common < shortest and len({one[common] for one in parts}) == 1:
        common += 1
    return ["/".join(one[common:]) for one in parts]
