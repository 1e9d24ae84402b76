"""What lesson 20 shows of the learner's own model: of a translator, and of a forecasting model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attendo.architectures.time_series import NumberEmbedding
from attendo.lessons.blocks import Block, ModelPlot, Note, Paragraph, Table
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch20_numbers_to_labels")


def translator_blocks(translator: Translator, text: str) -> list[Block]:
    """Return what would change if the learner's own translator read numbers."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    d_model, table = model.config.d_model, model.src_embedding.weight.numel()
    layer = sum(one.numel() for one in NumberEmbedding(1, d_model).parameters())
    rest = model.num_parameters() - table
    return [
        Paragraph(prose("own-translator", text=text)),
        Table(
            [prose("part"), prose("own-words"), prose("own-numbers")],
            [
                [prose("own-input"), table, layer],
                [prose("own-rest"), rest, rest],
            ],
        ),
        ModelPlot("input_sum", prose("own-figure")),
    ]


def forecaster_blocks(forecaster: Forecaster, text: str | None) -> list[Block]:
    """Return what the learner's own forecasting model reads, and its forecast for a mean window."""
    codec = forecaster.codec
    window = codec.denormalize(np.zeros((1, codec.window, len(codec.features))))
    (found,) = forecaster.predict(window)
    columns: Rows = [
        [*row] for row in zip(codec.features, codec.mean, codec.deviation, strict=True)
    ]
    if found.probabilities is not None:
        headers: list[Label] = [prose("step"), *codec.labels]
        rows: Rows = [
            [time, *one.values()]
            for time, one in zip(found.times, found.probabilities, strict=True)
        ]
    else:
        headers = [prose("step"), *codec.targets]
        rows = [[time, *one] for time, one in zip(found.times, found.values or [], strict=True)]
    return [
        Paragraph(prose("own-series", window=codec.window, horizon=codec.horizon)),
        Table([prose("column"), prose("mean"), prose("deviation")], columns),
        Paragraph(prose("own-forecast")),
        Table(headers, rows),
    ]
