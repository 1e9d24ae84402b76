"""The measures: metrics of sacreBLEU that know their references, each under a name of its own.

A BLEU without its tokenisation is no number: every variant is a measure. `METRIC_NAMES` lists them;
`build_metrics` makes those ready that fit the language and what is installed, and says which it
left out and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
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
    "bleu-tok": "BLEU (tokenised)",
    "bleu-compound": "BLEU (compound-split)",
    "bleu-ko": "BLEU (ko-mecab)",
    "bleu-char": "BLEU (characters)",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
}
"""Every measure by the name it is asked for, with the name it is shown by."""
UNSPACED_LANGUAGES = ("ko", "zh", "ja")
"""Languages whose characters are worth counting instead of words."""


class TokenizedReference(NamedTuple):
    """A reference that is tokenised already, and the steps that make outputs comparable to it."""

    texts: Sequence[str]
    steps: Sequence[str]


@dataclass(frozen=True)
class Metric:
    """A metric of sacreBLEU that knows its references."""

    key: str
    name: str
    sacrebleu_metric: Any
    normalizer: TextNormalizer | None = None
    lower_is_better: bool = False

    def sentence_counts(self, outputs: Sequence[str]) -> SentenceCounts:
        """Count in each sentence what the score is made of."""
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
        """Make a score of counts that were added up."""
        return round(float(self.sacrebleu_metric._compute_score_from_stats(totals).score), 6)

    def signature(self, num_samples: int) -> str:
        """Write how the figure is measured, as sacreBLEU does."""
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
    """What is measured, and what is not, with the reason."""

    selected: list[Metric]
    skipped: list[str]


def build_metrics(
    references: Sequence[str],
    *,
    requested: Sequence[str] | None = None,
    lang: str | None = None,
    tokenized: TokenizedReference | None = None,
) -> MetricSet:
    """Make measures ready for references of a language.

    Args:
        references: one text for each output.
        wanted: keys of `METRIC_NAMES`; all that fit when not given. One that is named and cannot be
            made is an error, one that is not is left out with a line.
        lang: the target language, which decides on Korean measures and on Moses's rules.
        tokenised: what the measure "bleu-tok" needs.

    """
    unknown = [key for key in requested or () if key not in METRIC_NAMES]
    if unknown:
        raise ConfigError(f"no measure '{unknown[0]}'", hint=suggest(unknown[0], METRIC_NAMES))
    if not references:
        raise InputError("there is nothing to score", hint="give at least one reference")
    selected, skipped = [], []
    for key in requested if requested is not None else _applicable_keys(lang, tokenized):
        try:
            selected.append(_build_metric(key, list(references), lang, tokenized))
        except AttendoError as error:
            if requested is not None or key == "bleu-tok":  # which was asked for by its reference
                raise
            skipped.append(f"{METRIC_NAMES[key]} is left out: {error.reason}; {error.hint}")
    return MetricSet(selected, skipped)


def guess_language(texts: Sequence[str]) -> str | None:
    """Know Korean by its letters; every other language must be told.

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
    key: str, references: list[str], lang: str | None, tokenized: TokenizedReference | None
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
    texts = [references]
    if key == "ter":
        return Metric(key, name, TER(references=texts), lower_is_better=True)
    if key in ("chrf", "chrf++"):
        return Metric(key, name, CHRF(word_order=2 if key == "chrf++" else 0, references=texts))
    tokenize = "char" if key == "bleu-char" else "13a"
    # `force` stops the warning about tokenised text: the score's note says it.
    sacrebleu_metric = BLEU(
        tokenize=tokenize, lowercase=key == "bleu-lc", force=True, references=texts
    )
    return Metric(key, name, sacrebleu_metric)


def _multi_bleu(references: Sequence[str]) -> Any:
    """Make a metric equal to multi-bleu.perl: words as they are parted, no smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    texts = [escape_non_ascii_spaces(text) for text in references]
    return BLEU(tokenize="none", smooth_method="none", force=True, references=[texts])


def _tokenized_metric(name: str, lang: str | None, tokenized: TokenizedReference | None) -> Metric:
    if tokenized is None:
        reason = "tokenised BLEU needs a reference that is tokenised"
        raise ConfigError(reason, hint="give it with --tok-ref")
    normalizer = build_normalizer(tokenized.steps, lang)
    normalizer = normalizer._replace(signature=f"{normalizer.signature}|ref:given")
    return Metric("bleu-tok", name, _multi_bleu(tokenized.texts), normalizer)


def _compound_split_metric(name: str, references: Sequence[str], lang: str | None) -> Metric:
    if lang is None:
        reason = "it tokenises by the rules of a language, which is not known"
        raise ConfigError(reason, hint="name it, e.g. --lang de")
    if not supports_compound_split(lang):
        reason = f"it is not made for the language '{lang}'"
        raise ConfigError(reason, hint="read another measure")
    normalizer = compound_split_normalizer(lang)
    return Metric("bleu-compound", name, _multi_bleu(normalizer.apply_all(references)), normalizer)


def _korean_tokenized_bleu(references: list[str]) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize="ko-mecab", force=True, references=[references])
    except RuntimeError:
        raise MissingExtraError("mecab-ko", "metrics") from None
    except AssertionError as error:
        hint = "pip install 'attendo[metrics]' brings the right one"
        raise AttendoError(f"mecab-ko cannot be used: {error}", hint=hint) from None
