"""Every picture that the lessons promise is drawn by one call, and shown in its lesson."""

from __future__ import annotations

import pytest

from attendo.core.errors import AttendoError
from attendo.lessons.blocks import LANGUAGES, Matrix, ModelPlot, localize
from attendo.lessons.chapters.ch01_rnn_to_attention.memory import bleu_chart
from attendo.lessons.chapters.ch09_residuals.gradient_paths import path_table
from attendo.lessons.chapters.ch13_training.teacher_forcing import (
    learned_distributions,
    learning_rate_chart,
    smoothed_target_chart,
    target_distributions,
)
from attendo.lessons.contents import load_lesson
from attendo.lessons.figures import _STANDALONE_PLOTS, LESSON_NUMBERS, describe, plot
from attendo.lessons.render.site import _write_index

PROMISED = {
    "position heat map (both orders)": "positions",
    "the toy position vector": "position_toy",
    "embedding + position = input": "input_sum",
    "Q, K, V of one word": "query_key_value",
    "score, softmax, weighted sum of one word": "one_word",
    "score matrix": "score_matrix",
    "each mask": "masks",
    "one head's lines from one word": "head_lines",
    "two heads in two colors": "two_heads",
    "all heads": "all_heads",
    "heads concatenated times W_O": "concatenated_heads",
    "add and norm on one vector": "add_and_norm",
    "the unrolled residual paths": "unrolled_paths",
    "gradient size by layer with and without residuals": "gradients",
    "the stack with shapes": "stack",
    "the decoder's steps as an animation": "decoder_steps",
    "logits, softmax, chosen word": "logits",
    "target and learned distributions": "target_and_learned",
    "label-smoothed targets": "smoothed_targets",
    "the learning-rate curve": "learning_rate",
    "the beam tree": "beam_tree",
    "BLEU by sentence length for the baselines": "bleu_by_length",
}
"""What the lessons promise to draw, and the name to draw it by."""


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator()


@pytest.mark.parametrize(
    ("name", "lang"),
    # both languages of the model's pictures are tested where they are drawn
    [
        *((name, lang) for name in _STANDALONE_PLOTS for lang in LANGUAGES),
        *((name, "ko") for name in sorted(LESSON_NUMBERS) if name not in _STANDALONE_PLOTS),
    ],
)
def test_one_call_draws_it(name, lang, translator, tmp_path):
    model = {} if name in _STANDALONE_PLOTS else {"translator": translator, "text": "ka to mi re"}
    path = plot(name, tmp_path / f"{name}.png", lang=lang, **model)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 5000


def test_the_decoders_steps_move(translator, tmp_path):
    path = plot("decoder_steps", tmp_path / "a.gif", translator=translator, text="ka to mi re")
    assert path.read_bytes().startswith(b"GIF89a")


def test_nothing_of_the_promised_list_is_left_out():
    assert set(PROMISED.values()) == set(LESSON_NUMBERS)
    for lang in LANGUAGES:
        assert len({describe(name, lang) for name in LESSON_NUMBERS}) == len(LESSON_NUMBERS)
        assert all(f"| `{name}` |" in _write_index(lang) for name in LESSON_NUMBERS)


@pytest.mark.parametrize("name", sorted(set(LESSON_NUMBERS) - set(_STANDALONE_PLOTS)))
def test_its_lesson_shows_it_for_a_model_of_the_user(name, translator):
    own = load_lesson(LESSON_NUMBERS[name]).own_model_blocks(translator, "ka to mi re")
    assert name in [block.name for block in own if isinstance(block, ModelPlot)]


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("unrolled_paths", path_table),
        ("smoothed_targets", lambda: smoothed_target_chart("i", smoothing=0.1)),
        ("learning_rate", learning_rate_chart),
        ("bleu_by_length", bleu_chart),
    ],
)
def test_its_lesson_shows_the_same_numbers(name, block, view_of):
    assert block() in view_of(LESSON_NUMBERS[name]).blocks()


def test_targets_and_learned_distributions_follow_each_other(view_of):
    blocks = view_of(LESSON_NUMBERS["target_and_learned"]).blocks()
    target, learned = (
        next(
            one for one in blocks if isinstance(one, Matrix) and localize(one.title, "en") == title
        )
        for title in ("targets", "learned")
    )
    assert blocks.index(learned) == blocks.index(target) + 1
    assert target.values == target_distributions(0.1).tolist()
    assert learned.values == learned_distributions(0.1).tolist()


def test_wrong_requests_are_reported(tmp_path):
    with pytest.raises(AttendoError, match="did you mean 'two_heads'"):
        plot("two_head", tmp_path / "a.png")
    with pytest.raises(AttendoError, match="needs a model"):
        plot("two_heads", tmp_path / "a.png")
    with pytest.raises(AttendoError):
        plot("learning_rate", tmp_path / "a.txt")


@pytest.mark.usefixtures("without_font")
@pytest.mark.parametrize("name", _STANDALONE_PLOTS)
def test_without_a_korean_font_it_is_drawn_anyway(name, tmp_path):
    """With a □ for what cannot be shown: matplotlib's warning would be an error here."""
    assert plot(name, tmp_path / "a.svg", lang="ko").stat().st_size > 1000
