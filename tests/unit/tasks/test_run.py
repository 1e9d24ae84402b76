"""Whole runs on the toy corpus: the folder, the report, going on, refusing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from itertools import product

import pytest
import torch

from attendo.bundle import load_bundle
from attendo.core import shipped_models
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.run_files import list_run_files
from attendo.core.run_folder import RunFolder, read_json_lines
from attendo.data.batching import BatchPlan, collate
from attendo.tasks import text_task
from attendo.tasks.disk_space import check_disk_space, estimate_disk_space
from attendo.tasks.report import _median, cleaning_table_lines
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run
from attendo.tasks.translation.task import TranslationTask
from attendo.text.tokenizer import SPECIAL_IDS
from attendo.training.averaging import average_weights
from attendo.training.checkpoint import CheckpointStore
from attendo.training.config import TrainConfig
from attendo.training.progress import NullReporter
from attendo.training.signals import TrainingInterrupted
from attendo.translator import Translator

SETTINGS = {
    "data.tokenizer.kind": "word",
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
    "train.average": "last",
    "train.average_checkpoints": 3,
    "train.bleu_sentences": 3,
}


@pytest.fixture(autouse=True)
def _cache(toy, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(toy.cache))


@pytest.fixture
def run(toy, tmp_path):
    """Run in the folder `out` with some settings changed (__ for the dot)."""

    def start(out: str = "out", *, force: bool = False, reporter=None, files=None, **changes):
        settings = SETTINGS | {key.replace("__", "."): value for key, value in changes.items()}
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        src, tgt = files or (toy.src, toy.tgt)
        config = TrainRequest(settings=pairs, src=[src], tgt=[tgt]).build_config()
        return train_run(config, tmp_path / out, force=force, reporter=reporter)

    return start


@pytest.fixture(scope="session")
def finished_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("finished") / "out"


@pytest.fixture
def finished(run, finished_folder, tmp_path):
    """A finished run of the fixture's settings in `out`, made once and copied."""
    if not finished_folder.exists():
        run()
        shutil.move(tmp_path / "out", finished_folder)
    shutil.copytree(finished_folder, tmp_path / "out")
    return tmp_path / "out"


class StopAt(NullReporter):
    """Raises an error when a step is reported."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, step, _total, _figures) -> None:
        if step == self.at:
            raise MemoryError("killed")


def weights(folder) -> dict[str, torch.Tensor]:
    return dict(load_bundle(folder).model.named_parameters())


def same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


def test_the_folder_holds_what_is_promised(finished):
    names = {path.name for path in finished.iterdir() if not path.name.startswith(".")}
    assert names == {
        "checkpoints",
        "config.json",
        "data.json",
        "log.jsonl",
        "model",
        "report.json",
        "report.md",
        "samples.jsonl",
        "tensorboard",
    }
    assert (finished / "model" / "model.safetensors").is_file()
    assert len(Translator.load(finished, device="cpu").translate(["ka to", ""])) == 2


def test_the_model_is_the_mean_of_the_last_checkpoints(finished):
    store = CheckpointStore(finished / "checkpoints", keep_last=3, keep_best=1)
    assert store.steps()[-3:] == [4, 6, 8]
    mean = average_weights(map(store.load_weights, (4, 6, 8)))
    assert same(weights(finished), mean)
    assert not same(mean, store.load_weights(8))
    about = load_bundle(finished).about
    assert (about["averaged_steps"], about["step"]) == ([4, 6, 8], 8)


def test_the_exponential_mean_becomes_the_model(run):
    done = run(train__ema_decay=0.9)
    store = CheckpointStore(done.directory / "checkpoints", keep_last=3, keep_best=1)
    saved = store.load(8).optimizer
    means = {n.removeprefix("ema."): t for n, t in saved.items() if n.startswith("ema.")}
    assert same(weights(done.directory), means)
    assert done.report["averaged_steps"] == []


def test_samples_are_written_at_every_validation(finished):
    samples = read_json_lines(finished / "samples.jsonl")
    assert [line["step"] for line in samples] == [4, 8]
    assert all(set(one) == {"src", "output", "ref"} for line in samples for one in line["samples"])
    validations = [e for e in read_json_lines(finished / "log.jsonl") if e["event"] == "validation"]
    assert [event["step"] for event in validations] == [4, 8]
    assert all({"loss", "perplexity", "accuracy", "bleu"} <= set(event) for event in validations)


def test_samples_of_given_sentences(run):
    done = run(train__samples=["ka\u2028to", "mi"], train__bleu_sentences=0)
    (first, last) = read_json_lines(done.directory / "samples.jsonl")
    assert [one["src"] for one in first["samples"]] == ["ka\u2028to", "mi"]
    assert "ref" not in last["samples"][0]
    events = read_json_lines(done.directory / "log.jsonl")
    assert all("bleu" not in event for event in events)


def test_report(finished):
    report = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    assert (report["steps"], report["averaged_steps"]) == (8, [4, 6, 8])
    assert report["data"]["pairs"] + report["data"]["dev_pairs"] <= 200
    assert 0 <= report["data"]["padding"]["total"] < 0.2
    assert report["dev"]["bleu_sentences"] == report["data"]["dev_pairs"]
    assert report["dev"]["decoding"] == "greedy"
    assert "tok:13a" in report["dev"]["bleu_signature"]
    text = (finished / "report.md").read_text(encoding="utf-8")
    assert "average of the checkpoints of steps 4, 6, 8" in text
    dev = report["dev"]
    assert f"| {dev['bleu']:.2f} | {dev['chrf']:.2f} | {dev['perplexity']:.3f} |" in text
    assert "| 4 |" in text
    assert "8 steps" in text


def test_the_bands_are_those_of_the_finished_model_on_dev(toy, tmp_path):
    """Against the saved model: it puts the greedy translations of dev into the same bands."""
    settings = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    sides = {"src": [toy.src], "tgt": [toy.tgt]}
    texts = [" ".join(words) for words in product(("ka", "to", "mi"), repeat=5)]
    for side, lines in (("src", texts), ("tgt", [text.upper() for text in texts])):
        sides[f"dev_{side}"] = tmp_path / f"dev.{side}"
        sides[f"dev_{side}"].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = train_run(TrainRequest(settings=settings, **sides).build_config(), tmp_path / "out")
    translator = Translator.load(done.model_dir, device="cpu")
    table = translator.quality
    assert table.model_dump(mode="json") == done.report["calibration"]["quality"]
    translations = translator.translate(texts, beam_size=1, confidence=True)
    bands = Counter(one.confidence.band for one in translations)
    assert {band: counts.count for band, counts in table.bands.items()} == {
        band: bands[band] for band in table.bands
    }
    assert not any(one.confidence.unfamiliar for one in translations)
    (strange,) = translator.translate(["KA TO MI"], confidence=True)  # only ever a target
    assert strange.confidence.unfamiliar.num_unseen == 3
    assert "| band | sentences |" in (done.directory / "report.md").read_text(encoding="utf-8")


def test_a_small_dev_set_leaves_the_model_uncalibrated(finished, toy):
    translator = Translator.load(finished, device="cpu")
    assert translator.quality is None
    counts = toy.prepared.train[0][0].count_src_ids(translator.tokenizer.src_vocab_size)
    text_ids = slice(len(SPECIAL_IDS), None)
    assert translator.familiarity.counts[text_ids] == pytest.approx(counts[text_ids], rel=0.05)


def test_the_tokens_of_the_model_that_a_run_starts_from_are_familiar(finished, toy, tmp_path):
    first = Translator.load(finished, device="cpu").familiarity.counts
    settings = ["train.max_steps=2", "train.save_every=2", "train.batch_tokens=192"]
    request = TrainRequest(settings=settings, src=[toy.src], tgt=[toy.tgt], init_from=finished)
    second = train_run(request.build_config(), tmp_path / "second")
    counts = Translator.load(second.model_dir, device="cpu").familiarity.counts
    assert counts == pytest.approx(2 * first, rel=0.12)


def test_a_model_to_start_from_is_checked_without_a_tensor_library(finished, toy):
    code = (
        "import sys\nfrom attendo.core.errors import ConfigError\n"
        "from attendo.tasks.request import TrainRequest\n"
        f"given = dict(src={str(toy.src)!r}, tgt={str(toy.tgt)!r}, init_from={str(finished)!r})\n"
        "print(TrainRequest(**given).check().model.d_model)\n"
        "try: TrainRequest(**given, settings=['model.d_model=5']).check()\n"
        "except ConfigError as error: print(error.reasons)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "16\n('model.d_model = 5: the model has 16',)\n"


def test_bug_a_shipped_model_must_be_found_by_its_name(finished, toy, tmp_path, monkeypatch):
    shutil.copytree(finished / "model", tmp_path / "models/ko-en")
    monkeypatch.setattr(shipped_models, "ROOTS", (tmp_path / "models",))
    monkeypatch.chdir(tmp_path)
    config = TrainRequest(src=[toy.src], tgt=[toy.tgt], init_from="ko-en").check()
    assert config.model.init_from == str((tmp_path / "models/ko-en").resolve())
    with pytest.raises(InputError, match="en-ko is not part of this installation"):
        TrainRequest(src=[toy.src], tgt=[toy.tgt], init_from="en-ko").check()


def test_damaged_weights_to_start_from_are_rejected_before_a_folder_is_made(
    finished, toy, tmp_path
):
    path = finished / "model/model.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    config = TrainRequest(src=[toy.src], tgt=[toy.tgt], init_from=finished).check()
    with pytest.raises(InputError, match="cannot be read"):
        train_run(config, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_the_calibration_is_that_of_the_finished_model_on_dev(finished, toy):
    """Against the definition: dev in one batch, each pair through the saved model."""
    report = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    bundle = load_bundle(finished)
    saved = bundle.about["calibration"]
    assert saved == report["calibration"]
    losses, best, num_right = [], [], 0
    for index in range(len(toy.prepared.dev)):
        batch = collate([toy.prepared.dev.pair(index)])
        with torch.no_grad():
            probabilities = bundle.model(batch.src_ids, batch.tgt_ids)[0].double().softmax(-1)
        losses += (-probabilities.gather(1, batch.labels.T).log()).flatten().tolist()
        best += probabilities.amax(-1).tolist()
        num_right += int(probabilities.argmax(-1).eq(batch.labels[0]).sum())
    assert saved["num_tokens"] == len(losses)
    assert saved["nll_before"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert saved["nll_before"] == pytest.approx(report["dev"]["loss"], rel=1e-4)
    assert saved["nll_after"] < saved["nll_before"]
    reported = saved["bins_before"]
    assert sum(one["count"] * one["confidence"] for one in reported) == pytest.approx(sum(best))
    assert sum(one["count"] * one["accuracy"] for one in reported) == pytest.approx(num_right)
    line = (
        f"Calibration: temperature {saved['temperature']:.2f}, expected calibration error "
        f"{100 * saved['ece_before']:.1f} % -> {100 * saved['ece_after']:.1f} % on "
        f"{len(losses):,} dev tokens (teacher forcing)"
    )
    assert line in (finished / "report.md").read_text(encoding="utf-8").splitlines()


def test_a_large_dev_is_calibrated_on_whole_batches_of_it(finished, toy, monkeypatch):
    model = load_bundle(finished).model.train()
    dev = BatchPlan(toy.prepared.train, batch_tokens=64, seed=0)
    sizes = [int(dev.tgt_lengths[rows].sum()) for rows in dev.epoch(0)]
    assert len(sizes) > 3
    monkeypatch.setattr(text_task, "CALIBRATION_TOKENS", sum(sizes[:3]))
    part = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert part.num_tokens == sum(sizes[:3])
    assert model.training  # as it was found
    monkeypatch.setattr(text_task, "CALIBRATION_BATCH_TOKENS", 10)
    cut = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert cut.temperature == pytest.approx(part.temperature, rel=1e-4)
    monkeypatch.setattr(text_task, "CALIBRATION_TOKENS", 1)
    one = text_task.fit_temperature(model, dev, device=torch.device("cpu"))
    assert one.num_tokens == sizes[0]


def test_the_bundle_records_the_longest_source_of_training(finished, toy):
    texts = toy.src.read_text(encoding="utf-8").splitlines()
    dev = {pair.src for pair in toy.prepared.dev_pairs}
    longest = max(len(text.split()) for text in texts if text not in dev)
    assert load_bundle(finished).about["max_src_tokens"] == longest + 1  # and the end symbol


def test_the_steps_of_the_report_are_those_trained(run):
    done = run(train__log_every=100, train__max_steps=3)
    assert done.report["steps"] == 3


def test_words_of_the_report():
    assert _median([]) == 0.0
    assert _median([3.0, 1.0, 2.0]) == 2.0
    rows = [{"num_pairs": 1234, "what": "kept", "example": ""}]
    assert cleaning_table_lines({"corpora": [{"rows": rows}]}) == ["      1,234  kept"]


def test_bug_one_sentence_must_be_singular_where_the_score_is_explained():
    scores = {"decoding": "greedy", "bleu_signature": "sig"}
    explain = TranslationTask.explain_score
    assert " of 1 sentence; too few" in explain(None, scores | {"bleu_sentences": 1})
    assert " of 500 sentences, " in explain(None, scores | {"bleu_sentences": 500})


def test_killed_runs_end_equal_and_nothing_is_logged_twice(run, finished):
    for step in (2, 6):
        with pytest.raises(MemoryError):
            run("killed", reporter=StopAt(step))
    done = run("killed")
    assert same(weights(done.directory), weights(finished))
    for name in ("log.jsonl", "samples.jsonl"):
        reported, expected = (
            [
                (event.get("event"), event["step"])
                for event in read_json_lines(folder / name)
                if event.get("event") not in ("started", "resumed")
            ]
            for folder in (done.directory, finished)
        )
        assert reported == expected


def test_a_finished_run_again_changes_nothing(run, finished):
    before = {
        path: path.read_bytes()
        for path in finished.rglob("*")
        if path.is_file() and path.parent.name != "tensorboard"
    }
    done = run()
    assert {path for path in finished.rglob("*") if path.is_file()} >= before.keys()
    assert [p.name for p, data in before.items() if p.read_bytes() != data] == []
    assert done.report["steps"] == 8


def test_more_steps_continue(run, finished):
    done = run(train__max_steps=12)
    assert done.report["steps"] == 12
    whole = run("whole", train__max_steps=12)
    assert same(weights(done.directory), weights(whole.directory))
    assert json.loads((done.directory / "config.json").read_text())["train"]["max_steps"] == 12


def test_another_run_s_folder_is_rejected_with_the_differences(run, finished):
    before = weights(finished)
    with pytest.raises(ConfigError, match="contains another run") as raised:
        run(train__seed=2, model__d_ff=64)
    assert "train.seed: 1 there, 2 here" in raised.value.reason
    assert "model.d_ff: 32 there, 64 here" in raised.value.reason
    assert "--force" in raised.value.hint
    assert same(weights(finished), before)
    assert json.loads((finished / "config.json").read_text())["train"]["seed"] == 1


def test_bug_other_files_must_be_listed_next_to_other_settings(run, finished, toy):
    kept = toy.src.read_text(encoding="utf-8")
    try:
        toy.src.write_text(kept.replace("ka", "zu"), encoding="utf-8")
        with pytest.raises(ConfigError, match="contains another run") as raised:
            run(train__seed=2)
    finally:
        toy.src.write_text(kept, encoding="utf-8")
    assert toy.src.name in raised.value.reason
    assert "train.seed: 1 there, 2 here" in raised.value.reason


def test_force_deletes_and_starts_again(run, finished):
    (finished / "checkpoints" / "step_99").mkdir()
    done = run(train__seed=2, train__max_steps=4, force=True)
    assert not (finished / "checkpoints" / "step_99").exists()
    assert done.report["steps"] == 4
    assert read_json_lines(finished / "log.jsonl")[0]["event"] == "started"
    fresh = run("fresh", train__seed=2, train__max_steps=4)
    assert same(weights(done.directory), weights(fresh.directory))


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_things_is_left_alone(run, tmp_path, force):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="does not contain a run"):
        run(force=force)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_an_empty_folder_will_do(run, tmp_path):
    (tmp_path / "out").mkdir()
    assert run(train__max_steps=1).report["steps"] == 1


def test_a_corpus_that_is_missing_leaves_no_folder(toy, tmp_path):
    config = TrainRequest(src=[tmp_path / "nowhere"], tgt=[toy.tgt]).build_config()
    with pytest.raises(InputError, match="nowhere"):
        train_run(config, tmp_path / "out")
    assert not (tmp_path / "out" / "checkpoints").exists()


@pytest.mark.parametrize("has_digests", [True, False])
def test_bug_a_changed_corpus_must_not_continue_with_the_old_weights(
    run, finished, toy, has_digests
):
    """The same command, other text in the same files: other ids for the same weights."""
    facts = json.loads((finished / "data.json").read_text(encoding="utf-8"))
    if not has_digests:  # runs did not record them once
        del facts["files"]
        (finished / "data.json").write_text(json.dumps(facts), encoding="utf-8")
    before = contents(finished)
    kept = toy.src.read_text(encoding="utf-8")
    try:
        toy.src.write_text(kept.replace("ka", "zu"), encoding="utf-8")
        with pytest.raises(ConfigError, match="toy.src has changed" if has_digests else "corpora"):
            run(train__max_steps=12)
        assert contents(finished) == before
    finally:
        toy.src.write_text(kept, encoding="utf-8")
    assert run().report["steps"] == 8


def test_early_stopping_ends_in_a_model(run, monkeypatch):
    from attendo.training.train_step import ValidationResult
    from attendo.training.trainer import Trainer

    monkeypatch.setattr(Trainer, "validate", lambda _: ValidationResult(1.0, 0.5))
    done = run(train__patience=1, train__validate_every=3, train__save_every=100)
    assert done.report["steps"] == 6
    assert done.report["averaged_steps"] == [6]
    again = run(train__patience=1, train__validate_every=3, train__save_every=100)
    assert again.report["steps"] == 6


def test_separate_vocabularies_train_too(run):
    done = run(data__tokenizer__shared=False, train__max_steps=2)
    model = load_bundle(done.directory).model
    assert model.src_embedding.weight is not model.tgt_embedding.weight


def test_a_full_disk_at_the_end_keeps_the_checkpoints(run, finished, monkeypatch):
    import safetensors.torch

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    real = safetensors.torch.save_file
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AttendoError, match="No space left"):
        run(train__max_steps=10)
    monkeypatch.setattr(safetensors.torch, "save_file", real)
    assert run(train__max_steps=10).report["steps"] == 10


def test_interrupted_leaves_no_model_yet(run, tmp_path):
    import os
    import signal

    class Stop(NullReporter):
        def step(self, step: int, *_: object) -> None:
            if step == 1:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(TrainingInterrupted):
        run(reporter=Stop())
    assert not (tmp_path / "out" / "model").exists()
    assert run().report["steps"] == 8


def test_the_command_does_the_same(toy, tmp_path, finished, capsys):
    from attendo.cli.main import run as command

    out = tmp_path / "by-command"
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    words = ["train", "--src", str(toy.src), "--tgt", str(toy.tgt), "--out", str(out), *settings]
    with pytest.raises(SystemExit) as raised:
        command(words)
    assert raised.value.code == 0
    reported = capsys.readouterr().out
    assert "dev BLEU" in reported
    assert "training 8/8" in reported
    assert str(out / "model") in reported
    assert same(weights(out), weights(finished))
    with pytest.raises(SystemExit) as raised:
        command([*words, "--set", "train.sead=2"])
    assert raised.value.code == 2
    assert "did you mean 'seed'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("free", "outcome"), [(1000, "refused"), (1100, "warned"), (3900, "warned"), (4000, "fits")]
)
def test_the_disk_has_to_hold_all_checkpoints_that_are_kept(tmp_path, monkeypatch, free, outcome):
    config = TrainConfig(max_steps=5000, save_every=1000, keep_last=5, keep_best=1)
    # Bytes per parameter: 12 for a checkpoint, 4 for the model. Five saves, one by time, one new.
    need = estimate_disk_space(config, 10**6)
    assert (need.least, need.most) == (28_000_000, 88_000_000)
    assert estimate_disk_space(config.replace(ema_decay=0.9), 10**6).least == 36_000_000
    few = estimate_disk_space(config.replace(max_steps=100), 10**6)
    assert few.most == 40_000_000

    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free * 10**6))
    messages = Messages()
    sizes = {"least": 1_010_000_000, "most": 3_950_000_000}
    if outcome == "refused":
        with pytest.raises(InputError, match=r"at least 1\.01 GB .* 1\.00 GB are free"):
            check_disk_space(tmp_path, **sizes, reporter=messages)
    else:
        check_disk_space(tmp_path, **sizes, reporter=messages)
    assert messages.contain("need up to 3.95 GB") == (outcome == "warned")


# -- nothing is lost


class Messages(NullReporter):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)

    def contain(self, words: str) -> bool:
        return any(words in text for text in self.texts)


def contents(folder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def copies(toy, tmp_path):
    """The files of the corpus under other names, in another folder."""
    paths = tmp_path / "renamed.src", tmp_path / "renamed.tgt"
    for path, original in zip(paths, (toy.src, toy.tgt), strict=True):
        shutil.copy(original, path)
    return paths


def test_a_run_resumes_with_its_files_under_other_names(run, finished, copies, tmp_path):
    run("moved", train__max_steps=6)
    assert run("moved", files=copies).report["steps"] == 8
    assert same(weights(tmp_path / "moved"), weights(finished))
    config = json.loads((tmp_path / "moved" / "config.json").read_text(encoding="utf-8"))
    assert config["data"]["corpora"][0]["src"] == str(copies[0])


def test_other_content_under_another_name_is_rejected_with_the_name(run, finished, copies):
    with copies[1].open("a", encoding="utf-8") as file:
        file.write("one more\n")
    before = contents(finished)
    with pytest.raises(ConfigError) as raised:
        run(files=copies, train__max_steps=12)
    assert "renamed.tgt differs from that of" in raised.value.reason
    assert "renamed.src" not in raised.value.reason
    assert contents(finished) == before


@pytest.mark.parametrize("steps", [8, 5])
def test_a_finished_run_without_checkpoints_stays_as_it_is(run, finished, steps):
    shutil.rmtree(finished / "checkpoints")
    before = contents(finished)
    messages = Messages()
    done = run(reporter=messages, train__max_steps=steps)
    assert (done.report["steps"], done.model_dir) == (8, finished / "model")
    assert messages.contain("already finished")
    assert contents(finished) == before


def test_more_steps_without_checkpoints_are_rejected(run, finished):
    shutil.rmtree(finished / "checkpoints")
    before = contents(finished)
    with pytest.raises(AttendoError, match="cannot continue after step 8"):
        run(train__max_steps=12)
    assert contents(finished) == before
    assert run(train__max_steps=12, force=True).report["steps"] == 12


def test_an_interrupted_run_without_checkpoints_is_not_started_again(run, tmp_path):
    with pytest.raises(MemoryError):
        run(reporter=StopAt(6))
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    before = contents(tmp_path / "out")
    with pytest.raises(AttendoError, match="says step 6, but no checkpoint is there"):
        run()
    assert contents(tmp_path / "out") == before


def test_a_run_that_ended_before_its_first_checkpoint_starts_again(run, tmp_path):
    with pytest.raises(MemoryError):
        run(reporter=StopAt(2))
    assert not list((tmp_path / "out" / "checkpoints").iterdir())
    assert run().report["steps"] == 8


def test_without_an_intact_checkpoint_the_new_start_is_announced(run, finished):
    shutil.rmtree(finished / "model")
    for path in finished.glob("checkpoints/step_*/checkpoint.json"):
        path.write_text("{}")
    messages = Messages()
    run(reporter=messages)
    assert messages.contain("starts again from the beginning")
    assert not messages.contain("resuming")


def test_checkpoints_by_time_change_nothing_but_the_loss_of_work(run, finished, tmp_path):
    """Every step is over time: each is saved, and the run is killed between two validations."""
    with pytest.raises(MemoryError):
        run("often", train__save_minutes=1e-9, reporter=StopAt(6))
    assert RunFolder(tmp_path / "often").checkpoint_steps() == [2, 4, 5]
    done = run("often", train__save_minutes=1e-9)
    assert done.report["averaged_steps"] == [4, 6, 8]
    assert same(weights(done.directory), weights(finished))
    validations = [
        [e for e in read_json_lines(folder / "log.jsonl") if e["event"] == "validation"]
        for folder in (done.directory, finished)
    ]
    times = [[event.pop("time") for event in events] for events in validations]
    assert validations[0] == validations[1]
    assert len(times[0]) == 2


def test_a_file_that_the_user_adds_to_the_model_outlives_more_steps(run, finished):
    (finished / "model" / "README.md").write_text("my model")
    (finished / "model" / "onnx").mkdir()
    (finished / "model" / "onnx" / "model.onnx").write_text("exported")
    assert run(train__max_steps=9).report["steps"] == 9
    assert (finished / "model" / "README.md").read_text() == "my model"
    assert (finished / "model" / "onnx" / "model.onnx").read_text() == "exported"


# -- what --force deletes


def test_every_file_of_a_run_is_known_as_such(finished):
    files = list_run_files(RunFolder(finished))
    assert files.foreign == []
    assert len(files.own) > 15


def test_force_keeps_the_files_of_the_user(run, finished):
    mine = {"notes.txt": "a", "checkpoints/notes.txt": "b", "drafts/thesis.txt": "c"}
    for name, text in mine.items():
        (finished / name).parent.mkdir(exist_ok=True)
        (finished / name).write_text(text)
    for name in ("checkpoints/broken_step_3", "drafts/empty"):
        (finished / name).mkdir()
    messages = Messages()
    run(train__max_steps=1, force=True, reporter=messages)
    assert {name: (finished / name).read_text() for name in mine} == mine
    assert (finished / "drafts" / "empty").is_dir()
    assert messages.contain("checkpoints/notes.txt, drafts/thesis.txt, notes.txt")
    assert RunFolder(finished).checkpoint_steps() == [1]
    assert not (finished / "checkpoints" / "broken_step_3").exists()


@pytest.mark.parametrize("name", ["model/README.md", "checkpoints/step_8/notes.txt"])
def test_force_does_not_replace_a_folder_with_a_file_of_the_user(run, finished, name):
    (finished / name).write_text("mine")
    before = contents(finished)
    with pytest.raises(InputError, match=f"would be lost: {name}"):
        run(train__max_steps=1, force=True)
    assert contents(finished) == before


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("config", ['{"model_type": "bart"}', '{"model": {}, "train": {}}', "{"])
def test_the_config_of_another_program_is_named_and_left_alone(run, tmp_path, config, force):
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    (out / "config.json").write_text(config)
    (out / "pytorch_model.bin").write_text("precious")
    (out / "sub" / "thesis.txt").write_text("years of work")
    before = contents(out)
    if force and '"train"' in config:  # as little as that can only be lost by a run
        run(train__max_steps=1, force=True)
        assert contents(out).items() >= (before.items() - {("config.json", config.encode())})
        return
    with pytest.raises(InputError, match=r"out/config\.json is not "):
        run(force=force)
    assert contents(out) == before


def test_partial_files_of_a_killed_process_are_deleted(run, finished):
    (finished / ".report.md.77.partial").write_text("half")
    (finished / ".mine.77.partial").write_text("mine")
    run(train__max_steps=9)
    assert [path.name for path in finished.glob(".*.partial")] == [".mine.77.partial"]
