from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from attendo.core.config import Config, override, read_settings
from attendo.core.errors import ConfigError, InputError
from attendo.model.config import TransformerConfig


class Inner(Config):
    max_steps: int = Field(default=10, ge=1)
    seed: int = 1


class Outer(Config):
    train: Inner = Inner()
    name: str = "run"


def test_defaults_are_the_papers_base_model():
    config = TransformerConfig(vocab_size=37000)
    assert (config.d_model, config.d_ff, config.num_heads, config.num_layers) == (512, 2048, 8, 6)
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.1, 0.0, 0.0)
    assert (config.norm, config.activation, config.positions) == ("post", "relu", "sinusoidal")
    assert (config.position_layout, config.tie_embeddings) == ("interleaved", "three-way")


def test_unknown_key_is_rejected_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"unknown key 'd_mdel': did you mean 'd_model'\?"):
        TransformerConfig(vocab_size=10, d_mdel=64)


def test_every_wrong_setting_is_named_at_once():
    with pytest.raises(ConfigError) as caught:
        TransformerConfig(vocab_size=0, dropout=1.5, norm="middle")
    assert len(caught.value.reasons) == 3
    assert "dropout = 1.5" in str(caught.value)
    assert "norm = 'middle'" in str(caught.value)


def test_nested_unknown_key_is_named_with_its_path():
    with pytest.raises(ConfigError) as caught:
        Outer(train={"max_step": 3}, nam="x")
    assert len(caught.value.reasons) == 2
    assert "unknown key 'train.max_step': did you mean 'max_steps'?" in str(caught.value)
    assert "unknown key 'nam': did you mean 'name'?" in str(caught.value)


def test_configs_are_frozen():
    config = TransformerConfig(vocab_size=10)
    with pytest.raises(ValidationError, match="frozen"):
        config.d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"d_model": 512, "num_heads": 7}, "use num_heads 4 or 8"),
        ({"tgt_vocab_size": 11}, "needs one vocabulary"),
        ({"pad_id": 10}, "outside the vocabulary"),
    ],
)
def test_settings_that_do_not_fit_together(options, words):
    with pytest.raises(ConfigError, match=words):
        TransformerConfig(**{"vocab_size": 10, **options})


def test_free_head_sizes_need_no_division():
    assert TransformerConfig(vocab_size=10, d_model=10, num_heads=3, d_k=4, d_v=5).d_k == 4


def test_saves_and_loads(tmp_path):
    config = TransformerConfig(vocab_size=10, d_k=16, norm="pre")
    config.save(tmp_path / "config.json")
    assert TransformerConfig.load(tmp_path / "config.json") == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_replace_is_checked():
    config = TransformerConfig(vocab_size=10)
    assert config.replace(num_layers=2).num_layers == 2
    with pytest.raises(ConfigError):
        config.replace(num_heads=7)


def test_overrides_reach_nested_keys(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('name = "a"\n[train]\nmax_steps = 5\n', encoding="utf-8")
    config = Outer.load(path, ["train.max_steps=100", "name=한국어"])
    assert (config.train.max_steps, config.train.seed, config.name) == (100, 1, "한국어")


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=1", 1),
        ("a=1e-9", 1e-9),
        ("a=true", True),
        ("a=[1, 2]", [1, 2]),
        ("a=word", "word"),
        ("a=b=c", "b=c"),
    ],
)
def test_override_reads_values_as_toml(pair, value):
    assert override({}, [pair]) == {"a": value}


def test_override_leaves_the_given_settings_alone():
    settings = {"train": {"seed": 1}}
    override(settings, ["train.seed=2"])
    assert settings == {"train": {"seed": 1}}


@pytest.mark.parametrize("pair", ["novalue", "=3", "name.x=1"])
def test_bad_override_is_rejected(pair):
    with pytest.raises(ConfigError):
        override({"name": "a"}, [pair])


@pytest.mark.parametrize(
    ("file_name", "content", "words"),
    [
        ("run.yaml", b"a: 1", "neither .toml nor .json"),
        ("run.toml", b"a = ", "is not valid TOML"),
        ("run.json", b"{", "is not valid JSON"),
        ("run.json", b"[1]", "not contain a table"),
        ("run.toml", b"a = '\xff'", "is not valid TOML"),
    ],
)
def test_unreadable_settings(tmp_path, file_name, content, words):
    (tmp_path / file_name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_settings(tmp_path / file_name)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*gone\.toml"):
        read_settings(tmp_path / "gone.toml")
