"""What could stand next: the likeliest words after a given beginning of a translation.

A word is what white space parts. The likeliest tokens are each completed greedily, up to where the
model would begin another word; a word's probability is the product of those of its tokens.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import ConfigError, InputError
from attendo.data.glossary import OPEN
from attendo.data.phrases import RequiredPhrase
from attendo.data.tokenizer import END_ID, PAD_ID, SPACE_MARK, START_ID, UNK_ID
from attendo.decoding.rules import refuse_nan
from attendo.translator.beginnings import Begun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

    from attendo.translator.translate import Translator

NEVER = float("-inf")
MAX_WORDS = 64
LEAST = 1e-6
"""What is so much less likely than the likeliest is noise."""
MAX_WORD_TOKENS = 16
"""A word that is longer is cut: scripts without spaces would go on to the end of the sentence."""
SPARE = 2
"""So many times as many words are begun as are asked for: several may turn out the same."""
SEARCHED = 16
"""So many times as many tokens are looked at: most may be the insides of words."""


class NextWord(NamedTuple):
    """A word that could come."""

    text: str
    probability: float
    """By the calibrated model, as in `Translation.confidence`."""
    prefix: str
    """The beginning with this word added: what `Translator.translate` takes as its prefix."""


class Path(NamedTuple):
    """The tokens of a word, or of its beginning."""

    ids: list[int]
    log_prob: float


def next_words(
    translator: Translator, text: str, prefix: str = "", *, top: int = 8
) -> list[NextWord]:
    """Give up to `top` words that could follow `prefix` in the translation of a text, best first.

    Of a text that is translated in several pieces, the one is taken that `prefix` has reached.
    """
    if not 1 <= top <= MAX_WORDS:
        raise ConfigError(f"top = {top}", remedy=f"ask for 1 to {MAX_WORDS} words")
    cut = Begun.cut(translator, text, prefix)
    if not cut.prefixes:
        raise InputError("the text is empty", remedy="give a sentence")
    begun = cut.prefixes[cut.place]
    said = RequiredPhrase(translator.view, begun).tokens if begun else ()
    with translator.engine.evaluating():
        source = cut.document.pieces[cut.place]
        paths = _Reader(translator, source, said).find_words(SPARE * top)
    return _word(translator, _find_head(prefix, begun), said, paths)[:top]


def _find_head(prefix: str, begun: str) -> str:
    """Give what stands before the part of a beginning that belongs to the last piece."""
    if not begun:
        return prefix if not prefix or prefix[-1].isspace() else f"{prefix} "
    before, found, _ = prefix.rpartition(begun)
    return before if found else ""


class _Reader:
    """A model that has read a source and the beginning of its translation."""

    def __init__(self, translator: Translator, source: str, said: tuple[int, ...]) -> None:
        self.tokenizer, self.model = translator.tokenizer, translator.model
        self.engine, self.temperature = translator.engine, translator.temperature
        self.src_ids = self.tokenizer.encode_src([source])[0]
        self.said = said

    @torch.inference_mode()
    def find_words(self, count: int) -> list[Path]:
        """Give so many whole words, as far as there are."""
        state: Any = self.model.start(self.model.encode(self.engine.pad([self.src_ids])))
        for number in (START_ID, *self.said):
            log_probs, state = self._step([number], state)
        begun = []
        for path in self._branch(log_probs[0], count, self._may_begin):
            if self.tokenizer.tgt_pieces(path.ids) != [SPACE_MARK]:
                begun.append(path)
                continue
            # The space alone says nothing: the words differ in what follows it.
            after, _ = self._step(path.ids, self._copy(state, 1))
            begun += [
                Path([*path.ids, *more.ids], path.log_prob + more.log_prob)
                for more in self._branch(after[0], count, self._goes_on)
            ]
        begun = sorted(begun, key=lambda path: -path.log_prob)[:count]
        return self._complete(begun, self._copy(state, len(begun))) if begun else []

    def _complete(self, begun: list[Path], state: Any) -> list[Path]:
        """Go on with every row until its word is over."""
        ids, totals = [[*path.ids] for path in begun], [path.log_prob for path in begun]
        is_open = [True] * len(begun)
        for place in range(MAX_WORD_TOKENS):
            fed = [row[min(place, len(row) - 1)] for row in ids]
            log_probs, state = self._step(fed, state)
            best = log_probs.max(-1)
            choices = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            for row, (number, log_prob) in enumerate(choices):
                if not is_open[row] or len(ids[row]) > place + 1:
                    continue
                is_open[row] = self._goes_on(number)
                if is_open[row]:
                    ids[row].append(number)
                    totals[row] += log_prob
            if not any(is_open):
                break
        return [Path(*pair) for pair in zip(ids, totals, strict=True)]

    def _branch(
        self, log_probs: Tensor, count: int, is_wanted: Callable[[int], bool]
    ) -> Iterable[Path]:
        """Give the likeliest wanted tokens of a row (V,)."""
        best = log_probs.topk(min(SEARCHED * count, len(log_probs)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        wanted = [Path([number], own) for number, own in pairs if own > NEVER and is_wanted(number)]
        return wanted[:count]

    def _step(self, ids: list[int], state: Any) -> tuple[Tensor, Any]:
        """Feed a token a row; give the calibrated log-probabilities (N, V) of what may follow."""
        fed = torch.tensor(ids, device=self.engine.device)
        logits, state = self.model.step(fed, state)
        log_probs = (logits.float() / self.temperature).log_softmax(-1).cpu()
        refuse_nan(bool(log_probs.isnan().any()))
        log_probs[:, [PAD_ID, START_ID, UNK_ID]] = NEVER
        return log_probs, state

    def _copy(self, state: Any, count: int) -> Any:
        rows = torch.zeros(count, dtype=torch.long, device=self.engine.device)
        return self.model.reorder(state, rows)

    def _goes_on(self, number: int) -> bool:
        """Tell whether a token belongs to the word before it."""
        (piece,) = self.tokenizer.tgt_pieces([number])
        return number != END_ID and not piece.startswith(SPACE_MARK)

    def _may_begin(self, number: int) -> bool:
        """Tell whether a word, or a mark behind one, may begin with a token."""
        (piece,) = self.tokenizer.tgt_pieces([number])
        if number == END_ID:
            return False
        is_glued = not piece[0].isalnum() and not piece.startswith("<0x")
        return not self.said or is_glued or bool(OPEN.match(piece))


def _word(
    translator: Translator, head: str, said: tuple[int, ...], paths: list[Path]
) -> list[NextWord]:
    """Put paths into words; those of the same word are one."""
    before = translator.view.read(said)
    found: dict[str, tuple[float, str]] = {}
    for path in paths:
        after = translator.view.read((*said, *path.ids))
        text = after[len(before) :] if after.startswith(before) else after
        if text.strip():
            probability, _ = found.get(text.strip(), (0.0, ""))
            total = min(1.0, probability + math.exp(path.log_prob))
            found[text.strip()] = total, head + after
    words = [NextWord(text, *facts) for text, facts in found.items()]
    words.sort(key=lambda word: -word.probability)
    return [word for word in words if word.probability >= LEAST * words[0].probability]
