"""`attendo translate --cluster` on a Ray cluster of two nodes: the bytes of one process."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from support.object_store import store_environment

from attendo.bundle import save_bundle
from attendo.cli import main
from attendo.cli.build import run_verb
from attendo.cluster import ClusterTranslation
from attendo.model.transformer import Transformer
from attendo.translator import windows
from attendo.workflow.commands import translate_commands
from attendo.workflow.runner import BuildRunner
from attendo.workflow.step import Command, Step, StepGraph, StepPaths

ray = pytest.importorskip("ray")
s3fs = pytest.importorskip("s3fs")

OBJECT_STORE_BYTES = 80_000_000
WORDS = ("ka", "to", "mi", "re", "so", "lu")
NUM_LINES = 70
MODEL = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, object_store_address):
    """A cluster of two nodes of one core, to which this process is connected."""
    from ray.cluster_utils import Cluster

    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
        "ATTENDO_CACHE": str(tmp_path_factory.mktemp("cluster_cache")),
        **store_environment(object_store_address),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES}
        nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        try:
            nodes.add_node(**node)
            ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()


@pytest.fixture
def folder(tmp_path, monkeypatch, toy):
    """A model and files of every format; windows are small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(windows.MAX_WINDOW_LINES, "cpu", 4)
    tokenizer = toy.prepared.tokenizer
    torch.manual_seed(1)
    save_bundle(
        tmp_path / "model",
        Transformer(vocab_size=tokenizer.src_vocab_size, **MODEL).eval(),
        tokenizer,
    )
    draw = random.Random(1)  # noqa: S311 - texts of a test
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(NUM_LINES)]
    (tmp_path / "in").mkdir()
    content = "".join(f"{text}\n" for text in texts)
    Path("lines").write_text(content)
    Path("in/a.ko").write_text(content)
    Path("in/b.ko.gz").write_bytes(gzip.compress(content.encode()))
    Path("in/c.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))
    parquet.write_table(pa.table({"text": texts}), "in/d.parquet", row_group_size=9)
    return tmp_path


def call(capsys, *words: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main.run(["translate", "model", "--threads", "1", *map(str, words)])
    return int(ended.value.code or 0), capsys.readouterr().err


def workers_of_this_cluster() -> list[int]:
    """Return the processes of the actors that translate; those of other clusters are not ours."""
    return [
        process.pid
        for process in psutil.Process().children(recursive=True)
        if process.name().startswith("ray::Transl")
    ]


def texts_of(out: Path, name: str) -> list[str]:
    """Return the translations of a file."""
    parts = sorted((out / name).glob("part-*"))
    if name.endswith(".parquet"):
        tables = [parquet.read_table(part) for part in parts]
        return [one for table in tables for one in table.column("translation").to_pylist()]
    data = b"".join(
        gzip.decompress(part.read_bytes()) if name.endswith(".gz") else part.read_bytes()
        for part in parts
    )
    lines = data.decode().split("\n")[:-1]
    return [json.loads(one)["translation"] for one in lines] if "jsonl" in name else lines


def assert_same_as_one_process(capsys, out: Path, *, may_have_partial_files: bool = False) -> None:
    assert call(capsys, "-i", "lines", "-o", "whole", "--force")[0] == 0
    whole = Path("whole").read_text().split("\n")[:-1]
    assert len(whole) == NUM_LINES
    names = ["a.ko", "b.ko.gz", "c.jsonl", "d.parquet"]
    for name in names:
        assert texts_of(out, name) == whole, name
        stored = json.loads((out / name / "_SUCCESS").read_text())
        assert stored == {"lines": NUM_LINES, "shards": len(list((out / name).glob("part-*")))}
    parts = sorted((out / "a.ko").glob("part-*"))
    assert b"".join(part.read_bytes() for part in parts) == Path("whole").read_bytes()
    assert may_have_partial_files or not list(out.rglob(".*"))


def inodes(out: Path) -> dict[str, int]:
    return {str(part): part.stat().st_ino for part in out.rglob("part-*")}


CLUSTER = ("-i", "in", "-o", "out", "--cluster", "auto", "--shard-lines", 8)


def watch_shards(monkeypatch, act):
    """Call `act` with the number of shards written so far, after each."""
    account = ClusterTranslation._account
    num_written = [0]

    def watched(self, report, output):
        account(self, report, output)
        num_written[0] += 1
        act(num_written[0])

    monkeypatch.setattr(ClusterTranslation, "_account", watched)
    return num_written


def test_a_killed_worker_and_a_stopped_driver_leave_the_bytes_of_one_process(
    cluster, folder, monkeypatch, capsys
):
    """SIGKILL to a worker, then an interruption, then the same command with --resume."""
    out = folder / "out"
    kept = {}

    def disturb(num_written: int) -> None:
        if num_written == 3:
            os.kill(workers_of_this_cluster()[0], signal.SIGKILL)
        if num_written == 10:
            kept.update(inodes(out))
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        num_written = watch_shards(patch, disturb)
        code, errors = call(capsys, *CLUSTER)
    assert code == 130
    assert "a worker was lost" in errors
    assert "kept in out" in errors
    assert len(kept) >= 10
    code, errors = call(capsys, *CLUSTER)
    assert code == 2
    assert "--resume" in errors
    with monkeypatch.context() as patch:
        resumed = watch_shards(patch, lambda _: None)
        code, errors = call(capsys, *CLUSTER, "--resume")
    assert code == 0
    assert "280 lines of 4 files are translated" in errors
    assert_same_as_one_process(capsys, out)
    after = inodes(out)
    assert {name: after[name] for name in kept} == kept  # nothing was written twice
    assert num_written[0] + resumed[0] <= len(after)


def test_from_an_object_store_into_it(cluster, folder, bucket, capsys):
    store = s3fs.S3FileSystem()
    for path in Path("in").iterdir():
        store.put_file(str(path), f"{bucket}/in/{path.name}")
    addresses = ("-i", f"{bucket}/in", "-o", f"{bucket}/out")
    code, errors = call(capsys, *addresses, "--cluster", "auto", "--shard-lines", 8)
    assert code == 0, errors
    Path("out").mkdir()
    store.get(f"{bucket}/out/", "out/", recursive=True)
    assert_same_as_one_process(capsys, Path("out"))
    before = store.find(f"{bucket}/out", detail=True)
    code, errors = call(capsys, *addresses, "--cluster", "auto", "--resume")
    assert code == 0, errors
    assert "280 lines of 4 files are translated, 280 of them earlier" in errors
    store.invalidate_cache()
    after = store.find(f"{bucket}/out", detail=True)
    for name in before:
        if "/part-" in name:
            assert after[name]["LastModified"] == before[name]["LastModified"]


def test_a_damaged_file_is_named_and_the_others_are_translated(cluster, folder, capsys):
    damaged = Path("in/b.ko.gz")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-12])
    code, errors = call(capsys, *CLUSTER)
    assert code == 2
    assert "1 of 4 files could not be read to the end" in errors
    assert "b.ko.gz is a damaged gzip file" in errors
    assert {path.parent.name for path in Path("out").rglob("_SUCCESS")} == {
        "a.ko", "c.jsonl", "d.parquet"
    }  # fmt: skip


@pytest.mark.slow
def test_a_build_translates_the_same_on_a_cluster_and_goes_on(cluster, folder, monkeypatch):
    inputs = [folder / "lines", folder / "in" / "a.ko"]
    words = ["--sample", "--beam-size", "1", "--seed", "3", "--tag", "<bt>", "--threads", "1"]

    def steps(name: str, address: str | None) -> Step:
        def commands(paths: StepPaths) -> list[Command]:
            return translate_commands(paths, "model", "text", inputs, words, cluster=address)

        return Step(name, 1, {}, commands, ("text.out",), {"model": folder / "model"})

    graph = StepGraph([steps("alone", None), steps("shards", "auto")])
    runner = BuildRunner(graph, folder / "build", run_verb)
    with monkeypatch.context() as patch:
        watch_shards(patch, lambda number: pytest.fail("stop") if number == 3 else None)
        with pytest.raises(pytest.fail.Exception, match="stop"):
            runner.run(graph.steps)
    assert runner.run(graph.steps) == ["shards"]
    alone, shards = (next((folder / "build/steps" / one).glob("*/text.out"))
                     for one in ("alone", "shards"))  # fmt: skip
    assert alone.read_bytes() == shards.read_bytes()
    assert alone.read_text().count("<bt> ") == 2 * NUM_LINES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning:ray.*")  # Ray Data's own
@pytest.mark.filterwarnings("ignore:.*:UserWarning:ray.*")
def test_a_map_over_a_dataset(cluster, folder, capsys):
    from attendo import cluster as attendo_cluster

    dataset = ray.data.read_parquet(str(folder / "in" / "d.parquet"))
    translated = attendo_cluster.translate(dataset, "model", output_column="en", retry=True)
    rows = translated.take_all()
    assert call(capsys, "-i", "lines", "-o", "whole")[0] == 0
    expected = dict(
        zip(
            Path("lines").read_text().split("\n"),
            Path("whole").read_text().split("\n"),
            strict=True,
        )
    )
    assert len(rows) == NUM_LINES
    assert all(row["en"] == expected[row["text"]] for row in rows)


@pytest.mark.slow
def test_options_of_the_output(cluster, folder, capsys):
    options = ("--n-best", 2, "--agree-with", "lines", "--tag", "<bt>")
    files = ("-i", "in/a.ko", "--force", *options)
    assert call(capsys, *files, "-o", "whole")[0] == 0
    code, errors = call(capsys, *files, "-o", "out", "--cluster", "auto", "--shard-lines", 9)
    assert code == 0, errors
    parts = sorted(Path("out/a.ko").glob("part-*"))
    assert b"".join(part.read_bytes() for part in parts) == Path("whole").read_bytes()


def test_what_cannot_be_used_with_a_cluster(folder, capsys):
    for words, expected in (
        (("ka",), "needs --input and --output"),
        (("-i", "in", "-o", "out", "--trace", "t"), "no --trace"),
        (("-i", "in", "-o", "out", "--resume", "--force"), "both --resume and --force"),
        (("-i", "nothing/*", "-o", "out"), "no file matches"),
        (("-i", "in/c.jsonl", "-o", "out", "--json"), "one translation per row"),
        (("-i", "in", "-o", "out", "--agree-with", "lines"), "several translations"),
    ):
        code, errors = call(capsys, "--cluster", "127.0.0.1:1", *words)
        assert (code, expected in " ".join(errors.split())) == (2, True), errors


@pytest.mark.slow
def test_a_node_that_is_removed_in_the_middle(cluster, folder, monkeypatch, capsys):
    added = cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE_BYTES)
    cluster.wait_for_nodes()

    def disturb(num_written: int) -> None:
        if num_written == 5:
            cluster.remove_node(added, allow_graceful=False)

    watch_shards(monkeypatch, disturb)
    code, errors = call(capsys, *CLUSTER, "--workers", 3)
    assert code == 0
    assert "a worker was lost" in errors
    # A process of the lost node may have been about to write when it ended.
    assert_same_as_one_process(capsys, folder / "out", may_have_partial_files=True)
