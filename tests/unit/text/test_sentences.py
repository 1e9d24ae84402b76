from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import InputError
from attendo.text.sentences import join_translations, split_into_segments, split_sentences


def at_most(length):
    return lambda text: len(text) <= length


def everything(_):
    return True


def glue(document):
    """Put pieces and gaps together again, by the definition."""
    parts = [document.separators[0]]
    for piece, gap in zip(document.segments, document.separators[1:], strict=True):
        parts += [piece, gap]
    return "".join(parts)


# --- sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rains.", "Do we stay?", "Yes!", "What?!", "Well…", "Good."],
        ["나는 학생이다.", "너는 학교에 가요.", "그렇죠?", "네.", "정말요?!", "좋아요!"],
        ["Es regnet.", "Bleiben wir?", "Ja!"],
        ["Mr. Smith met Dr. Kim and Prof. Lee in St. Louis.", "They left."],
        ["Tom vs. Dr. No, e.g. on TV, i.e. at home, etc. Really.", "Yes."],
        ["J. R. R. Tolkien wrote it.", "The U.S. Army read it."],
        ["Wir kaufen z. B. Äpfel, Birnen usw. Danach bzw. Davor ca. Fünf.", "Gut."],
        ["Nr. 7 lebt, d. h. No. 5 nicht.", "Die Hauptstr. 5 ist nah."],
        ["No.", "I stay."],
        ["Pi is 3.14, and 8.30 Uhr ist früh.", "See example.com.", "Next."],
        ["Es war der 3. Oktober.", "Am 2. schlief er.", "Das 19. Jahrhundert war lang."],
        ["It began in 1990.", "Then it ended in 1991.", "Later."],
        ["1. First things first.", "Then the rest."],
        ["6.1.5. Die Syntax."],
        ["2024. 3. 5. 서울에서 만났다.", "끝이다."],
        ["Wait... what?", "Yes...", "No… not so.", "So."],
        ['"Really?" she asked.', '"Yes!" he said.', "(He left.)", "All right."],
        ["„Kommst du?“", "»Nein.«", "“Why?”", "‘No.’", "„Gut“.", "Ende."],
        ["“가자.”", "그가 말했다.", '"그래."라고 답했다.'],
        ["줄임표 '...' 와 같다.", "끝."],
        ["He paid 5 Mio. Euro (at 5 p.m.).", "It rained."],
        ["Run it. ::"],
        ["... Yes. %"],
    ],
)
def test_sentences_of_a_line(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["你好。", "我是学生！", "是吗？", "他走了。", "“你好！”", "她说（再见。）", "好。"],
        ["これは本です。", "「はい。」", "それは３．１４です｡", "終わり"],
    ],
)
def test_wide_marks_need_no_space(sentences):
    assert split_sentences("".join(sentences)) == sentences


def test_a_long_line_of_marks_takes_no_long_time():
    """Grows with the length, not with its square: else this test would not end."""
    for line in ("." * 200_000 + "x", ")" * 200_000 + "x", "Mr. " * 50_000, "… " * 100_000):
        assert glue(split_into_segments(line, fits=at_most(500), by_sentence=True)) == line


# --- documents


texts = st.text(
    st.sampled_from(
        'ab AB.,!?…;:—-)("“”1 \n\r\t\u3000가나다 。，」e\u0301\u200d👩\u1112\u1161\u11ab'
    )
)


@given(texts | st.text(), st.integers(1, 12), st.booleans())
def test_pieces_and_gaps_give_the_text_back(text, length, by_sentence):
    document = split_into_segments(text, fits=at_most(length), by_sentence=by_sentence)
    assert glue(document) == text
    assert all(not gap.strip() for gap in document.separators)
    assert all(
        piece == piece.strip() and piece and "\n" not in piece for piece in document.segments
    )
    assert all(len(piece) <= length for piece in document.segments)


@given(texts, st.integers(1, 30), st.booleans())
def test_line_breaks_and_margins_stay(text, length, by_sentence):
    document = split_into_segments(text, fits=at_most(length), by_sentence=by_sentence)
    lines = join_translations(document, document.segments).split("\n")
    assert len(lines) == len(text.split("\n"))
    for made, line in zip(lines, text.split("\n"), strict=True):
        assert made.split() == line.split()
        assert made[: len(made) - len(made.lstrip())] == line[: len(line) - len(line.lstrip())]
        assert made[len(made.rstrip()) :] == line[len(line.rstrip()) :]


@given(st.lists(st.text("abcdef가나다", min_size=1, max_size=30), min_size=1), st.integers(1, 40))
def test_words_without_marks_are_packed_as_textwrap_does(words, length):
    length = max(length, *map(len, words), 1)  # textwrap fills lines with parts of long words
    document = split_into_segments(" ".join(words), fits=at_most(length), by_sentence=False)
    assert list(document.segments) == textwrap.wrap(" ".join(words), length)


def test_a_line_that_fits_is_one_piece_unless_sentences_are_asked_for():
    text = "하나이다. 둘이다.\nEins. Zwei."
    whole = split_into_segments(text, fits=everything, by_sentence=False)
    assert whole.segments == ("하나이다. 둘이다.", "Eins. Zwei.")
    cut = split_into_segments(text, fits=everything, by_sentence=True)
    assert cut.segments == ("하나이다.", "둘이다.", "Eins.", "Zwei.")


def test_a_long_line_is_cut_at_sentences_first_and_they_are_joined_again():
    text = "One is here. Two is, too. Three is long, as long as it can be. Four."
    pieces = split_into_segments(text, fits=at_most(38), by_sentence=False).segments
    assert pieces == ("One is here. Two is, too.", "Three is long, as long as it can be.", "Four.")


@pytest.mark.parametrize(
    ("text", "length", "pieces"),
    [
        (
            "Der Hund, der lange bellte, lief weg; die Katze (sie war müde) schlief – ganz fest.",
            30,
            (
                "Der Hund, der lange bellte,",
                "lief weg;",
                "die Katze (sie war müde)",
                "schlief – ganz fest.",
            ),
        ),
        (
            "비가 왔고, 우리는 집에 있었다: 모두 함께.",
            12,
            ("비가 왔고,", "우리는 집에 있었다:", "모두 함께."),
        ),
        ("3,14 and 10:30 stay whole, yes", 26, ("3,14 and 10:30 stay whole,", "yes")),
        ("我们走了，因为下雨（很大）。", 9, ("我们走了，", "因为下雨（很大）。")),
        ("so—and so—it went", 11, ("so—and so—", "it went")),
        ("one two three four", 9, ("one two", "three", "four")),
        ("가나다라마바사아자차", 4, ("가나다라", "마바사아", "자차")),
        ("Supercalifragilistic, he", 10, ("Supercalif", "ragilistic", ", he")),
        ("e\u0301e\u0301e\u0301", 3, ("e\u0301", "e\u0301", "e\u0301")),
        ("👩\u200d🔬👩\u200d🔬", 4, ("👩\u200d🔬", "👩\u200d🔬")),
        ("\u1112\u1161\u11ab\u1112\u1161\u11ab", 4, ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab")),
        ("e\u0301\u0301\u0301", 2, ("e\u0301", "\u0301\u0301")),  # too long for one character
    ],
)
def test_what_is_too_long_is_cut_at_the_best_position(text, length, pieces):
    assert split_into_segments(text, fits=at_most(length), by_sentence=True).segments == pieces


def test_a_character_that_never_fits_is_given_nevertheless():
    document = split_into_segments("ab c", fits=lambda _: False, by_sentence=False)
    assert document.segments == ("a", "b", "c")


def test_fits_is_asked_seldom():
    asked = []
    text = "wort " * 20_000
    document = split_into_segments(
        text, fits=lambda part: asked.append(1) or len(part) <= 500, by_sentence=False
    )
    assert len(document.segments) == 200
    assert len(asked) < 200 * 16


def test_join_keeps_the_form_of_the_text():
    text = "  제목\r\n\r\n하나. 둘.   셋.\t\n\n끝。끝！\n"
    document = split_into_segments(text, fits=everything, by_sentence=True)
    assert document.segments == ("제목", "하나.", "둘.", "셋.", "끝。", "끝！")
    made = join_translations(document, ["Title", "One.", "Two.", "Three.", "End.", "End!"])
    assert made == "  Title\r\n\r\nOne. Two. Three.\t\n\nEnd.End!\n"


def test_join_puts_no_space_around_an_empty_translation():
    document = split_into_segments("One. Two. Six.\nOne. Two.", fits=everything, by_sentence=True)
    assert join_translations(document, ["x", "", "y", "", "z"]) == "x y\nz"
    assert join_translations(document, ["", "x", "", "y", ""]) == "x\ny"


@pytest.mark.parametrize("text", ["", " ", "\n", " \r\n\t\n"])
def test_a_blank_text_has_no_pieces_and_stays(text):
    document = split_into_segments(text, fits=lambda _: False, by_sentence=True)
    assert document.segments == ()
    assert join_translations(document, []) == text


def test_join_wants_one_translation_for_each_piece():
    document = split_into_segments("One. Two.", fits=everything, by_sentence=True)
    with pytest.raises(InputError, match="1 translations for 2 segments"):
        join_translations(document, ["a"])
