"""Receptive field, path length and sequential operations of a layer (section 4), measured.

Three questions about any layer (B, n, D) -> (B, n, D). Which inputs reach an output? Those where
its gradient is not zero. How long is the path from the first input to the last output? As many
stacked layers as it takes until a gradient at the top arrives at the bottom; in a
recurrent layer, as many states. How many operations are sequential? As many outputs of the
layer as form a chain in which each sends a gradient to the one before.

Weights and inputs are random, so that a gradient is exactly zero only where no path exists: use
layers without ReLU or dropout, in float64, and with a small d_model, which does not affect the
result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Layer = Callable[[Tensor], Tensor]
"""Maps (B, n, D) to (B, n, D)."""
Recurrent = nn.RNN | nn.GRU | nn.LSTM
State = Tensor | tuple[Tensor, ...]
"""Recurrent state: one tensor, or the two of an LSTM."""
Step = Callable[[int, "StateHistory"], State]
"""Computes the output of a position; earlier outputs are requested by index."""


def receptive_field(layer: Layer, length: int, d_model: int) -> Tensor:
    """Return which inputs (columns) reach which outputs (rows) of one layer: booleans (n, n).

    >>> filter_of_three = nn.Conv1d(2, 2, 3, padding=1).double()
    >>> receptive_field(lambda x: filter_of_three(x.mT).mT, 4, 2).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)

    """
    outputs = torch.eye(length, dtype=torch.bool)
    return torch.stack([trace_inputs(layer, output, d_model) for output in outputs])


def trace_inputs(layer: Layer, outputs: Tensor, d_model: int) -> Tensor:
    """Return the inputs that reach at least one of these outputs, both as booleans (n,).

    One backward pass for any number of outputs: each sends its own random gradient.
    """
    x = torch.randn(1, len(outputs), d_model, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        y = layer(x)  # (1, n, D)
        gradient_out = torch.randn_like(y) * outputs[:, None]
        (gradient_in,) = torch.autograd.grad(
            (y * gradient_out).sum(), x
        )  # a sum avoids shape comparisons
    return gradient_in[0].ne(0).any(dim=-1)


def path_length(
    make_layer: Callable[[int], Layer], length: int, d_model: int, *, max_layers: int | None = None
) -> int:
    """Return the number of stacked layers until the first input reaches the last output.

    `make_layer` returns the layer of a given depth, 0 at the top. The gradient starts at the last
    output and is followed down layer by layer; at each it is resampled at every position where it
    arrived, since the product of thousands of layers over- or underflows. Each layer gets
    its own normalized input.

    >>> def make(depth):
    ...     return nn.Conv1d(2, 2, 3, padding=1).double()
    >>> path_length(lambda depth: lambda x: make(depth)(x.mT).mT, 10, 2)
    9

    """
    max_layers = length if max_layers is None else max_layers
    reached = torch.zeros(length, dtype=torch.bool)
    reached[-1] = True
    for depth in range(max_layers):
        reached = trace_inputs(make_layer(depth), reached, d_model)
        if reached[0]:
            return depth + 1
    first = int(reached.nonzero()[0]) if reached.any() else length
    reason = f"{max_layers} layers of this kind reach back from position {length} only to {first}"
    raise InputError(reason, hint="allow more layers, or use layers that see other positions")


def recurrent_path_length(recurrent: Recurrent, length: int) -> int:
    """Return the number of states between the first input and the last output.

    The layer is run step by step and detached before every step: the gradient of a state
    then shows its direct inputs. These are its own input and the state before it; another
    input would make the path shorter.

    >>> recurrent_path_length(nn.LSTM(2, 2).double(), 10)
    10

    """
    _check_recurrent(recurrent)
    x = torch.randn(length, 1, recurrent.input_size, dtype=torch.float64, requires_grad=True)
    distance: int | None = None
    state: State | None = None
    for index in range(length):
        previous_state = None if state is None else _detach(state)
        with torch.enable_grad():
            _, state = recurrent(x[index : index + 1], previous_state)
            first, *others = _random_gradients(
                state, [x, *([] if previous_state is None else _state_tensors(previous_state))]
            )
        sees_first = first is not None and bool(first[0].ne(0).any())
        sees_before = _any_nonzero(others)
        if sees_first:
            distance = 1
        elif distance is not None:
            distance = distance + 1 if sees_before else None
    if distance is None:
        reason = f"the first of {length} inputs does not reach the last output"
        raise InputError(reason, hint="use a recurrent layer whose states depend on earlier ones")
    return distance


class StateHistory:
    """The detached outputs before a position; records which are requested."""

    def __init__(self, outputs: Sequence[State]) -> None:
        self._outputs = outputs
        self.accessed: dict[int, State] = {}

    def __getitem__(self, index: int) -> State:
        if not 0 <= index < len(self._outputs):
            reason = f"output {index} was requested when {len(self._outputs)} exist"
            raise InputError(reason, hint="request earlier outputs only, numbered from 0")
        if index not in self.accessed:
            self.accessed[index] = _detach(self._outputs[index])
        return self.accessed[index]


def sequential_operations(step: Step, length: int) -> int:
    """Return the longest chain of outputs of one layer in which each needs the one before.

    `step` computes the output of a position and may request earlier ones. Only those it requests
    and sends a gradient to are links of a chain, whose steps cannot run in parallel on any
    hardware. `recurrent_steps` and `parallel_steps` return such a step for a layer.

    >>> x = torch.randn(1, 5, 2)
    >>> sequential_operations(recurrent_steps(nn.GRU(2, 2), x), 5)
    5
    >>> sequential_operations(parallel_steps(nn.Linear(2, 2), x), 5)
    1

    """
    outputs: list[State] = []
    chains: list[int] = []
    for index in range(length):
        history = StateHistory(outputs)
        with torch.enable_grad():
            outputs.append(step(index, history))
        links = _dependencies(outputs[-1], history.accessed)
        chains.append(1 + max((chains[link] for link in links), default=0))
    return max(chains, default=0)


def recurrent_steps(recurrent: Recurrent, x: Tensor) -> Step:
    """Return the step of a recurrent layer over x (B, n, D): from the state before to the next."""
    _check_recurrent(recurrent)

    def step(index: int, history: StateHistory) -> State:
        previous_state = history[index - 1] if index else None
        state: State = recurrent(x[:, index : index + 1].transpose(0, 1), previous_state)[1]
        return state

    return step


def parallel_steps(layer: Layer, x: Tensor) -> Step:
    """Return the step of a layer that computes all outputs from x (B, n, D) in one call."""
    y = layer(x)
    return lambda position, _: y[:, position]


def run_step_by_step(
    recurrent: Recurrent, x: Tensor, *, detach_at: int | None = None
) -> list[Tensor]:
    """Run a recurrent layer one position at a time; return its states, (1, B, D) each.

    With `detach_at` the state is detached before that position: values stay equal, but no gradient
    passes.
    """
    _check_recurrent(recurrent)
    state: State | None = None
    states = []
    for index in range(x.size(1)):
        if index == detach_at and state is not None:
            state = _detach(state)
        _, state = recurrent(x[:, index : index + 1].transpose(0, 1), state)  # (1, B, D)
        states.append(_state_tensors(state)[0])
    return states


def _check_recurrent(recurrent: Recurrent) -> None:
    problems = {
        "more than one layer": recurrent.num_layers > 1,
        "two directions": recurrent.bidirectional,
        "the batch first": recurrent.batch_first,
    }
    reasons = [name for name, has_problem in problems.items() if has_problem]
    if reasons:
        reason = f"a recurrent layer with {' and '.join(reasons)} cannot be run step by step here"
        raise InputError(reason, hint="use one layer, one direction, batch_first=False")


def _dependencies(state: State, accessed: dict[int, State]) -> list[int]:
    """Return the indices of the outputs that receive a gradient from the new one."""
    return [
        index
        for index, given in accessed.items()
        if _any_nonzero(_random_gradients(state, _state_tensors(given)))
    ]


def _random_gradients(state: State, inputs: list[Tensor]) -> list[Tensor | None]:
    """Backpropagate a random gradient from a state; return that of each requested tensor."""
    total = torch.stack(
        [(part * torch.randn_like(part)).sum() for part in _state_tensors(state)]
    ).sum()
    return list(torch.autograd.grad(total, inputs, allow_unused=True, retain_graph=True))


def _any_nonzero(gradients: list[Tensor | None]) -> bool:
    return any(part is not None and bool(part.ne(0).any()) for part in gradients)


def _state_tensors(state: State) -> list[Tensor]:
    """Return the tensors of a state: one, or an LSTM's two."""
    return [state] if isinstance(state, Tensor) else list(state)


def _detach(state: State) -> State:
    """Return the detached state."""
    detached = [part.detach().requires_grad_() for part in _state_tensors(state)]
    return detached[0] if isinstance(state, Tensor) else tuple(detached)
