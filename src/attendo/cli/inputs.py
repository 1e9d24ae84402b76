"""Checks of paths and choices, to be called before a tensor library is imported.

A mistyped name is then reported at once, not after the seconds that the library takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.bundle import read_about
from attendo.core.errors import ConfigError, suggest
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
