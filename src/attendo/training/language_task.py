"""Plain text: what a language model learns from, one text a line."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from attendo.bundle import load_bundle, save_bundle
from attendo.core.errors import ConfigError
from attendo.data.batching import BatchPlan
from attendo.data.phrases import RequiredPhrase, TextView
from attendo.data.tokenizer import END_ID, UNK_ID
from attendo.training.distributed import unwrap
from attendo.training.metrics import append_line
from attendo.training.samples import FINAL_SENTENCES, NUM_SAMPLES
from attendo.training.steps import validate
from attendo.training.text_task import PairsTask
from attendo.translator.writer import LANGUAGE, TextScore, Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from attendo.baselines.factory import Model
    from attendo.data.batching import Batch, Rows
    from attendo.data.prepare import PreparedData
    from attendo.data.shards import TokenizedCorpus
    from attendo.training.config import RunConfig
    from attendo.training.distributed import Processes

SAMPLING: dict[str, Any] = {"count": 1, "max_tokens": 60, "top_p": 0.95, "seed": 1}
"""How fixed beginnings are gone on with at each validation: by the same chance every time."""


class LanguagePlan(BatchPlan):
    """Batches whose source is empty, the end symbol alone; the text is the target."""

    def __init__(
        self, corpora: Sequence[tuple[TokenizedCorpus, float]], *, batch_tokens: int, seed: int
    ) -> None:
        super().__init__(corpora, batch_tokens=batch_tokens, seed=seed)
        self.src_lengths = np.ones_like(self.src_lengths)

    def read(self, rows: Rows) -> Batch:
        """Read these texts and pad them."""
        return super().read(rows)._replace(src_ids=torch.full((len(rows), 1), END_ID))


class LanguageTask(PairsTask):
    """Texts out of nothing: each piece from those before it."""

    headline: tuple[str, ...] = ("perplexity", "bits_per_character", "accuracy")

    def __init__(self, config: RunConfig, directory: Path, prepared: PreparedData) -> None:
        super().__init__(config, directory, prepared)
        self.texts = [pair.tgt for pair in prepared.dev_pairs]
        self.samples = self._choose_samples()

    def _choose_samples(self) -> list[tuple[str, str]]:
        """Give beginnings, each with the text that it comes from; those that are told, or dev's."""
        tokenizer = self.prepared.tokenizer
        view = TextView(tokenizer)
        given = self.config.train.samples
        for text in filter(str.strip, given):
            RequiredPhrase(view, text)  # what the model cannot write is refused before any work
        if given:
            return [(text, "") for text in given]
        known = [
            text
            for text, ids in zip(self.texts, tokenizer.encode_tgt(self.texts), strict=True)
            if UNK_ID not in ids
        ]
        return [("", ""), *((cut_in_half(text), text) for text in known[: NUM_SAMPLES - 1])]

    def make_plan(self, model: Model, processes: Processes) -> BatchPlan:  # noqa: ARG002
        """Plan batches by the tokens of the texts alone."""
        train = self.config.train
        if train.pack:
            reason = f"train.pack is for text pairs and a Transformer, not for a {model.kind}"
            raise ConfigError(reason, remedy="leave train.pack out: batches are then padded")
        return LanguagePlan(self.prepared.train, batch_tokens=train.batch_tokens, seed=train.seed)

    def _make_dev(self) -> BatchPlan:
        corpora = [(self.prepared.dev, 1.0)]
        return LanguagePlan(corpora, batch_tokens=self.config.train.batch_tokens, seed=0)

    def measure(self, model: nn.Module, step: int) -> dict[str, float]:
        """Go on with the fixed beginnings; give what does not hang on the tokenizer."""
        writer = Writer(cast("Model", unwrap(model)), self.prepared.tokenizer)
        lines = [
            {
                "src": beginning,
                "output": writer.write(beginning, **SAMPLING)[0],
                **({"ref": text} if text else {}),
            }
            for beginning, text in self.samples
        ]
        append_line(self.directory / "samples.jsonl", {"step": step, "samples": lines})
        found = TextScore.join(writer.score(self.texts[:FINAL_SENTENCES]))
        return {"bits_per_character": found.bits_per_character}

    def score(self, model: Model, processes: Processes) -> dict[str, Any]:
        """Score all of dev by teacher forcing."""
        batches = (self.dev.read(rows) for rows in self.dev.epoch(0))
        found = validate(model, batches, precision=torch.float32, processes=processes)
        num_tokens = int(self.dev.tgt_lengths.sum())
        num_characters = sum(len(text) + 1 for text in self.texts)  # a line's end is one
        return {
            "loss": found.loss,
            "perplexity": found.perplexity,
            "accuracy": found.accuracy,
            "bits_per_character": found.loss * num_tokens / num_characters / log(2),
            "num_tokens": num_tokens,
            "num_characters": num_characters,
        }

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and tokenizer, and that it goes on with texts."""
        data = self.config.texts
        facts = {
            "task": LANGUAGE,
            "tgt_lang": data.tgt_lang or data.src_lang,
            "max_tokens": max(int(corpus.tgt_lengths.max()) for corpus, _ in self.prepared.train),
            **about,
        }
        save_bundle(model_dir, model, self.prepared.tokenizer, about=facts)
        load_bundle(model_dir)  # what was written can be read

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say what the figures count."""
        return (
            f"Perplexity over {dev['num_tokens']:,} pieces of this tokenizer; bits over "
            f"{dev['num_characters']:,} characters, a line's end among them: they compare with "
            "those of any other model of the same texts"
        )

    def next_command(self) -> str:
        """Name the command that goes on with texts."""
        return f"attendo sample {self.directory} '...'"


def cut_in_half(text: str) -> str:
    """Give the first half of the words of a text; of one word, the first half of its letters.

    >>> cut_in_half("나는 학교에 갔다 왔다"), cut_in_half("吾輩は猫である")
    ('나는 학교에', '吾輩は')
    """
    words = text.split()
    return " ".join(words[: len(words) // 2]) or text[: len(text) // 2]
