"""Lesson 20: numbers in, labels out; a month of sea temperatures, a week of typhoon or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attendo.lessons.blocks import Block, Chart, Formula, Matrix, Note, Paragraph, Series, Table
from attendo.lessons.chapters.ch20_numbers_to_labels import own_models
from attendo.lessons.chapters.ch20_numbers_to_labels.model_parts import (
    attention_by_day,
    input_layer,
    normalize,
    predict_two_days,
    visible_days,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.month import (
    FIRST_PREDICTED,
    TEMPERATURES,
    month_of,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.scores_by_hand import (
    NUM_DAYS,
    score_constant,
)
from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import (
    HORIZON,
    LABELS,
    NUM_YEARS,
    STEPS,
    WINDOW,
    forecast,
    prepare_data,
    score_forecasts,
    train_forecaster,
)
from attendo.lessons.inputs import Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.tasks.forecasting.baselines import climatology_forecast, persistence_forecast
from attendo.tasks.forecasting.codec import SeriesCodec

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import Values

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch20_numbers_to_labels")

ROW_DAYS = 6
"""Days in a row of a table."""
MISSING = 2
NUM_DIMENSIONS = 8
"""The dimensions of the input layer that are shown."""
PROBABILITY, NUM_EVENTS = 0.7, 7
METRICS = {
    "accuracy": prose("accuracy"),
    "f1": prose("f1"),
    "brier": prose("brier"),
    "log_loss": prose("log-loss"),
}
PROBABILITY_METRICS = ("accuracy", "brier", "log_loss")
FORECASTS = {
    "transformer": prose("transformer"),
    "climatology": prose("climatology"),
    "persistence": prose("persistence"),
}


def build_blocks(
    temperatures: list[list[float]], warmer: float, missing: int, p: float, events: int
) -> list[Block]:
    """Return the way of a month through the tiny model, its scores, and what it forecasts."""
    month = month_of(temperatures, warmer, missing)
    return [
        Paragraph(prose("any-sequence")),
        *_month_section(month),
        *_normalization_section(month),
        *_projection_section(month),
        *_mask_section(month),
        *_output_section(month),
        *_week_section(month),
        *_comparison_section(),
        *_scores_section(p, events),
        *_forecast_section(month),
        Paragraph(prose("for-real")),
    ]


def _month_section(month: Values) -> list[Block]:
    days = [float(day) for day in range(1, WINDOW + 1)]
    values = [None if np.isnan(one) else float(one) for one in month]
    return [
        Paragraph(prose("the-month", window=WINDOW, horizon=HORIZON, date=str(FIRST_PREDICTED))),
        Table(
            ["", *("" for _ in range(ROW_DAYS))],
            [
                [
                    prose("days-of-row", first=start + 1, last=start + ROW_DAYS),
                    *values[start : start + ROW_DAYS],
                ]
                for start in range(0, WINDOW, ROW_DAYS)
            ],
            digits=1,
            title=prose("month-table"),
        ),
        Chart(
            "lines",
            prose("month-chart"),
            days,
            [Series(prose("celsius"), values)],
            x_label=prose("day"),
            y_label="°C",
        ),
    ]


def _normalization_section(month: Values) -> list[Block]:
    codec = prepare_data().train.codec
    scaled, visible = normalize(month)[0, :, 0].tolist(), visible_days(month)
    rows: Rows = [
        [
            day + 1,
            None if np.isnan(month[day]) else float(month[day]),
            None if np.isnan(month[day]) else scaled[day],
            0.0 if np.isnan(month[day]) else 1.0,
            "●" if visible[day] else "○",
        ]
        for day in range(WINDOW - ROW_DAYS, WINDOW)
    ]
    return [
        Paragraph(prose("normalize", mean=codec.mean[0], deviation=codec.deviation[0])),
        Formula(f"z = (x − {codec.mean[0]:.2f}) / {codec.deviation[0]:.2f}"),
        Table(
            [prose("day"), "x (°C)", "z", prose("present"), prose("visible")],
            rows,
            digits=3,
            title=prose("last-days"),
        ),
    ]


def _projection_section(month: Values) -> list[Block]:
    layer = input_layer(month)
    weight, bias = layer.weight, layer.bias
    codec = train_forecaster().codec
    z = float(normalize(month)[0, 0, 0])
    numbers = torch.cat((weight, bias[:, None], layer.embedded[0][:, None]), dim=1)  # (D, 4)
    return [
        Paragraph(prose("projection", d_model=len(bias), parameters=weight.numel() + bias.numel())),
        Formula("e = z · w₁ + m · w₂ + b"),
        Formula(
            f"z₁ = ({month[0]:.1f} − {codec.mean[0]:.2f}) / {codec.deviation[0]:.2f} = {z:.3f}"
        ),
        Matrix(
            prose("first-day-vector", count=NUM_DIMENSIONS),
            numbers[:NUM_DIMENSIONS].tolist(),
            rows=[str(number) for number in range(1, NUM_DIMENSIONS + 1)],
            columns=["w₁", "w₂", "b", "e"],
            digits=3,
        ),
        Paragraph(prose("rest-is-the-same")),
    ]


def _mask_section(month: Values) -> list[Block]:
    weights, visible = attention_by_day(month).tolist(), visible_days(month)
    seen = [one for one, is_visible in zip(weights, visible, strict=True) if is_visible]
    hidden = [one for one, is_visible in zip(weights, visible, strict=True) if not is_visible]
    rows: Rows = [[prose("days-with-value"), len(seen), sum(seen), max(seen)]]
    if hidden:
        rows.append([prose("days-without-value"), len(hidden), sum(hidden), max(hidden)])
    return [
        Paragraph(prose("missing-values")),
        Table(
            [prose("days"), prose("count"), prose("sum-of-weights"), prose("largest-weight")],
            rows,
            digits=4,
        ),
    ]


def _output_section(month: Values) -> list[Block]:
    two = predict_two_days(month)
    probabilities = two.logits.softmax(-1)
    return [
        Paragraph(prose("output-head")),
        Table(
            [prose("label"), prose("logit"), prose("probability")],
            [
                [name, float(two.logits[index]), float(probabilities[index])]
                for index, name in enumerate(LABELS)
            ],
            digits=4,
            title=prose("first-day"),
        ),
        Note(prose("values-instead")),
    ]


def _week_section(month: Values) -> list[Block]:
    two = predict_two_days(month)
    marginal = (1 - two.first) * two.after_no + two.first * two.after_yes
    return [
        Paragraph(prose("one-after-the-other", count=2**HORIZON)),
        Table(
            [prose("if-first-day"), prose("its-probability"), prose("second-day-yes")],
            [
                [LABELS[0], 1 - two.first, two.after_no],
                [LABELS[1], two.first, two.after_yes],
            ],
            digits=4,
        ),
        Formula(
            f"P = {1 - two.first:.4f} · {two.after_no:.4f} + {two.first:.4f} · {two.after_yes:.4f}"
            f" = {marginal:.4f}"
        ),
        Paragraph(prose("direct-output", second=float(forecast(month)[1]))),
    ]


def _comparison_section() -> list[Block]:
    scores = score_forecasts()
    data = prepare_data()
    share = float(data.typhoons.mean())
    return [
        Paragraph(
            prose(
                "comparison",
                years=NUM_YEARS,
                steps=STEPS,
                num_train=len(data.train),
                num_dev=len(data.dev),
            )
        ),
        Table(
            ["", *FORECASTS.values()],
            [
                [label, *(scores[name][metric] for name in FORECASTS)]
                for metric, label in METRICS.items()
            ],
            digits=4,
            title=prose("comparison-table"),
        ),
        Paragraph(prose("reading-the-scores", share=share)),
    ]


def _scores_section(p: float, events: int) -> list[Block]:
    forecasts: tuple[tuple[Label, dict[str, Any]], ...] = (
        (prose("always-yes"), score_constant(1.0, events)),
        (prose("says-p", p=p), score_constant(p, events)),
    )
    hand = events * (p - 1) ** 2 + (NUM_DAYS - events) * p**2
    return [
        Paragraph(prose("why-probabilities", count=NUM_DAYS, events=events, p=p)),
        Formula(
            f"Brier = ({events} · ({p:g} − 1)² + {NUM_DAYS - events} · {p:g}²) / {NUM_DAYS}"
            f" = {hand / NUM_DAYS:.4f}"
        ),
        Table(
            [prose("forecast"), *(METRICS[metric] for metric in PROBABILITY_METRICS)],
            [[name, *(one[metric] for metric in PROBABILITY_METRICS)] for name, one in forecasts],
            digits=4,
            title=prose("by-hand-table"),
        ),
        Paragraph(prose("honest-probability")),
    ]


def _forecast_section(month: Values) -> list[Block]:
    data = prepare_data()
    origin = int(np.flatnonzero(data.dates == FIRST_PREDICTED)[0])
    plan = data.train.with_origins(np.array([origin]))
    climatology, persistence = (
        make(data.train, plan)[0, :, 1].tolist()
        for make in (climatology_forecast, persistence_forecast)
    )
    probabilities = forecast(month)
    truth = data.typhoons[origin : origin + HORIZON]
    return [
        Paragraph(prose("your-month", highest=float(probabilities.max()), actual=int(truth.sum()))),
        Chart(
            "lines",
            prose("week-chart"),
            [float(day) for day in range(1, HORIZON + 1)],
            [
                Series(FORECASTS["transformer"], probabilities.tolist()),
                Series(FORECASTS["climatology"], climatology),
                Series(FORECASTS["persistence"], persistence),
            ],
            x_label=prose("day"),
            y_label=prose("probability"),
        ),
    ]


def _normalized_question() -> float:
    codec = SeriesCodec(
        features=("heat",),
        targets=("storm",),
        kind="labels",
        labels=LABELS,
        mean=(27.0,),
        deviation=(1.5,),
        window=WINDOW,
        horizon=HORIZON,
    )
    return float(codec.normalize([[24.0]])[0, 0])


def _brier_question() -> float:
    return float(score_constant(0.8, NUM_DAYS)["brier"])


def _never_yes() -> str:
    """Return which forecast never gives a typhoon more than one half."""
    scores = score_forecasts()
    return next(name for name in FORECASTS if not scores[name]["f1_by_label"][LABELS[1]])


LESSON = Lesson(
    number=20,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.4, 3.5",
    code=(
        CodeReference("attendo.architectures.time_series", "SeriesTransformer"),
        CodeReference("attendo.tasks.forecasting.metrics", "label_metrics"),
        CodeReference("attendo.synthetic.sea_temperature", "simulate_series"),
    ),
    inputs=(
        Grid(
            name="temperatures",
            label=prose("input-temperatures"),
            default=TEMPERATURES,
            low=0.0,
            high=40.0,
        ),
        Number(
            name="warmer", label=prose("input-warmer"), default=0.0, low=-5.0, high=5.0, step=0.5
        ),
        Number(
            name="missing", label=prose("input-missing"), default=MISSING, low=0, high=WINDOW - 1
        ),
        Number(name="p", label=prose("input-p"), default=PROBABILITY, low=0.0, high=1.0, step=0.05),
        Number(
            name="events", label=prose("input-events"), default=NUM_EVENTS, low=0, high=NUM_DAYS
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _normalized_question,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.001,
        ),
        Question(
            prose("question-2"),
            _brier_question,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.001,
        ),
        Question(
            prose("question-3"),
            _never_yes,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=tuple(FORECASTS.items()),
        ),
    ),
    own_model_blocks=own_models.translator_blocks,
    task_blocks={"series": own_models.forecaster_blocks},
)
