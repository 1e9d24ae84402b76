"""Every kind of model that keeps the contract, by name: its class, its options, its sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.baselines.conv_config import ConvConfig
from attendo.baselines.conv_s2s import ConvS2S
from attendo.baselines.rnn_attention import RnnAttention
from attendo.baselines.rnn_config import RnnAttentionConfig, RnnSeq2SeqConfig
from attendo.baselines.rnn_seq2seq import RnnSeq2Seq
from attendo.core.config import DecoderConfig, EncoderConfig, Seq2SeqConfig, TransformerConfig
from attendo.core.errors import ConfigError, suggest
from attendo.model.decoder_only import DecoderOnly
from attendo.model.encoder_only import EncoderOnly
from attendo.model.presets import PRESETS, get_preset
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Model = Transformer | RnnSeq2Seq | RnnAttention | ConvS2S | DecoderOnly | EncoderOnly

_RECURRENT: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "num_layers": 2, "dropout": 0.3},
    "small": {"d_model": 256, "num_layers": 2, "dropout": 0.2},
    "base": {"d_model": 512, "num_layers": 4, "dropout": 0.2},
}
_CONVOLUTIONAL: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "num_layers": 4, "dropout": 0.3},
    "small": {"d_model": 256, "num_layers": 6, "dropout": 0.2},
    "base": {"d_model": 512, "num_layers": 20},
}
_LANGUAGE: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "d_ff": 512, "num_heads": 4, "num_layers": 4, "dropout": 0.2},
    "small": {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_layers": 6},
    "base": {},
}


_READING: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "d_ff": 256, "num_heads": 4, "num_layers": 4, "dropout": 0.2},
    "small": {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_layers": 4},
    "base": {},
}


class ModelKind(NamedTuple):
    """One kind of model."""

    name: str
    build: type[Model]
    config: type[Seq2SeqConfig]
    sizes: Iterable[str]
    """Names of its presets."""
    find_size: Callable[[str], dict[str, Any]]
    """Gives the options of a preset."""

    @property
    def options(self) -> list[str]:
        """Name every option that is not settled by the data."""
        settled = ("vocab_size", "tgt_vocab_size", "pad_id")
        return [name for name in self.config.model_fields if name not in settled]


def _kind(
    build: type[Model], config: type[Seq2SeqConfig], sizes: dict[str, dict[str, Any]]
) -> ModelKind:
    def find_size(name: str) -> dict[str, Any]:
        if name not in sizes:
            raise ConfigError(f"no preset '{name}' of {build.kind}", remedy=suggest(name, sizes))
        return sizes[name]

    return ModelKind(build.kind, build, config, sizes, find_size)


_KINDS = (
    ModelKind(
        Transformer.kind,
        Transformer,
        TransformerConfig,
        PRESETS,
        lambda name: get_preset(name).options,
    ),
    _kind(RnnSeq2Seq, RnnSeq2SeqConfig, _RECURRENT),
    _kind(RnnAttention, RnnAttentionConfig, _RECURRENT),
    _kind(ConvS2S, ConvConfig, _CONVOLUTIONAL),
    _kind(DecoderOnly, DecoderConfig, _LANGUAGE),
    _kind(EncoderOnly, EncoderConfig, _READING),
)
KINDS = {kind.name: kind for kind in _KINDS}


def find_kind(name: str) -> ModelKind:
    """Look a kind of model up by its name.

    >>> find_kind("rnn-attention").build.__name__
    'RnnAttention'
    """
    if name not in KINDS:
        known = suggest(name, KINDS)
        raise ConfigError(f"no model kind '{name}'", remedy=known)
    return KINDS[name]
