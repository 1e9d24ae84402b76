"""Hugging Face Marian folders, read and written: the format of the OPUS-MT models.

Reading does not need transformers: config and vocabulary are JSON, the weights safetensors or a
`pytorch_model.bin` that is loaded without running code. Writing permutes positions into halves,
which is exact, and stores our config, which Marian cannot express, in `config.json`, so that
reading the folder again restores the same bits. The row of our padding symbol, where Marian's
padding is the start symbol, is not written: no sentence reads it and no search outputs it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors.torch import save_file

from attendo.bundle import FORMAT_VERSION, Bundle, set_weights
from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.interop.marian.reference import MarianReference
from attendo.interop.marian.settings import MarianSettings, unsupported_options
from attendo.interop.marian.tensors import (
    WEIGHTS,
    read_tensors,
    to_attendo_weights,
    to_marian_weights,
)
from attendo.interop.marian.vocabulary import (
    MODELS,
    VOCAB,
    VocabularyIds,
    check_pieces,
    read_json,
    read_tokenizer_config,
    read_vocabulary,
    write_vocabulary,
)
from attendo.model.config import TransformerConfig
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

CONFIG, GENERATION = "config.json", "generation_config.json"
ATTENDO_KEY = "attendo"
"""The key of `config.json` with our config, which Marian cannot express."""
BEAM_SIZE = 4


class MarianFolder(NamedTuple):
    """The content of a Marian folder except its weights."""

    settings: MarianSettings
    tokenizer: Tokenizer
    config: TransformerConfig
    about: dict[str, Any]


def unsupported_reasons(bundle: Bundle) -> list[str]:
    """Return every reason why a model cannot be exported to a Marian folder."""
    if not isinstance(bundle.model, Transformer):
        return [
            message(
                "Marian is a Transformer, but this model is of kind '{kind}'",
                kind=bundle.model.kind,
            )
        ]
    reasons = unsupported_options(bundle.model.config)
    if VocabularyIds.from_tokenizer(bundle.tokenizer).has_split_start_symbol:
        reasons.append(
            message("its decoder has a separate start symbol, which was the end symbol before")
        )
    return reasons


def write(bundle: Bundle, folder: Path, *, quantization: str | None = None) -> None:
    """Write everything that `MarianMTModel` and `MarianTokenizer` read."""
    reasons = unsupported_reasons(bundle)
    if quantization is not None:
        reasons.append(
            message(
                "quantization '{quantization}': a Marian folder stores float32",
                quantization=quantization,
            )
        )
    model, tokenizer, about = bundle
    if reasons or not isinstance(model, Transformer):
        listing = join_messages("\n  - ", ["", *reasons])
        raise InputError(
            message("the model cannot be exported to a Marian folder{listing}", listing=listing)
        )
    vocabulary_ids = VocabularyIds.from_tokenizer(tokenizer)
    settings = MarianSettings.from_config(model.config, **vocabulary_ids.settings)
    write_vocabulary(folder, tokenizer, vocabulary_ids, about, settings.max_position_embeddings)
    config = settings.model_dump(mode="json") | {
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "forced_eos_token_id": settings.eos_token_id,
        ATTENDO_KEY: _describe_bundle(bundle),
    }
    _write_json(folder / CONFIG, config)
    _write_json(folder / GENERATION, _generation_config(settings))
    save_file(
        to_marian_weights(model, vocabulary_ids.vocabularies),
        folder / WEIGHTS,
        metadata={"format": "pt"},
    )


def read(folder: Path, *, code: str | None = None) -> Bundle:
    """Read a Marian folder into a bundle.

    `code` is put before every source of a multilingual model, e.g. ">>fra<<".
    """
    settings, tokenizer, config, about = read_folder(folder, code=code)
    sides = VocabularyIds.from_tokenizer(tokenizer).vocabularies
    weights = to_attendo_weights(read_tensors(folder), settings, config, sides, source=str(folder))
    if "output.bias" in weights and not config.output_bias:
        config = config.replace(output_bias=True)
    model = Transformer(**config.model_dump())
    set_weights(model, weights, name=str(folder))
    return Bundle(model.eval(), tokenizer, about)


def load_reference(folder: Path) -> MarianReference:
    """Open a folder with transformers, for comparison."""
    return MarianReference(
        folder, VocabularyIds.from_tokenizer(read_folder(folder).tokenizer).vocabularies
    )


def read_folder(folder: Path, *, code: str | None = None) -> MarianFolder:
    """Read config and vocabulary; check that they match."""
    _check_complete(folder)
    raw = read_json(folder / CONFIG)
    if raw.get("model_type") != "marian":
        raise InputError(
            message(
                "{folder} contains a model of type '{model_type}', not marian",
                folder=folder,
                model_type=raw.get("model_type"),
            ),
            hint="import supports Marian models (OPUS-MT) and fairseq Transformers",
        )
    settings = MarianSettings(**raw)
    if ATTENDO_KEY in raw:
        return _read_exported(folder, settings, raw[ATTENDO_KEY], code)
    tokenizer = read_vocabulary(folder, settings, code=code)
    config = TransformerConfig(
        vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=None if tokenizer.is_shared else tokenizer.tgt_vocab_size,
        output_bias=bool(tokenizer.vocabularies[-1].ids_without_logit),
        **settings.to_options(),
    )
    languages = read_tokenizer_config(folder)
    about = {
        "name": folder.resolve().name,
        "src_lang": languages.get("source_lang"),
        "tgt_lang": languages.get("target_lang"),
        "max_src_tokens": settings.max_position_embeddings,
        "imported": "hf-marian",
    }
    return MarianFolder(settings, tokenizer, config, about)


def _check_complete(folder: Path) -> None:
    """Raise one error that names every missing file, unless another kind of model is there."""
    if not folder.is_dir():
        raise InputError(message("no folder {path}", path=folder), hint="check the path")
    missing = [name for name in (CONFIG, VOCAB, *MODELS) if not (folder / name).is_file()]
    if missing and (CONFIG in missing or read_json(folder / CONFIG).get("model_type") == "marian"):
        raise InputError(
            message(
                "{folder} is not a Marian folder: missing {names}",
                folder=folder,
                names=", ".join(missing),
            ),
            hint="give a folder with config.json, weights, source.spm, target.spm and vocab.json",
        )


def _read_exported(
    folder: Path, settings: MarianSettings, attendo_section: Any, code: str | None
) -> MarianFolder:
    """Read a folder written by `write`, which contains our config."""
    try:
        version, tokenizer_info = (
            int(attendo_section["format_version"]),
            attendo_section["tokenizer"],
        )
        if version > FORMAT_VERSION:
            reason = message(
                "{folder} was written by a newer Attendo (format {version})",
                folder=folder,
                version=version,
            )
            raise InputError(reason, hint="update Attendo")
        is_own, kind, code = (
            bool(tokenizer_info["is_own"]),
            tokenizer_info["kind"],
            code or tokenizer_info["code"],
        )
        config, about = (
            TransformerConfig(**attendo_section["config"]),
            dict(attendo_section["about"]),
        )
    except (KeyError, TypeError) as error:
        reason = message(
            "{folder}: the key '{key}' is damaged ({error})",
            folder=folder / CONFIG,
            key=ATTENDO_KEY,
            error=error,
        )
        raise InputError(reason, hint="export the model again") from None
    imported = read_vocabulary(folder, settings, code=code)
    tokenizer: Tokenizer = imported
    if is_own:
        src_model, tgt_model = imported.models
        tokenizer = Tokenizer(src_model, None if imported.is_shared else tgt_model, kind=kind)
        check_pieces(folder, tokenizer, imported)
    _check_unchanged(folder, settings, config, VocabularyIds.from_tokenizer(tokenizer))
    return MarianFolder(settings, tokenizer, config, about)


def _check_unchanged(
    folder: Path, settings: MarianSettings, config: TransformerConfig, vocabulary_ids: VocabularyIds
) -> None:
    expected = MarianSettings.from_config(config, **vocabulary_ids.settings)
    differing = [
        message(
            "{name} is {actual!r}, Attendo wrote {value!r}",
            name=name,
            actual=getattr(settings, name),
            value=value,
        )
        for name, value in expected
        if getattr(settings, name) != value
    ]
    if differing:
        listing = join_messages("\n  - ", ["", *differing])
        hint = message(
            "export the model again, or remove '{key}' from {config} to import it as it is",
            key=ATTENDO_KEY,
            config=CONFIG,
        )
        raise InputError(
            message("{folder} has been changed:{listing}", folder=folder / CONFIG, listing=listing),
            hint=hint,
        )


def _describe_bundle(bundle: Bundle) -> dict[str, Any]:
    tokenizer = bundle.tokenizer
    return {
        "format_version": FORMAT_VERSION,
        "config": bundle.model.config.model_dump(mode="json"),
        "about": bundle.about,
        "tokenizer": {
            "is_own": type(tokenizer) is Tokenizer,
            "kind": tokenizer.kind,
            "code": getattr(tokenizer, "code", None),
        },
    }


def _generation_config(settings: MarianSettings) -> dict[str, Any]:
    """Return a generation config that searches like our defaults, as far as possible."""
    suppressed = sorted({settings.pad_token_id, settings.decoder_start_token_id})
    return {
        "bad_words_ids": [[number] for number in suppressed],
        "num_beams": BEAM_SIZE,
        "max_length": settings.max_position_embeddings,
        "pad_token_id": settings.pad_token_id,
        "eos_token_id": settings.eos_token_id,
        "decoder_start_token_id": settings.decoder_start_token_id,
        "forced_eos_token_id": settings.eos_token_id,
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
