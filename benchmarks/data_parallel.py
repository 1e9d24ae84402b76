"""Data parallelism: what two processes do on this machine, and what docs/guides/scale.md computes.

Each process has one thread. In turns: one process alone, two processes that do not exchange
gradients, and two that do (DDP over gloo). The step that the formula predicts follows from the
second and from the time of an exchange of as many bytes, measured by itself. The shortest of all
steps counts: the one that other work on the machine has disturbed least.

Run: python -m benchmarks.data_parallel [--size small] [--tokens 128] [--steps 20] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from attendo.architectures.registry import get_model_kind
from attendo.data.batching import Batch
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import END_ID, SPECIAL_IDS
from attendo.training.distributed import ProcessGroup, no_sync
from attendo.training.loss_module import LossModule
from attendo.training.train_step import forward_backward

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 32
"""Tokens of a sentence."""
LAST_BUCKET_BYTES = 25 * 2**20
"""Of DDP: what is exchanged after the backward pass."""
NUM_WARM_UP = 2
WAYS = ("alone", "apart", "together")


def make_batch(num_tokens: int, vocab_size: int) -> Batch:
    """Return random sentences of one length."""
    shape = (max(1, num_tokens // LENGTH), LENGTH)
    src_ids = torch.randint(len(SPECIAL_IDS), vocab_size, shape)
    tgt_ids = torch.randint(len(SPECIAL_IDS), vocab_size, shape)
    labels = torch.cat([tgt_ids[:, 1:], torch.full((len(tgt_ids), 1), END_ID)], dim=1)
    return Batch(src_ids, tgt_ids, labels)


def time_steps(step: Callable[[], object], count: int) -> float:
    """Return the seconds of the shortest step."""
    seconds = []
    for number in range(count + NUM_WARM_UP):
        if dist.is_initialized():
            dist.barrier()
        begin = time.perf_counter()
        step()
        if number >= NUM_WARM_UP:
            seconds.append(time.perf_counter() - begin)
    return min(seconds)


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Measure one way in this process, which may be one of two."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    processes = ProcessGroup("cpu")
    results = measure_steps(arguments, processes)
    gc.collect()  # DDP must not outlive the process group: its end can then wait for itself
    processes.close()
    return results


def measure_steps(arguments: argparse.Namespace, processes: ProcessGroup) -> dict[str, float]:
    """Measure steps, and an exchange of as many bytes as the gradients have."""
    options = {**get_model_kind("transformer").preset_options(arguments.size), "dropout": 0.0}
    model = Transformer(vocab_size=arguments.vocab_size, **options).train()
    num_bytes = sum(4 * one.numel() for one in model.parameters())
    loss_module = processes.wrap(LossModule(model, smoothing=0.1), fsdp=False)
    batch = make_batch(arguments.tokens, arguments.vocab_size)

    def step() -> None:
        model.zero_grad(set_to_none=False)
        with no_sync(loss_module, enabled=arguments.way == "apart"):
            forward_backward(loss_module, batch, 1e-3, precision=torch.float32)

    results = {"step": time_steps(step, arguments.steps), "bytes": float(num_bytes)}
    if arguments.way == "together":
        gradients = torch.zeros(num_bytes // 4)
        results["exchange"] = time_steps(lambda: dist.all_reduce(gradients), arguments.steps)
    return results


def start(arguments: argparse.Namespace, way: str) -> dict[str, float]:
    """Measure one way in processes of their own; return what the first one has measured."""
    words = [sys.executable, "-m", "benchmarks.data_parallel", "--way", way]
    for name in ("size", "tokens", "steps", "vocab_size"):
        words += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    count = 1 if way == "alone" else 2
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if count > 1:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        environment |= {"WORLD_SIZE": str(count)}
    started = []
    for rank in range(count):
        variables = {**environment, "RANK": str(rank)} if count > 1 else environment
        started.append(subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate()[0] for process in started]
    results: dict[str, float] = json.loads(outputs[0])
    return results


def predict(compute: float, exchange: float, num_bytes: float) -> float:
    """Return the seconds of a step by the formula of docs/guides/scale.md."""
    last = exchange * min(1.0, LAST_BUCKET_BYTES / num_bytes)
    return compute / 3 + max(2 * compute / 3, exchange) + last


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--size", default="small")
    parser.add_argument("--tokens", type=int, default=128, help="target tokens per process")
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(measure(arguments)))
        return
    rounds = [{way: start(arguments, way) for way in WAYS} for _ in range(arguments.rounds)]
    step = {way: min(one[way]["step"] for one in rounds) for way in WAYS}
    exchange = min(one["together"]["exchange"] for one in rounds)
    num_bytes = rounds[0]["together"]["bytes"]
    predicted = predict(step["apart"], exchange, num_bytes)
    table = Table("", f"best of {len(rounds)} rounds")
    table.add_row("one process: step", f"{1e3 * step['alone']:.1f} ms")
    table.add_row("two, no exchange: step", f"{1e3 * step['apart']:.1f} ms")
    table.add_row(f"exchange of {num_bytes / 1e6:.0f} MB alone", f"{1e3 * exchange:.1f} ms")
    table.add_row("two, with exchange: step", f"{1e3 * step['together']:.1f} ms")
    table.add_row("by the formula", f"{1e3 * predicted:.1f} ms")
    table.add_row("formula / measured", f"{predicted / step['together']:.2f}")
    table.add_row("tokens/s of two / of one", f"{2 * step['alone'] / step['together']:.2f}")
    Console(width=100).print(table)
    print("load average:", os.getloadavg())


if __name__ == "__main__":
    main()
