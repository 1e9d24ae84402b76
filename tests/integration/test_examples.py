"""Every script in examples/ runs as its docstring says, and does what it promises."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

from attendo.bundle import load_bundle
from attendo.interop.onnx import export
from attendo.translator import Translator


def run_example(repository, name: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, repository / "examples" / name, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=900,
    ).stdout


def test_every_example_has_a_test_here(repository):
    names = {path.name for path in (repository / "examples").glob("*.py")}
    assert names == {"attention_by_hand.py", "onnx_translate.py", "reverse_sequence.py"}


def test_attention_by_hand(repository):
    printed = run_example(repository, "attention_by_hand.py")
    assert "0.0009    0.9088    0.0903" in printed
    assert "1.9926    7.4796    0.7359" in printed


def test_reverse_sequence_is_learned_and_attention_is_an_anti_diagonal(repository):
    example = runpy.run_path(str(repository / "examples" / "reverse_sequence.py"))
    model = example["train"](500)
    assert example["accuracy"](model) > 0.9
    rows = [line[8:] for line in example["plot_attention"](model).splitlines()[1:]]
    darkest = [row.index(max(row, key=example["SHADES"].index)) // 3 for row in rows]
    assert sum(column == 7 - row for row, column in enumerate(darkest)) >= 6


def test_onnx_translate_equals_attendo_without_torch(repository, training, corpus_files, tmp_path):
    steps = ("train.max_steps=1000", "train.warmup_steps=100", "model.d_model=64")
    run = training.having(*steps, "train.save_every=500").run(tmp_path / "run")
    folder = tmp_path / "onnx"
    folder.mkdir()
    export.write(load_bundle(run.folder.path), folder)
    texts = [*corpus_files[0].read_text(encoding="utf-8").splitlines()[:60], "", "왕 ka"]
    translator = Translator.load(run.folder.path, device="cpu")
    for beam_size in (1, 4):
        printed = run_example(
            repository, "onnx_translate.py", str(folder), *texts, "--beam-size", str(beam_size)
        )
        expected = translator.translate(texts, beam_size=beam_size, split="never")
        assert printed.splitlines() == expected
        assert len(set(expected)) > 20, expected  # a model that says one thing proves nothing
    script = repository / "examples" / "onnx_translate.py"
    program = (
        "import json, runpy, sys; sys.argv = json.loads(sys.argv[1]); "
        "runpy.run_path(sys.argv[0], run_name='__main__'); "
        "assert not {'torch', 'attendo', 'onnx'} & set(sys.modules)"
    )
    words = json.dumps([str(script), str(folder), texts[0]])
    subprocess.run([sys.executable, "-c", program, words], check=True, timeout=900)
