"""Every tensor of one forward pass, by the stages of the whole machine, as JSON.

For a drawing that unfolds: the vectors after each stage of one layer of encoder and decoder, the
queries, keys, values, scores and weights of its attentions, and the best words of every step.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.inspection.activations import SUBLAYERS, capture_attention, capture_sublayer

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.activations import AttentionActivations
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer

ATTENTION_KINDS: tuple[AttentionKind, ...] = ("encoder_self", "decoder_self", "cross")
MAX_HALF = 65_504.0
"""The largest number in half precision."""
NUM_TOP = 8


def describe_stages(
    model: Transformer,
    forced_pass: TeacherForcedPass,
    *,
    layer: int,
    name_tokens: Callable[[list[int]], list[str]],
) -> dict[str, Any]:
    """Return the tensors of a forward pass.

    Args:
        model: the model.
        forced_pass: a sentence and its translation.
        layer: the layer to show, counted from 1, of both stacks.
        name_tokens: returns the target words of some ids.

    Raises:
        InputError: no stack of the model has such a layer.

    """
    depths = {"encoder": len(model.encoder.layers), "decoder": len(model.decoder.layers)}
    if not 1 <= layer <= max(depths.values()):
        raise InputError(
            message("no layer {layer}", layer=layer),
            hint=message("the model has layers 1 to {count}", count=max(depths.values())),
        )
    stages = {**_describe_inputs(model, forced_pass)}
    for name, (stack, _) in SUBLAYERS.items():
        index = min(layer, depths[stack]) - 1
        values = capture_sublayer(model, forced_pass, name, index)
        after = values.added if values.is_pre_norm else values.normed
        stages[name] = [_encode("output", values.transformed)]
        parts = {"input": values.x, "sublayer": values.transformed, "sum": values.added}
        if not values.has_residual:
            del parts["sum"]
        if not values.is_pre_norm:
            parts["normed"] = after
        stages[f"{name}_add"] = [_encode(part, array) for part, array in parts.items()]
    attention = {
        kind: _describe_attention(
            capture_attention(model, forced_pass, kind, min(layer, depths[SUBLAYERS[kind][0]]) - 1)
        )
        for kind in ATTENTION_KINDS
    }
    return {
        "layer": layer,
        "num_layers": depths["encoder"],
        "num_decoder_layers": depths["decoder"],
        "d_model": model.config.d_model,
        "stages": stages,
        "attention": attention,
        "steps": _describe_steps(model, forced_pass, name_tokens),
    }


@torch.inference_mode()
def _describe_inputs(
    model: Transformer, forced_pass: TeacherForcedPass
) -> dict[str, list[dict[str, Any]]]:
    """Return embeddings, positional encodings and their sums, of both sides."""
    described = {}
    sides = {
        "src": (model.src_embedding, model.src_positions, forced_pass.src_ids),
        "tgt": (model.tgt_embedding, model.tgt_positions, forced_pass.decoder_input_ids),
    }
    for side, (embedding, positions, ids) in sides.items():
        embedded = embedding(ids)
        encoding = positions(torch.zeros_like(embedded))
        total = positions(embedded)
        described[f"{side}_embedding"] = [_encode("embedding", _to_numpy(embedded[0]))]
        described[f"{side}_positions"] = [
            _encode("positions", _to_numpy(encoding[0])),
            _encode("total", _to_numpy(total[0])),
        ]
    return described


def _describe_attention(activations: AttentionActivations) -> dict[str, Any]:
    """Return the tensors of one attention, all heads; a masked score has the weight 0."""
    num_heads, num_rows, d_k = activations.queries.shape
    return {
        "num_heads": num_heads,
        "num_rows": num_rows,
        "num_columns": activations.keys.shape[1],
        "d_k": d_k,
        "d_v": activations.values.shape[-1],
        "is_masked": not bool(activations.mask.all()),
        "encoding": "f16",
        **{
            name: _pack(getattr(activations, name))
            for name in ("queries", "keys", "values", "scores", "weights", "heads")
        },
    }


@torch.inference_mode()
def _describe_steps(
    model: Transformer,
    forced_pass: TeacherForcedPass,
    name_tokens: Callable[[list[int]], list[str]],
) -> list[dict[str, Any]]:
    """Return the best words of each step with logit and probability, and the chosen word."""
    logits = forced_pass(model)[0].float()  # (T, V)
    probabilities = logits.softmax(-1)
    steps = []
    for row, target in enumerate(forced_pass.target_ids.tolist()):
        best = probabilities[row].topk(min(NUM_TOP, logits.size(-1))).indices.tolist()
        shown = best if target in best else [*best, target]
        top = [
            {
                "word": word,
                "logit": _round(float(logits[row, one])),
                "probability": _round(float(probabilities[row, one])),
            }
            for one, word in zip(shown, name_tokens(shown), strict=True)
        ]
        steps.append({"top": top, "chosen": shown.index(target)})
    return steps


def _encode(name: str, values: NDArray[np.float32]) -> dict[str, Any]:
    """Return a matrix by its name."""
    rows, columns = values.shape
    return {
        "name": name,
        "num_rows": rows,
        "num_columns": columns,
        "encoding": "f16",
        "data": _pack(values),
    }


def _pack(values: NDArray[np.float32]) -> str:
    return base64.b64encode(values.clip(-MAX_HALF, MAX_HALF).astype("<f2").tobytes()).decode()


def _to_numpy(tensor: torch.Tensor) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = tensor.float().cpu().numpy()
    return numbers


def _round(number: float) -> float:
    return float(f"{number:.4g}")
