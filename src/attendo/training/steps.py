"""One optimiser step and one validation pass, as functions of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.data.batching import Batch
from attendo.data.tokenizer import PAD_ID
from attendo.training.distributed import hold_gradients
from attendo.training.loss import disagreement, score, smoothed_loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor, nn

    from attendo.training.distributed import Processes


class Validation(NamedTuple):
    """What teacher forcing tells of dev."""

    loss: float
    """Log loss a token, without smoothing."""
    accuracy: float

    @property
    def perplexity(self) -> float:
        """Give e^loss: among how many tokens the model hesitates."""
        return float(torch.tensor(self.loss, dtype=torch.float64).exp())


def accumulate_gradients(
    model: nn.Module,
    pieces: Sequence[Batch],
    *,
    num_tokens: int,
    smoothing: float,
    consistency: float = 0.0,
    precision: torch.dtype,
    processes: Processes,
) -> Tensor:
    """Run forward and backward over the pieces of this process; give the sum of their losses.

    `num_tokens` counts the whole batch, over all processes, so that pieces add up to the mean. With
    `consistency` every pair is read twice, and what the two passes disagree in is added.
    """
    total = torch.zeros((), device=processes.device)
    for number, piece in enumerate(pieces):
        batch = piece.to(processes.device)
        with hold_gradients(model, until_last=number < len(pieces) - 1):
            with autocast(processes.device, precision):
                if consistency:
                    twice = Batch(*(torch.cat([tensor, tensor]) for tensor in batch))
                    logits = model(twice.src_ids, twice.tgt_ids)
                    loss = smoothed_loss(logits, twice.labels, smoothing=smoothing) / 2
                    goal = loss + consistency * disagreement(logits, batch.labels)
                else:
                    logits = model(batch.src_ids, batch.tgt_ids)
                    goal = loss = smoothed_loss(logits, batch.labels, smoothing=smoothing)
            # Processes average their gradients; their number takes the sum back.
            (goal * (processes.count / num_tokens)).backward()
        total += loss.detach()
    return total


@torch.no_grad()
def validate(
    model: nn.Module, batches: Iterable[Batch], *, precision: torch.dtype, processes: Processes
) -> Validation:
    """Score dev by teacher forcing, each process its part."""
    was_training = model.training
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
    """Compute in bfloat16 where that is asked for; weights stay in float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == torch.bfloat16)


def choose_precision(wanted: str, device: torch.device) -> torch.dtype:
    """Compute in bfloat16 where it is faster: on GPUs that have it."""
    has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if wanted == "bfloat16" or (wanted == "auto" and has_bfloat16):
        return torch.bfloat16
    return torch.float32


def silence(batch: Batch) -> Batch:
    """Give a piece of one row that teaches nothing: for a process that got no row of its own."""
    row = Batch(*(tensor[:1] for tensor in batch))
    return row._replace(labels=torch.full_like(row.labels, PAD_ID))
