"""Small series, written to files by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attendo.tasks.forecasting.config import SeriesConfig


@pytest.fixture
def write(tmp_path):
    """Write lines into a CSV file."""

    def write_lines(*lines: str, name: str = "a.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write_lines


@pytest.fixture
def daily(write):
    """Write days with a value and a label: heat counts up, storm is "yes" on every third day."""

    def write_days(count: int, *, without=(), name: str = "a.csv", first: str = "2031-01-01"):
        days = np.datetime64(first) + np.arange(count)
        rows = [
            f"{day},{number * 0.5},{'yes' if number % 3 == 0 else 'no'}"
            for number, day in enumerate(days)
            if number not in without
        ]
        return write("date,heat,storm", *rows, name=name)

    return write_days


def make_config(path, **settings):
    chosen = {"targets": ["storm"], "window": 4, "horizon": 2, **settings}
    return SeriesConfig(paths=[path], **chosen)


@pytest.fixture
def config():
    return make_config
