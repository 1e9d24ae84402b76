"""Small models to search with, and searches that are slow and plainly right."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import pytest
import torch

from attendo import Transformer
from attendo.core.protocols import Memory
from attendo.decoding.options import SpecialIds

PAD, UNK, START, END = range(4)
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


class Scored(NamedTuple):
    score: float
    ids: list[int]
    log_prob: float


class Chain:
    """Says each token by a table: `tables[first source id][last token]` are the logits."""

    def __init__(self, tables: dict[int, torch.Tensor]) -> None:
        self.tables = tables

    def encode(self, src_ids, _src_mask=None) -> Memory:
        return Memory(src_ids, src_ids[:, None].ne(PAD))

    def start(self, memory):
        return memory.states[:, 0].tolist()

    def step(self, ids, state):
        rows = zip(ids.tolist(), state, strict=True)
        return torch.stack([self.tables[kind][last] for last, kind in rows]), state

    def reorder(self, state, index):
        return [state[slot] for slot in index.tolist()]


class Slow:
    """Sequences one by one, by teacher forcing: no cache, no batch, no early stop."""

    def __init__(self, model: Transformer, source: torch.Tensor, **rules: Any) -> None:
        self.model, self.source = model, source.reshape(1, -1)
        self.alpha, self.norm = rules.pop("alpha", 0.6), rules.pop("length_norm", "paper")
        self.limit: int = rules.pop("limit")
        self.words = [token for token in range(model.tgt_vocab_size) if token > END]
        assert not rules
        self.next_log_probs = lru_cache(maxsize=None)(self._next_log_probs)

    def _next_log_probs(self, ids: tuple[int, ...]) -> list[float]:
        with torch.no_grad():
            logits = self.model(self.source, torch.tensor([[START, *ids]]))[0, -1]
        return logits.float().log_softmax(-1).tolist()

    def score(self, log_prob: float, length: int) -> float:
        base = length if self.norm == "power" else (5 + length) / 6
        return log_prob / base**self.alpha

    def log_prob(self, ids: list[int]) -> float:
        printed = [*ids, END]
        return sum(self.next_log_probs(tuple(ids[:t]))[token] for t, token in enumerate(printed))

    def every(self, *, shortest: int = 0) -> list[Scored]:
        """Every sequence that ends within the limit, the best first."""
        found = []
        for length in range(shortest, self.limit):
            for ids in product(self.words, repeat=length):
                log_prob = self.log_prob(list(ids))
                found.append(Scored(self.score(log_prob, length + 1), list(ids), log_prob))
        return sorted(found, key=lambda one: -one.score)

    def beam(self, width: int, n_best: int = 1) -> list[tuple[float, list[int], bool]]:
        """Beam search to the very limit: score, ids and whether it has ended."""
        alive: list[tuple[float, list[int]]] = [(0.0, [])]
        ended = []
        for position in range(self.limit):
            candidates = [
                (total + self.next_log_probs(tuple(ids))[token], ids, token)
                for total, ids in alive
                for token in [END, *self.words]
            ]
            candidates.sort(key=lambda one: -one[0])
            ended += [
                (self.score(total, position + 1), ids, True)
                for total, ids, token in candidates[:width]
                if token == END
            ]
            alive = [(t, [*ids, token]) for t, ids, token in candidates if token != END][:width]
        cut = [(self.score(total, self.limit), ids, False) for total, ids in alive]
        ended.sort(key=lambda one: -one[0])
        return [*ended, *cut][:n_best]


@pytest.fixture
def symbols() -> SpecialIds:
    return SpecialIds(start_id=START, end_id=END, pad_id=PAD, unk_id=UNK)


@pytest.fixture
def make_peaky():
    """Make a random model that is sure of itself; it has `num_words` ids that mean something.

    It seldom wants to say what is no word; `end` is what it adds to the logit of the end symbol.
    """

    def make(
        seed: int, *, num_words: int = 3, scale: float = 1.5, end: float = 0.0, **options: Any
    ) -> Transformer:
        torch.manual_seed(seed)
        sizes = {**SIZES, "tie_embeddings": "none", **options}
        model = Transformer(num_words + END + 1, **sizes).eval()
        for parameter in model.parameters():
            parameter.data.mul_(scale)
        # What a layer norm gives has mean 0, so ones are at a right angle to it: a bias.
        model.decoder.layers[-1].feed_forward_add.norm.bias.data.fill_(1.0)
        wanted = torch.tensor([-30.0, -30.0, -30.0, end, *[0.0] * num_words])
        rows = model.output.weight.data
        rows[END] *= 0.5
        rows += wanted[:, None] / model.config.d_model - rows.mean(1, keepdim=True)
        return model

    return make


@pytest.fixture
def make_sources():
    """Draw sources of these lengths, padded to the longest or wider, ended by the end symbol."""

    def make(seed: int, lengths: list[int], *, num_words: int = 3, width: int = 0) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        rows = torch.zeros(len(lengths), max(width, *lengths), dtype=torch.long)
        for row, length in enumerate(lengths):
            words = torch.randint(END + 1, END + 1 + num_words, (length - 1,), generator=draw)
            rows[row, :length] = torch.cat([words, torch.tensor([END])])
        return rows

    return make


@pytest.fixture
def slow():
    """Search slowly: `slow(model, source, limit=..., alpha=..., length_norm=...)`."""
    return Slow


@pytest.fixture
def make_chain():
    """Make a model of probabilities: `{source: {last: {token: probability}}}`."""

    def make(tables: dict[int, dict[int, dict[int, float]]], *, vocab_size: int) -> Chain:
        made = {}
        for kind, rows in tables.items():
            table = torch.full((vocab_size, vocab_size), -math.inf)
            table[:, END] = 0.0  # after what the table does not tell, the end is sure
            for last, probabilities in rows.items():
                assert abs(sum(probabilities.values()) - 1) < 1e-9
                table[last] = -math.inf
                for token, probability in probabilities.items():
                    table[last, token] = math.log(probability)
            made[kind] = table
        return Chain(made)

    return make
