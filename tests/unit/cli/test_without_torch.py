"""Translating and serving exported models where PyTorch cannot be imported.

An import hook hides PyTorch from new Python processes, as if it were not installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from support.half_trained import draw_texts, save_half_trained

from attendo.interop.export import export
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOOK = """
import sys


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


sys.meta_path.insert(0, Hidden())
"""
TEXTS = draw_texts(8, seed=3)
PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def models(tmp_path_factory, toy) -> Path:
    """A model folder, and what it was exported to."""
    root = tmp_path_factory.mktemp("without_torch")
    save_half_trained(root / "native", toy.prepared.tokenizer)
    export(root / "native", to="ctranslate2", out=root / "ctranslate2")
    export(root / "native", to="onnx", out=root / "onnx")
    (root / "hook").mkdir()
    (root / "hook/sitecustomize.py").write_text(HOOK, "utf-8")
    return root


@pytest.fixture
def environment(models, tmp_path) -> dict[str, str]:
    paths = [str(models / "hook"), *sys.path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "ATTENDO_CACHE": str(tmp_path / "cache"),
        "LC_ALL": "C.UTF-8",
    }


def run_attendo(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "attendo", *map(str, words)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )


@pytest.mark.parametrize("name", ["ctranslate2", "onnx", "native"])
def test_every_folder_translates_as_with_pytorch(models, environment, name) -> None:
    done = run_attendo(environment, "translate", models / name, *TEXTS, "--json", "--confidence")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)["text"] for line in done.stdout.splitlines()]
    expected = Translator.load(models / "native", device="cpu").translate(TEXTS)
    assert found == [str(one) for one in expected]


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "MODEL", "--src", "TEXT", "--ref", "TEXT"],
        ["look", "MODEL", "ka", "-o", "OUT"],
        ["export", "MODEL", "--to", "onnx", "-o", "OUT"],
        ["train", "--src", "TEXT", "--tgt", "TEXT", "--out", "OUT"],
        ["translate", "MODEL", "ka", "--engine", "auto", "--trace", "OUT"],
    ],
    ids=lambda words: words[0],
)
def test_a_verb_that_needs_pytorch_says_how_to_install_it(
    models, environment, tmp_path, words
) -> None:
    (tmp_path / "text").write_text("ka to\nmi re\n" * 60, "utf-8")
    values = {
        "MODEL": models / "native",
        "TEXT": tmp_path / "text",
        "OUT": tmp_path / "out.html",
    }
    done = run_attendo(environment, *(values.get(word, word) for word in words))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "PyTorch is not installed" in done.stderr or "trace" in done.stderr
    assert "pip install 'attendo" in done.stderr


class Server:
    """`attendo serve` in a process without PyTorch."""

    def __init__(self, environment: dict[str, str], *words: str | Path) -> None:
        command = [sys.executable, "-m", "attendo", "serve", *map(str, words), "--port", "0"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self.process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+) ", line)
        assert found, line
        self.address = found[1]

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.address + path, data, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self.process.stdout.close()


@pytest.fixture
def server(models, environment) -> Iterator[Server]:
    server = Server(environment, models / "ctranslate2", models / "onnx", models / "native")
    yield server
    server.close()


def test_the_server_serves_all_three(models, server) -> None:
    expected = [
        str(one) for one in Translator.load(models / "native", device="cpu").translate(TEXTS)
    ]
    for name in ("ctranslate2", "onnx", "native"):
        body = {"text": TEXTS, "model": name, "alignment": True, "confidence": True}
        status, text = server.ask("/v1/translate", body)
        assert status == 200, text
        translations = json.loads(text)["translations"]
        assert [one["text"] for one in translations] == expected
        assert {note["code"] for one in translations for note in one["note_details"]} >= {
            "no_pytorch"
        }
        assert all(one["confidence"]["words"] for one in translations)
    assert server.ask("/translate", {"q": TEXTS, "source": "ko", "target": "en"})[0] == 200
    listed = json.loads(server.ask("/v1/models")[1])["models"]
    assert [one["has_attention"] for one in listed] == [False] * 3
    status, events = server.ask("/v1/stream", {"text": TEXTS[0], "model": "onnx"})
    assert status == 200
    assert "event: done" in events


@pytest.mark.parametrize("path", ["/v1/inspect", "/v1/alternatives"])
def test_what_needs_pytorch_is_an_answer_with_a_reason(server, path) -> None:
    status, text = server.ask(path, {"text": TEXTS[0], "model": "native"})
    assert status == 501
    assert "PyTorch is not installed" in text
    status, text = server.ask(path, {"text": TEXTS[0], "model": "onnx"})
    assert status == 400
    assert "own weights" in text
    assert server.ask("/v1/lessons")[0] == 501
    glossary = {"text": TEXTS[0], "model": "ctranslate2", "glossary": {"ka": "KA"}}
    status, text = server.ask("/v1/translate", glossary)
    assert status == 400
    assert "glossary" in text
