"""The comparison of architectures: one small run of the whole, and its figures by hand."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import NamedTuple

import pytest

from attendo.architectures.registry import get_model_kind
from benchmarks.compare_architectures.__main__ import measure, read_options, run, write
from benchmarks.compare_architectures.findings import choose, find_all, first_reached
from benchmarks.compare_architectures.report import make_sheets, to_markdown
from benchmarks.compare_architectures.study import SETS, result_file, train_all, write_plan
from benchmarks.compare_architectures.systems import ABLATIONS, ARCHITECTURES, SYSTEMS

VOCAB = 10_000


SUBJECTS = {"a man": "ein mann", "a woman": "eine frau", "the child": "das kind"}
VERBS = {"is watching": "beobachtet", "is holding": "hält", "is looking for": "sucht"}
OBJECTS = {"the red ball": "den roten ball", "the small dog": "den kleinen hund"}
PLACES = {"in the park": "im park", "on the street": "auf der straße", "at the beach": "am strand"}
ENDINGS = {"and is laughing": "und lacht dabei", "in the evening": "am abend", "today": "heute"}


class Pair(NamedTuple):
    en: str
    de: str


def make_pairs(count):
    """Captions as in Multi30k: the data check of training knows the languages."""
    parts = product(*(part.items() for part in (SUBJECTS, VERBS, OBJECTS, PLACES, ENDINGS)))
    pairs = [Pair(*map(" ".join, zip(*words, strict=True))) for words in parts]
    return random.Random(5).sample(pairs, count)  # noqa: S311 - a toy


def write_corpus(folder, *, train=130, test=12):
    pairs = make_pairs(train + 2 * test)
    parts = {"train": pairs[2 * test :], SETS[0]: pairs[:test], SETS[1]: pairs[test : 2 * test]}
    for part, own in parts.items():
        for lang in ("en", "de"):
            text = "".join(f"{getattr(pair, lang)}\n" for pair in own)
            (folder / f"{part}.lc.norm.tok.{lang}").write_text(text, encoding="utf-8")
    return parts


def write_result(folder, name, outputs, *, bleu=()):
    result = {
        "name": name,
        "num_parameters": 7,
        "num_steps": 40,
        "validations": [{"step": step, "bleu": value} for step, value in bleu],
        "losses": [],
        "dev": {"perplexity": 3.0},
        "outputs": outputs,
    }
    path = result_file(folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result), encoding="utf-8")


def test_architectures_have_the_same_size_and_ablations_differ_in_one_part():
    sizes = [
        get_model_kind(system.kind).model_class(VOCAB, **system.model).num_parameters()
        for system in ARCHITECTURES
    ]
    assert max(sizes) / min(sizes) < 1.02
    whole = SYSTEMS["transformer-0.002-0.3"]
    for system in ABLATIONS:
        model = {key for key, value in system.model.items() if whole.model.get(key) != value}
        train = {key for key, value in system.train.items() if whole.train.get(key) != value}
        assert len(model | train) == 1, system.name


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Results of systems that say what we know: everything, half of it, nothing."""
    folder = tmp_path_factory.mktemp("told")
    parts = write_corpus(folder)
    right = {part: [pair.de for pair in parts[part]] for part in SETS}
    half = {part: texts[:6] + ["no"] * 6 for part, texts in right.items()}
    nothing = {part: ["no"] * 12 for part in SETS}
    write_result(folder, "transformer-0.002-0.3", right, bleu=[(10, 12.0), (20, 41.0)])
    write_result(folder, "conv-s2s-0.001-0.2", nothing)
    write_result(folder, "conv-s2s-0.002-0.3", half, bleu=[(10, 26.0)])
    write_result(folder, "less-scale", nothing)
    speeds = {"transformer": {"step_seconds": 0.5, "train_tokens_per_second": 1000.0}}
    return folder, find_all(folder, folder, speeds)


def test_the_figures_are_those_of_the_outputs(reported):
    _, found = reported
    systems = found["systems"]
    assert systems["transformer-0.002-0.3"]["test"] == pytest.approx(100)
    assert systems["less-scale"]["test"] == 0
    assert 0 < systems["conv-s2s-0.002-0.3"]["test"] < 100
    assert "tok:as-is" in found["signature"]


def test_the_best_on_val_represents_its_family(reported):
    assert reported[1]["chosen"] == ["conv-s2s-0.002-0.3", "transformer-0.002-0.3", "less-scale"]
    tie = {"a": {"family": "x", "val": 1.0}, "b": {"family": "x", "val": 1.0}}
    assert choose(tie) == ["a"]


def test_levels_are_reached_in_seconds_of_training_alone(reported):
    _, found = reported
    reached = found["systems"]["transformer-0.002-0.3"]["reached"]
    assert reached[10] == {"step": 10, "seconds": 5.0}
    assert reached[40] == {"step": 20, "seconds": 10.0}
    conv = found["systems"]["conv-s2s-0.002-0.3"]
    assert first_reached(conv) == {level: {"step": 10, "seconds": None} for level in (10, 20, 25)}


def test_p_values_are_of_pairs_with_the_transformer(reported):
    systems = reported[1]["systems"]
    assert systems["transformer-0.002-0.3"]["p_value"] is None
    assert systems["less-scale"]["p_value"] < 0.05


def test_the_report_has_every_table_and_is_restored_from_its_json(reported, tmp_path):
    results = {
        "machine": {"device": "a machine", "torch": "2"},
        "num_steps": 40,
        "failed": [],
        **reported[1],
    }
    notes = write(results, tmp_path / "out")
    assert "results.md" in notes[0]
    text = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    for sheet in make_sheets(results):
        assert f"## {sheet.title}" in text
        assert all(len(row) == len(sheet.headers) for row in sheet.rows)
    assert (tmp_path / "out" / "architectures.png").stat().st_size > 10_000
    earlier = str(tmp_path / "out" / "results.json")
    run(read_options(["--from", earlier, "--out", str(tmp_path / "again")]))
    again = (tmp_path / "again" / "results.md").read_text(encoding="utf-8")
    assert again == text == to_markdown(results, ["ablations.png", "architectures.png"])


def test_wrong_requests_are_reported(tmp_path):
    from rich.console import Console

    from attendo.core.errors import AttendoError

    for arguments, words in (
        (["--only", "rnn-atention-0.001-0.3"], "no system"),
        ([], "no corpus"),
        (["--corpus", str(tmp_path)], "has no train.lc.norm.tok.en"),
    ):
        with pytest.raises(AttendoError, match=words):
            measure(read_options([*arguments, "--out", str(tmp_path / "out")]), Console())
    with pytest.raises(AttendoError, match="cannot be read"):
        run(read_options(["--from", str(tmp_path / "missing.json")]))


def test_a_small_run_of_the_whole_and_what_is_done_is_not_done_again(tmp_path):
    write_corpus(tmp_path, test=6)
    names = ["transformer-0.002-0.3", "less-positions"]
    options = ["--corpus", str(tmp_path), "--out", str(tmp_path / "out"), "--jobs", "2"]
    options += ["--steps", "2", "--vocab", "500", "--speed-steps", "6", "--only", *names]
    run(read_options(options))
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert set(results["systems"]) == set(names)
    speed = results["systems"]["transformer-0.002-0.3"]["speed"]
    assert speed["step_seconds"] > 0
    assert speed["beam_sentences_per_second"] > 0
    folder = tmp_path / "out"
    before = result_file(folder, names[0]).stat().st_mtime_ns
    write_plan(folder, tmp_path, num_steps=2, vocab_size=500)
    assert train_all(folder, names, jobs=1, log=print) == []
    assert result_file(folder, names[0]).stat().st_mtime_ns == before
