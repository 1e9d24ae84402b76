"""Translates texts: splits them into segments, searches translations and joins them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from attendo.bundle import load_bundle
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.options import DecodingOptions
from attendo.text.glossary import UNSPACED_SCRIPTS, Glossary
from attendo.text.phrase_constraints import IncrementalDetokenizer
from attendo.text.sentences import (
    SegmentedText,
    join_translations,
    split_into_segments,
    split_sentences,
)
from attendo.text.tokenizer import UNK_ID, Tokenizer
from attendo.translator.backends.pytorch import (
    BFloat16Backend,
    NativePrecision,
    PyTorchBackend,
    TranslationItem,
)
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
"""The maximum source length of a model whose folder does not record one."""

MULTI_SENTENCE_THRESHOLD = 1.1
"""Mean sentences per dev line from which a model counts as trained on several at once."""

Split = Literal["auto", "sentences", "never"]


class Translator:
    """Translates text with a model and its tokenizer.

    `Translator.load("runs/ko-en").translate(["나는 학생이다."])` returns `["I am a student."]`.

    Args:
        model: a sequence-to-sequence model, or an ensemble.
        tokenizer: the tokenizer that the model was trained with.
        about: metadata of the model folder: calibration, maximum source length and others.
        backend: decodes with the model; the default is PyTorch.

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
        self.backend = backend or PyTorchBackend(model)
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
        """Load a model folder; several folders make an ensemble.

        Args:
            directory: a model folder, or the folder of the run that trained it.
            more: folders of the other models of an ensemble.
            device: cpu, cuda, cuda:1 ...; the default is a GPU if there is one.
            engine: "attendo" decodes with PyTorch. "ctranslate2" is much faster on a CPU and
                converts the model once. "auto" uses CTranslate2 on a CPU if it is installed and
                supports the model.
            precision: of CTranslate2: int8, float32, or "auto": int8, and for single texts
                whichever is faster on this machine. Of PyTorch: float32, bfloat16, or "auto":
                float32, with TF32 products on a GPU, which change about one text in several
                hundred. bfloat16 is faster and changes about one in twenty.

        Returns:
            A translator that is ready to use.

        Raises:
            ConfigError: unknown engine or precision, or the engine does not support the model.
            InputError: not a model folder, or the tokenizers of an ensemble differ.

        """
        chosen_device = resolve_device(device)
        if engine == "attendo" and precision not in get_args(NativePrecision):
            hint = "engine 'attendo' has float32 and bfloat16; 'ctranslate2' has int8 and float32"
            raise ConfigError(
                message("engine 'attendo' has no precision '{name}'", name=precision), hint=hint
            )
        if engine == "ctranslate2" or (engine != "attendo" and precision != "bfloat16"):
            from attendo.translator.backends.ctranslate2.conversion_cache import load_ctranslate2

            converted = load_ctranslate2(
                directory,
                *more,
                engine=engine,
                device=None if device is None and engine != "auto" else chosen_device,
                precision=cast("Precision", precision),  # load_ctranslate2 checks it
            )
            if converted is not None:
                tokenizer = Tokenizer.load(converted.folder)
                about = converted.info["about"]
                return cls(converted.model, tokenizer, about=about, backend=converted)
        first, *others = (load_bundle(path, device=chosen_device) for path in (directory, *more))
        for path, bundle in zip(more, others, strict=True):
            if bundle.tokenizer.fingerprint != first.tokenizer.fingerprint:
                raise InputError(
                    f"{path} and {directory} have different tokenizers",
                    hint="the models of an ensemble must be trained on the same prepared data",
                )
        model = Ensemble([first.model, *(one.model for one in others)]) if others else first.model
        backend = (
            BFloat16Backend(model)
            if precision == "bfloat16"
            else PyTorchBackend(model, is_exact=precision == "float32")
        )
        return cls(model, first.tokenizer, about=first.about, backend=backend)

    @cached_property
    def detokenizer(self) -> IncrementalDetokenizer:
        """The text of target ids, for prefixes and phrases."""
        return IncrementalDetokenizer(self.tokenizer)

    @property
    def native(self) -> Translator:
        """The same model behind the PyTorch backend, which exposes its internals; loaded lazily."""
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
        options: DecodingOptions | None = None,
        prefix: str | Sequence[str] | None = None,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
        required: Sequence[str] = (),
        forbidden: Sequence[str] = (),
        confidence: bool = False,
        trace: bool = False,
        split: Split = "auto",
        progress: Progress | None = None,
        **overrides: Any,
    ) -> list[Translation]:
        """Translate each text; the translation of an empty text is empty.

        Args:
            texts: a list of texts. A text of several sentences is translated sentence by sentence,
                unless the model was trained on such texts, and keeps its line breaks.
            options: how to search; the default is `DecodingOptions()`.
            prefix: the beginning of the translation, for all texts or one per text.
            glossary: source phrases and their required translations: a mapping or a TSV file.
            required: phrases that must occur in every translation.
            forbidden: phrases that must not occur in any translation.
            confidence: compute the probability of each word (`translation.confidence`).
            trace: record every candidate of every step (`translation.trace`).
            split: "sentences" splits every text into sentences; "never" splits only at line breaks
                and what is longer than any text of the training data.
            progress: called with the number of finished segments and of all segments.
            overrides: fields of `options` by name: beam_size, n_best, alpha, min_length,
                no_repeat_ngram, do_sample, temperature, top_k, top_p, seed ...

        Returns:
            One translation per text, in order.

        Raises:
            ConfigError: an option is unknown or invalid, or the backend does not support it.
            InputError: `texts` is not a list of str, or a phrase or glossary is invalid.

        """
        if options is None or overrides:
            options = DecodingOptions(**_merge_options(options, overrides))
        for given in (texts, required, forbidden):
            _check_texts(given)
        documents = [self.split_text(text, split) for text in texts]
        request = None
        if prefix or required or forbidden or glossary is not None:
            prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix or ())
            request = ConstraintRequest(prefixes, required, forbidden, _read_glossary(glossary))
        self.backend.check_supported(options, request, trace=trace)
        items = self._make_items(documents, request)
        nonempty = [index for index, item in enumerate(items) if len(item.ids) > 1]  # not only END
        searched = [items[index] for index in nonempty]
        results = self.backend.search(searched, options, trace=trace, progress=progress)
        confidences = self.score_confidence(searched, results) if confidence else None
        translations = [empty_translation(item.source, confidence=confidence) for item in items]
        for number, (index, result) in enumerate(zip(nonempty, results, strict=True)):
            hypothesis_confidences = confidences[number] if confidences is not None else None
            translations[index] = self.to_translation(
                items[index], result, options, hypothesis_confidences
            )
        remaining = iter(translations)
        return [
            self.merge_segments(
                text, document, [next(remaining) for _ in document.segments], confidence=confidence
            )
            for text, document in zip(texts, documents, strict=True)
        ]

    def score(self, sources: Sequence[str], translations: Sequence[str]) -> list[Confidence]:
        """Return the calibrated probabilities of given translations.

        Args:
            sources: a list of texts.
            translations: one per source.

        Returns:
            The probability of each translation as a whole and of its words.

        Raises:
            InputError: the lists have different lengths, or contain something other than str.

        """
        _check_texts(sources)
        _check_texts(translations)
        if len(sources) != len(translations):
            raise InputError(
                f"{len(sources)} sources and {len(translations)} translations",
                hint="give one translation per source",
            )
        src = self.tokenizer.encode_src(sources)
        tgt = [row[:-1] for row in self.tokenizer.encode_tgt(translations)]
        scored = self.backend.score(src, tgt, temperature=self.temperature)
        return [
            Confidence.from_tokens(self.tokenizer, ids, log_probs)
            for ids, log_probs in zip(tgt, scored, strict=True)
        ]

    def split_text(self, text: str, split: Split) -> SegmentedText:
        """Split a text into the segments that are translated one by one."""
        if split not in get_args(Split):
            raise ConfigError(f"split = '{split}'", hint=suggest(split, get_args(Split)))

        def fits(part: str) -> bool:
            is_short = 4 * len(part) < self.max_src_tokens  # a character has up to four bytes
            return is_short or len(self.tokenizer.encode_src([part])[0]) <= self.max_src_tokens

        is_document = "\n" in text.strip() or self.sentences_per_line < MULTI_SENTENCE_THRESHOLD
        by_sentence = split == "sentences" or (split == "auto" and is_document)
        return split_into_segments(text, fits=fits, by_sentence=by_sentence)

    def _make_items(
        self, documents: Sequence[SegmentedText], request: ConstraintRequest | None
    ) -> list[TranslationItem]:
        """Return all segments of all documents with their ids and constraints."""
        sources = [source for document in documents for source in document.segments]
        all_ids = self.tokenizer.encode_src(sources)
        if request is None:
            pairs = zip(sources, all_ids, strict=True)
            return [TranslationItem(source, ids) for source, ids in pairs]
        builder = ConstraintBuilder(self.detokenizer, request, num_texts=len(documents))
        constraints = [
            builder.build(text_index, segment_index, source)
            for text_index, document in enumerate(documents)
            for segment_index, source in enumerate(document.segments)
        ]
        return [TranslationItem(*row) for row in zip(sources, all_ids, constraints, strict=True)]

    def score_confidence(
        self, items: Sequence[TranslationItem], results: Sequence[SearchResult]
    ) -> list[list[Confidence]]:
        """Return the confidence of every hypothesis, computed by the calibrated model."""
        pairs = [
            (item.ids, hypothesis.ids)
            for item, result in zip(items, results, strict=True)
            for hypothesis in result.hypotheses
        ]
        src, tgt = [source for source, _ in pairs], [target for _, target in pairs]
        scored = iter(self.backend.score(src, tgt, temperature=self.temperature))
        return [
            [
                Confidence.from_tokens(self.tokenizer, one.ids, next(scored))
                for one in result.hypotheses
            ]
            for result in results
        ]

    def to_translation(
        self,
        item: TranslationItem,
        result: SearchResult,
        options: DecodingOptions,
        confidences: list[Confidence] | None,
    ) -> Translation:
        """Return the translation of one segment, with its alternatives."""
        translations = []
        required = item.constraints.required if item.constraints is not None else ()
        for rank, one in enumerate(result.hypotheses):
            notes = [] if one.is_finished else [f"cut after {len(one.ids)} tokens"]
            missing = (phrase for phrase in required if not phrase.is_satisfied(one.ids))
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
        """Add the text of each token to a trace."""
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
        confidence: bool,
    ) -> Translation:
        """Return the translation of a text from those of its segments."""
        if not segments:
            return empty_translation(text, confidence=confidence)
        num_ranks = 1 + max(len(segment.alternatives) for segment in segments)
        best, *rest = (
            self._join_rank(text, document, [_at_rank(segment, rank) for segment in segments])
            for rank in range(num_ranks)
        )
        best.alternatives = rest
        best.trace = [trace for segment in segments for trace in segment.trace or ()] or None
        if len(segments) > len(split_sentences(text)) and "\n" not in text.strip():
            best.notes.insert(0, f"translated in {len(segments)} pieces")
        return best

    def _join_rank(
        self, text: str, document: SegmentedText, segments: list[Translation]
    ) -> Translation:
        """Return one translation of a text from one of each segment."""
        joined = join_translations(document, space_segments(document, segments))
        confidences = [segment.confidence for segment in segments if segment.confidence is not None]
        sizes = [len(segment.tokens) + 1 for segment in segments]
        return Translation(
            joined if "\n" in text else joined.strip(),
            source=text,
            log_prob=sum(segment.log_prob for segment in segments),
            score=sum(segment.score for segment in segments) / max(len(segments), 1),
            ids=[token_id for segment in segments for token_id in segment.ids],
            tokens=[token for segment in segments for token in segment.tokens],
            is_finished=all(segment.is_finished for segment in segments),
            confidence=Confidence.join(confidences, sizes) if confidences else None,
            notes=[note for segment in segments for note in segment.notes],
        )


def empty_translation(source: str, *, confidence: bool) -> Translation:
    """Return the translation of a text without words."""
    return Translation(
        "", source=source, confidence=Confidence.of_empty_text() if confidence else None
    )


def space_segments(document: SegmentedText, segments: Sequence[str]) -> list[str]:
    """Insert spaces between translations whose sources were not separated, e.g. in Chinese."""
    spaced = list(segments[:1])
    separators = document.separators[1:]
    for separator, before, segment in zip(separators, segments, segments[1:], strict=False):
        starts_word = segment[:1].isalnum() and not UNSPACED_SCRIPTS.match(segment)
        needs_space = not separator and before and starts_word
        spaced.append(f" {segment}" if needs_space else segment)
    return spaced


def _at_rank(segment: Translation, rank: int) -> Translation:
    """Return the alternative of this rank, or the last one."""
    ranked = [segment, *segment.alternatives]
    return ranked[min(rank, len(ranked) - 1)]


def _merge_options(options: DecodingOptions | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were set in `options` or in `overrides`."""
    return {**(options.model_dump(exclude_unset=True) if options else {}), **overrides}


def _check_texts(texts: Sequence[object]) -> None:
    if isinstance(texts, str):
        reason = f"expected a list of texts, got one text: '{texts[:40]}'"
        raise InputError(reason, hint="put it into a list: translate([text])[0]")
    invalid = [type(text).__name__ for text in texts if not isinstance(text, str)]
    if invalid:
        raise InputError(f"expected str, got {invalid[0]}", hint="give a list of texts (str)")


def _read_glossary(
    glossary: Glossary | Mapping[str, str] | str | Path | None,
) -> Glossary | None:
    if glossary is None or isinstance(glossary, Glossary):
        return glossary
    return Glossary.load(glossary) if isinstance(glossary, (str, Path)) else Glossary(glossary)
