from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from attendo.cli import main
from attendo.core.errors import ConfigError, InputError


@pytest.fixture
def invoke(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    app = main.build_app("check")

    def run(*arguments):
        return CliRunner().invoke(app, ["check", *map(str, arguments)])

    return run


@pytest.fixture
def files(toy):
    return ("--src", toy.src, "--tgt", toy.tgt)


def test_warnings_do_not_fail(invoke, files):
    result = invoke(*files)
    assert result.exit_code == 0
    assert "200" in result.stdout
    assert "hint:" in result.stdout


def test_json_has_figures_and_findings(invoke, files):
    report = json.loads(invoke(*files, "--json").stdout)
    assert report["corpora"][0]["num_read"] == 200
    assert {"code", "severity", "message", "hint", "example", "figures"} == set(
        report["findings"][0]
    )
    assert "too_few_pairs" in [finding["code"] for finding in report["findings"]]


def test_errors_exit_with_1(invoke, toy, tmp_path):
    lines = toy.tgt.read_text("utf-8").splitlines()
    (tmp_path / "shifted").write_text("\n".join(["EXTRA LINE", *lines[:-1]]), encoding="utf-8")
    result = invoke("--src", toy.src, "--tgt", tmp_path / "shifted", "--json")
    assert result.exit_code == 1
    first = json.loads(result.stdout)["findings"][0]
    assert (first["code"], first["figures"]["shift"]) == ("sides_shifted", 1)


def test_korean(invoke, files):
    result = invoke(*files, "--lang", "ko")
    assert "해결 방법" in result.stdout
    assert "hint" not in result.stdout


def test_languages_are_compared(invoke, toy, tmp_path):
    korean = tmp_path / "ko.txt"
    korean.write_text("".join(f"나는 {n}번 학생이다.\n" for n in range(200)), encoding="utf-8")
    options = ("--src", korean, "--tgt", toy.tgt, "--src-lang", "en", "--tgt-lang", "fr")
    result = invoke(*options, "--json")
    codes = [finding["code"] for finding in json.loads(result.stdout)["findings"]]
    assert "wrong_language" in codes


def test_a_missing_file_is_reported(invoke, toy):
    result = invoke("--src", toy.src, "--tgt", "missing.txt")
    assert isinstance(result.exception, InputError)


def test_series_are_rejected(invoke, tmp_path):
    config = tmp_path / "run.toml"
    (tmp_path / "a.csv").write_text("y\n1\n")
    config.write_text('[series]\npaths = ["a.csv"]\ntargets = ["y"]\n')
    assert isinstance(invoke(config).exception, ConfigError)


def test_the_chosen_columns_are_named_on_stderr(invoke, toy, tmp_path):
    sides = (path.read_text("utf-8").splitlines() for path in (toy.src, toy.tgt))
    rows = [f"{n}\t{src}\t{tgt}" for n, (src, tgt) in enumerate(zip(*sides, strict=True))]
    table = tmp_path / "table.tsv"
    table.write_text("id\tquestion\tanswer\n" + "\n".join(rows) + "\n", encoding="utf-8")
    result = invoke("--path", table, "--json")
    assert "source is column 'question', target is column 'answer'" in result.stderr
    assert json.loads(result.stdout)["corpora"][0]["num_read"] == len(rows)


def test_dev_is_marked(invoke, files, toy):
    options = (*files, "--dev-src", toy.src, "--dev-tgt", toy.tgt)
    lines = invoke(*options).stdout.splitlines()
    assert ["(dev)" in line for line in lines[1:3]] == [False, True]
    corpora = json.loads(invoke(*options, "--json").stdout)["corpora"]
    assert [corpus["is_dev"] for corpus in corpora] == [False, True]
