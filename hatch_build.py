"""The wheel carries the built page: makes it where it is missing. Nothing of ours is imported."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src/attendo/inspection/static/look.html")


class PageHook(BuildHookInterface):
    """Runs `make web` before a wheel is packed; an editable install needs no page yet."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, or say why the wheel cannot be whole."""
        page = Path(self.root) / PAGE
        if version == "editable":
            return
        if not page.exists() and (Path(self.root) / "frontend").is_dir():
            subprocess.run(["make", "web"], cwd=self.root, check=True)  # noqa: S607
        if not page.exists():
            raise RuntimeError(f"{PAGE} is missing: run make web first")
        build_data["artifacts"].append(str(PAGE))
