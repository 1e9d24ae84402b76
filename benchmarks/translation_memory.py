"""How fast a translation memory answers, and how many of the best matches it finds.

    python benchmarks/translation_memory.py ../shared/data/debian-l10n-en-ko --units 100000

Fills a store with distinct lines of a corpus, looks up other lines, and compares what it finds with
the best match among all units (rapidfuzz over a list in memory). Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from attendo.memory.store import MIN_SCORE, TranslationMemory
from attendo.memory.unit import Unit, normalize_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main() -> None:
    """Fill a store, look up, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--src", default="en")
    parser.add_argument("--tgt", default="ko")
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    args = parser.parse_args()
    names = (f"train.{args.src}.gz", f"train.{args.tgt}.gz")
    columns = [
        gzip.decompress((args.data / one).read_bytes()).decode().split("\n") for one in names
    ]
    distinct: dict[str, str] = {}
    for src, tgt in zip(*columns, strict=True):
        if src.strip() and tgt.strip():
            distinct.setdefault(src, tgt)
    pairs = list(distinct.items())
    random.Random(1).shuffle(pairs)  # noqa: S311 - no secret
    known, others = pairs[: args.units], pairs[args.units :][: args.queries]
    queries = [src for src, _ in others]
    languages = (args.src, args.tgt)
    with TemporaryDirectory() as folder, TranslationMemory(Path(folder) / "memory.db") as memory:
        start = perf_counter()
        memory.add(Unit(src, tgt, *languages) for src, tgt in known)
        fill_seconds = perf_counter() - start
        exact = time_each(
            lambda text: memory.find_exact(text, *languages), [s for s, _ in known[: args.queries]]
        )
        found: dict[str, float] = {}

        def look_up(text: str) -> None:
            matches = memory.find_fuzzy(text, *languages)
            found[text] = matches[0].score if matches else 0.0

        fuzzy = time_each(look_up, queries)
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
    keys = [normalize_source(src).casefold() for src, _ in known]
    best = {text: best_score(text, keys) for text in queries}
    facts = {
        "units": len(known), "megabytes": round(size / 1e6), "fill_seconds": round(fill_seconds, 1),
        "exact_ms": summarize(exact), "fuzzy_ms": summarize(fuzzy),
        "queries": len(queries), "with_match": sum(score > 0 for score in best.values()),
        "best_missed": sum(found[text] < score - 1e-6 for text, score in best.items()),
    }  # fmt: skip
    print(json.dumps(facts))


def time_each(function: Callable[[str], Any], texts: Sequence[str]) -> list[float]:
    """Return the milliseconds of each call."""
    times = []
    for text in texts:
        start = perf_counter()
        function(text)
        times.append(1000 * (perf_counter() - start))
    return times


def summarize(times: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    return {"median": round(median(times), 2), "p95": round(quantiles(times, n=20)[-1], 2)}


def best_score(text: str, keys: Sequence[str]) -> float:
    """Return the best score among all units, 0 if none is similar."""
    found = process.extractOne(
        normalize_source(text).casefold(),
        keys,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=MIN_SCORE,
    )
    return min(float(found[1]), 0.99) if found else 0.0


if __name__ == "__main__":
    main()
