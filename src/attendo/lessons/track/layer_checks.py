"""The tests of steps 5 to 9: feed-forward network, embeddings, sub-layers, encoder, decoder."""

from __future__ import annotations

from typing import Any

import torch

from attendo.lessons.track.attention_checks import (
    BATCH,
    D_MODEL,
    IDS,
    LENGTH,
    NUM_HEADS,
    random,
    seeded,
)
from attendo.lessons.track.comparison import Check, CheckError, compare, load_weights, prose
from attendo.model import decoder, encoder, layers
from attendo.model.feed_forward import FeedForward
from attendo.model.masks import causal_mask, padding_mask

D_FF, NUM_LAYERS, VOCAB_SIZE, DROPOUT = 24, 2, 12, 0.1
SIZES = (D_MODEL, D_FF, NUM_HEADS)


def feed_forward(module: Any) -> None:
    """Compare two words, with the weights of `attendo.model`."""
    ours = seeded(FeedForward, D_MODEL, D_FF)
    theirs = module.FeedForward(D_MODEL, D_FF)
    load_weights(theirs, ours.state_dict())
    x = random(BATCH, LENGTH, D_MODEL)
    compare(
        theirs(x),
        ours(x),
        {
            "no-relu": ours.outer(ours.inner(x)),
            "relu-last": ours.outer(ours.inner(x)).relu(),
            "relu-twice": ours.outer(ours.inner(x).relu()).relu(),
        },
    )


def _embedding(module: Any) -> tuple[Any, torch.Tensor]:
    theirs = module.TiedEmbedding(VOCAB_SIZE, D_MODEL)
    weight = random(VOCAB_SIZE, D_MODEL)
    load_weights(theirs, {"weight": weight})
    return theirs, weight


def embedding(module: Any) -> None:
    """Look up vectors, scaled."""
    theirs, weight = _embedding(module)
    vectors = weight[IDS]
    root = D_MODEL**0.5
    mistakes = {
        "embedding-not-scaled": vectors,
        "embedding-by-size": vectors * D_MODEL,
        "embedding-divided": vectors / root,
    }
    compare(theirs(IDS), vectors * root, mistakes)


def tied_output(module: Any) -> None:
    """Score every word with the same matrix."""
    theirs, weight = _embedding(module)
    states = random(BATCH, LENGTH, D_MODEL)
    scores = states @ weight.T
    mistakes = {
        "logits-scaled": scores * D_MODEL**0.5,
        "logits-softmax": scores.softmax(-1),
    }
    compare(theirs.logits(states), scores, mistakes, tolerance=1e-3)


def embedding_start(module: Any) -> None:
    """Begin with small weights, so that scaled vectors have a variance of about 1."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        weight = module.TiedEmbedding(200, 64).weight.detach()
    deviation = float(weight.std())
    if not 0.5 < deviation * 64**0.5 < 2.0:
        raise CheckError(prose("embedding-start"), f"{64**-0.5:.3g}", f"{deviation:.3g}")


def _add_and_norm(module: Any) -> tuple[Any, Any]:
    ours = layers.LayerOptions(dropout=DROPOUT).make_add_and_norm(D_MODEL).eval()
    theirs = module.AddAndNorm(D_MODEL, DROPOUT)
    load_weights(theirs, {"norm.weight": 1 + random(D_MODEL), "norm.bias": random(D_MODEL)})
    ours.load_state_dict({"norm.weight": 1 + random(D_MODEL), "norm.bias": random(D_MODEL)})
    return ours, theirs


def add_and_norm_by_hand(module: Any) -> None:
    """Add (0, 1, 1, 2) and (1, 1, 2, 4), and normalize the sum (1, 2, 3, 6)."""
    theirs = module.AddAndNorm(4, 0.0)
    x, transformed = torch.tensor([[0.0, 1, 1, 2]]), torch.tensor([[1.0, 1, 2, 4]])
    expected = torch.tensor([[-1.06904, -0.53452, 0.0, 1.60357]])
    compare(theirs(x, transformed), expected, _sum_mistakes(theirs, x, transformed))


def _sum_mistakes(module: Any, x: torch.Tensor, transformed: torch.Tensor) -> dict[str, Any]:
    norm = torch.nn.functional.layer_norm
    weight, bias = module.norm.weight, module.norm.bias
    size = [x.size(-1)]
    return {
        "no-residual": norm(transformed, size, weight, bias),
        "no-norm": x + transformed,
        "norm-before-sum": x + norm(transformed, size, weight, bias),
        "norm-of-input": norm(x, size, weight, bias) + transformed,
    }


def add_and_norm(module: Any) -> None:
    """Use the learned weights of the normalization."""
    ours, theirs = _add_and_norm(module)
    x, transformed = random(BATCH, LENGTH, D_MODEL), random(2 * BATCH, LENGTH, D_MODEL)[:BATCH]
    expected = ours.post(x, 2 * transformed)
    compare(theirs(x, 2 * transformed), expected, _sum_mistakes(theirs, x, 2 * transformed))


def sublayer_dropout(module: Any) -> None:
    """Drop numbers of the sub-layer's output in training, and none of the input."""
    theirs = module.AddAndNorm(D_MODEL, 1.0)
    theirs.train()
    x = random(BATCH, LENGTH, D_MODEL)
    norm = torch.nn.functional.layer_norm(x, [D_MODEL])
    nothing = torch.zeros_like(x)
    compare(theirs(x, x + 1), norm, {"dropout-of-sum": nothing})


def _encoder(module: Any) -> tuple[Any, Any]:
    ours = seeded(encoder.Encoder, [seeded(layers.EncoderLayer, *SIZES) for _ in range(NUM_LAYERS)])
    theirs = module.Encoder(*SIZES, NUM_LAYERS, DROPOUT)
    load_weights(theirs, ours.state_dict())
    return ours, theirs


def encoder_layer(module: Any) -> None:
    """Transform two sentences in one layer."""
    ours = seeded(layers.EncoderLayer, *SIZES)
    theirs = module.EncoderLayer(*SIZES, DROPOUT)
    load_weights(theirs, ours.state_dict())
    x, mask = random(BATCH, LENGTH, D_MODEL), padding_mask(IDS)
    attended = ours.self_attention(x, x, x, mask)[0]
    mistakes = {
        "mask-ignored": ours(x)[0],
        "no-attention": ours.feed_forward_add.post(x, ours.feed_forward(x)),
        "feed-forward-of-input": ours.feed_forward_add.post(
            ours.self_add.post(x, attended), ours.feed_forward(x)
        ),
        "no-feed-forward": ours.self_add.post(x, attended),
    }
    compare(theirs(x, mask), ours(x, mask)[0], mistakes)


def encoder_stack(module: Any) -> None:
    """Pass two sentences through two layers."""
    ours, theirs = _encoder(module)
    x, mask = random(BATCH, LENGTH, D_MODEL), padding_mask(IDS)
    mistakes = {"mask-ignored": _run_stack(ours, x), "one-layer": ours.layers[0](x, mask)[0]}
    compare(theirs(x, mask), ours(x, mask)[0], mistakes)


def _run_stack(ours: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in ours.layers:
        x = layer(x)[0]
    return x


def layers_of_their_own(module: Any) -> None:
    """Have weights of its own in every layer."""
    theirs = module.Encoder(*SIZES, NUM_LAYERS, DROPOUT)
    if len({id(one) for one in theirs.parameters()}) < len(theirs.state_dict()):
        raise CheckError(prose("shared-layers"))


def decoder_layer(module: Any) -> None:
    """Transform two sentences in one layer, over the output of the encoder."""
    ours = seeded(layers.DecoderLayer, *SIZES)
    theirs = module.DecoderLayer(*SIZES, DROPOUT)
    load_weights(theirs, ours.state_dict())
    x, memory = random(BATCH, 3, D_MODEL), random(BATCH, LENGTH, D_MODEL)
    masks = causal_mask(3), padding_mask(IDS)
    first = ours.self_add.post(x, ours.self_attention(x, x, x, masks[0])[0])
    mistakes = {
        "self-mask-ignored": ours(x, memory, None, masks[1])[0],
        "cross-mask-ignored": ours(x, memory, masks[0], None)[0],
        "no-cross-attention": ours.feed_forward_add.post(first, ours.feed_forward(first)),
        "cross-query-of-input": _finish_layer(
            ours, first, ours.cross_attention(x, memory, memory, masks[1])[0]
        ),
    }
    compare(theirs(x, memory, *masks), ours(x, memory, *masks)[0], mistakes)


def _finish_layer(ours: Any, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
    x = ours.cross_add.post(x, attended)
    normed: torch.Tensor = ours.feed_forward_add.post(x, ours.feed_forward(x))
    return normed


def decoder_stack(module: Any) -> None:
    """Hide the later positions and the padding in every layer."""
    ours = seeded(decoder.Decoder, [seeded(layers.DecoderLayer, *SIZES) for _ in range(NUM_LAYERS)])
    theirs = module.Decoder(*SIZES, NUM_LAYERS, DROPOUT)
    load_weights(theirs, ours.state_dict())
    x, memory = random(BATCH, LENGTH, D_MODEL), random(BATCH, 3, D_MODEL)
    mask, cross_mask = padding_mask(IDS), padding_mask(IDS[:, 1:4])

    def run(self_mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = ours.run_layers(x, memory, self_mask, cross_mask)[0]
        return states

    full = torch.ones_like(mask)
    mistakes = {
        "no-look-ahead": run(mask),
        "padding-ignored": run(full & causal_mask(LENGTH)),
        "mask-reversed": run(mask & ~causal_mask(LENGTH)),
    }
    compare(theirs(x, memory, mask, cross_mask), run(mask & causal_mask(LENGTH)), mistakes)


CHECKS = {
    5: (Check("feed-forward", feed_forward),),
    6: (
        Check("embedding", embedding),
        Check("tied-output", tied_output),
        Check("embedding-start", embedding_start),
    ),
    7: (
        Check("add-and-norm-by-hand", add_and_norm_by_hand),
        Check("add-and-norm", add_and_norm),
        Check("sublayer-dropout", sublayer_dropout),
    ),
    8: (
        Check("encoder-layer", encoder_layer),
        Check("encoder-stack", encoder_stack),
        Check("layers-of-their-own", layers_of_their_own),
    ),
    9: (Check("decoder-layer", decoder_layer), Check("decoder-stack", decoder_stack)),
}
