"""The tests of steps 1 to 4: attention, masks, heads and positions."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor

from attendo.lessons.track.comparison import Check, CheckError, compare, load_weights, prose
from attendo.model import attention as reference
from attendo.model.masks import causal_mask, padding_mask
from attendo.model.positional_encoding import sinusoidal

BATCH, LENGTH, D_MODEL, NUM_HEADS = 2, 5, 16, 4
SEED = 4

# Lesson 4: queries, keys and values of three words, and the weights and outputs of the lesson.
QUERY = torch.tensor([[1.0, 0, 2], [2, 2, 2], [2, 1, 3]])
KEY = torch.tensor([[0.0, 1, 1], [4, 4, 0], [2, 3, 1]])
VALUE = torch.tensor([[1.0, 2, 3], [2, 8, 0], [2, 6, 3]])
FIRST_WEIGHTS = torch.tensor([0.13613, 0.43194, 0.43194])
FIRST_OUTPUT = torch.tensor([1.8639, 6.3194, 1.7042])

IDS = torch.tensor([[5, 7, 2, 0, 0], [3, 9, 4, 6, 8]])


def random(*shape: int) -> Tensor:
    """Return the same random numbers every time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED))


def seeded(build: Any, *arguments: Any) -> Any:
    """Build a module of ours with the same weights every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return build(*arguments).eval()


def _attend(module: Any, *arguments: Any) -> tuple[Any, Any]:
    found = module.scaled_dot_product(*arguments)
    if not isinstance(found, tuple) or len(found) != 2:
        raise CheckError(prose("not-two"))
    return found


def _weighted(query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    scores = query @ key.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)


def attention_by_hand(module: Any) -> None:
    """Compare the weights and the output of the first word with those of lesson 4."""
    output, weights = _attend(module, QUERY, KEY, VALUE)
    products = QUERY @ KEY.T
    compare(
        weights,
        _weighted(QUERY, KEY, None, 1 / sqrt(3)),
        {
            "not-scaled": products.softmax(-1),
            "scaled-by-size": (products / 3).softmax(-1),
            "softmax-axis": (products / sqrt(3)).softmax(-2),
            "no-softmax": products / sqrt(3),
            "outputs-exchanged": (products / sqrt(3)).softmax(-1) @ VALUE,
        },
    )
    compare(weights[0], FIRST_WEIGHTS)
    compare(output, _weighted(QUERY, KEY, None, 1 / sqrt(3)) @ VALUE)
    compare(output[0], FIRST_OUTPUT, tolerance=1e-3)


def attention_with_mask(module: Any) -> None:
    """Hide keys: True = may attend."""
    query, key, value = random(3, BATCH, LENGTH, D_MODEL).unbind()
    mask = causal_mask(LENGTH)
    expected, weights = reference.scaled_dot_product(query, key, value, mask, need_weights=True)
    output, found = _attend(module, query, key, value, mask)
    scale = 1 / sqrt(D_MODEL)
    unmasked = _weighted(query, key, None, scale)
    compare(
        found,
        weights,
        {
            "mask-ignored": unmasked,
            "mask-reversed": _weighted(query, key, ~mask, scale),
            "mask-after-softmax": unmasked.masked_fill(~mask, 0.0),
            "mask-zero-scores": (query @ key.transpose(-2, -1) * scale * mask).softmax(-1),
        },
    )
    compare(output, expected)


def padding(module: Any) -> None:
    """Compare the padding mask of two sentences, one of them shorter."""
    expected = padding_mask(IDS)
    mistakes = {"mask-sense": ~expected, "mask-axis": expected.squeeze(1)}
    compare(module.padding_mask(IDS), expected, mistakes)
    compare(module.padding_mask(IDS, 9), padding_mask(IDS, 9), {"pad-id-ignored": expected})


def look_ahead(module: Any) -> None:
    """Compare the look-ahead mask of four positions with the one of lesson 7."""
    expected = causal_mask(4)
    mistakes = {
        "mask-sense": ~expected,
        "mask-past": expected.T,
        "mask-itself": expected.tril(-1),
        "mask-sense-itself": expected.triu(),
        "mask-numbers": expected.float(),
    }
    compare(module.causal_mask(4), expected, mistakes)


def masks_together(module: Any) -> None:
    """Join both masks, as the decoder does."""
    joined = module.padding_mask(IDS) & module.causal_mask(LENGTH)
    compare(joined, padding_mask(IDS) & causal_mask(LENGTH))


def _make_heads(module: Any, num_heads: int = NUM_HEADS) -> tuple[Any, Any]:
    ours = seeded(reference.MultiHeadAttention, D_MODEL, num_heads)
    theirs = module.MultiHeadAttention(D_MODEL, num_heads)
    load_weights(theirs, ours.state_dict())
    return ours, theirs


def heads(module: Any) -> None:
    """Attend in four heads, with the weights of `attendo.model`."""
    ours, theirs = _make_heads(module)
    query, memory = random(BATCH, 3, D_MODEL), random(BATCH, LENGTH, D_MODEL)
    queries, keys, values = ours.query(query), ours.key(memory), ours.value(memory)
    one_head = reference.scaled_dot_product(queries, keys, values)
    split = [_split(one, NUM_HEADS) for one in (queries, keys, values)]
    several = reference.scaled_dot_product(*split)
    mixed = [one.reshape(BATCH, NUM_HEADS, one.size(1), -1) for one in (queries, keys, values)]
    wrong_split = reference.scaled_dot_product(*mixed).transpose(1, 2).flatten(2)
    compare(
        theirs(query, memory, memory),
        ours(query, memory, memory)[0],
        {
            "one-head": ours.output(one_head),
            "no-output-projection": several.transpose(1, 2).flatten(2),
            "merged-without-transpose": ours.output(several.reshape(BATCH, 3, D_MODEL)),
            "split-without-transpose": ours.output(wrong_split),
        },
    )


def _split(x: Tensor, num_heads: int) -> Tensor:
    return x.view(x.size(0), x.size(1), num_heads, -1).transpose(1, 2)


def heads_with_masks(module: Any) -> None:
    """Apply a padding mask and a mask of every pair, the same in every head."""
    ours, theirs = _make_heads(module)
    x = random(BATCH, LENGTH, D_MODEL)
    mask = padding_mask(IDS)
    unmasked = {"mask-ignored": ours(x, x, x)[0]}
    compare(theirs(x, x, x, mask), ours(x, x, x, mask)[0], unmasked)
    pairs = mask & causal_mask(LENGTH)
    compare(theirs(x, x, x, pairs), ours(x, x, x, pairs)[0], unmasked)


def positions_by_hand(module: Any) -> None:
    """Compare positions 0 and 1 in four dimensions with lesson 3."""
    expected = torch.tensor([[0.0, 1.0, 0.0, 1.0], [0.84147, 0.54030, 0.01000, 0.99995]])
    halves = sinusoidal(2, 4, layout="halves")
    position = torch.arange(2)[:, None]
    every = position / 10_000 ** (torch.arange(4) / 4)
    mistakes = {
        "position-halves": halves,
        "position-from-one": sinusoidal(2, 4, offset=1),
        "position-every-dim": torch.where(torch.arange(4) % 2 == 0, every.sin(), every.cos()),
        "position-no-cosine": sinusoidal(2, 4)[:, [0, 0, 2, 2]],
        "position-cosine-first": sinusoidal(2, 4)[:, [1, 0, 3, 2]],
    }
    compare(module.sinusoidal(2, 4), expected, mistakes)


def positions(module: Any) -> None:
    """Compare forty positions in 16 dimensions with `attendo.model`."""
    compare(module.sinusoidal(40, D_MODEL), sinusoidal(40, D_MODEL))


CHECKS = {
    1: (
        Check("attention-by-hand", attention_by_hand),
        Check("attention-with-mask", attention_with_mask),
    ),
    2: (
        Check("padding", padding),
        Check("look-ahead", look_ahead),
        Check("masks-together", masks_together),
    ),
    3: (Check("heads", heads), Check("heads-with-masks", heads_with_masks)),
    4: (Check("positions-by-hand", positions_by_hand), Check("positions", positions)),
}
