"""Tags on a translation: at the aligned words, and well-formed whatever the alignment is."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attendo.documents.inline import read_message
from attendo.documents.markup import MarkedText, Tag, render, split_marked, trim
from attendo.documents.projection import project
from attendo.documents.word_links import WordLinks, words_of
from attendo.translator.span_repair import find_verbatim_spans

WORDS = ["the", "red", "house", "is", "(old)", "and", "big.", "{x}", "Haus", "집이", "a-b", "'c'"]


def parse(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - made here


def links(source: str, text: str, *pairs: tuple[int, int]) -> WordLinks:
    """Align target words with source words."""
    rows: list[dict[int, float]] = [{} for _ in words_of(text)]
    for tgt, src in pairs:
        rows[tgt][src] = 1.0
    return WordLinks(words_of(source), words_of(text), rows)


@pytest.mark.parametrize(
    ("source", "text", "pairs", "wanted"),
    [
        ("the <b>red</b> house", "la maison rouge", [(0, 0), (1, 2), (2, 1)],
         "la maison <b>rouge</b>"),
        ("<i>open <b>the file</b> now</i>!", "jetzt die Datei öffnen!",
         [(0, 3), (1, 1), (2, 2), (3, 0)], "<i>jetzt <b>die Datei</b> öffnen</i>!"),
        ("Read <a>the guide</a>.", "안내서를 읽으세요.", [(0, 2), (1, 0)],
         "<a>안내서를</a> 읽으세요."),
        ("Start <b>Linux</b> now", "지금 Linux를 시작", [(0, 2), (1, 1), (2, 0)],
         "지금 <b>Linux</b>를 시작"),
        ("one <x/>two three", "drei zwei eins", [(0, 2), (1, 1), (2, 0)],
         "drei <x/>zwei eins"),
        ("A note<fn/>, here", "Hier eine Notiz,", [(0, 2), (1, 0), (2, 1)],
         "Hier eine Notiz<fn/>,"),
        ("all <b>of</b> <i>it</i>", "es alles", [(0, 2), (1, 0)], "<i>es</i> <b>alles</b>"),
        ("say <b>no</b>", "", [], "<b></b>"),
        ("Run <code>ls -l</code> often", "Führe ls -L oft aus", [(0, 0), (1, 1), (2, 2), (3, 3)],
         "Führe <code>ls -l</code> oft aus"),
        ("Run <code>make</code> now", "Jetzt ausführen", [(0, 2), (1, 0)],
         "Jetzt <code>make</code> ausführen"),
    ],
)  # fmt: skip
def test_tags_are_where_their_words_went(source, text, pairs, wanted) -> None:
    _, marked, after = read_message(source.replace("<fn/>", "<x/>"))
    found = project(marked, text.removesuffix(after), links(marked.text, text, *pairs))
    assert (render(found) + after).replace(
        "<x/>", "<fn/>" if "<fn/>" in source else "<x/>"
    ) == wanted


@st.composite
def marked_texts(draw) -> MarkedText:
    """Draw a text with nested tags, some of them verbatim or empty."""
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
    text = " ".join(words)
    tags: list[Tag] = []

    def fill(start: int, end: int, parent: int, depth: int) -> None:
        position = start
        for _ in range(draw(st.integers(0, 3))):
            begin = draw(st.integers(position, end))
            stop = draw(st.integers(begin, end))
            name = f"t{len(tags)}"
            if draw(st.booleans()):
                index = len(tags)
                is_verbatim = draw(st.integers(0, 4)) == 0
                tags.append(Tag(begin, stop, f"<{name}>", f"</{name}>", True, is_verbatim, parent))
                if depth < 2:
                    fill(begin, stop, index, depth + 1)
                position = stop
            else:
                tags.append(Tag(begin, begin, f"<{name}/>", None, is_pair=False, parent=parent))
                position = begin

    fill(0, len(text), -1, 0)
    return MarkedText(text, tuple(tags))


def is_in_verbatim(marked: MarkedText, tag: Tag) -> bool:
    while tag.parent >= 0:
        tag = marked.tags[tag.parent]
        if tag.is_verbatim:
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(marked_texts(), st.lists(st.sampled_from(WORDS), max_size=8), st.data())
def test_every_tag_comes_back_once_and_well_formed(marked, words, data) -> None:
    text = " ".join(words)
    num_src, num_tgt = len(words_of(marked.text)), len(words_of(text))
    weights = st.dictionaries(st.integers(0, max(num_src - 1, 0)), st.floats(0.01, 1.0), max_size=3)
    rows = data.draw(st.lists(weights, min_size=num_tgt, max_size=num_tgt))
    known = WordLinks(words_of(marked.text), words_of(text), rows)
    for one in (project(marked, text, known), project(marked, text)):
        made = render(one)
        root = parse(f"<r>{made}</r>")
        found = Counter(element.tag for element in root.iter())
        assert found == Counter(["r", *(tag.open.strip("</>") for tag in marked.tags)])
        nesting = {tag.open: marked.tags[tag.parent].open if tag.parent >= 0 else None
                   for tag in marked.tags}  # fmt: skip
        assert nesting == {
            tag.open: one.tags[tag.parent].open if tag.parent >= 0 else None for tag in one.tags
        }
        inner = {tag.open: one.text[tag.start : tag.end] for tag in one.tags}
        for tag in marked.tags:
            if tag.is_verbatim and not is_in_verbatim(marked, tag):
                assert inner[tag.open].strip() == marked.text[tag.start : tag.end].strip()
        if not any(tag.is_verbatim for tag in marked.tags):
            assert "".join(one.text.split()) == "".join(text.split())


@settings(max_examples=100, deadline=None)
@given(marked_texts(), st.data())
def test_parts_of_a_marked_text_are_well_formed(marked, data) -> None:
    position = data.draw(st.integers(0, len(marked.text)))
    parts = split_marked(marked, [position])
    assert "".join(part.text for part in parts) == marked.text
    for part in (*parts, trim(marked)[1]):
        parse(f"<r>{render(part)}</r>")


def test_texts_with_very_many_tags_are_placed_in_linear_time() -> None:
    tags = tuple(Tag(n, n + 1, "<b>", "</b>") for n in range(0, 20_000, 2))
    found = project(MarkedText("a " * 10_000, tags), "b " * 9_000)
    parse(f"<r>{render(found)}</r>")


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        (
            "<b>Make { -brand-name } your reader?</b> Use { -brand-name } to read.",
            "{ -brand-name } als Programm? Verwenden Sie { -brand-name } zum Lesen.",
            None,
        ),
        ("Visit <a>{ -brand-name } Support</a>", "Hilfe von { -brand-name }", None),
        ("Delete <b>{name} now</b>?", "Jetzt {name} löschen?", None),
        ("Open <b>{ $a }/{ $b }</b> or not", "{ $a }/{ $b } öffnen", "<b>{ $a }/{ $b }</b> öffnen"),
        ("See <b>name</b> of %(name)s.", "Siehe %(name)s.", None),
    ],
)
def test_tags_are_never_put_into_a_placeholder(source, translation, expected) -> None:
    _, marked, _ = read_message(source)
    made = project(marked, translation)
    outer = find_verbatim_spans(translation)
    for tag in made.tags:
        for edge in (tag.start, tag.end):
            assert not any(one.start < edge < one.end for one in outer), render(made)
    if expected is not None:
        assert render(made) == expected
