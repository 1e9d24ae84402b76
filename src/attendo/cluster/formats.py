"""What a file consists of: lines of text, JSON lines, or rows of Parquet.

A format reads the rows of a file, packs those of a shard into bytes, and renders the shard again
with its translations. Text is read exactly as `attendo translate --input` reads it.
"""

from __future__ import annotations

import gzip
import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from attendo.cluster.storage import explain_errors, open_seekable, open_source
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.arrow import import_pyarrow
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.cluster.storage import ReadPosition

PARQUET_BATCH_ROWS = 4096
TEXT_COLUMN, OUTPUT_COLUMN = "text", "translation"
GZIP_LEVEL = 6


class Row(NamedTuple):
    """A row of a file."""

    text: str
    content: Any
    """What `pack` needs."""


class Format(Protocol):
    """Reads, packs and renders rows."""

    @property
    def suffix(self) -> str:
        """The ending of the names of shards."""
        ...

    def read(self, address: str, position: ReadPosition | None = None) -> Iterator[Row]:
        """Yield the rows of a file."""
        ...

    def pack(self, rows: Sequence[Row]) -> bytes:
        """Return the rows of a shard as bytes."""
        ...

    def texts(self, packed: bytes) -> list[str]:
        """Return the texts of packed rows."""
        ...

    def render(self, packed: bytes, outputs: Sequence[str]) -> bytes:
        """Return the file of a shard: one output per row."""
        ...


class TextLines:
    """Plain or compressed text: one text per line."""

    def __init__(self, *, is_compressed: bool) -> None:
        self.is_compressed = is_compressed

    @property
    def suffix(self) -> str:
        """The ending of the names of shards."""
        return ".gz" if self.is_compressed else ".txt"

    def read(self, address: str, position: ReadPosition | None = None) -> Iterator[Row]:
        """Yield the lines of a file."""
        with open_source(address, position) as (path, file):
            for line in read_lines(path, file):
                yield Row(line, line)

    def pack(self, rows: Sequence[Row]) -> bytes:
        """Return lines as bytes: none of them has a line feed."""
        return "\n".join(row.text for row in rows).encode("utf-8", "surrogatepass")

    def texts(self, packed: bytes) -> list[str]:
        """Return the lines."""
        return packed.decode("utf-8", "surrogatepass").split("\n")

    def render(self, packed: bytes, outputs: Sequence[str]) -> bytes:  # noqa: ARG002
        """Return a file with one output per line, which may be an n-best list of several."""
        return compress("".join(f"{one}\n" for one in outputs), self.is_compressed)


class JsonLines:
    """One JSON object per line; the translation is added to it.

    Args:
        column: the field of the text.
        output_column: the field of the translation.
        is_compressed: whether the file is gzip.

    """

    def __init__(self, column: str, output_column: str, *, is_compressed: bool) -> None:
        self.column, self.output_column = column, output_column
        self.is_compressed = is_compressed

    @property
    def suffix(self) -> str:
        """The ending of the names of shards."""
        return ".jsonl.gz" if self.is_compressed else ".jsonl"

    def read(self, address: str, position: ReadPosition | None = None) -> Iterator[Row]:
        """Yield the objects of a file."""
        with open_source(address, position) as (path, file):
            for number, line in enumerate(read_lines(path, file), 1):
                yield Row(self._find_text(line, f"{address}, line {number}"), line)

    def _find_text(self, line: str, where: str) -> str:
        try:
            value = json.loads(line)
        except ValueError:
            raise InputError(
                message("{where} is not JSON", where=where), hint="write one object per line"
            ) from None
        text = value.get(self.column) if isinstance(value, dict) else None
        if text is None and isinstance(value, dict) and self.column in value:
            return ""
        if not isinstance(text, str):
            raise InputError(
                message("{where} has no text in '{column}'", where=where, column=self.column),
                hint="name the field with --column",
            )
        return text

    def pack(self, rows: Sequence[Row]) -> bytes:
        """Return the lines of the objects as bytes."""
        return "\n".join(row.content for row in rows).encode("utf-8", "surrogatepass")

    def texts(self, packed: bytes) -> list[str]:
        """Return the texts of the objects."""
        return [value[self.column] or "" for value in self._objects(packed)]

    def render(self, packed: bytes, outputs: Sequence[str]) -> bytes:
        """Return the objects with their translations."""
        lines = (
            json.dumps({**value, self.output_column: one}, ensure_ascii=False) + "\n"
            for value, one in zip(self._objects(packed), outputs, strict=True)
        )
        return compress("".join(lines), self.is_compressed)

    @staticmethod
    def _objects(packed: bytes) -> Iterator[dict[str, Any]]:
        return map(json.loads, packed.decode("utf-8", "surrogatepass").split("\n"))


class ParquetRows:
    """A Parquet file; the translation is added as a column.

    Args:
        column: the column of the text.
        output_column: the column of the translation.

    """

    suffix = ".parquet"

    def __init__(self, column: str, output_column: str) -> None:
        self.column, self.output_column = column, output_column

    def read(self, address: str, position: ReadPosition | None = None) -> Iterator[Row]:
        """Yield the rows of a file."""
        parquet = import_arrow("pyarrow.parquet")
        with open_seekable(address, position) as stream, explain_parquet(address):
            file = parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            if self.column not in names:
                raise InputError(
                    message("{where} has no text in '{column}'", where=address, column=self.column),
                    hint=message("name the column with --column: {names}", names=", ".join(names)),
                )
            for batch in file.iter_batches(PARQUET_BATCH_ROWS):
                texts = batch.column(self.column).to_pylist()
                for index, text in enumerate(texts):
                    if not isinstance(text, str | None):
                        raise InputError(
                            message("{where} has no text in '{column}'", where=address,
                                    column=self.column),
                            hint="name the field with --column",
                        )  # fmt: skip
                    yield Row(text or "", (batch, index))

    def pack(self, rows: Sequence[Row]) -> bytes:
        """Return the rows as an Arrow stream."""
        pa = import_arrow()

        slices = []
        start = 0
        for end in range(1, len(rows) + 1):
            batch, first = rows[start].content
            if end == len(rows) or rows[end].content[0] is not batch:
                slices.append(batch.slice(first, end - start))
                start = end
        table = pa.Table.from_batches(slices)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    def texts(self, packed: bytes) -> list[str]:
        """Return the texts of the rows."""
        return [one or "" for one in self._table(packed).column(self.column).to_pylist()]

    def render(self, packed: bytes, outputs: Sequence[str]) -> bytes:
        """Return a Parquet file with the rows and their translations."""
        pa, parquet = import_arrow(), import_arrow("pyarrow.parquet")

        table = self._table(packed)
        values = pa.array(outputs, pa.string())
        if self.output_column in table.column_names:
            index = table.column_names.index(self.output_column)
            table = table.set_column(index, self.output_column, values)
        else:
            table = table.append_column(self.output_column, values)
        sink = io.BytesIO()
        parquet.write_table(table.combine_chunks(), sink)
        return sink.getvalue()

    @staticmethod
    def _table(packed: bytes) -> Any:
        pa = import_arrow()

        return pa.ipc.open_stream(packed).read_all()


def import_arrow(module: str = "pyarrow") -> Any:
    """Return a module of pyarrow; raise an error that names the extra if it is not installed."""
    return import_pyarrow(module, extra="cluster")


@contextmanager
def explain_parquet(address: str) -> Iterator[None]:
    """Name the file in the errors of Arrow."""
    pa = import_arrow()

    with explain_errors(address):
        try:
            yield
        except (pa.ArrowException, EOFError) as error:
            raise InputError(
                message(
                    "cannot read {path}: {detail}", path=address, detail=str(error).splitlines()[0]
                ),
                hint="it is damaged, or not Parquet",
            ) from error


def compress(text: str, is_compressed: bool) -> bytes:
    """Return a text as bytes, compressed always to the same."""
    content = text.encode()
    return gzip.compress(content, GZIP_LEVEL, mtime=0) if is_compressed else content


def choose_format(
    address: str, *, column: str = TEXT_COLUMN, output_column: str = OUTPUT_COLUMN
) -> Format:
    """Return the format of a file, by the ending of its name.

    >>> choose_format("mono/news.en.gz").suffix, choose_format("news.JSONL").suffix
    ('.gz', '.jsonl')
    """
    name = address.lower()
    is_compressed = name.endswith(".gz")
    name = name.removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        return JsonLines(column, output_column, is_compressed=is_compressed)
    if name.endswith((".parquet", ".pq")):
        return ParquetRows(column, output_column)
    return TextLines(is_compressed=is_compressed)
