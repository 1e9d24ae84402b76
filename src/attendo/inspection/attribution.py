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
from attendo.core.message import message
from attendo.core.protocols import Memory
from attendo.inspection.teacher_forcing import match_model, teacher_force

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.inspection.record import Record, TokenSide
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator

    Floats = NDArray[np.float64]

Method = Literal["integrated_gradients", "gradient_x_input"]

TOLERANCE = 0.05
"""Relative error of a row's sum that integrated gradients stay below, or say so in the log."""
MIN_DIFFERENCE = 0.1
"""Nats: a token that hangs on the source by less has no relative error worth the name."""
MAX_STEPS = 4096
NUM_PROBES = 17
"""Points of a first look along the line, without gradients: it tells where things happen."""
UNIFORM_FRACTION = 1 / 3
"""Of the steps, what is spread evenly; the others go where the log-probabilities change."""
BATCH_TOKENS = 1024
"""Of the source at once, over all points of the line: what autograd keeps stays below 1 GB."""
TOKENS_PER_PASS = 8
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
    model = match_model(translator, record, feature="attribution")
    forced_pass = teacher_force(translator, record)
    with translator.backend.eval_mode(), torch.enable_grad():
        if method == "gradient_x_input":
            log_probs = _log_probs_along_path(model, forced_pass, np.array([0.0, 1.0]))
            points, weights = np.ones(1), np.ones(1)
        else:
            positions = np.linspace(0.0, 1.0, NUM_PROBES)
            log_probs = _log_probs_along_path(model, forced_pass, positions)  # (T, places)
            points, weights = _choose_points(positions, log_probs, num_steps)
        attributions = _integrate(model, forced_pass, points, weights)  # (T, S)
    difference = log_probs[:, -1] - log_probs[:, 0]
    error = np.abs(attributions.sum(1) - difference) / np.maximum(
        np.abs(difference), MIN_DIFFERENCE
    )
    if method == "integrated_gradients" and error.max() > TOLERANCE:
        _log.warning(
            message(
                "integrated gradients miss the difference by up to {share:.0f}%: "
                "take more than {count} steps",
                share=100 * error.max(),
                count=num_steps,
            )
        )
    return {
        "method": method,
        "num_steps": len(points),
        "tokens": _round_rows(attributions),
        "words": _round_rows(_sum_over_words(attributions, record)),
        "completeness": [round(value, DIGITS) for value in error.tolist()],
    }


def _check(method: str, num_steps: int) -> None:
    if method not in get_args(Method):
        hint = suggest(str(method), get_args(Method))
        raise ConfigError(f"no attribution method '{method}'", hint=hint)
    if not 1 <= num_steps <= MAX_STEPS:
        hint = "32 do for most sentences; more make the sums more exact"
        raise ConfigError(f"num_steps {num_steps} is not in 1 ... {MAX_STEPS}", hint=hint)


@torch.no_grad()
def _log_probs_along_path(
    model: Transformer, forced_pass: TeacherForcedPass, positions: Floats
) -> Floats:
    """Give the log-probability of each target token at places from baseline (0) to input (1)."""
    embedded = model.src_embedding(forced_pass.src_ids)  # (1, S, D)
    batches = []
    for batch in _split_batches(positions, embedded):
        memory = _encode_embedded(model, embedded * embedded.new_tensor(batch)[:, None, None])
        batches.append(torch.stack(list(_target_log_probs(model, memory, forced_pass))))  # (T, B)
    log_probs: Floats = torch.cat(batches, dim=1).double().cpu().numpy()
    return log_probs


def _choose_points(positions: Floats, log_probs: Floats, num_steps: int) -> tuple[Floats, Floats]:
    """Cut the line into steps, short ones where much happens; give their middles and lengths.

    A sure model is saturated over half of the line: evenly spread, half of the steps would tell
    nothing.
    """
    changes = np.abs(np.diff(log_probs, axis=1))  # (T, places - 1)
    sizes = np.maximum(np.abs(log_probs[:, -1] - log_probs[:, 0]), MIN_DIFFERENCE)
    density = (changes / sizes[:, None]).sum(0)
    density = UNIFORM_FRACTION / len(density) + (1 - UNIFORM_FRACTION) * density / max(
        density.sum(), 1e-12
    )
    covered = np.concatenate(([0.0], np.cumsum(density))) / density.sum()
    edges = np.interp(np.linspace(0.0, 1.0, num_steps + 1), covered, positions)
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def _integrate(
    model: Transformer, forced_pass: TeacherForcedPass, points: Floats, weights: Floats
) -> Floats:
    """Sum gradient times input over the points: (T, S)."""
    embedded = model.src_embedding(forced_pass.src_ids).detach()  # (1, S, D)
    total = np.zeros((len(forced_pass.target_ids), embedded.size(1)))
    batches = zip(_split_batches(points, embedded), _split_batches(weights, embedded), strict=True)
    for batch, batch_weights in batches:
        inputs = (
            embedded * embedded.new_tensor(batch)[:, None, None]
        ).requires_grad_()  # (B, S, D)
        memory = _encode_embedded(model, inputs)
        for position, log_prob in enumerate(_target_log_probs(model, memory, forced_pass)):
            (gradient,) = torch.autograd.grad(log_prob.sum(), inputs, retain_graph=True)
            products = (gradient * embedded).sum(-1).double().cpu().numpy()  # (B, S)
            total[position] += batch_weights @ products
    return total


def _split_batches(values: Floats, embedded: Tensor) -> list[Floats]:
    """Cut a line into parts that fit into memory at once."""
    size = max(1, BATCH_TOKENS // embedded.size(1))
    return [values[first : first + size] for first in range(0, len(values), size)]


def _encode_embedded(model: Transformer, embedded: Tensor) -> Memory:
    """Read embedded sources (B, S, D) in the place of ids: the target's embeddings are untouched.

    A hook on the embedding would reach those too, where both sides share one.
    """
    mask = torch.ones(len(embedded), 1, embedded.size(1), dtype=torch.bool, device=embedded.device)
    states, _ = model.encoder(model.src_positions(embedded), mask)
    return Memory(states, mask)


def _target_log_probs(
    model: Transformer, memory: Memory, forced_pass: TeacherForcedPass
) -> Iterator[Tensor]:
    """Give the log-probability (B,) of each token that was said, one after the other."""
    num_rows = len(memory.states)
    for first in range(0, len(forced_pass.target_ids), TOKENS_PER_PASS):
        target_ids = forced_pass.target_ids[first : first + TOKENS_PER_PASS]
        decoder_input = forced_pass.decoder_input_ids[:, : first + len(target_ids)].expand(
            num_rows, -1
        )
        mask = torch.ones(
            num_rows, 1, decoder_input.size(1), dtype=torch.bool, device=decoder_input.device
        )
        embedded = model.tgt_positions(model.tgt_embedding(decoder_input).detach())
        states, _, _ = model.decoder(embedded, memory, mask)
        for offset, token in enumerate(target_ids):
            logits = model.output(states[:, first + offset])  # only here: a vocabulary is wide
            yield logits.float().log_softmax(-1)[:, token]


def _sum_over_words(attributions: Floats, record: Record) -> Floats:
    """Sum over the pieces of words; the end symbols belong to none."""
    tgt, src = (_word_membership(side) for side in (record.tgt, record.src))
    return tgt @ attributions @ src.T  # (words, T) (T, S) (S, words)


def _word_membership(side: TokenSide) -> Floats:
    """Tell which tokens make up each word: (words, tokens) of ones and zeros."""
    belongs = np.zeros((len(side["words"]), len(side["tokens"])))
    for index, token in enumerate(side["tokens"]):
        if token["word"] is not None:
            belongs[token["word"], index] = 1.0
    return belongs


def _round_rows(matrix: Floats) -> list[list[float]]:
    return [[round(value, DIGITS) for value in row] for row in matrix.tolist()]
