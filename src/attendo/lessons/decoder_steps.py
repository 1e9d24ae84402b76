"""The decoder of the learner's own model at work, a step at a time: to be played, or stepped through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import Block, Chart, Frame, LocalizedText, Series, Steps, Table

if TYPE_CHECKING:
    from attendo.inspection.record import Record, Step

START = "<s>"
NUM_CANDIDATES = 4
MOST_STEPS = 24
"""A model that has learnt nothing does not know when to end."""


def step_frames(record: Record) -> Steps:
    """Give a frame for every piece that is said: what was read, and where the decoder looked.

    A decoder without attention looks nowhere: then its likeliest pieces are shown.
    """
    said = [token["piece"] for token in record.tgt["tokens"]]
    frames = [
        Frame(
            f"{' '.join([START, *said[:place]])} → {said[place]} ({step['probability']:.2f})",
            [_show_looks(record, place) if "cross" in record.kinds else _show_candidates(step)],
        )
        for place, step in enumerate(record.steps[:MOST_STEPS])
    ]
    return Steps(LocalizedText("your model speaks", "여러분의 모델이 말하는 모습"), frames)


def _show_looks(record: Record, place: int) -> Block:
    shares = record.attention("cross")[-1, :, place].mean(0)  # (S,), all heads of the last layer
    pieces = [token["piece"] for token in record.src["tokens"]]
    return Chart(
        "bars",
        LocalizedText(
            "where its last layer looks, all heads on average",
            "마지막 층이 보는 곳, 모든 헤드의 평균",
        ),
        x=pieces,
        series=[Series(LocalizedText("share", "비율"), [float(share) for share in shares])],
    )


def _show_candidates(step: Step) -> Block:
    return Table(
        [LocalizedText("piece", "조각"), LocalizedText("probability", "확률")],
        [[one["piece"], one["probability"]] for one in step["top"][:NUM_CANDIDATES]],
        digits=4,
    )
