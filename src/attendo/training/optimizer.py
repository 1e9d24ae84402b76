"""Adam as in section 5.3, its rate by step, and its state by parameter name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.training import schedule
from attendo.training.distributed import fill, gather, spread_again

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.training.averaging import Ema
    from attendo.training.config import TrainConfig

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Make Adam; its rate is set at every step."""
    return torch.optim.Adam(
        model.parameters(),
        lr=0.0,
        betas=(config.beta_1, config.beta_2),
        eps=config.epsilon,
        fused=not config.shard,
    )


def rate_at(step: int, config: TrainConfig, *, d_model: int) -> float:
    """Give the learning rate of a step, counted from 1."""
    match config.schedule:
        case "paper":
            return schedule.paper(
                step, d_model=d_model, warmup_steps=config.warmup_steps, scale=config.rate_scale
            )
        case "inverse_sqrt":
            return schedule.inverse_sqrt(
                step, peak=config.peak_rate, warmup_steps=config.warmup_steps
            )
        case "cosine":
            return schedule.cosine(
                step,
                peak=config.peak_rate,
                warmup_steps=config.warmup_steps,
                max_steps=config.max_steps,
            )


def get_state(
    model: nn.Module, optimizer: torch.optim.Adam, ema: Ema | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Give the weights, and the optimiser's moments by parameter name (all processes must call)."""
    spread_again(model)
    weights = {name: gather(p.detach()) for name, p in model.named_parameters()}
    moments = {
        f"{moment}.{name}": gather(optimizer.state[p][moment])
        for name, p in model.named_parameters()
        for moment in MOMENTS
        if p in optimizer.state
    }
    if ema is not None:
        moments |= {f"ema.{name}": gather(mean) for name, mean in ema.means.items()}
    return weights, moments


def set_state(
    model: nn.Module,
    optimizer: torch.optim.Adam,
    ema: Ema | None,
    weights: dict[str, Tensor],
    moments: dict[str, Tensor],
) -> None:
    """Put back what `get_state` gave."""
    for name, parameter in model.named_parameters():
        fill(parameter.data, weights[name])
        if f"step.{name}" not in moments:  # a parameter that is not trained
            continue
        state = {}
        for moment in MOMENTS:
            whole = moments[f"{moment}.{name}"]
            if moment == "step":  # lies beside the weights for the fused kernel alone
                is_fused = optimizer.defaults["fused"]
                state[moment] = whole.to(parameter.device) if is_fused else whole
            else:
                state[moment] = torch.zeros_like(parameter.data)
                fill(state[moment], whole)
        optimizer.state[parameter] = state
    if ema is not None:
        for name, mean in ema.means.items():
            fill(mean, moments[f"ema.{name}"])
