"""Translates texts: splits them into segments, searches translations and joins them."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.decoding.options import DecodingOptions
from attendo.text.copy_spans import without_addresses
from attendo.text.sentences import split_into_segments
from attendo.translator.loading import load_models
from attendo.translator.windows import WindowTranslator, max_window_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import torch

    from attendo.core.protocols import Seq2SeqModel
    from attendo.text.glossary import Glossary
    from attendo.text.phrase_constraints import IncrementalDetokenizer
    from attendo.text.sentences import SegmentedText
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator.backends.base import Backend, EngineName, NativePrecision, Progress
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.confidence import Confidence
    from attendo.translator.copying import SpanCopier
    from attendo.translator.familiarity import Familiarity
    from attendo.translator.pipeline import LineProgress
    from attendo.translator.quality import QualityTable
    from attendo.translator.translation import Translation

MAX_SRC_TOKENS = 512
"""The maximum source length of a model whose folder does not record one."""

MAX_TOKEN_CHARACTERS = 64
"""More characters per token than any vocabulary has."""

MULTI_SENTENCE_THRESHOLD = 1.1
"""Mean sentences per dev line from which a model counts as trained on several at once."""

Split = Literal["auto", "sentences", "never"]
CopyMode = Literal["auto", "always", "never"]


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
        backend: Backend | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.backend = backend or _make_backend(model)
        self._native: Translator | None = None
        self.about = dict(about or {})
        self.calibration = dict(self.about.get("calibration") or {})
        self.temperature = float(self.calibration.get("temperature", 1.0))
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
            directory: a model folder, the folder of the run that trained it, or an export for
                CTranslate2 or ONNX, which its own engine decodes without PyTorch.
            more: folders of the other models of an ensemble.
            device: cpu, cuda, cuda:1 ...; the default is a GPU if there is one.
            engine: "attendo" decodes with PyTorch. "ctranslate2" is much faster on a CPU and
                converts the model once; without PyTorch it is the default. "auto" uses
                CTranslate2 on a CPU if it is installed and supports the model. "onnx" decodes
                an export for ONNX.
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
        loaded = load_models(directory, *more, engine=engine, device=device, precision=precision)
        model, tokenizer, about, backend = loaded
        return cls(model, tokenizer, about=about, backend=backend)

    def __repr__(self) -> str:
        """Return the kind, the languages and the sizes of the model."""
        kind = getattr(self.model, "kind", type(self.model).__name__)
        languages = [self.about.get(name) or "?" for name in ("src_lang", "tgt_lang")]
        parts = [kind, " to ".join(languages)]
        parts.append(f"{self.backend.num_parameters:,} parameters")
        parts.append(f"{self.tokenizer.tgt_vocab_size:,} tokens")
        return f"Translator({', '.join(parts)}, {type(self.backend).__name__})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that a translation can be asked for, e.g. polite and plain."""
        return tuple(self.about.get("labels") or ())

    def check_label(self, label: str | None) -> None:
        """Raise an error for a label that the model was not trained on."""
        if label is not None and label not in self.labels:
            hint = suggest(label, self.labels) if self.labels else "omit it, or train with labels"
            raise ConfigError(message("no label '{label}' in this model", label=label), hint=hint)

    @cached_property
    def quality(self) -> QualityTable | None:
        """What a score of a translation was worth on dev.

        None if it was not measured, or the backend cannot compute such scores.
        """
        from attendo.translator.quality import QualityTable

        is_usable = self.backend.has_calibrated_scores
        table = self.calibration.get("quality") if is_usable else None
        return QualityTable(**table) if table else None

    @cached_property
    def familiarity(self) -> Familiarity | None:
        """The source tokens of the training data; None if they were not counted."""
        from attendo.translator.familiarity import Familiarity

        counts = self.about.get("familiarity")
        return Familiarity(**counts) if counts else None

    @cached_property
    def detokenizer(self) -> IncrementalDetokenizer:
        """The text of target ids, for prefixes and phrases."""
        from attendo.text.phrase_constraints import IncrementalDetokenizer

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
        texts: Iterable[str],
        *,
        options: DecodingOptions | None = None,
        prefix: str | Sequence[str] | None = None,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
        required: Sequence[str] = (),
        forbidden: Sequence[str] = (),
        confidence: bool = False,
        trace: bool = False,
        split: Split = "auto",
        copy_spans: CopyMode = "auto",
        retry: bool = False,
        label: str | None = None,
        progress: Progress | None = None,
        **overrides: Any,
    ) -> list[Translation]:
        """Translate each text; the translation of an empty text is empty.

        Args:
            texts: a list of texts, or any iterable. A text of several sentences is translated
                sentence by sentence, unless the model was trained on such texts, and keeps its line
                breaks.
            options: how to search; the default is `DecodingOptions()`.
            prefix: the beginning of the translation, for all texts or one per text.
            glossary: source phrases and their required translations: a mapping or a TSV file.
            required: phrases that must occur in every translation.
            forbidden: phrases that must not occur in any translation.
            confidence: compute the probability of each word, the expected quality of the
                translation, and whether the source is like the training data
                (`translation.confidence`).
            trace: record every candidate of every step (`translation.trace`).
            split: "sentences" splits every text into sentences; "never" splits only at line breaks
                and what is longer than any text of the training data.
            copy_spans: "auto" copies numbers, URLs, e-mail addresses and emoji that the vocabulary
                lacks, and URLs, e-mail addresses and emoji that a translation does not reproduce;
                "always" also numbers that it does not reproduce; "never" copies nothing. A trace
                shows the model itself: nothing is copied.
            retry: search a sentence whose output is empty, a loop or a copy of the source once
                more, with a beam and without repetitions; a note tells so.
            label: one of the `labels` of the model, e.g. "polite"; without it the model chooses.
            progress: called with the number of finished segments and of all segments.
            overrides: fields of `options` by name: beam_size, n_best, alpha, min_length,
                no_repeat_ngram, do_sample, temperature, top_k, top_p, seed ...

        Returns:
            One translation per text, in order.

        Raises:
            ConfigError: an option is unknown or invalid, or the backend does not support it.
            InputError: `texts` is not a list of str, or a phrase or glossary is invalid.

        """
        texts = _read_texts(texts)
        steps = self.make_steps(
            options=options,
            prefix=prefix,
            num_texts=len(texts),
            glossary=glossary,
            required=required,
            forbidden=forbidden,
            confidence=confidence,
            trace=trace,
            split=split,
            copy_spans=copy_spans,
            retry=retry,
            label=label,
            **overrides,
        )
        if len(texts) <= max_window_lines(self.backend.device_type):
            return steps.translate(texts, progress)
        from attendo.translator.pipeline import translate_list

        return translate_list(steps, texts, progress)

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        skip_failed: bool = False,
        progress: LineProgress | None = None,
        prefix: str = "",
        **arguments: Any,
    ) -> Iterator[Translation]:
        """Translate any number of lines in order, with memory for a few thousand of them.

        The lines are read and tokenized ahead, and the next ones are searched while the caller uses
        the translations. They are searched in windows, first of a few hundred lines, then of more,
        so that lines of similar length can be put together: the first translation comes when its
        window is complete.

        Args:
            lines: any iterable, e.g. an open file; a line end is not removed. It is read in another
                thread.
            skip_failed: the translation of a line that fails is empty, with the reason as a note;
                without it the error is raised.
            progress: called with the number of finished lines and of those that were read, from
                another thread.
            prefix: the beginning of every translation.
            arguments: the other arguments of `translate`.

        Returns:
            An iterator over one translation per line. Its threads end when it is closed.

        Raises:
            ConfigError: an option is unknown or invalid, or the backend does not support it.
            InputError: a phrase or a glossary is invalid, or a line is not a str.

        """
        from attendo.translator.pipeline import Pipeline, group_lines

        steps = self.make_steps(prefix=prefix, skip_failed=skip_failed, **arguments)
        if isinstance(lines, str):
            _check_texts(lines)
        windows = group_lines(_check_lines(lines), max_window_lines(self.backend.device_type))
        return Pipeline(steps, windows, progress).translations()

    def make_steps(
        self,
        *,
        options: DecodingOptions | None = None,
        prefix: str | Sequence[str] | None = None,
        num_texts: int | None = None,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
        required: Sequence[str] = (),
        forbidden: Sequence[str] = (),
        confidence: bool = False,
        trace: bool = False,
        split: Split = "auto",
        copy_spans: CopyMode = "auto",
        retry: bool = False,
        label: str | None = None,
        skip_failed: bool = False,
        **overrides: Any,
    ) -> WindowTranslator:
        """Return what translates windows of texts with these arguments of `translate`."""
        if options is None or overrides:
            options = DecodingOptions(**_merge_options(options, overrides))
        for given in (required, forbidden):
            _check_texts(given)
        _check_split(split)
        self.check_label(label)
        copy_mode = self.resolve_copy_mode(copy_spans)
        if trace:
            copy_mode = "never"
        has_prefix = bool(prefix) if isinstance(prefix, str) else any(prefix or ())
        builder = request = None
        if prefix or required or forbidden or glossary is not None:
            from attendo.translator.constraints import ConstraintBuilder, ConstraintRequest

            request = ConstraintRequest.from_arguments(prefix or (), required, forbidden, glossary)
        self.backend.check_supported(options, request, trace=trace)
        if request is not None:
            builder = ConstraintBuilder(self.detokenizer, request, num_texts=num_texts)
        return WindowTranslator(
            self,
            options,
            split=split,
            builder=builder,
            copy_mode=copy_mode,
            keep_spans=copy_mode != "never" and not has_prefix,
            confidence=confidence,
            trace=trace,
            retry=retry,
            label=label,
            skip_failed=skip_failed,
        )

    def score(self, sources: Sequence[str], translations: Sequence[str]) -> list[Confidence]:
        """Return the calibrated probabilities of given translations, which have no band.

        Args:
            sources: a list of texts.
            translations: one per source.

        Returns:
            The probability of each translation as a whole and of its words.

        Raises:
            InputError: the lists have different lengths, or contain something other than str.

        """
        from attendo.translator.confidence import score_translations

        _check_texts(sources)
        _check_texts(translations)
        if len(sources) != len(translations):
            raise InputError(
                message(
                    "{count} sources and {num_translations} translations",
                    count=len(sources),
                    num_translations=len(translations),
                ),
                hint="give one translation per source",
            )
        return score_translations(self, sources, translations)

    @property
    def max_src_characters(self) -> int:
        """Any text of more characters has more tokens than the model supports."""
        return MAX_TOKEN_CHARACTERS * self.max_src_tokens

    def split_text(
        self,
        text: str,
        split: Split,
        *,
        max_characters: int | None = None,
        keep_spans: bool = False,
    ) -> SegmentedText:
        """Split a text into the segments that are translated one by one.

        A segment that has more characters than `max_characters` is split further. With `keep_spans`
        a URL is not split, however many tokens it has: it will be copied.
        """
        _check_split(split)
        # Far longer than any text with so few tokens: it need not be tokenized to be split.
        longest = min(max_characters or sys.maxsize, self.max_src_characters)

        def fits(part: str) -> bool:
            if len(part) > longest:
                return False
            if 4 * len(part) < self.max_src_tokens:  # a character has up to four bytes
                return True
            if len(self.tokenizer.encode_src([part])[0]) <= self.max_src_tokens:
                return True
            rest = without_addresses(part) if keep_spans else part
            return rest != part and fits(rest)

        by_sentence = self.is_split_by_sentence(text, split)
        return split_into_segments(text, fits=fits, by_sentence=by_sentence)

    def is_split_by_sentence(self, text: str, split: Split) -> bool:
        """Return whether each sentence of a text is translated by itself."""
        if split != "auto":
            return split == "sentences"
        return self.sentences_per_line < MULTI_SENTENCE_THRESHOLD or "\n" in text.strip()

    def resolve_copy_mode(self, mode: CopyMode) -> CopyMode:
        """Check a mode; return "never" for a model whose target is not text."""
        if mode not in get_args(CopyMode):
            raise ConfigError(f"copy_spans = '{mode}'", hint=suggest(str(mode), get_args(CopyMode)))
        return "never" if self.tokenizer.tgt_kind == "label" else mode

    def make_copier(self, mode: CopyMode) -> SpanCopier | None:
        """Return what copies numbers, URLs, e-mail addresses and emoji, if anything may be."""
        mode = self.resolve_copy_mode(mode)
        if mode == "never":
            return None
        from attendo.translator.copying import SpanCopier

        return SpanCopier(self, mode)


def _make_backend(model: Seq2SeqModel[Any]) -> Backend:
    from attendo.translator.backends.pytorch import PyTorchBackend

    return PyTorchBackend(model)


def _merge_options(options: DecodingOptions | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were set in `options` or in `overrides`."""
    return {**(options.model_dump(exclude_unset=True) if options else {}), **overrides}


def _check_split(split: str) -> None:
    if split not in get_args(Split):
        raise ConfigError(
            message("split = '{split}'", split=split), hint=suggest(split, get_args(Split))
        )


def _read_texts(texts: Iterable[str]) -> Sequence[str]:
    """Return the texts as a list, which a generator can give only once; check that they are str."""
    try:
        listed = texts if isinstance(texts, str) else list(texts)
    except TypeError:
        reason = f"expected a list of texts, got {type(texts).__name__}"
        raise InputError(reason, hint="give a list of texts (str)") from None
    _check_texts(listed)
    return listed


def _check_lines(lines: Iterable[object]) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            _check_texts([line])


def _check_texts(texts: Sequence[object]) -> None:
    if isinstance(texts, str):
        reason = message("expected a list of texts, got one text: '{texts}'", texts=texts[:40])
        raise InputError(reason, hint="put it into a list: translate([text])[0]")
    invalid = [type(text).__name__ for text in texts if not isinstance(text, str)]
    if invalid:
        raise InputError(
            message("expected str, got {invalid}", invalid=invalid[0]),
            hint="give a list of texts (str)",
        )
