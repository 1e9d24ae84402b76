"""Initialization of the parameters.

The paper does not describe it. A post-norm stack learns much faster when its sub-layers start small
compared with their residual connections (docs/log.md), so: queries, keys and values are
Xavier-uniform as one stacked matrix, smaller by the root of two than each by itself; the
feed-forward network is uniform within 1 / sqrt(inputs); other projections are Xavier-uniform;
biases are zero, layer norms one and zero. Embeddings are normal with variance 1 / d_model, so that
scaled ones have unit variance and tied logits start small.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attendo.model.attention import MultiHeadAttention
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.feed_forward import FeedForward
from attendo.model.positional_encoding import LearnedPositions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STACKED_GAIN = 2**-0.5
RANDOM_INITIALIZERS = {
    *(nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_),
    *(Tensor.uniform_, Tensor.normal_),
}
"""The functions by which modules draw their initial weights."""


def initialize(model: nn.Module) -> None:
    """Initialize every parameter of `model` from PyTorch's random state."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    for module in model.modules():
        _initialize_special(module)


def _initialize_special(module: nn.Module) -> None:
    """Initialize the projections that are special once more, and the embeddings last.

    A tied output projection shares the embeddings' matrix and so keeps their distribution.
    """
    match module:
        case MultiHeadAttention():
            for projection in (module.query, module.key, module.value):
                nn.init.xavier_uniform_(projection.weight, gain=STACKED_GAIN)
        case FeedForward():
            for layer in (module.inner, module.outer):
                bound = layer.in_features**-0.5
                nn.init.uniform_(layer.weight, -bound, bound)
        case ScaledEmbedding() | LearnedPositions():
            nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)


class _SkipInitializers(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in RANDOM_INITIALIZERS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def no_init_weights() -> Iterator[None]:
    """Build models without initializing their parameters.

    Their memory is allocated but not written, so that it costs nothing. The meta device would not
    allocate it, but some of its operations import PyTorch's compiler, which takes seconds.

    >>> import torch
    >>> state = torch.get_rng_state()
    >>> with no_init_weights():
    ...     layer = nn.Linear(2, 3)
    >>> torch.equal(torch.get_rng_state(), state)
    True
    """
    with _SkipInitializers():
        yield
