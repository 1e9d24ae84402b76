from __future__ import annotations

import subprocess
import sys

import pytest

import attendo
from attendo.cli import main
from attendo.core.device import use_threads
from attendo.core.errors import ConfigError, InputError
from attendo.corpora.fetch import FetchedCorpus
from attendo.tasks import request
from attendo.tasks.request import TrainRequest


def test_options_become_a_config():
    config = TrainRequest(
        settings=["train.max_steps=7", "model.num_layers=2", "data.tokenizer.kind=char"],
        src=["a.ko", "b.ko"],
        tgt=["a.en", "b.en"],
        path=["c.tsv"],
        dev_src="d.ko",
        dev_tgt="d.en",
        preset="tiny",
    ).build_config()
    assert [corpus.title for corpus in config.data.corpora] == [
        "a.ko, a.en",
        "b.ko, b.en",
        "c.tsv",
    ]
    assert config.data.dev.title == "d.ko, d.en"
    assert (config.train.max_steps, config.data.tokenizer.kind) == (7, "char")
    assert (config.model.preset, config.model.options["num_layers"]) == ("tiny", 2)


def test_a_file_then_options_then_settings(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        '[data]\nmax_tokens = 99\n[[data.corpora]]\nsrc = "a.ko"\ntgt = "a.en"\nweight = 2.0\n'
        '[model]\npreset = "base"\nnum_heads = 4\n[train]\nseed = 5\nmax_steps = 3\n'
    )
    config = TrainRequest(config=path).build_config()
    assert (config.data.corpora[0].weight, config.model.preset) == (2.0, "base")
    config = TrainRequest(
        config=path, settings=["train.seed=6"], path=["c.tsv"], preset="tiny"
    ).build_config()
    assert [corpus.title for corpus in config.data.corpora] == ["c.tsv"]
    assert (config.model.preset, config.model.overrides) == ("tiny", {"num_heads": 4})
    assert (config.train.seed, config.train.max_steps, config.data.max_tokens) == (6, 3, 99)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({}, "no corpus"),
        ({"src": ["a", "b"], "tgt": ["c"]}, "2 --src but 1 --tgt"),
        ({"corpus": "multi30k"}, "--corpus needs --pair"),
        ({"path": ["a.tsv"], "dev_src": "d.ko"}, "--dev-src without --dev-tgt"),
        ({"path": ["a.tsv"], "dev_tgt": "d.ko"}, "--dev-tgt without --dev-src"),
        ({"path": ["a.tsv"], "dev_path": "d.tsv", "dev_text": "d"}, "more than one dev set"),
        ({"path": ["a.tsv"], "src_field": 1}, "--src-field and --tgt-field belong together"),
        ({"src": "a", "tgt": "b", "src_field": 1, "tgt_field": 2}, "of one file with both sides"),
        ({"path": ["a.tsv"], "preset": "huge"}, "huge"),
        ({"path": ["a.tsv"], "model": "rnn"}, "rnn"),
        ({"path": ["a.tsv"], "quality": "bset"}, "--quality bset: unknown value(.|\n)*'best'"),
    ],
)
def test_what_does_not_fit_is_reported(options, reported):
    with pytest.raises(ConfigError, match=reported):
        TrainRequest(**options).build_config()


@pytest.mark.parametrize(
    ("setting", "reported"),
    [
        ("train.max_step=5", "did you mean 'max_steps'"),
        ("model.num_layer=2", "did you mean 'num_layers'"),
        ("train.max_steps", "is not key=value"),
    ],
)
def test_typos_in_settings_get_the_nearest_name(setting, reported):
    with pytest.raises(ConfigError, match=reported):
        TrainRequest(settings=[setting], path=["a.tsv"]).build_config()


@pytest.mark.parametrize("content", ['model = "transformer"', "data = 3", 'data = "a.tsv"'])
def test_a_value_where_a_table_belongs_is_reported(tmp_path, content):
    (tmp_path / "run.toml").write_text(content)
    with pytest.raises(ConfigError, match="is not a table"):
        TrainRequest(config=tmp_path / "run.toml", path=["a.tsv"]).build_config()


def test_a_known_corpus_is_fetched(monkeypatch):
    from attendo.data.corpus_config import CorpusConfig

    def fetch(name, pair, mirror, reporter):
        assert (name, pair, mirror) == ("multi30k", "en-de", "mirror")
        return FetchedCorpus(
            name=name,
            pair=pair,
            license="",
            checksums={},
            train=(CorpusConfig(src="t.en", tgt="t.de"),),
            dev=(CorpusConfig(src="d.en", tgt="d.de"),),
            test=(),
        )

    monkeypatch.setattr(request, "fetch_corpus", fetch)
    config = TrainRequest(corpus="multi30k", pair="en-de", mirror="mirror").build_config()
    assert config.data.corpora[0].title == "t.en, t.de"
    assert config.data.dev.title == "d.en, d.de"
    assert (config.data.src_lang, config.data.tgt_lang) == ("en", "de")


def test_train_takes_one_path_or_many(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))
    seen = []

    def run(config, out, **options):
        seen.append((config, out, options))

    monkeypatch.setattr("attendo.tasks.run.train_run", run)
    attendo.train(out="runs/x", src=str(toy.src), tgt=toy.tgt, settings=["train.max_steps=2"])
    attendo.train(
        out="runs/x", src=[toy.src], tgt=[toy.tgt], settings=["train.max_steps=2"], force=True
    )
    assert seen[0][0] == seen[1][0]
    assert [options["force"] for *_, options in seen] == [False, True]


def test_fields_and_languages_apply_to_the_files_with_both_sides():
    request = TrainRequest(
        src=["a.en"],
        tgt=["a.fr"],
        path=["b.csv", "c.jsonl"],
        dev_path="d.csv",
        src_lang="English",
        tgt_lang="fr",
        src_field="2",
        tgt_field=3,
    )
    data = request.build_config().data
    assert [corpus.fields for corpus in data.corpora] == [(None, None), (2, 3), (2, 3)]
    assert data.dev.fields == (2, 3)
    assert (data.src_lang, data.tgt_lang) == ("en", "fr")


def test_languages_of_the_run_choose_in_every_file_with_both_sides():
    request = TrainRequest(
        src="a.en", tgt="a.fr", path="b.csv", dev_path="d.csv", src_lang="en", tgt_lang="fr"
    )
    data = request.build_config().data
    assert [corpus.languages for corpus in data.corpora] == [(None, None), ("en", "fr")]
    assert data.dev.languages == ("en", "fr")


def test_fields_apply_to_the_corpora_of_a_config_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[[data.corpora]]\npath = "a.csv"\n[data.dev]\npath = "d.csv"\n')
    data = TrainRequest(config=path, src_field="en", tgt_field="fr").build_config().data
    assert data.corpora[0].fields == data.dev.fields == ("en", "fr")


def test_paths_in_a_config_file_are_relative_to_it(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    for name in ("cfg", "cfg/data", "data"):
        (tmp_path / name).mkdir()
    for name in ("cfg/data/a.en", "cfg/data/a.fr", "data/a.fr", "work/b.en", "data/b.fr"):
        (tmp_path / name).touch()
    (tmp_path / "cfg/run.toml").write_text(
        '[[data.corpora]]\nsrc = "data/a.en"\ntgt = "../data/a.fr"\n'
        '[data.dev]\nsrc = "b.en"\ntgt = "none.fr"\n'
    )
    monkeypatch.chdir(tmp_path)
    data = TrainRequest(config="cfg/run.toml").build_config().data
    assert data.corpora[0].title == "cfg/data/a.en, data/a.fr"
    monkeypatch.chdir(tmp_path / "work")
    data = TrainRequest(config="../cfg/run.toml").build_config().data
    assert data.corpora[0].src == tmp_path / "cfg/data/a.en"
    assert data.dev.title == "b.en, none.fr"  # not next to the file: in the current folder


def test_a_wrong_key_in_a_corpus_is_one_error():
    with pytest.raises(ConfigError, match="did you mean 'tgt'") as caught:
        TrainRequest(settings=['data.corpora=[{src="a", tgtt="b"}]']).build_config()
    assert len(caught.value.reasons) == 1


def test_no_corpora_are_still_an_error():
    from attendo.data.config import DataConfig

    with pytest.raises(ConfigError, match="corpora"):
        DataConfig(corpora=[])


def test_bug_settings_as_one_text_must_not_be_read_letter_by_letter():
    config = TrainRequest(src="a", tgt="b", settings="train.max_steps=7").build_config()
    assert config.train.max_steps == 7


def test_bug_no_threads_must_be_an_error_of_ours():
    with pytest.raises(InputError):
        use_threads(0)


def test_an_interruption_before_training_is_explained(tmp_path, monkeypatch, capsys):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    for side in ("en", "fr"):
        (tmp_path / f"a.{side}").write_text("one\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attendo.tasks.run.train_run", interrupt)
    monkeypatch.setenv("ATTENDO_LANG", "en")
    with pytest.raises(SystemExit) as caught:
        main.run(["train", "--src", "a.en", "--tgt", "a.fr", "--out", "run"])
    assert caught.value.code == 130
    assert "run the same command again" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["train", "check"])
def test_two_files_without_options_get_the_options_for_them(verb, monkeypatch, capsys):
    monkeypatch.setenv("ATTENDO_LANG", "en")
    with pytest.raises(SystemExit) as caught:
        main.run([verb, "a.en", "a.fr"])
    assert caught.value.code == 2
    assert "--src a.en --tgt a.fr" in capsys.readouterr().err


def test_settings_are_checked_without_heavy_libraries(tmp_path):
    for side in ("en", "fr"):
        (tmp_path / f"a.{side}").write_text("one\n")
    files = ["--src", f"{tmp_path}/a.en", "--tgt", f"{tmp_path}/a.fr", "--out", f"{tmp_path}/r"]
    arguments = ["train", *files, "--quality", "bst"]
    code = (
        "import sys\nfrom attendo.cli.main import run\n"
        f"try: run({arguments!r})\n"
        "except SystemExit as error: assert error.code == 2\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'heavy import'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "best" in done.stderr
