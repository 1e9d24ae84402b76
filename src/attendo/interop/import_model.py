"""Models from elsewhere, as model folders of ours: `hf:DIR` and `fairseq:FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.bundle import load_bundle, save_bundle
from attendo.core.errors import InputError, suggest
from attendo.text.foreign_tokenizer import ForeignTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.bundle import Bundle
    from attendo.text.tokenizer import Tokenizer

FORMATS = {"hf": "a folder of a Marian model", "fairseq": "a checkpoint of a transformer"}
MAX_LISTED_CODES = 12


class ImportResult(NamedTuple):
    """A model that has come in."""

    model_dir: Path
    lines: list[str]
    """What it is, and what its user should know."""


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
        source: `hf:DIR`, a Marian folder of Hugging Face, or `fairseq:FILE`, a checkpoint.
        out: the model folder, which must not exist yet.
        code: of Marian models of many languages: what to write, e.g. ">>fra<<" or "fra".
        dictionaries: of fairseq: dict.*.txt, source first; looked for beside the checkpoint.
        models: of fairseq: SentencePiece models, source first; looked for beside it too.

    """
    model_dir = Path(out)
    if model_dir.exists():
        raise InputError(f"{model_dir} exists already", hint="choose another place with -o")
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
    load_bundle(model_dir)  # what was written can be read
    return ImportResult(model_dir, _describe_import(bundle, model_dir.name))


def _parse_source(source: str) -> tuple[str, Path]:
    source_format, colon, rest = source.partition(":")
    known = ", ".join(f"{name}: ({what})" for name, what in FORMATS.items())
    if not colon or not rest:
        raise InputError(f"'{source}' does not say what it is", hint=f"put before it {known}")
    if source_format not in FORMATS:
        raise InputError(
            f"no format '{source_format}' to import", hint=suggest(source_format, FORMATS)
        )
    path = Path(rest).expanduser()  # a shell leaves ~ alone behind a colon
    if source_format == "hf" and not path.is_dir():
        hint = "download the model first, with all its files; nothing is fetched from the net"
        raise InputError(f"{path} is no folder", hint=hint)
    if source_format == "fairseq" and not path.is_file():
        raise InputError(f"{path} is no file", hint="give the checkpoint itself")
    return source_format, path


def _reject_options(source_format: str, options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        reason = f"{source_format}: takes no {' and no '.join(given)}"
        raise InputError(reason, hint="leave them out")


def _format_code(code: str | None) -> str | None:
    """Write a code as vocabularies do.

    >>> _format_code("fra"), _format_code(">>fra<<"), _format_code(None)
    ('>>fra<<', '>>fra<<', None)
    """
    return code if code is None or code.startswith(">>") else f">>{code}<<"


def _describe_import(bundle: Bundle, name: str) -> list[str]:
    """Tell what has come in, and what a user has to know of it."""
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
            f"it writes {len(codes)} languages: begin each sentence with one of {listed}, or import "
            "it with --language for one of them"
        )
    return lines


def _unselected_codes(tokenizer: Tokenizer) -> list[str]:
    """Return the language codes among which nobody has chosen yet."""
    if not isinstance(tokenizer, ForeignTokenizer) or tokenizer.language_code is not None:
        return []
    return tokenizer.language_codes
