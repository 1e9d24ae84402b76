"""A real server with a model that was really trained, and a browser to look at it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from attendo import Translator
from attendo.synthetic.everyday import synthesize_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

SENTENCE, TRANSLATION = "유나는 귀여운 개가 있다.", "Yuna has a cute dog."
NUM_PAIRS, NUM_DEV = 300, 20
PATIENCE_SECONDS = 120.0
MINUTES = 10
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
    "train.average_last=1",
    "train.bleu_sentences=4",
)


class Learnt(NamedTuple):
    """A model that knows its corpus by heart, and a pair of it."""

    folder: Path
    src: str
    tgt: str


def is_ci() -> bool:
    return os.environ.get("CI") == "true"


def need(is_there: object, reason: str) -> None:
    """Skip what this machine cannot show; where it must be shown, fail."""
    if not is_there:
        pytest.fail(reason) if is_ci() else pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium() -> dict[str, str]:
    """Name the system's browser; nothing where Playwright has fetched its own."""
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    fetched = Path.home() / ".cache" / "ms-playwright"
    need(found or any(fetched.glob("chromium*")), "no Chromium on this machine")
    return {"CHROMIUM": found} if found else {}


@pytest.fixture(scope="session")
def installed(repository) -> None:
    ready = repository / "frontend/node_modules/.ready"
    need(ready.exists(), "the front end is not installed: make web")


@pytest.fixture(scope="session")
def browse(repository, installed, chromium) -> Callable[..., str]:
    """Run browser tests, all or those of a file; they must end well."""
    page = repository / "src/attendo/serving/static/index.html"
    need(page.exists(), "the web application is not built: make web")

    def run(*specs: str, **variables: str) -> str:
        ended = subprocess.run(
            [str(repository / "frontend/with_node.sh"), "npx", "playwright", "test", *specs],
            env={**os.environ, **chromium, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=MINUTES * 60,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        tell_flaky(ended.stdout)
        return ended.stdout

    return run


def tell_flaky(said: str) -> None:
    """Warn of what passed only when it was repeated; nothing fails by it."""
    if re.search(r"^ *\d+ flaky$", said, re.MULTILINE):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(said, stacklevel=1)


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """Write the first pairs of the embedded corpus: few enough to be learnt by heart."""
    folder = tmp_path_factory.mktemp("serve")
    pairs = list(synthesize_pairs(NUM_PAIRS + NUM_DEV, seed=1))
    for name, part in (("train", pairs[:NUM_PAIRS]), ("dev", pairs[NUM_PAIRS:])):
        for language in ("ko", "en"):
            lines = "".join(f"{getattr(pair, language)}\n" for pair in part)
            (folder / f"{name}.{language}").write_text(lines, encoding="utf-8")
    assert (SENTENCE, TRANSLATION) in [(pair.ko, pair.en) for pair in pairs[:NUM_PAIRS]]
    return folder


def start(place: Path, *words: str) -> subprocess.Popen[str]:
    own = {"ATTENDO_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-m", "attendo", *words],
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_training(place: Path, name: str, *settings: str) -> subprocess.Popen[str]:
    files = [
        word
        for option, file in (("--src", "train.ko"), ("--tgt", "train.en"),
                             ("--dev-src", "dev.ko"), ("--dev-tgt", "dev.en"))
        for word in (option, str(place / file))
    ]  # fmt: skip
    changes = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
    out = ["--preset", "tiny", "--out", str(place / "runs" / name)]
    return start(place, "train", *files, *out, *changes)


def stop(process: subprocess.Popen[str]) -> str:
    process.terminate()
    try:
        return process.communicate(timeout=PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


@pytest.fixture(scope="session")
def learnt(place) -> Learnt:
    """Train for some seconds, until what was read is known by heart."""
    process = start_training(place, "short", "train.max_steps=600", "train.save_every=300")
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, said
    folder = place / "runs" / "short"
    assert Translator.load(folder).translate([SENTENCE]) == [TRANSLATION]
    return Learnt(folder, SENTENCE, TRANSLATION)


@contextmanager
def serving(place: Path, *words: str) -> Iterator[str]:
    """Start a server on a free port; one of its first lines tells where."""
    process = start(place, "serve", *words, "--port", "0")
    assert process.stdout is not None
    said = []
    for line in process.stdout:  # ends with the server
        said.append(line)
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            break
    else:
        pytest.fail("".join(said))
    yield f"{found[0]}/"
    assert "Traceback" not in stop(process)


@pytest.fixture(scope="session")
def address(place, learnt) -> Iterator[str]:
    languages = ("--source", "ko", "--target", "en")
    runs = ("--runs", str(place / "runs"))
    with serving(place, str(learnt.folder), *languages, *runs) as found:
        yield found


@pytest.fixture(scope="session")
def serve_models(tmp_path_factory) -> Callable[..., AbstractContextManager[str]]:
    """Serve model folders; to be entered."""
    place = tmp_path_factory.mktemp("served")
    return lambda *folders: serving(place, *map(str, folders))


@pytest.fixture(scope="module")
def running(place, learnt) -> Iterator[Path]:
    """Give the folder of a training that goes on as long as it is watched."""
    often = ("train.log_every=5", "train.save_every=1000", "train.validate_every=50")
    process = start_training(place, "long", "train.max_steps=1000000", *often)
    folder = place / "runs" / "long"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / "log.jsonl").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, stop(process)
        time.sleep(0.1)
    yield folder
    stop(process)
