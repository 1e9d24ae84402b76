"""The numbers and charts of lesson 1: additive attention by hand, and how a recurrent state forgets.

Computed by the baselines' own layers. BLEU by sentence length is another matter: it took hours of
training and is read from `data` as it was measured.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.architectures.rnn_attention_scores import AdditiveScore, attention_weights
from attendo.architectures.rnn_layers import (
    CellState,
    RecurrentLayer,
    reverse_sequences,
    sequence_lengths,
)
from attendo.lessons.blocks import Chart, LocalizedText, Series

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.architectures.rnn_layers import Cell
    from attendo.architectures.rnn_seq2seq import RnnSeq2Seq

    Rows = list[list[float]]

SAID = {"<s>": [0.0, 0.0], "I": [1.0, 0.0], "am": [0.0, 1.0]}
"""What was said before each of three steps, and its vector y."""
LENGTH = 20
WIDTH = 16
SEED = 1
NAMES = {
    "rnn-seq2seq": LocalizedText("RNN, one vector", "RNN, 벡터 하나"),
    "rnn-attention": LocalizedText("RNN with attention", "RNN + 어텐션"),
    "transformer": LocalizedText("Transformer", "트랜스포머"),
}


class Step(NamedTuple):
    """One word of the decoder."""

    scores: Tensor  # (S,), e
    weights: Tensor  # (S,), alpha
    context: Tensor  # (D,), c
    state: Tensor  # (E,), s


class Memories(NamedTuple):
    """How strongly each word of a sentence still acts, first word first."""

    last_state: list[float]
    context: list[float]


def decode(annotations: Rows, state: Rows, w: Rows, u: Rows, v: Rows, keep: float) -> list[Step]:
    """Take three steps of a decoder with additive attention."""
    score, advance = make_score(w, u, v), make_cell(keep)
    values, hidden = torch.tensor([annotations]).float(), torch.tensor(state).float()
    everything = torch.ones(1, 1, len(annotations), dtype=torch.bool)
    steps = []
    with torch.no_grad():
        for said in SAID.values():
            scores = score(hidden[:, None], score.project_keys(values))  # (1, 1, S)
            weights = attention_weights(scores, everything)
            context = weights @ values  # (1, 1, D)
            read = torch.cat((torch.tensor([[said]]), context), dim=-1)
            hidden = advance(read, CellState(hidden, None))[1].hidden
            steps.append(Step(scores[0, 0], weights[0, 0], context[0, 0], hidden[0]))
    return steps


@torch.no_grad()
def make_score(w: Rows, u: Rows, v: Rows) -> AdditiveScore:
    """Make the score e = v · tanh(W s + U h) of given matrices."""
    with torch.random.fork_rng(devices=[]):
        score = AdditiveScore(len(w[0]), len(u[0]), len(w))
    for linear, matrix in ((score.query, w), (score.key, u), (score.energy, v)):
        linear.weight.copy_(torch.tensor(matrix))
    return score


@torch.no_grad()
def make_cell(keep: float) -> RecurrentLayer:
    """Make a GRU small enough for a pencil: s' = keep · s + (1 − keep) · tanh(y + c)."""
    with torch.random.fork_rng(devices=[]):
        cell = RecurrentLayer("gru", 4, 2)
    for weight in cell.parameters():
        weight.zero_()
    cell.rnn.get_parameter("bias_ih_l0")[2:4] = log(keep / (1.0 - keep))  # the update gate
    cell.rnn.get_parameter("weight_ih_l0")[4:] = torch.eye(2).repeat(1, 2)  # y + c
    return cell


@cache
def measure_memories(cell: Cell = "lstm", length: int = LENGTH) -> Memories:
    """Give the size of the gradient at every word, of the last state and of an attended context."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        reader = RecurrentLayer(cell, WIDTH, WIDTH)
        score = AdditiveScore(WIDTH, WIDTH, WIDTH)
        words = F.normalize(torch.randn(1, length, WIDTH), dim=-1)
    # One row of the batch for every number of the state, so that one pass gives all gradients.
    x = words.repeat(WIDTH, 1, 1).requires_grad_()
    states, last = reader(x)  # (E, n, E)
    query = last.hidden.detach()[:, None]
    everything = torch.ones(WIDTH, 1, length, dtype=torch.bool)
    context = (
        attention_weights(score(query, score.project_keys(states)), everything) @ states
    ).squeeze(1)
    return Memories(*(size_gradients(made, x) for made in (last.hidden, context)))


def size_gradients(made: Tensor, x: Tensor) -> list[float]:
    """Give the length of the gradient of a vector at each position; row i of `made` tells of i."""
    diagonal = (made * torch.eye(len(made), device=made.device)).sum()
    (arrived,) = torch.autograd.grad(diagonal, x, retain_graph=True)
    sizes: list[float] = arrived.pow(2).sum(dim=(0, 2)).sqrt().tolist()
    return sizes


@cache
def load_findings() -> dict[str, Any]:
    """Read what was measured once: BLEU by sentence length, the command and the machine."""
    text = (files("attendo.lessons") / "data" / "architectures.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def bleu_by_length() -> Chart:
    """Draw the BLEU of three architectures over the length of the sentence, as measured."""
    found = load_findings()
    return Chart(
        "bars",
        LocalizedText("BLEU by sentence length (measured)", "문장 길이에 따른 BLEU (측정값)"),
        x=list(found["lengths"]),
        series=[Series(NAMES[kind], list(values)) for kind, values in found["bleu"].items()],
        x_label=LocalizedText("words of the source", "원문의 단어 수"),
        y_label="BLEU",
    )


def memory_curve(cell: Cell = "lstm", length: int = LENGTH) -> Chart:
    """Draw how strongly each word acts upon the last state, and upon an attended context."""
    found = measure_memories(cell, length)
    return Chart(
        "lines",
        LocalizedText("how strongly each word still acts", "각 단어가 아직 미치는 영향"),
        x=[float(place) for place in range(1, length + 1)],
        series=[
            Series(LocalizedText("on the last state", "마지막 상태에"), list(found.last_state)),
            Series(
                LocalizedText("on the context of attention", "어텐션의 문맥에"), list(found.context)
            ),
        ],
        x_label=LocalizedText("place of the word", "단어의 자리"),
        y_label=LocalizedText("size of the gradient", "기울기의 크기"),
        log_y=True,
    )


def measure_reading(model: RnnSeq2Seq, ids: Tensor) -> list[float]:
    """Give the size of the gradient of a model's one vector at every source token."""
    lengths = sequence_lengths(torch.ones_like(ids, dtype=torch.bool)[:, None])
    is_reversed = model.config.reverse_source
    with torch.inference_mode(False), torch.enable_grad():
        embedded = model.src_embedding(ids).detach()
        x = embedded.repeat(model.config.state_size, 1, 1).requires_grad_()
        _, layers = model.encoder(
            reverse_sequences(x, lengths.expand(len(x))) if is_reversed else x
        )
        return size_gradients(layers[-1].hidden, x)
