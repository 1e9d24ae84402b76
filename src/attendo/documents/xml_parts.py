"""XML of documents, by lxml: no entities are expanded, no DTD is loaded, nothing is fetched."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import message

MAX_ERROR_CHARACTERS = 120
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def import_etree() -> Any:
    """Return lxml.etree."""
    try:
        return import_module("lxml.etree")
    except ImportError:
        raise MissingExtraError("lxml", "documents") from None


def parse_xml(content: bytes) -> Any:
    """Return the root of an XML document.

    libxml2's own limits on depth (256 levels) and on the size of texts stay on.

    Raises:
        InputError: it is not well-formed, or declares entities.

    """
    etree = import_etree()
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False,
        huge_tree=False, remove_blank_text=False, strip_cdata=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        reason = message("the XML is not valid: {reason}", reason=str(error)[:MAX_ERROR_CHARACTERS])
        raise InputError(reason, hint="open and save the file again") from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise InputError("the XML declares entities", hint="save the file without them")
    return root


def write_xml(root: Any, original: bytes) -> bytes:
    """Return an XML document with the declaration of the original."""
    etree = import_etree()
    tree = root.getroottree()
    head = original[:200].lstrip(b"\xef\xbb\xbf")
    has_declaration = head.startswith(b"<?xml")
    made: bytes = etree.tostring(
        tree,
        xml_declaration=has_declaration or None,
        encoding=tree.docinfo.encoding or "UTF-8",
        standalone=tree.docinfo.standalone,
    )
    return made


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; "" for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def shallow_copy(element: Any) -> Any:
    """Return an element with its attributes, without what is in it."""
    return element.makeelement(element.tag, element.attrib, element.nsmap)
