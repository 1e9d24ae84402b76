"""From files to batches: read, split by time, fit the codec on train, report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.fingerprint import content_fingerprint
from attendo.tasks.forecasting.batching import BATCH_TOKENS, SeriesBatchPlan
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.table import SeriesTable, read_table
from attendo.tasks.forecasting.windows import Origins, Windows, find_windows, split_windows
from attendo.text.lines import check_readable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.config import SeriesConfig

FORMAT_VERSION = 1
"""Increased when the same files and settings would result in other batches."""
MAX_LISTED = 5
MIN_DEVIATION = 1e-9
"""A smaller deviation, relative to the mean, is rounding error."""


class SeriesData(NamedTuple):
    """The data of a run."""

    codec: SeriesCodec
    train: SeriesBatchPlan
    dev: SeriesBatchPlan
    report: dict[str, Any]
    """Rows, windows, missing values, labels and what was left out, as JSON."""
    fingerprint: str
    """A hash of files and settings, by which a resumed run recognizes its data."""


def prepare_series(
    config: SeriesConfig, *, seed: int = 1, batch_tokens: int = BATCH_TOKENS
) -> SeriesData:
    """Read the files, split them and fit the codec; `seed` shuffles the batches."""
    for path in (*config.paths, *config.dev):
        check_readable(path)
    table = read_table(config.paths, config)
    windows = find_windows(table, stride=config.stride)
    if config.dev:
        train_origins = windows.all_origins
    else:
        split = split_windows(
            windows, horizon=config.horizon, dev_fraction=config.dev_share, seed=seed
        )
        train_origins = split.train
    codec = fit_codec(table, train_origins)
    train = SeriesBatchPlan(table, codec, train_origins, batch_tokens=batch_tokens, seed=seed)
    report = _build_report(table, windows, train_origins)
    if config.dev:
        dev = read_batch_plan(config.dev, codec, stride=config.stride, batch_tokens=batch_tokens)
        report["split"] = "files"
    else:
        dev = train.with_origins(split.dev)
        report["split"] = split.split_by
    report["windows"] = {"train": len(train), "dev": len(dev)}
    return SeriesData(codec, train, dev, report, _fingerprint(config, seed))


def read_batch_plan(
    paths: Path | Sequence[Path],
    codec: SeriesCodec,
    *,
    stride: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 1,
) -> SeriesBatchPlan:
    """Return the batches of files to evaluate, with the codec of a trained model."""
    table = codec.read(paths, needs_targets=True)
    origins = find_windows(table, stride=stride).all_origins
    return SeriesBatchPlan(table, codec, origins, batch_tokens=batch_tokens, seed=seed)


def fit_codec(table: SeriesTable, origins: Origins) -> SeriesCodec:
    """Fit normalization and labels on the rows that the windows of train cover."""
    config = table.config
    rows = covered_rows(len(table.features), origins, config.window, config.horizon)
    mean, deviation = _mean_and_deviation(table.features[rows], config.features, "series.features")
    assert table.targets is not None and config.kind is not None  # noqa: S101, PT018 - read so
    labels: tuple[str, ...] = ()
    target_mean, target_deviation = np.zeros(0), np.zeros(0)
    if config.kind == "labels":
        labels = _collect_labels(table.targets[rows], config.targets[0])
    else:
        target_mean, target_deviation = _mean_and_deviation(table.targets[rows], config.targets, "")
    return SeriesCodec(
        features=config.features,
        targets=config.targets,
        kind=config.kind,
        labels=labels,
        mean=tuple(mean.tolist()),
        deviation=tuple(deviation.tolist()),
        target_mean=tuple(target_mean.tolist()),
        target_deviation=tuple(target_deviation.tolist()),
        window=config.window,
        horizon=config.horizon,
        time=config.time,
        group=config.group,
        axis=table.axis,
        gaps=config.gaps,
    )


def covered_rows(num_rows: int, origins: Origins, window: int, horizon: int) -> NDArray[np.int64]:
    """Return the rows in the input or the target of at least one window."""
    change = np.zeros(num_rows + 1, dtype=np.int64)
    np.add.at(change, origins - window, 1)
    np.add.at(change, origins + horizon, -1)
    return np.flatnonzero(np.cumsum(change[:-1]) > 0)


def _mean_and_deviation(
    values: NDArray[np.float64], names: Sequence[str], setting: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and deviation of each column; raise for empty or constant columns."""
    counts = (~np.isnan(values)).sum(axis=0)
    hint = (
        message("exclude it: name the other columns in {setting}", setting=setting)
        if setting
        else "choose another column in series.targets"
    )
    for name, count in zip(names, counts, strict=True):
        if not count:
            raise InputError(
                message("all values of '{name}' are missing in train", name=name), hint=hint
            )
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    floor = MIN_DEVIATION * np.abs(mean)
    flat = [name for name, is_flat in zip(names, deviation <= floor, strict=True) if is_flat]
    if flat:
        listing = ", ".join(f"'{name}' is always {mean[names.index(name)]:g}" for name in flat)
        raise InputError(
            message("constant columns in train: {listing}", listing=listing), hint=hint
        )
    return mean, deviation


def _collect_labels(targets: NDArray[np.object_], name: str) -> tuple[str, ...]:
    labels = tuple(sorted({label for label in targets.tolist() if label is not None}))
    if len(labels) < 2:
        listing = (
            message("only the label '{label}'", label=labels[0]) if labels else message("no label")
        )
        raise InputError(
            message("train has {listing} in column '{name}'", listing=listing, name=name),
            hint="give data with two labels or more, or decrease series.dev_share",
        )
    return labels


def _build_report(table: SeriesTable, windows: Windows, origins: Origins) -> dict[str, Any]:
    config = table.config
    assert table.targets is not None  # noqa: S101 - read so
    names, missing = [*config.features], [*np.isnan(table.features).mean(axis=0)]
    report: dict[str, Any] = {
        "rows": len(table.features),
        "rows_filled": table.num_filled,
        "series": len(table.groups),
        "features": list(config.features),
        "targets": list(config.targets),
        "kind": config.kind,
        "spacing": table.axis.step_text if table.axis is not None else None,
        "series_left_out": {
            "count": len(windows.too_short),
            "first": windows.too_short[:MAX_LISTED],
        },
        "windows_left_out": windows.num_empty,
    }
    if config.kind == "labels":
        rows = covered_rows(len(table.features), origins, config.window, config.horizon)
        counts = Counter(label for label in table.targets[rows].tolist() if label is not None)
        report["labels"] = dict(sorted(counts.items()))
        names.append(config.targets[0])
        missing.append(np.mean([label is None for label in table.targets.tolist()]))
    else:
        names += [name for name in config.targets if name not in config.features]
        shares = dict(zip(config.targets, np.isnan(table.targets).mean(axis=0), strict=True))
        missing += [shares[name] for name in config.targets if name not in config.features]
    shares = dict(zip(names, map(float, missing), strict=True))
    report["missing"] = {name: round(share, 6) for name, share in shares.items()}
    return report


def _fingerprint(config: SeriesConfig, seed: int) -> str:
    settings = config.model_dump(mode="json", exclude={"paths", "dev"})
    counts = [len(config.paths), len(config.dev)]
    return content_fingerprint(
        [*config.paths, *config.dev],
        {"format": FORMAT_VERSION, "series": settings, "files": counts, "seed": seed},
    )
