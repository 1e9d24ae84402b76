"""How much of the loss's gradient reaches each layer, with the residual paths and without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.inspection.insides import find_mask

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.inspection.forced import Forced
    from attendo.model.transformer import Transformer


def measure_gradients(
    model: Transformer, forced: Forced, *, has_residuals: bool = True
) -> tuple[list[float], list[float]]:
    """Give the size of the loss's gradient at the input and after each layer: encoder, decoder.

    The loss is the mean of -log p over what was said. Without residuals each sub-layer's output
    replaces what came in instead of being added to it: the same weights, but no way around. A model
    that was built without them has none to leave out.
    """
    with torch.enable_grad():
        sources, memory = _climb_encoder(model, forced, has_residuals)
        targets = _climb_decoder(model, forced, memory, has_residuals)
        logits = model.output(model.decoder.final_norm(targets[-1]))[0].float()
        loss = F.cross_entropy(logits, forced.said_ids)
        gradients = torch.autograd.grad(loss, [*sources, *targets])
    sizes = [float(gradient.double().norm()) for gradient in gradients]
    return sizes[: len(sources)], sizes[len(sources) :]


def _climb_encoder(
    model: Transformer, forced: Forced, has_residuals: bool
) -> tuple[list[Tensor], Tensor]:
    """Give the input and every layer's output, and the memory."""
    x = model.src_positions(model.src_embedding(forced.src_ids))
    mask = find_mask(model, "encoder_self", x.size(1), x.size(1)).to(x.device)
    found = [x]
    for layer in model.encoder.layers:
        own: Any = layer
        normed = own.self_add.enter(x)
        attended, _ = own.self_attention(normed, normed, normed, mask)
        x = _leave(own.self_add, x, attended, has_residuals)
        transformed = own.feed_forward(own.feed_forward_add.enter(x))
        x = _leave(own.feed_forward_add, x, transformed, has_residuals)
        found.append(x)
    return found, model.encoder.final_norm(x)


def _climb_decoder(
    model: Transformer, forced: Forced, memory: Tensor, has_residuals: bool
) -> list[Tensor]:
    """Give the input and every layer's output."""
    x = model.tgt_positions(model.tgt_embedding(forced.fed_ids))
    mask = find_mask(model, "decoder_self", x.size(1), x.size(1)).to(x.device)
    found = [x]
    for layer in model.decoder.layers:
        normed = layer.self_add.enter(x)
        attended, _ = layer.self_attention(normed, normed, normed, mask)
        x = _leave(layer.self_add, x, attended, has_residuals)
        attended, _ = layer.cross_attention(layer.cross_add.enter(x), memory, memory)
        x = _leave(layer.cross_add, x, attended, has_residuals)
        transformed = layer.feed_forward(layer.feed_forward_add.enter(x))
        x = _leave(layer.feed_forward_add, x, transformed, has_residuals)
        found.append(x)
    return found


def _leave(add: Any, x: Tensor, transformed: Tensor, has_residuals: bool) -> Tensor:
    left: Tensor = add.leave(x if has_residuals else torch.zeros_like(x), transformed)
    return left
