"""Configs: frozen pydantic models that reject an unknown key and name the nearest known one.

`Config` is the base of every config in the project. A config is read from TOML or JSON, changed by
`key=value` pairs from the command line, and saved as JSON with its run.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticKnownError

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import Message, message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class Config(BaseModel):
    """Base of all configs: frozen, validated, all invalid settings listed in one `ConfigError`.

    >>> class Sizes(Config):
    ...     width: Count = 512
    >>> Sizes(widht=64)
    Traceback (most recent call last):
    attendo.core.errors.ConfigError: Sizes: 1 setting cannot be used
      - unknown key 'widht': did you mean 'width'? Known: width
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            reasons = [line for details in error.errors() for line in self._format_error(details)]
            raise ConfigError.from_reasons(type(self).__name__, reasons) from None

    @classmethod
    def _format_error(cls, details: ErrorDetails) -> list[str]:
        """Return the reasons of one pydantic error; a nested config has listed its own already."""
        path = ".".join(str(part) for part in details["loc"])
        cause = details.get("ctx", {}).get("error")
        if details["type"] == "extra_forbidden":
            return [
                message(
                    "unknown key '{key}': {detail}",
                    key=path,
                    detail=suggest(path, cls.model_fields),
                )
            ]
        if isinstance(cause, ConfigError):
            if not path:
                return list(cause.reasons)
            template = "{name}: {detail}"
            return [message(template, name=path, detail=reason) for reason in cause.reasons]
        detail = validation_message(details)
        return [
            message(
                "{name} = {value}: {detail}", name=path, value=repr(details["input"]), detail=detail
            )
        ]

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> Self:
        """Read a TOML or JSON file, then apply `key=value` overrides (see `override`)."""
        return cls(**override(read_settings(Path(path)), overrides))

    def save(self, path: str | Path) -> None:
        """Write the resolved config as JSON, so that a folder documents its run."""
        write_atomically(Path(path), self.model_dump_json(indent=2) + "\n")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed, validated like a new config."""
        return type(self)(**{**self.model_dump(), **changes})


def validation_message(details: ErrorDetails) -> str:
    """Return the text of a pydantic error as a message with pydantic's own template.

    A `PydanticCustomError` carries its message as the context value `reason`.
    """
    context = details.get("ctx", {})
    if isinstance(context.get("reason"), Message):
        return cast("str", context["reason"])
    values = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()
    }
    length = context.get("max_length", context.get("min_length"))
    try:
        template = PydanticKnownError(details["type"], context or None).message_template  # type: ignore[arg-type] # custom types raise
        text = message(template, expected_plural="" if length == 1 else "s", **values)
    except (IndexError, KeyError, TypeError, ValueError):  # not an error type of pydantic
        return details["msg"]
    return text if text == details["msg"] else details["msg"]


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings in a .toml or .json file."""
    readers = {".toml": tomllib.loads, ".json": json.loads}
    if path.suffix not in readers:
        raise InputError(
            f"{path} is neither .toml nor .json", hint="name the file *.toml or *.json"
        )
    try:
        settings = readers[path.suffix](path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = f"cannot read {path}: {error.strerror}"
        raise InputError(reason, hint="check the path and its permissions") from None
    except ValueError as error:  # both parsers and the UTF-8 decoder raise ValueErrors
        reason = f"{path} is not valid {path.suffix[1:].upper()}: {error}"
        raise InputError(reason, hint="fix the file at the named position") from None
    if not isinstance(settings, dict):
        raise InputError(
            f"{path} does not contain a table of settings", hint="write key = value lines"
        )
    return settings


def override(settings: Mapping[str, Any], pairs: Iterable[str]) -> dict[str, Any]:
    """Set dotted keys from `key=value` texts; values are read as TOML, bare words as text.

    >>> override({"train": {"seed": 1}}, ["train.seed=7", "model.norm=pre"])
    {'train': {'seed': 7}, 'model': {'norm': 'pre'}}
    """
    result: dict[str, Any] = json.loads(json.dumps(dict(settings), default=str))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                message("'{pair}' is not key=value", pair=pair), hint="write a key, =, and a value"
            )
        *parents, leaf = key.strip().split(".")
        table = result
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise ConfigError(f"'{pair}': '{parent}' is a value, not a table of settings")
        table[leaf] = _parse_value(text.strip())
    return result


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
