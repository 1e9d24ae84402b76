"""Timed training steps: our trainer, and a plain loop for peers.

Ours is `attendo.training.trainer.Trainer` with its defaults, timed and stopped through its progress
reports: everything that affects its speed is included, also reading the batches. A peer gets the
loop that its users would write: fused Adam, autocast, prefetched batches.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn

from attendo.bench.flops import synchronize
from attendo.bench.workload import single_process
from attendo.core.run_folder import RunFolder
from attendo.text.tokenizer import PAD_ID
from attendo.training.config import TrainConfig
from attendo.training.prefetch import prefetch
from attendo.training.progress import NullReporter
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.bench.config import TrainingBenchConfig
    from attendo.bench.workload import Workload
    from attendo.data.batching import Batch, Rows
    from attendo.model.transformer import Transformer
    from attendo.training.progress import Reporter

UNLIMITED_STEPS = 10**9
SMOOTHING = 0.1
PEER_LR = 1e-4


class TimedSteps(NamedTuple):
    """A number of timed steps."""

    seconds: float
    batches: list[Rows]


class TimingRound(NamedTuple):
    """The batches of a round: the first ones warm up, the others are timed."""

    begin: int
    num_warmup: int
    num_timed: int

    @property
    def end(self) -> int:
        """Return the index after the last batch."""
        return self.begin + self.num_warmup + self.num_timed


class StopTiming(Exception):  # noqa: N818 - not an error: the round is complete
    """Ends a run whose result is not kept."""


class StepTimer(NullReporter):
    """Reads the clock every `interval` steps, and stops the trainer after the last one."""

    def __init__(self, device: torch.device, *, interval: int = 1) -> None:
        self.device = device
        self.interval = interval
        self.first_step, self.last_step = 0, UNLIMITED_STEPS
        self.timestamps: list[tuple[int, float]] = []

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:  # noqa: ARG002
        """Read the clock after all previous work is done; the trainer also reports early steps."""
        if step <= self.first_step or step % self.interval:
            return
        synchronize(self.device)
        self.timestamps.append((step, time.perf_counter()))
        if step >= self.last_step:
            raise StopTiming


class TrainerRunner:
    """Attendo's trainer, resumed for each round."""

    def __init__(
        self, config: TrainingBenchConfig, model: Transformer, workload: Workload, folder: Path
    ) -> None:
        self.workload = workload
        # A report synchronizes the device: on a GPU only before and after the timed steps.
        self.log_interval = config.round_steps if config.torch_device.type == "cuda" else 1
        self.timer = StepTimer(config.torch_device, interval=self.log_interval)
        with training_settings():
            self.trainer = make_trainer(
                config, model, workload, folder, self.timer, log_every=self.log_interval
            )

    def run(self, timing_round: TimingRound) -> TimedSteps:
        """Train on the batches of a round; return the time of the timed ones."""
        first_step = self.trainer.step
        self.trainer.epoch, self.trainer.batch = 0, timing_round.begin
        self.timer.timestamps = []
        self.timer.first_step = first_step
        self.timer.last_step = first_step + timing_round.end - timing_round.begin
        with training_settings(), suppress(StopTiming):
            self.trainer.run()
        (begin, start), (end, stop) = self.timer.timestamps[0], self.timer.timestamps[-1]
        offset = timing_round.begin - first_step
        return TimedSteps(stop - start, self.workload.batches[begin + offset : end + offset])


def make_trainer(
    config: TrainingBenchConfig,
    model: Transformer,
    workload: Workload,
    folder: Path,
    reporter: Reporter,
    **changes: Any,
) -> Trainer:
    """Return a trainer with the defaults of `attendo train`, without an end or checkpoints."""
    folder.mkdir(parents=True)
    settings = TrainConfig(
        max_steps=UNLIMITED_STEPS,
        save_every=UNLIMITED_STEPS,
        batch_tokens=config.token_budget,
        seed=config.seed,
        precision=config.precision,
        **changes,
    )
    process_group = single_process(config.torch_device)
    return Trainer(
        model, workload.plan, settings, folder, processes=process_group, reporter=reporter
    )


@contextmanager
def training_settings() -> Iterator[None]:
    """Apply the process settings of `attendo train`, and restore them for the peers."""
    was_enabled = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was_enabled)


def first_loss(
    config: TrainingBenchConfig, model: Transformer, workload: Workload, folder: Path
) -> float:
    """Return the loss that the trainer reports for its first step."""
    timer = StepTimer(config.torch_device)
    timer.last_step = 1
    with training_settings(), suppress(StopTiming):
        make_trainer(config, model, workload, folder, timer, log_every=1, compile=False).run()
    events = RunFolder(folder).read_events()
    return float(next(event["loss"] for event in events if event["event"] == "train"))


class ModelWithLoss(nn.Module):
    """A peer's model with the loss, so that both can be compiled as one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, labels: Tensor) -> Tensor:
        """Return the summed label-smoothed cross-entropy of a batch (section 5.4)."""
        logits: Tensor = self.model(src_ids, tgt_ids)  # (B, T, V)
        return F.cross_entropy(
            logits.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=SMOOTHING,
            reduction="sum",
        )


class LoopRunner:
    """A plain training loop for any model."""

    def __init__(
        self,
        model: nn.Module,
        workload: Workload,
        *,
        device: torch.device,
        precision: torch.dtype,
        is_compiled: bool = False,
        dynamic_shapes: bool = False,
    ) -> None:
        self.workload, self.device, self.precision = workload, device, precision
        self.module: nn.Module = ModelWithLoss(model).to(device).train()
        self.optimizer = torch.optim.Adam(
            self.module.parameters(), lr=PEER_LR, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        if is_compiled:
            compiled: Any = torch.compile(self.module, dynamic=dynamic_shapes)
            self.module = compiled

    def run(self, timing_round: TimingRound) -> TimedSteps:
        """Train on the batches of a round; return the time of the timed ones."""
        batches = self.workload.batches[timing_round.begin : timing_round.end]
        start = 0.0
        for number, batch in enumerate(prefetch(batches, self._read)):
            if number == timing_round.num_warmup:
                synchronize(self.device)
                start = time.perf_counter()
            self._step(*batch)
        synchronize(self.device)
        return TimedSteps(time.perf_counter() - start, batches[timing_round.num_warmup :])

    def _read(self, rows: Rows) -> tuple[Batch, int]:
        batch = self.workload.plan.read(rows)
        pinned = batch.pin_memory() if self.device.type == "cuda" else batch
        return pinned, self.workload.count_tokens([rows])

    def _step(self, batch: Batch, num_tokens: int) -> None:
        device_batch = batch.to(self.device)
        self.optimizer.zero_grad()
        is_half = self.precision == torch.bfloat16
        with torch.autocast(self.device.type, torch.bfloat16, enabled=is_half):
            loss = self.module(*device_batch)
        (loss / num_tokens).backward()
        self.optimizer.step()
