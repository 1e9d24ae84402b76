"""Translates texts with one model, or several as one: cuts, searches, puts together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from attendo.bundle import load_bundle
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.text.glossary import UNSPACED_SCRIPTS, Glossary
from attendo.text.phrase_constraints import IncrementalDetokenizer
from attendo.text.sentences import (
    SegmentedText,
    join_translations,
    split_into_segments,
    split_sentences,
)
from attendo.text.tokenizer import UNK_ID, Tokenizer
from attendo.translator.backends.ctranslate2.conversion_cache import load_ctranslate2
from attendo.translator.backends.half_precision import BFloat16Backend, NativePrecision
from attendo.translator.backends.pytorch import PyTorchBackend, TranslationItem
from attendo.translator.confidence import compute_confidence
from attendo.translator.constraints import ConstraintBuilder, ConstraintRequest
from attendo.translator.translation import Confidence, Translation
from attendo.translator.unknown_words import align_unknowns, replace_unknowns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import Hypothesis, SearchResult
    from attendo.translator.backends.ctranslate2.conversion_cache import EngineName
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import Progress

MAX_SRC_TOKENS = 512
"""What fits a model that does not tell how long the sentences of its training were."""

MULTI_SENTENCE_THRESHOLD = 1.1
"""Sentences a line of dev, on average, from which on a model has learnt to read several at once."""

Split = Literal["auto", "sentences", "never"]


class Translator:
    """A model and its tokenizer.

    `Translator.load("runs/ko-en").translate(["나는 학생이다."])` gives `["I am a student."]`.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        tokenizer: Tokenizer,
        *,
        about: Mapping[str, Any] | None = None,
        backend: PyTorchBackend | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.backend, self.detokenizer = (
            backend or PyTorchBackend(model),
            IncrementalDetokenizer(tokenizer),
        )
        self._native: Translator | None = None
        self.about = dict(about or {})
        self.temperature = float((self.about.get("calibration") or {}).get("temperature", 1.0))
        self.max_src_tokens = int(self.about.get("max_src_tokens") or MAX_SRC_TOKENS)
        self.sentences_per_line = float(self.about.get("num_sentences") or 1.0)

    @classmethod
    def load(
        cls,
        directory: str | Path,
        *more: str | Path,
        device: torch.device | str | None = None,
        engine: EngineName = "attendo",
        precision: Precision | NativePrecision = "auto",
    ) -> Self:
        """Read a model folder, onto a GPU where there is one; several make an ensemble.

        Args:
            directory: of the model, or of the run that made it.
            more: folders of other models that decide with it.
            device: cpu, cuda, cuda:1 ...
            engine: what decodes. "ctranslate2" is far faster on a CPU and converts the model once;
                "auto" takes it on a CPU where it is installed and can run the model.
            precision: of CTranslate2: int8, float32, or "auto", which is int8 and for one text
                alone what is faster here. Of our own: "auto" is float32, on a GPU with products
                in TF32, which turn one text in several hundred at a near tie; "float32" has
                all bits there too; bfloat16 is faster yet and turns one in twenty.

        """
        chosen = resolve_device(device)
        if engine == "attendo" and precision not in get_args(NativePrecision):
            hint = "our own has float32 and bfloat16; the engine ctranslate2 has int8 and float32"
            raise ConfigError(
                message("no precision '{name}' of our own engine", name=precision), hint=hint
            )
        if engine == "ctranslate2" or (engine != "attendo" and precision != "bfloat16"):
            target_device = None if device is None and engine != "auto" else chosen
            converted = load_ctranslate2(
                directory,
                *more,
                engine=engine,
                device=target_device,
                precision=cast("Precision", precision),  # checked there
            )
            if converted is not None:
                tokenizer = Tokenizer.load(converted.folder)
                return cls(
                    converted.model, tokenizer, about=converted.info["about"], backend=converted
                )
        first, *others = (load_bundle(path, device=chosen) for path in (directory, *more))
        for path, bundle in zip(more, others, strict=True):
            if bundle.tokenizer.fingerprint != first.tokenizer.fingerprint:
                raise InputError(
                    f"{path} and {directory} have different tokenizers",
                    hint="an ensemble is of models that were trained on the same prepared data",
                )
        models = [first.model, *(bundle.model for bundle in others)]
        model = Ensemble(models) if others else first.model
        is_bfloat16, is_exact = precision == "bfloat16", precision == "float32"
        backend = (
            BFloat16Backend(model) if is_bfloat16 else PyTorchBackend(model, is_exact=is_exact)
        )
        return cls(model, first.tokenizer, about=first.about, backend=backend)

    @property
    def native(self) -> Translator:
        """The same model behind our own decoder, which shows its inside; loaded when asked for."""
        backend = self.backend.native
        if backend is self.backend:
            return self
        if self._native is None:
            self._native = Translator(
                backend.model, self.tokenizer, about=self.about, backend=backend
            )
        return self._native

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefix: str | Sequence[str] | None = None,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
        required: Sequence[str] = (),
        forbidden: Sequence[str] = (),
        confidence: bool = False,
        trace: bool = False,
        split: Split = "auto",
        progress: Progress | None = None,
        **options: Any,
    ) -> list[Translation]:
        """Translate each text; an empty one comes back empty, in its place.

        Args:
            texts: a list. One with several sentences is translated sentence by sentence, unless the
                model was trained on such texts, and keeps its line breaks.
            prefix: what the translation begins with, for all texts or for each.
            glossary: source phrases and what must stand for them where they occur; a TSV file too.
            required: phrases that must stand in every translation.
            forbidden: phrases that must not stand in any.
            confidence: tell how sure the model is of each word (`translation.confidence`).
            trace: tell every candidate of every step (`translation.trace`).
            split: "sentences" cuts every text into sentences, "never" cuts only at line breaks and
                what is longer than any text in training.
            progress: is called with the number of pieces that are done, and of all.
            options: of the search (`attendo.decoding.options.DecodingOptions`): beam_size, n_best,
                alpha, min_length, no_repeat_ngram, sample, temperature, top_k, top_p, seed ...

        """
        chosen = DecodingOptions(**options)
        for given in (texts, required, forbidden):
            _check_texts(given)
        documents = [self.split_text(text, split) for text in texts]
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix or ())
        request = ConstraintRequest(prefixes, required, forbidden, _read_glossary(glossary))
        self.backend.check_supported(chosen, request, trace=trace)
        builder = ConstraintBuilder(self.detokenizer, request, num_texts=len(texts))
        pieces = [
            (piece, builder.build(text, number, piece))
            for text, document in enumerate(documents)
            for number, piece in enumerate(document.segments)
        ]
        translations = iter(self._translate_segments(pieces, chosen, confidence, trace, progress))
        return [
            self.merge_segments(
                text,
                document,
                [next(translations) for _ in document.segments],
                empty_confidence=Confidence(1.0, 1.0, []) if confidence else None,
            )
            for text, document in zip(texts, documents, strict=True)
        ]

    def score(self, sources: Sequence[str], translations: Sequence[str]) -> list[Confidence]:
        """Tell how likely the model finds given translations: by word, and as a whole."""
        _check_texts(sources)
        _check_texts(translations)
        if len(sources) != len(translations):
            raise InputError(
                f"{len(sources)} sources and {len(translations)} translations",
                hint="give one translation for each source",
            )
        src = self.tokenizer.encode_src(sources)
        tgt = [row[:-1] for row in self.tokenizer.encode_tgt(translations)]
        scored = self.backend.score(src, tgt, temperature=self.temperature)
        return [compute_confidence(self.tokenizer, *pair) for pair in zip(tgt, scored, strict=True)]

    def split_text(self, text: str, split: Split) -> SegmentedText:
        if split not in get_args(Split):
            raise ConfigError(f"no way '{split}' to split", hint=suggest(split, get_args(Split)))

        def fits(part: str) -> bool:
            is_short = 4 * len(part) < self.max_src_tokens  # a character has up to four bytes
            return is_short or len(self.tokenizer.encode_src([part])[0]) <= self.max_src_tokens

        is_document = "\n" in text.strip() or self.sentences_per_line < MULTI_SENTENCE_THRESHOLD
        by_sentence = split == "sentences" or (split == "auto" and is_document)
        return split_into_segments(text, fits=fits, by_sentence=by_sentence)

    def _translate_segments(
        self,
        segments: Sequence[tuple[str, Constraints]],
        options: DecodingOptions,
        confidence: bool,
        trace: bool,
        progress: Progress | None,
    ) -> list[Translation]:
        ids = self.tokenizer.encode_src([source for source, _ in segments])
        empty_confidence = Confidence(1.0, 1.0, []) if confidence else None
        translations = [
            Translation("", source=source, confidence=empty_confidence) for source, _ in segments
        ]
        indices = [index for index, row in enumerate(ids) if len(row) > 1]  # the end symbol is one
        items = [
            TranslationItem(segments[place][0], ids[place], segments[place][1]) for place in indices
        ]
        results = self.backend.search(items, options, trace=trace, progress=progress)
        confidences = self.score_confidence(items, results) if confidence else None
        for number, (place, item, one) in enumerate(zip(indices, items, results, strict=True)):
            translations[place] = self.to_translation(
                item, one, options, confidences[number] if confidences else None
            )
        return translations

    def score_confidence(
        self, items: Sequence[TranslationItem], results: Sequence[SearchResult]
    ) -> list[list[Confidence]]:
        """Score every hypothesis again, by the calibrated model."""
        pairs = [
            (item.ids, hypothesis.ids)
            for item, search_result in zip(items, results, strict=True)
            for hypothesis in search_result.hypotheses
        ]
        src, tgt = [source for source, _ in pairs], [target for _, target in pairs]
        scored = iter(self.backend.score(src, tgt, temperature=self.temperature))
        return [
            [compute_confidence(self.tokenizer, one.ids, next(scored)) for one in result.hypotheses]
            for result in results
        ]

    def to_translation(
        self,
        item: TranslationItem,
        result: SearchResult,
        options: DecodingOptions,
        confidences: list[Confidence] | None,
    ) -> Translation:
        """Put what was found for one piece into words."""
        translations = []
        for rank, one in enumerate(result.hypotheses):
            notes = [] if one.is_finished else [f"cut after {len(one.ids)} tokens"]
            missing = (
                phrase for phrase in item.constraints.required if not phrase.is_satisfied(one.ids)
            )
            notes += [f"without '{getattr(phrase, 'phrase', '')}'" for phrase in missing]
            text = self.tokenizer.decode_tgt([one.ids])[0]
            if options.unk == "copy" and UNK_ID in one.ids:
                text = self._copy_unknown(text, item, one)
            translations.append(
                Translation(
                    text,
                    source=item.source,
                    log_prob=one.log_prob,
                    score=one.score,
                    ids=one.ids,
                    tokens=self.tokenizer.tgt_pieces(one.ids),
                    is_finished=one.is_finished,
                    confidence=confidences[rank] if confidences else None,
                    notes=notes,
                )
            )
        best = translations[0]
        best.alternatives = translations[1:]
        if result.trace is not None:
            best.trace = [self._add_token_text(result.trace.to_dict())]
        return best

    def _copy_unknown(self, text: str, item: TranslationItem, one: Hypothesis) -> str:
        with self.backend.eval_mode():
            indices = align_unknowns(self.model, self.backend.pad([item.ids]), one.ids)
        surfaces = self.tokenizer.src_surfaces(item.source)
        return replace_unknowns(text, [surfaces[index] for index in indices])

    def _add_token_text(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Write the piece beside each id of a trace."""
        for step in trace["steps"]:
            names = self.tokenizer.tgt_pieces(one["id"] for one in step["candidates"])
            step["candidates"] = [
                {"token": name, **one} for name, one in zip(names, step["candidates"], strict=True)
            ]
        return trace

    def merge_segments(
        self,
        text: str,
        document: SegmentedText,
        segments: list[Translation],
        *,
        empty_confidence: Confidence | None,
    ) -> Translation:
        if not segments:
            return Translation("", source=text, confidence=empty_confidence)
        num_ranks = 1 + max(len(segment.alternatives) for segment in segments)
        best, *rest = (
            self._join_rank(
                text, document, [_ranked_translation(piece, rank) for piece in segments]
            )
            for rank in range(num_ranks)
        )
        best.alternatives = rest
        best.trace = [trace for piece in segments for trace in piece.trace or ()] or None
        if len(segments) > len(split_sentences(text)) and "\n" not in text.strip():
            best.notes.insert(0, f"translated in {len(segments)} pieces")
        return best

    def _join_rank(
        self, text: str, document: SegmentedText, segments: list[Translation]
    ) -> Translation:
        joined = join_translations(document, space_segments(document, segments))
        confidences = [segment.confidence for segment in segments if segment.confidence is not None]
        sizes = [len(piece.tokens) + 1 for piece in segments]
        return Translation(
            joined if "\n" in text else joined.strip(),
            source=text,
            log_prob=sum(piece.log_prob for piece in segments),
            score=sum(piece.score for piece in segments) / max(len(segments), 1),
            ids=[number for piece in segments for number in piece.ids],
            tokens=[token for piece in segments for token in piece.tokens],
            is_finished=all(piece.is_finished for piece in segments),
            confidence=Confidence.join(confidences, sizes) if confidences else None,
            notes=[note for piece in segments for note in piece.notes],
        )


def space_segments(document: SegmentedText, segments: Sequence[str]) -> list[str]:
    """Put a space before a word whose piece was cut off without one, e.g. out of Chinese."""
    spaced = list(segments[:1])
    for gap, before, segment in zip(document.separators[1:], segments, segments[1:], strict=False):
        needs_space = (
            not gap and before and segment[:1].isalnum() and not UNSPACED_SCRIPTS.match(segment)
        )
        spaced.append(f" {segment}" if needs_space else segment)
    return spaced


def _ranked_translation(piece: Translation, rank: int) -> Translation:
    """Give the translation of this rank, or the last that there is."""
    ranked = [piece, *piece.alternatives]
    return ranked[min(rank, len(ranked) - 1)]


def _check_texts(texts: Sequence[object]) -> None:
    if isinstance(texts, str):
        reason = f"one text, '{texts[:40]}', where a list of texts is needed"
        raise InputError(reason, hint="put it into a list: translate([text])[0]")
    invalid = [type(text).__name__ for text in texts if not isinstance(text, str)]
    if invalid:
        raise InputError(f"a {invalid[0]} is no text", hint="give a list of texts (str)")


def _read_glossary(
    glossary: Glossary | Mapping[str, str] | str | Path | None,
) -> Glossary | None:
    if glossary is None or isinstance(glossary, Glossary):
        return glossary
    return Glossary.load(glossary) if isinstance(glossary, (str, Path)) else Glossary(glossary)
