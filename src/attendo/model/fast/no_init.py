"""Building models without initial weights, to load weights into them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RANDOM_INITIALIZERS = {
    *(nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_),
    *(Tensor.uniform_, Tensor.normal_),
}
"""The functions by which modules draw their initial weights."""


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
