"""A search in which glossary terms replace the words that the model would write.

A search that only requires a phrase adds it to the words of the model ("I am a student pupil"),
since the model does not expect it and still has to translate the rest. Therefore a segment is
translated without the glossary first. The words that attend to the source phrase are replaced by
the term, and the result is decoded as a forced prefix. A Korean word keeps its particle. Where this
is not possible, the phrase is only required: no word attends to the source phrase, two phrases have
the same word, or it is not clear what the particle is.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from attendo.decoding.hypothesis import SearchResult
from attendo.text.glossary import HANGUL_CHARACTERS, is_particle_suffix
from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, SPACE_SYMBOL
from attendo.translator.confidence import tokens_to_words
from attendo.translator.constraints import contains_forbidden
from attendo.translator.copying import align_source_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.hypothesis import Hypothesis
    from attendo.decoding.options import DecodingOptions
    from attendo.text.glossary import Glossary
    from attendo.translator.backends.base import Progress, TranslationItem
    from attendo.translator.constraints import ConstraintBuilder
    from attendo.translator.translator import Translator

    Match = tuple[int, int, str]

FIRST_SYLLABLE, NUM_SYLLABLES, NUM_FINALS, FINAL_RIEUL = 0xAC00, 11_172, 28, 8
"""Of the Hangul syllables of Unicode: the final consonant is the number modulo 28."""
CLEAR_PARTICLES = "은는을를의에와과"
"""Of one syllable, which longer nouns hardly ever end with."""


class GlossarySearch:
    """Searches segments, with the terms of a glossary in place.

    Args:
        translator: searches and aligns.
        builder: has the glossary.

    """

    def __init__(self, translator: Translator, builder: ConstraintBuilder) -> None:
        self.translator, self.builder = translator, builder

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Return the result of each item, in order, like the backend's `search`."""
        backend = self.translator.backend
        substituted = {} if trace or options.do_sample else self._substitute(items, options)
        rest = [number for number in range(len(items)) if number not in substituted]
        remaining = [items[number] for number in rest]
        found = (
            backend.search(remaining, options, trace=trace, progress=progress) if remaining else []
        )
        results = dict(zip(rest, found, strict=True)) | substituted
        return [results[number] for number in range(len(items))]

    def _substitute(
        self, items: Sequence[TranslationItem], options: DecodingOptions
    ) -> dict[int, SearchResult]:
        """Return the results of the items in which all terms found their spans, by index.

        The alternatives are those of the translation without the glossary, with the same terms.
        """
        glossary = self.builder.request.glossary
        if glossary is None:
            return {}
        candidates = [
            index
            for index, item in enumerate(items)
            if _has_only_terms(item) and glossary.find_matches(item.source)
        ]
        if not candidates:
            return {}
        backend = self.translator.backend
        own = self.builder.without_glossary()
        plain = [items[index]._replace(constraints=own) for index in candidates]
        forced: list[tuple[int, TranslationItem]] = []
        for index, result in zip(candidates, backend.search(plain, options), strict=True):
            first, *others = (
                self._replace(items[index], one.ids, glossary) for one in result.hypotheses
            )
            if first is not None:
                forced += [(index, one) for one in (first, *others) if one is not None]
        if not forced:
            return {}
        found = backend.search([item for _, item in forced], options.replace(n_best=1))
        results: dict[int, SearchResult] = {}
        for (index, item), result in zip(forced, found, strict=True):
            one, made = result.hypotheses[0], results.setdefault(index, SearchResult([]))
            is_right = one.is_finished and _satisfies(item, one.ids)
            if is_right or not made.hypotheses:
                made.hypotheses.append(one._replace(is_finished=is_right))
        return {
            index: SearchResult(_without_repetitions([best, *_by_score(others)]))
            for index, made in results.items()
            for best, *others in [made.hypotheses]
            if best.is_finished
        }

    def _replace(
        self, item: TranslationItem, ids: Sequence[int], glossary: Glossary
    ) -> TranslationItem | None:
        """Return an item that is forced to be the translation `ids` with the terms in place."""
        constraints, tokenizer = item.constraints, self.translator.tokenizer
        if constraints is None or _satisfies(item, ids):
            return None
        source = normalize(item.source)
        words = tokenizer.decode_tgt([ids])[0].split()
        aligned = align_source_words(self.translator, source, item.ids, ids)
        if len(aligned) != len(source.split()):
            return None
        pieces = tokenizer.tgt_pieces(ids)
        particles = [
            find_particle([pieces[index].replace(SPACE_SYMBOL, "") for index in word])
            for word in tokens_to_words(pieces)
        ]
        if len(particles) != len(words):
            return None
        text = substitute(source, words, particles, aligned, glossary.find_matches(source))
        if text is None:
            return None
        prefix = tuple(one for one in tokenizer.encode_tgt([text])[0] if one != END_ID)
        is_forbidden = any(contains_forbidden(prefix, one) for one in self.builder.forbidden)
        if is_forbidden or tokenizer.decode_tgt([prefix])[0] != text:
            return None
        return item._replace(constraints=replace(constraints, prefix=(*prefix, END_ID)))


def find_particle(pieces: Sequence[str]) -> str | None:
    """Return the Korean particle at the end of a word; None if it is not clear where the noun ends.

    >>> find_particle(["왕자", "는", "."]), find_particle(["왕자는"]), find_particle(["lion", "."])
    ('는', '는', '')
    >>> find_particle(["마을"]), find_particle(["소설가"])
    (None, None)
    """
    rest = list(pieces)
    while rest and not any(map(str.isalnum, rest[-1])):  # punctuation
        rest.pop()
    word = "".join(rest)
    while word and not word[-1].isalnum():
        word = word[:-1]
    if not word or not HANGUL_CHARACTERS.match(word[-1]):
        return ""
    for number in range(1, len(rest)):
        tail = word[len("".join(rest[:number])) :]
        if tail and is_particle_suffix(tail):
            return tail
    for length in (1, 2, 3):
        tail = word[-length:]
        if is_particle_suffix(tail):
            is_clear = len(word) - length > 1 and (length > 1 or tail in CLEAR_PARTICLES)
            return tail if is_clear else None
    return ""


def adapt_particle(particle: str, noun: str) -> str:
    """Return the form of a Korean particle after a noun.

    >>> [adapt_particle(one, "선생님") for one in ("는", "가", "를", "와", "로", "다", "에게")]
    ['은', '이', '을', '과', '으로', '이다', '에게']
    >>> [adapt_particle(one, "왕세자") for one in ("은", "이", "을", "과", "으로", "이다")]
    ['는', '가', '를', '와', '로', '이다']
    """
    code = ord(noun[-1]) - FIRST_SYLLABLE
    if not 0 <= code < NUM_SYLLABLES:
        return particle
    final = code % NUM_FINALS
    for closed, opened in (("은", "는"), ("이", "가"), ("을", "를"), ("과", "와")):
        if particle in (closed, opened):
            return closed if final else opened
    if particle.startswith(("으로", "로")):
        plain = particle.removeprefix("으")
        return f"으{plain}" if final not in (0, FINAL_RIEUL) else plain
    return "이다" if particle == "다" and final else particle


def substitute(
    source: str,
    words: Sequence[str],
    particles: Sequence[str | None],
    aligned: Sequence[int | None],
    matches: Sequence[Match],
) -> str | None:
    """Return a translation with each term instead of the words that attend to its source.

    Args:
        source: the source.
        words: of the translation.
        particles: of these words.
        aligned: for each word of the source, the word of the translation that attends to it.
        matches: start, end and term of each source phrase.

    Returns:
        The text; None if no word attends to a source phrase, or one attends to several.

    >>> words = ["I", "am", "a", "student."]
    >>> substitute("나는 학생이다.", words, ["", "", "", ""], [0, 3], [(3, 5, "pupil")])
    'I am a pupil.'

    """
    spans = []
    for start, end, term in matches:
        first = len(source[: start + 1].split()) - 1
        last = len(source[:end].split()) - 1
        indices = [index for index in aligned[first : last + 1] if index is not None]
        if not indices or max(indices) >= len(words):
            return None
        spans.append((min(indices), max(indices), term))
    spans.sort()
    if any(before[1] >= after[0] for before, after in pairwise(spans)):
        return None
    replaced = list(words)
    for first, last, term in reversed(spans):
        particle = particles[last]
        if particle is None:
            return None
        noun = term + adapt_particle(particle, term)
        word = copy_style(noun, words[first], words[last], is_first=first == 0)
        replaced[first : last + 1] = [word]
    return " ".join(replaced)


def copy_style(term: str, first: str, last: str, *, is_first: bool) -> str:
    """Return a term with the punctuation around the words that it replaces, and their capital."""
    opening = first[: len(first) - len(first.lstrip("\"'([{“‘"))]
    letters = last
    while letters and not letters[-1].isalnum():
        letters = letters[:-1]
    if is_first and first[len(opening) :][:1].isupper() and term.islower():
        term = term[0].upper() + term[1:]
    return opening + term + last[len(letters) :]


def _by_score(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Sort alternatives, whose order is that without the terms."""
    return sorted(hypotheses, key=lambda one: -one.score)


def _without_repetitions(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Two translations may differ in the words only that a term replaces."""
    found: dict[tuple[int, ...], Hypothesis] = {}
    for one in hypotheses:
        found.setdefault(tuple(one.ids), one)
    return list(found.values())


def _has_only_terms(item: TranslationItem) -> bool:
    return item.constraints is not None and not item.constraints.prefix and not item.removed


def _satisfies(item: TranslationItem, ids: Sequence[int]) -> bool:
    required = item.constraints.required if item.constraints is not None else ()
    return all(phrase.is_satisfied(ids) for phrase in required)
