"""Hugging Face's Marian folders, read and written: the form of the OPUS-MT models.

Reading needs no library of theirs: config and vocabulary are JSON, the weights safetensors or a
`pytorch_model.bin` that is loaded without running any code. Writing puts positions into halves by
an exact permutation, and lays what Marian has no words for (our config) beside it in `config.json`,
so that reading it again gives the same bits. The row of our own padding, where Marian's padding is
the start symbol, is not written: no sentence reads it, and no search says it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors.torch import save_file

from attendo.bundle import FORMAT_VERSION, Bundle, set_weights
from attendo.core.errors import InputError
from attendo.interop.marian.reference import MarianReference
from attendo.interop.marian.settings import MarianSettings, unsupported_options
from attendo.interop.marian.tensors import (
    WEIGHTS,
    read_tensors,
    to_attendo_weights,
    to_marian_weights,
)
from attendo.interop.marian.vocabulary import (
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
"""The part of `config.json` in which we tell ourselves what Marian has no words for."""
BEAM_SIZE = 4


class MarianFolder(NamedTuple):
    """What a Marian folder says, before its weights are looked at."""

    settings: MarianSettings
    tokenizer: Tokenizer
    config: TransformerConfig
    about: dict[str, Any]


def unsupported_reasons(bundle: Bundle) -> list[str]:
    """Give every reason why a model cannot be a Marian folder; none if it can."""
    if not isinstance(bundle.model, Transformer):
        return [f"Marian is a Transformer, this is a model of the kind '{bundle.model.kind}'"]
    reasons = unsupported_options(bundle.model.config)
    if VocabularyIds.from_tokenizer(bundle.tokenizer).has_split_start_symbol:
        reasons.append("its decoder starts with a symbol of its own, which was the end symbol once")
    return reasons


def write(bundle: Bundle, folder: Path, *, quantization: str | None = None) -> None:
    """Fill a folder with all that `MarianMTModel` and `MarianTokenizer` read."""
    reasons = unsupported_reasons(bundle)
    if quantization is not None:
        reasons.append(f"quantization '{quantization}': a Marian folder holds float32")
    model, tokenizer, about = bundle
    if reasons or not isinstance(model, Transformer):
        listing = "".join(f"\n  - {reason}" for reason in reasons)
        raise InputError(f"the model cannot be a Marian folder{listing}")
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
    """Read a Marian folder into a bundle of ours.

    `code` is put before every source of a model of many languages, e.g. ">>fra<<".
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
    """Open a folder with transformers itself, to compare."""
    return MarianReference(
        folder, VocabularyIds.from_tokenizer(read_folder(folder).tokenizer).vocabularies
    )


def read_folder(folder: Path, *, code: str | None = None) -> MarianFolder:
    """Read config and vocabulary; check that they belong together."""
    raw = read_json(folder / CONFIG)
    if raw.get("model_type") != "marian":
        raise InputError(
            f"{folder} holds a model of the type '{raw.get('model_type')}', not marian",
            hint="import takes Marian models (OPUS-MT) and fairseq's transformers",
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


def _read_exported(
    folder: Path, settings: MarianSettings, attendo_section: Any, code: str | None
) -> MarianFolder:
    """Read a folder that `write` made: what we were is told there."""
    try:
        version, tokenizer_info = (
            int(attendo_section["format_version"]),
            attendo_section["tokenizer"],
        )
        if version > FORMAT_VERSION:
            reason = f"{folder} was written by a newer Attendo (format {version})"
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
        reason = f"{folder / CONFIG}: what Attendo tells of itself is damaged ({error})"
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
        f"{name} is {getattr(settings, name)!r}, Attendo wrote {value!r}"
        for name, value in expected
        if getattr(settings, name) != value
    ]
    if differing:
        listing = "".join(f"\n  - {line}" for line in differing)
        hint = (
            f"export the model again, or take '{ATTENDO_KEY}' out of {CONFIG} to import it as it is"
        )
        raise InputError(f"{folder / CONFIG} has been changed:{listing}", hint=hint)


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
    """Tell `generate` to search as we do by default, as far as it can."""
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
