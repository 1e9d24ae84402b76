from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from attendo.core.errors import InputError
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.table import SeriesTable
from attendo.tasks.forecasting.windows import find_windows, last_origins, split_windows

sizes = st.lists(st.integers(1, 60), min_size=1, max_size=4)


def make_table(lengths, *, window, horizon, features=None, targets=None):
    total = sum(lengths)
    settings = {"targets": ["y"], "window": window, "horizon": horizon, "features": ["x"]}
    return SeriesTable(
        SeriesConfig(paths=["a.csv"], kind="numbers", **settings),
        None,
        None,
        tuple(f"series {number}" for number in range(len(lengths))),
        np.cumsum([0, *lengths]),
        np.zeros((total, 1)) if features is None else features,
        np.zeros((total, 1)) if targets is None else targets,
        0,
    )


@given(lengths=sizes, window=st.integers(1, 8), horizon=st.integers(1, 4), stride=st.integers(1, 5))
def test_windows_stay_within_their_series_and_none_is_forgotten(lengths, window, horizon, stride):
    if max(lengths) < window + horizon:
        return
    table = make_table(lengths, window=window, horizon=horizon)
    found = find_windows(table, stride=stride)
    for positions, begin, end in zip(found.origins, table.offsets, table.offsets[1:], strict=False):
        expected = list(range(begin + window, end - horizon + 1, stride))
        assert positions.tolist() == expected
    short = [length for length in lengths if length < window + horizon]
    assert len(found.too_short) == len(short)


@given(
    lengths=sizes,
    window=st.integers(1, 8),
    horizon=st.integers(1, 4),
    share=st.floats(0.01, 0.6),
)
def test_no_window_of_train_overlaps_with_what_dev_forecasts(lengths, window, horizon, share):
    try:
        found = find_windows(make_table(lengths, window=window, horizon=horizon))
        split = split_windows(found, horizon=horizon, dev_fraction=share, seed=1)
    except InputError:
        return
    reported = {row for position in split.dev for row in range(position, position + horizon)}
    seen = {row for position in split.train for row in range(position - window, position + horizon)}
    assert not reported & seen
    assert len(split.train)
    assert len(split.dev)
    if split.split_by == "time":
        for positions in found.origins:
            dev = [position for position in positions if position in set(split.dev.tolist())]
            assert dev == positions[len(positions) - len(dev) :].tolist()  # the last ones
            assert len(dev) in (0, round(share * len(positions)))


def test_the_share_is_the_last_part_of_time():
    found = find_windows(make_table([106], window=5, horizon=2))
    split = split_windows(found, horizon=2, dev_fraction=0.2, seed=1)
    assert split.dev.tolist() == list(range(85, 105))
    assert split.train.tolist() == list(range(5, 84))  # 84 would forecast row 85


def test_series_of_one_window_each_are_split_as_a_whole():
    found = find_windows(make_table([7] * 10, window=5, horizon=2))
    split = split_windows(found, horizon=2, dev_fraction=0.2, seed=1)
    assert split.split_by == "group"
    assert (len(split.train), len(split.dev)) == (8, 2)
    assert not set(split.train) & set(split.dev)


def test_one_window_cannot_be_split():
    found = find_windows(make_table([7], window=5, horizon=2))
    with pytest.raises(InputError, match="1 windows of one series are too few"):
        split_windows(found, horizon=2, dev_fraction=0.2, seed=1)


def test_too_short_reports_what_there_is_and_what_is_needed():
    with pytest.raises(InputError, match=r"'series 1', has 8 rows; .* need 10") as caught:
        find_windows(make_table([3, 8], window=6, horizon=4))
    assert "decrease series.window" in caught.value.hint


def test_windows_without_anything_to_read_or_to_forecast_are_left_out():
    features, targets = np.zeros((12, 1)), np.zeros((12, 1))
    features[2:5] = np.nan
    targets[8:10] = np.nan
    table = make_table([12], window=3, horizon=2, features=features, targets=targets)
    found = find_windows(table)
    assert found.all_origins.tolist() == [3, 4, 6, 7, 9, 10]
    assert found.num_empty == 2
    targets[:] = np.nan
    with pytest.raises(InputError, match="none of the 8 windows"):
        find_windows(table)


def test_the_last_windows_are_those_of_series_long_enough():
    assert last_origins(make_table([5, 2, 3], window=3, horizon=9)).tolist() == [5, 10]
    with pytest.raises(InputError, match="has 2 rows; a window needs 3"):
        last_origins(make_table([2], window=3, horizon=1))
