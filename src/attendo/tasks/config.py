"""The config of a run: data, model, training; from one TOML file or the options of a command."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, model_validator

from attendo.architectures.registry import get_model_kind
from attendo.core.config import Config
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.data.pipeline import DataConfig  # noqa: TC001 - pydantic reads the annotations
from attendo.data.tokenizer_training import MAX_VOCAB_SIZE
from attendo.tasks.forecasting.config import SeriesConfig  # noqa: TC001 - the same
from attendo.training.config import TrainConfig

MUTABLE_SETTINGS = {"train.max_steps", "train.patience", "train.accumulation_steps"}
"""Settings that may change when a run resumes, because they do not change its weights."""


class ModelConfig(Config):
    """The model: a kind and a preset, and any option of that kind (`d_model` ...) to override."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = "transformer"
    preset: str = "small"
    init_from: str | None = None
    """A model folder whose weights and tokenizer training starts with (`attendo train
    --init-from`); its options are stored here as overrides."""

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
            template = "unknown key '{key}': {detail}"
            reasons = [
                message(template, key=name, detail=suggest(name, known_options)) for name in unknown
            ]
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        # Raises now, before any work, if the options do not fit together.
        kind.config_class(vocab_size=MAX_VOCAB_SIZE, **self.options)
        return self

    @property
    def overrides(self) -> dict[str, Any]:
        """The options that override the preset."""
        return dict(self.model_extra or {})

    @property
    def options(self) -> dict[str, Any]:
        """All options except those that follow from the vocabulary."""
        return {**get_model_kind(self.kind).preset_options(self.preset), **self.overrides}


class RunConfig(Config):
    """The config of a run on text (`data`) or on time series (`series`)."""

    data: DataConfig | None = None
    series: SeriesConfig | None = None
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _check_one_data_source(self) -> Self:
        if (self.data is None) == (self.series is None):
            reason = "a run trains on text (data) or on time series (series): give one of the two"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def text_data(self) -> DataConfig:
        """The corpora of a run on text."""
        assert self.data is not None  # noqa: S101 - its task was chosen for it
        return self.data

    def differences(self, other: RunConfig) -> list[str]:
        """Return one line per setting that differs, except those that a resumed run may change."""
        ours, theirs = (_flatten(config.model_dump(mode="json")) for config in (self, other))
        keys = sorted({*ours, *theirs} - MUTABLE_SETTINGS)
        return [
            message(
                "{key}: {theirs} there, {ours} here",
                key=key,
                theirs=repr(theirs.get(key)),
                ours=repr(ours.get(key)),
            )
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
