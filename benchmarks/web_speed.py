"""Speed of a small student in a web page, compared with CTranslate2: greedy, int8, one thread.

The model has random weights; it reads 20 tokens and writes 20. Sentences per second of CPU time are
measured in alternating rounds, in headless Chromium (`frontend/web-speed.mjs`) and in CTranslate2;
the medians are printed, and the ratios. Goal: 0.4 of CTranslate2, 10 sentences/s.

Run: python -m benchmarks.web_speed [--rounds 3] [--onnx-runtime]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import ctranslate2  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from attendo import Transformer
from attendo.bundle import Bundle
from attendo.core.seeding import seed_everything
from attendo.interop.onnx.export import write as write_onnx
from attendo.interop.onnx.quantize import quantize
from attendo.text.tokenizer import END_ID
from attendo.translator.backends.ctranslate2.converter import write as write_ctranslate2
from benchmarks.inference_cpu import SUPPRESSED_BIAS, make_tokenizer
from benchmarks.student_speed import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

FRONTEND = Path(__file__).resolve().parents[1] / "frontend"
STUDENT = "6 + 2 x 256 / 1536, 16,000"
LENGTH, BATCH_SIZES = 20, (1, 8, 32)
RUNTIMES = ("relaxed SIMD", "SIMD")
SECONDS = 1.5
"""Of each measurement."""
Speeds = dict[int, float]


def write_student(folder: Path) -> None:
    """Write the student with random weights, for the web page and for CTranslate2."""
    preset, vocab_size, options = MODELS[STUDENT]
    seed_everything(1)
    model = Transformer.from_preset(
        preset, vocab_size=vocab_size, output_bias=True, **options
    ).eval()
    model.output.bias.data.zero_()[: END_ID + 1] = SUPPRESSED_BIAS
    bundle = Bundle(model, make_tokenizer(vocab_size), {})
    for name in ("web", "ctranslate2"):
        (folder / name).mkdir()
    write_onnx(bundle, folder / "web", has_attention=True, shares_projection=False)
    quantize(folder / "web")
    write_ctranslate2(bundle, folder / "ctranslate2", quantization="int8")


def measure_browser(folder: Path, runtimes: tuple[str, ...]) -> dict[str, Speeds]:
    """Return sentences per second by runtime and batch size."""
    command = [FRONTEND / "with_node.sh", "node", "web-speed.mjs", folder, str(SECONDS)]
    command.append(",".join(runtimes))
    answer = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout.splitlines()[-1])
    return {
        name: {int(size): one for size, one in speeds.items()} for name, speeds in found.items()
    }


def open_ctranslate2(folder: Path) -> Callable[[int, int], None]:
    """Return a function that translates batches of one size, repeatedly."""
    translator = ctranslate2.Translator(
        str(folder), compute_type="int8", intra_threads=1, inter_threads=1
    )
    pieces = json.loads(next(folder.glob("*vocabulary.json")).read_text("utf-8"))
    source = [pieces[100 + 37 * position] for position in range(LENGTH)]

    def translate(batch_size: int, repeats: int) -> None:
        for _ in range(repeats):
            translator.translate_batch(
                [source] * batch_size,
                beam_size=1,
                min_decoding_length=LENGTH,
                max_decoding_length=LENGTH,
            )

    return translate


def measure_ctranslate2(translate: Callable[[int, int], None]) -> Speeds:
    """Return sentences per second by batch size."""

    def clock(batch_size: int, repeats: int) -> float:
        start = time.process_time()
        translate(batch_size, repeats)
        return time.process_time() - start

    speeds = {}
    for batch_size in BATCH_SIZES:
        clock(batch_size, 3)
        repeats = max(1, round(SECONDS / clock(batch_size, 1)))
        speeds[batch_size] = repeats * batch_size / clock(batch_size, repeats)
    return speeds


def main() -> None:
    """Print the speeds and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--onnx-runtime", action="store_true", help="measure ONNX Runtime Web too")
    given = parser.parse_args()
    runtimes = (*RUNTIMES, "ONNX Runtime") if given.onnx_runtime else RUNTIMES
    rounds: list[dict[str, Speeds]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_student(folder)
        translate = open_ctranslate2(folder / "ctranslate2")
        for _ in range(given.rounds):
            speeds = {"CTranslate2": measure_ctranslate2(translate)}
            rounds.append(speeds | measure_browser(folder / "web", runtimes))
    table = Table("runtime", *(f"batch {size}" for size in BATCH_SIZES), *("ratio",) * 3)
    for runtime in ("CTranslate2", *runtimes):
        medians = [statistics.median(one[runtime][size] for one in rounds) for size in BATCH_SIZES]
        ratios = [
            statistics.median(one[runtime][size] / one["CTranslate2"][size] for one in rounds)
            for size in BATCH_SIZES
        ]
        cells = [*(f"{one:.0f}" for one in medians), *(f"{one:.2f}" for one in ratios)]
        table.add_row(runtime, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
