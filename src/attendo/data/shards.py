"""Tokenized corpora on disk, memory-mapped: only what is needed is read.

A folder holds, for each side, all ids concatenated (`src.ids`, `tgt.ids`) and the start of each
sentence (`src.offsets`, `tgt.offsets`), and `meta.json`. For batches see `attendo.data.batching`.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import cached_property
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.core.files import new_directory
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.data.augmentation import augment_pairs
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.labels import label_pairs
from attendo.data.readers import read_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.data.augmentation import AugmentationConfig
    from attendo.data.labels import LabelRule
    from attendo.text.tokenizer import Tokenizer

FORMAT_VERSION = 1
CHUNK_PAIRS = 8192
"""Number of pairs that are tokenized at a time, which bounds the memory."""
COUNTED_IDS = 1 << 24
"""Number of ids that are counted at a time, which bounds the memory."""
META_FILE = "meta.json"


class _SideWriter:
    """Writes the two files of one side, chunk by chunk."""

    def __init__(self, folder: Path, side: str, dtype: str, files: ExitStack) -> None:
        self.num_ids = 0
        self._dtype = dtype
        self._ids: IO[bytes] = files.enter_context((folder / f"{side}.ids").open("wb"))
        self._offsets: IO[bytes] = files.enter_context((folder / f"{side}.offsets").open("wb"))
        self._offsets.write(np.zeros(1, np.int64).tobytes())

    def append(self, id_lists: list[list[int]]) -> None:
        lengths = np.fromiter(map(len, id_lists), np.int64, len(id_lists))
        flat = np.fromiter(chain.from_iterable(id_lists), self._dtype, int(lengths.sum()))
        self._ids.write(flat.tobytes())
        self._offsets.write((self.num_ids + lengths.cumsum()).tobytes())
        self.num_ids += len(flat)


def write_shards(
    src_path: Path,
    tgt_path: Path,
    tokenizer: Tokenizer,
    directory: Path,
    *,
    max_tokens: int | None = None,
    dropout: float = 0.0,
    seed: int = 0,
    augmentation: AugmentationConfig | None = None,
    label_rule: LabelRule | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Tokenize two parallel text files into a new folder.

    Args:
        src_path: The source text, one sentence per line.
        tgt_path: The target text, aligned by line.
        tokenizer: The tokenizer of both sides.
        directory: The folder to create.
        max_tokens: Skip and count pairs with more ids than this on a side, END_ID included.
        dropout: BPE-dropout, as in `Tokenizer.encode_src`.
        seed: Seed of the dropout and of the augmentation.
        augmentation: Changes some of the pairs, if it is enabled.
        label_rule: Labels some of the pairs.
        progress: Called with the number of pairs that are done.

    Raises:
        InputError: If the folder exists or a file cannot be read.

    """
    if directory.exists():
        hint = "choose another folder, or delete this one"
        raise InputError(message("{directory} already exists", directory=directory), hint=hint)
    largest = max(tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)
    dtype = "uint16" if largest <= 2**16 else "int32"
    num_pairs = num_too_long = 0
    pairs = read_pairs(CorpusConfig(src=src_path, tgt=tgt_path, allow_copies=True))
    with new_directory(directory) as folder:
        with ExitStack() as files:
            src, tgt = (_SideWriter(folder, side, dtype, files) for side in ("src", "tgt"))
            for raw in iter(lambda: list(islice(pairs, CHUNK_PAIRS)), []):
                chunk = raw
                chunk_seed = derive_seed(seed, "cut", num_pairs + num_too_long)
                if augmentation is not None and augmentation.enabled:
                    chunk = list(augment_pairs(chunk, augmentation, chunk_seed))
                if label_rule is not None:
                    chunk = list(label_pairs(chunk, label_rule, chunk_seed))
                kept = list(_encode_chunk(chunk, tokenizer, max_tokens, dropout, chunk_seed))
                src.append([ids for ids, _ in kept])
                tgt.append([ids for _, ids in kept])
                num_pairs += len(kept)
                num_too_long += len(chunk) - len(kept)
                if progress is not None:
                    progress(num_pairs + num_too_long)
        meta = _Meta(
            FORMAT_VERSION,
            num_pairs,
            num_too_long,
            src.num_ids,
            tgt.num_ids,
            dtype,
            tokenizer.fingerprint,
        )
        (folder / META_FILE).write_text(json.dumps(meta._asdict(), indent=2), encoding="utf-8")


def _encode_chunk(
    chunk: list[Pair], tokenizer: Tokenizer, max_tokens: int | None, dropout: float, seed: int
) -> Iterator[tuple[list[int], list[int]]]:
    src_lists = tokenizer.encode_src([pair.src for pair in chunk], dropout=dropout, seed=seed)
    tgt_lists = tokenizer.encode_tgt([pair.tgt for pair in chunk], dropout=dropout, seed=seed + 1)
    for src, tgt in zip(src_lists, tgt_lists, strict=True):
        if max_tokens is None or max(len(src), len(tgt)) <= max_tokens:
            yield src, tgt


class _Meta(NamedTuple):
    format: int
    num_pairs: int
    num_too_long: int
    num_src_ids: int
    num_tgt_ids: int
    dtype: str
    fingerprint: str


class TokenizedCorpus:
    """Pairs of id sequences that end with END_ID; `load` opens a folder."""

    def __init__(self, directory: Path, meta: _Meta) -> None:
        self.directory = directory
        self.num_too_long = meta.num_too_long
        """Number of pairs that were skipped because they have too many tokens."""
        self.fingerprint = meta.fingerprint
        """Fingerprint of the tokenizer of the ids."""
        self._num_pairs = meta.num_pairs
        self._src_ids = _memory_map(directory / "src.ids", meta.dtype, meta.num_src_ids)
        self._tgt_ids = _memory_map(directory / "tgt.ids", meta.dtype, meta.num_tgt_ids)
        num_pairs = meta.num_pairs
        self._src_offsets = _map_offsets(directory / "src.offsets", num_pairs, meta.num_src_ids)
        self._tgt_offsets = _map_offsets(directory / "tgt.offsets", num_pairs, meta.num_tgt_ids)

    @classmethod
    def load(cls, directory: Path) -> TokenizedCorpus:
        """Map a folder that `write_shards` wrote; raise an `InputError` if it is damaged."""
        try:
            meta = _Meta(**json.loads((directory / META_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged_error(
                directory, message("{name} cannot be read ({error})", name=META_FILE, error=error)
            ) from None
        if meta.format != FORMAT_VERSION:
            raise _damaged_error(
                directory,
                message(
                    "its format is {format}, this version reads {known}",
                    format=meta.format,
                    known=FORMAT_VERSION,
                ),
            )
        return cls(directory, meta)

    def __len__(self) -> int:
        return self._num_pairs

    @cached_property
    def src_lengths(self) -> NDArray[np.int32]:
        """Number of ids of each source, END_ID included."""
        return np.diff(self._src_offsets).astype(np.int32)

    @cached_property
    def tgt_lengths(self) -> NDArray[np.int32]:
        """Number of ids of each target, END_ID included."""
        return np.diff(self._tgt_offsets).astype(np.int32)

    def count_src_ids(self, vocab_size: int) -> NDArray[np.int64]:
        """Return how often each id occurs in the sources."""
        return _count_ids(self._src_ids, vocab_size)

    def count_tgt_ids(self, vocab_size: int) -> NDArray[np.int64]:
        """Return how often each id occurs in the targets."""
        return _count_ids(self._tgt_ids, vocab_size)

    def pair(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of the pair at an index."""
        if not 0 <= index < self._num_pairs:
            raise IndexError(f"pair {index} of {self._num_pairs}")
        src_begin, src_end = self._src_offsets[index : index + 2]
        tgt_begin, tgt_end = self._tgt_offsets[index : index + 2]
        return (
            self._src_ids[src_begin:src_end].astype(np.int64),
            self._tgt_ids[tgt_begin:tgt_end].astype(np.int64),
        )

    def concatenate(
        self, indices: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of several pairs, concatenated on each side."""
        sides = ((self._src_offsets, self._src_ids), (self._tgt_offsets, self._tgt_ids))
        src, tgt = (
            ids[_expand_ranges(offsets, indices)].astype(np.int64) for offsets, ids in sides
        )
        return src, tgt


def _count_ids(ids: NDArray[Any], vocab_size: int) -> NDArray[np.int64]:
    counts = np.zeros(vocab_size, np.int64)
    for start in range(0, len(ids), COUNTED_IDS):
        counts += np.bincount(ids[start : start + COUNTED_IDS], minlength=vocab_size)
    return counts


def _expand_ranges(offsets: NDArray[Any], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated ranges offsets[i] ... offsets[i + 1] - 1 of all indices i."""
    begins = offsets[indices].astype(np.int64)
    lengths = offsets[indices + 1].astype(np.int64) - begins
    ends = lengths.cumsum()
    shifts = np.repeat(begins - (ends - lengths), lengths)
    return shifts + np.arange(len(shifts))


def _map_offsets(path: Path, num_pairs: int, num_ids: int) -> NDArray[Any]:
    """Map the starts of the sentences; they must rise from 0 to the number of ids."""
    offsets = _memory_map(path, "int64", num_pairs + 1)
    if offsets[0] != 0 or offsets[-1] != num_ids or (np.diff(offsets) < 0).any():
        raise _damaged_error(path.parent, message("{name} has impossible values", name=path.name))
    return offsets


def _memory_map(path: Path, dtype: str, count: int) -> NDArray[Any]:
    expected = count * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else -1
    if size != expected:
        reason = (
            message("{name} is missing", name=path.name)
            if size < 0
            else message(
                "{name} has {size:,} bytes of {expected:,}",
                name=path.name,
                size=size,
                expected=expected,
            )
        )
        raise _damaged_error(path.parent, reason)
    if count == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r")


def _damaged_error(directory: Path, reason: str) -> InputError:
    hint = message(
        "delete the folder {parent}; it will be created again from the corpus",
        parent=directory.parent,
    )
    return InputError(
        message(
            "the tokenized corpus {directory} is damaged: {reason}",
            directory=directory,
            reason=reason,
        ),
        hint=hint,
    )
