"""The front end: its own unit tests, and the built page in a real browser."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SENTENCE = "왕자는 공주를 구했다"
MINUTES = 10


@pytest.fixture(scope="module")
def npm(repository, installed):
    """Run a script of the front end; it must end well."""

    def call(script: str) -> str:
        ended = subprocess.run(
            [str(repository / "frontend/with_node.sh"), "npm", "run", "--silent", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=MINUTES * 60,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return call


@pytest.fixture(scope="module")
def real_page(tmp_path_factory) -> Path:
    """What `attendo look` writes for a model that has learnt nothing."""
    folder = tmp_path_factory.mktemp("look")
    for language in ("ko", "en"):
        lines = [getattr(pair, language) for pair in synthesize_pairs(400, seed=1)]
        (folder / language).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = (folder / "ko", folder / "en")
    tokenizer = train_tokenizer(*files, TokenizerConfig(vocab_size=900), num_pairs=400, seed=1)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
    model = build_model("transformer", sizes, tokenizer)
    save_bundle(folder / "model", model, tokenizer)
    page = folder / "look.html"
    with pytest.raises(SystemExit) as ended:
        run(["look", str(folder / "model"), SENTENCE, "-o", str(page)])
    assert not ended.value.code
    return page


def test_pure_code(npm):
    assert "passed" in npm("test")


def test_pages_in_a_browser(browse, real_page):
    assert "passed" in browse(REAL_PAGE=str(real_page), CI="true")


def test_the_page_is_small_and_fetches_nothing(real_page):
    text = real_page.read_text(encoding="utf-8")
    assert len(text.encode()) < 5_000_000
    assert "<noscript" in text
    for outside in ('src="http', 'href="http', "@import", "//cdn"):
        assert outside not in text
