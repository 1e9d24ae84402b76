"""Suggests the most likely next words after a given beginning of a translation.

Words are separated by white space. Each of the most likely tokens is completed greedily until the
model would start another word; the probability of a word is the product of those of its tokens.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.decoding.limits import check_finite
from attendo.text.phrase_constraints import RequiredPhrase
from attendo.text.sentences import UNSPACED_SCRIPTS
from attendo.text.tokenizer import END_ID, PAD_ID, SPACE_SYMBOL, START_ID, UNK_ID
from attendo.translator.prefixes import PrefixedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

    from attendo.translator.translator import Translator

NEG_INF = float("-inf")
MAX_WORDS = 64
MIN_RELATIVE_PROBABILITY = 1e-6
"""Words that are this much less likely than the best one are noise."""
MAX_WORD_TOKENS = 16
"""Longer words are truncated: in scripts without spaces they would not end before the sentence."""
CANDIDATES_PER_WORD = 2
"""Completed candidates per requested word: several may become the same word."""
TOKENS_PER_CANDIDATE = 16
"""Tokens considered per candidate: most may not start a word."""


class NextWord(NamedTuple):
    """A suggested word."""

    text: str
    probability: float
    """Calibrated, as in `Translation.confidence`."""
    prefix: str
    """The beginning with this word appended, to be used as `prefix` of `Translator.translate`."""


class TokenPath(NamedTuple):
    """The tokens of a word, or of the beginning of one."""

    ids: list[int]
    log_prob: float


def next_words(
    translator: Translator, text: str, prefix: str = "", *, top: int = 8
) -> list[NextWord]:
    """Return up to `top` words that could follow `prefix` in the translation of a text, best first.

    In a text of several segments the words continue the segment in which `prefix` ends.
    """
    if not 1 <= top <= MAX_WORDS:
        raise ConfigError(
            message("top = {top}", top=top),
            hint=message("ask for 1 to {most} words", most=MAX_WORDS),
        )
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
    """Return the text before the part of the prefix that belongs to its last segment."""
    if not segment_prefix:
        return prefix if not prefix or prefix[-1].isspace() else f"{prefix} "
    before, separator, _ = prefix.rpartition(segment_prefix)
    return before if separator else ""


class _WordSearch:
    """Searches the words that continue the translation of one source after a prefix."""

    def __init__(self, translator: Translator, source: str, prefix_ids: tuple[int, ...]) -> None:
        self.tokenizer, self.model = translator.tokenizer, translator.model
        self.backend, self.temperature = translator.backend, translator.temperature
        self.src_ids = self.tokenizer.encode_src([source])[0]
        self.prefix_ids = prefix_ids

    @torch.inference_mode()
    def find_words(self, count: int) -> list[TokenPath]:
        """Return up to `count` complete words."""
        state: Any = self.model.start(self.model.encode(self.backend.pad([self.src_ids])))
        for token in (START_ID, *self.prefix_ids):
            log_probs, state = self._step([token], state)
        paths = []
        for path in self._top_tokens(log_probs[0], count, self._can_start_word):
            if self.tokenizer.tgt_pieces(path.ids) != [SPACE_SYMBOL]:
                paths.append(path)
                continue
            # The space symbol alone is not a word: complete it with the tokens that may follow.
            after, _ = self._step(path.ids, self._repeat_state(state, 1))
            paths += [
                TokenPath([*path.ids, *more.ids], path.log_prob + more.log_prob)
                for more in self._top_tokens(after[0], count, self._continues_word)
            ]
        paths = sorted(paths, key=lambda path: -path.log_prob)[:count]
        return self._complete(paths, self._repeat_state(state, len(paths))) if paths else []

    def _complete(self, paths: list[TokenPath], state: Any) -> list[TokenPath]:
        """Extend every path greedily until its word is complete."""
        ids, totals = [[*path.ids] for path in paths], [path.log_prob for path in paths]
        is_open = [True] * len(paths)
        for step in range(MAX_WORD_TOKENS):
            input_ids = [row[min(step, len(row) - 1)] for row in ids]
            log_probs, state = self._step(input_ids, state)
            best = log_probs.max(-1)
            choices = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            for row, (token, log_prob) in enumerate(choices):
                if not is_open[row] or len(ids[row]) > step + 1:
                    continue
                is_open[row] = self._continues_word(token)
                if is_open[row]:
                    ids[row].append(token)
                    totals[row] += log_prob
            if not any(is_open):
                break
        return [TokenPath(*pair) for pair in zip(ids, totals, strict=True)]

    def _top_tokens(
        self, log_probs: Tensor, count: int, is_wanted: Callable[[int], bool]
    ) -> Iterable[TokenPath]:
        """Return the `count` most likely wanted tokens of a row (V,)."""
        best = log_probs.topk(min(TOKENS_PER_CANDIDATE * count, len(log_probs)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        paths = [
            TokenPath([token], log_prob)
            for token, log_prob in pairs
            if log_prob > NEG_INF and is_wanted(token)
        ]
        return paths[:count]

    def _step(self, ids: list[int], state: Any) -> tuple[Tensor, Any]:
        """Feed one token per row; return the calibrated log-probabilities (N, V) that follow."""
        input_ids = torch.tensor(ids, device=self.backend.device)
        logits, state = self.model.step(input_ids, state)
        log_probs = (logits.float() / self.temperature).log_softmax(-1).cpu()
        check_finite(bool(log_probs.isnan().any()))
        log_probs[:, [PAD_ID, START_ID, UNK_ID]] = NEG_INF
        return log_probs, state

    def _repeat_state(self, state: Any, count: int) -> Any:
        rows = torch.zeros(count, dtype=torch.long, device=self.backend.device)
        return self.model.reorder(state, rows)

    def _continues_word(self, token: int) -> bool:
        """Return whether a token belongs to the word before it."""
        (piece,) = self.tokenizer.tgt_pieces([token])
        return token != END_ID and not piece.startswith(SPACE_SYMBOL)

    def _can_start_word(self, token: int) -> bool:
        """Return whether a word, or a punctuation mark after one, may start with a token."""
        (piece,) = self.tokenizer.tgt_pieces([token])
        if token == END_ID:
            return False
        is_boundary = not piece[0].isalnum() and not piece.startswith("<0x")
        return not self.prefix_ids or is_boundary or bool(UNSPACED_SCRIPTS.match(piece))


def _merge_words(
    translator: Translator, text_before: str, prefix_ids: tuple[int, ...], paths: list[TokenPath]
) -> list[NextWord]:
    """Return the words of the paths, best first; paths of the same word are merged."""
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
