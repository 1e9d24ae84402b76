"""Start a run from a finished model: its weights, its tokenizer and its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.architectures.registry import STORED_KINDS
from attendo.bundle import (
    MASKED_LM_TASK,
    check_vocabulary_sizes,
    find_bundle,
    get_weights,
    load_bundle,
    open_bundle,
    set_weights,
)
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.core.shipped_models import raise_if_not_shipped, resolve_shipped
from attendo.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from attendo.architectures.registry import Model
    from attendo.model.config import Seq2SeqConfig
    from attendo.tasks.config import RunConfig

DATA_DEPENDENT_OPTIONS = {"vocab_size", "tgt_vocab_size", "pad_id"}
"""Options that follow from the tokenizer."""
OVERRIDABLE_OPTIONS = {"dropout", "attention_dropout", "activation_dropout"}
"""Options that may differ between two runs with the same weights."""
ENCODER_PREFIXES = ("src_embedding.", "src_positions.", "encoder.")
"""Weights that a pre-trained encoder passes on to a model for another task."""


class InitialModel(NamedTuple):
    """The model that a run starts from, without its weights: reading it takes milliseconds."""

    kind: str
    config: Seq2SeqConfig
    tokenizer: Tokenizer
    about: dict[str, Any]

    @classmethod
    def read(cls, directory: str | Path) -> InitialModel:
        """Read a model folder; raise an error unless it has a text model and its tokenizer."""
        path, index = open_bundle(directory, "text")
        config = STORED_KINDS[index["kind"]].config_class(**index["config"])
        tokenizer = Tokenizer.load(path)
        sizes = (config.vocab_size, config.tgt_vocab_size or config.vocab_size)
        check_vocabulary_sizes(path, tokenizer, sizes)
        return cls(index["kind"], config, tokenizer, index["about"])

    @property
    def is_masked_lm(self) -> bool:
        """Whether it is a masked language model."""
        return self.kind == "encoder" and self.about.get("task") == MASKED_LM_TASK


def apply_init_from(init_from: str | Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with model and tokenizer of the model folder that the run starts from.

    Settings that are given must agree with the model, except for dropout rates. From a masked
    language model, a run on pairs takes only the encoder and the source tokenizer; the target
    tokenizer and the output layer belong to the new task.
    """
    data, model = settings["data"], settings["model"]
    source = init_from or model.get("init_from")
    if not isinstance(source, str | Path):  # none, or the config reports it
        return settings
    raise_if_not_shipped(Path(source))
    initial = InitialModel.read(source)
    source_path = str(resolve_shipped(source).resolve())
    options = initial.config.model_dump(mode="json", exclude=DATA_DEPENDENT_OPTIONS)
    model_options = {"kind": initial.kind, **options}
    tokenizer: dict[str, Any] = {
        "kind": initial.tokenizer.kind,
        "shared": initial.tokenizer.is_shared,
    }
    if initial.tokenizer.tgt_kind != initial.tokenizer.kind:
        tokenizer["tgt_kind"] = initial.tokenizer.tgt_kind
    if initial.is_masked_lm and not _is_monolingual(data):
        requested = data.get("tokenizer", {})
        model_options["reads"] = model.get("reads", "summary")
        model_options["tie_embeddings"] = "decoder"
        del model_options["tgt_length"]
        is_label = model_options["reads"] == "summary"
        tokenizer["shared"] = False
        tokenizer["tgt_kind"] = requested.get("tgt_kind", "label" if is_label else "word")
        tokenizer["src_from"] = str(find_bundle(source_path))
        tokenizer["src_sha256"] = initial.tokenizer.src_fingerprint
    reasons = [
        *_differences(
            "model", model, {k: v for k, v in model_options.items() if k not in OVERRIDABLE_OPTIONS}
        ),
        *_differences(
            "data.tokenizer", data.get("tokenizer", {}), {**tokenizer, "vocab_size": None}
        ),
    ]
    if reasons:
        raise ConfigError.from_reasons(
            message("a run that starts from {source}", source=source), reasons
        )
    languages = {
        key: initial.about[key] for key in ("src_lang", "tgt_lang") if initial.about.get(key)
    }
    return {
        **settings,
        "data": {**languages, **data, "tokenizer": tokenizer},
        "model": {**model_options, **model, "init_from": source_path},
    }


def inherited_tokenizer(config: RunConfig) -> Tokenizer | None:
    """Return the tokenizer that a run takes over from the model it starts from, if any."""
    init_from = config.model.init_from
    if not init_from or config.text_data.tokenizer.src_from is not None:
        return None
    return Tokenizer.load(find_bundle(init_from))


def check_initial_weights(config: RunConfig) -> None:
    """Raise unless the weights that a run on text starts from can be loaded."""
    if config.model.init_from and config.data is not None:
        load_bundle(config.model.init_from)


def copy_initial_weights(model: Model, config: RunConfig) -> None:
    """Copy the weights that a run starts from into a new model: all, or those of the encoder."""
    init_from = config.model.init_from
    if not init_from:
        return
    weights = get_weights(load_bundle(init_from).model)
    if config.text_data.tokenizer.src_from is not None:
        encoder_weights = {
            name: weight for name, weight in weights.items() if name.startswith(ENCODER_PREFIXES)
        }
        weights = get_weights(model) | encoder_weights
    set_weights(model, weights, name=init_from)


def _is_monolingual(data: dict[str, Any]) -> bool:
    return all(corpus.get("text") is not None for corpus in data.get("corpora", ()))


def _differences(table: str, requested: dict[str, Any], existing: dict[str, Any]) -> list[str]:
    return [
        message(
            "{key} = {value!r}: the model has {stored!r}",
            key=f"{table}.{key}",
            value=requested[key],
            stored=value,
        )
        for key, value in existing.items()
        if key in requested and requested[key] != value
    ]
