from __future__ import annotations

import torch

from attendo.core.quantization import quantize_weights, restore_weights


def test_int8_weights_are_within_half_a_step_and_stable():
    weights = {"w": torch.randn(5, 7), "b": torch.randn(5), "zero": torch.zeros(2, 3)}
    stored = quantize_weights(weights)
    assert stored["w"].dtype == torch.int8
    assert stored["b"] is weights["b"]
    restored = restore_weights(stored)
    assert set(restored) == set(weights)
    step = stored["w.scale"][:, None]
    assert ((restored["w"] - weights["w"]).abs() <= 0.5001 * step).all()
    assert torch.equal(restored["zero"], weights["zero"])
    # Quantizing again, as CTranslate2 does, gives the same values.
    assert torch.equal(quantize_weights(restored)["w"], stored["w"])


def test_other_weights_stay_as_they_are():
    weights = {"a.scale": torch.ones(3), "w": torch.ones(2, 2).half()}
    restored = restore_weights(weights)
    assert set(restored) == set(weights)
    assert restored["w"] is weights["w"]
