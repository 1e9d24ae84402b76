"""A tiny corpus, and `attendo train` on it as a real process, alone or under torchrun."""

from __future__ import annotations

import hashlib
import os
import random
import re
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from safetensors.torch import load_file
from torch.distributed import TCPStore

from attendo.core import run_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from support.fork_server import ForkedProcess, ForkServer, SignalAt
    from torch import Tensor

NUM_PAIRS = 300
PATIENCE_SECONDS = 600.0
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

    process: subprocess.Popen[str] | ForkedProcess
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
    server: ForkServer
    settings: tuple[str, ...] = ()
    torchrun: tuple[str, ...] = ()
    """Options of torchrun; none: a process without it."""
    max_file_bytes: int | None = None
    """The largest file that the command can write."""

    def having(self, *settings: str, **changes: Any) -> Training:
        """Return the same with more `key=value` settings, and other fields changed."""
        return replace(self, settings=(*self.settings, *settings), **changes)

    def under_torchrun(self, *options: str) -> Training:
        """Return the same on two processes, started by torchrun."""
        return replace(self, torchrun=("--standalone", "--nproc-per-node", "2", *options))

    def _arguments(self, out: Path, options: Sequence[str]) -> list[str]:
        words = ["train", "--src", str(self.src), "--tgt", str(self.tgt)]
        words += ["--preset", "tiny", "--out", str(out), *options]
        return words + [word for setting in self.settings for word in ("--set", setting)]

    @property
    def _environment(self) -> dict[str, str]:
        return {"ATTENDO_CACHE": str(self.cache), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}

    def start(self, out: Path, *options: str, signal_at: SignalAt | None = None) -> Started:
        """Start the command; forked, so that nothing is imported anew, but for torchrun's."""
        if self.torchrun:
            return self.start_anew(out, *options)
        process = self.server.start(
            self._arguments(out, options),
            env=self._environment,
            max_file_bytes=self.max_file_bytes,
            signal_at=signal_at,
        )
        return Started(process, RunFolder(out))

    def start_anew(self, out: Path, *options: str) -> Started:
        """Start the command in a new interpreter, as users do."""
        launcher = ("-m", "torch.distributed.run", *self.torchrun) if self.torchrun else ()
        process = subprocess.Popen(
            [sys.executable, *launcher, "-m", "attendo", *self._arguments(out, options)],
            env={**os.environ, **self._environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self._limit_files,
        )
        return Started(process, RunFolder(out))

    def _limit_files(self) -> None:
        if self.max_file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.max_file_bytes,) * 2)

    def run(self, out: Path, *options: str, code: int | None = 0) -> Finished:
        """Run the command to its end, which must be `code` (None: any but 0)."""
        return self.start(out, *options).end(code)

    def run_pair(self, out: Path, *options: str, code: int = 0) -> Finished:
        """Run the command on two processes that meet as torchrun's do, without its start-up.

        Both must end with `code`.
        """
        words = self._arguments(out, options)
        limit = self.max_file_bytes
        with process_pair(self.server, words, env=self._environment, max_file_bytes=limit) as both:
            finished = [Started(process, RunFolder(out)).end(code) for process in both]
        return replace(finished[0], stderr="".join(one.stderr for one in finished))


@contextmanager
def process_pair(
    server: ForkServer, arguments: Sequence[str], **options: Any
) -> Iterator[list[ForkedProcess]]:
    """Start two processes of one group; the store where they meet is open as long as they are."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    meeting = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    shared = {**options.pop("env", {}), **meeting}
    yield [
        server.start(arguments, env={**shared, "RANK": rank, "LOCAL_RANK": rank}, **options)
        for rank in "01"
    ]


@pytest.fixture(scope="session")
def open_run() -> type[RunFolder]:
    """Open a run folder with what the tests compare."""
    return RunFolder


@pytest.fixture(scope="session")
def run_pair_of(fork_server) -> Callable[[str], list[str]]:
    """Run code on two processes of one group and return what each wrote to stderr."""

    def run(code: str) -> list[str]:
        with process_pair(fork_server, [], code=code) as both:
            errors = [process.communicate(PATIENCE_SECONDS)[1] for process in both]
            assert [process.returncode for process in both] == [0, 0], errors
        return errors

    return run


@pytest.fixture(scope="session")
def corpus_files(tmp_path_factory) -> tuple[Path, Path]:
    """Write pairs of short sentences: the target is the source backwards, in capitals."""
    directory = tmp_path_factory.mktemp("corpus")
    probability = random.Random(1)  # noqa: S311 - not for secrets
    words = [a + b + c for a in "bdgklmnprst" for b in "aeiou" for c in ("", "n", "s")]
    sentences: set[tuple[str, ...]] = set()
    while len(sentences) < NUM_PAIRS:
        sentences.add(tuple(probability.choices(words, k=probability.randint(3, 8))))
    src, tgt = directory / "a.src", directory / "a.tgt"
    ordered = sorted(sentences)
    src.write_text("".join(f"{' '.join(words)}\n" for words in ordered), encoding="utf-8")
    backwards = (" ".join(reversed(words)).upper() for words in ordered)
    tgt.write_text("".join(f"{line}\n" for line in backwards), encoding="utf-8")
    return src, tgt


@pytest.fixture(scope="session")
def training(corpus_files, fork_server, tmp_path_factory) -> Training:
    """Return the command for a model of one small layer, saved every ten steps."""
    settings = (
        *(f"model.{name}={value}" for name, value in SIZES.items()),
        "train.batch_tokens=256",
        "train.warmup_steps=400",
        "train.save_every=10",
        "train.validate_every=50",
        "train.bleu_sentences=2",
        "train.log_every=1",
    )
    return Training(*corpus_files, tmp_path_factory.mktemp("cache"), fork_server, settings)
