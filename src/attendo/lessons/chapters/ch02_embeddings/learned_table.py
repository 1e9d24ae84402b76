"""An untrained table of embeddings, and one that is trained while the lesson is shown.

Training on the built-in corpus takes a third of a second and shows that similar words end up close
to each other.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.inspection.embeddings import nearest_neighbors
from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional_encoding import sinusoidal
from attendo.synthetic.everyday import split_words, synthesize_pairs
from attendo.text.tokenizer import END_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from torch import Tensor

prose = Prose("attendo.lessons.chapters.ch02_embeddings")

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
SEED = 1
NUM_SENTENCES, MIN_COUNT, TABLE_SIZE, NUM_STEPS, LEARNING_RATE = 3000, 5, 16, 40, 0.05


class TrainedTable(NamedTuple):
    """The words of the built-in corpus and their vectors, before and after training."""

    names: list[str]
    before: Tensor  # (V, D)
    after: Tensor  # (V, D)

    def neighbors(self, word: str, *, trained: bool = True) -> list[tuple[str, float]]:
        """Return the nearest words and their cosines."""
        table = self.after if trained else self.before
        nearest = nearest_neighbors(table, [self.names.index(word)])[0]
        return [(self.names[number], cosine) for number, cosine in nearest]


def make_embedding(d_model: int, vocab_size: int) -> ScaledEmbedding:
    """Return a table initialized as in a new model: normal, variance 1 / d_model."""
    embedding = ScaledEmbedding(vocab_size, d_model)
    generator = torch.Generator().manual_seed(SEED)
    torch.nn.init.normal_(embedding.weight, std=d_model**-0.5, generator=generator)
    return embedding.requires_grad_(False)


@cache
def train_table() -> TrainedTable:
    """Train vectors that predict the left and right neighbors of a word in the built-in corpus."""
    names, counts = _count_neighbors()
    targets = torch.stack((counts.T, counts))  # (2, V, V): the words before a word, and after it
    targets = targets / targets.sum(dim=-1, keepdim=True).clamp_min(1.0)
    embedding = make_embedding(TABLE_SIZE, len(names))
    before, all_ids = embedding.weight.clone(), torch.arange(len(names))
    projection = torch.empty(2, TABLE_SIZE, len(names))
    generator = torch.Generator().manual_seed(SEED)
    torch.nn.init.normal_(projection, std=TABLE_SIZE**-0.5, generator=generator)
    weights = [embedding.weight.requires_grad_(), projection.requires_grad_()]
    for step in range(NUM_STEPS):
        logits = embedding(all_ids) @ projection  # (2, V, V)
        loss = -(targets * logits.log_softmax(dim=-1)).sum(dim=-1).mean()
        gradients = torch.autograd.grad(loss, weights)
        step_size = LEARNING_RATE * (1 - step / NUM_STEPS)
        with (
            torch.no_grad()
        ):  # importing torch.optim would take three times as long as the training
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= step_size * gradient.sign()
    return TrainedTable(names, before, embedding.weight.detach())


def _count_neighbors() -> tuple[list[str], Tensor]:
    """Return the frequent words, and how often each (row) comes right before each (column)."""
    sentences = [
        [word.lower() for word in split_words(pair.en)] for pair in synthesize_pairs(NUM_SENTENCES)
    ]
    frequencies = Counter(word for sentence in sentences for word in sentence)
    names = [*SPECIAL, *(word for word, count in frequencies.most_common() if count >= MIN_COUNT)]
    indices = {name: index for index, name in enumerate(names)}
    counts = torch.zeros(len(names), len(names))
    pairs: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        ids = [START_ID, *(indices.get(word, UNK_ID) for word in sentence), END_ID]
        pairs.update(pairwise(ids))
    rows, columns = torch.tensor(list(pairs)).T
    counts[rows, columns] = torch.tensor(list(pairs.values())).float()
    return names, counts


def length_chart() -> Chart:
    """Plot the length of an embedding, plain and scaled, and of a position vector over d_model."""
    plain, scaled, positions = [], [], []
    for size in SIZES:
        embedding = make_embedding(size, 256)
        plain.append(mean_length(embedding.weight))
        scaled.append(mean_length(embedding(torch.arange(256))))
        positions.append(mean_length(sinusoidal(20, size)))
    return Chart(
        "lines",
        prose("vector-lengths"),
        x=[float(size) for size in SIZES],
        series=[
            Series(prose("embedding"), list(plain)),
            Series(prose("scaled-embedding"), list(scaled)),
            Series(prose("position"), list(positions)),
        ],
        x_label="d_model",
        y_label=prose("length"),
        log_x=True,
        log_y=True,
    )


def mean_length(vectors: Tensor) -> float:
    """Return the average length of the vectors (n, D)."""
    return float(vectors.norm(dim=-1).mean())
