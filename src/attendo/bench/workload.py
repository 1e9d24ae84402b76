"""The sentences on which Attendo and every peer are timed: made once, the same for all.

They are stored as a tokenized corpus and batched as in training: reading them is included in the
time. Our batches are those of `attendo train`, packed if the model supports it; a peer gets the
best that it supports: padded sentences of similar length. Equal lengths make the same batches for
both.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from attendo.core.errors import InputError
from attendo.core.files import cache_dir
from attendo.core.message import message
from attendo.data.batching import BatchPlan
from attendo.data.config import DataConfig
from attendo.data.pipeline import prepare_data
from attendo.data.shards import TokenizedCorpus, write_shards
from attendo.tasks.text_task import make_plan
from attendo.text.tokenizer import END_ID, Tokenizer
from attendo.training.config import TrainConfig
from attendo.training.distributed import ProcessGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import torch

    from attendo.bench.config import Shape, TrainingBenchConfig
    from attendo.data.batching import Batch, Rows
    from attendo.data.pipeline import PreparedData
    from attendo.model.transformer import Transformer

NUM_DISTINCT = 8
"""Number of different random batches; an epoch repeats them."""


class Workload(NamedTuple):
    """Batches, in the order of their use."""

    plan: BatchPlan
    batches: list[Rows]
    """The batches of the first epoch."""

    @classmethod
    def from_plan(cls, plan: BatchPlan) -> Workload:
        """Return the first epoch of a plan."""
        return cls(plan, plan.epoch(0))

    def count_tokens(self, batches: Sequence[Rows]) -> int:
        """Return the number of real target tokens."""
        return sum(int(self.plan.tgt_lengths[rows].sum()) for rows in batches)

    def read_sample(self, num_pairs: int) -> Batch:
        """Read some pairs of the first batch, including the shortest and the longest."""
        rows = self.batches[0]
        order = np.argsort(self.plan.tgt_lengths[rows], kind="stable")
        indices = np.linspace(0, len(rows) - 1, min(num_pairs, len(rows))).round().astype(int)
        return self.plan.read(rows[order[indices]])


class WorkloadPair(NamedTuple):
    """The same sentences in our batches and in theirs."""

    title: str
    ours: Workload
    theirs: Workload

    @property
    def num_batches(self) -> int:
        """Return the number of batches that both have."""
        return min(len(self.ours.batches), len(self.theirs.batches))


def make_workloads(
    config: TrainingBenchConfig,
    model: Transformer,
    folder: Path,
    *,
    num_batches: int,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> WorkloadPair:
    """Make at least `num_batches` batches, stored in `folder`."""
    if config.corpus is None:
        title = str(config.shape)
        corpora = sample_pairs(config, config.shape, folder, num_batches=num_batches)
    else:
        title = f"{config.corpus[0].name} and {config.corpus[1].name}, {config.token_budget} tokens"
        corpora = read_corpus(config, progress)
    prepared = cast("PreparedData", SimpleNamespace(train=tuple(corpora)))
    settings = TrainConfig(batch_tokens=config.token_budget, seed=config.seed)
    workloads = WorkloadPair(
        title,
        Workload.from_plan(
            make_plan(settings, prepared, model, single_process(config.torch_device))
        ),
        Workload.from_plan(BatchPlan(corpora, batch_tokens=config.token_budget, seed=config.seed)),
    )
    if workloads.num_batches < num_batches:
        raise InputError(
            message(
                "the corpus makes {num_batches} batches of {token_budget} tokens, "
                "{num_needed} are needed",
                num_batches=workloads.num_batches,
                token_budget=config.token_budget,
                num_needed=num_batches,
            ),
            hint="use fewer --steps, a smaller --batch-tokens, or a larger corpus",
        )
    return workloads


def single_process(device: torch.device) -> ProcessGroup:
    """Return this process alone, on a device."""
    process_group = ProcessGroup().single()
    process_group.device = device
    return process_group


def sample_pairs(
    config: TrainingBenchConfig, shape: Shape, folder: Path, *, num_batches: int
) -> list[tuple[TokenizedCorpus, float]]:
    """Return random ids, all sentences equally long."""
    rng = np.random.default_rng(config.seed)
    num_pairs = shape.num_sentences * min(NUM_DISTINCT, num_batches)
    sides = {"src": shape.src_length, "tgt": shape.tgt_length}
    for side, length in sides.items():
        ids = rng.integers(END_ID + 1, config.actual_vocab_size, size=(num_pairs, length - 1))
        lines = "".join(" ".join(map(str, row)) + "\n" for row in ids.tolist())
        (folder / f"ids.{side}").write_text(lines, encoding="ascii")
    tokenizer = cast("Tokenizer", DummyTokenizer(config.actual_vocab_size))
    write_shards(folder / "ids.src", folder / "ids.tgt", tokenizer, folder / "shards")
    times = -(-num_batches * shape.num_sentences // num_pairs)
    return [(TokenizedCorpus.load(folder / "shards"), float(times))]


class DummyTokenizer:
    """A tokenizer for texts that are ids."""

    fingerprint = "numbers"

    def __init__(self, vocab_size: int) -> None:
        self.src_vocab_size = self.tgt_vocab_size = vocab_size

    def encode_src(self, texts: Sequence[str], **_: Any) -> list[list[int]]:
        """Parse the ids."""
        return [[*map(int, text.split()), END_ID] for text in texts]

    encode_tgt = encode_src

    def src_pieces(self, ids: Iterable[int]) -> list[str]:
        """Format the ids."""
        return [str(number) for number in ids]

    tgt_pieces = src_pieces

    def save(self, folder: Path) -> None:
        """Save nothing: ids need no model."""


def read_corpus(
    config: TrainingBenchConfig, progress: Callable[[str, int, int | None], None] | None
) -> list[tuple[TokenizedCorpus, float]]:
    """Prepare two text files as for training; the model's vocabulary may be larger than theirs."""
    assert config.corpus is not None  # noqa: S101 - checked by the caller
    src, tgt = config.corpus
    data = DataConfig(corpora=({"src": src, "tgt": tgt},))  # type: ignore[arg-type]
    prepared = prepare_data(data, cache_dir(), seed=config.seed, progress=progress)
    needed = max(prepared.tokenizer.src_vocab_size, prepared.tokenizer.tgt_vocab_size)
    if needed > config.actual_vocab_size:
        raise InputError(
            message(
                "the corpus makes a vocabulary of {needed:,}, size '{size}' has {available:,}",
                needed=needed,
                size=config.size,
                available=config.actual_vocab_size,
            ),
            hint=message("set --vocab {needed}", needed=needed),
        )
    return list(prepared.train)
