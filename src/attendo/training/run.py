"""The builder's main job: two text files in, a trained model folder out, by one call."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bundle import (
    build_model,
    find_bundle,
    get_weights,
    load_bundle,
    save_bundle,
    set_weights,
)
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import cache_dir, write_atomically
from attendo.core.seeding import seed_everything
from attendo.data.batching import BatchPlan, split_rows
from attendo.data.packed_batching import PackedPlan
from attendo.data.prepare import PreparedData, prepare
from attendo.data.process_lock import hold_lock
from attendo.data.sentences import find_sentences
from attendo.data.tokenizer import Tokenizer
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.training.averaging import average
from attendo.training.config import RunConfig
from attendo.training.distributed import Processes
from attendo.training.metrics import read_events
from attendo.training.progress import Reporter, Silence
from attendo.training.report import describe, render
from attendo.training.samples import SampleBook
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.baselines.factory import Model
    from attendo.data.batching import Rows
    from attendo.data.pair import Pair
    from attendo.training.config import TrainConfig

CONFIG, DATA = "config.json", "data.json"
WEIGHT_BYTES, CHECKPOINT_BYTES = 4, 12  # of a parameter: Adam keeps two moments of each
LOCK = ".lock"
CALIBRATION_TOKENS, CALIBRATION_PIECE = 20_000, 4096
"""Dev tokens that the temperature is fitted on, and how many pass the model at once."""


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
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Prepare, train, average and write the folder `out/model`; go on where a run stopped."""
    directory = Path(out)
    reporter = reporter or Silence()
    processes = Processes()
    if not processes.is_main:
        reporter = Silence()
    if processes.num_restarts:
        force = False  # what torchrun's agent restarts is the run that was begun anew
    try:
        processes.lead(lambda: check_folder(config, directory, force=force))
        prepared = prepare_data(config, processes, cache or cache_dir(), reporter)
        with open_run(config, directory, processes, force=force):
            return _train(config, directory, prepared, processes, reporter)
    except OSError as error:
        raise AttendoError(
            f"{error.filename or directory} could not be written: {error.strerror or error}",
            remedy="make room, then run the same command: it goes on from its last checkpoint",
        ) from error
    finally:
        processes.close()


def check_folder(config: RunConfig, directory: Path, *, force: bool) -> None:
    """Make sure that the folder is new or this run's own, before any work; change nothing."""
    path = directory / CONFIG
    if path.exists() and not force:
        differences = config.differences(RunConfig.load(path))
        if differences:
            listing = "".join(f"\n  - {line}" for line in differences[:8])
            raise ConfigError(
                f"{directory} holds another run:{listing}",
                remedy="choose another --out, or --force to delete that run and start anew",
            )
    if not path.exists() and directory.exists() and any(map(_is_foreign, directory.iterdir())):
        raise InputError(
            f"{directory} is not empty and holds no run",
            remedy="choose another --out: nothing in it was touched",
        )


def _is_foreign(path: Path) -> bool:
    """Tell a file of the user from those of a run that was killed while it made its folder."""
    return path.name != LOCK and not (path.name.startswith(".") and path.suffix == ".partial")


@contextmanager
def open_run(
    config: RunConfig, directory: Path, processes: Processes, *, force: bool
) -> Iterator[None]:
    """Make the run folder and hold it, so that no second command writes into it."""

    def enter() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        held.enter_context(hold_lock(directory / LOCK, wait=False))
        if force:
            _empty(directory)
        config.save(directory / CONFIG)

    with ExitStack() as held:
        processes.lead(enter)
        yield


def _empty(directory: Path) -> None:
    """Delete a run, its config last: until then the folder is known as one."""
    for path in sorted(directory.iterdir(), key=lambda path: path.name == CONFIG):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def prepare_data(
    config: RunConfig, processes: Processes, cache: Path, reporter: Reporter
) -> PreparedData:
    """Prepare the corpora in the first process; the others find the work done."""
    seed, begun = config.train.seed, config.model.init_from
    tokenizer = Tokenizer.load(find_bundle(begun)) if begun else None

    def make(progress: Callable[[str, int, int | None], None] | None = None) -> PreparedData:
        return prepare(config.data, cache, seed=seed, tokenizer=tokenizer, progress=progress)

    return processes.lead(lambda: make(reporter.stage)) or make()


def _train(
    config: RunConfig,
    directory: Path,
    prepared: PreparedData,
    processes: Processes,
    reporter: Reporter,
) -> FinishedRun:
    seed_everything(config.train.seed)
    # cuDNN's attention plans anew for every shape, and batches have hundreds (docs/log.md)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = build_model(config.model.kind, config.model.options, prepared.tokenizer)
    if config.model.init_from:
        weights = get_weights(load_bundle(config.model.init_from).model)
        set_weights(model, weights, name=config.model.init_from)
    plan = make_plan(config.train, prepared, model, processes)
    dev = BatchPlan([(prepared.dev, 1.0)], batch_tokens=config.train.batch_tokens, seed=0)
    book = SampleBook(directory, prepared, config.train)
    facts = describe(config, prepared, plan, model)
    processes.lead(lambda: check_data(directory / DATA, facts))
    if processes.is_main:
        write_atomically(directory / DATA, json.dumps(facts, indent=2, ensure_ascii=False))
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
    if not trainer.step:
        processes.lead(lambda: check_room(directory, model.num_parameters()))
    elif processes.is_main:
        reporter.say(f"going on from step {trainer.step}")
    if not trainer.is_finished:
        trainer.run()
    return _finish(config, directory, prepared, trainer, dev, book, facts, reporter)


def make_plan(
    config: TrainConfig, prepared: PreparedData, model: Model, processes: Processes
) -> BatchPlan:
    """Plan packed batches where the model can read them, else padded ones."""
    settings: dict[str, int] = {"batch_tokens": config.batch_tokens, "seed": config.seed}
    can_pack = bool(getattr(model, "can_pack", False)) and not config.shard
    if config.pack and not can_pack:
        raise ConfigError(
            "train.pack needs a Transformer without attention_width and attention_dropout, "
            "not spread over processes (train.shard)",
            remedy="leave train.pack out: batches are then padded",
        )
    if can_pack and config.pack is not False:
        is_fixed = processes.device.type == "cuda" and processes.count == 1
        return PackedPlan(prepared.train, **settings, is_fixed=is_fixed)
    return BatchPlan(prepared.train, **settings)


def check_data(path: Path, facts: dict[str, Any]) -> None:
    """Make sure that a run goes on with the data it began with: its ids mean those texts."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else facts
    if before["key"] != facts["key"]:
        raise ConfigError(
            f"the corpora have changed since the run in {path.parent} began",
            remedy="put them back, choose another --out, or --force to start anew",
        )


def check_room(directory: Path, num_parameters: int) -> None:
    """Refuse to begin where not even two checkpoints and the finished model would fit."""
    needed = num_parameters * (2 * CHECKPOINT_BYTES + WEIGHT_BYTES)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            f"training needs at least {needed / 1e9:.2f} GB on the disk of {directory}, "
            f"{free / 1e9:.2f} GB are free",
            remedy="make room, or choose --out on another disk",
        )


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

    def write() -> None:
        reporter.stage("averaging", 0, None)
        model: Model = build_model(config.model.kind, config.model.options, prepared.tokenizer).to(
            trainer.processes.device
        )
        averaged = finished_weights(trainer)
        set_weights(model, averaged["weights"])
        found = book.score(model, dev, trainer.processes.alone())
        calibration = fit_temperature(model, dev, device=trainer.processes.device)
        events = read_events(directory / "log.jsonl")
        report = render(directory, config, facts, found, calibration, events, averaged["steps"])
        about = {
            "src_lang": config.data.src_lang,
            "tgt_lang": config.data.tgt_lang,
            "step": trainer.step,
            "averaged_steps": averaged["steps"],
            "max_src_tokens": int(trainer.plan.src_lengths.max()),
            "num_sentences": count_sentences(prepared.dev_pairs),
            "dev": found,
            "calibration": report["calibration"],
        }
        save_bundle(model_dir, model.cpu(), prepared.tokenizer, about=about)
        load_bundle(model_dir)  # what was written can be read
        write_atomically(report_path, json.dumps(report, indent=2, ensure_ascii=False))

    trainer.processes.lead(write)
    return FinishedRun(directory, model_dir, json.loads(report_path.read_text(encoding="utf-8")))


def count_sentences(pairs: Sequence[Pair]) -> float:
    """Give the mean number of sentences in a source: what the model has learnt to read at once."""
    counts = [len(find_sentences(pair.src)) for pair in pairs]
    return round(sum(counts) / max(len(counts), 1), 3)


def finished_weights(trainer: Trainer) -> dict[str, Any]:
    """Give the finished model's weights: the exponential mean, or that of checkpoints.

    Both lie in checkpoints, so that one process finds them whole, however they are spread.
    """
    store = trainer.store
    if trainer.ema is not None:
        saved = store.load(trainer.step).optimizer
        return {"weights": {name: saved[f"ema.{name}"] for name in trainer.ema.means}, "steps": []}
    steps = [step for step in store.regular_steps() if store.is_whole(step)]
    steps = steps[-trainer.config.average_last :]
    return {"weights": average(map(store.load_weights, steps)), "steps": steps}


def fit_temperature(model: Model, dev: BatchPlan, *, device: torch.device) -> Calibration:
    """Calibrate the finished model on the first batches of dev, in float32."""
    pieces: list[Rows] = []
    num_tokens = 0
    for rows in dev.epoch(0):
        num_tokens += int(dev.tgt_lengths[rows].sum())
        if pieces and num_tokens > CALIBRATION_TOKENS:
            break
        padded = len(rows) * int(max(dev.src_lengths[rows].max(), dev.tgt_lengths[rows].max()))
        pieces += split_rows(rows, -(-padded // CALIBRATION_PIECE))

    def make_batches() -> Iterator[tuple[Tensor, Tensor]]:
        for rows in pieces:
            batch = dev.read(rows).to(device)
            yield model(batch.src_ids, batch.tgt_ids), batch.labels

    was_training = model.training
    model.eval()
    found = calibrate(make_batches)
    model.train(was_training)
    return found
