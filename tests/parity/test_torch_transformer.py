"""The model equals `torch.nn.Transformer` with the same weights: same outputs and gradients."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from attendo import Transformer

D_MODEL, D_FF, HEADS, LAYERS, VOCAB = 16, 40, 4, 3, 23
NAMES = {
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward.inner",
    "linear2": "feed_forward.outer",
}
NORMS = {
    "encoder": ("self_add", "feed_forward_add"),
    "decoder": ("self_add", "cross_add", "feed_forward_add"),
}


def make_peer(norm: str, activation: str, dtype: torch.dtype) -> nn.Transformer:
    with warnings.catch_warnings():  # it says that pre-norm has no nested-tensor path
        warnings.simplefilter("ignore", UserWarning)
        peer = nn.Transformer(
            D_MODEL, HEADS, LAYERS, LAYERS, D_FF, dropout=0.0, activation=activation,
            norm_first=norm == "pre", batch_first=True, dtype=dtype,
        )  # fmt: skip
    if norm == "post":  # the paper has no layer norm after the last one
        peer.encoder.norm = peer.decoder.norm = None
    for parameter in peer.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(
                parameter, mean=0.3, std=0.3
            )  # biases and norms that would show a mix-up
    return peer


def pairs(peer: nn.Transformer, model: Transformer) -> list[tuple[torch.Tensor, nn.Parameter]]:
    """Each parameter of ours with the slice of the peer's that it must equal."""
    found = []
    for side in ("encoder", "decoder"):
        stack, ours = getattr(peer, side), getattr(model, side)
        for theirs, layer in zip(stack.layers, ours.layers, strict=True):
            for name, position in NAMES.items():
                if not hasattr(theirs, name):
                    continue
                module, home = getattr(theirs, name), layer.get_submodule(position)
                if isinstance(module, nn.MultiheadAttention):
                    for kind in ("weight", "bias"):
                        chunks = getattr(module, f"in_proj_{kind}").chunk(3)
                        for chunk, part in zip(
                            chunks, (home.query, home.key, home.value), strict=True
                        ):
                            found.append((chunk, getattr(part, kind)))
                    module, home = module.out_proj, home.output
                found += [(module.weight, home.weight), (module.bias, home.bias)]
            for number, position in enumerate(NORMS[side], start=1):
                module, home = getattr(theirs, f"norm{number}"), getattr(layer, position).norm
                found += [(module.weight, home.weight), (module.bias, home.bias)]
        if stack.norm is not None:
            found += [
                (stack.norm.weight, ours.final_norm.weight),
                (stack.norm.bias, ours.final_norm.bias),
            ]
    return found


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_forward_and_gradients_equal(norm, activation, dtype, tolerance):
    peer = make_peer(norm, activation, dtype)
    model = Transformer(
        vocab_size=VOCAB, d_model=D_MODEL, d_ff=D_FF, num_heads=HEADS, num_layers=LAYERS,
        dropout=0.0, norm=norm, activation=activation,
    ).to(dtype)  # fmt: skip
    shared = pairs(peer, model)
    assert sum(ours.numel() for _, ours in shared) == sum(p.numel() for p in peer.parameters())
    assert len({id(ours) for _, ours in shared}) + 1 == len(
        list(model.parameters())
    )  # and the embedding
    with torch.no_grad():
        for theirs, ours in shared:
            ours.copy_(theirs)

    src_ids, tgt_ids = torch.randint(1, VOCAB, (3, 7)), torch.randint(1, VOCAB, (3, 6))
    src_ids[0, 4:], tgt_ids[1, 3:] = 0, 0
    src_hidden, tgt_hidden = src_ids == 0, tgt_ids == 0  # the peer's masks: True = hidden
    logits = model(src_ids, tgt_ids)
    states = peer(
        model.src_positions(model.src_embedding(src_ids)),
        model.tgt_positions(model.tgt_embedding(tgt_ids)),
        tgt_mask=torch.ones(6, 6, dtype=torch.bool).triu(1),
        src_key_padding_mask=src_hidden,
        tgt_key_padding_mask=tgt_hidden,
        memory_key_padding_mask=src_hidden,
    )
    expected = states @ model.output.weight.T
    real = ~tgt_hidden
    torch.testing.assert_close(logits[real], expected[real], rtol=0, atol=tolerance)

    upstream = torch.randn_like(logits) * real[..., None]
    model.zero_grad()
    (expected * upstream).sum().backward(inputs=[*peer.parameters(), model.src_embedding.weight])
    embedding_gradient = model.src_embedding.weight.grad.clone()
    expected_gradients = pairs_of_gradients(peer, model)
    model.zero_grad()
    (model(src_ids, tgt_ids) * upstream).sum().backward()
    bound = tolerance * max(1.0, *(float(theirs.abs().max()) for theirs, _ in expected_gradients))
    for theirs, ours in expected_gradients:
        torch.testing.assert_close(ours.grad, theirs, rtol=0, atol=bound)
    torch.testing.assert_close(
        model.src_embedding.weight.grad, embedding_gradient, rtol=0, atol=bound
    )


def pairs_of_gradients(
    peer: nn.Transformer, model: Transformer
) -> list[tuple[torch.Tensor, nn.Parameter]]:
    """The same pairs, with the peer's gradients in the place of its weights."""
    gradients = [parameter.grad.clone() for parameter in peer.parameters()]
    weights = [parameter.detach().clone() for parameter in peer.parameters()]
    with torch.no_grad():
        for parameter, gradient in zip(peer.parameters(), gradients, strict=True):
            parameter.copy_(gradient)
        found = [(theirs.detach().clone(), ours) for theirs, ours in pairs(peer, model)]
        for parameter, weight in zip(peer.parameters(), weights, strict=True):
            parameter.copy_(weight)
    return found
