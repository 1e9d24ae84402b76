"""The training loop: batches in, checkpoints out, the same bits however often it was interrupted.

Everything that chance decides is a function of (seed, epoch) or (seed, step, process), so a
checkpoint needs no random state: a resumed run draws the same numbers.
"""

from __future__ import annotations

import math
import time
from signal import SIGTERM
from typing import TYPE_CHECKING, Any, cast

import torch

from attendo.core.errors import AttendoError
from attendo.core.kernels import tell_compiler
from attendo.core.seeding import derive_seed
from attendo.data.batching import share_rows, split_rows
from attendo.data.packed_batching import PackedPlan
from attendo.training.averaging import Ema
from attendo.training.checkpoint import Checkpoint, CheckpointStore
from attendo.training.distributed import Processes
from attendo.training.graphs import GraphedPass
from attendo.training.metrics import RunLog
from attendo.training.optimizer import get_state, make_optimizer, rate_at, set_state
from attendo.training.prefetch import prefetch
from attendo.training.progress import Silence
from attendo.training.signals import Interrupted, StopRequest
from attendo.training.steps import (
    accumulate_gradients,
    choose_precision,
    silence,
    teach,
    validate,
)
from attendo.training.teaching import Teacher
from attendo.training.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor, nn

    from attendo.data.batching import Batch, BatchPlan, Rows
    from attendo.data.packed_batching import PackedBatch
    from attendo.training.config import TrainConfig
    from attendo.training.progress import Reporter
    from attendo.training.steps import Validation

    Piece = Batch | PackedBatch

COMPILING = 30.0
"""Seconds that `torch.compile` needs."""
SAVED_A_STEP, SAVED_A_PRODUCT = 1e-3, 2e-14
"""Seconds that it saves in a step, and for each weight times token; an H200's (docs/log.md)."""


class Trainer:
    """Trains a model on a plan of batches, in a run folder.

    Args:
        model: keeps the contract; this process's copy, on any device.
        plan: the batches (`attendo.data.batching.BatchPlan`).
        config: how to train.
        directory: the run folder: checkpoints, log, TensorBoard.
        dev: the batches of dev, for validation.
        after_validation: is called with the model and the step; gives more figures (BLEU ...).
        processes: from torchrun's environment when not given.
        reporter: is told how far it is.

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
        processes: Processes | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.config = config
        self.plan = plan
        self.dev = dev
        self.directory = directory
        self.after_validation = after_validation
        self.processes = processes or Processes()
        self.reporter = reporter or Silence()
        self.num_pieces = config.accumulate
        self.graph: GraphedPass | None = None
        device = self.processes.device
        self.raw = model.to(device)
        self.d_model = int(getattr(model, "config").d_model)  # noqa: B009 - any model's config
        packed_width = self.d_model if isinstance(plan, PackedPlan) else 0
        self.precision = choose_precision(config.precision, device, packed_width=packed_width)
        self.teacher = self._make_teacher()
        self.optimizer = make_optimizer(self.raw, config)
        self.ema = Ema(self.raw, config.ema_decay) if config.ema_decay else None
        self.store = CheckpointStore(
            directory / "checkpoints", keep_last=config.keep_last, keep_best=config.keep_best
        )
        self.step = self.epoch = self.batch = self.num_worse = self.tokens = 0
        self.best_loss: float | None = None
        self.dev_loss: float | None = None
        self.stop = StopRequest()
        self.log: RunLog | None = None
        self._resume()

    def _make_teacher(self) -> nn.Module:
        config = self.config
        own = Teacher(self.raw, smoothing=config.label_smoothing, consistency=config.consistency)
        if config.shard:
            self.processes.spread(self.raw, shard=True)  # in place
            teacher: nn.Module = own
        else:
            teacher = self.processes.spread(own, shard=False)
        if self._shall_compile():
            tell_compiler()
            teacher = torch.compile(teacher, dynamic=not self.is_fixed)  # type: ignore[assignment]
        if self.is_fixed and config.graph:

            def run(batch: PackedBatch, weight: Tensor) -> Tensor:
                return teach(teacher, batch, weight, precision=self.precision)

            self.graph = GraphedPass(run, list(self.raw.parameters()))
        return teacher

    def _shall_compile(self) -> bool:
        """Compile where asked for, and on a GPU where the run is long enough to win by it."""
        config = self.config
        if config.compile is not None:
            return config.compile
        work = config.batch_tokens * sum(weight.numel() for weight in self.raw.parameters())
        saved = config.max_steps * (SAVED_A_STEP + SAVED_A_PRODUCT * work)
        return self.processes.device.type == "cuda" and saved > COMPILING

    @property
    def is_fixed(self) -> bool:
        """Tell whether all batches have one shape."""
        return isinstance(self.plan, PackedPlan) and self.plan.is_fixed and self.num_pieces == 1

    # -- the loop

    def run(self) -> None:
        """Train until `max_steps`, until dev gets no better, or until asked to stop."""
        self.log = RunLog(self.directory, step=self.step) if self.processes.is_main else None
        self._note("resumed" if self.step else "started", epoch=self.epoch)
        self.raw.train()
        try:
            with self.stop.listen(self.reporter.say):
                self._loop()
        finally:
            if self.log is not None:
                self.log.close()

    def _loop(self) -> None:
        config = self.config
        window = Window()
        for rows, pieces in self._batches():
            window.add(*self._train_on(rows, pieces))
            is_last = self.step >= config.max_steps
            if self.step % config.log_every == 0 or is_last:
                self._report(window)
                window = Window()
            begin = time.perf_counter()
            if self.step % config.validates_every == 0 or is_last:
                self._validate()
            is_over = is_last or self._is_patience_over()
            is_regular = self.step % config.save_every == 0 or is_over
            if is_regular:
                self._save(is_regular=True)
            window.pause(time.perf_counter() - begin)
            if self.processes.any(self.stop.number is not None):
                if not is_regular:
                    self._save(is_regular=False)
                self._note("interrupted")
                raise Interrupted(self.step, self.stop.number or SIGTERM)
            if is_over:
                break

    @property
    def is_finished(self) -> bool:
        """Tell whether there is nothing left to train."""
        return self.step >= self.config.max_steps or self._is_patience_over()

    def _batches(self) -> Iterator[tuple[Rows, list[Piece]]]:
        """Give this process's part of each batch from where the run stands, read ahead."""
        while not self.is_finished:
            epoch = self.plan.epoch(self.epoch)
            for rows, pieces in prefetch(epoch[self.batch :], self._read):
                self.batch += 1
                if len(pieces) < min(self.num_pieces, len(rows)):
                    _, pieces = self._read(rows)  # was read ahead of an out-of-memory
                yield rows, pieces
            self.epoch, self.batch = self.epoch + 1, 0

    def _read(self, rows: Rows) -> tuple[Rows, list[Piece]]:
        """Cut a batch: one part a process, and that into pieces; nobody is left without a piece."""
        own = share_rows(rows, self.processes.rank, self.processes.count)
        pieces = [self._read_piece(part) for part in split_rows(own, self.num_pieces)]
        if self.processes.count > 1 and len(pieces) < self.num_pieces:
            spare = silence(self._read_piece(rows[:1]))
            pieces += [spare] * (self.num_pieces - len(pieces))
        if self.processes.device.type == "cuda":
            pieces = [piece.pin_memory() for piece in pieces]
        return rows, pieces

    def _read_piece(self, rows: Rows) -> Piece:
        if isinstance(self.plan, PackedPlan):
            return self.plan.pack(rows, is_part=not self.is_fixed)
        return self.plan.read(rows)

    def _train_on(self, rows: Rows, pieces: list[Piece]) -> tuple[Tensor, int]:
        """Take one optimiser step on a batch; cut it smaller where memory does not suffice."""
        num_tokens = self.plan.count_labels(rows)
        while True:
            torch.manual_seed(derive_seed(self.config.seed, "step", self.step, self.processes.rank))
            try:
                loss = self._fill_gradients(pieces, num_tokens)
                break
            except (torch.OutOfMemoryError, RuntimeError) as error:
                self._cut_smaller(error, rows)
            # outside the handler, so that the failed step's tensors are let go of
            torch.cuda.empty_cache()
            _, pieces = self._read(rows)
        self._update()
        self.step += 1
        self.dev_loss = None  # of the weights before this step
        self.tokens += num_tokens
        if self.ema is not None:
            self.ema.update(self.raw, self.step)
        return self.processes.add_up(loss) / num_tokens, num_tokens

    def _fill_gradients(self, pieces: list[Piece], num_tokens: int) -> Tensor:
        """Give the loss of a batch, summed, with its gradients in place of the last ones."""
        if self.graph is not None and self.is_fixed:  # a resumed run may have smaller pieces
            (batch,) = pieces
            return self.graph(cast("PackedBatch", batch), 1.0 / num_tokens)
        self.optimizer.zero_grad()
        return accumulate_gradients(
            self.teacher,
            pieces,
            num_tokens=num_tokens,
            precision=self.precision,
            processes=self.processes,
        )

    def _update(self) -> None:
        if self.config.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.raw.parameters(), self.config.clip_norm)
        rate = rate_at(self.step + 1, self.config, d_model=self.d_model)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()

    def _cut_smaller(self, error: RuntimeError, rows: Rows) -> None:
        """Halve the pieces after an out-of-memory; anything else goes on up."""
        is_memory = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
        if not is_memory or self.processes.count > 1 or self.num_pieces >= len(rows):
            if is_memory:
                raise AttendoError(
                    f"out of memory at step {self.step} with {self.num_pieces} pieces a batch",
                    remedy="set train.accumulate higher or train.batch_tokens lower",
                ) from error
            raise error
        self.num_pieces *= 2
        self.graph = None
        text = f"out of memory: batches are cut into {self.num_pieces} pieces from here on"
        self.reporter.say(text)

    # -- what is told and kept

    def _report(self, window: Window) -> None:
        loss = window.loss
        if not math.isfinite(loss):
            self._stop_for_nan()
        rate = rate_at(self.step, self.config, d_model=self.d_model)
        speed = window.speed
        self._note("train", loss=loss, rate=rate, tokens_per_second=speed, epoch=self.epoch)
        figures = {"loss": f"{loss:.3f}", "tok/s": f"{speed:,.0f}", "rate": f"{rate:.2e}"}
        self.reporter.step(self.step, self.config.max_steps, figures)

    def _validate(self) -> None:
        if self.dev is None:
            return
        found = self.validate()
        if not math.isfinite(found.loss):
            self._stop_for_nan()
        extra: dict[str, float] = {}
        measure = self.after_validation
        if measure and not self.config.shard:
            self.processes.lead(lambda: extra.update(measure(self.raw, self.step)))
        self.dev_loss = found.loss
        is_better = self.best_loss is None or found.loss < self.best_loss
        self.best_loss = found.loss if is_better else self.best_loss
        self.num_worse = 0 if is_better else self.num_worse + 1
        figures = {**found.figures, **extra}
        self._note("validation", **figures)
        text = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
        self.reporter.say(f"step {self.step}: dev {text}")

    def validate(self) -> Validation:
        """Score dev with the weights as they are."""
        assert self.dev is not None  # noqa: S101 - callers have checked
        batches = self.dev.epoch(0)
        rank, count = self.processes.rank, self.processes.count
        rounds = math.ceil(len(batches) / count)
        mine = [number * count + rank for number in range(rounds)]
        parts = (
            self.dev.read(batches[place])
            if place < len(batches)
            else silence(self.dev.read(batches[0]))
            for place in mine
        )
        return validate(self.raw, parts, precision=self.precision, processes=self.processes)

    def _is_patience_over(self) -> bool:
        return self.config.patience is not None and self.num_worse >= self.config.patience

    def _note(self, event: str, **values: Any) -> None:
        if self.log is not None:
            self.log.write(event, self.step, **values)

    # -- survival

    def _save(self, *, is_regular: bool) -> None:
        finite = all(bool(p.isfinite().all()) for p in self.raw.parameters())
        if not finite:
            self._stop_for_nan()
        state = get_state(self.raw, self.optimizer, self.ema)
        progress = {
            "step": self.step,
            "epoch": self.epoch,
            "batch": self.batch,
            "tokens": self.tokens,
            "num_pieces": self.num_pieces,
            "num_worse": self.num_worse,
            "best_loss": self.best_loss,
            "dev_loss": self.dev_loss,
            "is_regular": is_regular,
        }
        self.processes.lead(lambda: self.store.save(self.step, Checkpoint(*state, progress)))

    def _resume(self) -> None:
        # the first process chooses, so that all go on from the same step
        found = self.store.load_latest() if self.processes.is_main else None
        step = self.processes.from_first(found.progress["step"] if found else 0)
        if step and not self.processes.is_main:
            found = self.store.load(step)
        if found is None:
            return
        set_state(self.raw, self.optimizer, self.ema, found.weights, found.optimizer)
        for name in ("step", "epoch", "batch", "tokens", "num_worse", "best_loss", "dev_loss"):
            setattr(self, name, found.progress[name])
        self.num_pieces = max(self.num_pieces, found.progress["num_pieces"])

    def _stop_for_nan(self) -> None:
        steps = self.store.steps()
        last = f"checkpoint step_{steps[-1]} is good" if steps else "no checkpoint was saved yet"
        self._note("diverged")
        raise AttendoError(
            f"the loss became NaN or infinite at step {self.step}; {last}",
            remedy="lower train.rate_scale or train.peak_rate, raise train.warmup_steps, "
            "set train.clip_norm=1, or use model.norm=pre, in a new folder",
        )
