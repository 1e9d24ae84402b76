"""Labelled lines: texts into the names of their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from attendo.data.tokenizer import END_ID, SPECIALS
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.evaluation.labels import LabelScores, score_labels
from attendo.inspection.neighbours import count_places
from attendo.training.distributed import unwrap
from attendo.training.metrics import append_line
from attendo.training.samples import NUM_SAMPLES
from attendo.training.steps import validate
from attendo.training.text_task import PairsTask, count_sentences
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor, nn

    from attendo.baselines.factory import Model
    from attendo.data.batching import BatchPlan
    from attendo.training.distributed import Processes

LABELS = "labels"
FIRST = len(SPECIALS)
FEW = 10
"""Lines below which a class is told of: it can hardly be learnt."""
MOST_NAMED = 12
WHOLE_SENTENCES, WHOLE_TOKENS = 2.0, 4096
"""What a classifier says it can read at once: it takes a text whole, not piece by piece."""


class Classified(NamedTuple):
    """All lines of dev: the class of each, and what the model takes it for."""

    right: list[str]
    said: list[str]
    probabilities: list[float]


class LabelTask(PairsTask):
    """Texts into labels."""

    headline: tuple[str, ...] = ("exact", "macro_f1", "loss")

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Tell beside the rest which classes there are, and which have too few lines."""
        facts = super().describe(plan, model)
        counts = self._count_labels()
        lines = [f"labels: {len(counts)}, {_list_counts(counts)}"]
        few = {label: count for label, count in counts.items() if count < FEW}
        if few:
            lines.append(f"few examples (under {FEW}): {_list_counts(few)}")
        unseen = self.prepared.report["dev"].get("unseen", {})
        if unseen:
            lines.append(f"only in dev, and left out there: {_list_counts(unseen)}")
        return {**facts, "labels": counts, "lines": [*facts["lines"], *lines]}

    def _count_labels(self) -> dict[str, int]:
        """Count the lines of each class in train, the commonest first."""
        tokenizer = self.prepared.tokenizer
        totals = np.zeros(tokenizer.tgt_vocab_size, dtype=np.int64)
        for corpus, _ in self.prepared.train:
            _, ids = corpus.join(np.arange(len(corpus)))
            totals += np.bincount(ids[ids != END_ID], minlength=len(totals))
        totals //= self.config.texts.num_cuts
        named = zip(tokenizer.labels, totals[FIRST:].tolist(), strict=True)
        return dict(sorted(named, key=lambda pair: -pair[1]))

    def measure(self, model: nn.Module, step: int) -> dict[str, float]:
        """Classify the fixed texts into the file, and dev for its figures."""
        plain = cast("Model", unwrap(model))
        given = [(text, "") for text in self.config.train.samples]
        samples = given or [(p.src, p.tgt) for p in self.prepared.dev_pairs[:NUM_SAMPLES]]
        translator = Translator(plain, self.prepared.tokenizer)
        texts = [text for text, _ in samples]
        said = translator.translate(texts, beam_size=1, split="never")
        lines = [
            {"src": text, "output": str(one), **({"ref": label} if label else {})}
            for (text, label), one in zip(samples, said, strict=True)
        ]
        append_line(self.directory / "samples.jsonl", {"step": step, "samples": lines})
        found = self._compare(plain)
        return {"exact": found.accuracy, "macro_f1": found.macro_f1}

    def score(self, model: Model, processes: Processes) -> dict[str, Any]:
        """Classify all of dev."""
        parts = (self.dev.read(rows) for rows in self.dev.epoch(0))
        found = validate(model, parts, precision=torch.float32, processes=processes)
        labels = self._compare(model)
        return {
            "loss": found.loss,
            "perplexity": found.perplexity,
            "accuracy": found.accuracy,
            "exact": labels.accuracy,
            **{key: value for key, value in labels.to_dict().items() if key != "accuracy"},
        }

    def _compare(self, model: Model) -> LabelScores:
        found = self._classify(model)
        return score_labels(found.said, found.right, confidences=found.probabilities)

    def _classify(self, model: Model) -> Classified:
        names = self.prepared.tokenizer.labels
        found = Classified([], [], [])
        for logits, labels in self._read_labels(model):
            best = logits.float().softmax(-1)[:, 0, FIRST:].max(-1)
            found.right.extend(names[number - FIRST] for number in labels[:, 0].tolist())
            found.said.extend(names[number] for number in best.indices.tolist())
            found.probabilities.extend(best.values.tolist())
        return found

    @torch.no_grad()
    def _read_labels(self, model: Model) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the logits (B, 1, V) and the class (B, 1) of each line: the end is no news."""
        device = next(model.parameters()).device
        was_training = model.training
        model.eval()
        for rows in self.dev.epoch(0):
            batch = self.dev.read(rows).to(device)
            yield model(batch.src_ids, batch.tgt_ids)[:, :1], batch.labels[:, :1]
        model.train(was_training)

    def calibrate(self, model: Model, processes: Processes) -> Calibration | None:  # noqa: ARG002
        """Fit the temperature on the classes of dev."""
        return calibrate(lambda: self._read_labels(model))

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and tokenizer, and the classes."""
        facts = {
            "task": LABELS,
            "labels": self.prepared.tokenizer.labels,
            "num_sentences": max(WHOLE_SENTENCES, count_sentences(self.prepared.dev_pairs)),
            "max_src_tokens": count_places(model) or WHOLE_TOKENS,
        }
        super().save(model_dir, model, {**facts, **about})

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say what the figures count."""
        return (
            f"{dev['num_lines']:,} lines of dev in {len(dev['classes'])} classes; always the "
            f"commonest would be right in {dev['majority']:.2%}"
        )

    def next_command(self) -> str:
        """Name the command that classifies."""
        return f"attendo translate {self.directory} '...'"


def _list_counts(counts: dict[str, int]) -> str:
    named = [f"{label} {count:,}" for label, count in list(counts.items())[:MOST_NAMED]]
    rest = len(counts) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
