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
from attendo.data.tokenizer import END_ID, PAD_ID, START_ID
from attendo.decoding.hypothesis import Found, Hypothesis, length_penalty
from attendo.decoding.rules import limits_of, refuse_nan
from attendo.translator.ctranslate2_options import (
    changes_scores,
    is_beam,
    list_refusals,
    may_exit,
    word_options,
)
from attendo.translator.ctranslate2_runner import Runners
from attendo.translator.ctranslate2_spec import REMEDY, read_info
from attendo.translator.engine import SYMBOLS, Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.decoding.options import DecodingOptions, Demands
    from attendo.translator.ctranslate2_runner import Precision
    from attendo.translator.engine import Job, Progress
    from attendo.translator.wishes import Wishes

    Ranked = tuple[list[Hypothesis], list[Hypothesis]]


class ClosedModel:
    """Stands in the place of the model: CTranslate2 runs it, and shows nothing of it."""

    kind = "transformer"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reason = f"CTranslate2 shows nothing of the inside of a model (its '{name}' was asked for)"
        raise InputError(reason, remedy=f"{REMEDY}, or translator.reference")


class CTranslate2Engine(Engine):
    """A converted model.

    Args:
        folder: what `attendo.translator.ctranslate2_spec.write` filled.
        precision: what it computes in (`attendo.translator.ctranslate2_runner`).
        open_own: loads the same model behind our own engine, when that is first needed.

    """

    name: ClassVar[str] = "ctranslate2"

    def __init__(
        self, folder: Path, *, precision: Precision = "auto", open_own: Callable[[], Engine]
    ) -> None:
        self.model: Any = ClosedModel()
        self.parts = []
        self.folder, self.info = folder, read_info(folder)
        self._src, self._tgt = _read_vocabularies(folder)
        self._ids = {piece: number for number, piece in enumerate(self._tgt)}
        self.runners = Runners(
            folder,
            precision=precision,
            quantization=self.info["quantization"],
            pieces=self._src,
        )
        self._open_own, self._lock = open_own, threading.Lock()
        self._own: Engine | None = None

    @property
    def num_parameters(self) -> int:
        """Count the weights, as they were before anything was widened."""
        return int(self.info["num_parameters"])

    @property
    def own(self) -> Engine:
        """Our own engine over the same weights."""
        with self._lock:
            if self._own is None:
                self._own = self._open_own()
            return self._own

    def warm_up(self) -> None:
        """Load the model, and choose what decodes one text alone, before anybody waits for it."""
        for count in (1, 2):
            self.runners.choose(count, is_beam=True)

    def check(self, options: DecodingOptions, wishes: Wishes, *, trace: bool) -> None:
        """Refuse what CTranslate2 has not; every reason at once."""
        reasons = list_refusals(options, wishes, trace=trace)
        if reasons:
            listing = "".join(f"\n  - {reason}" for reason in reasons)
            told = f"engine 'ctranslate2' cannot do this{listing}"
            raise ConfigError(told, remedy=REMEDY, reasons=reasons)

    def search(
        self,
        jobs: Sequence[Job],
        options: DecodingOptions,
        *,
        trace: bool = False,  # noqa: ARG002 - `check` has refused it
        progress: Progress | None = None,
    ) -> list[Found]:
        """Find the translations of every job, in order."""
        self._check_lengths(jobs)
        found: dict[int, Found] = {}
        num_rows = options.n_best if options.sample else options.beam_size
        for is_begun in (False, True):  # beside a beginning no translation may be empty there
            places = [p for p, job in enumerate(jobs) if bool(job.demands.prefix) is is_begun]

            def run(batch: list[int]) -> list[Found]:
                return self._translate([jobs[place] for place in batch], options)

            sizes = {place: len(jobs[place].ids) * num_rows for place in places}
            for batch, results in self._run_all(sizes, run):
                found |= dict(zip(batch, results, strict=True))
                if progress is not None:
                    progress(len(found), len(jobs))
        return [found[place] for place in range(len(jobs))]

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Give the log-probabilities of given targets, by our own engine."""
        return self.own.score(src, tgt, temperature=temperature)

    def log_probs(self, src: Sequence[list[int]], tgt: Sequence[list[int]]) -> list[list[float]]:
        """Give that of each id of given targets, the end symbol last, by CTranslate2 itself."""
        runner = self.runners.choose(len(src), is_beam=False)
        pieces = [[self._tgt[number] for number in row[:-1]] for row in tgt]
        scored = runner.score_batch(self._word_sources(src), pieces, max_input_length=0)
        return [list(one.log_probs) for one in scored]

    def _check_lengths(self, jobs: Sequence[Job]) -> None:
        longest = max((len(job.ids) for job in jobs), default=0)
        most = self.info["num_positions"]
        if longest > most:
            reason = f"a source of {longest} tokens: CTranslate2 was given {most} positions"
            raise InputError(reason, remedy=f"split it, or {REMEDY}")

    def _translate(self, jobs: Sequence[Job], options: DecodingOptions) -> list[Found]:
        """Search one batch up to the limit of its longest; who would pass its own goes again."""
        demands: list[Demands] = [job.demands for job in jobs]
        own = limits_of(self.pad([job.ids for job in jobs]), options, SYMBOLS, demands)
        limits = [min(limit, self.info["num_positions"]) for limit in own]
        found: dict[int, list[Hypothesis]] = {}
        if not options.sample:
            most, exits = max(limits), may_exit(options)
            ranked = self._run(jobs, options, most, exits=exits)
            for place, (limit, (ended, cut)) in enumerate(zip(limits, ranked, strict=True)):
                within = [one for one in ended if len(one.ids) < limit]
                if limit == most and not exits:
                    within += cut
                if len(within) >= options.n_best:
                    found[place] = within
        late = [place for place in range(len(jobs)) if place not in found]
        for limit, places in _group(limits, late).items():
            ranked = self._run([jobs[place] for place in places], options, limit)
            found |= {p: [*ended, *cut] for p, (ended, cut) in zip(places, ranked, strict=True)}
        return [Found(found[place][: options.n_best]) for place in range(len(jobs))]

    def _run(
        self, jobs: Sequence[Job], options: DecodingOptions, limit: int, *, exits: bool = False
    ) -> list[Ranked]:
        """Call CTranslate2, and rank what it finds."""
        runner = self.runners.choose(len(jobs), is_beam=is_beam(options))
        src = self._word_sources([job.ids for job in jobs])
        begun = [[self._tgt[number] for number in job.demands.prefix] for job in jobs]
        results = runner.translate_batch(
            src,
            begun if any(begun) else None,
            suppress_sequences=[[self._tgt[PAD_ID]], [self._tgt[START_ID]]],
            **word_options(options, limit, exits=exits),
        )
        said = [result.hypotheses for result in results]
        totals = [result.scores for result in results]
        heads: list[list[float]] = []
        if any(begun):  # which it takes for certain
            scored = runner.score_batch(src, begun, max_input_length=0)
            heads = [list(one.log_probs) for one in scored]
        if changes_scores(options):
            totals = _score(runner, src, said)
        elif heads:
            pairs = zip(heads, totals, strict=True)
            totals = [[math.fsum(head[:-1]) + one for one in several] for head, several in pairs]
        if heads and is_beam(options):
            whole = [[*prefix, self._tgt[END_ID]] for prefix in begun]
            _add_ends(whole, heads, said, totals, options)
        return [self._rank(*pair, options) for pair in zip(said, totals, strict=True)]

    def _word_sources(self, src: Sequence[list[int]]) -> list[list[str]]:
        """Give the pieces of each source; CTranslate2 adds the end symbol itself."""
        return [[self._src[number] for number in ids[:-1]] for ids in src]

    def _rank(
        self, said: Sequence[list[str]], totals: Sequence[float], options: DecodingOptions
    ) -> Ranked:
        """Give what has ended and what was cut, the best of each first; draws as they came."""
        ended: list[Hypothesis] = []
        cut: list[Hypothesis] = []
        refuse_nan(any(math.isnan(total) for total in totals))
        for pieces, total in zip(said, totals, strict=True):
            is_finished = bool(pieces) and pieces[-1] == self._tgt[END_ID]
            penalty = length_penalty(max(len(pieces), 1), options.alpha, options.length_norm)
            ids = [self._ids[piece] for piece in (pieces[:-1] if is_finished else pieces)]
            one = Hypothesis(ids, float(total), total / penalty, [], is_finished)
            (ended if is_finished else cut).append(one)
        if not options.sample:
            ended.sort(key=lambda one: -one.score)
            cut.sort(key=lambda one: -one.score)
        return ended, cut


def _score(
    runner: Any, src: Sequence[list[str]], said: Sequence[Sequence[list[str]]]
) -> list[list[float]]:
    """Give the log-probability of each thing that was said for each source."""
    flat = [(own, pieces) for own, several in zip(src, said, strict=True) for pieces in several]
    sources, targets = ([*column] for column in zip(*flat, strict=True))
    scored = runner.score_batch(sources, targets, max_input_length=0)
    pairs = zip(scored, targets, strict=True)  # an end symbol is scored behind each
    sums = iter([math.fsum(one.log_probs[: len(pieces)]) for one, pieces in pairs])
    return [[next(sums) for _ in several] for several in said]


def _add_ends(
    whole: list[list[str]],
    heads: list[list[float]],
    said: list[list[list[str]]],
    totals: list[list[float]],
    options: DecodingOptions,
) -> None:
    """Add a beginning that is the whole translation, where our beam would surely have it.

    Behind a beginning CTranslate2 takes an end only if nothing is likelier; we do if it is among
    the best `beam_size`, and what is likelier than 1 in beam_size + 1 is.
    """
    for place, (pieces, head) in enumerate(zip(whole, heads, strict=True)):
        is_likely = math.exp(head[-1]) > 1.0 / (options.beam_size + 1)
        if is_likely and len(pieces) > options.min_length and pieces not in said[place]:
            said[place] = [*said[place], pieces]
            totals[place] = [*totals[place], math.fsum(head)]


def _read_vocabularies(folder: Path) -> list[list[str]]:
    """Give the pieces of source and target, by their ids."""
    shared = folder / "shared_vocabulary.json"
    sides = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    paths = [shared, shared] if shared.is_file() else sides
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _group(limits: Sequence[int], places: Sequence[int]) -> dict[int, list[int]]:
    """Put places of the same limit together."""
    grouped: dict[int, list[int]] = {}
    for place in places:
        grouped.setdefault(limits[place], []).append(place)
    return grouped
