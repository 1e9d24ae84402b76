"""A run that begins with a finished model: its weights, its tokenizer, its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attendo.bundle import load_bundle
from attendo.core.errors import ConfigError

SETTLED = {"vocab_size", "tgt_vocab_size", "pad_id"}
"""Options that follow from the tokenizer."""
FREE = {"dropout", "attention_dropout", "activation_dropout"}
"""Options that another run of the same weights may have."""


def begin_with(init_from: str | Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Put model and tokenizer of a model folder into the settings of a run, where one is named.

    What the settings say themselves must agree with it, but for the rates of dropout.
    """
    data, model = settings["data"], settings["model"]
    named = init_from or model.get("init_from")
    if named is None:
        return settings
    bundle = load_bundle(named)
    options = bundle.model.config.model_dump(mode="json", exclude=SETTLED)
    facts = {"kind": bundle.model.kind, **options}
    tokenizer = {"kind": bundle.tokenizer.kind, "shared": bundle.tokenizer.is_shared}
    reasons = [
        *_differences("model", model, {k: v for k, v in facts.items() if k not in FREE}),
        *_differences(
            "data.tokenizer", data.get("tokenizer", {}), {**tokenizer, "vocab_size": None}
        ),
    ]
    if reasons:
        raise ConfigError.gather(f"a run that begins with {named}", reasons)
    languages = {
        key: bundle.about[key] for key in ("src_lang", "tgt_lang") if bundle.about.get(key)
    }
    return {
        **settings,
        "data": {**languages, **data, "tokenizer": tokenizer},
        "model": {**facts, **model, "init_from": str(Path(named).resolve())},
    }


def _differences(table: str, given: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [
        f"{table}.{key} = {given[key]!r}: the model has {value!r}"
        for key, value in there.items()
        if key in given and given[key] != value
    ]
