"""Every kind of model by name: its class, its options, its presets.

Model classes are imported when they are first asked for: loading a Transformer does not import the
recurrent and convolutional ones, and reading options imports no tensor library.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.architectures.conv_s2s import ConvS2S
    from attendo.architectures.decoder_only import DecoderOnly
    from attendo.architectures.encoder_only import EncoderOnly
    from attendo.architectures.rnn_attention import RnnAttention
    from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
    from attendo.architectures.time_series import SeriesTransformer
    from attendo.model.config import Seq2SeqConfig
    from attendo.model.transformer import Transformer

    Model = (
        Transformer
        | RnnSeq2Seq
        | RnnAttention
        | ConvS2S
        | DecoderOnly
        | EncoderOnly
        | SeriesTransformer
    )

InputType = Literal["text", "series"]

_RNN_PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "num_layers": 2, "dropout": 0.3},
    "small": {"d_model": 256, "num_layers": 2, "dropout": 0.2},
    "base": {"d_model": 512, "num_layers": 4, "dropout": 0.2},
}
_CONV_PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "num_layers": 4, "dropout": 0.3},
    "small": {"d_model": 256, "num_layers": 6, "dropout": 0.2},
    "base": {"d_model": 512, "num_layers": 20},
}
_DECODER_PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "d_ff": 512, "num_heads": 4, "num_layers": 4, "dropout": 0.2},
    "small": {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_layers": 6},
    "base": {},
}
_ENCODER_PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "d_ff": 256, "num_heads": 4, "num_layers": 4, "dropout": 0.2},
    "small": {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_layers": 4},
    "base": {},
}


@dataclass(frozen=True)
class ModelKind:
    """One kind of model."""

    name: str
    module: str
    """The module of `attendo` that defines the model class."""
    class_name: str
    config_module: str
    config_name: str
    own_presets: Mapping[str, Mapping[str, Any]] | None = None
    """Presets by name; None: those of the paper's model."""
    input_type: InputType = "text"

    @property
    def model_class(self) -> type[Model]:
        """Import and return the model class."""
        found: type[Model] = getattr(import_module(f"attendo.{self.module}"), self.class_name)
        return found

    @property
    def config_class(self) -> type[Seq2SeqConfig]:
        """Import and return the config class."""
        module = import_module(f"attendo.{self.config_module}")
        found: type[Seq2SeqConfig] = getattr(module, self.config_name)
        return found

    @property
    def options(self) -> list[str]:
        """Return the name of every option that does not follow from the data."""
        data_dependent = ("vocab_size", "tgt_vocab_size", "pad_id")
        return [name for name in self.config_class.model_fields if name not in data_dependent]

    @property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the options of each preset by its name."""
        if self.own_presets is not None:
            return self.own_presets
        from attendo.model.presets import PRESETS

        return {name: preset.options for name, preset in PRESETS.items()}

    def preset_options(self, name: str) -> dict[str, Any]:
        """Return the options of a preset; upper and lower case are equal."""
        for preset, options in self.presets.items():
            if preset.casefold() == name.casefold():
                return dict(options)
        raise ConfigError(
            message("no preset '{name}' of {kind}", name=name, kind=self.name),
            hint=suggest(name, self.presets),
        )


_ALL_KINDS = (
    ModelKind(
        "transformer",
        "model.transformer",
        "Transformer",
        "model.config",
        "TransformerConfig",
    ),
    ModelKind(
        "rnn-seq2seq",
        "architectures.rnn_seq2seq",
        "RnnSeq2Seq",
        "architectures.config",
        "RnnSeq2SeqConfig",
        _RNN_PRESETS,
    ),
    ModelKind(
        "rnn-attention",
        "architectures.rnn_attention",
        "RnnAttention",
        "architectures.config",
        "RnnAttentionConfig",
        _RNN_PRESETS,
    ),
    ModelKind(
        "conv-s2s",
        "architectures.conv_s2s",
        "ConvS2S",
        "architectures.config",
        "ConvConfig",
        _CONV_PRESETS,
    ),
    ModelKind(
        "decoder",
        "architectures.decoder_only",
        "DecoderOnly",
        "architectures.config",
        "DecoderConfig",
        _DECODER_PRESETS,
    ),
    ModelKind(
        "encoder",
        "architectures.encoder_only",
        "EncoderOnly",
        "architectures.config",
        "EncoderConfig",
        _ENCODER_PRESETS,
    ),
)
SERIES_KIND = ModelKind(
    "series",
    "architectures.time_series",
    "SeriesTransformer",
    "architectures.config",
    "SeriesTransformerConfig",
    {},
    input_type="series",
)
"""The time-series model: not chosen by name, but found in model folders."""
MODEL_KINDS = {kind.name: kind for kind in _ALL_KINDS}
"""The kinds that a user can choose."""
STORED_KINDS = {**MODEL_KINDS, SERIES_KIND.name: SERIES_KIND}
"""The kinds that a model folder may hold."""


def get_model_kind(name: str) -> ModelKind:
    """Return a kind of model by its name.

    >>> get_model_kind("rnn-attention").model_class.__name__
    'RnnAttention'
    """
    if name not in MODEL_KINDS:
        hint = suggest(name, MODEL_KINDS)
        raise ConfigError(message("no model kind '{name}'", name=name), hint=hint)
    return MODEL_KINDS[name]
