"""Plain text in, a language model out: its batches, its figures, its samples, its folder."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from attendo.bundle import is_language_model, load_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.core.files import cache_dir
from attendo.core.run_folder import read_json_lines
from attendo.data.pipeline import prepare_data
from attendo.tasks.config import RunConfig
from attendo.tasks.language_model.generator import TextGenerator, TextScore
from attendo.tasks.language_model.task import LanguageModelPlan, LanguageModelTask, first_half
from attendo.tasks.registry import task_class_for
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID

SETTINGS = {
    "data.tokenizer.vocab_size": 34,
    "data.tokenizer.byte_fallback": False,
    "data.dev_size": 10,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.num_layers": 1,
    "train.max_steps": 8,
    "train.save_every": 2,
    "train.validate_every": 4,
    "train.log_every": 2,
    "train.warmup_steps": 20,
    "train.batch_tokens": 192,
    "train.keep_last": 3,
    "train.average_checkpoints": 3,
}


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))


@pytest.fixture
def configure(toy):
    def configure(**changes):
        settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        return TrainRequest(
            settings=pairs, text=[toy.src], model=changes.pop("model", "decoder")
        ).build_config()

    return configure


@pytest.fixture
def run(configure, tmp_path):
    def run(out: str = "out", *, reporter=None, **changes):
        return train_run(configure(**changes), tmp_path / out, reporter=reporter)

    return run


def test_plain_text_and_a_decoder_make_a_language_model(configure, toy):
    assert task_class_for(configure()) is LanguageModelTask
    pairs = TrainRequest(src=[toy.src], tgt=[toy.tgt], model="decoder").build_config()
    assert task_class_for(pairs) is not LanguageModelTask


def test_a_batch_reads_the_end_symbol_and_decodes_the_text(toy):
    (corpus, _), *_ = toy.prepared.train
    plan = LanguageModelPlan([(corpus, 1.0)], batch_tokens=64, seed=1)
    batches = plan.epoch(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(corpus)))
    for rows in batches[:5]:
        batch = plan.read(rows)
        assert batch.src_ids.tolist() == [[END_ID]] * len(rows)
        assert batch.labels.numel() <= 64
        for position, row in enumerate(rows):
            text = corpus.pair(int(row))[1].tolist()
            assert batch.labels[position, : len(text)].tolist() == text
            assert batch.tgt_ids[position, : len(text)].tolist() == [START_ID, *text[:-1]]
            assert set(batch.labels[position, len(text) :].tolist()) <= {PAD_ID}
    assert plan.padding_stats(batches).src == 0.0
    assert plan.count_labels(batches[0]) == int(plan.read(batches[0]).labels.ne(PAD_ID).sum())


def test_a_run_leaves_a_language_model_with_its_figures(run, tmp_path):
    finished = run()
    bundle = load_bundle(finished.model_dir)
    assert bundle.model.kind == "decoder"
    assert is_language_model(bundle.about)
    assert "attendo generate" in finished.usage_hint
    dev = finished.report["dev"]
    # the same by another way: text by text, through the decoder's own scoring
    texts = _read_dev(finished)
    scored = TextScore.join(TextGenerator.load(finished.model_dir, device="cpu").score(texts))
    assert dev["num_tokens"] == scored.num_tokens
    assert dev["num_characters"] == scored.num_characters == sum(len(text) + 1 for text in texts)
    assert dev["perplexity"] == pytest.approx(scored.perplexity, rel=1e-4)
    assert dev["bits_per_character"] == pytest.approx(scored.bits_per_character, rel=1e-4)
    assert dev["bits_per_character"] == pytest.approx(
        dev["loss"] * scored.num_tokens / math.log(2) / scored.num_characters, rel=1e-6
    )
    reported = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "bits per character" in reported


def _read_dev(finished) -> list[str]:
    config = RunConfig.load(finished.directory / "config.json")
    prepared = prepare_data(config.text_data, cache_dir(), seed=config.train.seed)
    return [pair.tgt for pair in prepared.dev_pairs]


def test_each_validation_continues_with_the_same_prefixes(run, tmp_path):
    run()
    lines = (tmp_path / "out" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    reported = [json.loads(line) for line in lines]
    assert [one["step"] for one in reported] == [4, 8]
    first, second = (one["samples"] for one in reported)
    assert [one["src"] for one in first] == [one["src"] for one in second]
    assert first[0]["src"] == ""
    for one in (*first[1:], *second[1:]):
        assert one["output"].startswith(one["src"])
        assert one["ref"].startswith(one["src"])
    events = read_json_lines(tmp_path / "out" / "log.jsonl")
    validations = [event for event in events if event["event"] == "validation"]
    assert all(event["bits_per_character"] > 0 for event in validations)


def test_prefixes_may_be_reported(run, tmp_path):
    run(train__samples=["ka to", ""], train__max_steps=4)
    (line,) = (tmp_path / "out" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = json.loads(line)["samples"]
    assert first["src"] == "ka to"
    assert first["output"].startswith("ka to")
    assert second["src"] == ""
    assert "ref" not in first


def test_a_prefix_that_cannot_be_written_is_rejected_before_training(run, tmp_path):
    with pytest.raises(InputError, match="its vocabulary lacks 猫"):
        run(train__samples=["猫"])
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_a_run_that_was_stopped_ends_with_the_same_bits(run, tmp_path):
    run("whole")
    run("parted", train__max_steps=4)
    run("parted")
    one, other = (load_file(tmp_path / name / "model/model.safetensors") for name in
                  ("whole", "parted"))  # fmt: skip
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_it_learns_all_that_there_is_to_know(run):
    """The toy's texts are 2 to 9 of six words at random: what they cost at least is known."""
    finished = run(train__max_steps=150, train__save_every=50, train__warmup_steps=50)
    texts = _read_dev(finished)
    least = sum(len(text.split()) * math.log2(6) + math.log2(8) for text in texts)
    least /= sum(len(text) + 1 for text in texts)
    few = run("few").report["dev"]["bits_per_character"]
    many = finished.report["dev"]["bits_per_character"]
    assert 0.98 * least < many < 1.1 * least < few


def test_a_language_model_is_learned_further(run, toy, tmp_path):
    started = run(train__max_steps=60, train__save_every=20)
    settings = ["train.max_steps=2", "train.save_every=2", "train.batch_tokens=192"]
    config = TrainRequest(
        settings=settings, text=[toy.src], init_from=started.model_dir
    ).build_config()
    further = train_run(config, tmp_path / "further")
    assert is_language_model(load_bundle(further.model_dir).about)
    # two steps at the rate of a warm-up that has just begun change next to nothing
    before, after = (one.report["dev"]["bits_per_character"] for one in (started, further))
    assert after == pytest.approx(before, rel=0.05)


def test_what_learns_from_pairs_is_rejected(toy):
    config = TrainRequest(text=[toy.src], model="rnn-attention").build_config()
    with pytest.raises(ConfigError, match="needs pairs") as caught:
        task_class_for(config)
    assert "--model decoder" in caught.value.hint


def test_packing_that_is_asked_for_is_rejected(run):
    with pytest.raises(ConfigError, match=r"train\.sequence_packing"):
        run(train__sequence_packing=True)


@pytest.mark.parametrize(
    ("text", "half"), [("a b c", "a"), ("a b c d", "a b"), ("abcd", "ab"), ("a", "")]
)
def test_half_of_a_text(text, half):
    assert first_half(text) == half
