"""Fills gaps in a text with the words that an encoder finds likeliest there, seen from both sides.

A gap is three underscores, and one piece of the vocabulary: a word, or a part of one where it
touches a word. Gaps of one text are read at the same time, none knows what fills another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from attendo.bundle import choose_device, load_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.data.cleaning import normalise
from attendo.data.masking import MASK_ID
from attendo.data.tokenizer import END_ID, SPACE_MARK, SPECIALS, UNK_ID, unescape
from attendo.decoding.rules import refuse_nan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.data.tokenizer import Tokenizer

MASK = "mask"
"""What a model folder says of its task where the model finds hidden words."""
GAP = "___"
GAPS = re.compile(r"_{3,}")
MARK = "\ue000"
"""Stands for a gap while the text is cut: no vocabulary has it."""
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
MARK_BYTES = len(MARK.encode())
MOST_GUESSES = 100


class Guess(NamedTuple):
    """What could stand in a gap."""

    text: str
    probability: float
    """By the model, calibrated on dev, among all pieces: those that do not fit are left out."""


class Filled(NamedTuple):
    """A text with its gaps filled."""

    text: str
    """With the likeliest in each gap."""
    gaps: list[list[Guess]]
    """The likeliest for each gap, best first."""


class _Place(NamedTuple):
    """Where a gap is among the ids, and whether a word begins with it; None where both may be."""

    place: int
    is_beginning: bool | None


class Filler:
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
        bundle = load_bundle(directory, device=choose_device(device))
        if bundle.about.get("task") != MASK:
            raise InputError(
                f"the model in {directory} was not trained to find hidden words",
                remedy="train one: attendo train --model encoder --text FILE --out RUN",
            )
        return cls(bundle.model, bundle.tokenizer, about=bundle.about)

    @torch.inference_mode()
    def fill(self, text: str, *, top: int = 5) -> Filled:
        """Give the `top` likeliest pieces for each gap (`___`) of a text."""
        if not 1 <= top <= MOST_GUESSES:
            raise ConfigError(f"top = {top}", remedy=f"ask for 1 to {MOST_GUESSES} guesses")
        clean = normalise(text)
        if not GAPS.search(clean):
            reason = f"'{text[:40]}' has no gap"
            raise InputError(reason, remedy=f"write {GAP} where a word is missing")
        ids, places = self._cut(GAPS.sub(MARK, clean.replace(MARK, "")))
        device = next(self.model.parameters()).device  # type: ignore[attr-defined]
        source = torch.tensor([ids], device=device)
        logits = self.model.forward(source, source)[0].float().cpu()  # (S, V)
        refuse_nan(bool(logits.isnan().any()))
        chances = (logits / self.temperature).softmax(-1)
        gaps = [self._guess(chances[one.place], one.is_beginning, top) for one in places]
        best = iter(guesses[0].text if guesses else GAP for guesses in gaps)
        return Filled(GAPS.sub(lambda _: next(best), clean), gaps)

    def _cut(self, marked: str) -> tuple[list[int], list[_Place]]:
        """Cut a text into ids, the mask symbol for each mark."""
        tokenizer = self.tokenizer
        ids: list[int] = []
        places: list[_Place] = []
        (given,) = tokenizer.encode_src([marked])
        pieces, surfaces = tokenizer.src_pieces(given), tokenizer.src_surfaces(marked)
        for number, piece, surface in zip(given, pieces, surfaces, strict=True):
            if MARK not in surface:
                ids.append(number)
                continue
            if BYTE_PIECE.fullmatch(piece):
                del ids[len(ids) - (MARK_BYTES - 1) :]  # the bytes before belong to the mark
            for part in re.split(f"({MARK})", surface):  # what is unknown beside it is one with it
                if part == MARK:
                    places.append(self._place(ids))
                    ids.append(MASK_ID)
                elif part.strip():
                    ids.append(UNK_ID)
        return ids, places

    def _place(self, ids: list[int]) -> _Place:
        """Tell how the next id is joined to those before; a space by itself belongs to the gap."""
        if self.tokenizer.kind == "word":
            return _Place(len(ids), is_beginning=True)
        is_space = bool(ids) and self.tokenizer.src_pieces(ids[-1:]) == [SPACE_MARK]
        if self.tokenizer.kind == "char":
            return _Place(len(ids), is_beginning=None)
        if is_space:
            del ids[-1]
        return _Place(len(ids), is_beginning=is_space or not ids)

    def _guess(self, chances: Tensor, is_beginning: bool | None, top: int) -> list[Guess]:
        """Give the likeliest pieces (V,) that can be read and fit the space before the gap."""
        guesses: list[Guess] = []
        order = chances.argsort(descending=True).tolist()
        for number, piece in zip(order, self.tokenizer.src_pieces(order), strict=True):
            text = unescape(piece.replace(SPACE_MARK, " ")).strip()
            is_readable = number >= len(SPECIALS) and text and not BYTE_PIECE.fullmatch(piece)
            fits = is_beginning is None or piece.startswith(SPACE_MARK) == is_beginning
            if is_readable and fits and number != END_ID:
                guesses.append(Guess(text, float(chances[number])))
            if len(guesses) == top:
                break
        return guesses
