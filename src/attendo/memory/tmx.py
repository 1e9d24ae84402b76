"""TMX 1.4, the exchange format of translation memories, as a stream in both directions.

XML is untrusted input: expat loads no external entity, and a document that declares its own, or
uses one that is not declared, is rejected. Codes of the original file (`<ph>`, `<bpt>` ...) are
left out, the text inside `<hi>` is kept. What a unit of Attendo has besides its texts is written as
`<prop>`s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.version import __version__
from attendo.memory.unit import MAX_TEXT_CHARACTERS, ORIGINS, Unit, format_time, parse_time
from attendo.text.languages import match_language, normalize_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

CHUNK_BYTES = 2**16
MAX_DEPTH = 50
CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
"""Elements that hold codes of the original file."""
ALL_LANGUAGES = "*all*"
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="attendo" creationtoolversion="{version}" segtype="block" o-tmf="attendo" \
adminlang="en" srclang="*all*" datatype="plaintext"/>
  <body>
"""
FOOTER = "  </body>\n</tmx>\n"


def format_tmx(units: Iterable[Unit]) -> Iterator[str]:
    """Yield the parts of a TMX document."""
    yield HEADER.format(version=__version__)
    for unit in units:
        yield _format_unit(unit)
    yield FOOTER


def read_tmx(stream: BinaryIO, on_skipped: Callable[[int], None] | None = None) -> Iterator[Unit]:
    """Yield the units of a TMX document, one per target of a source; raise an `InputError`.

    The source is the variant in the language that the unit or the header declares, else the first
    one.

    Args:
        stream: the document.
        on_skipped: called at the end with the number of units that have no text in two languages.

    """
    parser = _TmxParser()
    while chunk := stream.read(CHUNK_BYTES):
        parser.feed(chunk)
        yield from parser.take_units()
    parser.feed(b"", is_final=True)
    yield from parser.take_units()
    if not parser.is_tmx:
        raise _parse_error("it has no element <tmx>")
    if on_skipped is not None:
        on_skipped(parser.num_skipped)


class _TmxParser:
    """Collects the units of a document while it is parsed."""

    def __init__(self) -> None:
        self.is_tmx, self.num_skipped = False, 0
        self._units: list[Unit] = []
        self._srclang = ""
        self._path: list[str] = []
        self._unit: dict[str, str] = {}
        self._props: dict[str, str] = {}
        self._texts: list[tuple[str, str]] = []
        self._language, self._prop = "", ""
        self._parts: list[str] = []
        self._size = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = _reject_entity
        self._parser.SkippedEntityHandler = _reject_entity

    def feed(self, data: bytes, *, is_final: bool = False) -> None:
        """Parse the next bytes."""
        try:
            self._parser.Parse(data, is_final)
        except expat.ExpatError as error:
            detail = message(
                "line {line}: {error}", line=error.lineno, error=expat.ErrorString(error.code)
            )
            raise _parse_error(detail) from None
        except (LookupError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise _parse_error("its encoding is unknown") from None

    def take_units(self) -> list[Unit]:
        """Return the units that are complete, once."""
        units, self._units = self._units, []
        return units

    @property
    def _is_text(self) -> bool:
        return "seg" in self._path and CODES.isdisjoint(self._path)

    def _start(self, qualified_name: str, attributes: dict[str, str]) -> None:
        name = qualified_name.rpartition(":")[2]
        self._path.append(name)
        if len(self._path) > MAX_DEPTH:
            raise _parse_error("its elements are nested too deeply")
        if name == "tmx" and len(self._path) == 1:
            self.is_tmx = True
        elif name == "header":
            self._srclang = attributes.get("srclang", "")
        elif name == "tu":
            self._unit, self._props, self._texts = attributes, {}, []
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name in ("seg", "prop"):
            self._parts, self._size = [], 0
            self._prop = attributes.get("type", "")

    def _characters(self, text: str) -> None:
        if self._is_text or self._path[-1] == "prop":
            self._size += len(text)
            if self._size > MAX_TEXT_CHARACTERS:
                raise _parse_error(
                    message(
                        "line {line}: a text has more than {limit} characters",
                        line=self._parser.CurrentLineNumber,
                        limit=MAX_TEXT_CHARACTERS,
                    )
                )
            self._parts.append(text)

    def _end(self, _: str) -> None:
        name = self._path.pop()
        if name == "seg":
            self._texts.append((self._language, "".join(self._parts)))
        elif name == "prop" and "tuv" not in self._path:
            self._props[self._prop] = "".join(self._parts)
        elif name == "tu":
            units = list(self._make_units())
            self.num_skipped += not units
            self._units += units

    def _make_units(self) -> Iterator[Unit]:
        texts = [(lang, text) for lang, text in self._texts if lang and text.strip()]
        if not texts:
            return
        declared = self._unit.get("srclang") or self._srclang
        languages = [lang for lang, _ in texts]
        found = None if declared in ("", ALL_LANGUAGES) else match_language(declared, languages)
        src_lang = found or languages[0]
        source = dict(reversed(texts))[src_lang]
        origin = self._props.get("x-attendo-origin")
        when = self._unit.get("changedate") or self._unit.get("creationdate")
        for tgt_lang, target in texts:
            if normalize_code(tgt_lang) != normalize_code(src_lang):
                yield Unit(
                    source,
                    target,
                    src_lang,
                    tgt_lang,
                    model=self._props.get("x-attendo-model"),
                    output=self._props.get("x-attendo-output"),
                    author=self._unit.get("changeid") or self._unit.get("creationid"),
                    time=parse_time(when),
                    origin=next((one for one in ORIGINS if one == origin), "import"),
                )


def _reject_entity(*_: Any) -> None:
    raise InputError(
        "the TMX file declares or uses XML entities, which are not expanded here",
        hint="export it without entities, or replace them by their text",
    )


def _parse_error(detail: str) -> InputError:
    return InputError(
        message("not a readable TMX file: {detail}", detail=message(detail)),
        hint="correct the XML, or export it again",
    )


def _format_unit(unit: Unit) -> str:
    when = (format_time(unit.time) or "").replace("-", "").replace(":", "")
    attributes = {"tuid": str(unit.id or ""), "creationdate": when, "creationid": unit.author or ""}
    shown = "".join(
        f" {name}={quoteattr(_clean(value))}" for name, value in attributes.items() if value
    )
    props = {"model": unit.model, "output": unit.output, "origin": unit.origin}
    lines = [f"    <tu{shown}>"]
    lines += [
        f'      <prop type="x-attendo-{name}">{escape(_clean(value))}</prop>'
        for name, value in props.items()
        if value
    ]
    lines += [
        f'      <tuv xml:lang="{lang}"><seg>{escape(_clean(text))}</seg></tuv>'
        for lang, text in ((unit.src_lang, unit.source), (unit.tgt_lang, unit.target))
    ]
    return "\n".join([*lines, "    </tu>\n"])


def _clean(text: str) -> str:
    """Return a text without the control characters that XML cannot express."""
    return NOT_IN_XML.sub("\ufffd", text)
