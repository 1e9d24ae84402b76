from __future__ import annotations

import pytest
import torch
from torch import nn

from attendo.training.averaging import Ema, average_weights


def test_average_is_exact():
    states = [{"w": torch.randn(5, 3), "b": torch.randn(2)} for _ in range(7)]
    found = average_weights(iter(states))
    for name in ("w", "b"):
        exact = torch.stack([state[name].double() for state in states]).mean(0)
        assert found[name].dtype == torch.float32
        assert torch.equal(found[name], exact.float())


def test_average_loses_no_digits_to_order():
    values = [2.0**24, 1.0, 1.0, -(2.0**24)]
    assert average_weights({"w": torch.tensor([value])} for value in values)["w"].item() == 0.5


def test_average_of_one_is_itself_and_changes_nothing():
    state = {"w": torch.randn(3)}
    before = state["w"].clone()
    found = average_weights([state, state, state])["w"]
    assert torch.equal(average_weights([state])["w"], before)
    torch.testing.assert_close(found, before)
    assert torch.equal(state["w"], before)


def test_ema_follows_its_formula():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.0)
    ema = Ema(model, 0.5)
    mean = 0.0
    for step in range(1, 20):
        model.weight.data.fill_(float(step))
        ema.update(model, step)
        decay = min(0.5, step / (step + 9))
        mean = decay * mean + (1 - decay) * step
        assert ema.averages["weight"].item() == pytest.approx(mean, rel=1e-5)
    assert not ema.averages["weight"].requires_grad
    assert model.weight.item() == 19.0
