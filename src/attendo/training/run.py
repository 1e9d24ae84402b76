"""The builder's main job: two text files in, a trained model folder out, by one call."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import build_model, get_weights, load_bundle, save_bundle, set_weights
from attendo.core.errors import ConfigError, InputError
from attendo.core.files import write_atomically
from attendo.core.seeding import seed_everything
from attendo.data.batching import BatchPlan
from attendo.data.prepare import PreparedData, prepare
from attendo.training.averaging import average
from attendo.training.config import RunConfig
from attendo.training.distributed import Processes
from attendo.training.metrics import read_events
from attendo.training.progress import Reporter, Silence
from attendo.training.report import describe, render
from attendo.training.samples import SampleBook
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from attendo.model.transformer import Transformer

CONFIG = "config.json"


class FinishedRun(NamedTuple):
    """What a run leaves."""

    directory: Path
    model_dir: Path
    report: dict[str, Any]


def train_run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    cache_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Prepare, train, average and write the folder `out/model`; go on where a run stopped."""
    directory = Path(out)
    reporter = reporter or Silence()
    processes = Processes()
    try:
        if processes.is_main:
            open_run(config, directory, force=force)
        processes.wait()
        prepared = prepare_data(config, processes, cache_dir or default_cache(), reporter)
        return _train(config, directory, prepared, processes, reporter)
    finally:
        processes.close()


def default_cache() -> Path:
    """Give the folder of prepared corpora: ATTENDO_CACHE, else ~/.cache/attendo."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTENDO_CACHE") or Path(home) / "attendo")


def open_run(config: RunConfig, directory: Path, *, force: bool) -> None:
    """Make the run folder, or make sure that it is this run's own."""
    path = directory / CONFIG
    if force and path.exists():
        shutil.rmtree(directory)
    if path.exists():
        differences = config.differences(RunConfig.load(path))
        if differences:
            listing = "".join(f"\n  - {line}" for line in differences[:8])
            raise ConfigError(
                f"{directory} holds another run:{listing}",
                remedy="choose another --out, or --force to delete that run and start anew",
            )
    elif directory.exists() and any(directory.iterdir()):
        raise InputError(
            f"{directory} is not empty and holds no run",
            remedy="choose another --out: nothing in it was touched",
        )
    directory.mkdir(parents=True, exist_ok=True)
    config.save(path)


def prepare_data(
    config: RunConfig, processes: Processes, cache_dir: Path, reporter: Reporter
) -> PreparedData:
    """Prepare the corpora in the first process; the others find the work done."""
    seed = config.train.seed
    if processes.is_main:
        prepare(config.data, cache_dir, seed=seed, progress=reporter.stage)
    processes.wait()
    return prepare(config.data, cache_dir, seed=seed)


def _train(
    config: RunConfig,
    directory: Path,
    prepared: PreparedData,
    processes: Processes,
    reporter: Reporter,
) -> FinishedRun:
    seed_everything(config.train.seed)
    model = build_model(config.model.kind, config.model.options, prepared.tokenizer)
    plan = BatchPlan(prepared.train, batch_tokens=config.train.batch_tokens, seed=config.train.seed)
    dev = BatchPlan([(prepared.dev, 1.0)], batch_tokens=config.train.batch_tokens, seed=0)
    book = SampleBook(directory, prepared, config.train)
    facts = describe(config, prepared, plan, model)
    if processes.is_main:
        write_atomically(directory / "data.json", json.dumps(facts, indent=2, ensure_ascii=False))
        for line in facts["lines"]:
            reporter.say(line)
    trainer = Trainer(
        model,
        plan,
        config.train,
        directory,
        dev=dev,
        after_validation=book.write,
        processes=processes,
        reporter=reporter,
    )
    if trainer.step and processes.is_main:
        reporter.say(f"going on from step {trainer.step}")
    if not trainer.is_finished:
        trainer.run()
    return _finish(config, directory, prepared, trainer, dev, book, facts, reporter)


def _finish(
    config: RunConfig,
    directory: Path,
    prepared: PreparedData,
    trainer: Trainer,
    dev: BatchPlan,
    book: SampleBook,
    facts: dict[str, Any],
    reporter: Reporter,
) -> FinishedRun:
    """Average, score dev once more, and write the bundle and the report."""
    model_dir = directory / "model"
    report_path = directory / "report.json"
    if trainer.processes.is_main:
        reporter.stage("averaging", 0, None)
        model: Transformer = build_model(
            config.model.kind, config.model.options, prepared.tokenizer
        ).to(trainer.processes.device)
        averaged = finished_weights(trainer)
        set_weights(model, averaged["weights"])
        found = book.score(model, dev, trainer.processes.alone())
        events = read_events(directory / "log.jsonl")
        report = render(directory, config, facts, found, events, averaged["steps"])
        about = {
            "src_lang": config.data.src_lang,
            "tgt_lang": config.data.tgt_lang,
            "step": trainer.step,
            "averaged_steps": averaged["steps"],
            "dev": found,
        }
        save_bundle(model_dir, model.cpu(), prepared.tokenizer, about=about)
        load_bundle(model_dir)  # what was written can be read
        write_atomically(report_path, json.dumps(report, indent=2, ensure_ascii=False))
    trainer.processes.wait()
    return FinishedRun(directory, model_dir, json.loads(report_path.read_text(encoding="utf-8")))


def finished_weights(trainer: Trainer) -> dict[str, Any]:
    """Give the finished model's weights: the exponential mean, or that of checkpoints."""
    if trainer.ema is not None:
        return {"weights": {n: m.cpu() for n, m in trainer.ema.means.items()}, "steps": []}
    steps = trainer.store.regular_steps()[-trainer.config.average_last :]
    if not steps:
        return {"weights": get_weights(trainer.raw), "steps": [trainer.step]}
    return {"weights": average(map(trainer.store.load_weights, steps)), "steps": steps}
