"""Gradient attribution: which source tokens a target token depends on.

From the log-probability of each target token, given the source and the previous target tokens, to
the embedding of each source token: the scaled vector before positions are added. Gradient times
input is the first-order estimate; integrated gradients (Sundararajan et al. 2017) follow the
straight line from a baseline, and their sum is the difference of the log-probability between its
ends. The baseline is a source of zero embeddings with unchanged positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.core.protocols import Memory
from attendo.inspection.teacher_forcing import match_model, teacher_force

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.inspection.record import Record, TokenSide
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator

    Floats = NDArray[np.float64]

Method = Literal["integrated_gradients", "gradient_x_input"]

TOLERANCE = 0.1
"""Largest relative error of a row's sum of integrated gradients without a note in the record."""
MIN_DIFFERENCE = 0.1
"""Nats: below this dependence on the source a relative error is meaningless."""
MAX_STEPS = 4096
NUM_PROBES = 17
"""Points of a first pass along the line, without gradients, which finds where outputs change."""
UNIFORM_FRACTION = 1 / 3
"""Share of the steps that is spread evenly; the others go where log-probabilities change."""
BATCH_TOKENS = 1024
"""Source tokens per batch, over all points of the line: autograd keeps less than 1 GB."""
TOKENS_PER_PASS = 8
"""Target tokens that share one pass of the decoder."""
DIGITS = 6


def attribute(
    translator: Translator,
    record: Record,
    *,
    method: Method = "integrated_gradients",
    num_steps: int = 32,
) -> dict[str, Any]:
    """Attribute every target token to the source tokens; return the record's section `attribution`.

    `num_steps` is the number of points on the line with gradients; gradient times
    input has one. `completeness` is, for each target token, the error of its row's sum against the
    difference of its log-probability between input and baseline: |sum - difference| / |difference|,
    with at least 0.1 nats in the denominator.
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
            log_probs = _log_probs_along_path(model, forced_pass, positions)  # (T, points)
            points, weights = _choose_points(positions, log_probs, num_steps)
        attributions = _integrate(model, forced_pass, points, weights)  # (T, S)
    difference = log_probs[:, -1] - log_probs[:, 0]
    error = np.abs(attributions.sum(1) - difference) / np.maximum(
        np.abs(difference), MIN_DIFFERENCE
    )
    return {
        "method": method,
        "num_steps": len(points),
        "tokens": _round_rows(attributions),
        "words": _round_rows(_sum_over_words(attributions, record)),
        "completeness": [round(value, DIGITS) for value in error.tolist()],
    }


def describe_error(section: Mapping[str, Any]) -> str | None:
    """Return a note if the integrated gradients of a section `attribution` are not exact enough."""
    error = max(section["completeness"], default=0.0)
    if section["method"] != "integrated_gradients" or error <= TOLERANCE:
        return None
    return message(
        "attribution: sums of integrated gradients are off by up to {share}%; more than {count} "
        "steps make them more exact (--attribution-steps)",
        share=f"{100 * error:.0f}",
        count=section["num_steps"],
    )


def _check(method: str, num_steps: int) -> None:
    if method not in get_args(Method):
        hint = suggest(str(method), get_args(Method))
        raise ConfigError(message("no attribution method '{method}'", method=method), hint=hint)
    if not 1 <= num_steps <= MAX_STEPS:
        hint = "32 are enough for most sentences; more make the sums more exact"
        raise ConfigError(
            message("{count} steps are not in 1 ... {largest}", count=num_steps, largest=MAX_STEPS),
            hint=hint,
        )


@torch.no_grad()
def _log_probs_along_path(
    model: Transformer, forced_pass: TeacherForcedPass, positions: Floats
) -> Floats:
    """Return each target token's log-probability at points from baseline (0) to input (1)."""
    embedded = model.src_embedding(forced_pass.src_ids)  # (1, S, D)
    batches = []
    for batch in _split_batches(positions, embedded):
        checkpoint()
        memory = _encode_embedded(model, embedded * embedded.new_tensor(batch)[:, None, None])
        batches.append(torch.stack(list(_target_log_probs(model, memory, forced_pass))))  # (T, B)
    log_probs: Floats = torch.cat(batches, dim=1).cpu().double().numpy()
    return log_probs


def _choose_points(positions: Floats, log_probs: Floats, num_steps: int) -> tuple[Floats, Floats]:
    """Split the line into steps, shorter where outputs change; return their midpoints and lengths.

    A confident model is saturated over half of the line, where evenly spread steps would be
    wasted.
    """
    changes = np.abs(np.diff(log_probs, axis=1))  # (T, points - 1)
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
            checkpoint()
            (gradient,) = torch.autograd.grad(log_prob.sum(), inputs, retain_graph=True)
            products = (gradient * embedded).sum(-1).cpu().double().numpy()  # (B, S)
            total[position] += batch_weights @ products
    return total


def _split_batches(values: Floats, embedded: Tensor) -> list[Floats]:
    """Split the line into batches that fit into memory."""
    size = max(1, BATCH_TOKENS // embedded.size(1))
    return [values[first : first + size] for first in range(0, len(values), size)]


def _encode_embedded(model: Transformer, embedded: Tensor) -> Memory:
    """Encode embedded sources (B, S, D) instead of ids; the target's embeddings are untouched.

    A hook on the embedding would also affect those if both sides share one.
    """
    mask = torch.ones(len(embedded), 1, embedded.size(1), dtype=torch.bool, device=embedded.device)
    states, _ = model.encoder(model.src_positions(embedded), mask)
    return Memory(states, mask)


def _target_log_probs(
    model: Transformer, memory: Memory, forced_pass: TeacherForcedPass
) -> Iterator[Tensor]:
    """Yield the log-probability (B,) of each target token."""
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
            logits = model.output(
                states[:, first + offset]
            )  # only this position: the vocabulary is large
            yield logits.float().log_softmax(-1)[:, token]


def _sum_over_words(attributions: Floats, record: Record) -> Floats:
    """Sum over the pieces of words; EOS belongs to none."""
    tgt, src = (_word_membership(side) for side in (record.tgt, record.src))
    return tgt @ attributions @ src.T  # (words, T) (T, S) (S, words)


def _word_membership(side: TokenSide) -> Floats:
    """Return the matrix (words, tokens) of ones and zeros that groups tokens into words."""
    belongs = np.zeros((len(side["words"]), len(side["tokens"])))
    for index, token in enumerate(side["tokens"]):
        if token["word"] is not None:
            belongs[token["word"], index] = 1.0
    return belongs


def _round_rows(matrix: Floats) -> list[list[float]]:
    return [[round(value, DIGITS) for value in row] for row in matrix.tolist()]
