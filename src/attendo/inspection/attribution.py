"""Which source words a target word hangs on, by gradients.

From the log-probability of each target token, given the source and all that was said before it, to
the embedding of each source token: the scaled vector before positions are added. Gradient times
input is the first-order guess; integrated gradients (Sundararajan et al. 2017) follow the straight
line from a baseline, and their sum is what the log-probability differs between the two ends. The
baseline is a source of zero embeddings whose positions stay: as many places, and nothing in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from attendo.core.errors import ConfigError, suggest
from attendo.core.logs import get_logger
from attendo.core.protocols import Memory
from attendo.inspection.forced import force, match_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.inspection.forced import Forced
    from attendo.inspection.record import Record, Side
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator

    Floats = NDArray[np.float64]

Method = Literal["integrated_gradients", "gradient_x_input"]

TOLERANCE = 0.05
"""Relative error of a row's sum that integrated gradients stay below, or say so in the log."""
SMALLEST_DIFFERENCE = 0.1
"""Nats: a token that hangs on the source by less has no relative error worth the name."""
MOST_STEPS = 4096
LOOKS = 17
"""Points of a first look along the line, without gradients: it tells where things happen."""
EVEN_SHARE = 1 / 3
"""Of the steps, what is spread evenly; the others go where the log-probabilities change."""
BATCH_TOKENS = 1024
"""Of the source at once, over all points of the line: what autograd keeps stays below 1 GB."""
PREFIX = 8
"""Target tokens that share one pass of the decoder; later ones are not computed for them."""
DIGITS = 6

_log = get_logger(__name__)


def attribute(
    translator: Translator,
    record: Record,
    *,
    method: Method = "integrated_gradients",
    num_steps: int = 32,
) -> dict[str, Any]:
    """Attribute every target token to the source tokens; give the record's section `attribution`.

    `num_steps` is the number of points on the line at which gradients are taken; gradient times
    input has one. `completeness` tells for each target token how far its row is from summing to the
    difference of its log-probability between input and baseline: |sum - difference| / |difference|,
    where a difference below 0.1 nats counts as that much.
    """
    _check(method, num_steps)
    model = match_model(translator, record, wanted="attribution")
    forced = force(translator, record)
    with translator.engine.evaluating(), torch.enable_grad():
        if method == "gradient_x_input":
            log_probs = _look_along(model, forced, np.array([0.0, 1.0]))
            points, shares = np.ones(1), np.ones(1)
        else:
            places = np.linspace(0.0, 1.0, LOOKS)
            log_probs = _look_along(model, forced, places)  # (T, places)
            points, shares = _place_points(places, log_probs, num_steps)
        found = _integrate(model, forced, points, shares)  # (T, S)
    difference = log_probs[:, -1] - log_probs[:, 0]
    error = np.abs(found.sum(1) - difference) / np.maximum(np.abs(difference), SMALLEST_DIFFERENCE)
    if method == "integrated_gradients" and error.max() > TOLERANCE:
        reason = "integrated gradients miss the difference by up to %.0f%%: take more than %d steps"
        _log.warning(reason, 100 * error.max(), num_steps)
    return {
        "method": method,
        "num_steps": len(points),
        "tokens": _plain(found),
        "words": _plain(_join_words(found, record)),
        "completeness": [round(value, DIGITS) for value in error.tolist()],
    }


def _check(method: str, num_steps: int) -> None:
    if method not in get_args(Method):
        remedy = suggest(str(method), get_args(Method))
        raise ConfigError(f"no attribution method '{method}'", remedy=remedy)
    if not 1 <= num_steps <= MOST_STEPS:
        remedy = "32 do for most sentences; more make the sums more exact"
        raise ConfigError(f"num_steps {num_steps} is not in 1 ... {MOST_STEPS}", remedy=remedy)


@torch.no_grad()
def _look_along(model: Transformer, forced: Forced, places: Floats) -> Floats:
    """Give the log-probability of each target token at places from baseline (0) to input (1)."""
    embedded = model.src_embedding(forced.src_ids)  # (1, S, D)
    found = []
    for some in _cut(places, embedded):
        memory = _encode(model, embedded * embedded.new_tensor(some)[:, None, None])
        found.append(torch.stack(list(_predict(model, memory, forced))))  # (T, B)
    log_probs: Floats = torch.cat(found, dim=1).double().cpu().numpy()
    return log_probs


def _place_points(places: Floats, log_probs: Floats, num_steps: int) -> tuple[Floats, Floats]:
    """Cut the line into steps, short ones where much happens; give their middles and lengths.

    A sure model is saturated over half of the line: evenly spread, half of the steps would tell
    nothing.
    """
    changes = np.abs(np.diff(log_probs, axis=1))  # (T, places - 1)
    sizes = np.maximum(np.abs(log_probs[:, -1] - log_probs[:, 0]), SMALLEST_DIFFERENCE)
    density = (changes / sizes[:, None]).sum(0)
    density = EVEN_SHARE / len(density) + (1 - EVEN_SHARE) * density / max(density.sum(), 1e-12)
    covered = np.concatenate(([0.0], np.cumsum(density))) / density.sum()
    edges = np.interp(np.linspace(0.0, 1.0, num_steps + 1), covered, places)
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def _integrate(model: Transformer, forced: Forced, points: Floats, shares: Floats) -> Floats:
    """Sum gradient times input over the points: (T, S)."""
    embedded = model.src_embedding(forced.src_ids).detach()  # (1, S, D)
    total = np.zeros((len(forced.said_ids), embedded.size(1)))
    cuts = zip(_cut(points, embedded), _cut(shares, embedded), strict=True)
    for some, own_shares in cuts:
        inputs = (embedded * embedded.new_tensor(some)[:, None, None]).requires_grad_()  # (B, S, D)
        memory = _encode(model, inputs)
        for place, log_prob in enumerate(_predict(model, memory, forced)):
            (gradient,) = torch.autograd.grad(log_prob.sum(), inputs, retain_graph=True)
            products = (gradient * embedded).sum(-1).double().cpu().numpy()  # (B, S)
            total[place] += own_shares @ products
    return total


def _cut(values: Floats, embedded: Tensor) -> list[Floats]:
    """Cut a line into parts that fit into memory at once."""
    size = max(1, BATCH_TOKENS // embedded.size(1))
    return [values[first : first + size] for first in range(0, len(values), size)]


def _encode(model: Transformer, embedded: Tensor) -> Memory:
    """Read embedded sources (B, S, D) in the place of ids: the target's embeddings are untouched.

    A hook on the embedding would reach those too, where both sides share one.
    """
    mask = torch.ones(len(embedded), 1, embedded.size(1), dtype=torch.bool, device=embedded.device)
    states, _ = model.encoder(model.src_positions(embedded), mask)
    return Memory(states, mask)


def _predict(model: Transformer, memory: Memory, forced: Forced) -> Iterator[Tensor]:
    """Give the log-probability (B,) of each token that was said, one after the other."""
    num_rows = len(memory.states)
    for first in range(0, len(forced.said_ids), PREFIX):
        said = forced.said_ids[first : first + PREFIX]
        fed = forced.fed_ids[:, : first + len(said)].expand(num_rows, -1)
        mask = torch.ones(num_rows, 1, fed.size(1), dtype=torch.bool, device=fed.device)
        embedded = model.tgt_positions(model.tgt_embedding(fed).detach())
        states, _, _ = model.decoder(embedded, memory, mask)
        for place, token in enumerate(said):
            logits = model.output(states[:, first + place])  # only here: a vocabulary is wide
            yield logits.float().log_softmax(-1)[:, token]


def _join_words(found: Floats, record: Record) -> Floats:
    """Sum over the pieces of words; the end symbols belong to none."""
    tgt, src = (_membership(side) for side in (record.tgt, record.src))
    return tgt @ found @ src.T  # (words, T) (T, S) (S, words)


def _membership(side: Side) -> Floats:
    """Tell which tokens make up each word: (words, tokens) of ones and zeros."""
    belongs = np.zeros((len(side["words"]), len(side["tokens"])))
    for place, token in enumerate(side["tokens"]):
        if token["word"] is not None:
            belongs[token["word"], place] = 1.0
    return belongs


def _plain(matrix: Floats) -> list[list[float]]:
    return [[round(value, DIGITS) for value in row] for row in matrix.tolist()]
