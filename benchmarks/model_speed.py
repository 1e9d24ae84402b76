"""One training step of the base model compared with `torch.nn.Transformer` of the same size.

Both embed the same batch with the same tied matrix, run forward, compute the same loss and run
backward. Rounds alternate, so that noise affects both alike. The ratio is the result.

Run: make bench, or python benchmarks/model_speed.py [--dtype bfloat16] [--batch 64] [--length 32]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from attendo import Transformer
from attendo.core.seeding import seed_everything

if TYPE_CHECKING:
    from collections.abc import Callable

VOCAB = 37_000


class Peer(nn.Module):
    """`torch.nn.Transformer` with our embeddings, positions and tied output around it."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        config = model.config
        self.core = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_layers,
            config.num_layers,
            config.d_ff,
            dropout=config.dropout,
            batch_first=True,
        )

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing with the same masks."""
        model = self.model
        length = tgt_ids.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=tgt_ids.device).triu(1)
        padding = src_ids == 0
        states = self.core(
            model.dropout(model.src_positions(model.src_embedding(src_ids))),
            model.dropout(model.tgt_positions(model.tgt_embedding(tgt_ids))),
            tgt_mask=future,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=tgt_ids == 0,
            memory_key_padding_mask=padding,
        )
        logits: Tensor = model.output(states)
        return logits


def time_step(run: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of one call."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def main() -> None:
    """Print the tokens per second of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    seed_everything(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = getattr(torch, options.dtype)
    ours = Transformer.from_preset(options.preset, vocab_size=VOCAB).to(device)
    peer = Peer(Transformer.from_preset(options.preset, vocab_size=VOCAB)).to(device)
    src_ids, tgt_ids = (
        torch.randint(1, VOCAB, (options.batch, options.length), device=device) for _ in range(2)
    )

    def step(model: nn.Module) -> None:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            logits = model(src_ids, tgt_ids)
            loss = F.cross_entropy(logits.flatten(0, 1), tgt_ids.flatten(), label_smoothing=0.1)
        loss.backward()
        model.zero_grad()

    names = {"attendo": ours, "torch.nn.Transformer": peer}
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.rounds + 2):
        for name, model in names.items():
            seconds = time_step(lambda model=model: step(model), device)  # type: ignore[misc]
            if number >= 2:  # the first two are a warm-up
                times[name].append(seconds)
    machine = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(
        f"{options.preset}, {options.batch} x {options.length} tokens, {options.dtype}, {machine}, "
        f"torch {torch.__version__}, forward and backward:"
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, seconds in medians.items():
        tokens = options.batch * options.length / seconds
        print(f"  {name:22s} {seconds * 1000:8.1f} ms  {tokens:10.0f} target tokens/s")
    ratio = medians["torch.nn.Transformer"] / medians["attendo"]
    print(f"  attendo is {ratio:.2f} times as fast as torch.nn.Transformer")


if __name__ == "__main__":
    main()
