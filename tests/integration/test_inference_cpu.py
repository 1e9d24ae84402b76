"""The benchmark of inference on a CPU: every system runs, and float32 says the same everywhere."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.inference_cpu import Figures, compare, random_workload

EXACT = (
    "attendo: PyTorch", "CTranslate2: float32", "our CTranslate2: float32",
    "Hugging Face: generate", "ONNX Runtime: our example",
)  # fmt: skip


def test_all_systems_agree_in_float32(repository, tmp_path):
    out = tmp_path / "figures.json"
    words = ["--preset", "tiny", "--vocab-size", "300", "--length", "7", "--rounds", "1"]
    words += ["--threads", "1", "--batch", "5", "1", "--out", str(out)]
    command = [sys.executable, "-m", "benchmarks.inference_cpu", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=repository, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "left out" not in done.stdout
    reported = json.loads(out.read_text(encoding="utf-8"))
    assert [(one["batch"], one["beam_size"]) for one in reported] == [
        (5, 1),
        (5, 4),
        (1, 1),
        (1, 4),
    ]
    for one in reported:
        assert {name: one["same"][name] for name in EXACT} == dict.fromkeys(
            EXACT, one["num_sentences"]
        )
        assert all(len(seconds) == 1 and seconds[0] > 0 for seconds in one["seconds"].values())


def test_ratios_are_of_the_same_rounds():
    """One slow moment of the machine hits a round of both: it must not become a ratio."""
    seconds = {
        "attendo: PyTorch": [1.0, 1.0, 50.0],
        "Hugging Face: generate": [2.0, 2.0, 100.0],
        "CTranslate2: int8": [1.0, 1.0, 1.0],
        "our CTranslate2: int8": [2.0, 1.0, 1.25],
        "our CTranslate2: auto": [1.0, 1.0, 1.0],
    }
    found = Figures(batch=64, beam_size=1, num_sentences=64, seconds=seconds)
    assert found.speed("attendo: PyTorch") == 64.0
    assert list(compare(found)) == [
        ("our CTranslate2: int8", "CTranslate2: int8", 0.8, 0.95),
        ("our CTranslate2: auto", "CTranslate2: int8", 1.0, 0.95),
        ("attendo: PyTorch", "Hugging Face: generate", 2.0, 1.3),
    ]


def test_the_random_model_outputs_words_only():
    work = random_workload(preset="tiny", vocab_size=50, length=6, count=3)
    assert [len(row) for row in work.sources] == [6, 6, 6]
    assert all(row[-1] == 3 and min(row[:-1]) > 3 for row in work.sources)
    assert work.bundle.model.output.bias[:5].tolist() == [-1000.0] * 4 + [0.0]
    assert work.bundle.tokenizer.src_vocab_size == 50
