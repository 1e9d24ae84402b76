"""Repairs a fuzzy match of a translation memory: only what differs is translated by the model.

A match whose source differs in a few words has most of the translation that is wanted, in the words
of the person who wrote it. The words of its translation that attend to the words that differ are
replaced by those that the model writes for the new words. The result is kept only if the model
finds it about as likely, for the new source, as it finds the match for its own source.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, UNK_ID
from attendo.translator.copying import align_source_words
from attendo.translator.glossary_search import substitute

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.translator.translation import Translation
    from attendo.translator.translator import Translator

MAX_CHANGES, MAX_CHANGED_SHARE = 2, 0.5
"""Places that differ, and the share of the words in them."""
MIN_LIKELIHOOD = 0.7
"""Of the mean token probability of the match."""


class Change(NamedTuple):
    """Words of the source of a match, and the words of a text that are there instead."""

    before: range
    after: range


class AlignedWords(NamedTuple):
    """The words of a source and of its translation, and which of these attends to each of those."""

    source: list[str]
    target: list[str]
    aligned: list[int | None]

    def find_span(self, words: Iterable[int]) -> range | None:
        """Return the words of the translation that stand for some words of the source.

        None if there are none, or if they stand for other words too.
        """
        chosen = set(words)
        found = [self.aligned[index] for index in chosen]
        indices = [index for index in found if index is not None]
        if not indices or max(indices) >= len(self.target):
            return None
        span = range(min(indices), max(indices) + 1)
        others = (one for index, one in enumerate(self.aligned) if index not in chosen)
        return None if any(one in span for one in others if one is not None) else span


def repair_match(translator: Translator, own: Translation, source: str, target: str) -> str | None:
    """Return the translation of a match with the words that differ translated anew.

    Args:
        translator: aligns and scores, with its own model.
        own: the model's translation of the new text.
        source: of the match.
        target: its translation.

    Returns:
        The text; None if more than a few words differ, words were added or left out, the alignment
        is not clear, or the result is unlikely or what the model writes anyway.

    """
    changes = find_changes(normalize(source).split(), normalize(own.source).split())
    is_text = translator.tokenizer.tgt_kind != "label"
    if not changes or not is_text or own.copied or len(own.segments) > 1:
        return None
    target_ids = translator.tokenizer.encode_tgt([normalize(target)])[0]
    match = _align(translator, source, [one for one in target_ids if one != END_ID])
    new = _align(translator, own.source, own.ids)
    if match is None or new is None:
        return None
    terms = []
    for change in changes:
        span = new.find_span(change.after)
        if span is None or match.find_span(change.before) is None:
            return None
        term = " ".join(new.target[span.start : span.stop]).strip("\"'([{“‘.,;:!?…)]}”’。、！？")
        start, end = _locate(match.source, change.before)
        terms.append((start, end, term))
    repaired = substitute(
        " ".join(match.source), match.target, [""] * len(match.target), match.aligned, terms
    )
    if repaired in (None, str(own)):
        return None
    scores = translator.score([own.source, source], [repaired, target])
    likelihoods = [one.mean_token_probability for one in scores]
    return repaired if likelihoods[0] >= MIN_LIKELIHOOD * likelihoods[1] else None


def find_changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """Return the places where words were replaced; nothing if words were added, or too many.

    >>> find_changes("the old house".split(), "the new house".split())
    [Change(before=range(1, 2), after=range(1, 2))]
    >>> find_changes("the house".split(), "the new house".split())
    []
    """
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    edits = [one for one in matcher.get_opcodes() if one[0] != "equal"]
    changes = [Change(range(i1, i2), range(j1, j2)) for _, i1, i2, j1, j2 in edits]
    num_changed = sum(len(one.before) for one in changes)
    is_repairable = (
        all(name == "replace" for name, *_ in edits)
        and len(changes) <= MAX_CHANGES
        and num_changed <= MAX_CHANGED_SHARE * len(before)
    )
    return changes if is_repairable else []


def _align(translator: Translator, source: str, ids: Sequence[int]) -> AlignedWords | None:
    tokenizer = translator.tokenizer
    text = normalize(source)
    src_ids = tokenizer.encode_src([text])[0]
    if UNK_ID in ids or UNK_ID in src_ids or not ids:
        return None
    aligned = align_source_words(translator, text, src_ids, ids)
    words = text.split()
    if len(aligned) != len(words):
        return None
    return AlignedWords(words, tokenizer.decode_tgt([ids])[0].split(), aligned)


def _locate(words: Sequence[str], span: range) -> tuple[int, int]:
    """Return where some words begin and end in the text of all words."""
    start = sum(len(word) + 1 for word in words[: span.start])
    return start, start + len(" ".join(words[span.start : span.stop]))
