"""Fits the confidence of a finished model on other translated sentences than those of its training.

An imported model has no calibration, and that of any other model holds for texts like its dev set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.evaluation.calibration import calibrate
from attendo.evaluation.quality import MIN_SENTENCES, ScoredTranslation, fit_quality
from attendo.text.tokenizer import START_ID
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.evaluation.calibration import Calibration
    from attendo.translator import Translation

BATCH_TOKENS = 2048
"""Tokens whose logits are in memory together."""


def recalibrate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Fit the temperature, and the quality of greedy translations, on translated sentences.

    Args:
        translator: whose model is calibrated; it is not changed.
        sources: a sentence each: what is translated in several parts is left out.
        references: their translations.
        progress: called with the number of translated sentences and of all.

    Raises:
        InputError: there are fewer than 100 sentences.

    """
    pairs = [
        (source, reference)
        for source, reference in zip(sources, references, strict=True)
        if len(translator.split_text(source, "auto").segments) == 1
    ]
    if len(pairs) < MIN_SENTENCES:
        raise InputError(
            message(
                "{count} sentences: at least {least} are needed to calibrate",
                count=len(pairs),
                least=MIN_SENTENCES,
            ),
            hint="pass more pairs, each of one sentence",
        )
    sources = [source for source, _ in pairs]
    calibration = _fit_temperature(translator, pairs)
    translations = translator.translate(sources, beam_size=1, copy_spans="never", progress=progress)
    about = {**translator.about, "calibration": {"temperature": calibration.temperature}}
    calibrated = Translator(
        translator.model, translator.tokenizer, about=about, backend=translator.backend
    )
    scored = score_outputs(calibrated, translations, [reference for _, reference in pairs])
    return calibration.replace(quality=fit_quality(scored))


def score_outputs(
    translator: Translator, translations: Sequence[Translation], references: Sequence[str]
) -> list[ScoredTranslation]:
    """Return translations of one segment each with the log-probabilities of their tokens."""
    log_probs = translator.backend.score(
        translator.tokenizer.encode_src([translation.source for translation in translations]),
        [translation.ids for translation in translations],
        temperature=translator.temperature,
    )
    rows = zip(translations, log_probs, references, strict=True)
    return [ScoredTranslation(str(one), values, reference) for one, values, reference in rows]


def _fit_temperature(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Calibration:
    """Calibrate the probabilities of the tokens by teacher forcing."""
    native = translator.native
    tokenizer, backend = native.tokenizer, native.backend
    model: Any = backend.model
    src = tokenizer.encode_src([source for source, _ in pairs])
    tgt = tokenizer.encode_tgt([reference for _, reference in pairs])
    order = sorted(range(len(pairs)), key=lambda index: len(tgt[index]))

    def make_batches() -> Iterator[tuple[Tensor, Tensor]]:
        batch: list[int] = []
        for index in [*order, None]:
            # The next pair is at least as long as those of the batch.
            is_full = index is None or (len(batch) + 1) * len(tgt[index]) > BATCH_TOKENS
            if batch and is_full:
                labels = backend.pad([tgt[one] for one in batch])
                inputs = backend.pad([[START_ID, *tgt[one][:-1]] for one in batch])
                yield model(backend.pad([src[one] for one in batch]), inputs), labels
                batch = []
            if index is not None:
                batch.append(index)

    with torch.inference_mode(), backend.eval_mode():
        return calibrate(make_batches)
