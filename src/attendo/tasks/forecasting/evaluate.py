"""Score a time series model on files, compared with baselines.

The baselines are fitted on the files that the model was trained on, which the run folder names. If
those are missing or have changed, the report says so and has the scores of the model alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import write_atomically
from attendo.core.run_folder import ModelFolder, RunFolder
from attendo.core.version import __version__
from attendo.evaluation.report_folder import (
    MARKDOWN_FILE,
    REPORT_FILE,
    REPORT_KIND,
    prepare_folder,
    to_json,
)
from attendo.tasks.forecasting.baselines import (
    climatology_forecast,
    persistence_forecast,
    regression_forecast,
)
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.metrics import label_metrics, numeric_metrics
from attendo.tasks.forecasting.prepare import prepare_series, read_batch_plan
from attendo.tasks.forecasting.report import PLOT_TITLES, plot_report, render_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.batching import SeriesBatchPlan
    from attendo.tasks.forecasting.codec import SeriesCodec

    Progress = Callable[[str, int, int | None], None]

FORMAT_VERSION = 1
REGRESSIONS = {"labels": "logistic regression", "numbers": "ridge regression"}
BASELINES = {
    "climatology": climatology_forecast,
    "persistence": persistence_forecast,
    "regression": regression_forecast,
}


class SeriesEvaluation(NamedTuple):
    """The report, and the folder it was written to."""

    report: dict[str, Any]
    directory: Path | None


def evaluate_series(
    model: str | Path,
    paths: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    num_samples: int = 200,
    seed: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> SeriesEvaluation:
    """Forecast every window of the files and score the forecasts and the baselines.

    Args:
        model: a model folder or a run folder.
        paths: files with the columns of training, targets included.
        out: a folder for the report and its plots.
        num_samples: sequences sampled for the probabilities of labels.
        seed: of the sampling.
        device: cpu, cuda ...
        progress: receives the progress.

    """
    report_progress = progress or (lambda *_: None)
    directory = None if out is None else Path(out)
    if directory is not None:
        prepare_folder(directory, {REPORT_FILE, MARKDOWN_FILE, *PLOT_TITLES})
    forecaster = Forecaster.load(model, device=device)
    plan = read_batch_plan([Path(path) for path in paths], forecaster.codec)
    report_progress("forecasting", 0, None)
    windows = plan.windows()
    if forecaster.codec.kind == "labels":
        predictions = forecaster.predict_probabilities(windows, num_samples=num_samples, seed=seed)
    else:
        predictions = forecaster.predict_values(windows)
    report_progress("baselines", 0, None)
    baseline_predictions, notes = _forecast_baselines(
        forecaster, ModelFolder.find(model).run.path, plan, paths
    )
    report = {
        "kind": REPORT_KIND,
        "task": "series",
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "model": str(model),
        "data": _describe_data(plan, paths),
        "system": _compute_metrics(plan, predictions),
        "baselines": {
            name: _compute_metrics(plan, values) for name, values in baseline_predictions.items()
        },
        "notes": notes,
    }
    if directory is not None:
        _save_report(directory, report)
    return SeriesEvaluation(report, directory)


def _describe_data(plan: SeriesBatchPlan, paths: Sequence[str | Path]) -> dict[str, Any]:
    codec = plan.codec
    return {
        "paths": [str(path) for path in paths],
        "num_windows": len(plan),
        "window": codec.window,
        "horizon": codec.horizon,
        "kind": codec.kind,
        "features": [*codec.features],
        "targets": [*codec.targets],
        "labels": [*codec.labels],
    }


def _compute_metrics(plan: SeriesBatchPlan, predictions: NDArray[Any]) -> dict[str, Any]:
    codec = plan.codec
    if codec.kind == "labels":
        return label_metrics(plan.truth(), predictions, codec.labels)
    return numeric_metrics(plan.truth(), predictions, codec.targets)


# -- baselines


def _forecast_baselines(
    forecaster: Forecaster, run: Path, plan: SeriesBatchPlan, paths: Sequence[str | Path]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Return the forecasts of the baselines, fitted on the training data, and notes."""
    config = _load_data_config(run)
    if config is None:
        return {}, ["no baselines: only a run folder names the training files"]
    train, notes = _load_train_plan(forecaster, config)
    if train is None:
        return {}, notes
    train_paths = {path.resolve() for path in config.paths}
    if train_paths & {Path(path).resolve() for path in paths}:
        notes.append("these are training files: all scores are too good")
    predictions = {}
    for name, forecast in BASELINES.items():
        baseline_name = REGRESSIONS[plan.codec.kind] if name == "regression" else name
        try:
            predictions[baseline_name] = forecast(train, plan)
        except MissingExtraError as error:
            notes.append(f"no {baseline_name}: {error.reason}; {error.hint}")
    return predictions, notes


def _load_data_config(run: Path) -> SeriesConfig | None:
    """Return the data settings of a run, or None if the folder is not a run."""
    folder = RunFolder(run)
    settings = folder.read_config().get("series") if folder.exists() else None
    return SeriesConfig(**settings) if isinstance(settings, dict) else None


def _load_train_plan(
    forecaster: Forecaster, config: SeriesConfig
) -> tuple[SeriesBatchPlan | None, list[str]]:
    about = forecaster.about
    missing = [str(path) for path in (*config.paths, *config.dev) if not path.is_file()]
    if missing:
        return None, [f"no baselines: training files are missing ({', '.join(missing)})"]
    try:
        data = prepare_series(config, seed=int(about.get("seed", 1)))
    except AttendoError as error:
        return None, [f"no baselines: {error.reason}"]
    if data.fingerprint != about.get("key"):
        return None, ["no baselines: the training files have changed"]
    return _check_same_labels(data.train, forecaster.codec), []


def _check_same_labels(train: SeriesBatchPlan, codec: SeriesCodec) -> SeriesBatchPlan:
    """Return the training windows; raise if their columns or labels are not those of the model."""
    if train.codec.labels != codec.labels or train.codec.features != codec.features:
        raise InputError(
            "the training files have other columns or labels than the model",
            hint="train again, or copy the model folder elsewhere to evaluate it without baselines",
        )
    return train


def _save_report(directory: Path, report: dict[str, Any]) -> None:
    """Write the plots, the Markdown and last the JSON, which marks the report as complete."""
    try:
        plots = plot_report(report)
    except MissingExtraError as error:
        report["notes"].append(f"no plots: {error.reason}; {error.hint}")
        plots = {}
    for name in PLOT_TITLES:
        (directory / name).unlink(missing_ok=True)
    for name, plot in plots.items():
        write_atomically(directory / name, plot)
    write_atomically(directory / MARKDOWN_FILE, render_markdown(report, list(plots)))
    write_atomically(directory / REPORT_FILE, to_json(report))
