"""The numbers and charts of lesson 2: a fresh table of embeddings, and one that has learnt.

That similar words come to lie near each other is shown by learning a table from the embedded corpus
on the spot: it takes a third of a second, once.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.inspection.embeddings import nearest_neighbors
from attendo.lessons.blocks import Chart, LocalizedText, Series
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional_encoding import sinusoidal
from attendo.synthetic.everyday import split_words, synthesize_pairs
from attendo.text.tokenizer import END_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from torch import Tensor

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
SEED = 1
NUM_SENTENCES, FEWEST, LEARNT_SIZE, NUM_STEPS, RATE = 3000, 5, 16, 40, 0.05


class Learnt(NamedTuple):
    """Words of the embedded corpus and their vectors, before learning and after."""

    names: list[str]
    before: Tensor  # (V, D)
    after: Tensor  # (V, D)

    def neighbours(self, word: str, *, is_learnt: bool = True) -> list[tuple[str, float]]:
        """Give the nearest words and their cosines."""
        table = self.after if is_learnt else self.before
        found = nearest_neighbors(table, [self.names.index(word)])[0]
        return [(self.names[number], cosine) for number, cosine in found]


def make_embedding(d_model: int, vocab_size: int) -> ScaledEmbedding:
    """Draw a table as a new model does: normal, variance 1 / d_model."""
    embedding = ScaledEmbedding(vocab_size, d_model)
    draw = torch.Generator().manual_seed(SEED)
    torch.nn.init.normal_(embedding.weight, std=d_model**-0.5, generator=draw)
    return embedding.requires_grad_(False)


@cache
def learn_table() -> Learnt:
    """Learn vectors that guess a word's neighbours, left and right, in the embedded corpus."""
    names, seen = _count_neighbours()
    shares = torch.stack((seen.T, seen))  # (2, V, V): what stands before a word, and after it
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp_min(1.0)
    embedding = make_embedding(LEARNT_SIZE, len(names))
    before, everything = embedding.weight.clone(), torch.arange(len(names))
    guess = torch.empty(2, LEARNT_SIZE, len(names))
    draw = torch.Generator().manual_seed(SEED)
    torch.nn.init.normal_(guess, std=LEARNT_SIZE**-0.5, generator=draw)
    weights = [embedding.weight.requires_grad_(), guess.requires_grad_()]
    for step in range(NUM_STEPS):
        logits = embedding(everything) @ guess  # (2, V, V)
        loss = -(shares * logits.log_softmax(dim=-1)).sum(dim=-1).mean()
        gradients = torch.autograd.grad(loss, weights)
        size = RATE * (1 - step / NUM_STEPS)
        with torch.no_grad():  # by hand: importing torch.optim takes three times as long as this
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= size * gradient.sign()
    return Learnt(names, before, embedding.weight.detach())


def _count_neighbours() -> tuple[list[str], Tensor]:
    """Give the common words, and how often each (row) stands right before each (column)."""
    sentences = [
        [word.lower() for word in split_words(pair.en)] for pair in synthesize_pairs(NUM_SENTENCES)
    ]
    counts = Counter(word for sentence in sentences for word in sentence)
    names = [*SPECIAL, *(word for word, count in counts.most_common() if count >= FEWEST)]
    places = {name: place for place, name in enumerate(names)}
    seen = torch.zeros(len(names), len(names))
    pairs: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        ids = [START_ID, *(places.get(word, UNK_ID) for word in sentence), END_ID]
        pairs.update(pairwise(ids))
    rows, columns = torch.tensor(list(pairs)).T
    seen[rows, columns] = torch.tensor(list(pairs.values())).float()
    return names, seen


def size_chart() -> Chart:
    """Draw how long an embedding is, plain and scaled, beside a position, over d_model."""
    plain, scaled, places = [], [], []
    for size in SIZES:
        embedding = make_embedding(size, 256)
        plain.append(mean_length(embedding.weight))
        scaled.append(mean_length(embedding(torch.arange(256))))
        places.append(mean_length(sinusoidal(20, size)))
    return Chart(
        "lines",
        LocalizedText("length of the vectors", "벡터의 길이"),
        x=[float(size) for size in SIZES],
        series=[
            Series(LocalizedText("embedding", "임베딩"), list(plain)),
            Series(LocalizedText("embedding · √d_model", "임베딩 · √d_model"), list(scaled)),
            Series(LocalizedText("position", "위치"), list(places)),
        ],
        x_label="d_model",
        y_label=LocalizedText("length", "길이"),
        log_x=True,
        log_y=True,
    )


def mean_length(vectors: Tensor) -> float:
    """Give how long the vectors (n, D) are on average."""
    return float(vectors.norm(dim=-1).mean())
