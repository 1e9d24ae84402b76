"""Import of foreign models as our model folders: `hf:DIR` and `fairseq:FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.bundle import load_bundle, save_bundle
from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.text.foreign_tokenizer import ForeignTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.bundle import Bundle
    from attendo.text.tokenizer import Tokenizer

FORMATS = {"hf": "a Marian model folder", "fairseq": "a Transformer checkpoint"}
MAX_LISTED_CODES = 12


class ImportResult(NamedTuple):
    """An imported model."""

    model_dir: Path
    lines: list[str]
    """Kind and sizes of the model, and notes for its user."""


def import_model(
    source: str,
    out: str | Path,
    *,
    code: str | None = None,
    dictionaries: Sequence[str | Path] = (),
    models: Sequence[str | Path] = (),
) -> ImportResult:
    """Read a model of another toolkit and write it as a model folder.

    Args:
        source: `hf:DIR`, a Hugging Face Marian folder, or `fairseq:FILE`, a checkpoint.
        out: the new model folder; it must not exist.
        code: for multilingual Marian models: the target language, e.g. ">>fra<<" or "fra".
        dictionaries: for fairseq: dict.*.txt, source first; default: next to the checkpoint.
        models: for fairseq: SentencePiece models, source first; default: next to the checkpoint.

    """
    model_dir = Path(out)
    if model_dir.exists():
        raise InputError(
            message("{model_dir} already exists", model_dir=model_dir),
            hint="choose another folder with -o",
        )
    source_format, path = _parse_source(source)
    if source_format == "hf":
        _reject_options(source_format, {"dictionaries": dictionaries, "models": models})
        from attendo.interop.marian import model_folder

        bundle = model_folder.read(path, code=_format_code(code))
    else:
        _reject_options(source_format, {"code": code})
        from attendo.interop.fairseq import checkpoint

        bundle = checkpoint.read(
            path, dictionaries=[*map(Path, dictionaries)], models=[*map(Path, models)]
        )
    model_dir.parent.mkdir(parents=True, exist_ok=True)
    save_bundle(model_dir, bundle.model, bundle.tokenizer, about=bundle.about)
    load_bundle(model_dir)  # check that the result can be loaded
    return ImportResult(model_dir, _describe_import(bundle, model_dir.name))


def _parse_source(source: str) -> tuple[str, Path]:
    source_format, colon, rest = source.partition(":")
    known = ", ".join(f"{name}: ({what})" for name, what in FORMATS.items())
    if not colon or not rest:
        raise InputError(
            message("'{source}' has no format prefix", source=source),
            hint=message("prefix it with {known}", known=known),
        )
    if source_format not in FORMATS:
        raise InputError(
            message("unknown import format '{source_format}'", source_format=source_format),
            hint=suggest(source_format, FORMATS),
        )
    path = Path(rest).expanduser()  # shells do not expand ~ after a colon
    if source_format == "hf" and not path.is_dir():
        hint = "download the model with all its files first; import does not use the network"
        raise InputError(message("{path} is not a folder", path=path), hint=hint)
    if source_format == "fairseq" and not path.is_file():
        raise InputError(
            message("{path} is not a file", path=path), hint="give the checkpoint file"
        )
    return source_format, path


def _reject_options(source_format: str, options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        reason = message(
            "{source_format}: does not support {names}",
            source_format=source_format,
            names=" and ".join(given),
        )
        raise InputError(reason, hint="leave them out")


def _format_code(code: str | None) -> str | None:
    """Return a language code as vocabularies spell it.

    >>> _format_code("fra"), _format_code(">>fra<<"), _format_code(None)
    ('>>fra<<', '>>fra<<', None)
    """
    return code if code is None or code.startswith(">>") else f">>{code}<<"


def _describe_import(bundle: Bundle, name: str) -> list[str]:
    """Describe the imported model, with notes for its user."""
    model, tokenizer, about = bundle
    config = model.config
    languages = " to ".join(str(about.get(key) or "?") for key in ("src_lang", "tgt_lang"))
    sizes = {key: getattr(config, key, None) for key in ("num_layers", "num_heads", "d_ff")}
    size_text = ", ".join(f"{key} {value}" for key, value in sizes.items() if value)
    pieces = f"{tokenizer.src_vocab_size:,} pieces"
    if not tokenizer.is_shared:
        pieces = f"{tokenizer.src_vocab_size:,} and {tokenizer.tgt_vocab_size:,} pieces"
    lines = [
        f"{about.get('name') or name}: {languages}",
        f"{model.num_parameters():,} parameters: d_model {config.d_model}, {size_text}",
        f"vocabulary: {pieces} ({tokenizer.kind})",
    ]
    codes = _unselected_codes(tokenizer)
    if codes:
        listed = " ".join(codes[:MAX_LISTED_CODES]) + (
            " ..." if len(codes) > MAX_LISTED_CODES else ""
        )
        lines.append(
            f"it supports {len(codes)} target languages: begin each sentence with one of {listed}, "
            "or import it with --language for one of them"
        )
    return lines


def _unselected_codes(tokenizer: Tokenizer) -> list[str]:
    """Return the language codes if none has been chosen yet."""
    if not isinstance(tokenizer, ForeignTokenizer) or tokenizer.language_code is not None:
        return []
    return tokenizer.language_codes
