"""What decodes with the same weights: our search, the plain one beside it, and others' decoders.

Each takes source ids without padding and writes exactly as many tokens as a case asks for.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import torch

from attendo.bench.reference_models import Peer, build_marian
from attendo.bench.workload import DummyTokenizer
from attendo.bundle import Bundle
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.bench.config import Shape
    from attendo.model.transformer import Transformer
    from attendo.text.tokenizer import Tokenizer

SPECIAL_IDS = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)
SUPPRESSED_IDS = [PAD_ID, UNK_ID, START_ID]
"""Never written by us; others write them, like any token, unless told not to."""


class Case(NamedTuple):
    """One batch and one width of the beam."""

    shape: Shape
    beam_size: int

    @property
    def options(self) -> DecodingOptions:
        """Return what makes every translation exactly as long as asked for."""
        length = self.shape.tgt_length
        return DecodingOptions(beam_size=self.beam_size, min_length=length, max_length=length)


class Decoder(Protocol):
    """One way to decode."""

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Compute there, in this precision, from now on."""
        ...

    def decode(
        self, src_ids: Tensor, case: Case, *, suppress_special: bool = False
    ) -> list[list[int]]:
        """Return the best translation of each source; where it is checked, without the unwanted."""
        ...


class AttendoDecoder:
    """Our search, as the `Translator` calls it."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Move the model."""
        self.model.to(device, precision)

    def decode(
        self, src_ids: Tensor, case: Case, *, suppress_special: bool = False
    ) -> list[list[int]]:  # noqa: ARG002
        """Search."""
        results = search(self.model, src_ids, SPECIAL_IDS, case.options)
        return [one.hypotheses[0].ids for one in results]


class ReferenceDecoder(AttendoDecoder):
    """The decoder that says what is right: step by step, by the model's own code."""

    def decode(
        self, src_ids: Tensor, case: Case, *, suppress_special: bool = False
    ) -> list[list[int]]:  # noqa: ARG002
        """Search."""
        search_function = greedy if case.beam_size == 1 else beam
        results = search_function(self.model, src_ids, SPECIAL_IDS, case.options)
        return [one.hypotheses[0].ids for one in results]


class MarianDecoder:
    """`generate` of Hugging Face."""

    def __init__(self, model: Transformer) -> None:
        self.model = build_marian(model).eval()

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Move the model."""
        self.model.to(device, precision)

    def decode(
        self, src_ids: Tensor, case: Case, *, suppress_special: bool = False
    ) -> list[list[int]]:
        """Generate."""
        length = case.shape.tgt_length
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # it comments on its own options
            output = self.model.generate(
                src_ids,
                attention_mask=(src_ids != PAD_ID).long(),
                num_beams=case.beam_size,
                min_new_tokens=length,
                max_new_tokens=length,
                do_sample=False,
                **({"suppress_tokens": SUPPRESSED_IDS} if suppress_special else {}),
            )
        return [row[1:].tolist() for row in output]


class CTranslate2Decoder:
    """CTranslate2, called directly; in float32 where it has not the precision asked for."""

    def __init__(self, model: Transformer) -> None:
        from attendo.translator.backends.ctranslate2.converter import import_ctranslate2, write

        self.library: Any = import_ctranslate2()
        self.tokenizer = DummyTokenizer(model.config.vocab_size)
        with TemporaryDirectory(prefix="attendo-bench-", ignore_cleanup_errors=True) as name:
            write(Bundle(model, cast("Tokenizer", self.tokenizer), {}), Path(name))
            self.files = {path.name: path.read_bytes() for path in Path(name).iterdir()}
        self.translator: Any = None

    def move(self, device: torch.device, precision: torch.dtype) -> None:
        """Open the model there."""
        compute_type = str(precision).removeprefix("torch.")
        is_supported = compute_type in self.library.get_supported_compute_types(device.type)
        self.translator = self.library.Translator(
            "",
            files=self.files,
            device=device.type,
            compute_type=compute_type if is_supported else "float32",
            intra_threads=torch.get_num_threads(),
        )

    def decode(
        self, src_ids: Tensor, case: Case, *, suppress_special: bool = False
    ) -> list[list[int]]:
        """Translate; it adds the end symbol of a source itself."""
        length = case.shape.tgt_length
        suppressed = [[piece] for piece in self.tokenizer.src_pieces(SUPPRESSED_IDS)]
        results = self.translator.translate_batch(
            [self.tokenizer.src_pieces(row) for row in src_ids[:, :-1].tolist()],
            beam_size=case.beam_size,
            min_decoding_length=length,
            max_decoding_length=length,
            suppress_sequences=suppressed if suppress_special else None,
        )
        return [[int(piece) for piece in one.hypotheses[0]] for one in results]


DECODERS = (
    Peer("plain decoder", ReferenceDecoder, "attendo"),
    Peer("Hugging Face Marian", MarianDecoder, "transformers"),
    Peer("CTranslate2", CTranslate2Decoder, "ctranslate2"),
)
