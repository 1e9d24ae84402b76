"""Read a column as numbers, labels or times; errors name the first wrong value.

Rows are counted from 1, without the header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.arrow import import_pyarrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.tasks.forecasting.sources import ColumnFile

MISSING_VALUES = ("", "nan", "NaN", "NAN", "null", "NULL", "NA", "N/A", "n/a")
"""Texts that mean a missing value."""
NUM_PROBED_ROWS = 1000
"""Values that decide whether a column has numbers with some wrong values, or texts."""
MAX_LABELS = 10_000
EARLIEST_DAY, LATEST_DAY = 1583_01_01, 2500_12_31
"""Numbers in this range may be dates in the short ISO form, 20310401."""


def read_numbers(column_file: ColumnFile, name: str, role: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN = missing; raise for infinities and texts."""
    column = column_file.column(name, role)
    values = _to_numbers(column)
    if values is None:
        _raise_not_number(column_file, name, column)
        values = np.array([_to_float(text) for text in _trimmed_texts(column).to_pylist()])
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        more = (
            message(", and {count:,} more rows", count=len(infinite) - 1)
            if len(infinite) > 1
            else ""
        )
        raise InputError(
            message(
                "{path}, row {row}, column '{name}': {value:+} is infinite{more}",
                path=column_file.path,
                row=infinite[0] + 1,
                name=name,
                value=values[infinite[0]],
                more=more,
            ),
            hint="correct the value, or leave the field empty if it is missing",
        )
    return values


def read_labels(column_file: ColumnFile, name: str, role: str) -> NDArray[np.object_]:
    """Return a column as texts, None = missing."""
    column = column_file.column(name, role)
    unique_values = _trimmed_texts(column).to_pylist()
    num_labels = len(set(unique_values))
    if role == "targets" and num_labels > MAX_LABELS:
        raise InputError(
            message(
                "{path}, column '{name}': {num_labels:,} different labels",
                path=column_file.path,
                name=name,
                num_labels=num_labels,
            ),
            hint="set series.kind=numbers if it is a column of numbers, or merge rare labels",
        )
    labels = np.empty(len(unique_values), dtype=object)
    labels[:] = unique_values
    return labels


def read_times(column_file: ColumnFile, name: str) -> NDArray[Any]:
    """Return a column as times: datetime64[us], or float64 if times are plain numbers."""
    arrow = import_pyarrow()
    column = column_file.column(name, "time")
    if arrow.types.is_timestamp(column.type) or arrow.types.is_date(column.type):
        timestamps = column.cast(arrow.timestamp("us"), safe=False)  # truncates nanoseconds
        times: NDArray[Any] = timestamps.to_numpy(zero_copy_only=False)
        missing = np.isnat(times)
    else:
        numbers = _to_numbers(column)
        times = (
            _read_dates(column_file, name, column)
            if numbers is None
            else _parse_compact_dates(numbers)
        )
        missing = np.asarray(_trimmed_texts(column).is_null())
    if missing.any():
        raise InputError(
            message(
                "{path}, row {value}: the time in column '{name}' is empty",
                path=column_file.path,
                value=int(missing.argmax()) + 1,
                name=name,
            ),
            hint="fill in the time of each row, or remove the row",
        )
    return times


def is_number_column(column_file: ColumnFile, name: str) -> bool:
    """Return whether a column has numbers, even if a few values are wrong."""
    arrow = import_pyarrow()
    column = column_file.columns[name]
    if not (_is_text(column) or arrow.types.is_boolean(column.type)):
        return _to_numbers(column) is not None
    if _to_numbers(column) is not None:
        return not arrow.types.is_boolean(column.type)
    probe = [
        text
        for text in _trimmed_texts(column).slice(0, NUM_PROBED_ROWS).to_pylist()
        if text is not None
    ]
    return sum(_to_float(text) is not None for text in probe) > len(probe) / 2


def is_label_column(column_file: ColumnFile, name: str, role: str) -> bool:
    """Return whether a target has labels: texts, booleans, or only zeros and ones."""
    column_file.column(name, role)
    if not is_number_column(column_file, name):
        return True
    values = read_numbers(column_file, name, role)
    known = values[~np.isnan(values)]
    return bool(len(known)) and bool(np.isin(known, (0.0, 1.0)).all())


def _is_text(column: Any) -> bool:
    types = import_pyarrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _trimmed_texts(column: Any) -> Any:
    """Return the values of a column as trimmed texts, null = missing."""
    arrow, compute = import_pyarrow(), import_pyarrow("pyarrow.compute")
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column):
        column = _format_whole_numbers(column)
    trimmed = compute.utf8_trim_whitespace(column.cast(arrow.string()))
    is_missing = compute.is_in(trimmed, value_set=arrow.array(MISSING_VALUES))
    return compute.if_else(is_missing, arrow.scalar(None, arrow.string()), trimmed)


def _format_whole_numbers(column: Any) -> Any:
    """Return whole numbers as integers, so that a label 1 is "1" in every format."""
    arrow = import_pyarrow()
    if not arrow.types.is_floating(column.type):
        return column
    values = column.to_numpy(zero_copy_only=False)
    known = values[~np.isnan(values)]
    is_whole = bool((known == np.round(known)).all())
    return column.cast(arrow.int64()) if is_whole and np.isfinite(known).all() else column


def _to_numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column as float64, or None if it has other values."""
    arrow = import_pyarrow()
    types = arrow.types
    is_number = types.is_integer(column.type) or types.is_floating(column.type)
    is_number |= types.is_decimal(column.type) or types.is_boolean(column.type)
    try:
        if is_number or types.is_null(column.type):
            numbers = column.cast(arrow.float64(), safe=False)
        elif _is_text(column):
            numbers = _trimmed_texts(column).cast(arrow.float64())
        else:
            return None
    except arrow.ArrowInvalid:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _to_float(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else np.nan
    except ValueError:
        return None


def _raise_not_number(column_file: ColumnFile, name: str, column: Any) -> None:
    """Raise an error that names the first value that is not a number."""
    if not _is_text(column):
        raise InputError(
            message(
                "{path}, column '{name}' holds {type} values, not numbers",
                path=column_file.path,
                name=name,
                type=column.type,
            ),
            hint="convert them to numbers, or exclude the column with series.features",
        )
    for row, text in enumerate(_trimmed_texts(column).to_pylist(), 1):
        if _to_float(text) is None:
            raise InputError(
                message(
                    "{path}, row {row}, column '{name}': '{text}' is not a number",
                    path=column_file.path,
                    row=row,
                    name=name,
                    text=text,
                ),
                hint="write a number such as 12.5, or leave the field empty if it is missing",
            )


def _read_dates(column_file: ColumnFile, name: str, column: Any) -> NDArray[Any]:
    """Parse ISO texts; those with a time zone are converted to UTC."""
    arrow = import_pyarrow()
    texts = _trimmed_texts(column)
    kinds = (arrow.timestamp("us"), arrow.timestamp("us", "UTC"))
    for kind in kinds:
        try:
            return np.asarray(texts.cast(kind).to_numpy(zero_copy_only=False))
        except arrow.ArrowInvalid:
            continue
    row = max(_first_uncastable(texts, kind) for kind in kinds)
    raise InputError(
        message(
            "{path}, row {row}, column '{name}': '{texts}' is not a time",
            path=column_file.path,
            row=row + 1,
            name=name,
            texts=texts[row],
        ),
        hint="write ISO dates (2031-04-01), date-times (2031-04-01T18:00) or numbers, one kind "
        "in all rows",
    )


def _first_uncastable(texts: Any, kind: Any) -> int:
    """Return the first value that cannot be cast, by bisection."""
    arrow = import_pyarrow()
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            texts.slice(low, middle - low).cast(kind)
            low = middle
        except arrow.ArrowInvalid:
            high = middle
    return low


def _parse_compact_dates(numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Return numbers such as 20310401 as dates if all of them are dates, otherwise unchanged."""
    if not ((numbers >= EARLIEST_DAY) & (numbers <= LATEST_DAY) & (numbers % 1 == 0)).all():
        return numbers
    whole = numbers.astype(np.int64)
    years, months, days = whole // 10_000, whole // 100 % 100, whole % 100
    begins = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    dates = begins.astype("datetime64[D]") + (days - 1)
    is_date = (months >= 1) & (months <= 12) & (dates.astype("datetime64[M]") == begins)
    return dates.astype("datetime64[us]") if (is_date & (days >= 1)).all() else numbers
