"""XLIFF 1.2 and 2.0: untranslated units are translated, with their inline elements.

Existing translations are kept. A new one is marked as to be reviewed.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.markup import has_words
from attendo.documents.mixed_content import MixedElement, read_mixed
from attendo.documents.xml_parts import local_name, parse_xml, write_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.documents.formats import ReadOptions
    from attendo.documents.markup import MarkedText
    from attendo.documents.mixed_content import Role

PAIRS = frozenset({"g", "mrk", "pc"})
UNITS = frozenset({"trans-unit", "segment"})
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass
class Unit:
    """A unit: its source was copied to the target, which is translated."""

    parent: Any
    target: Any
    old: Any
    """The empty target of the file, if it has one."""
    elements: list[MixedElement]


class XliffDocument:
    """An XLIFF document."""

    def __init__(self, content: bytes, target: str | None) -> None:
        self.content, self.target = content, target
        self.segments: list[MarkedText] = []
        self.notes: list[str] = []
        self.root = parse_xml(content)
        if local_name(self.root) != "xliff":
            raise InputError(
                "the file is damaged, or of another format", hint="open and save it again"
            )
        self.is_second = str(self.root.get("version", "1.2")).startswith("2")
        self.units: list[Unit] = []
        num_kept = 0
        for element in self.root.iter():
            if local_name(element) in UNITS and not _is_protected(element):
                num_kept += self._read_unit(element)
        if num_kept:
            self.notes.append(
                message("{count} messages were translated before and are kept", count=num_kept)
            )

    def _read_unit(self, unit: Any) -> bool:
        """Add a unit; return whether it was translated before."""
        parts = {local_name(child): child for child in unit}
        source, old = parts.get("source"), parts.get("target")
        if source is None:
            return False
        if old is not None and has_words("".join(old.itertext())):
            return True
        origin = parts.get("seg-source", source)
        target = unit.makeelement(source.tag.replace("}source", "}target"), {}, None)
        if local_name(target) != "target":  # without a namespace
            target.tag = "target"
        copied = _copy(origin)
        target.text = copied.text
        for child in copied:
            target.append(child)
        if old is not None:
            for name, value in old.attrib.items():
                target.set(name, value)
        elements = []
        for part in [one for one in target if one.get("mtype") == "seg"] or [target]:
            found = read_mixed(part, _classify, self.segments, collapse=False)
            if found is not None:
                elements.append(found)
        if elements:
            self.units.append(Unit(unit, target, old, elements))
        return False

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the document with new targets, also those that equal their sources."""
        is_changed = False
        for unit in self.units:
            numbers = [
                piece.segment
                for element in unit.elements
                for piece in element.pieces
                if piece.segment is not None
            ]
            if all(translated[number] is self.segments[number] for number in numbers):
                continue  # not translated
            is_changed = True
            for element in unit.elements:
                element.rebuild(translated)
            self._insert(unit)
        if not is_changed:
            return self.content
        if self.target is not None:
            if self.is_second:
                self.root.set("trgLang", self.target)
            else:
                for file in (one for one in self.root.iter() if local_name(one) == "file"):
                    file.set("target-language", self.target)
        return write_xml(self.root, self.content)

    def _insert(self, unit: Unit) -> None:
        if self.is_second:
            unit.parent.set("state", "translated")
        else:
            unit.target.set("state", "needs-review-translation")
        if unit.old is not None:
            unit.target.tail = unit.old.tail
            unit.parent.replace(unit.old, unit.target)
            return
        parts = {local_name(child): child for child in unit.parent}
        after = parts.get("seg-source", parts["source"])
        unit.target.tail = after.tail
        after.addnext(unit.target)


def read_xliff(content: bytes, options: ReadOptions) -> XliffDocument:
    """Read an XLIFF document."""
    return XliffDocument(content, options.target)


def _copy(element: Any) -> Any:
    made = deepcopy(element)
    made.tail = None
    return made


def _is_protected(unit: Any) -> bool:
    """Return whether a unit, or what it is in, is not to be translated."""
    return any(
        one.get("translate") == "no" or one.get("approved") == "yes"
        for one in (unit, *unit.iterancestors())
    )


def _classify(element: Any) -> Role:
    name = local_name(element)
    if name == "mrk" and element.get("translate") == "no":
        return "verbatim"
    if name == "mrk" and element.get("mtype") == "protected":
        return "verbatim"
    return "pair" if name in PAIRS else "single"
