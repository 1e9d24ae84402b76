"""Checks of arguments, paths and choices, called before a tensor library is imported.

A mistyped name is then reported at once, not after the seconds that the library takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.bundle import read_about
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.core.run_folder import RunFolder, export_engine
from attendo.core.shipped_models import raise_if_not_shipped, resolve_shipped

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ENGINES = ("attendo", "ctranslate2", "onnx", "auto")
PRECISIONS = ("auto", "float32", "bfloat16", "int8", "stored")
SPLITS = ("auto", "sentences", "never")
COPY_MODES = ("auto", "always", "never")
LOW_LINES = ("empty", "mark")


def check_models(*folders: Path | None) -> None:
    """Raise unless each path is a model folder, or the folder of a run."""
    for folder in folders:
        if folder is None:
            continue
        raise_if_not_shipped(folder)
        path = resolve_shipped(folder)
        if not path.is_dir():
            _check_path(path)
        if not RunFolder(path).exists() and export_engine(path) is None:
            read_about(path)


def check_files(*paths: Path | None) -> None:
    """Raise unless each path is a file that can be read; "-" is standard input."""
    for path in paths:
        if path is not None and str(path) != "-":
            _check_path(path)


def _check_path(path: Path) -> None:
    from attendo.text.lines import check_readable

    check_readable(path)


def check_choice(option: str, value: str | None, choices: Iterable[str]) -> None:
    """Raise unless an option has one of its values."""
    if value is not None and value not in choices:
        raise ConfigError(
            message("{option} {value}: unknown value", option=option, value=value),
            hint=suggest(value, choices),
        )


def check_outputs(source: Path | None, *outputs: Path | None, force: bool) -> None:
    """Raise an error if an output exists, or is the input."""
    for path in (path for path in outputs if path is not None and str(path) != "-"):
        if path.is_dir() or not path.parent.is_dir():
            reason = (
                message("{path} is a folder", path=path)
                if path.is_dir()
                else message("no folder {path}", path=path.parent)
            )
            raise InputError(reason, hint="choose a file in an existing folder")
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise InputError(
                message("{path} is the input file", path=path), hint="choose another output"
            )
        if path.is_file() and not force:
            hint = "choose another file, or use --force to overwrite it"
            raise InputError(message("{path} exists", path=path), hint=hint)


def read_decoding_options(given_options: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Return the decoding options with `key=value` settings applied; validate them."""
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions

    options = override(given_options, settings)
    DecodingOptions(**options)
    return options


def decode_argument(text: str) -> str:
    """Return a text of the command line; bytes that are not UTF-8 are replaced."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
