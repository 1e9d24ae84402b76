"""Lesson 8: residual connections and layer normalization by hand, compared with batch norm."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import nn

from attendo.lessons.blocks import Block, Formula, Matrix, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch08_add_and_norm.measurements import (
    position_chart,
    position_differences,
    spread_by_depth,
    spread_chart,
)
from attendo.lessons.inputs import Grid, Number, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Numbers = list[list[float]]
    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch08_add_and_norm")

X: Numbers = [[2, 1, 4, 3, 5]]
SUBLAYER: Numbers = [[-1, 2, 0, 2, 2]]
OTHERS: Numbers = [[3, 3, 0, 1, 2], [6, 1, 2, 5, 4]]
EPS = 1e-5
DIMENSIONS = ["x₁", "x₂", "x₃", "x₄", "x₅"]


def build_blocks(
    x: Numbers,
    sublayer: Numbers,
    others: Numbers,
    gamma: float,
    beta: float,
    eps: float,
    residual: bool,
) -> list[Block]:
    """Return the sum, its normalization by hand and by the model, and batch norm."""
    word = torch.tensor(x, dtype=torch.float64)
    added = torch.tensor(sublayer, dtype=torch.float64)
    add = make_add_and_norm(gamma=gamma, beta=beta, eps=eps, residual=residual)
    total = word + added if residual else added
    with torch.no_grad():
        output = add.post(word, added)
    return [
        *_why_section(),
        *_sum_section(x, sublayer, total, residual=residual),
        *_norm_section(total, output, gamma=gamma, beta=beta, eps=eps),
        *_batch_section(total, others, eps=eps),
    ]


def _why_section() -> list[Block]:
    per_encoder, per_decoder = count_add_and_norm()
    spread = spread_by_depth(has_norm=False)
    kept, lost = (position_differences(residual=way) for way in (True, False))
    return [
        Paragraph(prose("add-and-norm", per_encoder=per_encoder, per_decoder=per_decoder)),
        Paragraph(prose("why-add", kept=kept[-1], lost=lost[-1])),
        position_chart(),
        Paragraph(prose("why-normalize", depth=len(spread) - 1, spread=spread[-1] / spread[0])),
        spread_chart(),
    ]


def make_add_and_norm(
    *, gamma: float = 1.0, beta: float = 0.0, eps: float = EPS, residual: bool = True
) -> AddAndNorm:
    """Return the layer of the model for five numbers."""
    add = AddAndNorm(len(DIMENSIONS), dropout=0.0, norm="post", eps=eps, residual=residual).double()
    with torch.no_grad():
        add.norm.weight.fill_(gamma)
        add.norm.bias.fill_(beta)
    return add


def _sum_section(x: Numbers, sublayer: Numbers, total: Tensor, *, residual: bool) -> list[Block]:
    return [
        Paragraph(prose("by-numbers")),
        Formula("LayerNorm(x + Sublayer(x))" if residual else "LayerNorm(Sublayer(x))"),
        Matrix("x", x),
        Matrix("Sublayer(x)", sublayer),
        Matrix(prose("sum"), total.tolist()) if residual else Note(prose("residual-off")),
    ]


def vector_statistics(total: Tensor, eps: float) -> tuple[float, float, float]:
    """Return mean, variance and √(variance + eps) of one vector, computed by hand."""
    numbers = total[0].tolist()
    mean = sum(numbers) / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return mean, variance, sqrt(variance + eps)


def _norm_section(
    total: Tensor, output: Tensor, *, gamma: float, beta: float, eps: float
) -> list[Block]:
    mean, variance, deviation = vector_statistics(total, eps)
    normalized = [[(number - mean) / deviation for number in total[0].tolist()]]
    by_hand = torch.tensor(normalized, dtype=torch.float64) * gamma + beta
    difference = float((by_hand - output).abs().max())
    new_norm = AddAndNorm(len(DIMENSIONS), dropout=0.0, norm="post", eps=eps).norm
    start = [parameter.detach().mean().item() for parameter in (new_norm.weight, new_norm.bias)]
    return [
        Paragraph(prose("normalization")),
        Formula("(x − mean) / √(var + ε) · γ + β"),
        Table(
            [prose("statistic"), prose("value")],
            [[prose("mean"), mean], [prose("variance"), variance], ["√(var + ε)", deviation]],
            digits=4,
        ),
        Matrix("(x − mean) / √(var + ε)", normalized, digits=4),
        Paragraph(
            prose(
                "gamma-beta", initial_gamma=start[0], initial_beta=start[1], gamma=gamma, beta=beta
            )
        ),
        Matrix(prose("output"), output.tolist(), digits=4),
        Note(prose("by-hand", difference=difference)),
    ]


def normalize_both(rows: Tensor, eps: float) -> tuple[list[float], list[float]]:
    """Return the first word of a batch, normalized by layer norm and by batch norm (training)."""
    layer = nn.LayerNorm(rows.size(1), eps=eps, elementwise_affine=False)
    batch = nn.BatchNorm1d(rows.size(1), eps=eps, affine=False, track_running_stats=False)
    first: tuple[list[float], list[float]] = (layer(rows)[0].tolist(), batch(rows)[0].tolist())
    return first


def norm_table(total: Tensor, other_words: Numbers, eps: float = EPS) -> Table:
    """Return the same word, normalized in three batches."""
    together = torch.cat([total, torch.tensor(other_words, dtype=total.dtype)])
    padded = torch.cat([together, torch.zeros_like(total)])
    batches = (
        (prose("batch-others"), together),
        (prose("batch-padded"), padded),
        (prose("batch-first"), together[:2]),
    )
    rows: Rows = []
    for index, name in enumerate((prose("norm-layer"), prose("norm-batch"))):
        rows += [[name, others, *normalize_both(batch, eps)[index]] for others, batch in batches]
    return Table(
        [prose("norm"), prose("in-batch-with"), *DIMENSIONS], rows, title=prose("three-batches")
    )


def _batch_section(total: Tensor, others: Numbers, *, eps: float) -> list[Block]:
    return [
        Paragraph(prose("batch-norm")),
        norm_table(total, others, eps),
        Paragraph(prose("why-layer-norm")),
    ]


def count_add_and_norm() -> tuple[int, int]:
    """Return how often add and norm occurs in an encoder layer and in a decoder layer."""
    layers = (EncoderLayer(8, 8, 2), DecoderLayer(8, 8, 2))
    encoder, decoder = (
        sum(isinstance(part, AddAndNorm) for part in layer.modules()) for layer in layers
    )
    return encoder, decoder


def _first_output(*, shift: float = 0.0, gamma: float = 1.0, beta: float = 0.0) -> float:
    """Return the first number of the normalized vector of the lesson."""
    word, added = (torch.tensor(rows, dtype=torch.float64) for rows in (X, SUBLAYER))
    with torch.no_grad():
        return float(make_add_and_norm(gamma=gamma, beta=beta).post(word + shift, added)[0, 0])


def _norm_that_depends_on_batch() -> str:
    total = torch.tensor(X, dtype=torch.float64) + torch.tensor(SUBLAYER, dtype=torch.float64)
    here, there = (
        normalize_both(torch.cat([total, torch.tensor([other], dtype=torch.float64)]), EPS)
        for other in OTHERS
    )
    changed = [first != second for first, second in zip(here, there, strict=True)]
    return {(True, False): "layer", (False, True): "batch", (True, True): "both"}.get(
        (changed[0], changed[1]), "none"
    )


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return add and norm of the learner's own model, and the range of γ and β."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    return [
        Paragraph(prose("own-add-and-norm", text=text)),
        _gain_table(model),
        ModelPlot("add_and_norm", prose("own-figure")),
    ]


def _gain_table(model: Transformer) -> Table:
    rows: Rows = []
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, stack).layers, 1):
            norms = [part.norm for part in layer.children() if isinstance(part, AddAndNorm)]
            gains, biases = (
                torch.cat([getattr(norm, kind).detach().float() for norm in norms])
                for kind in ("weight", "bias")
            )
            ends = (float(end) for one in (gains, biases) for end in (one.min(), one.max()))
            rows.append([prose(f"layer-{stack}", number=number), *ends])
    return Table(
        [
            prose("layer"),
            prose("smallest-gamma"),
            prose("largest-gamma"),
            prose("smallest-beta"),
            prose("largest-beta"),
        ],
        rows,
    )


LESSON = Lesson(
    number=8,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.1",
    code=(CodeReference("attendo.model.layers", "AddAndNorm"),),
    inputs=(
        Grid(name="x", label=prose("input-x"), default=X),
        Grid(name="sublayer", label=prose("input-sublayer"), default=SUBLAYER),
        Grid(name="others", label=prose("input-others"), default=OTHERS),
        Number(name="gamma", label=prose("input-gamma"), default=1.0, low=-5.0, high=5.0, step=0.1),
        Number(name="beta", label=prose("input-beta"), default=0.0, low=-5.0, high=5.0, step=0.1),
        Number(name="eps", label=prose("input-eps"), default=EPS, low=1e-9, high=10.0, step=1e-5),
        Switch(name="residual", label=prose("input-residual"), default=True),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            lambda: _first_output(shift=100.0),
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.01,
        ),
        Question(
            prose("question-2"),
            _norm_that_depends_on_batch,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("layer", prose("choice-layer")),
                ("batch", prose("choice-batch")),
                ("both", prose("choice-both")),
                ("none", prose("choice-none")),
            ),
        ),
        Question(
            prose("question-3"),
            lambda: _first_output(gamma=2.0, beta=1.0),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.01,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
