"""Lesson 17: learning; gradient descent, Adam, dropout, held-out data, early stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

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
from attendo.lessons.chapters.ch17_learning.checkpoints import run_blocks
from attendo.lessons.chapters.ch17_learning.optimization import (
    INPUT,
    NUM_STEPS,
    TARGET,
    descend,
    update_by_adam,
)
from attendo.lessons.chapters.ch17_learning.overfitting import (
    DROPOUT,
    NUM_HELD_OUT,
    STEPS,
    find_best,
    loss_chart,
    split_combinations,
    to_sentences,
    train_on_few,
)
from attendo.lessons.inputs import Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number
from attendo.model.config import TransformerConfig
from attendo.model.transformer import Transformer
from attendo.training.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.lessons.chapters.ch17_learning.optimization import AdamStep
    from attendo.translator import Translator

    Row = list[Label | float | int | None]

prose = Prose("attendo.lessons.chapters.ch17_learning")

WEIGHT, RATE = 0.0, 0.1
SLOW, TOO_FAST = 0.01, 0.52
GRADIENTS = [[0.2, 0.1, 0.4, -0.1]]
ADAM_RATE = 0.001
PAPER = TrainConfig()
P_DROP = 0.5
ACTIVATIONS = (1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, 1.5)
NUM_DRAWS, NUM_MEAN = 3, 1000
NUM_PAIRS, MANY_PAIRS = 12, 48
SEED = 5
POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def build_blocks(
    weight: float,
    rate: float,
    gradients: list[list[float]],
    beta_1: float,
    beta_2: float,
    dropout: float,
    pairs: int,
) -> list[Block]:
    """Return gradient descent, Adam, dropout, and training with held-out data."""
    return [
        *_descent_section(weight, rate),
        *_adam_section(gradients[0], beta_1, beta_2),
        *_dropout_section(dropout),
        *_held_out_section(pairs),
    ]


def _descent_section(weight: float, rate: float) -> list[Block]:
    steps = descend(weight, rate)
    first = steps[0]
    return [
        Paragraph(prose("why")),
        Paragraph(prose("one-weight", x=INPUT, target=TARGET, best=TARGET / INPUT)),
        Formula("y = w · x     L = ½ (y − t)²     dL/dw = (dL/dy) · (dy/dw) = (y − t) · x"),
        Paragraph(prose("one-step", weight=first.weight, rate=rate, gradient=first.gradient)),
        Formula(
            f"w ← w − η · (dL/dw) = {format_number(first.weight, 3)} − {rate:g} · "
            f"({format_number(first.gradient, 3)}) = {format_number(first.new_weight, 4)}"
        ),
        Table(
            [prose("step"), "w", "y = w · x", "y − t", "L", "dL/dw", prose("new-weight")],
            [[number, *step] for number, step in enumerate(steps, 1)],
            digits=4,
        ),
        rate_chart(weight, rate),
        Paragraph(prose("rates", slow=SLOW, fast=TOO_FAST)),
        Note(prose("many-weights")),
    ]


def rate_chart(weight: float, rate: float) -> Chart:
    """Plot the loss over the steps for a low learning rate, the chosen one, and a high one."""
    rates = list(dict.fromkeys((SLOW, rate, TOO_FAST)))
    return Chart(
        "lines",
        prose("loss-by-rate"),
        [float(step) for step in range(NUM_STEPS)],
        [Series(f"η = {one:g}", [step.loss for step in descend(weight, one)]) for one in rates],
        x_label=prose("step"),
        y_label="L",
    )


def _adam_section(gradients: Sequence[float], beta_1: float, beta_2: float) -> list[Block]:
    steps = list(
        update_by_adam(
            gradients, rate=ADAM_RATE, beta_1=beta_1, beta_2=beta_2, epsilon=PAPER.epsilon
        )
    )
    return [
        Paragraph(prose("adam", beta_1=PAPER.beta_1, beta_2=PAPER.beta_2, epsilon=PAPER.epsilon)),
        Formula("m ← β₁ · m + (1 − β₁) · g     v ← β₂ · v + (1 − β₂) · g²"),
        Paragraph(prose("bias-correction", beta_1=beta_1, share=1 - beta_1)),
        Formula("m̂ = m / (1 − β₁ᵗ)     v̂ = v / (1 − β₂ᵗ)     w ← w − η · m̂ / (√v̂ + ε)"),
        Paragraph(prose("adam-by-hand", rate=ADAM_RATE)),
        adam_steps(steps, beta_1, beta_2),
        Table(
            [prose("step"), "g", "m", "v", "m̂", "v̂", "w"],
            [[number, *step] for number, step in enumerate(steps, 1)],
            digits=6,
        ),
        Note(prose("first-step", rate=ADAM_RATE)),
        Paragraph(prose("why-adam")),
    ]


def adam_steps(steps: Sequence[AdamStep], beta_1: float, beta_2: float) -> Steps:
    """Return every update with its numbers, as one would write it by hand."""
    frames = []
    first = second = weight = "0"
    for index, step in enumerate(steps, 1):
        g, m, v, m_hat, v_hat, w = (f"{number:.4g}" for number in step)
        lines = (
            f"m = {beta_1:g} · {_operand(first)} + {1 - beta_1:g} · {_operand(g)} = {m}",
            f"v = {beta_2:g} · {second} + {1 - beta_2:g} · {_operand(g)}² = {v}",
            f"m̂ = {m} / (1 − {beta_1:g}{POWERS[index]}) = {m_hat}",
            f"v̂ = {v} / (1 − {beta_2:g}{POWERS[index]}) = {v_hat}",
            f"w = {weight} − {ADAM_RATE:g} · {_operand(m_hat)} / (√{v_hat} + ε) = {w}",
        )
        frames.append(
            Frame(
                prose("update", number=index, gradient=step.gradient),
                [Formula(one) for one in lines],
            )
        )
        first, second, weight = m, v, w
    return Steps(prose("adam-steps"), frames)


def _operand(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _dropout_section(p: float) -> list[Block]:
    values = drop(p)
    names = ["x", *(f"train {index}" for index in range(1, NUM_DRAWS + 1)), "mean", "eval"]
    dropped = int((values[1] == 0).sum())
    return [
        Paragraph(prose("dropout", p=p)),
        Formula("y = x · mask / (1 − p)     P(mask = 0) = p"),
        Matrix(prose("dropout-rows"), values.tolist(), rows=names, digits=2, shade=True),
        Paragraph(
            prose(
                "dropout-scale",
                scale=1 / (1 - p),
                dropped=dropped,
                size=len(ACTIVATIONS),
                draws=NUM_MEAN,
            )
        ),
        Note(prose("dropout-sublayers", p=TransformerConfig(vocab_size=8).dropout)),
    ]


def drop(p: float) -> Tensor:
    """Return a vector, several draws of its dropout, their mean, and the vector in evaluation."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        dropout, x = torch.nn.Dropout(p), torch.tensor(ACTIVATIONS)
        dropout.train()
        drawn = [dropout(x) for _ in range(NUM_DRAWS)]
        mean = dropout(x.expand(NUM_MEAN, -1)).mean(dim=0)
        dropout.eval()
        return torch.stack([x, *drawn, mean, dropout(x)]) + 0.0  # no -0


def _held_out_section(pairs: int) -> list[Block]:
    history = train_on_few(pairs)
    best, last = find_best(history), history[-1]
    compared = (
        (prose("num-pairs", pairs=pairs), history),
        (prose("with-dropout", pairs=pairs, p=DROPOUT), train_on_few(pairs, dropout=DROPOUT)),
        (prose("num-pairs", pairs=MANY_PAIRS), train_on_few(MANY_PAIRS)),
    )
    rows: list[Row] = [
        [
            label,
            find_best(one).step,
            find_best(one).held_out_loss,
            one[-1].held_out_loss,
            find_best(one).num_right,
            one[-1].num_right,
        ]
        for label, one in compared
    ]
    src, tgt = to_sentences(split_combinations(pairs)[1][0])
    return [
        Paragraph(
            prose("held-out", src=src, tgt=tgt, pairs=pairs, count=NUM_HELD_OUT, steps=STEPS)
        ),
        loss_chart(pairs),
        Paragraph(
            prose(
                "overfitting",
                train=last.train_loss,
                best=best.held_out_loss,
                step=best.step,
                last=last.held_out_loss,
                steps=STEPS,
            )
        ),
        Paragraph(prose("early-stopping")),
        Table(
            [
                prose("trained-on"),
                prose("best-step"),
                prose("held-out-at-best"),
                prose("held-out-at-end"),
                prose("right-at-best", count=NUM_HELD_OUT),
                prose("right-at-end"),
            ],
            rows,
        ),
        Paragraph(
            prose(
                "what-helps",
                many=MANY_PAIRS,
                right=rows[-1][-1],
                count=NUM_HELD_OUT,
                plain=rows[0][2],
                dropped=rows[1][2],
            )
        ),
    ]


@torch.no_grad()
def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return what Adam keeps for the learner's own model, and its backward pass."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    count = sum(weight.numel() for weight in model.parameters())
    return [
        Paragraph(prose("own-adam", count=count, moments=2 * count, p=model.config.dropout)),
        ModelPlot("gradients", prose("own-figure")),
    ]


def _first_adam_step() -> float:
    (step,) = update_by_adam(
        [250.0], rate=0.001, beta_1=PAPER.beta_1, beta_2=PAPER.beta_2, epsilon=PAPER.epsilon
    )
    return abs(step.weight)


def _kept_activation() -> float:
    with torch.random.fork_rng(devices=[]):
        return float(torch.nn.Dropout(0.2)(torch.full((100,), 4.0)).max())


def _best_weights() -> str:
    history = train_on_few(NUM_PAIRS)
    candidates = {
        "training": min(history, key=lambda one: one.train_loss),
        "held-out": find_best(history),
        "last": history[-1],
    }
    return min(candidates, key=lambda name: candidates[name].held_out_loss)


LESSON = Lesson(
    number=17,
    title=prose("title"),
    summary=prose("summary"),
    paper="5.3, 5.4",
    code=(
        CodeReference("attendo.training.train_step", "forward_backward"),
        CodeReference("attendo.training.optimizer", "make_optimizer"),
        CodeReference("attendo.training.early_stopping", "EarlyStopping"),
    ),
    inputs=(
        Number(
            name="weight", label=prose("input-weight"), default=WEIGHT, low=-5, high=10, step=0.5
        ),
        Number(name="rate", label=prose("input-rate"), default=RATE, low=0.01, high=0.6, step=0.01),
        Grid(
            name="gradients",
            label=prose("input-gradients"),
            default=GRADIENTS,
            low=-1000,
            high=1000,
        ),
        Number(
            name="beta_1",
            label=prose("input-beta-1"),
            default=PAPER.beta_1,
            low=0.0,
            high=0.99,
            step=0.01,
        ),
        Number(
            name="beta_2",
            label=prose("input-beta-2"),
            default=PAPER.beta_2,
            low=0.0,
            high=0.999,
            step=0.001,
        ),
        Number(
            name="dropout",
            label=prose("input-dropout"),
            default=P_DROP,
            low=0.0,
            high=0.9,
            step=0.05,
        ),
        Number(name="pairs", label=prose("input-pairs"), default=NUM_PAIRS, low=6, high=96, step=6),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _first_adam_step,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=1e-6,
        ),
        Question(
            prose("question-2"),
            _kept_activation,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.001,
        ),
        Question(
            prose("question-3"),
            _best_weights,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("training", prose("choice-training")),
                ("held-out", prose("choice-held-out")),
                ("last", prose("choice-last")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
    run_blocks=run_blocks,
)
