"""Lesson 2: ids, one-hot vectors, a table of embeddings, and learned neighbors."""

from __future__ import annotations

import io
from math import sqrt

import numpy as np
import pytest
from rich.console import Console

from attendo.lessons.blocks import LANGUAGES, Matrix, Table
from attendo.lessons.chapters.ch02_embeddings.learned_table import (
    length_chart,
    make_embedding,
    train_table,
)
from attendo.lessons.chapters.ch02_embeddings.lesson import LESSON, VOCABULARY
from attendo.lessons.render.terminal import render_block

WEEKDAYS = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
ANIMALS = {
    "tiger",
    "cat",
    "fox",
    "lion",
    "puppy",
    "bear",
    "wolf",
    "rabbit",
    "horse",
    "goat",
    "duck",
}


def matrices(view, given=None):
    return {block.title: np.array(block.values) for block in view.blocks(Matrix, given)}


def ids_of(view, given=None):
    return [row[1] for row in view.blocks(Table, given)[0].rows]


class TestLookingUp:
    def test_an_id_is_the_index_in_the_vocabulary(self, view):
        assert ids_of(view) == [4, 5, 6, 7]
        assert ids_of(view, {"sentence": "I am a Teacher"}) == [8, 9, 10, 12]
        korean = [VOCABULARY.index("너는"), 1, VOCABULARY.index("이다")]
        assert ids_of(view, {"sentence": "너는 의사 이다"}) == korean  # not in it: <unk>

    def test_a_one_hot_row_has_its_one_at_the_id(self, view):
        rows = matrices(view)["one-hot"]
        assert rows.shape == (4, len(VOCABULARY))
        assert rows.argmax(axis=1).tolist() == [4, 5, 6, 7]
        assert rows.sum(axis=1).tolist() == [1, 1, 1, 1]

    @pytest.mark.parametrize("d_model", [4, 7])
    def test_the_product_is_the_row_and_the_scale_the_root(self, view, d_model):
        found = matrices(view, {"d_model": d_model})
        table = found["E"]
        assert table.shape == (len(VOCABULARY), d_model)
        assert found["one-hot · E"] == pytest.approx(table[[4, 5, 6, 7]], abs=1e-7)
        assert found["E[id] · √d_model"] == pytest.approx(
            table[[4, 5, 6, 7]] * sqrt(d_model), abs=1e-6
        )

    def test_of_a_wide_table_the_first_numbers_are_shown(self, view):
        found = matrices(view, {"d_model": 300})
        assert found["E"] == pytest.approx(make_embedding(300, 18).weight[:, :8].numpy())
        scaled = found["one-hot · E"] * sqrt(300)
        assert found["E[id] · √d_model"] == pytest.approx(scaled, rel=1e-5)


class TestLength:
    def test_an_embedding_has_length_one_and_scaled_the_root(self, view):
        plain, scaled, indices = (np.array(one.values) for one in length_chart().series)
        sizes = np.array(length_chart().x)
        assert plain == pytest.approx(np.ones(9), abs=0.05)
        assert scaled == pytest.approx(plain * np.sqrt(sizes), rel=1e-5)
        assert indices == pytest.approx(np.sqrt(sizes / 2), rel=1e-5)
        assert length_chart() in view.blocks()


class TestNeighbors:
    def test_words_that_are_used_alike_come_near(self):
        table = train_table()
        near = [word for word, _ in table.neighbors("monday")]
        assert len(near) == 5
        assert len(WEEKDAYS & set(near)) >= 4
        assert table.neighbors("he")[0][0] == "she"
        assert len(ANIMALS & {word for word, _ in table.neighbors("dog")}) >= 2

    def test_before_they_are_on_disk(self):
        near = {word for word, _ in train_table().neighbors("monday", trained=False)}
        assert len(WEEKDAYS & near) <= 1

    def test_cosines_are_those_of_numpy(self):
        table = train_table()
        vectors = table.after.numpy()
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for word, cosine in table.neighbors("three"):
            own, other = (unit[table.names.index(name)] for name in ("three", word))
            assert cosine == pytest.approx(own @ other, abs=1e-5)

    def test_the_chosen_word_decides_the_table(self, view):
        for word in ("monday", "dog"):
            rows = view.blocks(Table, {"word": word})[-1].rows
            assert [row[2] for row in rows] == [near for near, _ in train_table().neighbors(word)]


class TestYourModel:
    @pytest.mark.parametrize(("kind", "scale"), [("transformer", 4.0), ("rnn-seq2seq", 1.0)])
    def test_ids_lengths_and_neighbors_of_its_own_pieces(self, kind, scale, make_translator):
        translator = make_translator(kind)
        model, tokenizer = translator.model, translator.tokenizer
        _, table = LESSON.own_model_blocks(translator, "ka to")
        ids = tokenizer.encode_src(["ka to"])[0]
        assert [row[1] for row in table.rows] == ids
        weight = model.src_embedding.weight.detach().numpy()
        unit = weight / np.linalg.norm(weight, axis=1, keepdims=True)
        for number, row in zip(ids[:-1], table.rows, strict=False):
            assert row[2] == pytest.approx(scale * np.linalg.norm(weight[number]), rel=1e-5)
            cosines = unit @ unit[number]
            cosines[[0, 1, 2, 3, number]] = -2
            best = int(cosines.argmax())
            assert row[3].startswith(f"{tokenizer.src_pieces([best])[0]} {cosines[best]:.2f}")
        assert table.rows[-1][3] == ""  # the end has none
        for lang in LANGUAGES:
            Console(file=io.StringIO()).print(render_block(table, lang))
