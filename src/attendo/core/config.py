"""Configs: frozen pydantic models that refuse an unknown key and name the nearest known one.

`Config` is the base of every config in the project; `TransformerConfig` describes the paper's
model, `Seq2SeqConfig` what it shares with the models that it replaced. A config is read from TOML
or JSON, changed by `key=value` pairs from the command line, and saved as JSON with its run. Layers
never see a config: they take plain keyword arguments.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
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
    """Base of all configs: frozen, checked at once, every wrong setting named in one `ConfigError`.

    >>> TransformerConfig(vocab_size=100, d_mdel=64)
    Traceback (most recent call last):
    attendo.core.errors.ConfigError: TransformerConfig: 1 setting cannot be used
      - unknown key 'd_mdel': did you mean 'd_model'? ...
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
        """Word one pydantic finding; a nested config has worded its own already."""
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
        """Write the resolved config as JSON, so that a run can always be told from its folder."""
        write_atomically(Path(path), self.model_dump_json(indent=2) + "\n")

    def replace(self, **changes: Any) -> Self:
        """Copy with some settings changed, checked like a new config."""
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
        reason = f"{path} is no valid {path.suffix[1:].upper()}: {error}"
        raise InputError(reason, hint="mend the file at the place that is named") from None
    if not isinstance(settings, dict):
        raise InputError(f"{path} holds no table of settings", hint="write key = value lines")
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
                message("'{pair}' is no key=value", pair=pair), hint="write a key, =, and a value"
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


def split_heads_evenly(d_model: int, num_heads: int) -> int:
    """Give the head size d_model / num_heads of the paper, or say what would divide.

    >>> split_heads_evenly(512, 8)
    64
    """
    if d_model % num_heads == 0:
        return d_model // num_heads
    divisors = [count for count in range(1, d_model + 1) if d_model % count == 0]
    near = sorted(divisors, key=lambda count: abs(count - num_heads))[:2]
    raise ConfigError(
        f"d_model {d_model} cannot be split over num_heads {num_heads}",
        hint=f"use num_heads {' or '.join(map(str, sorted(near)))}, or set d_k and d_v yourself",
    )


class Seq2SeqConfig(Config):
    """What every model behind the contract is told: its vocabularies and its width."""

    vocab_size: Count
    """Source vocabulary; the target's too, unless `tgt_vocab_size` is given."""
    tgt_vocab_size: Count | None = None
    d_model: Count = 512
    """Width of embeddings and states; the warm-up schedule reads it."""
    dropout: Rate = 0.1
    tie_embeddings: Literal["three-way", "decoder", "none"] = "three-way"
    """Which of source and target embedding and output projection share a matrix (section 3.4)."""
    pad_id: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _check_vocabularies(self) -> Self:
        reasons = []
        if self.tie_embeddings == "three-way" and self.tgt_vocab_size not in (
            None,
            self.vocab_size,
        ):
            reasons.append(
                "tie_embeddings 'three-way' needs one vocabulary for both sides "
                "(leave tgt_vocab_size out, or use tie_embeddings 'decoder')"
            )
        smallest = min(self.vocab_size, self.tgt_vocab_size or self.vocab_size)
        if self.pad_id >= smallest:
            reasons.append(f"pad_id {self.pad_id} lies outside the vocabulary of {smallest}")
        reasons += self._find_conflicts()
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _find_conflicts(self) -> list[str]:
        """Word what a model's own options cannot be together."""
        return []


class TransformerConfig(Seq2SeqConfig):
    """The model of section 3; each default is the paper's base model (Table 3, first row)."""

    kind: ClassVar[str] = "transformer"
    d_ff: Count = 2048
    num_heads: Count = 8
    num_layers: Count = 6
    num_decoder_layers: Count | None = None
    """Decoder layers where they differ from the encoder's `num_layers`."""
    num_decoder_heads: Count | None = None
    """Heads of the decoder's attentions where they differ from the encoder's `num_heads`."""
    decoder_d_ff: Count | None = None
    """Width of the decoder's feed-forward networks where it differs from the encoder's `d_ff`."""
    d_k: Count | None = None
    """Size of a query and a key in one head; d_model / num_heads when not given."""
    d_v: Count | None = None
    """Size of a value in one head; d_model / num_heads when not given."""
    dropout: Rate = 0.1
    """On each sub-layer's output and on both sums of embedding and position (section 5.4)."""
    attention_dropout: Rate = 0.0
    """Departs from the paper: dropout on the attention weights."""
    activation_dropout: Rate = 0.0
    """Departs from the paper: dropout inside the feed-forward network."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    positions: Literal["sinusoidal", "learned", "concatenated", "none"] = "sinusoidal"
    position_layout: Literal["interleaved", "halves", "fairseq"] = "interleaved"
    max_length: Count = 1024
    """Only learned positions have a longest sequence; sinusoids go on for ever."""
    attention_width: Count | None = None
    """Restricted self-attention: each position sees only a neighbourhood of this width."""
    scale: bool = True
    """Departs from the paper when off: scores are not divided by sqrt(d_k) (section 3.2.1)."""
    residual: bool = True
    """Departs from the paper when off: no path around the sub-layers (section 3.1)."""
    bias: bool = True
    """Biases in the four projections of each attention (the paper's formulas write none)."""
    output_bias: bool = False
    """Departs from the paper when on: a bias on the logits, as imported models have it."""
    scale_embeddings: bool = True
    """Departs from the paper when off: embeddings are not multiplied by sqrt(d_model)."""

    def _find_conflicts(self) -> list[str]:
        if self.d_k is not None and self.d_v is not None:
            return []
        try:
            for num_heads in {self.num_heads, self.num_decoder_heads or self.num_heads}:
                split_heads_evenly(self.d_model, num_heads)
        except ConfigError as error:
            return [f"{error.reason} ({error.hint})"]
        return []


class SeriesTransformerConfig(TransformerConfig):
    """A Transformer whose source is numbers over time; its target is labels, or numbers again."""

    kind: ClassVar[str] = "series"
    data_dependent_options: ClassVar[tuple[str, ...]] = (
        "vocab_size",
        "num_features",
        "num_targets",
        "pad_id",
    )
    """Options that follow from the data."""
    vocab_size: Count = 4
    """Label ids, the four that mean no label among them; of no use where numbers are said."""
    num_features: Count = 1
    """Numbers that are read at each time step."""
    num_targets: Annotated[int, Field(ge=0)] = 0
    """Numbers that are said at each step of the horizon; 0: labels are said."""
    tie_embeddings: Literal["three-way", "decoder", "none"] = "decoder"

    def _find_conflicts(self) -> list[str]:
        reasons = super()._find_conflicts()
        if self.tie_embeddings == "three-way":
            reasons.append(
                "tie_embeddings 'three-way' needs a source of words "
                "(a series is read as numbers: use 'decoder' or 'none')"
            )
        if self.tgt_vocab_size is not None:
            reasons.append("tgt_vocab_size: labels are the only vocabulary (use vocab_size)")
        return reasons


class SingleStackConfig(Seq2SeqConfig):
    """What both halves of a Transformer are told where they stand alone: a GPT's or a BERT's sizes.

    But for the positions, which are the paper's: theirs are learned, and have an end.
    """

    d_model: Count = 768
    d_ff: Count = 3072
    num_heads: Count = 12
    num_layers: Count = 12
    attention_dropout: Rate = 0.0
    """Dropout on the attention weights."""
    activation_dropout: Rate = 0.0
    """Dropout inside the feed-forward network."""
    activation: Literal["relu", "gelu", "swish"] = "gelu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    positions: Literal["sinusoidal", "learned", "concatenated", "none"] = "sinusoidal"
    max_length: Count = 1024
    """Only learned positions have a longest sequence."""
    bias: bool = True
    """Biases in the four projections of each attention."""

    @property
    def layer_options(self) -> dict[str, Any]:
        """Give what each layer of the stack is told by name."""
        names = ("dropout", "attention_dropout", "activation_dropout", "activation", "norm", "bias")
        return {**{name: getattr(self, name) for name in names}, "eps": self.layer_norm_eps}

    def _find_conflicts(self) -> list[str]:
        try:
            split_heads_evenly(self.d_model, self.num_heads)
        except ConfigError as error:
            return [f"{error.reason} (use a num_heads that divides d_model)"]
        return []


class DecoderConfig(SingleStackConfig):
    """The decoder half alone, a language model; each default is the smallest GPT-2's."""

    kind: ClassVar[str] = "decoder"
    norm: Literal["post", "pre"] = "pre"
    max_length: Count = 1024
    """Of source and target together; only learned positions have a longest sequence."""


class EncoderConfig(SingleStackConfig):
    """The encoder half alone, which reads a text whole; each default is BERT's smaller model."""

    kind: ClassVar[str] = "encoder"
    reads: Literal["summary", "each"] = "summary"
    """What a target position reads: the source's end symbol as a summary of all of it (a class for
    a text), or the source position of the same number (a tag for each word, hidden words)."""
    tgt_length: Count | None = None
    """Tokens of every target where all have as many (a class for a text: 1). The end symbol then
    stands behind them and nowhere else, by construction; else it is learnt like any other."""
    end_id: Annotated[int, Field(ge=0)] = 3
    tie_embeddings: Literal["three-way", "decoder", "none"] = "three-way"
    """The target is not embedded: 'three-way' shares the output projection with the source's
    embedding, anything else gives it a matrix of its own."""
    attention_width: Count | None = None
    """Restricted self-attention: each position sees only a neighbourhood of this width."""
