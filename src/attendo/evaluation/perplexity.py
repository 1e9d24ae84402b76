"""Log-probability, perplexity and token accuracy of references.

Teacher forcing over any model of the protocol. A token is a piece of the model's own
vocabulary, EOS included: figures of models with different vocabularies are not comparable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.core.device import to_accurate
from attendo.core.errors import AttendoError, InputError
from attendo.core.message import message
from attendo.data.batching import collate
from attendo.text.tokenizer import PAD_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.data.batching import Batch
    from attendo.text.tokenizer import Tokenizer

BATCH_TOKENS = 2048
"""Tokens per batch on either side, padding included: 300 MB of logits at a vocabulary of 37,000."""
MAX_LOSS = 700.0
"""The largest loss whose exponential is finite."""


@dataclass(frozen=True)
class Likelihood:
    """Log-probabilities and correct tokens per pair; a pair with an empty side counts as zero."""

    log_probs: list[float]
    num_correct: list[int]
    num_tokens: list[int]

    @property
    def loss(self) -> float:
        """Return the log loss per token."""
        return -sum(self.log_probs) / sum(self.num_tokens)

    @property
    def perplexity(self) -> float:
        """Return e^loss."""
        return math.exp(min(self.loss, MAX_LOSS))

    @property
    def accuracy(self) -> float:
        """Return the share of tokens that are the model's argmax."""
        return sum(self.num_correct) / sum(self.num_tokens)

    @property
    def num_skipped(self) -> int:
        """Return the number of pairs with an empty side."""
        return self.num_tokens.count(0)

    def mean_log_prob(self, index: int) -> float | None:
        """Return the mean log-probability of a pair's tokens."""
        count = self.num_tokens[index]
        return self.log_probs[index] / count if count else None


def compute_likelihood(
    model: Seq2SeqModel[Any],
    tokenizer: Tokenizer,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int, int], None] | None = None,
) -> Likelihood:
    """Score every pair, batched by similar length; results do not depend on the batch."""
    pairs = list(zip(tokenizer.encode_src(sources), tokenizer.encode_tgt(references), strict=True))
    likelihood = Likelihood([0.0] * len(pairs), [0] * len(pairs), [0] * len(pairs))
    nonempty = [index for index, (src, tgt) in enumerate(pairs) if len(src) > 1 and len(tgt) > 1]
    if not nonempty:
        reason = "no pair has text on both sides"
        raise InputError(reason, hint="check the source and the reference")
    done = 0
    for indices in _length_batches(pairs, nonempty, batch_tokens):
        batch = collate(
            [(np.array(pairs[index][0]), np.array(pairs[index][1])) for index in indices]
        )
        try:
            row_scores = _score_batch(model, batch)
        except AttendoError as error:
            raise InputError(
                message(
                    "line {number}: {error}", number=_max_length(pairs, indices) + 1, error=error
                )
            ) from None
        for index, (log_prob, num_correct, num_tokens) in zip(indices, row_scores, strict=True):
            likelihood.log_probs[index] = log_prob
            likelihood.num_correct[index] = int(num_correct)
            likelihood.num_tokens[index] = int(num_tokens)
        done += len(indices)
        if progress is not None:
            progress(done, len(nonempty))
    return likelihood


@torch.inference_mode()
def _score_batch(model: Any, batch: Batch) -> list[tuple[float, float, float]]:
    """Return log-probability, correct tokens and number of tokens of each row."""
    device_batch = batch.to(next(model.parameters()).device)
    was_training = model.training
    model.eval()
    try:
        logits: Tensor = model(device_batch.src_ids, device_batch.tgt_ids)  # (B, T, V)
    finally:
        model.train(was_training)
    real = device_batch.labels.ne(PAD_ID)
    compute_dtype = torch.promote_types(logits.dtype, torch.float32)
    losses = F.cross_entropy(
        logits.flatten(0, 1).to(compute_dtype), device_batch.labels.flatten(), reduction="none"
    ).view_as(device_batch.labels)  # (B, T)
    rows = [
        -to_accurate(losses).masked_fill(~real, 0.0).sum(1),
        to_accurate((logits.argmax(-1).eq(device_batch.labels) & real).sum(1)),
        to_accurate(real.sum(1)),
    ]
    return [(row[0], row[1], row[2]) for row in torch.stack(rows, dim=1).tolist()]


def _length_batches(
    pairs: Sequence[tuple[list[int], list[int]]], indices: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Fill batches from the longest pair down; a pair over the limit gets its own batch."""

    def length(index: int) -> int:
        return max(map(len, pairs[index]))

    order = sorted(indices, key=length, reverse=True)
    while order:
        size = max(1, batch_tokens // length(order[0]))
        yield order[:size]
        order = order[size:]


def _max_length(pairs: Sequence[tuple[list[int], list[int]]], indices: Sequence[int]) -> int:
    return max(indices, key=lambda index: max(map(len, pairs[index])))
