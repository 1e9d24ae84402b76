"""Teacher forcing over packed sentences: the Transformer's forward pass without padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.model.fast.packed_sequences import PackedMask

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.fast.packed_sequences import Packing
    from attendo.model.transformer import Transformer


def supports_packing(model: Transformer) -> bool:
    """Return whether `forward_packed` supports the model's options."""
    return model.config.attention_width is None and not model.config.attention_dropout


def forward_packed(
    model: Transformer, src_ids: Tensor, tgt_ids: Tensor, src: Packing, tgt: Packing
) -> Tensor:
    """Return the decoder's last states (1, T, D) for packed rows of ids (1, S) and (1, T).

    The output projection is left to the loss, which avoids computing all logits at once.
    """
    x = model.src_positions(model.src_embedding(src_ids), src.position_ids)
    x = model.dropout(x)  # (1, S, D)
    if x.device.type == "cpu":
        src, tgt = src.with_scatter_index(), tgt.with_scatter_index()
    states, _ = model.encoder(x, PackedMask(src, src))
    x = model.tgt_positions(model.tgt_embedding(tgt_ids), tgt.position_ids)
    x = model.dropout(x)  # (1, T, D)
    x, _, _ = model.decoder.run_layers(
        x, states, PackedMask(tgt, tgt, is_causal=True), PackedMask(tgt, src)
    )
    return x
