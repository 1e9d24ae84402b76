"""Location and format of a corpus, and `Pair`, the unit of every corpus.

A corpus is two parallel text files (`src` and `tgt`), one file with both sides (`path`), or
monolingual text (`text`), which is read as both source and target. The format follows from the
suffix unless it is set. `attendo.data.readers` reads the pairs of a `CorpusConfig`.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message

Format = Literal["text", "tsv", "csv", "jsonl", "json", "parquet", "tmx", "po", "mo", "xliff"]
FieldName = Count | Annotated[str, Field(min_length=1)]
Fields = tuple[FieldName | None, FieldName | None]
Languages = tuple[str | None, str | None]

CHOOSE_HINT = (
    "choose two with --src-field and --tgt-field (src_field and tgt_field in a config file), "
    "or by language with --src-lang and --tgt-lang"
)
"""How to choose the source and the target in a file with both sides."""

SUFFIXES: MappingProxyType[str, Format] = MappingProxyType(
    {
        ".tsv": "tsv",
        ".tab": "tsv",
        ".csv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "json",
        ".parquet": "parquet",
        ".pq": "parquet",
        ".tmx": "tmx",
        ".po": "po",
        ".mo": "mo",
        ".gmo": "mo",
        ".xliff": "xliff",
        ".xlf": "xliff",
    }
)


class Pair(NamedTuple):
    """A source sentence and its target.

    >>> Pair("나는 학생이다.", "I am a student.").tgt
    'I am a student.'
    """

    src: str
    tgt: str

    def swapped(self) -> Pair:
        """Return the pair with its sides swapped."""
        return Pair(self.tgt, self.src)


class CorpusConfig(Config):
    """One corpus: `CorpusConfig(src="a.ko", tgt="a.en")` or `CorpusConfig(path="a.tsv.gz")`.

    >>> CorpusConfig(path="talks.jsonl.gz", src_field="ko", tgt_field="en").resolved_format
    'jsonl'
    """

    src: Path | None = None
    """The source side, one sentence per line, plain or gzip."""
    tgt: Path | None = None
    """The target side, aligned with `src` line by line."""
    path: Path | None = None
    """One file with both sides."""
    text: Path | None = None
    """Monolingual text, one text per line, plain or gzip: for language models."""
    format: Format | None = None
    """If not given, from the suffix: .tsv .csv .jsonl .json .parquet .tmx .po .mo .xliff, also
    before .gz."""
    src_field: FieldName | None = None
    """Where the source is in `path`: a column (its number from 1, or its name in the header), a
    JSON field, or a language."""
    tgt_field: FieldName | None = None
    """The same for the target."""
    src_lang: Annotated[str, Field(min_length=1)] | None = None
    """The language of the source, which chooses among columns, fields or languages of `path` that
    are named by languages; by default that of the run (`data.src_lang`)."""
    tgt_lang: Annotated[str, Field(min_length=1)] | None = None
    """The same for the target."""
    weight: Annotated[float, Field(gt=0.0, le=1000.0)] = 1.0
    """How often the pairs of this corpus occur in an epoch."""
    allow_copies: bool = False
    """Accept a corpus whose two sides are the same text (a copy task)."""

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        reasons = [*self._path_errors(), *self._field_errors(), *self._language_errors()]
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _path_errors(self) -> list[str]:
        if self.text is not None:
            others = (self.src, self.tgt, self.path, self.format)
            return (
                [message("text excludes src, tgt, path and format")]
                if any(map(bool, others))
                else []
            )
        if self.path is None:
            if self.src is None or self.tgt is None:
                return [
                    message("give src and tgt (two text files), or path (one file with both sides)")
                ]
            if self.format not in (None, "text"):
                return [
                    message(
                        "format '{format}' holds both sides in one file: give it as path",
                        format=self.format,
                    )
                ]
            return []
        if self.src is not None or self.tgt is not None:
            return [
                message("path holds both sides: leave src and tgt out, or give them without path")
            ]
        return (
            [message("format 'text' is two files: give src and tgt")]
            if self.format == "text"
            else []
        )

    def _field_errors(self) -> list[str]:
        fields = self.fields
        if fields == (None, None):
            return []
        if None in fields:
            return [message("src_field and tgt_field belong together: give both or none")]
        if self.path is None:
            return [
                message("src_field and tgt_field choose parts of path; src and tgt are whole files")
            ]
        if fields[0] == fields[1]:
            return [message("src_field and tgt_field are both {fields!r}", fields=fields[0])]
        if type(fields[0]) is not type(fields[1]):
            return [message("src_field and tgt_field are both numbers or both names")]
        return []

    def _language_errors(self) -> list[str]:
        if self.languages == (None, None):
            return []
        if self.path is None:
            return [
                message(
                    "src_lang and tgt_lang of a corpus choose parts of path; set them in [data]"
                )
            ]
        if self.src_lang == self.tgt_lang:
            return [message("src_lang and tgt_lang are both '{lang}'", lang=self.src_lang)]
        return []

    @property
    def fields(self) -> Fields:
        """`src_field` and `tgt_field`."""
        return self.src_field, self.tgt_field

    @property
    def languages(self) -> Languages:
        """`src_lang` and `tgt_lang`."""
        return self.src_lang, self.tgt_lang

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of this corpus: one, or source and target."""
        candidates = (self.text, self.path, self.src, self.tgt)
        return tuple(path for path in candidates if path is not None)

    @property
    def title(self) -> str:
        """The files, for messages."""
        return ", ".join(str(path) for path in self.paths)

    @property
    def resolved_format(self) -> Format:
        """The format as set, or that of the suffix."""
        if self.format is not None:
            return self.format
        return "text" if self.path is None else detect_format(self.path)


def detect_format(path: Path) -> Format:
    """Return the format of a file with both sides, from its suffix before any .gz."""
    name = Path(path.stem if path.suffix.lower() == ".gz" else path.name)
    suffix = name.suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise InputError(
        message(
            "{path}: no format with both sides has the suffix '{suffix}'", path=path, suffix=suffix
        ),
        hint=message(
            "{detail}; or set format in a config file; or give two text files with --src and --tgt",
            detail=suggest(suffix, SUFFIXES),
        ),
    )
