"""Lesson 21: break it; a tiny model without each of its parts."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from attendo.lessons.blocks import Block, Chart, Matrix, Note, Paragraph, Series, Table
from attendo.lessons.chapters.ch21_break_it.attention_seen import (
    mean_largest_weight,
    repeated_letter_difference,
    view_cross_attention,
    view_self_attention,
)
from attendo.lessons.chapters.ch21_break_it.own_model import own_model_blocks
from attendo.lessons.chapters.ch21_break_it.reversal import (
    BATCH_SIZE,
    LENGTH,
    LETTERS,
    NUM_HEADS,
    NUM_HELD_OUT,
    PARTS,
    SIZES,
    SMOOTHING,
    STEPS,
    held_out,
    spell,
    train,
    write,
)
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.masks import causal_mask

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label, LocalizedText
    from attendo.lessons.chapters.ch21_break_it.attention_seen import HeadView
    from attendo.lessons.chapters.ch21_break_it.reversal import Measurement, TrainedModel

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch21_break_it")

NUM_EXAMPLES, NUM_WRITTEN = 10, 4
LEARNED = 0.5
"""The share of sequences that the intact model has to write right, to be compared with."""
CLEAR = 0.1
"""A difference of shares that is not called small."""
QUESTION_LENGTH = 7
Rates = dict[str, float]


@cache
def load_measurements() -> dict[str, Any]:
    """Return the BLEU of models on a real corpus, without a part each."""
    text = (files(prose.package) / "measured.json").read_text(encoding="utf-8")
    measurements: dict[str, Any] = json.loads(text)
    return measurements


def build_blocks(part: str, steps: int, example: int) -> list[Block]:
    """Return the scores and the attention of an intact model, and of one without a part."""
    intact, broken = train(None, steps), train(part, steps)
    return [
        Paragraph(prose("why")),
        Paragraph(_describe_task(steps)),
        Paragraph(prose(f"about-{part}", **_sizes(part))),
        _score_table(part, intact, broken),
        _exact_chart(part, intact, broken),
        _written_table(part, intact, broken, example),
        Paragraph(_verdict(intact.history[-1], broken.history[-1], steps)),
        *_explanation(part, intact, broken),
        *_attention_blocks(part, intact, broken, example - 1),
        *_measured_section(),
        Note(prose("limits")),
    ]


def _describe_task(steps: int) -> LocalizedText:
    batch = held_out()
    return prose(
        "task",
        letters=len(LETTERS),
        length=LENGTH,
        src=spell(batch.src_ids[0]),
        tgt=spell(batch.labels[0]),
        encoder=SIZES["num_layers"],
        decoder=SIZES["num_decoder_layers"],
        d_model=SIZES["d_model"],
        heads=NUM_HEADS,
        steps=steps,
        batch=BATCH_SIZE,
        count=NUM_HELD_OUT,
    )


def _sizes(part: str) -> Rates:
    d_k = SIZES["d_model"] // NUM_HEADS
    sizes: dict[str, Rates] = {
        "scaling": {"d_k": d_k, "root": d_k**0.5},
        "heads": {"heads": NUM_HEADS, "d_k": d_k, "d_model": SIZES["d_model"]},
        "smoothing": {"smoothing": SMOOTHING},
    }
    return sizes.get(part, {})


def _score_table(part: str, intact: TrainedModel, broken: TrainedModel) -> Table:
    first, second = intact.history[-1], broken.history[-1]
    rows: Rows = [
        [prose("exact"), first.exact, second.exact],
        [prose("accuracy"), first.accuracy, second.accuracy],
        [prose("loss"), first.loss, second.loss],
        [prose("confidence"), first.confidence, second.confidence],
        [
            prose("answer-share"),
            view_cross_attention(intact, 0).share,
            view_cross_attention(broken, 0).share,
        ],
        [prose("largest-weight"), mean_largest_weight(intact), mean_largest_weight(broken)],
    ]
    headers: list[Label] = [prose("measure"), prose("intact"), prose(f"without-{part}")]
    return Table(headers, rows, title=prose("scores", count=NUM_HELD_OUT))


def _exact_chart(part: str, intact: TrainedModel, broken: TrainedModel) -> Chart:
    return Chart(
        "lines",
        prose("exact-by-step"),
        [float(one.step) for one in intact.history],
        [
            Series(prose("intact"), [one.exact for one in intact.history]),
            Series(prose(f"without-{part}"), [one.exact for one in broken.history]),
        ],
        x_label=prose("step"),
        y_label=prose("exact"),
    )


def _written_table(part: str, intact: TrainedModel, broken: TrainedModel, example: int) -> Table:
    batch = held_out()
    chosen = slice(example - 1, example - 1 + NUM_WRITTEN)
    columns = (
        batch.src_ids[chosen],
        batch.labels[chosen],
        write(intact.model, batch.src_ids[chosen]),
        write(broken.model, batch.src_ids[chosen]),
    )
    headers: list[Label] = [
        prose("read"),
        prose("right"),
        prose("intact"),
        prose(f"without-{part}"),
    ]
    rows: Rows = [[spell(ids) for ids in row] for row in zip(*columns, strict=True)]
    return Table(headers, rows, title=prose("written"))


def _verdict(intact: Measurement, broken: Measurement, steps: int) -> LocalizedText:
    """Return what the scores say, and no more."""
    rates = {"intact": intact.exact, "broken": broken.exact}
    if intact.exact < LEARNED:
        return prose("verdict-untrained", steps=steps, **rates)
    if broken.exact < intact.exact - CLEAR:
        return prose("verdict-worse", **rates)
    return prose("verdict-small", **rates)


def _explanation(part: str, intact: TrainedModel, broken: TrainedModel) -> list[Paragraph]:
    """Return why the models differ; nothing if the intact one has not learned the task."""
    if intact.history[-1].exact < LEARNED:
        return []
    return [Paragraph(prose(f"seen-{part}", **_figures(part, intact, broken)))]


def _figures(part: str, intact: TrainedModel, broken: TrainedModel) -> Rates:
    """Return the numbers in the explanation of what one sees."""
    first, second = intact.history[-1], broken.history[-1]
    figures: dict[str, Rates] = {
        "positions": {
            "broken": repeated_letter_difference(broken),
            "intact": repeated_letter_difference(intact),
        },
        "scaling": {
            "intact": mean_largest_weight(train(None, 0)),
            "broken": mean_largest_weight(train(part, 0)),
        },
        "residuals": {
            "intact": view_cross_attention(intact, 0).share,
            "broken": view_cross_attention(broken, 0).share,
        },
        "heads": {
            "intact": view_cross_attention(intact, 0).share,
            "broken": view_cross_attention(broken, 0).share,
        },
        "mask": {
            "accuracy": second.accuracy,
            "exact": second.exact,
            "share": view_self_attention(broken, 0).share,
        },
        "smoothing": {
            "intact": first.confidence,
            "broken": second.confidence,
            "loss": first.loss,
            "other": second.loss,
        },
    }
    return figures[part]


def _attention_blocks(
    part: str, intact: TrainedModel, broken: TrainedModel, example: int
) -> list[Block]:
    kind = "self" if part == "mask" else "cross"
    view = view_self_attention if kind == "self" else view_cross_attention
    named = ((prose("intact"), intact), (prose(f"without-{part}"), broken))
    return [
        Paragraph(prose(f"picture-{kind}")),
        *(_attention_matrix(name, view(trained, example)) for name, trained in named),
    ]


def _attention_matrix(name: LocalizedText, view: HeadView) -> Matrix:
    title = prose("head-title", model=name, layer=view.layer, head=view.head)
    weights = [[round(weight, 2) for weight in row] for row in view.weights]
    return Matrix(title, weights, view.rows, view.columns, digits=2, shade=True)


def _measured_section() -> list[Block]:
    measured = load_measurements()
    rows: Rows = [[prose("intact"), measured["intact"]]]
    rows += [
        [prose(f"without-{part}"), measured["without"][part]]
        for part in PARTS
        if part in measured["without"]
    ]
    return [
        Paragraph(prose("real-corpus")),
        Table([prose("model"), "BLEU"], rows, digits=1, title=prose("measured")),
        Paragraph(
            prose(
                "small-and-large",
                scaling=measured["without"]["scaling"],
                heads=measured["without"]["heads"],
                smoothing=measured["without"]["smoothing"],
                intact=measured["intact"],
            )
        ),
    ]


def _order_effect() -> str:
    """Return whether the encoder without positions tells two positions of one letter apart."""
    difference = repeated_letter_difference(train("positions", 0))
    return "same" if difference < 1e-4 else "different"


def _hidden_weights() -> float:
    return float((~causal_mask(QUESTION_LENGTH)).sum())


def _revealing_score() -> str:
    """Return which score of the model without the mask is the lowest."""
    last = train("mask", STEPS).history[-1]
    scores = {"accuracy": last.accuracy, "exact": last.exact, "confidence": last.confidence}
    return min(scores, key=lambda name: scores[name])


LESSON = Lesson(
    number=21,
    title=prose("title"),
    summary=prose("summary"),
    paper="3, 5.4",
    code=(
        CodeReference("attendo.model.config", "TransformerConfig"),
        CodeReference("attendo.model.layers", "AddAndNorm"),
        CodeReference("attendo.model.positional_encoding", "NoPositions"),
    ),
    inputs=(
        Choice(
            name="part",
            label=prose("input-part"),
            default="positions",
            choices=tuple((part, prose(f"part-{part}")) for part in PARTS),
        ),
        Number(name="steps", label=prose("input-steps"), default=STEPS, low=0, high=STEPS, step=25),
        Number(
            name="example",
            label=prose("input-example"),
            default=1,
            low=1,
            high=NUM_EXAMPLES,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _order_effect,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=(
                ("different", prose("choice-different")),
                ("same", prose("choice-same")),
            ),
        ),
        Question(
            prose("question-2", length=QUESTION_LENGTH),
            _hidden_weights,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _revealing_score,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("accuracy", prose("choice-accuracy")),
                ("exact", prose("choice-exact")),
                ("confidence", prose("choice-confidence")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
