"""The decoder's weights, fused into fewer and larger products for the static decoder.

Queries, keys and values of self-attention are one matrix. In a post-norm layer,
LayerNorm(x + Sublayer(x)), the bias of a sub-layer's last matrix is folded into the layer norm that
computes x; the matrices that read x subtract its contribution. The sum of x and the sub-layer's
output is then part of the matrix product. On a CPU, weights may be prepacked for oneDNN. On a GPU,
few rows have their own kernels (`attendo.kernels.decode_step`), and a layer norm is left to the
kernels that read its output.

Fused weights do not follow a change of the model's weights: `refresh` copies them again.
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
"""Smaller matrices gain nothing from oneDNN."""
MIN_PREPACK_STEPS = 16
"""Decoding steps after which a prepacked layout has paid off."""
MAX_KERNEL_ROWS = 4
"""Rows up to which the decoding kernels are faster than cuBLAS."""
MAX_KERNEL_WIDTH = 1024
"""Widest row that one program of the kernels normalizes."""


class LayerNormWeights(NamedTuple):
    """The parameters of a layer norm."""

    scale: Tensor
    shift: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalize x (N, D)."""
        if (
            x.size(1) <= MAX_KERNEL_WIDTH
            and x.is_contiguous()
            and can_use_kernels(x, DECODE_STEP_DTYPES)
        ):
            from attendo.kernels.decode_step import layer_norm

            return layer_norm(x, *self)
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, self.eps)


class ResidualStream(NamedTuple):
    """x (N, D) between two sub-layers; its last layer norm may be pending."""

    x: Tensor
    pending_norm: LayerNormWeights | None = None

    def normalized(self) -> Tensor:
        """Return x with the pending norm applied."""
        return self.x if self.pending_norm is None else self.pending_norm(self.x)


class FusedLinear:
    """x W^T + b, and the activation after it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, activation: str = "none") -> None:
        self.weight, self.bias, self.activation = weight, bias, activation
        self.prepacked_weight: Tensor | None = None

    def prepack(self, num_rows: int, num_steps: int) -> None:
        """Use oneDNN for the coming rows and steps, with a prepacked layout if that pays off."""
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
        """Project few rows on a GPU, with the layer norm before and the residual after it."""
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
    """The input and output projections of a sub-layer, with its residual connection.

    Args:
        input_layers: the first projection, or several that are fused.
        output_layer: the last projection.
        add: the residual connection and layer norm.
        activation: applied after the input projections.

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
        """The bias of the output projection, which x already includes."""
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
        """The layer norm, whose bias includes the folded bias of the next sub-layer."""

    def refresh(self, next_folded_bias: Tensor | None) -> None:
        """Copy the model's weights; `next_folded_bias` (D,) is that of the next sub-layer."""
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
        """Apply the input projections to x (N, D)."""
        if self._can_use_kernel(stream.x):
            norm = self.norm if self.add.is_pre_norm else stream.pending_norm
            return self.input_linear.apply_to_few_rows(stream.x, norm=norm)
        return self.input_linear(self.add.pre(stream.normalized()))

    def project_out(self, stream: ResidualStream, y: Tensor) -> ResidualStream:
        """Apply the output projection to y and add it to x, which is overwritten."""
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
    """All decoder layers and the output projection."""

    def __init__(
        self, layers: Sequence[DecoderLayer], output: nn.Linear, *, activation: str
    ) -> None:
        self.layers = [FusedLayer(layer, activation=activation) for layer in layers]
        self.sublayers = [one for layer in self.layers for one in layer.sublayers]
        self.output = FusedLinear(output.weight.detach(), _get_bias(output))

    @property
    def folded_bias(self) -> Tensor | None:
        """The folded bias of the first sub-layer."""
        return self.sublayers[0].folded_bias

    def refresh(self) -> None:
        """Copy all weights from the model again."""
        next_biases = [one.folded_bias for one in self.sublayers[1:]]
        for one, next_bias in zip(self.sublayers, [*next_biases, None], strict=True):
            one.refresh(next_bias)

    def prepack(self, num_rows: int, num_steps: int) -> None:
        """Prepack the weights for this many rows and steps on a CPU."""
        for one in self.sublayers:
            one.input_linear.prepack(num_rows, num_steps)
            one.output_linear.prepack(num_rows, num_steps)
        self.output.prepack(num_rows, num_steps)


def _get_bias(projection: nn.Linear) -> Tensor | None:
    bias = cast("Tensor | None", projection.bias)
    return None if bias is None else bias.detach()
