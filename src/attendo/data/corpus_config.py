"""Where one corpus lies and how it is written.

A corpus is two parallel text files (`src` and `tgt`) or one file (`path`) that holds both sides;
or plain text (`text`), which has one side only and stands on both.
The format is told by the suffix unless it is set. `attendo.data.readers` turns a `CorpusConfig`
into pairs.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config
from attendo.core.errors import ConfigError, InputError, suggest

Format = Literal["text", "tsv", "csv", "jsonl", "tmx", "po", "mo", "xliff"]
FieldName = Annotated[int, Field(ge=1)] | Annotated[str, Field(min_length=1)]
Fields = tuple[FieldName | None, FieldName | None]

SUFFIXES: MappingProxyType[str, Format] = MappingProxyType(
    {
        ".tsv": "tsv",
        ".tab": "tsv",
        ".csv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".tmx": "tmx",
        ".po": "po",
        ".mo": "mo",
        ".gmo": "mo",
        ".xliff": "xliff",
        ".xlf": "xliff",
    }
)


class CorpusConfig(Config):
    """One corpus: `CorpusConfig(src="a.ko", tgt="a.en")` or `CorpusConfig(path="a.tsv.gz")`.

    >>> CorpusConfig(path="talks.jsonl.gz", src_field="ko", tgt_field="en").resolved_format
    'jsonl'
    """

    src: Path | None = None
    """The source side, one sentence a line, plain or gzip."""
    tgt: Path | None = None
    """The target side, line by line with `src`."""
    path: Path | None = None
    """One file with both sides."""
    text: Path | None = None
    """Plain text, one text a line, plain or gzip: for models that learn from one side."""
    format: Format | None = None
    """When not given, told by the suffix: .tsv .csv .jsonl .tmx .po .mo .xliff, also before .gz."""
    src_field: FieldName | None = None
    """Which part of `path` is the source: a column (its number from 1, or its name in the header),
    a JSON field, or a language."""
    tgt_field: FieldName | None = None
    """The same for the target."""
    weight: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    """How often this corpus is drawn beside others."""
    allow_copies: bool = False
    """Accept a corpus whose two sides are the same text (a copying task)."""

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        reasons = [*self._path_errors(), *self._field_errors()]
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _path_errors(self) -> list[str]:
        if self.text is not None:
            others = (self.src, self.tgt, self.path, self.format)
            return ["text is the only side"] if any(map(bool, others)) else []
        if self.path is None:
            if self.src is None or self.tgt is None:
                return ["give src and tgt (two text files), or path (one file with both sides)"]
            if self.format not in (None, "text"):
                return [f"format '{self.format}' holds both sides in one file: give it as path"]
            return []
        if self.src is not None or self.tgt is not None:
            return ["path holds both sides: leave src and tgt out, or give them without path"]
        return ["format 'text' is two files: give src and tgt"] if self.format == "text" else []

    def _field_errors(self) -> list[str]:
        fields = (self.src_field, self.tgt_field)
        if fields == (None, None):
            return []
        if None in fields:
            return ["src_field and tgt_field belong together: give both or none"]
        if self.path is None:
            return ["src_field and tgt_field choose parts of path; src and tgt are whole files"]
        if fields[0] == fields[1]:
            return [f"src_field and tgt_field are both {fields[0]!r}"]
        if type(fields[0]) is not type(fields[1]):
            return ["src_field and tgt_field are both numbers or both names"]
        return []

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of this corpus: one, or source and target."""
        candidates = (self.text, self.path, self.src, self.tgt)
        return tuple(path for path in candidates if path is not None)

    @property
    def title(self) -> str:
        """The files, for messages."""
        return " and ".join(str(path) for path in self.paths)

    @property
    def resolved_format(self) -> Format:
        """The format as set, or as the suffix tells it."""
        if self.format is not None:
            return self.format
        return "text" if self.path is None else detect_format(self.path)


def detect_format(path: Path) -> Format:
    """Tell the format of one file with both sides by its suffix, past a .gz."""
    name = Path(path.stem if path.suffix.lower() == ".gz" else path.name)
    suffix = name.suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise InputError(
        f"{path}: the suffix '{suffix}' names no format with both sides",
        hint=f"{suggest(suffix, SUFFIXES)}; or set format; or give two text files as src and tgt",
    )
