"""The cross-attention of a translation, averaged over heads and layers, to align its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.translator.backends.base import Backend


@torch.inference_mode()
def cross_attention(backend: Backend, src_ids: Sequence[int], ids: Sequence[int]) -> Tensor | None:
    """Return the attention (T, S) of the later layers; row t is the step that predicts token t.

    None for a model without attention between the sides.
    """
    model: Any = backend.model
    decoder_input = backend.pad([[START_ID, *ids[:-1]]])
    full_mask = torch.ones_like(decoder_input, dtype=torch.bool)[:, None]
    with backend.eval_mode():  # some models start with padding
        inputs = (backend.pad([list(src_ids)]), decoder_input)
        layers = model.explain(*inputs, tgt_mask=full_mask).cross
    if not layers:
        return None
    means = [layer[0].float().mean(0) for layer in layers[len(layers) // 2 :]]
    return torch.stack(means).mean(0).cpu()
