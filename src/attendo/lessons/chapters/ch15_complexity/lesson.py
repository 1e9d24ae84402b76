"""Lesson 15: why self-attention; operations, sequential steps and path lengths of four layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.lessons.blocks import Block, Formula, Matrix, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch15_complexity.layer_costs import (
    DISTANCE,
    FORMULAS,
    NAMES,
    NUM_WORDS,
    TIMED,
    TIMED_SIZE,
    D,
    K,
    R,
    count_operations,
    crossing_length,
    filters_needed,
    measure_times,
    operations_chart,
    path_lengths,
    sequential_steps,
    time_chart,
    visible_words,
)
from attendo.lessons.inputs import Number, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch15_complexity")

N = 70
MAX_WORDS = 27
"""The largest number of words for which paths are measured."""
MAX_NEIGHBORS = 8
"""The largest r for which they are measured: fewer than the words, so that it restricts."""


def build_blocks(n: int, d: int, k: int, r: int, measure: bool) -> list[Block]:
    """Return the operations, paths, receptive fields and times of four kinds of layer."""
    return [
        *_operations_section(n, d, k, r),
        *_paths_section(n, k, r),
        *_receptive_field_section(k),
        *(_timing_section() if measure else []),
    ]


def _operations_section(n: int, d: int, k: int, r: int) -> list[Block]:
    crossings = {kind: crossing_length(kind, d, k, r) for kind in NAMES if kind != "attention"}
    return [
        Paragraph(prose("three-criteria")),
        Table(
            [
                prose("layer"),
                prose("operations"),
                prose("operations-at", n=n, d=d),
                prose("crossing"),
            ],
            [
                [
                    name,
                    FORMULAS[kind][0],
                    count_operations(kind, n, d, k, r),
                    f"n = {crossings[kind]:,}" if kind in crossings else None,
                ]
                for kind, name in NAMES.items()
            ],
        ),
        Paragraph(
            prose("operations-short", d=d, r=r)
            if n < d
            else prose("operations-long", n=n, d=d, r=r)
        ),
        Formula("n · n · d  :  n · d · d  =  n : d"),
        operations_chart(d, k, r),
    ]


def _paths_section(n: int, k: int, r: int) -> list[Block]:
    size, near = min(n, MAX_WORDS), min(r, MAX_NEIGHBORS)
    paths, sequential = path_lengths(size, k, near), sequential_steps(size)
    rows: list[list[Any]] = [
        [name, FORMULAS[kind][1], sequential[kind], FORMULAS[kind][2], paths[kind]]
        for kind, name in NAMES.items()
    ]
    plain = prose("convolution-without-gaps")
    rows.insert(3, [plain, "1", sequential["convolution"], "n / k", paths["plain"]])
    return [
        Paragraph(prose("measured-paths", size=size, near=near)),
        Table(
            [
                prose("layer"),
                prose("sequential"),
                prose("measured"),
                prose("max-path"),
                prose("measured"),
            ],
            rows,
        ),
        Paragraph(prose("formulas", size=size, before=size - 1)),
    ]


def _receptive_field_section(k: int) -> list[Block]:
    visible = visible_words(k)
    middle = NUM_WORDS - 1
    words = [prose(f"word-{number}") for number in range(1, NUM_WORDS + 1)]
    is_seen, needed = bool(visible[middle, middle - DISTANCE]), filters_needed(k)
    return [
        Paragraph(
            prose(
                "receptive-field",
                k=k,
                word=middle + 1,
                num_seen=int(visible[middle].sum()),
                apart=DISTANCE,
                among=prose("seen") if is_seen else prose("not-seen"),
                needed=needed,
                attention_ones=int(visible_words().sum()),
                cells=visible.numel(),
            )
        ),
        Matrix(prose("visible"), visible.int().tolist(), rows=words, columns=words, shade=True),
    ]


def _timing_section() -> list[Block]:
    times = measure_times()
    longest = TIMED[-1]
    attention_growth = times["attention"][-1] / times["attention"][-2]
    recurrent_growth = times["recurrent"][-1] / times["recurrent"][-2]
    attention_expected, recurrent_expected = (
        count_operations(kind, longest, TIMED_SIZE) / count_operations(kind, TIMED[-2], TIMED_SIZE)
        for kind in ("attention", "recurrent")
    )
    return [
        Paragraph(
            prose(
                "timing",
                shorter=TIMED[-2],
                longest=longest,
                attention_growth=attention_growth,
                recurrent_growth=recurrent_growth,
                attention_expected=attention_expected,
                recurrent_expected=recurrent_expected,
            )
        ),
        time_chart(),
        Table(
            ["n", *NAMES.values()],
            [[n, *(times[kind][index] for kind in NAMES)] for index, n in enumerate(TIMED)],
            title=prose("milliseconds"),
        ),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the operations for the learner's own sentence and width, and its self-attention."""
    n = len(translator.tokenizer.encode_src([text])[0])
    config = getattr(translator.model, "config", None)
    d = D if config is None else config.d_model
    blocks: list[Block] = [
        Paragraph(prose("own-operations", text=text, n=n, d=d)),
        Table(
            [prose("layer"), prose("operations")],
            [[name, count_operations(kind, n, d)] for kind, name in NAMES.items()],
        ),
    ]
    if isinstance(translator.model, Transformer):
        caption = prose("own-figure")
        return [*blocks, ModelPlot("all_heads", caption, {"kind": "encoder_self"})]
    note = prose("own-not-transformer")
    return [*blocks, Note(note)]


def _layer_with_fewest_operations() -> str:
    kinds = ("attention", "recurrent", "convolution")
    return min(kinds, key=lambda kind: count_operations(kind, 30, 512))


LESSON = Lesson(
    number=15,
    title=prose("title"),
    summary=prose("summary"),
    paper="4",
    code=(
        CodeReference("attendo.inspection.receptive_field", "receptive_field"),
        CodeReference("attendo.inspection.receptive_field", "path_length"),
        CodeReference("attendo.model.fast.local_attention", "local_attention"),
    ),
    inputs=(
        Number(name="n", label=prose("input-n"), default=N, low=2, high=4096),
        Number(name="d", label=prose("input-d"), default=D, low=8, high=1024),
        Number(name="k", label=prose("input-k"), default=K, low=3, high=9),
        Number(name="r", label=prose("input-r"), default=R, low=2, high=512),
        Switch(name="measure", label=prose("input-measure"), default=True),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _layer_with_fewest_operations,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=tuple(
                (kind, NAMES[kind]) for kind in ("attention", "recurrent", "convolution")
            ),
        ),
        Question(
            prose("question-2"),
            lambda: float(filters_needed(3)),
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            lambda: float(crossing_length("recurrent", 1024)),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
