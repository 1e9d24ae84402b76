"""Reads the micro-batches of a process: its shard of each batch, in parts that fit memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attendo.data.batching import shard_rows, split_micro_batches
from attendo.data.packed_batching import PackedBatchPlan
from attendo.training.train_step import empty_micro_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.data.batching import Batch, BatchPlan, Rows
    from attendo.data.packed_batching import PackedBatch
    from attendo.training.distributed import ProcessGroup

    MicroBatch = Batch | PackedBatch


class BatchReader:
    """Reads the part of a batch that belongs to one process.

    Args:
        plan: the batches.
        processes: how many processes share a batch, and which one this is.
        num_micro_batches: the number of parts; the trainer raises it if memory runs out.

    """

    def __init__(self, plan: BatchPlan, processes: ProcessGroup, *, num_micro_batches: int) -> None:
        self.plan, self.processes, self.num_micro_batches = plan, processes, num_micro_batches

    @property
    def has_fixed_shapes(self) -> bool:
        """Whether all micro-batches have one shape."""
        return (
            isinstance(self.plan, PackedBatchPlan)
            and self.plan.has_fixed_shape
            and self.num_micro_batches == 1
        )

    def read(self, rows: Rows) -> list[MicroBatch]:
        """Return the micro-batches of this process; every process gets the same number."""
        shard = shard_rows(rows, self.processes.rank, self.processes.world_size)
        micro_batches = [
            self._read_micro_batch(part_rows)
            for part_rows in split_micro_batches(shard, self.num_micro_batches)
        ]
        if self.processes.world_size > 1 and len(micro_batches) < self.num_micro_batches:
            empty = empty_micro_batch(self._read_micro_batch(rows[:1]))
            micro_batches += [empty] * (self.num_micro_batches - len(micro_batches))
        if self.processes.device.type == "cuda":
            micro_batches = [micro_batch.pin_memory() for micro_batch in micro_batches]
        return micro_batches

    def _read_micro_batch(self, rows: Rows) -> MicroBatch:
        if isinstance(self.plan, PackedBatchPlan):
            return self.plan.read_packed(rows, is_micro_batch=not self.has_fixed_shapes)
        return self.plan.read(rows)


def read_dev_shard(dev: BatchPlan, processes: ProcessGroup) -> Iterator[Batch]:
    """Yield the batches of dev of one process; every process gets the same number."""
    batches = dev.epoch(0)
    for number in range(math.ceil(len(batches) / processes.world_size)):
        index = number * processes.world_size + processes.rank
        if index < len(batches):
            yield dev.read(batches[index])
        else:
            yield empty_micro_batch(dev.read(batches[0]))
