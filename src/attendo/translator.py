"""Text in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.bundle import load_bundle
from attendo.core.errors import InputError
from attendo.data.tokenizer import END_ID, PAD_ID, START_ID, Tokenizer
from attendo.decoding.greedy import greedy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from attendo.model.transformer import Transformer

BATCH_TOKENS = 4096


class Translator:
    """A model and its tokenizer.

    `Translator.load("runs/ko-en").translate(["나는 학생이다."])` gives `["I am a student."]`.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, directory: str | Path, *, device: torch.device | str | None = None) -> Self:
        """Read a model folder, onto a GPU where there is one."""
        chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
        bundle = load_bundle(directory, device=chosen)
        return cls(bundle.model, bundle.tokenizer)

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate each text greedily; an empty one comes back empty, in its place."""
        if isinstance(texts, str):
            reason = "translate takes a list of texts, not one text"
            raise InputError(reason, remedy="put it into a list: translate([text])[0]")
        ids = self.tokenizer.encode_src(texts)
        order = [
            place
            for place in sorted(range(len(ids)), key=lambda p: len(ids[p]))
            if len(ids[place]) > 1
        ]
        outputs = [""] * len(texts)
        while order:
            size = max(1, BATCH_TOKENS // len(ids[order[-1]]))
            chosen, order = order[-size:], order[:-size]
            decoded = self.tokenizer.decode_tgt(self._decode([ids[place] for place in chosen]))
            for place, text in zip(chosen, decoded, strict=True):
                outputs[place] = text
        return outputs

    def _decode(self, rows: list[list[int]]) -> list[list[int]]:
        device = next(self.model.parameters()).device
        longest = max(len(row) for row in rows)
        padded = [row + [PAD_ID] * (longest - len(row)) for row in rows]
        src_ids = torch.tensor(padded, device=device)
        was_training = self.model.training
        self.model.eval()
        said = greedy(self.model, src_ids, start_id=START_ID, end_id=END_ID, pad_id=PAD_ID)
        self.model.train(was_training)
        return said
