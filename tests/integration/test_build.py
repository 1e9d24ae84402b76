"""The whole pipeline on a few hundred synthetic pairs: built, killed, continued, changed."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest
from support.fork_server import SignalAt

from attendo import Translator
from attendo.synthetic.everyday import synthesize_pairs

if TYPE_CHECKING:
    from pathlib import Path

SIZES = 'preset = "tiny", num_layers = 1, d_model = 16, d_ff = 32, num_heads = 2, norm = "pre"'
TRAIN = (
    "max_steps = 20, batch_tokens = 1024, warmup_steps = 10, save_every = 10, log_every = 5, "
    "average_checkpoints = 1, bleu_sentences = 2"
)
STEPS = (
    *("clean", "forward", "backward", "score", "filter", "back-translate", "teacher", "fine-tune"),
    *("forward-translate", "student", "int8"),
    *("translate-test", "report"),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    pairs = list(synthesize_pairs(480, seed=5))
    for name, part in (("a", pairs[:240]), ("m", pairs[240:360]), ("n", pairs[360:])):
        for side in ("ko", "en"):
            lines = "".join(getattr(pair, side) + "\n" for pair in part)
            (folder / f"{name}.{side}").write_text(lines, encoding="utf-8")
    tables = "".join(
        f"[{name}]\nis_complete = true\ntrain = {{ {TRAIN} }}\n"
        + (f"model = {{ {SIZES} }}\n" if name != "fine_tuning" else "")
        for name in ("forward", "backward", "teacher", "fine_tuning", "student")
    )
    (folder / "tiny.toml").write_text(
        'src_lang = "ko"\ntgt_lang = "en"\ndev_size = 10\n'
        '[[corpora]]\nname = "a"\nsrc = "a.ko"\ntgt = "a.en"\n'
        '[[mono_tgt]]\nname = "m"\ntext = "m.en"\n'
        '[[mono_src]]\nname = "n"\ntext = "n.ko"\n'
        f"[filter]\nenabled = true\nkeep = 0.9\n{tables}",
        encoding="utf-8",
    )
    return folder / "tiny.toml"


@pytest.fixture
def build(fork_server, recipe, tmp_path):
    """Run `attendo build` in a process of its own, with a cache of its own."""
    environment = {**os.environ, "ATTENDO_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*words: object, expected: int = 0, signal_at: SignalAt | None = None) -> str:
        given = ["build", str(recipe), "--out", str(tmp_path / "build"), *map(str, words)]
        process = fork_server.start(given, env=environment, signal_at=signal_at)
        out, errors = process.communicate()
        assert process.returncode == expected, (out[-2000:], errors[-2000:])
        return out

    return run


def states(build, *more: str) -> dict[str, str]:
    steps = json.loads(build("--dry-run", "--json", *more))["steps"]
    return {step["name"]: step["state"] for step in steps}


@pytest.mark.slow
def test_a_build_survives_kills_and_keeps_early_steps(build, tmp_path):
    out = tmp_path / "build"
    assert states(build) == dict.fromkeys(STEPS, "to do")
    for step, event, pattern in (
        ("clean", "os.rename", "clean/*/.clean.partial"),
        ("backward", "open", "backward/*/run/log.jsonl"),
        ("back-translate", "os.rename", "back-translate/*/.text.out.partial"),
        ("student", "os.rename", "student/*/run/checkpoints/.step_20.partial"),
        ("int8", "open", "int8/*/.step.json.*"),
    ):
        moment = SignalAt(event, str(out / "steps" / pattern))
        build(expected=-signal.SIGKILL, signal_at=moment)
        assert states(build)[step] == "interrupted"
    build()
    assert states(build) == dict.fromkeys(STEPS, "done")
    assert Translator.load(out).translate(["나는 학생이다."])
    assert Translator.load(out / "int8", engine="ctranslate2").translate(["나는 학생이다."])
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in report["systems"]].count("int8") == 2
    assert all((out / name).is_file() for name in ("report.md", "report.ko.md"))
    sources = (out / "latest/back-translate/m.txt").read_text(encoding="utf-8").splitlines()
    assert sources
    assert all(line.startswith("<bt> ") for line in sources)
    changed = states(build, "--set", "student.train.max_steps=19")
    late = {name for name, state in changed.items() if state == "stale"}
    assert late == {"student", "int8", "translate-test", "report"}
