"""A model that has half learned to reverse words and write them in capitals."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812

from attendo.bundle import build_model, save_bundle
from attendo.text.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.text.tokenizer import Tokenizer

WORDS = ("ka", "to", "mi", "re", "so", "lu")
SIZES = {"d_model": 32, "d_ff": 64, "num_heads": 4, "num_layers": 1, "dropout": 0.0}
STEPS, ROWS = 120, 32
"""Few: the model is unsure, so that hypotheses compete."""


def draw_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)  # noqa: S311 - a toy
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def save_half_trained(directory: Path, tokenizer: Tokenizer) -> None:
    """Train for a second, and write a model folder."""
    torch.manual_seed(1)
    model = build_model("transformer", SIZES, tokenizer)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        texts = draw_texts(ROWS, seed=1000 + step)
        turned = [" ".join(reversed(text.split())).upper() for text in texts]
        src, tgt = (
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD_ID
            )
            for rows in (tokenizer.encode_src(texts), tokenizer.encode_tgt(turned))
        )
        fed = tgt.roll(1, dims=1)
        fed[:, 0] = START_ID
        logits = model(src, fed, tgt_mask=torch.ones_like(tgt, dtype=torch.bool)[:, None])
        loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    about = {
        "src_lang": "ko",
        "tgt_lang": "en",
        "calibration": {"temperature": 1.3},
        "max_src_tokens": 12,
    }
    save_bundle(directory, model, tokenizer, about=about)
