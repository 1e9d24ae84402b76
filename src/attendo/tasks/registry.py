"""Which task a run has: its config tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import ConfigError

if TYPE_CHECKING:
    from attendo.tasks.config import RunConfig
    from attendo.tasks.task import Task


def task_class_for(config: RunConfig) -> type[Task]:
    """Choose by the kind of data, and for plain text by the model that reads it."""
    if config.series is not None:
        from attendo.tasks.forecasting.task import ForecastingTask

        return ForecastingTask
    if config.text_data.tokenizer.tgt_kind == "label":
        from attendo.tasks.classification.task import ClassificationTask

        return ClassificationTask
    if not config.text_data.is_monolingual:
        from attendo.tasks.translation.task import TranslationTask

        return TranslationTask
    kind = config.model.kind
    if kind == "decoder":
        from attendo.tasks.language_model.task import LanguageModelTask

        return LanguageModelTask
    if kind == "encoder":
        from attendo.tasks.masked_lm.task import MaskedLMTask

        return MaskedLMTask
    raise ConfigError(
        f"a {kind} learns from pairs, and the corpora are plain text (data.corpora: text)",
        hint="choose --model decoder (a language model) or --model encoder (masked tokens), "
        "or give both sides with --src and --tgt",
    )
