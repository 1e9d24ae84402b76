"""The training loop: batches in, checkpoints out, bit-identical however often it was interrupted.

All random numbers are functions of (seed, epoch) or (seed, step, process), so a checkpoint needs no
random state: a resumed run gets the same numbers.
"""

from __future__ import annotations

import math
import time
from signal import SIGTERM
from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.core.errors import AttendoError
from attendo.core.message import join_messages, message
from attendo.core.run_folder import RunFolder
from attendo.core.seeding import derive_seed
from attendo.data.batching import shard_rows, split_micro_batches
from attendo.data.packed_batching import PackedBatchPlan
from attendo.kernels.dispatch import allow_inductor_fallback
from attendo.training.averaging import Ema
from attendo.training.checkpoint import Checkpoint, CheckpointStore
from attendo.training.cuda_graph import CapturedTrainStep
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.optimizer import get_state, make_optimizer, set_state
from attendo.training.prefetch import prefetch
from attendo.training.progress import NullReporter
from attendo.training.run_log import RunLog, ThroughputMeter
from attendo.training.schedule import learning_rate
from attendo.training.signals import SignalHandler, TrainingInterrupted
from attendo.training.train_step import (
    accumulate_gradients,
    empty_micro_batch,
    forward_backward,
    resolve_precision,
    validate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor, nn

    from attendo.data.batching import Batch, BatchPlan, Rows
    from attendo.data.packed_batching import PackedBatch
    from attendo.training.config import TrainConfig
    from attendo.training.progress import Reporter
    from attendo.training.train_step import ValidationResult

    MicroBatch = Batch | PackedBatch

COMPILE_SECONDS = 30.0
"""Duration of `torch.compile`."""
SECONDS_SAVED_PER_STEP, SECONDS_SAVED_PER_MULTIPLY = 1e-3, 2e-14
"""Seconds that a compiled model saves per step, and per multiplication of a weight with a token, on
an H200 (docs/log.md)."""


class Trainer:
    """Trains a model on planned batches and keeps its progress in a run folder.

    Args:
        model: the copy of this process, on any device.
        plan: the training batches (`attendo.data.batching.BatchPlan`).
        config: how to train.
        directory: the run folder, for checkpoints, log and TensorBoard.
        dev: the batches of dev, for validation.
        after_validation: called with the model and the step; returns more metrics, such as BLEU.
        processes: by default read from torchrun's environment.
        reporter: receives the progress.

    """

    def __init__(
        self,
        model: nn.Module,
        plan: BatchPlan,
        config: TrainConfig,
        directory: Path,
        *,
        dev: BatchPlan | None = None,
        after_validation: Callable[[nn.Module, int], dict[str, float]] | None = None,
        processes: ProcessGroup | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.config = config
        self.plan = plan
        self.dev = dev
        self.directory = directory
        self.after_validation = after_validation
        self.processes = processes or ProcessGroup()
        self.reporter = reporter or NullReporter()
        self.num_micro_batches = config.accumulation_steps
        self.captured_step: CapturedTrainStep | None = None
        device = self.processes.device
        self.model = model.to(device)
        self.d_model = int(getattr(model, "config").d_model)  # noqa: B009 - any model's config
        packed_width = self.d_model if isinstance(plan, PackedBatchPlan) else 0
        self.precision = resolve_precision(config.precision, device, packed_width=packed_width)
        self.loss_module = self._make_loss_module()
        self.optimizer = make_optimizer(self.model, config)
        self.ema = Ema(self.model, config.ema_decay) if config.ema_decay else None
        self.store = CheckpointStore(
            RunFolder(directory).checkpoints_dir,
            keep_last=config.keep_last,
            keep_best=config.keep_best,
        )
        self.step = self.epoch = self.batch = self.validations_without_gain = self.tokens = 0
        self.best_loss: float | None = None
        self.dev_loss: float | None = None
        self.signal_handler = SignalHandler()
        self.log: RunLog | None = None
        self._resume()

    def _make_loss_module(self) -> nn.Module:
        config = self.config
        unwrapped = LossModule(
            self.model, smoothing=config.label_smoothing, rdrop_weight=config.rdrop_weight
        )
        if config.fsdp:
            self.processes.wrap(self.model, fsdp=True)  # in place
            loss_module: nn.Module = unwrapped
        else:
            loss_module = self.processes.wrap(unwrapped, fsdp=False)
        if self._should_compile():
            allow_inductor_fallback()
            loss_module = torch.compile(loss_module, dynamic=not self.has_fixed_shapes)  # type: ignore[assignment]
        if self.has_fixed_shapes and config.cuda_graph:

            def run(batch: PackedBatch, weight: Tensor) -> Tensor:
                return forward_backward(loss_module, batch, weight, precision=self.precision)

            self.captured_step = CapturedTrainStep(run, list(self.model.parameters()))
        return loss_module

    def _should_compile(self) -> bool:
        """Return the setting, or by default whether a run on a GPU is long enough to gain time."""
        config = self.config
        if config.compile is not None:
            return config.compile
        num_multiplies = config.batch_tokens * sum(
            weight.numel() for weight in self.model.parameters()
        )
        seconds_saved = config.max_steps * (
            SECONDS_SAVED_PER_STEP + SECONDS_SAVED_PER_MULTIPLY * num_multiplies
        )
        return self.processes.device.type == "cuda" and seconds_saved > COMPILE_SECONDS

    @property
    def has_fixed_shapes(self) -> bool:
        """Whether all micro-batches have one shape."""
        return (
            isinstance(self.plan, PackedBatchPlan)
            and self.plan.has_fixed_shape
            and self.num_micro_batches == 1
        )

    # -- the loop

    def run(self) -> None:
        """Train until `max_steps`, until patience is exhausted, or until interrupted."""
        self.log = RunLog(self.directory, step=self.step) if self.processes.is_main else None
        self._log("resumed" if self.step else "started", epoch=self.epoch)
        self.model.train()
        try:
            with self.signal_handler.install(self.reporter.message):
                self._loop()
        finally:
            if self.log is not None:
                self.log.close()

    def _loop(self) -> None:
        config = self.config
        meter = ThroughputMeter()
        for rows, micro_batches in self._batches():
            meter.add(*self._train_step(rows, micro_batches))
            is_last = self.step >= config.max_steps
            if self.step % config.log_every == 0 or is_last:
                self._log_progress(meter)
                meter = ThroughputMeter()
            start = time.perf_counter()
            if self.step % config.validation_interval == 0 or is_last:
                self._run_validation()
            is_over = is_last or self._is_patience_exhausted()
            is_regular = self.step % config.save_every == 0 or is_over
            if is_regular:
                self._save(is_scheduled=True)
            meter.exclude(time.perf_counter() - start)
            if self.processes.any_true(self.signal_handler.signum is not None):
                if not is_regular:
                    self._save(is_scheduled=False)
                self._log("interrupted")
                raise TrainingInterrupted(self.step, self.signal_handler.signum or SIGTERM)
            if is_over:
                break

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.step >= self.config.max_steps or self._is_patience_exhausted()

    def _batches(self) -> Iterator[tuple[Rows, list[MicroBatch]]]:
        """Yield the rows of each remaining batch, and the micro-batches of this process."""
        while not self.is_finished:
            epoch = self.plan.epoch(self.epoch)
            for rows, micro_batches in prefetch(epoch[self.batch :], self._read_batch):
                self.batch += 1
                if len(micro_batches) < min(self.num_micro_batches, len(rows)):
                    _, micro_batches = self._read_batch(
                        rows
                    )  # prefetched before micro-batches were made smaller
                yield rows, micro_batches
            self.epoch, self.batch = self.epoch + 1, 0

    def _read_batch(self, rows: Rows) -> tuple[Rows, list[MicroBatch]]:
        """Split the part of this process into micro-batches; every process gets the same number."""
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
        return rows, micro_batches

    def _read_micro_batch(self, rows: Rows) -> MicroBatch:
        if isinstance(self.plan, PackedBatchPlan):
            return self.plan.read_packed(rows, is_micro_batch=not self.has_fixed_shapes)
        return self.plan.read(rows)

    def _train_step(self, rows: Rows, micro_batches: list[MicroBatch]) -> tuple[Tensor, int]:
        """Take one optimizer step on a batch, in smaller micro-batches if memory runs out."""
        num_tokens = self.plan.count_labels(rows)
        while True:
            torch.manual_seed(derive_seed(self.config.seed, "step", self.step, self.processes.rank))
            try:
                loss = self._compute_gradients(micro_batches, num_tokens)
                break
            except (torch.OutOfMemoryError, RuntimeError) as error:
                self._reduce_micro_batch(error, rows)
            # Outside the handler, so that the tensors of the failed step are freed.
            torch.cuda.empty_cache()
            _, micro_batches = self._read_batch(rows)
        self._optimizer_step()
        self.step += 1
        self.dev_loss = None  # it belonged to the weights before this step
        self.tokens += num_tokens
        if self.ema is not None:
            self.ema.update(self.model, self.step)
        return self.processes.all_reduce_sum(loss) / num_tokens, num_tokens

    def _compute_gradients(self, micro_batches: list[MicroBatch], num_tokens: int) -> Tensor:
        """Replace the gradients by those of a batch; return its summed loss."""
        if self.captured_step is not None and self.has_fixed_shapes:
            # A resumed run may have smaller micro-batches than the capture.
            (batch,) = micro_batches
            return self.captured_step(cast("PackedBatch", batch), 1.0 / num_tokens)
        self.optimizer.zero_grad()
        return accumulate_gradients(
            self.loss_module,
            micro_batches,
            num_tokens=num_tokens,
            precision=self.precision,
            processes=self.processes,
        )

    def _optimizer_step(self) -> None:
        if self.config.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        lr = learning_rate(self.step + 1, self.config, d_model=self.d_model)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()

    def _reduce_micro_batch(self, error: RuntimeError, rows: Rows) -> None:
        """Halve the micro-batches after an out-of-memory error; raise any other error."""
        is_out_of_memory = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(
            error
        )
        if (
            not is_out_of_memory
            or self.processes.world_size > 1
            or self.num_micro_batches >= len(rows)
        ):
            if is_out_of_memory:
                raise AttendoError(
                    message(
                        "out of memory at step {step} with {count} micro-batches per batch",
                        step=self.step,
                        count=self.num_micro_batches,
                    ),
                    hint="increase train.accumulation_steps or decrease train.batch_tokens",
                ) from error
            raise error
        self.num_micro_batches *= 2
        self.captured_step = None
        text = message(
            "out of memory: batches are now split into {count} micro-batches",
            count=self.num_micro_batches,
        )
        self.reporter.message(text)

    # -- logging and validation

    def _log_progress(self, meter: ThroughputMeter) -> None:
        loss = meter.loss
        if not math.isfinite(loss):
            self._raise_diverged()
        lr = learning_rate(self.step, self.config, d_model=self.d_model)
        speed = meter.tokens_per_second
        self._log("train", loss=loss, rate=lr, tokens_per_second=speed, epoch=self.epoch)
        metrics = {"loss": f"{loss:.3f}", "tok/s": f"{speed:,.0f}", "lr": f"{lr:.2e}"}
        self.reporter.step(self.step, self.config.max_steps, metrics)

    def _run_validation(self) -> None:
        if self.dev is None:
            return
        validation = self.validate()
        if not math.isfinite(validation.loss):
            self._raise_diverged()
        extra: dict[str, float] = {}
        task_metrics = self.after_validation
        if task_metrics and not self.config.fsdp:
            self.processes.run_on_main(lambda: extra.update(task_metrics(self.model, self.step)))
        self.dev_loss = validation.loss
        is_better = self.best_loss is None or validation.loss < self.best_loss
        self.best_loss = validation.loss if is_better else self.best_loss
        self.validations_without_gain = 0 if is_better else self.validations_without_gain + 1
        metrics = {**validation.metrics, **extra}
        self._log("validation", **metrics)
        text = join_messages(
            "  ",
            [
                message("{name} {value:.3f}", name=message(name), value=value)
                for name, value in metrics.items()
            ],
        )
        self.reporter.message(message("step {step}: dev {detail}", step=self.step, detail=text))

    def validate(self) -> ValidationResult:
        """Score dev with the current weights."""
        assert self.dev is not None  # noqa: S101 - callers have checked
        batches = self.dev.epoch(0)
        rank, count = self.processes.rank, self.processes.world_size
        rounds = math.ceil(len(batches) / count)
        indices = [number * count + rank for number in range(rounds)]
        parts = (
            self.dev.read(batches[index])
            if index < len(batches)
            else empty_micro_batch(self.dev.read(batches[0]))
            for index in indices
        )
        return validate(self.model, parts, precision=self.precision, processes=self.processes)

    def _is_patience_exhausted(self) -> bool:
        return (
            self.config.patience is not None
            and self.validations_without_gain >= self.config.patience
        )

    def _log(self, event: str, **values: Any) -> None:
        if self.log is not None:
            self.log.write(event, self.step, **values)

    # -- checkpoints

    def _save(self, *, is_scheduled: bool) -> None:
        finite = all(bool(p.isfinite().all()) for p in self.model.parameters())
        if not finite:
            self._raise_diverged()
        state = get_state(self.model, self.optimizer, self.ema)
        progress = {
            "step": self.step,
            "epoch": self.epoch,
            "batch": self.batch,
            "tokens": self.tokens,
            "num_pieces": self.num_micro_batches,
            "num_worse": self.validations_without_gain,
            "best_loss": self.best_loss,
            "dev_loss": self.dev_loss,
            "is_regular": is_scheduled,
        }
        self.processes.run_on_main(lambda: self.store.save(self.step, Checkpoint(*state, progress)))

    def _resume(self) -> None:
        # The first process chooses, so that all resume from the same step.
        checkpoint = self.store.load_latest() if self.processes.is_main else None
        step = self.processes.broadcast_int(checkpoint.progress["step"] if checkpoint else 0)
        if step and not self.processes.is_main:
            checkpoint = self.store.load(step)
        if checkpoint is None:
            return
        set_state(self.model, self.optimizer, self.ema, checkpoint.weights, checkpoint.optimizer)
        progress = checkpoint.progress
        for name in ("step", "epoch", "batch", "tokens", "best_loss", "dev_loss"):
            setattr(self, name, progress[name])
        self.validations_without_gain = progress["num_worse"]
        self.num_micro_batches = max(self.num_micro_batches, progress["num_pieces"])

    def _raise_diverged(self) -> None:
        steps = self.store.steps()
        last = (
            f"the last good checkpoint is step_{steps[-1]}" if steps else "there is no checkpoint"
        )
        self._log("diverged")
        raise AttendoError(
            f"the loss became NaN or infinite at step {self.step}; {last}",
            hint="start a new run with a lower train.lr_scale or train.peak_lr, a higher "
            "train.warmup_steps, train.clip_norm=1 or model.norm=pre",
        )
