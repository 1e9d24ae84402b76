"""The steps of preparing a corpus, each a pass over files in the folder that is being made.

`attendo.data.prepare` calls them in their order: read dev where it is given, clean, else take dev
out, train the tokenizer, tokenise, write the report.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.data.cleaning import CleaningConfig, CleaningReport, ReportRow, clean
from attendo.data.corpus_config import CorpusConfig
from attendo.data.dev_split import split
from attendo.data.readers import read_pairs
from attendo.data.seen_hashes import SeenHashes, hash_pair
from attendo.data.shards import TokenizedCorpus, write_shards
from attendo.data.tokenizer_training import train_on_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.dev_split import DevSelection
    from attendo.data.pair import Pair
    from attendo.data.tokenizer import Tokenizer, TokenizerConfig

    Progress = Callable[[str, int, int | None], None]

TELL_EVERY = 10_000
"""Pairs between two words about the progress."""
ONLY_EMPTY = CleaningConfig(
    max_words=None,
    max_characters=None,
    max_length_ratio=None,
    drop_duplicates=False,
    max_copy_words=None,
)
"""A dev set that is given is measured as it is."""


class Cuts(NamedTuple):
    """How often, and how, each pair of train is cut into pieces."""

    number: int = 1
    dropout: float = 0.0
    seed: int = 0


def name_shards(corpus: int, cut: int) -> str:
    """Name the folder of one corpus of train, cut in one of its ways.

    >>> name_shards(0, 0), name_shards(0, 2)
    ('train.0', 'train.0.2')
    """
    return f"train.{corpus}" if cut == 0 else f"train.{corpus}.{cut}"


class _TextFiles(NamedTuple):
    """Two parallel text files on the way."""

    src: Path
    tgt: Path

    def write(self, pairs: Iterable[Pair]) -> int:
        """Write a stream of pairs and count them."""
        count = 0
        with (
            self.src.open("w", encoding="utf-8", newline="\n") as src,
            self.tgt.open("w", encoding="utf-8", newline="\n") as tgt,
        ):
            for pair in pairs:
                src.write(_one_line(pair.src))
                tgt.write(_one_line(pair.tgt))
                count += 1
        return count

    def read(self) -> Iterator[Pair]:
        """Read them back."""
        return read_pairs(CorpusConfig(src=self.src, tgt=self.tgt, allow_copies=True))

    def delete(self) -> None:
        """Delete both."""
        self.src.unlink()
        self.tgt.unlink()


def _one_line(text: str) -> str:
    return text.replace("\n", " ") + "\n"  # only a text that was not normalised has a line end


@dataclass(slots=True)
class _Part:
    """One corpus on its way through the steps."""

    config: CorpusConfig
    number: int
    text: _TextFiles
    report: CleaningReport = field(default_factory=CleaningReport)
    num_train: int = 0
    num_dev: int = 0
    num_too_long: int = 0

    def rows(self) -> list[ReportRow]:
        """Give the table of the corpus: what was read is kept, goes to dev, or has a reason."""
        read, _, *reasons = self.report.rows()

        def row(what: str, count: int) -> ReportRow:
            return ReportRow(what, count, count / max(read.num_pairs, 1), "")

        moved, too_long = (
            row("moved to dev", self.num_dev),
            row("too many tokens", self.num_too_long),
        )
        occurred = (entry for entry in (moved, *reasons, too_long) if entry.num_pairs)
        return [read, row("kept", self.num_train), *occurred]


class Preparation:
    """The corpora on their way from raw text to ids, in one folder."""

    def __init__(self, corpora: Sequence[CorpusConfig], folder: Path, tell: Progress) -> None:
        self.folder = folder
        self.dev_pairs: list[Pair] = []
        self._tell = tell
        self._num_dev_too_long = 0
        self._is_dev_given = False
        self._unseen: dict[str, int] = {}
        self._dev_hashes: set[int] = set()
        self._num_leaked = 0
        self._parts = [
            _Part(corpus, number, self._files(f"cleaned.{number}"))
            for number, corpus in enumerate(corpora)
        ]

    def read_dev(self, config: CorpusConfig, *, normalise: bool) -> None:
        """Read the dev set that was given; only pairs with an empty side are left out."""
        cleaning = ONLY_EMPTY.replace(normalise=normalise)
        self.dev_pairs = list(clean(read_pairs(config), cleaning, CleaningReport()))
        self._is_dev_given = True
        self._dev_hashes = {hash_pair(*pair) for pair in self.dev_pairs}

    def count_leak(self, pair: Pair) -> None:
        """Count a pair of train that the given dev set has too: its figures would flatter."""
        self._num_leaked += hash_pair(*pair) in self._dev_hashes

    def clean(self, config: CleaningConfig, observe: Callable[[Pair], None]) -> None:
        """Read, normalise and filter every corpus into text files; `observe` sees what is kept."""
        seen = SeenHashes()
        done = 0
        for part in self._parts:
            raw = self._told("clean", read_pairs(part.config), done, None)
            rules = config if part.config.text is None else config.replace(max_copy_words=None)
            pairs = clean(raw, rules, part.report, seen=seen)
            part.num_train = part.text.write(_shown(pairs, observe))
            done += part.report.num_read
        self._check_train()

    def take_dev(self, selection: DevSelection) -> None:
        """Move a dev set out of the cleaned text, and whatever shares a sentence with it."""
        done, total = 0, self._num_train
        for part in self._parts:
            if not part.num_train:
                continue
            moved: list[Pair] = []
            raw = self._told("split", part.text.read(), done, total)
            done += part.num_train
            train = self._files(f"train-text.{part.number}")
            num_train = train.write(_train_only(split(raw, selection, part.report), moved))
            part.text.delete()
            part.text, part.num_train, part.num_dev = train, num_train, len(moved)
            self.dev_pairs += moved
        self._check_train()

    def train_tokenizer(self, config: TokenizerConfig, seed: int) -> Tokenizer:
        """Learn the tokenizer from all that is left for training."""
        self._tell("tokenizer", 0, None)
        files = [part.text for part in self._parts if part.num_train]
        return train_on_files(files, config, num_pairs=self._num_train, seed=seed)

    def tokenise(self, tokenizer: Tokenizer, max_tokens: int, cuts: Cuts) -> None:
        """Write the ids of train and dev; the text of train is no longer needed."""
        done, total = 0, self._num_train * cuts.number
        for part in self._parts:
            for number in range(cuts.number if part.num_train else 0):
                tell = partial(self._tell_more, "tokenise", done, total)
                done += part.num_train
                write_shards(
                    *part.text,
                    tokenizer,
                    self.folder / name_shards(part.number, number),
                    max_tokens=max_tokens,
                    dropout=cuts.dropout,
                    seed=cuts.seed + number,
                    progress=tell,
                )
            part.text.delete()
        for part in self._parts:
            if part.num_train:
                first = TokenizedCorpus.load(self.folder / name_shards(part.number, 0))
                part.num_too_long = first.num_too_long
                part.num_train -= part.num_too_long
        self._check_train()
        self._tokenise_dev(tokenizer, max_tokens)

    def _leave_unseen(self, tokenizer: Tokenizer) -> None:
        """Leave labels out of dev that training has not: a class's only line may have gone there.

        A dev set that was given is refused instead: its figures would be of something else.
        """
        if tokenizer.tgt_kind != "label":
            return
        known = set(tokenizer.labels)
        self._unseen = dict(Counter(p.tgt for p in self.dev_pairs if p.tgt not in known))
        if self._unseen and self._is_dev_given:
            told = ", ".join(f"'{label}' ({count})" for label, count in self._unseen.items())
            reason = f"dev has labels that training has not, with so many lines: {told}"
            remedy = "mend their spelling, or move some of these lines from dev to training"
            raise InputError(reason, remedy=remedy)
        self.dev_pairs = [pair for pair in self.dev_pairs if pair.tgt in known]

    def _tokenise_dev(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._leave_unseen(tokenizer)
        sources = tokenizer.encode_src([pair.src for pair in self.dev_pairs])
        targets = tokenizer.encode_tgt([pair.tgt for pair in self.dev_pairs])
        fitting = [
            pair
            for pair, src, tgt in zip(self.dev_pairs, sources, targets, strict=True)
            if max(len(src), len(tgt)) <= max_tokens
        ]
        if not fitting:
            reason = (
                f"none of the {len(self.dev_pairs)} pairs of dev has at most {max_tokens} tokens"
            )
            raise InputError(reason, remedy="raise max_tokens, or give another dev set")
        self._num_dev_too_long = len(self.dev_pairs) - len(fitting)
        self.dev_pairs = fitting
        files = self._files("dev")
        files.write(fitting)
        write_shards(*files, tokenizer, self.folder / "dev")

    def write_report(self) -> None:
        """Write `report.json`: for each corpus its rows and what is left, and the same of dev."""
        corpora = [
            {
                "title": part.config.title,
                "weight": part.config.weight,
                "num_train": part.num_train,
                "rows": [row._asdict() for row in part.rows()],
            }
            for part in self._parts
        ]
        dev = {
            "num_pairs": len(self.dev_pairs),
            "num_too_long": self._num_dev_too_long,
            "num_in_train": self._num_leaked,
            **({"unseen": self._unseen} if self._unseen else {}),
        }
        report: dict[str, Any] = {"corpora": corpora, "dev": dev}
        text = json.dumps(report, indent=2, ensure_ascii=False)
        (self.folder / "report.json").write_text(text + "\n", encoding="utf-8")

    def _files(self, name: str) -> _TextFiles:
        return _TextFiles(self.folder / f"{name}.src", self.folder / f"{name}.tgt")

    @property
    def _num_train(self) -> int:
        return sum(part.num_train for part in self._parts)

    def _tell_more(self, stage: str, before: int, total: int | None, count: int) -> None:
        self._tell(stage, before + count, total)

    def _told(
        self, stage: str, pairs: Iterable[Pair], before: int, total: int | None
    ) -> Iterator[Pair]:
        """Tell of the progress as pairs go by."""
        count = 0
        for pair in pairs:
            yield pair
            count += 1
            if count % TELL_EVERY == 0:
                self._tell_more(stage, before, total, count)
        self._tell_more(stage, before, total, count)

    def _check_train(self) -> None:
        """Refuse to go on with nothing, and show where everything went."""
        if self._num_train:
            return
        lines = [
            f"  {part.config.title}: {row.what}: {row.num_pairs:,} {row.example}".rstrip()
            for part in self._parts
            for row in part.rows()
        ]
        reason = "\n".join(["no pair is left to train on", *lines])
        raise InputError(reason, remedy="give more text, or loosen the filters that are named")


def _shown(pairs: Iterable[Pair], observe: Callable[[Pair], None]) -> Iterator[Pair]:
    for pair in pairs:
        observe(pair)
        yield pair


def _train_only(routed: Iterable[tuple[str, Pair]], moved: list[Pair]) -> Iterator[Pair]:
    """Pass the pairs of train on, and keep those of dev."""
    for route, pair in routed:
        if route == "dev":
            moved.append(pair)
        else:
            yield pair
