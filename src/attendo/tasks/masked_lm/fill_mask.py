"""Fills gaps in a text with the words that an encoder finds likeliest there, seen from both sides.

A gap is three underscores, and one piece of the vocabulary: a word, or a part of one where it
touches a word. Gaps of one text are read at the same time, none knows what fills another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from attendo.bundle import load_bundle
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError
from attendo.decoding.token_filters import check_finite
from attendo.tasks.masked_lm.batching import MASK_ID
from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, SPACE_SYMBOL, SPECIAL_IDS, UNK_ID, unescape_space_symbol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.text.tokenizer import Tokenizer

MASK_TASK = "mask"
"""What a model folder says of its task where the model finds hidden words."""
MASK_TEXT = "___"
MASK_PATTERN = re.compile(r"_{3,}")
PLACEHOLDER = "\ue000"
"""Stands for a gap while the text is cut: no vocabulary has it."""
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
PLACEHOLDER_BYTES = len(PLACEHOLDER.encode())
MAX_GUESSES = 100


class TokenGuess(NamedTuple):
    """What could stand in a gap."""

    text: str
    probability: float
    """By the model, calibrated on dev, among all pieces: those that do not fit are left out."""


class FilledText(NamedTuple):
    """A text with its gaps filled."""

    text: str
    """With the likeliest in each gap."""
    guesses: list[list[TokenGuess]]
    """The likeliest for each gap, best first."""


class _MaskPosition(NamedTuple):
    """Where a gap is among the ids, and whether a word begins with it; None where both may be."""

    position: int
    starts_word: bool | None


class MaskFiller:
    """An encoder that was trained on hidden words, and its tokenizer.

    `Filler.load("runs/masked").fill("나는 ___ 이다.").text` is the text with its gap filled.
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
        """Read a model folder, onto a GPU where there is one."""
        bundle = load_bundle(directory, device=resolve_device(device))
        if bundle.about.get("task") != MASK_TASK:
            raise InputError(
                f"the model in {directory} was not trained to find hidden words",
                hint="train one: attendo train --model encoder --text FILE --out RUN",
            )
        return cls(bundle.model, bundle.tokenizer, about=bundle.about)

    @torch.inference_mode()
    def fill(self, text: str, *, top: int = 5) -> FilledText:
        """Give the `top` likeliest pieces for each gap (`___`) of a text."""
        if not 1 <= top <= MAX_GUESSES:
            raise ConfigError(f"top = {top}", hint=f"ask for 1 to {MAX_GUESSES} guesses")
        clean = normalize(text)
        if not MASK_PATTERN.search(clean):
            reason = f"'{text[:40]}' has no gap"
            raise InputError(reason, hint=f"write {MASK_TEXT} where a word is missing")
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
        """Cut a text into ids, the mask symbol for each mark."""
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
                del ids[len(ids) - (PLACEHOLDER_BYTES - 1) :]  # the bytes before belong to the mark
            for part in re.split(
                f"({PLACEHOLDER})", surface
            ):  # what is unknown beside it is one with it
                if part == PLACEHOLDER:
                    masks.append(self._mask_position(ids))
                    ids.append(MASK_ID)
                elif part.strip():
                    ids.append(UNK_ID)
        return ids, masks

    def _mask_position(self, ids: list[int]) -> _MaskPosition:
        """Tell how the next id is joined to those before; a space by itself belongs to the gap."""
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
        """Give the likeliest pieces (V,) that can be read and fit the space before the gap."""
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
