"""The decoder half from files to use: a language model of plain text, and one that translates."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from attendo.cli.main import run as attendo
from attendo.core.errors import ConfigError, InputError
from attendo.evaluation.evaluate import evaluate
from attendo.evaluation.perplexity import compute_likelihood
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.inspection.record import Record
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.synthetic.everyday import synthesize_pairs
from attendo.tasks.language_model.generator import TextGenerator
from attendo.tasks.request import train
from attendo.translator import Translator

SIZES = ["model.d_model=48", "model.d_ff=96", "model.num_heads=4", "model.num_layers=2"]
TRAINING = [
    "model.dropout=0.0",
    "train.label_smoothing=0.0",
    "train.schedule=cosine",
    "train.peak_lr=5e-3",
    "train.warmup_steps=30",
    "train.average=last",
    "train.average_checkpoints=1",
]


@pytest.fixture(scope="module", autouse=True)
def _quiet_location(tmp_path_factory):
    """One thread, English, and a cache of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ATTENDO_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("ATTENDO_LANG", "en")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    patch.undo()


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A model of Korean and English sentences of the embedded corpus."""
    folder = tmp_path_factory.mktemp("language")
    pairs = synthesize_pairs(400, seed=3)
    texts = [text for pair in pairs for text in pair]
    (folder / "text.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return train(
        out=folder / "run",
        text=folder / "text.txt",
        model="decoder",
        settings=[
            *SIZES,
            *TRAINING,
            "data.tokenizer.vocab_size=500",
            "data.tokenizer.byte_fallback=false",
            "train.max_steps=120",
            "train.batch_tokens=512",
            "train.save_every=60",
        ],
    )


@pytest.fixture(scope="module")
def backwards(tmp_path_factory):
    """A decoder that learns to say few sentences backwards, by heart."""
    folder = tmp_path_factory.mktemp("backwards")
    draw = random.Random(4)  # noqa: S311 - a toy
    drawn = {" ".join(draw.choices("abcdefgh", k=draw.randint(2, 6))) for _ in range(90)}
    texts = sorted(drawn)
    draw.shuffle(texts)
    for part, own in (("", texts[10:]), ("dev_", texts[:10])):
        for name, lines in (("src", own), ("tgt", [text[::-1].upper() for text in own])):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{part}{name}").write_text(text, encoding="utf-8")
    finished = train(
        out=folder / "run",
        src=folder / "src",
        tgt=folder / "tgt",
        dev_src=folder / "dev_src",
        dev_tgt=folder / "dev_tgt",
        model="decoder",
        settings=[
            *SIZES,
            *TRAINING,
            "data.tokenizer.kind=word",
            "train.max_steps=300",
            "train.batch_tokens=512",
            "train.save_every=150",
            "train.bleu_sentences=0",
        ],
    )
    return folder, finished


def test_it_is_evaluated_by_what_it_forecasts(language_model, tmp_path, capsys):
    texts = [pair.en for pair in synthesize_pairs(40, seed=9)]
    (tmp_path / "test.en").write_text("\n".join([*texts, "", "zebra QQQ 17"]), encoding="utf-8")
    location = ["--ref", str(tmp_path / "test.en"), "--out", str(tmp_path / "report"), "--json"]
    attendo_run(["evaluate", str(language_model.directory), *location])
    report = json.loads(capsys.readouterr().out)
    scores = TextGenerator.load(language_model.directory).score([*texts, "zebra QQQ 17"])
    log_prob, tokens = (sum(column) for column in list(zip(*scores, strict=True))[:2])
    assert report["data"] == {"ref": location[1], "texts": 41, "tokens": tokens}
    assert report["scores"]["perplexity"] == pytest.approx(math.exp(-log_prob / tokens), rel=1e-4)
    assert report["hardest"][0]["line"] == "zebra QQQ 17"
    assert "bits per character" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")


def test_text_becomes_a_model_that_continues_with_it(language_model, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)  # no pipe to read prompts from
    dev = language_model.report["dev"]
    without = math.log2(500) * dev["num_tokens"] / dev["num_characters"]
    assert dev["bits_per_character"] < 0.7 * without
    attendo_run(["generate", str(language_model.directory), "나는", "I am", "--seed", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("나는") for line in lines[:3])
    assert all(line.startswith("I am") for line in lines[3:])
    attendo_run(["generate", str(language_model.directory), "나는", "--json", "-n", "2"])
    reported = json.loads(capsys.readouterr().out)
    assert reported["prompt"] == "나는"
    assert len(reported["texts"]) == 2
    attendo_run(["generate", str(language_model.directory), "--greedy"])
    assert len(capsys.readouterr().out.splitlines()) == 1


def attendo_run(words: list[str], code: int = 0) -> None:
    with pytest.raises(SystemExit) as left:
        attendo(words)
    assert left.value.code == code


def test_it_does_not_translate(language_model, capsys):
    attendo_run(["translate", str(language_model.directory), "I am"], code=2)
    assert "use attendo generate" in capsys.readouterr().err


def test_a_given_text_is_looked_into_without_a_source(language_model, tmp_path, capsys):
    page = tmp_path / "look.json"
    text = "I am a student."
    attendo_run(["look", str(language_model.directory), text, "-o", str(page)])
    assert capsys.readouterr().out.strip() == text
    record = Record.load(page)
    assert record.kinds == ("decoder_self",)
    assert record.tgt["text"] == text
    assert record.src["words"] == []
    assert len(record.src["tokens"]) == 1
    weights = record.attention("decoder_self")
    assert weights.shape[:2] == (2, 4)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-3)
    assert (np.triu(weights, 1) == 0).all()
    score = TextGenerator.load(language_model.directory, device="cpu").score([text])[0]
    assert record.search["log_prob"] == pytest.approx(score.log_prob, abs=1e-3)
    for layer in record.measures["decoder_self"]:
        for head in layer:
            assert 0 <= head["focus"] <= 1
            assert 0 <= head["entropy"] <= math.log(len(record.tgt["tokens"]))
    attendo_run(["look", str(language_model.directory), text, "-o", str(tmp_path / "look.html")])
    assert text in (tmp_path / "look.html").read_text(encoding="utf-8")


def test_a_source_for_a_language_model_is_rejected(language_model):
    translator = Translator.load(language_model.directory, device="cpu")
    with pytest.raises(ConfigError, match="reads no source"):
        inspect_sentence(translator, "I am", "나는")
    with pytest.raises(InputError, match="text is empty"):
        inspect_sentence(translator, "")
    with pytest.raises(InputError, match="attribution"):
        inspect_sentence(translator, "I am", attribution=True)


def test_the_verbs_name_each_other(backwards, capsys):
    attendo_run(["generate", str(backwards[1].directory), "a"], code=2)
    reported = capsys.readouterr().err
    assert "not a language model" in reported
    assert "attendo translate" in reported


def test_a_decoder_translates_memorized_pairs(backwards):
    folder, finished = backwards
    sources, targets = (
        (folder / name).read_text(encoding="utf-8").splitlines() for name in ("src", "tgt")
    )
    translator = Translator.load(finished.model_dir, device="cpu")
    for beam_size in (1, 4):
        printed = translator.translate(sources, beam_size=beam_size, split="never")
        right = sum(map(str.__eq__, map(str, printed), targets))
        assert right >= 0.95 * len(sources)
    alone = translator.translate(sources[:5], beam_size=4, split="never")
    together = translator.translate(sources, beam_size=4, split="never")
    assert [str(one) for one in alone] == [str(one) for one in together[:5]]
    assert translator.translate(["a b c"], n_best=3)[0].alternatives
    started = translator.translate(["a b c"], prefix="H", split="never")[0]
    assert str(started).startswith("H")
    assert translator.translate(["a b c"], required=["G"], split="never")[0].split().count("G") >= 1


def test_scores_and_perplexity_agree_and_separate_right_from_wrong(backwards):
    folder, finished = backwards
    translator = Translator.load(finished.model_dir, device="cpu")
    sources, targets = (
        (folder / name).read_text(encoding="utf-8").splitlines() for name in ("src", "tgt")
    )
    found = compute_likelihood(translator.model, translator.tokenizer, sources, targets)
    translator.temperature = 1.0  # the calibrated one would be surer, or less sure
    scored = translator.score(sources, targets)
    assert found.log_probs == pytest.approx([math.log(one.probability) for one in scored], abs=1e-3)
    assert found.perplexity < 1.2
    wrong = translator.score(sources, [*targets[1:], targets[0]])
    assert sum(one.probability for one in wrong) < 0.1 * sum(one.probability for one in scored)


def test_it_is_evaluated_inspected_and_served_as_any_translator(backwards):
    folder, finished = backwards
    report = evaluate(
        finished.model_dir, src=folder / "src", ref=folder / "tgt", num_samples=0, split="never"
    ).report
    assert json.dumps(report)
    translator = Translator.load(finished.model_dir, device="cpu")
    record = inspect_sentence(translator, "a b c")
    assert set(record.kinds) == {"encoder_self", "decoder_self", "cross"}
    parts = record.attention("cross").sum(-1) + record.attention("decoder_self").sum(-1)
    np.testing.assert_allclose(parts, 1.0, atol=1e-3)
    assert record.attention("cross").sum(-1).max() < 1.0
    for kind in record.kinds:
        for head in (head for layer in record.measures[kind] for head in layer):
            assert 0 <= head["focus"] <= 1
            assert 0 <= head["agreement"] <= 1
            assert 0 <= head["first"] <= 1
    assert Record.from_dict(json.loads(record.to_json())).kinds == record.kinds
    config = ServeConfig(models=[finished.directory], watch_seconds=0, threads=1)
    printed = [str(one) for one in translator.translate(["a b c"], split="never")]
    with TestClient(create_app(config), base_url="http://localhost") as client:
        answer = client.post("/v1/translate", json={"text": "a b c", "alignment": True})
        assert [one["text"] for one in answer.json()["translations"]] == printed
        looked = client.post("/v1/inspect", json={"text": "a b c"})
        assert looked.json()["model"]["kind"] == "decoder"


def test_n_grams_are_the_honest_baseline():
    from benchmarks.language_model import NGrams

    draw = random.Random(1)  # noqa: S311 - a toy
    rows = [[*draw.choices(range(4, 10), k=draw.randint(1, 8)), 3] for _ in range(300)]
    pieces = (1, 3, *range(4, 10))
    for order in (1, 2, 4):
        grams = NGrams(rows, order=order, vocab_size=len(pieces))
        for context in ((2,), (2, 4), (4, 5, 6), (1, 9), ()):
            seen = context[-(order - 1) :] if order > 1 else ()
            total = sum(grams.probability(seen, piece) for piece in pieces)
            assert total == pytest.approx(1.0, abs=1e-9)
    # by hand: 7 follows the start twice of three times, 0.5 is taken off each of two kinds
    known = NGrams([[7, 3], [7, 3], [8, 3]], order=2, vocab_size=8)
    below = (1 - 0.5 + 0.5 * 3 / 8) / 4  # of 3, 7, 8: in two, one and one contexts
    assert known.probability((2,), 7) == pytest.approx((2 - 0.5 + 0.5 * 2 * below) / 3)
