"""A Marian folder run by transformers, as the reference of an export's parity test."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attendo.core.errors import MissingExtraError
from attendo.interop.weight_mapping import SUPPRESSED_LOGIT, permute_rows
from attendo.model.positional_encoding import sinusoidal
from attendo.text.tokenizer import END_ID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor

    from attendo.text.foreign_tokenizer import ForeignVocabulary

ALPHA = 0.6
MAX_EXTRA_TOKENS = 50
"""The default here too: a translation has at most this many tokens more than its source."""
MAX_POSITIONS = 2048


class MarianReference:
    """Takes and returns our ids and logits.

    Args:
        folder: a Marian folder.
        vocabularies: its vocabularies, which map between the two numberings.

    """

    def __init__(self, folder: Path, vocabularies: list[ForeignVocabulary]) -> None:
        try:
            from transformers import MarianMTModel
        except ImportError:
            raise MissingExtraError("transformers", "interop") from None
        with _no_progress_bars():
            loaded: Any = MarianMTModel.from_pretrained(folder, local_files_only=True)
        self.model = loaded.float().eval()
        for stack in (self.model.model.encoder, self.model.model.decoder):
            _extend_positions(stack.embed_positions)
        self.model.config.max_position_embeddings = MAX_POSITIONS
        self.vocabularies = vocabularies
        self._native_ids = {
            foreign_id: native_id
            for native_id, foreign_id in enumerate(vocabularies[-1].foreign_ids)
        }

    @torch.inference_mode()
    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> list[Tensor]:
        """Return the logits (T, V) of each target, which ends with the end symbol."""
        vocabulary = self.vocabularies[-1]
        decoder_input = [[vocabulary.symbols.start, *self._to_foreign_ids(row[:-1])] for row in tgt]
        ids, mask = self._encode_sources(src)
        batch = torch.tensor(_pad(decoder_input, vocabulary.symbols.pad))
        logits = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=batch).logits
        rows = [
            permute_rows(one[: len(row)].T, vocabulary.foreign_ids)
            for one, row in zip(logits, tgt, strict=True)
        ]
        for row in rows:
            row[vocabulary.ids_without_logit] = SUPPRESSED_LOGIT
        return [row.T for row in rows]

    @torch.inference_mode()
    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Search like `length_norm="power"` and `unk="avoid"`; the end symbol is the last id.

        Sources of equal length form a batch, since the length limit depends on it.
        """
        outputs: dict[int, list[int]] = {}
        for length in {len(row) for row in src}:
            indices = [index for index, row in enumerate(src) if len(row) == length]
            rows = self._generate([src[index] for index in indices], beam_size)
            outputs |= dict(zip(indices, rows, strict=True))
        return [outputs[index] for index in range(len(src))]

    def _generate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        vocabulary = self.vocabularies[-1]
        ids, mask = self._encode_sources(src)
        beam_options = {"early_stopping": "never", "length_penalty": ALPHA} if beam_size > 1 else {}
        generated = self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            num_beams=beam_size,
            max_length=len(src[0]) + MAX_EXTRA_TOKENS + 1,  # includes the start symbol
            suppress_tokens=sorted({*vocabulary.symbols} - {vocabulary.symbols.end}),
            bad_words_ids=None,
            forced_eos_token_id=None,
            do_sample=False,
            **beam_options,
        )
        return [self._to_native_ids(row) for row in generated[:, 1:].tolist()]

    def _encode_sources(self, src: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Return their ids (B, S) and mask."""
        vocabulary = self.vocabularies[0]
        rows = [[vocabulary.foreign_ids[number] for number in row] for row in src]
        mask = _pad([[1] * len(row) for row in rows], 0)
        return torch.tensor(_pad(rows, vocabulary.symbols.pad)), torch.tensor(mask)

    def _to_foreign_ids(self, ids: list[int]) -> list[int]:
        return [self.vocabularies[-1].foreign_ids[number] for number in ids]

    def _to_native_ids(self, ids: list[int]) -> list[int]:
        """Return our ids, up to the end symbol."""
        native_ids = [self._native_ids[number] for number in ids]
        return (
            [*native_ids[: native_ids.index(END_ID)], END_ID]
            if END_ID in native_ids
            else native_ids
        )


def _extend_positions(table: Any) -> None:
    """Extend the table of sinusoids: ours is unlimited, and a search may exceed theirs."""
    length, width = table.weight.shape
    if length < MAX_POSITIONS:
        more = sinusoidal(MAX_POSITIONS - length, width, layout="halves", offset=length)
        table.weight = nn.Parameter(torch.cat((table.weight, more)), requires_grad=False)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Suppress the progress bars of transformers."""
    logging: Any = import_module("transformers.utils.logging")
    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


def _pad(rows: list[list[int]], pad: int) -> list[list[int]]:
    longest = max(map(len, rows))
    return [[*row, *[pad] * (longest - len(row))] for row in rows]
