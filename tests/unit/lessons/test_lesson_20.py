"""Lesson 20: numbers in, labels out."""

from __future__ import annotations

import math
import shlex

import numpy as np
import pytest
import torch
from typer.main import get_command

from attendo.cli.main import build_app
from attendo.lessons.blocks import (
    LANGUAGES,
    Chart,
    Formula,
    Matrix,
    Note,
    Paragraph,
    Table,
    parse_markup,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.lesson import LESSON
from attendo.lessons.chapters.ch20_numbers_to_labels.model_parts import (
    attention_by_day,
    input_layer,
    predict_two_days,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.month import (
    FIRST_PREDICTED,
    TEMPERATURES,
    month_of,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.scores_by_hand import score_constant
from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import (
    NUM_YEARS,
    WINDOW,
    forecast,
    prepare_data,
    score_forecasts,
    train_forecaster,
)
from attendo.synthetic.sea_temperature import simulate_series

MONTH = month_of(TEMPERATURES, 0.0, 0)


def table(view, title, **given):
    blocks = view.blocks(Table, values=given)
    return next(one for one in blocks if getattr(one.title, "en", one.title) == title)


def formulas(view, **given):
    return [block.text for block in view.blocks(Formula, values=given)]


def test_the_month_is_one_of_the_simulated_sea_that_was_held_out():
    series = simulate_series(years=NUM_YEARS)
    (origin,) = np.flatnonzero(series.dates == FIRST_PREDICTED)
    assert series.observations.sea[origin - WINDOW : origin].round(1) == pytest.approx(MONTH)
    data = prepare_data()
    assert origin > data.train.origins.max() + 7
    assert data.dev.origins.min() > data.train.origins.max() + 6


def test_days_are_normalized_by_the_training_days(view):
    codec = prepare_data().train.codec
    train = prepare_data().temperatures[: prepare_data().train.origins.max() + 7]
    assert codec.mean[0] == pytest.approx(np.nanmean(train))
    rows = table(view, "the last days, as the model reads them").rows
    assert [row[0] for row in rows] == list(range(25, 31))
    for day, celsius, scaled, present, visible in rows:
        is_known = day <= 28
        assert (present, visible) == ((1.0, "●") if is_known else (0.0, "○"))
        if is_known:
            assert scaled == pytest.approx((celsius - codec.mean[0]) / codec.deviation[0], abs=1e-6)


def test_the_vector_of_a_day_can_be_computed_by_hand(view):
    (shown,) = view.blocks(Matrix)
    first, second, bias, vector = np.array(shown.values).T
    codec = prepare_data().train.codec
    scaled = (MONTH[0] - codec.mean[0]) / codec.deviation[0]
    assert vector == pytest.approx(scaled * first + second + bias, abs=1e-5)
    missing = input_layer(month_of(TEMPERATURES, 0.0, 1)).embedded[-1]
    assert missing[: len(bias)].tolist() == pytest.approx(bias, abs=1e-6)  # 0 · w₁ + 0 · w₂ + b


def test_missing_days_get_no_attention_and_hold_no_value():
    weights = attention_by_day(month_of(TEMPERATURES, 0.0, 5))
    assert weights[-5:].eq(0).all()
    assert weights[:-5].gt(0).all()
    assert float(weights.sum()) == pytest.approx(1.0)


def test_the_second_day_is_the_sum_over_both_labels_of_the_first():
    two = predict_two_days(MONTH)
    assert two.first == pytest.approx(forecast(MONTH)[0], abs=1e-6)
    total = (1 - two.first) * two.after_no + two.first * two.after_yes
    assert total == pytest.approx(forecast(MONTH)[1], abs=1e-6)
    assert two.after_yes > two.after_no  # a typhoon lasts two days at least


def test_the_model_is_better_than_climatology_and_persistence():
    scores = score_forecasts()
    for metric in ("brier", "log_loss"):
        others = [scores[name][metric] for name in ("climatology", "persistence")]
        assert scores["transformer"][metric] < min(others)
    assert scores["climatology"]["f1_by_label"]["yes"] == 0.0
    share = prepare_data().dev.truth().mean()
    assert scores["climatology"]["accuracy"] == pytest.approx(1 - share)


def test_training_is_deterministic():
    first = train_forecaster()
    train_forecaster.cache_clear()
    for one, other in zip(
        first.model.parameters(), train_forecaster().model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


def test_a_colder_sea_has_fewer_typhoons(view):
    assert forecast(MONTH - 3).max() < 0.1 < forecast(MONTH).min()
    charts = view.blocks(Chart, warmer=-3)
    cold, *baselines = (one.values for one in charts[-1].series)
    warm, *same = (one.values for one in view.blocks(Chart)[-1].series)
    assert max(cold) < min(warm)
    assert baselines == same  # they do not read the temperatures


@pytest.mark.parametrize(("p", "events"), [(0.7, 7), (0.3, 1), (0.0, 0), (1.0, 4)])
def test_brier_score_and_log_loss_by_hand(p, events, view):
    found = score_constant(p, events)
    assert found["brier"] == pytest.approx((events * (p - 1) ** 2 + (10 - events) * p**2) / 10)
    assert any(
        text.startswith("Brier") and text.endswith(f"= {found['brier']:.4f}")
        for text in formulas(view, p=p, events=events)
    )
    if 0 < p < 1:
        loss = -(events * math.log(p) + (10 - events) * math.log(1 - p)) / 10
        assert found["log_loss"] == pytest.approx(loss)


def test_the_true_share_has_the_best_scores():
    for metric in ("brier", "log_loss"):
        scores = {p: score_constant(p / 10, 7)[metric] for p in range(1, 10)}
        assert min(scores, key=scores.get) == 7


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_commands_exist_with_their_options(lang, view):
    commands = [
        shlex.split(text)
        for block in view.blocks(Paragraph)
        for style, text in parse_markup(block.words.localize(lang))
        if style == "code" and text.startswith("attendo ")
    ]
    assert len(commands) == 4
    for _, verb, *arguments in commands:
        command = get_command(build_app(verb)).get_command(None, verb)
        known = {option for one in command.params for option in one.opts}
        assert {one for one in arguments if one.startswith("-")} <= known


def test_a_forecasting_model_of_the_learner_shows_its_columns_and_a_forecast():
    _, columns, _, rows = LESSON.task_blocks["series"](train_forecaster(), None)
    assert [row[0] for row in columns.rows] == ["sea_temperature"]
    assert len(rows.rows) == 7
    assert all(sum(row[1:]) == pytest.approx(1.0) for row in rows.rows)


def test_a_translator_would_change_its_input_alone(make_translator):
    translator = make_translator()
    _, parts, _ = LESSON.own_model_blocks(translator, "ka to")
    (_, words, numbers), (_, *rest) = parts.rows
    assert words == translator.model.src_embedding.weight.numel()
    assert numbers == 3 * translator.model.config.d_model
    assert rest[0] == rest[1]
    (note,) = LESSON.own_model_blocks(make_translator("rnn-attention"), "ka to")
    assert isinstance(note, Note)
