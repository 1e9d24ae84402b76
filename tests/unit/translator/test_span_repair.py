"""A translation has the placeholders of its source, whatever the model added or changed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from attendo.decoding.hypothesis import Hypothesis, SearchResult
from attendo.decoding.options import DecodingOptions
from attendo.i18n.messages import translate_message
from attendo.text.copy_spans import find_copy_spans
from attendo.translator.backends.base import TranslationItem
from attendo.translator.confidence import Confidence, WordConfidence
from attendo.translator.copying import (
    SpanCopier,
    reduce_source,
    remove_spans,
    repair_confidence,
    widen_spans,
)
from attendo.translator.span_repair import has_same_spans, repair_spans
from attendo.translator.translation import CopiedSpan, to_translation

SOURCE = "Cannot open '%s': %d bytes"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        # The copy stays whose neighbors are those of the source.
        ("Failed for \"{}\": {}.", "Für „{}“ von „{}“ fehlgeschlagen: {}.",
         "Für „{}“ von fehlgeschlagen: {}."),
        ("%d %s %d %s until (%d%%)", "%d %s %d %d %s bis (%d%%)", "%d %s %d %s bis (%d%%)"),
        # Quotes and joining signs go with what is removed.
        ("Could not find '%s'", "'%s' nicht aus '%s' gefunden", "'%s' nicht aus gefunden"),
        ("point (%g,%g) %s", "Punkt (%g,%g,%g) %s", "Punkt (%g,%g) %s"),
        ("version: %d.%d", "Version %d.%d.%d", "Version %d.%d"),
        ("Delete {name}?", "{name} löschen ({name})?", "{name} löschen?"),
        # What was changed is replaced, what is missing is inserted.
        ("Open {file}", "{Datei} öffnen", "{file} öffnen"),
        ("{ -brand-name } is up to date", "{ -brand-brand-name } ist aktuell",
         "{ -brand-name } ist aktuell"),
        ("Read %zd bytes", "Bytes lesen", "Bytes %zd lesen"),
        ("50 of 100", "50 von 100 %s", "50 von 100"),
    ],
)  # fmt: skip
def test_repaired_texts(source, text, expected) -> None:
    repaired = repair_spans(source, text)
    assert repaired.text == expected
    assert has_same_spans(source, repaired.text)


def test_a_text_with_the_right_spans_stays() -> None:
    assert not repair_spans("50%% of %s", "50 %% von %s").is_changed
    assert not repair_spans("50 %% of %s", "50%% von %s").is_changed
    assert not repair_spans("%s of %d", "%d von %s").is_changed
    assert repair_spans("%s", "").text == "%s"


def test_many_copies_take_no_long_time() -> None:
    repaired = repair_spans("%s " * 3000, "%s " * 5000)
    assert repaired.text.count("%s") == 3000


def test_spaces_in_other_placeholders_stay_where_spans_are_removed() -> None:
    source = "{ $name } would change { $engine } ."
    spans = widen_spans(source, find_copy_spans(source))
    assert remove_spans(source, spans[1:]).text == "{ $name } would change."
    copied = CopiedSpan(spans[1].start, spans[1].end, 0, 0)
    assert reduce_source(source, [copied]) == "{ $name } would change."


class WordTokenizer:
    """A tokenizer whose tokens are words."""

    tgt_kind = "bpe"
    words: list[str]

    def __init__(self) -> None:
        self.words = ["<pad>", "<unk>", "<s>", "</s>"]

    def encode_src(self, texts):
        for word in " ".join(texts).split():
            if word not in self.words:
                self.words.append(word)
        return [[*map(self.words.index, text.split()), 3] for text in texts]

    encode_tgt = encode_src

    def decode_tgt(self, rows):
        return [" ".join(self.words[index] for index in row) for row in rows]


class ListBackend:
    """Finds the hypotheses that it is given, and keeps what was searched."""

    has_native = False

    def __init__(self, tokenizer, texts) -> None:
        self.tokenizer, self.texts, self.searched = tokenizer, texts, []

    def search(self, items, options):
        self.searched.append(([item.reduced or item.source for item in items], options.n_best))
        ids = [self.tokenizer.encode_tgt([text])[0][:-1] for text in self.texts]
        hypotheses = [Hypothesis(one, -1.0, -1.0, [-0.1] * (len(one) + 1), True) for one in ids]
        return [SearchResult(hypotheses[: options.n_best]) for _ in items]


def translate(texts, *, mode="auto", source=SOURCE, **options):
    """Translate with a model that has these hypotheses; return also what was searched."""
    tokenizer = WordTokenizer()
    backend = ListBackend(tokenizer, texts)
    translator = SimpleNamespace(tokenizer=tokenizer, backend=backend)
    options = DecodingOptions(beam_size=4, **options)
    copier = SpanCopier(translator, mode)
    items = [copier.prepare(TranslationItem(source, tokenizer.encode_src([source])[0]))]
    results = copier.search_again(items, backend.search(items, options), options)
    return to_translation(translator, items[0], results[0], options, None), backend.searched


def test_a_right_translation_is_searched_once() -> None:
    made, searched = translate(["'%s' kann nicht geöffnet werden : %d Bytes"])
    assert made == "'%s' kann nicht geöffnet werden : %d Bytes"
    assert len(searched) == 1


def test_the_best_hypothesis_with_the_placeholders_is_used_instead_of_the_first() -> None:
    texts = ["'%s' '%s' : %d", "nicht", "'%s' nicht geöffnet : %d", "'%s' offen : %d"]
    made, searched = translate(texts)
    assert made == "'%s' nicht geöffnet : %d"
    assert searched == [([SOURCE], 1), ([SOURCE], 4)]
    assert not made.alternatives


def test_without_such_a_hypothesis_what_is_missing_is_copied_and_what_is_too_much_removed() -> None:
    made, searched = translate(["'%s' '%s' nicht geöffnet"])
    assert searched[-1] == (["Cannot open '%s': bytes"], 1)
    assert has_same_spans(SOURCE, made)
    assert made.notes[0].words == ("%s",)
    too_much, searched = translate(["'%s' '%s' nicht geöffnet : %d"])
    assert too_much == "'%s' nicht geöffnet : %d"
    assert len(searched) == 2
    (note,) = too_much.notes
    assert (note.code, note.words) == ("corrected_placeholders", ("%s",))
    assert translate_message(note, "ko") != note


def test_the_ids_are_those_of_the_repaired_text() -> None:
    made, _ = translate(["'%s' '%s' : %d"])
    assert WordTokenizer.decode_tgt(made._tokenizer, [made.ids]) == [str(made)]


def test_a_source_without_placeholders_is_not_repaired() -> None:
    made, searched = translate(["%s offen"], source="Cannot open 5 files")
    assert made == "%s offen"
    assert len(searched) == 1


def test_repaired_words_have_a_confidence() -> None:
    words = [WordConfidence("a", 0.5), WordConfidence("%s", 0.4), WordConfidence("b", 0.3)]
    confidence = Confidence.of_empty_text()._replace(words=words)
    repaired = repair_confidence(confidence, "a b %d")
    assert repaired.words == [words[0], words[2], WordConfidence("%d", 1.0)]
