"""A model without weights that returns the source in capitals, word by word."""

from __future__ import annotations

import pytest
import torch

from attendo.core.protocols import Explanation, Memory
from attendo.text.tokenizer import END_ID, PAD_ID, UNK_ID
from attendo.translator import Translator

TARGET_LOGIT = 4.0
"""The logit of the right word: others stay possible."""


class UppercaseModel:
    """Keeps the contract; a word without capitals is unknown to it."""

    def __init__(self, tokenizer) -> None:
        pieces = tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size))
        ids = {piece: number for number, piece in enumerate(pieces)}
        self.targets = [ids.get(piece.upper(), UNK_ID) for piece in pieces]
        self.targets[PAD_ID] = self.targets[END_ID] = END_ID
        self.batches: list[list[int]] = []

    def encode(self, src_ids, *_masks) -> Memory:
        self.batches.append(src_ids.ne(PAD_ID).sum(1).tolist())
        return Memory(src_ids, src_ids.ne(PAD_ID)[:, None])

    def start(self, memory):
        return memory.states, 0

    def step(self, _ids, state):
        src_ids, position = state
        return self._logits(src_ids, position), (src_ids, position + 1)

    def reorder(self, state, index):
        return state[0][index], state[1]

    def forward(self, src_ids, tgt_ids, *_masks, **_named):
        return torch.stack([self._logits(src_ids, t) for t in range(tgt_ids.size(1))], dim=1)

    def explain(self, src_ids, tgt_ids, *_masks, **_named) -> Explanation:
        cross = torch.zeros(len(src_ids), 2, tgt_ids.size(1), src_ids.size(1))
        for position in range(min(cross.shape[2:])):
            cross[:, :, position, position] = 1.0
        return Explanation(self.forward(src_ids, tgt_ids), (), (), (cross,))

    def _logits(self, src_ids, position):
        logits = torch.zeros(len(src_ids), len(self.targets))
        for row, ids in enumerate(src_ids.tolist()):
            logits[row, self.targets[ids[position]] if position < len(ids) else END_ID] = (
                TARGET_LOGIT
            )
        return logits


@pytest.fixture
def uppercaser(toy) -> Translator:
    tokenizer = toy.prepared.tokenizer
    return Translator(UppercaseModel(tokenizer), tokenizer)
