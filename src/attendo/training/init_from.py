"""A run that begins with a finished model: its weights, its tokenizer, its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.bundle import find_bundle, get_weights, load_bundle, set_weights
from attendo.core.errors import ConfigError
from attendo.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    from attendo.baselines.factory import Model
    from attendo.bundle import Bundle
    from attendo.training.config import RunConfig

SETTLED = {"vocab_size", "tgt_vocab_size", "pad_id"}
"""Options that follow from the tokenizer."""
FREE = {"dropout", "attention_dropout", "activation_dropout"}
"""Options that another run of the same weights may have."""
READING = ("src_embedding.", "src_positions.", "encoder.")
"""What a model that was trained on hidden words hands on to one that reads for another purpose."""


def begin_with(init_from: str | Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Put model and tokenizer of a model folder into the settings of a run, where one is named.

    What the settings say themselves must agree with it, but for the rates of dropout. Of a model
    that was trained on hidden words, a run on pairs takes the encoder and the source tokenizer
    alone: how the target is cut, and what the model reads for it, is this run's affair.
    """
    data, model = settings["data"], settings["model"]
    named = init_from or model.get("init_from")
    if named is None:
        return settings
    bundle = load_bundle(named)
    place = str(Path(named).resolve())
    options = bundle.model.config.model_dump(mode="json", exclude=SETTLED)
    facts = {"kind": bundle.model.kind, **options}
    tokenizer: dict[str, Any] = {
        "kind": bundle.tokenizer.kind,
        "shared": bundle.tokenizer.is_shared,
    }
    if bundle.tokenizer.tgt_kind != bundle.tokenizer.kind:
        tokenizer["tgt_kind"] = bundle.tokenizer.tgt_kind
    if is_pretrained(bundle) and not _is_plain(data):
        wanted = data.get("tokenizer", {})
        facts["reads"] = model.get("reads", "summary")
        facts["tie_embeddings"] = "decoder"
        del facts["tgt_length"]
        is_label = facts["reads"] == "summary"
        tokenizer["shared"] = False
        tokenizer["tgt_kind"] = wanted.get("tgt_kind", "label" if is_label else "word")
        tokenizer["src_from"] = str(find_bundle(place))
        tokenizer["src_sha256"] = bundle.tokenizer.src_fingerprint
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
        "model": {**facts, **model, "init_from": place},
    }


def given_tokenizer(config: RunConfig) -> Tokenizer | None:
    """Give the tokenizer that a run takes over whole, where it begins with a model."""
    begun = config.model.init_from
    if not begun or config.texts.tokenizer.src_from is not None:
        return None
    return Tokenizer.load(find_bundle(begun))


def fill_model(model: Model, config: RunConfig) -> None:
    """Give a new model the weights that a run begins with: all, or those that read the source."""
    begun = config.model.init_from
    if not begun:
        return
    weights = get_weights(load_bundle(begun).model)
    if config.texts.tokenizer.src_from is not None:
        taken = {name: weight for name, weight in weights.items() if name.startswith(READING)}
        weights = get_weights(model) | taken
    set_weights(model, weights, name=begun)


def is_pretrained(bundle: Bundle) -> bool:
    """Tell whether a model was trained to find hidden words."""
    return bundle.model.kind == "encoder" and bundle.about.get("task") == "mask"


def _is_plain(data: dict[str, Any]) -> bool:
    return all(corpus.get("text") is not None for corpus in data.get("corpora", ()))


def _differences(table: str, given: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [
        f"{table}.{key} = {given[key]!r}: the model has {value!r}"
        for key, value in there.items()
        if key in given and given[key] != value
    ]
