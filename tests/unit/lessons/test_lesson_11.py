"""Lesson 11: the whole machine."""

from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.lessons.blocks import ModelPlot, Table
from attendo.lessons.chapters.ch11_architecture.lesson import LESSON
from attendo.lessons.chapters.ch11_architecture.model_tables import (
    build_meta_model,
    count_layers_reading_memory,
    parameter_table,
    trace_forward,
)

D, F, V, LAYERS = 512, 2048, 37_000, 6
ATTENTION = 4 * (D * D + D)
FEED_FORWARD = D * F + F + F * D + D
NORM = 2 * D


def tables(view, **given) -> list[Table]:
    return [block for block in view.blocks(values=given) if isinstance(block, Table)]


def shapes(table: Table) -> dict[str, str]:
    return {row[0].en: row[2] for row in table.rows}


class TestShapes:
    def test_of_the_encoder(self, view):
        found = shapes(tables(view, batch=3, source_length=7, target_length=4)[0])
        assert found == {
            "source ids": "(3, 7)",
            "embedding + position": "(3, 7, 512)",
            "queries by head": "(3, 8, 7, 64)",
            "attention weights": "(3, 8, 7, 7)",
            "heads concatenated, times W_O": "(3, 7, 512)",
            "feed-forward, hidden": "(3, 7, 2048)",
            "feed-forward, output": "(3, 7, 512)",
            "after all layers": "(3, 7, 512)",
        }

    def test_of_the_decoder(self, view):
        found = shapes(tables(view, batch=3, source_length=7, target_length=4)[1])
        assert found["masked self-attention weights"] == "(3, 8, 4, 4)"
        assert found["cross-attention queries"] == "(3, 8, 4, 64)"
        assert found["cross-attention keys"] == "(3, 8, 7, 64)"
        assert found["cross-attention weights"] == "(3, 8, 4, 7)"
        assert found["logits"] == "(3, 4, 37000)"

    def test_big_has_more_heads_of_the_same_size(self, view):
        found = shapes(tables(view, preset="big", batch=1, source_length=5)[0])
        assert found["queries by head"] == "(1, 16, 5, 64)"
        assert found["feed-forward, hidden"] == "(1, 5, 4096)"

    def test_the_letters_have_as_many_positions_as_the_numbers(self, view):
        for table in tables(view)[:2]:
            for _, letters, measured in table.rows:
                assert letters.count(",") == measured.count(",")

    def test_they_are_those_of_a_model_with_numbers(self):
        sizes = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
        with torch.device("meta"):
            hollow = Transformer(vocab_size=23, **sizes).eval()
        trace = trace_forward(hollow, 2, 5, 3)
        real = Transformer(vocab_size=23, **sizes).eval()
        explained = real.explain(torch.randint(1, 23, (2, 5)), torch.randint(1, 23, (2, 3)))
        assert trace.encoder_self.shape == explained.encoder_self[0].shape
        assert trace.decoder_self.shape == explained.decoder_self[0].shape
        assert trace.cross.shape == explained.cross[0].shape
        assert trace.modules[hollow.output].output.shape == explained.logits.shape

    def test_watching_leaves_no_hooks(self):
        model = build_meta_model("base", 100)
        trace_forward(model, 1, 2, 3)
        assert not any(module._forward_hooks for module in model.modules())
        assert not any("project" in vars(module) for module in model.modules())


class TestSources:
    def test_of_the_three_kinds(self, view):
        below, last = "layer below", "last encoder output"
        rows = [[cell.en for cell in row] for row in tables(view)[2].rows]
        assert rows == [
            ["encoder self-attention", below, below, below, "source padding"],
            ["decoder self-attention", below, below, below, "future words, padding"],
            ["cross-attention", "decoder self-attention", last, last, "source padding"],
        ]

    def test_every_decoder_layer_reads_the_last_encoder_output(self):
        model = build_meta_model("base", 100)
        trace = trace_forward(model, 1, 4, 3)
        assert count_layers_reading_memory(model, trace) == len(model.decoder.layers) == 6
        memory = trace.modules[model.encoder.layers[5]].output
        for layer in model.decoder.layers:
            assert trace.projection_inputs[layer.cross_attention, "key"] is memory

    def test_a_layer_that_read_another_would_not_be_counted(self):
        model = build_meta_model("base", 100)
        trace = trace_forward(model, 1, 4, 3)
        early = trace.modules[model.encoder.layers[3]].output
        for part in ("key", "value"):
            trace.projection_inputs[model.decoder.layers[3].cross_attention, part] = early
        assert count_layers_reading_memory(model, trace) == 5


class TestParameters:
    def test_by_part(self, view):
        counts = {row[0].en: row[1:4] for row in tables(view)[3].rows}
        assert counts == {
            "embedding": [V * D, 1, V * D],
            "encoder: self-attention": [ATTENTION, 6, 6 * ATTENTION],
            "encoder: feed-forward": [FEED_FORWARD, 6, 6 * FEED_FORWARD],
            "encoder: layer norm": [NORM, 12, 12 * NORM],
            "decoder: self-attention": [ATTENTION, 6, 6 * ATTENTION],
            "decoder: cross-attention": [ATTENTION, 6, 6 * ATTENTION],
            "decoder: feed-forward": [FEED_FORWARD, 6, 6 * FEED_FORWARD],
            "decoder: layer norm": [NORM, 18, 18 * NORM],
            "total": [None, None, V * D + 18 * ATTENTION + 12 * FEED_FORWARD + 30 * NORM],
        }

    @pytest.mark.parametrize(
        "options",
        [
            {"norm": "pre"},
            {"tie_embeddings": "none"},
            {"tie_embeddings": "decoder"},
            {"positions": "learned", "max_length": 9},
            {"num_decoder_layers": 1, "bias": False},
        ],
        ids=str,
    )
    def test_parts_of_any_transformer_sum_up_to_the_whole(self, make_model, options):
        model = make_model(**options)
        *parts, total = parameter_table(model).rows
        assert sum(row[3] for row in parts) == total[3] == model.num_parameters()

    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_the_paper_is_shown_for_comparison(self, view, lang):
        shown = view.text(lang)
        assert "63,082,496 ≈ 63.1M" in shown
        assert "65M" in shown
        assert "40,745" in shown  # the vocabulary that would make it 65M
        assert "(2, 8, 10, 6)" in shown
        assert "213M" in view.text(lang, preset="big")

    def test_the_vocabulary_named_would_make_65_million(self):
        with torch.device("meta"):
            model = Transformer.from_preset("base", vocab_size=40_745)
        assert model.num_parameters() == pytest.approx(65e6, abs=D)

    def test_the_vocabulary_can_be_changed_and_the_lengths_do_not_matter(self, view):
        assert tables(view, vocab_size=1000)[3].rows[0][3] == 1000 * D
        assert tables(view, source_length=200, target_length=200)[3] == tables(view)[3]


def test_your_own_transformer(make_translator):
    translator = make_translator()
    model = translator.model
    blocks = LESSON.own_model_blocks(translator, "ka to mi")
    assert [block.name for block in blocks if isinstance(block, ModelPlot)] == ["stack"]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.rows[-1][3] == sum(weight.numel() for weight in model.parameters())
    assert f"{model.num_parameters():,}" in blocks[0].words.ko


def test_hyperparameters_are_those_of_the_model_and_layers_can_be_chosen(view):
    for num_layers in (1, 6):
        table = view.blocks(Table, num_layers=num_layers)[-1]
        assert {row[0]: row[1] for row in table.rows} == {
            "d_model": 512, "num_layers": num_layers, "num_heads": 8, "d_ff": 2048,
        }  # fmt: skip
    text = view.text("en", num_layers=1)
    assert f"{build_meta_model('base', 37_000, 1).num_parameters():,} ≈" in text
