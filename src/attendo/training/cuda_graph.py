"""One pass forward and backward as a CUDA graph: recorded once, then repeated by a single call.

A small model's kernels are done sooner than Python can ask for them. A graph asks once. It repeats
the same work on the same places in memory, so batches must have one shape (`PackedPlan.sizes`) and
gradients stay where they are. Dropout draws by the seed of the step, as it does without a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn

    from attendo.data.packed_batching import PackedBatch

NUM_WARMUP_RUNS = 3
"""Passes before the recording: libraries choose their kernels in the first ones."""


class CapturedTrainStep:
    """Repeats a pass over batches of one shape.

    Args:
        run: takes a batch and a weight (a tensor of one number), adds the weighted gradients to the
            parameters', and gives the loss.
        parameters: whose gradients `run` fills.

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
        """Put new gradients in place of the last, and give the loss; the next call changes it."""
        if self.graph is None:
            self._capture(batch)
        assert self.graph is not None  # noqa: S101 - recorded above
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
        with torch.cuda.graph(graph):  # gradients are made here, where each repetition writes them
            self.loss = self.run(self.batch, self.weight)
        torch.cuda.set_rng_state(state, device)
        self.graph = graph

    def _clear_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None
