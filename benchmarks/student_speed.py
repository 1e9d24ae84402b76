"""Speed of small students in int8, compared with the paper's base in int8: sentences per second.

All models have random weights, read 20 tokens and write 20 (the end symbol is suppressed), greedy,
in CTranslate2. They translate in alternating rounds, so that noise affects all alike; each ratio is
the median over the rounds. Goal of the students of `configs/build`: 8 times base.

Run: python -m benchmarks.student_speed [--threads 2] [--rounds 5] [--batch 64] [--cpu-time]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from attendo import Transformer
from attendo.bundle import Bundle
from attendo.core.seeding import seed_everything
from attendo.decoding.options import DecodingOptions
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import write
from benchmarks.inference_cpu import SUPPRESSED_BIAS, make_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.translator.backends.pytorch import PyTorchBackend

DEEP = {"num_layers": 6, "num_decoder_layers": 2, "norm": "pre"}
MODELS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "base, 37,000 pieces": ("base", 37_000, {}),
    "6 + 2 x 256 / 1536, 16,000": ("small", 16_000, {**DEEP, "d_ff": 1536}),
    "6 + 1 x 256 / 1536, 16,000": (
        "small",
        16_000,
        {**DEEP, "d_ff": 1536, "num_decoder_layers": 1},
    ),
    "6 + 1 x 256 / 1024, 8,000": ("small", 8_000, {**DEEP, "num_decoder_layers": 1}),
}
"""Preset, vocabulary size, other options; the others are compared with the first."""
LENGTH = 20


def load_model(
    preset: str, vocab_size: int, options: dict[str, Any], folder: Path
) -> tuple[CTranslate2Backend, float]:
    """Return a model with random weights in int8, and its megabytes."""
    seed_everything(1)
    given = {"vocab_size": vocab_size, "output_bias": True, **options}
    model = Transformer.from_preset(preset, **given).eval()
    model.output.bias.data.zero_()[: END_ID + 1] = SUPPRESSED_BIAS
    write(Bundle(model, make_tokenizer(vocab_size), {}), folder, quantization="int8")
    megabytes = (folder / "model.bin").stat().st_size / 1e6
    return CTranslate2Backend(folder, precision="int8", load_native=_no_native), megabytes


def _no_native() -> PyTorchBackend:
    raise AssertionError("only CTranslate2 is measured")


def measure(
    backend: CTranslate2Backend, count: int, vocab_size: int, seed: int, clock: Callable[[], float]
) -> float:
    """Return the seconds of one batch of random sentences."""
    import random

    rng = random.Random(seed)  # noqa: S311 - not a secret
    rows = [
        [rng.randrange(END_ID + 1, vocab_size) for _ in range(LENGTH - 1)] for _ in range(count)
    ]
    items = [TranslationItem("", [*row, END_ID]) for row in rows]
    started = clock()
    backend.search(items, DecodingOptions(beam_size=1, max_extra_tokens=0))
    return clock() - started


def _thread_seconds(threads: int) -> float:
    return time.process_time() / threads


def main() -> None:
    """Measure all models in alternating rounds and print their speed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--cpu-time", action="store_true", help="CPU time per thread: for a machine that others use"
    )
    args = parser.parse_args()
    clock = partial(_thread_seconds, args.threads) if args.cpu_time else time.perf_counter
    import torch

    torch.set_num_threads(args.threads)
    seconds: dict[str, list[float]] = {name: [] for name in MODELS}
    with tempfile.TemporaryDirectory() as work:
        loaded = {}
        for number, (name, model) in enumerate(MODELS.items()):
            folder = Path(work) / str(number)
            folder.mkdir()
            loaded[name] = load_model(*model, folder)
        for seed in range(args.rounds + 1):
            for name, (backend, _) in loaded.items():
                taken = measure(backend, args.batch, MODELS[name][1], seed, clock)
                if seed:  # the first round warms up
                    seconds[name].append(taken)
    base = next(iter(MODELS))
    table = Table(box=None)
    for heading in ("model", "MB", "sentences/s", "times base"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, times in seconds.items():
        speed = args.batch / statistics.median(times)
        ratio = statistics.median(a / b for a, b in zip(seconds[base], times, strict=True))
        table.add_row(name, f"{loaded[name][1]:.1f}", f"{speed:,.0f}", f"{ratio:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
