"""What an Apple GPU lacks is not used: CUDA and computations in float64.

There is none here. The CPU stands for it: every computation with a float64 tensor raises an error,
and so does every function of `torch.cuda`.
The fast paths for other devices are off, as they are on an Apple GPU.
"""

from __future__ import annotations

import pytest
import torch
import torch._dynamo  # before torch.cuda is replaced
from support.half_trained import draw_texts, save_half_trained
from torch.utils._python_dispatch import TorchDispatchMode

from attendo.bundle import load_bundle
from attendo.core import device as devices
from attendo.data.batching import Batch
from attendo.inspection import capture
from attendo.model import positional_encoding
from attendo.model.transformer import Transformer
from attendo.tasks.memory import device_memory
from attendo.text.tokenizer import PAD_ID, START_ID
from attendo.training import train_step
from attendo.training.config import TrainConfig
from attendo.training.distributed import ProcessGroup
from attendo.training.loss_module import LossModule
from attendo.training.optimizer import make_optimizer
from attendo.translator import Translator

MOVES = (
    "aten._local_scalar_dense", "aten._to_copy", "aten.alias", "aten.clone", "aten.detach",
    "aten.item", "aten.lift_fresh", "aten.resolve_", "aten.select", "aten.slice", "aten.to.",
    "aten.unbind", "aten.view",
)  # fmt: skip
"""Operations that compute nothing: results become float64 after they were moved to the CPU."""
CUDA_FUNCTIONS = (
    "CUDAGraph", "Event", "Stream", "current_stream", "device_count", "empty_cache",
    "get_device_capability", "get_device_properties", "graph", "is_bf16_supported",
    "mem_get_info", "set_device", "stream", "synchronize",
)  # fmt: skip
TEXTS = draw_texts(6, seed=4)


class NoFloat64(TorchDispatchMode):
    """Raise an error where an Apple GPU would."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        found = function(*arguments, **(keywords or {}))
        tensors = [one for one in (*arguments, found) if isinstance(one, torch.Tensor)]
        is_move = str(function).startswith(MOVES)
        if not is_move and any(one.dtype == torch.float64 for one in tensors):
            raise TypeError(f"{function} computes in float64")
        return found


@pytest.fixture
def apple(monkeypatch):
    def refuse(*_arguments, **_keywords):
        raise AssertionError("a function of CUDA was called")

    for name in CUDA_FUNCTIONS:
        monkeypatch.setattr(torch.cuda, name, refuse)
    for module in (devices, positional_encoding):
        monkeypatch.setattr(module, "WITHOUT_FLOAT64", ("mps", "cpu"))
    monkeypatch.setattr(Transformer, "supports_static_decoding", lambda _self, _length: False)
    return NoFloat64()


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "toy"
    save_half_trained(directory, toy.prepared.tokenizer)
    return directory


@pytest.fixture(scope="module")
def expected(folder):
    return Translator.load(folder, device="cpu")


def test_the_check_would_notice(apple):
    with apple, pytest.raises(TypeError, match="float64"):
        torch.ones(2, dtype=torch.float64).sum()
    with pytest.raises(AssertionError, match="CUDA"):
        torch.cuda.synchronize()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam_size": 1},
        {"n_best": 3, "no_repeat_ngram": 2, "min_length": 3},
        {"beam_size": 4, "num_groups": 2},
        {"required": ["KA"], "forbidden": ["MI"]},
        {"prefix": "LU"},
        {"confidence": True},
        {"trace": True},
        {"trace": True, "beam_size": 1},
        {"unk": "copy"},
        {"do_sample": True, "beam_size": 1, "seed": 1, "top_k": 3, "top_p": 0.9},
    ],
    ids=str,
)
def test_decoding(folder, expected, apple, options):
    wanted = [str(one) for one in expected.translate(TEXTS, **options)]
    with apple:
        translator = Translator.load(folder, device="cpu")
        assert [str(one) for one in translator.translate(TEXTS, **options)] == wanted


def test_inspection(expected, apple):
    with apple:
        record = capture(expected, TEXTS[0])
    assert record.weights


def test_a_training_step_and_a_validation(folder, apple):
    bundle = load_bundle(folder)
    src = torch.tensor([[4, 5, 6, 3], [7, 8, 3, PAD_ID]])
    labels = torch.tensor([[6, 5, 4, 3], [8, 7, 3, PAD_ID]])
    tgt = labels.roll(1, dims=1)
    tgt[:, 0] = START_ID
    batch, processes = Batch(src, tgt, labels), ProcessGroup("cpu")
    optimizer = make_optimizer(bundle.model, TrainConfig())
    optimizer.param_groups[0]["lr"] = 1e-3
    with apple:
        options = {"precision": torch.float32, "processes": processes}
        before = train_step.validate(bundle.model, [batch], **options)
        for _ in range(20):
            optimizer.zero_grad()
            train_step.accumulate_gradients(
                LossModule(bundle.model, smoothing=0.1), [batch], num_tokens=7, **options
            )
            optimizer.step()
        after = train_step.validate(bundle.model, [batch], **options)
    assert after.loss < before.loss


def test_precision_memory_and_compilation_of_another_gpu():
    apple_gpu = torch.device("mps")
    assert train_step.resolve_precision("auto", apple_gpu) == torch.float32
    assert not train_step.should_compile(torch.nn.Linear(1, 1), TrainConfig(), apple_gpu)
    assert device_memory(apple_gpu) == device_memory(torch.device("cpu"))
    assert devices.accurate_dtype(apple_gpu) == torch.float32
