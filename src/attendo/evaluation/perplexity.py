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
from attendo.data.tokenizer import PAD_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.data.batching import Batch
    from attendo.data.tokenizer import Tokenizer

BATCH_TOKENS = 2048
"""Of either side, padding included: with a vocabulary of 37,000 the logits take 300 MB."""
LARGEST_LOSS = 700.0
"""Its exponential is still a number."""


@dataclass(frozen=True)
class Likelihood:
    """What teacher forcing tells of each pair; a pair with an empty side counts nothing."""

    log_probs: list[float]
    num_right: list[int]
    num_tokens: list[int]

    @property
    def loss(self) -> float:
        """Give the log loss a token."""
        return -sum(self.log_probs) / sum(self.num_tokens)

    @property
    def perplexity(self) -> float:
        """Give e^loss: among how many tokens the model hesitates."""
        return math.exp(min(self.loss, LARGEST_LOSS))

    @property
    def accuracy(self) -> float:
        """Give the share of tokens that the model would have chosen itself."""
        return sum(self.num_right) / sum(self.num_tokens)

    @property
    def num_skipped(self) -> int:
        """Count the pairs with an empty side."""
        return self.num_tokens.count(0)

    def per_token(self, place: int) -> float | None:
        """Give the mean log-probability of a pair's tokens."""
        count = self.num_tokens[place]
        return self.log_probs[place] / count if count else None


def measure_likelihood(
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
    found = Likelihood([0.0] * len(pairs), [0] * len(pairs), [0] * len(pairs))
    full = [place for place, (src, tgt) in enumerate(pairs) if len(src) > 1 and len(tgt) > 1]
    if not full:
        reason = "no pair has text on both sides"
        raise InputError(reason, remedy="check the source and the reference")
    done = 0
    for places in _cut(pairs, full, batch_tokens):
        batch = collate(
            [(np.array(pairs[place][0]), np.array(pairs[place][1])) for place in places]
        )
        try:
            figures = _score_batch(model, batch)
        except AttendoError as error:
            raise InputError(f"line {_longest(pairs, places) + 1}: {error}") from None
        for place, (log_prob, num_right, num_tokens) in zip(places, figures, strict=True):
            found.log_probs[place] = log_prob
            found.num_right[place] = int(num_right)
            found.num_tokens[place] = int(num_tokens)
        done += len(places)
        if progress is not None:
            progress(done, len(full))
    return found


@torch.inference_mode()
def _score_batch(model: Any, batch: Batch) -> list[tuple[float, float, float]]:
    """Give the log-probability, the right tokens and the tokens of each row."""
    here = batch.to(next(model.parameters()).device)
    was_training = model.training
    model.eval()
    try:
        logits: Tensor = model(here.src_ids, here.tgt_ids)  # (B, T, V)
    finally:
        model.train(was_training)
    real = here.labels.ne(PAD_ID)
    precise = torch.promote_types(logits.dtype, torch.float32)
    losses = F.cross_entropy(
        logits.flatten(0, 1).to(precise), here.labels.flatten(), reduction="none"
    ).view_as(here.labels)  # (B, T)
    rows = [
        -losses.double().masked_fill(~real, 0.0).sum(1),
        (logits.argmax(-1).eq(here.labels) & real).sum(1).double(),
        real.sum(1).double(),
    ]
    return [(row[0], row[1], row[2]) for row in torch.stack(rows, dim=1).tolist()]


def _cut(
    pairs: Sequence[tuple[list[int], list[int]]], places: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Fill batches from the longest pair down; a pair that is too long stands alone."""

    def length(place: int) -> int:
        return max(map(len, pairs[place]))

    order = sorted(places, key=length, reverse=True)
    while order:
        size = max(1, batch_tokens // length(order[0]))
        yield order[:size]
        order = order[size:]


def _longest(pairs: Sequence[tuple[list[int], list[int]]], places: Sequence[int]) -> int:
    return max(places, key=lambda place: max(map(len, pairs[place])))
