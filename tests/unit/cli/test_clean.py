from __future__ import annotations

import json

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.synthetic.everyday import synthesize_pairs


@pytest.fixture
def attendo(capsys):
    def call(*words: object) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as ended:
            run([str(word) for word in words])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(ended.value.code or 0)

    return call


@pytest.fixture
def corpus(tmp_path):
    pairs = list(synthesize_pairs(120, seed=4))
    for side in ("ko", "en"):
        lines = [getattr(pair, side) for pair in pairs]
        (tmp_path / f"a.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ("--src", tmp_path / "a.ko", "--tgt", tmp_path / "a.en")


def test_corpora_are_cleaned_from_options(attendo, corpus, tmp_path):
    languages = ("--src-lang", "ko", "--tgt-lang", "en")
    out, _, code = attendo("clean", *corpus, *languages, "--out", tmp_path / "out")
    assert code == 0
    assert str(tmp_path / "out") in out
    kept = (tmp_path / "out/a.en").read_text(encoding="utf-8").splitlines()
    assert 60 < len(kept) <= 120
    text = f"en={tmp_path / 'a.en'}"
    out, _, code = attendo("clean", "--text", text, "--out", tmp_path / "mono", "--json")
    assert json.loads(out)["corpora"][0]["name"] == "a"
    assert (tmp_path / "mono/a.en").is_file()


def test_corpora_are_cleaned_from_a_file(attendo, corpus, tmp_path):
    (tmp_path / "clean.toml").write_text(
        'src_lang = "ko"\ntgt_lang = "en"\ndev_size = 4\n'
        '[[corpora]]\nname = "mine"\nsrc = "a.ko"\ntgt = "a.en"\n',
        encoding="utf-8",
    )
    given = (tmp_path / "clean.toml", "--out", tmp_path / "out", "--set", "rules.numbers=false")
    assert attendo("clean", *given)[2] == 0
    assert (tmp_path / "out/mine.ko").is_file()
    assert len((tmp_path / "out/dev.ko").read_text(encoding="utf-8").splitlines()) == 4


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "out"],
        ["--src", "a.ko", "--out", "out"],
        ["--text", "a.en", "--out", "out"],
        ["--src", "a.ko", "--tgt", "a.en"],
        ["--src", "a.ko", "--tgt", "a.en", "--scores", "s", "--scores", "t", "--out", "out"],
        ["--src", "a.ko", "--tgt", "missing.en", "--out", "out"],
    ],
)
def test_what_is_missing_is_named(attendo, corpus, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    _, errors, code = attendo("clean", *words)
    assert code == 2
    assert "hint" in errors or "cannot be used" in errors
    assert not (tmp_path / "out").exists()


def test_scores_of_two_models_choose_the_pairs(attendo, toy, tmp_path):
    corpus = ("--src", toy.src, "--tgt", toy.tgt)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    for name in ("one", "two"):
        model = build_model("transformer", sizes, toy.prepared.tokenizer)
        save_bundle(tmp_path / name, model, toy.prepared.tokenizer)
    models = (tmp_path / "one", "--backward", tmp_path / "two")
    output = tmp_path / "a.scores"
    assert attendo("score", *models, *corpus, "--output", output)[2] == 0
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {3}
    assert len(rows) == 200
    assert attendo("score", *models, *corpus, "--output", output)[2] == 2  # it exists
    alone = ("--output", output, "--force")
    assert attendo("score", tmp_path / "one", *corpus, *alone)[2] == 0
    single = [float(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert single == pytest.approx([float(row[0]) for row in rows])
    given = ("--scores", output, "--keep", "0.5", "--set", "rules.enabled=false")
    assert attendo("clean", *corpus, *given, "--out", tmp_path / "out")[2] == 0
    kept = (tmp_path / "out/toy.src").read_text(encoding="utf-8").splitlines()
    assert 80 < len(kept) <= 100
