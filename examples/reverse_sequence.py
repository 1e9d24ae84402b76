"""A minimal end-to-end example: a small Transformer learns to reverse a sequence.

The training recipe of the paper in thirty lines: teacher forcing, label smoothing, Adam, warm-up.
The trained model decodes with cached steps, and its cross-attention is an anti-diagonal.

Run: python examples/reverse_sequence.py [steps]
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F  # noqa: N812
from rich.progress import track

from attendo import Transformer
from attendo.core.seeding import seed_everything

START, VOCAB, LENGTH = 1, 20, 8
SHADES = " ░▒▓█"


def make_batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random sequences of ids and their reversals."""
    src_ids = torch.randint(2, VOCAB, (size, LENGTH))
    return src_ids, src_ids.flip(1)


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of equation 3: linear warm-up, then inverse square root decay."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def train(steps: int) -> Transformer:
    """Train a model with two small layers."""
    seed_everything(1)
    model = Transformer(vocab_size=VOCAB, d_model=64, d_ff=128, num_heads=4, num_layers=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: learning_rate(done + 1, d_model=64, warmup_steps=200)
    )
    for _ in track(range(steps), description="training"):
        src_ids, tgt_ids = make_batch(64)
        decoder_ids = F.pad(tgt_ids[:, :-1], (1, 0), value=START)  # the target shifted right
        logits = model(src_ids, decoder_ids)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt_ids.flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.inference_mode()
def greedy_decode(model: Transformer, src_ids: torch.Tensor) -> torch.Tensor:
    """Decode greedily, one cached step per token."""
    state = model.start(model.encode(src_ids))
    ids = torch.full((src_ids.size(0),), START)
    output_ids = []
    for _ in range(LENGTH):
        logits, state = model.step(ids, state)
        ids = logits.argmax(-1)
        output_ids.append(ids)
    return torch.stack(output_ids, dim=1)


def accuracy(model: Transformer) -> float:
    """Return the fraction of new sequences that are reversed without any error."""
    src_ids, tgt_ids = make_batch(200)
    return float((greedy_decode(model, src_ids) == tgt_ids).all(1).float().mean())


@torch.inference_mode()
def plot_attention(model: Transformer) -> str:
    """Return a text plot of the cross-attention of the last layer, averaged over heads."""
    src_ids, tgt_ids = make_batch(1)
    decoder_ids = F.pad(tgt_ids[:, :-1], (1, 0), value=START)
    weights = model.explain(src_ids, decoder_ids).cross[-1][0].mean(0)  # (T, S)
    lines = [
        "        " + " ".join(f"{number:2d}" for number in src_ids[0].tolist()) + "   <- source"
    ]
    for number, row in zip(tgt_ids[0].tolist(), weights.tolist(), strict=True):
        cells = (SHADES[min(4, int(weight * 5))] * 2 for weight in row)
        lines.append(f"     {number:2d} " + " ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Train a model, test it on new sequences, and show its attention."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    model = train(steps)
    src_ids, _ = make_batch(1)
    print(f"source: {src_ids[0].tolist()}")
    print(f"output: {greedy_decode(model, src_ids)[0].tolist()}")
    print(f"exact matches: {accuracy(model):.1%} of 200 new sequences")
    print(plot_attention(model))


if __name__ == "__main__":
    main()
