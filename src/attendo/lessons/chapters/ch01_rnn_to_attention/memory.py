"""Additive attention by hand, and how a recurrent state forgets, computed by the RNN layers.

BLEU by sentence length took hours of training, so it is read from `architectures.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the usual PyTorch name

from attendo.architectures.rnn_attention_scores import AdditiveScore, attention_weights
from attendo.architectures.rnn_layers import (
    CellState,
    RecurrentLayer,
    reverse_sequences,
    sequence_lengths,
)
from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.architectures.config import Cell
    from attendo.architectures.rnn_seq2seq import RnnSeq2Seq

    Rows = list[list[float]]

prose = Prose("attendo.lessons.chapters.ch01_rnn_to_attention")

PREVIOUS_WORDS = {"<s>": [0.0, 0.0], "I": [1.0, 0.0], "am": [0.0, 1.0]}
"""The previous word of each of three steps, and its vector y."""
LENGTH = 20
WIDTH = 16
SEED = 1
NAMES = {
    "rnn-seq2seq": prose("rnn-one-vector"),
    "rnn-attention": prose("rnn-with-attention"),
    "transformer": prose("transformer"),
}


class Step(NamedTuple):
    """One word of the decoder."""

    scores: Tensor  # (S,), e
    weights: Tensor  # (S,), alpha
    context: Tensor  # (D,), c
    state: Tensor  # (E,), s


class WordInfluence(NamedTuple):
    """How strongly each word of a sentence influences the result, first word first."""

    last_state: list[float]
    context: list[float]


def run_decoder(
    annotations: Rows, state: Rows, w: Rows, u: Rows, v: Rows, keep: float
) -> list[Step]:
    """Run three steps of a decoder with additive attention."""
    score, advance = make_score(w, u, v), make_cell(keep)
    values, hidden = torch.tensor([annotations]).float(), torch.tensor(state).float()
    all_visible = torch.ones(1, 1, len(annotations), dtype=torch.bool)
    steps = []
    with torch.no_grad():
        for previous in PREVIOUS_WORDS.values():
            scores = score(hidden[:, None], score.project_keys(values))  # (1, 1, S)
            weights = attention_weights(scores, all_visible)
            context = weights @ values  # (1, 1, D)
            step_input = torch.cat((torch.tensor([[previous]]), context), dim=-1)
            hidden = advance(step_input, CellState(hidden, None))[1].hidden
            steps.append(Step(scores[0, 0], weights[0, 0], context[0, 0], hidden[0]))
    return steps


@torch.no_grad()
def make_score(w: Rows, u: Rows, v: Rows) -> AdditiveScore:
    """Return the score e = v · tanh(W s + U h) with the given matrices."""
    with torch.random.fork_rng(devices=[]):
        score = AdditiveScore(len(w[0]), len(u[0]), len(w))
    for linear, matrix in ((score.query, w), (score.key, u), (score.energy, v)):
        linear.weight.copy_(torch.tensor(matrix))
    return score


@torch.no_grad()
def make_cell(keep: float) -> RecurrentLayer:
    """Return a GRU simple enough to compute by hand: s' = keep · s + (1 − keep) · tanh(y + c)."""
    with torch.random.fork_rng(devices=[]):
        cell = RecurrentLayer("gru", 4, 2)
    for weight in cell.parameters():
        weight.zero_()
    cell.rnn.get_parameter("bias_ih_l0")[2:4] = log(keep / (1.0 - keep))  # the update gate
    cell.rnn.get_parameter("weight_ih_l0")[4:] = torch.eye(2).repeat(1, 2)  # y + c
    return cell


@cache
def word_influence(cell: Cell = "lstm", length: int = LENGTH) -> WordInfluence:
    """Return the gradient norms of the last state and of an attention context at every word."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        reader = RecurrentLayer(cell, WIDTH, WIDTH)
        score = AdditiveScore(WIDTH, WIDTH, WIDTH)
        words = F.normalize(torch.randn(1, length, WIDTH), dim=-1)
    # The batch has one row per number of the state, so that one pass gives all gradients.
    x = words.repeat(WIDTH, 1, 1).requires_grad_()
    states, last = reader(x)  # (E, n, E)
    query = last.hidden.detach()[:, None]
    all_visible = torch.ones(WIDTH, 1, length, dtype=torch.bool)
    context = (
        attention_weights(score(query, score.project_keys(states)), all_visible) @ states
    ).squeeze(1)
    return WordInfluence(*(gradient_norms(output, x) for output in (last.hidden, context)))


def gradient_norms(output: Tensor, x: Tensor) -> list[float]:
    """Return the gradient norm of a vector at each position; row i of `output` is for number i."""
    diagonal = (output * torch.eye(len(output), device=output.device)).sum()
    (gradient,) = torch.autograd.grad(diagonal, x, retain_graph=True)
    norms: list[float] = gradient.pow(2).sum(dim=(0, 2)).sqrt().tolist()
    return norms


@cache
def load_measurements() -> dict[str, Any]:
    """Return what was measured once: BLEU by sentence length, the command and the hardware."""
    text = (files(prose.package) / "architectures.json").read_text(encoding="utf-8")
    measurements: dict[str, Any] = json.loads(text)
    return measurements


def bleu_chart() -> Chart:
    """Return the measured BLEU of three architectures by sentence length."""
    measurements = load_measurements()
    return Chart(
        "bars",
        prose("bleu-by-length"),
        x=list(measurements["lengths"]),
        series=[Series(NAMES[kind], list(values)) for kind, values in measurements["bleu"].items()],
        x_label=prose("source-words"),
        y_label="BLEU",
    )


def influence_chart(cell: Cell = "lstm", length: int = LENGTH) -> Chart:
    """Plot how strongly each word influences the last state and an attention context."""
    influence = word_influence(cell, length)
    return Chart(
        "lines",
        prose("influence"),
        x=[float(position) for position in range(1, length + 1)],
        series=[
            Series(prose("influence-on-state"), list(influence.last_state)),
            Series(prose("influence-on-context"), list(influence.context)),
        ],
        x_label=prose("word-position"),
        y_label=prose("gradient-norm"),
        log_y=True,
    )


def source_gradient_norms(model: RnnSeq2Seq, ids: Tensor) -> list[float]:
    """Return the gradient norm of a model's context vector at every source token."""
    lengths = sequence_lengths(torch.ones_like(ids, dtype=torch.bool)[:, None])
    is_reversed = model.config.reverse_source
    with torch.inference_mode(False), torch.enable_grad():
        embedded = model.src_embedding(ids).detach()
        x = embedded.repeat(model.config.state_size, 1, 1).requires_grad_()
        _, layers = model.encoder(
            reverse_sequences(x, lengths.expand(len(x))) if is_reversed else x
        )
        return gradient_norms(layers[-1].hidden, x)
