from __future__ import annotations

import json

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.data.clean_config import CleanConfig, name_corpora
from attendo.data.clean_files import clean_files
from attendo.data.corpus_config import Pair
from attendo.synthetic.everyday import synthesize_pairs


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def pairs():
    return [Pair(pair.ko, pair.en) for pair in synthesize_pairs(400, seed=3)]


@pytest.fixture
def corpus(tmp_path, pairs):
    write(tmp_path / "a.ko", [pair.src for pair in pairs])
    write(tmp_path / "a.en", [pair.tgt for pair in pairs])
    return {"name": "a", "src": tmp_path / "a.ko", "tgt": tmp_path / "a.en"}


def make_config(*corpora, **settings):
    return CleanConfig(corpora=corpora, **{"src_lang": "ko", "tgt_lang": "en", **settings})


def rows(report, name):
    found = next(corpus for corpus in report["corpora"] if corpus["name"] == name)
    return {row[0]: row[1] for row in found["rows"]}


def test_good_pairs_stay_in_order_and_bad_ones_are_counted(tmp_path, corpus, pairs):
    bad = [("버전 2024에서 지원", "In version 1999"), (pairs[0].src + "!!", pairs[0].tgt.upper())]
    write(corpus["src"], [*(pair.src for pair in pairs), *(src for src, _ in bad)])
    write(corpus["tgt"], [*(pair.tgt for pair in pairs), *(tgt for _, tgt in bad)])
    report = clean_files(make_config(corpus), tmp_path / "out")
    counts = rows(report, "a")
    assert counts["read"] == len(pairs) + 2
    assert counts["other numbers"] == 1
    assert counts["near duplicate"] >= 1
    kept = list(zip(read(tmp_path / "out/a.ko"), read(tmp_path / "out/a.en"), strict=True))
    dropped = sum(count for reason, count in counts.items() if reason not in ("read", "kept"))
    assert len(kept) == counts["kept"] == counts["read"] - dropped
    assert kept == [tuple(pair) for pair in pairs if tuple(pair) in set(kept)]
    assert json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8")) == report
    dropped = [line.split("\t") for line in read(tmp_path / "out/dropped.tsv")]
    assert ["a", "other numbers", *bad[0]] in dropped
    assert sum(line.split("\t")[1] == "kept" for line in read(tmp_path / "out/kept.tsv")) == 100


def test_sets_test_sentences_and_dev_are_left_out(tmp_path, corpus, pairs):
    labels = write(tmp_path / "labels", ["x" if n % 4 == 0 else "y" for n in range(len(pairs))])
    test = write(tmp_path / "test.en", [pairs[1].tgt.upper()])
    config = make_config(
        {**corpus, "labels": labels, "drop_labels": ["x"]}, exclude=[test], dev_size=10
    )
    counts = rows(clean_files(config, tmp_path / "out"), "a")
    assert counts["left-out set"] == len(pairs) // 4
    assert counts["also in a test set"] >= 1
    train, dev = set(read(tmp_path / "out/a.ko")), read(tmp_path / "out/dev.ko")
    assert len(dev) == len(read(tmp_path / "out/dev.en")) == counts["moved to dev"] == 10
    assert len(read(tmp_path / "out/a.ko")) == counts["kept"]
    assert pairs[1].src not in train
    assert not train & {pair.src for pair in pairs[::4]} - {pair.src for pair in pairs[1::2]}
    assert not train & set(dev)


def test_the_best_share_by_score_is_kept(tmp_path, corpus, pairs):
    values = [f"0.0\t{-n / 100}" for n in range(len(pairs))]
    values[0] = "nan\tnan"
    scores = write(tmp_path / "scores", values)
    config = make_config({**corpus, "scores": scores}, keep=0.5, rules={"enabled": False})
    report = clean_files(config, tmp_path / "out")
    kept = read(tmp_path / "out/a.ko")
    assert kept[0] == pairs[1].src
    assert rows(report, "a")["low score"] == pytest.approx(len(pairs) / 2, abs=1)
    assert not set(kept) - {pair.src for pair in pairs[: len(pairs) // 2 + 2]}


def test_monolingual_text_is_cleaned_without_what_is_in_the_corpora(tmp_path, corpus, pairs):
    lines = ["다른 문장을 하나 씁니다.", "다른 문장을 하나 씁니다.", "This one is in English."]
    text = write(
        tmp_path / "m.ko",
        [*lines, *(f"{n} 번째 문장입니다, {w}." for n, w in enumerate("가나다라"))],
    )
    config = make_config(corpus, texts=[{"name": "m", "text": text, "lang": "ko"}])
    counts = rows(clean_files(config, tmp_path / "out"), "m")
    assert (counts["duplicate"], counts["wrong language"]) == (1, 1)
    assert read(tmp_path / "out/m.ko")[0] == lines[0]


def test_a_text_gives_evenly_spaced_lines_where_it_has_too_many(tmp_path):
    lines = [f"이것은 예문 가운데 {'가' * n} 줄입니다." for n in range(1, 11)]
    text = write(tmp_path / "m.ko", [*lines, lines[0]])
    entry = {"name": "m", "text": text, "lang": "ko", "max_lines": 3}
    config = CleanConfig(texts=[entry], rules={"enabled": False, "near_duplicates": False})
    report = clean_files(config, tmp_path / "out")
    assert read(tmp_path / "out/m.ko") == [lines[3], lines[6], lines[9]]
    rows = {row[0]: row[1] for row in report["corpora"][0]["rows"]}
    assert rows == {"read": 11, "kept": 3, "not needed": 7, "duplicate": 1}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (["This is an English sentence about the weather."] * 50, "looks like"),
        (["", " "], "empty"),
        (["...", "---"], "nothing is left"),
    ],
)
def test_a_useless_text_is_an_error_and_leaves_no_folder(tmp_path, content, part):
    text = write(tmp_path / "m.ko", content)
    config = CleanConfig(texts=[{"name": "m", "text": text, "lang": "ko"}])
    with pytest.raises(InputError, match=part) as caught:
        clean_files(config, tmp_path / "out")
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_swapped_sides_and_unequal_files_are_errors(tmp_path, corpus, pairs):
    swapped = {"name": "a", "src": corpus["tgt"], "tgt": corpus["src"]}
    with pytest.raises(InputError):
        clean_files(make_config(swapped), tmp_path / "out")
    labels = write(tmp_path / "labels", ["x"])
    with pytest.raises(InputError, match="one line per pair"):
        clean_files(
            make_config({**corpus, "labels": labels, "drop_labels": ["z"]}), tmp_path / "out"
        )


def test_settings_that_make_no_sense_are_rejected(corpus):
    for wrong in (
        {"corpora": [corpus, corpus]},
        {"corpora": [{**corpus, "name": "dev"}]},
        {"corpora": [{**corpus, "drop_labels": ["x"]}]},
        {"corpora": [corpus], "keep": 0.5},
        {},
    ):
        with pytest.raises(ConfigError):
            CleanConfig(**wrong)


def test_names_follow_from_the_files():
    entries = [
        {"src": "dev.ko"},
        {"src": "x/a b.ko.gz"},
        {"name": "n", "src": "a.ko"},
        {"text": "n.ko"},
    ]
    names = [entry["name"] for entry in name_corpora(entries)]
    assert names == ["dev-text", "a-b", "n", "n-2"]
