"""A model without weights that says the source in capitals, word by word."""

from __future__ import annotations

import pytest
import torch

from attendo.core.protocols import Explanation, Memory
from attendo.text.tokenizer import END_ID, PAD_ID, UNK_ID
from attendo.translator import Translator

SURE = 4.0
"""The logit of the right word: others stay possible."""


class Parrot:
    """Keeps the contract; a word without capitals is unknown to it."""

    def __init__(self, tokenizer) -> None:
        pieces = tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size))
        places = {piece: place for place, piece in enumerate(pieces)}
        self.says = [places.get(piece.upper(), UNK_ID) for piece in pieces]
        self.says[PAD_ID] = self.says[END_ID] = END_ID
        self.batches: list[list[int]] = []

    def encode(self, src_ids, *_masks) -> Memory:
        self.batches.append(src_ids.ne(PAD_ID).sum(1).tolist())
        return Memory(src_ids, src_ids.ne(PAD_ID)[:, None])

    def start(self, memory):
        return memory.states, 0

    def step(self, _ids, state):
        src_ids, place = state
        return self._logits(src_ids, place), (src_ids, place + 1)

    def reorder(self, state, index):
        return state[0][index], state[1]

    def forward(self, src_ids, tgt_ids, *_masks, **_named):
        return torch.stack([self._logits(src_ids, t) for t in range(tgt_ids.size(1))], dim=1)

    def explain(self, src_ids, tgt_ids, *_masks) -> Explanation:
        cross = torch.zeros(len(src_ids), 2, tgt_ids.size(1), src_ids.size(1))
        for place in range(min(cross.shape[2:])):
            cross[:, :, place, place] = 1.0
        return Explanation(self.forward(src_ids, tgt_ids), (), (), (cross,))

    def _logits(self, src_ids, place):
        logits = torch.zeros(len(src_ids), len(self.says))
        for row, ids in enumerate(src_ids.tolist()):
            logits[row, self.says[ids[place]] if place < len(ids) else END_ID] = SURE
        return logits


@pytest.fixture
def parrot(toy) -> Translator:
    tokenizer = toy.prepared.tokenizer
    return Translator(Parrot(tokenizer), tokenizer)
