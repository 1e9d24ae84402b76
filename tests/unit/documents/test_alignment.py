"""Links between the words, or the tokens, of a text and of its translation."""

from __future__ import annotations

import re

import pytest

from attendo.documents import alignment, read_document, translate_document
from attendo.documents.alignment import link_words, locate_tokens


def texts_of(text: str, spans) -> list[str]:
    return [text[start:end] for start, end in spans]


def test_words_are_linked_by_the_attention_of_every_sentence(uppercaser) -> None:
    (translation,) = uppercaser.translate(["ka to mi"])
    links = link_words(uppercaser, translation)
    assert texts_of("ka to mi", links.src) == ["ka", "to", "mi"]
    assert texts_of(translation, links.tgt) == ["KA", "TO", "MI"]
    assert [max(row, key=row.get) for row in links.rows] == [0, 1, 2]


def test_scripts_without_spaces_are_linked_by_tokens(uppercaser, monkeypatch) -> None:
    (translation,) = uppercaser.translate(["ka to mi"])
    by_words = link_words(uppercaser, translation)
    monkeypatch.setattr(alignment, "UNSPACED_SCRIPTS", re.compile("."))
    links = link_words(uppercaser, translation)
    assert "".join(texts_of("ka to mi", links.src)) == "katomi"
    assert "".join(texts_of(translation, links.tgt)) == "KATOMI"
    assert len(links.rows) == len(links.tgt) >= len(by_words.tgt)
    for row, target in zip(links.rows, texts_of(translation, links.tgt), strict=True):
        source = texts_of("ka to mi", links.src)[max(row, key=row.get)]
        assert source.upper() == target


@pytest.mark.parametrize(
    ("surfaces", "text"), [(["a", "x"], "a b"), (["a", "b"], "b a"), (["a", "c"], "a b c")]
)
def test_tokens_that_are_not_in_the_text_are_not_linked(surfaces, text) -> None:
    assert locate_tokens(surfaces, text, 0) is None


def test_a_document_is_translated_with_its_tags(uppercaser) -> None:
    document = read_document(b"<p>ka <b>to</b> mi</p><p>ka</p>", "a.html")
    seen: list[tuple[int, int]] = []
    made = translate_document(uppercaser, document, progress=lambda *both: seen.append(both))
    assert made.content == b"<p>KA <b>TO</b> MI</p><p>KA</p>"
    assert (seen, made.notes) == ([(1, 2), (2, 2)], [])
