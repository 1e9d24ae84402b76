"""Text classification: one label per text, predicted by an encoder (or any other model)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from attendo.core.message import message
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.evaluation.quality import ScoredTranslation, fit_quality
from attendo.inspection.embeddings import max_positions
from attendo.tasks.classification.metrics import LabelScores, score_labels
from attendo.tasks.text_task import NUM_SAMPLES, TextTask, mean_sentences
from attendo.text.tokenizer import END_ID, SPECIAL_IDS
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan
    from attendo.training.distributed import ProcessGroup

TASK_NAME = "labels"
FIRST_LABEL_ID = len(SPECIAL_IDS)
MIN_EXAMPLES = 10
"""A class with fewer training lines is reported: it can hardly be learned."""
MAX_LISTED = 12
MIN_SENTENCES_PER_TEXT, DEFAULT_MAX_SRC_TOKENS = 2.0, 4096
"""How much a classifier reads at once: a text is never split into sentences."""


class DevPredictions(NamedTuple):
    """References, predictions and probabilities of all lines of dev."""

    references: list[str]
    predictions: list[str]
    probabilities: list[float]


class ClassificationTask(TextTask):
    """Texts to labels."""

    headline_metrics = ("exact", "macro_f1", "loss")

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Return the facts with the classes, and those that have too few lines."""
        facts = super().describe(plan, model)
        counts = self._count_labels()
        lines = [f"labels: {len(counts)}, {_list_counts(counts)}"]
        rare = {label: count for label, count in counts.items() if count < MIN_EXAMPLES}
        if rare:
            lines.append(f"fewer than {MIN_EXAMPLES} examples: {_list_counts(rare)}")
        unseen = self.prepared.report["dev"].get("unseen", {})
        if unseen:
            lines.append(f"only in dev, ignored: {_list_counts(unseen)}")
        return {**facts, "labels": counts, "lines": [*facts["lines"], *lines]}

    def _count_labels(self) -> dict[str, int]:
        """Return the training lines of each class, the most frequent first."""
        tokenizer = self.prepared.tokenizer
        totals = np.zeros(tokenizer.tgt_vocab_size, dtype=np.int64)
        for corpus, _ in self.prepared.train:
            _, ids = corpus.concatenate(np.arange(len(corpus)))
            totals += np.bincount(ids[ids != END_ID], minlength=len(totals))
        totals //= self.config.text_data.num_subword_samples
        labeled = zip(tokenizer.labels, totals[FIRST_LABEL_ID:].tolist(), strict=True)
        return dict(sorted(labeled, key=lambda pair: -pair[1]))

    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Classify the fixed texts; return the scores of dev."""
        unwrapped = cast("Model", unwrap(model))
        custom = [(text, "") for text in self.config.train.samples]
        samples = custom or [(p.src, p.tgt) for p in self.prepared.dev_pairs[:NUM_SAMPLES]]
        translator = Translator(unwrapped, self.prepared.tokenizer)
        texts = [text for text, _ in samples]
        outputs = translator.translate(texts, beam_size=1, split="never")
        lines = [
            {"src": text, "output": str(output), **({"ref": label} if label else {})}
            for (text, label), output in zip(samples, outputs, strict=True)
        ]
        self.write_samples(step, lines)
        scores = self._score_labels(unwrapped)
        return {"exact": scores.accuracy, "macro_f1": scores.macro_f1}

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score all of dev."""
        parts = (self.dev.read(rows) for rows in self.dev.epoch(0))
        validation = validate(model, parts, precision=torch.float32, processes=processes)
        labels = self._score_labels(model)
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "exact": labels.accuracy,
            **{key: value for key, value in labels.to_dict().items() if key != "accuracy"},
        }

    def _score_labels(self, model: Model) -> LabelScores:
        predicted = self._classify(model)
        return score_labels(
            predicted.predictions, predicted.references, confidences=predicted.probabilities
        )

    def _classify(self, model: Model, *, temperature: float = 1.0) -> DevPredictions:
        names = self.prepared.tokenizer.labels
        predicted = DevPredictions([], [], [])
        for logits, labels in self._label_logits(model):
            probabilities = (logits.float() / temperature).softmax(-1)
            best = probabilities[:, 0, FIRST_LABEL_ID:].max(-1)
            predicted.references.extend(
                names[number - FIRST_LABEL_ID] for number in labels[:, 0].tolist()
            )
            predicted.predictions.extend(names[number] for number in best.indices.tolist())
            predicted.probabilities.extend(best.values.tolist())
        return predicted

    @torch.no_grad()
    def _label_logits(self, model: Model) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the logits (B, 1, V) and the class (B, 1) of each line, without the end symbol."""
        device = next(model.parameters()).device
        was_training = model.training
        model.eval()
        for rows in self.dev.epoch(0):
            batch = self.dev.read(rows).to(device)
            yield model(batch.src_ids, batch.tgt_ids)[:, :1], batch.labels[:, :1]
        model.train(was_training)

    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:  # noqa: ARG002
        """Fit the temperature on the classes of dev, then how often a probability was right."""
        calibration = calibrate(lambda: self._label_logits(model))
        predicted = self._classify(model, temperature=calibration.temperature)
        scored = [
            ScoredTranslation(label, [math.log(max(probability, 1e-300))], reference)
            for reference, label, probability in zip(*predicted, strict=True)
        ]
        return calibration.replace(quality=fit_quality(scored, is_exact_only=True))

    def describe_model(self, model: Model) -> dict[str, Any]:
        """Return what any text task records, and the classes."""
        return {
            **super().describe_model(model),
            "task": TASK_NAME,
            "labels": self.prepared.tokenizer.labels,
            "num_sentences": max(MIN_SENTENCES_PER_TEXT, mean_sentences(self.prepared.dev_pairs)),
            "max_src_tokens": max_positions(model) or DEFAULT_MAX_SRC_TOKENS,
        }

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return what the scores count."""
        return message(
            "{num_lines:,} lines of dev in {num_classes} classes; always the most frequent class "
            "has an accuracy of {majority:.2%}",
            num_lines=dev["num_lines"],
            num_classes=len(dev["classes"]),
            majority=dev["majority"],
        )

    def usage_hint(self) -> str:
        """Return the command that classifies."""
        return f"attendo translate {self.directory} '...'"


def _list_counts(counts: dict[str, int]) -> str:
    listed = [f"{label} {count:,}" for label, count in list(counts.items())[:MAX_LISTED]]
    rest = len(counts) - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")
