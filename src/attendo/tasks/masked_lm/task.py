"""Masked language modeling: pre-training of an encoder on plain text (Devlin et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from attendo.bundle import MASKED_LM_TASK, build_model
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.tasks.masked_lm.batching import MaskedBatchPlan, PackedMaskedBatchPlan, mask_tokens
from attendo.tasks.masked_lm.fill_mask import MASK_TEXT
from attendo.tasks.text_task import NUM_SAMPLES, TextTask
from attendo.text.tokenizer import END_ID, PAD_ID, SPACE_SYMBOL, unescape_space_symbol
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.data.shards import TokenizedCorpus
    from attendo.training.distributed import ProcessGroup

SAMPLE_SEED = 0


class MaskedLMTask(TextTask):
    """Prediction of masked tokens from both sides."""

    headline_metrics = ("accuracy", "perplexity")

    def build_model(self) -> Model:
        """Return an encoder with an output at each position."""
        model_config = self.config.model
        if model_config.overrides.get("reads", "each") != "each":
            raise ConfigError(
                message(
                    "model.reads = '{reads}': a masked language model needs an output at "
                    "each position ('each')",
                    reads=model_config.overrides["reads"],
                ),
                hint="leave model.reads out; 'summary' is for text classification",
            )
        options = {**model_config.options, "reads": "each"}
        return build_model(model_config.kind, options, self.prepared.tokenizer)

    def make_plan(self, model: Model, processes: ProcessGroup) -> MaskedBatchPlan:  # noqa: ARG002
        """Return batches whose masked positions differ in each epoch."""
        train = self.config.train
        supports_packing = bool(getattr(model, "supports_packing", False)) and not train.fsdp
        is_packed = supports_packing and train.sequence_packing is not False
        plan_class = PackedMaskedBatchPlan if is_packed else MaskedBatchPlan
        return self._build_plan(plan_class, self.prepared.train, train.seed)

    def _make_dev_plan(self) -> MaskedBatchPlan:
        return self._build_plan(MaskedBatchPlan, [(self.prepared.dev, 1.0)], 0)

    def _build_plan(
        self,
        plan_class: type[MaskedBatchPlan],
        corpora: Sequence[tuple[TokenizedCorpus, float]],
        seed: int,
    ) -> MaskedBatchPlan:
        return plan_class(
            corpora,
            batch_tokens=self.config.train.batch_tokens,
            seed=seed,
            vocab_size=self.prepared.tokenizer.src_vocab_size,
        )

    @torch.no_grad()
    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Write the predictions for the masked tokens of a few texts, always the same ones."""
        texts = self.config.train.samples or [p.src for p in self.prepared.dev_pairs[:NUM_SAMPLES]]
        unwrapped = cast("Model", unwrap(model))
        was_training = unwrapped.training
        unwrapped.eval()
        lines = [self._fill_sample(unwrapped, text, number) for number, text in enumerate(texts)]
        unwrapped.train(was_training)
        self.write_samples(step, lines)
        return {}

    def _fill_sample(self, model: Model, text: str, number: int) -> dict[str, Any]:
        tokenizer = self.prepared.tokenizer
        ids = np.array(tokenizer.encode_src([text]), dtype=np.int64)
        size = tokenizer.src_vocab_size
        masked, labels = mask_tokens(ids, np.array([number]), vocab_size=size, seed=SAMPLE_SEED)
        device = next(model.parameters()).device
        source = torch.from_numpy(masked).to(device)
        best = model(source, source)[0].argmax(-1).cpu().numpy()
        is_masked = labels[0] != PAD_ID
        masked_ids = np.where(is_masked, -1, ids[0]).tolist()
        filled_ids = np.where(is_masked, best, ids[0]).tolist()
        predicted_pieces = tokenizer.src_pieces(best[is_masked])
        true_pieces = tokenizer.src_pieces(labels[0][is_masked])
        return {
            "src": self._join_pieces(masked_ids),
            "output": self._join_pieces(filled_ids),
            "ref": text,
            "hidden": [
                {"word": one, "predicted": other}
                for one, other in zip(true_pieces, predicted_pieces, strict=True)
            ],
        }

    def _join_pieces(self, ids: Sequence[int]) -> str:
        """Return the text of ids, with a gap for each -1."""
        tokenizer = self.prepared.tokenizer
        content_ids = [number for number in ids if number != END_ID]
        pieces = [
            f" {MASK_TEXT} " if number < 0 else tokenizer.src_pieces([number])[0]
            for number in content_ids
        ]
        return " ".join(unescape_space_symbol("".join(pieces).replace(SPACE_SYMBOL, " ")).split())

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score the masked tokens of all of dev."""
        batches = self.dev.epoch(0)
        parts = (self.dev.read(rows) for rows in batches)
        validation = validate(model, parts, precision=torch.float32, processes=processes)
        return {
            "loss": validation.loss,
            "perplexity": validation.perplexity,
            "accuracy": validation.accuracy,
            "num_hidden": sum(self.dev.count_labels(rows) for rows in batches),
        }

    def describe_model(self, model: Model) -> dict[str, Any]:
        """Return what any text task records, and the mark of a masked language model."""
        return {**super().describe_model(model), "task": MASKED_LM_TASK}

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return what the scores count."""
        return message(
            "Accuracy and perplexity on {count:,} masked tokens of dev (15 % of each text)",
            count=dev["num_hidden"],
        )

    def usage_hint(self) -> str:
        """Return the command that fills gaps."""
        return f"attendo fill {self.directory} '... {MASK_TEXT} ...'"
