"""The corrections that a model is adapted to: from a translation memory or a file of pairs."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import read_pairs
from attendo.memory.jsonl import read_jsonl
from attendo.memory.store import TranslationMemory
from attendo.memory.tmx import read_tmx
from attendo.memory.unit import normalize_source
from attendo.text.languages import match_language
from attendo.text.lines import check_readable, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.memory.unit import Unit

SQLITE_MAGIC = b"SQLite format 3\0"
READERS = {".tmx": read_tmx, ".jsonl": read_jsonl}
MIN_CORRECTIONS = 10
"""With fewer, nothing could be held back to measure what was learned."""
HELD_BACK_SHARE = 0.1


class Corrections(NamedTuple):
    """What is trained on, and what is held back to measure."""

    train: list[Pair]
    held_back: list[Pair]

    @property
    def total(self) -> int:
        """All of them."""
        return len(self.train) + len(self.held_back)


def read_corrections(path: Path, src_lang: str, tgt_lang: str) -> Corrections:
    """Return the corrections of a store, or the pairs of a file, for two languages.

    Of a store, units that were imported are left out. The same lines are held back every time: the
    hash of a source decides, so that a later adaptation is measured on what no earlier one has
    seen.
    """
    check_readable(path)
    pairs = {
        normalize_source(src): Pair(normalize_source(src), normalize_source(tgt))
        for src, tgt in _read_pairs(path, src_lang, tgt_lang)
        if src.strip() and tgt.strip()
    }
    if len(pairs) < MIN_CORRECTIONS:
        raise InputError(
            message(
                "{path} has {count} corrections from '{src}' to '{tgt}', at least {min} are needed",
                path=path, count=len(pairs), src=src_lang, tgt=tgt_lang, min=MIN_CORRECTIONS,
            ),
            hint="collect more on the page of attendo serve --memory",
        )  # fmt: skip
    ranked = sorted(pairs.values(), key=lambda pair: _rank(pair.src))
    limit = int(HELD_BACK_SHARE * 2**64)
    count = max(sum(_rank(pair.src) < limit for pair in ranked), 1)
    return Corrections(ranked[count:], ranked[:count])


def sample_pairs(
    corpora: Sequence[CorpusConfig], count: int, *, without: Sequence[Pair] = (), seed: int = 1
) -> list[Pair]:
    """Return a random sample of the pairs of corpora, read once from beginning to end.

    Pairs that share a side with one of `without` are left out.
    """
    left_out = {text for pair in without for text in pair}
    chooser = random.Random(seed)  # noqa: S311 - no secret
    sample: list[Pair] = []
    lines = (
        Pair(" ".join(src.split()), " ".join(tgt.split()))
        for corpus in corpora
        for src, tgt in read_pairs(corpus)
    )
    pairs = (one for one in lines if one.src not in left_out and one.tgt not in left_out)
    for number, pair in enumerate(pairs):
        if len(sample) < count:
            sample.append(pair)
        elif (index := chooser.randrange(number + 1)) < count:
            sample[index] = pair
    return sample


def write_pairs(folder: Path, name: str, pairs: Iterable[Pair]) -> tuple[Path, Path]:
    """Write pairs as two files of lines, and return their paths."""
    pairs = list(pairs)
    paths = folder / f"{name}.src", folder / f"{name}.tgt"
    for path, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


def _rank(source: str) -> int:
    return int.from_bytes(sha256(source.encode()).digest()[:8])


def _read_pairs(path: Path, src_lang: str, tgt_lang: str) -> Iterator[tuple[str, str]]:
    with open_bytes(path) as stream:
        is_store = stream.peek(len(SQLITE_MAGIC)).startswith(SQLITE_MAGIC)
        reader = READERS.get(path.suffix.lower())
        if reader is not None and not is_store:
            yield from _select(reader(stream), src_lang, tgt_lang)
            return
    if is_store:
        with TranslationMemory(path, create=False) as memory:
            corrected = (unit for unit in memory if unit.origin == "correction")
            yield from _select(corrected, src_lang, tgt_lang)
    else:
        config = CorpusConfig(path=path, src_lang=src_lang, tgt_lang=tgt_lang, allow_copies=True)
        yield from ((pair.src, pair.tgt) for pair in read_pairs(config))


def _select(units: Iterable[Unit], src_lang: str, tgt_lang: str) -> Iterator[tuple[str, str]]:
    for unit in units:
        if match_language(src_lang, [unit.src_lang]) and match_language(tgt_lang, [unit.tgt_lang]):
            yield unit.source, unit.target
