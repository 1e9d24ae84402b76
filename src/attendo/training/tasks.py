"""Which task a run has: its config tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import ConfigError

if TYPE_CHECKING:
    from attendo.training.config import RunConfig
    from attendo.training.task import Task


def find_task(config: RunConfig) -> type[Task]:
    """Choose by the kind of data, and for plain text by the model that reads it."""
    if config.series is not None:
        from attendo.training.series_task import SeriesTask

        return SeriesTask
    if config.texts.tokenizer.tgt_kind == "label":
        from attendo.training.label_task import LabelTask

        return LabelTask
    if not config.texts.is_plain:
        from attendo.training.text_task import PairsTask

        return PairsTask
    kind = config.model.kind
    if kind == "decoder":
        from attendo.training.language_task import LanguageTask

        return LanguageTask
    if kind == "encoder":
        from attendo.training.mask_task import MaskTask

        return MaskTask
    raise ConfigError(
        f"a {kind} learns from pairs, and the corpora are plain text (data.corpora: text)",
        remedy="choose --model decoder (a language model) or --model encoder (masked tokens), "
        "or give both sides with --src and --tgt",
    )
