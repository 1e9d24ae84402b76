"""Lesson 21: break it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch21_break_it.attention_seen import (
    repeated_letter_difference,
    view_cross_attention,
    view_self_attention,
)
from attendo.lessons.chapters.ch21_break_it.diagram import draw_parts
from attendo.lessons.chapters.ch21_break_it.lesson import LESSON, load_measurements
from attendo.lessons.chapters.ch21_break_it.own_model import switch_off
from attendo.lessons.chapters.ch21_break_it.reversal import (
    END_ID,
    LENGTH,
    OPTIONS,
    PARTS,
    SMOOTHING,
    STEPS,
    held_out,
    sample_batch,
    train,
)
from attendo.lessons.diagrams.shapes import Words
from attendo.model.attention import MultiHeadAttention

DOCS = Path(__file__).parents[3] / "docs"


def last(part):
    return train(part, STEPS).history[-1]


def scores(view, **values) -> Table:
    return next(one for one in view.blocks(Table, values=values) if "held-out" in one.title.en)


def test_the_task_is_to_reverse_and_held_out_sequences_are_not_trained_on():
    batch = held_out()
    assert torch.equal(batch.labels[:, :-1], batch.src_ids.flip(1))
    assert bool((batch.labels[:, -1] == END_ID).all())
    assert torch.equal(batch.decoder_ids[:, 1:], batch.labels[:, :-1])
    trained = {
        tuple(ids) for seed in range(1, STEPS + 2) for ids in sample_batch(32, seed)[0].tolist()
    }
    assert sum(tuple(ids) in trained for ids in batch.src_ids.tolist()) <= 1  # 6,400 of a million


def test_the_same_seed_trains_the_same_model():
    first = train.__wrapped__("heads", 2).model.state_dict()
    again = train.__wrapped__("heads", 2).model.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_the_intact_model_learns_the_task():
    assert last(None).exact > 0.9
    assert last(None).accuracy > 0.97
    assert view_cross_attention(train(None, STEPS), 0).share > 0.6


def test_without_positions_the_same_letter_has_the_same_vector():
    assert last("positions").exact < 0.2
    assert repeated_letter_difference(train("positions", STEPS)) < 1e-4
    assert repeated_letter_difference(train(None, STEPS)) > 0.1
    weights = torch.tensor(view_cross_attention(train("positions", STEPS), 0).weights)
    first, second = (held_out().src_ids[0] == 1).nonzero().flatten().tolist()  # both a
    assert torch.allclose(weights[:, first], weights[:, second], atol=1e-5)


def test_without_the_mask_the_answer_is_copied():
    assert last("mask").accuracy > 0.9
    assert last("mask").exact < 0.2
    assert view_self_attention(train("mask", STEPS), 0).share > 0.1
    assert view_self_attention(train(None, STEPS), 0).share == 0.0


def test_without_residuals_little_is_learned():
    assert last("residuals").exact < 0.2


def test_without_smoothing_the_model_is_surer():
    best = 1 - SMOOTHING + SMOOTHING / 11
    assert last("smoothing").confidence > best + 0.03
    assert last(None).confidence < best + 0.03


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_really_off(part):
    config = train(part, 0).model.config.model_dump()
    intact = train(None, 0).model.config.model_dump()
    changed = {name for name in config if config[name] != intact[name]}
    assert changed == set(OPTIONS.get(part, ()))
    assert train(part, 0).hides_future == (part != "mask")


def test_the_table_has_the_scores_of_both_models(view):
    rows = scores(view).rows
    for row, name in zip(rows, ("exact", "accuracy", "loss", "confidence"), strict=False):
        assert row[1:] == [getattr(last(None), name), getattr(last("positions"), name)]
    (chart,) = view.blocks(Chart)
    assert [one.values[-1] for one in chart.series] == rows[0][1:]


@pytest.mark.parametrize(("part", "steps"), [("positions", STEPS), ("heads", 0)])
def test_the_explanation_follows_the_numbers(part, steps, view):
    text = " ".join(one.words.en for one in view.blocks(Paragraph, part=part, steps=steps))
    assert ("has not learned the task" in text) == (steps == 0)
    assert ("is needed for this task" in text) == (steps == STEPS)
    assert ("Why:" in text) == (steps == STEPS)


def test_the_picture_is_that_of_the_part(view):
    for part, columns in (("positions", LENGTH), ("mask", LENGTH + 1)):
        matrices = view.blocks(Matrix, part=part, steps=0)
        assert [(len(one.values), len(one.values[0])) for one in matrices] == 2 * [
            (LENGTH + 1, columns)
        ]
        for matrix in matrices:
            assert [sum(row) for row in matrix.values] == pytest.approx([1.0] * 7, abs=0.05)


def test_the_quoted_figures_are_those_of_the_results():
    """The table on the Transformer without its parts in docs/results.md."""
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    measured = load_measurements()
    names = {
        "positions": "positions",
        "residuals": "residual connections",
        "scaling": r"scaling by sqrt\(d_k\)",
        "smoothing": "label smoothing",
        "heads": "one head",
    }
    for part, name in names.items():
        found = re.search(rf"\| {name} \| ([\d.]+) \|", text)
        assert float(found[1]) == measured["without"][part]
    bleu = re.search(r"\| tokenized BLEU, Multi30k.*\| (.+) \|", text)
    assert float(bleu[1].split(", ")[-1]) == measured["intact"]
    assert measured["command"] in text


def test_the_drawing_marks_the_broken_part():
    for part in PARTS:
        marks = [one for one in draw_parts({"part": part}).shapes if isinstance(one, Words)]
        broken = [one.text.en for one in marks if one.style == "strong"]
        assert broken == [dict(LESSON.inputs[0].choices)[part].en]


def test_your_own_model(make_translator):
    translator = make_translator()
    _, table, plot = LESSON.own_model_blocks(translator, "ka to mi")
    assert len(table.rows) == 1 + len(OPTIONS)
    (translated,) = translator.translate(["ka to mi"], beam_size=1)
    assert table.rows[0][1][:60] == translated[:60]
    assert isinstance(plot, ModelPlot)
    (note,) = LESSON.own_model_blocks(make_translator("rnn-seq2seq"), "ka to mi")
    assert isinstance(note, Note)


def test_your_own_model_keeps_its_weights_when_a_part_is_off(make_translator):
    model = make_translator(num_layers=1, positions="learned").model
    before = json.dumps({name: float(one.sum()) for name, one in model.state_dict().items()})
    for part, options in OPTIONS.items():
        broken = switch_off(model, part)
        for name, weight in broken.state_dict().items():
            assert weight.data_ptr() == model.state_dict()[name].data_ptr()
        assert all(getattr(broken.config, name) == value for name, value in options.items())
    one_head = next(
        m for m in switch_off(model, "heads").modules() if isinstance(m, MultiHeadAttention)
    )
    assert one_head.num_heads == 1
    assert (
        json.dumps({name: float(one.sum()) for name, one in model.state_dict().items()}) == before
    )
