"""Packs the code of the repository without what only PyTorch can use, and with the built page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "serving/static/index.html"
LEFT_OUT = ("interop/web/static/", "inspection/static/")
"""Pages that `attendo export` and `attendo look` write, which need PyTorch."""


class LightHook(BuildHookInterface):
    """Chooses the files: hatchling itself packs nothing from outside this folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Name every file with its place in the wheel, or say what is missing."""
        root = Path(self.root).parents[1]
        package = root / "src" / "attendo"
        if not (package / PAGE).exists():
            raise RuntimeError(f"{PAGE} is missing: run make web first")
        for path in sorted(package.rglob("*")):
            name = path.relative_to(package).as_posix()
            if path.is_file() and "__pycache__" not in name and not name.startswith(LEFT_OUT):
                build_data["force_include"][str(path)] = f"attendo/{name}"
        if (root / "models").is_dir():  # the translators that are shipped
            build_data["force_include"][str(root / "models")] = "attendo/models"
