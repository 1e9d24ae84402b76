"""`attendo translate -i FILE.docx`: a document is translated with its markup, and written whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from attendo.cli.translation.writing import MAX_NOTES
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.formats import (
    ReadOptions,
    find_format,
    find_named_format,
    is_document,
    read_document,
)
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attendo.translator import Translator

LINES = "txt"
"""The format of `attendo translate` without documents: one text per line."""
MAX_DOCUMENT_BYTES = 500_000_000
MAX_UNPACKED_BYTES = 2_000_000_000
LINE_OPTIONS = (
    "as_json", "resume", "trace", "agree_with", "confidence", "n_best", "tag", "prefix", "below",
)  # fmt: skip
"""Options whose output is lines."""


@dataclass
class DocumentFile:
    """A document to translate, and how."""

    path: Path
    format_name: str
    target: str | None = None
    """The language of the translation."""
    fuzzy: bool = True
    """Whether new translations in a catalog are marked for review."""
    min_confidence: float | None = None
    """Texts whose translations are less sure stay as they are."""


def find_document(
    texts: list[str] | None, source: Path | None, format_name: str
) -> DocumentFile | None:
    """Return the document to translate; None for lines of text."""
    if texts and source is not None:
        raise InputError("both texts and --input", hint="pass one of them")
    if format_name not in ("auto", LINES):
        find_named_format(format_name)
    path = source
    if path is None or str(path) == "-" or format_name == LINES:
        return None
    if format_name != "auto":
        return DocumentFile(path, format_name)
    return DocumentFile(path, find_format(path.name).name) if is_document(path) else None


def check_document_options(
    file: DocumentFile, output: Path | None, options: dict[str, Any]
) -> Path:
    """Return the output; raise an error for options that belong to lines of text."""
    given = [f"--{name.replace('as_', '').replace('_', '-')}" for name in LINE_OPTIONS
             if options.get(name) and (name != "n_best" or options[name] > 1)]  # fmt: skip
    if given:
        raise InputError(
            message("{options}: not for documents", options=", ".join(given)),
            hint="use --format txt to translate the file line by line",
        )
    if output is None or str(output) == "-":
        raise InputError("a document needs --output", hint="for example: -o file.ko.docx")
    suffixes = find_named_format(file.format_name).suffixes
    is_by_name = file.path.suffix.lower() in suffixes
    if is_by_name and is_document(output) and output.suffix.lower() not in suffixes:
        raise InputError(
            message("the output is a {name} document: {path}", name=file.format_name, path=output),
            hint="give it the suffix of the input; attendo does not convert documents",
        )
    return output


def translate_document_file(
    file: DocumentFile,
    output: Path,
    load: Callable[[], Translator],
    options: dict[str, Any],
    *,
    batch_size: int | None,
) -> None:
    """Translate a document with a progress bar; write it when it is complete.

    It is read before the model is loaded, so that mistakes in it are reported at once.
    """
    from attendo.cli.translation.confidence import ConfidenceFilter
    from attendo.cli.translation.progress import progress_bar
    from attendo.documents.translation import DocumentPlan, translate_document

    path = file.path
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise InputError(
            message("{path} has more than {count:,} bytes", path=path, count=MAX_DOCUMENT_BYTES),
            hint="split it",
        )
    read = ReadOptions(file.target, fuzzy=file.fuzzy, max_unpacked_bytes=MAX_UNPACKED_BYTES)
    document = read_document(path.read_bytes(), file.format_name, read)
    translator = load()
    translator.backend.max_batch_tokens = batch_size
    is_sure = None
    if file.min_confidence is not None:
        is_sure = ConfidenceFilter(translator, file.min_confidence, "empty").is_sure
    num_texts = len(DocumentPlan(document).texts)
    with progress_bar(num_texts) as bar:
        made = translate_document(translator, document, progress=bar, is_sure=is_sure, **options)
    partial = output.with_name(f".{output.name}.partial")
    partial.write_bytes(made.content)
    partial.replace(output)
    lang = choose_language()
    for note in made.notes[:MAX_NOTES]:
        typer.echo(translate_message(note, lang), err=True)
    text = message(
        "{count} texts translated: {path}", count=num_texts - made.num_untranslated, path=output
    )
    typer.echo(translate_message(text, lang), err=True)
