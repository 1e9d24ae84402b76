"""The decoder's weights as `attendo.model.fixed` steps over them: fewer and larger products.

Queries, keys and values of self-attention are one matrix. In the paper's arrangement, LayerNorm(x +
Sublayer(x)), the bias of a sub-layer's last matrix is added to x ahead of time, by the layer norm
that makes x; the matrices that read x subtract what it adds to them. The sum of x and the
sub-layer's output is then part of the matrix product. On a CPU weights may be packed for oneDNN. On
a GPU few rows have products of their own (`attendo.model.step_kernels`), and a layer norm is left
to those who read its output.

Nothing here outlives a change of the weights: `refresh` reads them anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.kernels import STEP_TYPES, has_kernels
from attendo.model.feed_forward import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.model.layers import AddAndNorm, DecoderLayer

NUM_WORTH_PACKING = 2**18
"""Numbers in a matrix, below which oneDNN gains nothing over a plain product."""
STEPS_WORTH_PACKING = 16
"""Steps that save what the new layout costs."""
FEW_ROWS = 4
"""On a GPU, for which cuBLAS is too large a tool."""
WIDEST_ROW = 1024
"""That one program can normalise."""


class Norm(NamedTuple):
    """A layer norm by its numbers."""

    scale: Tensor
    shift: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise x (N, D)."""
        if x.size(1) <= WIDEST_ROW and x.is_contiguous() and has_kernels(x, STEP_TYPES):
            from attendo.model.step_kernels import normalise

            return normalise(x, *self)
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, self.eps)


class Stream(NamedTuple):
    """x (N, D) on its way through the layers; its last layer norm may be left to be done."""

    x: Tensor
    norm: Norm | None = None

    def settle(self) -> Tensor:
        """Give x as it is meant."""
        return self.x if self.norm is None else self.norm(self.x)


class Projection:
    """x W^T + b, and the activation after it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, activation: str = "none") -> None:
        self.weight, self.bias, self.activation = weight, bias, activation
        self.packed: Tensor | None = None

    def pack(self, num_rows: int, num_steps: int) -> None:
        """Take oneDNN's product for rows and steps to come, over a layout of its own if it pays."""
        is_plain = self.weight.dtype == torch.float32 and self.weight.device.type == "cpu"
        is_small = self.weight.numel() < NUM_WORTH_PACKING
        if is_small or not is_plain or not torch.backends.mkldnn.is_available():
            return
        self.packed = self.weight
        if num_rows > 1 and num_steps >= STEPS_WORTH_PACKING:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, num_rows)

    def __call__(self, x: Tensor) -> Tensor:
        """Project x (N, D)."""
        is_relu = self.activation == "relu"
        if self.packed is not None:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                x, self.packed, self.bias, "relu" if is_relu else "none", [], ""
            )
            return product if is_relu else self._activate(product)
        if is_relu and x.is_cuda and self.bias is not None:
            return torch._addmm_activation(self.bias, x, self.weight.t())  # one kernel
        return self._activate(F.linear(x, self.weight, self.bias))

    def add_to(self, x: Tensor, y: Tensor) -> Tensor:
        """Project y (N, D') and add it to x (N, D), in place."""
        if self.packed is not None:
            return x.add_(self(y))
        return x.addmm_(y, self.weight.t())

    def multiply(
        self, x: Tensor, *, norm: Norm | None = None, around: Stream | None = None
    ) -> Tensor:
        """Project few rows on a GPU, normalised first, and add the path around them."""
        from attendo.model.step_kernels import multiply

        is_relu = self.activation == "relu"
        return multiply(x, self.weight, self.bias, norm=norm, around=around, is_relu=is_relu)

    def _activate(self, product: Tensor) -> Tensor:
        if self.activation == "none":
            return product
        return ACTIVATIONS[self.activation](product)


class Sublayer:
    """The matrices that read x and the one that writes to it, with the path around them.

    Args:
        readers: one matrix, or several that lie side by side.
        writer: the last matrix.
        add: how its output and x come together.
        activation: after the readers.

    """

    def __init__(
        self,
        readers: Sequence[nn.Linear],
        writer: nn.Linear,
        add: AddAndNorm,
        *,
        activation: str = "none",
    ) -> None:
        self.readers, self.add = readers, add
        self.is_folded = add.has_residual and not add.is_pre
        bias = _bias_of(writer)
        self.shift = bias if self.is_folded else None
        """What x already holds of this sub-layer's output when it comes."""
        self.writer = Projection(writer.weight.detach(), None if self.is_folded else bias)
        weight = readers[0].weight.detach()
        if len(readers) > 1:
            weight = weight.new_empty(sum(one.out_features for one in readers), weight.size(1))
        has_bias = _bias_of(readers[0]) is not None or self.shift is not None
        self.reader = Projection(
            weight, weight.new_empty(weight.size(0)) if has_bias else None, activation=activation
        )
        self.norm_bias = torch.empty_like(add.norm.bias)
        self.norm = Norm(add.norm.weight.detach(), self.norm_bias, add.norm.eps)
        """The layer norm, which adds what the next sub-layer wants."""

    def refresh(self, following: Tensor | None) -> None:
        """Read the weights; `following` (D,) is what the next sub-layer wants added to its x."""
        weight, bias = self.reader.weight, self.reader.bias
        if len(self.readers) > 1:
            torch.cat([one.weight.detach() for one in self.readers], out=weight)
        if bias is not None:
            own = [one for one in map(_bias_of, self.readers) if one is not None]
            bias.copy_(torch.cat(own)) if own else bias.zero_()
            if self.shift is not None:
                bias.addmv_(weight, self.shift, alpha=-1)
        self.norm_bias.copy_(self.add.norm.bias.detach())
        if following is not None:
            self.norm_bias.add_(following)

    def read(self, stream: Stream) -> Tensor:
        """Project x (N, D) as the sub-layer reads it."""
        if self._is_quick(stream.x):
            norm = self.norm if self.add.is_pre else stream.norm
            return self.reader.multiply(stream.x, norm=norm)
        return self.reader(self.add.enter(stream.settle()))

    def leave(self, stream: Stream, y: Tensor) -> Stream:
        """Bring the sub-layer's output, still to be written, and x together; x is used up."""
        if self._is_quick(stream.x):
            around = stream if self.add.has_residual else None
            return Stream(
                self.writer.multiply(y, around=around), None if self.add.is_pre else self.norm
            )
        x = stream.settle()
        if not self.is_folded:
            return Stream(self.add.leave(x, self.writer(y)))
        return Stream(self.norm(self.writer.add_to(x, y)))

    def _is_quick(self, x: Tensor) -> bool:
        is_small = x.size(0) <= FEW_ROWS and x.size(1) <= WIDEST_ROW
        is_known = self.reader.activation in ("none", "relu")
        return is_small and is_known and has_kernels(x, STEP_TYPES)


class PreparedLayer:
    """The three sub-layers of one decoder layer."""

    def __init__(self, layer: DecoderLayer, *, activation: str) -> None:
        own, cross, inner = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.own = Sublayer((own.query, own.key, own.value), own.output, layer.self_add)
        self.cross = Sublayer((cross.query,), cross.output, layer.cross_add)
        self.feed_forward = Sublayer(
            (inner.inner,), inner.outer, layer.feed_forward_add, activation=activation
        )
        self.sublayers = (self.own, self.cross, self.feed_forward)


class PreparedDecoder:
    """All layers, and the projection onto the vocabulary."""

    def __init__(
        self, layers: Sequence[DecoderLayer], output: nn.Linear, *, activation: str
    ) -> None:
        self.layers = [PreparedLayer(layer, activation=activation) for layer in layers]
        self.sublayers = [one for layer in self.layers for one in layer.sublayers]
        self.output = Projection(output.weight.detach(), _bias_of(output))

    @property
    def shift(self) -> Tensor | None:
        """What the first sub-layer wants added to its x."""
        return self.sublayers[0].shift

    def refresh(self) -> None:
        """Read all weights anew."""
        following = [one.shift for one in self.sublayers[1:]]
        for one, shift in zip(self.sublayers, [*following, None], strict=True):
            one.refresh(shift)

    def pack(self, num_rows: int, num_steps: int) -> None:
        """Make ready for so many rows and steps on a CPU."""
        for one in self.sublayers:
            one.reader.pack(num_rows, num_steps)
            one.writer.pack(num_rows, num_steps)
        self.output.pack(num_rows, num_steps)


def _bias_of(projection: nn.Linear) -> Tensor | None:
    bias = cast("Tensor | None", projection.bias)
    return None if bias is None else bias.detach()
