"""Metrics: sacreBLEU's metrics bound to their references, each variant under its own name.

A BLEU without its tokenization is meaningless, so every variant is a metric of its own.
`METRIC_NAMES` lists them; `build_metrics` builds those that fit the language and the installed
packages, and reports which it left out and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.core.message import message
from attendo.evaluation.bootstrap import BOOTSTRAP_SEED
from attendo.evaluation.tokenized_bleu import (
    TextNormalizer,
    build_normalizer,
    compound_split_normalizer,
    escape_non_ascii_spaces,
    supports_compound_split,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.evaluation.bootstrap import SentenceCounts, Values

METRIC_NAMES = {
    "bleu": "BLEU (13a, cased)",
    "bleu-lc": "BLEU (13a, lower-cased)",
    "bleu-tok": "BLEU (tokenized)",
    "bleu-compound": "BLEU (compound-split)",
    "bleu-ko": "BLEU (ko-mecab)",
    "bleu-char": "BLEU (characters)",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
}
"""Every metric: key and display name."""
UNSPACED_LANGUAGES = ("ko", "zh", "ja")
"""Languages that are scored by characters instead of words."""


class TokenizedReference(NamedTuple):
    """A tokenized reference, and the steps that make outputs comparable to it."""

    texts: Sequence[str]
    steps: Sequence[str]


@dataclass(frozen=True)
class Metric:
    """A sacreBLEU metric bound to its references."""

    key: str
    name: str
    sacrebleu_metric: Any
    normalizer: TextNormalizer | None = None
    lower_is_better: bool = False

    def sentence_counts(self, outputs: Sequence[str]) -> SentenceCounts:
        """Return the statistics of each sentence."""
        normalized = list(map(str, outputs))  # sacreBLEU caches texts by their type
        if self.normalizer is not None:
            normalized = [
                escape_non_ascii_spaces(text) for text in self.normalizer.apply_all(normalized)
            ]
        counts: SentenceCounts = np.array(
            self.sacrebleu_metric._extract_corpus_statistics(normalized, None), dtype=np.float64
        )
        return counts

    def score(self, totals: Values) -> float:
        """Return the score of summed statistics."""
        return round(float(self.sacrebleu_metric._compute_score_from_stats(totals).score), 6)

    def signature(self, num_samples: int) -> str:
        """Return sacreBLEU's signature."""
        self.sacrebleu_metric.n_bootstrap = num_samples or None
        self.sacrebleu_metric.seed = BOOTSTRAP_SEED if num_samples else None
        parts = str(self.sacrebleu_metric.get_signature()).split("|")
        if self.normalizer is not None:
            normalizer_signature = self.normalizer.signature
            replaced = ("tok:", "case:") if "case:" in normalizer_signature else ("tok:",)
            *kept, version = [part for part in parts if not part.startswith(replaced)]
            parts = [*kept, normalizer_signature, version]
        return "|".join(parts)


class MetricSet(NamedTuple):
    """The metrics that are computed, and notes about those that are not."""

    selected: list[Metric]
    skipped: list[str]


def check_metric_names(requested: Sequence[str]) -> None:
    """Raise an error if a metric is not one of `METRIC_NAMES`."""
    unknown = [key for key in requested if key not in METRIC_NAMES]
    if unknown:
        raise ConfigError(
            message("no metric '{unknown}'", unknown=unknown[0]),
            hint=suggest(unknown[0], METRIC_NAMES),
        )


def build_metrics(
    references: Sequence[str],
    *,
    more_references: Sequence[Sequence[str]] = (),
    requested: Sequence[str] | None = None,
    lang: str | None = None,
    tokenized: TokenizedReference | None = None,
) -> MetricSet:
    """Build metrics for references of a language.

    Args:
        references: one text for each output.
        more_references: further references of each output.
        requested: keys of `METRIC_NAMES`; by default all that fit. One that is named and cannot be
            built is an error, one that is not named is left out with a note.
        lang: the target language; decides on Korean metrics and Moses rules.
        tokenized: the reference of the metric "bleu-tok".

    """
    check_metric_names(requested or ())
    if not references:
        raise InputError("nothing to score", hint="pass at least one reference")
    selected, skipped = [], []
    for key in requested if requested is not None else _applicable_keys(lang, tokenized):
        try:
            texts = [list(one) for one in (references, *more_references)]
            selected.append(_build_metric(key, texts, lang, tokenized))
        except AttendoError as error:
            if requested is not None or key == "bleu-tok":  # requested by its reference
                raise
            skipped.append(f"{METRIC_NAMES[key]} is skipped: {error.reason}; {error.hint}")
    return MetricSet(selected, skipped)


def guess_language(texts: Sequence[str]) -> str | None:
    """Return "ko" for Hangul text, else None.

    >>> guess_language(["나는 학생이다.", "OK"]), guess_language(["I am a student."])
    ('ko', None)
    """
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    hangul = sum("\uac00" <= letter <= "\ud7a3" for letter in letters)
    return "ko" if hangul * 2 > len(letters) else None


def _applicable_keys(lang: str | None, tokenized: TokenizedReference | None) -> Iterator[str]:
    for key in METRIC_NAMES:
        is_applicable = {
            "bleu-tok": tokenized is not None,
            "bleu-compound": lang not in UNSPACED_LANGUAGES,
            "bleu-ko": lang == "ko",
            "bleu-char": lang in UNSPACED_LANGUAGES,
        }
        if is_applicable.get(key, True):
            yield key


def _build_metric(
    key: str, references: list[list[str]], lang: str | None, tokenized: TokenizedReference | None
) -> Metric:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    name = METRIC_NAMES[key]
    if key == "bleu-tok":
        return _tokenized_metric(name, lang, tokenized)
    if key == "bleu-compound":
        return _compound_split_metric(name, references, lang)
    if key == "bleu-ko":
        return Metric(key, name, _korean_tokenized_bleu(references))
    if key == "ter":
        return Metric(key, name, TER(references=references), lower_is_better=True)
    if key in ("chrf", "chrf++"):
        word_order = 2 if key == "chrf++" else 0
        return Metric(key, name, CHRF(word_order=word_order, references=references))
    tokenize = "char" if key == "bleu-char" else "13a"
    # `force` suppresses the warning about tokenized text; the score has a note instead.
    sacrebleu_metric = BLEU(
        tokenize=tokenize, lowercase=key == "bleu-lc", force=True, references=references
    )
    return Metric(key, name, sacrebleu_metric)


def _multi_bleu(references: Sequence[Sequence[str]]) -> Any:
    """Return a metric equal to multi-bleu.perl: words split at spaces, no smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    escaped = [[escape_non_ascii_spaces(text) for text in texts] for texts in references]
    return BLEU(tokenize="none", smooth_method="none", force=True, references=escaped)


def _tokenized_metric(name: str, lang: str | None, tokenized: TokenizedReference | None) -> Metric:
    if tokenized is None:
        reason = "tokenized BLEU needs a tokenized reference"
        raise ConfigError(reason, hint="pass it with --tok-ref")
    normalizer = build_normalizer(tokenized.steps, lang)
    normalizer = normalizer._replace(signature=f"{normalizer.signature}|ref:given")
    return Metric("bleu-tok", name, _multi_bleu([tokenized.texts]), normalizer)


def _compound_split_metric(
    name: str, references: Sequence[Sequence[str]], lang: str | None
) -> Metric:
    if lang is None:
        reason = "its tokenization depends on the language, which is unknown"
        raise ConfigError(reason, hint="name it, e.g. --lang de")
    if not supports_compound_split(lang):
        reason = message("it does not support the language '{lang}'", lang=lang)
        raise ConfigError(reason, hint="use another metric")
    normalizer = compound_split_normalizer(lang)
    split = [normalizer.apply_all(texts) for texts in references]
    return Metric("bleu-compound", name, _multi_bleu(split), normalizer)


def _korean_tokenized_bleu(references: list[list[str]]) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize="ko-mecab", force=True, references=references)
    except RuntimeError:
        raise MissingExtraError("mecab-ko", "metrics") from None
    except AssertionError as error:
        hint = "install it with pip install 'attendo[metrics]'"
        raise AttendoError(
            message("mecab-ko cannot be used: {error}", error=error), hint=hint
        ) from None
