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
from attendo.data.series.config import SeriesConfig
from attendo.data.series.prepare import prepare_series, read_plan
from attendo.evaluation.report import KIND, PAGE, REPORT, to_json
from attendo.evaluation.series_baselines import (
    forecast_by_climatology,
    forecast_by_persistence,
    forecast_by_regression,
)
from attendo.evaluation.series_measures import measure_labels, measure_numbers
from attendo.evaluation.series_page import PICTURES, draw_pictures, render
from attendo.forecaster import Forecaster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from attendo.data.series.codec import SeriesCodec
    from attendo.data.series.plan import SeriesPlan

    Progress = Callable[[str, int, int | None], None]

FORMAT_VERSION = 1
REGRESSIONS = {"labels": "logistic regression", "numbers": "ridge regression"}
BASELINES = {
    "climatology": forecast_by_climatology,
    "persistence": forecast_by_persistence,
    "regression": forecast_by_regression,
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
    tell = progress or (lambda *_: None)
    directory = None if out is None else _open_folder(Path(out))
    forecaster = Forecaster.load(model, device=device)
    plan = read_plan([Path(path) for path in paths], forecaster.codec)
    tell("foretelling", 0, None)
    windows = plan.windows()
    if forecaster.codec.kind == "labels":
        foretold = forecaster.find_chances(windows, num_samples=num_samples, seed=seed)
    else:
        foretold = forecaster.find_values(windows)
    tell("baselines", 0, None)
    others, notes = _ask_baselines(forecaster, find_bundle(model).parent, plan, paths)
    report = {
        "kind": KIND,
        "task": "series",
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "model": str(model),
        "data": _describe(plan, paths),
        "system": _measure(plan, foretold),
        "baselines": {name: _measure(plan, values) for name, values in others.items()},
        "notes": notes,
    }
    if directory is not None:
        _save(directory, report)
    return SeriesEvaluation(report, directory)


def _describe(plan: SeriesPlan, paths: Sequence[str | Path]) -> dict[str, Any]:
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


def _measure(plan: SeriesPlan, foretold: NDArray[Any]) -> dict[str, Any]:
    codec = plan.codec
    if codec.kind == "labels":
        return measure_labels(plan.truth(), foretold, codec.labels)
    return measure_numbers(plan.truth(), foretold, codec.targets)


# -- beside it


def _ask_baselines(
    forecaster: Forecaster, run: Path, plan: SeriesPlan, paths: Sequence[str | Path]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Let the baselines learn what the model has learnt from, where it still lies there."""
    config = _find_config(run)
    if config is None:
        return {}, ["no baselines: only a run's folder tells what a model was trained on"]
    train, notes = _find_train(forecaster, config)
    if train is None:
        return {}, notes
    learnt_from = {path.resolve() for path in config.paths}
    if learnt_from & {Path(path).resolve() for path in paths}:
        notes.append("these files were trained on: the figures flatter everyone")
    found = {}
    for name, foretell in BASELINES.items():
        told = REGRESSIONS[plan.codec.kind] if name == "regression" else name
        try:
            found[told] = foretell(train, plan)
        except MissingExtraError as error:
            notes.append(f"no {told}: {error.reason}; {error.remedy}")
    return found, notes


def _find_config(run: Path) -> SeriesConfig | None:
    """Find in the run's folder which files were trained on: a model folder names none."""
    if not (run / "config.json").is_file():
        return None
    settings = read_settings(run / "config.json").get("series")
    return SeriesConfig(**settings) if isinstance(settings, dict) else None


def _find_train(
    forecaster: Forecaster, config: SeriesConfig
) -> tuple[SeriesPlan | None, list[str]]:
    about = forecaster.about
    gone = [str(path) for path in (*config.paths, *config.dev) if not path.is_file()]
    if gone:
        return None, [f"no baselines: the training files are gone ({', '.join(gone)})"]
    try:
        data = prepare_series(config, seed=int(about.get("seed", 1)))
    except AttendoError as error:
        return None, [f"no baselines: {error.reason}"]
    if data.key != about.get("key"):
        return None, ["no baselines: the training files have changed since"]
    return _as_trained(data.train, forecaster.codec), []


def _as_trained(train: SeriesPlan, codec: SeriesCodec) -> SeriesPlan:
    """Hold that both speak of the same labels in the same order."""
    if train.codec.labels != codec.labels or train.codec.features != codec.features:
        raise InputError(
            "the training files give other columns or labels than the model has",
            remedy="train anew, or copy the model folder elsewhere to evaluate it alone",
        )
    return train


# -- the folder


def _open_folder(directory: Path) -> Path:
    """Make the folder, before any work; refuse one with anything that no evaluation wrote."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{directory} cannot be made: {error.strerror or error}"
        raise InputError(reason, remedy="name another folder with --out") from None
    known = {REPORT, PAGE, *PICTURES}
    foreign = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if foreign or ((directory / PAGE).exists() and not _is_ours(directory / REPORT)):
        listing = ", ".join(foreign[:4]) or PAGE
        raise InputError(
            f"{directory} holds what no evaluation wrote: {listing}",
            remedy="choose another --out: nothing in it was touched",
        )
    return directory


def _is_ours(path: Path) -> bool:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("kind") == KIND


def _save(directory: Path, report: dict[str, Any]) -> None:
    """Write the pictures, the page and last the JSON, which says that all is there."""
    try:
        pictures = draw_pictures(report)
    except MissingExtraError as error:
        report["notes"].append(f"no pictures: {error.reason}; {error.remedy}")
        pictures = {}
    for name in PICTURES:
        (directory / name).unlink(missing_ok=True)
    for name, picture in pictures.items():
        write_atomically(directory / name, picture)
    write_atomically(directory / PAGE, render(report, list(pictures)))
    write_atomically(directory / REPORT, to_json(report))
