"""Repairs a fuzzy match of a translation memory: only what differs is translated by the model.

A match whose source differs in a few words has most of the translation that is wanted, in the words
of the person who wrote it. The words of its translation that attend to the words that differ are
replaced by those that the model writes for the new words. The result is kept only if the model
finds it about as likely, for the new source, as it finds the match for its own source. This is
fuzzy-match repair (Ortega, Sánchez-Martínez and Forcada 2016), with attention as the alignment.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, SPACE_SYMBOL, UNK_ID
from attendo.translator.confidence import tokens_to_words
from attendo.translator.glossary_search import copy_style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.translator.translation import Translation
    from attendo.translator.translator import Translator

MAX_CHANGES, MAX_CHANGED_SHARE = 2, 0.5
"""Passages that differ, and the share of the words in them."""
PUNCTUATION = "\"'([{“‘.,;:!?…)]}”’。、！？"
MIN_LIKELIHOOD = 0.7
"""Of the mean token probability of the match."""


class Change(NamedTuple):
    """Words of the source of a match, and the words of a text that are there instead."""

    before: range
    after: range


class AlignedWords(NamedTuple):
    """The words of a source and of its translation, and to which of those each of these attends."""

    source: list[str]
    target: list[str]
    attended: list[int]

    def find_span(self, words: range) -> range | None:
        """Return the words of the translation that stand for some words of the source.

        None if there are none, or if they are not next to each other.
        """
        found = [index for index, attended in enumerate(self.attended) if attended in words]
        span = range(found[0], found[-1] + 1) if found else range(0)
        return span if found and len(span) == len(found) else None


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
    replaced: dict[range, str] = {}
    for change in changes:
        old, made = match.find_span(change.before), new.find_span(change.after)
        # The first word has a capital, also if it is not a name.
        if old is None or made is None or (old.start == 0) != (made.start == 0):
            return None
        replaced[old] = " ".join(new.target[made.start : made.stop]).strip(PUNCTUATION)
    words = list(match.target)
    for span in sorted(replaced, key=lambda one: one.start, reverse=True):
        first, last = words[span.start], words[span.stop - 1]
        term = copy_style(replaced[span], first, last, is_first=span.start == 0)
        words[span.start : span.stop] = [term]
    repaired = " ".join(words)
    if repaired == str(own):
        return None
    scores = translator.score([own.source, source], [repaired, target])
    likelihoods = [one.mean_token_probability for one in scores]
    return repaired if likelihoods[0] >= MIN_LIKELIHOOD * likelihoods[1] else None


def find_changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """Return the passages where words were replaced; nothing if words were added, or too many.

    >>> find_changes("the old file".split(), "the new file".split())
    [Change(before=range(1, 2), after=range(1, 2))]
    >>> find_changes("the file".split(), "the new file".split())
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
    attended = find_attended_words(translator, text, src_ids, ids)
    source_words, target_words = text.split(), tokenizer.decode_tgt([ids])[0].split()
    is_clear = len(attended) == len(target_words) and max(attended) < len(source_words)
    return AlignedWords(source_words, target_words, attended) if is_clear else None


def find_attended_words(
    translator: Translator, source: str, src_ids: Sequence[int], ids: Sequence[int]
) -> list[int]:
    """Return, for each word of a translation, the word of the source that it attends to most.

    Nothing is returned for a model without attention, or without PyTorch to compute it.
    """
    if not translator.backend.has_native:
        return []
    from attendo.translator.cross_attention import cross_attention

    weights = cross_attention(translator.native.backend, src_ids, ids)
    if weights is None:
        return []
    tokenizer = translator.tokenizer
    starts = [
        SPACE_SYMBOL * surface.startswith(" ") for surface in tokenizer.src_surfaces(source)[:-1]
    ]
    rows = [weights[tokens].sum(0) for tokens in tokens_to_words(tokenizer.tgt_pieces(ids))]
    src_words = tokens_to_words(starts)
    shares = [[float(row[tokens].sum()) for tokens in src_words] for row in rows]
    return [max(range(len(row)), key=row.__getitem__) for row in shares]
