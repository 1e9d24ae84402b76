"""Translation: source texts to target texts, scored by BLEU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.core.message import message
from attendo.data.corpus_config import Pair
from attendo.evaluation.bleu import bleu, chrf
from attendo.evaluation.quality import fit_quality
from attendo.evaluation.recalibration import score_outputs
from attendo.tasks.text_task import NUM_SAMPLES, TextTask
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.data.pipeline import PreparedData
    from attendo.evaluation.calibration import Calibration
    from attendo.tasks.config import RunConfig
    from attendo.training.distributed import ProcessGroup
    from attendo.translator import Translation

FEW_SENTENCES = 100
"""A score on fewer sentences says little."""
FINAL_BLEU_SENTENCES = 1000
"""Sentences of dev that the finished model is scored and its confidence is fitted on."""


class TranslationTask(TextTask):
    """Source texts to target texts."""

    planned_task = "translation"
    headline_metrics = ("bleu", "chrf", "perplexity", "accuracy")

    def __init__(self, config: RunConfig, directory: Path, prepared: PreparedData) -> None:
        super().__init__(config, directory, prepared)
        self._dev_translations: list[Translation] = []
        """Of the finished model, written by `score` and read by `calibrate`."""

    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Translate the fixed sentences; return BLEU and chrF on a part of dev."""
        translator = Translator(cast("Model", unwrap(model)), self.prepared.tokenizer)
        custom = [Pair(text, "") for text in self.config.train.samples]
        samples = custom or self.prepared.dev_pairs[:NUM_SAMPLES]
        outputs = translator.translate(
            [sample.src for sample in samples], beam_size=1, copy_spans="never"
        )
        lines = [
            {"src": sample.src, "output": output, **({"ref": sample.tgt} if sample.tgt else {})}
            for sample, output in zip(samples, outputs, strict=True)
        ]
        self.write_samples(step, lines)
        bleu_pairs = self.prepared.dev_pairs[: self.config.train.bleu_sentences]
        if not bleu_pairs:
            return {}
        translations = translator.translate(
            [pair.src for pair in bleu_pairs], beam_size=1, copy_spans="never"
        )
        references = [pair.tgt for pair in bleu_pairs]
        return {
            "bleu": bleu(translations, references).score,
            "chrf": chrf(translations, references),
        }

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score dev by teacher forcing, and greedy translations by BLEU."""
        batches = (self.dev.read(rows) for rows in self.dev.epoch(0))
        validation = validate(model, batches, precision=torch.float32, processes=processes)
        bleu_pairs = self.prepared.dev_pairs[:FINAL_BLEU_SENTENCES]
        translator = Translator(model, self.prepared.tokenizer)
        translations = translator.translate(
            [pair.src for pair in bleu_pairs], beam_size=1, copy_spans="never"
        )
        self._dev_translations = translations
        references = [pair.tgt for pair in bleu_pairs]
        bleu_score = bleu(translations, references)
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "bleu": bleu_score.score,
            "chrf": chrf(translations, references),
            "bleu_signature": bleu_score.signature,
            "bleu_sentences": len(bleu_pairs),
            "decoding": "greedy",
        }

    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:
        """Fit the temperature, and the quality of the translations that `score` has made.

        A line of several sentences is left out: its sentences were translated one by one, but the
        reference is that of the line.
        """
        calibration = super().calibrate(model, processes)
        if calibration is None:
            return None
        about = {"calibration": {"temperature": calibration.temperature}}
        translator = Translator(model, self.prepared.tokenizer, about=about)
        pairs = zip(self._dev_translations, self.prepared.dev_pairs, strict=False)
        single = [
            (translation, pair.tgt)
            for translation, pair in pairs
            if len(translator.split_text(pair.src, "auto").segments) == 1
        ]
        translations = [translation for translation, _ in single]
        scored = score_outputs(translator, translations, [reference for _, reference in single])
        return calibration.replace(quality=fit_quality(scored))

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return how BLEU was measured."""
        count = dev["bleu_sentences"]
        template = "BLEU: {decoding} decoding of {count} sentences, `{signature}`"
        if count == 1:
            template = (
                "BLEU: {decoding} decoding of 1 sentence; too few for a reliable score, "
                "`{signature}`"
            )
        elif count < FEW_SENTENCES:
            template = (
                "BLEU: {decoding} decoding of {count} sentences; too few for a reliable score, "
                "`{signature}`"
            )
        decoding, signature = message(dev["decoding"]), dev["bleu_signature"]
        return message(template, decoding=decoding, count=count, signature=signature)

    def usage_hint(self) -> str:
        """Return the command that translates."""
        return f"attendo translate {self.directory} '...'"
