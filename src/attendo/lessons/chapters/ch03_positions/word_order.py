"""What the order of words does to an encoder, and what positions cost."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.model.layers import EncoderLayer
from attendo.model.positional_encoding import ConcatenatedPositions, sinusoidal
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.positional_encoding import Layout

prose = Prose("attendo.lessons.chapters.ch03_positions")

NUM_POSITIONS = 20
D_MODEL, D_FF, NUM_HEADS = 512, 2048, 8
ENCODER: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
SEED = 1


@cache
def make_encoder(positions: str, vocab_size: int) -> Transformer:
    """Return a tiny Transformer with the same weights for every kind of positions."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        model = Transformer(vocab_size, positions=positions, dropout=0.0, **ENCODER)
    return model.double().eval()


def compare_orders(first: str, second: str, positions: str) -> list[tuple[str, float]]:
    """Return each word of the first sentence and how far its encoding moves in the second."""
    words = first.split()
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys(words), 1)}
    ids, others = ([vocabulary[word] for word in text.split()] for text in (first, second))
    model = make_encoder(positions, len(vocabulary) + 1)
    changes = encoding_changes(model, torch.tensor([ids]), torch.tensor([others]))
    return list(zip(words, changes, strict=True))


@torch.inference_mode()
def encoding_changes(model: Transformer, ids: Tensor, others: Tensor) -> list[float]:
    """Return for each id the distance to the nearest encoding of the same id in another order."""
    states, reordered = model.encode(ids).states[0], model.encode(others).states[0]
    return [
        float((reordered[others[0] == number] - state).norm(dim=-1).min())
        for number, state in zip(ids[0], states, strict=True)
    ]


def position_chart(
    d_model: int = D_MODEL, num_positions: int = NUM_POSITIONS, layout: Layout = "interleaved"
) -> Chart:
    """Plot a few dimensions of the position vectors over the positions."""
    table = sinusoidal(num_positions, d_model, layout=layout, dtype=torch.float64)
    chosen = sorted({0, 1, d_model // 8, d_model // 4, d_model - 1})
    return Chart(
        "lines",
        prose("dimensions-shown", num_shown=len(chosen), d_model=d_model),
        x=[float(position) for position in range(num_positions)],
        series=[
            Series(prose("dimension", number=dimension), table[:, dimension].tolist())
            for dimension in chosen
        ],
        x_label=prose("input-position"),
        y_label="PE",
    )


def count_projection_parameters(d_model: int) -> int:
    """Return the number of parameters of concatenating positions and projecting back."""
    with torch.device("meta"):  # shapes only, no memory
        return sum(one.numel() for one in ConcatenatedPositions(d_model).parameters())


def count_layer_parameters(d_model: int) -> int:
    """Return the number of parameters of an encoder layer of this width."""
    with torch.device("meta"):
        layer = EncoderLayer(d_model, D_FF, NUM_HEADS)
    return sum(one.numel() for one in layer.parameters())
