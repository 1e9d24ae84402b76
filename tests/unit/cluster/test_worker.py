"""A worker without Ray, and the scheduler with workers that die."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from attendo.bundle import save_bundle
from attendo.cli.translation.cluster import OutputFormatter
from attendo.cluster.connection import WorkerShape, connect, probe
from attendo.cluster.formats import Row, TextLines
from attendo.cluster.job import read_model
from attendo.cluster.output import JOB_FILE
from attendo.cluster.scheduler import MAX_ATTEMPTS, ShardScheduler
from attendo.cluster.shards import Shard, cut_shards
from attendo.cluster.storage import Folder
from attendo.cluster.worker import Failure, ShardReport, TranslationWorker, WorkerConfig
from attendo.core.errors import AttendoError, InputError
from attendo.decoding.options import DecodingOptions
from attendo.translator import Translator

TEXT = TextLines(is_compressed=False)
OPTIONS = {"options": DecodingOptions(beam_size=2)}
LINES = ["ka to", "", "mi re so", "lu", "to to", "ka"]


@pytest.fixture
def model(toy, make_model, tmp_path) -> Path:
    tokenizer = toy.prepared.tokenizer
    save_bundle(tmp_path / "model", make_model(vocab_size=tokenizer.src_vocab_size), tokenizer)
    return tmp_path / "model"


@pytest.fixture
def config(tmp_path) -> WorkerConfig:
    output = tmp_path / "out"
    output.mkdir()
    (output / JOB_FILE).write_text("{}")
    decoder = {"engine": "attendo", "precision": "auto", "device": "cpu"}
    return WorkerConfig(str(output), decoder, OPTIONS, OutputFormatter())


def make_shards(lines, shard_rows=2):
    rows = (Row(line, line) for line in lines)
    return list(cut_shards(0, rows, TEXT, window_rows=2, shard_rows=shard_rows))


def test_a_worker_writes_what_one_process_translates(model, config):
    worker = TranslationWorker()
    assert worker.load(config, read_model(model)) == "cpu"
    shards = make_shards(LINES)
    for shard in shards:
        report = worker.translate(shard, TEXT, f"a/part-{shard.number:05}.txt")
        assert isinstance(report, ShardReport)
        assert report.num_rows == shard.num_rows
    whole = Translator.load(model, device="cpu").translate_lines(LINES, beam_size=2)
    parts = sorted(Path(config.output).glob("a/part-*"))
    assert "".join(part.read_text() for part in parts) == "".join(f"{one}\n" for one in whole)
    assert not list(Path(config.output).rglob(".*"))


def test_the_model_is_written_once_per_machine(model, config):
    files = read_model(model)
    first = files.unpack()
    before = (first / "model.safetensors").stat().st_ino
    assert files.unpack() == first
    assert (first / "model.safetensors").stat().st_ino == before


def test_a_full_disk_is_named_with_the_machine(model, config, monkeypatch):
    worker = TranslationWorker()
    worker.load(config, read_model(model))
    write = Path.write_bytes

    def full(path, content):
        if "part-" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    failure = worker.translate(make_shards(LINES)[0], TEXT, "a/part-00000.txt")
    assert isinstance(failure, Failure)
    error = failure.to_error()
    assert socket.gethostname() in error.reason
    assert "part-00000.txt: No space left on device" in error.reason
    assert "disk space" in str(error.hint)
    assert not list(Path(config.output).rglob("*part-*"))


def test_a_machine_that_does_not_see_the_output_or_has_another_version(model, config, tmp_path):
    worker = TranslationWorker()
    elsewhere = replace(config, output=str(tmp_path / "elsewhere"))
    failure = worker.load(elsewhere, read_model(model))
    assert "cannot be seen from this machine" in failure.reason
    failure = worker.load(replace(config, version="0.0.0"), read_model(model))
    assert "but the command is 0.0.0" in failure.reason
    assert "no model" in worker.translate(make_shards(LINES)[0], TEXT, "a").reason


# -- the scheduler


class LostError(Exception):
    """Stands for `RayActorError`."""


class FakeRay:
    """Calls actors at once; one that is dead raises `LostError`."""

    exceptions = SimpleNamespace(RayError=LostError, RayTaskError=ZeroDivisionError)

    def __init__(self, dies) -> None:
        self.dies, self.count, self.killed = dies, 0, []

    def remote(self, _cls):
        return self

    def options(self, **_):
        return SimpleNamespace(remote=self._make)

    def _make(self):
        self.count += 1
        actor = SimpleNamespace(number=self.count, done=0, is_dead=False)
        actor.load = SimpleNamespace(remote=lambda *_: self._ref(actor, lambda: "cpu"))
        return actor

    def _ref(self, actor, call):
        return SimpleNamespaceRef(actor, call)

    def wait(self, refs, *, num_returns, timeout):  # noqa: ARG002 - of Ray
        return refs[:num_returns][:1], refs[1:]

    def get(self, ref):
        if ref.actor.is_dead or self.dies(ref.actor):
            ref.actor.is_dead = True
            raise LostError("the worker died")
        return ref.call()

    def kill(self, actor):
        self.killed.append(actor.number)


class SimpleNamespaceRef:
    """A reference that can be a key."""

    def __init__(self, actor, call) -> None:
        self.actor, self.call = actor, call


def schedule(dies, shards, *, num_workers=2, translate=None):
    ray = FakeRay(dies)
    written = []

    def submit(actor, shard):
        def call():
            actor.done += 1
            if translate is not None:
                return translate(shard)
            written.append(shard.number)
            return ShardReport(shard.source, shard.number, shard.num_rows)

        return ray._ref(actor, call)

    messages = []
    counts = iter([0, 0])
    scheduler = ShardScheduler(
        ray, WorkerShape(1, 0), (), submit, lambda: next(counts, num_workers), messages.append
    )
    return ray, scheduler, written, messages


SHARDS = [Shard(0, number, 1, (1,), b"x", ()) for number in range(9)]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("attendo.cluster.scheduler.POLL_SECONDS", 0.0)


def test_every_shard_is_translated_once():
    ray, scheduler, written, messages = schedule(lambda _: False, SHARDS)
    reports = [one.number for one in scheduler.run(iter(SHARDS))]
    assert sorted(reports) == sorted(written) == list(range(9))
    assert messages == ["waiting for a machine with capacity for a worker"]
    assert sorted(ray.killed) == [1, 2]


def test_no_worker_starts_if_everything_is_translated():
    ray, scheduler, _, messages = schedule(lambda _: False, [])
    assert list(scheduler.run(iter([]))) == []
    assert (ray.count, messages) == (0, [])


def test_shards_of_a_lost_worker_are_translated_by_others():
    def dies(actor):
        return actor.number in {1, 3} and actor.done == 1

    ray, scheduler, written, messages = schedule(dies, SHARDS)
    reports = [one.number for one in scheduler.run(iter(SHARDS))]
    assert sorted(reports) == sorted(written) == list(range(9))
    assert scheduler.num_lost == 2
    assert sum("was lost" in one for one in messages) == 2
    assert scheduler.num_repeated >= 2
    assert ray.count == 4


def test_a_shard_that_kills_its_workers_ends_the_job_and_the_rest_is_kept():
    def translate(shard):
        if shard.number == 4:
            raise LostError("out of memory")
        return ShardReport(shard.source, shard.number, 1)

    ray, scheduler, _, _ = schedule(lambda _: False, SHARDS, num_workers=1, translate=translate)
    found = []
    with pytest.raises(AttendoError, match="workers die with shard 4 of file 1: out of memory"):
        found.extend(one.number for one in scheduler.run(iter(SHARDS)))
    assert ray.count == MAX_ATTEMPTS
    assert scheduler.workers == []


def test_workers_that_never_start():
    _, scheduler, _, _ = schedule(lambda _: True, SHARDS)
    with pytest.raises(AttendoError, match="die while they load the model"):
        list(scheduler.run(iter(SHARDS)))


def test_an_error_of_a_worker_is_raised_and_what_is_written_stays():
    def translate(shard):
        if shard.number == 4:
            return Failure("cannot write out/part-00004: full", "free some space", "node7")
        return ShardReport(shard.source, shard.number, 1)

    _, scheduler, _, _ = schedule(lambda _: False, SHARDS, translate=translate)
    found = []
    with pytest.raises(AttendoError, match="node7: cannot write out/part-00004") as caught:
        found.extend(one.number for one in scheduler.run(iter(SHARDS)))
    assert caught.value.hint == "free some space"
    assert set(found) >= {0, 1}


# -- the connection


def test_a_cluster_that_cannot_be_reached_is_named_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        probe(f"ray://127.0.0.1:{port}")
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(AttendoError, match=f"cannot reach the cluster {address}"), \
                connect(address):  # fmt: skip
            pass
    with pytest.raises(InputError, match="no cluster address"):
        probe("nonsense:port")


def test_without_ray_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AttendoError, match=r"attendo\[cluster\]"), connect("auto"):
        pass


def test_an_output_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write"):
        Folder(str(tmp_path / "file")).write("a/b", b"x")
