"""Recurrent layers: s_i = f(s_{i-1}, x_i), one position after the other.

f is an LSTM (Hochreiter and Schmidhuber 1997) or a GRU (Cho et al. 2014); sigma is the sigmoid, *
the elementwise product:

    LSTM: i, f, o = sigma(W x + U h + b) each; g = tanh(W x + U h + b)
          c' = f * c + i * g;  h' = o * tanh(c')
    GRU:  r, z = sigma(W x + U h + b) each; n = tanh(W x + b + r * (U h + b))
          h' = (1 - z) * n + z * h

A position has to wait for the one before it, which the Transformer avoids. PyTorch's fused kernels
run a whole sequence through a layer in one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.architectures.config import Cell

INPUT_GAIN = 4.0
"""Gain of the Xavier initialization of a layer's input weights."""


class CellState(NamedTuple):
    """The state of one layer after a position."""

    hidden: Tensor  # (N, E)
    cell: Tensor | None  # (N, E); a GRU has none

    def reorder(self, index: Tensor) -> CellState:
        """Select the rows `index` (N',)."""
        cell = None if self.cell is None else self.cell.index_select(0, index)
        return CellState(self.hidden.index_select(0, index), cell)


class RecurrentLayer(nn.Module):
    """One layer in one direction.

    It computes in the dtype of its weights, even under autocast: rounding errors add up over a
    sequence, and autocast on CUDA would use float16 whatever its dtype is.
    """

    def __init__(self, cell: Cell, d_in: int, d_state: int) -> None:
        super().__init__()
        rnn_class = nn.LSTM if cell == "lstm" else nn.GRU
        self.rnn: nn.LSTM | nn.GRU = rnn_class(d_in, d_state, batch_first=True)
        initialize_rnn(self.rnn)

    def train(self, mode: bool = True) -> Self:
        """Keep the kernel in training mode: it has no dropout, and cuDNN needs it for gradients."""
        super().train(mode)
        self.rnn.train()
        return self

    def forward(self, x: Tensor, state: CellState | None = None) -> tuple[Tensor, CellState]:
        """Process x (B, T, I) from a state; return all states (B, T, E) and the last one."""
        if not x.size(1):
            reason = "a recurrent model was given a sequence without any position"
            raise InputError(reason, hint="give each row at least one id, such as the end symbol")
        with torch.autocast(x.device.type, enabled=False):
            outputs, last = self.rnn(x.to(self._dtype), self._to_torch_state(state))
        return outputs, self._from_torch_state(last)

    @property
    def _dtype(self) -> torch.dtype:
        return self.rnn.get_parameter("weight_hh_l0").dtype

    def _to_torch_state(self, state: CellState | None) -> Tensor | tuple[Tensor, ...] | None:
        if state is None:
            return None
        # PyTorch expects an axis of layers in front, and contiguous rows.
        parts = (part.to(self._dtype)[None] for part in state if part is not None)
        tensors = tuple(part.contiguous() for part in parts)
        return tensors if len(tensors) > 1 else tensors[0]

    def _from_torch_state(self, last: Tensor | tuple[Tensor, Tensor]) -> CellState:
        if isinstance(last, tuple):
            return CellState(last[0][0], last[1][0])
        return CellState(last[0], None)


class RecurrentStack(nn.Module):
    """Layers in one direction on top of each other, with dropout between them."""

    def __init__(
        self, cell: Cell, d_in: int, d_state: int, num_layers: int, *, dropout: float
    ) -> None:
        super().__init__()
        widths = [d_in, *[d_state] * (num_layers - 1)]
        layers = nn.ModuleList(RecurrentLayer(cell, width, d_state) for width in widths)
        self.layers = cast("Sequence[RecurrentLayer]", layers)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, states: Sequence[CellState] | None = None
    ) -> tuple[Tensor, tuple[CellState, ...]]:
        """Process x (B, T, I); return the top states (B, T, E) and each layer's last state."""
        last = []
        for number, layer in enumerate(self.layers):
            x, state = layer(self.dropout(x) if number else x, states[number] if states else None)
            last.append(state)
        return x, tuple(last)


class Bridge(nn.Module):
    """Computes the first state of each decoder layer from one vector: tanh of a linear map."""

    def __init__(self, cell: Cell, d_in: int, d_state: int, num_layers: int) -> None:
        super().__init__()
        self.num_parts = 2 if cell == "lstm" else 1  # the initial cell is learned as well
        width = self.num_parts * d_state
        self.layers = nn.ModuleList(nn.Linear(d_in, width) for _ in range(num_layers))

    def forward(self, vector: Tensor) -> tuple[CellState, ...]:
        """Turn vector (B, I) into one state per layer."""
        states = []
        for layer in self.layers:
            hidden, *cell = torch.tanh(layer(vector)).chunk(self.num_parts, dim=-1)
            states.append(CellState(hidden, cell[0] if cell else None))
        return tuple(states)


def sequence_lengths(mask: Tensor) -> Tensor:
    """Return the length (B,) of each row of a mask (B, 1, S) with padding on the right."""
    return mask.sum(dim=(1, 2))


def reverse_sequences(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each row of x (B, S, D) within its length; padding stays on the right.

    The last real word comes first, so that no backward state has seen padding. Applied twice, it
    returns x again.

    >>> reverse_sequences(torch.tensor([[[1], [2], [3], [0]]]), torch.tensor([3])).flatten()
    tensor([3, 2, 1, 0])
    """
    positions = torch.arange(x.size(1), device=x.device)
    last = lengths[:, None] - 1
    index = torch.where(positions <= last, last - positions, positions)  # (B, S)
    return x.gather(1, index[:, :, None].expand_as(x))


@torch.no_grad()
def initialize_rnn(rnn: nn.LSTM | nn.GRU) -> None:
    """Initialize a layer's weights gate by gate from PyTorch's random state.

    Recurrent matrices are orthogonal, so that a state keeps its norm over many steps. Input
    matrices are Xavier-uniform times `INPUT_GAIN`: an embedding has norm one, so its entries are
    small, and without the gain a new layer would hardly react to them. Biases are zero, except one
    at the LSTM's forget gate, so that a new cell remembers.
    """
    num_gates = 4 if isinstance(rnn, nn.LSTM) else 3
    for name, parameter in rnn.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
            continue
        for gate in parameter.chunk(num_gates):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(gate, gain=INPUT_GAIN)
    if isinstance(rnn, nn.LSTM):
        _, forget, _, _ = rnn.get_parameter("bias_ih_l0").chunk(num_gates)
        nn.init.ones_(forget)
