"""Training speed: Attendo's trainer and every peer in turn, on the same sentences.

A peer is timed in rounds, each next to a round of Attendo, so that other load on the machine
affects both; the ratio is the median over rounds, and a wide range is reported.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from attendo.bench.correctness import compare_gradients, compare_loss, run_gradient_check
from attendo.bench.flops import FORMULA, count_operations, measure_peak_flops
from attendo.bench.reference_models import PEERS
from attendo.bench.report import Result, describe_hardware, dtype_name, format_result
from attendo.bench.timing import (
    LoopRunner,
    ModelWithLoss,
    TimedSteps,
    TimingRound,
    TrainerRunner,
    first_loss,
)
from attendo.bench.workload import make_workloads
from attendo.core.errors import AttendoError, ConfigError, suggest
from attendo.core.message import message
from attendo.core.seeding import seed_everything
from attendo.data.batching import split_micro_batches
from attendo.training.train_step import resolve_precision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from attendo.bench.config import TrainingBenchConfig
    from attendo.bench.correctness import GradientCheck
    from attendo.bench.reference_models import Peer
    from attendo.bench.workload import Workload
    from attendo.model.transformer import Transformer

OURS = "Attendo"
LOSS_CHECK_PAIRS = 64
NUM_CHECKED = 8
"""Pairs on which every peer is compared."""


def benchmark_training(
    config: TrainingBenchConfig,
    *,
    peers: Sequence[Peer] = PEERS,
    log: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Any]:
    """Time Attendo and each installed peer; return all results as JSON.

    `log` is called with each line of output, `progress` while a corpus is prepared.
    """
    if "RANK" in os.environ:
        reason = "a benchmark under torchrun would time other processes too"
        raise ConfigError(reason, hint="run it as one process")
    chosen = choose_peers(config.peers, peers)
    seed_everything(config.seed)
    with TemporaryDirectory(prefix="attendo-bench-", ignore_cleanup_errors=True) as folder:
        benchmark = TrainingBenchmark(config, Path(folder), log or (lambda _line: None), progress)
        benchmark.measure_ours()
        for peer in chosen:
            benchmark.measure_peer(peer)
        return benchmark.report()


def choose_peers(names: Sequence[str] | None, peers: Sequence[Peer]) -> list[Peer]:
    """Return the peers with these names, ignoring case; all by default."""
    if names is None:
        return list(peers)
    by_name = {peer.name.casefold(): peer for peer in peers}
    unknown = [name for name in names if name.casefold() not in by_name]
    if unknown:
        known = suggest(unknown[0], [peer.name for peer in peers])
        raise ConfigError(message("unknown peer '{unknown}'", unknown=unknown[0]), hint=known)
    return [by_name[name.casefold()] for name in names]


class TrainingBenchmark:
    """One benchmark: its batches, the peak performance, and the results so far."""

    def __init__(
        self,
        config: TrainingBenchConfig,
        folder: Path,
        log: Callable[[str], None],
        progress: Callable[[str, int, int | None], None] | None,
    ) -> None:
        self.config, self.folder, self.log = config, folder, log
        self.device = config.torch_device
        self.reference: Transformer = perturb_biases_and_norms(config.build_model())
        width = self.reference.config.d_model
        self.precision = resolve_precision(config.precision, self.device, packed_width=width)
        num_warmup = config.round_steps if self.device.type == "cuda" else 1
        span = num_warmup + config.round_steps
        self.workloads = make_workloads(
            config, self.reference, folder, num_batches=span, progress=progress
        )
        spare = self.workloads.num_batches - span
        self.rounds = [
            TimingRound(number * span % (spare + 1), num_warmup, config.round_steps)
            for number in range(config.num_rounds)
        ]
        self.peak_flops = measure_peak_flops(self.device, self.precision)
        self.batch = self.workloads.theirs.read_sample(NUM_CHECKED)
        self.reference_check: GradientCheck = self._gradient_check(self.reference)
        self.results: list[Result] = []
        self.log(
            f"{config.size}, {self.workloads.title}, {dtype_name(self.precision)}; "
            f"matrix peak {self.peak_flops / 1e12:.2f} TFLOP/s"
        )

    # -- Attendo

    def measure_ours(self) -> None:
        """Time the trainer alone, after checking its loss against the plain model's."""
        model = self.config.build_model(dropout=0.0)
        model.load_state_dict(self.reference.state_dict())
        loss = first_loss(self.config, model, self.workloads.ours, self.folder / "check")
        agreement = compare_loss(loss, self._reference_loss(), self.precision)
        del model
        self._free_memory()
        if not agreement.is_satisfied:
            raise AttendoError(agreement.text, hint="this is a bug in Attendo: please report it")
        model_to_time = self.config.build_model()
        model_to_time.load_state_dict(self.reference.state_dict())
        resident = self._allocated_bytes()
        self.runner = TrainerRunner(
            self.config, model_to_time, self.workloads.ours, self.folder / "run"
        )
        spans, memory = self._time(self.runner, resident)
        self.ours = Result(OURS, agreement=agreement.text, memory_gb=memory)
        self._add_result(self.ours, spans)

    def _reference_loss(self) -> float:
        """Return the plain model's loss of the first batch, in float32 and without dropout."""
        workload = self.workloads.ours
        rows = workload.batches[0]
        module = ModelWithLoss(self.reference).to(self.device).eval()
        total = 0.0
        with torch.no_grad():
            for part in split_micro_batches(
                rows, -(-len(rows) // LOSS_CHECK_PAIRS)
            ):  # long sentences pad all others
                total += float(module(*workload.plan.read(part).to(self.device)))
        self.reference.cpu()
        return total / workload.count_tokens([rows])

    # -- peers

    def measure_peer(self, peer: Peer) -> None:
        """Time a peer, eager and compiled."""
        if not peer.is_installed:
            self._add_result(Result(peer.name, status="not installed"))
            return
        self._try_measure(peer, Result(peer.name))
        if not peer.can_compile:
            return
        compiled = Result(f"{peer.name}, compiled")
        if self.config.compiles_peers:
            self._try_measure(peer, compiled, is_compiled=True)
        else:
            compiled.status = "skipped: use --compile"
            self._add_result(compiled)

    def _try_measure(self, peer: Peer, result: Result, *, is_compiled: bool = False) -> None:
        spans: list[TimedSteps] = []
        try:
            spans = self._measure(peer, result, is_compiled=is_compiled)
        except Exception as error:  # noqa: BLE001 - an error of a peer is a line of the table
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            result.status = f"failed: {first[:120]}"
        self._add_result(result, spans)
        self._free_memory()

    def _measure(self, peer: Peer, result: Result, *, is_compiled: bool) -> list[TimedSteps]:
        model = peer.build(self.reference)
        gradient_check = self._gradient_check(model)
        agreement = compare_gradients(
            gradient_check, self.reference_check, has_our_weights=peer.has_our_weights
        )
        result.agreement = agreement.text
        if not agreement.is_satisfied:
            result.status = f"disagrees: {agreement.text}"
            return []
        resident = self._allocated_bytes()
        runner = LoopRunner(
            model,
            self.workloads.theirs,
            device=self.device,
            precision=self.precision,
            is_compiled=is_compiled,
            dynamic_shapes=self.config.corpus is not None,
        )
        spans, result.memory_gb = self._time(runner, resident, interleaved_with=self.runner)
        return spans

    def _gradient_check(self, model: nn.Module) -> GradientCheck:
        gradient_check = run_gradient_check(model, self.batch, self.device)
        model.cpu()
        self._free_memory()
        return gradient_check

    # -- timing

    def _time(
        self,
        runner: LoopRunner | TrainerRunner,
        resident: int,
        *,
        interleaved_with: TrainerRunner | None = None,
    ) -> tuple[list[TimedSteps], float | None]:
        """Warm up with a whole round, then time every round; ours before each if requested.

        Returns the rounds and, on a GPU, the peak memory in GB beyond the `resident` bytes,
        measured in the warm-up: a captured graph shows its memory only while it is captured.
        """
        is_gpu = self.device.type == "cuda"
        if is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
        runner.run(self.rounds[0])
        peak = torch.cuda.max_memory_allocated(self.device) if is_gpu else 0
        spans = []
        for timing_round in self.rounds:
            if interleaved_with is not None:
                self.ours.add_round(self._round_metrics(interleaved_with.run(timing_round)))
            spans.append(runner.run(timing_round))
        return spans, (peak - resident) / 1e9 if is_gpu else None

    def _allocated_bytes(self) -> int:
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else 0

    def _round_metrics(self, span: TimedSteps) -> tuple[float, float, float]:
        """Return tokens per second, milliseconds per step, and the fraction of the peak."""
        workload = self.workloads.theirs  # rows have the same indices in both
        lengths = workload.plan.src_lengths, workload.plan.tgt_lengths
        operations = sum(
            count_operations(self.reference.config, *(side[rows] for side in lengths))
            for rows in span.batches
        )
        return (
            workload.count_tokens(span.batches) / span.seconds,
            1000 * span.seconds / len(span.batches),
            operations / span.seconds / self.peak_flops,
        )

    def _add_result(self, result: Result, spans: Sequence[TimedSteps] = ()) -> None:
        for span in spans:
            result.add_round(self._round_metrics(span))
        if spans and result is not self.ours:
            our_rounds = self.ours.rounds[-len(result.rounds) :]
            pairs = zip(our_rounds, result.rounds, strict=True)
            result.ratios = [ours[0] / theirs[0] for ours, theirs in pairs]
        self.results.append(result)
        self.log(format_result(result))

    def _free_memory(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def report(self) -> dict[str, Any]:
        """Return all results as JSON."""
        timed = [one for one in self.results if one is not self.ours and one.rounds]
        fastest = min(timed, key=lambda one: one.ratio or 0.0, default=None)
        return {
            "kind": "attendo bench train",
            "machine": describe_hardware(self.device),
            "size": self.config.size,
            "num_parameters": self.reference.num_parameters(),
            "vocab_size": self.config.actual_vocab_size,
            "batches": self.workloads.title,
            "padding": {
                "ours": self._padding_fraction(self.workloads.ours),
                "theirs": self._padding_fraction(self.workloads.theirs),
            },
            "precision": dtype_name(self.precision),
            "steps": self.config.round_steps * self.config.num_rounds,
            "rounds": self.config.num_rounds,
            "peak_flops": self.peak_flops,
            "formula": FORMULA,
            "systems": [one.to_json() for one in self.results],
            "fastest_peer": fastest and fastest.name,
            "ratio": fastest and fastest.ratio,
            "ratios": fastest and fastest.ratios,
        }

    def _padding_fraction(self, workload: Workload) -> float:
        """Return the fraction of padding in the timed batches."""
        timed = [
            rows
            for timing_round in self.rounds
            for rows in workload.batches[
                timing_round.begin + timing_round.num_warmup : timing_round.end
            ]
        ]
        return workload.plan.padding_stats(timed).mean


def perturb_biases_and_norms(model: Transformer) -> Transformer:
    """Move biases and norms away from 0 and 1, so that swapping two of them is detected."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model
