"""Two heads and one head for the same sentence, constructed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.model.attention import MultiHeadAttention

if TYPE_CHECKING:
    from torch import Tensor, nn

SENTENCE = "The animal didn't cross the street because it was too tired"
WORDS = SENTENCE.split()
IT, ANIMAL, TIRED = (WORDS.index(word) for word in ("it", "animal", "tired"))
FEATURES = {"it": 0, "animal": 1, "street": 2, "tired": 3}
"""The words that have a feature, and which of the four numbers is set."""


def sentence_vectors() -> Tensor:
    """Return the words of the example, four numbers each."""
    x = torch.zeros(len(WORDS), len(FEATURES))
    for word, feature in FEATURES.items():
        x[WORDS.index(word), feature] = 1.0
    return x


def attend_sentence(attention: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """Return the output (S, D) and the attention weights (H, S, S) of self-attention."""
    x = sentence_vectors()[None]
    with torch.no_grad():
        output, weights = attention(x, x, x, need_weights=True)
    return output[0], weights[0]


def make_two_heads(sharpness: float) -> MultiHeadAttention:
    """Return two heads of size 2: for "it", one looks for an animal, the other for a state."""
    attention = MultiHeadAttention(4, 2, bias=False)
    ask, rest = [sharpness, 0.0, 0.0, 0.0], [0.0] * 4
    pronoun, animal, location, state = torch.eye(4).tolist()
    _set(attention.query, [ask, rest, ask, rest])
    _set(attention.key, [animal, rest, state, rest])
    _set(attention.value, [animal, location, state, pronoun])
    # W_O returns the numbers of the heads to the dimensions they came from.
    _set(attention.output, torch.tensor([animal, location, state, pronoun]).T.tolist())
    return attention


def make_one_head(sharpness: float) -> MultiHeadAttention:
    """Return one head of size 4 that looks for both."""
    attention = MultiHeadAttention(4, 1, bias=False)
    ask, rest = [sharpness, 0.0, 0.0, 0.0], [0.0] * 4
    _, animal, _, state = torch.eye(4).tolist()
    _set(attention.query, [ask, ask, rest, rest])
    _set(attention.key, [animal, state, rest, rest])
    for linear in (attention.value, attention.output):
        _set(linear, torch.eye(4).tolist())
    return attention


def _set(linear: nn.Linear, rows: list[list[float]]) -> None:
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(rows))
