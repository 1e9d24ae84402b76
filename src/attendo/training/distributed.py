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


class Processes:
    """The processes of a run, and which one this is. Made from torchrun's environment."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.num_restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        has_cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", local_rank) if has_cuda else torch.device("cpu")
        if has_cuda:
            torch.cuda.set_device(self.device)
        self.owns_group = "RANK" in os.environ and not dist.is_initialized()
        if self.owns_group:
            self._open_group("nccl" if has_cuda else "gloo")

    def _open_group(self, backend: str) -> None:
        """Find the other processes, under a name that is new at every restart.

        torchrun's agent keeps its store over restarts, and with it the addresses of processes that
        have died: without a name of its own a restarted process would call those.
        """
        store, rank, count = next(rendezvous("env://", timeout=TIMEOUT))
        own = PrefixStore(f"attempt {self.num_restarts} of {count}", store)
        dist.init_process_group(backend, store=own, rank=rank, world_size=count, timeout=TIMEOUT)

    @property
    def is_main(self) -> bool:
        """Tell whether this process writes files and speaks."""
        return self.rank == 0

    def alone(self) -> Processes:
        """Give this process as if there were no others, for work that it does by itself."""
        single = object.__new__(Processes)
        single.rank, single.count, single.device, single.owns_group = 0, 1, self.device, False
        return single

    def close(self) -> None:
        """Leave the group of processes."""
        if self.owns_group and dist.is_initialized():
            dist.destroy_process_group()

    def wait(self) -> None:
        """Wait until every process has come here."""
        if self.count > 1:
            dist.barrier()

    def add_up(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is up in any process."""
        if self.count == 1:
            return flag
        return bool(self.add_up(torch.tensor(float(flag), device=self.device)) > 0)

    def lead(self, work: Callable[[], ResultT]) -> ResultT | None:
        """Let the first process do something; the others wait, and stop with it where it fails."""
        failure: AttendoError | OSError | None = None
        result = None
        if self.is_main:
            try:
                result = work()
            except (AttendoError, OSError) as error:
                failure = error
        if self.any(failure is not None):
            raise failure or AttendoError("the first process stopped: its message says why")
        return result

    def from_first(self, number: int) -> int:
        """Give every process the number of the first."""
        own = torch.tensor(number if self.is_main else 0, device=self.device)
        return int(self.add_up(own))

    def spread(self, model: nn.Module, *, shard: bool) -> nn.Module:
        """Make a model train on all processes together."""
        if self.count == 1:
            return model
        if shard:
            mesh = self._open_mesh()
            for stack in ("encoder", "decoder"):
                layers: Iterable[nn.Module] = getattr(getattr(model, stack, None), "layers", ())
                for layer in layers:
                    fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            return model
        devices = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=devices)

    def _open_mesh(self) -> DeviceMesh:
        """Make the mesh of spread weights over a group of its own.

        torch's caches keep every mesh, and with it its group and the group's threads, beyond
        `close` and until Python ends. There a thread of gloo that still lets go of the tensor
        exchanged last aborts the process ("terminate called without an active exception"). So the
        group that is used to the very end must be one that `close` can really end.
        """
        return DeviceMesh.from_group(dist.new_group(), self.device.type)


def hold_gradients(model: nn.Module, *, until_last: bool) -> AbstractContextManager[Any]:
    """Exchange gradients only with the last piece of a batch."""
    inner = getattr(model, "_orig_mod", model)  # out of `torch.compile`
    if isinstance(inner, DistributedDataParallel) and until_last:
        return inner.no_sync()
    for part in inner.modules():
        if isinstance(part, FSDPModule):  # the outermost: it tells those within
            part.set_requires_gradient_sync(not until_last)
            break
    return nullcontext()


def unwrap(model: nn.Module) -> nn.Module:
    """Give the model itself, out of DDP and `torch.compile`."""
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    original: nn.Module = getattr(inner, "_orig_mod", inner)
    return original


def spread_again(model: nn.Module) -> None:
    """Let go of weights that a pass without backward left whole: the optimiser knows the parts."""
    if isinstance(model, FSDPModule):
        model.reshard()


def gather(tensor: Tensor) -> Tensor:
    """Give the whole tensor, also of one that is spread over processes (all must call)."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def fill(target: Tensor, whole: Tensor) -> None:
    """Put a whole tensor's values into one that may be spread over processes."""
    with torch.no_grad():
        if isinstance(target, DTensor):
            spread = distribute_tensor(
                whole.to(target.device), target.device_mesh, target.placements
            )
            target.to_local().copy_(spread.to_local())
        else:
            target.copy_(whole)
