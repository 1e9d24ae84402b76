"""The measures: metrics of sacreBLEU that know their references, each under a name of its own.

A BLEU without its tokenisation is no number: every variant is a measure. `MEASURES` lists them;
`build_measures` makes those ready that fit the language and what is installed, and says which it
left out and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.evaluation.resampling import SEED
from attendo.evaluation.tokenised import (
    Preparation,
    compound_split,
    joins_by_hyphen,
    mark_foreign_spaces,
    prepare_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.evaluation.resampling import Counts, Values

MEASURES = {
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
UNSPACED = ("ko", "zh", "ja")
"""Languages whose characters are worth counting instead of words."""


class TokenisedReference(NamedTuple):
    """A reference that is tokenised already, and the steps that make outputs comparable to it."""

    texts: Sequence[str]
    steps: Sequence[str]


@dataclass(frozen=True)
class Measure:
    """A metric of sacreBLEU that knows its references."""

    key: str
    name: str
    metric: Any
    preparation: Preparation | None = None
    lower_is_better: bool = False

    def count(self, outputs: Sequence[str]) -> Counts:
        """Count in each sentence what the score is made of."""
        ready = list(map(str, outputs))  # sacreBLEU caches texts by their type
        if self.preparation is not None:
            ready = [mark_foreign_spaces(text) for text in self.preparation.all(ready)]
        counts: Counts = np.array(
            self.metric._extract_corpus_statistics(ready, None), dtype=np.float64
        )
        return counts

    def score(self, totals: Values) -> float:
        """Make a score of counts that were added up."""
        return round(float(self.metric._compute_score_from_stats(totals).score), 6)

    def sign(self, num_samples: int) -> str:
        """Write how the figure is measured, as sacreBLEU does."""
        self.metric.n_bootstrap = num_samples or None
        self.metric.seed = SEED if num_samples else None
        parts = str(self.metric.get_signature()).split("|")
        if self.preparation is not None:
            own = self.preparation.signature
            replaced = ("tok:", "case:") if "case:" in own else ("tok:",)
            *kept, version = [part for part in parts if not part.startswith(replaced)]
            parts = [*kept, own, version]
        return "|".join(parts)


class Measures(NamedTuple):
    """What is measured, and what is not, with the reason."""

    used: list[Measure]
    left_out: list[str]


def build_measures(
    references: Sequence[str],
    *,
    wanted: Sequence[str] | None = None,
    lang: str | None = None,
    tokenised: TokenisedReference | None = None,
) -> Measures:
    """Make measures ready for references of a language.

    Args:
        references: one text for each output.
        wanted: keys of `MEASURES`; all that fit when not given. One that is named and cannot be
            made is an error, one that is not is left out with a line.
        lang: the target language, which decides on Korean measures and on Moses's rules.
        tokenised: what the measure "bleu-tok" needs.

    """
    unknown = [key for key in wanted or () if key not in MEASURES]
    if unknown:
        raise ConfigError(f"no measure '{unknown[0]}'", remedy=suggest(unknown[0], MEASURES))
    if not references:
        raise InputError("there is nothing to score", remedy="give at least one reference")
    used, left_out = [], []
    for key in wanted if wanted is not None else _fitting(lang, tokenised):
        try:
            used.append(_build(key, list(references), lang, tokenised))
        except AttendoError as error:
            if wanted is not None or key == "bleu-tok":  # which was asked for by its reference
                raise
            left_out.append(f"{MEASURES[key]} is left out: {error.reason}; {error.remedy}")
    return Measures(used, left_out)


def guess_language(texts: Sequence[str]) -> str | None:
    """Know Korean by its letters; every other language must be told.

    >>> guess_language(["나는 학생이다.", "OK"]), guess_language(["I am a student."])
    ('ko', None)
    """
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    hangul = sum("\uac00" <= letter <= "\ud7a3" for letter in letters)
    return "ko" if hangul * 2 > len(letters) else None


def _fitting(lang: str | None, tokenised: TokenisedReference | None) -> Iterator[str]:
    for key in MEASURES:
        is_fit = {
            "bleu-tok": tokenised is not None,
            "bleu-compound": lang not in UNSPACED,
            "bleu-ko": lang == "ko",
            "bleu-char": lang in UNSPACED,
        }
        if is_fit.get(key, True):
            yield key


def _build(
    key: str, references: list[str], lang: str | None, tokenised: TokenisedReference | None
) -> Measure:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    name = MEASURES[key]
    if key == "bleu-tok":
        return _tokenised(name, lang, tokenised)
    if key == "bleu-compound":
        return _compound_split(name, references, lang)
    if key == "bleu-ko":
        return Measure(key, name, _korean(references))
    texts = [references]
    if key == "ter":
        return Measure(key, name, TER(references=texts), lower_is_better=True)
    if key in ("chrf", "chrf++"):
        return Measure(key, name, CHRF(word_order=2 if key == "chrf++" else 0, references=texts))
    tokenize = "char" if key == "bleu-char" else "13a"
    # `force` stops the warning about tokenised text: the score's note says it.
    metric = BLEU(tokenize=tokenize, lowercase=key == "bleu-lc", force=True, references=texts)
    return Measure(key, name, metric)


def _multi_bleu(references: Sequence[str]) -> Any:
    """Make a metric equal to multi-bleu.perl: words as they are parted, no smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    texts = [mark_foreign_spaces(text) for text in references]
    return BLEU(tokenize="none", smooth_method="none", force=True, references=[texts])


def _tokenised(name: str, lang: str | None, tokenised: TokenisedReference | None) -> Measure:
    if tokenised is None:
        reason = "tokenised BLEU needs a reference that is tokenised"
        raise ConfigError(reason, remedy="give it with --tok-ref")
    preparation = prepare_by(tokenised.steps, lang)
    preparation = preparation._replace(signature=f"{preparation.signature}|ref:given")
    return Measure("bleu-tok", name, _multi_bleu(tokenised.texts), preparation)


def _compound_split(name: str, references: Sequence[str], lang: str | None) -> Measure:
    if lang is None:
        reason = "it tokenises by the rules of a language, which is not known"
        raise ConfigError(reason, remedy="name it, e.g. --lang de")
    if not joins_by_hyphen(lang):
        reason = f"it is not made for the language '{lang}'"
        raise ConfigError(reason, remedy="read another measure")
    preparation = compound_split(lang)
    return Measure("bleu-compound", name, _multi_bleu(preparation.all(references)), preparation)


def _korean(references: list[str]) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize="ko-mecab", force=True, references=[references])
    except RuntimeError:
        raise MissingExtraError("mecab-ko", "metrics") from None
    except AssertionError as error:
        remedy = "pip install 'attendo[metrics]' brings the right one"
        raise AttendoError(f"mecab-ko cannot be used: {error}", remedy=remedy) from None
