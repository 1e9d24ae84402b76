"""Lesson 9: what residual connections do to gradients, shown on three units by autograd."""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING

from attendo.inspection.capture import capture
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.teacher_forcing import teacher_force
from attendo.lessons.blocks import Block, Formula, Frame, ModelPlot, Note, Paragraph, Steps, Table
from attendo.lessons.chapters.ch08_add_and_norm.lesson import count_add_and_norm
from attendo.lessons.chapters.ch09_residuals.gradient_paths import (
    LOCAL_GRADIENTS,
    NUM_BLOCKS,
    SIGNAL,
    SKIP,
    SUBSCRIPTS,
    TARGET,
    WEIGHT,
    Factor,
    NetworkPass,
    X,
    depth_chart,
    gradient_factors,
    list_paths,
    path_gradient,
    path_length_chart,
    path_table,
    remaining_gradient,
    run_network,
    unrolled_table,
)
from attendo.lessons.inputs import Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.config import TransformerConfig
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Numbers = list[list[float]]
    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch09_residuals")
SUPERSCRIPTS = "⁰¹²³⁴⁵"


def build_blocks(
    x: float,
    w1: float,
    w2: float,
    w3: float,
    skip: float,
    target: float,
    local: Numbers,
    signal: float,
    num_blocks: int,
) -> list[Block]:
    """Return the gradients without and with a skip, in deep chains, and over all paths."""
    weights = (w1, w2, w3)
    plain = run_network(x, weights, skip=0.0, target=target)
    skipping = run_network(x, weights, skip=skip, target=target)
    factors = [gradient_factors(x, weights, skip=way, target=target) for way in (0.0, skip)]
    blocks = local[0][:num_blocks]
    return [
        _why(),
        *_three_units_section(plain, factors[0]),
        *_skip_section(plain, skipping, factors[1], target),
        *_chain_section(blocks, signal),
        *_depth_section(w1),
        *_unrolled_section(w1),
        *_paths_section(blocks),
        *_comparison_section(),
    ]


def _why() -> Paragraph:
    per_encoder, per_decoder = count_add_and_norm()
    num_layers = TransformerConfig(vocab_size=1).num_layers
    return Paragraph(
        prose(
            "why",
            num_sublayers=num_layers * (per_encoder + per_decoder),
            per_encoder=per_encoder,
            per_decoder=per_decoder,
        )
    )


def _three_units_section(plain: NetworkPass, factors: dict[str, list[Factor]]) -> list[Block]:
    return [
        Paragraph(prose("three-units")),
        Formula("h₁ = σ(w₁ · x)     h₂ = σ(w₂ · h₁)     y = σ(w₃ · h₂)     L = (t − y)²"),
        Table(["h₁", "h₂", "y", "L"], [[plain.h1, plain.h2, plain.y, plain.loss]], digits=5),
        Paragraph(prose("chain-rule")),
        _factor_steps(prose("factors"), {name: factors[name] for name in ("w₃", "w₂", "w₁")}),
        Paragraph(prose("small-gradients", w3=plain.w3, w2=plain.w2, w1=plain.w1)),
    ]


def _factor_steps(title: Label, factors: dict[str, list[Factor]]) -> Steps:
    """Return one frame per gradient with all its factors; "w_r" is the short path of w₁."""
    titles = {"w_r": prose("short-path"), "w₁": prose("long-path")} if "w_r" in factors else {}
    frames = []
    for name, own in factors.items():
        weight = "w₁" if name == "w_r" else name
        product = prod(factor.value for factor in own)
        heading = prose("gradient-value", weight=weight, value=product, path=titles.get(name, ""))
        rows: Rows = [list(factor) for factor in own]
        frames.append(
            Frame(heading, [Table([prose("factor"), prose("formula"), prose("value")], rows, 4)])
        )
    return Steps(title, frames)


def _skip_section(
    plain: NetworkPass, skipping: NetworkPass, factors: dict[str, list[Factor]], target: float
) -> list[Block]:
    rounded = round(skipping.y, 3)
    blocks: list[Block] = [
        Paragraph(prose("skip")),
        Formula("y = σ(w₃ · h₂ + w_r · h₁)"),
        Table(["y", "L"], [[skipping.y, skipping.loss]], digits=5, title=prose("forward")),
        _factor_steps(prose("factors-with-skip"), factors),
        Table(
            [prose("gradient"), prose("without-residual"), prose("with-residual")],
            [
                ["dL/dw₃", plain.w3, skipping.w3],
                ["dL/dw₂", plain.w2, skipping.w2],
                ["dL/dw₁", plain.w1, skipping.w1],
            ],
            digits=7,
            title=prose("backward"),
        ),
    ]
    if plain.w1:
        blocks.append(
            Paragraph(
                prose(
                    "two-paths",
                    w3=skipping.w3,
                    ratio=skipping.w1 / plain.w1,
                    long_way=skipping.long_way,
                    short_way=skipping.short_way,
                )
            )
        )
    loss = (target - rounded) ** 2
    note = prose("rounding", rounded=rounded, rounded_loss=loss, loss=skipping.loss)
    return [*blocks, Note(note)]


def _chain_section(blocks: list[float], signal: float) -> list[Block]:
    rows: Rows = [
        [count, local, *remaining_gradient(blocks[:count], signal=signal)]
        for count, local in enumerate(blocks, 1)
    ]
    return [
        Paragraph(prose("chain", signal=signal)),
        Formula("f(x):  ∂L/∂x = ∂L/∂y · f′     x + f(x):  ∂L/∂x = ∂L/∂y · (1 + f′)"),
        Table(
            [prose("blocks-passed"), "f′", prose("chain-block"), prose("residual-block")],
            rows,
            digits=9,
            title=prose("remaining-signal", signal=signal),
        ),
        Paragraph(prose("dead-block")),
    ]


def _depth_section(weight: float) -> list[Block]:
    return [Paragraph(prose("depth", weight=weight)), depth_chart(weight)]


def _unrolled_section(weight: float) -> list[Block]:
    return [
        Paragraph(prose("unrolled-sum")),
        Formula("x_{i+1} = x_i + F(x_i)     x_L = x_l + ∑ F(x_i),  i = l … L − 1"),
        unrolled_table(weight),
    ]


def _paths_section(blocks: list[float]) -> list[Block]:
    paths = list_paths(len(blocks))
    total = sum(path_gradient(path, blocks) for path in paths)
    _, carried = remaining_gradient(blocks, signal=1.0)
    return [
        Paragraph(
            prose(
                "all-paths",
                num_blocks=len(blocks),
                exponent=SUPERSCRIPTS[len(blocks)],
                num_paths=len(paths),
                total=total,
                carried=carried,
            )
        ),
        path_table(blocks),
        path_length_chart(len(blocks)),
        Paragraph(prose("many-views")),
    ]


def _comparison_section() -> list[Block]:
    aspects = ("formula", "block", "norm", "activation", "size", "depth")
    return [
        Paragraph(prose("residual-and-skip")),
        Table(
            ["", "ResNet (2015)", prose("transformer")],
            [
                [prose(f"compare-{one}"), prose(f"resnet-{one}"), prose(f"transformer-{one}")]
                for one in aspects
            ],
        ),
    ]


def _effect_of_doubling() -> str:
    ratio = run_network(skip=2 * SKIP).w1 / run_network().w1
    return "double" if ratio > 1.5 else "half" if ratio < 0.75 else "same"


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the gradient in every layer of the learner's own model, with and without residuals."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    introduction = prose("own-gradients", text=text)
    if not model.config.residual:
        introduction = prose("own-no-residuals", text=text)
    return [
        Paragraph(introduction),
        _gradient_table(translator, model, text),
        ModelPlot("gradients", prose("own-figure")),
    ]


def _gradient_table(translator: Translator, model: Transformer, text: str) -> Table:
    record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
    forced = teacher_force(translator, record)
    with translator.backend.eval_mode():
        measured = [
            gradient_norms(model, forced, has_residuals=has_residuals)
            for has_residuals in (True, False)
        ]
    columns = [
        [size / (stack[-1] or 1.0) for size in stack]
        for stacks in zip(*measured, strict=True)
        for stack in stacks
    ]
    names = [
        prose("own-input"),
        *(prose("own-layer", number=number + 1) for number in range(max(map(len, columns)) - 1)),
    ]
    return Table(
        [
            prose("own-after"),
            prose("encoder"),
            prose("encoder-cut"),
            prose("decoder"),
            prose("decoder-cut"),
        ],
        [[*row] for row in zip_longest(names, *columns)],
        digits=4,
    )


LESSON = Lesson(
    number=9,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.1",
    code=(
        CodeReference("attendo.model.layers", "AddAndNorm.post"),
        CodeReference("attendo.inspection.gradient_flow", "gradient_norms"),
    ),
    inputs=(
        Number(name="x", label=prose("input-x"), default=X, low=-5, high=5, step=0.1),
        *(
            Number(
                name=f"w{number}",
                label=prose("input-weights", subscript=SUBSCRIPTS[number - 1]),
                default=WEIGHT,
                low=-5,
                high=5,
                step=0.1,
            )
            for number in (1, 2, 3)
        ),
        Number(name="skip", label=prose("input-skip"), default=SKIP, low=-5, high=5, step=0.1),
        Number(name="target", label=prose("input-target"), default=TARGET, low=0, high=1, step=0.1),
        Grid(
            name="local",
            label=prose("input-local"),
            default=[list(LOCAL_GRADIENTS)],
            low=-10,
            high=10,
        ),
        Number(
            name="signal", label=prose("input-signal"), default=SIGNAL, low=-5, high=5, step=0.001
        ),
        Number(
            name="num_blocks", label=prose("input-num-blocks"), default=NUM_BLOCKS, low=1, high=5
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            lambda: float(len(list_paths(4))),
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _effect_of_doubling,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("half", prose("choice-half")),
                ("same", prose("choice-same")),
                ("double", prose("choice-double")),
            ),
        ),
        Question(
            prose("question-3"),
            lambda: remaining_gradient([0.1] * 3, signal=-0.125)[1],
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.001,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
