"""The encoder half from end to end: plain text in, gaps filled; labeled lines in, classes out."""

from __future__ import annotations

import json
import random
import re

import pytest
import typer
from typer.testing import CliRunner

from attendo.cli.main import load_verb
from attendo.data.config import DataConfig
from attendo.data.pipeline import prepare_data
from attendo.inspection.html_page import render_page
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.tasks.classification.settings import apply_label_defaults
from attendo.tasks.masked_lm.fill_mask import MaskFiller
from attendo.translator import Translator

COLORS = {"banana": "yellow", "cherry": "red", "lime": "green", "plum": "violet", "coal": "black"}
SIZES = [
    "model.num_layers=1",
    "model.dropout=0",
    "train.schedule=inverse_sqrt",
    "train.peak_lr=4e-3",
    "train.warmup_steps=50",
    "train.label_smoothing=0",
    "train.average_checkpoints=1",
    "train.batch_tokens=1024",
]


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENDO_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sentences whose color follows from the fruit; labeled by whether one can eat it."""
    directory = tmp_path_factory.mktemp("texts")
    draw = random.Random(1)  # noqa: S311 - a toy
    frames = ["the {} {} of {} is {} .", "a {} {} was seen by {} , it was {} ."]
    names = ["ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"]
    states = ["old", "new", "big", "small", "raw", "wet"]
    texts = []
    for _ in range(3000):
        thing = draw.choice(list(COLORS))
        words = (COLORS[thing], thing, draw.choice(names), draw.choice(states))
        texts.append((draw.choice(frames).format(*words), thing))
    (directory / "plain.txt").write_text(
        "".join(f"{text}\n" for text, _ in texts), encoding="utf-8"
    )
    rows = [(t, "not food" if thing == "coal" else "food") for t, thing in dict(texts).items()]
    lines = (f"{text}\t{label}\n" for text, label in rows)
    (directory / "labelled.tsv").write_text("".join(lines), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def train(fork_server):
    def run(*words: object, settings: list[str]) -> str:
        command = ["train", *map(str, words)]
        for setting in [*SIZES, *settings]:
            command += ["--set", setting]
        done = fork_server.run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def masked(folder, train):
    """One command on plain text."""
    settings = ["data.tokenizer.kind=word", "train.max_steps=300", "train.save_every=150"]
    words = ("--model", "encoder", "--preset", "tiny", "--text", folder / "plain.txt")
    printed = train(*words, "--out", folder / "masked", settings=settings)
    assert "attendo fill" in printed
    return folder / "masked"


def test_hidden_words_are_found_from_both_sides(masked):
    filler = MaskFiller.load(masked)
    for thing, color in COLORS.items():
        # what follows tells it
        (guesses,) = filler.fill(f"the ___ {thing} of bob is old .", top=3).guesses
        assert guesses[0].text == color
        assert guesses[0].probability > 0.9
        (guesses,) = filler.fill(f"the {color} ___ of bob is old .").guesses
        assert guesses[0].text == thing
    report = json.loads((masked / "report.json").read_text(encoding="utf-8"))
    assert report["dev"]["accuracy"] > 0.5


def test_gaps_are_filled_from_the_command_line(masked):
    app = typer.Typer()
    app.command()(load_verb("fill"))
    printed = CliRunner().invoke(app, [str(masked), "the ___ lime of ann is old .", "--top", "2"])
    assert printed.exit_code == 0
    first, second = printed.stdout.splitlines()
    assert first == "the green lime of ann is old ."
    assert re.match(r"  gap 1: green (9\d|100)\.\d%  \w+ \d", second)
    text = "a ___ plum was seen by dan , it was big ."
    reported = CliRunner().invoke(app, [str(masked), text, "--json"])
    assert json.loads(reported.stdout)["gaps"][0][0]["text"] == "violet"


@pytest.fixture(scope="module")
def classes(folder, masked, train):
    """One command on labeled lines, beginning with what plain text has taught."""
    words = ("--init-from", masked, "--path", folder / "labelled.tsv")
    settings = ["data.dev_size=20", "train.max_steps=60", "train.save_every=30"]
    printed = train(*words, "--out", folder / "classes", settings=settings)
    assert "labels: 2, food " in printed
    return folder / "classes"


def test_classes_are_named_and_ranked(classes):
    translator = Translator.load(classes)
    texts = ["the black coal of eve is big .", "a red cherry was seen by gus , it was big ."]
    printed = translator.translate(texts, n_best=2, confidence=True)
    assert [str(one) for one in printed] == ["not food", "food"]
    assert [str(one.alternatives[0]) for one in printed] == ["food", "not food"]
    for one in printed:
        ranked = [one, *one.alternatives]
        assert sum(each.confidence.probability for each in ranked) == pytest.approx(1, abs=0.02)
    # spelled alike or not, a batch gives what one text alone does
    assert [str(translator.translate([text])[0]) for text in texts] == ["not food", "food"]


def test_a_classifier_is_evaluated_by_its_classes(classes, fork_server, tmp_path):
    texts = ["the black coal of eve is big .", "a red cherry was seen by gus , it was big ."]
    (tmp_path / "texts").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (tmp_path / "labels").write_text("not food\nnot food\n", encoding="utf-8")
    command = ["evaluate", classes, "--ref", tmp_path / "labels"]
    refused = fork_server.run(command)
    assert "pass the texts with --src" in refused.stderr
    reported = fork_server.run([*command, "--src", tmp_path / "texts"]).stdout
    assert reported.startswith("accuracy 50.00%")
    assert "not food  F1 0.667  precision 1.000  recall 0.500  2 lines" in reported


def test_a_class_can_be_looked_into(classes):
    translator = Translator.load(classes)
    record = inspect_sentence(translator, "the black coal of eve is big .")
    assert record.weights["encoder_self"].shape[:2] == (1, 4)
    assert record.weights["cross"] is None
    assert record.weights["decoder_self"] is None
    label, end = record.steps
    assert {one["piece"] for one in label["top"]} >= {"▁not food", "▁food"}
    assert end["probability"] == 1
    assert [token["text"] for token in record.tgt["tokens"]] == ["not food", ""]
    assert "not food" in render_page(record)


def test_labeled_lines_are_read_from_every_table(tmp_path):
    rows = [(f"some words of the text number {n}", "not spam" if n % 3 else "x") for n in range(90)]
    (tmp_path / "a.tsv").write_text("".join(f"{t}\t{label}\n" for t, label in rows))
    (tmp_path / "a.csv").write_text(
        "text,label\n" + "".join(f'"{t}",{label}\n' for t, label in rows)
    )
    objects = (json.dumps({"text": t, "label": label}) + "\n" for t, label in rows)
    (tmp_path / "a.jsonl").write_text("".join(objects))
    named = {"src_field": "text", "tgt_field": "label"}
    found = []
    for suffix, fields in (("tsv", {}), ("csv", named), ("jsonl", named)):
        corpora = [{"path": str(tmp_path / f"a.{suffix}"), **fields}]
        settings = apply_label_defaults(
            {"data": {"corpora": corpora}, "model": {"kind": "encoder"}}
        )
        made = prepare_data(DataConfig(**settings["data"]), tmp_path / suffix)
        assert sorted(made.tokenizer.labels) == ["not spam", "x"]  # 'x' is short next to its text
        assert made.report["corpora"][0]["num_train"] + len(made.dev_pairs) == len(rows)
        found.append(made.dev_pairs)
    assert found[0] == found[1] == found[2]
