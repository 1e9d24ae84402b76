"""Score a model of series on files, beside what is known without it: `report.json`, `report.md`.

The baselines learn from the files that the model was trained on, which its folder names. Where they
are gone or have changed, the report says so and tells the model's own figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import find_bundle
from attendo.core.config import read_settings
from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import write_atomically
from attendo.core.version import __version__
from attendo.evaluation.report_folder import MARKDOWN_FILE, REPORT_FILE, REPORT_KIND, to_json
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
    """What was found, and where it was written."""

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
    """Foretell every window of the files and measure it, beside the baselines.

    Args:
        model: a model folder, or the run's.
        paths: files with the columns of training, targets included.
        out: a folder for the report and its pictures.
        num_samples: sequences drawn for the chances of labels.
        seed: of the draws.
        device: cpu, cuda ...
        progress: is told how far it is.

    """
    report_progress = progress or (lambda *_: None)
    directory = None if out is None else _prepare_folder(Path(out))
    forecaster = Forecaster.load(model, device=device)
    plan = read_batch_plan([Path(path) for path in paths], forecaster.codec)
    report_progress("foretelling", 0, None)
    windows = plan.windows()
    if forecaster.codec.kind == "labels":
        predictions = forecaster.predict_probabilities(windows, num_samples=num_samples, seed=seed)
    else:
        predictions = forecaster.predict_values(windows)
    report_progress("baselines", 0, None)
    baseline_predictions, notes = _forecast_baselines(
        forecaster, find_bundle(model).parent, plan, paths
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


# -- beside it


def _forecast_baselines(
    forecaster: Forecaster, run: Path, plan: SeriesBatchPlan, paths: Sequence[str | Path]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Let the baselines learn what the model has learnt from, where it still lies there."""
    config = _load_data_config(run)
    if config is None:
        return {}, ["no baselines: only a run's folder tells what a model was trained on"]
    train, notes = _load_train_plan(forecaster, config)
    if train is None:
        return {}, notes
    train_paths = {path.resolve() for path in config.paths}
    if train_paths & {Path(path).resolve() for path in paths}:
        notes.append("these files were trained on: the figures flatter everyone")
    predictions = {}
    for name, forecast in BASELINES.items():
        baseline_name = REGRESSIONS[plan.codec.kind] if name == "regression" else name
        try:
            predictions[baseline_name] = forecast(train, plan)
        except MissingExtraError as error:
            notes.append(f"no {baseline_name}: {error.reason}; {error.hint}")
    return predictions, notes


def _load_data_config(run: Path) -> SeriesConfig | None:
    """Find in the run's folder which files were trained on: a model folder names none."""
    if not (run / "config.json").is_file():
        return None
    settings = read_settings(run / "config.json").get("series")
    return SeriesConfig(**settings) if isinstance(settings, dict) else None


def _load_train_plan(
    forecaster: Forecaster, config: SeriesConfig
) -> tuple[SeriesBatchPlan | None, list[str]]:
    about = forecaster.about
    missing = [str(path) for path in (*config.paths, *config.dev) if not path.is_file()]
    if missing:
        return None, [f"no baselines: the training files are gone ({', '.join(missing)})"]
    try:
        data = prepare_series(config, seed=int(about.get("seed", 1)))
    except AttendoError as error:
        return None, [f"no baselines: {error.reason}"]
    if data.fingerprint != about.get("key"):
        return None, ["no baselines: the training files have changed since"]
    return _check_same_labels(data.train, forecaster.codec), []


def _check_same_labels(train: SeriesBatchPlan, codec: SeriesCodec) -> SeriesBatchPlan:
    """Hold that both speak of the same labels in the same order."""
    if train.codec.labels != codec.labels or train.codec.features != codec.features:
        raise InputError(
            "the training files give other columns or labels than the model has",
            hint="train anew, or copy the model folder elsewhere to evaluate it alone",
        )
    return train


# -- the folder


def _prepare_folder(directory: Path) -> Path:
    """Make the folder, before any work; refuse one with anything that no evaluation wrote."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{directory} cannot be made: {error.strerror or error}"
        raise InputError(reason, hint="name another folder with --out") from None
    known = {REPORT_FILE, MARKDOWN_FILE, *PLOT_TITLES}
    foreign = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if foreign or (
        (directory / MARKDOWN_FILE).exists() and not _is_evaluation_folder(directory / REPORT_FILE)
    ):
        listing = ", ".join(foreign[:4]) or MARKDOWN_FILE
        raise InputError(
            f"{directory} holds what no evaluation wrote: {listing}",
            hint="choose another --out: nothing in it was touched",
        )
    return directory


def _is_evaluation_folder(path: Path) -> bool:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("kind") == REPORT_KIND


def _save_report(directory: Path, report: dict[str, Any]) -> None:
    """Write the pictures, the page and last the JSON, which says that all is there."""
    try:
        plots = plot_report(report)
    except MissingExtraError as error:
        report["notes"].append(f"no pictures: {error.reason}; {error.hint}")
        plots = {}
    for name in PLOT_TITLES:
        (directory / name).unlink(missing_ok=True)
    for name, plot in plots.items():
        write_atomically(directory / name, plot)
    write_atomically(directory / MARKDOWN_FILE, render_markdown(report, list(plots)))
    write_atomically(directory / REPORT_FILE, to_json(report))
