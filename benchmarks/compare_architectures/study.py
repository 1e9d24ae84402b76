"""Trains every system with the real trainer, several in parallel, and translates val and test.

Each system runs in its own process (`python -m benchmarks.compare_architectures.study FOLDER
NAME`), so that one failure does not affect the others; finished systems are skipped. Parallel runs
say nothing about speed: `speed` times each architecture alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo import Translator, train
from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.hardware import usable_cores
from attendo.text.lines import read_lines

from .systems import SYSTEMS, System

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BEAM, ALPHA = 5, 1.0
SETS = ("val", "test_2016_flickr")
PLAN = "plan.json"


def corpus_file(corpus: Path, part: str, lang: str) -> Path:
    """Return the path of an official lower-cased, normalized, tokenized file of Multi30k."""
    names = [f"{part}.lc.norm.tok.{lang}{suffix}" for suffix in (".gz", "")]
    for path in (corpus / name for name in names):
        if path.is_file():
            return path
    hint = "give the folder tok of github.com/multi30k/dataset with --corpus"
    raise InputError(f"{corpus} has no {names[1]}", hint=hint)


def write_plan(folder: Path, corpus: Path, *, num_steps: int, vocab_size: int) -> None:
    """Write the settings that all systems share to the results folder."""
    for part in ("train", *SETS):
        for lang in ("en", "de"):
            corpus_file(corpus, part, lang)
    folder.mkdir(parents=True, exist_ok=True)
    plan = {"corpus": str(corpus.resolve()), "num_steps": num_steps, "vocab_size": vocab_size}
    write_atomically(folder / PLAN, json.dumps(plan, indent=1) + "\n")


def train_all(
    folder: Path, names: Sequence[str], *, jobs: int, log: Callable[[str], None]
) -> list[str]:
    """Run the unfinished systems in parallel and return the names of those that failed.

    Args:
        folder: The folder of `write_plan`; gets results/NAME.json and logs/NAME.txt.
        names: Names in `systems.SYSTEMS`.
        jobs: Number of parallel processes.
        log: Called with a line whenever a system ends.

    """
    (folder / "logs").mkdir(exist_ok=True)
    waiting = [name for name in names if not result_file(folder, name).exists()]
    running: dict[str, subprocess.Popen[bytes]] = {}
    failed = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                running[name] = _start(folder, name, jobs=jobs)
            time.sleep(0.5)
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode:
                    failed.append(name)
                log_path = folder / "logs" / f"{name}.txt"
                log(f"{name}: {'FAILED, see ' + str(log_path) if process.returncode else 'done'}")
    finally:
        for process in running.values():
            process.terminate()
    return failed


def _start(folder: Path, name: str, *, jobs: int) -> subprocess.Popen[bytes]:
    """Start a system with its share of the cores, since more threads would slow it down."""
    threads = max(1, usable_cores() // jobs)
    command = [sys.executable, "-m", f"{__package__}.study", str(folder), name]
    with (folder / "logs" / f"{name}.txt").open("w", encoding="utf-8") as log_file:
        variables = {"OMP_NUM_THREADS": str(threads), **os.environ}
        return subprocess.Popen(command, stdout=log_file, stderr=subprocess.STDOUT, env=variables)


def result_file(folder: Path, name: str) -> Path:
    """Return the path of the results of one system."""
    return folder / "results" / f"{name}.json"


def run_settings(folder: Path, system: System, **changes: Any) -> Path:
    """Write the config of a system's run, with some training settings changed."""
    plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    corpus = Path(plan["corpus"])
    settings = system.settings(num_steps=plan["num_steps"])
    settings["train"] |= changes
    train_files, dev_files = (
        {
            side: str(corpus_file(corpus, part, lang))
            for side, lang in (("src", "en"), ("tgt", "de"))
        }
        for part in ("train", "val")
    )
    settings["data"] = {
        "corpora": [train_files],
        "dev": dev_files,
        "tokenizer": {"vocab_size": plan["vocab_size"]},
        "src_lang": "en",
        "tgt_lang": "de",
    }
    path = folder / "configs" / f"{system.name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(settings, indent=1) + "\n")
    return path


def study(folder: Path, system: System) -> None:
    """Train one system, translate val and test, and write all results."""
    begin = time.perf_counter()
    finished = train(out=folder / "runs" / system.name, config=run_settings(folder, system))
    seconds = time.perf_counter() - begin
    plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    translator = Translator.load(finished.directory)
    outputs = {}
    for part in SETS:
        sources = list(read_lines(corpus_file(Path(plan["corpus"]), part, "en")))
        translations = translator.translate(sources, beam_size=BEAM, alpha=ALPHA, split="never")
        outputs[part] = [str(one) for one in translations]
    events = (finished.directory / "log.jsonl").read_text(encoding="utf-8").splitlines()
    events_read = [json.loads(line) for line in events]
    result = {
        "name": system.name,
        "num_parameters": sum(p.numel() for p in translator.backend.modules[0].parameters()),
        "num_steps": finished.report["steps"],
        "seconds_in_parallel": seconds,
        "validations": [event for event in events_read if event["event"] == "validation"],
        "losses": [
            (event["step"], event["loss"]) for event in events_read if event["event"] == "train"
        ],
        "dev": finished.report["dev"],
        "outputs": outputs,
    }
    path = result_file(folder, system.name)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    study(Path(sys.argv[1]), SYSTEMS[sys.argv[2]])
