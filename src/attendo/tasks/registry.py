"""Chooses the task of a run by its config; only the task that is used is imported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.tasks.config import RunConfig
    from attendo.tasks.task import Task

TaskName = Literal["translation", "language_model", "masked_lm", "classification", "forecasting"]
TASK_CLASSES: dict[TaskName, str] = {
    "translation": "TranslationTask",
    "language_model": "LanguageModelTask",
    "masked_lm": "MaskedLMTask",
    "classification": "ClassificationTask",
    "forecasting": "ForecastingTask",
}
"""The class of each task; it is defined in `attendo.tasks.NAME.task`."""


def task_class_for(config: RunConfig) -> type[Task]:
    """Return the class of the task of a run."""
    name = task_name(config)
    task_class: type[Task] = getattr(
        import_module(f"attendo.tasks.{name}.task"), TASK_CLASSES[name]
    )
    return task_class


def task_name(config: RunConfig) -> TaskName:
    """Return the task of a run: by the kind of its data and, for plain text, of its model."""
    if config.series is not None:
        return "forecasting"
    if config.text_data.tokenizer.tgt_kind == "label":
        return "classification"
    if not config.text_data.is_monolingual:
        return "translation"
    kind = config.model.kind
    if kind == "decoder":
        return "language_model"
    if kind == "encoder":
        return "masked_lm"
    raise ConfigError(
        message(
            "a model of kind {kind} needs pairs, but the corpora are plain text "
            "(data.corpora: text)",
            kind=kind,
        ),
        hint="choose --model decoder (a language model) or --model encoder (a masked language "
        "model), or give both sides with --src and --tgt",
    )
