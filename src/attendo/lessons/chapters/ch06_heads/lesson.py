"""Lesson 6: multi-head attention; what several heads see at once, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.inspection.capture import capture
from attendo.inspection.heads import get_attentions
from attendo.inspection.record import KINDS
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    Frame,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Series,
    Steps,
    Table,
)
from attendo.lessons.chapters.ch04_attention_by_hand.lesson import find_cafe_head
from attendo.lessons.chapters.ch06_heads.constructed_heads import (
    ANIMAL,
    IT,
    SENTENCE,
    TIRED,
    WORDS,
    attend_sentence,
    make_one_head,
    make_two_heads,
    sentence_vectors,
)
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.attention import MultiHeadAttention, scaled_dot_product
from attendo.model.config import split_heads_evenly
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch06_heads")

SHARPNESS = 8.0


def build_blocks(d_model: str, num_heads: str, length: int, sharpness: float) -> list[Block]:
    """Return the split into heads, its cost, and an example with two heads."""
    width, count = int(d_model), int(num_heads)
    size = split_heads_evenly(width, count)
    return [
        Paragraph(prose("split", d_model=width, num_heads=count, size=size)),
        Formula("headᵢ = Attention(Q · W_Qᵢ, K · W_Kᵢ, V · W_Vᵢ)"),
        Formula("MultiHead(Q, K, V) = Concat(head₁, …, headₕ) · W_O"),
        shape_table(width, count, length),
        Note(prose("full-input", d_model=width)),
        Paragraph(prose("cost", length=length)),
        cost_table(width, count, length),
        *_example_section(sharpness),
    ]


def shape_table(d_model: int, num_heads: int, length: int) -> Table:
    """Return the shape at every stage of one attention."""
    attention = MultiHeadAttention(d_model, num_heads, bias=False)
    x = torch.ones(1, length, d_model)
    with torch.no_grad():
        projected = attention.key(x)
        keys, values = attention.project_key_value(x, x)
        heads, weights = scaled_dot_product(keys, keys, values, need_weights=True)
        concatenated = heads.transpose(1, 2).flatten(2)
        output = attention.output(concatenated)
    stages = (
        (prose("stage-x"), x),
        (prose("stage-projected"), projected),
        (prose("stage-split"), keys),
        (prose("stage-weights"), weights),
        (prose("stage-heads"), heads),
        (prose("stage-concatenated"), concatenated),
        (prose("stage-output"), output),
    )
    rows: Rows = [[name, str(tuple(tensor.shape[1:]))] for name, tensor in stages]
    return Table([prose("stage"), prose("shape")], rows)


def cost_table(d_model: int = 512, num_heads: int = 8, length: int = 11) -> Table:
    """Return the cost of one full-size head, many small ones and many full-size ones."""
    size = split_heads_evenly(d_model, num_heads)
    plans = {
        (f"1 × {d_model}", 1, d_model),
        (f"{num_heads} × {size}", num_heads, size),
        (f"{num_heads} × {d_model}", num_heads, d_model),
    }
    full, _ = count_cost(d_model, 1, d_model, length)
    rows: Rows = []
    for name, heads, head_size in sorted(plans, key=lambda plan: (plan[1] * plan[2], plan[1])):
        parameters, operations = count_cost(d_model, heads, head_size, length)
        rows.append([name, parameters, operations, parameters / full])
    return Table(
        [prose("heads-size"), prose("parameters"), prose("multiply-adds"), prose("relative-cost")],
        rows,
        digits=2,
        title=prose("cost-title"),
    )


def count_cost(d_model: int, num_heads: int, size: int, length: int) -> tuple[int, int]:
    """Return the parameters of an attention and its multiply-adds for a sentence."""
    with torch.device("meta"):  # shapes only, no memory
        attention = MultiHeadAttention(d_model, num_heads, d_k=size, d_v=size, bias=False)
    parameters = sum(weight.numel() for weight in attention.parameters())
    scores = length * length * attention.key.out_features  # one product per query and key
    weighted_sum = length * length * attention.value.out_features
    return parameters, length * parameters + scores + weighted_sum


def _example_section(sharpness: float) -> list[Block]:
    one, two = (attend_sentence(make(sharpness)) for make in (make_one_head, make_two_heads))
    return [
        Paragraph(prose("constructed-heads", sentence=SENTENCE)),
        head_steps(two[1][:, IT]),
        Paragraph(
            prose(
                "two-against-one",
                two_animal=two[1][0, IT, ANIMAL],
                two_tired=two[1][1, IT, TIRED],
                one_animal=one[1][0, IT, ANIMAL],
                one_tired=one[1][0, IT, TIRED],
            )
        ),
        Table(
            [prose("it-numbers"), prose("before-attention"), prose("one-head"), prose("two-heads")],
            [
                [name, *(float(row[IT, feature]) for row in (sentence_vectors(), one[0], two[0]))]
                for feature, name in enumerate(
                    (
                        prose("feature-pronoun"),
                        prose("feature-animal"),
                        prose("feature-location"),
                        prose("feature-state"),
                    )
                )
            ],
            title=prose("it-after-attention"),
        ),
        Note(prose("trained-heads")),
    ]


def head_steps(weights: Tensor) -> Steps:
    """Return the attention weights (H, S) of one word: all heads at once, then one by one."""
    names = [f"h{number}" for number in range(1, len(weights) + 1)]
    together = Matrix(prose("weights"), weights.T.tolist(), rows=WORDS, columns=names, shade=True)
    alone = [
        Frame(
            prose("head", number=number),
            [
                Chart(
                    "bars",
                    prose("head-title", number=number),
                    WORDS,
                    [Series(prose("attention-weight"), own.tolist())],
                    y_label=prose("attention-weight"),
                )
            ],
        )
        for number, own in enumerate(weights, 1)
    ]
    return Steps(prose("where-it-looks"), [Frame(prose("all-heads-at-once"), [together]), *alone])


def _compare_parameters() -> str:
    one, eight = (count_cost(512, heads, 512 // heads, 11)[0] for heads in (1, 8))
    return "same" if one == eight else "more" if eight > one else "less"


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the heads of the learner's own model."""
    model = translator.model
    kind: dict[str, Any] = {}
    head: dict[str, Any] = {}
    blocks: list[Block] = [Note(prose("own-not-transformer"))]
    if isinstance(model, Transformer):
        kind = {"kind": "encoder_self"}
        record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
        head = find_cafe_head(record) or kind
        blocks = [Paragraph(prose("own-heads", text=text)), _head_table(model)]
    word = {name: value for name, value in head.items() if name != "head"}
    return [
        *blocks,
        ModelPlot("all_heads", prose("own-all-heads"), {**kind}),
        ModelPlot("two_heads", prose("own-two-heads"), {**head}),
        ModelPlot("head_lines", prose("own-head-lines"), {**head}),
        ModelPlot("concatenated_heads", prose("own-concatenated"), {**word}),
    ]


def _head_table(model: Transformer) -> Table:
    names = {
        "encoder_self": prose("encoder-self-attention"),
        "decoder_self": prose("decoder-self-attention"),
        "cross": prose("encoder-decoder-attention"),
    }
    rows: Rows = []
    for kind in KINDS:
        attentions = get_attentions(model, kind)
        first = attentions[0]
        size = first.query.out_features // first.num_heads
        total = sum(weight.numel() for own in attentions for weight in own.parameters())
        rows.append([names[kind], len(attentions), first.num_heads, size, total])
    return Table(
        [
            prose("attention"),
            prose("layers"),
            prose("heads-per-layer"),
            prose("head-size"),
            prose("parameters"),
        ],
        rows,
    )


LESSON = Lesson(
    number=6,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.2.2",
    code=(CodeReference("attendo.model.attention", "MultiHeadAttention"),),
    inputs=(
        Choice(
            name="d_model",
            label=prose("input-d-model"),
            default="512",
            choices=tuple((size, size) for size in ("64", "128", "256", "512", "1024")),
        ),
        Choice(
            name="num_heads",
            label=prose("input-num-heads"),
            default="8",
            choices=tuple((count, count) for count in ("1", "2", "4", "8", "16")),
        ),
        Number(name="length", label=prose("input-length"), default=len(WORDS), low=1, high=256),
        Number(
            name="sharpness",
            label=prose("input-sharpness"),
            default=SHARPNESS,
            low=0.0,
            high=40.0,
            step=0.5,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            lambda: float(split_heads_evenly(768, 12)),
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _compare_parameters,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("more", prose("choice-more")),
                ("same", prose("choice-same")),
                ("less", prose("choice-less")),
            ),
        ),
        Question(
            prose("question-3"),
            lambda: float(attend_sentence(make_one_head(1000.0))[1][0, IT, ANIMAL]),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.005,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
