"""The rules of the data check: each looks at what the probes have kept, and yields findings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from attendo.data.check_languages import check_languages, compare_dev_languages, match_languages
from attendo.data.findings import SIDES, Finding, shorten, sort_findings
from attendo.data.readers import read_pairs
from attendo.text.tokenizer import SPACE_SYMBOL, UNK_ID, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.data.cleaning import Reason
    from attendo.data.config import DataConfig
    from attendo.data.corpus_probe import CorpusProbe
    from attendo.data.findings import Severity

CLEANING_RULES: dict[Reason, tuple[str, float]] = {
    "duplicate": ("duplicates", 0.2),
    "empty side": ("empty_sides", 0.05),
    "too long": ("long_lines", 0.05),
    "length ratio": ("length_ratios", 0.05),
    "untranslated copy": ("untranslated", 0.05),
}
"""For each reason the code, and the share of the pairs above which it is a warning."""
MAX_SHIFTED_SHARE = 0.02
"""A larger shifted part is an error, a smaller one a warning."""
MAX_REPEATED_SHARE = 0.1
MAX_UNKNOWN_SHARE, HIGH_UNKNOWN_SHARE = 0.5, 0.05
MIN_DEV_PAIRS = 300
BLEU_MARGIN = 50.0
"""A 95 % interval of BLEU is about ± 50 / sqrt(pairs)."""
PAIR_LEVELS: tuple[tuple[int, str, Severity], ...] = (
    (1, "no_pairs", "error"),
    (2_000, "too_few_pairs", "warning"),
    (10_000, "few_pairs", "warning"),
    (30_000, "few_pairs", "info"),
    (300_000, "moderate_pairs", "info"),
)
"""The first row with more pairs than the corpus has applies."""
NUM_TOKENIZED = 1000
NUM_IDS = 20
MANY_TABS = 0.5
"""Share of lines with tabs from which a text looks like a table."""
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
HEADER_WORDS = frozenset(
    word
    for line in (
        "id src source tgt target trg sentence text translation original",
        "english german french spanish italian portuguese dutch russian korean japanese chinese",
        "arabic turkish polish czech swedish danish norwegian finnish hungarian romanian greek",
        "hebrew hindi thai vietnamese indonesian ukrainian deutsch français español italiano",
        "한국어 영어 日本語 中文 русский en de fr es it pt nl ru ko ja zh ar tr pl cs",
        "sv da no nb fi hu ro el he hi th vi uk kor eng ger deu fra fre spa jpn kr",
    )
    for word in line.split()
)


@dataclass(frozen=True)
class CheckedData:
    """What the rules judge."""

    config: DataConfig
    corpora: Sequence[CorpusProbe]
    dev: CorpusProbe | None
    """A dev set that was given."""
    tokenizer: Tokenizer | None = None
    """The tokenizer of the model that a run starts from."""

    @property
    def num_pairs(self) -> int:
        """Number of pairs after cleaning."""
        return sum(probe.report.num_kept for probe in self.corpora)

    @property
    def num_dev(self) -> int:
        """Number of pairs of dev, given or to be split off."""
        if self.dev is not None:
            return self.dev.report.num_kept
        return max(1, min(self.config.dev_size, self.num_pairs // 20))

    @property
    def probes(self) -> list[CorpusProbe]:
        """The probes of all corpora and of dev."""
        return [*self.corpora, *([] if self.dev is None else [self.dev])]

    @property
    def has_sentences(self) -> bool:
        """Whether the targets are texts, and not labels or the source itself."""
        return not self.config.is_monolingual and self.config.tokenizer.tgt_kind != "label"

    @property
    def is_translation(self) -> bool:
        """Whether both sides are text with letters; numbers and copies need fewer pairs."""
        return self.has_sentences and all(
            probe.languages.src.script and probe.languages.tgt.script
            for probe in self.corpora
            if probe.sample and not probe.config.allow_copies
        )


def find_problems(checked: CheckedData) -> list[Finding]:
    """Apply all rules; the most severe findings come first."""
    findings = [
        *_check_alignment(checked),
        *(check_languages(checked.corpora, checked.config) if checked.has_sentences else ()),
        *_check_tokenizer(checked),
        *_check_columns(checked),
        *_check_dev(checked),
        *_check_size(checked),
        *_check_cleaning(checked),
    ]
    return sort_findings(findings)


# --- the sides


def _check_alignment(checked: CheckedData) -> Iterator[Finding]:
    if not checked.has_sentences:
        return
    for probe in checked.probes:
        found = probe.alignment.find_misalignment(partial(read_pairs, probe.config))
        if found is not None:
            share = found.num_lines / max(probe.alignment.num_lines, 1)
            figures = {"corpus": probe.name, "line": found.first_line, "share": f"{share:.1%}"}
            severity: Severity = "error" if share > MAX_SHIFTED_SHARE else "warning"
            if found.shift is None:
                yield Finding("sides_unrelated", severity, figures)
            else:
                figures |= {"shift": found.shift, "other_line": found.first_line + found.shift}
                yield Finding("sides_shifted", severity, figures)
        elif probe.alignment.is_shuffled():
            sides = probe.languages
            # Questions and answers in one language need not agree in anything.
            is_translation = not match_languages(sides.src.language, sides.tgt.language)
            severity = "error" if is_translation else "warning"
            yield Finding("sides_shuffled", severity, {"corpus": probe.name}, probe.example)


# --- the tokenizer


def _check_tokenizer(checked: CheckedData) -> Iterator[Finding]:
    source_dir = checked.config.tokenizer.src_from
    tokenizer = checked.tokenizer or (Tokenizer.load(source_dir) if source_dir else None)
    if tokenizer is None:
        return
    pairs = [pair for probe in checked.corpora for pair in probe.sample[:NUM_TOKENIZED]]
    sides = SIDES if checked.tokenizer and checked.has_sentences else SIDES[:1]
    for index, side in enumerate(sides):
        texts = [pair[index] for pair in pairs]
        share, example = _unknown_share(tokenizer, texts, is_target=index == 1)
        if share > HIGH_UNKNOWN_SHARE:
            severity: Severity = "error" if share > MAX_UNKNOWN_SHARE else "warning"
            figures = {"side": side, "share": f"{share:.1%}"}
            yield Finding("unknown_pieces", severity, figures, shorten(example))


def _unknown_share(
    tokenizer: Tokenizer, texts: Sequence[str], *, is_target: bool
) -> tuple[float, str]:
    """Return the share of characters without a piece of their own, and a text with the most."""
    encode = tokenizer.encode_tgt if is_target else tokenizer.encode_src
    to_pieces = tokenizer.tgt_pieces if is_target else tokenizer.src_pieces
    num_characters = num_known = 0
    most, example = 0, ""
    for text, ids in zip(texts, encode(texts), strict=True):
        known = [
            piece.replace(SPACE_SYMBOL, "")
            for number, piece in zip(ids, to_pieces(ids[:-1]), strict=False)
            if number != UNK_ID and not BYTE_PIECE.fullmatch(piece)
        ]
        expected, found = len("".join(text.split())), len("".join(known))
        num_characters, num_known = num_characters + expected, num_known + min(found, expected)
        if expected - found > most:
            most, example = expected - found, text
    return 1.0 - num_known / max(num_characters, 1), example


# --- columns, dev, size, cleaning


def _check_columns(checked: CheckedData) -> Iterator[Finding]:
    for probe in checked.probes:
        if not probe.first_pairs:
            continue
        header = [text.strip().casefold() for text in probe.first_pairs[0]]
        if all(cell in HEADER_WORDS for cell in header) and header[0] != header[1]:
            example = " | ".join(probe.first_pairs[0])
            yield Finding("header", "warning", {"corpus": probe.name}, shorten(example))
        for index, side in enumerate(SIDES):
            num_tabs = sum("\t" in pair[index] for pair in probe.first_pairs)
            if num_tabs > MANY_TABS * len(probe.first_pairs):
                share = f"{num_tabs / len(probe.first_pairs):.0%}"
                figures = {"corpus": probe.name, "side": side, "share": share}
                yield Finding("tabs", "warning", figures, shorten(probe.first_pairs[0][index]))
            if _counts_up([pair[index] for pair in probe.first_pairs[1 : NUM_IDS + 1]]):
                figures = {"corpus": probe.name, "side": side}
                yield Finding("id_column", "error", figures, probe.example)


def _counts_up(texts: Sequence[str]) -> bool:
    numbers = [int(text) for text in texts if text.strip().isdecimal()]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) == len(texts) == NUM_IDS and steps == {1}


def _check_dev(checked: CheckedData) -> Iterator[Finding]:
    reports = [probe.report for probe in checked.corpora]
    num_in_train = sum(report.num_dropped.get("also in dev", 0) for report in reports)
    if num_in_train:
        examples = (report.examples.get("also in dev") for report in reports)
        pair = next(filter(None, examples))
        figures = {"count": f"{num_in_train:,}"}
        yield Finding("dev_in_train", "warning", figures, " | ".join(pair))
    if not checked.has_sentences:
        return
    if checked.num_dev < MIN_DEV_PAIRS:
        margin = BLEU_MARGIN / math.sqrt(checked.num_dev or 1)
        figures = {"count": f"{checked.num_dev:,}", "margin": f"{margin:.0f}"}
        yield Finding("small_dev", "warning", figures)
    if checked.dev is not None:
        yield from compare_dev_languages(checked.dev, checked.corpora[0])


def _check_size(checked: CheckedData) -> Iterator[Finding]:
    if not checked.is_translation or checked.tokenizer is not None:
        return  # a model to start from needs fewer pairs
    num_pairs = checked.num_pairs
    for limit, code, severity in PAIR_LEVELS:
        if num_pairs < limit:
            yield Finding(code, severity, {"count": f"{num_pairs:,}"})
            return


def _check_cleaning(checked: CheckedData) -> Iterator[Finding]:
    reports = [probe.report for probe in checked.corpora]
    num_read = max(sum(report.num_read for report in reports), 1)
    for reason, (code, limit) in CLEANING_RULES.items():
        count = sum(report.num_dropped.get(reason, 0) for report in reports)
        if not count:
            continue
        pair = next(report.examples[reason] for report in reports if reason in report.examples)
        figures = {"count": f"{count:,}", "share": f"{count / num_read:.1%}"}
        severity: Severity = "warning" if count / num_read > limit else "info"
        yield Finding(code, severity, figures, " | ".join(pair))
    if checked.has_sentences:
        probe = max(checked.corpora, key=lambda probe: probe.sources.repeated_share)
        share, (source, count) = probe.sources.repeated_share, probe.sources.most_common
        if share > MAX_REPEATED_SHARE:
            figures = {"share": f"{share:.1%}", "count": f"{count:,}"}
            yield Finding("many_targets", "info", figures, shorten(source))
