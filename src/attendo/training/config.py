"""Settings of training."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Natural, Rate, Seed
from attendo.core.errors import ConfigError
from attendo.core.message import message

Positive = Annotated[float, Field(gt=0.0)]


class TrainConfig(Config):
    """How a model is trained. The defaults are the paper's, except for the batch size."""

    max_steps: Count = 100_000
    batch_tokens: Count = 4096
    """Tokens per step on each side, summed over all processes. The paper uses 25,000."""
    accumulation_steps: Count = 1
    """Micro-batches per batch and process, to save memory; they do not change the result."""
    seed: Seed = 1

    label_smoothing: Rate = 0.1
    rdrop_weight: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of R-Drop: each pair is read twice with different dropout masks, and the divergence
    of the two outputs is added to the loss. It doubles the work; 1 to 5 help small corpora. 0 (the
    paper) is off."""
    schedule: Literal["paper", "inverse_sqrt", "cosine"] = "paper"
    warmup_steps: Count = 4000
    lr_scale: Positive = 1.0
    """Multiplies the paper's schedule."""
    peak_lr: Positive = 5e-4
    """The highest learning rate of the schedules `inverse_sqrt` and `cosine`."""
    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: Positive = 1e-9
    clip_norm: Annotated[float, Field(ge=0.0)] = 0.0
    """Largest norm of the gradient; 0 (the paper) does not clip."""

    save_every: Count = 1000
    save_minutes: Positive | None = 10.0
    """Minutes after which a checkpoint is saved in any case, so that no more work can be lost. It
    is deleted when the next one is saved, and is neither validated nor averaged."""
    validate_every: Count | None = None
    """Steps between validations; `save_every` by default."""
    log_every: Count = 20
    keep_last: Count = 5
    keep_best: Natural = 1
    average_checkpoints: Count = 5
    """Checkpoints averaged into the finished model (section 6.1)."""
    average: Literal["last", "best"] | None = None
    """Which checkpoints: the last ones (the paper), or the best ones on dev; by default the best
    ones if training may stop early (`patience`)."""
    ema_decay: Rate = 0.0
    """Departs from the paper: the finished model is an exponential moving average."""
    patience: Count | None = None
    """Stop after this many validations without a better `early_stopping_metric`."""
    early_stopping_metric: Literal["loss", "bleu", "chrf"] = "loss"
    """What is best on dev. On small corpora the loss rises again long before translations stop
    improving, so that BLEU and chrF are the better measures there."""
    max_minutes: Positive | None = None
    """Stop after this many minutes of training, resumed runs included."""
    bleu_sentences: Natural = 200
    """Sentences of dev translated (greedily) at each validation for BLEU."""
    samples: tuple[str, ...] = ()
    """Fixed sentences translated at each validation; by default some of dev."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: bool | None = None
    """`torch.compile`; by default on a GPU, if the run is long enough to recover the compile
    time."""
    sequence_packing: bool | None = None
    """Concatenate sentences so that batches have no padding; by default if the model supports
    it."""
    cuda_graph: bool = True
    """Capture a packed step on a single GPU and replay it: one launch instead of hundreds."""
    fsdp: bool = False
    """Shard the weights over the processes (FSDP) instead of replicating them (DDP)."""

    @model_validator(mode="after")
    def _check_checkpoint_counts(self) -> Self:
        reasons = []
        if self.average_checkpoints > self.keep_last and not self.averages_best:
            count = self.average_checkpoints
            reason = message(
                "average_checkpoints {count} needs keep_last of at least as many", count=count
            )
            reasons.append(
                message("{reason}, not {keep_last}", reason=reason, keep_last=self.keep_last)
            )
        if self.fsdp and self.early_stopping_metric != "loss":
            reasons.append(
                message(
                    "early_stopping_metric '{early_stopping_metric}' is not measured with "
                    "fsdp: use loss",
                    early_stopping_metric=self.early_stopping_metric,
                )
            )
        if self.early_stopping_metric != "loss" and not self.bleu_sentences:
            reasons.append(
                message(
                    "early_stopping_metric '{early_stopping_metric}' needs bleu_sentences above 0",
                    early_stopping_metric=self.early_stopping_metric,
                )
            )
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def averages_best(self) -> bool:
        """Whether the best checkpoints are averaged, not the last ones."""
        return self.average == "best" or (self.average is None and self.patience is not None)

    @property
    def num_best_kept(self) -> int:
        """How many of the best checkpoints are kept."""
        return max(self.keep_best, self.average_checkpoints if self.averages_best else 0)

    @property
    def validation_interval(self) -> int:
        """Steps between validations."""
        return self.validate_every or self.save_every
