"""Files in shards: the windows of one process, whatever the format, and nothing lost by errors."""

from __future__ import annotations

import gzip
import json
from itertools import islice

import pyarrow as pa
import pytest
from pyarrow import parquet

from attendo.cluster.formats import Row, TextLines, choose_format
from attendo.cluster.output import JobOutput
from attendo.cluster.shards import cut_shards, name_folders
from attendo.cluster.storage import Folder, ReadPosition, find_sources
from attendo.cluster.worker import take_windows
from attendo.core.errors import InputError
from attendo.translator.pipeline import group_lines

TEXT = TextLines(is_compressed=False)
LINES = ["ka to", "", "mi 1", "re", "so", "lu lu", "ka", "to", "  ", "mi", "re\u2028so", "lu", "x"]


def rows_of(lines):
    return (Row(line, line) for line in lines)


@pytest.mark.parametrize("num_lines", [0, 1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("shard_rows", [1, 8, 100])
def test_shards_have_the_windows_of_one_process(num_lines, shard_rows):
    lines = [f"line {number}" for number in range(num_lines)]
    shards = list(cut_shards(0, rows_of(lines), TEXT, window_rows=8, shard_rows=shard_rows))
    windows = [
        window
        for shard in shards
        for window in take_windows(TEXT.texts(shard.content), shard.window_sizes)
    ]
    assert windows == list(group_lines(lines, 8))
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert all(shard.num_rows >= shard_rows for shard in shards[:-1])


def test_finished_shards_are_counted_and_not_packed_and_references_stay_aligned():
    lines = [f"{number}" for number in range(20)]
    options = {"window_rows": 4, "shard_rows": 4, "references": [f"ref {one}" for one in lines]}
    whole = list(cut_shards(0, rows_of(lines), TEXT, **options))
    rest = list(cut_shards(0, rows_of(lines), TEXT, done={0, 2}, **options))
    assert [one.num_rows for one in rest] == [one.num_rows for one in whole]
    assert [bool(one.content) for one in rest] == [one.number not in {0, 2} for one in rest]
    assert [one for one in rest if one.number not in {0, 2}] == [
        one for one in whole if one.number not in {0, 2}
    ]
    for shard in whole:
        assert list(shard.references) == [f"ref {one}" for one in TEXT.texts(shard.content)]


@pytest.mark.parametrize("num_read", [0, 1, 3, 8, 10, 11, 12, 18, 19, 20])
def test_an_unreadable_file_gives_only_the_shards_that_it_would_give_whole(num_read):
    lines = [f"{number}" for number in range(20)]

    def damaged():
        yield from islice(rows_of(lines), num_read)
        raise InputError("damaged")

    options = {"window_rows": 4, "shard_rows": 8}
    whole = list(cut_shards(0, rows_of(lines), TEXT, **options))
    found = []
    with pytest.raises(InputError, match="damaged"):
        found.extend(cut_shards(0, damaged(), TEXT, **options))
    assert found == whole[: len(found)]
    assert [one.num_rows for one in whole] == [11, 8, 1]
    assert len(found) == (num_read >= 11) + (num_read >= 19)


def write_table(path, **columns):
    parquet.write_table(pa.table(columns), path, row_group_size=5)


@pytest.mark.parametrize("name", ["a.en", "a.en.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_every_format_keeps_its_rows(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        texts = [*LINES[:-1], None]
        write_table(path, text=texts, number=list(range(len(LINES))))
    else:
        content = "".join(f"{line}\n" for line in LINES)
        if ".jsonl" in name:
            texts = [*LINES[:-2], "two\nlines", None]
            content = "".join(json.dumps({"text": one, "id": i}) + "\n"
                              for i, one in enumerate(texts))  # fmt: skip
        path.write_bytes(
            gzip.compress(content.encode()) if name.endswith("gz") else content.encode()
        )
    row_format = choose_format(str(path))
    position = ReadPosition()
    rows = row_format.read(str(path), position)
    shards = list(cut_shards(0, rows, row_format, window_rows=4, shard_rows=6))
    assert len(shards) > 1
    out = []
    for shard in shards:
        texts = row_format.texts(shard.content)
        assert sum(shard.window_sizes) == len(texts) == shard.num_rows
        rendered = row_format.render(shard.content, [text.upper() for text in texts])
        assert rendered == row_format.render(shard.content, [text.upper() for text in texts])
        part = tmp_path / f"part{row_format.suffix}"
        part.write_bytes(rendered)
        if name.endswith(".parquet"):
            out += parquet.read_table(part).to_pylist()
        else:
            data = gzip.decompress(rendered) if name.endswith("gz") else rendered
            out += data.decode().split("\n")[:-1]
    if name.endswith(".parquet"):
        assert out == [
            {"text": text, "number": i, "translation": (text or "").upper()}
            for i, text in enumerate([*LINES[:-1], None])
        ]
    elif ".jsonl" in name:
        assert [json.loads(one)["translation"] for one in out] == [
            (one or "").upper() for one in [*LINES[:-2], "two\nlines", None]
        ]
        assert [json.loads(one)["id"] for one in out] == list(range(len(LINES)))
    else:
        assert out == [line.upper() for line in LINES]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [("a.jsonl", b'{"text": "x"}\n{"txt": "y"}\n', "line 2 has no text in 'text'"),
     ("a.jsonl", b"[1]\n", "line 1 has no text"), ("a.jsonl", b"{\n", "line 1 is not JSON"),
     ("a.parquet", b"PAR1 no", "cannot read"), ("a.en", b"ka\n\xff\n", "0xff is not valid UTF-8"),
     ("a.en.gz", gzip.compress(b"ka\n" * 999, mtime=0)[:-9], "damaged gzip")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected) as caught:
        list(choose_format(str(path)).read(str(path)))
    assert str(path) in str(caught.value)


def test_parquet_without_the_column(tmp_path):
    write_table(tmp_path / "a.parquet", src=["x"])
    with pytest.raises(InputError, match="no text in 'text'") as caught:
        list(choose_format("a.parquet").read(str(tmp_path / "a.parquet")))
    assert "src" in str(caught.value)


def test_folders_of_files_in_several_folders():
    assert name_folders(["/d/a/x.en", "/d/a/y.en"]) == ["x.en", "y.en"]
    assert name_folders(["/d/a/x.en", "/d/x.en"]) == ["a/x.en", "x.en"]


# -- storage


def test_sources_of_a_pattern_a_folder_and_a_file(tmp_path):
    for name in ("b.en", "a.en", ".hidden", "sub/c.en", "_job.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    names = [one.address for one in find_sources(str(tmp_path))]
    assert names == [str(tmp_path / name) for name in ("a.en", "b.en", "sub/c.en")]
    assert len(find_sources(f"{tmp_path}/*.en")) == 2
    assert find_sources(f"file://{tmp_path}/a.en")[0].address == str(tmp_path / "a.en")
    for wrong in ("*.xx", "c.en"):
        with pytest.raises(InputError, match=r"no file matches|does not exist"):
            find_sources(f"{tmp_path}/{wrong}")


def test_a_changed_file_has_another_digest(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 300_000)
    before = find_sources(str(path))[0].digest
    assert find_sources(str(path))[0].digest == before
    path.write_bytes(b"x" * 299_999 + b"y")
    assert find_sources(str(path))[0].digest != before


def test_an_object_store_is_read_and_written():
    folder = Folder("memory://store/out")
    folder.write("a/part-00000.txt", b"x\ny\n")
    assert folder.names() == ["a/part-00000.txt"]
    assert folder.read("a/part-00000.txt") == b"x\ny\n"
    assert folder.read("missing") is None
    source = find_sources("memory://store/out/*/part-*")[0]
    assert [row.text for row in choose_format(source.address).read(source.address)] == ["x", "y"]
    folder.remove(["a/part-00000.txt"])
    assert folder.names() == []


class NoCredentialsError(Exception):
    """Named like the one of botocore."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [(NoCredentialsError("Unable to locate credentials"), "AWS_ACCESS_KEY_ID"),
     (PermissionError("Forbidden"), "AWS_ACCESS_KEY_ID"), (KeyError("x"), "memory://store/in"),
     (ImportError("Install s3fs to access S3"), "install the fsspec package")],
)  # fmt: skip
def test_what_a_store_raises_names_the_address(monkeypatch, error, expected):
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(MemoryFileSystem, "isdir", refuse)
    with pytest.raises(InputError, match=expected) as caught:
        find_sources("memory://store/in")
    assert "memory://store/in" in str(caught.value)


def test_an_unknown_kind_of_address():
    with pytest.raises(InputError, match="nosuch://x"):
        find_sources("nosuch://x")


# -- the output folder


def job(**changes):
    return {"attendo": "1", "inputs": {"a.en": "d1"}, "models": ["m"], "options": {"beam": 4},
            "window_rows": 8, "shard_rows": 16, **changes}  # fmt: skip


def open_output(path) -> JobOutput:
    return JobOutput(Folder(str(path)), ["a.en"], [".txt"])


def test_a_job_goes_on_only_with_the_same_input_model_and_options(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(InputError, match="no interrupted translation"):
        open_output(path).begin(job(), resume=True, force=False)
    open_output(path).begin(job(), resume=False, force=False)
    (path / "a.en").mkdir()
    (path / "a.en" / "part-00000.txt").write_text("x\n")
    (path / "a.en" / ".part-00001.txt.0123abcd.partial").write_text("half")
    with pytest.raises(InputError, match="1 shards are translated"):
        open_output(path).begin(job(), resume=False, force=False)
    for changed, expected in (
        ({"inputs": {"a.en": "d2"}}, "a.en has changed"), ({"models": []}, "another model"),
        ({"options": {"beam": 1}}, "beam: 4, now 1"), ({"attendo": "2"}, "version 1 of attendo"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=expected):
            open_output(path).begin(job(**changed), resume=True, force=False)
    more = job(inputs={"a.en": "d1", "b.en": "d3"}, window_rows=2, shard_rows=2)
    output = open_output(path)
    assert output.begin(more, resume=True, force=False)["window_rows"] == 8
    assert output.done_shards(0) == {0}
    assert not list(path.rglob(".part*"))
    (path / "notes.txt").write_text("mine")
    output = open_output(path)
    output.begin(job(), resume=False, force=True)
    assert output.done_shards(0) == set()
    assert (path / "notes.txt").read_text() == "mine"


def test_files_of_others_are_not_mixed_with_a_job(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        open_output(tmp_path).begin(job(), resume=False, force=False)


def test_a_damaged_job_file(tmp_path):
    (tmp_path / "_job.json").write_text("{")
    with pytest.raises(InputError, match=r"_job\.json is damaged"):
        open_output(tmp_path).begin(job(), resume=True, force=False)


def test_a_file_is_complete_with_all_its_shards(tmp_path):
    output = open_output(tmp_path)
    output.folder.write("a.en/part-00000.txt", b"x\n")
    output.complete(0, num_shards=1, num_rows=1)
    assert open_output(tmp_path).count_complete(0) == 1
    (tmp_path / "a.en" / "part-00000.txt").unlink()
    assert open_output(tmp_path).count_complete(0) is None
