from __future__ import annotations

import torch
from torch import nn

from attendo.training.averaging import Ema
from attendo.training.config import TrainConfig
from attendo.training.optimizer import get_state, make_optimizer, set_state

CONFIG = TrainConfig(beta_1=0.8, beta_2=0.9, epsilon=1e-6)


def make(rate: float = 0.1):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = make_optimizer(model, CONFIG)
    optimizer.param_groups[0]["lr"] = rate
    return model, optimizer


def step(model, optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()


def test_adam_takes_its_settings_from_the_config():
    _, optimizer = make()
    group = optimizer.param_groups[0]
    assert (group["betas"], group["eps"]) == ((0.8, 0.9), 1e-6)
    assert make_optimizer(nn.Linear(1, 1), TrainConfig()).defaults["betas"] == (0.9, 0.98)


def test_state_comes_back_bit_for_bit():
    model, optimizer = make()
    ema = Ema(model, 0.9)
    for number in (1, 2, 3):
        step(model, optimizer)
        ema.update(model, number)
    weights, moments = get_state(model, optimizer, ema)
    weights, moments = ({n: t.clone() for n, t in d.items()} for d in (weights, moments))
    assert {name.split(".")[0] for name in moments} == {"exp_avg", "exp_avg_sq", "step", "ema"}

    other, second = make()
    second_ema = Ema(other, 0.9)
    set_state(other, second, second_ema, weights, moments)
    for number in (4, 5):
        for pair, mean in (((model, optimizer), ema), ((other, second), second_ema)):
            step(*pair)
            mean.update(pair[0], number)
    for ours, theirs in zip(
        get_state(model, optimizer, ema), get_state(other, second, second_ema), strict=True
    ):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_parameter_that_is_not_trained_is_skipped():
    model, optimizer = make()
    model[0].weight.requires_grad_(False)
    step(model, optimizer)
    state = get_state(model, optimizer, None)
    assert "exp_avg.0.weight" not in state[1]
    other, second = make()
    set_state(other, second, None, *state)
    assert torch.equal(other[0].weight, model[0].weight)
    assert other[0].weight not in second.state
