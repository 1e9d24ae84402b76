"""Two processes on CPU (gloo) learn what one learns; those that die are started again."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from attendo.data.batching import shard_rows
from attendo.data.packed_batching import PackedBatchPlan
from attendo.data.pipeline import prepare_data
from attendo.tasks.config import RunConfig

TOLERANCE = 1e-4
"""Of losses (relative) and of weights: sums over two processes are rounded in another order."""


@pytest.fixture(scope="module")
def calm(training):
    """The command without dropout: its masks are drawn by each process for its own rows."""
    return training.having("model.dropout=0", "train.average_checkpoints=2")


@pytest.fixture(scope="module")
def alone(calm, tmp_path_factory):
    """The folder of thirty steps on one process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    return calm.having("train.max_steps=30").run(out).folder


@pytest.fixture(scope="module")
def pair(training):
    """The command under torchrun, with dropout and enough steps to be disturbed in."""
    return training.having("train.max_steps=120").under_torchrun("--max-restarts", "3")


@pytest.fixture(scope="module")
def undisturbed(pair, tmp_path_factory):
    """The folder of a run on two processes that nothing happened to."""
    return pair.run_pair(tmp_path_factory.mktemp("undisturbed") / "run").folder


def assert_alike(folder, other, *, num_steps: int) -> None:
    assert folder.newest_step == other.newest_step == num_steps
    steps, ours = zip(*folder.losses, strict=True)
    _, theirs = zip(*other.losses, strict=True)
    assert steps == tuple(range(1, num_steps + 1))
    assert ours == pytest.approx(theirs, rel=TOLERANCE)
    for name, tensor in folder.weights.items():
        if name.endswith("key.bias"):
            continue  # changes nothing (softmax): Adam makes full steps out of rounding noise
        torch.testing.assert_close(tensor, other.weights[name], rtol=0, atol=TOLERANCE)


def test_two_processes_learn_what_one_learns(calm, alone, tmp_path):
    both = calm.having("train.max_steps=30").run_pair(tmp_path / "run")
    assert_alike(both.folder, alone, num_steps=30)
    assert both.stdout.count("done: dev BLEU") == 1  # one speaks
    assert "Warning" not in both.stderr


def test_a_process_without_a_row_of_its_own_waits_in_step(calm, tmp_path):
    narrow = calm.having(
        "train.max_steps=30", "train.batch_tokens=16", "train.accumulation_steps=2"
    )
    one = narrow.run(tmp_path / "one").folder
    both = narrow.run_pair(tmp_path / "both").folder
    plan = plan_of(one, narrow.cache)
    assert min(len(rows) for rows in plan.epoch(0)) == 1
    assert_alike(both, one, num_steps=30)


def plan_of(folder, cache: Path) -> PackedBatchPlan:
    config = RunConfig.load(folder.path / "config.json")
    prepared = prepare_data(config.data, cache, seed=config.train.seed)
    return PackedBatchPlan(
        prepared.train, batch_tokens=config.train.batch_tokens, seed=config.train.seed
    )


def test_processes_share_every_pair_once(alone, calm):
    plan = plan_of(alone, calm.cache)
    parts = [
        shard_rows(rows, rank, 3)
        for epoch in (0, 1)
        for rows in plan.epoch(epoch)
        for rank in range(3)
    ]
    shared = np.sort(np.concatenate(parts))
    assert shared.tolist() == np.repeat(np.arange(len(plan.tgt_lengths)), 2).tolist()


def test_spread_weights_learn_the_same_and_continue_from_a_checkpoint(calm, tmp_path):
    padded = calm.having("train.sequence_packing=false")  # as spread weights ask for
    one = padded.having("train.ema_decay=0.9", "train.clip_norm=1", "train.validate_every=10")
    alone = one.having("train.max_steps=30").run(tmp_path / "one").folder
    spread = one.having("train.fsdp=true")
    whole = spread.having("train.max_steps=30").run_pair(tmp_path / "whole").folder
    assert_alike(whole, alone, num_steps=30)
    spread.having("train.max_steps=20").run_pair(tmp_path / "parts")
    parts = spread.having("train.max_steps=30").run_pair(tmp_path / "parts")
    assert "resuming from step 20" in parts.stdout
    assert parts.folder.outcome == whole.outcome


def test_two_processes_continue_from_the_copy_of_their_run(calm, tmp_path):
    storage = ("--storage", str(tmp_path / "copy"))
    whole = calm.having("train.max_steps=30").run_pair(tmp_path / "whole").folder
    calm.having("train.max_steps=20").run_pair(tmp_path / "lost", *storage)
    shutil.rmtree(tmp_path / "lost")
    both = calm.having("train.max_steps=30").run_pair(tmp_path / "new", *storage)
    assert both.stdout.count("fetched step 20") == 1
    assert "resuming from step 20" in both.stdout
    assert both.folder.outcome == whole.outcome
    for name in ("report.json", "model/model.safetensors", "checkpoints/step_30/checkpoint.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "new" / name).read_bytes()


CLOSING = """
import os
from pathlib import Path
from torch import nn, ones
from attendo.training.distributed import ProcessGroup

def threads():
    return {task.name for task in Path("/proc/self/task").iterdir()}

before = threads()
processes = ProcessGroup()
talking = threads() - before
assert talking, "gloo talks by threads"
model = processes.wrap(nn.Linear(8, 8), fsdp=True)
model(ones(2, 8)).sum().backward()
whole = [weight.full_tensor() for weight in model.parameters()]
processes.all_reduce_sum(ones(1))
processes.close()
assert not talking & threads(), "a thread is left that aborts the process at its end"
"""


def test_the_threads_that_talk_last_end_with_the_group_also_where_weights_are_spread(run_pair_of):
    run_pair_of(CLOSING)


INTERRUPTED = """
import gc
from torch import nn, ones
from torch.nn.parallel import DistributedDataParallel
from attendo.training.distributed import ProcessGroup

processes = ProcessGroup()

def train():
    model = processes.wrap(nn.Linear(8, 8), fsdp=False)
    model(ones(2, 8)).sum().backward()
    raise KeyboardInterrupt

try:
    try:
        train()
    finally:
        processes.close()
except KeyboardInterrupt as error:
    assert error.__traceback__ is not None  # which would keep the model of `train`
    assert not any(type(one) is DistributedDataParallel for one in gc.get_objects())
else:
    raise AssertionError("it was interrupted")
"""


def test_bug_a_model_that_outlives_its_group_can_hang_an_interrupted_run(run_pair_of):
    run_pair_of(INTERRUPTED)


def workers_of(agent: int) -> dict[int, int]:
    """Return the process of each rank below torchrun's agent."""
    found = {}
    for number in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        try:
            words = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ranks = [int(word[5:]) for word in words if word.startswith(b"RANK=")]
        found |= {rank: int(number) for rank in ranks}
    return found


def test_torchrun_restarts_workers_that_die_and_lets_them_save_when_asked_to_stop(
    pair, undisturbed, tmp_path
):
    started = pair.start(tmp_path / "run", "--force")  # which a restart must not repeat
    for rank, step in ((1, 20), (0, 60)):
        started.pass_step(step)
        os.kill(workers_of(started.process.pid)[rank], signal.SIGKILL)
    started.pass_step(80)
    started.process.send_signal(signal.SIGTERM)
    stopped = started.end(None)
    assert stopped.stdout.count("resuming from step") == 2
    assert 80 <= stopped.stopped_step == stopped.folder.newest_step < 120
    finished = pair.run_pair(tmp_path / "run")
    assert finished.folder.outcome == undisturbed.outcome


def test_when_the_first_process_fails_no_other_hangs(calm, tmp_path):
    limited = calm.having("train.max_steps=30", max_file_bytes=110_000)
    failed = limited.run_pair(tmp_path / "run", code=2)
    assert "checkpoint step_10 could not be written" in failed.stderr
    assert "the first process failed; see its error message" in failed.stderr
