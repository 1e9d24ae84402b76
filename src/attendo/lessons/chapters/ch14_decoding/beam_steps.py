"""Greedy and beam search of a tiny model, step by step, from the trace of the search."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.lessons.blocks import Frame, Steps, Table
from attendo.lessons.prose import Prose
from attendo.lessons.tiny_model import END, START, train_tiny_model

if TYPE_CHECKING:
    from attendo.decoding.hypothesis import Hypothesis, SearchResult
    from attendo.decoding.trace import Candidate, Step, Trace
    from attendo.lessons.blocks import Label
    from attendo.lessons.tiny_model import TinyModel

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch14_decoding")

SRC = "je suis étudiant"
CORPUS = {"i am a student": 4, "student i am": 3, "student am i": 2}
"""The training translations, and how often each occurs."""
STEPS, DECAY_STEPS = 200, 100
BEAM_SIZE, ALPHA = 2, 0.6
MAX_LENGTH = 8
OUTCOMES = {
    "kept": prose("outcome-kept"),
    "finished": prose("outcome-finished"),
    "pruned": prose("outcome-pruned"),
}


def train_model() -> TinyModel:
    """Return a tiny model that has learned the frequencies of the nine translations."""
    pairs = tuple((SRC, tgt) for tgt, count in CORPUS.items() for _ in range(count))
    return train_tiny_model(pairs, steps=STEPS, smoothing=0.0, decay_steps=DECAY_STEPS)


def run_search(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> SearchResult:
    """Return the traced search result with as many translations as the beam holds."""
    tiny = train_model()
    options = DecodingOptions(
        beam_size=beam_size, n_best=beam_size, alpha=alpha, max_length=MAX_LENGTH
    )
    (result,) = search(tiny.model, tiny.encode_src(SRC), tiny.special_ids, options, trace=True)
    return result


def beam_search_steps(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> Steps:
    """Return every step of beam search: all candidates, their scores and outcomes."""
    result, words = run_search(beam_size=beam_size, alpha=alpha), train_model().tgt_words
    trace = _trace_of(result)
    prefixes: dict[int, list[str]] = {0: []}
    frames = []
    for step in trace.steps:
        frames.append(Frame(_title(step), [_candidate_table(step, prefixes, words)]))
        prefixes = {
            one.slot: [*prefixes[one.parent], words[one.id]]
            for one in step.candidates
            if one.slot is not None
        }
    title = prose("beam-steps", beam_size=beam_size)
    return Steps(title, frames)


def _trace_of(result: SearchResult) -> Trace:
    if result.trace is None:
        raise ValueError("the search was not traced")
    return result.trace


def _title(step: Step) -> Label:
    return prose("word-number", number=step.position + 1)


def _candidate_table(step: Step, prefixes: dict[int, list[str]], words: tuple[str, ...]) -> Table:
    rows: Rows = [_candidate_row(one, prefixes[one.parent], words) for one in step.candidates]
    return Table(
        [prose("candidate"), prose("word-probability"), "log P", prose("score"), prose("outcome")],
        rows,
    )


def _candidate_row(
    one: Candidate, prefix: list[str], words: tuple[str, ...]
) -> list[Label | float | int | None]:
    sequence = " ".join([START, *prefix, words[one.id]])
    return [sequence, exp(one.log_prob), one.total, one.score, OUTCOMES[one.outcome]]


def translation_table(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> Table:
    """Return the translations that the search found, best first."""
    words = train_model().tgt_words
    rows: Rows = [
        [rank, join_words(one, words), exp(one.log_prob), one.log_prob, one.score]
        for rank, one in enumerate(run_search(beam_size=beam_size, alpha=alpha).hypotheses, 1)
    ]
    headers: list[Label] = [prose("rank"), prose("translation"), "P", "log P"]
    return Table([*headers, prose("score")], rows, digits=4)


def join_words(hypothesis: Hypothesis, words: tuple[str, ...]) -> str:
    """Return a hypothesis in words."""
    return " ".join(
        [*(words[number] for number in hypothesis.ids), *[END] * hypothesis.is_finished]
    )


def greedy_table() -> Table:
    """Return greedy search word by word: the input, the best two words and the probability."""
    words, trace = train_model().tgt_words, _trace_of(run_search(beam_size=1))
    decoder_input: list[str] = [START]
    rows: Rows = []
    for step in trace.steps:
        ranked = sorted(step.candidates, key=lambda one: -one.log_prob)[:2]
        best_two = [f"{words[one.id]} {exp(one.log_prob):.3f}" for one in ranked]
        chosen = next(one for one in step.candidates if one.outcome != "pruned")
        rows.append([step.position + 1, " ".join(decoder_input), *best_two, exp(chosen.total)])
        decoder_input.append(words[chosen.id])
    return Table(
        [
            prose("step"),
            prose("decoder-input"),
            prose("chosen-word"),
            prose("second-word"),
            prose("probability-so-far"),
        ],
        rows,
    )
