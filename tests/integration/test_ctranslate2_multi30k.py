"""Sentences of Multi30k: CTranslate2 in float32 says what we say, int8 is as good.

`ATTENDO_MULTI30K_MODEL` names a trained model, which translates 500. Without it a small one is
trained for seconds on the first pairs and translates 100; it is too weak to judge int8 by a third
of a point.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from attendo.translator import Translator

CORPORA = Path(os.environ.get("ATTENDO_CORPORA", "../shared/data"))
GIVEN = os.environ.get("ATTENDO_MULTI30K_MODEL")
NUM_SENTENCES = 500 if GIVEN else 100
NUM_PAIRS = 3000
MUCH = 70.0
"""BLEU of what int8 says with our own text as the reference."""
SETTINGS = (
    "model.num_layers=2", "model.dropout=0.1", "train.max_steps=60", "train.warmup_steps=40",
    "data.tokenizer.vocab_size=2000", "train.batch_tokens=1024", "train.average_checkpoints=1",
    "train.bleu_sentences=0", "train.validate_every=60", "train.save_every=60",
    "data.dev_size=100",
)  # fmt: skip

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def corpus(repository) -> Path:
    directory = (repository / CORPORA / "multi30k" / "tok").resolve()
    if not directory.is_dir():
        assert os.environ.get("CI") != "true", f"{directory} is missing in CI"
        pytest.skip(f"no corpus in {directory}: set ATTENDO_CORPORA")
    return directory


def read(corpus: Path, name: str, count: int = NUM_SENTENCES) -> list[str]:
    with gzip.open(corpus / f"{name}.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()[:count]


@pytest.fixture(scope="module")
def folder(corpus, fork_server, tmp_path_factory) -> Path:
    if GIVEN:
        return Path(GIVEN)
    out = tmp_path_factory.mktemp("multi30k") / "run"
    files = [out.with_name(f"train.{lang}") for lang in ("en", "de")]
    for path in files:
        lines = read(corpus, f"train.lc.norm.tok{path.suffix}", NUM_PAIRS)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = ["train", "--src", str(files[0]), "--tgt", str(files[1])]
    command += ["--out", str(out), "--preset", "tiny"]
    command += [word for setting in SETTINGS for word in ("--set", setting)]
    done = fork_server.run(command)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def sources(corpus) -> list[str]:
    return read(corpus, "test_2016_flickr.lc.norm.tok.en")


@pytest.fixture(scope="module")
def ours(folder, sources) -> dict[int, list[str]]:
    translator = Translator.load(folder, device="cpu")
    return {
        beam: [str(one) for one in translator.translate(sources, beam_size=beam)] for beam in (1, 4)
    }


@pytest.mark.parametrize("beam_size", [1, 4])
def test_float32_gives_the_same_text(folder, sources, ours, beam_size):
    fast = Translator.load(folder, engine="ctranslate2", precision="float32")
    made = fast.translate(sources, beam_size=beam_size)
    same = sum(a == b for a, b in zip(ours[beam_size], made, strict=True))
    assert same >= 0.99 * NUM_SENTENCES


@pytest.mark.parametrize("beam_size", [1, 4])
def test_int8_has_nearly_the_same_output(folder, sources, ours, beam_size):
    fast = Translator.load(folder, engine="ctranslate2", precision="int8")
    made = [str(one) for one in fast.translate(sources, beam_size=beam_size)]
    assert score(made, ours[beam_size]) > MUCH


@pytest.mark.skipif(not GIVEN, reason="ATTENDO_MULTI30K_MODEL names no trained model")
@pytest.mark.parametrize("beam_size", [1, 4])
def test_int8_is_as_good(corpus, folder, sources, ours, beam_size):
    references = read(corpus, "test_2016_flickr.lc.norm.tok.de")
    fast = Translator.load(folder, engine="ctranslate2", precision="int8")
    made = [str(one) for one in fast.translate(sources, beam_size=beam_size)]
    before, after = (score(lines, references) for lines in (ours[beam_size], made))
    assert before > 10.0, "a model that has learnt nothing proves nothing"
    assert after >= before - 0.3


def score(lines: list[str], references: list[str]) -> float:
    return BLEU(tokenize="none", force=True).corpus_score(lines, [references]).score
