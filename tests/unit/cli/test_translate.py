"""`attendo translate`, in front of a model without weights."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading

import pytest

from attendo.cli.main import run
from attendo.translator import Translator


class Pipe:
    """A standard input of bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    def isatty(self) -> bool:
        return False


@pytest.fixture
def attendo(parrot, monkeypatch, capsys):
    """Run the verb; give its lines, its errors and its exit code."""
    monkeypatch.setattr(Translator, "load", lambda *_, **__: parrot)

    def call(*words: object, piped: bytes | None = None) -> tuple[list[str], str, int]:
        if piped is not None:
            monkeypatch.setattr("sys.stdin", Pipe(piped))
        with pytest.raises(SystemExit) as ended:
            run(["translate", "runs/any", *map(str, words)])
        shown = capsys.readouterr()
        return shown.out.splitlines(), shown.err, int(ended.value.code or 0)

    return call


def test_words(attendo):
    assert attendo("ka to", "", "mi") == (["KA TO", "", "MI"], "", 0)


def test_a_pipe_gives_a_line_for_a_line(attendo):
    lines, errors, code = attendo(piped="\ufeffka to\r\n\nmi\n".encode())
    assert (lines, errors, code) == (["KA TO", "", "MI"], "", 0)


def test_bytes_that_are_no_utf8_are_told_and_the_rest_goes_on(attendo):
    lines, errors, code = attendo(piped=b"ka\nto \xff\nmi\n")
    assert (lines[0], lines[2], len(lines), code) == ("KA", "MI", 3, 0)
    assert "line 2: invalid UTF-8" in errors


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_and_an_output(attendo, tmp_path, is_packed):
    source, output = tmp_path / "in.ko", tmp_path / "out.en"
    content = b"ka to\n\nmi\n"
    source.write_bytes(gzip.compress(content) if is_packed else content)
    assert attendo("-i", source, "-o", output) == ([], "", 0)
    assert output.read_text(encoding="utf-8") == "KA TO\n\nMI\n"
    _, errors, code = attendo("-i", source, "-o", output)
    assert "out.en exists" in errors.replace("\n", "")
    assert code == 2
    assert attendo("-i", source, "-o", output, "--force")[2] == 0


def test_the_input_is_never_written_over(attendo, tmp_path):
    source = tmp_path / "same.ko"
    source.write_text("ka to\n", encoding="utf-8")
    for option in ("-o", "--trace"):
        _, errors, code = attendo("-i", source, option, source, "--force")
        assert "is the input file" in errors.replace("\n", "")
        assert code == 2
    assert source.read_text(encoding="utf-8") == "ka to\n"


def test_what_fails_touches_no_file(attendo, tmp_path):
    old = tmp_path / "old.en"
    old.write_text("mine\n", encoding="utf-8")
    assert attendo("ka", "--n-best", 9, "-o", old, "--force")[2] == 2
    assert attendo("ka", "--required", "☃", "-o", old, "--force")[2] == 2
    assert old.read_text(encoding="utf-8") == "mine\n"
    assert attendo("ka", "--n-best", 9, "-o", tmp_path / "new.en")[2] == 2
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".en"] == ["old.en"]


def test_a_packed_output_is_packed(attendo, tmp_path):
    output = tmp_path / "out.en.gz"
    assert attendo("ka to", "mi", "-o", output)[2] == 0
    assert gzip.decompress(output.read_bytes()) == b"KA TO\nMI\n"


def test_a_named_pipe_is_read_once(attendo, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("ka\nto mi\n", encoding="utf-8"))
    writer.start()
    assert attendo("-i", pipe)[0] == ["KA", "TO MI"]
    writer.join()


def test_utf16_in_a_pipe_is_refused(attendo):
    _, errors, code = attendo(piped="ka\n".encode("utf-16"))
    assert "UTF-16" in errors
    assert code == 2


def test_columns_hold_for_empty_lines_too(attendo):
    lines, _, _ = attendo("", "ka", "--n-best", 2, "--confidence")
    assert [line.count("\t") for line in lines] == [3, 3, 3]


def test_n_best_is_ranked(attendo):
    lines, _, _ = attendo("ka to", "--n-best", 2)
    ranks, scores, texts = zip(*(line.split("\t") for line in lines), strict=True)
    assert ranks == ("1", "2")
    assert float(scores[0]) > float(scores[1])
    assert texts[0] == "KA TO"


def test_confidence_is_a_column_of_a_pipe(attendo):
    ((line,), _, _) = attendo("ka to", "--confidence")
    text, mean = line.split("\t")
    assert text == "KA TO"
    assert 0 < float(mean) < 1


def test_json_and_a_trace(attendo, tmp_path):
    steps = tmp_path / "steps.jsonl"
    lines, _, _ = attendo("ka", "to mi", "--json", "--trace", steps, "--beam-size", 2)
    assert [json.loads(line)["text"] for line in lines] == ["KA", "TO MI"]
    traces = [json.loads(line) for line in steps.read_text(encoding="utf-8").splitlines()]
    assert [trace[0]["beam_size"] for trace in traces] == [2, 2]


def test_every_option_reaches_the_search(attendo, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("to\tSO\n", encoding="utf-8")
    assert attendo("ka to", "--prefix", "LU")[0] == ["LU TO"]
    assert "SO" in attendo("ka to", "--glossary", terms)[0][0].split()
    assert "RE" in attendo("ka to", "--required", "RE")[0][0].split()
    assert "TO" not in attendo("ka to", "--forbidden", "TO")[0][0].split()
    assert attendo("ka zork", "--set", "unk=copy")[0] == ["KA zork"]
    drawn = {attendo("ka to mi re", "--sample", "--seed", seed)[0][0] for seed in range(5)}
    assert len(drawn) > 1


def test_a_line_that_fails_is_empty_and_the_exit_code_tells(attendo, parrot, monkeypatch):
    encode = parrot.model.encode

    def fragile(src_ids, src_mask=None):
        if src_ids.size(1) > 4:
            raise RuntimeError("too much")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(parrot.model, "encode", fragile)
    lines, errors, code = attendo("ka", "ka to mi re so", "mi")
    assert lines == ["KA", "", "MI"]
    assert "line 2: failed: too much" in errors
    assert "1 lines could not be translated" in errors
    assert code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ka", "--set", "beam_sise=3"], "did you mean 'beam_size'"),
        (["ka", "--input", "x.txt"], "both texts and --input"),
        (["ka", "--set", "progress=1"], "unknown key 'progress'"),
        (["ka", "--set", "num_groups"], "is not key=value"),
        (["ka", "--temperature", "0.5"], "add do_sample=True"),
        (["ka", "-o", "no-such-folder/x"], "no folder"),
        (["ka", "--required", "SO LU", "--forbidden", "LU"], "'SO LU' is required"),
        (["--input", "no-such-file.ko"], "does not exist"),
        (["ka", "--n-best", "9"], "n_best 9 is more than beam_size 4"),
        (["ka", "--glossary", "none.tsv"], "none.tsv"),
    ],
)
def test_bad_input_is_told_with_a_remedy(attendo, words, told):
    lines, errors, code = attendo(*words)
    assert lines == []
    assert told in errors.replace("\n", "")
    assert code == 2
