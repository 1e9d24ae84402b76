"""How well a model foresees the references: log-probability, perplexity, token accuracy.

Teacher forcing over any model that keeps the contract. A token is a piece of the model's own
vocabulary, the end symbol included: figures of models with other vocabularies do not compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.core.errors import AttendoError, InputError
from attendo.data.batching import collate
from attendo.text.tokenizer import PAD_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.data.batching import Batch
    from attendo.text.tokenizer import Tokenizer

BATCH_TOKENS = 2048
"""Of either side, padding included: with a vocabulary of 37,000 the logits take 300 MB."""
MAX_LOSS = 700.0
"""Its exponential is still a number."""


@dataclass(frozen=True)
class Likelihood:
    """What teacher forcing tells of each pair; a pair with an empty side counts nothing."""

    log_probs: list[float]
    num_correct: list[int]
    num_tokens: list[int]

    @property
    def loss(self) -> float:
        """Return the log loss a token."""
        return -sum(self.log_probs) / sum(self.num_tokens)

    @property
    def perplexity(self) -> float:
        """Return e^loss: among how many tokens the model hesitates."""
        return math.exp(min(self.loss, MAX_LOSS))

    @property
    def accuracy(self) -> float:
        """Return the share of tokens that the model would have chosen itself."""
        return sum(self.num_correct) / sum(self.num_tokens)

    @property
    def num_skipped(self) -> int:
        """Count the pairs with an empty side."""
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
    """Read every pair once, alike lengths together; what stands beside a pair changes nothing."""
    pairs = list(zip(tokenizer.encode_src(sources), tokenizer.encode_tgt(references), strict=True))
    likelihood = Likelihood([0.0] * len(pairs), [0] * len(pairs), [0] * len(pairs))
    nonempty = [index for index, (src, tgt) in enumerate(pairs) if len(src) > 1 and len(tgt) > 1]
    if not nonempty:
        reason = "no pair has text on both sides"
        raise InputError(reason, hint="check the source and the reference")
    done = 0
    for indices in _length_batches(pairs, nonempty, batch_tokens):
        batch = collate(
            [(np.array(pairs[place][0]), np.array(pairs[place][1])) for place in indices]
        )
        try:
            row_scores = _score_batch(model, batch)
        except AttendoError as error:
            raise InputError(f"line {_max_length(pairs, indices) + 1}: {error}") from None
        for place, (log_prob, num_correct, num_tokens) in zip(indices, row_scores, strict=True):
            likelihood.log_probs[place] = log_prob
            likelihood.num_correct[place] = int(num_correct)
            likelihood.num_tokens[place] = int(num_tokens)
        done += len(indices)
        if progress is not None:
            progress(done, len(nonempty))
    return likelihood


@torch.inference_mode()
def _score_batch(model: Any, batch: Batch) -> list[tuple[float, float, float]]:
    """Return the log-probability, the right tokens and the tokens of each row."""
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
        -losses.double().masked_fill(~real, 0.0).sum(1),
        (logits.argmax(-1).eq(device_batch.labels) & real).sum(1).double(),
        real.sum(1).double(),
    ]
    return [(row[0], row[1], row[2]) for row in torch.stack(rows, dim=1).tolist()]


def _length_batches(
    pairs: Sequence[tuple[list[int], list[int]]], indices: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Fill batches from the longest pair down; a pair that is too long stands alone."""

    def length(index: int) -> int:
        return max(map(len, pairs[index]))

    order = sorted(indices, key=length, reverse=True)
    while order:
        size = max(1, batch_tokens // length(order[0]))
        yield order[:size]
        order = order[size:]


def _max_length(pairs: Sequence[tuple[list[int], list[int]]], indices: Sequence[int]) -> int:
    return max(indices, key=lambda place: max(map(len, pairs[place])))
