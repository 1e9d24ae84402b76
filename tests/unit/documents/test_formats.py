"""Every format comes back whole: unchanged, translated, and translated there and back."""

from __future__ import annotations

import io
import json
import random
import zipfile

import polib
import pytest
import yaml
from lxml import etree
from support.document_samples import EPUB_PAGE, SAMPLES, make_zip

from attendo.core.errors import InputError
from attendo.documents import DocumentPlan, ReadOptions, list_suffixes, read_document
from attendo.documents.markup import MarkedText

TRANSLATED = {
    "a.txt": ["One line", "another line", "last"],
    "a.html": ["A page", "Click here or run ls.", "Two lines"],
    "a.md": ["The title", "A paragraph with a link, code and bold text.", "An item &c that goes on",
             "a head", "b", "one cell", "two *", "Some HTML"],
    "a.srt": ["We were on the way to the old house.", "Hello.", "Good evening.",
              "A cue of two lines."],
    "a.vtt": ["Never & ever", "Really?"],
    "a.po": ["Cannot open %s", "%d file", "%d files", "Two\nlines"],
    "a.json": ['The "page" title', "one word", "Click here, {name}!"],
    "a.yaml": ["The page title", "It's here", 'a "word" é', "Line one\nline two", "Some long text",
               "first word"],
    "a.xlf": ["Open the file now"],
    "b.xlf": ["Save all files"],
    "a.docx": ["The title", "Click here to open the file.", "Name:", "The value", "A cell"],
    "a.pptx": ["Great results this year", "and more"],
    "a.odt": ["The title", "Some bold words.", "A footnote", "One", "two a link"],
    "a.epub": ["A book", "It was a dark night & it rained.", "Chapter one"],
}  # fmt: skip


def change(document, function) -> list[MarkedText]:
    return [MarkedText(function(one.text), one.tags) for one in document.segments]


def parts_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def canonical(content: bytes) -> bytes:
    """Return XML in its canonical form, with adjacent runs of one format joined."""
    return etree.tostring(etree.fromstring(content), method="c14n")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_texts_for_people_are_translated_and_nothing_else(name) -> None:
    document = read_document(SAMPLES[name], name)
    assert [one.text for one in document.segments] == TRANSLATED[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_an_identical_translation_is_the_same_file(name) -> None:
    document = read_document(SAMPLES[name], name)
    assert document.write(document.segments) == SAMPLES[name]  # nothing is translated
    document = read_document(SAMPLES[name], name)
    made = document.write([MarkedText(*one) for one in document.segments])
    if name.endswith((".po", ".xlf")):  # these keep the source: "OK" may be the translation of "OK"
        assert read_document(made, name).segments == []
        assert made.count(document.segments[0].text[:5].encode()) == 2
    else:
        assert made == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_translated_file_has_the_translations_where_the_texts_were(name) -> None:
    document = read_document(SAMPLES[name], name, ReadOptions(fuzzy=False))
    made = document.write(change(document, str.swapcase))
    if name.endswith((".po", ".xlf")):  # these have both languages
        assert read_document(made, name).segments == []
        return
    again = read_document(made, name)
    assert [one.text for one in again.segments] == [
        one.text.swapcase() for one in document.segments
    ]
    assert [len(one.tags) for one in again.segments] == [len(one.tags) for one in document.segments]


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.odt", "a.epub"])
def test_there_and_back_is_the_same_structure(name) -> None:
    document = read_document(SAMPLES[name], name)
    there = document.write(change(document, str.swapcase))
    again = read_document(there, name)
    back = parts_of(again.write(change(again, str.swapcase)))
    original = parts_of(SAMPLES[name])
    assert list(back) == list(original)
    for part, content in original.items():
        if part.endswith(("document.xml", "slide1.xml", "content.xml", ".xhtml")):
            assert canonical(back[part]) == canonical(content)
        else:
            assert back[part] == content


def test_catalogs_are_read_by_other_programs() -> None:
    document = read_document(SAMPLES["a.po"], "a.po")
    made = document.write(change(document, str.swapcase))
    catalog = polib.pofile(made.decode())
    entry = catalog.find("Cannot open %s")
    assert (entry.msgstr, "fuzzy" in entry.flags, "c-format" in entry.flags) == (
        "cANNOT OPEN %S", True, True,
    )  # fmt: skip
    assert catalog.find("%d file").msgstr_plural == {0: "%D FILE", 1: "%D FILES"}
    assert catalog.find("Two\nlines\n").msgstr == "tWO\nLINES\n"
    assert catalog.find("Open", msgctxt="menu").msgstr == "Öffnen"
    assert [one.msgid for one in catalog.obsolete_entries()] == ["Old"]
    assert "1 messages were translated before" in document.notes[0]


def test_arguments_of_c_messages_are_numbered_when_their_order_changes() -> None:
    for flag, wanted in (("#, c-format\n", "%2$d von %1$s"), ("", "%s von %d")):
        source = f'msgid ""\nmsgstr ""\n\n{flag}msgid "%s has %d"\nmsgstr ""\n'
        document = read_document(source.encode(), "a.po")
        made = document.write([MarkedText("%d von %s")]).decode()
        assert polib.pofile(made)[0].msgstr == wanted


def test_strings_of_data_keep_their_keys_and_types() -> None:
    for name, load in (("a.json", json.loads), ("a.yaml", yaml.safe_load)):
        before = load(SAMPLES[name].decode())
        document = read_document(SAMPLES[name], name)
        after = load(document.write(change(document, str.swapcase)).decode())
        assert str(after).swapcase().casefold() == str(before).casefold()
        assert str(after) != str(before)


@pytest.mark.parametrize(
    ("value", "is_translated"),
    [("Save", True), ("read-only", True), ("Wi-Fi", True), ("Sign in.", True), ("and so on", True),
     ("user_name", False), ("image/png", False), ("en-US", False), ("camelCase", False),
     ("my-css-class", False), ("README.md", False), ("MAX_SIZE", False), ("#fff", False),
     ("https://a.kr", False), ("a@b.kr", False), ("12", False), ("{name}", False), ("./run", False),
     ("{n, plural, one {# file} other {# files}}", False)],
)  # fmt: skip
def test_values_for_programs_are_kept(value, is_translated) -> None:
    document = read_document(json.dumps({"key": value}).encode(), "a.json")
    assert bool(document.segments) == is_translated


@pytest.mark.parametrize("text", ["yes", "- x", "a: b", "'", '"', "#", "1", "null", "ends ", "&x"])
def test_a_yaml_value_stays_a_string(text) -> None:
    document = read_document(b"a: some words # note\nb: [in a list, 2]\n", "a.yaml")
    made = document.write([MarkedText(text), MarkedText(text)])
    assert yaml.safe_load(made) == {"a": text, "b": [text, 2]}


def test_subtitles_keep_their_times_and_distribute_a_sentence() -> None:
    document = read_document(SAMPLES["a.srt"], "a.srt")
    translated = list(document.segments)
    translated[0] = MarkedText("Wir waren auf dem Weg zu dem alten Haus.", ())
    translated[3] = MarkedText("Ein Untertitel mit einem Text, der auf zwei Zeilen passt.", ())
    made = document.write(translated).decode()
    assert made.splitlines()[:7] == [
        "1", "00:00:01,000 --> 00:00:02,500", "Wir waren auf dem Weg", "", "2",
        "00:00:02,600 --> 00:00:04,000", "zu dem alten Haus.",
    ]  # fmt: skip
    assert "{\\an8}Ein Untertitel mit einem Text,\nder auf zwei Zeilen passt.\n" in made


def test_a_paragraph_of_word_keeps_formats_links_and_bookmarks() -> None:
    document = read_document(SAMPLES["a.docx"], "a.docx")
    plan = DocumentPlan(document)
    made = plan.complete([text.swapcase() for text in plan.texts]).content
    body = parts_of(made)["word/document.xml"].decode()
    assert (
        '<w:hyperlink r:id="rId4"><w:r><w:rPr><w:b/></w:rPr><w:t>HERE</w:t></w:r></w:hyperlink>'
        in body
    )
    assert "<w:r><w:rPr><w:i/></w:rPr><w:t>FILE</w:t></w:r>" in body
    assert body.count("<w:bookmarkStart") == body.count("<w:bookmarkEnd") == 1
    assert body.startswith("<?xml version='1.0' encoding='UTF-8' standalone='yes'?>")
    assert "pictures" in document.notes[0]


def test_a_book_names_its_new_language() -> None:
    document = read_document(SAMPLES["a.epub"], "a.epub", ReadOptions(target="ko"))
    parts = parts_of(document.write(document.segments))
    assert b"<dc:language>ko</dc:language>" in parts["OEBPS/book.opf"]
    assert b'xml:lang="ko"' in parts["OEBPS/a.xhtml"]
    etree.fromstring(parts["OEBPS/a.xhtml"])
    assert next(iter(parts)) == "mimetype"


def test_the_title_of_a_book_is_translated() -> None:
    package = (
        "<package><metadata><dc:title id='t'>A &amp; B words</dc:title>"
        "<dc:identifier>a word</dc:identifier><dc:language>en</dc:language></metadata></package>"
    )
    page = EPUB_PAGE.replace("<em>dark</em>", '<em title="very dark">dark</em>')
    content = make_zip(
        {
            "mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>",
            "book.opf": package, "a.xhtml": page, "b.xhtml": page,
        }
    )  # fmt: skip
    document = read_document(content, "a.epub", ReadOptions(target="ko"))
    made = parts_of(document.write(change(document, str.upper)))["book.opf"].decode()
    assert "<dc:title id='t'>A &amp; B WORDS</dc:title>" in made
    assert "<dc:identifier>a word</dc:identifier>" in made
    assert len([one for one in document.notes if "attributes" in one]) == 1


def test_xliff_targets_are_added_and_marked_for_review() -> None:
    document = read_document(SAMPLES["a.xlf"], "a.xlf", ReadOptions(target="de"))
    made = document.write(change(document, str.swapcase)).decode()
    assert '<target state="needs-review-translation">oPEN THE <g id="1">FILE</g> <x' in made
    assert made.count("<target") == 2
    assert 'target-language="de"' in made


def test_every_suffix_has_a_sample() -> None:
    covered = {f".{name.rpartition('.')[2]}" for name in SAMPLES}
    assert covered <= set(list_suffixes())
    assert set(list_suffixes()) - covered == {
        ".htm", ".xhtml", ".markdown", ".pot", ".yml", ".xliff",
    }  # fmt: skip


BOMB = make_zip({"[Content_Types].xml": "<Types/>", "word/document.xml": b" " * 3_000_000})
ENTITIES = (
    b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><xliff version="1.2"><file><body>'
    b'<trans-unit id="1"><source>&b; words</source></trans-unit></body></file></xliff>'
)
OUTSIDE = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><xliff>&a;</xliff>'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", b"no zip"),
        ("a.docx", make_zip({"a.txt": "x"})),
        ("a.docx", BOMB),
        ("a.docx", make_zip({"x": "", "word/document.xml": "<broken"})),
        ("a.docx", SAMPLES["a.docx"][:300]),
        ("a.odt", SAMPLES["a.docx"]),
        ("a.epub", SAMPLES["a.docx"]),
        ("a.xlf", ENTITIES),
        ("a.xlf", OUTSIDE),
        ("a.xlf", b"<x>" * 10_000),
        ("a.xlf", b"<html/>"),
        ("a.json", b"{"),
        ("a.json", b"[" * 100_000),
        ("a.yaml", b"a: [" * 5_000),
        ("a.yaml", b"a: b: c"),
        ("a.po", b"no catalog"),
        ("a.srt", b"no subtitles"),
        ("a.exe", b""),
    ],
)
def test_files_that_are_broken_or_made_to_hurt_are_rejected(name, content) -> None:
    with pytest.raises(InputError):
        read_document(content, name, ReadOptions(max_unpacked_bytes=1_000_000))


def test_yaml_aliases_are_not_expanded() -> None:
    lines = ["a: &a [one word, two]"]
    lines += [f"k{n}: &k{n} [*{'a' if not n else f'k{n - 1}'}, *{'a' if not n else f'k{n - 1}'}]"
              for n in range(60)]  # fmt: skip
    document = read_document("\n".join(lines).encode(), "a.yaml")
    assert [one.text for one in document.segments] == ["one word", "two"]


@pytest.mark.parametrize("name", [*SAMPLES])
def test_damaged_files_raise_no_other_errors(name) -> None:
    generator = random.Random(name)  # noqa: S311 - not for secrets
    for _ in range(60):
        content = bytearray(SAMPLES[name])
        for _ in range(generator.randint(1, 12)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        try:
            document = read_document(bytes(content), name)
            document.write(change(document, str.swapcase))
        except InputError:
            pass
