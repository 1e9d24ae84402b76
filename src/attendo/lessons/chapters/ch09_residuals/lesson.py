"""Lesson 9: what residual connections do to gradients, shown on three units by autograd."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from attendo.inspection.capture import capture
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.teacher_forcing import teacher_force
from attendo.lessons.blocks import Block, Formula, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch09_residuals.gradient_paths import (
    LOCAL_GRADIENT,
    SIGNAL,
    SKIP,
    SUBSCRIPTS,
    TARGET,
    WEIGHT,
    NetworkPass,
    X,
    depth_chart,
    list_paths,
    path_gradient,
    path_length_chart,
    path_table,
    remaining_gradient,
    run_network,
)
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch09_residuals")


def build_blocks(
    x: float,
    w1: float,
    w2: float,
    w3: float,
    skip: float,
    target: float,
    local: float,
    num_blocks: int,
) -> list[Block]:
    """Return the gradients without and with a skip, in deep chains, and over all paths."""
    plain = run_network(x, (w1, w2, w3), skip=0.0, target=target)
    skipping = run_network(x, (w1, w2, w3), skip=skip, target=target)
    return [
        *_three_units_section(plain),
        *_skip_section(plain, skipping, target),
        *_chain_section(local, num_blocks),
        *_depth_section(w1),
        *_paths_section(local, num_blocks),
    ]


def _three_units_section(plain: NetworkPass) -> list[Block]:
    return [
        Paragraph(prose("three-units")),
        Formula("h₁ = σ(w₁ · x)     h₂ = σ(w₂ · h₁)     y = σ(w₃ · h₂)     L = (t − y)²"),
        Table(["h₁", "h₂", "y", "L"], [[plain.h1, plain.h2, plain.y, plain.loss]], digits=5),
        Paragraph(prose("small-gradients", w3=plain.w3, w2=plain.w2, w1=plain.w1)),
    ]


def _skip_section(plain: NetworkPass, skipping: NetworkPass, target: float) -> list[Block]:
    rounded = round(skipping.y, 3)
    blocks: list[Block] = [
        Paragraph(prose("skip")),
        Formula("y = σ(w₃ · h₂ + w_r · h₁)"),
        Table(["y", "L"], [[skipping.y, skipping.loss]], digits=5, title=prose("forward")),
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
        ratio = skipping.w1 / plain.w1
        blocks.append(
            Paragraph(
                prose(
                    "two-paths",
                    w3=skipping.w3,
                    ratio=ratio,
                    long_way=skipping.long_way,
                    short_way=skipping.short_way,
                )
            )
        )
    blocks.append(
        Note(
            prose(
                "rounding",
                rounded=rounded,
                rounded_loss=(target - rounded) ** 2,
                loss=skipping.loss,
            )
        )
    )
    return blocks


def _chain_section(local: float, num_blocks: int) -> list[Block]:
    local_text = f"{local:.6f}".rstrip("0").rstrip(".")
    rows: Rows = [
        [count, *remaining_gradient(count, local=local)] for count in range(1, num_blocks + 1)
    ]
    return [
        Paragraph(prose("chain", local=local_text, signal=SIGNAL)),
        Table(
            [prose("blocks-passed"), prose("chain-block"), prose("residual-block")],
            rows,
            digits=5,
            title=prose("remaining-signal", signal=SIGNAL),
        ),
    ]


def _depth_section(weight: float) -> list[Block]:
    return [Paragraph(prose("depth", weight=weight)), depth_chart(weight)]


def _paths_section(local: float, num_blocks: int) -> list[Block]:
    paths = list_paths(num_blocks)
    total = sum(path_gradient(path, local) for path in paths)
    _, carried = remaining_gradient(num_blocks, local=local, signal=1.0)
    return [
        Paragraph(
            prose(
                "all-paths",
                num_blocks=num_blocks,
                num_paths=len(paths),
                total=total,
                carried=carried,
            )
        ),
        path_table(num_blocks, local=local),
        path_length_chart(num_blocks),
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
        *(prose("own-layer", number=number) for number in range(max(map(len, columns)) - 1)),
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
        Number(
            name="local",
            label=prose("input-local"),
            default=LOCAL_GRADIENT,
            low=0,
            high=1,
            step=1e-6,
        ),
        Number(name="num_blocks", label=prose("input-num-blocks"), default=3, low=1, high=5),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(prose("question-1"), lambda: float(len(list_paths(4))), prose("explanation-1")),
        Question(
            prose("question-2"),
            _effect_of_doubling,
            prose("explanation-2"),
            choices=(
                ("half", prose("choice-half")),
                ("same", prose("choice-same")),
                ("double", prose("choice-double")),
            ),
        ),
        Question(
            prose("question-3"),
            lambda: remaining_gradient(3, local=0.1)[1],
            prose("explanation-3"),
            tolerance=0.001,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
