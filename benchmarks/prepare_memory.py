"""Peak memory of data preparation at two sizes. Goal: 10 times the pairs, 1.3 times the peak.

Run: python benchmarks/prepare_memory.py --small 400000 --large 4000000
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

TARGET_RATIO = 1.3
NUM_WORDS = 60_000
SYLLABLES = {"src": "가나다라마바사아자차카타파하거너더러머버", "tgt": "abdefghiklmnoprstuvz"}


def make_words(side: str) -> list[str]:
    """Return distinct random words of two to five letters or syllables."""
    rng = random.Random(side)  # noqa: S311 - not for secrets
    words: dict[str, None] = {}
    while len(words) < NUM_WORDS:
        words["".join(rng.choices(SYLLABLES[side], k=rng.randint(2, 5)))] = None
    return list(words)


def write_side(path: Path, side: str, num_pairs: int) -> None:
    """Write random sentences of 4 to 16 words with Zipf frequencies."""
    rng = random.Random(f"{side} sentences")  # noqa: S311 - not for secrets
    words = make_words(side)
    weights = list(accumulate(1 / rank for rank in range(1, NUM_WORDS + 1)))
    with path.open("w", encoding="utf-8") as file:
        for _ in range(num_pairs):
            chosen = rng.choices(words, cum_weights=weights, k=rng.randint(4, 16))
            file.write(" ".join(chosen) + ".\n")


def measure_here(folder: Path) -> None:
    """Prepare the corpus of a folder in this process, and print the measurements as JSON."""
    from attendo.data.config import DataConfig
    from attendo.data.corpus_config import CorpusConfig
    from attendo.data.pipeline import prepare_data

    begin = time.perf_counter()
    stages: dict[str, float] = {}

    def record_stage(stage: str, _done: int, _total: int | None) -> None:
        stages[stage] = round(time.perf_counter() - begin, 1)

    corpus = CorpusConfig(src=folder / "src.txt", tgt=folder / "tgt.txt")
    data = prepare_data(DataConfig(corpora=(corpus,)), folder / "cache", progress=record_stage)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "peak_mib": peak,
        "seconds": time.perf_counter() - begin,
        "num_train": len(data.train[0][0]),
        "vocab_size": data.tokenizer.src_vocab_size,
        "stage_ends": stages,
    }
    print(json.dumps(figures))


def measure(num_pairs: int) -> float:
    """Prepare `num_pairs` pairs in a new process, print a line, return the peak in MiB."""
    with tempfile.TemporaryDirectory(prefix="attendo-prepare-") as name:
        folder = Path(name)
        for side in SYLLABLES:
            write_side(folder / f"{side}.txt", side, num_pairs)
        command = [sys.executable, __file__, "--child", name]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures = json.loads(output)
    print(
        f"{num_pairs:>10,} pairs: peak {figures['peak_mib']:6.0f} MiB, {figures['seconds']:.1f} s, "
        f"{figures['num_train']:,} kept, vocabulary {figures['vocab_size']:,}, "
        f"stages end at {figures['stage_ends']}",
        flush=True,
    )
    return float(figures["peak_mib"])


def main() -> None:
    """Compare the two peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=400_000)
    parser.add_argument("--large", type=int, default=4_000_000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure_here(options.child)
        return
    ratio = measure(options.large) / measure(options.small)
    verdict = "within" if ratio <= TARGET_RATIO else "MISSES"
    print(f"ratio {ratio:.2f}: {verdict} the target of {TARGET_RATIO}")


if __name__ == "__main__":
    main()
