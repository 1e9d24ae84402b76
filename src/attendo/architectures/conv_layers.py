"""The blocks of "Convolutional Sequence to Sequence Learning" (Gehring et al. 2017).

A convolution over neighboring positions has two halves as its output; one of them gates the other
(the gated linear unit of Dauphin et al. 2017). Each block has a residual connection. Every decoder
layer has its own attention over the encoder's output: multi-step attention.

Sums of two terms are multiplied by sqrt(0.5) (section 3.4), so that a sum has the variance of its
terms. Every weight is normalized (Salimans and Kingma 2016): its norm and its direction are
separate parameters, `original0` and `original1` in a model folder.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

if TYPE_CHECKING:
    from attendo.core.protocols import Memory

SQRT_HALF = sqrt(0.5)


def make_weight_norm_linear(num_inputs: int, num_outputs: int, *, gain: float = 1.0) -> nn.Linear:
    """Return a weight-normalized linear map that keeps the variance of its input (section 3.5).

    Weights are normal with variance gain / num_inputs, biases zero. `gain` is the probability that
    dropout keeps an input; times 4 before a gated linear unit, which keeps about a quarter of the
    variance.
    """
    linear = nn.Linear(num_inputs, num_outputs)
    nn.init.normal_(linear.weight, std=sqrt(gain / num_inputs))
    nn.init.zeros_(linear.bias)
    weight_norm(linear)
    return linear


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return x; its gradient is multiplied by `factor`."""
    if not torch.is_grad_enabled():
        return x
    fixed = x.detach()
    return fixed + (x - fixed) * factor  # adds exact zeros: the value stays bit-equal


class GatedConvolution(nn.Module):
    """GLU([A B]) = A * sigmoid(B), where [A B] = convolution(x) is twice as wide as x.

    A convolution of width k is one linear map of k neighbors, the same at every position. A causal
    one reads a position and those before it, others read as far to both sides.
    """

    def __init__(self, width: int, kernel_size: int, *, dropout: float, causal: bool) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dropout = nn.Dropout(dropout)
        # Not nn.Conv1d: torch.compile(dynamic=True) compiles that again for every length.
        self.convolution = make_weight_norm_linear(
            kernel_size * width, 2 * width, gain=4 * (1 - dropout)
        )
        side = kernel_size // 2
        self.padding = (kernel_size - 1, 0) if causal else (side, side)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Transform x (B, T, C) under its padding mask (B, 1, T)."""
        length = x.size(1)
        x = self.dropout(x).masked_fill(~mask.transpose(1, 2), 0.0)
        padded = F.pad(x, (0, 0, *self.padding))  # (B, T + k - 1, C): zeros beyond the ends
        shifted = [padded[:, first : first + length] for first in range(self.kernel_size)]
        return self._gate(torch.cat(shifted, dim=-1))  # (B, T, k * C)

    def step(self, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """Transform one new position x (N, 1, C) after its window, the last k - 1 inputs."""
        whole = torch.cat((window, self.dropout(x)), dim=1)  # (N, k, C)
        return self._gate(whole.flatten(1).unsqueeze(1)), whole[:, 1:]

    def _gate(self, windows: Tensor) -> Tensor:
        return F.glu(self.convolution(windows), dim=-1)  # (B, T, k * C) -> (B, T, C)


class EncoderOutput(NamedTuple):
    """The keys and values that every decoder layer attends to."""

    keys: Tensor  # (B, S, D): z, the encoder's output
    values: Tensor  # (B, S, D): (z + e) * sqrt(0.5), e being the source embeddings
    mask: Tensor  # (B, 1, S)
    scale: Tensor  # (B, 1, 1): S * sqrt(1 / S) of the S real tokens

    @classmethod
    def from_memory(cls, memory: Memory) -> EncoderOutput:
        """Split the states of a memory into keys and values."""
        keys, values = memory.states.chunk(2, dim=-1)
        precise = torch.promote_types(keys.dtype, torch.float32)  # bfloat16 counts only to 256
        num_real = memory.mask.sum(dim=-1, keepdim=True, dtype=precise)
        return cls(keys, values, memory.mask, num_real.sqrt().to(keys.dtype))

    def reorder(self, index: Tensor) -> EncoderOutput:
        """Select the rows `index` (N',) of every tensor."""
        return EncoderOutput(*(tensor.index_select(0, index) for tensor in self))


class MultiStepAttention(nn.Module):
    """One layer's attention over the source (section 3.3), with a single head.

    A target position is summarized as d_i = W h_i + b + g_i, where g is the embedding of the target
    word, and attends to the source by unscaled dot products:

        a_ij = softmax_j(d_i . z_j),  c_i = sum_j a_ij (z_j + e_j)

    A mean over S values has a smaller variance than one of them: c is multiplied by S * sqrt(1/S),
    as if all weights were equal. A linear map brings it back to the width of h.
    """

    def __init__(self, d_hidden: int, d_model: int) -> None:
        super().__init__()
        self.query = make_weight_norm_linear(d_hidden, d_model)
        self.leave = make_weight_norm_linear(d_model, d_hidden)

    def forward(self, h: Tensor, embedded: Tensor, source: EncoderOutput) -> tuple[Tensor, Tensor]:
        """Add the source's context to h (B, T, C); also return the weights (B, T, S)."""
        query = (self.query(h) + embedded) * SQRT_HALF  # (B, T, D)
        scores = query @ source.keys.transpose(1, 2)  # (B, T, S)
        # The lowest number, not -inf: a fully masked row stays free of NaN.
        scores = scores.masked_fill(~source.mask, torch.finfo(scores.dtype).min)
        precise = torch.promote_types(scores.dtype, torch.float32)
        weights = scores.softmax(dim=-1, dtype=precise).to(source.values.dtype)
        weights = weights.masked_fill(~source.mask, 0.0)
        context = (weights @ source.values) * source.scale  # (B, T, D)
        return (h + self.leave(context)) * SQRT_HALF, weights


class ConvEncoderLayer(nn.Module):
    """A gated convolution with a residual connection."""

    def __init__(self, width: int, kernel_size: int, *, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel_size, dropout=dropout, causal=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Transform x (B, S, C) under its padding mask (B, 1, S)."""
        added: Tensor = (self.gated(x, mask) + x) * SQRT_HALF
        return added


class ConvDecoderLayer(nn.Module):
    """A causal gated convolution, attention over the source, and a residual connection around both.

    Paper: its formulas add the residual connection before the attention; the authors' code adds it
    last, as here, so that it is scaled once per layer and not twice.
    """

    def __init__(self, width: int, d_model: int, kernel_size: int, *, dropout: float) -> None:
        super().__init__()
        self.gated = GatedConvolution(width, kernel_size, dropout=dropout, causal=True)
        self.attention = MultiStepAttention(width, d_model)

    def forward(
        self, x: Tensor, embedded: Tensor, source: EncoderOutput, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Transform all positions of x (B, T, C) at once; also return the attention (B, T, S)."""
        return self._attend(x, self.gated(x, mask), embedded, source)

    def step(
        self, x: Tensor, embedded: Tensor, source: EncoderOutput, window: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Transform one new position x (N, 1, C); also return the new window."""
        h, window = self.gated.step(x, window)
        x, _ = self._attend(x, h, embedded, source)
        return x, window

    def _attend(
        self, x: Tensor, h: Tensor, embedded: Tensor, source: EncoderOutput
    ) -> tuple[Tensor, Tensor]:
        h, weights = self.attention(h, embedded, source)
        return (h + x) * SQRT_HALF, weights
