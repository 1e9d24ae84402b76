"""What could stand next: the likeliest words after a given beginning of a translation.

A word is what white space parts. The likeliest tokens are each completed greedily, up to where the
model would begin another word; a word's probability is the product of those of its tokens.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.decoding.token_filters import check_finite
from attendo.text.glossary import UNSPACED_SCRIPTS
from attendo.text.phrase_constraints import RequiredPhrase
from attendo.text.tokenizer import END_ID, PAD_ID, SPACE_SYMBOL, START_ID, UNK_ID
from attendo.translator.prefixes import PrefixedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

    from attendo.translator.translator import Translator

NEG_INF = float("-inf")
MAX_WORDS = 64
MIN_RELATIVE_PROBABILITY = 1e-6
"""What is so much less likely than the likeliest is noise."""
MAX_WORD_TOKENS = 16
"""A word that is longer is cut: scripts without spaces would go on to the end of the sentence."""
CANDIDATES_PER_WORD = 2
"""So many times as many words are begun as are asked for: several may turn out the same."""
TOKENS_PER_CANDIDATE = 16
"""So many times as many tokens are looked at: most may be the insides of words."""


class NextWord(NamedTuple):
    """A word that could come."""

    text: str
    probability: float
    """By the calibrated model, as in `Translation.confidence`."""
    prefix: str
    """The beginning with this word added: what `Translator.translate` takes as its prefix."""


class TokenPath(NamedTuple):
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
        raise ConfigError(f"top = {top}", hint=message("ask for 1 to {most} words", most=MAX_WORDS))
    prefixed = PrefixedDocument.from_text(translator, text, prefix)
    if not prefixed.prefixes:
        raise InputError("the text is empty", hint="give a sentence")
    segment_prefix = prefixed.prefixes[prefixed.active_index]
    prefix_ids = (
        RequiredPhrase(translator.detokenizer, segment_prefix).tokens if segment_prefix else ()
    )
    with translator.backend.eval_mode():
        source = prefixed.document.segments[prefixed.active_index]
        paths = _WordSearch(translator, source, prefix_ids).find_words(CANDIDATES_PER_WORD * top)
    return _merge_words(translator, _text_before(prefix, segment_prefix), prefix_ids, paths)[:top]


def _text_before(prefix: str, segment_prefix: str) -> str:
    """Give what stands before the part of a beginning that belongs to the last piece."""
    if not segment_prefix:
        return prefix if not prefix or prefix[-1].isspace() else f"{prefix} "
    before, separator, _ = prefix.rpartition(segment_prefix)
    return before if separator else ""


class _WordSearch:
    """A model that has read a source and the beginning of its translation."""

    def __init__(self, translator: Translator, source: str, prefix_ids: tuple[int, ...]) -> None:
        self.tokenizer, self.model = translator.tokenizer, translator.model
        self.backend, self.temperature = translator.backend, translator.temperature
        self.src_ids = self.tokenizer.encode_src([source])[0]
        self.prefix_ids = prefix_ids

    @torch.inference_mode()
    def find_words(self, count: int) -> list[TokenPath]:
        """Give so many whole words, as far as there are."""
        state: Any = self.model.start(self.model.encode(self.backend.pad([self.src_ids])))
        for number in (START_ID, *self.prefix_ids):
            log_probs, state = self._step([number], state)
        paths = []
        for path in self._top_tokens(log_probs[0], count, self._can_start_word):
            if self.tokenizer.tgt_pieces(path.ids) != [SPACE_SYMBOL]:
                paths.append(path)
                continue
            # The space alone says nothing: the words differ in what follows it.
            after, _ = self._step(path.ids, self._repeat_state(state, 1))
            paths += [
                TokenPath([*path.ids, *more.ids], path.log_prob + more.log_prob)
                for more in self._top_tokens(after[0], count, self._continues_word)
            ]
        paths = sorted(paths, key=lambda path: -path.log_prob)[:count]
        return self._complete(paths, self._repeat_state(state, len(paths))) if paths else []

    def _complete(self, paths: list[TokenPath], state: Any) -> list[TokenPath]:
        """Go on with every row until its word is over."""
        ids, totals = [[*path.ids] for path in paths], [path.log_prob for path in paths]
        is_open = [True] * len(paths)
        for step in range(MAX_WORD_TOKENS):
            input_ids = [row[min(step, len(row) - 1)] for row in ids]
            log_probs, state = self._step(input_ids, state)
            best = log_probs.max(-1)
            choices = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            for row, (number, log_prob) in enumerate(choices):
                if not is_open[row] or len(ids[row]) > step + 1:
                    continue
                is_open[row] = self._continues_word(number)
                if is_open[row]:
                    ids[row].append(number)
                    totals[row] += log_prob
            if not any(is_open):
                break
        return [TokenPath(*pair) for pair in zip(ids, totals, strict=True)]

    def _top_tokens(
        self, log_probs: Tensor, count: int, is_wanted: Callable[[int], bool]
    ) -> Iterable[TokenPath]:
        """Give the likeliest wanted tokens of a row (V,)."""
        best = log_probs.topk(min(TOKENS_PER_CANDIDATE * count, len(log_probs)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        paths = [
            TokenPath([number], log_prob)
            for number, log_prob in pairs
            if log_prob > NEG_INF and is_wanted(number)
        ]
        return paths[:count]

    def _step(self, ids: list[int], state: Any) -> tuple[Tensor, Any]:
        """Feed a token a row; give the calibrated log-probabilities (N, V) of what may follow."""
        input_ids = torch.tensor(ids, device=self.backend.device)
        logits, state = self.model.step(input_ids, state)
        log_probs = (logits.float() / self.temperature).log_softmax(-1).cpu()
        check_finite(bool(log_probs.isnan().any()))
        log_probs[:, [PAD_ID, START_ID, UNK_ID]] = NEG_INF
        return log_probs, state

    def _repeat_state(self, state: Any, count: int) -> Any:
        rows = torch.zeros(count, dtype=torch.long, device=self.backend.device)
        return self.model.reorder(state, rows)

    def _continues_word(self, number: int) -> bool:
        """Tell whether a token belongs to the word before it."""
        (piece,) = self.tokenizer.tgt_pieces([number])
        return number != END_ID and not piece.startswith(SPACE_SYMBOL)

    def _can_start_word(self, number: int) -> bool:
        """Tell whether a word, or a mark behind one, may begin with a token."""
        (piece,) = self.tokenizer.tgt_pieces([number])
        if number == END_ID:
            return False
        is_glued = not piece[0].isalnum() and not piece.startswith("<0x")
        return not self.prefix_ids or is_glued or bool(UNSPACED_SCRIPTS.match(piece))


def _merge_words(
    translator: Translator, text_before: str, prefix_ids: tuple[int, ...], paths: list[TokenPath]
) -> list[NextWord]:
    """Put paths into words; those of the same word are one."""
    prefix_text = translator.detokenizer.decode(prefix_ids)
    words_by_text: dict[str, tuple[float, str]] = {}
    for path in paths:
        after = translator.detokenizer.decode((*prefix_ids, *path.ids))
        text = after[len(prefix_text) :] if after.startswith(prefix_text) else after
        if text.strip():
            probability, _ = words_by_text.get(text.strip(), (0.0, ""))
            total = min(1.0, probability + math.exp(path.log_prob))
            words_by_text[text.strip()] = total, text_before + after
    words = [NextWord(text, *values) for text, values in words_by_text.items()]
    words.sort(key=lambda word: -word.probability)
    return [
        word
        for word in words
        if word.probability >= MIN_RELATIVE_PROBABILITY * words[0].probability
    ]
