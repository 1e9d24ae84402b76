"""Adam as in section 5.3, and its state by parameter name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.training.distributed import copy_sharded, full_tensor, reshard

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.training.averaging import Ema
    from attendo.training.config import TrainConfig

STATE_KEYS = ("exp_avg", "exp_avg_sq", "step")


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Return Adam for a model; the trainer sets its learning rate at every step."""
    return torch.optim.Adam(
        model.parameters(),
        lr=0.0,
        betas=(config.beta_1, config.beta_2),
        eps=config.epsilon,
        fused=not config.fsdp,
    )


def get_state(
    model: nn.Module, optimizer: torch.optim.Adam, ema: Ema | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights and the optimizer state by parameter name (a collective operation)."""
    reshard(model)
    weights = {name: full_tensor(p.detach()) for name, p in model.named_parameters()}
    optimizer_state = {
        f"{moment}.{name}": full_tensor(optimizer.state[p][moment])
        for name, p in model.named_parameters()
        for moment in STATE_KEYS
        if p in optimizer.state
    }
    if ema is not None:
        optimizer_state |= {f"ema.{name}": full_tensor(mean) for name, mean in ema.averages.items()}
    return weights, optimizer_state


def set_state(
    model: nn.Module,
    optimizer: torch.optim.Adam,
    ema: Ema | None,
    weights: dict[str, Tensor],
    optimizer_state: dict[str, Tensor],
) -> None:
    """Restore what `get_state` returned."""
    for name, parameter in model.named_parameters():
        copy_sharded(parameter.data, weights[name])
        if f"step.{name}" not in optimizer_state:  # a parameter that is not trained
            continue
        state = {}
        for moment in STATE_KEYS:
            value = optimizer_state[f"{moment}.{name}"]
            if moment == "step":  # only the fused kernel wants it on the device of the weights
                is_fused = optimizer.defaults["fused"]
                state[moment] = value.to(parameter.device) if is_fused else value
            else:
                state[moment] = torch.zeros_like(parameter.data)
                copy_sharded(state[moment], value)
        optimizer.state[parameter] = state
    if ema is not None:
        for name, mean in ema.averages.items():
            copy_sharded(mean, optimizer_state[f"ema.{name}"])
