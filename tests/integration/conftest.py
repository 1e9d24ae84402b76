"""A tiny corpus, and `attendo train` on it as a real process, alone or under torchrun."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from safetensors.torch import load_file

from attendo.core import run_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

NUM_PAIRS = 300
PATIENCE_SECONDS = 120.0
SIZES = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}


class RunFolder(run_folder.RunFolder):
    """A run folder, with what the tests compare."""

    @property
    def newest_step(self) -> int:
        """The step of the newest checkpoint, 0 for none."""
        return max(self.checkpoint_steps(), default=0)

    @property
    def newest(self) -> Path:
        """The newest checkpoint."""
        return run_folder.checkpoint_dir(self.checkpoints_dir, self.newest_step)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights of the newest checkpoint."""
        return load_file(self.newest / run_folder.CHECKPOINT_WEIGHTS_FILE)

    @property
    def losses(self) -> list[tuple[int, float]]:
        """Step and loss of each training event of the log, in order."""
        events = self.read_events()
        return [(event["step"], event["loss"]) for event in events if event["event"] == "train"]

    @property
    def outcome(self) -> dict[str, Any]:
        """Everything that must not depend on interruptions: checksums and losses."""
        files = [*self.newest.iterdir(), *self.model.path.iterdir()]
        sums = {
            str(path.relative_to(self.path)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }
        assert len(sums) >= 7, sums
        return {**sums, "losses": self.losses}


@dataclass(frozen=True)
class Started:
    """A command that runs."""

    process: subprocess.Popen[str]
    folder: RunFolder

    def sees(self, condition: Callable[[], object]) -> bool:
        """Wait for a condition; tell whether it came while the process still ran."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            if condition():
                return True
            if time.monotonic() > deadline:
                self.process.terminate()
                break
            time.sleep(0.001)
        return False

    def pass_step(self, step: int) -> None:
        """Wait for a checkpoint of this step or a later one, which must come."""
        if not self.sees(lambda: self.folder.newest_step >= step):
            stdout, stderr = self.process.communicate()
            pytest.fail(f"ended with {self.process.returncode}:\n{stdout}\n{stderr}")

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.process.kill()
        self.process.communicate()

    def end(self, code: int | None = 0) -> Finished:
        """Wait for its end, which must be `code` (None: any but 0)."""
        try:
            stdout, stderr = self.process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # torchrun's agent then ends its workers
            self.process.communicate()
            raise
        found = self.process.returncode
        is_right = found != 0 if code is None else found == code
        assert is_right, f"ended with {found}:\n{stdout}\n{stderr}"
        return Finished(self.folder, stdout, stderr)


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    folder: RunFolder
    stdout: str
    stderr: str

    @property
    def stopped_step(self) -> int:
        """The step at which it says that it was stopped, with all saved."""
        found = re.search(r"stopped at step (\d+); everything is saved", self.stderr)
        assert found, self.stderr
        assert "run the same command again" in self.stderr
        return int(found[1])


@dataclass(frozen=True)
class Training:
    """How the command is called."""

    src: Path
    tgt: Path
    cache: Path
    settings: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    before: Callable[[], None] | None = None
    """Is called in the new process before the command."""

    def having(self, *settings: str, **changes: Any) -> Training:
        """Give the same with more `key=value` settings, and other fields changed."""
        return replace(self, settings=(*self.settings, *settings), **changes)

    def on_two_processes(self, *options: str) -> Training:
        """Give the same under torchrun."""
        words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options)
        return replace(self, launcher=words)

    def start(self, out: Path, *options: str) -> Started:
        """Start the command."""
        words = ["-m", "attendo", "train", "--src", str(self.src), "--tgt", str(self.tgt)]
        words += ["--preset", "tiny", "--out", str(out), *options]
        words += [word for setting in self.settings for word in ("--set", setting)]
        own = {"ATTENDO_CACHE": str(self.cache), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        process = subprocess.Popen(
            [sys.executable, *self.launcher, *words],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self.before,
        )
        return Started(process, RunFolder(out))

    def run(self, out: Path, *options: str, code: int | None = 0) -> Finished:
        """Run the command to its end, which must be `code` (None: any but 0)."""
        return self.start(out, *options).end(code)


@pytest.fixture(scope="session")
def corpus_files(tmp_path_factory) -> tuple[Path, Path]:
    """Write pairs of short sentences: the target is the source backwards, in capitals."""
    directory = tmp_path_factory.mktemp("corpus")
    chance = random.Random(1)  # noqa: S311 - not for secrets
    words = [a + b + c for a in "bdgklmnprst" for b in "aeiou" for c in ("", "n", "s")]
    sentences: set[tuple[str, ...]] = set()
    while len(sentences) < NUM_PAIRS:
        sentences.add(tuple(chance.choices(words, k=chance.randint(3, 8))))
    src, tgt = directory / "a.src", directory / "a.tgt"
    ordered = sorted(sentences)
    src.write_text("".join(f"{' '.join(words)}\n" for words in ordered), encoding="utf-8")
    backwards = (" ".join(reversed(words)).upper() for words in ordered)
    tgt.write_text("".join(f"{line}\n" for line in backwards), encoding="utf-8")
    return src, tgt


@pytest.fixture(scope="session")
def training(corpus_files, tmp_path_factory) -> Training:
    """Give the command for a model of one small layer, saved every ten steps."""
    settings = (
        *(f"model.{name}={value}" for name, value in SIZES.items()),
        "train.batch_tokens=256",
        "train.warmup_steps=400",
        "train.save_every=10",
        "train.validate_every=50",
        "train.bleu_sentences=2",
        "train.log_every=1",
    )
    return Training(*corpus_files, tmp_path_factory.mktemp("cache"), settings)
