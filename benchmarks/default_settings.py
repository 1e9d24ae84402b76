"""The settings that `attendo train` chooses, compared with a grid of settings.

For each size, a random part of a corpus is trained on with the default settings and with each row
of the grid, several runs at a time. Dev chooses the best row of the grid; the table shows its
scores and those of the default on a test part that was not used for any choice.

    python -m benchmarks.default_settings --src train.en --tgt train.fr \
        --dev-src dev.en --dev-tgt dev.fr --test-src test.en --test-tgt test.fr \
        --sizes 2000 10000 50000 --parallel 8 --out runs/defaults

A row of the grid is a table of settings, as in `--set`; `--grid FILE` reads others from JSON:
a list of objects with `name`, `sizes` (or none for all) and `settings`. A result that exists
is not computed again.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attendo.text.lines import read_lines

SMALL = {"model.preset": "small", "model.norm": "pre"}
TINY = {"model.preset": "tiny"}
LONG = {"train.schedule": "inverse_sqrt", "train.patience": 1000}
GRID: list[dict[str, Any]] = [
    {"name": "tiny", "settings": TINY | LONG | {"train.peak_lr": 2e-3, "train.warmup_steps": 500}},
    {"name": "small", "settings": {"model.preset": "small"}},
    {"name": "small, pre-norm, dropout 0.1", "settings": SMALL | {"model.dropout": 0.1}},
    {"name": "small, pre-norm, dropout 0.4", "settings": SMALL | {"model.dropout": 0.4}},
    {"name": "small, R-Drop", "settings": SMALL | {"train.rdrop_weight": 1.0}},
    {"name": "small, vocabulary 2,000", "settings": SMALL | {"data.tokenizer.vocab_size": 2000}},
    {"name": "small, vocabulary 8,000", "settings": SMALL | {"data.tokenizer.vocab_size": 8000}},
    {"name": "base", "settings": {"model.preset": "base", "model.dropout": 0.3}},
]


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    grid = json.loads(arguments.grid.read_text("utf-8")) if arguments.grid else GRID
    jobs = []
    for size in arguments.sizes:
        write_part(arguments, size)
        rows = [{"name": "default", "settings": {}}, *grid]
        jobs += [(size, row) for row in rows if size in row.get("sizes", [size])]
    with ThreadPoolExecutor(arguments.parallel) as pool:
        results = list(pool.map(lambda job: run_job(arguments, *job), jobs))
    print_table(results)


def parse_arguments() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("src", "tgt", "dev-src", "dev-tgt", "test-src", "test-tgt"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--grid", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def write_part(arguments: argparse.Namespace, size: int) -> None:
    """Write a random part of the corpus, the same one every time."""
    sides = [list(read_lines(path)) for path in (arguments.src, arguments.tgt)]
    order = list(range(len(sides[0])))
    random.Random(7).shuffle(order)  # noqa: S311 - not for secrets
    for side, lines in zip(("src", "tgt"), sides, strict=True):
        text = "".join(f"{lines[index]}\n" for index in order[:size])
        (arguments.out / f"{size}.{side}").write_text(text, encoding="utf-8", newline="\n")


def run_job(arguments: argparse.Namespace, size: int, row: dict[str, Any]) -> dict[str, Any]:
    """Train and score one row, unless it was done before."""
    name = "".join(letter if letter.isalnum() else "-" for letter in row["name"])
    run = arguments.out / f"{size}.{name}"
    result_path = run.with_suffix(".json")
    if result_path.exists():
        done: dict[str, Any] = json.loads(result_path.read_text("utf-8"))
        return done
    start = time.perf_counter()
    data = [arguments.out / f"{size}.src", arguments.out / f"{size}.tgt"]
    options = ["--src", data[0], "--tgt", data[1], "--out", run]
    options += ["--dev-src", arguments.dev_src, "--dev-tgt", arguments.dev_tgt]
    for key, value in row["settings"].items():
        options += ["--set", f"{key}={json.dumps(value)}"]
    attendo("train", *options)
    seconds = time.perf_counter() - start
    scores = {
        part: score(run, getattr(arguments, f"{part}_src"), getattr(arguments, f"{part}_tgt"))
        for part in ("dev", "test")
    }
    result = {"size": size, "name": row["name"], "seconds": round(seconds, 1), **scores}
    result_path.write_text(json.dumps(result), encoding="utf-8")
    print(result, flush=True)
    return result


def score(run: Path, src: Path, ref: Path) -> dict[str, float]:
    """Return BLEU and chrF of beam 4."""
    output = attendo("evaluate", run, "--src", src, "--ref", ref, "--beam-size", 4, "--json")
    return {row["key"]: row["value"] for row in json.loads(output)["system"]["scores"]}


def attendo(*options: Any) -> str:
    """Run a command and return its output."""
    command = [sys.executable, "-m", "attendo", *map(str, options)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def print_table(results: list[dict[str, Any]]) -> None:
    """Print the default next to the best row of the grid, for each size."""
    print(
        "| pairs | default, test BLEU / chrF | best of the grid | share of chrF | share of time |"
    )
    print("|---:|---|---|---:|---:|")
    for size in sorted({result["size"] for result in results}):
        rows = [result for result in results if result["size"] == size]
        default = next(row for row in rows if row["name"] == "default")
        grid = [row for row in rows if row is not default]
        best = max(grid, key=lambda row: row["dev"]["chrf"])
        ours, theirs = default["test"], best["test"]
        share = ours["chrf"] / theirs["chrf"]
        seconds = default["seconds"] / sum(row["seconds"] for row in grid)
        print(
            f"| {size:,} | {ours['bleu']:.1f} / {ours['chrf']:.1f} | {best['name']}: "
            f"{theirs['bleu']:.1f} / {theirs['chrf']:.1f} | {share:.1%} | {seconds:.1%} |"
        )


if __name__ == "__main__":
    main()
