"""The CTranslate2 backend: options that CTranslate2 does not support are errors.

Its hypotheses are ranked here, by the length penalty of `DecodingOptions`. Both libraries support a
minimum length and n-gram blocking, but CTranslate2 redistributes the probability of forbidden
tokens, so that another hypothesis may win: with these options its hypotheses are scored again.
Scores of given translations, and with them the confidence, are computed by the PyTorch backend,
which is loaded when it is first needed. Without it CTranslate2 scores, which knows no temperature.
"""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.decoding.hypothesis import Hypothesis, SearchResult, length_penalty
from attendo.decoding.limits import check_finite, target_limits
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID
from attendo.translator.backends.base import (
    ConvertedBackend,
    LengthBatches,
)
from attendo.translator.backends.ctranslate2.converter import read_info
from attendo.translator.backends.ctranslate2.loader import TranslatorPool
from attendo.translator.backends.ctranslate2.options import (
    allows_early_exit,
    changes_scores,
    is_beam_search,
    to_ct2_options,
    unsupported_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.base import Progress, TranslationItem
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import PyTorchBackend
    from attendo.translator.constraints import ConstraintRequest

    RankedCandidates = tuple[list["Candidate"], list["Candidate"]]


NUM_ENDS = 2
"""Positions of the symbols around a prefix."""
REPLICA_TOKENS = 512
"""Source tokens in a batch, if there are several: on a CPU larger ones are slower."""


class Candidate(NamedTuple):
    """A hypothesis of CTranslate2."""

    pieces: list[str]
    """With the end symbol, if it is finished."""
    log_prob: float
    score: float
    is_finished: bool

    @property
    def num_tokens(self) -> int:
        """Return the number of tokens without the end symbol."""
        return len(self.pieces) - self.is_finished


class CTranslate2Backend(ConvertedBackend):
    """Decodes with a converted model.

    Args:
        folder: written by `attendo.translator.backends.ctranslate2.converter.write`.
        precision: see `attendo.translator.backends.ctranslate2.loader`.
        load_native: loads the PyTorch backend of the same model; None if there is none.

    """

    name: str = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = "auto",
        load_native: Callable[[], PyTorchBackend] | None,
    ) -> None:
        super().__init__("CTranslate2", load_native)
        self.folder, self.info = folder, read_info(folder)
        self._src_pieces, self._tgt_pieces = _read_vocabularies(folder)
        self._tgt_ids = {piece: index for index, piece in enumerate(self._tgt_pieces)}
        self.translators = TranslatorPool(
            folder,
            precision=precision,
            quantization=self.info["quantization"],
            pieces=self._src_pieces,
        )

    @property
    def num_parameters(self) -> int:
        """The number of weights of the original model, before heads were padded."""
        return int(self.info["num_parameters"])

    @property
    def num_bytes(self) -> int:
        """The memory of all weights, in bytes, as far as they are loaded."""
        own = self.num_parameters * self.translators.bytes_per_weight
        return own + self.native_bytes

    @property
    def has_calibrated_scores(self) -> bool:
        """Whether PyTorch computes the scores."""
        return self.has_native

    def warm_up(self) -> None:
        """Load the model and time the precisions for single texts before the first request."""
        for count, is_beam in ((1, True), (1, False), (2, True)):
            self.translators.get(count, is_beam=is_beam)

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
    ) -> None:
        """Raise one error with every option that CTranslate2 does not support."""
        reasons = unsupported_options(options, request, trace=trace)
        if reasons:
            listing = "".join(f"\n  - {reason}" for reason in reasons)
            reason = message("engine 'ctranslate2' does not support this{listing}", listing=listing)
            raise ConfigError(reason, hint=self.native_hint, reasons=reasons)

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
        batches = self._make_batches(items, options)
        for batch, found in self._translate_batches(items, batches, options):
            results |= dict(zip(batch, found, strict=True))
            if progress is not None:
                progress(len(results), len(items))
        return [results[index] for index in range(len(items))]

    def _make_batches(
        self, items: Sequence[TranslationItem], options: DecodingOptions
    ) -> list[list[int]]:
        """Return the indices of the items of each batch."""
        num_rows = options.n_best if options.do_sample else options.beam_size
        budget = self.batch_tokens
        if sum(len(item.ids) for item in items) > REPLICA_TOKENS:
            budget = min(budget, REPLICA_TOKENS * num_rows)
        batches: list[list[int]] = []
        # In a batch with prefixes CTranslate2 never returns an empty translation: keep them apart.
        for has_prefix in (False, True):
            sizes = {
                index: len(item.ids) * num_rows
                for index, item in enumerate(items)
                if bool(item.prefix) is has_prefix
            }
            batches += LengthBatches(sizes, budget)
        return batches

    def _translate_batches(
        self, items: Sequence[TranslationItem], batches: list[list[int]], options: DecodingOptions
    ) -> Iterator[tuple[list[int], list[SearchResult]]]:
        """Yield each batch and its results; several batches are translated at the same time."""

        def translate(batch: list[int], *, is_parallel: bool = False) -> list[SearchResult]:
            return self._translate(
                [items[index] for index in batch], options, is_parallel=is_parallel
            )

        if len(batches) == 1:
            yield batches[0], translate(batches[0])
            return
        # One more than there are replicas: they go on while Python reads a result.
        executor = ThreadPoolExecutor(self.translators.num_replicas + 1)
        try:
            futures = {
                executor.submit(translate, batch, is_parallel=True): batch for batch in batches
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            executor.shutdown(cancel_futures=True)

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probabilities of given targets, computed by the PyTorch backend.

        Without it they are those of CTranslate2, at a temperature of 1.
        """
        if self.has_native:
            return self.native.score(src, tgt, temperature=temperature)
        scored: dict[int, list[float]] = {}
        sizes = {i: max(len(src[i]), len(tgt[i]) + 1) for i in range(len(src))}
        for batch in LengthBatches(sizes, self.batch_tokens):
            targets = [[*tgt[index], END_ID] for index in batch]
            found = self.log_probs([src[index] for index in batch], targets)
            scored |= dict(zip(batch, found, strict=True))
        return [scored[index] for index in range(len(src))]

    def log_probs(self, src: Sequence[list[int]], tgt: Sequence[list[int]]) -> list[list[float]]:
        """Return the log-probabilities of given targets, computed by CTranslate2."""
        translator = self.translators.get(len(src), is_beam=False)
        pieces = [[self._tgt_pieces[token] for token in row[:-1]] for row in tgt]
        scored = translator.score_batch(self._source_pieces(src), pieces, max_input_length=0)
        return [list(one.log_probs) for one in scored]

    def _check_lengths(self, items: Sequence[TranslationItem]) -> None:
        max_positions = self.info["num_positions"]
        longest = max((len(item.ids) for item in items), default=0)
        if longest > max_positions:
            reason = message(
                "a source has {longest} tokens: the converted model supports {max_positions}",
                longest=longest,
                max_positions=max_positions,
            )
            raise InputError(
                reason,
                hint=message("split it, or {native}", native=self.native_hint),
            )
        longest = max((len(item.prefix) for item in items), default=0)
        if longest + NUM_ENDS > max_positions:
            reason = message(
                "a prefix has {longest} tokens: the converted model supports {max_positions}",
                longest=longest,
                max_positions=max_positions - NUM_ENDS,
            )
            raise InputError(
                reason,
                hint=message("shorten it, or {native}", native=self.native_hint),
            )

    def _translate(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        is_parallel: bool = False,
    ) -> list[SearchResult]:
        """Search one batch up to its largest limit; search what exceeds its own limit again."""
        limits = self._limits(items, options)
        hypotheses: dict[int, list[Candidate]] = {}
        if not options.do_sample:
            max_limit, early_exit = max(limits), allows_early_exit(options)
            ranked = self._run(
                items, options, max_limit, early_exit=early_exit, is_parallel=is_parallel
            )
            for index, (limit, (finished, unfinished)) in enumerate(
                zip(limits, ranked, strict=True)
            ):
                within = [one for one in finished if one.num_tokens < limit]
                if limit == max_limit and not early_exit:
                    within += unfinished
                if len(within) >= options.n_best:
                    hypotheses[index] = within
        remaining = [index for index in range(len(items)) if index not in hypotheses]
        for limit, indices in _group_by_limit(limits, remaining).items():
            ranked = self._run(
                [items[index] for index in indices], options, limit, is_parallel=is_parallel
            )
            for index, (finished, unfinished) in zip(indices, ranked, strict=True):
                hypotheses[index] = [*finished, *unfinished]
        return [
            SearchResult([self._to_hypothesis(one) for one in hypotheses[index][: options.n_best]])
            for index in range(len(items))
        ]

    def _limits(self, items: Sequence[TranslationItem], options: DecodingOptions) -> list[int]:
        """Return the maximum number of tokens of each translation."""
        max_positions = self.info["num_positions"]
        by_length: dict[int, int] = {}  # most items of a batch have the same length
        limits = []
        for item in items:
            limit = by_length.get(len(item.ids))
            if limit is None or item.constraints is not None:
                (limit,) = target_limits([len(item.ids)], options, [item.constraints])
                if item.constraints is None:
                    by_length[len(item.ids)] = limit
            limits.append(min(limit, max_positions))
        return limits

    def _run(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        limit: int,
        *,
        early_exit: bool = False,
        is_parallel: bool = False,
    ) -> list[RankedCandidates]:
        """Call CTranslate2 and rank its hypotheses."""
        translator = (
            self.translators.get_replicas()
            if is_parallel
            else self.translators.get(len(items), is_beam=is_beam_search(options))
        )
        src = self._source_pieces([item.ids for item in items])
        prefixes = [[self._tgt_pieces[token] for token in item.prefix] for item in items]
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
    ) -> RankedCandidates:
        """Return finished and unfinished hypotheses, best first; samples in their order."""
        finished: list[Candidate] = []
        unfinished: list[Candidate] = []
        check_finite(any(math.isnan(total) for total in totals))
        end = self._tgt_pieces[END_ID]
        for pieces, total in zip(outputs, totals, strict=True):
            is_finished = bool(pieces) and pieces[-1] == end
            penalty = length_penalty(max(len(pieces), 1), options.alpha, options.length_norm)
            candidate = Candidate(pieces, float(total), total / penalty, is_finished)
            (finished if is_finished else unfinished).append(candidate)
        if not options.do_sample:
            finished.sort(key=lambda one: -one.score)
            unfinished.sort(key=lambda one: -one.score)
        return finished, unfinished

    def _to_hypothesis(self, candidate: Candidate) -> Hypothesis:
        ids = [self._tgt_ids[piece] for piece in candidate.pieces[: candidate.num_tokens]]
        return Hypothesis(ids, candidate.log_prob, candidate.score, [], candidate.is_finished)


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
