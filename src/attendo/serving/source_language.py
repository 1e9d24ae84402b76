"""The meaning of `"source": "auto"` on all routes: detect the language, and take its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.serving.language_detection import DetectedLanguage, identify, language_name

if TYPE_CHECKING:
    from attendo.serving.model_registry import ModelRegistry


def detect_source(
    registry: ModelRegistry, text: str, target: str | None = None
) -> DetectedLanguage:
    """Return the language of a text among those of the models.

    Raises:
        InputError: the text is in a language that no model has.

    """
    found = identify(text, registry.language_codes())
    if found.other is None:
        return found.ranked[0]
    reason = message(
        "the text seems to be {language} ({share} %), which no model translates",
        language=language_name(found.other.language),
        share=f"{found.other.confidence:g}",
    )
    pairs = join_messages(
        ", ",
        [
            message("{src} to {tgt}", src=src, tgt=tgt)
            for src, several in registry.target_languages().items()
            for tgt in several
            if target in (None, tgt)
        ],
    )
    hint = message("name the source to translate it anyway; available: {pairs}", pairs=pairs)
    raise InputError(reason, hint=hint)
