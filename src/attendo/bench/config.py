"""Options of a benchmark, and the named model sizes."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator

from attendo.bench.report import dtype_name
from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.kernels.tf32 import supports_tf32, use_tf32
from attendo.model.presets import get_preset
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CPU_SENTENCES, GPU_SENTENCES = 120, 800
"""Default batch sizes on a CPU and on a GPU."""
SENTENCE_LENGTH = 32
GPU_STEPS, CPU_STEPS = 100, 6
GPU_ROUNDS, CPU_ROUNDS = 4, 3


class Size(NamedTuple):
    """One size of the Transformer."""

    options: dict[str, Any]
    vocab_size: int


SIZES = {
    "tiny": Size(get_preset("tiny").options, 10_000),
    "small": Size({**get_preset("small").options, "num_layers": 3}, 10_000),
    "base": Size(get_preset("base").options, 37_000),
    "big": Size(get_preset("big").options, 37_000),
}
"""Multi30k's 4+4 x 128 x 256, then 3+3 x 256 x 1024, and the paper's two."""


class Shape(NamedTuple):
    """A batch of sentences of equal length."""

    num_sentences: int
    src_length: int
    tgt_length: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form.

        >>> Shape.parse("800x32+40")
        Shape(num_sentences=800, src_length=32, tgt_length=40)
        """
        match = re.fullmatch(r"\s*(\d+)\s*x\s*(\d+)\s*\+\s*(\d+)\s*", text)
        numbers = [int(number) for number in match.groups()] if match else []
        if not numbers or min(numbers[0], *(length - 1 for length in numbers[1:])) < 1:
            raise ConfigError(
                message("'{text}' is not a batch", text=text),
                hint="write sentences x source + target tokens, e.g. 800x32+32; "
                "each side has at least 2 tokens, including the end symbol",
            )
        return cls(*numbers)

    def __str__(self) -> str:
        return f"{self.num_sentences} x {self.src_length} + {self.tgt_length} tokens"


class BenchConfig(Config):
    """What is measured; the defaults depend on the device."""

    size: str = "base"
    device: str = "auto"
    """cpu, cuda, or auto: the GPU if there is one."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """As for `attendo train`; for decoding, as for a `Translator`."""
    vocab_size: Annotated[int, Field(ge=8)] | None = None
    seed: int = 1
    peers: tuple[str, ...] | None = None
    """Names of the peers to measure; default: all that are installed."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        reasons = []
        if self.size not in SIZES:
            reasons.append(
                message(
                    "unknown size '{size}': {detail}",
                    size=self.size,
                    detail=suggest(self.size, SIZES),
                )
            )
        if self.device not in ("auto", "cpu") and not self.device.startswith("cuda"):
            reasons.append(
                message("unknown device '{device}': cpu, cuda or auto", device=self.device)
            )
        elif self.device.startswith("cuda") and not torch.cuda.is_available():
            reasons.append(message("device '{device}': PyTorch finds no GPU", device=self.device))
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def torch_device(self) -> torch.device:
        """Return the device."""
        if self.device != "auto":
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def actual_vocab_size(self) -> int:
        """Return the size of the vocabulary."""
        return self.vocab_size or SIZES[self.size].vocab_size

    def build_model(self, **changes: Any) -> Transformer:
        """Return the model with new weights."""
        return Transformer(self.actual_vocab_size, **{**SIZES[self.size].options, **changes})

    def _by_device(self, gpu: int, cpu: int) -> int:
        return gpu if self.torch_device.type == "cuda" else cpu


class TrainingBenchConfig(BenchConfig):
    """How training is timed: equal lengths, or the lengths of a real corpus."""

    batch: str | None = None
    """Sentences of equal length, e.g. 800x32+32."""
    corpus: tuple[Path, Path] | None = None
    """Two text files with the sentences of the batches."""
    batch_tokens: Count | None = None
    """For a corpus: tokens per batch on either side."""
    steps: Count | None = None
    """Timed steps, over all rounds."""
    rounds: Count | None = None
    """Rounds in which Attendo and a peer are timed one after the other."""
    compile: bool | None = None
    """Also measure the peers under `torch.compile`; default: only on a GPU, as compilation takes
    minutes on a CPU."""

    @model_validator(mode="after")
    def _check_batches(self) -> Self:
        if self.batch and self.corpus:
            reason = message("batch and corpus exclude each other: choose one")
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def shape(self) -> Shape:
        """Return the batch of equal lengths."""
        if self.batch is None:
            return Shape(
                self._by_device(GPU_SENTENCES, CPU_SENTENCES), SENTENCE_LENGTH, SENTENCE_LENGTH
            )
        return Shape.parse(self.batch)

    @property
    def token_budget(self) -> int:
        """Return the largest number of tokens on either side of a batch, padding included."""
        if self.corpus is not None:
            return (
                self.batch_tokens or self._by_device(GPU_SENTENCES, CPU_SENTENCES) * SENTENCE_LENGTH
            )
        return self.shape.num_sentences * max(self.shape.src_length, self.shape.tgt_length)

    @property
    def compiles_peers(self) -> bool:
        """Return whether compiled peers are measured."""
        return self.torch_device.type == "cuda" if self.compile is None else self.compile

    @property
    def num_rounds(self) -> int:
        """Return the number of rounds."""
        return self.rounds or self._by_device(GPU_ROUNDS, CPU_ROUNDS)

    @property
    def round_steps(self) -> int:
        """Return the number of timed steps per round."""
        steps = self.steps or self._by_device(GPU_STEPS, CPU_STEPS)
        return max(1, round(steps / self.num_rounds))


class ComputePrecision(NamedTuple):
    """The precision of a decoder."""

    dtype: torch.dtype
    is_tf32: bool = False

    def __str__(self) -> str:
        name = dtype_name(self.dtype)
        return f"{name}, products in TF32" if self.is_tf32 else name

    def activate(self) -> AbstractContextManager[None]:
        """Set this precision temporarily, for all decoders."""
        return use_tf32() if self.is_tf32 else nullcontext()


class DecodingBenchConfig(BenchConfig):
    """How decoding is timed: random weights, all sentences equally long."""

    batches: tuple[str, ...] | None = None
    """Sentences per batch, their tokens and the generated tokens, e.g. 512x32+32."""
    beam_sizes: tuple[Count, ...] = (1, 4)
    repeats: Count = 3

    @property
    def num_warmup(self) -> int:
        """Searches before timing: a GPU compiles kernels, then tunes, then captures them."""
        return self._by_device(3, 1)

    @property
    def compute_precision(self) -> ComputePrecision:
        """Return the precision."""
        if self.precision == "bfloat16":
            return ComputePrecision(torch.bfloat16)
        return ComputePrecision(
            torch.float32, is_tf32=self.precision == "auto" and supports_tf32(self.torch_device)
        )

    @property
    def shapes(self) -> list[Shape]:
        """Return the batches: one sentence, and many."""
        if self.batches is None:
            return [
                Shape(count, SENTENCE_LENGTH, SENTENCE_LENGTH)
                for count in (1, self._by_device(512, 16))
            ]
        return [Shape.parse(text) for text in self.batches]
