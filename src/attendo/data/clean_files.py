"""Cleans corpora into new files, once, before anything is trained on them: `attendo clean`.

Each corpus becomes two text files, each monolingual text one. `report.json` counts what was dropped
for which reason; `kept.tsv` and `dropped.tsv` have random samples, to be looked at. Memory grows by
16 bytes per pair, for duplicates and near duplicates.
"""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError
from attendo.core.files import new_directory
from attendo.core.message import message
from attendo.data.check_rules import CheckedData, find_problems
from attendo.data.cleaning import CleaningReport, clean_pairs
from attendo.data.config import DataConfig
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.corpus_probe import CorpusProbe
from attendo.data.dedup import HashSet64, hash_pair
from attendo.data.dev_split import DevSelector, DevSplitConfig, split_pairs
from attendo.data.findings import raise_errors
from attendo.data.pair_rules import HeldOutTexts, PairJudge, near_key
from attendo.data.readers import read_pairs
from attendo.text.language_guess import are_related, guess_language, language_script
from attendo.text.lines import check_readable, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from attendo.data.clean_config import CleanConfig, MonolingualText, ParallelCorpus
    from attendo.data.cleaning import Reason
    from attendo.data.findings import Finding

    Progress = Callable[[str, int, int | None], None]

NUM_SAMPLES = 100
"""Random examples per corpus and reason in `kept.tsv` and `dropped.tsv`."""
PROGRESS_INTERVAL = 5_000
NUM_GUESSED_LINES = 10_000
REPORT_FILE, KEPT_FILE, DROPPED_FILE = "report.json", "kept.tsv", "dropped.tsv"
MIN_TEXT_SHARE = 0.5
"""With fewer lines in its language, a monolingual file is the wrong one."""


class _Samples:
    """Random examples of each reason (reservoir sampling), always the same for the same corpus."""

    def __init__(self) -> None:
        self.examples: dict[str, list[Pair]] = {}
        self._counts: dict[str, int] = {}
        self._random = random.Random(1)  # noqa: S311 - a sample to look at

    def add(self, reason: str, pair: Pair) -> None:
        """Count an example and keep it with the right probability."""
        self._counts[reason] = count = self._counts.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < NUM_SAMPLES:
            examples.append(pair)
        elif (index := self._random.randrange(count)) < NUM_SAMPLES:
            examples[index] = pair


class _SampledReport(CleaningReport):
    """A cleaning report that also keeps random examples."""

    samples: _Samples

    def count_dropped(self, reason: Reason, pair: Pair) -> None:
        """Count a pair as read and dropped."""
        super().count_dropped(reason, pair)
        self.samples.add(reason, pair)


class FileCleaner:
    """Cleans the corpora and texts of a config into a folder.

    Args:
        config: what is read and dropped.
        folder: where the files are written.
        progress: called with the name of the corpus, the number of lines and None.

    """

    def __init__(self, config: CleanConfig, folder: Path, progress: Progress) -> None:
        self.config, self.folder, self._progress = config, folder, progress
        self._held_out = HeldOutTexts(line for path in config.exclude for line in read_lines(path))
        self._seen, self._near = HashSet64(), HashSet64()
        self._threshold = _find_threshold(config)
        self.rows: list[dict[str, Any]] = []
        self._num_moved: dict[str, int] = {}
        self._num_surplus: dict[str, int] = {}
        """The pairs of each corpus that are in dev."""
        self.findings: list[Finding] = []

    def clean_corpora(self) -> None:
        """Clean all corpora of pairs, check them together, and split off a dev set."""
        config = self.config
        selector = DevSelector(DevSplitConfig(size=max(config.dev_size, 1), seed=config.seed))
        probes, reports = [], []
        for corpus in config.corpora:
            probe, report = CorpusProbe(_plain(corpus)), _make_report()
            probe.report = report
            pairs = self._clean_corpus(corpus, probe)
            _write_pairs(self._files(corpus.name), _tap(pairs, selector.observe))
            probes.append(probe)
            reports.append(report)
        if not probes:
            return
        self._check(probes)
        if config.dev_size:
            self._split_dev(selector, reports)
        for corpus, report in zip(config.corpora, reports, strict=True):
            self._add_rows(corpus.name, corpus.title, report)

    def _clean_corpus(self, corpus: ParallelCorpus, probe: CorpusProbe) -> Iterator[Pair]:
        """Yield the pairs of a corpus that are kept."""
        config, report = self.config, probe.report
        judge = PairJudge(config.rules, (config.src_lang, config.tgt_lang))
        raw = self._read_labeled(corpus, report)
        scored = self._drop_low_scores(corpus, raw, report)
        cleaned = clean_pairs(probe.watch(scored), config.cleaning, report, seen_hashes=self._seen)
        for pair in cleaned:
            reason = judge.find_reason(pair) or self._find_known(pair)
            if reason is not None:
                report.move_to_dropped(reason, pair)
                continue
            probe.observe(pair)
            report.samples.add("kept", pair)  # type: ignore[attr-defined] # made by _make_report
            yield pair

    def _find_known(self, pair: Pair) -> Reason | None:
        """Return whether a pair is almost one of the earlier ones, or in a test set."""
        rules = self.config.rules
        if not rules.near_duplicates and not len(self._held_out):
            return None
        keys = [near_key(text) for text in dict.fromkeys(pair)]
        if self._held_out.contain(keys):
            return "also in a test set"
        if rules.enabled and rules.near_duplicates and any(keys):
            return None if self._near.add(hash_pair(keys[0], keys[-1])) else "near duplicate"
        return None

    def _read_labeled(self, corpus: ParallelCorpus, report: CleaningReport) -> Iterator[Pair]:
        pairs = self._count(corpus.name, read_pairs(_plain(corpus)))
        if corpus.labels is None:
            yield from pairs
            return
        for pair, label in _align(pairs, read_lines(corpus.labels), corpus, corpus.labels):
            if corpus.uses(label.strip()):
                yield pair
            else:
                report.count_dropped("left-out set", pair)

    def _drop_low_scores(
        self, corpus: ParallelCorpus, pairs: Iterator[Pair], report: CleaningReport
    ) -> Iterator[Pair]:
        if corpus.scores is None:
            yield from pairs
            return
        for pair, line in _align(pairs, read_lines(corpus.scores), corpus, corpus.scores):
            if _read_score(line) >= self._threshold:
                yield pair
            else:
                report.count_dropped("low score", pair)

    def _check(self, probes: Sequence[CorpusProbe]) -> None:
        """Raise an error if nothing is left, or if the sides do not belong together."""
        config = self.config
        for probe in probes:
            if not probe.report.num_kept:
                raise _all_dropped_error(probe.config.title, probe.report)
        data = DataConfig(
            corpora=tuple(probe.config for probe in probes),
            src_lang=config.src_lang,
            tgt_lang=config.tgt_lang,
        )
        self.findings = find_problems(CheckedData(data, probes, None))
        raise_errors(self.findings)

    def _split_dev(self, selector: DevSelector, reports: Sequence[CleaningReport]) -> None:
        """Move the dev set out of the files."""
        selection = selector.select()
        dev: list[Pair] = []
        for corpus, report in zip(self.config.corpora, reports, strict=True):
            files = self._files(corpus.name)
            whole = [path.rename(path.with_name(f".{path.name}.whole")) for path in files]
            text = CorpusConfig(src=whole[0], tgt=whole[1], allow_copies=True)
            routed = split_pairs(read_pairs(text), selection, report)
            num_before = len(dev)
            _write_pairs(files, (pair for name, pair in routed if _keep_dev(name, pair, dev)))
            self._num_moved[corpus.name] = len(dev) - num_before
            for path in whole:
                path.unlink()
        _write_pairs(self._files("dev"), dev)
        self.rows.append({"name": "dev", "title": "dev", "rows": [["kept", len(dev), 1.0, ""]]})

    # -- monolingual text

    def clean_text(self, text: MonolingualText) -> None:
        """Clean a monolingual text."""
        config, report = self.config, _make_report()
        rules = config.rules
        _check_language(text)
        judge = PairJudge(rules, (text.lang, text.lang))
        lines = self._count(text.name, read_pairs(CorpusConfig(text=text.text)))
        cleaning = config.cleaning.replace(max_copy_words=None, max_length_ratio=None)
        path = self.folder / f"{text.name}.{text.lang or 'txt'}"
        with _open(path) as output:
            for pair in clean_pairs(lines, cleaning, report, seen_hashes=self._seen):
                reason = judge.find_text_reason(pair.src) or self._find_known(pair)
                if reason is not None:
                    report.move_to_dropped(reason, pair)
                    continue
                report.samples.add("kept", pair)
                output.write(_to_line(pair.src))
        if text.max_lines is not None and report.num_kept > text.max_lines:
            _keep_evenly(path, report.num_kept, text.max_lines)
            self._num_surplus[text.name] = report.num_kept - text.max_lines
        self._add_rows(text.name, str(text.text), report)
        if not report.num_kept:
            raise _all_dropped_error(str(text.text), report)
        judged = report.num_read - report.num_dropped.get("duplicate", 0)
        if text.lang and report.num_dropped.get("wrong language", 0) > MIN_TEXT_SHARE * judged:
            raise _wrong_language(text, "?")

    # -- files

    def _files(self, name: str) -> tuple[Path, Path]:
        src, tgt = (self.folder / f"{name}.{suffix}" for suffix in self.config.suffixes)
        return src, tgt

    def _count(self, name: str, pairs: Iterable[Pair]) -> Iterator[Pair]:
        number = 0
        for number, pair in enumerate(pairs, 1):
            yield pair
            if number % PROGRESS_INTERVAL == 0:
                self._progress(name, number, None)
        self._progress(name, number, number)

    def _add_rows(self, name: str, title: str, report: _SampledReport) -> None:
        num_moved, num_surplus = self._num_moved.get(name, 0), self._num_surplus.get(name, 0)
        report.num_kept -= num_moved + num_surplus
        rows = [list(row) for row in report.rows()]
        for title_of_row, count in (("moved to dev", num_moved), ("not needed", num_surplus)):
            if count:
                rows.insert(2, [title_of_row, count, count / max(report.num_read, 1), ""])
        self.rows.append({"name": name, "title": title, "rows": rows})
        for reason, examples in sorted(report.samples.examples.items()):
            path = self.folder / (KEPT_FILE if reason == "kept" else DROPPED_FILE)
            with path.open("a", encoding="utf-8", newline="\n") as stream:
                for pair in examples:
                    sides = [pair.src, *([] if pair.src == pair.tgt else [pair.tgt])]
                    cells = [name, reason, *(side.replace("\t", " ") for side in sides)]
                    stream.write(_to_line("\t".join(cells)))

    def write_report(self) -> dict[str, Any]:
        """Write `report.json`, and return it."""
        report = {
            "corpora": self.rows,
            "threshold": self._threshold if np.isfinite(self._threshold) else None,
            "check": [finding.to_json() for finding in self.findings],
        }
        text = json.dumps(report, indent=2, ensure_ascii=False)
        (self.folder / REPORT_FILE).write_text(text + "\n", encoding="utf-8")
        return report


def clean_files(
    config: CleanConfig, out: Path, *, progress: Progress | None = None
) -> dict[str, Any]:
    """Clean corpora and texts into a new folder, which appears when it is complete.

    Args:
        config: what is read and dropped.
        out: the new folder.
        progress: called with the name of the corpus, the number of lines and the total.

    Returns:
        The content of `report.json`.

    Raises:
        InputError: A file cannot be read, has the wrong language, or nothing of it is left.

    """
    for path in config.paths:
        check_readable(path)
    if out.exists():
        raise InputError(message("{path} exists", path=out), hint="choose a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(out) as folder:
        cleaner = FileCleaner(config, folder, progress or (lambda *_: None))
        cleaner.clean_corpora()
        for text in config.texts:
            cleaner.clean_text(text)
        return cleaner.write_report()


def _plain(corpus: ParallelCorpus) -> CorpusConfig:
    return CorpusConfig(**{name: getattr(corpus, name) for name in CorpusConfig.model_fields})


def _make_report() -> _SampledReport:
    report = _SampledReport()
    report.samples = _Samples()
    return report


def _align(
    pairs: Iterator[Pair], lines: Iterator[str], corpus: ParallelCorpus, path: Path
) -> Iterator[tuple[Pair, str]]:
    """Yield each pair with its line of another file; both must have the same length."""
    for number, (pair, line) in enumerate(zip_longest(pairs, lines)):
        if pair is None or line is None:
            raise InputError(
                message(
                    "{path} does not have one line per pair of {corpus}: one of them ends after "
                    "{count} lines",
                    path=path,
                    corpus=corpus.title,
                    count=f"{number:,}",
                ),
                hint="give the file that belongs to the corpus",
            )
        yield pair, line


def _read_score(line: str) -> float:
    """Return the last column of a line of scores; minus infinity if the pair has none."""
    try:
        score = float(line.rpartition("\t")[2])
    except ValueError:
        return -np.inf
    return score if np.isfinite(score) else -np.inf


def _find_threshold(config: CleanConfig) -> float:
    """Return the score above which the best share of all pairs with scores is."""
    paths = [corpus.scores for corpus in config.corpora if corpus.scores is not None]
    scores = np.array([_read_score(line) for path in paths for line in read_lines(path)])
    finite = scores[np.isfinite(scores)]
    if config.keep >= 1.0 or not len(finite):
        return float("-inf")
    return float(np.quantile(finite, 1.0 - config.keep))


def _keep_evenly(path: Path, num_lines: int, num_kept: int) -> None:
    """Keep some lines of a file, evenly spaced."""
    whole = path.with_name(f"{path.name}.whole")
    path.replace(whole)
    with _open(path) as output:
        for number, line in enumerate(read_lines(whole)):
            if number * num_kept // num_lines != (number + 1) * num_kept // num_lines:
                output.write(_to_line(line))
    whole.unlink()


def _check_language(text: MonolingualText) -> None:
    """Raise an error if a monolingual text is clearly in another language."""
    if text.lang is None:
        return
    lines = [line for _, line in zip(range(NUM_GUESSED_LINES), read_lines(text.text), strict=False)]
    guess = guess_language(lines)
    script = language_script(text.lang)
    if guess.script is None or script is None:
        return
    is_other = guess.script != script or (
        guess.language is not None and not are_related(guess.language, text.lang)
    )
    if is_other:
        raise _wrong_language(text, guess.language or guess.script)


def _wrong_language(text: MonolingualText, guess: str) -> InputError:
    return InputError(
        message(
            "{path} should be '{lang}', but looks like '{guess}'",
            path=text.text,
            lang=text.lang,
            guess=guess,
        ),
        hint="give a monolingual text in that language, or correct the language",
    )


def _all_dropped_error(title: str, report: CleaningReport) -> InputError:
    counts = (f"{row.what}: {row.num_pairs:,}" for row in report.rows())
    return InputError(
        message("{files}: nothing is left ({counts})", files=title, counts=", ".join(counts)),
        hint="check the files, the languages and whether the sides are swapped, or relax the rules "
        "that dropped most",
    )


def _tap(pairs: Iterable[Pair], observe: Callable[[Pair], None]) -> Iterator[Pair]:
    for pair in pairs:
        observe(pair)
        yield pair


def _keep_dev(name: str, pair: Pair, dev: list[Pair]) -> bool:
    """Return whether a pair stays in train; append it to dev otherwise."""
    if name == "dev":
        dev.append(pair)
    return name != "dev"


def _open(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="\n")


def _write_pairs(files: tuple[Path, Path], pairs: Iterable[Pair]) -> None:
    with ExitStack() as stack:
        src, tgt = (stack.enter_context(_open(path)) for path in files)
        for pair in pairs:
            src.write(_to_line(pair.src))
            tgt.write(_to_line(pair.tgt))


def _to_line(text: str) -> str:
    return text.replace("\n", " ") + "\n"
