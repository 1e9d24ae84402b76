"""A tiny Transformer that is trained on few sentence pairs, measured on pairs held out.

Sentences of subject, object and verb: “나는 사과를 먹는다” → “I eat apples”. Every word occurs in
training, so that a sentence held out is a new combination of known words.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer
from attendo.training.config import TrainConfig
from attendo.training.losses import label_smoothed_nll
from attendo.training.optimizer import make_optimizer
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from torch import Tensor

prose = Prose("attendo.lessons.chapters.ch17_learning")

SUBJECTS = (
    ("나는", "I"),
    ("우리는", "we"),
    ("너는", "you"),
    ("그들은", "they"),
    ("학생들은", "students"),
    ("친구들은", "friends"),
)
OBJECTS = (
    ("사과를", "apples"),
    ("책을", "books"),
    ("꽃을", "flowers"),
    ("편지를", "letters"),
    ("그림을", "pictures"),
    ("차를", "cars"),
)
VERBS = (
    ("본다", "see"),
    ("좋아한다", "like"),
    ("산다", "buy"),
    ("판다", "sell"),
    ("찾는다", "find"),
    ("그린다", "draw"),
)
NUM_WORDS = len(SUBJECTS)
NUM_HELD_OUT = 40
STEPS, EVERY = 200, 5
WARMUP_STEPS, D_MODEL, DROPOUT = 60, 32, 0.3
SEED = 1
END_ID, IGNORE_LABEL = 0, -100

Combination = tuple[int, int, int]
"""The numbers of subject, object and verb."""


class Measurement(NamedTuple):
    """The losses after some steps, and the held-out sentences that are right in every word."""

    step: int
    train_loss: float
    held_out_loss: float
    num_right: int


class Batch(NamedTuple):
    """Sentences as ids; all have the same length."""

    src_ids: Tensor  # (B, 3)
    decoder_ids: Tensor  # (B, 4)
    labels: Tensor  # (B, 4)


def split_combinations(num_pairs: int) -> tuple[list[Combination], list[Combination]]:
    """Return the combinations to train on, and those held out."""
    size = range(NUM_WORDS)
    covering: list[Combination] = [
        (one, (one + shift) % NUM_WORDS, (one + 2 * shift) % NUM_WORDS)
        for shift in (0, 1)
        for one in size
    ]
    others = [one for one in product(size, size, size) if one not in covering]
    Random(SEED).shuffle(others)  # noqa: S311 - no secret
    training = [*covering, *others[:-NUM_HELD_OUT]]
    return training[:num_pairs], others[-NUM_HELD_OUT:]


def to_sentences(combination: Combination) -> tuple[str, str]:
    """Return the Korean and the English sentence."""
    subject, thing, verb = combination
    korean = " ".join((SUBJECTS[subject][0], OBJECTS[thing][0], VERBS[verb][0]))
    return korean, " ".join((SUBJECTS[subject][1], VERBS[verb][1], OBJECTS[thing][1]))


def make_batch(combinations: list[Combination]) -> Batch:
    """Return the ids: target words first, then source words; 0 begins and ends a sentence."""
    size = NUM_WORDS
    src = torch.tensor(
        [[1 + 3 * size + s, 1 + 4 * size + o, 1 + 5 * size + v] for s, o, v in combinations]
    )
    tgt = torch.tensor(
        [[1 + s, 1 + size + v, 1 + 2 * size + o, END_ID] for s, o, v in combinations]
    )
    start = torch.full((len(combinations), 1), END_ID)
    return Batch(src, torch.cat([start, tgt[:, :-1]], dim=1), tgt)


@lru_cache(maxsize=32)
def train_on_few(num_pairs: int, *, dropout: float = 0.0) -> tuple[Measurement, ...]:
    """Train on some pairs and return the losses on the way, without label smoothing."""
    training, held_out = (make_batch(part) for part in split_combinations(num_pairs))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = Transformer(
            vocab_size=1 + 6 * NUM_WORDS,
            tgt_vocab_size=1 + 3 * NUM_WORDS,
            tie_embeddings="decoder",
            pad_id=END_ID,
            d_model=D_MODEL,
            d_ff=2 * D_MODEL,
            num_heads=2,
            num_layers=1,
            dropout=dropout,
        )
        config = TrainConfig(warmup_steps=WARMUP_STEPS, label_smoothing=0.0)
        optimizer = make_optimizer(model, config)
        measured = [_measure(model, 0, training, held_out)]
        for step in range(1, STEPS + 1):
            loss = _loss(_logits(model, training), training)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, config, d_model=D_MODEL)
            optimizer.step()
            if step % EVERY == 0:
                measured.append(_measure(model, step, training, held_out))
    return tuple(measured)


def _logits(model: Transformer, batch: Batch) -> Tensor:
    mask = torch.ones_like(batch.labels, dtype=torch.bool)[
        :, None
    ]  # the start symbol is the padding id
    logits: Tensor = model(batch.src_ids, batch.decoder_ids, tgt_mask=mask)
    return logits


def _loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the loss per word."""
    total = label_smoothed_nll(logits, batch.labels, smoothing=0.0, pad_id=IGNORE_LABEL)
    return total / batch.labels.numel()


@torch.no_grad()
def _measure(model: Transformer, step: int, training: Batch, held_out: Batch) -> Measurement:
    model.eval()
    train_loss = float(_loss(_logits(model, training), training))
    logits = _logits(model, held_out)
    num_right = int((logits.argmax(-1) == held_out.labels).all(dim=1).sum())
    model.train()
    return Measurement(step, train_loss, float(_loss(logits, held_out)), num_right)


def find_best(history: tuple[Measurement, ...]) -> Measurement:
    """Return the measurement where early stopping takes the weights: the lowest held-out loss."""
    return min(history, key=lambda one: one.held_out_loss)


def loss_chart(num_pairs: int) -> Chart:
    """Plot both losses over the steps."""
    history = train_on_few(num_pairs)
    return Chart(
        "lines",
        prose("losses-of", pairs=num_pairs),
        [float(one.step) for one in history],
        [
            Series(prose("training-loss"), [one.train_loss for one in history]),
            Series(prose("held-out-loss"), [one.held_out_loss for one in history]),
        ],
        x_label=prose("step"),
        y_label=prose("loss"),
    )
