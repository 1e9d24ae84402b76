"""The translators that are part of Attendo, found by their name: ko-en and en-ko.

They are in `models/` of the repository, or in the installed package. A folder of the same name in
the working folder goes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterator

SHIPPED_NAMES = ("ko-en", "en-ko")
MODEL_CARD = "README.md"
PACKAGE_DIR = Path(__file__).parents[1]
ROOTS = (PACKAGE_DIR / "models", PACKAGE_DIR.parents[1] / "models")
"""In an installed package, and in a checkout of the repository."""


def shipped_models() -> list[Path]:
    """Return the folders of the shipped models that this installation has."""
    found = (next(_candidates(name), None) for name in SHIPPED_NAMES)
    return [path for path in found if path is not None]


def resolve_shipped(path: str | Path) -> Path:
    """Return the folder of a shipped model if `path` names one; any other path as it is."""
    named = Path(path)
    if str(named) not in SHIPPED_NAMES or named.exists():
        return named
    return next(_candidates(str(named)), named)


def raise_if_not_shipped(path: Path) -> None:
    """Raise an error for the name of a shipped model that this installation does not have."""
    if str(path) in SHIPPED_NAMES and not path.exists() and resolve_shipped(path) == path:
        raise InputError(
            message("the translator {name} is not part of this installation", name=path),
            hint=message(
                "make one: attendo build configs/build/{name}.toml, or attendo quickstart; "
                "or give a model folder",
                name=path,
            ),
        )


def _candidates(name: str) -> Iterator[Path]:
    from attendo.core.run_folder import ModelFolder

    folders = (ModelFolder(root / name) for root in ROOTS)
    return (folder.path for folder in folders if folder.exists())
