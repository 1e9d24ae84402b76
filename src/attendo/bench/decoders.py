"""What decodes with the same weights: our search, the plain one beside it, and others' decoders.

Each takes source ids without padding and writes exactly as many tokens as a case asks for.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import torch

from attendo.bench.peers import Peer, build_marian
from attendo.bench.workload import Numbers
from attendo.bundle import Bundle
from attendo.data.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.decoding.beam import beam
from attendo.decoding.options import DecodingOptions, Symbols
from attendo.decoding.search import search
from attendo.decoding.walk import greedy

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.bench.config import Shape
    from attendo.data.tokenizer import Tokenizer
    from attendo.model.transformer import Transformer

SYMBOLS = Symbols(START_ID, END_ID, PAD_ID, UNK_ID)
UNWANTED = [PAD_ID, UNK_ID, START_ID]
"""Never written by us; others write them, like any token, unless told not to."""


class Case(NamedTuple):
    """One batch and one width of the beam."""

    shape: Shape
    beam_size: int

    @property
    def options(self) -> DecodingOptions:
        """Give what makes every translation exactly as long as asked for."""
        length = self.shape.tgt_length
        return DecodingOptions(beam_size=self.beam_size, min_length=length, max_length=length)


class Decoder(Protocol):
    """One way to decode."""

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Compute there, in this precision, from now on."""
        ...

    def write(self, src_ids: Tensor, case: Case, *, is_checked: bool = False) -> list[list[int]]:
        """Give the best translation of each source; where it is checked, without the unwanted."""
        ...


class OwnDecoder:
    """Our search, as the `Translator` calls it."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Move the model."""
        self.model.to(device, precision)

    def write(self, src_ids: Tensor, case: Case, *, is_checked: bool = False) -> list[list[int]]:  # noqa: ARG002
        """Search."""
        found = search(self.model, src_ids, SYMBOLS, case.options)
        return [one.hypotheses[0].ids for one in found]


class PlainDecoder(OwnDecoder):
    """The decoder that says what is right: step by step, by the model's own code."""

    def write(self, src_ids: Tensor, case: Case, *, is_checked: bool = False) -> list[list[int]]:  # noqa: ARG002
        """Search."""
        plain = greedy if case.beam_size == 1 else beam
        found = plain(self.model, src_ids, SYMBOLS, case.options)
        return [one.hypotheses[0].ids for one in found]


class MarianDecoder:
    """`generate` of Hugging Face."""

    def __init__(self, model: Transformer) -> None:
        self.core = build_marian(model).eval()

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Move the model."""
        self.core.to(device, precision)

    def write(self, src_ids: Tensor, case: Case, *, is_checked: bool = False) -> list[list[int]]:
        """Generate."""
        length = case.shape.tgt_length
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # it comments on its own options
            output = self.core.generate(
                src_ids,
                attention_mask=(src_ids != PAD_ID).long(),
                num_beams=case.beam_size,
                min_new_tokens=length,
                max_new_tokens=length,
                do_sample=False,
                **({"suppress_tokens": UNWANTED} if is_checked else {}),
            )
        return [row[1:].tolist() for row in output]


class CTranslate2Decoder:
    """CTranslate2, called directly; in float32 where it has not the precision asked for."""

    def __init__(self, model: Transformer) -> None:
        from attendo.translator.ctranslate2_spec import require, write

        self.library: Any = require()
        self.numbers = Numbers(model.config.vocab_size)
        with TemporaryDirectory(prefix="attendo-bench-", ignore_cleanup_errors=True) as name:
            write(Bundle(model, cast("Tokenizer", self.numbers), {}), Path(name))
            self.files = {path.name: path.read_bytes() for path in Path(name).iterdir()}
        self.runner: Any = None

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Open the model there."""
        wanted = str(precision).removeprefix("torch.")
        has_it = wanted in self.library.get_supported_compute_types(device.type)
        self.runner = self.library.Translator(
            "",
            files=self.files,
            device=device.type,
            compute_type=wanted if has_it else "float32",
            intra_threads=torch.get_num_threads(),
        )

    def write(self, src_ids: Tensor, case: Case, *, is_checked: bool = False) -> list[list[int]]:
        """Translate; it adds the end symbol of a source itself."""
        length = case.shape.tgt_length
        unwanted = [[piece] for piece in self.numbers.src_pieces(UNWANTED)]
        found = self.runner.translate_batch(
            [self.numbers.src_pieces(row) for row in src_ids[:, :-1].tolist()],
            beam_size=case.beam_size,
            min_decoding_length=length,
            max_decoding_length=length,
            suppress_sequences=unwanted if is_checked else None,
        )
        return [[int(piece) for piece in one.hypotheses[0]] for one in found]


DECODERS = (
    Peer("plain decoder", PlainDecoder, "attendo"),
    Peer("Hugging Face Marian", MarianDecoder, "transformers"),
    Peer("CTranslate2", CTranslate2Decoder, "ctranslate2"),
)
