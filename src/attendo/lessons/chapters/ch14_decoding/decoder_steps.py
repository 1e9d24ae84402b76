"""The decoder of the learner's own model, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import Block, Chart, Frame, Series, Steps, Table
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.inspection.record import Record, Step

prose = Prose("attendo.lessons.chapters.ch14_decoding")

START = "<s>"
NUM_CANDIDATES = 4
MAX_STEPS = 24
"""An untrained model does not know when to stop."""


def decoder_steps(record: Record) -> Steps:
    """Return one frame per output token: the decoder input and where the decoder looks.

    A decoder without attention looks nowhere: its most likely tokens are shown instead.
    """
    output = [token["piece"] for token in record.tgt["tokens"]]
    frames = [
        Frame(
            f"{' '.join([START, *output[:position]])} → "
            f"{output[position]} ({step['probability']:.2f})",
            [_attention_chart(record, position) if "cross" in record.kinds else _token_table(step)],
        )
        for position, step in enumerate(record.steps[:MAX_STEPS])
    ]
    return Steps(prose("own-steps"), frames)


def _attention_chart(record: Record, position: int) -> Block:
    weights = record.attention("cross")[-1, :, position].mean(
        0
    )  # (S,), all heads of the last layer
    pieces = [token["piece"] for token in record.src["tokens"]]
    return Chart(
        "bars",
        prose("own-cross-attention"),
        x=pieces,
        series=[Series(prose("attention-weight"), [float(weight) for weight in weights])],
    )


def _token_table(step: Step) -> Block:
    return Table(
        [prose("token"), prose("probability")],
        [[one["piece"], one["probability"]] for one in step["top"][:NUM_CANDIDATES]],
        digits=4,
    )
