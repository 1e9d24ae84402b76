"""The forward and backward pass as a CUDA graph: captured once, then replayed with a single launch.

The kernels of a small model finish sooner than Python can launch them; a graph launches them all at
once. It replays the same work on the same memory, so batches must have one shape
(`PackedBatchPlan.has_fixed_shape`) and gradients keep their addresses. Dropout depends on the seed
of the step, as it does without a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn

    from attendo.data.packed_batching import PackedBatch

NUM_WARMUP_RUNS = 3
"""Passes before the capture: libraries choose their kernels in the first ones."""


class CapturedTrainStep:
    """Captures a pass over batches of one shape, and replays it.

    Args:
        run: takes a batch and a weight (a scalar tensor), adds the weighted gradients to those of
            the parameters, and returns the loss.
        parameters: the parameters whose gradients `run` computes.

    """

    def __init__(
        self, run: Callable[[PackedBatch, Tensor], Tensor], parameters: Sequence[nn.Parameter]
    ) -> None:
        self.run = run
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batch: PackedBatch
        self.weight: Tensor
        self.loss: Tensor

    def __call__(self, batch: PackedBatch, weight: float) -> Tensor:
        """Replace the gradients and return the loss, a tensor that the next call overwrites."""
        if self.graph is None:
            self._capture(batch)
        assert self.graph is not None  # noqa: S101 - captured above
        for static, new in zip(self.batch.tensors, batch.tensors, strict=True):
            static.copy_(new, non_blocking=True)
        self.weight.fill_(weight)
        self.graph.replay()
        return self.loss

    def _capture(self, batch: PackedBatch) -> None:
        device = self.parameters[0].device
        self.batch = batch.to(device)
        self.weight = torch.ones((), device=device)
        state = torch.cuda.get_rng_state(device)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(NUM_WARMUP_RUNS):
                self._clear_gradients()
                self.run(self.batch, self.weight)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.set_rng_state(state, device)
        graph = torch.cuda.CUDAGraph()
        self._clear_gradients()
        with torch.cuda.graph(graph):  # allocates the gradients that each replay writes
            self.loss = self.run(self.batch, self.weight)
        torch.cuda.set_rng_state(state, device)
        self.graph = graph

    def _clear_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None
