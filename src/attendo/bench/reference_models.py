"""Other implementations of the same model with our weights: what a user could choose instead.

A peer is a module that maps source and target ids to logits. All implement the paper's model:
post-norm, ReLU, sinusoids, one tied matrix, and dropout exactly where the paper has it.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn

from attendo.model.positional_encoding import sinusoidal
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attendo.model.transformer import Transformer

MAX_LENGTH = 1024
NORMS = {
    "encoder": ("self_add", "feed_forward_add"),
    "decoder": ("self_add", "cross_add", "feed_forward_add"),
}


class Peer(NamedTuple):
    """One implementation."""

    name: str
    build: Callable[[Transformer], Any]
    """Makes the peer of one of our models, with its weights if `has_our_weights`: a trainable
    module, or a decoder (`attendo.bench.decoders`)."""
    package: str
    """The package that must be installed, as it is imported."""
    has_our_weights: bool = True
    can_compile: bool = True

    @property
    def is_installed(self) -> bool:
        """Return whether the package is installed, without importing it."""
        return find_spec(self.package) is not None


class TorchPeer(nn.Module):
    """`torch.nn.Transformer` with embeddings, positions and the tied output projection."""

    positions: Tensor

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        config = model.config
        self.core = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_layers,
            config.num_decoder_layers or config.num_layers,
            config.d_ff,
            dropout=config.dropout,
            layer_norm_eps=config.layer_norm_eps,
            batch_first=True,
        )
        self.core.encoder.norm = self.core.decoder.norm = None  # the paper has no final norm
        for layer in (*self.core.encoder.layers, *self.core.decoder.layers):
            layer.dropout.p = 0.0  # inside the feed-forward network: not in the paper
            for name in ("self_attn", "multihead_attn"):
                if hasattr(layer, name):
                    getattr(layer, name).dropout = 0.0
        self.weight = nn.Parameter(model.src_embedding.weight.detach().clone())
        self.scale = sqrt(config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        table = sinusoidal(MAX_LENGTH, config.d_model, layout=config.position_layout)
        self.register_buffer("positions", table, persistent=False)
        with torch.no_grad():
            for theirs, ours in _pair_torch(self.core, model):
                theirs.copy_(ours)

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Return teacher-forced logits; the causal mask already hides padding after the target."""
        length = tgt_ids.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=tgt_ids.device).triu(1)
        padding = src_ids == PAD_ID
        states = self.core(
            self._embed(src_ids),
            self._embed(tgt_ids),
            tgt_mask=future,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(states, self.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        embedded = F.embedding(ids, self.weight) * self.scale + self.positions[: ids.size(1)]
        dropped: Tensor = self.dropout(embedded)
        return dropped


def _pair_torch(core: nn.Transformer, model: Transformer) -> Iterator[tuple[Tensor, Tensor]]:
    """Copy our weights into `nn.Transformer`."""
    for side, norms in NORMS.items():
        stack, ours = getattr(core, side), getattr(model, side)
        for theirs, layer in zip(stack.layers, ours.layers, strict=True):
            yield from _pair_attention(theirs.self_attn, layer.self_attention)
            if side == "decoder":
                yield from _pair_attention(theirs.multihead_attn, layer.cross_attention)
            yield from _pair_linear(theirs.linear1, layer.feed_forward.inner)
            yield from _pair_linear(theirs.linear2, layer.feed_forward.outer)
            for number, norm_name in enumerate(norms, start=1):
                yield from _pair_linear(
                    getattr(theirs, f"norm{number}"), getattr(layer, norm_name).norm
                )


def _pair_attention(theirs: nn.MultiheadAttention, ours: Any) -> Iterator[tuple[Tensor, Tensor]]:
    parts = (ours.query, ours.key, ours.value)
    yield theirs.in_proj_weight, torch.cat([part.weight for part in parts])
    yield theirs.in_proj_bias, torch.cat([part.bias for part in parts])
    yield from _pair_linear(theirs.out_proj, ours.output)


def _pair_linear(theirs: Any, ours: Any) -> Iterator[tuple[Tensor, Tensor]]:
    yield theirs.weight, ours.weight
    yield theirs.bias, ours.bias


class MarianPeer(nn.Module):
    """Hugging Face's `MarianMTModel`."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.core = build_marian(model)

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Return teacher-forced logits."""
        logits: Tensor = self.core(
            input_ids=src_ids,
            attention_mask=(src_ids != PAD_ID).long(),
            decoder_input_ids=tgt_ids,
            use_cache=False,
        ).logits
        return logits


def build_marian(model: Transformer) -> Any:
    """Return a Marian model with our weights, permuted to its order of sines and cosines."""
    from transformers import MarianConfig, MarianMTModel

    from attendo.interop.weight_mapping import foreign_layer_name, to_split_sinusoids

    config = model.config
    num_decoder_layers = config.num_decoder_layers or config.num_layers
    peer = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            max_position_embeddings=MAX_LENGTH,
            encoder_layers=config.num_layers,
            decoder_layers=num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            scale_embedding=True,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            pad_token_id=PAD_ID,
            eos_token_id=END_ID,
            decoder_start_token_id=START_ID,
            forced_eos_token_id=None,
        )
    )
    ours = {name: weight.detach() for name, weight in model.named_parameters()}
    if config.position_layout == "interleaved":
        ours = to_split_sinusoids(ours, config.d_model)
    theirs = dict(peer.model.named_parameters())
    with torch.no_grad():
        for name, weight in ours.items():
            theirs[foreign_layer_name(name) or "shared.weight"].copy_(weight)
    return peer


PEERS = (
    Peer("nn.Transformer", TorchPeer, "torch"),
    Peer("Hugging Face Marian", MarianPeer, "transformers"),
)
