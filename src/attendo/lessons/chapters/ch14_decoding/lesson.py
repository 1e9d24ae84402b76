"""Lesson 14: decoding; greedy and beam search word by word, and the key-value cache."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import torch

from attendo.inspection import capture
from attendo.lessons.blocks import Block, Formula, LocalizedText, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch14_decoding.beam_steps import (
    ALPHA,
    BEAM_SIZE,
    CORPUS,
    SRC,
    beam_search_steps,
    greedy_table,
    join_words,
    run_search,
    train_model,
    translation_table,
)
from attendo.lessons.chapters.ch14_decoding.cache_cost import count_work, vector_table, work_chart
from attendo.lessons.chapters.ch14_decoding.decoder_steps import decoder_steps
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch14_decoding")

LENGTH = 20
MILLION = 1e6
TEN_THOUSAND = 10_000
"""Large Korean numbers are grouped by 10,000 (만) and its square (억)."""


def build_blocks(
    beam_size: int, alpha: float, source_length: int, target_length: int
) -> list[Block]:
    """Return greedy search, beam search, and what the cache saves."""
    return [
        *_greedy_section(),
        *_beam_section(beam_size, alpha),
        *_cache_section(source_length, target_length),
    ]


def _greedy_section() -> list[Block]:
    total = sum(CORPUS.values())
    most = sum(count for tgt, count in CORPUS.items() if tgt.startswith("student"))
    words, best = train_model().tgt_words, run_search(beam_size=1).hypotheses[0]
    rows: list[list[Label | float | int | None]] = [
        [tgt, count, f"{count}/{total}", count / total] for tgt, count in CORPUS.items()
    ]
    return [
        Paragraph(prose("word-by-word", src=SRC, total=total)),
        Table(
            [prose("translation"), prose("count"), prose("fraction"), prose("fraction-decimal")],
            rows,
        ),
        Paragraph(prose("greedy", most=most, total=total)),
        greedy_table(),
        Paragraph(prose("greedy-result", output=join_words(best, words), p=exp(best.log_prob))),
    ]


def _beam_section(beam_size: int, alpha: float) -> list[Block]:
    words = train_model().tgt_words
    best = run_search(beam_size=beam_size, alpha=alpha).hypotheses[0]
    greedy = run_search(beam_size=1).hypotheses[0]
    gain = exp(best.log_prob - greedy.log_prob)
    return [
        Paragraph(prose("beam-search", beam_size=beam_size)),
        Paragraph(prose("length-penalty")),
        Formula("score = log P / ((5 + length) / 6)^α"),
        beam_search_steps(beam_size=beam_size, alpha=alpha),
        Paragraph(
            prose("beam-result", beam_size=beam_size, output=join_words(best, words), gain=gain)
        ),
        translation_table(beam_size=beam_size, alpha=alpha),
    ]


def _cache_section(source_length: int, target_length: int) -> list[Block]:
    work = count_work(source_length, target_length)
    plain, cached = (sum(one.multiply_adds) for one in (work.plain, work.cached))
    return [
        Paragraph(prose("cache")),
        Paragraph(prose("cache-setting", target_length=target_length, source_length=source_length)),
        vector_table(source_length=source_length, target_length=target_length),
        work_chart(source_length=source_length, target_length=target_length),
        Paragraph(
            prose(
                "cache-savings",
                plain=spell_count(plain),
                cached=spell_count(cached),
                ratio=plain / cached,
                num_cached=work.num_cached,
                difference=cache_difference(),
            )
        ),
        Note(prose("start-symbol")),
    ]


def spell_count(count: int) -> LocalizedText:
    """Return a large number in the units of each language.

    >>> spell_count(5_925_900_000)
    LocalizedText(en='5,925.9 million', ko='약 59억 2,590만')
    """
    hundred_millions, rest = divmod(round(count / TEN_THOUSAND), TEN_THOUSAND)
    parts = ([f"{hundred_millions:,}억"] if hundred_millions else []) + [f"{rest:,}만"] * bool(rest)
    return LocalizedText(f"{count / MILLION:,.1f} million", f"약 {' '.join(parts) or 0}")


@torch.inference_mode()
def cache_difference() -> float:
    """Return the largest difference of a logit with and without the cache, over a sentence."""
    tiny, tgt = train_model(), next(iter(CORPUS))
    uncached = tiny.teacher_force(SRC, tgt).logits  # (T, V)
    state = tiny.model.start(tiny.model.encode(tiny.encode_src(SRC)))
    largest = 0.0
    for position, number in enumerate([tiny.special_ids.start_id, *tiny.encode_tgt(tgt)]):
        logits, state = tiny.model.step(torch.tensor([number]), state)
        largest = max(largest, float((logits[0] - uncached[position]).abs().max()))
    return largest


def _best_of_beam() -> str:
    return join_words(run_search(beam_size=2).hypotheses[0], train_model().tgt_words).removesuffix(
        " <eos>"
    )


def _vectors_with_cache() -> int:
    return count_work(LENGTH, LENGTH).cached.vectors["cross_attention.key"]


def _ratio_at_last_step() -> float:
    work = count_work(LENGTH, LENGTH)
    return work.plain.multiply_adds[-1] / work.cached.multiply_adds[-1]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return two translations of the learner's own model, its steps and its search tree."""
    best = translator.translate([text], beam_size=2, n_best=2)[0]
    rows: list[list[Label | float | int | None]] = [
        [rank, str(one), one.log_prob, one.score]
        for rank, one in enumerate((best, *best.alternatives), 1)
    ]
    return [
        Paragraph(prose("own-translations", text=text)),
        Table([prose("rank"), prose("translation"), "log P", prose("score")], rows),
        decoder_steps(capture(translator, text, positions=False, neighbors=False)),
        ModelPlot("beam_tree", prose("own-figure")),
    ]


LESSON = Lesson(
    number=14,
    title=prose("title"),
    summary=prose("summary"),
    paper="6.1",
    code=(
        CodeReference("attendo.decoding.search", "search"),
        CodeReference("attendo.decoding.beam", "BeamSearch"),
        CodeReference("attendo.decoding.hypothesis", "length_penalty"),
        CodeReference("attendo.model.kv_cache", "LayerCache"),
    ),
    inputs=(
        Number(name="beam_size", label=prose("input-beam-size"), default=BEAM_SIZE, low=1, high=6),
        Number(
            name="alpha", label=prose("input-alpha"), default=ALPHA, low=0.0, high=2.0, step=0.1
        ),
        Number(
            name="source_length", label=prose("input-source-length"), default=LENGTH, low=1, high=40
        ),
        Number(
            name="target_length", label=prose("input-target-length"), default=LENGTH, low=2, high=40
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _best_of_beam,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=tuple((tgt, tgt) for tgt in CORPUS),
        ),
        Question(
            prose("question-2"),
            _vectors_with_cache,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _ratio_at_last_step,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=1.0,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
