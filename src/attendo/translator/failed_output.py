"""Finds outputs that are not translations, and searches their sources once more.

An output can be empty, repeat itself without end, or be a copy of its source. Most of these are
accidents of one search: another search finds something else. If it does not, the output stays, and
a note names the problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from attendo.decoding.hypothesis import SearchResult
from attendo.text.normalize import normalize
from attendo.translator.notes import EMPTY_OUTPUT, LOOP, RETRIED, UNTRANSLATED, Note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.decoding.hypothesis import Hypothesis
    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.base import TranslationItem
    from attendo.translator.confidence import Confidence
    from attendo.translator.translator import Translator

    Search = Callable[[list[TranslationItem], DecodingOptions], list[SearchResult]]

Problem = Literal["empty_output", "loop", "untranslated"]

MIN_REPEATS, MIN_REPEATED_TOKENS, MAX_PERIOD = 4, 8, 16
"""A loop is a sequence of up to 16 tokens, at least 4 times in a row, at least 8 tokens in all."""
MIN_DUPLICATES = 6
"""The tokens of a loop that occurred before: two tokens four times, or one eight times."""
MIN_COPIED_WORDS, COPIED_SHARE = 4, 0.8
"""Shorter copies may be names."""
RETRY_BEAM, RETRY_NGRAM = 4, 3
"""The search that replaces an output has at least this beam, and repeats no three tokens."""


class Retry(NamedTuple):
    """What a second search led to."""

    result: SearchResult
    notes: list[Note]
    """About the output: that it is from the second search, or what is wrong with it."""

    @property
    def is_translation(self) -> bool:
        """Whether the output is a translation now."""
        return all(note.code == RETRIED for note in self.notes)

    def judge(self, confidences: list[Confidence]) -> list[Confidence]:
        """Return the confidences of the hypotheses: the first is low if it is not a translation."""
        best, *others = confidences
        if self.is_translation:
            return confidences
        quality = None if best.quality is None else 0.0
        return [best._replace(quality=quality, band=best.band and "low"), *others]


def find_loop(ids: Sequence[int]) -> tuple[int, int] | None:
    """Return where the first loop begins and how long its period is; None without a loop.

    >>> find_loop([5, 7, 8, 7, 8, 7, 8, 7, 8])
    (1, 2)
    >>> find_loop([5, 7, 8, 7, 8, 9])
    """
    for period in range(1, min(MAX_PERIOD, len(ids) // MIN_REPEATS) + 1):
        needed = max(MIN_REPEATS * period, MIN_REPEATED_TOKENS) - period
        run = 0
        for index in range(period, len(ids)):
            run = run + 1 if ids[index] == ids[index - period] else 0
            if run == needed:
                return index - needed - period + 1, period
    return None


def may_have_failed(ids: Sequence[int], src_ids: Sequence[int], *, is_shared: bool) -> bool:
    """Return whether an output must be checked. This is cheap, and hardly any has to be."""
    tokens = set(ids)
    if len(ids) - len(tokens) >= MIN_DUPLICATES or len(ids) <= 1:
        return True
    # With separate vocabularies a copy has other ids.
    return not is_shared or 2 * len(tokens.intersection(src_ids)) >= len(tokens)


def find_problem(
    translator: Translator, item: TranslationItem, hypothesis: Hypothesis
) -> Problem | None:
    """Return what is wrong with an output that has words to translate; None if nothing is."""
    source = item.reduced or item.source
    tokenizer = translator.tokenizer
    if not any(letter.isalpha() for letter in source):
        return None  # numbers and signs may be repeated, copied or removed
    text = tokenizer.decode_tgt([hypothesis.ids])[0]
    if not any(letter.isalnum() for letter in text):
        return EMPTY_OUTPUT
    loop = find_loop(hypothesis.ids)
    if loop is not None and find_loop(item.ids) is None:
        start, period = loop
        repeated = tokenizer.decode_tgt([hypothesis.ids[start : start + period]])[0]
        if any(letter.isalpha() for letter in repeated):
            return LOOP
    if _translates_between_languages(translator) and _is_copy(source, text):
        return UNTRANSLATED
    return None


def _translates_between_languages(translator: Translator) -> bool:
    languages = [translator.about.get(name) for name in ("src_lang", "tgt_lang")]
    return all(languages) and languages[0] != languages[1]


def _is_copy(source: str, text: str) -> bool:
    """Return whether nearly every word of an output is the source's, in the same order."""
    words, copied = normalize(source).casefold().split(), normalize(text).casefold().split()
    if len(words) < MIN_COPIED_WORDS or len(words) != len(copied):
        return False
    pairs = [pair for pair in zip(words, copied, strict=True) if pair[0].isalpha()]
    num_same = sum(word == other for word, other in pairs)
    return len(pairs) >= MIN_COPIED_WORDS and num_same >= COPIED_SHARE * len(pairs)


def retry_failed(
    translator: Translator,
    items: Sequence[TranslationItem],
    results: Sequence[SearchResult],
    options: DecodingOptions,
    search: Search,
) -> dict[int, Retry]:
    """Search the items whose outputs are not translations once more.

    Args:
        translator: whose outputs they are.
        items: the segments.
        results: of the first search of each item.
        options: of the first search.
        search: runs the second one.

    Returns:
        The result of each item that was searched again, by its index.

    """
    if translator.tokenizer.tgt_kind == "label" or options.do_sample:
        return {}
    is_shared = translator.tokenizer.is_shared
    failed: dict[int, Problem] = {}
    for index, (item, result) in enumerate(zip(items, results, strict=True)):
        best = result.hypotheses[0]
        if may_have_failed(best.ids, item.ids, is_shared=is_shared):
            problem = find_problem(translator, item, best)
            if problem is not None:
                failed[index] = problem
    if not failed:
        return {}
    others = search([items[index] for index in failed], strengthen(options))
    return {
        index: _choose(translator, items[index], results[index], other, problem, options.n_best)
        for (index, problem), other in zip(failed.items(), others, strict=True)
    }


def strengthen(options: DecodingOptions) -> DecodingOptions:
    """Return the options of the second search."""
    beam_size = max(options.beam_size, RETRY_BEAM)
    changes = {
        "beam_size": beam_size,
        "n_best": beam_size,
        "num_groups": 1,
        "min_length": max(options.min_length, 1),
        "no_repeat_ngram": options.no_repeat_ngram or RETRY_NGRAM,
    }
    return options.model_copy(update=changes)


def _choose(
    translator: Translator,
    item: TranslationItem,
    first: SearchResult,
    second: SearchResult,
    problem: Problem,
    n_best: int,
) -> Retry:
    """Return the outputs of the second search that are translations, or else the first result."""
    good = [
        one
        for one in second.hypotheses
        if one.is_finished and find_problem(translator, item, one) is None
    ]
    if not good:
        return Retry(first, [Note(problem)])
    others = [one for one in second.hypotheses if one not in good]
    return Retry(SearchResult([*good, *others][:n_best]), [Note(RETRIED)])
