"""Placeholders of message catalogs come back, whatever the model makes of them."""

from __future__ import annotations

import pytest

from attendo.text.copy_spans import find_copy_spans
from attendo.translator.copying import insert_spans, remove_spans, widen_spans


@pytest.mark.parametrize(
    ("source", "reduced", "removed"),
    [
        ("Cannot open '%s': %d bytes", "Cannot open: bytes", ["'%s'", "%d"]),
        ("Copied %d/%d files", "Copied files", ["%d/%d"]),
        ("Hello {name}!", "Hello!", ["{name}"]),
        ("{a} and {b}", "and", ["{a}", "{b}"]),
        ("Use $HOME, $DESKTOP and $MUSIC.", "Use and.", ["$HOME, $DESKTOP", "$MUSIC"]),
        ("Loaded by { -brand-name }: %1$S", "Loaded by:", ["{ -brand-name }", "%1$S"]),
    ],
)
def test_placeholders_are_removed_with_the_quotes_around_them(source, reduced, removed) -> None:
    found = remove_spans(source, widen_spans(source, find_copy_spans(source)))
    assert found.text == reduced
    assert [one.text for one in found.removed] == removed
    for one in found.removed:
        assert source[one.start : one.end] == one.text


def test_removed_placeholders_are_inserted_at_aligned_words() -> None:
    source = "The file '%s' was deleted"
    found = remove_spans(source, widen_spans(source, find_copy_spans(source)))
    text, starts = insert_spans(
        "Die Datei wurde gelöscht", found.removed, len(found.text.split()), [0, 1, 2, 3]
    )
    assert text == "Die Datei '%s' wurde gelöscht"
    assert text[starts[0] :].startswith("'%s'")
