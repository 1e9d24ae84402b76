"""Kind and sizes of a model, for the record and to recognize the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.record import Record
    from attendo.translator import Translator


def describe_model(
    translator: Translator, weights: Mapping[AttentionKind, NDArray[np.float32] | None]
) -> dict[str, Any]:
    """Return the section `model` of a record, from the config or else from the attention.

    A model without attention has no number of heads.
    """
    about, info = translator.about, read_model_info(translator)
    encoder, cross = weights["encoder_self"], weights["cross"]
    is_single_stack = get_single_stack(translator) is not None
    observed = {
        "num_layers": None if encoder is None else len(encoder),
        "num_decoder_layers": None if cross is None else len(cross),
        "num_heads": next(
            (
                kind_weights.shape[1]
                for kind_weights in weights.values()
                if kind_weights is not None
            ),
            None,
        ),
    }
    languages = [about.get("src_lang"), about.get("tgt_lang")]
    return {
        "name": about.get("name") or "-".join(filter(None, languages)) or info["kind"],
        **{
            key: value or (None if is_single_stack else observed.get(key))
            for key, value in info.items()
        },
        "src_lang": languages[0],
        "tgt_lang": languages[1],
    }


def read_model_info(translator: Translator) -> dict[str, Any]:
    """Return kind and sizes from the model's config; None for what it does not define."""
    model = translator.model
    config = getattr(model, "config", None)
    num_layers = getattr(config, "num_layers", None)
    single_stack = get_single_stack(translator)
    # By default the decoder has as many layers as the encoder; some models attend only once.
    num_decoder_layers = getattr(config, "num_decoder_layers", None) or num_layers
    count = sum(
        weight.numel() for part in translator.backend.modules for weight in part.parameters()
    )
    return {
        "kind": str(getattr(model, "kind", type(model).__name__)).lower(),
        "num_layers": None if single_stack == "decoder" else num_layers,
        "num_decoder_layers": None if single_stack == "encoder" else num_decoder_layers,
        "num_heads": getattr(config, "num_heads", None),
        "d_model": getattr(config, "d_model", None),
        "num_parameters": count or None,
    }


def get_single_stack(translator: Translator) -> str | None:
    """Return "encoder" or "decoder" for a single-stack model, else None."""
    single_stack: str | None = getattr(translator.model, "single_stack", None)
    return single_stack


def check_model(translator: Translator, record: Record) -> None:
    """Raise an error for a record of another model."""
    for key, value in read_model_info(translator).items():
        other = record.model.get(key)
        if value is not None and other != value:
            reason = message(
                "the record is of another model: {key} {other}, not {value}",
                key=key,
                other=other,
                value=value,
            )
            raise InputError(reason, hint="capture the sentence again, with this model")
