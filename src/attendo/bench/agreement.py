"""Whether two implementations compute the same: without that their speeds say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.bench.runners import Pupil

if TYPE_CHECKING:
    from torch import nn

    from attendo.data.batching import Batch

LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 1e-3
"""Relative, in float32."""
HALF_TOLERANCE = 2e-3
"""Relative, of a loss that was computed in bfloat16."""
SIZE_TOLERANCE = 0.02
"""How far a peer with weights of its own may be from our number of parameters."""


class Teaching(NamedTuple):
    """What a model makes of one batch, without dropout and in float32."""

    loss: float
    """The mean over tokens, smoothed."""
    gradient: float
    """The length of the gradient over all parameters."""
    num_parameters: int


class Agreement(NamedTuple):
    """Whether a system does what ours does, and how that was seen."""

    is_met: bool
    text: str


def examine(model: nn.Module, batch: Batch, device: torch.device) -> Teaching:
    """Run a batch forward and backward; the model stays as it was."""
    was_training = model.training
    pupil = Pupil(model).to(device).eval()
    loss = pupil(*batch.to(device)) / batch.num_tokens
    parameters = [one for one in model.parameters() if one.requires_grad]
    gradients = torch.autograd.grad(loss, parameters)
    length = torch.stack([one.double().square().sum() for one in gradients]).sum().sqrt()
    model.train(was_training)
    return Teaching(float(loss.detach()), float(length), sum(one.numel() for one in parameters))


def compare(found: Teaching, ours: Teaching, *, has_our_weights: bool) -> Agreement:
    """Hold a peer beside ours: loss and gradient, or its size where its weights are its own."""
    if not has_our_weights:
        gap = abs(found.num_parameters / ours.num_parameters - 1)
        sizes = (
            f"{found.num_parameters / 1e6:.2f}M parameters, ours {ours.num_parameters / 1e6:.2f}M"
        )
        return Agreement(gap <= SIZE_TOLERANCE, f"own weights; {sizes}")
    loss_gap = abs(found.loss / ours.loss - 1)
    gradient_gap = abs(found.gradient / ours.gradient - 1)
    is_met = loss_gap <= LOSS_TOLERANCE and gradient_gap <= GRADIENT_TOLERANCE
    if is_met:
        text = f"same loss {_name_gap(loss_gap)}, same gradient {_name_gap(gradient_gap)}"
        return Agreement(True, text)
    return Agreement(
        False,
        f"loss {found.loss:.5f}, ours {ours.loss:.5f}; "
        f"gradient {found.gradient:.5f}, ours {ours.gradient:.5f}",
    )


def compare_loss(found: float, plain: float, precision: torch.dtype) -> Agreement:
    """Hold what the trainer reports beside the plain model's loss."""
    gap = abs(found / plain - 1)
    limit = HALF_TOLERANCE if precision == torch.bfloat16 else LOSS_TOLERANCE
    if gap <= limit:
        return Agreement(True, f"the trainer's loss is the plain model's {_name_gap(gap)}")
    return Agreement(False, f"the trainer's loss is {found:.5f}, the plain model's {plain:.5f}")


def _name_gap(gap: float) -> str:
    return f"to {gap:.0e}" if gap else "exactly"
