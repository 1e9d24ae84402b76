"""The tests of step 10: the whole model, its training, and decoding on the copy task."""

from __future__ import annotations

from math import log
from typing import Any

import torch
from torch import Tensor

from attendo.lessons.track.attention_checks import D_MODEL, IDS, NUM_HEADS, random, seeded
from attendo.lessons.track.comparison import (
    Check,
    CheckError,
    compare,
    compare_number,
    load_weights,
    prose,
)
from attendo.lessons.track.layer_checks import D_FF, NUM_LAYERS, VOCAB_SIZE
from attendo.model.transformer import Transformer
from attendo.training.losses import label_smoothed_nll
from attendo.training.schedule import noam

TGT_IDS = torch.tensor([[1, 4, 6, 0], [1, 9, 2, 5]])
SMOOTHING = 0.1
START_ID, NUM_WORDS, COPY_LENGTH, COPY_STEPS, WARMUP_STEPS = 1, 8, 5, 300, 400
RIGHT_SHARE = 0.8


def weights_of(ours: Transformer) -> dict[str, Tensor]:
    """Return the weights of our model under the names of the finished file."""
    shared = {"tgt_embedding.weight", "output.weight"}  # the same matrix as src_embedding
    return {
        name.replace("src_embedding.", "embedding."): weight
        for name, weight in ours.state_dict().items()
        if name not in shared
    }


def _make_model(module: Any) -> tuple[Any, Any]:
    def build() -> Transformer:
        return Transformer(
            VOCAB_SIZE, d_model=D_MODEL, d_ff=D_FF, num_heads=NUM_HEADS, num_layers=NUM_LAYERS
        )

    ours = seeded(build)
    theirs = module.Transformer(VOCAB_SIZE, D_MODEL, D_FF, NUM_HEADS, NUM_LAYERS, 0.1)
    load_weights(theirs, weights_of(ours))
    return ours, theirs


@torch.no_grad()
def model(module: Any) -> None:
    """Compare all logits with those of `attendo.Transformer` with the same weights."""
    ours, theirs = _make_model(module)
    everything = torch.ones_like(IDS, dtype=torch.bool)[:, None]
    mistakes = {
        "padding-ignored": ours(IDS, TGT_IDS, src_mask=everything),
        "logits-softmax": ours(IDS, TGT_IDS).softmax(-1),
        "no-positions": _without_positions(ours, IDS, TGT_IDS),
    }
    compare(theirs(IDS, TGT_IDS), ours(IDS, TGT_IDS), mistakes)


def _without_positions(ours: Any, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
    other = Transformer(**{**ours.config.model_dump(), "positions": "none"})
    other.load_state_dict(ours.state_dict())
    logits: Tensor = other.eval()(src_ids, tgt_ids)
    return logits


def schedule(module: Any) -> None:
    """Compare the learning rate with equation 3, in and after the warm-up."""
    for step in (1, 100, 4000, 16_000):
        paper = noam(step, d_model=512, warmup_steps=4000)
        mistakes = {
            "no-warm-up": 512**-0.5 * step**-0.5,
            "rate-grows": 512**-0.5 * step * 4000**-1.5,
        }
        found = module.learning_rate(step, 512, 4000)
        compare_number(found, paper, mistakes, tolerance=paper * 1e-3)


def loss_by_hand(module: Any) -> None:
    """Get log 4 for four equal logits, with smoothing and without."""
    labels = torch.tensor([[2, 1, 0]])
    for smoothing in (0.0, SMOOTHING):
        compare_number(module.smoothed_loss(torch.zeros(1, 3, 4), labels, smoothing), log(4))


def loss(module: Any) -> None:
    """Compare the smoothed loss of random logits with the loss of the trainer."""
    logits, labels = 2 * random(2, 4, VOCAB_SIZE), TGT_IDS
    count = int(labels.ne(0).sum())

    def total(smoothing: float, pad_id: int = 0) -> float:
        return float(label_smoothed_nll(logits, labels, smoothing=smoothing, pad_id=pad_id))

    mistakes = {
        "loss-sum": total(SMOOTHING),
        "loss-not-smoothed": total(0.0) / count,
        "loss-of-padding": total(SMOOTHING, -100) / labels.numel(),
        "loss-divided-by-all": total(SMOOTHING) / labels.numel(),
        "loss-sign": -total(SMOOTHING) / count,
    }
    compare_number(
        module.smoothed_loss(logits, labels, SMOOTHING), total(SMOOTHING) / count, mistakes
    )


def _copy_batch(size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return random words to copy, and the same with the start symbol."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(2, 2 + NUM_WORDS, (size, COPY_LENGTH), generator=generator)
    return words, torch.cat([torch.full((size, 1), START_ID), words], dim=1)


def one_step(module: Any) -> None:
    """Return the loss, set the learning rate, and move the weights."""
    _, theirs = _make_model(module)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    before = {name: one.clone() for name, one in theirs.state_dict().items()}
    with torch.no_grad():
        shifted = module.smoothed_loss(theirs(IDS, TGT_IDS[:, :-1]), TGT_IDS[:, 1:], SMOOTHING)
        shown = module.smoothed_loss(theirs(IDS, TGT_IDS), TGT_IDS, SMOOTHING)
    found = module.train_step(theirs, optimizer, IDS, TGT_IDS, step=1, warmup_steps=10)
    compare_number(found, float(shifted), {"labels-not-shifted": float(shown)})
    if all(torch.equal(before[name], one) for name, one in theirs.state_dict().items()):
        raise CheckError(prose("weights-not-moved"))
    rate = optimizer.param_groups[0]["lr"]
    compare_number(rate, noam(1, d_model=D_MODEL, warmup_steps=10), {"rate-not-set": 1.0})


def copy_task(module: Any) -> None:
    """Train on the copy task, and copy new sequences by greedy decoding."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        theirs = module.Transformer(2 + NUM_WORDS, 32, 64, 4, 1, 0.0)
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, COPY_STEPS + 1):
        batch = _copy_batch(32, step)
        losses.append(
            module.train_step(theirs, optimizer, *batch, step=step, warmup_steps=WARMUP_STEPS)
        )
    theirs.eval()
    words, _ = _copy_batch(50, 0)
    written = module.greedy(theirs, words, START_ID, COPY_LENGTH)
    if not isinstance(written, Tensor) or written.shape != words.shape:
        compare(written, words)
    share = float((written == words).all(dim=1).float().mean())
    if share < RIGHT_SHARE:
        ends = {"first": losses[0], "last": losses[-1]}
        reason = prose("copy-not-learned", share=share, steps=COPY_STEPS, **ends)
        raise CheckError(reason, describe_row(words), describe_row(written))


def describe_row(ids: Tensor) -> str:
    """Return the first sequence."""
    return " ".join(map(str, ids[0].tolist()))


CHECKS = {
    10: (
        Check("model", model),
        Check("schedule", schedule),
        Check("loss-by-hand", loss_by_hand),
        Check("loss", loss),
        Check("one-step", one_step),
        Check("copy-task", copy_task),
    ),
}
