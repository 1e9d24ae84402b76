"""Translation: source texts to target texts, scored by BLEU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.data.corpus_config import Pair
from attendo.evaluation.bleu import bleu
from attendo.tasks.text_task import NUM_SAMPLES, TextTask
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate
from attendo.translator import Translator

if TYPE_CHECKING:
    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.training.distributed import ProcessGroup

FINAL_BLEU_SENTENCES = 1000
"""Sentences of dev that the finished model is scored on."""


class TranslationTask(TextTask):
    """Source texts to target texts."""

    headline_metrics = ("bleu", "perplexity", "accuracy")

    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Translate the fixed sentences; return BLEU on a part of dev."""
        translator = Translator(cast("Model", unwrap(model)), self.prepared.tokenizer)
        custom = [Pair(text, "") for text in self.config.train.samples]
        samples = custom or self.prepared.dev_pairs[:NUM_SAMPLES]
        outputs = translator.translate([sample.src for sample in samples], beam_size=1)
        lines = [
            {"src": sample.src, "output": output, **({"ref": sample.tgt} if sample.tgt else {})}
            for sample, output in zip(samples, outputs, strict=True)
        ]
        self.write_samples(step, lines)
        bleu_pairs = self.prepared.dev_pairs[: self.config.train.bleu_sentences]
        if not bleu_pairs:
            return {}
        translations = translator.translate([pair.src for pair in bleu_pairs], beam_size=1)
        return {"bleu": bleu(translations, [pair.tgt for pair in bleu_pairs]).score}

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score dev by teacher forcing, and greedy translations by BLEU."""
        batches = (self.dev.read(rows) for rows in self.dev.epoch(0))
        validation = validate(model, batches, precision=torch.float32, processes=processes)
        bleu_pairs = self.prepared.dev_pairs[:FINAL_BLEU_SENTENCES]
        translator = Translator(model, self.prepared.tokenizer)
        translations = translator.translate([pair.src for pair in bleu_pairs], beam_size=1)
        bleu_score = bleu(translations, [pair.tgt for pair in bleu_pairs])
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "bleu": bleu_score.score,
            "bleu_signature": bleu_score.signature,
            "bleu_sentences": len(bleu_pairs),
            "decoding": "greedy",
        }

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return how BLEU was measured."""
        return (
            f"BLEU: {dev['decoding']} decoding of {dev['bleu_sentences']} sentences, "
            f"`{dev['bleu_signature']}`"
        )

    def usage_hint(self) -> str:
        """Return the command that translates."""
        return f"attendo translate {self.directory} '...'"
