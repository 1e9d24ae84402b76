"""The table of a server's speed and of the decoder's own, in one command and a few minutes.

Serves a model to 1, 64 and 512 clients with one sentence per request, and to 16 clients with 64,
in slots and (with `--compare`) in batches; then times the decoder alone, one sentence at a time
with greedy search and 512 with beam 4. Without a model folder, a base model is first trained for a
minute on synthetic Korean and English, so that its sentences have realistic ends.

Goals on one H200: 1 client 90 sentences/s, p50 12 ms, p99 20 ms; 64 clients 2,000/s, p99 80 ms; 512
clients 5,000/s, p99 250 ms, no error; 16 x 64 15,000/s; no CUDA graph captured after the warm-up;
batch 1 greedy 200/s; 512 x beam 4 14,000/s.

Run: python -m benchmarks.serving_table [runs/ko-en] [--compare] [--precision bfloat16]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attendo.synthetic.everyday import synthesize_pairs

LOADS = ("1", "64", "512", "16x64")
CASES = (("1x32+32", "1"), ("512x32+32", "4"))
"""Batch and beam size of the decoder alone."""
NUM_PAIRS = 30_000


def run_attendo(*words: str, limit: float) -> None:
    """Run a command of Attendo, and print what it prints; go on if it fails."""
    print(f"\n$ attendo {' '.join(words)}", flush=True)
    start = time.perf_counter()
    try:
        done = subprocess.run([sys.executable, "-m", "attendo", *words], check=False, timeout=limit)
        ending = f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        ending = "ended after its time limit"
    print(f"({ending}, {time.perf_counter() - start:.1f} s)", flush=True)


def train_model(folder: Path, options: argparse.Namespace) -> Path:
    """Train a model on synthetic sentences, and return its folder."""
    pairs = synthesize_pairs(options.pairs, seed=1)
    paths = [folder / f"pairs.{code}" for code in ("ko", "en")]
    paths[0].write_text("".join(f"{pair.ko}\n" for pair in pairs), encoding="utf-8")
    paths[1].write_text("".join(f"{pair.en}\n" for pair in pairs), encoding="utf-8")
    run_attendo(
        *("train", "--src", str(paths[0]), "--tgt", str(paths[1]), "--out", str(folder / "run")),
        *("--src-lang", "ko", "--tgt-lang", "en"),
        *("--preset", options.preset, "--steps", str(options.steps)),
        limit=options.train_limit,
    )
    return folder / "run"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--compare", action="store_true", help="also serve without slots")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--seconds", default="8", help="of each load")
    parser.add_argument("--preset", default="base", help="size of the model to train and to time")
    parser.add_argument("--steps", type=int, default=400, help="training steps without a model")
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS)
    parser.add_argument("--train-limit", type=float, default=150.0, metavar="SECONDS")
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="attendo-table-") as folder:
        model = options.model or train_model(Path(folder), options)
        loads = [word for load in LOADS for word in ("--clients", load)]
        serve = ["bench", "serve", str(model), "--engine", "attendo", "--seconds", options.seconds]
        serve += ["--precision", options.precision, *loads]
        run_attendo(*serve, limit=180)
        if options.compare:
            run_attendo(*serve, "--set", "slots=0", limit=180)
    for batch, beam in CASES:
        run_attendo(
            *("bench", "decode", "--alone", "--size", options.preset, "--batch", batch),
            *("--beam", beam, "--precision", options.precision),
            limit=120,
        )
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
