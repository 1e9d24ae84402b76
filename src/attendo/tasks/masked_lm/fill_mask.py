"""Fill gaps in a text with the most probable tokens of a masked language model.

A gap is three underscores and is filled with one piece of the vocabulary: a word, or a part of one
if the gap touches a word. Several gaps of a text are filled independently.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from attendo.bundle import MASKED_LM_TASK, load_bundle
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.decoding.limits import check_finite
from attendo.tasks.masked_lm.batching import MASK_ID
from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, SPACE_SYMBOL, SPECIAL_IDS, UNK_ID, unescape_space_symbol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.text.tokenizer import Tokenizer

MASK_TEXT = "___"
MASK_PATTERN = re.compile(r"_{3,}")
PLACEHOLDER = "\ue000"
"""Replaces a gap during tokenization: no vocabulary has it."""
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
PLACEHOLDER_BYTES = len(PLACEHOLDER.encode())
MAX_GUESSES = 100


class TokenGuess(NamedTuple):
    """A candidate for a gap."""

    text: str
    probability: float
    """Calibrated probability among all pieces, including those that do not fit the gap."""


class FilledText(NamedTuple):
    """A text with its gaps filled."""

    text: str
    """The text with the most probable candidate in each gap."""
    guesses: list[list[TokenGuess]]
    """The candidates for each gap, the most probable first."""


class _MaskPosition(NamedTuple):
    """The position of a gap, and whether a word starts there; None if both are possible."""

    position: int
    starts_word: bool | None


class MaskFiller:
    """A masked language model and its tokenizer.

    `MaskFiller.load("runs/masked").fill("나는 ___ 이다.").text` is the text with its gap filled.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        tokenizer: Tokenizer,
        *,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.about = dict(about or {})
        self.temperature = float((self.about.get("calibration") or {}).get("temperature", 1.0))

    @classmethod
    def load(cls, directory: str | Path, *, device: torch.device | str | None = None) -> Self:
        """Load a model folder, by default onto a GPU if there is one."""
        bundle = load_bundle(directory, device=resolve_device(device))
        if bundle.about.get("task") != MASKED_LM_TASK:
            raise InputError(
                message("{directory} is not a masked language model", directory=directory),
                hint="train one: attendo train --model encoder --text FILE --out RUN",
            )
        return cls(bundle.model, bundle.tokenizer, about=bundle.about)

    @torch.inference_mode()
    def fill(self, text: str, *, top: int = 5) -> FilledText:
        """Fill each gap (`___`) of a text; return its `top` most probable candidates as well."""
        if not 1 <= top <= MAX_GUESSES:
            raise ConfigError(
                message("top = {top}", top=top),
                hint=message("ask for 1 to {limit} guesses", limit=MAX_GUESSES),
            )
        clean = normalize(text)
        if not MASK_PATTERN.search(clean):
            raise InputError(
                message("'{text}' has no gap", text=text[:40]),
                hint=message("write {mask} where a word is missing", mask=MASK_TEXT),
            )
        ids, masks = self._tokenize(MASK_PATTERN.sub(PLACEHOLDER, clean.replace(PLACEHOLDER, "")))
        device = next(self.model.parameters()).device  # type: ignore[attr-defined]
        source = torch.tensor([ids], device=device)
        logits = self.model.forward(source, source)[0].float().cpu()  # (S, V)
        check_finite(bool(logits.isnan().any()))
        probabilities = (logits / self.temperature).softmax(-1)
        guesses_by_mask = [
            self._top_guesses(probabilities[mask.position], mask.starts_word, top) for mask in masks
        ]
        best = iter(guesses[0].text if guesses else MASK_TEXT for guesses in guesses_by_mask)
        return FilledText(MASK_PATTERN.sub(lambda _: next(best), clean), guesses_by_mask)

    def _tokenize(self, marked: str) -> tuple[list[int], list[_MaskPosition]]:
        """Return the ids of a text with mask symbols for its placeholders, and their positions."""
        tokenizer = self.tokenizer
        ids: list[int] = []
        masks: list[_MaskPosition] = []
        (encoded,) = tokenizer.encode_src([marked])
        pieces, surfaces = tokenizer.src_pieces(encoded), tokenizer.src_surfaces(marked)
        for number, piece, surface in zip(encoded, pieces, surfaces, strict=True):
            if PLACEHOLDER not in surface:
                ids.append(number)
                continue
            if BYTE_PIECE.fullmatch(piece):
                del ids[len(ids) - (PLACEHOLDER_BYTES - 1) :]  # the other bytes of the placeholder
            # Unknown characters next to a placeholder share its token.
            for part in re.split(f"({PLACEHOLDER})", surface):
                if part == PLACEHOLDER:
                    masks.append(self._mask_position(ids))
                    ids.append(MASK_ID)
                elif part.strip():
                    ids.append(UNK_ID)
        return ids, masks

    def _mask_position(self, ids: list[int]) -> _MaskPosition:
        """Return the position of a gap behind these ids; a preceding space belongs to the gap."""
        if self.tokenizer.kind == "word":
            return _MaskPosition(len(ids), starts_word=True)
        is_space = bool(ids) and self.tokenizer.src_pieces(ids[-1:]) == [SPACE_SYMBOL]
        if self.tokenizer.kind == "char":
            return _MaskPosition(len(ids), starts_word=None)
        if is_space:
            del ids[-1]
        return _MaskPosition(len(ids), starts_word=is_space or not ids)

    def _top_guesses(
        self, probabilities: Tensor, starts_word: bool | None, top: int
    ) -> list[TokenGuess]:
        """Return the most probable readable pieces that fit the space before the gap."""
        guesses: list[TokenGuess] = []
        order = probabilities.argsort(descending=True).tolist()
        for number, piece in zip(order, self.tokenizer.src_pieces(order), strict=True):
            text = unescape_space_symbol(piece.replace(SPACE_SYMBOL, " ")).strip()
            is_readable = number >= len(SPECIAL_IDS) and text and not BYTE_PIECE.fullmatch(piece)
            fits = starts_word is None or piece.startswith(SPACE_SYMBOL) == starts_word
            if is_readable and fits and number != END_ID:
                guesses.append(TokenGuess(text, float(probabilities[number])))
            if len(guesses) == top:
                break
        return guesses
