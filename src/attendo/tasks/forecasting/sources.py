"""Read CSV and Parquet with pyarrow, NPZ with NumPy (extra `series`), into Arrow columns.

The columns of a CSV file are texts; `attendo.tasks.forecasting.columns` interprets them. Nothing is
unpickled.
"""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.data.arrow import DAMAGED_FILE_HINT, import_pyarrow, read_or_raise
from attendo.text.lines import check_readable, open_bytes, read_lines

if TYPE_CHECKING:
    from pathlib import Path

FIX_CSV_HINT = "correct the row, quote fields that contain commas, and use UTF-8"


class ColumnFile(NamedTuple):
    """The columns of one file, as Arrow arrays of one length."""

    path: Path
    columns: dict[str, Any]
    num_rows: int

    def column(self, name: str, role: str) -> Any:
        """Return the column that a setting names; raise an error that lists all columns."""
        if name not in self.columns:
            raise InputError(
                message(
                    "{path} has no column '{name}' (series.{role})",
                    path=self.path,
                    name=name,
                    role=role,
                ),
                hint=suggest(name, self.columns),
            )
        column_array = self.columns[name]
        types = import_pyarrow().types
        if types.is_nested(column_array.type) or types.is_binary(column_array.type):
            raise InputError(
                message(
                    "{path}, column '{name}' holds {type} values",
                    path=self.path,
                    name=name,
                    type=column_array.type,
                ),
                hint="give a column of numbers, texts or times",
            )
        return column_array


def read_column_file(path: Path) -> ColumnFile:
    """Read a file by its suffix: .csv, .csv.gz, .parquet or .npz."""
    check_readable(path)
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".npz"):
        columns = _read_npz(path)
    elif name.endswith((".parquet", ".pq")):
        columns = _read_parquet(path)
    elif name.endswith(".csv"):
        columns = _read_csv(path)
    else:
        raise InputError(
            message("{path}: unknown suffix '{suffix}'", path=path, suffix=path.suffix),
            hint="give .csv, .csv.gz, .parquet or .npz",
        )
    num_rows = len(next(iter(columns.values()))) if columns else 0
    if not num_rows:
        raise InputError(
            message("{path} has no rows", path=path), hint="give a file with rows of values"
        )
    return ColumnFile(path, columns, num_rows)


def _read_csv(path: Path) -> dict[str, Any]:
    arrow, reader = import_pyarrow(), import_pyarrow("pyarrow.csv")
    header = _csv_header(path)
    texts = reader.ConvertOptions(column_types=dict.fromkeys(header, arrow.string()))
    # An empty line in a file with one column is a missing value.
    parsing = reader.ParseOptions(ignore_empty_lines=len(header) > 1)
    with open_bytes(path) as stream:
        table = read_or_raise(
            lambda: reader.read_csv(
                stream,
                read_options=reader.ReadOptions(use_threads=False),  # errors then name the row
                parse_options=parsing,
                convert_options=texts,
            ),
            path,
            "CSV",
            FIX_CSV_HINT,
        )
    return {name: table.column(name).combine_chunks() for name in header}


def _csv_header(path: Path) -> list[str]:
    lines = read_lines(path)
    first = next(lines, "")
    lines.close()
    header = next(csv.reader([first]), [])
    if not first.strip():
        raise InputError(
            message("{name} is empty", name=path),
            hint="write the column names in the first line, then the rows",
        )
    _check_column_names(path, header)
    return header


def _check_column_names(path: Path, names: list[str]) -> None:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InputError(
            message(
                "{path} has more than one column named {names}",
                path=path,
                names=", ".join(map(repr, duplicates)),
            ),
            hint="give each column a unique name in the first line",
        )


def _read_parquet(path: Path) -> dict[str, Any]:
    import_pyarrow()
    parquet = import_pyarrow("pyarrow.parquet")
    with open_bytes(path) as stream:
        table = read_or_raise(
            lambda: parquet.ParquetFile(stream).read(), path, "Parquet", DAMAGED_FILE_HINT
        )
    _check_column_names(path, table.column_names)
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _read_npz(path: Path) -> dict[str, Any]:
    with open_bytes(path) as stream:
        arrays = read_or_raise(lambda: _load_arrays(path, stream), path, "NPZ", DAMAGED_FILE_HINT)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listing = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(
            message("{path}: the arrays differ in length: {listing}", path=path, listing=listing),
            hint="save arrays of one length, one value per row",
        )
    return {name: _to_arrow(path, name, array) for name, array in arrays.items()}


def _to_arrow(path: Path, name: str, array: np.ndarray) -> Any:
    arrow = import_pyarrow()
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]")  # Arrow does not support months
    try:
        return arrow.array(array, from_pandas=True)
    except arrow.ArrowException:
        raise InputError(
            message(
                "{path}: array '{name}' holds {dtype} values",
                path=path,
                name=name,
                dtype=array.dtype,
            ),
            hint="save numbers, texts or datetime64 values",
        ) from None


def _load_arrays(path: Path, stream: IO[bytes]) -> dict[str, np.ndarray]:
    loaded = np.load(stream, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        raise InputError(
            message("{path} is a single array without a name", path=path),
            hint="save it with numpy.savez(path, name=array)",
        )
    arrays = {name: loaded[name] for name in loaded.files}
    for name, array in arrays.items():
        if array.ndim != 1:
            raise InputError(
                message(
                    "{path}: array '{name}' has the shape {shape}",
                    path=path,
                    name=name,
                    shape=array.shape,
                ),
                hint="save each column as a one-dimensional array",
            )
    return {
        name: array.astype(str) if array.dtype.kind == "S" else array
        for name, array in arrays.items()
    }
