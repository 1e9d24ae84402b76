from __future__ import annotations

import gzip
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.table import read_table

DAYS = [date(2031, 1, day) for day in range(1, 5)]
HEAT = [20.5, None, 22.0, 23.25]
STORM = ["no", "yes", None, "no"]


def write_csv(path):
    rows = zip(DAYS, HEAT, STORM, strict=True)
    cells = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(["date,heat,storm", *cells]))


def write_gzip(path):
    write_csv(path.with_name("plain.csv"))
    path.write_bytes(gzip.compress(path.with_name("plain.csv").read_bytes()))


def write_parquet(path):
    table = pa.table({"date": DAYS, "heat": HEAT, "storm": STORM})
    pyarrow.parquet.write_table(table, path)


def write_npz(path):
    heat = np.array([np.nan if value is None else value for value in HEAT])
    storm = np.array([label or "" for label in STORM])
    np.savez(path, date=np.array(DAYS, dtype="datetime64[D]"), heat=heat, storm=storm)


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("a.csv", write_csv),
        ("a.csv.gz", write_gzip),
        ("a.parquet", write_parquet),
        ("a.npz", write_npz),
    ],
)
def test_every_format_gives_the_same_table(tmp_path, config, name, writer):
    path = tmp_path / name
    writer(path)
    table = read_table(path, config(path, time="date"))
    assert table.config.features == ("heat",)
    assert table.config.kind == "labels"
    np.testing.assert_array_equal(table.features[:, 0], [20.5, np.nan, 22.0, 23.25])
    assert table.targets.tolist() == STORM
    assert table.axis.format_times(table.times) == [day.isoformat() for day in DAYS]


def test_texts_that_represent_missing_values(write, config):
    path = write("heat,storm", "1,no", "NaN,yes", "null,no", ",", "NA,no", " 2.5 ,yes")
    table = read_table(path, config(path))
    np.testing.assert_array_equal(table.features[:, 0], [1, *[np.nan] * 4, 2.5])
    assert table.targets.tolist() == ["no", "yes", "no", None, "no", "yes"]


def test_numbers_of_a_label_read_alike_in_every_format(tmp_path, write, config):
    csv_path = write("heat,storm", "1,0", "2,1", "3,")
    parquet_path = tmp_path / "a.parquet"
    columns = {"heat": [1.0, 2.0, 3.0], "storm": [0.0, 1.0, None]}
    pyarrow.parquet.write_table(pa.table(columns), parquet_path)
    for path in (csv_path, parquet_path):
        table = read_table(path, config(path))
        assert table.config.kind == "labels"  # only zeros and ones
        assert table.targets.tolist() == ["0", "1", None]


def test_number_targets_are_features_too_and_text_columns_are_not(write, config):
    path = write("heat,salt,place", "1,5,sea", "2,6,sea", "3,7,bay")
    table = read_table(path, config(path, targets=["salt"]))
    assert table.config.kind == "numbers"
    assert table.config.features == ("heat", "salt")
    np.testing.assert_array_equal(table.targets, [[5], [6], [7]])


def test_plus_signs_are_numbers(write, config):
    path = write("heat,storm", "+1.5,no", "-2,yes")
    assert read_table(path, config(path)).features[:, 0].tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("heat,storm", "1,no", "inf,yes"), r"row 2, column 'heat': \+inf is infinite"),
        (("heat,storm", "1,no", "1e999,yes", "-inf,no"), r"row 2.*and 1 more rows"),
        (
            ("heat,storm", "1,no", "2,no", "12;5,yes"),
            r"row 3, column 'heat': '12;5' is not a number",
        ),
        (("heat,heat,storm", "1,2,no"), "more than one column named 'heat'"),
        (("heat,storm",), "has no rows"),
        (("heat,storm", ",no", ",yes"), "all values of column 'heat' are missing"),
        (("heat,storm", "1,", "2,"), "all values of the target 'storm' are missing"),
        (("heat,storm", "1,no", "2"), "Expected 2 columns, got 1"),
        (("",), "is empty"),
        (("place,storm", "sea,no"), "no column of numbers"),
    ],
)
def test_bad_content_is_named(write, config, lines, reason):
    path = write(*lines)
    with pytest.raises(InputError, match=reason) as caught:
        read_table(path, config(path))
    assert str(path) in caught.value.reason
    assert caught.value.hint


def test_a_column_that_does_not_exist_suggests_the_nearest(write, config):
    path = write("sea_temperature,storm", "1,no", "2,yes")
    with pytest.raises(InputError, match="no column 'sea_temprature'") as caught:
        read_table(path, config(path, features=["sea_temprature"]))
    assert "did you mean 'sea_temperature'?" in caught.value.hint
    with pytest.raises(InputError, match=r"no column 'strom' \(series.targets\)"):
        read_table(path, config(path, targets=["strom"]))


def test_too_many_labels_are_a_column_of_numbers(write, config):
    path = write("heat,storm", *(f"{number % 7},v{number}" for number in range(10_001)))
    with pytest.raises(InputError, match="10,001 different labels") as caught:
        read_table(path, config(path))
    assert "series.kind=numbers" in caught.value.hint


def test_broken_files_are_input_errors(tmp_path, config):
    contents = {"a.parquet": b"PAR1 is not enough", "a.npz": b"PK\x03\x04 cut", "b.npz": b"text"}
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            read_table(path, config(path))
    path = tmp_path / "a.csv"
    path.write_bytes(b"heat,storm\n1,\xff\n")
    with pytest.raises(InputError, match="UTF8"):
        read_table(path, config(path))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"heat,storm\n" + b"1,no\n" * 10_000)[:-30])
    with pytest.raises(InputError, match="damaged gzip"):
        read_table(path, config(path))


def test_npz_runs_no_code_and_needs_named_columns_of_one_length(tmp_path, config):
    path = tmp_path / "a.npz"
    np.savez(path, heat=np.array([1.0, "x"], dtype=object), storm=np.array(["a", "b"]))
    with pytest.raises(InputError, match="allow_pickle"):
        read_table(path, config(path))
    np.savez(path, heat=np.arange(3.0), storm=np.array(["a", "b"]))
    with pytest.raises(InputError, match="heat 3, storm 2"):
        read_table(path, config(path))
    np.savez(path, heat=np.ones((2, 2)), storm=np.array(["a", "b"]))
    with pytest.raises(InputError, match=r"'heat' has the shape \(2, 2\)"):
        read_table(path, config(path))


def test_unknown_files_and_suffixes(tmp_path, config):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "a.csv", config(tmp_path / "a.csv"))
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"x")
    with pytest.raises(InputError, match=r"unknown suffix '.xlsx'"):
        read_table(path, config(path))


def test_a_missing_target_column_matters_only_where_targets_are_needed(write, config):
    path = write("heat", "1", "2", "3")
    wanted = config(path, features=["heat"], kind="labels")
    assert read_table(path, wanted, needs_targets=False).targets is None
    with pytest.raises(InputError, match="no column 'storm'"):
        read_table(path, wanted)


def test_settings_that_do_not_fit_together_are_gathered():
    with pytest.raises(ConfigError) as caught:
        SeriesConfig(paths=["a.csv"], time="t", group="t", targets=["x", "y"], kind="labels")
    assert len(caught.value.reasons) == 2
    with pytest.raises(ConfigError, match="'x' is named twice"):
        SeriesConfig(paths=["a.csv"], targets=["y"], features=["x", "x"])
    with pytest.raises(ConfigError, match="is also the time column"):
        SeriesConfig(paths=["a.csv"], targets=["t"], time="t")


def test_values_that_are_not_numbers_texts_or_times_are_named(tmp_path, config):
    path = tmp_path / "a.parquet"
    columns = {"heat": [[1.0], [2.0]], "salt": [1.0, 2.0], "storm": ["no", "yes"]}
    pyarrow.parquet.write_table(pa.table(columns), path)
    assert read_table(path, config(path)).config.features == ("salt",)
    with pytest.raises(InputError, match="'heat' holds list"):
        read_table(path, config(path, features=["heat"]))
    path = tmp_path / "a.npz"
    np.savez(path, heat=np.array([1j, 2j]), storm=np.array(["no", "yes"]))
    with pytest.raises(InputError, match="'heat' holds complex128"):
        read_table(path, config(path))


def test_months_of_numpy_are_times(tmp_path, config):
    path = tmp_path / "a.npz"
    months = np.array(["2031-01", "2031-02", "2031-03"], dtype="datetime64[M]")
    np.savez(path, month=months, heat=np.arange(3.0), storm=np.array(["no", "yes", "no"]))
    table = read_table(path, config(path, time="month"))
    assert table.axis.step_text == "1 month"
