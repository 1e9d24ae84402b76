"""What each of the three models sees and consists of, read off the models of the project."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.architectures.decoder_only import DecoderOnly
from attendo.architectures.encoder_only import EncoderOnly
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import END_ID

if TYPE_CHECKING:
    from torch import Tensor

NUM_WORDS = 4
PARTS = (
    ("embedding", "embedding"),
    ("self-attention", "self_attention"),
    ("cross-attention", "cross_attention"),
    ("feed-forward", "feed_forward."),
    ("norm", "norm"),
)
"""The parts of a model and a part of the names of their parameters."""
BASE_SIZES: dict[str, Any] = {"d_model": 512, "d_ff": 2048, "num_heads": 8, "num_layers": 6}
BASE_VOCABULARY = 37_000
GPT_2_VOCABULARY = 50_257
TINY: dict[str, Any] = {"d_model": 8, "d_ff": 8, "num_heads": 2, "num_layers": 1, "dropout": 0.0}

Mask = list[list[bool]]


class Visibility(NamedTuple):
    """Which words (columns) each word (rows) may see, in each kind of model."""

    encoder_only: Mask
    decoder_only: Mask
    source: Mask
    """The encoder of an encoder-decoder."""
    target_to_source: Mask
    target: Mask


@cache
def measure_visibility(num_words: int = NUM_WORDS) -> Visibility:
    """Return the masks, read off the attention weights of small untrained models."""
    vocab_size = 8 + num_words
    ids = torch.arange(8, vocab_size)[None]
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(0)
        encoder_only = EncoderOnly(vocab_size, reads="each", **TINY).eval().explain(ids, ids)
        end = torch.tensor([[END_ID]])
        decoder_only = DecoderOnly(vocab_size, **TINY).eval().explain(end, ids)
        both = Transformer(vocab_size, **TINY).eval().explain(ids, ids)
    return Visibility(
        _is_seen(encoder_only.encoder_self),
        _is_seen(decoder_only.decoder_self),
        _is_seen(both.encoder_self),
        _is_seen(both.cross),
        _is_seen(both.decoder_self),
    )


def _is_seen(weights: tuple[Tensor, ...]) -> Mask:
    seen: Mask = (torch.cat(weights) > 0).any(0).any(0).tolist()
    return seen


def count_seen(mask: Mask) -> int:
    """Return how many pairs of words a mask leaves visible."""
    return sum(map(sum, mask))


def base_models() -> dict[str, EncoderOnly | DecoderOnly | Transformer]:
    """Return the three models with the paper's sizes, without memory for their weights."""
    with torch.device("meta"):
        return {
            "encoder-only": EncoderOnly(BASE_VOCABULARY, reads="each", **BASE_SIZES),
            "decoder-only": DecoderOnly(BASE_VOCABULARY, norm="post", **BASE_SIZES),
            "encoder-decoder": Transformer(BASE_VOCABULARY, **BASE_SIZES),
        }


def count_parts(model: torch.nn.Module) -> dict[str, int]:
    """Return the number of parameters of each part of a model; a shared matrix counts once."""
    counts = dict.fromkeys((part for part, _ in PARTS), 0)
    for name, parameter in model.named_parameters():
        part = next(part for part, sign in PARTS if sign in name)
        counts[part] += parameter.numel()
    return counts


def count_gpt_2() -> int:
    """Return the number of parameters of a decoder-only model with the sizes of GPT-2."""
    with torch.device("meta"):
        return DecoderOnly(GPT_2_VOCABULARY, positions="learned").num_parameters()


def marks(row: list[bool]) -> str:
    """Return a row of a mask as circles.

    >>> marks([True, False])
    '● ○'
    """
    return " ".join("●" if seen else "○" for seen in row)
