from __future__ import annotations

import pytest

import attendo
from attendo.core.errors import ConfigError
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
        "a.ko and a.en",
        "b.ko and b.en",
        "c.tsv",
    ]
    assert config.data.dev.title == "d.ko and d.en"
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
    ("options", "told"),
    [
        ({}, "no corpus"),
        ({"src": ["a", "b"], "tgt": ["c"]}, "2 --src but 1 --tgt"),
        ({"corpus": "multi30k"}, "--corpus needs --pair"),
        ({"path": ["a.tsv"], "dev_src": "d.ko"}, "give src and tgt"),
        ({"path": ["a.tsv"], "preset": "huge"}, "huge"),
        ({"path": ["a.tsv"], "model": "rnn"}, "rnn"),
    ],
)
def test_what_does_not_fit_is_told(options, told):
    with pytest.raises(ConfigError, match=told):
        TrainRequest(**options).build_config()


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.max_step=5", "did you mean 'max_steps'"),
        ("model.num_layer=2", "did you mean 'num_layers'"),
        ("train.max_steps", "is not key=value"),
    ],
)
def test_typos_in_settings_get_the_nearest_name(setting, told):
    with pytest.raises(ConfigError, match=told):
        TrainRequest(settings=[setting], path=["a.tsv"]).build_config()


@pytest.mark.parametrize("content", ['model = "transformer"', "data = 3", 'data = "a.tsv"'])
def test_a_value_where_a_table_belongs_is_told(tmp_path, content):
    (tmp_path / "run.toml").write_text(content)
    with pytest.raises(ConfigError, match="is not a table of settings"):
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
    assert config.data.corpora[0].title == "t.en and t.de"
    assert config.data.dev.title == "d.en and d.de"
    assert (config.data.src_lang, config.data.tgt_lang) == ("en", "de")


def test_train_takes_one_path_or_many(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))
    seen = []

    def run(config, out, **options):
        seen.append((config, out, options))

    monkeypatch.setattr(request, "train_run", run)
    attendo.train(out="runs/x", src=str(toy.src), tgt=toy.tgt, settings=["train.max_steps=2"])
    attendo.train(
        out="runs/x", src=[toy.src], tgt=[toy.tgt], settings=["train.max_steps=2"], force=True
    )
    assert seen[0][0] == seen[1][0]
    assert [options["force"] for *_, options in seen] == [False, True]
