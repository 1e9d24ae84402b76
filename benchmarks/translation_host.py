"""The work around the model for each line: splitting, tokenizing, detokenizing, objects, threads.

The backend returns the source ids at once, so that nothing else takes time. CPU time is measured,
which other processes disturb little.

    python -m benchmarks.translation_host runs/en-fr corpus.en --lines 60000
"""

from __future__ import annotations

import argparse
import resource
import time
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.run_folder import ModelFolder
from attendo.decoding.hypothesis import Hypothesis, SearchResult
from attendo.text.lines import read_lines
from attendo.text.tokenizer import Tokenizer
from attendo.translator import Translator
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.base import TranslationItem

WINDOW = 2048


class CopyBackend(PyTorchBackend):
    """Returns the ids of the source."""

    def __init__(self) -> None:
        super().__init__(torch.nn.Identity())  # type: ignore[arg-type]

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,  # noqa: ARG002 - it searches nothing
        **_: Any,
    ) -> list[SearchResult]:
        """Return one hypothesis per item."""
        return [SearchResult([Hypothesis(one.ids[:-1], -1.0, -1.0, [], True)]) for one in items]


def main() -> None:
    """Print microseconds of CPU time per line for each step, then for the whole pipeline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a folder with a tokenizer")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--lines", type=int, default=60_000, help="the file is repeated as needed")
    options = parser.parse_args()
    folder = ModelFolder.find(options.model).path
    translator = Translator(torch.nn.Identity(), Tokenizer.load(folder), backend=CopyBackend())  # type: ignore[arg-type]
    texts = list(read_lines(options.texts))[: options.lines]
    seconds = {"prepare": 0.0, "search": 0.0, "finish": 0.0}
    steps = translator.make_steps()
    steps.translate(texts[:WINDOW])
    for start in range(0, len(texts), WINDOW):
        times = [time.process_time()]
        window = steps.prepare(texts[start : start + WINDOW])
        times.append(time.process_time())
        steps.search(window)
        times.append(time.process_time())
        steps.finish(window)
        times.append(time.process_time())
        for name, begin, end in zip(seconds, times, times[1:], strict=False):
            seconds[name] += end - begin
    for name, total in seconds.items():
        print(f"{name}: {1e6 * total / len(texts):.1f} us a line")
    cpu_begin, wall_begin = time.process_time(), time.perf_counter()
    lines = islice(cycle(texts), options.lines)
    count = sum(1 for _ in translator.translate_lines(lines))
    cpu, wall = time.process_time() - cpu_begin, time.perf_counter() - wall_begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"pipeline: {1e6 * cpu / count:.1f} us a line, {count / wall:,.0f} lines/s, {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
