"""The inputs of a lesson that a learner can change: numbers, matrices, switches, choices, text.

Values come from a terminal or over HTTP, so each is checked against its bounds before it is used.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.lessons.blocks import Label, localize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.lessons.blocks import Lang, LocalizedText


@dataclass(frozen=True, kw_only=True)
class Input(ABC):
    """A value that the learner can change."""

    kind: ClassVar[str]
    name: str
    label: LocalizedText

    @abstractmethod
    def parse(self, value: Any) -> Any:
        """Return the checked value, or raise a ValueError with the reason."""

    def example(self) -> str:
        """Return the default as it is typed after `--set name=`, quoted for a shell."""
        value = getattr(self, "default")  # noqa: B009 - every kind has one, of its own type
        return f"{value:g}" if isinstance(value, float) else quote(str(value))

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the input as JSON in one language."""
        return {
            "kind": self.kind,
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "label": self.label.localize(lang),
        }


@dataclass(frozen=True, kw_only=True)
class Number(Input):
    """A number within bounds; an integer if `step` is one."""

    kind: ClassVar[str] = "number"
    default: float
    low: float
    high: float
    step: float = 1.0

    def parse(self, value: Any) -> float:
        """Return a number, also from its text."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                message("{name}: {value} is not a number", name=self.name, value=repr(value))
            ) from None
        if not math.isfinite(number) or not self.low <= number <= self.high:
            raise ValueError(
                message(
                    "{name}: {value} is outside {low} to {high}",
                    name=self.name,
                    value=value,
                    low=f"{self.low:g}",
                    high=f"{self.high:g}",
                )
            )
        is_whole = float(self.step).is_integer()
        if is_whole and not number.is_integer():
            raise ValueError(
                message("{name}: {value} is not an integer", name=self.name, value=value)
            )
        return int(number) if is_whole else number


@dataclass(frozen=True, kw_only=True)
class Grid(Input):
    """A matrix of numbers with a fixed shape, typed as "1 0; 0 2" or as JSON."""

    kind: ClassVar[str] = "grid"
    default: list[list[float]]
    low: float = -100.0
    high: float = 100.0

    def parse(self, value: Any) -> list[list[float]]:
        """Return a list of rows, also from its text."""
        rows = parse_rows(value) if isinstance(value, str) else value
        shape = (len(self.default), len(self.default[0]))
        fits = isinstance(rows, list) and len(rows) == shape[0]
        if not fits or any(not isinstance(row, list) or len(row) != shape[1] for row in rows):
            raise ValueError(
                message(
                    "{name}: a grid of {rows} × {columns} numbers is needed, "
                    "for example --set {name}={example}",
                    name=self.name,
                    rows=shape[0],
                    columns=shape[1],
                    example=self.example(),
                )
            )
        cell = Number(
            name=self.name, label=self.label, default=0, low=self.low, high=self.high, step=0.1
        )
        return [[cell.parse(number) for number in row] for row in rows]

    def example(self) -> str:
        """Return the default as it is typed: the rows with semicolons between them."""
        rows = (" ".join(f"{number:g}" for number in row) for row in self.default)
        return f"'{'; '.join(rows)}'"


@dataclass(frozen=True, kw_only=True)
class Switch(Input):
    """A switch, on or off."""

    kind: ClassVar[str] = "switch"
    default: bool

    def parse(self, value: Any) -> bool:
        """Return a boolean, also from a word such as "on"."""
        if isinstance(value, bool):
            return value
        values = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
        if str(value).lower() not in values:
            raise ValueError(
                message(
                    "{name}: {value} is neither true nor false", name=self.name, value=repr(value)
                )
            )
        return values[str(value).lower()]


@dataclass(frozen=True, kw_only=True)
class Choice(Input):
    """One of several options."""

    kind: ClassVar[str] = "choice"
    default: str
    choices: tuple[tuple[str, Label], ...]

    def parse(self, value: Any) -> str:
        """Return the key of a choice."""
        keys = [key for key, _ in self.choices]
        if value not in keys:
            raise ValueError(f"{self.name}: {suggest(str(value), keys)}")
        return str(value)

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the input as JSON; choices are pairs of a key and a label."""
        localized = [[key, localize(label, lang)] for key, label in self.choices]
        return {**super().to_dict(lang), "choices": localized}


@dataclass(frozen=True, kw_only=True)
class Text(Input):
    """A short text."""

    kind: ClassVar[str] = "text"
    default: str
    most: int = 200

    def parse(self, value: Any) -> str:
        """Return a text that is neither empty nor too long."""
        if not isinstance(value, str) or not value.strip() or len(value) > self.most:
            raise ValueError(
                message(
                    "{name}: a text of 1 to {most} characters is needed",
                    name=self.name,
                    most=self.most,
                )
            )
        return value.strip()


def parse_values(inputs: Sequence[Input], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values, with defaults; raise one ConfigError with everything that is wrong."""
    inputs_by_name = {one.name: one for one in inputs}
    reasons = [
        message("unknown input '{name}': {detail}", name=name, detail=suggest(name, inputs_by_name))
        for name in raw
        if name not in inputs_by_name
    ]
    values: dict[str, Any] = {}
    for name, one in inputs_by_name.items():
        try:
            values[name] = one.parse(raw[name]) if name in raw else getattr(one, "default")  # noqa: B009
        except ValueError as error:
            reasons.append(error.args[0])
    if reasons:
        raise ConfigError.from_reasons("lesson", reasons)
    return values


def parse_rows(text: str) -> Any:
    """Return the rows of a matrix from JSON, or from numbers with ; between the rows.

    >>> parse_rows("[[1, 0], [0, 2]]") == parse_rows("1 0; 0,2") == [[1, 0], [0, 2]]
    True
    >>> parse_rows("1 x") is None
    True
    """
    try:
        if text.lstrip().startswith("["):
            return json.loads(text)
        rows = text.replace("−", "-").replace(",", " ").split(";")
        return [[float(number) for number in row.split()] for row in rows]
    except (ValueError, RecursionError):
        return None
