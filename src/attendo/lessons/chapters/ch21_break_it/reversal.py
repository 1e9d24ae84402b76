"""Tiny Transformers that learn to write letters in reverse, each without one of its parts.

A sequence has more letters than there are different ones in it, so that its order matters. Models
are trained with the loss and the optimizer of the trainer, on new sequences in every step, and
measured on sequences that are not among them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.model.transformer import Transformer
from attendo.training.config import TrainConfig
from attendo.training.losses import label_smoothed_nll
from attendo.training.optimizer import make_optimizer
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from torch import Tensor

LETTERS = "abcdefghij"
LENGTH = 6
END, END_ID = "<eos>", 0
"""It ends a sequence, and is what the decoder reads first."""
SYMBOLS = (END, *LETTERS)
IGNORE_LABEL = -100
STEPS, EVERY, BATCH_SIZE = 200, 25, 32
NUM_HELD_OUT = 100
SMOOTHING = 0.1
SIZES: dict[str, Any] = {
    "d_model": 32,
    "d_ff": 64,
    "num_layers": 1,
    "num_decoder_layers": 2,
    "dropout": 0.0,
}
NUM_HEADS = 4
SEED, HELD_OUT_SEED = 1, 999_999

PARTS = ("positions", "scaling", "residuals", "heads", "mask", "smoothing")
OPTIONS: dict[str, dict[str, Any]] = {
    "positions": {"positions": "none"},
    "scaling": {"scale": False},
    "residuals": {"residual": False},
    "heads": {"num_heads": 1},
}
"""The options of `Transformer` that switch a part off; mask and smoothing belong to training."""


class Batch(NamedTuple):
    """Sequences as ids."""

    src_ids: Tensor  # (B, S)
    decoder_ids: Tensor  # (B, T), END_ID first
    labels: Tensor  # (B, T), END_ID last


class Pass(NamedTuple):
    """The logits of a teacher-forced pass, and the attention of each layer."""

    logits: Tensor  # (B, T, V)
    decoder_self: Tensor  # (L, B, H, T, T)
    cross: Tensor  # (L, B, H, T, S)


class Measurement(NamedTuple):
    """The scores on held-out sequences after some steps, from 0 to 1 but for the loss."""

    step: int
    loss: float
    """Per symbol, without smoothing."""
    accuracy: float
    """The share of symbols that are right after the right ones before them."""
    exact: float
    """The share of sequences that the model writes without an error, on its own."""
    confidence: float
    """The mean probability of the most probable symbol."""


class TrainedModel(NamedTuple):
    """A model, and its scores on the way."""

    model: Transformer
    hides_future: bool
    history: tuple[Measurement, ...]


def sample_batch(size: int, seed: int) -> Batch:
    """Return random sequences and their reverses."""
    generator = torch.Generator().manual_seed(seed)
    src_ids = torch.randint(1, len(SYMBOLS), (size, LENGTH), generator=generator)
    ends = torch.full((size, 1), END_ID)
    reverse = src_ids.flip(1)
    return Batch(src_ids, torch.cat([ends, reverse], 1), torch.cat([reverse, ends], 1))


@cache
def held_out() -> Batch:
    """Return the sequences to measure on."""
    return sample_batch(NUM_HELD_OUT, HELD_OUT_SEED)


def run(model: Transformer, batch: Batch, *, hides_future: bool, need_weights: bool = False) -> Any:
    """Return the logits (B, T, V) under teacher forcing or, with their attention, a `Pass`.

    Without the look-ahead mask every position of the decoder sees all others.
    """
    memory = model.encode(batch.src_ids)
    x = model.tgt_positions(model.tgt_embedding(batch.decoder_ids))
    size, length = batch.decoder_ids.shape
    mask = torch.ones(size, 1, length, dtype=torch.bool)  # END_ID is also the padding id
    if hides_future:
        found = model.decoder(x, memory, mask, need_weights=need_weights)
    else:
        mask = mask.expand(-1, length, -1)
        found = model.decoder.run_layers(
            x, memory.states, mask, memory.mask, need_weights=need_weights
        )
    states, decoder_self, cross = found
    logits = model.output(states)
    return Pass(logits, torch.stack(decoder_self), torch.stack(cross)) if need_weights else logits


@torch.inference_mode()
def write(model: Transformer, src_ids: Tensor) -> Tensor:
    """Return what a model writes (B, T) without seeing the answer, the most probable symbols."""
    state = model.start(model.encode(src_ids))
    ids = torch.full((src_ids.size(0),), END_ID)
    written = []
    for _ in range(LENGTH + 1):
        logits, state = model.step(ids, state)
        ids = logits.argmax(-1)
        written.append(ids)
    return torch.stack(written, dim=1)


@lru_cache(maxsize=32)
def train(part: str | None, steps: int) -> TrainedModel:
    """Return a model that was trained without a part; None keeps all of them."""
    hides_future = part != "mask"
    smoothing = 0.0 if part == "smoothing" else SMOOTHING
    options = {"num_heads": NUM_HEADS, **OPTIONS.get(part or "", {})}
    with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
        torch.manual_seed(SEED)
        model = Transformer(len(SYMBOLS), pad_id=END_ID, **SIZES, **options)
    config = TrainConfig(schedule="cosine", peak_lr=0.01, warmup_steps=40, max_steps=max(1, steps))
    optimizer = make_optimizer(model, config)
    history = [_measure(model, 0, hides_future)]
    for step in range(1, steps + 1):
        batch = sample_batch(BATCH_SIZE, SEED + step)
        loss = _loss(run(model, batch, hides_future=hides_future), batch, smoothing)
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config, d_model=model.config.d_model)
        optimizer.step()
        if step % EVERY == 0:
            history.append(_measure(model, step, hides_future))
    return TrainedModel(model.eval(), hides_future, tuple(history))


def _loss(logits: Tensor, batch: Batch, smoothing: float) -> Tensor:
    total = label_smoothed_nll(logits, batch.labels, smoothing=smoothing, pad_id=IGNORE_LABEL)
    return total / batch.labels.numel()


@torch.inference_mode()
def _measure(model: Transformer, step: int, hides_future: bool) -> Measurement:
    model.eval()
    batch = held_out()
    logits = run(model, batch, hides_future=hides_future)
    written = write(model, batch.src_ids)
    model.train()
    return Measurement(
        step,
        loss=float(_loss(logits, batch, 0.0)),
        accuracy=float((logits.argmax(-1) == batch.labels).float().mean()),
        exact=float((written == batch.labels).all(dim=1).float().mean()),
        confidence=float(logits.softmax(-1).amax(-1).mean()),
    )


def spell(ids: Tensor) -> str:
    """Return ids (T,) as letters, up to the end.

    >>> spell(torch.tensor([1, 2, 2, 0, 3]))
    'a b b'
    """
    symbols = [SYMBOLS[index] for index in ids.tolist()]
    return " ".join(symbols[: symbols.index(END)] if END in symbols else symbols)
