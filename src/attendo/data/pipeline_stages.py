"""The stages of the data pipeline, each a pass over files in the folder that is being built.

`attendo.data.pipeline` decides which stages run, and in which order: read a given dev set, clean,
split off a dev set if none is given, train the tokenizer, tokenize, write the report.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.data.check import clean_corpus, read_dev_pairs
from attendo.data.check_rules import CheckedData, find_problems
from attendo.data.cleaning import ReportRow
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.corpus_probe import CorpusProbe
from attendo.data.dedup import HashSet64, hash_pair
from attendo.data.dev_split import split_pairs
from attendo.data.readers import read_pairs
from attendo.data.shards import TokenizedCorpus, write_shards
from attendo.data.tokenizer_training import train_on_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.augmentation import AugmentationConfig
    from attendo.data.cleaning import CleaningConfig, CleaningReport
    from attendo.data.config import DataConfig
    from attendo.data.dev_split import DevSelection
    from attendo.data.findings import Finding
    from attendo.data.labels import LabelRule
    from attendo.text.tokenizer import Tokenizer, TokenizerConfig

    Progress = Callable[[str, int, int | None], None]

PROGRESS_INTERVAL = 10_000
"""Number of pairs between two progress reports."""
REPORT_FILE = "report.json"


class SubwordSampling(NamedTuple):
    """How many segmentations of each training pair are sampled, and how."""

    num_samples: int = 1
    dropout: float = 0.0
    seed: int = 0
    augmentation: AugmentationConfig | None = None
    label_rule: LabelRule | None = None


def shard_folder_name(corpus: int, sample_index: int) -> str:
    """Return the folder name of a training corpus in one of its segmentations.

    >>> shard_folder_name(0, 0), shard_folder_name(0, 2)
    ('train.0', 'train.0.2')
    """
    return f"train.{corpus}" if sample_index == 0 else f"train.{corpus}.{sample_index}"


class _ParallelFiles(NamedTuple):
    """Two temporary parallel text files."""

    src: Path
    tgt: Path

    def write(self, pairs: Iterable[Pair]) -> int:
        """Write pairs and return their number."""
        count = 0
        with (
            self.src.open("w", encoding="utf-8", newline="\n") as src,
            self.tgt.open("w", encoding="utf-8", newline="\n") as tgt,
        ):
            for pair in pairs:
                src.write(_to_line(pair.src))
                tgt.write(_to_line(pair.tgt))
                count += 1
        return count

    def read(self) -> Iterator[Pair]:
        """Yield the pairs of both files."""
        return read_pairs(CorpusConfig(src=self.src, tgt=self.tgt, allow_copies=True))

    def delete(self) -> None:
        """Delete both files."""
        self.src.unlink()
        self.tgt.unlink()


def _to_line(text: str) -> str:
    return text.replace("\n", " ") + "\n"  # only a text that was not normalized has a line break


@dataclass(slots=True)
class _CorpusState:
    """One corpus between the stages: its current files and counts."""

    probe: CorpusProbe
    index: int
    files: _ParallelFiles
    num_train: int = 0
    num_dev: int = 0
    num_too_long: int = 0

    @property
    def config(self) -> CorpusConfig:
        """The files of the corpus."""
        return self.probe.config

    @property
    def report(self) -> CleaningReport:
        """What was kept and dropped."""
        return self.probe.report

    def rows(self) -> list[ReportRow]:
        """Return the report: every pair that was read is kept, moved to dev or dropped."""
        read, _, *reasons = self.report.rows()

        def make_row(what: str, count: int) -> ReportRow:
            return ReportRow(what, count, count / max(read.num_pairs, 1), "")

        moved, too_long = (
            make_row("moved to dev", self.num_dev),
            make_row("too many tokens", self.num_too_long),
        )
        occurred = (entry for entry in (moved, *reasons, too_long) if entry.num_pairs)
        return [read, make_row("kept", self.num_train), *occurred]


class PipelineStages:
    """The stages from raw text to ids, as methods that share the state of all corpora."""

    def __init__(self, corpora: Sequence[CorpusConfig], folder: Path, progress: Progress) -> None:
        self.folder = folder
        self.dev_pairs: list[Pair] = []
        self._progress = progress
        self._num_dev_too_long = 0
        self._is_dev_given = False
        self._unseen_labels: dict[str, int] = {}
        self._dev_probe: CorpusProbe | None = None
        self._dev_hashes = HashSet64()
        self.num_overlapping = 0
        self._findings: list[Finding] = []
        self._stages = [
            _CorpusState(CorpusProbe(corpus), number, self._make_files(f"cleaned.{number}"))
            for number, corpus in enumerate(corpora)
        ]

    def read_dev(self, config: CorpusConfig, *, normalize: bool) -> None:
        """Read the given dev set; only pairs with an empty side are dropped."""
        self._dev_probe = CorpusProbe(config)
        self.dev_pairs = list(read_dev_pairs(self._dev_probe, normalize=normalize))
        self._is_dev_given = True
        for pair in self.dev_pairs:
            self._dev_hashes.add(hash_pair(*pair))

    def clean(
        self,
        config: CleaningConfig,
        observe: Callable[[Pair], None] | None = None,
        *,
        keep_overlap: bool = False,
    ) -> None:
        """Read, normalize and filter every corpus into text files; `observe` is called per pair.

        Pairs that are also in the given dev set are dropped, unless `keep_overlap`.
        """
        seen = HashSet64()
        excluded = HashSet64() if keep_overlap else self._dev_hashes
        done = 0
        for stage in self._stages:
            raw = self._with_progress("clean", read_pairs(stage.config), done, None)
            pairs = clean_corpus(raw, stage.probe, config, seen_hashes=seen, dev_hashes=excluded)
            stage.num_train = stage.files.write(_tap(pairs, observe or self._count_overlap))
            done += stage.report.num_read
            self.num_overlapping += stage.report.num_dropped.get("also in dev", 0)

    def _count_overlap(self, pair: Pair) -> None:
        """Count a kept training pair that is also in the given dev set."""
        self.num_overlapping += hash_pair(*pair) in self._dev_hashes

    def check(self, config: DataConfig, tokenizer: Tokenizer | None) -> list[Finding]:
        """Return what the data check finds; raise an error if no training pair is left."""
        self._check_train()
        corpora = [stage.probe for stage in self._stages]
        checked = CheckedData(config, corpora, self._dev_probe, tokenizer)
        self._findings = find_problems(checked)
        return self._findings

    def split_dev(self, selection: DevSelection) -> None:
        """Move the selected dev set out of the cleaned text, and drop pairs that share a side."""
        done, total = 0, self._num_train
        for stage in self._stages:
            if not stage.num_train:
                continue
            moved: list[Pair] = []
            raw = self._with_progress("split", stage.files.read(), done, total)
            done += stage.num_train
            train = self._make_files(f"train-text.{stage.index}")
            num_train = train.write(_collect_dev(split_pairs(raw, selection, stage.report), moved))
            stage.files.delete()
            stage.files, stage.num_train, stage.num_dev = train, num_train, len(moved)
            self.dev_pairs += moved
        self._check_train()

    def train_tokenizer(
        self, config: TokenizerConfig, seed: int, symbols: Sequence[str] = ()
    ) -> Tokenizer:
        """Train the tokenizer on the remaining training text; each symbol is a piece."""
        self._progress("tokenizer", 0, None)
        files = [stage.files for stage in self._stages if stage.num_train]
        return train_on_files(files, config, num_pairs=self._num_train, seed=seed, symbols=symbols)

    def tokenize(self, tokenizer: Tokenizer, max_tokens: int, sampling: SubwordSampling) -> None:
        """Write the ids of train and dev, and delete the text of train."""
        done, total = 0, self._num_train * sampling.num_samples
        for stage in self._stages:
            for sample_index in range(sampling.num_samples if stage.num_train else 0):
                progress = partial(self._report_progress, "tokenize", done, total)
                done += stage.num_train
                write_shards(
                    *stage.files,
                    tokenizer,
                    self.folder / shard_folder_name(stage.index, sample_index),
                    max_tokens=max_tokens,
                    dropout=sampling.dropout,
                    seed=sampling.seed + sample_index,
                    augmentation=sampling.augmentation,
                    label_rule=sampling.label_rule,
                    progress=progress,
                )
            stage.files.delete()
        for stage in self._stages:
            if stage.num_train:
                first = TokenizedCorpus.load(self.folder / shard_folder_name(stage.index, 0))
                stage.num_too_long = first.num_too_long
                stage.num_train -= stage.num_too_long
        self._check_train()
        self._tokenize_dev(tokenizer, max_tokens)

    def _drop_unseen_labels(self, tokenizer: Tokenizer) -> None:
        """Drop labels from dev that do not occur in train: their only lines may have moved to dev.

        If the dev set was given, raise an error instead, since its scores would be wrong.
        """
        if tokenizer.tgt_kind != "label":
            return
        known = set(tokenizer.labels)
        self._unseen_labels = dict(Counter(p.tgt for p in self.dev_pairs if p.tgt not in known))
        if self._unseen_labels and self._is_dev_given:
            listing = ", ".join(
                f"'{label}' ({count})" for label, count in self._unseen_labels.items()
            )
            reason = message(
                "dev has labels that do not occur in train (with their number of lines): {listing}",
                listing=listing,
            )
            hint = "fix their spelling, or move some of these lines from dev to train"
            raise InputError(reason, hint=hint)
        self.dev_pairs = [pair for pair in self.dev_pairs if pair.tgt in known]

    def _tokenize_dev(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._drop_unseen_labels(tokenizer)
        sources = tokenizer.encode_src([pair.src for pair in self.dev_pairs])
        targets = tokenizer.encode_tgt([pair.tgt for pair in self.dev_pairs])
        fitting = [
            pair
            for pair, src, tgt in zip(self.dev_pairs, sources, targets, strict=True)
            if max(len(src), len(tgt)) <= max_tokens
        ]
        if not fitting:
            reason = message(
                "none of the {count} pairs of dev has at most {max_tokens} tokens",
                count=len(self.dev_pairs),
                max_tokens=max_tokens,
            )
            raise InputError(reason, hint="raise max_tokens, or give another dev set")
        self._num_dev_too_long = len(self.dev_pairs) - len(fitting)
        self.dev_pairs = fitting
        files = self._make_files("dev")
        files.write(fitting)
        write_shards(*files, tokenizer, self.folder / "dev")

    def write_report(self) -> None:
        """Write `report.json`: the rows and the size of each corpus, and the counts of dev."""
        corpora = [
            {
                "title": stage.config.title,
                "weight": stage.config.weight,
                "num_train": stage.num_train,
                "rows": [row._asdict() for row in stage.rows()],
            }
            for stage in self._stages
        ]
        dev = {
            "num_pairs": len(self.dev_pairs),
            "num_too_long": self._num_dev_too_long,
            "num_in_train": self.num_overlapping,
            **({"unseen": self._unseen_labels} if self._unseen_labels else {}),
        }
        report: dict[str, Any] = {
            "corpora": corpora,
            "dev": dev,
            "check": [finding.to_json() for finding in self._findings],
        }
        text = json.dumps(report, indent=2, ensure_ascii=False)
        (self.folder / REPORT_FILE).write_text(text + "\n", encoding="utf-8")

    def _make_files(self, name: str) -> _ParallelFiles:
        return _ParallelFiles(self.folder / f"{name}.src", self.folder / f"{name}.tgt")

    @property
    def _num_train(self) -> int:
        return sum(stage.num_train for stage in self._stages)

    def _report_progress(self, stage: str, before: int, total: int | None, count: int) -> None:
        self._progress(stage, before + count, total)

    def _with_progress(
        self, stage: str, pairs: Iterable[Pair], before: int, total: int | None
    ) -> Iterator[Pair]:
        """Yield the pairs and report progress."""
        count = 0
        for pair in pairs:
            yield pair
            count += 1
            if count % PROGRESS_INTERVAL == 0:
                self._report_progress(stage, before, total, count)
        self._report_progress(stage, before, total, count)

    def _check_train(self) -> None:
        """Raise an error with the report of every corpus if no training pair is left."""
        if self._num_train:
            return
        lines = [
            message(
                "  {corpus}: {what}: {count}  {example}",
                corpus=stage.config.title,
                what=message(row.what),
                count=f"{row.num_pairs:,}",
                example=row.example,
            )
            for stage in self._stages
            for row in stage.rows()
        ]
        reason = join_messages("\n", [message("no pair is left to train on"), *lines])
        hint = "give more text, or relax the filters listed above"
        if any("also in dev" in stage.report.num_dropped for stage in self._stages):
            hint = "give a dev set that is not part of train, or none: it is then split off train"
        raise InputError(reason, hint=hint)


def _tap(pairs: Iterable[Pair], observe: Callable[[Pair], None]) -> Iterator[Pair]:
    for pair in pairs:
        observe(pair)
        yield pair


def _collect_dev(routed: Iterable[tuple[str, Pair]], dev_pairs: list[Pair]) -> Iterator[Pair]:
    """Yield the pairs of train, and append those of dev to `dev_pairs`."""
    for split_name, pair in routed:
        if split_name == "dev":
            dev_pairs.append(pair)
        else:
            yield pair
