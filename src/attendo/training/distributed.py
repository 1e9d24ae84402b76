"""One process or many: the same code under `torchrun`, with DDP or FSDP."""

from __future__ import annotations

import os
import sys
import traceback
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

from attendo.core.device import resolve_device
from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor, nn

ResultT = TypeVar("ResultT")
NumberT = TypeVar("NumberT", int, float)

AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Set by torchrun: whether the store is that of its agent."""
TIMEOUT = timedelta(hours=2)  # the first process prepares the data while the others wait


class ProcessGroup:
    """The processes of a run and the rank of this one, read from torchrun's environment."""

    def __init__(self, device: str | None = None) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.num_restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        has_cuda = torch.cuda.is_available() if device is None else device.startswith("cuda")
        self.device = torch.device("cuda", local_rank) if has_cuda else torch.device("cpu")
        if self.world_size == 1 and not (has_cuda and device is None):
            self.device = resolve_device(device)  # such as an Apple GPU
        if has_cuda:
            torch.cuda.set_device(self.device)
        self.owns_group = "RANK" in os.environ and not dist.is_initialized()
        if self.owns_group:
            self._init_process_group("nccl" if has_cuda else "gloo")

    def _init_process_group(self, backend: str) -> None:
        """Connect to the other processes, with a store prefix that is new at every restart.

        torchrun's agent keeps its store across restarts, and with it the addresses of processes
        that have died. Without a prefix of its own, a restarted process would connect to those.

        With TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, as several machines need it, there is a new store
        at every restart. A prefix would separate a machine that came back, and counts its restarts
        from 0, from the others.
        """
        store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
        if os.environ.get(AGENT_STORE) == str(True):
            store = PrefixStore(f"attempt {self.num_restarts} of {world_size}", store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=world_size, timeout=TIMEOUT
        )

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def single(self) -> ProcessGroup:
        """Return a group of this process alone, for work that it does by itself."""
        alone = object.__new__(ProcessGroup)
        alone.rank, alone.world_size, alone.device, alone.owns_group = 0, 1, self.device, False
        return alone

    def close(self) -> None:
        """Destroy the process group.

        After an error its traceback still refers to the model. A DDP wrapper that is freed after
        its group ends the threads of gloo itself and can wait for them forever.
        """
        if self.owns_group and dist.is_initialized():
            if self.world_size > 1:
                clear_frames(sys.exception())
            dist.destroy_process_group()

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            dist.barrier()

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.world_size > 1:
            dist.all_reduce(values)
        return values

    def any_true(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""
        if self.world_size == 1:
            return flag
        return bool(self.all_reduce_sum(torch.tensor(float(flag), device=self.device)) > 0)

    def run_on_main(self, work: Callable[[], ResultT]) -> ResultT | None:
        """Run a function in the first process; the others wait, and raise if it fails."""
        failure: AttendoError | OSError | None = None
        result = None
        if self.is_main:
            try:
                result = work()
            except (AttendoError, OSError) as error:
                failure = error
        if self.any_true(failure is not None):
            raise failure or AttendoError("the first process failed; see its error message")
        return result

    def broadcast(self, number: NumberT) -> NumberT:
        """Return the number of the first process in every process."""
        if self.world_size == 1:
            return number
        contribution = torch.tensor(
            number if self.is_main else 0, dtype=torch.float64, device=self.device
        )
        return type(number)(self.all_reduce_sum(contribution).item())

    def wrap(self, model: nn.Module, *, fsdp: bool) -> nn.Module:
        """Return a model that trains on all processes: sharded (FSDP) or replicated (DDP)."""
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
        """Return the mesh of the sharded weights, over a process group of its own.

        torch caches every mesh, and with it the process group and its threads, until Python exits.
        A gloo thread that still frees the last exchanged tensor then aborts the process ("terminate
        called without an active exception"). The group that is used until the end must therefore
        be one that `close` can destroy.
        """
        return DeviceMesh.from_group(dist.new_group(), self.device.type)


def clear_frames(error: BaseException | None) -> None:
    """Free the local variables of the functions that an error has left, and of its causes."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def no_sync(model: nn.Module, *, enabled: bool) -> AbstractContextManager[Any]:
    """Return a context that skips the gradient exchange, for all micro-batches but the last."""
    inner = getattr(model, "_orig_mod", model)  # unwraps `torch.compile`
    if isinstance(inner, DistributedDataParallel) and enabled:
        return inner.no_sync()
    for module in inner.modules():
        if isinstance(module, FSDPModule):  # the outermost one, which passes it on
            module.set_requires_gradient_sync(not enabled)
            break
    return nullcontext()


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model without its DDP and `torch.compile` wrappers."""
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    original: nn.Module = getattr(inner, "_orig_mod", inner)
    return original


def reshard(model: nn.Module) -> None:
    """Shard the weights again after a pass without backward: the optimizer needs the shards."""
    if isinstance(model, FSDPModule):
        model.reshard()


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the whole of a tensor that may be sharded (a collective operation)."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def copy_sharded(target: Tensor, source: Tensor) -> None:
    """Copy a whole tensor into one that may be sharded."""
    with torch.no_grad():
        if isinstance(target, DTensor):
            distributed = distribute_tensor(
                source.to(target.device), target.device_mesh, target.placements
            )
            target.to_local().copy_(distributed.to_local())
        else:
            target.copy_(source)
