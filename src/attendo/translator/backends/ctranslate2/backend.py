"""Decodes by CTranslate2: the same options where it has them, an error where it has not.

What it finds is ranked here, by our own penalty. A minimum length and n-gram blocking are kept by
both, but it shares out the probability of what is forbidden, so that another hypothesis may win:
what it gives is then scored and ranked anew. What only the model itself can tell (confidence, given
translations) our own engine computes, loaded when it is first needed.
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
from attendo.translator.backends.pytorch import SPECIAL_IDS, PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.decoding.options import Constraints, DecodingOptions
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import Progress, TranslationItem
    from attendo.translator.constraints import ConstraintRequest

    RankedHypotheses = tuple[list[Hypothesis], list[Hypothesis]]


class OpaqueModel:
    """Stands in the place of the model: CTranslate2 runs it, and shows nothing of it."""

    kind = "transformer"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reason = f"CTranslate2 shows nothing of the inside of a model (its '{name}' was asked for)"
        raise InputError(reason, hint=f"{USE_NATIVE_HINT}, or translator.reference")


class CTranslate2Backend(PyTorchBackend):
    """A converted model.

    Args:
        folder: what `attendo.translator.backends.ctranslate2.converter.write` filled.
        precision: what it computes in (`attendo.translator.backends.ctranslate2.loader`).
        open_own: loads the same model behind our own engine, when that is first needed.

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
        self._tgt_ids = {piece: number for number, piece in enumerate(self._tgt_pieces)}
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
        """Count the weights, as they were before anything was widened."""
        return int(self.info["num_parameters"])

    @property
    def native(self) -> PyTorchBackend:
        """Our own engine over the same weights."""
        with self._lock:
            if self._native is None:
                self._native = self._load_native()
            return self._native

    def warm_up(self) -> None:
        """Load the model, and choose what decodes one text alone, before anybody waits for it."""
        for count in (1, 2):
            self.translators.get(count, is_beam=True)

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest, *, trace: bool
    ) -> None:
        """Refuse what CTranslate2 has not; every reason at once."""
        reasons = unsupported_options(options, request, trace=trace)
        if reasons:
            listing = "".join(f"\n  - {reason}" for reason in reasons)
            message = f"engine 'ctranslate2' cannot do this{listing}"
            raise ConfigError(message, hint=USE_NATIVE_HINT, reasons=reasons)

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,  # noqa: ARG002 - `check` has refused it
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Find the translations of every job, in order."""
        self._check_lengths(items)
        results_by_index: dict[int, SearchResult] = {}
        num_rows = options.n_best if options.do_sample else options.beam_size
        for has_prefix in (False, True):  # beside a beginning no translation may be empty there
            indices = [
                p for p, item in enumerate(items) if bool(item.constraints.prefix) is has_prefix
            ]

            def run(batch: list[int]) -> list[SearchResult]:
                return self._translate([items[index] for index in batch], options)

            sizes = {index: len(items[index].ids) * num_rows for index in indices}
            for batch, results in self._run_batches(sizes, run):
                results_by_index |= dict(zip(batch, results, strict=True))
                if progress is not None:
                    progress(len(results_by_index), len(items))
        return [results_by_index[place] for place in range(len(items))]

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Give the log-probabilities of given targets, by our own engine."""
        return self.native.score(src, tgt, temperature=temperature)

    def log_probs(self, src: Sequence[list[int]], tgt: Sequence[list[int]]) -> list[list[float]]:
        """Give that of each id of given targets, the end symbol last, by CTranslate2 itself."""
        runner = self.translators.get(len(src), is_beam=False)
        pieces = [[self._tgt_pieces[number] for number in row[:-1]] for row in tgt]
        scored = runner.score_batch(self._source_pieces(src), pieces, max_input_length=0)
        return [list(one.log_probs) for one in scored]

    def _check_lengths(self, items: Sequence[TranslationItem]) -> None:
        longest = max((len(item.ids) for item in items), default=0)
        max_positions = self.info["num_positions"]
        if longest > max_positions:
            reason = (
                f"a source of {longest} tokens: CTranslate2 was given {max_positions} positions"
            )
            raise InputError(reason, hint=f"split it, or {USE_NATIVE_HINT}")

    def _translate(
        self, items: Sequence[TranslationItem], options: DecodingOptions
    ) -> list[SearchResult]:
        """Search one batch up to the limit of its longest; who would pass its own goes again."""
        constraints: list[Constraints] = [item.constraints for item in items]
        own_limits = max_lengths(
            self.pad([job.ids for job in items]), options, SPECIAL_IDS, constraints
        )
        limits = [min(limit, self.info["num_positions"]) for limit in own_limits]
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
        remaining = [place for place in range(len(items)) if place not in hypotheses]
        for limit, indices in _group_by_limit(limits, remaining).items():
            ranked = self._run([items[place] for place in indices], options, limit)
            hypotheses |= {
                p: [*ended, *cut] for p, (ended, cut) in zip(indices, ranked, strict=True)
            }
        return [SearchResult(hypotheses[place][: options.n_best]) for place in range(len(items))]

    def _run(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        limit: int,
        *,
        early_exit: bool = False,
    ) -> list[RankedHypotheses]:
        """Call CTranslate2, and rank what it finds."""
        runner = self.translators.get(len(items), is_beam=is_beam_search(options))
        src = self._source_pieces([item.ids for item in items])
        prefixes = [
            [self._tgt_pieces[number] for number in job.constraints.prefix] for job in items
        ]
        results = runner.translate_batch(
            src,
            prefixes if any(prefixes) else None,
            suppress_sequences=[[self._tgt_pieces[PAD_ID]], [self._tgt_pieces[START_ID]]],
            **to_ct2_options(options, limit, early_exit=early_exit),
        )
        outputs = [result.hypotheses for result in results]
        totals = [result.scores for result in results]
        prefix_log_probs: list[list[float]] = []
        if any(prefixes):  # which it takes for certain
            scored = runner.score_batch(src, prefixes, max_input_length=0)
            prefix_log_probs = [list(one.log_probs) for one in scored]
        if changes_scores(options):
            totals = _score_outputs(runner, src, outputs)
        elif prefix_log_probs:
            pairs = zip(prefix_log_probs, totals, strict=True)
            totals = [
                [math.fsum(log_probs[:-1]) + one for one in scores] for log_probs, scores in pairs
            ]
        if prefix_log_probs and is_beam_search(options):
            finished_prefixes = [[*prefix, self._tgt_pieces[END_ID]] for prefix in prefixes]
            _add_finished_prefixes(finished_prefixes, prefix_log_probs, outputs, totals, options)
        return [self._rank(*pair, options) for pair in zip(outputs, totals, strict=True)]

    def _source_pieces(self, src: Sequence[list[int]]) -> list[list[str]]:
        """Give the pieces of each source; CTranslate2 adds the end symbol itself."""
        return [[self._src_pieces[number] for number in ids[:-1]] for ids in src]

    def _rank(
        self, outputs: Sequence[list[str]], totals: Sequence[float], options: DecodingOptions
    ) -> RankedHypotheses:
        """Give what has ended and what was cut, the best of each first; draws as they came."""
        finished: list[Hypothesis] = []
        unfinished: list[Hypothesis] = []
        check_finite(any(math.isnan(total) for total in totals))
        for pieces, total in zip(outputs, totals, strict=True):
            is_finished = bool(pieces) and pieces[-1] == self._tgt_pieces[END_ID]
            penalty = length_penalty(max(len(pieces), 1), options.alpha, options.length_norm)
            ids = [self._tgt_ids[piece] for piece in (pieces[:-1] if is_finished else pieces)]
            one = Hypothesis(ids, float(total), total / penalty, [], is_finished)
            (finished if is_finished else unfinished).append(one)
        if not options.do_sample:
            finished.sort(key=lambda one: -one.score)
            unfinished.sort(key=lambda one: -one.score)
        return finished, unfinished


def _score_outputs(
    runner: Any, src: Sequence[list[str]], outputs: Sequence[Sequence[list[str]]]
) -> list[list[float]]:
    """Give the log-probability of each thing that was said for each source."""
    flat = [
        (source, pieces)
        for source, hypotheses in zip(src, outputs, strict=True)
        for pieces in hypotheses
    ]
    sources, targets = ([*column] for column in zip(*flat, strict=True))
    scored = runner.score_batch(sources, targets, max_input_length=0)
    pairs = zip(scored, targets, strict=True)  # an end symbol is scored behind each
    sums = iter([math.fsum(one.log_probs[: len(pieces)]) for one, pieces in pairs])
    return [[next(sums) for _ in several] for several in outputs]


def _add_finished_prefixes(
    finished_prefixes: list[list[str]],
    prefix_log_probs: list[list[float]],
    outputs: list[list[list[str]]],
    totals: list[list[float]],
    options: DecodingOptions,
) -> None:
    """Add a beginning that is the whole translation, where our beam would surely have it.

    Behind a beginning CTranslate2 takes an end only if nothing is likelier; we do if it is among
    the best `beam_size`, and what is likelier than 1 in beam_size + 1 is.
    """
    for index, (pieces, log_probs) in enumerate(
        zip(finished_prefixes, prefix_log_probs, strict=True)
    ):
        is_likely = math.exp(log_probs[-1]) > 1.0 / (options.beam_size + 1)
        if is_likely and len(pieces) > options.min_length and pieces not in outputs[index]:
            outputs[index] = [*outputs[index], pieces]
            totals[index] = [*totals[index], math.fsum(log_probs)]


def _read_vocabularies(folder: Path) -> list[list[str]]:
    """Give the pieces of source and target, by their ids."""
    shared = folder / "shared_vocabulary.json"
    sides = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    paths = [shared, shared] if shared.is_file() else sides
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _group_by_limit(limits: Sequence[int], indices: Sequence[int]) -> dict[int, list[int]]:
    """Put places of the same limit together."""
    grouped: dict[int, list[int]] = {}
    for index in indices:
        grouped.setdefault(limits[index], []).append(index)
    return grouped
