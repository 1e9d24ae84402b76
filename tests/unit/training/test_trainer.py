from __future__ import annotations

import json
import math
import os
import signal
import threading
from types import SimpleNamespace

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.run_folder import read_json_lines
from attendo.data.batching import BatchPlan
from attendo.data.packed_batching import PackedBatchPlan
from attendo.training.checkpoint import WEIGHTS_FILE
from attendo.training.config import TrainConfig
from attendo.training.optimizer import get_state
from attendo.training.signals import TrainingInterrupted
from attendo.training.train_step import ValidationResult, resolve_precision
from attendo.training.trainer import Trainer

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
EXACT = {**SIZES, "dropout": 0.0, "bias": False}
"""Without dropout; and a key's bias has no gradient but rounding, which Adam would blow up."""
SETTINGS = {"max_steps": 12, "save_every": 4, "log_every": 1, "warmup_steps": 20}
BATCH_TOKENS = 192  # 7 or 8 batches an epoch: runs of a dozen steps see two epochs


class Watcher:
    """A reporter that notes what it hears, and does something at a step."""

    def __init__(self, at: int | None = None, action=None) -> None:
        self.at, self.action = at, action
        self.printed: list[str] = []
        self.steps: list[int] = []

    def stage(self, name, done, total) -> None: ...

    def message(self, text) -> None:
        self.printed.append(text)

    def step(self, step, _total, _figures) -> None:
        self.steps.append(step)
        if step == self.at:
            self.action()


@pytest.fixture
def make_trainer(toy, tmp_path):
    """Make a trainer in the folder `name`: the same model and batches every time."""

    def make(
        name: str = "run", options=SIZES, *, reporter=None, forward=None, plan=None, **settings
    ):
        torch.manual_seed(7)
        model = build_model("transformer", options, toy.prepared.tokenizer)
        if forward is not None:
            model.forward = forward(model, model.forward)
        trainer = Trainer(
            model,
            plan or BatchPlan(toy.prepared.train, batch_tokens=BATCH_TOKENS, seed=1),
            TrainConfig(**{**SETTINGS, **settings}),
            tmp_path / name,
            dev=BatchPlan([(toy.prepared.dev, 1.0)], batch_tokens=BATCH_TOKENS, seed=0),
            reporter=reporter,
        )
        if isinstance(reporter, Watcher):
            reporter.trainer = trainer
        return trainer

    return make


def everything(trainer: Trainer) -> dict[str, torch.Tensor]:
    weights, moments = get_state(trainer.model, trainer.optimizer, trainer.ema)
    return {name: tensor.clone() for name, tensor in (weights | moments).items()}


def assert_same_bits(ours: Trainer, theirs: Trainer) -> None:
    first, second = everything(ours), everything(theirs)
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []
    names = ("step", "epoch", "batch", "tokens", "early_stopping")
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]


def assert_close(ours: Trainer, theirs: Trainer) -> None:
    for name, parameter in ours.model.named_parameters():
        torch.testing.assert_close(
            parameter, theirs.model.get_parameter(name), rtol=0, atol=1e-5, msg=name
        )


def run_interrupted(make_trainer, name: str, stops, **settings) -> Trainer:
    for stop in stops:
        watcher = Watcher(stop, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(TrainingInterrupted, match=f"stopped at step {stop}"):
            make_trainer(name, reporter=watcher, **settings).run()
    trainer = make_trainer(name, **settings)
    assert trainer.step == stops[-1]
    trainer.run()
    return trainer


def test_it_learns_and_starts_from_scratch(make_trainer):
    trainer = make_trainer(max_steps=60, save_every=60, log_every=60, options=EXACT)
    before = trainer.validate().loss
    trainer.run()
    assert trainer.step == 60
    assert trainer.early_stopping.best_loss == trainer.validate().loss < before - 0.3
    assert trainer.is_finished


def test_one_step_is_adam_on_the_mean_loss(make_trainer):
    """The whole step by hand: the smoothed mean over tokens, equation 3, Adam."""
    trainer = make_trainer(options=EXACT, max_steps=1)
    model = make_trainer("other", EXACT).model
    batch = trainer.plan.read(trainer.plan.epoch(0)[0])
    trainer.run()
    loss = torch.nn.functional.cross_entropy(
        model(batch.src_ids, batch.tgt_ids).flatten(0, 1),
        batch.labels.flatten(),
        ignore_index=0,
        label_smoothing=0.1,
    )
    loss.backward()
    rate = 16**-0.5 * 20**-1.5
    torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9).step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(trainer.model.get_parameter(name), parameter, rtol=0, atol=1e-6)
    logged = next(e for e in read_json_lines(trainer.monitor.log.path) if e["event"] == "train")
    assert logged["loss"] == pytest.approx(loss.item(), abs=1e-5)
    assert logged["rate"] == pytest.approx(rate)


def test_cutting_into_pieces_changes_nothing(make_trainer):
    trainers = [make_trainer(f"cut{n}", EXACT, accumulation_steps=n) for n in (1, 2, 4)]
    for trainer in trainers:
        trainer.run()
    assert_close(trainers[0], trainers[1])
    assert_close(trainers[0], trainers[2])
    assert not torch.equal(
        trainers[0].model.output.weight, make_trainer("new", EXACT).model.output.weight
    )


def test_every_batch_of_every_epoch_has_its_turn(make_trainer):
    plan = make_trainer("plan").plan
    batches = [rows for number in range(3) for rows in plan.epoch(number)]
    sizes = [int(plan.tgt_lengths[rows].sum()) for rows in batches]
    steps = len(plan.epoch(0)) + len(plan.epoch(1)) + 2
    trainer = make_trainer(max_steps=steps, save_every=100)
    trainer.run()
    assert (trainer.epoch, trainer.batch) == (2, 2)
    assert trainer.tokens == sum(sizes[:steps])


def test_clipping_bounds_the_gradient(make_trainer):
    trainer = make_trainer(options=EXACT, max_steps=2, clip_norm=0.01)
    trainer.run()
    norm = torch.stack([p.grad.norm() for p in trainer.model.parameters()]).norm()
    assert norm.item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
@pytest.mark.parametrize("stops", [(3,), (8,), (1, 2, 6, 11), (12,)])
def test_resumed_is_bit_identical(make_trainer, stops, ema_decay):
    settings = {"ema_decay": ema_decay, "options": {**SIZES, "dropout": 0.3}}
    whole = make_trainer("whole", **settings)
    whole.run()
    assert whole.epoch == 1  # an epoch has ended on the way
    parts = run_interrupted(make_trainer, "parts", stops, **settings)
    assert_same_bits(whole, parts)
    paths = [trainer.store.directory / "step_12" / WEIGHTS_FILE for trainer in (whole, parts)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_resumed_at_every_batch_of_the_epoch_s_end(make_trainer):
    whole = make_trainer("whole")
    size = len(whole.plan.epoch(0))
    whole.run()
    for stop in (size - 1, size, size + 1):
        assert_same_bits(whole, run_interrupted(make_trainer, f"at{stop}", (stop,)))


def test_killed_without_a_word_is_bit_identical_too(make_trainer):
    whole = make_trainer("whole")
    whole.run()

    def die() -> None:
        raise MemoryError("killed")

    with pytest.raises(MemoryError, match="killed"):
        make_trainer("killed", reporter=Watcher(7, die)).run()
    resumed = make_trainer("killed")
    assert resumed.step == 4  # the last one that was saved
    resumed.run()
    assert_same_bits(whole, resumed)
    events = read_json_lines(resumed.monitor.log.path)
    reported = [(e["event"], e["step"]) for e in events if e["event"] in ("train", "validation")]
    expected = [
        (e["event"], e["step"])
        for e in read_json_lines(whole.monitor.log.path)
        if e["event"] in ("train", "validation")
    ]
    assert reported == expected
    assert [(e["event"], e["step"]) for e in events if e["event"] in ("started", "resumed")] == [
        ("started", 0),
        ("resumed", 4),
    ]


def test_a_damaged_checkpoint_costs_time_but_no_bits(make_trainer, caplog):
    whole = make_trainer("whole")
    whole.run()
    run = make_trainer("run", max_steps=8)
    run.run()
    path = run.store.directory / "step_8" / WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:-9])
    resumed = make_trainer("run")
    assert resumed.step == 4
    assert "step_8" in caplog.text
    resumed.run()
    assert_same_bits(whole, resumed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_explains_how_to_resume(make_trainer, number):
    before = signal.getsignal(number)
    watcher = Watcher(2, lambda: os.kill(os.getpid(), number))
    trainer = make_trainer(reporter=watcher)
    with pytest.raises(TrainingInterrupted) as raised:
        trainer.run()
    assert raised.value.exit_code == 128 + number
    assert "same command" in raised.value.hint
    assert trainer.store.steps() == [2]
    assert trainer.store.scheduled_steps() == []
    assert read_json_lines(trainer.monitor.log.path)[-1]["event"] == "interrupted"
    assert any("stopping" in text for text in watcher.printed)
    assert signal.getsignal(number) is before


def test_runs_outside_the_main_thread(make_trainer):
    trainer = make_trainer(max_steps=2)
    thread = threading.Thread(target=trainer.run)
    thread.start()
    thread.join()
    assert trainer.step == 2


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({}, "at step 7; the last good checkpoint is step_4"),  # by the loss
        (
            {"log_every": 100, "validate_every": 100},
            "at step 8; the last good checkpoint is step_4",  # by the weights
        ),
        (
            {"log_every": 100, "save_every": 100, "validate_every": 7, "patience": 1},
            "at step 7; there is no checkpoint",  # by dev
        ),
    ],
)
def test_nan_stops_and_names_the_last_good_checkpoint(make_trainer, settings, reported):
    calls: list[int] = []

    def spoil(model, forward):
        def spoilt(*ids):
            calls.extend([1] * model.training)
            if len(calls) == 7 and model.training:
                model.output.weight.data[5] = math.nan
            return forward(*ids)

        return spoilt

    trainer = make_trainer(forward=spoil, **settings)
    with pytest.raises(AttendoError, match=reported) as raised:
        trainer.run()
    assert "clip_norm" in raised.value.hint
    assert trainer.store.steps() in ([4], [])
    assert read_json_lines(trainer.monitor.log.path)[-1]["event"] == "diverged"
    if trainer.store.steps():
        assert all(bool(w.isfinite().all()) for w in trainer.store.load(4).weights.values())


def short_of_memory(limit: int, error: type[Exception] = torch.OutOfMemoryError):
    def wrap(model, forward):
        def limited(src_ids, tgt_ids):
            if model.training and src_ids.numel() > limit:
                raise error("can't allocate memory")
            return forward(src_ids, tgt_ids)

        return limited

    return wrap


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
def test_out_of_memory_halves_the_batch_and_is_reported_once(make_trainer, error):
    limit = BATCH_TOKENS * 2 // 3  # nearly every batch is too large, and no half of one
    watcher = Watcher()
    trainer = make_trainer("tight", EXACT, forward=short_of_memory(limit, error), reporter=watcher)
    trainer.run()
    assert trainer.step == 12
    assert trainer.batch_reader.num_micro_batches == 2
    assert [text for text in watcher.printed if "memory" in text] == [
        "out of memory: batches are now split into 2 micro-batches"
    ]
    halves = make_trainer("halves", EXACT, accumulation_steps=2)
    halves.run()
    assert_close(trainer, halves)
    assert make_trainer("tight", EXACT).batch_reader.num_micro_batches == 2  # a resumed run knows


def test_a_single_sentence_that_does_not_fit_is_reported(make_trainer):
    trainer = make_trainer(forward=short_of_memory(0))
    with pytest.raises(AttendoError, match="out of memory at step 0") as raised:
        trainer.run()
    assert "train.batch_tokens" in raised.value.hint


def test_other_errors_go_up(make_trainer):
    def wrap(model, forward):
        def broken(src_ids, tgt_ids):
            raise RuntimeError("shapes do not fit")

        return broken

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        make_trainer(forward=wrap).run()


@pytest.mark.parametrize("save_every", [2, 100])
def test_stops_when_dev_gets_no_better(make_trainer, monkeypatch, save_every):
    losses = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    trainer = make_trainer(validate_every=2, save_every=save_every, patience=2)
    monkeypatch.setattr(trainer, "validate", lambda: ValidationResult(next(losses), 0.5))
    trainer.run()
    assert (trainer.step, trainer.early_stopping.best_loss) == (8, 2.0)  # as good is no better
    assert trainer.is_finished
    again = make_trainer(validate_every=2, save_every=save_every, patience=2)
    assert again.is_finished
    assert_same_bits(trainer, again)
    if save_every == 2:
        assert again.store.load(4).progress["dev_loss"] == 2.0


def test_patience_begins_again_with_a_better_loss(make_trainer, monkeypatch):
    losses = iter([3.0, 3.5, 2.0, 2.5, 1.0, 1.5])
    trainer = make_trainer(validate_every=2, patience=2)
    monkeypatch.setattr(trainer, "validate", lambda: ValidationResult(next(losses), 0.5))
    trainer.run()
    assert (trainer.step, trainer.early_stopping.num_without_gain) == (12, 1)


def test_stopping_early_follows_the_metric_of_the_task(make_trainer, monkeypatch):
    losses, scores = iter([3.0, 3.5, 4.0, 4.5, 5.0]), iter([10.0, 20.0, 20.0, 15.0, 30.0])
    trainer = make_trainer(validate_every=2, patience=2, early_stopping_metric="chrf")
    monkeypatch.setattr(trainer, "validate", lambda: ValidationResult(next(losses), 0.5))
    monkeypatch.setattr(trainer, "after_validation", lambda *_: {"chrf": next(scores)})
    trainer.run()
    best = trainer.early_stopping
    assert (trainer.step, best.best_step, best.best_score) == (8, 4, 20.0)
    assert trainer.stop_reason == "patience"
    again = make_trainer(validate_every=2, patience=2, early_stopping_metric="chrf")
    assert again.early_stopping == best


def test_a_metric_that_the_task_does_not_measure_is_an_error(make_trainer):
    trainer = make_trainer(validate_every=2, early_stopping_metric="chrf")
    with pytest.raises(ConfigError, match="needs a translation task"):
        trainer.run()


def test_training_ends_when_its_time_is_over(make_trainer):
    trainer = make_trainer(max_steps=500, max_minutes=1e-9)
    trainer.run()
    assert (trainer.step, trainer.stop_reason) == (1, "max_minutes")
    assert make_trainer(max_steps=500, max_minutes=1e-9).is_finished


def test_more_steps_continue_from_the_end(make_trainer):
    make_trainer(max_steps=8).run()
    longer = make_trainer(max_steps=12)
    assert longer.step == 8
    longer.run()
    whole = make_trainer("whole")
    whole.run()
    assert_same_bits(whole, longer)


def test_nothing_is_done_when_all_is_done(make_trainer):
    make_trainer().run()
    again = make_trainer()
    stamps = {path: path.stat().st_mtime_ns for path in again.store.directory.rglob("*")}
    again.run()
    assert again.step == 12
    assert {path: path.stat().st_mtime_ns for path in again.store.directory.rglob("*")} == stamps


def test_validation_is_the_mean_over_tokens(make_trainer):
    trainer = make_trainer()
    found = trainer.validate()
    total = right = count = 0.0
    trainer.model.eval()
    for rows in trainer.dev.epoch(0):
        for row in rows:
            batch = trainer.dev.read(rows[rows == row])
            logits = trainer.model(batch.src_ids, batch.tgt_ids).log_softmax(-1)
            total -= logits.gather(-1, batch.labels.unsqueeze(-1)).sum().item()
            right += (logits.argmax(-1) == batch.labels).sum().item()
            count += batch.labels.numel()
    assert found.loss == pytest.approx(total / count, rel=1e-5)
    assert found.accuracy == pytest.approx(right / count)
    assert found.perplexity == pytest.approx(math.exp(found.loss))


def test_dev_is_optional(toy, tmp_path):
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    plan = BatchPlan(toy.prepared.train, batch_tokens=BATCH_TOKENS, seed=1)
    trainer = Trainer(model, plan, TrainConfig(max_steps=3, patience=1), tmp_path)
    trainer.run()
    assert trainer.step == 3
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["started", "train", "stopped"]


@pytest.mark.parametrize(
    ("flag", "width", "found"),
    [
        ("avx512_bf16", 256, torch.bfloat16),
        ("amx_bf16", 128, torch.bfloat16),
        ("avx512_bf16", 64, torch.float32),
        ("avx512_bf16", 0, torch.float32),
        ("avx2", 256, torch.float32),
    ],
)
def test_a_cpu_computes_in_halves_where_it_can_and_gains(monkeypatch, flag, width, found):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {flag: True})
    cpu = torch.device("cpu")
    assert resolve_precision("auto", cpu, packed_width=width) == found


@pytest.mark.parametrize(("major", "found"), [(7, torch.float32), (8, torch.bfloat16)])
def test_a_gpu_that_imitates_halves_does_not_gain(monkeypatch, major, found):
    about = SimpleNamespace(major=major)
    has = {"is_available": lambda: True, "current_device": lambda: 0}
    has |= {
        "get_device_properties": lambda _: about,
        "_check_bf16_tensor_supported": lambda _: True,
    }
    for name, reported in has.items():
        monkeypatch.setattr(torch.cuda, name, reported)
    assert resolve_precision("auto", torch.device("cuda")) == found


def test_precision():
    cpu = torch.device("cpu")
    assert resolve_precision("auto", cpu) == torch.float32
    assert resolve_precision("bfloat16", cpu) == torch.bfloat16
    assert resolve_precision("float32", cpu) == torch.float32


def test_bfloat16_trains_and_keeps_its_weights_in_single(make_trainer):
    trainer = make_trainer(precision="bfloat16", max_steps=4)
    trainer.run()
    assert {p.dtype for p in trainer.model.parameters()} == {torch.float32}
    full = make_trainer("full", max_steps=4)
    full.run()
    difference = (trainer.model.output.weight - full.model.output.weight).abs().max()
    assert 0 < difference < 0.05


def test_a_resumed_run_of_smaller_pieces_needs_no_recording(make_trainer, toy):
    """Batches of one shape are recorded on a GPU; pieces, after an out-of-memory, are not."""

    def make(name: str, **settings) -> Trainer:
        plan = PackedBatchPlan(
            toy.prepared.train, batch_tokens=BATCH_TOKENS, seed=1, has_fixed_shape=True
        )
        return make_trainer(name, plan=plan, max_steps=4, **settings)

    first = make("run", accumulation_steps=2)
    assert first.captured_step is None
    first.config = first.config.replace(max_steps=2)
    first.run()
    resumed = make("run")  # accumulation_steps may change; the checkpoint knows of two pieces
    assert resumed.captured_step is not None
    assert resumed.batch_reader.num_micro_batches == 2
    resumed.run()
    whole = make("whole", accumulation_steps=2)
    whole.run()
    ours, expected = everything(resumed), everything(whole)
    assert all(torch.equal(ours[name], expected[name]) for name in expected)
