from __future__ import annotations

import numpy as np
import pytest

from attendo.core.errors import InputError
from attendo.tasks.forecasting.table import read_table
from attendo.tasks.forecasting.time_axis import infer_axis


def read(path, config, **settings):
    return read_table(path, config(path, time="time", **settings))


def lines_of(times):
    return [
        "time,heat,storm",
        *(f"{t},{n},{'yes' if n % 2 else 'no'}" for n, t in enumerate(times)),
    ]


@pytest.mark.parametrize(
    ("times", "spacing", "following"),
    [
        (["2031-02-26", "2031-02-27", "2031-02-28"], "1 day", "2031-03-01"),
        (["2031-01-01T22:00", "2031-01-01T23:00"], "3600 seconds", "2031-01-02T00:00:00"),
        (["2031-01-01 00:00:00Z", "2031-01-02 00:00:00Z"], "1 day", "2031-01-03"),
        (["2031-01-31", "2031-02-28", "2031-03-31"], "1 month", "2031-04-30"),
        (["2031-01-15", "2031-02-15", "2031-03-15"], "1 month", "2031-04-15"),
        (["2029-01-01", "2030-01-01", "2031-01-01"], "12 months", "2032-01-01"),
        (["20310227", "20310228", "20310301"], "1 day", "2031-03-02"),
        (["0.1", "0.2", "0.3", "0.4"], "0.1", "0.5"),
        (["1990", "1991", "1992"], "1", "1993"),
    ],
)
def test_spacing_is_found_and_continues(write, config, times, spacing, following):
    table = read(write(*lines_of(times)), config)
    assert table.axis.step_text == spacing
    assert table.axis.format_times(table.axis.next_times(table.times[-1], 1)) == [following]
    assert table.num_filled == 0


def test_times_must_increase_and_the_row_is_named(write, config):
    path = write(*lines_of(["2031-01-01", "2031-01-03", "2031-01-02"]))
    with pytest.raises(InputError, match="row 3: the time 2031-01-02 is not after 2031-01-03"):
        read(path, config)
    path = write(*lines_of(["1", "2", "2", "3"]))
    with pytest.raises(InputError, match="row 3: the time 2 is not after 2") as caught:
        read(path, config)
    assert "series.group" in caught.value.hint


def test_a_wrong_or_empty_time_is_named(write, config):
    path = write(*lines_of(["2031-02-27", "2031-02-28", "2031-02-30"]))
    with pytest.raises(InputError, match="row 3, column 'time': '2031-02-30' is not a time"):
        read(path, config)
    path = write(*lines_of(["2031-01-01", "", "2031-01-03"]))
    with pytest.raises(InputError, match="row 2: the time in column 'time' is empty"):
        read(path, config)


def test_gaps_are_rejected_with_their_times_and_a_hint(daily, config):
    path = daily(20, without=(3, 4, 11))
    with pytest.raises(InputError) as caught:
        read_table(path, config(path, time="date"))
    assert "3 rows are missing in steps of 1 day" in caught.value.reason
    assert "2 between 2031-01-03 and 2031-01-06" in caught.value.reason
    assert "1 between 2031-01-11 and 2031-01-13" in caught.value.reason
    assert "series.gaps=mask" in caught.value.hint


def test_masked_gaps_are_rows_of_missing_values(daily, config):
    path = daily(20, without=(3, 4, 11))
    table = read_table(path, config(path, time="date", gaps="mask"))
    assert table.num_filled == 3
    expected = np.arange(20) * 0.5
    expected[[3, 4, 11]] = np.nan
    np.testing.assert_array_equal(table.features[:, 0], expected)
    assert [row for row, label in enumerate(table.targets) if label is None] == [3, 4, 11]
    days = np.datetime64("2031-01-01") + np.arange(20)
    assert table.axis.format_times(table.times) == [str(day) for day in days]


def test_masked_months_get_their_own_dates(write, config):
    times = ["2031-01-31", "2031-02-28", "2031-03-31", "2031-05-31"]
    table = read(write(*lines_of(times)), config, gaps="mask")
    assert table.axis.format_times(table.times)[3] == "2031-04-30"


def test_a_gap_larger_than_the_series_is_a_wrong_time(write, config):
    path = write(*lines_of(["2031-01-01", "2031-01-02", "2031-01-03", "9031-01-01"]))
    with pytest.raises(InputError, match="than present \\(4\\)") as caught:
        read(path, config, gaps="mask")
    assert "9031-01-01" in caught.value.reason


def test_a_row_between_the_steps_is_irregular(write, config):
    path = write(*lines_of(["0", "10", "20", "25", "35"]))
    with pytest.raises(
        InputError, match=r"row 4: 25 is not a whole number of steps of 10 after 20"
    ):
        read(path, config, gaps="mask")


def test_jitter_of_a_clock_is_not_a_gap(write, config):
    times = ["2031-01-01T00:00:00", "2031-01-01T01:00:03", "2031-01-01T02:00:01"]
    table = read(write(*lines_of(times)), config)
    assert table.num_filled == 0


def test_groups_may_alternate_and_have_their_own_times(write, config):
    path = write(
        "time,place,heat,storm", "5,b,1,no", "1,a,2,yes", "6,b,3,no", "2,a,4,no", "7,b,5,yes"
    )
    table = read(path, config, group="place")
    assert table.groups == ("b", "a")
    assert table.offsets.tolist() == [0, 3, 5]
    assert table.features[:, 0].tolist() == [1, 3, 5, 2, 4]
    assert table.times.tolist() == [5, 6, 7, 1, 2]


def test_a_row_without_a_group_is_named(write, config):
    path = write("place,heat,storm", "a,1,no", ",2,yes")
    with pytest.raises(InputError, match="row 2: the group in column 'place' is empty"):
        read_table(path, config(path, group="place"))


def test_files_are_series_of_their_own_unless_a_group_joins_them(write, config):
    first = write("time,place,heat,storm", "1,a,1,no", "2,a,2,yes", name="1.csv")
    second = write("time,place,heat,storm", "3,a,3,no", "4,a,4,yes", name="2.csv")
    apart = read_table([first, second], config(first, time="time", features=["heat"]))
    assert apart.offsets.tolist() == [0, 2, 4]
    joined = read_table(
        [first, second], config(first, time="time", group="place", features=["heat"])
    )
    assert joined.offsets.tolist() == [0, 4]
    with pytest.raises(InputError, match=r"1.csv, row 1: .*time 1 is not after 4"):
        read_table([second, first], config(first, time="time", group="place", features=["heat"]))


def test_a_file_of_another_spacing_than_training_is_rejected(daily, write, config):
    path = daily(5)
    axis = read_table(path, config(path, time="date")).axis
    hours = [f"2031-01-01T{hour:02}:00" for hour in range(6)]
    other = write(*lines_of(hours), name="b.csv")
    with pytest.raises(InputError, match=r"rows are 3600 seconds apart, in training .* 1 day"):
        read_table(other, config(other, time="time"), axis=axis)
    numbers = write(*lines_of(["1", "2", "3"]), name="c.csv")
    with pytest.raises(InputError, match="in training they were 1 day"):
        read_table(numbers, config(numbers, time="time"), axis=axis)


def test_the_commonest_difference_is_the_step():
    assert infer_axis([np.array([0.0, 3.0, 6.0, 7.0, 10.0, 30.0])]).step == 3.0


def test_a_single_row_has_no_spacing(daily, config):
    path = daily(5)
    axis = read_table(path, config(path, time="date")).axis
    one = daily(1, name="b.csv")
    assert read_table(one, config(one, time="date"), axis=axis).axis == axis
