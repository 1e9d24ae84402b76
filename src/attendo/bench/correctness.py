"""Whether two implementations compute the same; otherwise their speeds are not comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.bench.timing import ModelWithLoss

if TYPE_CHECKING:
    from torch import nn

    from attendo.data.batching import Batch

LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 1e-3
"""Relative tolerance, in float32."""
BFLOAT16_TOLERANCE = 2e-3
"""Relative tolerance of a loss computed in bfloat16."""
SIZE_TOLERANCE = 0.02
"""Relative tolerance of the number of parameters, for a peer with its own weights."""


class GradientCheck(NamedTuple):
    """Results of a model on one batch, without dropout and in float32."""

    loss: float
    """The label-smoothed mean over tokens."""
    gradient_norm: float
    """The norm of the gradient over all parameters."""
    num_parameters: int


class Agreement(NamedTuple):
    """Whether a system agrees with ours, and how this was checked."""

    is_satisfied: bool
    text: str


def run_gradient_check(model: nn.Module, batch: Batch, device: torch.device) -> GradientCheck:
    """Run a batch forward and backward; the model is not changed."""
    was_training = model.training
    module = ModelWithLoss(model).to(device).eval()
    loss = module(*batch.to(device)) / batch.num_tokens
    parameters = [one for one in model.parameters() if one.requires_grad]
    gradients = torch.autograd.grad(loss, parameters)
    norm = torch.stack([one.double().square().sum() for one in gradients]).sum().sqrt()
    model.train(was_training)
    return GradientCheck(float(loss.detach()), float(norm), sum(one.numel() for one in parameters))


def compare_gradients(
    theirs: GradientCheck, ours: GradientCheck, *, has_our_weights: bool
) -> Agreement:
    """Compare a peer with ours: loss and gradient, or the size if it has its own weights."""
    if not has_our_weights:
        gap = abs(theirs.num_parameters / ours.num_parameters - 1)
        sizes = (
            f"{theirs.num_parameters / 1e6:.2f}M parameters, ours {ours.num_parameters / 1e6:.2f}M"
        )
        return Agreement(gap <= SIZE_TOLERANCE, f"own weights; {sizes}")
    loss_gap = abs(theirs.loss / ours.loss - 1)
    gradient_gap = abs(theirs.gradient_norm / ours.gradient_norm - 1)
    is_satisfied = loss_gap <= LOSS_TOLERANCE and gradient_gap <= GRADIENT_TOLERANCE
    if is_satisfied:
        text = f"same loss {_format_gap(loss_gap)}, same gradient {_format_gap(gradient_gap)}"
        return Agreement(True, text)
    return Agreement(
        False,
        f"loss {theirs.loss:.5f}, ours {ours.loss:.5f}; "
        f"gradient {theirs.gradient_norm:.5f}, ours {ours.gradient_norm:.5f}",
    )


def compare_loss(loss: float, reference_loss: float, precision: torch.dtype) -> Agreement:
    """Compare the trainer's loss with the plain model's."""
    gap = abs(loss / reference_loss - 1)
    limit = BFLOAT16_TOLERANCE if precision == torch.bfloat16 else LOSS_TOLERANCE
    if gap <= limit:
        return Agreement(True, f"the trainer's loss equals the plain model's {_format_gap(gap)}")
    return Agreement(
        False, f"the trainer's loss is {loss:.5f}, the plain model's {reference_loss:.5f}"
    )


def _format_gap(gap: float) -> str:
    return f"to {gap:.0e}" if gap else "exactly"
