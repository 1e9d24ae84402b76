"""Lesson 10: the position-wise feed-forward network, the same at every position."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the usual PyTorch name

from attendo.inspection.activations import capture_sublayer
from attendo.inspection.capture import capture
from attendo.inspection.teacher_forcing import teacher_force
from attendo.lessons.blocks import (
    Block,
    Formula,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Product,
    Table,
)
from attendo.lessons.inputs import Choice, Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.attention import MultiHeadAttention
from attendo.model.feed_forward import FeedForward
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Numbers = list[list[float]]
    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch10_feed_forward")

X: Numbers = [[1, 2], [2, -1], [0, 1]]
W_1: Numbers = [[1, -1, 0, 2], [0, 1, -1, 1]]
B_1: Numbers = [[0, 0, 1, -2]]
W_2: Numbers = [[1, 0], [0, 1], [1, 1], [-1, 0]]
B_2: Numbers = [[0, 1]]
ORDERS = {"123": [0, 1, 2], "321": [2, 1, 0], "231": [1, 2, 0]}
WORDS = ["x₁", "x₂", "x₃"]
NUM_WORDS = 64
"""The number of random words over which zeros are counted."""


def build_blocks(
    x: Numbers,
    w_1: Numbers,
    b_1: Numbers,
    w_2: Numbers,
    b_2: Numbers,
    order: str,
    d_model: int,
    d_ff: int,
) -> list[Block]:
    """Return the two layers by hand, the effect of reordering, the sizes and the zeros."""
    network = make_network(w_1, b_1, w_2, b_2)
    weights = {"W₁": w_1, "b₁": b_1, "W₂": w_2, "b₂": b_2}
    return [
        *_inputs_section(weights),
        *_steps_section(network, x, weights),
        *_order_section(network, torch.tensor(x, dtype=torch.float64), ORDERS[order]),
        *_size_section(d_model, d_ff),
        *_layers_section(d_model, d_ff),
    ]


def make_network(w_1: Numbers, b_1: Numbers, w_2: Numbers, b_2: Numbers) -> FeedForward:
    """Return the network of the model with the given weights."""
    network = FeedForward(len(w_1), len(w_2)).double()
    with torch.no_grad():
        network.inner.weight.copy_(torch.tensor(w_1).T)
        network.inner.bias.copy_(torch.tensor(b_1[0]))
        network.outer.weight.copy_(torch.tensor(w_2).T)
        network.outer.bias.copy_(torch.tensor(b_2[0]))
    return network


def _inputs_section(weights: dict[str, Numbers]) -> list[Block]:
    return [
        Paragraph(prose("network")),
        Formula("FFN(x) = max(0, x · W₁ + b₁) · W₂ + b₂"),
        Paragraph(prose("weights")),
        *(Matrix(name, values) for name, values in weights.items()),
    ]


@torch.no_grad()
def _steps_section(network: FeedForward, rows: Numbers, weights: dict[str, Numbers]) -> list[Block]:
    x = torch.tensor(rows, dtype=torch.float64)
    inner = network.inner(x)
    hidden = network.activation(inner)
    zeros = int((hidden == 0).sum())
    wider = Product(rows, weights["W₁"], weights["b₁"][0])
    narrower = Product(hidden.tolist(), weights["W₂"], weights["b₂"][0])
    return [
        Matrix("x", rows, rows=WORDS),
        Matrix("x · W₁ + b₁", inner.tolist(), rows=WORDS, product=wider),
        Matrix("max(0, x · W₁ + b₁)", hidden.tolist(), rows=WORDS, shade=True),
        Paragraph(prose("relu", zeros=zeros, total=hidden.numel())),
        Matrix("FFN(x)", network(x).tolist(), rows=WORDS, product=narrower),
    ]


@torch.no_grad()
def _order_section(network: FeedForward, x: Tensor, order: list[int]) -> list[Block]:
    names = [WORDS[index] for index in order]
    reordered = network(x[order])
    difference = float((reordered - network(x)[order]).abs().max())
    attention = make_attention(x.size(1))
    rows: Rows = [
        [word, *changes]
        for word, *changes in zip(
            WORDS, output_changes(network, x), output_changes(attention, x), strict=True
        )
    ]
    return [
        Paragraph(prose("position-wise", names=", ".join(names), difference=difference)),
        Matrix(prose("reordered-output"), reordered.tolist(), rows=names),
        Paragraph(prose("no-exchange")),
        Table([prose("change-of-x2"), prose("feed-forward"), prose("self-attention")], rows),
        Note(prose("convolutions", difference=convolution_difference(network, x))),
    ]


def make_attention(d_model: int) -> Callable[[Tensor], Tensor]:
    """Return a self-attention with fixed random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        attention = MultiHeadAttention(d_model, 1).double()
    return lambda x: attention(x[None], x[None], x[None])[0][0]


@torch.no_grad()
def output_changes(layer: Callable[[Tensor], Tensor], x: Tensor) -> list[float]:
    """Return how far each output moves when 1 is added to the second word."""
    changed = x.clone()
    changed[1] += 1.0
    changes: list[float] = (layer(changed) - layer(x)).abs().amax(-1).tolist()
    return changes


@torch.no_grad()
def convolution_difference(network: FeedForward, x: Tensor) -> float:
    """Return the largest difference to two convolutions of width 1."""
    channels = x.T[None]  # (1, D, T)
    inner, outer = network.inner, network.outer
    hidden = network.activation(F.conv1d(channels, inner.weight[:, :, None], inner.bias))
    channels = F.conv1d(hidden, outer.weight[:, :, None], outer.bias)
    return float((channels[0].T - network(x)).abs().max())


def count_parameters(d_model: int, d_ff: int) -> int:
    """Return the number of weights and biases of one network."""
    with torch.device("meta"):  # shapes only, no memory
        network = FeedForward(d_model, d_ff)
    return sum(weight.numel() for weight in network.parameters())


def zero_fraction(d_model: int, d_ff: int) -> float:
    """Return the fraction of zeros after the ReLU of a new network, over random words."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        network = FeedForward(d_model, d_ff)
        hidden = network.activation(network.inner(torch.randn(NUM_WORDS, d_model)))
    return float((hidden == 0).float().mean())


def _size_section(d_model: int, d_ff: int) -> list[Block]:
    with torch.device("meta"):
        attention = MultiHeadAttention(d_model, 1)
    attention_parameters = sum(weight.numel() for weight in attention.parameters())
    own, zeros = count_parameters(d_model, d_ff), zero_fraction(d_model, d_ff)
    rows: Rows = [
        ["W₁", f"{d_model} × {d_ff}", d_model * d_ff],
        ["b₁", f"{d_ff}", d_ff],
        ["W₂", f"{d_ff} × {d_model}", d_ff * d_model],
        ["b₂", f"{d_model}", d_model],
        [prose("total"), f"{d_model} → {d_ff} → {d_model}", own],
        [prose("attention-parameters"), f"4 · {d_model} × {d_model}", attention_parameters],
    ]
    return [
        Paragraph(
            prose(
                "size",
                d_model=d_model,
                d_ff=d_ff,
                num_parameters=own,
                fraction=own / (own + attention_parameters),
            )
        ),
        Table([prose("part"), prose("shape"), prose("parameters")], rows),
        Paragraph(prose("inactive-units", zeros=zeros, d_ff=d_ff, num_words=NUM_WORDS)),
    ]


def list_networks(model: Transformer) -> list[FeedForward]:
    """Return every feed-forward network of a model."""
    return [part for part in model.modules() if isinstance(part, FeedForward)]


def make_deep_model() -> Transformer:
    """Return a model as deep as the base model of the paper, but narrow."""
    with torch.random.fork_rng(devices=[]):
        return Transformer(vocab_size=9, d_model=8, d_ff=16, num_heads=1)


def count_distinct(networks: list[FeedForward]) -> int:
    """Return the number of networks that have their own weights."""
    return len({network.inner.weight.data_ptr() for network in networks})


def _layers_section(d_model: int, d_ff: int) -> list[Block]:
    networks = list_networks(make_deep_model())
    total = len(networks) * count_parameters(d_model, d_ff)
    return [
        Paragraph(
            prose(
                "layers",
                num_networks=len(networks),
                num_distinct=count_distinct(networks),
                total=total,
            )
        )
    ]


@torch.no_grad()
def _effect_of_swap() -> str:
    """Return what swapping the first and the third word does to the outputs."""
    network, x = make_network(W_1, B_1, W_2, B_2), torch.tensor(X, dtype=torch.float64)
    before, after = network(x), network(x[ORDERS["321"]])
    if torch.equal(after, before):
        return "none"
    return "exchanged" if torch.equal(after, before[ORDERS["321"]]) else "all"


@torch.no_grad()
def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the fraction of inactive units in every layer of the learner's own model."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
    capture_layer = partial(capture_sublayer, model, teacher_force(translator, record))
    rows: Rows = []
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, stack).layers):
            with translator.backend.eval_mode():
                activations = capture_layer(f"{stack}_feed_forward", number)
            network: FeedForward = layer.feed_forward
            x = torch.tensor(activations.normed if activations.is_pre_norm else activations.x)
            hidden = network.inner(x.to(network.inner.weight))
            rows.append(
                [prose(f"layer-{stack}", number=number + 1), float((hidden <= 0).float().mean())]
            )
    size = (model.config.d_model, model.config.d_ff)
    return [
        Paragraph(prose("own-zeros", d_model=size[0], d_ff=size[1], text=text)),
        Table([prose("layer"), prose("inactive")], rows),
        ModelPlot("stack", prose("own-stack")),
    ]


LESSON = Lesson(
    number=10,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.3",
    code=(CodeReference("attendo.model.feed_forward", "FeedForward"),),
    inputs=(
        Grid(name="x", label=prose("input-x"), default=X),
        Grid(name="w_1", label=prose("input-w-1"), default=W_1),
        Grid(name="b_1", label=prose("input-b-1"), default=B_1),
        Grid(name="w_2", label=prose("input-w-2"), default=W_2),
        Grid(name="b_2", label=prose("input-b-2"), default=B_2),
        Choice(
            name="order",
            label=prose("input-order"),
            default="321",
            choices=tuple(
                (key, ", ".join(WORDS[index] for index in order)) for key, order in ORDERS.items()
            ),
        ),
        Number(name="d_model", label=prose("input-d-model"), default=512, low=8, high=1024),
        Number(name="d_ff", label=prose("input-d-ff"), default=2048, low=8, high=4096),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            lambda: float(count_parameters(256, 1024)),
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _effect_of_swap,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("none", prose("choice-none")),
                ("exchanged", prose("choice-exchanged")),
                ("all", prose("choice-all")),
            ),
        ),
        Question(
            prose("question-3"),
            lambda: float(count_distinct(list_networks(make_deep_model()))),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
