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
from collections import Counter
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import join_messages, message
from attendo.data.columns import Selection
from attendo.data.corpus_config import Pair
from attendo.text.languages import base_language, match_language, normalize_code
from attendo.text.lines import decode_utf8, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig, Format

MAX_CATALOG_BYTES = 256 * 2**20
NUM_SAMPLED_UNITS = 1000
"""Units of a TMX file from which its languages are known."""
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


class TmxFile(NamedTuple):
    """The pairs of a TMX file, and their languages (None if it has no units)."""

    selection: Selection | None
    pairs: Iterator[Pair]


def open_tmx(path: Path, config: CorpusConfig) -> TmxFile:
    """Choose the two languages of a TMX file: the requested ones, or those of its first units."""
    etree = _import_extra("lxml.etree")
    is_given = config.src_field is not None
    requested = tuple(map(str, config.fields)) if is_given else config.languages
    src, tgt = requested
    if src is None or tgt is None:
        languages = _choose_languages(_sample_languages(etree, path), src, tgt, path)
        if languages is None:
            return TmxFile(None, iter(()))
        src, tgt = languages
    selection = Selection(
        path,
        "language",
        src,
        tgt,
        is_requested=requested == (src, tgt),
        is_in_file_order=requested == (None, None),
    )
    return TmxFile(selection, _read_tmx(etree, path, src, tgt))


class _TmxLanguages(NamedTuple):
    """The source language that a file declares, and the languages of its units, in order."""

    srclang: str
    codes: list[str]


def _sample_languages(etree: Any, path: Path) -> _TmxLanguages:
    """Return the languages of the first units: spelled alike, or by their base if that is two."""
    srclang = ""
    codes: dict[str, None] = {}
    with _open_xml(etree, path) as stream:
        for declared, texts in islice(_tmx_units(etree, stream, path), NUM_SAMPLED_UNITS):
            srclang = srclang or declared
            codes |= dict.fromkeys(map(normalize_code, texts))
    bases = dict.fromkeys(map(base_language, codes))
    return _TmxLanguages(srclang, list(bases if len(bases) == 2 else codes))


def _choose_languages(
    sample: _TmxLanguages, src: str | None, tgt: str | None, path: Path
) -> tuple[str, str] | None:
    """Return source and target; None if there are no units."""
    if not sample.codes:
        return None
    given = match_language(src or tgt or sample.srclang, sample.codes)
    others = [code for code in sample.codes if code != given]
    if given is None and len(others) == 2 and not (src or tgt):  # srclang is "*all*", or wrong
        return others[0], others[1]
    if given is None or len(others) != 1:
        raise InputError(
            message(
                "{path} has the languages {languages}, and it is unclear which two to use",
                path=path,
                languages=", ".join(sample.codes),
            ),
            hint="choose two of them with --src-lang and --tgt-lang "
            "(src_lang and tgt_lang in a config file)",
        )
    return (others[0], tgt) if tgt else (src or given, others[0])


@contextmanager
def _open_xml(etree: Any, path: Path) -> Iterator[IO[bytes]]:
    try:
        with open_bytes(path) as stream:
            yield stream
    except etree.XMLSyntaxError as error:
        raise InputError(
            message("{path}: {detail}", path=path, detail=str(error)),
            hint="correct the XML, or export it again",
        ) from None


def _read_tmx(etree: Any, path: Path, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    languages: dict[str, None] = {}  # in the order of their first occurrence
    num_pairs = 0
    with _open_xml(etree, path) as stream:
        for _, texts in _tmx_units(etree, stream, path):
            languages |= dict.fromkeys(texts)
            src, tgt = match_language(src_lang, texts), match_language(tgt_lang, texts)
            if src is not None and tgt is not None:
                num_pairs += 1
                yield Pair(texts[src], texts[tgt])
    if languages and not num_pairs:
        raise InputError(
            message(
                "{path} has no unit with both '{src}' and '{tgt}'",
                path=path,
                src=src_lang,
                tgt=tgt_lang,
            ),
            hint=message(
                "choose two with --src-lang and --tgt-lang: {names}", names=", ".join(languages)
            ),
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
            message("{path} declares XML entities, which are not expanded here", path=path),
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


def read_catalog(path: Path, config: CorpusConfig) -> Iterator[Pair]:
    """Yield the finished translations of a PO, MO or XLIFF file; of plural forms, the singular.

    The header, obsolete, fuzzy and untranslated units are skipped, and those marked translate="no"
    or as needing work. The fields of the config may reverse the direction: ("target", "source"), or
    the languages of the file.
    """
    name = config.resolved_format
    store = _load_catalog(path, name)
    is_reversed = _is_reversed(store, config, path)
    skipped: Counter[str] = Counter()
    num_pairs = 0
    for unit in store.units:
        if unit.isheader():
            continue
        reason = _reason_to_skip(unit, name)
        if reason is not None:
            skipped[reason] += 1
            continue
        num_pairs += 1
        # The text of a multistring is its singular.
        pair = Pair(str(unit.source), str(unit.target))
        yield pair.swapped() if is_reversed else pair
    if skipped and not num_pairs:
        counts = (message("{count} {detail}", count=n, detail=why) for why, n in skipped.items())
        raise InputError(
            message(
                "{path}: none of its {total} entries is a finished translation: {counts}",
                path=path,
                total=skipped.total(),
                counts=join_messages(", ", counts),
            ),
            hint="translate and review some, or give another file; "
            "`msgattrib --clear-fuzzy` accepts all fuzzy entries of a PO file",
        )


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
        reason = message(
            "{path} is not a readable {format} file: {detail}",
            path=path,
            format=name.upper(),
            detail=str(error),
        )
        raise InputError(reason, hint="check the file, or set format in a config file") from None
    if name == "xliff":
        _reject_entities(store.document, path)
    return store


def _to_utf8_po(content: bytes, path: Path) -> bytes:
    """Convert a PO file to UTF-8; translate-toolkit would silently read bad bytes as Latin-1."""
    match = PO_CHARSET.search(content)
    charset = match[2].decode("ascii").lower() if match else "utf-8"
    if charset in ("utf-8", "utf8", "charset"):  # templates have "CHARSET"
        return _unify_line_ends(decode_utf8(content, path).removeprefix("\ufeff")).encode()
    try:
        text = _unify_line_ends(content.decode(charset))
    except (LookupError, ValueError) as error:
        reason = message(
            "{path} declares the charset {charset}, which does not fit: {error}",
            path=path,
            charset=charset,
            error=error,
        )
        raise InputError(reason, hint="convert it to UTF-8: msgconv -t UTF-8") from None
    return PO_CHARSET.sub(rb"\1UTF-8", text.encode(), count=1)


def _unify_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_all(path: Path) -> bytes:
    with open_bytes(path) as stream:
        content = stream.read(MAX_CATALOG_BYTES + 1)
    if len(content) > MAX_CATALOG_BYTES:
        raise InputError(
            message(
                "{path} is larger than {limit:,} bytes",
                path=path,
                limit=MAX_CATALOG_BYTES,
            ),
            hint="split it, or convert it to TMX",
        )
    return content


def _reason_to_skip(unit: Any, name: Format) -> str | None:
    """Return why a unit is not a finished translation, None if it is one."""
    if unit.isobsolete():
        return "obsolete"
    if not unit.source or not unit.target:
        return "untranslated"
    if name != "xliff":
        return "fuzzy" if unit.isfuzzy() else None
    # translate-toolkit treats an XLIFF 1 unit as fuzzy until approved, but most tools never set it.
    state = unit.target_dom.get("state") or unit.xmlelement.get("state") or "translated"
    if not unit.istranslatable():
        return "not to be translated"
    is_unfinished = state in ("new", "initial") or state.startswith("needs-")
    return "unfinished" if is_unfinished else None


def _is_reversed(store: Any, config: CorpusConfig, path: Path) -> bool:
    """Return whether the requested source is the target of the file."""
    languages = store.getsourcelanguage(), store.gettargetlanguage()
    is_by_language = config.src_field is None
    requested = config.languages if is_by_language else tuple(map(str, config.fields))
    if requested == (None, None) or (is_by_language and not any(languages)):
        return False
    names = [["source", "msgid"], ["target", "msgstr"]]
    for side, language in zip(names, languages, strict=True):
        side.extend([language] if language else [])
    sides = [[_is_among(name, side) for side in names] for name in requested]
    if sides[0] == sides[1]:
        raise InputError(
            message(
                "{path} does not have both '{src}' and '{tgt}'",
                path=path,
                src=requested[0],
                tgt=requested[1],
            ),
            hint=message(
                "choose two with --src-field and --tgt-field: {names}",
                names=", ".join(names[0] + names[1]),
            ),
        )
    return sides[0][1] or sides[1][0]


def _is_among(name: str | None, names: list[str]) -> bool:
    return name is not None and match_language(name, names) is not None
