"""The numbers and charts of lesson 3: what order does to an encoder, and what positions cost."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from attendo.lessons.blocks import Chart, LocalizedText, Series
from attendo.model.layers import EncoderLayer
from attendo.model.positional_encoding import ConcatenatedPositions, sinusoidal
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.positional_encoding import Layout

NUM_POSITIONS = 20
D_MODEL, D_FF, NUM_HEADS = 512, 2048, 8
ENCODER: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
SEED = 1


@cache
def make_encoder(positions: str, vocab_size: int) -> Transformer:
    """Make a tiny Transformer with the same weights for every kind of positions."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        model = Transformer(vocab_size, positions=positions, dropout=0.0, **ENCODER)
    return model.double().eval()


def compare_orders(first: str, second: str, positions: str) -> list[tuple[str, float]]:
    """Give each word of the first sentence, and how far its encoding in the second lies."""
    spoken = first.split()
    places = {word: place for place, word in enumerate(dict.fromkeys(spoken), 1)}
    ids, others = ([places[word] for word in text.split()] for text in (first, second))
    model = make_encoder(positions, len(places) + 1)
    changes = measure_change(model, torch.tensor([ids]), torch.tensor([others]))
    return list(zip(spoken, changes, strict=True))


@torch.inference_mode()
def measure_change(model: Transformer, ids: Tensor, others: Tensor) -> list[float]:
    """Give for each id how far the nearest encoding of the same id in another order lies."""
    states, turned = model.encode(ids).states[0], model.encode(others).states[0]
    return [
        float((turned[others[0] == number] - state).norm(dim=-1).min())
        for number, state in zip(ids[0], states, strict=True)
    ]


def position_curves(
    d_model: int = D_MODEL, num_positions: int = NUM_POSITIONS, layout: Layout = "interleaved"
) -> Chart:
    """Draw a few dimensions of the position vectors over the positions."""
    table = sinusoidal(num_positions, d_model, layout=layout, dtype=torch.float64)
    chosen = sorted({0, 1, d_model // 8, d_model // 4, d_model - 1})
    return Chart(
        "lines",
        LocalizedText(
            f"{len(chosen)} of {d_model} dimensions",
            f"{d_model}개 차원 중 {len(chosen)}개",
        ),
        x=[float(place) for place in range(num_positions)],
        series=[
            Series(LocalizedText(f"dimension {place}", f"{place}번 차원"), table[:, place].tolist())
            for place in chosen
        ],
        x_label=LocalizedText("position", "위치"),
        y_label="PE",
    )


def count_mixing(d_model: int) -> int:
    """Count the parameters of putting positions beside words and projecting back."""
    with torch.device("meta"):  # shapes without numbers
        return sum(one.numel() for one in ConcatenatedPositions(d_model).parameters())


def count_layer(d_model: int) -> int:
    """Count the parameters of an encoder layer of this width."""
    with torch.device("meta"):
        layer = EncoderLayer(d_model, D_FF, NUM_HEADS)
    return sum(one.numel() for one in layer.parameters())
