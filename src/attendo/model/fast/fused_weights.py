"""The decoder's weights as `attendo.model.fast.static_decoder` steps over them: fewer and larger products.

Queries, keys and values of self-attention are one matrix. In the paper's arrangement, LayerNorm(x +
Sublayer(x)), the bias of a sub-layer's last matrix is added to x ahead of time, by the layer norm
that makes x; the matrices that read x subtract what it adds to them. The sum of x and the
sub-layer's output is then part of the matrix product. On a CPU weights may be packed for oneDNN. On
a GPU few rows have products of their own (`attendo.kernels.decode_step`), and a layer norm is left
to those who read its output.

Nothing here outlives a change of the weights: `refresh` reads them anew.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.kernels.dispatch import DECODE_STEP_DTYPES, can_use_kernels
from attendo.model.feed_forward import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.model.layers import AddAndNorm, DecoderLayer

MIN_PREPACK_ELEMENTS = 2**18
"""Numbers in a matrix, below which oneDNN gains nothing over a plain product."""
MIN_PREPACK_STEPS = 16
"""Steps that save what the new layout costs."""
MAX_KERNEL_ROWS = 4
"""On a GPU, for which cuBLAS is too large a tool."""
MAX_KERNEL_WIDTH = 1024
"""That one program can normalise."""


class LayerNormWeights(NamedTuple):
    """A layer norm by its numbers."""

    scale: Tensor
    shift: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise x (N, D)."""
        if (
            x.size(1) <= MAX_KERNEL_WIDTH
            and x.is_contiguous()
            and can_use_kernels(x, DECODE_STEP_DTYPES)
        ):
            from attendo.kernels.decode_step import layer_norm

            return layer_norm(x, *self)
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, self.eps)


class ResidualStream(NamedTuple):
    """x (N, D) on its way through the layers; its last layer norm may be left to be done."""

    x: Tensor
    pending_norm: LayerNormWeights | None = None

    def normalized(self) -> Tensor:
        """Give x as it is meant."""
        return self.x if self.pending_norm is None else self.pending_norm(self.x)


class FusedLinear:
    """x W^T + b, and the activation after it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, activation: str = "none") -> None:
        self.weight, self.bias, self.activation = weight, bias, activation
        self.prepacked_weight: Tensor | None = None

    def prepack(self, num_rows: int, num_steps: int) -> None:
        """Take oneDNN's product for rows and steps to come, over a layout of its own if it pays."""
        is_cpu_float32 = self.weight.dtype == torch.float32 and self.weight.device.type == "cpu"
        is_small = self.weight.numel() < MIN_PREPACK_ELEMENTS
        if is_small or not is_cpu_float32 or not torch.backends.mkldnn.is_available():
            return
        self.prepacked_weight = self.weight
        if num_rows > 1 and num_steps >= MIN_PREPACK_STEPS:
            self.prepacked_weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, num_rows)

    def __call__(self, x: Tensor) -> Tensor:
        """Project x (N, D)."""
        is_relu = self.activation == "relu"
        if self.prepacked_weight is not None:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                x, self.prepacked_weight, self.bias, "relu" if is_relu else "none", [], ""
            )
            return product if is_relu else self._activate(product)
        if is_relu and x.is_cuda and self.bias is not None:
            return torch._addmm_activation(self.bias, x, self.weight.t())  # one kernel
        return self._activate(F.linear(x, self.weight, self.bias))

    def add_to(self, x: Tensor, y: Tensor) -> Tensor:
        """Project y (N, D') and add it to x (N, D), in place."""
        if self.prepacked_weight is not None:
            return x.add_(self(y))
        return x.addmm_(y, self.weight.t())

    def apply_to_few_rows(
        self,
        x: Tensor,
        *,
        norm: LayerNormWeights | None = None,
        residual: ResidualStream | None = None,
    ) -> Tensor:
        """Project few rows on a GPU, normalised first, and add the path around them."""
        from attendo.kernels.decode_step import fused_linear

        is_relu = self.activation == "relu"
        return fused_linear(
            x, self.weight, self.bias, norm=norm, residual=residual, is_relu=is_relu
        )

    def _activate(self, product: Tensor) -> Tensor:
        if self.activation == "none":
            return product
        return ACTIVATIONS[self.activation](product)


class FusedSublayer:
    """The matrices that read x and the one that writes to it, with the path around them.

    Args:
        readers: one matrix, or several that lie side by side.
        writer: the last matrix.
        add: how its output and x come together.
        activation: after the readers.

    """

    def __init__(
        self,
        input_layers: Sequence[nn.Linear],
        output_layer: nn.Linear,
        add: AddAndNorm,
        *,
        activation: str = "none",
    ) -> None:
        self.input_layers, self.add = input_layers, add
        self.folds_bias = add.has_residual and not add.is_pre_norm
        bias = _get_bias(output_layer)
        self.folded_bias = bias if self.folds_bias else None
        """What x already holds of this sub-layer's output when it comes."""
        self.output_linear = FusedLinear(
            output_layer.weight.detach(), None if self.folds_bias else bias
        )
        weight = input_layers[0].weight.detach()
        if len(input_layers) > 1:
            weight = weight.new_empty(sum(one.out_features for one in input_layers), weight.size(1))
        has_bias = _get_bias(input_layers[0]) is not None or self.folded_bias is not None
        self.input_linear = FusedLinear(
            weight, weight.new_empty(weight.size(0)) if has_bias else None, activation=activation
        )
        self.norm_bias = torch.empty_like(add.norm.bias)
        self.norm = LayerNormWeights(add.norm.weight.detach(), self.norm_bias, add.norm.eps)
        """The layer norm, which adds what the next sub-layer wants."""

    def refresh(self, next_folded_bias: Tensor | None) -> None:
        """Read the weights; `following` (D,) is what the next sub-layer wants added to its x."""
        weight, bias = self.input_linear.weight, self.input_linear.bias
        if len(self.input_layers) > 1:
            torch.cat([one.weight.detach() for one in self.input_layers], out=weight)
        if bias is not None:
            biases = [one for one in map(_get_bias, self.input_layers) if one is not None]
            bias.copy_(torch.cat(biases)) if biases else bias.zero_()
            if self.folded_bias is not None:
                bias.addmv_(weight, self.folded_bias, alpha=-1)
        self.norm_bias.copy_(self.add.norm.bias.detach())
        if next_folded_bias is not None:
            self.norm_bias.add_(next_folded_bias)

    def project_in(self, stream: ResidualStream) -> Tensor:
        """Project x (N, D) as the sub-layer reads it."""
        if self._can_use_kernel(stream.x):
            norm = self.norm if self.add.is_pre_norm else stream.pending_norm
            return self.input_linear.apply_to_few_rows(stream.x, norm=norm)
        return self.input_linear(self.add.pre(stream.normalized()))

    def project_out(self, stream: ResidualStream, y: Tensor) -> ResidualStream:
        """Bring the sub-layer's output, still to be written, and x together; x is used up."""
        if self._can_use_kernel(stream.x):
            residual = stream if self.add.has_residual else None
            return ResidualStream(
                self.output_linear.apply_to_few_rows(y, residual=residual),
                None if self.add.is_pre_norm else self.norm,
            )
        x = stream.normalized()
        if not self.folds_bias:
            return ResidualStream(self.add.post(x, self.output_linear(y)))
        return ResidualStream(self._normalize(self.output_linear.add_to(x, y)))

    @cached_property
    def _has_kernels(self) -> bool:
        """Whether kernels run on this device and precision, decided once: weights do not move."""
        return can_use_kernels(self.output_linear.weight, DECODE_STEP_DTYPES)

    def _can_use_kernel(self, x: Tensor) -> bool:
        is_small = x.size(0) <= MAX_KERNEL_ROWS and x.size(1) <= MAX_KERNEL_WIDTH
        return self._has_kernels and is_small and self.input_linear.activation in ("none", "relu")

    def _normalize(self, x: Tensor) -> Tensor:
        if self._has_kernels:
            return self.norm(x)
        return F.layer_norm(
            x, self.norm.scale.shape, self.norm.scale, self.norm.shift, self.norm.eps
        )


class FusedLayer:
    """The three sub-layers of one decoder layer."""

    def __init__(self, layer: DecoderLayer, *, activation: str) -> None:
        self_attention, cross_attention, feed_forward = (
            layer.self_attention,
            layer.cross_attention,
            layer.feed_forward,
        )
        self.self_attention = FusedSublayer(
            (self_attention.query, self_attention.key, self_attention.value),
            self_attention.output,
            layer.self_add,
        )
        self.cross_attention = FusedSublayer(
            (cross_attention.query,), cross_attention.output, layer.cross_add
        )
        self.feed_forward = FusedSublayer(
            (feed_forward.inner,), feed_forward.outer, layer.feed_forward_add, activation=activation
        )
        self.sublayers = (self.self_attention, self.cross_attention, self.feed_forward)


class FusedDecoder:
    """All layers, and the projection onto the vocabulary."""

    def __init__(
        self, layers: Sequence[DecoderLayer], output: nn.Linear, *, activation: str
    ) -> None:
        self.layers = [FusedLayer(layer, activation=activation) for layer in layers]
        self.sublayers = [one for layer in self.layers for one in layer.sublayers]
        self.output = FusedLinear(output.weight.detach(), _get_bias(output))

    @property
    def folded_bias(self) -> Tensor | None:
        """What the first sub-layer wants added to its x."""
        return self.sublayers[0].folded_bias

    def refresh(self) -> None:
        """Read all weights anew."""
        next_biases = [one.folded_bias for one in self.sublayers[1:]]
        for one, next_bias in zip(self.sublayers, [*next_biases, None], strict=True):
            one.refresh(next_bias)

    def prepack(self, num_rows: int, num_steps: int) -> None:
        """Make ready for so many rows and steps on a CPU."""
        for one in self.sublayers:
            one.input_linear.prepack(num_rows, num_steps)
            one.output_linear.prepack(num_rows, num_steps)
        self.output.prepack(num_rows, num_steps)


def _get_bias(projection: nn.Linear) -> Tensor | None:
    bias = cast("Tensor | None", projection.bias)
    return None if bias is None else bias.detach()
