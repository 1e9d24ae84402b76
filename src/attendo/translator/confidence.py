"""How sure the model is of a translation: calibrated probabilities, a band, unfamiliar input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.text.phrase_constraints import RequiredPhrase
from attendo.text.tokenizer import SPACE_SYMBOL
from attendo.translator.familiarity import Unfamiliarity, check_familiarity
from attendo.translator.quality import BANDS, assess, lower_for_unseen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.hypothesis import SearchResult
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator.backends.base import TranslationItem
    from attendo.translator.quality import Assessment, Band
    from attendo.translator.translator import Translator

DIGITS = 4


class WordConfidence(NamedTuple):
    """A word and its probability, given the words before it."""

    text: str
    probability: float


class Confidence(NamedTuple):
    """The confidence of the model: probabilities that were calibrated on the dev set."""

    probability: float
    """Of exactly this sentence; small for long ones."""
    mean_token_probability: float
    """The geometric mean over the tokens. It is high even for fluent nonsense: see `band`."""
    words: list[WordConfidence]
    quality: float | None = None
    """The share of dev translations with a similar score that were right; None if unknown."""
    band: Band | None = None
    """high, check or low, by the quality; None for a given translation."""
    unfamiliar: Unfamiliarity | None = None
    """Why the source is unlike the training data; None if it is not."""

    @property
    def is_calibrated(self) -> bool:
        """Whether the band rests on the dev set."""
        return self.quality is not None

    @classmethod
    def of_empty_text(cls) -> Confidence:
        """Return the confidence of a text without words: certainty."""
        return cls(1.0, 1.0, [], 1.0, "high")

    @classmethod
    def from_tokens(
        cls,
        tokenizer: Tokenizer,
        ids: Sequence[int],
        log_probs: Sequence[float],
        *,
        assessment: Assessment | None = None,
        unfamiliar: Unfamiliarity | None = None,
    ) -> Confidence:
        """Return the confidence of a translation from the log-probabilities of its tokens.

        `log_probs` may have one more element than `ids`: the end symbol's.
        """
        total = sum(log_probs)
        words = []
        for indices in tokens_to_words(tokenizer.tgt_pieces(ids)):
            text = tokenizer.decode_tgt([[ids[index] for index in indices]])[0]
            if text:  # a space alone is not a word
                probability = math.exp(sum(log_probs[index] for index in indices))
                words.append(WordConfidence(text, probability))
        # After a label the end symbol is certain, so it says nothing about the confidence.
        length = len(ids) if tokenizer.tgt_kind == "label" else len(log_probs)
        quality, band = assessment or (None, None)
        mean = math.exp(total / max(length, 1))
        return cls(math.exp(total), mean, words, quality, band, unfamiliar)

    @classmethod
    def join(cls, parts: Sequence[Confidence], sizes: Sequence[int]) -> Confidence:
        """Return the confidence of a text from those of its segments with `sizes` tokens.

        Quality and band are those of the worst segment.
        """
        means = (max(part.mean_token_probability, 1e-300) for part in parts)
        logs = [math.log(mean) * size for mean, size in zip(means, sizes, strict=True)]
        qualities = [part.quality for part in parts if part.quality is not None]
        bands = [part.band for part in parts if part.band is not None]
        return cls(
            math.prod(part.probability for part in parts),
            math.exp(sum(logs) / max(sum(sizes), 1)),
            [word for part in parts for word in part.words],
            min(qualities) if len(qualities) == len(parts) else None,
            max(bands, key=BANDS.index, default=None),
            Unfamiliarity.join([part.unfamiliar for part in parts]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "probability": self.probability,
            "mean_token_probability": round(self.mean_token_probability, DIGITS),
            "quality": None if self.quality is None else round(self.quality, DIGITS),
            "band": self.band,
            "is_calibrated": self.is_calibrated,
            "unfamiliar": None if self.unfamiliar is None else self.unfamiliar.to_dict(),
            "words": [
                {"text": w.text, "probability": round(w.probability, DIGITS)} for w in self.words
            ],
        }


def score_hypotheses(
    translator: Translator, items: Sequence[TranslationItem], results: Sequence[SearchResult]
) -> list[list[Confidence]]:
    """Return the confidence of every hypothesis, computed by the calibrated model.

    Words of required phrases count as certain: the user has chosen them.
    """
    pairs = [
        (item.ids, hypothesis.ids)
        for item, result in zip(items, results, strict=True)
        for hypothesis in result.hypotheses
    ]
    src, tgt = [source for source, _ in pairs], [target for _, target in pairs]
    scored = iter(translator.backend.score(src, tgt, temperature=translator.temperature))

    def judge(ids: list[int], item: TranslationItem, source: _Source) -> Confidence:
        log_probs: Sequence[float] = next(scored)
        if item.constraints is not None and item.constraints.required:
            required = item.constraints.required
            log_probs = accept_required(translator.tokenizer, ids, log_probs, required)
        assessment = assess(translator.quality, log_probs)
        if source.unfamiliar is not None and source.unfamiliar.num_unseen:
            assessment = lower_for_unseen(translator.quality, assessment, source.unseen_share)
        return Confidence.from_tokens(
            translator.tokenizer,
            ids,
            log_probs,
            assessment=assessment,
            unfamiliar=source.unfamiliar,
        )

    sources = [_Source.of(translator, item) for item in items]
    return [
        [judge(one.ids, item, source) for one in result.hypotheses]
        for item, result, source in zip(items, results, sources, strict=True)
    ]


class _Source(NamedTuple):
    """How far the model knows a source."""

    unfamiliar: Unfamiliarity | None
    unseen_share: float
    """Of the tokens that the model reads: copied spans do not count."""

    @classmethod
    def of(cls, translator: Translator, item: TranslationItem) -> _Source:
        familiarity = translator.familiarity
        read = check_familiarity(familiarity, item.reduced or item.source, item.ids)
        share = read.num_unseen / read.num_tokens if read is not None else 0.0
        if not item.removed:
            return cls(read, share)
        ids = translator.tokenizer.encode_src([item.source])[0]
        return cls(check_familiarity(familiarity, item.source, ids), share)


def score_translations(
    translator: Translator, sources: Sequence[str], translations: Sequence[str]
) -> list[Confidence]:
    """Return the confidence of given translations, which have no band."""
    src = translator.tokenizer.encode_src(sources)
    tgt = [row[:-1] for row in translator.tokenizer.encode_tgt(translations)]
    scored = translator.backend.score(src, tgt, temperature=translator.temperature)
    return [
        Confidence.from_tokens(
            translator.tokenizer,
            ids,
            log_probs,
            unfamiliar=check_familiarity(translator.familiarity, source, src_ids),
        )
        for source, src_ids, ids, log_probs in zip(sources, src, tgt, scored, strict=True)
    ]


def accept_required(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    log_probs: Sequence[float],
    required: Sequence[object],
) -> list[float]:
    """Return log-probabilities in which the words of required phrases are certain."""
    words = tokens_to_words(tokenizer.tgt_pieces(ids))
    texts = tokenizer.decode_tgt([[ids[index] for index in word] for word in words])
    text = " ".join(texts)
    phrases = [phrase for phrase in required if isinstance(phrase, RequiredPhrase)]
    spans = [span for phrase in phrases for span in phrase.find_spans(text)]
    accepted, start = list(log_probs), 0
    for word, word_text in zip(words, texts, strict=True):
        end = start + len(word_text)
        if any(first < end and start < last for first, last in spans):
            for index in word:
                accepted[index] = 0.0
        start = end + 1
    return accepted


def tokens_to_words(pieces: Sequence[str]) -> list[list[int]]:
    """Return the indices of the pieces of each word; a leading space symbol starts a word.

    >>> tokens_to_words(["▁나는", "▁학", "생", "이다", "."])
    [[0], [1, 2, 3, 4]]
    """
    words: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if piece.startswith(SPACE_SYMBOL) or not words:
            words.append([])
        words[-1].append(index)
    return words
