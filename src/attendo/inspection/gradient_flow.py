"""Gradient norms per layer, with and without residual connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.core.device import to_accurate
from attendo.inspection.activations import attention_mask

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer


def gradient_norms(
    model: Transformer, forced_pass: TeacherForcedPass, *, has_residuals: bool = True
) -> tuple[list[float], list[float]]:
    """Return the norm of the loss's gradient at the input and after each layer: encoder, decoder.

    The loss is the mean of -log p over the target. Without residuals each sub-layer's output
    replaces its input instead of being added to it, with the same weights. A model
    that was built without residuals gives the same result for both.
    """
    with torch.enable_grad():
        encoder_outputs, memory = _run_encoder_layers(model, forced_pass, has_residuals)
        decoder_outputs = _run_decoder_layers(model, forced_pass, memory, has_residuals)
        logits = model.output(model.decoder.final_norm(decoder_outputs[-1]))[0].float()
        loss = F.cross_entropy(logits, forced_pass.target_ids)
        gradients = torch.autograd.grad(loss, [*encoder_outputs, *decoder_outputs])
    norms = [float(to_accurate(gradient).norm()) for gradient in gradients]
    return norms[: len(encoder_outputs)], norms[len(encoder_outputs) :]


def _run_encoder_layers(
    model: Transformer, forced_pass: TeacherForcedPass, has_residuals: bool
) -> tuple[list[Tensor], Tensor]:
    """Return the input and every layer's output, and the memory."""
    x = model.src_positions(model.src_embedding(forced_pass.src_ids))
    mask = attention_mask(model, "encoder_self", x.size(1), x.size(1)).to(x.device)
    outputs = [x]
    for layer in model.encoder.layers:
        block: Any = layer
        normed = block.self_add.pre(x)
        attended, _ = block.self_attention(normed, normed, normed, mask)
        x = _add_and_norm(block.self_add, x, attended, has_residuals)
        transformed = block.feed_forward(block.feed_forward_add.pre(x))
        x = _add_and_norm(block.feed_forward_add, x, transformed, has_residuals)
        outputs.append(x)
    return outputs, model.encoder.final_norm(x)


def _run_decoder_layers(
    model: Transformer, forced_pass: TeacherForcedPass, memory: Tensor, has_residuals: bool
) -> list[Tensor]:
    """Return the input and every layer's output."""
    x = model.tgt_positions(model.tgt_embedding(forced_pass.decoder_input_ids))
    mask = attention_mask(model, "decoder_self", x.size(1), x.size(1)).to(x.device)
    outputs = [x]
    for layer in model.decoder.layers:
        normed = layer.self_add.pre(x)
        attended, _ = layer.self_attention(normed, normed, normed, mask)
        x = _add_and_norm(layer.self_add, x, attended, has_residuals)
        attended, _ = layer.cross_attention(layer.cross_add.pre(x), memory, memory)
        x = _add_and_norm(layer.cross_add, x, attended, has_residuals)
        transformed = layer.feed_forward(layer.feed_forward_add.pre(x))
        x = _add_and_norm(layer.feed_forward_add, x, transformed, has_residuals)
        outputs.append(x)
    return outputs


def _add_and_norm(add: Any, x: Tensor, transformed: Tensor, has_residuals: bool) -> Tensor:
    output: Tensor = add.post(x if has_residuals else torch.zeros_like(x), transformed)
    return output
