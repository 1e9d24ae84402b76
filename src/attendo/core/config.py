"""Configs: frozen pydantic models that reject an unknown key and name the nearest known one.

`Config` is the base of every config in the project. A config is read from TOML or JSON, changed by
`key=value` pairs from the command line, and saved as JSON with its run.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticKnownError

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import Message, message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic_core import ErrorDetails

MAX_COUNT, MAX_SIZE, MAX_SEED = 2**31 - 1, 2**20, 2**63 - 1
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Natural = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE)]
"""A dimension of a model: a product of two is still a valid number of weights."""
Seed = Annotated[int, Field(ge=-MAX_SEED, le=MAX_SEED)]
UNKNOWN_KEY, WRONG_VALUE = "unknown key '{key}': {detail}", "{name} = {value}: {detail}"
KEY_FIELDS = {UNKNOWN_KEY: "key", WRONG_VALUE: "name"}
"""Reasons that begin with a key, and the value that has it."""
NULL = "null"
"""Stands for no value in `key=value` texts."""
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

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            causes = [details for details in error.errors() if not _is_echo(details, error)]
            reasons = [line for details in causes for line in self._format_error(details)]
            raise ConfigError.from_reasons(type(self).__name__, reasons) from None

    @classmethod
    def _format_error(cls, details: ErrorDetails) -> list[str]:
        """Return the reasons of one pydantic error; a nested config has listed its own already."""
        path = ".".join(str(part) for part in details["loc"])
        cause = details.get("ctx", {}).get("error")
        if details["type"] == "extra_forbidden":
            return [
                message(UNKNOWN_KEY, key=path, detail=cls._suggest_key(path)),
            ]
        if isinstance(cause, ConfigError):
            return [_add_path(path, reason) for reason in cause.reasons]
        detail = validation_message(details)
        return [message(WRONG_VALUE, name=path, value=repr(details["input"]), detail=detail)]

    @classmethod
    def _suggest_key(cls, name: str) -> str:
        """Return a hint for an unknown key: first a key of that name in a table of this config."""
        nested = [key for key in cls.nested_keys() if key.rpartition(".")[2] == name]
        if not nested:
            return suggest(name, cls.model_fields)
        known = message("Known: {known}", known=", ".join(cls.model_fields))
        return message("did you mean '{near}'? {detail}", near=nested[0], detail=known)

    @classmethod
    def nested_keys(cls) -> Iterator[str]:
        """Yield the dotted keys of the tables in this config."""
        for name, table, _ in cls._tables():
            yield from (f"{name}.{key}" for key in table.model_fields)
            yield from (f"{name}.{key}" for key in table.nested_keys())

    @classmethod
    def check_tables(cls, settings: Mapping[str, Any], prefix: str = "") -> None:
        """Raise an error where a value is given for what is a table of settings."""
        for name, table, is_list in cls._tables():
            if name not in settings:
                continue
            value, path = settings[name], f"{prefix}{name}"
            is_optional = NoneType in get_args(cls.model_fields[name].annotation)
            if isinstance(value, Config) or (value is None and is_optional):
                continue
            if is_list and not isinstance(value, list | tuple):
                raise ConfigError(
                    message("{name} = {value} is not a list", name=path, value=repr(value)),
                    hint=message("write [[{name}]], and the settings of each below", name=path),
                )
            for one in value if is_list else (value,):
                if isinstance(one, dict):
                    table.check_tables(one, f"{path}.")
                elif not isinstance(one, Config):
                    raise ConfigError(
                        message("{name} = {value} is not a table", name=path, value=repr(one)),
                        hint=table.suggest_setting(path, one),
                    )

    @classmethod
    def suggest_setting(cls, path: str, value: Any) -> str:
        """Return a hint which setting of this table a misplaced value may belong to."""
        for name, field in cls.model_fields.items():
            if isinstance(value, str) and value in _literal_values(field.annotation):
                return message("did you mean {key}={value}?", key=f"{path}.{name}", value=value)
        return message("its settings are {names}", names=", ".join(cls.model_fields))

    @classmethod
    def _tables(cls) -> Iterator[tuple[str, type[Config], bool]]:
        """Yield the name and type of each table in this config, and whether it is a list."""
        for name, field in cls.model_fields.items():
            for option in _union_members(field.annotation):
                entry, is_list = option, get_origin(option) is tuple
                if is_list:
                    entry = get_args(option)[0]
                if isinstance(entry, type) and issubclass(entry, Config):
                    yield name, entry, is_list

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> Self:
        """Read a TOML or JSON file, then apply `key=value` overrides (see `override`)."""
        return cls(**override(read_settings(Path(path)), overrides))

    def save(self, path: str | Path) -> None:
        """Write the resolved config as JSON, so that a folder documents its run."""
        from attendo.core.files import write_atomically

        write_atomically(Path(path), self.model_dump_json(indent=2) + "\n")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed, validated like a new config."""
        return type(self)(**{**self.model_dump(), **changes})


def _add_path(path: str, reason: str) -> str:
    """Return a reason of a nested config: about `train.max_steps`, as it is typed."""
    if not path:
        return reason
    field = KEY_FIELDS.get(getattr(reason, "template", ""))
    if isinstance(reason, Message) and field is not None:
        values = {**reason.values, field: f"{path}.{reason.values[field]}"}
        return message(reason.template, **values)
    return message("{name}: {detail}", name=path, detail=reason)


def _union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union without None, or the type itself."""
    is_union = get_origin(annotation) in (Union, UnionType)
    members = get_args(annotation) if is_union else (annotation,)
    return tuple(member for member in members if member is not NoneType)


def _literal_values(annotation: Any) -> tuple[Any, ...]:
    """Return the choices of a literal type."""
    members = _union_members(annotation)
    return tuple(value for one in members if get_origin(one) is Literal for value in get_args(one))


def _is_echo(details: ErrorDetails, error: ValidationError) -> bool:
    """Return whether a list is too short only because its entries are invalid."""
    location = details["loc"]
    return details["type"] == "too_short" and any(
        other["loc"][: len(location)] == location and len(other["loc"]) > len(location)
        for other in error.errors()
    )


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
    if values.get("actual_length", 0) is None:  # too many to count them
        values["actual_length"] = "more"
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
            message("{path} is neither .toml nor .json", path=path),
            hint="name the file *.toml or *.json",
        )
    try:
        settings = readers[path.suffix](path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = message("cannot read {path}: {detail}", path=path, detail=error.strerror)
        raise InputError(reason, hint="check the path and its permissions") from None
    except ValueError as error:  # both parsers and the UTF-8 decoder raise ValueErrors
        reason = message(
            "{path} is not valid {format}: {error}",
            path=path,
            format=path.suffix[1:].upper(),
            error=error,
        )
        raise InputError(reason, hint="fix the file at the named position") from None
    if not isinstance(settings, dict):
        raise InputError(
            message("{path} does not contain a table of settings", path=path),
            hint="write key = value lines",
        )
    return settings


def override(settings: Mapping[str, Any], pairs: Iterable[str]) -> dict[str, Any]:
    """Set dotted keys from `key=value` texts; values are read as TOML, bare words as text.

    The word `null` stands for no value, which TOML cannot write.

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
                raise ConfigError(
                    message(
                        "'{pair}': '{parent}' is a value, not a table of settings",
                        pair=pair,
                        parent=parent,
                    )
                )
        table[leaf] = _parse_value(text.strip())
    return result


def _parse_value(text: str) -> Any:
    if text == NULL:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
