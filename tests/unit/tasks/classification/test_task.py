"""Runs on labeled lines: settings, figures, calibration, beginning with a masked-token model."""

from __future__ import annotations

import json
import random

import pytest
import torch

from attendo.bundle import get_weights, load_bundle
from attendo.core.errors import ConfigError
from attendo.tasks.classification.evaluate import classify_and_score, evaluate_labels, is_classifier
from attendo.tasks.classification.settings import apply_label_defaults
from attendo.tasks.classification.task import ClassificationTask
from attendo.tasks.registry import task_class_for
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.text.tokenizer import Tokenizer
from attendo.translator import Translator

WORDS = ("ka", "to", "mi", "re", "so", "lu", "na", "wi")
SETTINGS = {
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "model.dropout": 0.0,
    "train.max_steps": 120,
    "train.save_every": 60,
    "train.log_every": 20,
    "train.schedule": "inverse_sqrt",
    "train.peak_lr": 5e-3,
    "train.warmup_steps": 20,
    "train.batch_tokens": 512,
    "train.average_checkpoints": 1,
    "data.tokenizer.vocab_size": 40,
    "data.tokenizer.byte_fallback": False,
}


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path_factory.getbasetemp() / "label-cache"))


def make_lines(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts with two sentences; who has more of ka than of to is 'more ka', few are rare."""
    draw = random.Random(seed)  # noqa: S311 - a toy
    lines = []
    for number in range(count):
        words = draw.choices(WORDS, k=draw.randint(6, 12))
        label = "more ka" if words.count("ka") > words.count("to") else "the rest"
        text = f"{' '.join(words[:3])}. {' '.join(words[3:])}."
        lines.append((f"Rare {text}", "a rare one") if number % 97 == 96 else (text, label))
    return lines


@pytest.fixture(scope="session")
def labeled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    for name, count, seed in (("train", 800, 1), ("dev", 96, 2)):
        rows = (f"{text}\t{label}\n" for text, label in make_lines(count, seed))
        (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    texts = (f"{text}\n" for text, _ in make_lines(400, 3))
    (folder / "plain.txt").write_text("".join(texts), encoding="utf-8")
    return folder


def configure(labeled, *, settings=SETTINGS, **options):
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    pairs += [f"data.dev.path={json.dumps(str(labeled / 'dev.tsv'))}"]
    return TrainRequest(settings=pairs, path=[labeled / "train.tsv"], **options).build_config()


@pytest.fixture(scope="session")
def finished(labeled, tmp_path_factory):
    config = configure(labeled, model="encoder", preset="tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENDO_CACHE", str(tmp_path_factory.getbasetemp() / "label-cache"))
        torch.manual_seed(0)
        return train_run(config, tmp_path_factory.mktemp("runs") / "classes")


def test_labeled_lines_get_the_settings_they_need(labeled):
    config = configure(labeled, model="encoder", preset="tiny")
    assert task_class_for(config) is ClassificationTask
    data = config.data
    assert (data.tokenizer.shared, data.tokenizer.tgt_kind) == (False, "label")
    assert (data.cleaning.max_length_ratio, data.disjoint) == (None, "source")
    assert config.train.label_smoothing == 0.0
    assert config.model.options["tgt_length"] == 1


def test_settings_of_a_run_win_and_others_are_unchanged():
    corpora = {"corpora": [{"path": "a.tsv"}]}
    own = {
        "data": {**corpora, "tokenizer": {"tgt_kind": "word", "shared": False}, "disjoint": "both"},
        "model": {"kind": "encoder"},
        "train": {"label_smoothing": 0.1},
    }
    made = apply_label_defaults(own)
    assert made["data"]["tokenizer"]["tgt_kind"] == "word"
    assert made["data"]["disjoint"] == "both"
    assert made["train"]["label_smoothing"] == 0.1
    tagger = apply_label_defaults({"data": corpora, "model": {"kind": "encoder", "reads": "each"}})
    assert tagger["data"]["tokenizer"] == {"kind": "word", "tgt_kind": "word", "shared": False}
    assert "tgt_length" not in tagger["model"]
    for settings in (
        {"data": corpora, "model": {}},
        {"data": {"corpora": [{"text": "a"}]}, "model": {"kind": "encoder"}},
    ):
        assert apply_label_defaults(settings) == settings


def test_classes_are_learned_and_reported(finished):
    dev = finished.report["dev"]
    assert dev["exact"] > 0.85
    assert dev["macro_f1"] > 0.6
    assert dev["majority"] < 0.8
    assert {one["label"] for one in dev["classes"]} <= {"more ka", "the rest", "a rare one"}
    report = (finished.directory / "report.md").read_text(encoding="utf-8")
    assert "labels: 3, the rest " in report
    assert "fewer than 10 examples: a rare one 8" in report
    assert "96 lines of dev" in report
    sample = json.loads((finished.directory / "samples.jsonl").read_text().splitlines()[-1])
    assert {one["output"] for one in sample["samples"]} <= {"more ka", "the rest", "a rare one"}


def test_the_figures_of_the_run_are_those_of_the_finished_model(finished, labeled):
    translator = Translator.load(finished.model_dir)
    assert is_classifier(translator)
    pairs = [line.split("\t") for line in (labeled / "dev.tsv").read_text().splitlines()]
    found = classify_and_score(translator, *map(list, zip(*pairs, strict=True)))
    dev = finished.report["dev"]
    assert found.accuracy == pytest.approx(dev["exact"])
    assert found.macro_f1 == pytest.approx(dev["macro_f1"], abs=1e-6)
    assert found.unseen == {}
    calibration = finished.report["calibration"]
    assert calibration["num_tokens"] == 96  # classes, not their ends
    assert found.ece == pytest.approx(calibration["ece_after"], abs=0.01)
    assert calibration["nll_after"] <= calibration["nll_before"]


def test_an_evaluation_has_accuracy_and_f1_and_writes_its_report(finished, labeled, tmp_path):
    pairs = [line.split("\t") for line in (labeled / "dev.tsv").read_text().splitlines()]
    pairs[0][1] = "of no class"
    for position, name in enumerate(("src", "ref")):
        (tmp_path / name).write_text("".join(f"{pair[position]}\n" for pair in pairs))
    files = {"src": tmp_path / "src", "ref": tmp_path / "ref"}
    assert is_classifier(finished.directory)
    assert not is_classifier(tmp_path)
    found = evaluate_labels(finished.directory, **files, out=tmp_path / "report")
    outputs = (tmp_path / "report/outputs.txt").read_text().splitlines()
    right = sum(one == pair[1] for one, pair in zip(outputs, pairs, strict=True))
    assert found.scores.accuracy == right / 96
    assert found.scores.unseen == {"of no class": 1}
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert report["labels"]["macro_f1"] == pytest.approx(found.scores.macro_f1, abs=1e-6)
    page = (tmp_path / "report/report.md").read_text()
    assert f"accuracy {right / 96:.2%}, macro F1" in page
    assert "'of no class' does not occur in the training data: 1 lines" in page
    evaluate_labels(finished.directory, **files, out=tmp_path / "report")  # again, in its place


def test_n_best_gives_every_class_with_its_probability(finished):
    translator = Translator.load(finished.model_dir)
    text = "ka ka mi. re so ka lu."  # two sentences are one text
    (printed,) = translator.translate([text], beam_size=3, n_best=3, confidence=True)
    ranked = [printed, *printed.alternatives]
    assert str(printed) == "more ka"
    assert {str(one) for one in ranked} == {"more ka", "the rest", "a rare one"}
    probabilities = [one.confidence.probability for one in ranked]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0, abs=0.02)
    assert all(one.is_finished for one in ranked)


@pytest.fixture(scope="session")
def pretrained(labeled, tmp_path_factory):
    settings = SETTINGS | {"train.max_steps": 10, "train.save_every": 10}
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    config = TrainRequest(
        settings=pairs, text=[labeled / "plain.txt"], model="encoder", preset="tiny"
    ).build_config()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENDO_CACHE", str(tmp_path_factory.getbasetemp() / "label-cache"))
        return train_run(config, tmp_path_factory.mktemp("runs") / "masked")


FINE = {
    "train.max_steps": 2,
    "train.save_every": 2,
    "train.average_checkpoints": 1,
    "train.peak_lr": 1e-8,
    "train.schedule": "inverse_sqrt",
}


def test_a_classifier_begins_with_encoder_and_source_tokenizer(labeled, pretrained, tmp_path):
    config = configure(labeled, settings=FINE, init_from=pretrained.directory)
    done = train_run(config, tmp_path / "run")
    before, after = load_bundle(pretrained.model_dir), load_bundle(done.model_dir)
    assert after.tokenizer.src_fingerprint == before.tokenizer.src_fingerprint
    assert sorted(after.tokenizer.labels) == ["a rare one", "more ka", "the rest"]
    assert after.model.config.reads == "summary"
    assert after.model.config.tgt_length == 1
    taken, now = get_weights(before.model), get_weights(after.model)
    assert set(now) - set(taken) == {"output.weight"}
    assert now["output.weight"].shape == (7, 32)
    for name, weight in taken.items():  # the rate is next to nothing
        torch.testing.assert_close(now[name], weight, rtol=0, atol=1e-6)


def test_a_tagger_begins_with_it_too(labeled, pretrained):
    config = configure(
        labeled, settings=FINE | {"model.reads": "each"}, init_from=pretrained.directory
    )
    assert config.model.options["reads"] == "each"
    assert config.data.tokenizer.tgt_kind == "word"


def test_words_are_tagged_where_they_occur(tmp_path):
    """A tag for each word, which hangs on all the others too; then the end."""
    draw = random.Random(5)  # noqa: S311 - a toy
    rows = []
    for _ in range(600):
        words = draw.choices(WORDS, k=draw.randint(2, 7))
        tags = " ".join(word[0] for word in words)
        rows.append((" ".join(words), tags.upper() if "ka" in words else tags))
    table = tmp_path / "tags.tsv"
    table.write_text("".join(f"{text}\t{tags}\n" for text, tags in rows), encoding="utf-8")
    settings = {key: value for key, value in SETTINGS.items() if not key.startswith("data")}
    settings |= {"model.reads": "each", "train.max_steps": 150, "train.save_every": 75}
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    config = TrainRequest(
        settings=pairs, path=[table], model="encoder", preset="tiny"
    ).build_config()
    done = train_run(config, tmp_path / "run")
    assert done.report["dev"]["accuracy"] > 0.95
    translator = Translator.load(done.model_dir)
    assert translator.translate(["mi ka ka so", "lu mi lu"]) == ["M K K S", "l m l"]


def test_a_run_continues_with_the_same_task_whole(labeled, finished, pretrained, tmp_path):
    """Plain text goes on as hidden words, and a classifier as the classifier that it was."""
    config = TrainRequest(
        settings=["train.max_steps=1"],
        text=[labeled / "plain.txt"],
        init_from=pretrained.directory,
    ).build_config()
    assert config.model.options["reads"] == "each"
    assert config.data.tokenizer.src_from is None
    again = configure(labeled, settings=FINE, init_from=finished.directory)
    assert task_class_for(again) is ClassificationTask
    done = train_run(again, tmp_path / "again")
    tokenizers = [Tokenizer.load(run.model_dir) for run in (finished, done)]
    assert tokenizers[0].fingerprint == tokenizers[1].fingerprint
    assert done.report["dev"]["exact"] == pytest.approx(finished.report["dev"]["exact"])


def test_settings_that_contradict_the_pretrained_model_are_rejected(labeled, pretrained):
    with pytest.raises(ConfigError, match="num_layers = 3: the model has 1"):
        configure(labeled, settings={"model.num_layers": 3}, init_from=pretrained.directory)
    with pytest.raises(ConfigError, match="vocab_size = 99"):
        configure(
            labeled, settings={"data.tokenizer.vocab_size": 99}, init_from=pretrained.directory
        )
