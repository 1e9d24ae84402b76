"""Settings of training."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Rate
from attendo.core.errors import ConfigError

Positive = Annotated[float, Field(gt=0.0)]


class TrainConfig(Config):
    """How it is trained. Defaults are the paper's, but for the size of a batch."""

    max_steps: Count = 100_000
    batch_tokens: Count = 4096
    """Tokens of a step on either side, over all processes. The paper: 25,000."""
    accumulation_steps: Count = 1
    """Pieces that a process cuts its part of a batch into, to save memory: the result stays."""
    seed: int = 1

    label_smoothing: Rate = 0.1
    rdrop_weight: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of R-Drop: each pair is read twice with other dropout, and both readings shall agree.
    Twice the work; small corpora gain by 1 to 5. 0 (the paper) is off."""
    schedule: Literal["paper", "inverse_sqrt", "cosine"] = "paper"
    warmup_steps: Count = 4000
    lr_scale: Positive = 1.0
    """Multiplies the paper's schedule."""
    peak_lr: Positive = 5e-4
    """The highest rate of the schedules that are told by their peak."""
    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: Positive = 1e-9
    clip_norm: Annotated[float, Field(ge=0.0)] = 0.0
    """Longest gradient; 0 (the paper) does not clip."""

    save_every: Count = 1000
    validate_every: Count | None = None
    """As `save_every` when not given."""
    log_every: Count = 20
    keep_last: Count = 5
    keep_best: Annotated[int, Field(ge=0)] = 1
    average_last: Count = 5
    """Checkpoints averaged into the finished model (section 6.1)."""
    ema_decay: Rate = 0.0
    """Departs from the paper: an exponential mean of the weights becomes the finished model."""
    patience: Count | None = None
    """Stop after this many validations without a better loss."""
    bleu_sentences: Annotated[int, Field(ge=0)] = 200
    """Sentences of dev translated (greedily) at each validation for BLEU."""
    samples: tuple[str, ...] = ()
    """Fixed sentences translated at each validation; some of dev when not given."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: bool | None = None
    """`torch.compile`; when not given, on a GPU where the run is long enough to win by it."""
    sequence_packing: bool | None = None
    """Batches without padding, sentences end to end, where the model can read them."""
    cuda_graph: bool = True
    """Record a packed step on a single GPU and repeat it: one call instead of hundreds."""
    fsdp: bool = False
    """Spread the weights over the processes (FSDP) instead of a copy in each (DDP)."""

    @model_validator(mode="after")
    def _check_checkpoint_counts(self) -> Self:
        if self.average_last > self.keep_last:
            reason = f"average_last {self.average_last} needs keep_last of at least as many"
            raise ConfigError.from_reasons(type(self).__name__, [f"{reason}, not {self.keep_last}"])
        return self

    @property
    def validation_interval(self) -> int:
        """Give the steps between validations."""
        return self.validate_every or self.save_every
