"""Copies numbers, URLs, e-mail addresses, emoji and placeholders through a translation.

A span with characters that the vocabulary lacks would reach the model as the unknown token, and
nothing of it would come back. Such a span is removed from the source before the search, together
with a Korean particle after it, and inserted into the translation: at the word that the attention
aligns with the word next to the span. URLs, e-mail addresses, emoji and placeholders (`%s`,
`{name}`) must come back as often as they are in the source. If those of a first translation differ,
the best other hypothesis that has them is used instead. If there is none, what is missing is copied
in the same way, a placeholder with the quotes around it, and what is too much is removed. Known
numbers are left to the model: "3월" is "March". Human translators copy 91 % or more of all URLs,
addresses and emoji, but between 11 % and 98 % of the small numbers (docs/results.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from attendo.decoding.hypothesis import SearchResult
from attendo.text.copy_spans import CopySpan, find_copy_spans, missing_spans
from attendo.text.normalize import normalize
from attendo.text.tokenizer import UNK_ID
from attendo.translator.span_repair import (
    BRACKETS,
    VERBATIM_KINDS,
    find_verbatim_spans,
    has_same_spans,
    list_differences,
    repair_spans,
)
from attendo.translator.translation import CopiedSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor

    from attendo.decoding.options import DecodingOptions
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator.backends.base import TranslationItem
    from attendo.translator.confidence import Confidence
    from attendo.translator.translator import CopyMode, Translator

SEPARATORS = (",", ";", "|", "/")
"""Between placeholders of a list, which is copied as a whole."""
PUNCTUATION = re.compile(r"\s*[.,;:!?…)\]}。、，！？]")
"""Needs no space before it."""
PHRASE_SHARE = 0.5
"""The next word belongs to the same phrase if it attends to a source word this much, relatively."""
FINAL_PUNCTUATION = re.compile(r"[.!?…。！？]+[\"'”’)\]]*$")


class RemovedSpan(NamedTuple):
    """A span that was removed from a source."""

    text: str
    word: int
    """The index of the word of the remaining source before which it appears."""
    has_particle: bool
    """Whether it was a noun phrase of its own, rather than a part of one."""
    is_counted: bool = False
    """Whether a counter followed it in the same word: "3명의 공주" is about "공주"."""
    start: int = 0
    """`source[start:end]` was removed: the span and its particle."""
    end: int = 0


class ReducedSource(NamedTuple):
    """A source without the spans that are copied."""

    text: str
    removed: tuple[RemovedSpan, ...]


def has_unknown(tokenizer: Tokenizer, text: str) -> bool:
    """Return whether the vocabulary of either side lacks a part of a text."""
    if UNK_ID in tokenizer.encode_src([text])[0]:
        return True
    return tokenizer.tgt_kind != "label" and UNK_ID in tokenizer.encode_tgt([text])[0]


def remove_spans(source: str, spans: Iterable[CopySpan]) -> ReducedSource:
    """Remove spans from a normalized source, each with the particle that is attached to it.

    >>> source = "가격은 12345원, 12345를 낸다."
    >>> reduced = remove_spans(source, find_copy_spans(source))
    >>> reduced.text, [(one.word, one.has_particle) for one in reduced.removed]
    ('가격은 원, 낸다.', [(1, False), (2, True)])
    """
    kept, removed, end = "", [], 0
    for span in spans:
        kept = _append_rest(kept, source[end : span.start])
        suffix, has_particle = _read_particle(source[span.end :])
        word = len(kept.split())
        is_inside_word = bool(kept) and not kept[-1].isspace()
        index = max(word - is_inside_word, 0)
        is_counted = bool(suffix) and not has_particle
        end = span.end + (len(suffix) if has_particle else 0)
        removed.append(RemovedSpan(span.text, index, has_particle, is_counted, span.start, end))
    return ReducedSource(normalize(_append_rest(kept, source[end:])), tuple(removed))


def widen_spans(source: str, spans: Iterable[CopySpan]) -> list[CopySpan]:
    """Include the quotes or brackets around each placeholder, and join those with no space between.

    >>> source = 'Copy "%s" (%d/%d).'
    >>> [span.text for span in widen_spans(source, find_copy_spans(source))]
    ['"%s"', '(%d/%d)']
    """
    widened: list[CopySpan] = []
    for span in spans:
        if widened and span.kind == widened[-1].kind == "placeholder":
            between = source[widened[-1].end : span.start]
            is_list = between.strip() in SEPARATORS
            if is_list or not any(letter.isspace() or letter.isalnum() for letter in between):
                last = widened.pop()
                span = CopySpan(last.start, span.end, span.kind, source[last.start : span.end])
        start, end = span.start, span.end
        if span.kind != "placeholder":
            widened.append(span)
            continue
        while source[max(start - 1, 0) : start] + source[end : end + 1] in BRACKETS:
            start, end = start - 1, end + 1
        widened.append(CopySpan(start, end, span.kind, source[start:end]))
    return widened


def reduce_source(source: str, copied: Iterable[CopiedSpan]) -> str:
    """Return a normalized source without what was copied from it."""
    kept, end = "", 0
    for span in sorted(copied):
        kept = _append_rest(kept, source[end : span.source_start])
        end = span.source_end
    return normalize(_append_rest(kept, source[end:]))


def _append_rest(kept: str, rest: str) -> str:
    """Append what follows a removed span; no space remains before its punctuation."""
    if kept and PUNCTUATION.match(rest):
        return kept.rstrip() + rest.lstrip()
    return kept + rest


def insert_spans(
    text: str, removed: Sequence[RemovedSpan], num_words: int, aligned: Sequence[int | None]
) -> tuple[str, list[int]]:
    """Insert removed spans into a translation; return it, and the position of each span.

    Args:
        text: the translation of the remaining source.
        removed: the spans, in the order of the source.
        num_words: of the remaining source.
        aligned: the word of the translation that is aligned with each word of the source, if known.

    """
    words = text.split()
    inserted: dict[int, list[int]] = {}
    for number, span in enumerate(removed):
        index = _target_index(span, num_words, len(words), aligned)
        inserted.setdefault(index, []).append(number)
    final = ""
    if words and len(words) in inserted and (found := FINAL_PUNCTUATION.search(words[-1])):
        words[-1], final = words[-1][: found.start()], found[0]
    output, starts = "", [0] * len(removed)
    for index, word in enumerate([*words, ""]):
        for number in inserted.get(index, ()):
            output += " " * bool(output)
            starts[number] = len(output)
            output += removed[number].text
        if word:
            output += " " * bool(output) + word
    return output + final, starts


def _target_index(
    span: RemovedSpan, num_words: int, num_target_words: int, aligned: Sequence[int | None]
) -> int:
    """Return the index of the word of the translation before which a span is inserted."""
    if span.word <= 0:
        return 0
    if span.word >= num_words:
        return num_target_words
    is_last = span.word == num_words - 1
    word = span.word + (span.is_counted and not is_last)
    following = aligned[word] if word < len(aligned) else None
    if following is None:
        return round(span.word / num_words * num_target_words)
    # A Korean object precedes its verb, an English one follows it.
    return min(following + (span.has_particle and is_last), num_target_words)


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _read_particle(text: str) -> tuple[str, bool]:
    """Return the Hangul at the start of a text, and whether it is a particle."""
    from attendo.text.glossary import HANGUL_CHARACTERS, is_particle_suffix

    end = 0
    while end < len(text) and HANGUL_CHARACTERS.match(text[end]):
        end += 1
    return text[:end], end > 0 and is_particle_suffix(text[:end])


class SpanCopier:
    """Prepares the items of one call, and completes their translations.

    Args:
        translator: tokenizes, and aligns the words by the attention of its PyTorch model.
        mode: "auto" copies what the model does not know, and URLs, e-mail addresses and emoji that
            it does not reproduce; "always" also numbers that it does not reproduce.

    """

    def __init__(self, translator: Translator, mode: CopyMode) -> None:
        self.translator, self.mode = translator, mode

    def prepare(self, item: TranslationItem) -> TranslationItem:
        """Return an item without the spans that the model does not know.

        A source that has nothing but spans is copied.
        """
        source = normalize(item.source)
        spans = find_copy_spans(source)
        if not spans:
            return item
        expected = [span for span in spans if self._is_expected(span)]
        is_prefixed = item.constraints is not None and bool(item.constraints.prefix)
        keeps_spans = not is_prefixed and any(span.kind in VERBATIM_KINDS for span in spans)
        item = item._replace(keeps_spans=keeps_spans)
        if not _has_words(remove_spans(source, expected).text):
            return self._reduce(item, source, expected)
        tokenizer = self.translator.tokenizer
        return self._reduce(
            item, source, [one for one in spans if has_unknown(tokenizer, one.text)]
        )

    def search_again(
        self, items: list[TranslationItem], results: list[SearchResult], options: DecodingOptions
    ) -> list[SearchResult]:
        """Search items whose translations have other spans than these again; replace the items."""
        results = list(results)
        for search in (self._search_others, self._search_reduced):
            indices = [
                index
                for index, (item, result) in enumerate(zip(items, results, strict=True))
                if self.may_retry(item) and not self.is_complete(item, result)
            ]
            if indices:
                search(items, results, indices, options)
        return results

    def _search_others(
        self,
        items: list[TranslationItem],
        results: list[SearchResult],
        indices: Sequence[int],
        options: DecodingOptions,
    ) -> None:
        """Replace results by those whose best hypothesis has the spans, if there is one."""
        searched = [
            index
            for index in indices
            if self.may_have_others(items[index], options, results[index])
        ]
        if not searched:
            return
        widened = widen_n_best(options)
        found = self.translator.backend.search([items[index] for index in searched], widened)
        for index, result in zip(searched, found, strict=True):
            chosen = self.choose(items[index], result, options)
            results[index] = results[index] if chosen is None else chosen

    def _search_reduced(
        self,
        items: list[TranslationItem],
        results: list[SearchResult],
        indices: Sequence[int],
        options: DecodingOptions,
    ) -> None:
        """Search items without the spans that their translations lack, and replace them."""
        again = {
            index: reduced
            for index in indices
            if (reduced := self.retry(items[index], self._decode(results[index]))) is not None
        }
        if not again:
            return
        found = self.translator.backend.search(list(again.values()), options)
        for (index, item), result in zip(again.items(), found, strict=True):
            items[index], results[index] = item, result

    def may_retry(self, item: TranslationItem) -> bool:
        """Return whether a translation may have other spans than this source."""
        return not item.removed and any(map(self._is_expected, find_copy_spans(item.source)))

    def may_have_others(
        self, item: TranslationItem, options: DecodingOptions, result: SearchResult
    ) -> bool:
        """Return whether a search for more hypotheses may find one that has the spans."""
        is_plain = item.constraints is None and result.trace is None
        return is_plain and options.beam_size > 1 and not options.do_sample

    def is_complete(self, item: TranslationItem, result: SearchResult) -> bool:
        """Return whether the best hypothesis has the spans of its source, and no others."""
        return self._has_spans(normalize(item.source), self._decode(result))

    def choose(
        self, item: TranslationItem, result: SearchResult, options: DecodingOptions
    ) -> SearchResult | None:
        """Return a result whose best hypothesis has the spans of its source; None without one."""
        source = normalize(item.source)
        texts = self.translator.tokenizer.decode_tgt([one.ids for one in result.hypotheses])
        for one, text in zip(result.hypotheses, texts, strict=True):
            if one.is_finished and self._has_spans(source, text):
                others = [other for other in result.hypotheses if other is not one]
                return SearchResult([one, *others][: options.n_best])
        return None

    def _has_spans(self, source: str, text: str) -> bool:
        spans = [one for one in find_copy_spans(source) if self._is_expected(one)]
        if missing_spans(spans, text):
            return False
        return not find_verbatim_spans(source) or has_same_spans(source, text)

    def _decode(self, result: SearchResult) -> str:
        return self.translator.tokenizer.decode_tgt([result.hypotheses[0].ids])[0]

    def _is_expected(self, span: CopySpan) -> bool:
        return self.mode == "always" or span.kind in VERBATIM_KINDS

    def retry(self, item: TranslationItem, text: str) -> TranslationItem | None:
        """Return an item without the spans that its translation lacks; None if it lacks none."""
        source = normalize(item.source)
        spans = [one for one in find_copy_spans(source) if self._is_expected(one)]
        reduced = self._reduce(item, source, missing_spans(spans, text))
        return reduced if reduced.removed and len(reduced.ids) > 1 else None

    def _reduce(
        self, item: TranslationItem, source: str, spans: Sequence[CopySpan]
    ) -> TranslationItem:
        is_prefixed = item.constraints is not None and bool(item.constraints.prefix)
        if not spans or is_prefixed:
            return item
        reduced = remove_spans(source, widen_spans(source, spans))
        words = reduced.text if _has_words(reduced.text) else ""
        ids = self.translator.tokenizer.encode_src([words])[0]
        return item._replace(ids=ids, reduced=reduced.text, removed=reduced.removed)


def widen_n_best(options: DecodingOptions) -> DecodingOptions:
    """Return options that find as many hypotheses as the beam has."""
    return options.replace(n_best=options.beam_size)


def repair_hypothesis(
    translator: Translator, item: TranslationItem, ids: Sequence[int], text: str
) -> tuple[list[int], str, list[str]]:
    """Return the ids and the text of a hypothesis with the placeholders of what was searched.

    The ids are those that the tokenizer makes of the text: alignments need them. The last item
    are the placeholders that the hypothesis lacked or had too often.
    """
    source = item.reduced or normalize(item.source)
    repaired = repair_spans(source, text)
    if not text.strip() or not repaired.is_changed:
        return list(ids), text, []
    encoded = translator.tokenizer.encode_tgt([repaired.text])[0][:-1]
    return encoded, repaired.text, list_differences(source, text)


def repair_confidence(confidence: Confidence, after: str) -> Confidence:
    """Return the confidence of a repaired text: what was put in is certain."""
    from difflib import SequenceMatcher

    from attendo.translator.confidence import WordConfidence

    before, words = confidence.words, after.split()
    matcher = SequenceMatcher(None, [one.text for one in before], words, autojunk=False)
    made = [WordConfidence(word, 1.0) for word in words]
    for block in matcher.get_matching_blocks():
        made[block.b : block.b + block.size] = before[block.a : block.a + block.size]
    return confidence._replace(words=made)


def complete_text(
    translator: Translator, item: TranslationItem, ids: Sequence[int], text: str
) -> tuple[str, tuple[CopiedSpan, ...]]:
    """Return the text of a hypothesis with the spans that were removed from its source."""
    num_words = len(item.reduced.split())
    is_in_middle = any(0 < span.word < num_words for span in item.removed)
    aligned: list[int | None] = []
    if is_in_middle and ids:
        aligned = align_source_words(translator, item.reduced, item.ids, ids)
    complete, starts = insert_spans(text, item.removed, num_words, aligned)
    return complete, tuple(
        CopiedSpan(span.start, span.end, start, start + len(span.text))
        for span, start in zip(item.removed, starts, strict=True)
    )


def complete_confidence(
    confidence: Confidence, before: str, after: str, removed: Sequence[RemovedSpan]
) -> Confidence:
    """Return the confidence of a completed text: copied words are certain."""
    from attendo.translator.confidence import WordConfidence

    if [one.text for one in confidence.words] != before.split():
        return confidence
    remaining = iter(confidence.words)
    spans = [span.text for span in removed]
    words = []
    for word in after.split():
        copied = next((span for span in spans if word.startswith(span)), None)
        if copied is not None:
            spans.remove(copied)
            words.append(WordConfidence(word, 1.0))
        else:
            words.append(next(remaining, WordConfidence("", 1.0))._replace(text=word))
    return confidence._replace(words=words)


def confirm_words(confidence: Confidence, text: str) -> Confidence:
    """Return the confidence of a text that was copied as a whole."""
    from attendo.translator.confidence import WordConfidence

    return confidence._replace(words=[WordConfidence(word, 1.0) for word in text.split()])


def align_source_words(
    translator: Translator, source: str, src_ids: Sequence[int], ids: Sequence[int]
) -> list[int | None]:
    """Return, for each word of a source, the word of the translation that attends to it most.

    Nothing is returned for a model without attention, or without PyTorch to compute it.
    """
    from attendo.translator.confidence import tokens_to_words

    if not translator.backend.has_native:
        return []
    from attendo.translator.cross_attention import cross_attention

    weights = cross_attention(translator.native.backend, src_ids, ids)
    if weights is None:
        return []
    tokenizer = translator.tokenizer
    starts = ["▁" * surface.startswith(" ") for surface in tokenizer.src_surfaces(source)[:-1]]
    src_words = tokens_to_words(starts)
    tgt_words = tokens_to_words(tokenizer.tgt_pieces(ids))
    return [_most_attending(weights, tgt_words, tokens) for tokens in src_words]


def _most_attending(
    weights: Tensor, tgt_words: Sequence[Sequence[int]], src_tokens: Sequence[int]
) -> int | None:
    columns = weights[:, list(src_tokens)].sum(1)  # (T,)
    if not tgt_words:
        return None
    by_words = [float(columns[list(tokens)].max()) for tokens in tgt_words]
    index = max(range(len(by_words)), key=by_words.__getitem__)
    threshold = PHRASE_SHARE * by_words[index]
    while index + 1 < len(by_words) and by_words[index + 1] >= threshold:
        index += 1  # "princess" in "the princess"
    return index
