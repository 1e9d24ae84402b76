"""The first end-to-end check: a small Transformer learns to say a sequence backwards.

The paper's training recipe in thirty lines: teacher forcing, label smoothing, Adam, warm-up. Then
the model speaks by cached steps, and its cross-attention shows what it learnt: an anti-diagonal.

Run: python examples/say_it_backwards.py [steps]
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
    """Draw sequences of ids; the target is the source, backwards."""
    src_ids = torch.randint(2, VOCAB, (size, LENGTH))
    return src_ids, src_ids.flip(1)


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Equation 3: rise for `warmup_steps`, then fall with the root of the step."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def train(steps: int) -> Transformer:
    """Teach a model of two small layers."""
    seed_everything(1)
    model = Transformer(vocab_size=VOCAB, d_model=64, d_ff=128, num_heads=4, num_layers=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: learning_rate(done + 1, d_model=64, warmup_steps=200)
    )
    for _ in track(range(steps), description="learning to say it backwards"):
        src_ids, tgt_ids = make_batch(64)
        heard = F.pad(
            tgt_ids[:, :-1], (1, 0), value=START
        )  # shifted right: it never sees the answer
        logits = model(src_ids, heard)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt_ids.flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.inference_mode()
def speak(model: Transformer, src_ids: torch.Tensor) -> torch.Tensor:
    """Translate greedily: one cached step a token."""
    state = model.start(model.encode(src_ids))
    ids = torch.full((src_ids.size(0),), START)
    said = []
    for _ in range(LENGTH):
        logits, state = model.step(ids, state)
        ids = logits.argmax(-1)
        said.append(ids)
    return torch.stack(said, dim=1)


def accuracy(model: Transformer) -> float:
    """Count the sequences that come out right from end to end."""
    src_ids, tgt_ids = make_batch(200)
    return float((speak(model, src_ids) == tgt_ids).all(1).float().mean())


@torch.inference_mode()
def draw_attention(model: Transformer) -> str:
    """Draw where the last layer looks while it writes one sequence, heads averaged."""
    src_ids, tgt_ids = make_batch(1)
    heard = F.pad(tgt_ids[:, :-1], (1, 0), value=START)
    weights = model.explain(src_ids, heard).cross[-1][0].mean(0)  # (T, S)
    lines = [
        "        " + " ".join(f"{number:2d}" for number in src_ids[0].tolist()) + "   <- source"
    ]
    for number, row in zip(tgt_ids[0].tolist(), weights.tolist(), strict=True):
        cells = (SHADES[min(4, int(weight * 5))] * 2 for weight in row)
        lines.append(f"     {number:2d} " + " ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Train, test on sequences it has not seen, and look inside."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    model = train(steps)
    src_ids, _ = make_batch(1)
    print(f"heard:  {src_ids[0].tolist()}")
    print(f"said:   {speak(model, src_ids)[0].tolist()}")
    print(f"right from end to end: {accuracy(model):.1%} of 200 new sequences")
    print(draw_attention(model))


if __name__ == "__main__":
    main()
