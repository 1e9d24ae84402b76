"""All that one record can hold, made by one call: what `attendo look` and the quickstart show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.inspection.ablation import sweep
from attendo.inspection.attribution import attribute
from attendo.inspection.capture import capture
from attendo.inspection.heads import name_model, require_transformer
from attendo.inspection.logit_lens import look_through
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.inspection.record import Record
    from attendo.translator import Translator

SMALL = 20_000_000
"""Parameters up to which everything is looked at unless it is left out: a second or two."""


def look_inside(
    translator: Translator,
    text: str,
    tgt: str | None = None,
    *,
    attribution: bool | None = None,
    ablation: bool | None = None,
    **options: Any,
) -> Record:
    """Capture a sentence with the logit lens, attribution and ablation.

    The last two take many passes: when nothing is said of them, small models get them. All three
    are made of a Transformer's own layers: for any other model they are left out, and a note in the
    record says so; what was asked for by name is then an `InputError`.
    """
    wishes = {"attribution": attribution, "head ablation": ablation}
    for name, wish in wishes.items():
        if wish:
            require_transformer(translator.model, wanted=name)
    record = capture(translator, text, tgt, **options)
    if not isinstance(translator.model, Transformer):
        left = ["logit lens", *(name for name, wish in wishes.items() if wish is None)]
        this = name_model(translator.model)
        note = f"left out: {', '.join(left)} (only for one Transformer; this is {this})"
        return record.replace(notes=[*record.notes, note])
    is_small = (record.model["num_parameters"] or SMALL + 1) <= SMALL
    found: dict[str, Any] = {"logit_lens": look_through(translator, record)}
    if is_small if attribution is None else attribution:
        found["attribution"] = attribute(translator, record)
    if is_small if ablation is None else ablation:
        found["ablation"] = sweep(translator, record)
    return record.replace(**found)
