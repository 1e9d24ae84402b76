"""The settings that follow from data and machine."""

from __future__ import annotations

import pytest
import torch

from attendo.core.errors import ConfigError
from attendo.tasks.auto_settings import _find_machine
from attendo.tasks.config import RunConfig
from attendo.tasks.planner import (
    ROWS,
    DataFacts,
    Machine,
    apply_plan,
    budget_error,
    describe_plan,
    expectation,
    find_open_settings,
    fit_steps,
    smaller_models,
    steps_per_epoch,
)
from attendo.tasks.request import parse_minutes
from attendo.training.distributed import ProcessGroup

CPU, GPU = Machine(has_gpu=False, num_cores=2), Machine(has_gpu=True, num_cores=16)
DATA = {"corpora": [{"src": "a.en", "tgt": "a.fr"}]}


def make_config(model=None, train=None, **plan) -> RunConfig:
    given = {"data": DATA, "model": model or {}, "train": train or {}}
    return RunConfig(**given, plan={"auto": find_open_settings(given), **plan})


def facts_of(num_pairs: int) -> DataFacts:
    return DataFacts(num_pairs, 10 * num_pairs)


def test_more_data_gets_a_larger_model_and_fewer_epochs():
    sizes = [2_000, 10_000, 150_000, 1_000_000, 10_000_000]
    plans = [apply_plan(make_config(), facts_of(size), GPU) for size in sizes]
    epochs = [
        plan.train.max_steps / steps_per_epoch(plan, facts_of(size))
        for plan, size in zip(plans, sizes, strict=True)
    ]
    widths = [plan.model.options.get("d_model", 512) for plan in plans]
    batches = [plan.train.batch_tokens for plan in plans]
    assert widths == sorted(widths)
    assert batches == sorted(batches)
    assert epochs[1:] == sorted(epochs[1:], reverse=True)
    assert plans[0].train.early_stopping_metric == "chrf"
    assert plans[0].train.averages_best


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("machine", [CPU, GPU])
@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_every_row_is_a_valid_config(row, machine, quality):
    num_pairs = 9_000_000 if row is ROWS[-1] else int(row.max_examples)
    plan = apply_plan(make_config(quality=quality), facts_of(num_pairs), machine)
    assert plan.model.preset == row.preset
    assert plan.train.warmup_steps < plan.train.max_steps
    assert plan.train.save_every <= plan.train.max_steps // 10
    remainder = plan.train.max_steps % plan.train.save_every or plan.train.save_every
    assert remainder > plan.train.save_every // 2  # else almost a copy


def test_a_cpu_gets_a_smaller_model_than_a_gpu():
    cpu, gpu = (apply_plan(make_config(), facts_of(10_000), machine) for machine in (CPU, GPU))
    assert cpu.model.options["num_layers"] < gpu.model.options["num_layers"]


def test_settings_that_are_given_stay():
    given = {"max_steps": 77, "batch_tokens": 512, "patience": 3}
    plan = apply_plan(make_config({"preset": "tiny"}, given), facts_of(10_000), CPU)
    assert {name: getattr(plan.train, name) for name in given} == given
    assert plan.model.options["d_model"] == 128
    assert "norm" not in plan.model.overrides
    assert plan.train.warmup_steps == 8  # follows from the steps


def test_a_learning_rate_that_is_given_is_not_mixed_with_another_schedule():
    plan = apply_plan(make_config(train={"lr_scale": 2.0}), facts_of(10_000), CPU)
    assert (plan.train.schedule, plan.train.warmup_steps) == ("paper", 4000)


def test_the_rate_is_the_papers_for_the_papers_normalization():
    rates = {
        preset: apply_plan(make_config({"preset": preset}), facts_of(10_000), CPU).train.peak_lr
        for preset in ("tiny", "base")
    }
    assert rates == {"tiny": 0.0014, "base": 0.0007}
    assert apply_plan(make_config(), facts_of(10_000), CPU).train.peak_lr == 0.0015


def test_a_recipe_is_complete():
    assert find_open_settings({"train": {"max_steps": 9}}, is_recipe=True) == ()


def test_fine_tuning_is_short_and_careful():
    fresh = apply_plan(make_config(), facts_of(10_000), GPU)
    model = {"init_from": "models/en-de", "d_model": 256, "norm": "pre"}
    tuned = apply_plan(make_config(model), facts_of(10_000), GPU)
    assert tuned.train.max_steps < fresh.train.max_steps / 2
    assert tuned.train.peak_lr < fresh.train.peak_lr / 2
    assert tuned.model.options["norm"] == "pre"


def test_other_tasks_stop_on_the_loss():
    facts = DataFacts(10_000, 100_000, task="text")
    assert apply_plan(make_config(), facts, CPU).train.early_stopping_metric == "loss"


@pytest.mark.parametrize("kind", ["rnn-seq2seq", "rnn-attention", "conv-s2s", "encoder", "decoder"])
def test_every_architecture_gets_a_valid_plan(kind):
    plan = apply_plan(make_config({"kind": kind}), facts_of(10_000), CPU)
    assert plan.model.kind == kind


def test_a_budget_shortens_training_or_takes_a_smaller_model():
    facts = facts_of(10_000)
    config = apply_plan(make_config(budget_minutes=5.0), facts, CPU)
    assert fit_steps(config, facts, 0.001).train.max_steps == config.train.max_steps
    shorter = fit_steps(config, facts, 0.3)
    assert shorter.train.max_steps == 850  # 85 % of 300 seconds
    assert shorter.train.warmup_steps == 85
    assert fit_steps(config, facts, 30.0) is None
    late = fit_steps(config, facts, 0.3, elapsed=60.0)  # the data took a minute
    assert late.train.max_steps == 680  # 85 % of 240 seconds
    plan = config.plan.replace(auto=(*config.plan.auto, "train.max_minutes"))
    timed = fit_steps(config.replace(plan=plan), facts, 0.3, elapsed=60.0)
    assert timed.train.max_minutes == 4.0
    assert fit_steps(config, facts, 0.3, elapsed=301.0) is None
    assert "--budget 92m" in budget_error(config, facts, 30.0, elapsed=60.0).hint
    sizes = [smaller.model.options for smaller in smaller_models(config)]
    assert [size["d_model"] for size in sizes] == [128, 128]
    assert smaller_models(make_config({"preset": "base"})) == []
    error = budget_error(config, facts, 30.0)
    assert "within 5 minutes" in str(error)
    assert "3 epochs of the smallest model" in str(error)
    assert "--budget 91m" in error.hint
    short = budget_error(make_config(budget_minutes=1 / 60), facts, 0.1)
    assert "within 1 second here" in str(short)
    assert "--budget 10s" in short.hint


def test_a_model_that_is_given_is_not_called_the_smallest_one():
    facts = facts_of(10_000)
    given = apply_plan(make_config({"preset": "base"}, budget_minutes=5.0), facts, CPU)
    assert fit_steps(given, facts, 30.0) is None
    error = budget_error(given, facts, 30.0)
    assert "3 epochs of this model" in str(error)
    assert "leave out --preset" in error.hint
    tuned = apply_plan(make_config({"init_from": "m"}, budget_minutes=5.0), facts, CPU)
    assert "--preset" not in budget_error(tuned, facts, 30.0).hint


def test_the_threads_of_a_run_are_its_cores(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    one = _find_machine(ProcessGroup("cpu"))
    assert one == Machine(has_gpu=False, num_cores=1)
    facts = facts_of(10_000)
    plan = apply_plan(make_config(), facts, one)
    assert describe_plan(plan, facts, one)[0].endswith("and 1 CPU core:")


def test_the_same_command_resumes_with_the_settings_chosen_first():
    stored = apply_plan(make_config(), facts_of(10_000), GPU)
    asked = make_config()
    assert asked.differences(stored) == []
    resumed = asked.resume_plan(stored)
    assert resumed == stored
    assert make_config(train={"batch_tokens": 9}).differences(stored) != []
    assert make_config(budget_minutes=3.0).differences(stored) != []


def test_the_config_of_a_run_resumes_it_and_so_does_its_first_command():
    stored = apply_plan(make_config(quality="fast"), facts_of(10_000), GPU)
    complete = stored.replace(plan={})  # as read from config.json: nothing is left open
    assert complete.differences(stored) == []
    resumed = complete.resume_plan(stored)
    assert resumed == stored
    assert make_config(quality="fast").differences(resumed) == []
    larger = stored.train.replace(batch_tokens=2 * stored.train.batch_tokens)
    assert complete.replace(train=larger).differences(stored) != []


def test_what_was_chosen_is_described():
    facts = facts_of(10_000)
    plan = apply_plan(make_config(), facts, CPU)
    text = "\n".join(describe_plan(plan, facts, CPU))
    assert "10,000" in text
    assert "2 CPU cores" in text
    assert f"{plan.train.max_steps:,} steps" in text
    assert expectation(10_000) in text
    assert expectation(10_000) != expectation(100_000) != expectation(1_000_000)


def test_a_budget_that_is_short_promises_little():
    facts = facts_of(10_000)
    config = apply_plan(make_config(budget_minutes=60.0), facts, CPU)
    usual = "\n".join(describe_plan(fit_steps(config, facts, 0.1), facts, CPU))
    assert expectation(10_000) in usual
    shortened = "\n".join(describe_plan(fit_steps(config, facts, 6.0), facts, CPU))
    assert "enough for 9.9 of 50 epochs: expect little" in shortened
    assert expectation(10_000) not in shortened


def test_bug_the_rate_that_is_printed_must_be_that_of_the_schedule():
    facts = facts_of(10_000)
    plan = apply_plan(make_config(train={"lr_scale": 10.0}), facts, CPU)
    rate = 10 * (256 * 4000) ** -0.5  # the paper's schedule, with its warm-up
    assert f"learning rate {rate:.3g}" in "\n".join(describe_plan(plan, facts, CPU))


def test_a_duration_has_units():
    assert parse_minutes("1h 30m") == 90
    for text in ("", "soon", "-5m", "5x", "0"):
        with pytest.raises(ConfigError, match="is not a duration"):
            parse_minutes(text)
