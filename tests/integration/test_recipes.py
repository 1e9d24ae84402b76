"""The recipes in their own words: the commands at the head of each config, made small, run."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path

import pytest

from attendo import Translator
from attendo.cli.main import run as run_command
from attendo.data.corpus_config import Pair
from attendo.data.dev_split import DevSplitConfig, select_dev, split_pairs
from attendo.tasks.request import TrainRequest

CORPORA = Path(os.environ.get("ATTENDO_CORPORA", "../shared/data"))
SMALL = [
    *("model.num_layers=1", "model.d_model=32", "model.d_ff=64", "model.num_heads=2"),
    *("train.max_steps=40", "train.batch_tokens=1024", "train.warmup_steps=20"),
    *("train.save_every=20", "train.validate_every=40", "train.keep_last=2"),
    *("train.average_checkpoints=1", "train.log_every=5", "train.bleu_sentences=5"),
]
KINDS = {"dates": "char", "numbers": "bpe", "text_to_text": "bpe"}
COUNTS = {"dates": 1000, "numbers": 1000, "pairs": 3000}


def attendo(*words: object) -> str:
    """Run a command in this process; give what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        run_command([str(word) for word in words])
    assert not left.value.code, err.getvalue()
    return out.getvalue()


def commands_of(config: Path) -> list[list[str]]:
    """Return the commands in the comments of a config."""
    lines = config.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[2:] for line in lines if line.startswith("# attendo ")]


def make_small(words: list[str], repository: Path) -> list[str]:
    """Return the same command for few examples, few steps and a small model."""
    verb = words[0]
    if verb == "synthesize":
        return [*words, "--count", str(COUNTS[words[1]])]
    if verb == "train":
        settings = [word for setting in SMALL for word in ("--set", setting)]
        return [verb, str(repository / words[1]), *words[2:], *settings]
    return [*words, "--samples", "0", "--beam-size", "1", "--json", "--measure", "chrf"]


def check_learning(run: Path) -> None:
    """Hold a short training against its own beginning."""
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    losses = [event["loss"] for event in events if event["event"] == "train"]
    assert losses[-1] < losses[0] - 0.5
    assert (run / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("recipe", ["dates", "numbers", "text_to_text"])
def test_the_commands_of_a_generated_recipe_run(recipe, repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    commands = commands_of(repository / "configs" / f"{recipe}.toml")
    verbs = [words[0] for words in commands]
    assert verbs == ["synthesize"] * (len(verbs) - 2) + ["train", "evaluate"]
    *_, report = [attendo(*make_small(words, repository)) for words in commands]
    (run,) = (tmp_path / "runs").iterdir()
    check_learning(run)
    assert json.loads((run / "model" / "tokenizer.json").read_text())["kind"] == KINDS[recipe]
    rates = json.loads(report)["system"]["error_rates"]
    sources = commands[-1][commands[-1].index("--src") + 1]
    asked = Path(sources).read_text(encoding="utf-8").splitlines()
    assert rates["num_cases"] == len(set(asked)) > 10
    assert 0 < rates["sequence"] <= 1
    if recipe == "text_to_text":
        check_tasks(tmp_path, run)


def check_tasks(folder: Path, run: Path) -> None:
    """Every task has its own prefix and is learned; held-out numbers are held out in all."""
    tasks = {"date": 5, "number": 5, "spell-ko": 5, "spell-en": 5, "ko-en": 5}
    config = json.loads((run / "config.json").read_text())
    assert {Path(one["src"]).stem for one in config["data"]["corpora"]} == set(tasks)
    heads = ["date: ", "number: ", "spell ko: ", "spell en: ", "ko-en: "]
    for task, head in zip(tasks, heads, strict=True):
        lines = (folder / f"data/tasks/{task}.src").read_text(encoding="utf-8").splitlines()
        assert all(line.startswith(head) for line in lines)
    asked = (folder / "data/tasks/number.test.tgt").read_text().split()
    learned = [
        line.rpartition(" ")[2]
        for lang in ("ko", "en")
        for line in (folder / f"data/tasks/spell-{lang}.src").read_text().splitlines()
    ]
    assert asked
    assert not set(asked) & set(learned)


# --- letters to phones

SOUNDS = {"a": "AE", "e": "EH", "i": "IH", "o": "AA", "b": "B", "d": "D", "k": "K", "s": "S"}
OTHERS = {"a": "EY", "o": "OW"}


def pronounce(word: str) -> list[str]:
    """Say a word by its letters; a word with a or o in the middle may be said in another way."""
    ways = [" ".join(SOUNDS[letter] for letter in word)]
    if word[1] in OTHERS:
        ways.append(" ".join(OTHERS.get(letter, SOUNDS[letter]) for letter in word))
    return ways


def make_dictionary() -> list[Pair]:
    """Write small words as CMUdict has them: letters apart, a line for each pronunciation."""
    words = ["".join(letters) for letters in product("bdks", "aeio", "bdks", ("", "a", "s"))]
    return [Pair(" ".join(word), way) for word in words for way in pronounce(word)]


def write_sides(folder: Path, name: str, pairs: list[Pair]) -> None:
    for side, lines in zip("gp", zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))


def test_letters_to_phones_with_several_pronunciations(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    pairs = make_dictionary()
    held = {pair.src for pair in pairs[::9]}
    write_sides(tmp_path, "train", [pair for pair in pairs if pair.src not in held])
    dev = [pair for pair in pairs if pair.src in held]
    write_sides(tmp_path, "dev", dev)
    train, evaluate = commands_of(repository / "configs/letters_to_phones.toml")
    attendo(*make_small(train, repository))
    check_learning(tmp_path / "runs/phones")
    report = json.loads(attendo(*make_small(evaluate, repository)))
    rates = report["system"]["error_rates"]
    assert rates["num_cases"] == len(held) < len(dev) == report["data"]["num_sentences"]
    printed = Translator.load("runs/phones").translate([pair.src for pair in dev], beam_size=1)
    right = {pair.src for pair, text in zip(dev, printed, strict=True) if pair.tgt == text}
    assert rates["sequence"] == pytest.approx(1 - len(right) / len(held))


def test_a_dev_set_that_is_taken_out_shares_no_word_with_train(repository):
    """Whatever pronunciation is chosen; words that sound alike stay."""
    pairs = [*make_dictionary(), *(Pair(f"{pair.src} e", pair.tgt) for pair in make_dictionary())]
    data = (
        TrainRequest(config=repository / "configs/letters_to_phones.toml", src=["a"], tgt=["b"])
        .build_config()
        .data
    )
    chosen = select_dev(pairs, DevSplitConfig(size=20, disjoint=data.disjoint))
    parts: dict[str, list[Pair]] = {"train": [], "dev": []}
    for name, pair in split_pairs(pairs, chosen):
        parts[name].append(pair)
    words = {name: {pair.src for pair in some} for name, some in parts.items()}
    several = {pair.src for pair in pairs if len(pronounce(pair.src.replace(" ", ""))) > 1}
    assert words["dev"] & several
    assert not words["dev"] & words["train"]
    assert {pair.tgt for pair in parts["dev"]} & {pair.tgt for pair in parts["train"]}


@pytest.mark.corpus
def test_the_real_dictionary_is_read_learned_and_scored(repository, tmp_path, monkeypatch):
    folder = (repository / CORPORA / "cmudict-g2p").resolve()
    if not folder.is_dir():
        assert os.environ.get("CI") != "true", f"{folder} is missing in CI"
        pytest.skip(f"no corpora in {folder}: set ATTENDO_CORPORA")
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    words: dict[str, list[str]] = {}
    for name in ("train.g", "train.p", "dev.g", "dev.p"):
        with gzip.open(folder / f"{name}.gz", "rt", encoding="utf-8") as file:
            words[name] = file.read().splitlines()
    assert len(set(words["dev.g"])) == 2670 < len(words["dev.g"]) == 2884
    assert not set(words["dev.g"]) & set(words["train.g"])
    for name, lines in words.items():
        text = "".join(f"{line}\n" for line in lines[: 4000 if name.startswith("train") else 300])
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    train, evaluate = commands_of(repository / "configs/letters_to_phones.toml")
    attendo(*make_small(train, repository))
    check_learning(tmp_path / "runs/phones")
    rates = json.loads(attendo(*make_small(evaluate, repository)))["system"]["error_rates"]
    assert rates["num_cases"] == len(set(words["dev.g"][:300]))
