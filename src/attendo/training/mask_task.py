"""Plain text with hidden words: what an encoder is pre-trained on (Devlin et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from attendo.bundle import build_model
from attendo.core.errors import ConfigError
from attendo.data.masking import MaskedPlan, PackedMaskedPlan, hide
from attendo.data.tokenizer import END_ID, PAD_ID, SPACE_MARK, unescape
from attendo.training.distributed import unwrap
from attendo.training.metrics import append_line
from attendo.training.samples import NUM_SAMPLES
from attendo.training.steps import validate
from attendo.training.text_task import PairsTask
from attendo.translator.filler import GAP, MASK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from attendo.baselines.factory import Model
    from attendo.data.shards import TokenizedCorpus
    from attendo.training.distributed import Processes

SAMPLE_SEED = 0


class MaskTask(PairsTask):
    """Texts of which some words are hidden, into those words."""

    headline: tuple[str, ...] = ("accuracy", "perplexity")

    def build_model(self) -> Model:
        """Make an encoder that says something at each position."""
        chosen = self.config.model
        if chosen.changes.get("reads", "each") != "each":
            raise ConfigError(
                f"model.reads = '{chosen.changes['reads']}': hidden words are read where they are",
                remedy="leave model.reads out; a run on labelled lines sums texts up",
            )
        options = {**chosen.options, "reads": "each"}
        return build_model(chosen.kind, options, self.prepared.tokenizer)

    def make_plan(self, model: Model, processes: Processes) -> MaskedPlan:  # noqa: ARG002
        """Plan batches by the tokens of the texts, with other words hidden in each epoch."""
        train = self.config.train
        can_pack = bool(getattr(model, "can_pack", False)) and not train.shard
        is_packed = can_pack and train.pack is not False
        kind = PackedMaskedPlan if is_packed else MaskedPlan
        return self._plan(kind, self.prepared.train, train.seed)

    def _make_dev(self) -> MaskedPlan:
        return self._plan(MaskedPlan, [(self.prepared.dev, 1.0)], 0)

    def _plan(
        self,
        kind: type[MaskedPlan],
        corpora: Sequence[tuple[TokenizedCorpus, float]],
        seed: int,
    ) -> MaskedPlan:
        return kind(
            corpora,
            batch_tokens=self.config.train.batch_tokens,
            seed=seed,
            vocab_size=self.prepared.tokenizer.src_vocab_size,
        )

    @torch.no_grad()
    def measure(self, model: nn.Module, step: int) -> dict[str, float]:
        """Write what the model takes for the hidden words of a few texts, always the same ones."""
        texts = self.config.train.samples or [p.src for p in self.prepared.dev_pairs[:NUM_SAMPLES]]
        plain = cast("Model", unwrap(model))
        was_training = plain.training
        plain.eval()
        lines = [self._try(plain, text, number) for number, text in enumerate(texts)]
        plain.train(was_training)
        append_line(self.directory / "samples.jsonl", {"step": step, "samples": lines})
        return {}

    def _try(self, model: Model, text: str, number: int) -> dict[str, Any]:
        tokenizer = self.prepared.tokenizer
        ids = np.array(tokenizer.encode_src([text]), dtype=np.int64)
        size = tokenizer.src_vocab_size
        shown, asked = hide(ids, np.array([number]), vocab_size=size, seed=SAMPLE_SEED)
        device = next(model.parameters()).device
        source = torch.from_numpy(shown).to(device)
        best = model(source, source)[0].argmax(-1).cpu().numpy()
        is_asked = asked[0] != PAD_ID
        gaps = np.where(is_asked, -1, ids[0]).tolist()
        guessed = np.where(is_asked, best, ids[0]).tolist()
        said = tokenizer.src_pieces(best[is_asked])
        true = tokenizer.src_pieces(asked[0][is_asked])
        return {
            "src": self._write(gaps),
            "output": self._write(guessed),
            "ref": text,
            "hidden": [{"word": one, "said": other} for one, other in zip(true, said, strict=True)],
        }

    def _write(self, ids: Sequence[int]) -> str:
        """Put pieces together, a gap where -1 stands."""
        tokenizer = self.prepared.tokenizer
        real = [number for number in ids if number != END_ID]
        pieces = [
            f" {GAP} " if number < 0 else tokenizer.src_pieces([number])[0] for number in real
        ]
        return " ".join(unescape("".join(pieces).replace(SPACE_MARK, " ")).split())

    def score(self, model: Model, processes: Processes) -> dict[str, Any]:
        """Score the hidden words of all of dev."""
        batches = self.dev.epoch(0)
        parts = (self.dev.read(rows) for rows in batches)
        found = validate(model, parts, precision=torch.float32, processes=processes)
        return {
            "loss": found.loss,
            "perplexity": found.perplexity,
            "accuracy": found.accuracy,
            "num_hidden": sum(self.dev.count_labels(rows) for rows in batches),
        }

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and tokenizer, and that it finds hidden words."""
        super().save(model_dir, model, {"task": MASK, **about})

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say what the figures count."""
        return (
            f"Accuracy and perplexity on {dev['num_hidden']:,} hidden pieces of dev "
            "(15 % of each text), read from both sides"
        )

    def next_command(self) -> str:
        """Name the command that fills gaps in."""
        return f"attendo fill {self.directory} '... {GAP} ...'"
