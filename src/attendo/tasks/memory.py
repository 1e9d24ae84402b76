"""Checks before training that the model fits into the memory of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.architectures.registry import SERIES_KIND, get_model_kind
from attendo.core.errors import ConfigError
from attendo.core.hardware import memory_bytes
from attendo.core.message import message
from attendo.model.initialization import no_init_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.architectures.registry import Model
    from attendo.tasks.config import RunConfig
    from attendo.tasks.task import Task

    ModelBuilder = Callable[[RunConfig], Model]

GIB = 2**30
STATE_BYTES_PER_PARAMETER = 16
"""A weight, its gradient and the two moments of Adam, in float32."""
ACTIVATIONS_PER_LAYER = 8
"""Numbers of width d_model that a layer keeps per token for the backward pass, at least."""
SMALLEST_VOCABULARY = 8
LAYER_COUNTS = ("num_layers", "num_decoder_layers")


def check_model_size(config: RunConfig, device: torch.device) -> None:
    """Raise if the layers alone do not fit: before the data is prepared, without its vocabulary."""
    _check_memory(config, _build_with_smallest_vocabulary, device, num_tokens=0)


def check_memory(task: Task, device: torch.device) -> None:
    """Raise if training the model of a task needs more memory than the machine has.

    On a GPU the batch does not count: it is split into micro-batches when memory runs out.
    """
    config, facts = task.config, task.data_facts()
    batch_tokens = min(config.train.batch_tokens, facts.num_tokens)
    num_tokens = batch_tokens // config.train.accumulation_steps if device.type == "cpu" else 0

    def build(variant: RunConfig) -> Model:
        return task.with_config(variant).build_model()

    _check_memory(config, build, device, num_tokens=num_tokens)


def count_parameters(config: RunConfig, build: ModelBuilder) -> int:
    """Return the number of parameters without allocating them.

    Of a deep model only three layers are built: each further one has as many parameters.
    """
    layers = _layer_counts(config)

    def count(counts: dict[str, int]) -> int:
        variant = config.with_settings({f"model.{name}": value for name, value in counts.items()})
        with torch.device("meta"), no_init_weights():
            return build(variant).num_parameters()

    few = {name: min(value, 2) for name, value in layers.items()}
    total = base = count(few)
    for name, value in layers.items():
        if value > 2:
            total += (value - 2) * (count({**few, name: 3}) - base)
    return total


def _check_memory(
    config: RunConfig, build: ModelBuilder, device: torch.device, *, num_tokens: int
) -> None:
    available = device_memory(device)
    if available is None:
        return
    try:
        num_parameters = count_parameters(config, build)
    except RuntimeError as error:  # a matrix with more bytes than PyTorch can count
        raise ConfigError(
            message("the model is too large: {detail}", detail=str(error).split("\n")[0]),
            hint="choose a smaller --preset, fewer layers or a smaller d_model",
        ) from None
    state_bytes = num_parameters * STATE_BYTES_PER_PARAMETER
    if config.train.fsdp:
        state_bytes //= max(torch.cuda.device_count(), 1)
    layers = _layer_counts(config)
    num_layers = layers.get("num_layers", 1) + layers.get("num_decoder_layers", 0)
    width = _option(config, "d_model")
    activation_bytes = 4 * num_tokens * num_layers * ACTIVATIONS_PER_LAYER * width
    if state_bytes + activation_bytes <= available:
        return
    if state_bytes > available:
        hint = "choose a smaller --preset, fewer layers or a smaller d_model"
    else:
        hint = "decrease train.batch_tokens, or increase train.accumulation_steps"
    raise ConfigError(
        message(
            "training this model of {count} parameters needs at least {needed} GiB of memory, "
            "{device} has {available} GiB",
            count=f"{num_parameters:,}",
            needed=f"{(state_bytes + activation_bytes) / GIB:,.1f}",
            device=message("the GPU") if device.type == "cuda" else message("this machine"),
            available=f"{available / GIB:,.1f}",
        ),
        hint=hint,
    )


def device_memory(device: torch.device) -> int | None:
    """Return the bytes of memory of a device, or None if they are not known."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    has_own = device.type not in ("cpu", "mps")  # an Apple GPU uses the memory of the machine
    return None if has_own else memory_bytes()


def _build_with_smallest_vocabulary(config: RunConfig) -> Model:
    if config.series is not None:
        return SERIES_KIND.model_class(**config.model.options)
    kind = get_model_kind(config.model.kind)
    return kind.model_class(vocab_size=SMALLEST_VOCABULARY, **config.model.options)


def _option(config: RunConfig, name: str) -> Any:
    fields = get_model_kind(config.model.kind).config_class.model_fields
    default = fields[name].default if name in fields else None
    return config.model.options.get(name, default)


def _layer_counts(config: RunConfig) -> dict[str, int]:
    """Return the options that are numbers of layers."""
    counts = {name: _option(config, name) for name in LAYER_COUNTS}
    return {name: count for name, count in counts.items() if count}
