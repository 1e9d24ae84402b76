"""What is foretold behind one window."""

from __future__ import annotations

from typing import Any, NamedTuple


class Forecast(NamedTuple):
    """The steps of the horizon: labels with their chances, or numbers."""

    times: list[str]
    """Of the steps, as text; "+1", "+2" ... where no time column is."""
    labels: list[str] | None
    """The likeliest sequence, label after label (greedy)."""
    probabilities: list[dict[str, float]] | None
    """The chance of each label at each step, whatever is said at the others."""
    values: list[list[float]] | None
    """Numbers in the units of the file, one of each target at each step."""
    group: str | None = None
    """Which series it is, where the file has several."""

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON can hold; what there is not is left out."""
        return {name: value for name, value in self._asdict().items() if value is not None}
