"""Language modeling: a decoder-only model on plain text, one text per line."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from attendo.bundle import LANGUAGE_MODEL_TASK
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.batching import BatchPlan
from attendo.tasks.language_model.generator import TextGenerator, TextScore
from attendo.tasks.text_task import NUM_SAMPLES, TextTask
from attendo.text.phrase_constraints import IncrementalDetokenizer, RequiredPhrase
from attendo.text.tokenizer import END_ID, UNK_ID
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.data.batching import Batch, Rows
    from attendo.data.pipeline import PreparedData
    from attendo.data.shards import TokenizedCorpus
    from attendo.tasks.config import RunConfig
    from attendo.training.distributed import ProcessGroup

SAMPLING_OPTIONS: dict[str, Any] = {"count": 1, "max_tokens": 60, "top_p": 0.95, "seed": 1}
"""How the fixed prompts are continued at each validation, always with the same seed."""
MAX_VALIDATION_TEXTS = 1000
"""Texts of dev whose bits per character are measured at each validation."""


class LanguageModelPlan(BatchPlan):
    """Batches with an empty source, the end symbol alone; the text is the target."""

    def __init__(
        self, corpora: Sequence[tuple[TokenizedCorpus, float]], *, batch_tokens: int, seed: int
    ) -> None:
        super().__init__(corpora, batch_tokens=batch_tokens, seed=seed)
        self.src_lengths = np.ones_like(self.src_lengths)

    def read(self, rows: Rows) -> Batch:
        """Return these texts, padded."""
        return super().read(rows)._replace(src_ids=torch.full((len(rows), 1), END_ID))


class LanguageModelTask(TextTask):
    """Next-token prediction on plain text."""

    headline_metrics = ("perplexity", "bits_per_character", "accuracy")

    def __init__(self, config: RunConfig, directory: Path, prepared: PreparedData) -> None:
        super().__init__(config, directory, prepared)
        self.texts = [pair.tgt for pair in prepared.dev_pairs]
        self.prompts = self._choose_prompts()

    def _choose_prompts(self) -> list[tuple[str, str]]:
        """Return prompts and the texts they come from: those of the run, or halves of dev texts."""
        tokenizer = self.prepared.tokenizer
        view = IncrementalDetokenizer(tokenizer)
        custom = self.config.train.samples
        for text in filter(str.strip, custom):
            RequiredPhrase(view, text)  # raises if the model cannot write the prompt
        if custom:
            return [(text, "") for text in custom]
        encodable = [
            text
            for text, ids in zip(self.texts, tokenizer.encode_tgt(self.texts), strict=True)
            if UNK_ID not in ids
        ]
        return [("", ""), *((first_half(text), text) for text in encodable[: NUM_SAMPLES - 1])]

    def make_plan(self, model: Model, processes: ProcessGroup) -> BatchPlan:  # noqa: ARG002
        """Return padded batches, sized by the tokens of the texts alone."""
        train = self.config.train
        if train.sequence_packing:
            raise ConfigError(
                message(
                    "train.sequence_packing does not work with a model of kind {kind}",
                    kind=model.kind,
                ),
                hint="leave train.sequence_packing out: batches are then padded",
            )
        return LanguageModelPlan(
            self.prepared.train, batch_tokens=train.batch_tokens, seed=train.seed
        )

    def _make_dev_plan(self) -> BatchPlan:
        corpora = [(self.prepared.dev, 1.0)]
        return LanguageModelPlan(corpora, batch_tokens=self.config.train.batch_tokens, seed=0)

    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Continue the fixed prompts; return bits per character, which any tokenizer can have."""
        generator = TextGenerator(cast("Model", unwrap(model)), self.prepared.tokenizer)
        lines = [
            {
                "src": prompt,
                "output": generator.generate(prompt, **SAMPLING_OPTIONS)[0],
                **({"ref": text} if text else {}),
            }
            for prompt, text in self.prompts
        ]
        self.write_samples(step, lines)
        score = TextScore.join(generator.score(self.texts[:MAX_VALIDATION_TEXTS]))
        return {"bits_per_character": score.bits_per_character}

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score all of dev by teacher forcing."""
        batches = (self.dev.read(rows) for rows in self.dev.epoch(0))
        validation = validate(model, batches, precision=torch.float32, processes=processes)
        num_tokens = int(self.dev.tgt_lengths.sum())
        num_characters = sum(len(text) + 1 for text in self.texts)  # with the line break
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "bits_per_character": validation.loss * num_tokens / num_characters / log(2),
            "num_tokens": num_tokens,
            "num_characters": num_characters,
        }

    def describe_model(self, model: Model) -> dict[str, Any]:  # noqa: ARG002 - others need it
        """Return the mark of a language model, its language, and its longest text."""
        data = self.config.text_data
        return {
            "task": LANGUAGE_MODEL_TASK,
            "tgt_lang": data.tgt_lang or data.src_lang,
            "max_tokens": max(int(corpus.tgt_lengths.max()) for corpus, _ in self.prepared.train),
        }

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return what the scores count."""
        return message(
            "Perplexity over {num_tokens:,} tokens of this tokenizer; bits over "
            "{num_characters:,} characters with line breaks, comparable with any other model of "
            "the same texts",
            num_tokens=dev["num_tokens"],
            num_characters=dev["num_characters"],
        )

    def usage_hint(self) -> str:
        """Return the command that continues texts."""
        return f"attendo generate {self.directory} '...'"


def first_half(text: str) -> str:
    """Return the first half of the words of a text; of a single word, half of its characters.

    >>> first_half("나는 학교에 갔다 왔다"), first_half("吾輩は猫である")
    ('나는 학교에', '吾輩は')
    """
    words = text.split()
    return " ".join(words[: len(words) // 2]) or text[: len(text) // 2]
