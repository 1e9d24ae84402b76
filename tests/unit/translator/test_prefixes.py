from __future__ import annotations

import pytest

from attendo.text.sentences import split_into_segments
from attendo.translator.prefixes import PrefixedDocument, distribute_prefix, translate_with_prefix
from attendo.translator.streaming import stream_translation

TEXT = "하나. 둘. 셋."


def share(text: str, prefix: str) -> tuple[list[str], int]:
    document = split_into_segments(text, fits=lambda _: True, by_sentence=True)
    return distribute_prefix(document, prefix)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", (["", "", ""], 0)),
        ("I am", (["I am", "", ""], 0)),
        ("I am. You", (["I am.", "You", ""], 1)),
        ("I am.", (["I am.", "", ""], 1)),
        ("I am. You are. He is. We", (["I am.", "You are.", "He is. We"], 2)),
        ("I am. You are. He is.", (["I am.", "You are.", "He is."], 2)),
        ("I saw Mr.", (["I saw Mr.", "", ""], 0)),
        ("나는 간다. 너는", (["나는 간다.", "너는", ""], 1)),
        ("I\nam", (["I am", "", ""], 0)),  # a line that the text does not have
    ],
)
def test_each_sentence_has_its_piece(prefix, expected):
    assert share(TEXT, prefix) == expected


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("One", (["One", "", ""], 0)),
        ("One\n", (["One", "", ""], 0)),
        ("One\n\nTwo", (["One", "Two", ""], 1)),
        ("One\n\nTwo. Three", (["One", "Two.", "Three"], 2)),
        ("One. More\n\nTwo", (["One. More", "Two", ""], 1)),
        ("\n\nTwo", (["", "Two", ""], 1)),
    ],
)
def test_each_line_has_its_line(prefix, expected):
    assert share("하나\n\n둘. 셋.\n", prefix) == expected


def test_a_text_of_nothing_has_nothing_to_share():
    assert share(" \n ", "One") == ([], 0)


def test_the_pieces_are_put_together_as_the_translator_does(uppercaser):
    text = "ka to\n\n  mi re\n"
    started = PrefixedDocument.from_text(uppercaser, text, "KA TO\n\nMI")
    assert (started.prefixes, started.active_index) == (["KA TO", "MI"], 1)
    made = uppercaser.translate(started.document.segments, confidence=True)
    (expected,) = uppercaser.translate([text], confidence=True)
    joined = started.merge(made, confidence=True)
    assert joined == expected
    assert joined.to_dict() == expected.to_dict()


@pytest.mark.parametrize("text", ["", "ka", "ka to\nmi re", "ka to. mi"])
def test_without_a_prefix_it_is_the_translation(uppercaser, text):
    (expected,) = uppercaser.translate([text], confidence=True, n_best=2)
    made = translate_with_prefix(uppercaser, text, "", confidence=True, n_best=2)
    assert made == expected
    assert made.to_dict() == expected.to_dict()


def test_a_prefix_does_not_change_what_follows(uppercaser):
    made = translate_with_prefix(uppercaser, "ka to\nmi re\nso", "LU LU\nLU", required=["TO"])
    first, second, third = made.split("\n")
    assert first.startswith("LU LU")
    assert "TO" in first.split()
    assert (second, third) == ("LU RE", "SO")


def test_a_stream_continues_in_the_line_that_was_reached(uppercaser):
    *_, made = stream_translation(uppercaser, "ka to\nmi re", prefix="KA TO\nLU")
    assert made == "KA TO\nLU RE"
