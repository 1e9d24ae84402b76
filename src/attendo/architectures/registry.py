"""Every kind of model that keeps the contract, by name: its class, its options, its sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.architectures.conv_config import ConvConfig
from attendo.architectures.conv_s2s import ConvS2S
from attendo.architectures.decoder_only import DecoderOnly
from attendo.architectures.encoder_only import EncoderOnly
from attendo.architectures.rnn_attention import RnnAttention
from attendo.architectures.rnn_config import RnnAttentionConfig, RnnSeq2SeqConfig
from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
from attendo.core.config import DecoderConfig, EncoderConfig, Seq2SeqConfig, TransformerConfig
from attendo.core.errors import ConfigError, suggest
from attendo.model.presets import PRESETS, get_preset
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Model = Transformer | RnnSeq2Seq | RnnAttention | ConvS2S | DecoderOnly | EncoderOnly

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


class ModelKind(NamedTuple):
    """One kind of model."""

    name: str
    model_class: type[Model]
    config_class: type[Seq2SeqConfig]
    preset_names: Iterable[str]
    """Names of its presets."""
    preset_options: Callable[[str], dict[str, Any]]
    """Gives the options of a preset."""

    @property
    def options(self) -> list[str]:
        """Name every option that is not settled by the data."""
        data_dependent = ("vocab_size", "tgt_vocab_size", "pad_id")
        return [name for name in self.config_class.model_fields if name not in data_dependent]


def _make_kind(
    model_class: type[Model], config_class: type[Seq2SeqConfig], presets: dict[str, dict[str, Any]]
) -> ModelKind:
    def preset_options(name: str) -> dict[str, Any]:
        if name not in presets:
            raise ConfigError(
                f"no preset '{name}' of {model_class.kind}", hint=suggest(name, presets)
            )
        return presets[name]

    return ModelKind(model_class.kind, model_class, config_class, presets, preset_options)


_MODEL_KINDS = (
    ModelKind(
        Transformer.kind,
        Transformer,
        TransformerConfig,
        PRESETS,
        lambda name: get_preset(name).options,
    ),
    _make_kind(RnnSeq2Seq, RnnSeq2SeqConfig, _RNN_PRESETS),
    _make_kind(RnnAttention, RnnAttentionConfig, _RNN_PRESETS),
    _make_kind(ConvS2S, ConvConfig, _CONV_PRESETS),
    _make_kind(DecoderOnly, DecoderConfig, _DECODER_PRESETS),
    _make_kind(EncoderOnly, EncoderConfig, _ENCODER_PRESETS),
)
MODEL_KINDS = {kind.name: kind for kind in _MODEL_KINDS}


def get_model_kind(name: str) -> ModelKind:
    """Look a kind of model up by its name.

    >>> find_kind("rnn-attention").build.__name__
    'RnnAttention'
    """
    if name not in MODEL_KINDS:
        hint = suggest(name, MODEL_KINDS)
        raise ConfigError(f"no model kind '{name}'", hint=hint)
    return MODEL_KINDS[name]
