"""`attendo synthesize`: the files it writes, the same for one seed, and what it refuses."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from datetime import date
from typing import NamedTuple

import pytest

from attendo.cli.main import run as run_command
from attendo.data.corpus_config import CorpusConfig
from attendo.data.readers import read_pairs
from attendo.synthetic.everyday import LESSON_PAIRS


class Done(NamedTuple):
    code: int
    out: str
    err: str


def generate(*arguments: object) -> Done:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        run_command(["synthesize", *map(str, arguments)])
    return Done(int(left.value.code or 0), out.getvalue(), err.getvalue())


def lines(path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_two_files_line_by_line_and_their_dev_and_test(tmp_path):
    done = generate("dates", "-o", tmp_path / "new" / "dates", "--count", 400, "--split", 0.1)
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "new").iterdir()}
    parts = ("", ".dev", ".test")
    assert names == {f"dates{part}.{side}" for part in parts for side in ("src", "tgt")}
    sources = []
    for part, count in zip(parts, (320, 40, 40), strict=True):
        src, tgt = (lines(tmp_path / "new" / f"dates{part}.{side}") for side in ("src", "tgt"))
        assert len(src) == len(tgt) == count
        assert all(date.fromisoformat(day).isoformat() == day for day in tgt)
        sources += src
    assert len(set(sources)) == 400


def test_one_table_that_the_readers_read(tmp_path):
    path = tmp_path / "numbers.tsv"
    done = generate("numbers", "-o", path, "--count", 100, "--lang", "en", "--formats")
    assert done.code == 0, done.err
    pairs = list(read_pairs(CorpusConfig(path=path)))
    assert len(pairs) == 100
    assert all(pair.tgt.isdecimal() and pair.src.isascii() for pair in pairs)
    forms = {line.split("\t")[2] for line in lines(path)}
    assert {"en british", "en american"} <= forms


def test_forms_next_to_the_texts(tmp_path):
    options = ["--count", 200, "--split", 0.05, "--formats", "--lang", "ko"]
    assert generate("dates", "-o", tmp_path / "d", *options).code == 0
    for part in ("", ".dev", ".test"):
        forms = lines(tmp_path / f"d{part}.form")
        assert len(forms) == len(lines(tmp_path / f"d{part}.src"))
        assert all(form.startswith("ko ") for form in forms)


def test_one_seed_one_corpus(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ["--count", 300, "--split", 0.1, "--seed", seed]
        assert generate("numbers", "-o", tmp_path / f"{name}.tsv", *options).code == 0
    for part in ("", ".dev", ".test"):
        first, again, other = ((tmp_path / f"{name}{part}.tsv").read_bytes() for name in "abc")
        assert first == again != other


def test_a_prefix_names_the_task_and_the_sides_turn(tmp_path):
    path = tmp_path / "spell.tsv"
    options = ["--count", 50, "--lang", "ko", "--reverse", "--prefix", "spell: ", "--digits", "3"]
    done = generate("numbers", "-o", path, *options)
    assert done.code == 0, done.err
    for line in lines(path):
        src, tgt = line.split("\t")
        assert re.fullmatch(r"spell: \d{3}", src)
        assert re.fullmatch(r"[가-힣]+", tgt)


def test_pairs_are_the_embedded_corpus(tmp_path):
    assert generate("pairs", "-o", tmp_path / "p.tsv", "--count", 3000, "--split", 0.01).code == 0
    train = [tuple(line.split("\t")) for line in lines(tmp_path / "p.tsv")]
    assert train[: len(LESSON_PAIRS)] == list(LESSON_PAIRS)
    assert len(train) == 2_940
    assert len(lines(tmp_path / "p.dev.tsv")) == len(lines(tmp_path / "p.test.tsv")) == 30
    assert generate("pairs", "-o", tmp_path / "q.tsv", "--count", 20, "--reverse").code == 0
    assert all(re.search(r"[가-힣]", line.split("\t")[1]) for line in lines(tmp_path / "q.tsv"))


def test_a_series_is_a_table_of_days(tmp_path):
    path = tmp_path / "deep" / "sea.csv"
    done = generate("series", "-o", path, "--count", 2, "--seed", 3)
    assert done.code == 0, done.err
    assert 2 * 365 < len(lines(path)) < 2 * 367
    again = tmp_path / "again.csv"
    assert generate("series", "-o", again, "--count", 2, "--seed", 3).code == 0
    assert path.read_bytes() == again.read_bytes()


def test_what_is_shown_names_the_files_and_a_command_that_fits(tmp_path):
    done = generate("dates", "-o", tmp_path / "dates", "--count", 200, "--split", 0.1)
    assert f"160  {tmp_path / 'dates.src'}" in done.out
    assert done.out.count("→") == 3
    command = (
        f"attendo train --src {tmp_path}/dates.src --tgt {tmp_path}/dates.tgt "
        f"--dev-src {tmp_path}/dates.dev.src --dev-tgt {tmp_path}/dates.dev.tgt --out runs/dates"
    )
    assert command in done.out
    table = generate("numbers", "-o", tmp_path / "n.tsv", "--count", 20)
    assert f"attendo train --path {tmp_path}/n.tsv --out runs/n" in table.out


def test_how_far_it_is_goes_to_the_error_stream(tmp_path):
    done = generate("dates", "-o", tmp_path / "dates", "--count", 2_000)
    assert "generating 2,000/2,000" in done.err
    assert "generating" not in done.out


def test_the_output_may_be_korean(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_LANG", "ko")
    done = generate("numbers", "-o", tmp_path / "n", "--count", 1_000)
    assert "만드는 중" in done.err
    assert "이것으로 학습하려면" in done.out


# --- what it refuses


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["date", "-o", "{}/a"], "did you mean 'dates'"),
        (["dates", "-o", "{}/a.csv"], "'.csv' is not supported"),
        (["dates", "-o", "{}/a", "--lang", "fr"], "no language 'fr'"),
        (["dates", "-o", "{}/a", "--count", "0"], "--count 0"),
        (["dates", "-o", "{}/a", "--count", "2000000"], "there are 24,662,625 different ones"),
        (["dates", "-o", "{}/a", "--typo-rate", "2"], "typo_rate=2.0"),
        (["dates", "-o", "{}/a", "--reverse"], "--reverse is for numbers and pairs"),
        (["dates", "-o", "{}/a", "--prefix", "a\tb"], "--prefix contains a tab"),
        (["dates", "-o", "{}/a", "--count", "20", "--split", "0.01"], "leaves a split empty"),
        (["dates", "-o", "{}/a", "--count", "20", "--split", "0.5"], "leaves a split empty"),
        (["dates", "-o", "{}/a", "--count", "20", "--split", "-0.1"], "leaves a split empty"),
        (["numbers", "-o", "{}/a", "--digits", "x"], "--digits x"),
        (["numbers", "-o", "{}/a", "--digits", "3-2"], "digits=3-2"),
        (["numbers", "-o", "{}/a", "--reverse"], "lang ko or lang en"),
        (["pairs", "-o", "{}/a", "--lang", "en", "--formats"], "2 settings"),
        (["series", "-o", "{}/a.csv", "--split", "0.1"], "splits a time series by time"),
    ],
)
def test_it_rejects_before_it_writes(tmp_path, arguments, words):
    done = generate(*(word.format(tmp_path) for word in arguments))
    assert done.code == 2
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_more_than_there_are_is_rejected_with_their_number(tmp_path):
    options = ["--count", 5000, "--digits", "1-2", "--lang", "en"]
    done = generate("numbers", "-o", tmp_path / "n.tsv", *options)
    assert done.code == 2
    assert "about 100 different ones" in done.err
    assert not (tmp_path / "n.tsv").exists()


def test_nothing_is_replaced_without_a_word(tmp_path):
    path = tmp_path / "n.dev.tsv"
    path.write_text("mine\n", encoding="utf-8")
    done = generate("numbers", "-o", tmp_path / "n.tsv", "--count", 100, "--split", 0.1)
    assert done.code == 2
    assert f"{path} exists" in done.err
    assert [one.name for one in tmp_path.iterdir()] == ["n.dev.tsv"]
    options = ["--count", 100, "--split", 0.1, "--force"]
    assert generate("numbers", "-o", tmp_path / "n.tsv", *options).code == 0
    assert lines(path) != ["mine"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = generate("numbers", "-o", tmp_path / "file" / "n.tsv", "--count", 10)
    assert done.code == 2
    assert "could not be written" in done.err
    (tmp_path / "taken.tsv").mkdir()
    taken = generate("numbers", "-o", tmp_path / "taken.tsv", "--count", 10, "--force")
    assert taken.code == 2
    assert "taken.tsv could not be written" in taken.err
