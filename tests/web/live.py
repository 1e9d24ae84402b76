"""Real servers with real models for the browser tests."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attendo import Translator
from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.fork_server import ForkedProcess, ForkServer

SENTENCE, TRANSLATION = "유나는 귀여운 개가 있다.", "Yuna has a cute dog."
NUM_PAIRS, NUM_DEV = 300, 20
PATIENCE_SECONDS = 600.0
SETTINGS = (
    "model.num_layers=1",
    "model.d_model=64",
    "model.d_ff=128",
    "model.num_heads=4",
    "model.dropout=0.0",
    "data.tokenizer.vocab_size=500",
    "data.tokenizer.byte_fallback=false",
    "train.batch_tokens=1024",
    "train.warmup_steps=120",
    "train.average_checkpoints=1",
    "train.bleu_sentences=4",
)
STATIC_PAGE = "src/attendo/inspection/static/look.html"
RANDOM_SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}


def write_pairs(folder: Path) -> None:
    """Write the first pairs of the embedded corpus: few enough to be learned by heart."""
    pairs = list(synthesize_pairs(NUM_PAIRS + NUM_DEV, seed=1))
    for name, part in (("train", pairs[:NUM_PAIRS]), ("dev", pairs[NUM_PAIRS:])):
        for language in ("ko", "en"):
            lines = "".join(f"{getattr(pair, language)}\n" for pair in part)
            (folder / f"{name}.{language}").write_text(lines, encoding="utf-8")
    assert (SENTENCE, TRANSLATION) in [(pair.ko, pair.en) for pair in pairs[:NUM_PAIRS]]


def write_real_page(folder: Path) -> Path:
    """Write what `attendo look` makes of a model with random weights."""
    for language in ("ko", "en"):
        lines = [getattr(pair, language) for pair in synthesize_pairs(400, seed=1)]
        (folder / language).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = (folder / "ko", folder / "en")
    tokenizer = train_tokenizer(*files, TokenizerConfig(vocab_size=900), num_pairs=400, seed=1)
    model = build_model("transformer", RANDOM_SIZES, tokenizer)
    save_bundle(folder / "random", model, tokenizer)
    page = folder / "look.html"
    with suppress(SystemExit):
        run(["look", str(folder / "random"), "왕자는 공주를 구했다", "-o", str(page)])
    assert page.exists()
    return page


class Live:
    """Commands of `attendo` in one folder, forked from one server."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server, self.folder = server, folder

    def start(self, *words: str) -> ForkedProcess:
        """Start `attendo` with these words."""
        own = {"ATTENDO_CACHE": str(self.folder / "cache"), "COLUMNS": "200"}
        return self.server.start(words, env=own, merge_stderr=True)

    def start_training(self, name: str, *settings: str) -> ForkedProcess:
        """Start a training run on the pairs."""
        files = [
            word
            for option, file in (("--src", "train.ko"), ("--tgt", "train.en"),
                                 ("--dev-src", "dev.ko"), ("--dev-tgt", "dev.en"))
            for word in (option, str(self.folder / file))
        ]  # fmt: skip
        changes = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
        out = ["--preset", "tiny", "--out", str(self.folder / "runs" / name)]
        return self.start("train", *files, *out, *changes)

    def train(self) -> Path:
        """Train for some seconds, until the pairs are known by heart."""
        process = self.start_training("short", "train.max_steps=600", "train.save_every=300")
        output, _ = process.communicate(PATIENCE_SECONDS)
        assert process.returncode == 0, output
        folder = self.folder / "runs" / "short"
        assert Translator.load(folder).translate([SENTENCE]) == [TRANSLATION]
        return folder

    @contextmanager
    def training(self) -> Iterator[str]:
        """Return the name of a run that goes on as long as it is watched."""
        often = ("train.log_every=5", "train.save_every=1000", "train.validate_every=50")
        process = self.start_training("long", "train.max_steps=1000000", *often)
        log = self.folder / "runs" / "long" / "log.jsonl"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not log.exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, stop(process)
            time.sleep(0.1)
        yield "long"
        stop(process)

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """Start a server on a free port and give its address."""
        process = self.start("serve", *words, "--port", "0")
        lines = []
        for line in process.stdout:  # ends with the server
            lines.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                break
        else:
            raise AssertionError("".join(lines))
        yield f"{found[0]}/"
        assert "Traceback" not in stop(process)


def stop(process: ForkedProcess) -> str:
    """End a process and return what it wrote."""
    process.terminate()
    try:
        return process.communicate(PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]
