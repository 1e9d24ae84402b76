"""Files to batches: read, split by time, learn the normalisation on train, tell what was found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.data.content_key import content_key
from attendo.data.lines import check_file
from attendo.data.series.codec import SeriesCodec
from attendo.data.series.plan import BATCH_TOKENS, SeriesPlan
from attendo.data.series.table import Table, read_table
from attendo.data.series.windows import Places, Windows, find_windows, split_windows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.data.series.config import SeriesConfig

FORMAT = 1
"""Changes when the same files and settings would give other batches."""
NUM_TOLD = 5
SMALLEST_DEVIATION = 1e-9
"""Of a column, beside its mean: less is rounding."""


class SeriesData(NamedTuple):
    """What a run trains on."""

    codec: SeriesCodec
    train: SeriesPlan
    dev: SeriesPlan
    report: dict[str, Any]
    """Rows, windows, missing values, labels and what was left out; JSON can write it."""
    key: str
    """By which a resumed run knows its data: a hash of the files and the settings."""


def prepare_series(
    config: SeriesConfig, *, seed: int = 1, batch_tokens: int = BATCH_TOKENS
) -> SeriesData:
    """Read the files, split them and learn the codec; `seed` shuffles the batches."""
    for path in (*config.paths, *config.dev):
        check_file(path)
    table = read_table(config.paths, config)
    windows = find_windows(table, stride=config.stride)
    if config.dev:
        train_places = windows.all
    else:
        split = split_windows(windows, horizon=config.horizon, share=config.dev_share, seed=seed)
        train_places = split.train
    codec = learn_codec(table, train_places)
    train = SeriesPlan(table, codec, train_places, batch_tokens=batch_tokens, seed=seed)
    report = _describe(table, windows, train_places)
    if config.dev:
        dev = read_plan(config.dev, codec, stride=config.stride, batch_tokens=batch_tokens)
        report["split"] = "files"
    else:
        dev = train.choose(split.dev)
        report["split"] = split.by
    report["windows"] = {"train": len(train), "dev": len(dev)}
    return SeriesData(codec, train, dev, report, _key(config, seed))


def read_plan(
    paths: Path | Sequence[Path],
    codec: SeriesCodec,
    *,
    stride: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    seed: int = 1,
) -> SeriesPlan:
    """Read files that a trained codec is to be measured on."""
    table = codec.read(paths, needs_targets=True)
    places = find_windows(table, stride=stride).all
    return SeriesPlan(table, codec, places, batch_tokens=batch_tokens, seed=seed)


def learn_codec(table: Table, places: Places) -> SeriesCodec:
    """Learn normalisation and labels from the rows that the windows of train cover."""
    config = table.config
    rows = covered_rows(len(table.features), places, config.window, config.horizon)
    mean, deviation = _measure(table.features[rows], config.features, "series.features")
    assert table.targets is not None and config.kind is not None  # noqa: S101, PT018 - read so
    labels: tuple[str, ...] = ()
    target_mean, target_deviation = np.zeros(0), np.zeros(0)
    if config.kind == "labels":
        labels = _learn_labels(table.targets[rows], config.targets[0])
    else:
        target_mean, target_deviation = _measure(table.targets[rows], config.targets, "")
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


def covered_rows(num_rows: int, places: Places, window: int, horizon: int) -> NDArray[np.int64]:
    """Give the rows that lie in the input or the target of at least one window."""
    change = np.zeros(num_rows + 1, dtype=np.int64)
    np.add.at(change, places - window, 1)
    np.add.at(change, places + horizon, -1)
    return np.flatnonzero(np.cumsum(change[:-1]) > 0)


def _measure(
    values: NDArray[np.float64], names: Sequence[str], setting: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find mean and deviation of each column; refuse what has none."""
    counts = (~np.isnan(values)).sum(axis=0)
    remedy = (
        f"leave it out: name the other columns in {setting}"
        if setting
        else "choose another column in series.targets"
    )
    for name, count in zip(names, counts, strict=True):
        if not count:
            raise InputError(f"all values of '{name}' are missing in train", remedy=remedy)
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    floor = SMALLEST_DEVIATION * np.abs(mean)
    flat = [name for name, is_flat in zip(names, deviation <= floor, strict=True) if is_flat]
    if flat:
        listing = ", ".join(f"'{name}' is always {mean[names.index(name)]:g}" for name in flat)
        raise InputError(f"constant in train, nothing to learn from: {listing}", remedy=remedy)
    return mean, deviation


def _learn_labels(targets: NDArray[np.object_], name: str) -> tuple[str, ...]:
    labels = tuple(sorted({label for label in targets.tolist() if label is not None}))
    if len(labels) < 2:
        found = f"only '{labels[0]}'" if labels else "none"
        raise InputError(
            f"train has {found} as label of '{name}'",
            remedy="give data with two labels or more; a larger part of them with a smaller "
            "series.dev_share",
        )
    return labels


def _describe(table: Table, windows: Windows, places: Places) -> dict[str, Any]:
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
        "spacing": table.axis.spacing if table.axis is not None else None,
        "series_left_out": {"count": len(windows.short), "first": windows.short[:NUM_TOLD]},
        "windows_left_out": windows.num_empty,
    }
    if config.kind == "labels":
        rows = covered_rows(len(table.features), places, config.window, config.horizon)
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


def _key(config: SeriesConfig, seed: int) -> str:
    settings = config.model_dump(mode="json", exclude={"paths", "dev"})
    counts = [len(config.paths), len(config.dev)]
    return content_key(
        [*config.paths, *config.dev],
        {"format": FORMAT, "series": settings, "files": counts, "seed": seed},
    )
