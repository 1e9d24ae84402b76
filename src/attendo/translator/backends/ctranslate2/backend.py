"""The CTranslate2 backend: options that CTranslate2 does not support are errors.

Its hypotheses are ranked here, by the length penalty of `DecodingOptions`. Both libraries support a
minimum length and n-gram blocking, but CTranslate2 redistributes the probability of forbidden
tokens, so that another hypothesis may win: with these options its hypotheses are scored again.
Scores of given translations, and with them the confidence, are computed by the PyTorch backend,
which is loaded when it is first needed.
"""

from __future__ import annotations

import json
import math
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from attendo.core.errors import ConfigError, InputError
from attendo.decoding.hypothesis import Hypothesis, SearchResult, length_penalty
from attendo.decoding.token_filters import check_finite, max_lengths
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID
from attendo.translator.backends.ctranslate2.converter import USE_NATIVE_HINT, read_info
from attendo.translator.backends.ctranslate2.loader import TranslatorPool
from attendo.translator.backends.ctranslate2.options import (
    allows_early_exit,
    changes_scores,
    is_beam_search,
    to_ct2_options,
    unsupported_options,
)
from attendo.translator.backends.pytorch import SPECIAL_IDS, LengthBatches, PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import Progress, TranslationItem
    from attendo.translator.constraints import ConstraintRequest

    RankedHypotheses = tuple[list[Hypothesis], list[Hypothesis]]


class OpaqueModel:
    """Replaces the model: CTranslate2 does not expose the model's internals."""

    kind = "transformer"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reason = f"CTranslate2 does not expose the internals of a model ('{name}')"
        raise InputError(reason, hint=f"{USE_NATIVE_HINT}, or translator.native")


class CTranslate2Backend(PyTorchBackend):
    """Decodes with a converted model.

    Args:
        folder: written by `attendo.translator.backends.ctranslate2.converter.write`.
        precision: see `attendo.translator.backends.ctranslate2.loader`.
        load_native: loads the PyTorch backend of the same model when it is first needed.

    """

    name: ClassVar[str] = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = "auto",
        load_native: Callable[[], PyTorchBackend],
    ) -> None:
        self.model: Any = OpaqueModel()
        self.modules = []
        self.folder, self.info = folder, read_info(folder)
        self._src_pieces, self._tgt_pieces = _read_vocabularies(folder)
        self._tgt_ids = {piece: index for index, piece in enumerate(self._tgt_pieces)}
        self.translators = TranslatorPool(
            folder,
            precision=precision,
            quantization=self.info["quantization"],
            pieces=self._src_pieces,
        )
        self._load_native, self._lock = load_native, threading.Lock()
        self._native: PyTorchBackend | None = None

    @property
    def num_parameters(self) -> int:
        """The number of weights of the original model, before heads were padded."""
        return int(self.info["num_parameters"])

    @property
    def native(self) -> PyTorchBackend:
        """The PyTorch backend of the same weights."""
        with self._lock:
            if self._native is None:
                self._native = self._load_native()
            return self._native

    def warm_up(self) -> None:
        """Load the model and time the precisions for single texts before the first request."""
        for count in (1, 2):
            self.translators.get(count, is_beam=True)

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
    ) -> None:
        """Raise one error with every option that CTranslate2 does not support."""
        reasons = unsupported_options(options, request, trace=trace)
        if reasons:
            listing = "".join(f"\n  - {reason}" for reason in reasons)
            reason = f"engine 'ctranslate2' does not support this{listing}"
            raise ConfigError(reason, hint=USE_NATIVE_HINT, reasons=reasons)

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,  # noqa: ARG002 - check_supported rejects it
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Return the result of each item, in order."""
        self._check_lengths(items)
        results: dict[int, SearchResult] = {}
        num_rows = options.n_best if options.do_sample else options.beam_size
        # In a batch with prefixes CTranslate2 never returns an empty translation: keep them apart.
        for has_prefix in (False, True):
            sizes = {
                index: len(item.ids) * num_rows
                for index, item in enumerate(items)
                if bool(_get_prefix(item)) is has_prefix
            }
            for batch in LengthBatches(sizes, self.batch_tokens):
                found = self._translate([items[index] for index in batch], options)
                results |= dict(zip(batch, found, strict=True))
                if progress is not None:
                    progress(len(results), len(items))
        return [results[index] for index in range(len(items))]

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probabilities of given targets, computed by the PyTorch backend."""
        return self.native.score(src, tgt, temperature=temperature)

    def log_probs(self, src: Sequence[list[int]], tgt: Sequence[list[int]]) -> list[list[float]]:
        """Return the log-probabilities of given targets, computed by CTranslate2."""
        translator = self.translators.get(len(src), is_beam=False)
        pieces = [[self._tgt_pieces[token] for token in row[:-1]] for row in tgt]
        scored = translator.score_batch(self._source_pieces(src), pieces, max_input_length=0)
        return [list(one.log_probs) for one in scored]

    def _check_lengths(self, items: Sequence[TranslationItem]) -> None:
        longest = max((len(item.ids) for item in items), default=0)
        max_positions = self.info["num_positions"]
        if longest > max_positions:
            reason = f"a source has {longest} tokens: the converted model supports {max_positions}"
            raise InputError(reason, hint=f"split it, or {USE_NATIVE_HINT}")

    def _translate(
        self, items: Sequence[TranslationItem], options: DecodingOptions
    ) -> list[SearchResult]:
        """Search one batch up to its largest limit; search what exceeds its own limit again."""
        constraints = [item.constraints for item in items]
        src_ids = self.pad([item.ids for item in items])
        max_positions = self.info["num_positions"]
        limits = [
            min(limit, max_positions)
            for limit in max_lengths(src_ids, options, SPECIAL_IDS, constraints)
        ]
        hypotheses: dict[int, list[Hypothesis]] = {}
        if not options.do_sample:
            max_limit, early_exit = max(limits), allows_early_exit(options)
            ranked = self._run(items, options, max_limit, early_exit=early_exit)
            for index, (limit, (finished, unfinished)) in enumerate(
                zip(limits, ranked, strict=True)
            ):
                within = [one for one in finished if len(one.ids) < limit]
                if limit == max_limit and not early_exit:
                    within += unfinished
                if len(within) >= options.n_best:
                    hypotheses[index] = within
        remaining = [index for index in range(len(items)) if index not in hypotheses]
        for limit, indices in _group_by_limit(limits, remaining).items():
            ranked = self._run([items[index] for index in indices], options, limit)
            for index, (finished, unfinished) in zip(indices, ranked, strict=True):
                hypotheses[index] = [*finished, *unfinished]
        return [SearchResult(hypotheses[index][: options.n_best]) for index in range(len(items))]

    def _run(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        limit: int,
        *,
        early_exit: bool = False,
    ) -> list[RankedHypotheses]:
        """Call CTranslate2 and rank its hypotheses."""
        translator = self.translators.get(len(items), is_beam=is_beam_search(options))
        src = self._source_pieces([item.ids for item in items])
        prefixes = [[self._tgt_pieces[token] for token in _get_prefix(item)] for item in items]
        results = translator.translate_batch(
            src,
            prefixes if any(prefixes) else None,
            suppress_sequences=[[self._tgt_pieces[PAD_ID]], [self._tgt_pieces[START_ID]]],
            **to_ct2_options(options, limit, early_exit=early_exit),
        )
        outputs = [result.hypotheses for result in results]
        totals = [result.scores for result in results]
        prefix_log_probs: list[list[float]] = []
        if any(prefixes):  # CTranslate2's scores leave the prefix out
            scored = translator.score_batch(src, prefixes, max_input_length=0)
            prefix_log_probs = [list(one.log_probs) for one in scored]
        if changes_scores(options):
            totals = _score_outputs(translator, src, outputs)
        elif prefix_log_probs:
            pairs = zip(prefix_log_probs, totals, strict=True)
            totals = [
                [math.fsum(log_probs[:-1]) + one for one in scores] for log_probs, scores in pairs
            ]
        if prefix_log_probs and is_beam_search(options):
            finished_prefixes = [[*prefix, self._tgt_pieces[END_ID]] for prefix in prefixes]
            _add_finished_prefixes(finished_prefixes, prefix_log_probs, outputs, totals, options)
        return [
            self._rank(pieces, scores, options)
            for pieces, scores in zip(outputs, totals, strict=True)
        ]

    def _source_pieces(self, src: Sequence[list[int]]) -> list[list[str]]:
        """Return the pieces of each source without the end symbol, which CTranslate2 adds."""
        return [[self._src_pieces[token] for token in ids[:-1]] for ids in src]

    def _rank(
        self, outputs: Sequence[list[str]], totals: Sequence[float], options: DecodingOptions
    ) -> RankedHypotheses:
        """Return finished and unfinished hypotheses, best first; samples in their order."""
        finished: list[Hypothesis] = []
        unfinished: list[Hypothesis] = []
        check_finite(any(math.isnan(total) for total in totals))
        for pieces, total in zip(outputs, totals, strict=True):
            is_finished = bool(pieces) and pieces[-1] == self._tgt_pieces[END_ID]
            penalty = length_penalty(max(len(pieces), 1), options.alpha, options.length_norm)
            ids = [self._tgt_ids[piece] for piece in (pieces[:-1] if is_finished else pieces)]
            hypothesis = Hypothesis(
                ids=ids,
                log_prob=float(total),
                score=total / penalty,
                token_log_probs=[],
                is_finished=is_finished,
            )
            (finished if is_finished else unfinished).append(hypothesis)
        if not options.do_sample:
            finished.sort(key=lambda one: -one.score)
            unfinished.sort(key=lambda one: -one.score)
        return finished, unfinished


def _get_prefix(item: TranslationItem) -> tuple[int, ...]:
    return item.constraints.prefix if item.constraints is not None else ()


def _score_outputs(
    translator: Any, src: Sequence[list[str]], outputs: Sequence[Sequence[list[str]]]
) -> list[list[float]]:
    """Return the log-probability of each hypothesis of each source."""
    flat = [
        (source, pieces)
        for source, hypotheses in zip(src, outputs, strict=True)
        for pieces in hypotheses
    ]
    sources, targets = ([*column] for column in zip(*flat, strict=True))
    scored = translator.score_batch(sources, targets, max_input_length=0)
    pairs = zip(scored, targets, strict=True)  # CTranslate2 scores an end symbol after each
    sums = iter([math.fsum(one.log_probs[: len(pieces)]) for one, pieces in pairs])
    return [[next(sums) for _ in several] for several in outputs]


def _add_finished_prefixes(
    finished_prefixes: list[list[str]],
    prefix_log_probs: list[list[float]],
    outputs: list[list[list[str]]],
    totals: list[list[float]],
    options: DecodingOptions,
) -> None:
    """Add prefixes that are complete translations, where our beam search would surely find them.

    Directly after a prefix CTranslate2 ends a hypothesis only if no token is more likely. Our
    search does if the end is among the best `beam_size`, which a probability above
    1 / (beam_size + 1) ensures.
    """
    for index, (pieces, log_probs) in enumerate(
        zip(finished_prefixes, prefix_log_probs, strict=True)
    ):
        is_likely = math.exp(log_probs[-1]) > 1.0 / (options.beam_size + 1)
        if is_likely and len(pieces) > options.min_length and pieces not in outputs[index]:
            outputs[index] = [*outputs[index], pieces]
            totals[index] = [*totals[index], math.fsum(log_probs)]


def _read_vocabularies(folder: Path) -> list[list[str]]:
    """Return the pieces of the source and the target vocabulary, in the order of their ids."""
    shared = folder / "shared_vocabulary.json"
    sides = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    paths = [shared, shared] if shared.is_file() else sides
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _group_by_limit(limits: Sequence[int], indices: Sequence[int]) -> dict[int, list[int]]:
    """Return the indices grouped by limit."""
    grouped: dict[int, list[int]] = {}
    for index in indices:
        grouped.setdefault(limits[index], []).append(index)
    return grouped
