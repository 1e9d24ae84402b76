from __future__ import annotations

import errno
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.data import fingerprint, pipeline, pipeline_stages
from attendo.data.config import DataConfig
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.findings import raise_errors
from attendo.data.fingerprint import content_fingerprint
from attendo.data.pipeline import prepare_data
from attendo.data.tokenizer_training import train_tokenizer
from attendo.text.tokenizer import TokenizerConfig


def make_pairs(num_pairs, seed=0):
    rng = random.Random(seed)  # noqa: S311 - text, no secret
    syllables, letters = "가나다라마바사아자차카타파하", "abcdefghijklmnoprstu"

    def sentence(alphabet):
        words = ("".join(rng.choices(alphabet, k=rng.randint(1, 5))) for _ in range(6))
        return " ".join(words)

    return [Pair(sentence(syllables), sentence(letters)) for _ in range(num_pairs)]


def write_pairs(folder, pairs, name="corpus"):
    folder.mkdir(exist_ok=True)
    paths = {"src": folder / f"{name}.ko", "tgt": folder / f"{name}.en"}
    for side, path in paths.items():
        text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        path.write_text(text, encoding="utf-8")
    return paths


def make_config(folder, pairs, **settings):
    return DataConfig(corpora=(CorpusConfig(**write_pairs(folder, pairs)),), **settings)


def texts_of(data, corpus):
    pairs = (corpus.pair(index) for index in range(len(corpus)))
    return [tuple(data.tokenizer.decode_tgt(pair)) for pair in pairs]


def counts_of(rows):
    return {row["what"]: row["num_pairs"] for row in rows}


def snapshot(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def pairs():
    return make_pairs(600)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("prepared")
    noisy = [*pairs, Pair("", "empty"), pairs[0], Pair("가" * 400, "long " * 300)]
    config = make_config(folder, noisy, max_tokens=64)
    return config, folder / "cache", prepare_data(config, folder / "cache")


def test_all_pairs_are_in_train_or_dev_and_no_sentence_in_both(prepared, pairs):
    _, _, data = prepared
    ((train, weight),) = data.train
    assert weight == 1.0
    train_texts, dev_texts = texts_of(data, train), texts_of(data, data.dev)
    assert len(dev_texts) == 30
    assert dev_texts == [tuple(pair) for pair in data.dev_pairs]
    assert sorted(train_texts + dev_texts) == sorted(tuple(pair) for pair in pairs)
    for side in (0, 1):
        assert not {pair[side] for pair in train_texts} & {pair[side] for pair in dev_texts}


def test_the_report_counts_every_pair(prepared):
    config, _, data = prepared
    (corpus,) = data.report["corpora"]
    counts = counts_of(corpus["rows"])
    assert counts == {
        "read": 603,
        "kept": 570,
        "moved to dev": 30,
        "empty side": 1,
        "too long": 1,
        "duplicate": 1,
    }
    assert corpus["title"] == config.corpora[0].title
    assert data.report == json.loads((data.directory / "report.json").read_text())
    assert data.report["dev"] == {"num_pairs": 30, "num_too_long": 0, "num_in_train": 0}


def test_only_what_is_needed_stays(prepared):
    _, cache, data = prepared
    names = {path.name for path in data.directory.iterdir()}
    assert names == {
        *("checksums.json", "dev", "dev.src", "dev.tgt", "report.json", "tokenizer", "train.0")
    }
    assert [path for path in cache.iterdir() if path.is_dir()] == [data.directory]


def test_a_second_call_reuses_the_folder(prepared):
    config, cache, data = prepared
    before = snapshot(cache)
    reported = []
    again = prepare_data(config, cache, progress=lambda *words: reported.append(words))
    assert snapshot(cache) == before
    assert {stage for stage, _, _ in reported} == {"hash"}
    assert again.directory == data.directory
    assert again.dev_pairs == data.dev_pairs
    assert again.tokenizer.fingerprint == data.tokenizer.fingerprint


def test_content_counts_not_names_positions_times_or_weights(prepared, tmp_path):
    config, cache, data = prepared
    files = {"src": tmp_path / "x.txt", "tgt": tmp_path / "y.txt"}
    for side, path in files.items():
        shutil.copyfile(getattr(config.corpora[0], side), path)
    moved = config.replace(corpora=(CorpusConfig(**files, weight=2.5),), src_lang="ko")
    again = prepare_data(moved, cache)
    assert again.directory == data.directory
    assert again.train[0][1] == 2.5
    assert again.report["corpora"][0]["title"] == moved.corpora[0].title
    assert again.report["corpora"][0]["weight"] == 2.5


@pytest.mark.parametrize(
    "change",
    [
        {"dev_size": 7},
        {"max_tokens": 40},
        {"disjoint": "source"},
        {"cleaning": {"max_words": 40}},
        {"tokenizer": {"kind": "char"}},
        {"seed": 2},
    ],
)
def test_every_setting_that_matters_makes_a_new_folder(tmp_path, prepared, change):
    config, _, data = prepared
    seed = change.get("seed", 1)
    changed = config.replace(**{key: value for key, value in change.items() if key != "seed"})
    assert prepare_data(changed, tmp_path, seed=seed).directory.name != data.directory.name


def test_a_changed_byte_makes_a_new_folder(tmp_path, pairs):
    config = make_config(tmp_path, pairs)
    first = prepare_data(config, tmp_path / "cache")
    path = tmp_path / "corpus.ko"
    times = path.stat()
    path.write_bytes(path.read_bytes().replace("가".encode(), "하".encode(), 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time
    assert prepare_data(config, tmp_path / "cache").directory != first.directory


def test_the_result_is_the_same_wherever_and_whenever(tmp_path, prepared):
    config, _, data = prepared
    random.seed(99)
    prepare_data(make_config(tmp_path / "other", make_pairs(60, seed=5)), tmp_path / "cache")
    again = prepare_data(config, tmp_path / "cache")
    files = [path for path in data.directory.rglob("*") if path.is_file()]
    for path in files:
        copy = again.directory / path.relative_to(data.directory)
        assert copy.read_bytes() == path.read_bytes(), path.name


def test_several_corpora_keep_their_weights_and_share_no_duplicate(tmp_path, pairs):
    first, second = pairs[:300], [*pairs[200:300], *pairs[300:500]]
    copies = pairs[:100]
    corpora = tuple(
        CorpusConfig(**write_pairs(tmp_path, part, name), weight=weight)
        for name, part, weight in (("a", first, 1.0), ("b", copies, 9.0), ("c", second, 0.5))
    )
    data = prepare_data(DataConfig(corpora=corpora), tmp_path / "cache")
    assert [weight for _, weight in data.train] == [1.0, 0.5]  # nothing of b is left
    assert sum(len(corpus) for corpus, _ in data.train) + len(data.dev) == 500
    rows = [counts_of(corpus["rows"]) for corpus in data.report["corpora"]]
    assert [row.get("duplicate", 0) for row in rows] == [0, 100, 100]
    assert [corpus["num_train"] for corpus in data.report["corpora"]] == [
        len(data.train[0][0]),
        0,
        len(data.train[1][0]),
    ]


def test_a_dev_set_of_its_own_is_used_as_it_is(tmp_path, pairs):
    dev = [
        pairs[0],
        pairs[0],
        Pair("같은 같은 같은 것", "같은 같은 같은 것"),
        Pair("", "x"),
        pairs[1],
    ]
    given = CorpusConfig(**write_pairs(tmp_path, dev, "dev"))
    data = prepare_data(make_config(tmp_path, pairs, dev=given), tmp_path / "cache")
    assert data.dev_pairs == [*dev[:3], dev[4]]
    assert texts_of(data, data.dev) == [tuple(pair) for pair in data.dev_pairs]
    assert len(data.train[0][0]) == len(pairs) - 2
    assert data.report["dev"]["num_in_train"] == 2
    assert counts_of(data.report["corpora"][0]["rows"])["also in dev"] == 2


def test_pairs_with_too_many_tokens_are_counted(tmp_path, pairs):
    data = prepare_data(make_config(tmp_path, pairs, max_tokens=12), tmp_path / "cache")
    (corpus, _), dev = data.train[0], data.dev
    assert corpus.src_lengths.max() <= 12 >= corpus.tgt_lengths.max()
    assert len(dev) == len(data.dev_pairs) == data.report["dev"]["num_pairs"]
    counts = counts_of(data.report["corpora"][0]["rows"])
    assert counts["too many tokens"] == corpus.num_too_long > 0
    assert counts["read"] == counts["kept"] + counts["moved to dev"] + counts["too many tokens"]


def test_a_given_tokenizer_is_used(tmp_path, pairs):
    files = write_pairs(tmp_path, pairs)
    settings = TokenizerConfig(kind="char")
    tokenizer = train_tokenizer(files["src"], files["tgt"], settings, num_pairs=600, seed=1)
    config = make_config(tmp_path, pairs)
    data = prepare_data(config, tmp_path / "cache", tokenizer=tokenizer)
    assert data.tokenizer.fingerprint == data.dev.fingerprint == tokenizer.fingerprint
    assert data.directory != prepare_data(config, tmp_path / "cache").directory


def test_gzip_and_jsonl_are_read_and_line_ends_inside_a_text_do_no_harm(tmp_path, pairs):
    lines = [json.dumps(pair._asdict()) for pair in pairs]
    lines.append(json.dumps({"src": "한 줄\n두 줄\r", "tgt": "one line\ntwo lines\r"}))
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    for number, settings in enumerate(({}, {"normalize": False})):
        config = DataConfig(corpora=(CorpusConfig(path=path),), cleaning=settings)
        data = prepare_data(config, tmp_path / str(number))
        texts = texts_of(data, data.train[0][0]) + [tuple(pair) for pair in data.dev_pairs]
        assert len(texts) == 601
        assert ("한 줄 두 줄", "one line two lines") in texts


def test_progress_is_reported_stage_by_stage(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr(pipeline_stages, "PROGRESS_INTERVAL", 100)
    reported = []
    config = make_config(tmp_path, pairs)
    prepare_data(config, tmp_path / "cache", progress=lambda *words: reported.append(words))
    assert list(dict.fromkeys(stage for stage, _, _ in reported)) == [
        "hash",
        "clean",
        "split",
        "tokenizer",
        "tokenize",
    ]
    last = {stage: (done, total) for stage, done, total in reported}
    assert last["clean"] == (600, None)
    assert last["split"] == (600, 600)
    assert last["tokenize"] == (570, 570)
    assert last["hash"][0] == last["hash"][1] > 0


# --- killed and crowded


def test_a_leftover_of_a_killed_process_is_replaced(tmp_path, prepared):
    config, _, data = prepared
    leftover = tmp_path / f".{data.directory.name}.partial"
    leftover.mkdir()
    (leftover / "report.json").write_text("{")
    again = prepare_data(config, tmp_path)
    assert not leftover.exists()
    assert again.report == data.report


SCRIPT = textwrap.dedent("""
    import sys
    from pathlib import Path
    from attendo.data.corpus_config import CorpusConfig, Pair
    from attendo.data.config import DataConfig
    from attendo.data.pipeline import prepare_data

    folder = Path(sys.argv[1])
    corpus = CorpusConfig(src=folder / "corpus.ko", tgt=folder / "corpus.en")
    def progress(stage, done, total):
        if stage == sys.argv[2]:
            print(stage, flush=True)
            sys.stdin.readline()
    config = DataConfig(corpora=(corpus,))
    print(prepare_data(config, folder / "cache", progress=progress).directory)
""")


def start(folder, stop_at):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), stop_at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("stage", ["split", "tokenize"])
def test_killed_at_work_then_prepared_again(tmp_path, pairs, stage):
    config = make_config(tmp_path, pairs)
    with start(tmp_path, stage) as process:
        assert process.stdout.readline().strip() == stage
        process.send_signal(signal.SIGKILL)
    assert [path.suffix for path in (tmp_path / "cache").iterdir() if path.is_dir()] == [".partial"]
    data = prepare_data(config, tmp_path / "cache")
    assert len(data.train[0][0]) == 570
    assert [p for p in (tmp_path / "cache").iterdir() if p.is_dir()] == [data.directory]


def test_a_second_process_waits_for_the_first_and_uses_its_folder(tmp_path, pairs):
    config = make_config(tmp_path, pairs)
    with start(tmp_path, "tokenize") as first:
        assert first.stdout.readline().strip() == "tokenize"
        with start(tmp_path, "clean") as second:
            first.communicate("\n" * 50)
            output, _ = second.communicate("\n" * 50)
    assert output.split() == [
        str(prepare_data(config, tmp_path / "cache").directory)
    ]  # not "clean"


# --- what cannot be prepared


def test_nothing_left_shows_the_table(tmp_path):
    bad = [Pair("", "x"), *[Pair(f"단 {number}", "word " * 300) for number in range(5)]]
    with pytest.raises(InputError, match="no pair is left to train on") as caught:
        prepare_data(make_config(tmp_path, bad), tmp_path / "cache")
    assert "read: 6" in str(caught.value)
    assert "empty side: 1" in str(caught.value)
    assert "too long: 5" in str(caught.value)
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_too_few_tokens_for_every_pair(tmp_path, pairs):
    with pytest.raises(InputError, match="too many tokens: 570"):
        prepare_data(make_config(tmp_path, pairs, max_tokens=2), tmp_path / "cache")


def test_too_little_disk_is_reported_before_any_work(tmp_path, pairs, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10**6)
    monkeypatch.setattr(fingerprint.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match=r"needs about 0\.1 GB .* 0\.0 GB are free"):
        prepare_data(make_config(tmp_path, pairs), tmp_path / "cache")


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path, pairs, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pipeline_stages.PipelineStages, "tokenize", fail)
    with pytest.raises(
        InputError, match=r"No space left on device(?s:.)*free some disk space(?s:.)*ATTENDO_CACHE"
    ):
        prepare_data(make_config(tmp_path, pairs), tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_a_folder_that_another_process_made_first_is_used(tmp_path, prepared, monkeypatch):
    config, _, data = prepared
    write_report = pipeline_stages.PipelineStages.write_report

    def lose_the_race(work):
        write_report(work)
        shutil.copytree(data.directory, tmp_path / data.directory.name)

    monkeypatch.setattr(pipeline_stages.PipelineStages, "write_report", lose_the_race)
    again = prepare_data(config, tmp_path)
    assert again.report == data.report
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [again.directory]


def test_packed_input_needs_more_disk(tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed.gz"
    plain.write_bytes(b"x" * 1000)
    packed.write_bytes(gzip.compress(random.Random(1).randbytes(977), 0))  # noqa: S311
    assert packed.stat().st_size == 1000
    assert fingerprint._estimated_bytes(plain) == 4000
    assert fingerprint._estimated_bytes(packed) == 12_000


@pytest.mark.parametrize("position", ["corpora", "dev"])
def test_a_wrong_corpus_is_reported_before_any_is_cleaned(tmp_path, pairs, monkeypatch, position):
    monkeypatch.setattr(pipeline_stages, "clean_corpus", None)
    good = CorpusConfig(**write_pairs(tmp_path, pairs))
    same = CorpusConfig(src=tmp_path / "corpus.ko", tgt=tmp_path / "corpus.ko")
    wrong = {"dev": same} if position == "dev" else {"corpora": (good, same)}
    with pytest.raises(InputError, match="both sides are the same text"):
        prepare_data(DataConfig(**{"corpora": (good,), **wrong}), tmp_path / "cache")


def test_files_of_different_length_and_missing_files(tmp_path, pairs):
    config = make_config(tmp_path, pairs)
    with (tmp_path / "corpus.ko").open("a", encoding="utf-8") as file:
        file.write("한 줄 더\n")
    with pytest.raises(InputError, match="601 lines"):
        prepare_data(config, tmp_path / "cache")
    (tmp_path / "corpus.ko").unlink()
    with pytest.raises(InputError, match="does not exist"):
        prepare_data(config, tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("train.0/src.offsets", lambda data: data[:8] + b"\xff" + data[9:]),
        ("report.json", lambda _: b"{"),
        ("tokenizer/tokenizer.json", None),
    ],
)
def test_damaged_data_is_prepared_again(tmp_path, prepared, caplog, name, damage):
    config, _, data = prepared
    shutil.copytree(data.directory, tmp_path / data.directory.name)
    path = tmp_path / data.directory.name / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    again = prepare_data(config, tmp_path)
    intact = data.directory / "checksums.json"
    assert (again.directory / "checksums.json").read_bytes() == intact.read_bytes()
    assert f"{name} in the prepared data {again.directory} is damaged" in caplog.text


def test_damaged_data_without_checksums_is_reported(tmp_path, pairs):
    config = make_config(tmp_path, pairs)
    data = prepare_data(config, tmp_path / "cache")
    (data.directory / "checksums.json").unlink()  # of an earlier version
    (data.directory / "train.0" / "src.ids").write_bytes(b"")
    with pytest.raises(InputError, match="delete the folder"):
        prepare_data(config, tmp_path / "cache")
    (data.directory / "report.json").unlink()
    with pytest.raises(InputError, match=r"report\.json cannot be read"):
        prepare_data(config, tmp_path / "cache")


@pytest.mark.parametrize("settings", [{"corpora": ()}, {"max_tokens": 1}, {"dev_size": 0}])
def test_wrong_settings_are_rejected(settings):
    corpus = CorpusConfig(path="a.tsv")
    with pytest.raises(ConfigError):
        DataConfig(**{"corpora": (corpus,), **settings})


def test_subword_dropout_cuts_each_pair_in_several_ways_that_share_its_weight(tmp_path, pairs):
    settings = {"subword_dropout": 0.3, "subword_samples": 3, "dev_size": 20}
    config = make_config(tmp_path / "a", pairs, **settings)
    prepared = prepare_data(config, tmp_path / "cache")
    assert [weight for _, weight in prepared.train] == [pytest.approx(1 / 3)] * 3
    texts = [texts_of(prepared, corpus) for corpus, _ in prepared.train]
    assert texts[0] == texts[1] == texts[2]  # other pieces of the same texts
    cuts = [
        [corpus.pair(row)[1].tolist() for row in range(len(corpus))] for corpus, _ in prepared.train
    ]
    assert cuts[0] != cuts[1] != cuts[2] != cuts[0]
    plain = prepare_data(make_config(tmp_path / "a", pairs, dev_size=20), tmp_path / "cache")
    assert plain.directory != prepared.directory
    assert plain.train[0][0].tgt_lengths.sum() < prepared.train[0][0].tgt_lengths.sum()
    assert plain.report == prepared.report
    dev = [
        [corpus.pair(row)[0].tolist() for row in range(len(corpus))]
        for corpus in (plain.dev, prepared.dev)
    ]
    assert dev[0] == dev[1]
    again = prepare_data(config, tmp_path / "elsewhere")
    assert [[c.pair(row)[1].tolist() for row in range(len(c))] for c, _ in again.train] == cuts


def test_subword_dropout_needs_byte_pairs(tmp_path, pairs):
    with pytest.raises(ConfigError, match="subword_dropout needs a tokenizer of kind"):
        make_config(tmp_path, pairs, subword_dropout=0.1, tokenizer=TokenizerConfig(kind="word"))


def test_the_direction_in_one_file_is_part_of_the_cache_key(tmp_path, pairs):
    lines = ["en\tfr", *(f"{src}\t{tgt}" for src, tgt in pairs)]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    config = DataConfig(corpora=[CorpusConfig(path=tmp_path / "a.tsv")])
    forward = prepare_data(config, tmp_path / "cache")
    backward = prepare_data(config.replace(src_lang="fr"), tmp_path / "cache")
    assert [data.report["corpora"][0]["src"] for data in (forward, backward)] == ["en", "fr"]
    assert {*forward.dev_pairs} <= {*pairs}
    assert {pair.swapped() for pair in backward.dev_pairs} <= {*pairs}


# --- the data check, and dev pairs in train


def make_overlap(folder, pairs, num_shared):
    dev = [*pairs[:num_shared], *make_pairs(30, seed=9)]
    return make_config(folder, pairs, dev=CorpusConfig(**write_pairs(folder, dev, "dev")))


def legacy_key(config):
    """Return the key of the data from before dev pairs were dropped from train."""
    settings = pipeline._fingerprint_settings(config, 1, None)
    return content_fingerprint(config.paths, settings)[: pipeline.FINGERPRINT_LENGTH]


def test_data_without_shared_pairs_keeps_its_key(tmp_path, pairs):
    config = make_overlap(tmp_path, pairs, 0)
    data = prepare_data(config, tmp_path / "cache")
    assert data.directory.name == legacy_key(config)
    before = snapshot(tmp_path / "cache")
    assert prepare_data(config, tmp_path / "cache").directory == data.directory
    assert snapshot(tmp_path / "cache") == before


def test_data_that_lost_shared_pairs_has_a_key_of_its_own(tmp_path, pairs):
    config = make_overlap(tmp_path, pairs, 20)
    cache = tmp_path / "cache"
    key = legacy_key(config)
    old = prepare_data(config, cache, resumed_key=key)  # a run that began before
    assert (old.directory.name, len(old.train[0][0])) == (key, len(pairs))
    new = prepare_data(config, cache)
    assert (new.directory.name != key, len(new.train[0][0])) == (True, len(pairs) - 20)
    assert [data.report["dev"]["num_in_train"] for data in (old, new)] == [20, 20]
    assert prepare_data(config, cache).directory == new.directory
    assert prepare_data(config, cache, resumed_key=key).directory == old.directory
    resumed = prepare_data(config, cache, resumed_key=new.directory.name)
    assert resumed.directory == new.directory


def test_dev_that_is_all_of_train_is_an_error(tmp_path, pairs):
    given = CorpusConfig(**write_pairs(tmp_path, pairs, "dev"))
    with pytest.raises(InputError, match="also in dev: 600") as caught:
        prepare_data(make_config(tmp_path, pairs, dev=given), tmp_path / "cache")
    assert "not part of train" in caught.value.hint


@pytest.fixture(scope="module")
def shuffled_pairs(everyday_pairs):
    chosen = everyday_pairs[:500]
    targets = random.Random(1).sample([pair.tgt for pair in chosen], len(chosen))  # noqa: S311
    return [Pair(pair.src, tgt) for pair, tgt in zip(chosen, targets, strict=True)]


def test_findings_come_before_the_tokenizer_and_again_from_the_cache(tmp_path, shuffled_pairs):
    config = make_config(tmp_path, shuffled_pairs)
    events = []
    prepare_data(
        config,
        tmp_path / "cache",
        progress=lambda stage, *_: events.append(stage),
        on_findings=lambda findings: events.append([one.code for one in findings]),
    )
    (codes,) = [event for event in events if isinstance(event, list)]
    assert "sides_shuffled" in codes
    assert events.index(codes) < events.index("tokenizer")
    again = []
    data = prepare_data(config, tmp_path / "cache", on_findings=again.extend)
    assert [one.code for one in again] == codes
    assert again == data.findings


def test_an_error_of_the_check_leaves_nothing(tmp_path, shuffled_pairs):
    config = make_config(tmp_path, shuffled_pairs)
    with pytest.raises(InputError, match=r"data\.check=false"):
        prepare_data(config, tmp_path / "cache", on_findings=raise_errors)
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_data_of_before_the_check_has_no_findings(tmp_path, pairs):
    config = make_config(tmp_path, pairs)
    data = prepare_data(config, tmp_path / "cache")
    report = json.loads((data.directory / "report.json").read_text("utf-8"))
    del report["check"]
    (data.directory / "report.json").write_text(json.dumps(report), encoding="utf-8")
    (data.directory / "checksums.json").unlink()  # there were none either
    assert prepare_data(config, tmp_path / "cache", on_findings=raise_errors).findings == []


def test_the_setting_of_the_check_does_not_change_the_key(tmp_path, prepared):
    config, cache, data = prepared
    assert prepare_data(config.replace(check=False), cache).directory == data.directory
