"""One optimiser step and one validation pass, as functions of their arguments."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import torch

from attendo.data.batching import Batch
from attendo.data.tokenizer import PAD_ID
from attendo.training.distributed import hold_gradients
from attendo.training.loss import find_aim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor, nn

    from attendo.data.packed_batching import PackedBatch
    from attendo.training.distributed import Processes
    from attendo.training.teaching import Taught

WORTH_HALVES = 128
"""From this d_model on a CPU gains by bfloat16 (docs/log.md)."""
PieceT = TypeVar("PieceT", bound="Batch | PackedBatch")


class Validation(NamedTuple):
    """What teacher forcing tells of dev."""

    loss: float
    """Log loss a token, without smoothing; squared error where numbers are said."""
    accuracy: float
    """Share of the tokens that would have been chosen; NaN where numbers are said."""

    @property
    def perplexity(self) -> float:
        """Give e^loss: among how many tokens the model hesitates."""
        return float(torch.tensor(self.loss, dtype=torch.float64).exp())

    @property
    def figures(self) -> dict[str, float]:
        """Name what is worth telling."""
        told = {"loss": self.loss}
        if isnan(self.accuracy):
            return told
        return {**told, "perplexity": self.perplexity, "accuracy": self.accuracy}


def accumulate_gradients(
    teacher: nn.Module,
    pieces: Sequence[Batch | PackedBatch],
    *,
    num_tokens: int,
    precision: torch.dtype,
    processes: Processes,
) -> Tensor:
    """Run forward and backward over the pieces of this process; give the sum of their losses.

    `teacher` is a `Teacher`, maybe compiled or on many processes. `num_tokens` counts the whole
    batch, over all of them, so that pieces add up to the mean.
    """
    total = torch.zeros((), device=processes.device)
    for number, piece in enumerate(pieces):
        batch = piece.to(processes.device)
        with hold_gradients(teacher, until_last=number < len(pieces) - 1):
            # Processes average their gradients; their number takes the sum back.
            weight = processes.count / num_tokens
            total += teach(teacher, batch, weight, precision=precision)
    return total


def teach(
    teacher: nn.Module,
    batch: Batch | PackedBatch,
    weight: float | Tensor,
    *,
    precision: torch.dtype,
) -> Tensor:
    """Run forward and backward over one piece; give its loss."""
    with autocast(batch.labels.device, precision):
        taught: Taught = teacher(batch)
    (taught.goal * weight).backward()
    return taught.loss.detach()


@torch.no_grad()
def validate(
    model: nn.Module, batches: Iterable[Batch], *, precision: torch.dtype, processes: Processes
) -> Validation:
    """Score dev by teacher forcing, each process its part."""
    was_training, score = model.training, find_aim(model).score
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64, device=processes.device)
    for batch in batches:
        here = batch.to(processes.device)
        with autocast(processes.device, precision):
            logits = model(here.src_ids, here.tgt_ids)
        sums += torch.stack([part.double() for part in score(logits, here.labels)])
    processes.add_up(sums)
    model.train(was_training)
    log_loss, num_right, num_tokens = sums.tolist()
    return Validation(log_loss / num_tokens, num_right / num_tokens)


def autocast(device: torch.device, precision: torch.dtype) -> torch.autocast:
    """Compute in bfloat16 where that is asked for; weights stay in float32.

    Nothing of a step is kept for the next, as a recorded pass (`graphs`) must not find it.
    """
    is_low = precision == torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=is_low, cache_enabled=False)


def choose_precision(wanted: str, device: torch.device, *, packed_width: int = 0) -> torch.dtype:
    """Compute in bfloat16 where it is faster.

    That is on GPUs that have it in hardware, and on CPUs that multiply it for models of some width
    (`packed_width`, 0 for batches that are padded) that read packed batches.
    """
    if wanted != "auto":
        return torch.bfloat16 if wanted == "bfloat16" else torch.float32
    if device.type == "cuda":
        has_it = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        can = torch.cpu.get_capabilities() if device.type == "cpu" else {}
        multiplies = bool(can.get("avx512_bf16") or can.get("amx_bf16"))
        has_it = multiplies and packed_width >= WORTH_HALVES
    return torch.bfloat16 if has_it else torch.float32


def silence(batch: PieceT) -> PieceT:
    """Give a piece, of one row, that teaches nothing: for a process that got none of its own."""
    row = Batch(*(tensor[:1] for tensor in batch)) if isinstance(batch, Batch) else batch
    blank = nan if row.labels.is_floating_point() else PAD_ID
    return cast("PieceT", row._replace(labels=torch.full_like(row.labels, blank)))
