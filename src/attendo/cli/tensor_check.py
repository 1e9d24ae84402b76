"""Checks of `attendo doctor --tensors`: matrix products, and both attention paths."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from attendo.core.device import default_device, synchronize
from attendo.core.message import message
from attendo.core.seeding import seed_everything
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.core.hardware import SystemInfo

TOLERANCE = 1e-4


def check_tensors(hardware: SystemInfo) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return facts that need PyTorch, and problems as (what, hint)."""
    has_cuda = torch.cuda.is_available()
    device = torch.device(default_device())
    problems = []
    if hardware.gpus and not has_cuda:
        problems.append(
            (
                message(
                    "this PyTorch ({version}) cannot use the {gpu}",
                    version=torch.__version__,
                    gpu=hardware.gpus[0],
                ),
                "install a PyTorch build for your CUDA version",
            )
        )
    difference = attention_path_difference(device)
    if not difference < TOLERANCE:
        problems.append(
            (
                message(
                    "fused and explicit attention differ by {difference:.1e} on {device}",
                    difference=difference,
                    device=device,
                ),
                "report this with the output of attendo doctor --json --tensors",
            )
        )
    facts = {
        "torch threads": str(torch.get_num_threads()),
        "torch cuda": torch.version.cuda or "not built in",
        "torch device": torch.cuda.get_device_name() if has_cuda else device.type,
        "matrix product": f"{matmul_tflops(device):.2f} TFLOP/s in float32",
        "fused = explicit": f"largest difference {difference:.1e}",
    }
    return facts, problems


def attention_path_difference(device: torch.device) -> float:
    """Return the largest difference of the logits between fused and explicit attention."""
    seed_everything(0)
    model = Transformer.from_preset("tiny", vocab_size=100).to(device).eval()
    src_ids = torch.randint(1, 100, (4, 12), device=device)
    src_ids[0, 6:] = 0
    tgt_ids = torch.randint(1, 100, (4, 9), device=device)
    with torch.inference_mode():
        fused = model(src_ids, tgt_ids)
        explicit = model.explain(src_ids, tgt_ids).logits
    return float((fused - explicit).abs().max())


def matmul_tflops(device: torch.device, size: int = 1024, repeats: int = 10) -> float:
    """Return the speed of a float32 matrix product, in TFLOP/s."""
    left, right = (torch.randn(size, size, device=device) for _ in range(2))
    left @ right
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        left @ right
    synchronize(device)
    return 2 * size**3 * repeats / (time.perf_counter() - start) / 1e12
