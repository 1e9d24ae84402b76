"""One process or many: the same code under `torchrun` (DDP, or FSDP where memory asks for it)."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor, nn

ResultT = TypeVar("ResultT")

TIMEOUT = timedelta(hours=2)  # the first process prepares the data while the others wait


class ProcessGroup:
    """The processes of a run, and which one this is. Made from torchrun's environment."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.num_restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        has_cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", local_rank) if has_cuda else torch.device("cpu")
        if has_cuda:
            torch.cuda.set_device(self.device)
        self.owns_group = "RANK" in os.environ and not dist.is_initialized()
        if self.owns_group:
            self._init_process_group("nccl" if has_cuda else "gloo")

    def _init_process_group(self, backend: str) -> None:
        """Find the other processes, under a name that is new at every restart.

        torchrun's agent keeps its store over restarts, and with it the addresses of processes that
        have died: without a name of its own a restarted process would call those.
        """
        store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
        attempt_store = PrefixStore(f"attempt {self.num_restarts} of {world_size}", store)
        dist.init_process_group(
            backend, store=attempt_store, rank=rank, world_size=world_size, timeout=TIMEOUT
        )

    @property
    def is_main(self) -> bool:
        """Tell whether this process writes files and speaks."""
        return self.rank == 0

    def single(self) -> ProcessGroup:
        """Give this process as if there were no others, for work that it does by itself."""
        alone = object.__new__(ProcessGroup)
        alone.rank, alone.world_size, alone.device, alone.owns_group = 0, 1, self.device, False
        return alone

    def close(self) -> None:
        """Leave the group of processes."""
        if self.owns_group and dist.is_initialized():
            dist.destroy_process_group()

    def barrier(self) -> None:
        """Wait until every process has come here."""
        if self.world_size > 1:
            dist.barrier()

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.world_size > 1:
            dist.all_reduce(values)
        return values

    def any_true(self, flag: bool) -> bool:
        """Tell whether the flag is up in any process."""
        if self.world_size == 1:
            return flag
        return bool(self.all_reduce_sum(torch.tensor(float(flag), device=self.device)) > 0)

    def run_on_main(self, work: Callable[[], ResultT]) -> ResultT | None:
        """Let the first process do something; the others wait, and stop with it where it fails."""
        failure: AttendoError | OSError | None = None
        result = None
        if self.is_main:
            try:
                result = work()
            except (AttendoError, OSError) as error:
                failure = error
        if self.any_true(failure is not None):
            raise failure or AttendoError("the first process stopped: its message says why")
        return result

    def broadcast_int(self, number: int) -> int:
        """Give every process the number of the first."""
        contribution = torch.tensor(number if self.is_main else 0, device=self.device)
        return int(self.all_reduce_sum(contribution))

    def wrap(self, model: nn.Module, *, fsdp: bool) -> nn.Module:
        """Make a model train on all processes together."""
        if self.world_size == 1:
            return model
        if fsdp:
            mesh = self._make_device_mesh()
            for stack in ("encoder", "decoder"):
                layers: Iterable[nn.Module] = getattr(getattr(model, stack, None), "layers", ())
                for layer in layers:
                    fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            return model
        devices = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=devices)

    def _make_device_mesh(self) -> DeviceMesh:
        """Make the mesh of spread weights over a group of its own.

        torch's caches keep every mesh, and with it its group and the group's threads, beyond
        `close` and until Python ends. There a thread of gloo that still lets go of the tensor
        exchanged last aborts the process ("terminate called without an active exception"). So the
        group that is used to the very end must be one that `close` can really end.
        """
        return DeviceMesh.from_group(dist.new_group(), self.device.type)


def no_sync(model: nn.Module, *, enabled: bool) -> AbstractContextManager[Any]:
    """Exchange gradients only with the last piece of a batch."""
    inner = getattr(model, "_orig_mod", model)  # out of `torch.compile`
    if isinstance(inner, DistributedDataParallel) and enabled:
        return inner.no_sync()
    for module in inner.modules():
        if isinstance(module, FSDPModule):  # the outermost: it tells those within
            module.set_requires_gradient_sync(not enabled)
            break
    return nullcontext()


def unwrap(model: nn.Module) -> nn.Module:
    """Give the model itself, out of DDP and `torch.compile`."""
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    original: nn.Module = getattr(inner, "_orig_mod", inner)
    return original


def reshard(model: nn.Module) -> None:
    """Let go of weights that a pass without backward left whole: the optimiser knows the parts."""
    if isinstance(model, FSDPModule):
        model.reshard()


def full_tensor(tensor: Tensor) -> Tensor:
    """Give the whole tensor, also of one that is spread over processes (all must call)."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def copy_sharded(target: Tensor, source: Tensor) -> None:
    """Put a whole tensor's values into one that may be spread over processes."""
    with torch.no_grad():
        if isinstance(target, DTensor):
            distributed = distribute_tensor(
                source.to(target.device), target.device_mesh, target.placements
            )
            target.to_local().copy_(distributed.to_local())
        else:
            target.copy_(source)
