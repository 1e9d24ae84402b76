"""What lesson 14 shows of a search: its trace, step by step, in words."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.lessons.blocks import Frame, LocalizedText, Steps, Table
from attendo.lessons.tiny_model import END, START, train_tiny_model

if TYPE_CHECKING:
    from attendo.decoding.hypothesis import Hypothesis, SearchResult
    from attendo.decoding.trace import Candidate, Step, Trace
    from attendo.lessons.blocks import Label
    from attendo.lessons.tiny_model import TinyModel

    Rows = list[list[Label | float | int | None]]

SRC = "je suis étudiant"
CORPUS = {"i am a student": 4, "student i am": 3, "student am i": 2}
"""Translations that nine people gave, and how many gave each."""
STEPS, COOLED = 200, 100
BEAM_SIZE, ALPHA = 2, 0.6
MAX_LENGTH = 8
FATES = {
    "kept": LocalizedText("kept", "남음"),
    "finished": LocalizedText("finished", "끝남"),
    "pruned": LocalizedText("pruned", "버려짐"),
}


def make_model() -> TinyModel:
    """Train on the nine pairs, without smoothing: what it learns are their shares."""
    pairs = tuple((SRC, tgt) for tgt, count in CORPUS.items() for _ in range(count))
    return train_tiny_model(pairs, steps=STEPS, smoothing=0.0, decay_steps=COOLED)


def find(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> SearchResult:
    """Search with a trace; as many translations are given as the beam holds."""
    tiny = make_model()
    options = DecodingOptions(
        beam_size=beam_size, n_best=beam_size, alpha=alpha, max_length=MAX_LENGTH
    )
    (found,) = search(tiny.model, tiny.encode_src(SRC), tiny.special_ids, options, trace=True)
    return found


def beam_frames(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> Steps:
    """Step through the tree: every candidate, its score, and what became of it."""
    found, words = find(beam_size=beam_size, alpha=alpha), make_model().tgt_words
    trace = _require(found)
    said: dict[int, list[str]] = {0: []}
    frames = []
    for step in trace.steps:
        frames.append(Frame(_title(step), [_tell_candidates(step, said, words)]))
        said = {
            one.slot: [*said[one.parent], words[one.id]]
            for one in step.candidates
            if one.slot is not None
        }
    title = LocalizedText(f"beam search, beam_size {beam_size}", f"빔 탐색, beam_size {beam_size}")
    return Steps(title, frames)


def _require(found: SearchResult) -> Trace:
    if found.trace is None:
        raise ValueError("the search was not traced")
    return found.trace


def _title(step: Step) -> LocalizedText:
    return LocalizedText(f"word {step.position + 1}", f"{step.position + 1}번째 단어")


def _tell_candidates(step: Step, said: dict[int, list[str]], words: tuple[str, ...]) -> Table:
    rows: Rows = [_tell_candidate(one, said[one.parent], words) for one in step.candidates]
    return Table(
        [
            LocalizedText("candidate", "후보"),
            LocalizedText("p of the word", "단어의 확률"),
            "log P",
            LocalizedText("score", "점수"),
            LocalizedText("fate", "결과"),
        ],
        rows,
    )


def _tell_candidate(
    one: Candidate, before: list[str], words: tuple[str, ...]
) -> list[Label | float | int | None]:
    sequence = " ".join([START, *before, words[one.id]])
    return [sequence, exp(one.log_prob), one.total, one.score, FATES[one.fate]]


def translations(*, beam_size: int = BEAM_SIZE, alpha: float = ALPHA) -> Table:
    """Give the translations that the search returns, best first."""
    words = make_model().tgt_words
    rows: Rows = [
        [rank, spell(one, words), exp(one.log_prob), one.log_prob, one.score]
        for rank, one in enumerate(find(beam_size=beam_size, alpha=alpha).hypotheses, 1)
    ]
    heads: list[Label] = [
        LocalizedText("rank", "순위"),
        LocalizedText("translation", "번역"),
        "P",
        "log P",
    ]
    return Table([*heads, LocalizedText("score", "점수")], rows, digits=4)


def spell(found: Hypothesis, words: tuple[str, ...]) -> str:
    """Write a hypothesis in words."""
    return " ".join([*(words[number] for number in found.ids), *[END] * found.is_finished])


def greedy_steps() -> Table:
    """Tell greedy search word by word: what it reads, the best two words, what it says."""
    words, trace = make_model().tgt_words, _require(find(beam_size=1))
    read: list[str] = [START]
    rows: Rows = []
    for step in trace.steps:
        ranked = sorted(step.candidates, key=lambda one: -one.log_prob)[:2]
        told = [f"{words[one.id]} {exp(one.log_prob):.3f}" for one in ranked]
        chosen = next(one for one in step.candidates if one.fate != "pruned")
        rows.append([step.position + 1, " ".join(read), *told, exp(chosen.total)])
        read.append(words[chosen.id])
    return Table(
        [
            LocalizedText("step", "단계"),
            LocalizedText("it reads", "읽는 것"),
            LocalizedText("it says", "말하는 단어"),
            LocalizedText("it passes over", "지나친 단어"),
            LocalizedText("P so far", "지금까지의 P"),
        ],
        rows,
    )
