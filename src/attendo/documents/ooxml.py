"""Word and PowerPoint documents (.docx, .pptx): paragraphs are translated, with the format of runs.

A paragraph is a row of runs, each with its format. The format that most characters have is that of
the translation; other formats, links and fields are tags in its text. Tabs and line breaks separate
segments. Only paragraphs whose translation differs are written again; pictures, styles, tables and
every other part of the file keep their bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.archive import Archive
from attendo.documents.markup import MarkedText, MarkupBuilder, has_words, traverse, trim
from attendo.documents.xml_parts import (
    XML_SPACE,
    import_etree,
    local_name,
    parse_xml,
    shallow_copy,
    write_xml,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.documents.formats import ReadOptions

DOCX_PART = re.compile(
    r"word/(document|header\d*|footer\d*|footnotes|endnotes|comments|charts/chart\d+"
    r"|diagrams/(data|drawing)\d+)\.xml"
)
PPTX_PART = re.compile(
    r"ppt/(slides/slide\d+|notesSlides/notesSlide\d+|charts/chart\d+|diagrams/(data|drawing)\d+"
    r"|comments/\w+)\.xml"
)
MEDIA = re.compile(r"(word|ppt)/(media|embeddings)/.+")
PARAGRAPHS = re.compile(
    r"\{http://(?:schemas\.openxmlformats\.org/(?:wordprocessingml|drawingml)/2006/main"
    r"|purl\.oclc\.org/ooxml/(?:wordprocessingml|drawingml)/main)\}p"
)
WRAPPERS = frozenset({"hyperlink", "ins", "smartTag", "fldSimple", "moveTo", "bdo", "dir"})
"""Elements of a paragraph around runs."""
DROPPED = frozenset({"proofErr", "lastRenderedPageBreak", "softHyphen"})
"""Hints of the program that wrote the file; they hold for the old text only."""
SEPARATORS = frozenset({"tab", "br", "cr", "ptab"})
IGNORED_FORMATS = frozenset({"lang", "noProof"})
"""Children of a format that do not change how a text looks."""
IGNORED_ATTRIBUTES = frozenset({"lang", "altLang", "dirty", "err", "smtClean", "noProof"})


class Wrapper(NamedTuple):
    """An element around runs, or None with the format of a run."""

    element: Any
    run_format: Any


@dataclass
class Atom:
    """A part of a paragraph: a text, or an element, in the elements and the format around it."""

    wrappers: tuple[Any, ...]
    run_format: Any
    """The <rPr> of its run; None without one."""
    text: str = ""
    element: Any = None
    """What is kept as it is: a picture, a bookmark, a field."""
    in_run: bool = True
    is_separator: bool = False

    @property
    def key(self) -> str:
        """The format as text, without what does not change how a text looks."""
        return _format_key(self.run_format)


@dataclass
class Paragraph:
    """A paragraph of a part, and which segments it has."""

    part: str
    element: Any
    head: list[Any] = field(default_factory=list)
    """Its properties, which stay first."""
    tail: list[Any] = field(default_factory=list)
    """Properties that stay last (PowerPoint)."""
    pieces: list[Piece] = field(default_factory=list)


@dataclass
class Piece:
    """Atoms between separators; `segment` is None if they are not translated."""

    atoms: list[Atom]
    segment: int | None = None
    lead: str = ""
    trail: str = ""
    base: Any = None
    """The format of what has no tag."""


class OfficeDocument:
    """A Word or PowerPoint document."""

    def __init__(self, archive: Archive, pattern: re.Pattern[str]) -> None:
        self.archive = archive
        self.segments: list[MarkedText] = []
        self.notes: list[str] = []
        self.paragraphs: list[Paragraph] = []
        self.roots: dict[str, tuple[Any, bytes]] = {}
        for name in archive.names:
            if pattern.fullmatch(name):
                content = archive.read(name)
                root = parse_xml(content)
                self.roots[name] = root, content
                self._read_part(name, root)
        if not self.roots:
            raise InputError(
                "the file is damaged, or of another format", hint="open and save it again"
            )
        if any(MEDIA.fullmatch(name) for name in archive.names):
            self.notes.append(message("text in pictures and embedded files is not translated"))
        if any(paragraph.element is None for paragraph in self.paragraphs):
            self.notes.append(
                message("fields over several paragraphs, such as a table of contents, are kept: "
                        "update them in the word processor")
            )  # fmt: skip

    def _read_part(self, name: str, root: Any) -> None:
        is_in_field = 0
        for element in root.iter():
            if not isinstance(element.tag, str) or not PARAGRAPHS.fullmatch(element.tag):
                continue
            depth = _field_depth(element)
            if is_in_field > 0 or depth != 0:
                is_in_field = max(is_in_field + depth, 0)
                self.paragraphs.append(Paragraph(name, None))
                continue
            self._read_paragraph(Paragraph(name, element))

    def _read_paragraph(self, paragraph: Paragraph) -> None:
        atoms: list[Atom] = []
        for child in paragraph.element:
            kind = local_name(child)
            if kind == "pPr":
                paragraph.head.append(child)
            elif kind == "endParaRPr":
                paragraph.tail.append(child)
            else:
                atoms += _atoms(child, ())
        atoms = _join_fields(atoms)
        for row in _split(atoms):
            piece = Piece(row)
            paragraph.pieces.append(piece)
            if row and not row[0].is_separator:
                self._add_segment(piece)
        if any(piece.segment is not None for piece in paragraph.pieces):
            self.paragraphs.append(paragraph)

    def _add_segment(self, piece: Piece) -> None:
        marked, base = _mark(piece.atoms)
        if not has_words(marked.text):
            return
        piece.base = base
        piece.lead, marked, piece.trail = trim(marked)
        piece.segment = len(self.segments)
        self.segments.append(marked)

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the document; parts without a changed paragraph keep their bytes."""
        changed: set[str] = set()
        for paragraph in self.paragraphs:
            numbers = [piece.segment for piece in paragraph.pieces if piece.segment is not None]
            if all(translated[number] == self.segments[number] for number in numbers):
                continue
            changed.add(paragraph.part)
            _rebuild(paragraph, self.segments, translated)
        parts = {name: write_xml(*self.roots[name]) for name in changed}
        return self.archive.write(parts)


def read_docx(content: bytes, options: ReadOptions) -> OfficeDocument:
    """Read a Word document."""
    return OfficeDocument(Archive(content, options.max_unpacked_bytes), DOCX_PART)


def read_pptx(content: bytes, options: ReadOptions) -> OfficeDocument:
    """Read a PowerPoint presentation."""
    return OfficeDocument(Archive(content, options.max_unpacked_bytes), PPTX_PART)


def _field_depth(paragraph: Any) -> int:
    """Return how many more fields a paragraph begins than it ends."""
    depth = 0
    for element in paragraph.iter("{*}fldChar"):
        kind = next((v for k, v in element.attrib.items() if k.endswith("fldCharType")), "")
        depth += {"begin": 1, "end": -1}.get(kind, 0)
    return depth


def _atoms(element: Any, wrappers: tuple[Any, ...]) -> Iterator[Atom]:
    """Yield the atoms of a child of a paragraph."""
    kind = local_name(element)
    if kind in DROPPED:
        return
    if kind == "r":
        yield from _run_atoms(element, wrappers)
    elif kind in WRAPPERS:
        for child in element:
            if local_name(child).endswith("Pr"):
                continue
            yield from _atoms(child, (*wrappers, element))
    elif kind == "br":  # PowerPoint
        yield Atom(wrappers, None, element=element, in_run=False, is_separator=True)
    else:
        yield Atom(wrappers, None, element=element, in_run=False)


def _run_atoms(run: Any, wrappers: tuple[Any, ...]) -> Iterator[Atom]:
    run_format = next((child for child in run if local_name(child) == "rPr"), None)
    for child in run:
        kind = local_name(child)
        if kind == "t":
            yield Atom(wrappers, run_format, text=child.text or "")
        elif kind == "noBreakHyphen":
            yield Atom(wrappers, run_format, text="\u2011")
        elif kind not in DROPPED and kind != "rPr":
            is_separator = kind in SEPARATORS
            yield Atom(wrappers, run_format, element=child, is_separator=is_separator)


def _join_fields(atoms: list[Atom]) -> list[Atom]:
    """Make one atom of the runs of each field, such as a page number or a reference."""
    joined: list[Atom] = []
    depth = 0
    inside: list[Atom] = []
    for atom in atoms:
        kind = local_name(atom.element) if atom.element is not None else ""
        field_type = ""
        if kind == "fldChar":
            field_type = next(
                (v for k, v in atom.element.attrib.items() if k.endswith("fldCharType")), ""
            )
        depth += field_type == "begin"
        if depth > 0:
            inside.append(atom)
        else:
            joined.append(atom)
        if field_type == "end" and depth > 0:
            depth -= 1
            if depth == 0:
                joined.append(Atom(inside[0].wrappers, None, element=inside, in_run=False))
                inside = []
    return joined + inside


def _split(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """Split atoms at separators, which are rows of their own."""
    rows: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.is_separator:
            rows += [[atom], []]
        else:
            rows[-1].append(atom)
    return [row for row in rows if row]


def _format_key(run_format: Any) -> str:
    if run_format is None:
        return ""
    etree = import_etree()
    parts = [
        etree.tostring(child, method="c14n").decode()
        for child in run_format
        if local_name(child) not in IGNORED_FORMATS
    ]
    attributes = [
        f"{name}={value}"
        for name, value in sorted(run_format.attrib.items())
        if name.rpartition("}")[2] not in IGNORED_ATTRIBUTES
    ]
    return "|".join([*attributes, *parts])


def _mark(atoms: Sequence[Atom]) -> tuple[MarkedText, Any]:
    """Return the text of atoms with tags, and the format of what has no tag."""
    keys = [atom.key for atom in atoms]
    counts: Counter[str] = Counter()
    for atom, key in zip(atoms, keys, strict=True):
        counts[key] += len(atom.text)
    base_key = counts.most_common(1)[0][0]
    base = next(atom.run_format for atom, key in zip(atoms, keys, strict=True) if key == base_key)
    builder = MarkupBuilder()
    open_wrappers: list[Any] = []
    open_key: str | None = None
    for atom, key in zip(atoms, keys, strict=True):
        wrappers = list(atom.wrappers)
        is_base = key == base_key or not atom.text
        if open_key is not None and (open_key != key or wrappers != open_wrappers or is_base):
            builder.close()
            open_key = None
        while open_wrappers and open_wrappers != wrappers[: len(open_wrappers)]:
            builder.close()
            open_wrappers.pop()
        for wrapper in wrappers[len(open_wrappers) :]:
            builder.open(Wrapper(wrapper, None))
            open_wrappers.append(wrapper)
        if not atom.text:
            if atom.element is not None:
                builder.add_single(atom)
            continue
        if not is_base and open_key is None:
            builder.open(Wrapper(None, atom.run_format))
            open_key = key
        builder.add_text(atom.text)
    return builder.build(), base


def _rebuild(
    paragraph: Paragraph, segments: Sequence[MarkedText], translated: Sequence[MarkedText]
) -> None:
    """Replace the children of a paragraph."""
    namespace = paragraph.element.tag.partition("}")[0][1:]
    writer = _Writer(paragraph.element, namespace)
    children = list(paragraph.element)
    for child in children:
        paragraph.element.remove(child)
    for child in paragraph.head:
        paragraph.element.append(child)
    for piece in paragraph.pieces:
        if piece.segment is None or translated[piece.segment] == segments[piece.segment]:
            marked, base = _mark(piece.atoms)
            writer.write(marked, base)
            continue
        writer.text(piece.lead, piece.base)
        writer.write(translated[piece.segment], piece.base)
        writer.text(piece.trail, piece.base)
    for child in paragraph.tail:
        paragraph.element.append(child)


class _Writer:
    """Writes runs into a paragraph."""

    def __init__(self, paragraph: Any, namespace: str) -> None:
        self.stack = [paragraph]
        self.namespace = namespace
        self.is_word = "wordprocessingml" in namespace

    def write(self, marked: MarkedText, base: Any) -> None:
        """Write a marked text."""
        formats = [base]
        for event in traverse(marked):
            if event.tag is None:
                self.text(event.text, formats[-1])
            elif event.kind == "single":
                self._atom(event.tag.open)
            elif event.tag.open.element is None:
                if event.kind == "open":
                    formats.append(event.tag.open.run_format)
                else:
                    formats.pop()
            elif event.kind == "open":
                wrapper = shallow_copy(event.tag.open.element)
                self.stack[-1].append(wrapper)
                self.stack.append(wrapper)
            else:
                self.stack.pop()

    def text(self, text: str, run_format: Any) -> None:
        """Write a run with a text."""
        if not text:
            return
        run = self._run(run_format)
        element = run.makeelement(f"{{{self.namespace}}}t", {}, None)
        element.text = _clean(text)
        if self.is_word and text != text.strip():
            element.set(XML_SPACE, "preserve")
        run.append(element)

    def _run(self, run_format: Any) -> Any:
        parent = self.stack[-1]
        run = parent.makeelement(f"{{{self.namespace}}}r", {}, None)
        if run_format is not None:
            run.append(deepcopy(run_format))
        parent.append(run)
        return run

    def _atom(self, atom: Atom) -> None:
        if isinstance(atom.element, list):
            for one in atom.element:
                if one.text:
                    self.text(one.text, one.run_format)
                elif one.element is not None:
                    self._atom(one)
        elif atom.in_run:
            self._run(atom.run_format).append(atom.element)
        else:
            atom.element.tail = None
            self.stack[-1].append(atom.element)


def _clean(text: str) -> str:
    """Return a text without characters that XML cannot have."""
    return "".join(
        letter
        for letter in text
        if letter in "\t\n" or (letter >= " " and letter not in "\ufffe\uffff"
                                and not "\ud800" <= letter <= "\udfff")
    )  # fmt: skip
