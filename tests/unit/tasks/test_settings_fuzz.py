"""Every setting and option with every kind of wrong value: an error, or a config that trains.

The full product is `slow`; `make test` runs each key with a few values and each value with a few
keys.
"""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

from attendo.architectures.registry import MODEL_KINDS, SERIES_KIND
from attendo.core.config import MAX_COUNT, MAX_SIZE
from attendo.core.errors import AttendoError
from attendo.tasks.config import RunConfig
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.training.monitor import StepTime
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from dataclasses import Field
    from pathlib import Path

HUGE = 10**20
VALUES: dict[str, Any] = {
    "text": "bpe",
    "empty text": "",
    "path": "/nonexistent/file",
    "number as text": "7",
    "list": [1, "a"],
    "empty list": [],
    "table": {"src": "a", "tgt": "b"},
    "empty table": {},
    "null": None,
    "true": True,
    "zero": 0,
    "negative": -3,
    "huge": HUGE,
    "largest count": MAX_COUNT,
    "largest size": MAX_SIZE,
    "fraction": 0.37,
    "nan": float("nan"),
    "infinity": float("inf"),
}
"""What a person may write by mistake, as TOML can hold it (and null, which JSON can)."""
QUICK_VALUES = ("text", "list", "table", "huge", "nan")


def setting_keys() -> list[str]:
    """Return every key of the config of a run, tables included."""
    options = {name for kind in (*MODEL_KINDS.values(), SERIES_KIND) for name in kind.options}
    nested = {*RunConfig.nested_keys(), *(f"model.{name}" for name in options)}
    return sorted({*RunConfig.model_fields, *nested, "unknown", "train.unknown"})


def with_value(settings: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return settings with one value changed; in a list of tables it is changed in each."""
    name, _, rest = key.partition(".")
    if not rest:
        return {**settings, name: value}
    table = settings.get(name, {})
    if isinstance(table, list):
        return {**settings, name: [with_value(one, rest, value) for one in table]}
    return {**settings, name: with_value(table, rest, value)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small corpus and a small series."""
    folder = tmp_path_factory.mktemp("fuzz")
    syllables = itertools.product("aeiou", repeat=3)
    lines = [" ".join(f"k{vowel}" for vowel in vowels) for vowels in syllables]
    (folder / "src").write_text("\n".join(lines) + "\n")
    (folder / "tgt").write_text("\n".join(lines).replace("k", "l") + "\n")
    rows = [f"{day},{day % 7},{day % 5}" for day in range(300)]
    (folder / "sea.csv").write_text("day,x,y\n" + "\n".join(rows) + "\n")
    return folder


def base_settings(files: Path, key: str) -> dict[str, Any]:
    """Return valid settings of a run that has the key."""
    corpus = {"src": str(files / "src"), "tgt": str(files / "tgt")}
    series = {"paths": [str(files / "sea.csv")], "targets": ["y"], "time": "day", "window": 5}
    data = {"corpora": [corpus], "dev": corpus if key.startswith("data.dev.") else None}
    option = key.removeprefix("model.")
    kinds = [kind.name for kind in MODEL_KINDS.values() if option in kind.options]
    model = {"preset": "tiny"} | ({"kind": kinds[0]} if kinds else {})
    if key.startswith("series") or (option in SERIES_KIND.options and not kinds):
        return {"series": series, "model": model}
    return {"data": data, "model": model}


def build_config(files: Path, tmp_path: Path, key: str, name: str) -> RunConfig:
    """Return the config with one value, read from a file as `attendo train FILE` does."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(with_value(base_settings(files, key), key, VALUES[name])))
    return TrainRequest(config=path).build_config()


@pytest.mark.parametrize("key", setting_keys())
def test_a_wrong_value_is_an_error_of_ours(key: str, files: Path, tmp_path: Path) -> None:
    for name in (*QUICK_VALUES, list(VALUES)[len(key) % len(VALUES)]):
        with suppress(AttendoError):
            build_config(files, tmp_path, key, name)


TEXTS = (
    *("", " ", "x", "0", "-1", "1e99", "nan", "a=b", "zz-ZZ", "\x00", "é" * 5000),
    *("/nonexistent/f", ".", "src", "sea.csv"),
)
"""What a person may type by mistake after an option."""
OVERRIDES = (
    *("=", "train", "train.max_steps=", "train.max_steps=[", "train.max_steps=1979-05-27"),
    *("plan=1", 'plan.auto=["train.zzz"]', "plan.budget_minutes=nan", "data=1", "data.dev=x"),
    *("data=null", "model=null", "series=null", "train=null", "plan=null", "train.patience=null"),
    *("data.corpora=[]", "data.corpora=[{}]", "model.kind=series", "series.targets=x"),
)
"""Settings of `--set` that are not those of a table above."""
NUMBERS = (0, -1, 3, HUGE, 0.3, -0.5, float("nan"), float("inf"))


def option_values(option: Field[Any]) -> list[Any]:
    """Return wrong values for an option, of the types that the command line gives it."""
    kind = str(option.type)
    values: list[Any] = []
    if option.name == "settings":
        values = list(OVERRIDES)
    if "str" in kind or "Paths" in kind:
        values += TEXTS
    if "int" in kind or "float" in kind:
        values += NUMBERS
    takes_many = "Paths" in kind or "Sequence" in kind
    return [[value] if takes_many else value for value in values]


@pytest.mark.parametrize(
    "option", [one for one in fields(TrainRequest) if one.name != "columns"], ids=attrgetter("name")
)
@pytest.mark.parametrize("data", ["pairs", "table", "series"])
def test_a_wrong_option_is_an_error_of_ours(
    option: Field[Any], data: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    given: dict[str, Any] = {
        "pairs": {"src": ["src"], "tgt": ["tgt"]},
        "table": {"path": ["sea.csv"]},
        "series": {"series": ["sea.csv"], "columns": {"targets": ["y"]}},
    }[data]
    if option.name.startswith("replay"):
        given = given | {"replay_src": ["src"], "replay_tgt": ["tgt"]}
    for value in option_values(option):
        with suppress(AttendoError):
            TrainRequest(**(given | {option.name: value})).check(out=tmp_path / "run")


class WouldTrainError(AttendoError):
    """All checks have passed."""


@pytest.fixture
def without_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop before the first training step."""

    def stop(_trainer: Trainer) -> None:
        raise WouldTrainError("would train")

    monkeypatch.setattr(Trainer, "run", stop)
    monkeypatch.setattr(Trainer, "measure_step", lambda _trainer: StepTime(0.01, 1))
    monkeypatch.setattr("attendo.tasks.memory.memory_bytes", lambda: 2**30)


def start_training(files: Path, tmp_path: Path, key: str, name: str) -> None:
    """Train a run with one value up to the first step."""
    config = build_config(files, tmp_path, key, name)
    train_run(config, tmp_path / "run", cache=files / "cache", device="cpu", force=True)


@pytest.mark.usefixtures("without_training")
@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("data.corpora.weight", "huge"),
        ("data.tokenizer.vocab_size", "largest size"),
        ("model.d_model", "largest size"),
        ("model.d_state", "largest size"),
        ("model.num_layers", "largest size"),
        ("series.window", "largest count"),
        ("train.seed", "huge"),
    ],
)
def test_a_huge_value_is_an_error_before_training(
    key: str, name: str, files: Path, tmp_path: Path
) -> None:
    with pytest.raises(AttendoError) as caught:
        start_training(files, tmp_path, key, name)
    assert not isinstance(caught.value, WouldTrainError)


@pytest.mark.usefixtures("without_training")
def test_valid_settings_train(files: Path, tmp_path: Path) -> None:
    with pytest.raises(WouldTrainError):
        start_training(files, tmp_path, "model.d_ff", "number as text")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile
@pytest.mark.usefixtures("without_training")
@pytest.mark.parametrize("key", setting_keys())
def test_every_value_is_an_error_of_ours_or_trains(key: str, files: Path, tmp_path: Path) -> None:
    for name in VALUES:
        with suppress(AttendoError):
            start_training(files, tmp_path, key, name)
