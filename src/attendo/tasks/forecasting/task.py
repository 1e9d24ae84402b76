"""Time series forecasting: a window of numbers to the labels or values of the next steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import get_weights, save_bundle, set_weights
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.fingerprint import hash_files
from attendo.evaluation.calibration import Calibration, calibrate
from attendo.tasks.forecasting.bundle import build_series_model, load_series_bundle
from attendo.tasks.forecasting.codec import NUM_SPECIAL_IDS
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.metrics import label_metrics, numeric_metrics
from attendo.tasks.forecasting.prepare import SeriesData, prepare_series
from attendo.tasks.planner import DataFacts
from attendo.tasks.task import Task
from attendo.text.tokenizer import END_ID
from attendo.training.distributed import unwrap
from attendo.training.train_step import validate

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan, Rows
    from attendo.tasks.config import RunConfig
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.config import SeriesConfig
    from attendo.training.distributed import ProcessGroup
    from attendo.training.progress import Reporter

MODEL_KINDS = ("transformer", SeriesTransformer.kind)
NUM_SAMPLES = 4
FINAL_WINDOWS = 2000
"""Windows of dev that the finished model is scored on."""
MASKED_LOGIT = -1e4
"""The logit of impossible ids: finite, so that it can be multiplied by a probability of zero."""
HEADLINE_METRICS = {
    "labels": ("accuracy", "macro_f1", "brier", "log_loss"),
    "numbers": ("mae", "rmse"),
}


class ForecastingTask(Task):
    """A window of numbers to the labels or values of the steps after it."""

    codec: SeriesCodec

    def __init__(self, config: RunConfig, directory: Path, data: SeriesData) -> None:
        super().__init__(config, directory)
        self.data = data
        self.codec: SeriesCodec = data.codec
        self.headline_metrics = HEADLINE_METRICS[data.codec.kind]
        self._sample_rows = _choose_sample_rows(data)
        self._validation_rows = _evenly_spaced(len(data.dev), config.train.bleu_sentences)

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        directory: Path,
        *,
        processes: ProcessGroup,
        cache: Path,  # noqa: ARG003 - reading series is as fast as a cache
        reporter: Reporter,
        resumed_key: str | None = None,  # noqa: ARG003 - files that changed are noticed later
    ) -> Self:
        """Read the files, split them by time and fit the codec."""
        train = config.train

        def prepare_data() -> SeriesData:
            return prepare_series(
                _series_config(config), seed=train.seed, batch_tokens=train.batch_tokens
            )

        reporter.stage("hash", 0, None)
        return cls(config, directory, processes.run_on_main(prepare_data) or prepare_data())

    def data_facts(self) -> DataFacts:
        """Return the number of windows."""
        num_windows = len(self.data.train)
        longest = max(self.codec.window, self.codec.horizon)
        return DataFacts(num_windows, num_windows * longest, task="series")

    def with_config(self, config: RunConfig) -> Self:
        """Return this task with other settings; the batches of the windows are made again."""
        train = config.train
        data = prepare_series(
            _series_config(config), seed=train.seed, batch_tokens=train.batch_tokens
        )
        return type(self)(config, self.directory, data)

    def build_model(self) -> Model:
        """Return a Transformer that reads numbers."""
        model_config = self.config.model
        if model_config.kind not in MODEL_KINDS:
            raise ConfigError(
                message("a model of kind {kind} cannot read time series", kind=model_config.kind),
                hint="leave --model out for a Transformer",
            )
        return build_series_model(model_config.options, self.codec)

    def load_initial_weights(self, model: Model) -> None:
        """Load the weights that the run starts from; they must have the same columns."""
        init_from = self.config.model.init_from
        if not init_from:
            return
        bundle = load_series_bundle(init_from)
        names = ("features", "targets", "labels", "window", "horizon")
        ours, theirs = (codec.model_dump(include={*names}) for codec in (self.codec, bundle.codec))
        if ours != theirs:
            reasons = [
                message(
                    "{key}: {theirs} there, {ours} here",
                    key=name,
                    theirs=theirs[name],
                    ours=ours[name],
                )
                for name in names
                if ours[name] != theirs[name]
            ]
            raise ConfigError.from_reasons(
                message("a run that starts from {init_from}", init_from=init_from), reasons
            )
        set_weights(model, get_weights(bundle.model), name=init_from)

    def make_plan(self, model: Model, processes: ProcessGroup) -> BatchPlan:  # noqa: ARG002
        """Return the windows of train; all have one length, so none is padded or packed."""
        if self.config.train.sequence_packing:
            raise ConfigError("train.sequence_packing applies to text only", hint="leave it out")
        return cast("BatchPlan", self.data.train)

    @property
    def dev(self) -> BatchPlan:
        """The windows of dev."""
        return cast("BatchPlan", self.data.dev)

    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Return the windows, missing values, labels, batches and the model."""
        batches, data_report, codec = plan.epoch(0), self.data.report, self.codec
        num_train, num_dev = len(self.data.train), len(self.data.dev)
        lines = [
            message(
                "data: {num_train} windows to train on, {num_dev} for dev",
                num_train=f"{num_train:,}",
                num_dev=f"{num_dev:,}",
            ),
            message(
                "window: {count} steps of {names}",
                count=codec.window,
                names=", ".join(codec.features),
            ),
            message(
                "horizon: {count} steps of {names}",
                count=codec.horizon,
                names=", ".join(codec.targets),
            ),
            *_missing_lines(data_report),
            *_label_lines(data_report),
            message(
                "batches: {count} per epoch, {size} windows each",
                count=f"{len(batches):,}",
                size=f"{len(batches[0]):,}",
            ),
            f"model: {self.config.model.preset} {SeriesTransformer.kind}, "
            f"{model.num_parameters():,} parameters",
        ]
        return {
            "key": self.data.fingerprint,
            "files": hash_files(self.config.input_paths),
            "pairs": num_train,
            "unit": "windows",
            "dev_pairs": num_dev,
            "series": data_report,
            "batches_per_epoch": len(batches),
            "parameters": model.num_parameters(),
            "lines": lines,
        }

    # -- validation

    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Forecast the fixed windows; return the scores of a part of dev."""
        forecaster = self._make_forecaster(model)
        lines = self._forecast_samples(forecaster)
        self.write_samples(step, lines)
        if not len(self._validation_rows):
            return {}
        return self._compute_metrics(forecaster, self._validation_rows)

    def _make_forecaster(self, model: nn.Module, temperature: float = 1.0) -> Forecaster:
        about = {"calibration": {"temperature": temperature}}
        return Forecaster(cast("SeriesTransformer", unwrap(model)), self.codec, about=about)

    def _forecast_samples(self, forecaster: Forecaster) -> list[dict[str, Any]]:
        """Return forecasts and true values, as lists and as texts to compare."""
        dev, rows = self.data.dev, self._sample_rows
        times, truth = dev.target_times(rows), dev.truth(rows)
        lines = []
        for index, forecast in enumerate(forecaster.predict(dev.windows(rows))):
            step_times = forecast.times
            if times is not None and self.codec.axis is not None:
                step_times = self.codec.axis.format_times(times[index])
            predicted = forecast.labels or _round_values(forecast.values)
            actual = self._format_truth(truth[index])
            title = (
                f"{step_times[0]} ... {step_times[-1]}"
                if times is not None
                else f"window {rows[index] + 1}"
            )
            texts = {"src": title, "output": _format_steps(predicted), "ref": _format_steps(actual)}
            lines.append({"times": step_times, "true": actual, "predicted": predicted, **texts})
        return lines

    def _format_truth(self, truth: NDArray[Any]) -> list[Any]:
        if self.codec.kind == "numbers":
            return _round_values(truth.tolist())
        return [self.codec.labels[one] if one >= 0 else None for one in truth]

    def _compute_metrics(self, forecaster: Forecaster, rows: Rows) -> dict[str, float]:
        """Return accuracy, F1 (also that of the rarest label) ..., or the errors of values."""
        windows, truth, codec = self.data.dev.windows(rows), self.data.dev.truth(rows), self.codec
        if codec.kind == "numbers":
            errors = numeric_metrics(truth, forecaster.predict_values(windows))
            return {"mae": errors["mae"], "rmse": errors["rmse"]}
        metrics = label_metrics(truth, forecaster.predict_probabilities(windows), codec.labels)
        counts = self.data.report["labels"]
        rarest = min(codec.labels, key=lambda label: counts[label])
        selected = {name: metrics[name] for name in ("accuracy", "brier", "log_loss", "ece")}
        return {**selected, "macro_f1": metrics["f1"], "rarest_f1": metrics["f1_by_label"][rarest]}

    # -- the finished model

    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score dev by teacher forcing, and the forecasts of free-running decoding."""
        dev = self.data.dev
        batches = (dev.read(rows) for rows in dev.epoch(0))
        validation = validate(model, batches, precision=torch.float32, processes=processes)
        calibration = self.calibrate(model, processes)
        rows = _evenly_spaced(len(dev), FINAL_WINDOWS)
        forecaster = self._make_forecaster(model, calibration.temperature if calibration else 1.0)
        return {
            "loss": validation.loss,
            **self._compute_metrics(forecaster, rows),
            "windows": len(rows),
        }

    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:
        """Fit the temperature of labels on dev by teacher forcing; None for numbers."""
        if self.codec.kind == "numbers":
            return None
        dev, batches = self.data.dev, []
        was_training = model.training
        model.eval()
        with torch.no_grad():
            for rows in dev.epoch(0):
                batch = dev.read(rows).to(processes.device)
                batches.append(
                    select_label_logits(model(batch.src_ids, batch.tgt_ids), batch.labels)
                )
        model.train(was_training)
        return calibrate(lambda: batches)  # a few numbers per step: all fit into memory

    def describe_model(self, model: Model) -> dict[str, Any]:  # noqa: ARG002 - others need it
        """Return the seed and the fingerprint of the data."""
        return {"seed": self.config.train.seed, "key": self.data.fingerprint}

    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write model and codec, with the fingerprint of the data."""
        save_bundle(model_dir, model, self.codec, about={**self.describe_model(model), **about})
        load_series_bundle(model_dir)  # raises if it cannot be read

    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return how the scores were measured."""
        method = {
            "labels": "probabilities over all label sequences, or over 200 sampled ones",
            "numbers": "the values of each step are the input of the next",
        }
        return message(
            "{count:,} windows of dev, free-running: {method}",
            count=dev["windows"],
            method=message(method[self.codec.kind]),
        )

    def usage_hint(self) -> str:
        """Return the command that forecasts."""
        return f"attendo forecast {self.directory} {_series_config(self.config).paths[0]}"


def select_label_logits(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits (B, T, V) and labels (B, T) without special ids.

    The end symbol becomes padding, which is not scored.
    """
    label_logits = logits[..., END_ID:].clone()
    label_logits[..., : NUM_SPECIAL_IDS - END_ID] = MASKED_LOGIT
    return label_logits, (labels - END_ID).clamp(min=0)


def _series_config(config: RunConfig) -> SeriesConfig:
    assert config.series is not None  # noqa: S101 - the task was chosen for it
    return config.series


def _choose_sample_rows(data: SeriesData) -> Rows:
    """Return some windows of dev, evenly spaced over those in which the target changes."""
    truth = data.dev.truth()
    has_change = (truth != truth[:, :1]).reshape(len(truth), -1).any(axis=1)
    rows: Rows = np.flatnonzero(has_change) if has_change.any() else np.arange(len(truth))
    return rows[_evenly_spaced(len(rows), NUM_SAMPLES)]


def _evenly_spaced(count: int, num_rows: int) -> Rows:
    """Return the indices of some windows, evenly spaced over all.

    >>> _evenly_spaced(10, 4).tolist(), _evenly_spaced(3, 8).tolist(), _evenly_spaced(3, 0).tolist()
    ([0, 3, 6, 9], [0, 1, 2], [])
    """
    rows: Rows = np.linspace(0, count - 1, min(count, num_rows)).round().astype(np.int64)
    return rows


def _round_values(values: list[list[float]] | None) -> list[list[float]]:
    return [[float(f"{number:.6g}") for number in row] for row in values or ()]


def _format_steps(steps: list[Any]) -> str:
    """Return steps as one line, with commas between the numbers of a step."""
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
