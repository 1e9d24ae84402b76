"""Series: windows of numbers, and the labels or numbers that come behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch

from attendo.bundle import (
    build_series_model,
    get_weights,
    load_series_bundle,
    save_bundle,
    set_weights,
)
from attendo.core.errors import ConfigError
from attendo.data.series.codec import NUM_SPECIALS
from attendo.data.series.prepare import SeriesData, prepare_series
from attendo.data.tokenizer import END_ID
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.evaluation.series_measures import measure_labels, measure_numbers
from attendo.forecaster import Forecaster
from attendo.model.series import SeriesTransformer
from attendo.training.distributed import unwrap
from attendo.training.metrics import append_line
from attendo.training.steps import validate
from attendo.training.task import Task

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attendo.baselines.factory import Model
    from attendo.data.batching import BatchPlan, Rows
    from attendo.data.series.config import SeriesConfig
    from attendo.training.config import RunConfig
    from attendo.training.distributed import Processes
    from attendo.training.progress import Reporter

KINDS = ("transformer", SeriesTransformer.kind)
NUM_SAMPLES = 4
FINAL_WINDOWS = 2000
"""Windows of dev that the finished model foretells."""
UNLIKELY = -1e4
"""The logit of what cannot come: finite, so that it can be multiplied by a chance of zero."""
HEADLINES = {"labels": ("accuracy", "macro_f1", "brier", "log_loss"), "numbers": ("mae", "rmse")}


class SeriesTask(Task):
    """A window of numbers into the labels, or numbers, of the steps behind it."""

    headline: tuple[str, ...] = HEADLINES["labels"]

    def __init__(self, config: RunConfig, directory: Path, data: SeriesData) -> None:
        super().__init__(config, directory)
        self.data, self.codec = data, data.codec
        self.headline = HEADLINES[data.codec.kind]  # told by the data
        self._samples = _choose_samples(data)
        self._part = _spread(len(data.dev), config.train.bleu_sentences)

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        directory: Path,
        *,
        processes: Processes,
        cache: Path,  # noqa: ARG003 - series are read as quickly as they would be found
        reporter: Reporter,
    ) -> Self:
        """Read the files, split them by time and learn the normalisation."""
        train = config.train

        def make() -> SeriesData:
            return prepare_series(_series(config), seed=train.seed, batch_tokens=train.batch_tokens)

        reporter.stage("hash", 0, None)
        return cls(config, directory, processes.lead(make) or make())

    def build_model(self) -> Model:
        """Make a Transformer that reads numbers."""
        chosen = self.config.model
        if chosen.kind not in KINDS:
            raise ConfigError(
                f"a {chosen.kind} does not read series",
                remedy="leave --model out: a Transformer does",
            )
        return build_series_model(chosen.options, self.codec)

    def begin(self, model: Model) -> None:
        """Take the weights of the model folder that the run names; its columns must be these."""
        begun = self.config.model.init_from
        if not begun:
            return
        found = load_series_bundle(begun)
        names = ("features", "targets", "labels", "window", "horizon")
        ours, theirs = (codec.model_dump(include={*names}) for codec in (self.codec, found.codec))
        if ours != theirs:
            reasons = [
                f"{name}: {theirs[name]} there, {ours[name]} here"
                for name in names
                if ours[name] != theirs[name]
            ]
            raise ConfigError.gather(f"a run that begins with {begun}", reasons)
        set_weights(model, get_weights(found.model), name=begun)

    def make_plan(self, model: Model, processes: Processes) -> BatchPlan:  # noqa: ARG002
        """Give the windows of train; all have one length, and none is padded or packed."""
        if self.config.train.pack:
            raise ConfigError("train.pack is for text", remedy="leave it out")
        return cast("BatchPlan", self.data.train)

    @property
    def dev(self) -> BatchPlan:
        """The windows of dev."""
        return cast("BatchPlan", self.data.dev)

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Tell the rows, what is missing, the labels, the batches."""
        batches, found, codec = plan.epoch(0), self.data.report, self.codec
        num_train, num_dev = len(self.data.train), len(self.data.dev)
        lines = [
            f"data: {num_train:,} windows to train on, {num_dev:,} for dev",
            f"window: {codec.window} steps of {', '.join(codec.features)}",
            f"horizon: {codec.horizon} steps of {', '.join(codec.targets)}",
            *_missing_lines(found),
            *_label_lines(found),
            f"batches: {len(batches):,} an epoch, {len(batches[0]):,} windows each",
            f"model: {self.config.model.preset} {SeriesTransformer.kind}, "
            f"{model.num_parameters():,} parameters",
        ]
        return {
            "key": self.data.key,
            "pairs": num_train,
            "unit": "windows",
            "dev_pairs": num_dev,
            "series": found,
            "batches_an_epoch": len(batches),
            "parameters": model.num_parameters(),
            "lines": lines,
        }

    # -- on the way

    def measure(self, model: nn.Module, step: int) -> dict[str, float]:
        """Foretell the fixed windows into `samples.jsonl`, and a part of dev for the figures."""
        forecaster = self._forecaster(model)
        lines = self._foretell_samples(forecaster)
        append_line(self.directory / "samples.jsonl", {"step": step, "samples": lines})
        if not len(self._part):
            return {}
        return self._measure(forecaster, self._part)

    def _forecaster(self, model: nn.Module, temperature: float = 1.0) -> Forecaster:
        about = {"calibration": {"temperature": temperature}}
        return Forecaster(cast("SeriesTransformer", unwrap(model)), self.codec, about=about)

    def _foretell_samples(self, forecaster: Forecaster) -> list[dict[str, Any]]:
        """Give what was foretold and what came, as lists and as texts to read side by side."""
        dev, rows = self.data.dev, self._samples
        times, truth = dev.target_times(rows), dev.truth(rows)
        lines = []
        for place, forecast in enumerate(forecaster.predict(dev.windows(rows))):
            own = forecast.times
            if times is not None and self.codec.axis is not None:
                own = self.codec.axis.write(times[place])
            said = forecast.labels or _round(forecast.values)
            true = self._name(truth[place])
            title = f"{own[0]} ... {own[-1]}" if times is not None else f"window {rows[place] + 1}"
            texts = {"src": title, "output": _join(said), "ref": _join(true)}
            lines.append({"times": own, "true": true, "said": said, **texts})
        return lines

    def _name(self, truth: NDArray[Any]) -> list[Any]:
        if self.codec.kind == "numbers":
            return _round(truth.tolist())
        return [self.codec.labels[one] if one >= 0 else None for one in truth]

    def _measure(self, forecaster: Forecaster, rows: Rows) -> dict[str, float]:
        """Give accuracy, F1 (also of the label that train has least of) ..., or the errors."""
        windows, truth, codec = self.data.dev.windows(rows), self.data.dev.truth(rows), self.codec
        if codec.kind == "numbers":
            errors = measure_numbers(truth, forecaster.find_values(windows))
            return {"mae": errors["mae"], "rmse": errors["rmse"]}
        found = measure_labels(truth, forecaster.find_chances(windows), codec.labels)
        counts = self.data.report["labels"]
        rarest = min(codec.labels, key=lambda label: counts[label])
        told = {name: found[name] for name in ("accuracy", "brier", "log_loss", "ece")}
        return {**told, "macro_f1": found["f1"], "rarest_f1": found["f1_by_label"][rarest]}

    # -- at the end

    def score(self, model: Model, processes: Processes) -> dict[str, Any]:
        """Score dev by teacher forcing, and by what is foretold freely."""
        dev = self.data.dev
        batches = (dev.read(rows) for rows in dev.epoch(0))
        found = validate(model, batches, precision=torch.float32, processes=processes)
        fitted = self.calibrate(model, processes)
        rows = _spread(len(dev), FINAL_WINDOWS)
        forecaster = self._forecaster(model, fitted.temperature if fitted else 1.0)
        return {"loss": found.loss, **self._measure(forecaster, rows), "windows": len(rows)}

    def calibrate(self, model: Model, processes: Processes) -> Calibration | None:
        """Fit the temperature of labels on dev, by teacher forcing; numbers have no chances."""
        if self.codec.kind == "numbers":
            return None
        dev, batches = self.data.dev, []
        was_training = model.training
        model.eval()
        with torch.no_grad():
            for rows in dev.epoch(0):
                batch = dev.read(rows).to(processes.device)
                batches.append(keep_labels(model(batch.src_ids, batch.tgt_ids), batch.labels))
        model.train(was_training)
        return calibrate(lambda: batches)  # a few numbers a step: all of them fit into memory

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and codec, and by which key its data is known."""
        facts = {"seed": self.config.train.seed, "key": self.data.key, **about}
        save_bundle(model_dir, model, self.codec, about=facts)
        load_series_bundle(model_dir)  # what was written can be read

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say how the figures were measured."""
        how = {
            "labels": "chances of each label at each step, all sequences or 200 drawn ones",
            "numbers": "each step's numbers fed back for the next",
        }
        return f"{dev['windows']:,} windows of dev, foretold freely: {how[self.codec.kind]}"

    def next_command(self) -> str:
        """Name the command that foretells."""
        return f"attendo forecast {self.directory} {_series(self.config).paths[0]}"


def keep_labels(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Leave out of logits (B, T, V) and labels (B, T) what is none: the end is no news.

    The end symbol takes the place of padding, which is not scored.
    """
    kept = logits[..., END_ID:].clone()
    kept[..., : NUM_SPECIALS - END_ID] = UNLIKELY
    return kept, (labels - END_ID).clamp(min=0)


def _series(config: RunConfig) -> SeriesConfig:
    assert config.series is not None  # noqa: S101 - the task was chosen for it
    return config.series


def _choose_samples(data: SeriesData) -> Rows:
    """Choose windows of dev, spread over all in which something changes."""
    truth = data.dev.truth()
    is_moving = (truth != truth[:, :1]).reshape(len(truth), -1).any(axis=1)
    rows: Rows = np.flatnonzero(is_moving) if is_moving.any() else np.arange(len(truth))
    return rows[_spread(len(rows), NUM_SAMPLES)]


def _spread(count: int, wanted: int) -> Rows:
    """Give the numbers of some windows, evenly spread over all.

    >>> _spread(10, 4).tolist(), _spread(3, 8).tolist(), _spread(3, 0).tolist()
    ([0, 3, 6, 9], [0, 1, 2], [])
    """
    rows: Rows = np.linspace(0, count - 1, min(count, wanted)).round().astype(np.int64)
    return rows


def _round(values: list[list[float]] | None) -> list[list[float]]:
    return [[float(f"{number:.6g}") for number in row] for row in values or ()]


def _join(steps: list[Any]) -> str:
    """Write steps in a line, numbers of one step with commas."""
    return " ".join(
        ",".join(f"{number:g}" for number in step) if isinstance(step, list) else str(step or "?")
        for step in steps
    )


def _missing_lines(report: dict[str, Any]) -> list[str]:
    shares = {name: share for name, share in report["missing"].items() if share}
    if not shares:
        return []
    return ["missing: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items())]


def _label_lines(report: dict[str, Any]) -> list[str]:
    counts: dict[str, int] = report.get("labels") or {}
    if not counts:
        return []
    total = sum(counts.values())
    return ["labels: " + ", ".join(f"{name} {n / total:.1%}" for name, n in counts.items())]
