"""Numbers that must not move: the logits of a model whose weights come from a formula."""

from __future__ import annotations

from math import pi

import pytest
import torch

SRC_IDS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
TGT_IDS = torch.tensor([[1, 10, 11], [1, 12, 0]])
GOLDEN = {
    ("post", "interleaved"): [
        0.335967,
        -0.590815,
        -0.487011,
        0.466309,
        0.067691,
        0.722322,
        0.116972,
        0.251819,
    ],
    ("post", "halves"): [
        0.336001,
        -0.591036,
        -0.487101,
        0.466507,
        0.067627,
        0.722705,
        0.117134,
        0.252116,
    ],
    ("pre", "interleaved"): [
        0.095520,
        -0.896925,
        -0.324822,
        0.813883,
        0.317902,
        0.842952,
        -0.102400,
        0.386735,
    ],
    ("pre", "halves"): [
        0.097529,
        -0.890333,
        -0.325145,
        0.807209,
        0.319084,
        0.841920,
        -0.103845,
        0.386232,
    ],
}


def fill(module: torch.nn.Module, scale: float = 0.3) -> None:
    """Set every parameter to values of a sine, each entry another."""
    start = 0
    with torch.no_grad():
        for parameter in module.parameters():
            positions = torch.arange(start, start + parameter.numel(), dtype=torch.float64)
            parameter.copy_((scale * torch.sin(positions * pi * 0.7213)).view_as(parameter))
            start += parameter.numel()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_logits_do_not_move(make_model, norm, layout):
    model = make_model(torch.float64, norm=norm, position_layout=layout)
    fill(model)
    logits = model(SRC_IDS, TGT_IDS)
    seen = [*logits[0, 0, :4].tolist(), *logits[1, 1, -3:].tolist(), logits.square().mean().item()]
    assert seen == pytest.approx(GOLDEN[norm, layout], abs=1e-6)
