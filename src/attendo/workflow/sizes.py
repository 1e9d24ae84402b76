"""Models of a build by size: the teacher has a deep encoder, the student is narrow.

The largest student is that of Firefox's translations (bergamot "tiny"): 17 million parameters,
17 MB in int8. A teacher's encoder is deeper than its decoder, because only the decoder's depth
costs time at every word of a translation (Kasai et al. 2021).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Size(NamedTuple):
    """Settings of `attendo train` for the models of one size."""

    plain: dict[str, Any]
    """The forward and the backward model."""
    teacher: dict[str, Any]
    student: dict[str, Any]
    has_filter: bool
    rdrop_weight: float = 1.0


SIZES: dict[str, Size] = {
    "tiny": Size(
        plain={"preset": "small", "num_layers": 2, "norm": "pre", "dropout": 0.3},
        teacher={
            "preset": "small",
            "num_layers": 4,
            "num_decoder_layers": 2,
            "norm": "pre",
            "dropout": 0.3,
        },
        student={
            "preset": "tiny",
            "num_layers": 4,
            "num_decoder_layers": 1,
            "norm": "pre",
            "dropout": 0.1,
        },
        has_filter=False,
        rdrop_weight=0.0,  # it hurts corpora of this size (docs/log.md)
    ),
    "small": Size(
        plain={"preset": "small", "norm": "pre", "dropout": 0.2},
        teacher={
            "preset": "base",
            "num_layers": 6,
            "num_decoder_layers": 3,
            "norm": "pre",
            "dropout": 0.3,
        },
        student={
            "preset": "small",
            "num_layers": 6,
            "num_decoder_layers": 2,
            "norm": "pre",
            "dropout": 0.1,
        },
        has_filter=True,
    ),
    "base": Size(
        plain={"preset": "base", "norm": "pre", "dropout": 0.1},
        teacher={
            "preset": "base",
            "num_layers": 12,
            "num_decoder_layers": 6,
            "norm": "pre",
            "dropout": 0.2,
        },
        student={
            "preset": "small",
            "d_ff": 1536,
            "num_layers": 6,
            "num_decoder_layers": 2,
            "norm": "pre",
            "dropout": 0.1,
        },
        has_filter=True,
    ),
}
OTHER_COST = 0.1
"""The share of a step of base that hardly depends on the width: launches, norms, the optimizer."""
BASE_VOCAB_SIZE = 32_000
BASE_DECODER_COST = 6 * 4.2 + 16.4
BASE_COST = 6 * 3.15 + BASE_DECODER_COST
"""Millions of multiplications per token of a base model, with its output layer."""


def relative_cost(model: dict[str, Any], vocab_size: int | None = None) -> float:
    """Return how much longer a training step takes than that of a base model, about.

    >>> relative_cost({"preset": "base"})
    1.0
    """
    products = sum(_costs(model, vocab_size)) / BASE_COST
    return round((1 - OTHER_COST) * products + OTHER_COST, 2)


def decoding_cost(model: dict[str, Any]) -> float:
    """Return how much longer a translation takes than that of a base model, about.

    >>> decoding_cost({"preset": "base", "num_layers": 12, "num_decoder_layers": 3})
    0.7
    """
    return round(_costs(model)[1] / BASE_DECODER_COST, 2)


def _costs(model: dict[str, Any], vocab_size: int | None = None) -> tuple[float, float]:
    """Return the millions of multiplications per token in the encoder and in the decoder."""
    from attendo.architectures.registry import get_model_kind
    from attendo.model.config import TransformerConfig

    options = {**get_model_kind("transformer").preset_options(model.get("preset", "small"))}
    options |= {key: value for key, value in model.items() if key in TransformerConfig.model_fields}
    options = {"vocab_size": vocab_size or BASE_VOCAB_SIZE, **options}
    config = TransformerConfig(**options)
    d_model, d_ff = config.d_model, config.d_ff
    encoder = config.num_layers * (4 * d_model**2 + 2 * d_model * d_ff)
    layers = config.num_decoder_layers or config.num_layers
    decoder = layers * (8 * d_model**2 + 2 * d_model * (config.decoder_d_ff or d_ff))
    return encoder / 1e6, (decoder + d_model * config.vocab_size) / 1e6
