"""What takes training steps while the clock runs: our own trainer, and a plain loop for peers.

Ours is `attendo.training.trainer.Trainer` itself with its defaults, told by its reports and ended
from there: whatever makes it faster or slower is in the figure, reading the batches included. A
peer gets the loop that its users would write: fused Adam, autocast, batches read ahead.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.bench.flops import synchronise
from attendo.bench.workload import alone_on
from attendo.data.tokenizer import PAD_ID
from attendo.training.config import TrainConfig
from attendo.training.metrics import read_events
from attendo.training.prefetch import prefetch
from attendo.training.progress import Silence
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.bench.config import TrainingBench
    from attendo.bench.workload import Workload
    from attendo.data.batching import Batch, Rows
    from attendo.model.transformer import Transformer
    from attendo.training.progress import Reporter

NEVER = 10**9
SMOOTHING = 0.1
PEER_RATE = 1e-4


class Span(NamedTuple):
    """Some steps that were timed."""

    seconds: float
    batches: list[Rows]


class Round(NamedTuple):
    """Which batches a round takes: the first ones warm up, the others are timed."""

    begin: int
    num_warm: int
    num_timed: int

    @property
    def end(self) -> int:
        """Give the place behind the last batch."""
        return self.begin + self.num_warm + self.num_timed


class Enough(Exception):  # noqa: N818 - not an error: the trainer has done what was asked for
    """Ends a run that nobody wants to keep."""


class Clock(Silence):
    """Looks at the time whenever the trainer reports, and ends it at the last step wanted."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.last_step = NEVER
        self.marks: list[tuple[int, float]] = []

    def step(self, step: int, total: int, figures: dict[str, str]) -> None:  # noqa: ARG002
        """Take the time once everything before is done."""
        synchronise(self.device)
        self.marks.append((step, time.perf_counter()))
        if step >= self.last_step:
            raise Enough


class TrainerRunner:
    """Attendo's own trainer, resumed for each round."""

    def __init__(
        self, config: TrainingBench, model: Transformer, work: Workload, folder: Path
    ) -> None:
        self.work = work
        self.clock = Clock(config.place)
        self.num_timed = config.round_steps
        # a report waits for the device: on a GPU only at both ends of what is timed
        self.pace = self.num_timed if config.place.type == "cuda" else 1
        with as_in_training():
            self.trainer = make_trainer(
                config, model, work, folder, self.clock, log_every=self.pace
            )

    def run(self, turn: Round) -> Span:
        """Train from the turn's first batch to its last; give the time of the timed ones."""
        first_step = self.trainer.step
        self.trainer.epoch, self.trainer.batch = 0, turn.begin
        self.clock.marks = []
        self.clock.last_step = first_step + turn.end - turn.begin
        with as_in_training(), suppress(Enough):
            self.trainer.run()
        (begin, start), (end, stop) = self.clock.marks[0], self.clock.marks[-1]
        place = turn.begin - first_step
        return Span(stop - start, self.work.batches[begin + place : end + place])


def make_trainer(
    config: TrainingBench,
    model: Transformer,
    work: Workload,
    folder: Path,
    reporter: Reporter,
    **changes: Any,
) -> Trainer:
    """Make a trainer with the defaults of `attendo train`, without an end or checkpoints."""
    folder.mkdir(parents=True)
    settings = TrainConfig(
        max_steps=NEVER,
        save_every=NEVER,
        batch_tokens=config.budget,
        seed=config.seed,
        precision=config.precision,
        **changes,
    )
    processes = alone_on(config.place)
    return Trainer(model, work.plan, settings, folder, processes=processes, reporter=reporter)


@contextmanager
def as_in_training() -> Iterator[None]:
    """Set what `attendo train` sets for its process, and put it back for the peers."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def first_loss(config: TrainingBench, model: Transformer, work: Workload, folder: Path) -> float:
    """Give the loss that the trainer reports of its first step, by the path that it takes."""
    clock = Clock(config.place)
    clock.last_step = 1
    with as_in_training(), suppress(Enough):
        make_trainer(config, model, work, folder, clock, log_every=1, compile=False).run()
    events = read_events(folder / "log.jsonl")
    return float(next(event["loss"] for event in events if event["event"] == "train"))


class Pupil(nn.Module):
    """A peer's model with the loss on top, so that both can be compiled as one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, labels: Tensor) -> Tensor:
        """Sum the smoothed cross-entropy of a batch (section 5.4)."""
        logits: Tensor = self.model(src_ids, tgt_ids)  # (B, T, V)
        return F.cross_entropy(
            logits.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=SMOOTHING,
            reduction="sum",
        )


class LoopRunner:
    """A plain training loop around any model."""

    def __init__(
        self,
        model: nn.Module,
        work: Workload,
        *,
        device: torch.device,
        precision: torch.dtype,
        is_compiled: bool = False,
        has_free_shapes: bool = False,
    ) -> None:
        self.work, self.device, self.precision = work, device, precision
        self.pupil: nn.Module = Pupil(model).to(device).train()
        self.optimizer = torch.optim.Adam(
            self.pupil.parameters(), lr=PEER_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        if is_compiled:
            compiled: Any = torch.compile(self.pupil, dynamic=has_free_shapes)
            self.pupil = compiled

    def run(self, turn: Round) -> Span:
        """Train on the turn's batches; give the time of the timed ones."""
        batches = self.work.batches[turn.begin : turn.end]
        start = 0.0
        for number, batch in enumerate(prefetch(batches, self._read)):
            if number == turn.num_warm:
                synchronise(self.device)
                start = time.perf_counter()
            self._step(*batch)
        synchronise(self.device)
        return Span(time.perf_counter() - start, batches[turn.num_warm :])

    def _read(self, rows: Rows) -> tuple[Batch, int]:
        batch = self.work.plan.read(rows)
        pinned = batch.pin_memory() if self.device.type == "cuda" else batch
        return pinned, self.work.count_tokens([rows])

    def _step(self, batch: Batch, num_tokens: int) -> None:
        here = batch.to(self.device)
        self.optimizer.zero_grad()
        is_half = self.precision == torch.bfloat16
        with torch.autocast(self.device.type, torch.bfloat16, enabled=is_half):
            loss = self.pupil(*here)
        (loss / num_tokens).backward()
        self.optimizer.step()
