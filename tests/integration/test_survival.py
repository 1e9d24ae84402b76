"""A run survives kills, signals, damaged files and a full disk, and ends with the same bits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.fork_server import SignalAt

if TYPE_CHECKING:
    from pathlib import Path

NUM_STEPS = 300


@pytest.fixture(scope="module")
def long_training(training):
    return training.having(f"train.max_steps={NUM_STEPS}")


@pytest.fixture(scope="module")
def undisturbed(long_training, tmp_path_factory):
    """The folder of a run that nothing happened to."""
    # In a new interpreter: the hash seed is another one than the fork server's.
    return long_training.start_anew(tmp_path_factory.mktemp("undisturbed") / "run").end().folder


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


# -- kills


def test_a_run_that_is_killed_at_many_moments_ends_with_the_same_bits(
    long_training, undisturbed, tmp_path
):
    out, cache = tmp_path / "run", tmp_path / "cache"
    command = long_training.having(cache=cache)

    def kill(event: str, pattern: str, count: int = 1) -> None:
        """Kill it before a file operation: at the same moment of each run of this test."""
        moment = SignalAt(event, str(tmp_path / pattern), count)
        command.start(out, signal_at=moment).end(-signal.SIGKILL)

    def leaves(pattern: str) -> bool:
        return any(tmp_path.glob(pattern))

    kill("open", "cache/.*.partial/*", 20)
    assert leaves("cache/.*.partial"), "not killed inside the preparation"
    kill("os.rename", "cache/.*.partial")
    assert leaves("cache/.*.partial"), "not killed at the end of the preparation"
    kill("os.mkdir", "run/checkpoints")
    assert not leaves("run/log.jsonl")
    kill("open", "run/log.jsonl", 7)  # in the first steps, before any checkpoint
    assert not leaves("run/checkpoints/step_*")
    kill("open", "run/log.jsonl", 25)
    kill("open", "run/checkpoints/.step_*.partial/checkpoint.json")
    assert leaves("run/checkpoints/.step_*.partial"), "not killed inside a save"
    kill("os.rename", "run/checkpoints/.step_*.partial", 3)
    assert leaves("run/checkpoints/.step_*.partial"), "not killed at the end of a save"
    kill("open", "run/samples.jsonl")
    kill("open", "run/log.jsonl", 68)
    kill("open", f"run/checkpoints/step_{NUM_STEPS}/weights.safetensors")
    assert leaves(f"run/checkpoints/step_{NUM_STEPS}")
    kill("open", "run/..model.fresh.partial/bundle.json")
    assert leaves("run/..model.fresh.partial"), "not killed while the model was written"
    kill("os.rename", "run/.model.fresh")
    assert leaves("run/.model.fresh"), "not killed before the model got its name"
    finished = command.run(out)
    assert finished.folder.outcome == undisturbed.outcome
    assert not list(out.rglob(".*.partial"))
    steps = [step for step, _ in finished.folder.losses]
    assert steps == list(range(1, NUM_STEPS + 1))  # each told once


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_saves_and_explains_how_to_resume(
    long_training, undisturbed, tmp_path, number
):
    moment = SignalAt("open", "*/run/log.jsonl", 27, number)
    stopped = long_training.start(tmp_path / "run", signal_at=moment).end(128 + number)
    assert "Traceback" not in stopped.stderr
    assert stopped.stopped_step == stopped.folder.newest_step < NUM_STEPS
    finished = long_training.run(tmp_path / "run")
    assert f"resuming from step {stopped.stopped_step}" in finished.stdout
    assert finished.folder.outcome == undisturbed.outcome


def test_a_closed_terminal_disturbs_nothing(long_training, undisturbed, tmp_path):
    started = long_training.start(tmp_path / "run")
    started.process.stdout.close()  # every further write fails
    started.process.stderr.close()
    assert started.process.wait(timeout=600) == 0
    assert started.folder.outcome == undisturbed.outcome


def test_a_hangup_with_a_closed_terminal_saves(long_training, undisturbed, tmp_path):
    moment = SignalAt("open", "*/run/log.jsonl", 27, signal.SIGHUP)
    started = long_training.start(tmp_path / "run", signal_at=moment)
    started.process.stdout.close()
    started.process.stderr.close()
    assert started.process.wait(timeout=600) == 128 + signal.SIGHUP
    assert 0 < started.folder.newest_step == started.folder.losses[-1][0] < NUM_STEPS
    assert long_training.run(tmp_path / "run").folder.outcome == undisturbed.outcome


# -- what a crash or a bad disk may leave


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (truncate, "weights.safetensors"),
        (flip_a_bit, "optimizer.safetensors"),
        (flip_a_bit, "checkpoint.json"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over(long_training, undisturbed, tmp_path, damage, name):
    out = tmp_path / "run"
    shutil.copytree(undisturbed.path, out)
    shutil.rmtree(out / "model")
    last = out / "checkpoints" / f"step_{NUM_STEPS}"
    damage(last / name)
    finished = long_training.run(out)
    assert f"{last} is damaged" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert f"resuming from step {NUM_STEPS - 10}" in finished.stdout
    assert finished.folder.outcome == undisturbed.outcome
    assert last.with_name(f"broken_{last.name}").is_dir()


def test_leftovers_of_a_crash_do_no_harm(long_training, undisturbed, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(undisturbed.path, out)
    shutil.rmtree(out / "checkpoints" / f"step_{NUM_STEPS}")
    # between the two renames that put a new model in the place of an older one
    shutil.copytree(out / "model", out / ".model.fresh")
    (out / "model").rename(out / ".model.older")
    # in the middle of a line, and of a character
    for name, text in (("log.jsonl", '{"step": 300, "ev'), ("samples.jsonl", '{"step": 300, "왕')):
        with (out / name).open("ab") as file:
            file.write(text.encode()[:-1])
    (out / "checkpoints" / ".step_277.partial").mkdir()
    (out / ".config.json.77.partial").write_text("{")
    finished = long_training.run(out)
    assert finished.folder.outcome == undisturbed.outcome
    assert not [path.name for path in out.iterdir() if path.name.startswith(".model")]
    assert not list((out / "checkpoints").glob(".*"))


def test_a_crash_while_the_folder_was_made_does_no_harm(training, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / ".config.json.77.partial").write_text("{")
    (out / ".lock").touch()
    training.having("train.max_steps=1").run(out)


# -- a full disk


def assert_lost_nothing_by_a_full_disk(failed, before: dict[str, bytes]) -> None:
    assert "Traceback" not in failed.stderr
    assert "could not be written" in failed.stderr
    assert "free some disk space and run the same command again" in failed.stderr
    after = contents(failed.folder.checkpoints_dir)
    assert {name: after.get(name) for name in before} == before
    assert not list(failed.folder.checkpoints_dir.glob(".*"))


def test_a_save_without_space_loses_no_data(long_training, undisturbed, tmp_path):
    out = tmp_path / "run"
    first = long_training.having("train.max_steps=30").run(out)
    before = contents(first.folder.checkpoints_dir)

    # The optimizer's file is larger, the weights and the log are not.
    failed = long_training.having(max_file_bytes=110_000).run(out, code=2)
    assert_lost_nothing_by_a_full_disk(failed, before)
    assert "checkpoint step_40 could not be written" in failed.stderr
    assert "File too large" in failed.stderr
    assert "it resumes from step 30" in failed.stderr
    finished = long_training.run(out)
    assert finished.folder.outcome == undisturbed.outcome


def test_a_disk_that_is_full_for_real_loses_no_data(long_training, undisturbed, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1300k", "tmpfs", disk], capture_output=True
    )
    if made.returncode:
        pytest.skip("no right to mount a small disk")
    try:
        failed = long_training.run(disk / "run", code=2)
        assert "No space left on device" in failed.stderr
        assert_lost_nothing_by_a_full_disk(failed, {})
        assert failed.folder.newest_step >= 20
        again = long_training.run(disk / "run", code=2)
        assert_lost_nothing_by_a_full_disk(again, contents(failed.folder.checkpoints_dir))
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        finished = long_training.run(disk / "run")
        assert finished.folder.outcome == undisturbed.outcome
    finally:
        subprocess.run(["umount", disk], check=True)


# -- what cannot be trained on


def longer(directory: Path, training):
    (directory / "a.src").write_text("one\ntwo\nthree\n")
    (directory / "a.tgt").write_text("eins\nzwei\n")
    return {}, (), ["3 lines", "2"]


def wrong_encoding(directory: Path, training):
    (directory / "a.src").write_text("one\ntwo\n")
    (directory / "a.tgt").write_bytes("eins\nfünf\n".encode("latin-1"))
    return {}, (), ["a.tgt", "line 2", "byte 6", "0xfc"]


def empty(directory: Path, training):
    (directory / "a.src").touch()
    (directory / "a.tgt").touch()
    return {}, (), ["empty"]


def copied(directory: Path, training):
    (directory / "a.src").write_bytes(training.src.read_bytes())
    (directory / "a.tgt").write_bytes(training.src.read_bytes())
    return {}, (), ["same"]


def missing(directory: Path, training):
    return {}, (), ["a.src", "does not exist"]


def misspelt(directory: Path, training):
    return {"src": training.src, "tgt": training.tgt}, ("train.max_step=5",), ["'max_steps'?"]


@pytest.mark.parametrize("make", [longer, wrong_encoding, empty, copied, missing, misspelt])
def test_bad_input_is_reported_before_anything_is_touched(training, tmp_path, make):
    fields, settings, words = make(tmp_path, training)
    files = {"src": tmp_path / "a.src", "tgt": tmp_path / "a.tgt", **fields}
    failed = training.having(*settings, **files).run(tmp_path / "run", code=2)
    for word in ("error: ", *words):
        assert word in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "run").exists()  # the right command may use the name


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_bad_input_leaves_an_older_run_alone(training, undisturbed, tmp_path, options):
    out = tmp_path / "run"
    shutil.copytree(undisturbed.path, out)
    before = contents(out)
    bad = training.having(src=tmp_path / "none.src")
    failed = bad.run(out, *options, code=2)
    assert "does not exist" in failed.stderr
    assert contents(out) == before


def test_the_folder_of_another_run_is_kept(training, undisturbed, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(undisturbed.path, out)
    before = contents(out)
    failed = training.having("train.seed=2").run(out, code=2)
    assert "contains another run" in failed.stderr
    assert "train.seed: 1 there, 2 here" in failed.stderr
    assert "--force" in failed.stderr
    assert contents(out) == before
    other = training.having("train.seed=2", "train.max_steps=1").run(out, "--force")
    assert other.folder.newest_step == 1


def test_a_folder_that_is_not_a_run_is_kept(training, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    failed = training.run(tmp_path, "--force", code=2)
    assert "does not contain a run" in failed.stderr
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_a_second_command_does_not_disturb_the_first(long_training, undisturbed, tmp_path):
    first = long_training.start(tmp_path / "run")
    first.pass_step(10)
    first.process.send_signal(signal.SIGSTOP)
    try:
        refused = long_training.run(tmp_path / "run", code=2)
    finally:
        first.process.send_signal(signal.SIGCONT)
    assert "another process is working in" in refused.stderr
    assert first.end().folder.outcome == undisturbed.outcome
