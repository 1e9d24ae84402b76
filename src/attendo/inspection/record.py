"""The record of one sentence through one model, and its JSON form.

The JSON form (`Record.to_dict`), version 1. Lists about the target have T entries, the output
tokens, the end symbol last if the sentence ended; those about the source S, the end symbol last::

    {"format": "attendo.record", "version": 1, "attendo": "0.1.0",
     "model": {"name": "ko-en", "kind": "transformer", "num_layers": 2, "num_decoder_layers": 2,
               "num_heads": 4, "d_model": 128, "num_parameters": 918528,
               "src_lang": "ko", "tgt_lang": "en"},      null: not defined by the model, or
                                                         has none (heads)
     "search": {"method": "beam",                        greedy, beam, sampling, or given
                "beam_size": 4, "alpha": 0.6,            null if the target was given
                "score": -0.2,                           of a given target: the log_prob
                "log_prob": -0.29, "is_finished": true},
     "src": {"text": "나는 학생이다.",
             "tokens": [{"id": 66, "piece": "▁나는", "text": "나는", "word": 0}],
             "words": ["나는", "학생이다."]},
     "tgt": {"text": ..., "tokens": [...], "words": [...]},
     "attention": {"encoder_self": {"layers": 2, "heads": 4, "rows": 6, "columns": 6,
                                    "encoding": "u16", "data": "..."},
                   "decoder_self": ..., "cross": ...},   null: the model has no such attention
     "steps": [{"probability": 0.99, "log_prob": -0.01,  of the chosen token
                "entropy": 0.05,                         nats, of the distribution
                "top": [{"id": 66, "piece": "▁I", "probability": 0.99}]}],
     "beam": null,                                       or `attendo.decoding.trace`, tokens named
     "measures": {"encoder_self": [[{...}]], ...},       [layer][head], `inspection.head_metrics`
     "logit_lens": null, "attribution": null, "ablation": null,        `inspection.<name>`
     "positions": {"kind": "sinusoidal", "layout": "interleaved", "d_model": 128,
                   "num_positions": 64, "encoding": "f16", "data": "..."},              or null
     "embeddings": {"src": [[{"id": 7, "piece": "▁너는", "similarity": 0.8}]],
                    "tgt": [[...]]},                     nearest neighbors of each token, or null
     "series": null,                                     or `tasks.forecasting.capture`
     "notes": ["source: cut to a window of 256 tokens of 500"]}

A token's `text` is its surface (of a character that is split into bytes, the last byte has it);
joined, the texts of a word are its entry in `words`. Symbols and lone spaces belong to no word.
Row t of decoder_self and of cross is the step that predicts token t. It has read START and
the previous tokens: column 0 of decoder_self is START, column j is token j - 1. The columns of
cross and of encoder_self are the tokens of the source. `top` has the most likely tokens, best
first, and the chosen one last if it is not among them.

In the record of a time series the tokens are time steps, each its own word: of the source with the
time as text and the values as piece, of the target with the label or the numbers; there is no end
symbol. If numbers are forecast, `steps` is empty and score and log_prob are null: such a model
outputs one value per step without a probability.

`data` is base64. "u16": little-endian, 16 bits without sign, in the order layer, head, row, column;
the weight is the value / 65535. Rows that sum to one sum to exactly 65535: sums are rounded, not
weights, so that the error of a weight is below 1 / 65535; masked weights are 0. "f16": floats of
16 bits in the order position, dimension.

A reader must ignore unknown keys. A change that would mislead an old reader gets a
new version, which an old reader rejects.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, get_args

from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.core.protocols import AttentionKind
from attendo.core.version import __version__
from attendo.inspection.array_codec import (
    WEIGHT_AXES,
    decode_array,
    decode_u16,
    encode_u16,
    not_finite_error,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

FORMAT, VERSION = "attendo.record", 1
KINDS: tuple[AttentionKind, ...] = get_args(AttentionKind)
SECTIONS = ("beam", "logit_lens", "attribution", "ablation", "positions", "embeddings", "series")
"""Optional sections of a record."""
FIELD_TYPES: dict[str, Any] = {
    **dict.fromkeys(("piece", "text"), str),
    **dict.fromkeys(("tokens", "words", "top"), list),
    **dict.fromkeys(("probability", "log_prob", "entropy"), float | int),
    "id": int,
    "word": int | None,
}
CAPTURE_HINT = "capture the sentence again with `attendo.inspection.capture`"


class Token(TypedDict):
    """A token of the source or target."""

    id: int
    piece: str
    text: str
    word: int | None


class TokenSide(TypedDict):
    """The source or the target with its tokens and words."""

    text: str
    tokens: list[Token]
    words: list[str]


class Alternative(TypedDict):
    """An alternative token."""

    id: int
    piece: str
    probability: float


class Step(TypedDict):
    """The model's confidence in one token."""

    probability: float
    log_prob: float
    entropy: float
    top: list[Alternative]


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """One sentence through one model; made by `attendo.inspection.capture`.

    Every part is kept in its JSON form, except for the attention, which `attention` returns as an
    array.
    """

    model: dict[str, Any]
    search: dict[str, Any]
    src: TokenSide
    tgt: TokenSide
    weights: Mapping[AttentionKind, NDArray[np.float32] | None]
    """By kind, (layers, heads, rows, columns)."""
    steps: list[Step]
    beam: dict[str, Any] | None = None
    measures: dict[str, Any] = field(default_factory=dict)
    logit_lens: dict[str, Any] | None = None
    attribution: dict[str, Any] | None = None
    ablation: dict[str, Any] | None = None
    positions: dict[str, Any] | None = None
    embeddings: dict[str, Any] | None = None
    series: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    attendo: str = __version__
    """The version of Attendo that made it."""

    def __post_init__(self) -> None:
        num_src, num_tgt = len(self.src["tokens"]), len(self.tgt["tokens"])
        reasons = []
        has_steps = self.series is None or self.series.get("kind") != "numbers"
        if len(self.steps) != num_tgt * has_steps:
            reasons.append(f"{len(self.steps)} steps for {num_tgt} tokens")
        for kind in self.kinds:
            rows = num_src if kind == "encoder_self" else num_tgt
            columns = num_tgt if kind == "decoder_self" else num_src
            shape = self.attention(kind).shape
            if len(shape) != len(WEIGHT_AXES) or shape[2:] != (rows, columns):
                reasons.append(f"{kind} of shape {shape} for {rows} x {columns} tokens")
        if reasons:
            raise _broken_record_error("; ".join(reasons))

    def __repr__(self) -> str:
        return f"<Record {self.src['text']!r} -> {self.tgt['text']!r}>"

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The kinds of attention of the model."""
        return tuple(kind for kind in KINDS if self.weights.get(kind) is not None)

    def attention(self, kind: AttentionKind) -> NDArray[np.float32]:
        """Return the weights of one kind: (layers, heads, rows, columns)."""
        if kind not in KINDS:
            raise InputError(
                message("no kind of attention '{kind}'", kind=kind), hint=suggest(str(kind), KINDS)
            )
        weights = self.weights.get(kind)
        if weights is None:
            available = ", ".join(self.kinds) or "none"
            raise InputError(
                message("the model has no {kind} attention", kind=kind),
                hint=message("it has: {available}", available=available),
            )
        return weights

    def position_table(self) -> NDArray[np.float32] | None:
        """Return the positional encoding of the first source positions, (positions, d_model)."""
        encoded = self.positions
        if encoded is None:
            return None
        return decode_array(encoded, "f16", ("num_positions", "d_model"))

    def replace(self, **changes: Any) -> Self:
        """Copy with some parts changed, e.g. `record.replace(ablation=...)`."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "attendo": self.attendo,
            "model": self.model,
            "search": self.search,
            "src": self.src,
            "tgt": self.tgt,
            "attention": {kind: encode_u16(self.weights.get(kind)) for kind in KINDS},
            "steps": self.steps,
            "measures": self.measures,
            **{key: getattr(self, key) for key in SECTIONS},
            "notes": self.notes,
        }

    def to_json(self) -> str:
        """Return the JSON form in one line."""
        data = self.to_dict()
        try:
            return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:  # JSON has neither NaN nor infinity
            raise not_finite_error() from None

    def _repr_html_(self) -> str:
        """Return the page for a notebook."""
        from attendo.inspection.html_page import render_iframe

        return render_iframe(self)

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file, atomically."""
        try:
            write_atomically(Path(path), self.to_json() + "\n")
        except OSError as error:
            reason = message(
                "{path} could not be written: {detail}", path=path, detail=error.strerror or error
            )
            raise AttendoError(reason, hint="choose another path, or free disk space") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a record that `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            reason = message("cannot read {path}: {strerror}", path=path, strerror=error.strerror)
            raise InputError(reason, hint="check the path and its permissions") from None
        except (ValueError, RecursionError) as error:
            raise InputError(
                message("{path} is not valid JSON: {error}", path=path, error=error),
                hint=CAPTURE_HINT,
            ) from None
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record of a JSON form; raise `InputError` if it is newer or malformed."""
        _check_version(data)
        try:
            _check_parts(data)
            record = cls(
                model=dict(data["model"]),
                search=dict(data["search"]),
                src=data["src"],
                tgt=data["tgt"],
                weights={kind: decode_u16(data["attention"][kind]) for kind in KINDS},
                steps=list(data["steps"]),
                measures=dict(data["measures"]),
                notes=[str(note) for note in data.get("notes", ())],
                attendo=str(data.get("attendo", "")),
                **{key: _read_section(data, key) for key in SECTIONS},
            )
            record.position_table()
        except AttendoError:
            raise
        except KeyError as error:
            raise _broken_record_error(message("{path} is missing", path=error)) from None
        except (TypeError, ValueError, AttributeError) as error:
            raise _broken_record_error(str(error)) from None
        return record


def _check_version(data: object) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(
            "this is not an Attendo record", hint="pass a file that `Record.save` wrote"
        )
    version = data.get("version")
    if not isinstance(version, int) or version < 1:
        raise _broken_record_error(f"its version is {version!r}")
    if version > VERSION:
        raise InputError(
            message(
                "the record has version {version}; attendo {attendo_version} knows {known}",
                version=version,
                attendo_version=__version__,
                known=VERSION,
            ),
            hint="update Attendo, or capture the sentence again with this one",
        )


def _check_parts(data: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError for a key that is missing or of another type."""
    for side in (data["src"], data["tgt"]):
        _check_fields(side, TokenSide)
        for token in side["tokens"]:
            _check_fields(token, Token)
    for step in data["steps"]:
        _check_fields(step, Step)
        for one in step["top"]:
            _check_fields(one, Alternative)


def _check_fields(data: dict[str, Any], schema: type) -> None:
    for key in schema.__annotations__:
        if not isinstance(data[key], FIELD_TYPES[key]):
            raise TypeError(f"{key} is {data[key]!r:.40}")


def _read_section(data: Mapping[str, Any], key: str) -> Any:
    section = data.get(key)
    return None if section is None else dict(section)


def _broken_record_error(reason: str) -> InputError:
    return InputError(
        message("the record is malformed: {reason}", reason=reason), hint=CAPTURE_HINT
    )
