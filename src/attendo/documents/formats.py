"""The formats of documents: their suffixes, media types and readers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from attendo.core.errors import InputError, suggest
from attendo.core.message import message

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.documents.document import Document, TextDocument

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may need to know."""

    target: str | None = None
    """The language of the translation, for formats that name it."""
    fuzzy: bool = True
    """Whether new translations in catalogs are marked as to be reviewed."""
    max_unpacked_bytes: int = 200_000_000
    """The most bytes that an archive may unpack to."""


class Format(NamedTuple):
    """A format of documents."""

    name: str
    suffixes: tuple[str, ...]
    media_type: str
    module: str
    function: str
    kind: Literal["text", "bytes"] = "text"
    """What the reader gets: the decoded text, or the bytes of the file."""
    library: str = ""
    """What must be installed: a package of the extra `documents`."""


OFFICE = "application/vnd.openxmlformats-officedocument"
FORMATS = (
    Format("txt", (".txt",), "text/plain; charset=utf-8", "plain_text", "read_plain_text"),
    Format("html", (".html", ".htm", ".xhtml"), "text/html; charset=utf-8", "html", "read_html"),
    Format("md", (".md", ".markdown"), "text/markdown; charset=utf-8", "markdown", "read_markdown",
           library="markdown_it"),
    Format("srt", (".srt",), "application/x-subrip; charset=utf-8", "subtitles", "read_subtitles"),
    Format("vtt", (".vtt",), "text/vtt; charset=utf-8", "subtitles", "read_subtitles"),
    Format("po", (".po", ".pot"), "text/x-gettext-translation; charset=utf-8", "gettext_catalog",
           "read_catalog"),
    Format("json", (".json",), "application/json", "json_strings", "read_json"),
    Format("yaml", (".yaml", ".yml"), "application/yaml; charset=utf-8", "yaml_strings",
           "read_yaml", library="yaml"),
    Format("xliff", (".xlf", ".xliff"), "application/xliff+xml", "xliff", "read_xliff",
           "bytes", "lxml"),
    Format("docx", (".docx",), f"{OFFICE}.wordprocessingml.document", "ooxml",
           "read_docx", "bytes", "lxml"),
    Format("pptx", (".pptx",), f"{OFFICE}.presentationml.presentation", "ooxml",
           "read_pptx", "bytes", "lxml"),
    Format("odt", (".odt",), "application/vnd.oasis.opendocument.text", "opendocument",
           "read_opendocument", "bytes", "lxml"),
    Format("epub", (".epub",), "application/epub+zip", "epub", "read_epub", "bytes"),
)  # fmt: skip


def find_format(name: str) -> Format:
    """Return the format of a name: of a format, of a suffix, or of a file.

    >>> find_format("notes.de.MD").name, find_format("po").name
    ('md', 'po')
    """
    extension = name.lower().rpartition(".")[2]
    for one in FORMATS:
        if extension == one.name or f".{extension}" in one.suffixes:
            return one
    raise InputError(
        "unsupported file type",
        hint=message("supported: {suffixes}", suffixes=", ".join(list_suffixes())),
    )


def find_named_format(name: str) -> Format:
    """Return the format with a name, for an option of the command line."""
    for one in FORMATS:
        if name == one.name:
            return one
    raise InputError(
        message("{option} {value}: unknown value", option="--format", value=name),
        hint=suggest(name, [one.name for one in FORMATS]),
    )


def list_suffixes() -> list[str]:
    """Return the suffixes of all formats."""
    return [suffix for one in FORMATS for suffix in one.suffixes]


def list_available() -> list[str]:
    """Return the suffixes of the formats whose libraries are installed."""
    return [
        suffix
        for one in FORMATS
        if not one.library or find_spec(one.library) is not None
        for suffix in one.suffixes
    ]


def is_document(path: Path) -> bool:
    """Return whether a file has the suffix of a format that is more than lines of text."""
    return path.suffix.lower() in list_suffixes() and path.suffix.lower() != ".txt"


def read_document(content: bytes, format_name: str, options: ReadOptions | None = None) -> Document:
    """Read a document.

    Args:
        content: the file.
        format_name: the name of its format, or of the file.
        options: see `ReadOptions`.

    Returns:
        The document: its segments, and how it is written.

    Raises:
        InputError: the file is not of this format, or too large when it is unpacked.
        MissingExtraError: the format needs a library that is not installed.

    """
    options = options or ReadOptions()
    chosen = find_format(format_name)
    read: Any = getattr(import_module(f"attendo.documents.{chosen.module}"), chosen.function)
    if chosen.kind == "bytes":
        return cast("Document", read(content, options))
    from attendo.documents.encoding import decode_file

    text = decode_file(content, is_html=chosen.name == "html")
    document: TextDocument
    if chosen.name == "html":
        document = read(text, options.target)
    elif chosen.name == "po":
        document = read(text, fuzzy=options.fuzzy)
    else:
        document = read(text)
    document.bom = content.startswith(BYTE_ORDER_MARK)
    if not _is_utf8(content):
        document.notes.append(message("the file is written in UTF-8, not in its old encoding"))
    return document


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
