"""Training speed: Attendo's trainer and every peer in turns, on the same sentences.

A peer is timed in rounds, each beside a round of Attendo, so that whatever else the machine does
hits both alike; the ratio is the median over rounds, and how far they lie apart is told.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from attendo.bench.agreement import compare, compare_loss, examine
from attendo.bench.flops import FORMULA, count_operations, measure_ceiling
from attendo.bench.peers import PEERS
from attendo.bench.report import Result, describe_machine, name_precision, name_result
from attendo.bench.runners import LoopRunner, Pupil, Round, Span, TrainerRunner, first_loss
from attendo.bench.workload import make_work
from attendo.core.errors import AttendoError, ConfigError, suggest
from attendo.core.seeding import seed_everything
from attendo.data.batching import split_rows
from attendo.training.steps import choose_precision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from attendo.bench.agreement import Teaching
    from attendo.bench.config import TrainingBench
    from attendo.bench.peers import Peer
    from attendo.bench.workload import Workload
    from attendo.model.transformer import Transformer

OURS = "Attendo"
PLAIN_PAIRS = 64
NUM_CHECKED = 8
"""Pairs that every peer is compared on."""


def measure_training(
    config: TrainingBench,
    *,
    peers: Sequence[Peer] = PEERS,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Any]:
    """Time Attendo and each peer that is installed; give all figures, as JSON can hold them.

    `tell` is called with a line as soon as there is something to tell, `progress` while a corpus is
    prepared.
    """
    if "RANK" in os.environ:
        reason = "a benchmark under torchrun would time other processes too"
        raise ConfigError(reason, remedy="run it as one process")
    chosen = choose_peers(config.peers, peers)
    seed_everything(config.seed)
    with TemporaryDirectory(prefix="attendo-bench-", ignore_cleanup_errors=True) as folder:
        study = Study(config, Path(folder), tell or (lambda _line: None), progress)
        study.measure_ours()
        for peer in chosen:
            study.measure_peer(peer)
        return study.report()


def choose_peers(names: Sequence[str] | None, peers: Sequence[Peer]) -> list[Peer]:
    """Find peers by their names, upper and lower case alike; all where none are named."""
    if names is None:
        return list(peers)
    by_name = {peer.name.casefold(): peer for peer in peers}
    unknown = [name for name in names if name.casefold() not in by_name]
    if unknown:
        known = suggest(unknown[0], [peer.name for peer in peers])
        raise ConfigError(f"no peer '{unknown[0]}'", remedy=known)
    return [by_name[name.casefold()] for name in names]


class Study:
    """One measurement: its batches, its ceiling, and the results so far."""

    def __init__(
        self,
        config: TrainingBench,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[str, int, int | None], None] | None,
    ) -> None:
        self.config, self.folder, self.tell = config, folder, tell
        self.device = config.place
        self.reference: Transformer = stir(config.build())
        width = self.reference.config.d_model
        self.precision = choose_precision(config.precision, self.device, packed_width=width)
        num_warm = config.round_steps if self.device.type == "cuda" else 1
        span = num_warm + config.round_steps
        self.work = make_work(config, self.reference, folder, num_batches=span, progress=progress)
        spare = self.work.num_batches - span
        self.turns = [
            Round(number * span % (spare + 1), num_warm, config.round_steps)
            for number in range(config.num_rounds)
        ]
        self.ceiling = measure_ceiling(self.device, self.precision)
        self.batch = self.work.theirs.read_some(NUM_CHECKED)
        self.plain: Teaching = self._examine(self.reference)
        self.results: list[Result] = []
        self.tell(
            f"{config.size}, {self.work.title}, {name_precision(self.precision)}; "
            f"matrix ceiling {self.ceiling / 1e12:.2f} TFLOP/s"
        )

    # -- ours

    def measure_ours(self) -> None:
        """Time the trainer alone, once its loss is that of the plain model."""
        model = self.config.build(dropout=0.0)
        model.load_state_dict(self.reference.state_dict())
        found = first_loss(self.config, model, self.work.ours, self.folder / "check")
        agreement = compare_loss(found, self._plain_loss(), self.precision)
        del model
        self._let_go()
        if not agreement.is_met:
            raise AttendoError(agreement.text, remedy="this is a bug of Attendo: please report it")
        own = self.config.build()
        own.load_state_dict(self.reference.state_dict())
        resident = self._resident()
        self.runner = TrainerRunner(self.config, own, self.work.ours, self.folder / "run")
        spans, memory = self._time(self.runner, resident)
        self.ours = Result(OURS, agreement=agreement.text, memory_gb=memory)
        self._add(self.ours, spans)

    def _plain_loss(self) -> float:
        """Give the plain model's loss of the first batch, in float32 and without dropout."""
        work = self.work.ours
        rows = work.batches[0]
        pupil = Pupil(self.reference).to(self.device).eval()
        total = 0.0
        with torch.no_grad():
            for part in split_rows(rows, -(-len(rows) // PLAIN_PAIRS)):  # long ones pad all others
                total += float(pupil(*work.plan.read(part).to(self.device)))
        self.reference.cpu()
        return total / work.count_tokens([rows])

    # -- peers

    def measure_peer(self, peer: Peer) -> None:
        """Time a peer, as it is and compiled."""
        if not peer.is_installed:
            self._add(Result(peer.name, status="not installed"))
            return
        self._try(peer, Result(peer.name))
        if not peer.can_compile:
            return
        compiled = Result(f"{peer.name}, compiled")
        if self.config.is_compiling:
            self._try(peer, compiled, is_compiled=True)
        else:
            compiled.status = "left out: --compile measures it"
            self._add(compiled)

    def _try(self, peer: Peer, result: Result, *, is_compiled: bool = False) -> None:
        spans: list[Span] = []
        try:
            spans = self._measure(peer, result, is_compiled=is_compiled)
        except Exception as error:  # noqa: BLE001 - what a peer does wrong is a line of the table
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            result.status = f"failed: {first[:120]}"
        self._add(result, spans)
        self._let_go()

    def _measure(self, peer: Peer, result: Result, *, is_compiled: bool) -> list[Span]:
        model = peer.build(self.reference)
        found = self._examine(model)
        agreement = compare(found, self.plain, has_our_weights=peer.has_our_weights)
        result.agreement = agreement.text
        if not agreement.is_met:
            result.status = f"disagrees: {agreement.text}"
            return []
        resident = self._resident()
        runner = LoopRunner(
            model,
            self.work.theirs,
            device=self.device,
            precision=self.precision,
            is_compiled=is_compiled,
            has_free_shapes=self.config.corpus is not None,
        )
        spans, result.memory_gb = self._time(runner, resident, beside=self.runner)
        return spans

    def _examine(self, model: nn.Module) -> Teaching:
        found = examine(model, self.batch, self.device)
        model.cpu()
        self._let_go()
        return found

    # -- timing

    def _time(
        self,
        runner: LoopRunner | TrainerRunner,
        resident: int,
        *,
        beside: TrainerRunner | None = None,
    ) -> tuple[list[Span], float | None]:
        """Warm up with a whole round, then take every round; ours before each where asked for.

        Gives the rounds and, on a GPU, the gigabytes needed at most beyond the `resident` bytes:
        in the warm-up, as a recorded step shows what it holds only while it is recorded.
        """
        is_gpu = self.device.type == "cuda"
        if is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
        runner.run(self.turns[0])
        peak = torch.cuda.max_memory_allocated(self.device) if is_gpu else 0
        spans = []
        for turn in self.turns:
            if beside is not None:
                self.ours.add_span(self._figures(beside.run(turn)))
            spans.append(runner.run(turn))
        return spans, (peak - resident) / 1e9 if is_gpu else None

    def _resident(self) -> int:
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else 0

    def _figures(self, span: Span) -> tuple[float, float, float]:
        """Give tokens a second, milliseconds a step, and the share of the ceiling."""
        work = self.work.theirs  # rows have the same numbers in both
        lengths = work.plan.src_lengths, work.plan.tgt_lengths
        operations = sum(
            count_operations(self.reference.config, *(side[rows] for side in lengths))
            for rows in span.batches
        )
        return (
            work.count_tokens(span.batches) / span.seconds,
            1000 * span.seconds / len(span.batches),
            operations / span.seconds / self.ceiling,
        )

    def _add(self, result: Result, spans: Sequence[Span] = ()) -> None:
        for span in spans:
            result.add_span(self._figures(span))
        if spans and result is not self.ours:
            beside = self.ours.rounds[-len(result.rounds) :]
            pairs = zip(beside, result.rounds, strict=True)
            result.ratios = [ours[0] / theirs[0] for ours, theirs in pairs]
        self.results.append(result)
        self.tell(name_result(result))

    def _let_go(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def report(self) -> dict[str, Any]:
        """Give everything that was found."""
        timed = [one for one in self.results if one is not self.ours and one.rounds]
        fastest = min(timed, key=lambda one: one.ratio or 0.0, default=None)
        return {
            "kind": "attendo bench train",
            "machine": describe_machine(self.device),
            "size": self.config.size,
            "num_parameters": self.reference.num_parameters(),
            "vocab_size": self.config.num_pieces,
            "batches": self.work.title,
            "padding": {
                "ours": self._waste(self.work.ours),
                "theirs": self._waste(self.work.theirs),
            },
            "precision": name_precision(self.precision),
            "steps": self.config.round_steps * self.config.num_rounds,
            "rounds": self.config.num_rounds,
            "ceiling": self.ceiling,
            "formula": FORMULA,
            "systems": [one.to_json() for one in self.results],
            "fastest_peer": fastest and fastest.name,
            "ratio": fastest and fastest.ratio,
            "ratios": fastest and fastest.ratios,
        }

    def _waste(self, work: Workload) -> float:
        """Give the share of padding in the batches that are timed."""
        timed = [
            rows
            for turn in self.turns
            for rows in work.batches[turn.begin + turn.num_warm : turn.end]
        ]
        return work.plan.waste(timed).total


def stir(model: Transformer) -> Transformer:
    """Move biases and norms away from 0 and 1, where a mix-up of two would not be seen."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model
