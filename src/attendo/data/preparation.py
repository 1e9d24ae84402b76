"""The steps of preparing a corpus, each a pass over files in the folder that is being made.

`attendo.data.prepare` calls them in their order: clean, take or read dev, train the tokenizer,
tokenise, write the report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.errors import InputError
from attendo.data.cleaning import CleaningConfig, CleaningReport, ReportRow, clean
from attendo.data.corpus_config import CorpusConfig
from attendo.data.dev_split import DevChooser, DevSplitConfig, split
from attendo.data.readers import read_pairs
from attendo.data.seen_hashes import SeenHashes
from attendo.data.shards import TokenizedCorpus, write_shards
from attendo.data.tokenizer import Tokenizer, TokenizerConfig, train_on_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.pair import Pair

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
            for count, pair in enumerate(pairs, 1):
                src.write(_one_line(pair.src))
                tgt.write(_one_line(pair.tgt))
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
        counts = {"kept": self.num_train, "moved to dev": self.num_dev}
        late = {"too many tokens": self.num_too_long}
        total = max(read.num_pairs, 1)
        kept, moved, too_long = (
            ReportRow(what, count, count / total, "") for what, count in (counts | late).items()
        )
        optional = [row for row in (moved, *reasons, too_long) if row.num_pairs]
        return [read, kept, *optional]


class Preparation:
    """The corpora on their way from raw text to ids, in one folder."""

    def __init__(self, corpora: Sequence[CorpusConfig], folder: Path, tell: Progress) -> None:
        self.folder = folder
        self.dev_pairs: list[Pair] = []
        self._tell = tell
        self._num_dev_too_long = 0
        self._parts = [
            _Part(corpus, number, self._files(f"cleaned.{number}"))
            for number, corpus in enumerate(corpora)
        ]

    def clean(self, config: CleaningConfig) -> None:
        """Read, normalise and filter every corpus into text files."""
        seen = SeenHashes()
        for part in self._parts:
            pairs = clean(
                self._told("clean", read_pairs(part.config)), config, part.report, seen=seen
            )
            part.num_train = part.text.write(pairs)
        self._check_train()

    def take_dev(self, size: int, disjoint: Literal["both", "source"], seed: int) -> None:
        """Move a dev set out of the cleaned text, and whatever shares a sentence with it."""
        chooser = DevChooser(DevSplitConfig(size=size, disjoint=disjoint, seed=seed))
        for part in self._cleaned():
            for pair in self._told("choose dev", part.text.read(), part.num_train):
                chooser.observe(pair)
        selection = chooser.choose()
        for part in self._cleaned():
            moved: list[Pair] = []
            routed = split(part.text.read(), selection, part.report)
            routed = self._told("split", routed, part.num_train)
            train = self._files(f"train-text.{part.number}")
            num_train = train.write(_train_only(routed, moved))
            part.text.delete()
            part.text, part.num_train, part.num_dev = train, num_train, len(moved)
            self.dev_pairs += moved
        self._check_train()

    def read_dev(self, config: CorpusConfig, *, normalise: bool) -> None:
        """Read the dev set that was given; only pairs with an empty side are left out."""
        cleaning = ONLY_EMPTY.replace(normalise=normalise)
        self.dev_pairs = list(clean(read_pairs(config), cleaning, CleaningReport()))

    def train_tokenizer(self, config: TokenizerConfig, seed: int) -> Tokenizer:
        """Learn the tokenizer from all that is left for training."""
        num_pairs = sum(part.num_train for part in self._parts)
        self._tell("tokenizer", 0, None)
        files = [part.text for part in self._cleaned()]
        return train_on_files(files, config, num_pairs=num_pairs, seed=seed)

    def tokenise(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        """Write the ids of train and dev; the text of train is no longer needed."""
        total = sum(part.num_train for part in self._parts)
        done = 0
        for part in self._parts:
            if part.num_train:
                folder = self.folder / f"train.{part.number}"
                before = done
                write_shards(
                    *part.text,
                    tokenizer,
                    folder,
                    max_tokens=max_tokens,
                    progress=lambda count, before=before: self._tell(
                        "tokenise", before + count, total
                    ),
                )
                done += part.num_train
                part.num_too_long = TokenizedCorpus.load(folder).num_too_long
                part.num_train -= part.num_too_long
            part.text.delete()
        self._check_train()
        self._tokenise_dev(tokenizer, max_tokens)

    def _tokenise_dev(self, tokenizer: Tokenizer, max_tokens: int) -> None:
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
        dev = {"num_pairs": len(self.dev_pairs), "num_too_long": self._num_dev_too_long}
        report: dict[str, Any] = {"corpora": corpora, "dev": dev}
        text = json.dumps(report, indent=2, ensure_ascii=False)
        (self.folder / "report.json").write_text(text + "\n", encoding="utf-8")

    def _files(self, name: str) -> _TextFiles:
        return _TextFiles(self.folder / f"{name}.src", self.folder / f"{name}.tgt")

    def _cleaned(self) -> list[_Part]:
        return [part for part in self._parts if part.num_train]

    def _told[T](self, stage: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
        for count, item in enumerate(items, 1):
            if count % TELL_EVERY == 0:
                self._tell(stage, count, total)
            yield item

    def _check_train(self) -> None:
        """Refuse to go on with nothing, and show where everything went."""
        if any(part.num_train for part in self._parts):
            return
        lines = [
            f"  {part.config.title}: {row.what}: {row.num_pairs:,} {row.example}".rstrip()
            for part in self._parts
            for row in part.rows()
        ]
        reason = "\n".join(["no pair is left to train on", *lines])
        raise InputError(reason, remedy="give more text, or loosen the filters that are named")


def _train_only(routed: Iterable[tuple[str, Pair]], moved: list[Pair]) -> Iterator[Pair]:
    """Pass the pairs of train on, and keep those of dev."""
    for route, pair in routed:
        if route == "dev":
            moved.append(pair)
        else:
            yield pair
