"""`attendo translate --resume`: interrupted at every window, the same bytes at the end."""

from __future__ import annotations

import gzip
import os
import signal
import threading

import pytest

from attendo.cli import inputs
from attendo.cli.main import run
from attendo.translator import Translator, windows
from attendo.translator.partial_output import PartialOutput
from attendo.translator.windows import WindowTranslator

LINES = ["ka to", "", "mi", "re so", "lu", "to", "ka ka", "so mi", "re"]


@pytest.fixture
def attendo(uppercaser, monkeypatch, capsys, tmp_path):
    """Translate `in.ko` in windows of two lines; `stop` acts before one of them is written."""
    monkeypatch.setattr(Translator, "load", lambda *_, **__: uppercaser)
    monkeypatch.setattr(inputs, "check_models", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.ko").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setitem(windows.MAX_WINDOW_LINES, "cpu", 2)
    write, batches = PartialOutput.write, []

    def call(*words: object, stop=None, at: int = 0) -> tuple[str, int, list[list[str]]]:
        batches.clear()
        search = WindowTranslator.search

        def watched(self, lines, num_texts):
            if stop is not None and num_written[0] == at:
                stop()
            num_written[0] += 1
            write(self, lines, num_texts)

        def recorded(self, window, progress=None):
            batches.append(list(window.texts))
            search(self, window, progress)

        num_written = [0]
        with monkeypatch.context() as patch:
            patch.setattr(PartialOutput, "write", watched)
            patch.setattr(WindowTranslator, "search", recorded)
            with pytest.raises(SystemExit) as ended:
                run(["translate", "model", "-i", "in.ko", *map(str, words)])
        stages = [one for one in threading.enumerate() if one.name == "attendo-stage"]
        for one in stages:
            one.join(10.0)  # the one that reads the file is told to stop, and not waited for
        assert not any(one.is_alive() for one in stages)
        return capsys.readouterr().err, int(ended.value.code or 0), list(batches)

    return call


def ctrl_c() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", [(), ("--n-best", 2), ("--json", "--n-best", 2)])
@pytest.mark.parametrize("name", ["out.en", "out.en.gz"])
def test_the_same_bytes_wherever_it_was_interrupted(attendo, tmp_path, name, options):
    _, code, whole_batches = attendo("-o", f"whole_{name}", *options)
    assert code == 0
    whole = (tmp_path / f"whole_{name}").read_bytes()
    assert len(whole_batches) == 5
    for at in range(1, 5):
        output = tmp_path / f"{at}_{name}"
        errors, code, _ = attendo("-o", output, *options, stop=ctrl_c, at=at)
        assert code == 130
        assert "--resume" in errors
        assert not output.exists()
        _, code, batches = attendo("-o", output, *options, "--resume")
        assert code == 0
        assert output.read_bytes() == whole
        assert batches == whole_batches[-len(batches) :]
        assert len(batches) <= 5 - at + (options == ("--n-best", 2))
    assert not list(tmp_path.glob(".*"))
    if name.endswith(".gz"):
        assert gzip.decompress(whole)


def test_a_line_that_was_cut_by_a_kill_is_written_again(attendo, tmp_path):
    attendo("-o", "whole")
    attendo("-o", "out", stop=ctrl_c, at=3)
    partial = tmp_path / ".out.partial"
    content = partial.read_bytes()
    assert content.count(b"\n") == 5  # the first window is smaller
    for kept, first in ((content[:-3], 2), (content + b"KA", 3), (b"", 0), (content[:1], 0)):
        attendo("-o", "out", "--force", stop=ctrl_c, at=3)
        partial.write_bytes(kept)
        assert len(attendo("-o", "out", "--resume")[2]) == 5 - first
        assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_sigterm_keeps_what_is_translated(attendo, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    errors, code, _ = attendo("-o", "out", stop=lambda: os.kill(os.getpid(), signal.SIGTERM), at=2)
    assert code == 143
    assert "--resume" in errors
    assert (tmp_path / ".out.partial").read_text().count("\n") == 3
    assert signal.getsignal(signal.SIGTERM) == before


def test_nothing_is_kept_of_nothing(attendo, tmp_path):
    errors, code, _ = attendo("-o", "out", stop=ctrl_c, at=0)
    assert code == 130
    assert "--resume" not in errors
    assert not list(tmp_path.glob(".*"))
    errors, code, _ = attendo("-o", "out", "--resume")
    assert code == 2
    assert "no interrupted translation" in errors


def test_a_started_run_is_not_restarted_without_force(attendo, tmp_path):
    attendo("-o", "out", stop=ctrl_c, at=2)
    errors, code, _ = attendo("-o", "out")
    assert code == 2
    assert "after 3 texts" in errors.replace("\n", " ")
    _, code, batches = attendo("-o", "out", "--force")
    assert (code, len(batches)) == (0, 5)


def test_another_input_model_or_option_is_noticed(attendo, tmp_path):
    attendo("-o", "out", stop=ctrl_c, at=2)
    kept = (tmp_path / ".out.partial").read_bytes()
    errors, code, _ = attendo("-o", "out", "--resume", "--beam-size", 2)
    assert code == 2
    assert "beam_size" in errors
    terms = tmp_path / "terms.tsv"
    terms.write_text("to\tSO\n")
    assert attendo("-o", "out", "--resume", "--glossary", terms)[1] == 2
    source, weights = tmp_path / "in.ko", tmp_path / "model" / "model.safetensors"
    weights.write_bytes(b"others")
    errors, code, _ = attendo("-o", "out", "--resume")
    assert (code, "another model" in errors) == (2, True)
    weights.write_bytes(b"weights")
    text = source.read_text()
    source.write_text(text.replace("mi", "re"))
    errors, code, _ = attendo("-o", "out", "--resume")
    assert (code, "another input" in errors) == (2, True)
    assert (tmp_path / ".out.partial").read_bytes() == kept
    source.write_text(text)
    assert attendo("-o", "out", "--resume")[1] == 0


@pytest.mark.parametrize(
    "words", [("--resume",), ("-o", "out", "--resume", "--force"),
              ("-o", "out", "--resume", "--trace", "trace")]
)  # fmt: skip
def test_what_cannot_be_resumed(attendo, words):
    assert attendo(*words)[1] == 2
