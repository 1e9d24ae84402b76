"""Numbers, URLs, e-mail addresses and emoji come through; everything else is as before."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from attendo.core.errors import ConfigError
from attendo.i18n.messages import translate_message
from attendo.text.copy_spans import find_copy_spans
from attendo.text.tokenizer import UNK_ID
from attendo.translator import Translator
from attendo.translator.copying import RemovedSpan, insert_spans, remove_spans
from attendo.translator.notes import Note, join_notes, unknown_words
from attendo.translator.streaming import stream_translation

TEXTS = ["ka to 12345 mi re", "12345", "😀 ka to", "ka http://a.kr/b?c=1 to mi", "a@b.kr 7 😀"]


@pytest.fixture(scope="module")
def translator(toy, tmp_path_factory) -> Translator:
    from attendo.bundle import build_model, save_bundle

    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    folder = tmp_path_factory.mktemp("copying") / "toy"
    tokenizer = toy.prepared.tokenizer
    save_bundle(folder, build_model("transformer", sizes, tokenizer), tokenizer, about={})
    return Translator.load(folder, device="cpu")


@pytest.mark.parametrize(
    ("source", "reduced", "words"),
    [
        ("나는 12345 학생이다.", "나는 학생이다.", [1]),
        ("소녀는 12345를 샀다.", "소녀는 샀다.", [1]),
        ("12345는 왕자다.", "왕자다.", [0]),
        ("3명의 공주", "명의 공주", [0]),
        ("값은 12345.", "값은.", [1]),
        ("I paid $5 for 3 apples.", "I paid for apples.", [2, 3]),
    ],
)
def test_spans_leave_a_source_with_their_particles(source, reduced, words) -> None:
    found = remove_spans(source, find_copy_spans(source))
    assert found.text == reduced
    assert [span.word for span in found.removed] == words


@pytest.mark.parametrize(
    ("text", "span", "num_words", "aligned", "expected"),
    [
        ("I am a student.", RemovedSpan("7", 1, False), 2, [0, 3], "I am a 7 student."),
        ("The girl bought.", RemovedSpan("7", 1, True), 2, [1, 2], "The girl bought 7."),
        ("A prince.", RemovedSpan("7", 0, True), 1, [1], "7 A prince."),
        ("The price is.", RemovedSpan("7", 1, False), 1, [2], "The price is 7."),
        ("One two three four", RemovedSpan("7", 1, False), 2, [], "One two 7 three four"),
        ("prince princess", RemovedSpan("3", 1, False, True), 3, [0, 0, 1], "prince 3 princess"),
        ("", RemovedSpan("7", 0, False), 0, [], "7"),
        ("...", RemovedSpan("7", 1, False), 1, [0], "7..."),
    ],
)
def test_spans_come_back_at_the_aligned_word(text, span, num_words, aligned, expected) -> None:
    found, (start,) = insert_spans(text, [span], num_words, aligned)
    assert found == expected
    assert found[start:].startswith(span.text)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"n_best": 2, "confidence": True}])
def test_every_span_is_in_the_translation(translator, options) -> None:
    for text, made in zip(TEXTS, translator.translate(TEXTS, **options), strict=True):
        for one in (made, *made.alternatives):
            assert all(span.text in one for span in find_copy_spans(text)), (text, one)
        (note,) = made.notes
        assert note.code == "copied_words"
        if made.confidence is not None:
            assert [word.text for word in made.confidence.words] == made.split()


def test_texts_without_spans_are_as_without_copying(translator) -> None:
    texts = ["ka to mi re", "so lu", "", "ka zork to"]
    plain = translator.translate(texts, copy_spans="never")
    assert [one.to_dict() for one in translator.translate(texts)] == [
        one.to_dict() for one in plain
    ]


def test_a_text_of_spans_alone_is_copied(translator) -> None:
    (made,) = translator.translate(["12345, 😀 http://a.kr"])
    assert made == "12345, 😀 http://a.kr"
    assert made.ids == []


def test_never_copies_nothing_and_a_trace_shows_the_model_itself(translator) -> None:
    (plain,) = translator.translate(["ka 12345 to"], copy_spans="never")
    (traced,) = translator.translate(["ka 12345 to"], trace=True)
    assert plain == traced
    assert "12345" not in plain
    assert [note.code for note in plain.notes] == ["unknown_words"]
    with pytest.raises(ConfigError, match="copy_spans"):
        translator.translate(["ka"], copy_spans="some")


def test_known_spans_are_copied_where_they_are_not_reproduced(translator, monkeypatch) -> None:
    monkeypatch.setattr("attendo.translator.copying.has_unknown", lambda *_: False)
    url, number = translator.translate(["ka to http://a.kr", "ka to 12345"])
    assert "http://a.kr" in url
    assert "12345" not in number  # a translation may write it in words
    (always,) = translator.translate(["ka to 12345"], copy_spans="always")
    assert "12345" in always


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_ends_with_the_same(translator, text) -> None:
    *_, last = stream_translation(translator, text)
    assert last == translator.translate([text], beam_size=1)[0]


def test_unknown_words_are_named_once_for_a_text_of_several_sentences(translator) -> None:
    (made,) = translator.translate(["ka zork. to zork! mi"], split="sentences")
    (note,) = made.notes
    assert (note.code, note.words[0]) == ("unknown_words", "zork")
    assert len(set(note.words)) == len(note.words)
    assert translate_message(note, "ko") != note
    assert made.to_dict()["note_details"][0]["words"] == list(note.words)


def test_only_notes_with_a_code_are_joined() -> None:
    notes = [Note("copied_words", ["1"]), "cut", "cut", Note("copied_words", ["2", "1"])]
    assert [str(note) for note in join_notes(notes)] == [
        "copied from the source: 1, 2", "cut", "cut",
    ]  # fmt: skip


def test_unknown_words_lower_the_confidence(translator) -> None:
    known, copied, unknown = (
        one.confidence
        for one in translator.translate(["ka to mi", "ka to mi 7", "zork yark ka"], confidence=True)
    )
    assert known.unfamiliar is None
    assert copied.unfamiliar.num_unseen == 1
    assert copied.band in ("check", "low")
    assert unknown.band == "low"


def test_a_url_with_more_tokens_than_any_training_text_is_not_cut(translator, monkeypatch) -> None:
    one_per_letter = lambda texts: [[5] * len(text) for text in texts]  # noqa: E731
    monkeypatch.setattr(translator.tokenizer, "encode_src", one_per_letter)
    monkeypatch.setattr(translator, "max_src_tokens", 12)
    url = "http://a.kr/a/long/address"
    text = f"ka to {url}, mi"
    cut, kept = (translator.split_text(text, "auto", keep_spans=keep) for keep in (False, True))
    assert not any(url in segment for segment in cut.segments)
    assert any(url in segment for segment in kept.segments)


def test_notes_about_the_search_keep_their_code_and_number() -> None:
    notes = [Note("cut", count=8), Note("cut", count=8), Note("missing_phrase", ["a"])]
    assert join_notes(notes) == notes
    loaded = copy.copy(notes[0])
    assert loaded.to_dict() == {
        "code": "cut",
        "text": "cut after 8 tokens",
        "words": [],
        "count": 8,
    }


def test_of_a_known_word_only_the_unknown_mark_is_named() -> None:
    tokenizer = SimpleNamespace(src_surfaces=lambda _: [" ka", "!", " zo", "rk", "."])
    assert unknown_words(tokenizer, "ka! zork.", [5, UNK_ID, 6, UNK_ID, 7]) == ["!", "zork"]
