"""The wheel carries the built pages: makes them where they are missing. Imports nothing of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = {
    "src/attendo/inspection/static/look.html": "src/attendo/inspection/static/look.html",
    "src/attendo/serving/static/index.html": "src/attendo/serving/static/**",
    "src/attendo/interop/web/static/index.html": "src/attendo/interop/web/static/**",
}
"""What must be there, and what is packed with it."""


class PageHook(BuildHookInterface):
    """Runs `make web` before a wheel is packed; an editable install needs no page yet."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages, or say why the wheel cannot be whole."""
        if version == "editable":
            return
        root = Path(self.root)
        if self._missing() and (root / "frontend").is_dir():
            subprocess.run(["make", "web"], cwd=root, check=True)  # noqa: S607
        if self._missing():
            raise RuntimeError(f"{' and '.join(self._missing())} missing: run make web first")
        build_data["artifacts"] += PAGES.values()
        if (root / "models").is_dir():  # the translators that are shipped
            build_data["force_include"][str(root / "models")] = "attendo/models"

    def _missing(self) -> list[str]:
        return [page for page in PAGES if not (Path(self.root) / page).exists()]
