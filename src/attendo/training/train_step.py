"""Gradients of one training step, and one validation pass, as functions of their arguments."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import torch

from attendo.core.device import accurate_dtype, to_accurate
from attendo.data.batching import Batch
from attendo.text.tokenizer import PAD_ID
from attendo.training.distributed import no_sync
from attendo.training.losses import objective_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor, nn

    from attendo.data.packed_batching import PackedBatch
    from attendo.training.config import TrainConfig
    from attendo.training.distributed import ProcessGroup
    from attendo.training.loss_module import BatchLoss

MIN_WIDTH_FOR_BF16 = 128
"""The smallest d_model for which bfloat16 is faster on a CPU (docs/log.md)."""
COMPILE_SECONDS = 30.0
"""Duration of `torch.compile`."""
SECONDS_SAVED_PER_STEP, SECONDS_SAVED_PER_MULTIPLY = 1e-3, 2e-14
"""Seconds that a compiled model saves per step, and per multiplication of a weight with a token, on
an H200 (docs/log.md)."""
MicroBatchT = TypeVar("MicroBatchT", bound="Batch | PackedBatch")


class ValidationResult(NamedTuple):
    """Teacher-forced scores of dev."""

    loss: float
    """Log loss per token, without smoothing; squared error for numbers."""
    accuracy: float
    """Share of the tokens that have the highest probability; NaN for numbers."""

    @property
    def perplexity(self) -> float:
        """e^loss."""
        return float(torch.tensor(self.loss, dtype=torch.float64).exp())

    @property
    def metrics(self) -> dict[str, float]:
        """The scores that are logged, by name."""
        metrics = {"loss": self.loss}
        if isnan(self.accuracy):
            return metrics
        return {**metrics, "perplexity": self.perplexity, "accuracy": self.accuracy}


def accumulate_gradients(
    loss_module: nn.Module,
    micro_batches: Sequence[Batch | PackedBatch],
    *,
    num_tokens: int,
    precision: torch.dtype,
    processes: ProcessGroup,
) -> Tensor:
    """Run forward and backward over the micro-batches of this process; return their summed loss.

    `loss_module` is a `LossModule`, which may be compiled or wrapped by DDP. `num_tokens` counts
    the whole batch, over all processes, so that the gradients add up to those of the mean.
    """
    total = torch.zeros((), device=processes.device)
    for index, micro_batch in enumerate(micro_batches):
        batch = micro_batch.to(processes.device)
        with no_sync(loss_module, enabled=index < len(micro_batches) - 1):
            # DDP averages the gradients over the processes; world_size turns that into a sum.
            weight = processes.world_size / num_tokens
            total += forward_backward(loss_module, batch, weight, precision=precision)
    return total


def forward_backward(
    loss_module: nn.Module,
    batch: Batch | PackedBatch,
    weight: float | Tensor,
    *,
    precision: torch.dtype,
) -> Tensor:
    """Run forward and backward over one micro-batch; return its loss."""
    with autocast(batch.labels.device, precision):
        batch_loss: BatchLoss = loss_module(batch)
    (batch_loss.objective * weight).backward()
    return batch_loss.loss.detach()


@torch.no_grad()
def validate(
    model: nn.Module, batches: Iterable[Batch], *, precision: torch.dtype, processes: ProcessGroup
) -> ValidationResult:
    """Score dev by teacher forcing; each process scores its part."""
    was_training, score = model.training, objective_for(model).score
    model.eval()
    sums = torch.zeros(3, dtype=accurate_dtype(processes.device), device=processes.device)
    for batch in batches:
        device_batch = batch.to(processes.device)
        with autocast(processes.device, precision):
            logits = model(device_batch.src_ids, device_batch.tgt_ids)
        sums += torch.stack([to_accurate(part) for part in score(logits, device_batch.labels)])
    processes.all_reduce_sum(sums)
    model.train(was_training)
    log_loss, num_correct, num_tokens = sums.tolist()
    return ValidationResult(log_loss / num_tokens, num_correct / num_tokens)


def autocast(device: torch.device, precision: torch.dtype) -> torch.autocast:
    """Return a context that computes in bfloat16 if `precision` says so; weights stay in float32.

    Casts are not cached: a captured CUDA graph must not depend on a cached tensor.
    """
    is_low = precision == torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=is_low, cache_enabled=False)


def resolve_precision(
    requested: str, device: torch.device, *, packed_width: int = 0
) -> torch.dtype:
    """Return the type to compute in; "auto" chooses bfloat16 where it is faster.

    That is on GPUs with native support, and on CPUs with bfloat16 matrix multiplication for packed
    batches and models of at least `MIN_WIDTH_FOR_BF16` (`packed_width` is 0 for padded batches).
    """
    if requested != "auto":
        return torch.bfloat16 if requested == "bfloat16" else torch.float32
    if device.type == "cuda":
        supports_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
        has_bf16_matmul = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
        supports_bf16 = has_bf16_matmul and packed_width >= MIN_WIDTH_FOR_BF16
    return torch.bfloat16 if supports_bf16 else torch.float32


def should_compile(model: nn.Module, config: TrainConfig, device: torch.device) -> bool:
    """Return the setting, or by default whether a run on a GPU is long enough to gain time."""
    if config.compile is not None:
        return config.compile
    num_multiplies = config.batch_tokens * sum(weight.numel() for weight in model.parameters())
    seconds_saved = config.max_steps * (
        SECONDS_SAVED_PER_STEP + SECONDS_SAVED_PER_MULTIPLY * num_multiplies
    )
    return device.type == "cuda" and seconds_saved > COMPILE_SECONDS


def empty_micro_batch(batch: MicroBatchT) -> MicroBatchT:
    """Return a one-row micro-batch without labels, for a process that received no rows."""
    row = Batch(*(tensor[:1] for tensor in batch)) if isinstance(batch, Batch) else batch
    ignored_label = nan if row.labels.is_floating_point() else PAD_ID
    return cast("MicroBatchT", row._replace(labels=torch.full_like(row.labels, ignored_label)))
