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

from attendo.core.device import empty_device_cache, synchronize
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
from attendo.training.messages import (
    estimate_message,
    patience_message,
    stop_message,
    validation_message,
)
from attendo.training.optimizer import get_state, make_optimizer, set_state
from attendo.training.prefetch import prefetch
from attendo.training.progress import NullReporter
from attendo.training.run_log import RunLog, ThroughputMeter
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

EARLY_STEPS = (1, 2, 5, 10)
"""Steps that are shown before the first regular report, so that a slow start is visible."""
NUM_TIMED_STEPS, MIN_REPORTED_SECONDS = 10, 60
NUM_WARMUP_STEPS = 3
"""Steps that are slower than the others: memory is allocated, kernels are chosen."""


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
    ) -> None:
        self.config = config
        self.plan = plan
        self.dev = dev
        self.directory = directory
        self.after_validation = after_validation
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
        self._timing_start = 0.0
        self._save_time = time.monotonic()
        self.early_stopping = EarlyStopping.from_config(config)
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
        has_fixed_shapes = self.batch_reader.has_fixed_shapes
        if should_compile(self.model, config, self.processes.device):
            allow_inductor_fallback()
            loss_module = torch.compile(loss_module, dynamic=not has_fixed_shapes)  # type: ignore[assignment]
        if has_fixed_shapes and config.cuda_graph:

            def run(batch: PackedBatch, weight: Tensor) -> Tensor:
                return forward_backward(loss_module, batch, weight, precision=self.precision)

            self.captured_step = CapturedTrainStep(run, list(self.model.parameters()))
        return loss_module

    def measure_step(self) -> float:
        """Train for ten steps that are not saved; return the seconds of one of them."""
        self.model.train()
        start = 0.0
        for count, (rows, micro_batches) in enumerate(self._batches()):
            if count == NUM_WARMUP_STEPS:
                start = self._synchronized_time()
            if count == NUM_WARMUP_STEPS + NUM_TIMED_STEPS:
                break
            self._train_step(rows, micro_batches)
        return (self._synchronized_time() - start) / NUM_TIMED_STEPS

    def _synchronized_time(self) -> float:
        synchronize(self.processes.device)
        return time.perf_counter()

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
        started = time.perf_counter() - self.seconds
        first_step = self.step
        self._save_time = time.monotonic()
        self._report_step({})
        for rows, micro_batches in self._batches():
            meter.add(*self._train_step(rows, micro_batches))
            self.seconds = time.perf_counter() - started if config.max_minutes else 0.0
            is_last = self.step >= config.max_steps or self._is_time_over()
            self._report_start(meter, self.step - first_step)
            if self.step % config.log_every == 0 or is_last:
                self._log_progress(meter)
                meter = ThroughputMeter()
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
            meter.exclude(time.perf_counter() - start)
            if is_interrupted:
                self._log("interrupted")
                raise TrainingInterrupted(self.step, self.signal_handler.signum or SIGTERM)
            if is_over:
                self._report_stop()
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

    # -- logging and validation

    def _log_progress(self, meter: ThroughputMeter) -> None:
        loss = meter.loss
        if not math.isfinite(loss):
            self._raise_diverged()
        lr = learning_rate(self.step, self.config, d_model=self.d_model)
        speed = meter.tokens_per_second
        self._log("train", loss=loss, rate=lr, tokens_per_second=speed, epoch=self.epoch)
        self._report_step({"loss": f"{loss:.3f}", "tok/s": f"{speed:,.0f}", "lr": f"{lr:.2e}"})

    def _report_step(self, metrics: dict[str, str]) -> None:
        if self.early_stopping.best_value:
            label = message("best {metric}", metric=message(self.early_stopping.label))
            metrics = {**metrics, label: self.early_stopping.best_value}
        self.reporter.step(self.step, self.config.max_steps, metrics)

    def _report_start(self, meter: ThroughputMeter, count: int) -> None:
        """Show the first steps of this process, then how long all will take."""
        if count in EARLY_STEPS and self.step % self.config.log_every:
            self._report_step({"loss": f"{meter.loss:.3f}"})
        if count == NUM_WARMUP_STEPS:
            self._timing_start = self._synchronized_time()
        elif count == NUM_WARMUP_STEPS + NUM_TIMED_STEPS:
            self._report_estimate(
                (self._synchronized_time() - self._timing_start) / NUM_TIMED_STEPS
            )

    def _report_estimate(self, seconds_per_step: float) -> None:
        """Print how long training will take, unless it is over soon."""
        seconds = seconds_per_step * (self.config.max_steps - self.step)
        if seconds < MIN_REPORTED_SECONDS:
            return
        num_steps = self.config.max_steps - self.step
        self.reporter.message(estimate_message(num_steps, seconds, NUM_TIMED_STEPS))

    def _report_stop(self) -> None:
        """Log why training ended, and print it unless all steps were done."""
        reason = self.stop_reason
        self._log("stopped", reason=reason, best_step=self.early_stopping.best_step)
        text = stop_message(reason, self.step, self.early_stopping, self.config.max_minutes)
        if text:
            self.reporter.message(text)

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
        self._log("validation", **metrics)
        self.reporter.message(validation_message(self.step, metrics))
        if self.early_stopping.is_half_exhausted:
            self.reporter.message(patience_message(self.early_stopping))

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
            "num_pieces": self.batch_reader.num_micro_batches,
            **self.early_stopping.to_progress(),
            "seconds": self.seconds,
            "is_regular": is_scheduled,
        }
        self.processes.run_on_main(lambda: self.store.save(self.step, Checkpoint(*state, progress)))
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
        last = (
            f"the last good checkpoint is step_{steps[-1]}" if steps else "there is no checkpoint"
        )
        self._log("diverged")
        raise AttendoError(
            message(
                "the loss became NaN or infinite at step {step}; {last}", step=self.step, last=last
            ),
            hint="start a new run with a lower train.lr_scale or train.peak_lr, a higher "
            "train.warmup_steps, train.clip_norm=1 or model.norm=pre",
        )
