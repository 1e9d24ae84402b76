"""Speed of each architecture alone on the machine: training tokens and translated sentences.

Training is timed with the real trainer, on the same batches, after a warm-up; translation with the
trained model on test 2016, with greedy and beam search, batched and one sentence at a time, after a
warm-up round.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attendo import Translator, train
from attendo.core.files import write_atomically
from attendo.text.lines import read_lines

from .study import BEAM, PLAN, corpus_file, result_file, run_settings
from .systems import SYSTEMS, System

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NUM_PARTS, NUM_WARM_UP = 10, 2
"""Number of parts of the steps, and how many of them are a warm-up."""
NUM_UNBATCHED = 20
"""Number of sentences that are translated one by one."""


def time_all(
    folder: Path, names: Sequence[str], *, num_steps: int, log: Callable[[str], None]
) -> dict[str, Any]:
    """Time one system per architecture; learning rate and dropout do not affect the speed.

    Returns the speeds by family, which are also stored in speeds.json. With `num_steps` 0 nothing
    is timed.
    """
    path = folder / "speeds.json"
    speeds = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    for system in (SYSTEMS[name] for name in names):
        is_wanted = not system.is_ablation and system.family not in speeds
        if num_steps and is_wanted and result_file(folder, system.name).exists():
            speeds[system.family] = time_system(folder, system, num_steps=num_steps)
            write_atomically(path, json.dumps(speeds, indent=1) + "\n")
            log(f"{system.family}: {speeds[system.family]}")
    return speeds


def time_system(folder: Path, system: System, *, num_steps: int) -> dict[str, Any]:
    """Time one architecture whose run is finished."""
    plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    sources = list(read_lines(corpus_file(Path(plan["corpus"]), "test_2016_flickr", "en")))
    return {**time_training(folder, system, num_steps), **time_translation(folder, system, sources)}


def time_training(folder: Path, system: System, num_steps: int) -> dict[str, float]:
    """Return the median training speed over some steps, whose results are discarded."""
    never, part = 10 * num_steps, max(1, num_steps // NUM_PARTS)
    config = run_settings(
        folder,
        system,
        max_steps=num_steps,
        log_every=part,
        save_every=never,
        validate_every=never,
        bleu_sentences=0,
    )
    out = folder / "speed" / system.name
    shutil.rmtree(out, ignore_errors=True)
    try:
        train(out=out, config=config)
        lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    finally:
        shutil.rmtree(out, ignore_errors=True)
    events = [json.loads(line) for line in lines]
    token_rates = [event["tokens_per_second"] for event in events if event["event"] == "train"]
    times = [
        datetime.fromisoformat(event["time"]).timestamp()
        for event in events
        if event["event"] == "train"
    ]
    timed = times[NUM_WARM_UP:-1]  # the last one includes validation
    spans = [(late - early) / part for early, late in pairwise(timed)]
    return {
        "train_tokens_per_second": statistics.median(token_rates[NUM_WARM_UP:]),
        "step_seconds": statistics.median(spans),
    }


def time_translation(folder: Path, system: System, sources: list[str]) -> dict[str, float]:
    """Return the sentences per second."""
    translator = Translator.load(folder / "runs" / system.name)
    found = {}
    for name, beam, texts, is_batched in (
        ("greedy", 1, sources, True),
        ("beam", BEAM, sources, True),
        ("alone", BEAM, sources[:NUM_UNBATCHED], False),
    ):
        rounds = [texts] if is_batched else [[text] for text in texts]
        for _ in range(2):  # the first is a warm-up
            begin = time.perf_counter()
            for one in rounds:
                translator.translate(one, beam_size=beam, split="never")
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
        found[f"{name}_sentences_per_second"] = len(texts) / seconds
    return found
