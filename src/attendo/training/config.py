"""What fully describes a run: data, model, training. One TOML file, or the words of a command."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from attendo.architectures.registry import get_model_kind
from attendo.core.config import Config, Count, Rate
from attendo.core.errors import ConfigError, suggest
from attendo.data.pipeline import DataConfig  # noqa: TC001 - pydantic reads the annotations
from attendo.data.tokenizer_training import MAX_VOCAB_SIZE
from attendo.tasks.forecasting.config import SeriesConfig  # noqa: TC001 - the same

Positive = Annotated[float, Field(gt=0.0)]
MUTABLE_SETTINGS = {"train.max_steps", "train.patience", "train.accumulation_steps"}
"""How long a run trains, and into how many pieces it cuts a batch: what it learns stays."""


class ModelConfig(Config):
    """Which model: a kind and a preset, changed by any option of that kind (`d_model` ...)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = "transformer"
    preset: str = "small"
    init_from: str | None = None
    """A model folder whose weights and tokenizer training begins with (`attendo train
    --init-from`); its options stand beside this one."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        try:
            kind = get_model_kind(self.kind)
            kind.preset_options(self.preset)
        except ConfigError as error:
            reason = f"{error.reason}: {error.hint}"
            raise ConfigError.from_reasons(type(self).__name__, [reason]) from None
        known_options = kind.options
        unknown = [name for name in self.overrides if name not in known_options]
        if unknown:
            raise ConfigError.from_reasons(
                type(self).__name__,
                [f"unknown key '{name}': {suggest(name, known_options)}" for name in unknown],
            )
        kind.config_class(
            vocab_size=MAX_VOCAB_SIZE, **self.options
        )  # told before any work, not after
        return self

    @property
    def overrides(self) -> dict[str, Any]:
        """Give the options that change the preset."""
        return dict(self.model_extra or {})

    @property
    def options(self) -> dict[str, Any]:
        """Give every option but the vocabulary's."""
        return {**get_model_kind(self.kind).preset_options(self.preset), **self.overrides}


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


class RunConfig(Config):
    """A whole run: on text (`data`), or on series of numbers (`series`)."""

    data: DataConfig | None = None
    series: SeriesConfig | None = None
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _check_one_data_source(self) -> Self:
        if (self.data is None) == (self.series is None):
            reason = "a run is on text (data) or on series (series): give one of the two"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def text_data(self) -> DataConfig:
        """The corpora of a run on text."""
        assert self.data is not None  # noqa: S101 - its task was chosen for it
        return self.data

    def differences(self, other: RunConfig) -> list[str]:
        """Name the settings in which two runs differ, but for those that a run may change."""
        ours, theirs = (_flatten(config.model_dump(mode="json")) for config in (self, other))
        keys = sorted({*ours, *theirs} - MUTABLE_SETTINGS)
        return [
            f"{key}: {theirs.get(key)!r} there, {ours.get(key)!r} here"
            for key in keys
            if ours.get(key) != theirs.get(key)
        ]


def _flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
