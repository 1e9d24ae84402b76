"""A complete record by one call, as `attendo look` and the quickstart show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.inspection.ablation import ablate_all_heads
from attendo.inspection.attribution import attribute, describe_error
from attendo.inspection.capture import capture
from attendo.inspection.heads import model_label, require_transformer
from attendo.inspection.logit_lens import logit_lens
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.inspection.record import Record
    from attendo.translator import Translator

SMALL_MODEL_PARAMETERS = 20_000_000
"""Models up to this size get every analysis by default: it takes a second or two."""


def inspect_sentence(
    translator: Translator,
    text: str,
    tgt: str | None = None,
    *,
    attribution: bool | None = None,
    attribution_steps: int = 32,
    ablation: bool | None = None,
    **options: Any,
) -> Record:
    """Capture a sentence with the logit lens, attribution and ablation.

    The last two take many passes: by default only small models get them. All three
    need a Transformer's layers: for any other model they are left out, with a note in the
    record; one that was requested by name raises an `InputError`.
    """
    requested = {"attribution": attribution, "head ablation": ablation}
    for name, is_requested in requested.items():
        if is_requested:
            require_transformer(translator.model, feature=name)
    record = capture(translator, text, tgt, **options)
    if not isinstance(translator.model, Transformer):
        omitted = [
            "logit lens",
            *(name for name, is_requested in requested.items() if is_requested is None),
        ]
        model_kind = model_label(translator.model)
        note = f"left out: {', '.join(omitted)} (only for one Transformer; this is {model_kind})"
        return record.replace(notes=[*record.notes, note])
    is_small = (
        record.model["num_parameters"] or SMALL_MODEL_PARAMETERS + 1
    ) <= SMALL_MODEL_PARAMETERS
    sections: dict[str, Any] = {"logit_lens": logit_lens(translator, record)}
    if is_small if attribution is None else attribution:
        sections["attribution"] = attribute(translator, record, num_steps=attribution_steps)
        error_note = describe_error(sections["attribution"])
        if error_note is not None:
            sections["notes"] = [*record.notes, error_note]
    if is_small if ablation is None else ablation:
        sections["ablation"] = ablate_all_heads(translator, record)
    return record.replace(**sections)
