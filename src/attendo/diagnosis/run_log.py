"""The log of a run as curves: losses and scores by step, and the time that training took."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.run_folder import METRIC_LABELS, is_outdated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.core.run_folder import RunFolder

LOWER_IS_BETTER = frozenset({"loss", "perplexity"})
LABELS = {**METRIC_LABELS, "accuracy": "token accuracy", "perplexity": "perplexity"}


class Point(NamedTuple):
    """A value after a step."""

    step: int
    value: float


@dataclass(frozen=True)
class TrainingLog:
    """The events of a run, oldest first, and the metric that chooses its best checkpoint."""

    events: Sequence[dict[str, Any]]
    metric: str = "loss"

    @classmethod
    def read(cls, folder: RunFolder) -> TrainingLog:
        """Return the log of a run folder; lines that are not events are left out."""
        train = folder.read_config().get("train", {})
        events = [event for event in folder.read_events() if _is_event(event)]
        return cls(events, train.get("early_stopping_metric", "loss"))

    def curve(self, event: str, name: str) -> list[Point]:
        """Return the finite values of a metric by step."""
        values = ((one["step"], one.get(name)) for one in self.events if one["event"] == event)
        return [
            Point(step, float(value))
            for step, value in values
            if isinstance(value, (int, float)) and math.isfinite(value)
        ]

    @cached_property
    def train_loss(self) -> list[Point]:
        """The loss on train, with label smoothing and dropout."""
        return self.curve("train", "loss")

    @cached_property
    def dev_loss(self) -> list[Point]:
        """The loss on dev at each validation."""
        return self.curve("validation", "loss")

    @cached_property
    def dev_score(self) -> list[Point]:
        """The metric that chooses the best checkpoint, at each validation."""
        return self.curve("validation", self.metric)

    @property
    def best(self) -> Point | None:
        """The best validation, by the rule of early stopping: an outdated score does not count."""
        losses = {point.step: point.value for point in self.dev_loss}
        best: Point | None = None
        for point in self.dev_score:
            if (
                best is None
                or find_best((best, point), self.metric) is point
                or is_outdated(losses.get(best.step), losses.get(point.step))
            ):
                best = point
        return best

    @property
    def last_step(self) -> int:
        """The last step of the log."""
        return max((event["step"] for event in self.events), default=0)

    @property
    def last_event(self) -> str | None:
        """The name of the last event."""
        return self.events[-1]["event"] if self.events else None

    @property
    def stop_reason(self) -> str | None:
        """Why training ended, if it did: "max_steps", "patience", "max_minutes" or "finish"."""
        stops = [event for event in self.events if event["event"] == "stopped"]
        return stops[-1].get("reason") if stops else None

    @cached_property
    def seconds(self) -> float:
        """The time between the first and the last event of every session, added up."""
        total, start, last = 0.0, None, None
        for event in self.events:
            time = _parse_time(event.get("time"))
            if time is None or (event["event"] == "stopped" and event.get("reason") == "finish"):
                continue
            if event["event"] in ("started", "resumed") or start is None:
                total += _duration(start, last)
                start = time
            last = time
        return total + _duration(start, last)


def find_best(points: Iterable[Point], metric: str) -> Point | None:
    """Return the first of the best points.

    >>> find_best([Point(1, 5.0), Point(2, 4.0), Point(3, 4.5)], "loss")
    Point(step=2, value=4.0)
    """
    sign = -1 if metric in LOWER_IS_BETTER else 1
    return max(points, key=lambda point: (sign * point.value, -point.step), default=None)


def format_score(metric: str, value: float) -> str:
    """Return a value as it is shown: scores with one digit, losses with three.

    >>> format_score("chrf", 31.234), format_score("loss", 2.1), format_score("accuracy", 0.5)
    ('31.2', '2.100', '50.0%')
    """
    if metric in ("bleu", "chrf"):
        return f"{value:.1f}"
    return f"{value:.1%}" if metric == "accuracy" else f"{value:.3f}"


def _is_event(event: object) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("step"), int)
        and isinstance(event.get("event"), str)
    )


def _parse_time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _duration(start: datetime | None, end: datetime | None) -> float:
    return max((end - start).total_seconds(), 0.0) if start and end else 0.0
