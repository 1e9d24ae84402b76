from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.data.batching import Batch
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.train_step import accumulate_gradients

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


def gradients_of(rdrop_weight: float, *, dropout: float) -> tuple[float, list[torch.Tensor]]:
    torch.manual_seed(1)
    model = Transformer(vocab_size=11, dropout=dropout, **SIZES).double()
    ids = torch.randint(4, 11, (3, 5))
    batch = Batch(ids, ids.roll(1, 1), ids.flip(1).masked_fill(ids.eq(7), 0))
    torch.manual_seed(2)
    loss = accumulate_gradients(
        LossModule(model, smoothing=0.1, rdrop_weight=rdrop_weight),
        [batch],
        num_tokens=batch.num_tokens,
        precision=torch.float32,
        processes=ProcessGroup(),
    )
    return float(loss), [parameter.grad for parameter in model.parameters()]


def test_two_readings_without_dropout_teach_what_one_does():
    (loss, plain), (again, twice) = gradients_of(0.0, dropout=0), gradients_of(3.0, dropout=0)
    assert again == pytest.approx(loss, rel=1e-5)
    for ours, expected in zip(twice, plain, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_rdrop_weight_scales_the_divergence_of_two_passes():
    (_, weak), (_, strong) = gradients_of(0.5, dropout=0.3), gradients_of(5.0, dropout=0.3)
    (_, least) = gradients_of(1e-6, dropout=0.3)
    half = [(one - base) * 10 for one, base in zip(weak, least, strict=True)]
    full = [one - base for one, base in zip(strong, least, strict=True)]
    assert any(float(part.abs().max()) > 1e-3 for part in full)
    for ours, expected in zip(half, full, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-2, atol=1e-4)
