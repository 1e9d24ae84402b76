"""Translates texts with one model, or several as one: cuts, searches, puts together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from attendo.bundle import choose_device, load_bundle
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.data.glossary import OPEN, Glossary
from attendo.data.phrases import TextView
from attendo.data.sentences import Document, find_sentences, join, split_document
from attendo.data.tokenizer import UNK_ID, Tokenizer
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.options import DecodingOptions, Demands
from attendo.translator.confidence import measure
from attendo.translator.converted import open_converted
from attendo.translator.engine import Engine, Job
from attendo.translator.half_engine import HalfEngine, OwnPrecision
from attendo.translator.translation import Confidence, Translation
from attendo.translator.unknown import find_sources, put_words
from attendo.translator.wishes import Granter, Wishes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import Found, Hypothesis
    from attendo.translator.converted import EngineName
    from attendo.translator.ctranslate2_runner import Precision
    from attendo.translator.engine import Progress

MAX_SRC_TOKENS = 512
"""What fits a model that does not tell how long the sentences of its training were."""

SEVERAL = 1.1
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
        engine: Engine | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.engine, self.view = engine or Engine(model), TextView(tokenizer)
        self._reference: Translator | None = None
        self.about = dict(about or {})
        self.temperature = float((self.about.get("calibration") or {}).get("temperature", 1.0))
        self.max_src_tokens = int(self.about.get("max_src_tokens") or MAX_SRC_TOKENS)
        self.num_sentences = float(self.about.get("num_sentences") or 1.0)

    @classmethod
    def load(
        cls,
        directory: str | Path,
        *more: str | Path,
        device: torch.device | str | None = None,
        engine: EngineName = "attendo",
        precision: Precision | OwnPrecision = "auto",
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
        chosen = choose_device(device)
        if engine == "attendo" and precision not in get_args(OwnPrecision):
            remedy = "our own has float32 and bfloat16; the engine ctranslate2 has int8 and float32"
            raise ConfigError(f"no precision '{precision}' of our own engine", remedy=remedy)
        if engine == "ctranslate2" or (engine != "attendo" and precision != "bfloat16"):
            where = None if device is None and engine != "auto" else chosen
            fast = open_converted(
                directory,
                *more,
                engine=engine,
                device=where,
                precision=cast("Precision", precision),  # checked there
            )
            if fast is not None:
                tokenizer = Tokenizer.load(fast.folder)
                return cls(fast.model, tokenizer, about=fast.info["about"], engine=fast)
        first, *others = (load_bundle(path, device=chosen) for path in (directory, *more))
        for path, bundle in zip(more, others, strict=True):
            if bundle.tokenizer.fingerprint != first.tokenizer.fingerprint:
                raise InputError(
                    f"{path} and {directory} have different tokenizers",
                    remedy="an ensemble is of models that were trained on the same prepared data",
                )
        models = [first.model, *(bundle.model for bundle in others)]
        model = Ensemble(models) if others else first.model
        is_half, is_exact = precision == "bfloat16", precision == "float32"
        own = HalfEngine(model) if is_half else Engine(model, is_exact=is_exact)
        return cls(model, first.tokenizer, about=first.about, engine=own)

    @property
    def reference(self) -> Translator:
        """The same model behind our own decoder, which shows its inside; loaded when asked for."""
        own = self.engine.own
        if own is self.engine:
            return self
        if self._reference is None:
            self._reference = Translator(own.model, self.tokenizer, about=self.about, engine=own)
        return self._reference

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefix: str | Sequence[str] | None = None,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
        must: Sequence[str] = (),
        must_not: Sequence[str] = (),
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
            must: phrases that must stand in every translation.
            must_not: phrases that must not stand in any.
            confidence: tell how sure the model is of each word (`translation.confidence`).
            trace: tell every candidate of every step (`translation.trace`).
            split: "sentences" cuts every text into sentences, "never" cuts only at line breaks and
                what is longer than any text in training.
            progress: is called with the number of pieces that are done, and of all.
            options: of the search (`attendo.decoding.options.DecodingOptions`): beam_size, n_best,
                alpha, min_length, no_repeat_ngram, sample, temperature, top_k, top_p, seed ...

        """
        chosen = DecodingOptions(**options)
        for given in (texts, must, must_not):
            _check_texts(given)
        documents = [self._split(text, split) for text in texts]
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix or ())
        wishes = Wishes(prefixes, must, must_not, _read_glossary(glossary))
        self.engine.check(chosen, wishes, trace=trace)
        granter = Granter(self.view, wishes, num_texts=len(texts))
        pieces = [
            (piece, granter.demands(text, number, piece))
            for text, document in enumerate(documents)
            for number, piece in enumerate(document.pieces)
        ]
        made = iter(self._translate_pieces(pieces, chosen, confidence, trace, progress))
        return [
            self._put_together(
                text,
                document,
                [next(made) for _ in document.pieces],
                silent=Confidence(1.0, 1.0, []) if confidence else None,
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
                remedy="give one translation for each source",
            )
        src = self.tokenizer.encode_src(sources)
        tgt = [row[:-1] for row in self.tokenizer.encode_tgt(translations)]
        scored = self.engine.score(src, tgt, temperature=self.temperature)
        return [measure(self.tokenizer, *pair) for pair in zip(tgt, scored, strict=True)]

    def _split(self, text: str, split: Split) -> Document:
        if split not in get_args(Split):
            raise ConfigError(f"no way '{split}' to split", remedy=suggest(split, get_args(Split)))

        def fits(part: str) -> bool:
            is_short = 4 * len(part) < self.max_src_tokens  # a character has up to four bytes
            return is_short or len(self.tokenizer.encode_src([part])[0]) <= self.max_src_tokens

        is_document = "\n" in text.strip() or self.num_sentences < SEVERAL
        by_sentence = split == "sentences" or (split == "auto" and is_document)
        return split_document(text, fits=fits, by_sentence=by_sentence)

    def _translate_pieces(
        self,
        pieces: Sequence[tuple[str, Demands]],
        options: DecodingOptions,
        confidence: bool,
        trace: bool,
        progress: Progress | None,
    ) -> list[Translation]:
        ids = self.tokenizer.encode_src([source for source, _ in pieces])
        silent = Confidence(1.0, 1.0, []) if confidence else None
        made = [Translation("", source=source, confidence=silent) for source, _ in pieces]
        places = [place for place, row in enumerate(ids) if len(row) > 1]  # the end symbol is one
        jobs = [Job(pieces[place][0], ids[place], pieces[place][1]) for place in places]
        found = self.engine.search(jobs, options, trace=trace, progress=progress)
        sure = self._measure(jobs, found) if confidence else None
        for number, (place, job, one) in enumerate(zip(places, jobs, found, strict=True)):
            made[place] = self._word(job, one, options, sure[number] if sure else None)
        return made

    def _measure(self, jobs: Sequence[Job], found: Sequence[Found]) -> list[list[Confidence]]:
        """Score every hypothesis again, by the calibrated model."""
        pairs = [
            (job.ids, hypothesis.ids)
            for job, one in zip(jobs, found, strict=True)
            for hypothesis in one.hypotheses
        ]
        src, tgt = [source for source, _ in pairs], [target for _, target in pairs]
        scored = iter(self.engine.score(src, tgt, temperature=self.temperature))
        return [
            [measure(self.tokenizer, one.ids, next(scored)) for one in result.hypotheses]
            for result in found
        ]

    def _word(
        self, job: Job, found: Found, options: DecodingOptions, sure: list[Confidence] | None
    ) -> Translation:
        """Put what was found for one piece into words."""
        worded = []
        for rank, one in enumerate(found.hypotheses):
            notes = [] if one.is_finished else [f"cut after {len(one.ids)} tokens"]
            missing = (phrase for phrase in job.demands.required if not phrase.is_met(one.ids))
            notes += [f"without '{getattr(phrase, 'phrase', '')}'" for phrase in missing]
            text = self.tokenizer.decode_tgt([one.ids])[0]
            if options.unk == "copy" and UNK_ID in one.ids:
                text = self._name_unknown(text, job, one)
            worded.append(
                Translation(
                    text,
                    source=job.source,
                    log_prob=one.log_prob,
                    score=one.score,
                    ids=one.ids,
                    tokens=self.tokenizer.tgt_pieces(one.ids),
                    is_finished=one.is_finished,
                    confidence=sure[rank] if sure else None,
                    notes=notes,
                )
            )
        best = worded[0]
        best.alternatives = worded[1:]
        if found.trace is not None:
            best.trace = [self._name_tokens(found.trace.to_dict())]
        return best

    def _name_unknown(self, text: str, job: Job, one: Hypothesis) -> str:
        with self.engine.evaluating():
            places = find_sources(self.model, self.engine.pad([job.ids]), one.ids)
        surfaces = self.tokenizer.src_surfaces(job.source)
        return put_words(text, [surfaces[place] for place in places])

    def _name_tokens(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Write the piece beside each id of a trace."""
        for step in trace["steps"]:
            names = self.tokenizer.tgt_pieces(one["id"] for one in step["candidates"])
            step["candidates"] = [
                {"token": name, **one} for name, one in zip(names, step["candidates"], strict=True)
            ]
        return trace

    def _put_together(
        self,
        text: str,
        document: Document,
        pieces: list[Translation],
        *,
        silent: Confidence | None,
    ) -> Translation:
        if not pieces:
            return Translation("", source=text, confidence=silent)
        num_ranks = 1 + max(len(piece.alternatives) for piece in pieces)
        best, *rest = (
            self._join(text, document, [_choose(piece, rank) for piece in pieces])
            for rank in range(num_ranks)
        )
        best.alternatives = rest
        best.trace = [trace for piece in pieces for trace in piece.trace or ()] or None
        if len(pieces) > len(find_sentences(text)) and "\n" not in text.strip():
            best.notes.insert(0, f"translated in {len(pieces)} pieces")
        return best

    def _join(self, text: str, document: Document, pieces: list[Translation]) -> Translation:
        joined = join(document, _part_words(document, pieces))
        sure = [piece.confidence for piece in pieces if piece.confidence is not None]
        sizes = [len(piece.tokens) + 1 for piece in pieces]
        return Translation(
            joined if "\n" in text else joined.strip(),
            source=text,
            log_prob=sum(piece.log_prob for piece in pieces),
            score=sum(piece.score for piece in pieces) / max(len(pieces), 1),
            ids=[number for piece in pieces for number in piece.ids],
            tokens=[token for piece in pieces for token in piece.tokens],
            is_finished=all(piece.is_finished for piece in pieces),
            confidence=Confidence.join(sure, sizes) if sure else None,
            notes=[note for piece in pieces for note in piece.notes],
        )


def _part_words(document: Document, pieces: Sequence[str]) -> list[str]:
    """Put a space before a word whose piece was cut off without one, e.g. out of Chinese."""
    parted = list(pieces[:1])
    for gap, before, piece in zip(document.gaps[1:], pieces, pieces[1:], strict=False):
        is_bare = not gap and before and piece[:1].isalnum() and not OPEN.match(piece)
        parted.append(f" {piece}" if is_bare else piece)
    return parted


def _choose(piece: Translation, rank: int) -> Translation:
    """Give the translation of this rank, or the last that there is."""
    ranked = [piece, *piece.alternatives]
    return ranked[min(rank, len(ranked) - 1)]


def _check_texts(texts: Sequence[object]) -> None:
    if isinstance(texts, str):
        reason = f"one text, '{texts[:40]}', where a list of texts is needed"
        raise InputError(reason, remedy="put it into a list: translate([text])[0]")
    strange = [type(text).__name__ for text in texts if not isinstance(text, str)]
    if strange:
        raise InputError(f"a {strange[0]} is no text", remedy="give a list of texts (str)")


def _read_glossary(
    glossary: Glossary | Mapping[str, str] | str | Path | None,
) -> Glossary | None:
    if glossary is None or isinstance(glossary, Glossary):
        return glossary
    return Glossary.load(glossary) if isinstance(glossary, (str, Path)) else Glossary(glossary)
