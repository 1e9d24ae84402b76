"""What the heads of a trained model look at: the letter to write, or the answer itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.chapters.ch21_break_it.reversal import (
    END,
    LENGTH,
    SYMBOLS,
    held_out,
    run,
)

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.chapters.ch21_break_it.reversal import TrainedModel


class HeadView(NamedTuple):
    """The head of a model that looks at certain positions most, on one sequence."""

    layer: int
    """From 1, as everywhere in the lessons."""
    head: int
    share: float
    """Its mean weight on those positions, over all held-out sequences."""
    weights: list[list[float]]
    rows: list[str]
    columns: list[str]


@torch.inference_mode()
def view_cross_attention(trained: TrainedModel, example: int) -> HeadView:
    """Return the head that looks most at the source letter that has to be written next."""
    found = run(trained.model, held_out(), hides_future=trained.hides_future, need_weights=True)
    rows = torch.arange(LENGTH)
    on_answer = found.cross[..., rows, LENGTH - 1 - rows]  # (L, B, H, S)
    return _view(found.cross, on_answer, example, is_cross=True)


@torch.inference_mode()
def view_self_attention(trained: TrainedModel, example: int) -> HeadView:
    """Return the head of the decoder's self-attention that looks most at the next position.

    What the decoder reads there is the symbol that it has to write.
    """
    found = run(trained.model, held_out(), hides_future=trained.hides_future, need_weights=True)
    on_answer = found.decoder_self.diagonal(offset=1, dim1=-2, dim2=-1)  # (L, B, H, T - 1)
    return _view(found.decoder_self, on_answer, example, is_cross=False)


def _view(weights: Tensor, on_answer: Tensor, example: int, *, is_cross: bool) -> HeadView:
    shares = on_answer.double().mean(dim=(1, 3))  # (L, H)
    layer, head = divmod(int(shares.argmax()), shares.size(1))
    batch = held_out()
    read, source = (
        [SYMBOLS[index] for index in ids[example].tolist()]
        for ids in (batch.decoder_ids, batch.src_ids)
    )
    written = [SYMBOLS[index] for index in batch.labels[example].tolist()]
    return HeadView(
        layer + 1,
        head + 1,
        float(shares[layer, head]),
        weights[layer, example, head].tolist(),
        rows=[f"→ {symbol}" for symbol in written] if is_cross else _read_symbols(read),
        columns=source if is_cross else _read_symbols(read),
    )


def _read_symbols(symbols: list[str]) -> list[str]:
    return ["<sos>" if symbol == END else symbol for symbol in symbols]


@torch.inference_mode()
def mean_largest_weight(trained: TrainedModel) -> float:
    """Return the largest cross-attention weight of a query, as a mean over all heads."""
    found = run(trained.model, held_out(), hides_future=trained.hides_future, need_weights=True)
    return float(found.cross.double().amax(-1).mean())


@torch.inference_mode()
def repeated_letter_difference(trained: TrainedModel) -> float:
    """Return how far the encodings of the same letter in one sequence are apart, at most."""
    src_ids = held_out().src_ids
    states = trained.model.encode(src_ids).states.double()
    distances = torch.cdist(states, states)  # (B, S, S)
    is_same = src_ids[:, :, None] == src_ids[:, None, :]
    return float(distances[is_same].max())
