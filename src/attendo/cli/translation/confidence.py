"""Shows the confidence of a translation as words and signs, not only as colors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.translator import Confidence, Translation, Translator
    from attendo.translator.quality import Band, QualityTable

MARKS: dict[Band, str] = {"high": "✓ high", "check": "? check", "low": "✗ low"}
COLORS: dict[Band, str] = {"high": "green", "check": "yellow", "low": "red"}
UNCALIBRATED_NOTE = (
    "confidence is not calibrated: the run is not finished, the model was imported, trained by an "
    "older version, or on fewer than 100 dev sentences"
)
UNSURE_MARK = "?? "
"""Begins a line that is not sure enough."""


class ConfidenceFilter:
    """Leaves translations that are not sure enough empty, or marks them.

    Args:
        translator: must be calibrated.
        minimum: the quality from which a translation is kept.
        below: "empty" or "mark".

    """

    def __init__(self, translator: Translator, minimum: float, below: str) -> None:
        table = translator.quality
        if table is None:
            raise InputError(
                message(
                    "--min-confidence needs a calibrated model: {reason}",
                    reason=message(UNCALIBRATED_NOTE),
                ),
                hint="calibrate it on a dev set: attendo calibrate MODEL --src FILE --ref FILE",
            )
        self.table, self.minimum, self.below = table, minimum, below
        self.num_texts = self.num_below = 0

    def __call__(self, translations: Sequence[Translation]) -> list[Translation]:
        """Return the translations, without or with a mark on those that are not sure enough."""
        filtered = [self._filter(one) for one in translations]
        self.num_texts += len(filtered)
        self.num_below += sum(
            after is not before for before, after in zip(translations, filtered, strict=True)
        )
        return filtered

    def _filter(self, translation: Translation) -> Translation:
        """Return a translation and its alternatives, or others with another text."""
        translation.alternatives = [self._filter(one) for one in translation.alternatives]
        if self.is_sure(translation):
            return translation
        return translation.with_text("" if self.below == "empty" else f"{UNSURE_MARK}{translation}")

    def is_sure(self, translation: Translation) -> bool:
        """Return whether the confidence of a translation is high enough, or not known."""
        quality = None if translation.confidence is None else translation.confidence.quality
        return quality is None or quality >= self.minimum

    def describe(self) -> str:
        """Return how many translations were kept."""
        return message(
            "{num_kept:,} of {count:,} translations have a confidence of at least {share}",
            num_kept=self.num_texts - self.num_below,
            count=self.num_texts,
            share=f"{self.minimum:.0%}" if self.minimum <= 0.99 else f"{self.minimum:.1%}",
        )


def describe_confidence(confidence: Confidence) -> str:
    """Return band, quality and familiarity as one message: `? check (74% right)`."""
    parts = [] if confidence.band is None else [_describe_band(confidence, confidence.band)]
    if confidence.unfamiliar is not None:
        reasons = join_messages("; ", confidence.unfamiliar.reasons)
        parts.append(message("unfamiliar input: {detail}", detail=reasons))
    return join_messages("; ", parts)


def _describe_band(confidence: Confidence, band: Band) -> str:
    if confidence.quality is None:
        return message("{subject} (uncalibrated)", subject=MARKS[band])
    share = format_share(confidence.quality)
    return message("{subject} ({share} right)", subject=MARKS[band], share=share)


def format_share(share: float) -> str:
    """Return a share in percent that never claims certainty.

    >>> format_share(0.999), format_share(0.5), format_share(0.0006)
    ('>99%', '50%', '<1%')
    """
    return ">99%" if share > 0.99 else "<1%" if share < 0.01 else f"{share:.0%}"


def describe_bands(table: QualityTable) -> str:
    """Return what the bands meant on dev."""
    criterion = (
        message("equal to the reference")
        if table.min_chrf is None
        else message("chrF of at least {least:.0f}", least=table.min_chrf)
    )
    shares = [
        message(
            "{subject} {share} of {count:,}",
            subject=MARKS[band],
            share=f"{counts.num_right / counts.count:.0%}",
            count=counts.count,
        )
        for band, counts in table.bands.items()
        if counts.count
    ]
    return message(
        "right ({criterion}) on {count:,} dev sentences: {shares}",
        criterion=criterion,
        count=table.num_sentences,
        shares=join_messages(", ", shares),
    )


def explain_confidence(
    translator: Translator, confidence_filter: ConfidenceFilter | None, *, is_shown: bool
) -> None:
    """Print on stderr how many translations were kept, and what the bands mean.

    The bands are explained on a terminal, or always if they are not calibrated.
    """
    if confidence_filter is not None:
        typer.echo(translate_message(confidence_filter.describe(), choose_language()), err=True)
    table = translator.quality
    if is_shown and (table is None or sys.stderr.isatty()):
        text = UNCALIBRATED_NOTE if table is None else describe_bands(table)
        typer.echo(translate_message(text, choose_language()), err=True)
