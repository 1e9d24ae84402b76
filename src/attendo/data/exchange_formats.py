"""Readers of translation exchange formats: TMX, PO, MO and XLIFF (extra `formats`).

TMX files are large, and translate-toolkit loads a whole file into memory. Here lxml parses it as a
stream, one unit at a time. Catalogs (PO, MO, XLIFF) are small: translate-toolkit reads them, and
`MAX_CATALOG_BYTES` limits their size.

XML is untrusted input: entities are not expanded, a document that declares its own is rejected, no
DTD is loaded, nothing is fetched, and libxml2's limits on depth and size stay on.
"""

from __future__ import annotations

import re
import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError, MissingExtraError
from attendo.data.corpus_config import Pair
from attendo.text.lines import decode_utf8, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from attendo.data.corpus_config import Fields, Format

MAX_CATALOG_BYTES = 256 * 2**20
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
INLINE_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
"""TMX elements that hold codes of the original file; the content of <hi> is text."""
PO_CHARSET = re.compile(rb"(Content-Type:[^\n]*charset=)([\w-]+)")
XLIFF2_ROOT = re.compile(rb"<(\w+:)?xliff\b[^>]*(version=.2|:document:2)")
PARSE_ERRORS = (ValueError, LookupError, AttributeError, TypeError, AssertionError, StopIteration)
"""What translate-toolkit raises, besides its own errors, for files of another format."""


def _import_extra(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("translate-toolkit", "formats") from None


def read_tmx(path: Path, fields: Fields) -> Iterator[Pair]:
    """Yield the pairs of a TMX file; `fields` are two languages, None for its only two."""
    etree = _import_extra("lxml.etree")
    languages: dict[str, None] = {}  # in the order of their first occurrence
    num_pairs = 0
    with open_bytes(path) as stream:
        try:
            for srclang, texts in _tmx_units(etree, stream, path):
                languages |= dict.fromkeys(texts)
                pair = _select_languages(texts, fields, srclang, path)
                if pair is not None:
                    num_pairs += 1
                    yield pair
        except etree.XMLSyntaxError as error:
            raise InputError(f"{path}: {error}", hint="fix the XML, or export it again") from None
    if languages and not num_pairs:
        raise InputError(
            f"{path} has no unit with both '{fields[0]}' and '{fields[1]}'",
            hint=f"set src_field and tgt_field to two of: {', '.join(languages)}",
        )


def _tmx_units(etree: Any, stream: Any, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each unit's source language and its texts by language, then free the unit."""
    events = etree.iterparse(
        stream,
        tag=("{*}header", "{*}tu"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    srclang = ""
    for number, (_, element) in enumerate(events):
        if number == 0:
            _reject_entities(element.getroottree(), path)
        if etree.QName(element).localname == "header":
            srclang = element.get("srclang", "")
            continue
        yield element.get("srclang", srclang), _tmx_texts(etree, element)
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def _reject_entities(document: Any, path: Path) -> None:
    dtd = document.docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise InputError(
            f"{path} declares XML entities, which are not expanded here",
            hint="export it without entities, or replace them by their text",
        )


def _tmx_texts(etree: Any, unit: Any) -> dict[str, str]:
    texts: dict[str, str] = {}
    for variant in unit.iterchildren("{*}tuv"):
        segment = next(variant.iterchildren("{*}seg"), None)
        language = variant.get(XML_LANG) or variant.get("lang") or ""
        if segment is not None:
            texts.setdefault(language, "".join(_segment_text(etree, segment)))
    return texts


def _segment_text(etree: Any, element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element.iterchildren("*"):
        if etree.QName(child).localname not in INLINE_CODES:
            yield from _segment_text(etree, child)
        yield child.tail or ""


def _select_languages(
    texts: dict[str, str], fields: Fields, srclang: str, path: Path
) -> Pair | None:
    """Return the pair of the requested languages; None if this unit lacks one of them."""
    if fields[0] is not None:
        src, tgt = (_match_language(str(field), texts) for field in fields)
    else:
        src = _match_language(srclang, texts)
        others = [language for language in texts if language != src]
        if src is None or len(others) > 1:
            raise InputError(
                f"{path} has more than two languages: {', '.join(texts)}",
                hint="set src_field and tgt_field to two of them",
            )
        tgt = others[0] if others else None
    return None if src is None or tgt is None else Pair(texts[src], texts[tgt])


def _match_language(requested: str, available: Iterable[str]) -> str | None:
    """Return the language with this code, else a more specific or more general one.

    >>> _match_language("en", ["ko-KR", "EN_us"]), _match_language("pt-BR", ["pt-PT"])
    ('EN_us', None)
    """
    code = _normalize_code(requested)
    normalized = [(_normalize_code(language), language) for language in available]
    exact = [language for other, language in normalized if other == code]
    more_specific = [language for other, language in normalized if other.split("-")[0] == code]
    more_general = [language for other, language in normalized if other == code.split("-")[0]]
    return next(iter(exact + more_specific + more_general), None)


def _normalize_code(language: str) -> str:
    return language.casefold().replace("_", "-")


def read_catalog(path: Path, fields: Fields, name: Format) -> Iterator[Pair]:
    """Yield the finished translations of a PO, MO or XLIFF file; of plural forms, the singular.

    The header, obsolete, fuzzy and untranslated units are skipped, and those marked translate="no"
    or as needing work. `fields` may reverse the direction: ("target", "source"), or the languages
    of the file.
    """
    store = _load_catalog(path, name)
    is_reversed = _is_reversed(store, fields, path)
    for unit in store.units:
        if not unit.isheader() and not unit.isobsolete() and _is_translated(unit, name):
            pair = Pair(
                str(unit.source), str(unit.target)
            )  # the text of a multistring is its singular
            yield pair.swapped() if is_reversed else pair


def _load_catalog(path: Path, name: Format) -> Any:
    base, po, mo, xliff, xliff2 = (
        _import_extra(f"translate.storage.{module}")
        for module in ("base", "pypo", "mo", "xliff", "xliff2")
    )
    content = _read_all(path)
    is_xliff2 = XLIFF2_ROOT.search(content[:65536]) is not None
    parsers = {
        "po": po.pofile,
        "mo": mo.mofile,
        "xliff": xliff2.Xliff2File if is_xliff2 else xliff.Xliff1File,
    }
    if name == "po":
        content = _to_utf8_po(content, path)
    try:
        store = parsers[name].parsestring(content)
    except (*PARSE_ERRORS, SyntaxError, struct.error, base.ParseError) as error:
        reason = f"{path} is not a readable {name.upper()} file: {error}"
        raise InputError(reason, hint="check the file, or set format") from None
    if name == "xliff":
        _reject_entities(store.document, path)
    return store


def _to_utf8_po(content: bytes, path: Path) -> bytes:
    """Convert a PO file to UTF-8; translate-toolkit would silently read bad bytes as Latin-1."""
    match = PO_CHARSET.search(content)
    charset = match[2].decode("ascii").lower() if match else "utf-8"
    if charset in ("utf-8", "utf8", "charset"):  # templates have "CHARSET"
        return decode_utf8(content, path).removeprefix("\ufeff").encode()
    try:
        text = content.decode(charset)
    except (LookupError, ValueError) as error:
        reason = f"{path} declares the charset {charset}, which does not fit: {error}"
        raise InputError(reason, hint="convert it to UTF-8: msgconv -t UTF-8") from None
    return PO_CHARSET.sub(rb"\1UTF-8", text.encode(), count=1)


def _read_all(path: Path) -> bytes:
    with open_bytes(path) as stream:
        content = stream.read(MAX_CATALOG_BYTES + 1)
    if len(content) > MAX_CATALOG_BYTES:
        raise InputError(
            f"{path} is larger than {MAX_CATALOG_BYTES:,} bytes",
            hint="split it, or convert it to TMX",
        )
    return content


def _is_translated(unit: Any, name: Format) -> bool:
    if not unit.source or not unit.target:
        return False
    if name != "xliff":
        return not unit.isfuzzy()
    # translate-toolkit treats an XLIFF 1 unit as fuzzy until approved, but most tools never set it.
    state = unit.target_dom.get("state") or unit.xmlelement.get("state") or "translated"
    return (
        unit.istranslatable() and state not in ("new", "initial") and not state.startswith("needs-")
    )


def _is_reversed(store: Any, fields: Fields, path: Path) -> bool:
    if fields[0] is None:
        return False
    names = [["source", "msgid"], ["target", "msgstr"]]
    for side, language in zip(
        names, (store.getsourcelanguage(), store.gettargetlanguage()), strict=True
    ):
        side.extend([language] if language else [])
    sides = [[_match_language(str(field), side) is not None for side in names] for field in fields]
    if sides[0] == sides[1]:
        raise InputError(
            f"{path} does not have both '{fields[0]}' and '{fields[1]}'",
            hint="set src_field and tgt_field to two of: " + ", ".join(names[0] + names[1]),
        )
    return sides[0][1] or sides[1][0]
