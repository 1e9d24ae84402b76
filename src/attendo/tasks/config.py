"""The config of a run: data, model, training; from one TOML file or the options of a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict, model_validator

from attendo.architectures.registry import get_model_kind
from attendo.core.config import Config
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.data.config import DataConfig  # noqa: TC001 - pydantic reads the annotations
from attendo.data.tokenizer_training import MAX_VOCAB_SIZE
from attendo.tasks.forecasting.config import SeriesConfig  # noqa: TC001 - the same
from attendo.tasks.planner import PlanConfig
from attendo.training.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MUTABLE_SETTINGS = {
    "data.check",
    "train.max_steps",
    "train.max_minutes",
    "train.patience",
    "train.accumulation_steps",
    "train.save_minutes",
}
"""Settings that may change when a run resumes, because they do not change its weights."""
PATH_SETTINGS = frozenset({"src", "tgt", "path", "text", "paths", "dev", "init_from"})
"""Settings that name files, by the last part of their key. A run may resume with the same content
under other names; `attendo.tasks.resume` compares it."""
CHOSEN = "chosen from the data"
"""Stands for the value of a setting that is left to the planner."""


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
            reason = message("{reason}: {hint}", reason=error.reason, hint=error.hint)
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
        config = kind.config_class(vocab_size=MAX_VOCAB_SIZE, **self.options)
        for name in self.overrides:  # "7" is stored as 7
            (self.model_extra or {})[name] = getattr(config, name)
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
    plan: PlanConfig = PlanConfig()
    """Which of the settings above are chosen by `attendo.tasks.planner`."""

    @model_validator(mode="after")
    def _check_one_data_source(self) -> Self:
        if (self.data is None) == (self.series is None):
            reason = message(
                "a run trains on text (data) or on time series (series): give one of the two"
            )
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def text_data(self) -> DataConfig:
        """The corpora of a run on text."""
        assert self.data is not None  # noqa: S101 - its task was chosen for it
        return self.data

    @property
    def paths(self) -> list[Path]:
        """Every file that is read."""
        if self.series is not None:
            return [*self.series.paths, *self.series.dev]
        return self.text_data.paths

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed, given as dotted keys, and validated."""
        dumped = self.model_dump(mode="json")
        for key, value in settings.items():
            table, name = key.split(".")
            dumped[table][name] = value
            if value is None and table == "model":  # the preset's value
                del dumped[table][name]
        return type(self)(**dumped)

    def resume_plan(self, stored: RunConfig) -> Self:
        """Return the config with the settings that were chosen when the stored run started."""
        values = _flatten(stored.model_dump(mode="json"))
        both = {*self.plan.auto} & {*stored.plan.auto}
        resumed = self.with_settings({key: values.get(key) for key in both})
        return resumed.replace(plan=stored.plan)

    @property
    def input_paths(self) -> list[Path]:
        """Every file of training and dev data, in the order of the settings."""
        if self.series is not None:
            return [*self.series.paths, *self.series.dev]
        return self.text_data.paths

    def differences(self, other: RunConfig) -> list[str]:
        """Return one line per setting that differs, except those that a resumed run may change.

        Names of files may differ: their content is compared elsewhere. A setting that was chosen
        for both runs does not differ: the stored value is used. The `config.json` of a run gives
        the values that were chosen for it.
        """
        ours, theirs = (_flatten(config.model_dump(mode="json")) for config in (self, other))
        ours |= dict.fromkeys(self.plan.auto, CHOSEN)
        theirs |= dict.fromkeys({*self.plan.auto} & {*other.plan.auto}, CHOSEN)
        plan = {"auto"} if self.plan.auto else set(PlanConfig.model_fields)
        keys = sorted({*ours, *theirs} - MUTABLE_SETTINGS - {f"plan.{name}" for name in plan})
        return [
            message(
                "{key}: {theirs} there, {ours} here",
                key=key,
                theirs=_format_value(theirs.get(key)),
                ours=_format_value(ours.get(key)),
            )
            for key in keys
            if not _is_same(key, ours, theirs)
        ]


def _is_same(key: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if re.sub(r"\[\d+\]$", "", key).rpartition(".")[2] in PATH_SETTINGS:
        return (ours.get(key) is None) == (theirs.get(key) is None)
    is_of_file = "[" in key or key.startswith("data.dev.")
    if is_of_file and (key in ours) != (key in theirs):  # a file more or less: its name is listed
        return True
    return bool(ours.get(key) == theirs.get(key))


def _format_value(value: Any) -> str:
    if value is CHOSEN:
        return message(CHOSEN)
    return message("not set") if value is None else repr(value)


def _flatten(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested settings as dotted keys; the entries of a list of files are numbered."""
    name = prefix.rpartition(".")[2]
    if isinstance(settings, dict):
        parts = ((f"{prefix}.{key}" if prefix else key, value) for key, value in settings.items())
    elif isinstance(settings, list) and name in {"corpora", *PATH_SETTINGS}:
        parts = ((f"{prefix}[{number}]", value) for number, value in enumerate(settings))
    else:
        return {prefix: settings}
    flat: dict[str, Any] = {}
    for key, value in parts:
        flat |= _flatten(value, key)
    return flat
