"""The training loop: batches in, checkpoints out, bit-identical however often it was interrupted.

All random numbers are functions of (seed, epoch) or (seed, step, process), so a checkpoint needs no
random state: a resumed run gets the same numbers.
"""

from __future__ import annotations

import math
import time
from signal import SIGTERM
from typing import TYPE_CHECKING, cast

import torch

from attendo.core.device import empty_device_cache
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.message import message
from attendo.core.run_folder import RunFolder
from attendo.core.seeding import derive_seed
from attendo.data.packed_batching import PackedBatchPlan
from attendo.kernels.dispatch import allow_inductor_fallback
from attendo.training.averaging import Ema
from attendo.training.batch_reader import BatchReader, read_dev_shard
from attendo.training.checkpoint import Checkpoint, CheckpointStore
from attendo.training.cuda_graph import CapturedTrainStep
from attendo.training.distributed import ProcessGroup
from attendo.training.early_stopping import EarlyStopping
from attendo.training.loss_module import LossModule
from attendo.training.monitor import (
    MAX_TIMED_SECONDS,
    NUM_TIMED_STEPS,
    NUM_WARMUP_STEPS,
    StepTime,
    TrainingMonitor,
    synchronized_time,
)
from attendo.training.optimizer import get_state, make_optimizer, set_state
from attendo.training.prefetch import prefetch
from attendo.training.progress import NullReporter
from attendo.training.schedule import learning_rate
from attendo.training.signals import SignalHandler, TrainingInterrupted
from attendo.training.train_step import (
    accumulate_gradients,
    forward_backward,
    resolve_precision,
    should_compile,
    validate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor, nn

    from attendo.data.batching import BatchPlan, Rows
    from attendo.data.packed_batching import PackedBatch
    from attendo.training.batch_reader import MicroBatch
    from attendo.training.config import TrainConfig
    from attendo.training.progress import Reporter
    from attendo.training.train_step import ValidationResult


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
        write_model_files: writes the config and the tokenizer into the folder of a checkpoint, so
            that it can be loaded like a finished model.
        after_save: called in the first process after each checkpoint.

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
        write_model_files: Callable[[Path], None] | None = None,
        after_save: Callable[[], None] | None = None,
    ) -> None:
        self.config = config
        self.plan = plan
        self.dev = dev
        self.directory = directory
        self.after_validation = after_validation
        self.after_save = after_save
        self.processes = processes or ProcessGroup()
        self.reporter = reporter or NullReporter()
        self.batch_reader = BatchReader(
            plan, self.processes, num_micro_batches=config.accumulation_steps
        )
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
            keep_best=config.num_best_kept,
            write_model_files=write_model_files,
        )
        self.step = self.epoch = self.batch = self.tokens = 0
        self.seconds = 0.0
        """How long the run has trained, if it has a time limit."""
        self._save_time = time.monotonic()
        self.early_stopping = EarlyStopping.from_config(config)
        self.monitor = TrainingMonitor(
            config, self.early_stopping, self.reporter, d_model=self.d_model, device=device
        )
        self.signal_handler = SignalHandler()
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
        has_fixed_shapes = self.batch_reader.has_fixed_shapes
        if should_compile(self.model, config, self.processes.device):
            allow_inductor_fallback()
            loss_module = torch.compile(loss_module, dynamic=not has_fixed_shapes)  # type: ignore[assignment]
        if has_fixed_shapes and config.cuda_graph:

            def run(batch: PackedBatch, weight: Tensor) -> Tensor:
                return forward_backward(loss_module, batch, weight, precision=self.precision)

            self.captured_step = CapturedTrainStep(run, list(self.model.parameters()))
        return loss_module

    def measure_step(self) -> StepTime:
        """Train for a few steps that are not saved; return the time of one of them.

        These are ten steps after some for warming up, or those that began in time: a large model on
        a CPU may need a minute for a single one.
        """
        device = self.processes.device
        self.model.train()
        begin = start = synchronized_time(device)
        count = 0
        for rows, micro_batches in self._batches():
            self._train_step(rows, micro_batches)
            count += 1
            now = synchronized_time(device)
            if count == NUM_WARMUP_STEPS:
                start = now
            is_late = bool(self.processes.broadcast(int(now - begin > MAX_TIMED_SECONDS)))
            if is_late or count == NUM_WARMUP_STEPS + NUM_TIMED_STEPS:
                break
        if count <= NUM_WARMUP_STEPS:
            return StepTime((now - begin) / count, count)
        num_timed = count - NUM_WARMUP_STEPS
        return StepTime((now - start) / num_timed, num_timed)

    # -- the loop

    def run(self) -> None:
        """Train until `max_steps`, until patience is exhausted, or until interrupted."""
        if self.processes.is_main:
            self.monitor.open_log(self.directory, self.step)
        self.monitor.write("resumed" if self.step else "started", self.step, epoch=self.epoch)
        self.model.train()
        try:
            with self.signal_handler.install(self.reporter.message):
                self._loop()
        finally:
            self.monitor.close_log()

    def _loop(self) -> None:
        config, monitor = self.config, self.monitor
        started = time.perf_counter() - self.seconds
        self._save_time = time.monotonic()
        monitor.start(self.step)
        for rows, micro_batches in self._batches():
            loss, num_tokens = self._train_step(rows, micro_batches)
            self.seconds = time.perf_counter() - started if config.max_minutes else 0.0
            is_last = self.step >= config.max_steps or self._is_time_over()
            monitor.add_step(self.step, loss, num_tokens)
            is_logged = self.step % config.log_every == 0 or is_last
            if is_logged and not math.isfinite(monitor.log_progress(self.step, self.epoch)):
                self._raise_diverged()
            start = time.perf_counter()
            if self.step % config.validation_interval == 0 or is_last:
                self._run_validation()
            is_over = is_last or self.early_stopping.is_exhausted
            is_regular = self.step % config.save_every == 0 or is_over
            if is_regular:
                self._save(is_scheduled=True)
            is_interrupted = self.processes.any_true(self.signal_handler.signum is not None)
            if not is_regular and (is_interrupted or self._is_save_due()):
                self._save(is_scheduled=False)
            monitor.meter.exclude(time.perf_counter() - start)
            if is_interrupted:
                monitor.write("interrupted", self.step)
                raise TrainingInterrupted(self.step, self.signal_handler.signum or SIGTERM)
            if is_over:
                monitor.report_stop(self.step, self.stop_reason)
                break

    def _is_save_due(self) -> bool:
        """Return whether the last checkpoint is too old, by the clock of the first process."""
        limit = self.config.save_minutes
        is_due = limit is not None and time.monotonic() - self._save_time >= 60 * limit
        return limit is not None and self.processes.any_true(self.processes.is_main and is_due)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why training is over: "max_steps", "patience" or "max_minutes"; None if it is not."""
        if self.step >= self.config.max_steps:
            return "max_steps"
        if self.early_stopping.is_exhausted:
            return "patience"
        return "max_minutes" if self._is_time_over() else None

    def _is_time_over(self) -> bool:
        limit = self.config.max_minutes
        is_over = limit is not None and self.seconds >= 60 * limit
        return limit is not None and self.processes.any_true(is_over)

    def _batches(self) -> Iterator[tuple[Rows, list[MicroBatch]]]:
        """Yield the rows of each remaining batch, and the micro-batches of this process."""
        while not self.is_finished:
            epoch = self.plan.epoch(self.epoch)
            for rows, micro_batches in prefetch(epoch[self.batch :], self._read_with_rows):
                self.batch += 1
                if len(micro_batches) < min(self.batch_reader.num_micro_batches, len(rows)):
                    # They were prefetched before micro-batches were made smaller.
                    micro_batches = self.batch_reader.read(rows)
                yield rows, micro_batches
            self.epoch, self.batch = self.epoch + 1, 0

    def _read_with_rows(self, rows: Rows) -> tuple[Rows, list[MicroBatch]]:
        return rows, self.batch_reader.read(rows)

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
            empty_device_cache()
            micro_batches = self.batch_reader.read(rows)
        self._optimizer_step()
        self.step += 1
        self.early_stopping.forget_current()
        self.tokens += num_tokens
        if self.ema is not None:
            self.ema.update(self.model, self.step)
        return self.processes.all_reduce_sum(loss) / num_tokens, num_tokens

    def _compute_gradients(self, micro_batches: list[MicroBatch], num_tokens: int) -> Tensor:
        """Replace the gradients by those of a batch; return its summed loss."""
        if self.captured_step is not None and self.batch_reader.has_fixed_shapes:
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
            or self.batch_reader.num_micro_batches >= len(rows)
        ):
            if is_out_of_memory:
                raise AttendoError(
                    message(
                        "out of memory at step {step} with {count} micro-batches per batch",
                        step=self.step,
                        count=self.batch_reader.num_micro_batches,
                    ),
                    hint="increase train.accumulation_steps or decrease train.batch_tokens",
                ) from error
            raise error
        self.batch_reader.num_micro_batches *= 2
        self.captured_step = None
        text = message(
            "out of memory: batches are now split into {count} micro-batches",
            count=self.batch_reader.num_micro_batches,
        )
        self.reporter.message(text)

    # -- validation

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
        metrics = {**validation.metrics, **extra}
        self._update_best(validation.loss, metrics)
        self.monitor.report_validation(self.step, metrics)

    def _update_best(self, loss: float, metrics: dict[str, float]) -> None:
        """Compare a validation with the best one so far."""
        metric = self.config.early_stopping_metric
        if self.processes.is_main and metric != "loss" and metric not in metrics:
            raise ConfigError(
                message(
                    "train.early_stopping_metric = {metric} needs a translation task", metric=metric
                ),
                hint="use train.early_stopping_metric=loss",
            )
        # The first process alone computes the metrics of the task.
        score = -loss if metric == "loss" else self.processes.broadcast(metrics.get(metric, 0.0))
        self.early_stopping.update(self.step, loss, score)

    def validate(self) -> ValidationResult:
        """Score dev with the current weights."""
        assert self.dev is not None  # noqa: S101 - callers have checked
        parts = read_dev_shard(self.dev, self.processes)
        return validate(self.model, parts, precision=self.precision, processes=self.processes)

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
            "num_pieces": self.batch_reader.num_micro_batches,
            **self.early_stopping.to_progress(),
            "seconds": self.seconds,
            "is_regular": is_scheduled,
        }
        self.processes.run_on_main(lambda: self.store.save(self.step, Checkpoint(*state, progress)))
        if self.after_save is not None and self.processes.is_main:
            self.after_save()
        self._save_time = time.monotonic()

    def _resume(self) -> None:
        # The first process chooses, so that all resume from the same step.
        checkpoint = self.store.load_latest() if self.processes.is_main else None
        step = self.processes.broadcast(checkpoint.progress["step"] if checkpoint else 0)
        if step and not self.processes.is_main:
            checkpoint = self.store.load(step)
        if checkpoint is None:
            return
        set_state(self.model, self.optimizer, self.ema, checkpoint.weights, checkpoint.optimizer)
        progress = checkpoint.progress
        for name in ("step", "epoch", "batch", "tokens"):
            setattr(self, name, progress[name])
        self.seconds = progress.get("seconds", 0.0)
        self.early_stopping.restore(progress)
        reader = self.batch_reader
        reader.num_micro_batches = max(reader.num_micro_batches, progress["num_pieces"])

    def _raise_diverged(self) -> None:
        steps = self.store.steps()
        last = message("there is no checkpoint")
        if steps:
            last = message("the last good checkpoint is {name}", name=f"step_{steps[-1]}")
        self.monitor.write("diverged", self.step)
        raise AttendoError(
            message(
                "the loss became NaN or infinite at step {step}; {last}", step=self.step, last=last
            ),
            hint="start a new run with a lower train.lr_scale or train.peak_lr, a higher "
            "train.warmup_steps, train.clip_norm=1 or model.norm=pre",
        )
