"""The heads of lesson 6: two questions about one sentence, constructed by hand."""

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
"""What the example's words are told apart by, and which of the four numbers says so."""


def read_sentence() -> Tensor:
    """Give the words of the example, four numbers each."""
    x = torch.zeros(len(WORDS), len(FEATURES))
    for word, feature in FEATURES.items():
        x[WORDS.index(word), feature] = 1.0
    return x


def look(attention: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """Let the sentence look at itself: output (S, D) and shares (H, S, S)."""
    x = read_sentence()[None]
    with torch.no_grad():
        output, weights = attention(x, x, x, need_weights=True)
    return output[0], weights[0]


def make_two_heads(sharpness: float) -> MultiHeadAttention:
    """Build two heads of size 2: "it" asks for a being in one, for a state in the other."""
    attention = MultiHeadAttention(4, 2, bias=False)
    ask, rest = [sharpness, 0.0, 0.0, 0.0], [0.0] * 4
    pronoun, being, place, state = torch.eye(4).tolist()
    _set(attention.query, [ask, rest, ask, rest])
    _set(attention.key, [being, rest, state, rest])
    _set(attention.value, [being, place, state, pronoun])
    # W_O puts the heads' numbers back where the words keep theirs.
    _set(attention.output, torch.tensor([being, place, state, pronoun]).T.tolist())
    return attention


def make_one_head(sharpness: float) -> MultiHeadAttention:
    """Build one head of size 4 that asks both questions."""
    attention = MultiHeadAttention(4, 1, bias=False)
    ask, rest = [sharpness, 0.0, 0.0, 0.0], [0.0] * 4
    _, being, _, state = torch.eye(4).tolist()
    _set(attention.query, [ask, ask, rest, rest])
    _set(attention.key, [being, state, rest, rest])
    for kept in (attention.value, attention.output):
        _set(kept, torch.eye(4).tolist())
    return attention


def _set(linear: nn.Linear, rows: list[list[float]]) -> None:
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(rows))
