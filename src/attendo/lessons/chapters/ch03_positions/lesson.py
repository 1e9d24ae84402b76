"""Lesson 3: attention does not see the order of words; positional encodings add it."""

from __future__ import annotations

from math import pi, sin
from typing import TYPE_CHECKING, Any

import torch

from attendo.inspection.embeddings import describe_positions
from attendo.lessons.blocks import (
    Block,
    Formula,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Table,
)
from attendo.lessons.chapters.ch03_positions.word_order import (
    D_MODEL,
    NUM_POSITIONS,
    compare_orders,
    count_layer_parameters,
    count_projection_parameters,
    encoding_changes,
    position_chart,
)
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.piece_labels import label_pieces
from attendo.lessons.prose import Prose
from attendo.model.positional_encoding import SinusoidalPositions, sinusoidal
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.blocks import Label
    from attendo.model.positional_encoding import Layout
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch03_positions")

PRINCE = "왕자 는 공주 를 구했다"
PRINCESS = "공주 는 왕자 를 구했다"
EXAM = "Although I did not get 95 in last TOEFL , I could get in the Ph.D program"
OTHER_EXAM = "Although I did get 95 in last TOEFL , I could not get in the Ph.D program"
GLOSSES = {"왕자": "prince", "는": "subject", "공주": "princess", "를": "object", "구했다": "saved"}
TOY_SIZE, TOY_POSITIONS = 4, 6
HEAT_MAP_DIMENSIONS = (0, 1, 2, 3, 32, 33, 64, 65, 128, 129, 511)
"""Of the 512 dimensions, those whose numbers are shown."""
PERIOD = 8
"""The period of a single sine."""
FAR_POSITION = 5000
"""A position that no training sentence reaches."""
MAX_SHOWN = 8
TOLERANCE = 1e-6
"""Vectors closer than this differ only by rounding."""


def build_blocks(position: int, d_model: int, layout: Layout, kind: str) -> list[Block]:
    """Return why order matters, the encoding, its properties, and what adding it costs."""
    return [
        *_order_section(kind),
        *_encoding_section(position, d_model, layout),
        *_heat_map_section(layout),
        *_properties_section(d_model),
        *_cost_section(),
    ]


def _order_section(kind: str) -> list[Block]:
    return [
        Paragraph(prose("set-of-words")),
        _change_table(PRINCE, PRINCESS, kind),
        Paragraph(prose("same-vectors")),
        Paragraph(
            prose("position-of-not", first=_detokenize(EXAM), second=_detokenize(OTHER_EXAM))
        ),
        _change_table(EXAM, OTHER_EXAM, kind),
    ]


def _detokenize(sentence: str) -> str:
    """Return a tokenized sentence as it is written."""
    return sentence.replace(" ,", ",")


def _gloss(word: str) -> Label:
    """Return a word, in English with its meaning."""
    return LocalizedText(f"{word} ({GLOSSES[word]})", word) if word in GLOSSES else word


def _change_table(first: str, second: str, kind: str) -> Table:
    without, with_positions = (compare_orders(first, second, chosen) for chosen in ("none", kind))
    return Table(
        [prose("word"), prose("change-without-positions"), prose("with-positions")],
        [
            [_gloss(word), change, change_with]
            for (word, change), (_, change_with) in zip(without, with_positions, strict=True)
            if word != ","
        ],
    )


def _encoding_section(position: int, d_model: int, layout: Layout) -> list[Block]:
    size = min(d_model, MAX_SHOWN)
    vector = sinusoidal(1, d_model, layout=layout, offset=position, dtype=torch.float64)
    return [
        Paragraph(prose("one-number")),
        Matrix(
            prose("one-sine", period=PERIOD),
            [[round(sin(2 * pi * index / PERIOD), 9) + 0.0 for index in range(PERIOD + 1)]],
            columns=[str(index) for index in range(PERIOD + 1)],
        ),
        Paragraph(prose("positional-encoding", size=TOY_SIZE)),
        Formula(
            "PE(pos, 2i) = sin(pos / 10000^(2i/d))     PE(pos, 2i+1) = cos(pos / 10000^(2i/d))"
        ),
        _toy_table("interleaved", prose("toy-interleaved")),
        Paragraph(prose("halves")),
        _toy_table("halves", prose("toy-halves")),
        Paragraph(prose("timing-signal")),
        Formula("tensor2tensor:  sin(pos / 10000^(i/(d/2−1))),  cos(pos / 10000^(i/(d/2−1)))"),
        _toy_table("tensor2tensor", prose("toy-tensor2tensor")),
        Paragraph(prose("position-vector", position=position, d_model=d_model, size=size)),
        Matrix(
            f"PE({position})",
            vector[:, :size].tolist(),
            columns=[str(dimension) for dimension in range(size)],
            digits=4,
        ),
        position_chart(layout=layout),
    ]


def _heat_map_section(layout: Layout) -> list[Block]:
    """Return positions 0 to 19 of the paper's 512 dimensions, as shaded numbers."""
    table = sinusoidal(NUM_POSITIONS, D_MODEL, layout=layout, dtype=torch.float64)
    return [
        Paragraph(prose("heat-map", num_positions=NUM_POSITIONS, d_model=D_MODEL)),
        Matrix(
            "PE",
            table[:, list(HEAT_MAP_DIMENSIONS)].round(decimals=2).tolist(),
            rows=[str(position) for position in range(NUM_POSITIONS)],
            columns=[str(dimension) for dimension in HEAT_MAP_DIMENSIONS],
            digits=2,
            shade=True,
        ),
    ]


def _toy_table(layout: Layout, title: Label) -> Matrix:
    interleaved, halves = ["sin", "cos"] * 2, ["sin"] * 2 + ["cos"] * 2
    columns = interleaved if layout == "interleaved" else halves
    table = sinusoidal(TOY_POSITIONS, TOY_SIZE, layout=layout, dtype=torch.float64)
    return Matrix(
        title,
        table.tolist(),
        rows=[str(position) for position in range(TOY_POSITIONS)],
        columns=columns,
        digits=5 if layout == "tensor2tensor" else 4,
        shade=True,
    )


def _properties_section(d_model: int) -> list[Block]:
    table = sinusoidal(500, d_model, dtype=torch.float64)
    distances = torch.cdist(table, table).fill_diagonal_(torch.inf)
    positions = SinusoidalPositions(d_model)
    words = torch.zeros(1, 9, d_model), torch.full((1, 9, d_model), 7.0)
    difference = (positions.table(words[0], 0) - positions.table(words[1], 0)).abs().max()
    far = sinusoidal(1, d_model, offset=FAR_POSITION, dtype=torch.float64)
    rows: list[list[Any]] = [
        [prose("largest-value"), float(table.abs().max()), prose("bounded")],
        [prose("word-difference"), float(difference), prose("same-vector")],
        [prose("nearest-positions"), float(distances.min()), prose("all-different")],
        [prose("far-value", far=FAR_POSITION), float(far.abs().max()), prose("always-defined")],
    ]
    toy = sinusoidal(10, TOY_SIZE, dtype=torch.float64)
    dots = {pair: float(table[pair[0]] @ table[pair[1]]) for pair in ((3, 5), (10, 12), (3, 8))}
    return [
        Table(
            [prose("measured"), prose("value"), prose("meaning")],
            rows,
            digits=4,
            title=prose("properties", d_model=d_model),
        ),
        Paragraph(
            prose(
                "relative-distance",
                d_model=d_model,
                dot_3_5=dots[3, 5],
                dot_10_12=dots[10, 12],
                dot_3_8=dots[3, 8],
                toy_near=float(toy[3] @ toy[5]),
                toy_far=float(toy[3] @ toy[8]),
            )
        ),
    ]


def _cost_section() -> list[Block]:
    rows: list[list[Any]] = [
        [prose("add"), D_MODEL, 0, count_layer_parameters(D_MODEL)],
        [
            prose("concatenate-project"),
            D_MODEL,
            count_projection_parameters(D_MODEL),
            count_layer_parameters(D_MODEL),
        ],
        [prose("concatenate"), 2 * D_MODEL, 0, count_layer_parameters(2 * D_MODEL)],
    ]
    return [
        Paragraph(prose("why-add")),
        Table(
            [
                prose("method"),
                prose("width"),
                prose("projection-parameters"),
                prose("layer-parameters"),
            ],
            rows,
        ),
        Note(prose("adding-is-free")),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the positions of the learner's own model, and the effect of swapping two tokens."""
    model = translator.model
    if describe_positions(model, 1) is None:
        return [Note(prose("own-no-positions"))]
    blocks: list[Block] = [
        ModelPlot("positions", prose("own-positions")),
        ModelPlot("position_toy", prose("own-toy")),
    ]
    if not isinstance(model, Transformer):
        return blocks
    ids = translator.tokenizer.encode_src([text])[0]
    swapped = [*ids[1:2], *ids[:1], *ids[2:]]
    with translator.backend.eval_mode():
        device = translator.backend.device
        changes = encoding_changes(
            model, torch.tensor([ids], device=device), torch.tensor([swapped], device=device)
        )
    return [
        *blocks,
        ModelPlot("input_sum", prose("own-input-sum")),
        Paragraph(prose("own-swapped", text=text)),
        Table(
            [prose("token"), prose("change")],
            _pair(label_pieces(translator.tokenizer.src_pieces(ids)), changes),
        ),
    ]


def _pair(names: Sequence[Label], numbers: Sequence[float]) -> list[list[Any]]:
    return [[name, number] for name, number in zip(names, numbers, strict=True)]


def _first_value_at_10() -> float:
    return float(sinusoidal(1, TOY_SIZE, offset=10)[0, 0])


def _num_changed_tokens() -> float:
    changes = compare_orders(PRINCE, PRINCESS, "sinusoidal")
    return float(sum(change > TOLERANCE for _, change in changes))


def _pair_with_same_dot() -> str:
    table = sinusoidal(20, D_MODEL, dtype=torch.float64)
    pairs = {"10,12": (10, 12), "3,8": (3, 8), "6,10": (6, 10)}
    dots = {name: table[first] @ table[second] for name, (first, second) in pairs.items()}
    return min(dots, key=lambda name: abs(dots[name] - table[3] @ table[5]))


LESSON = Lesson(
    number=3,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.5",
    code=(
        CodeReference("attendo.model.positional_encoding", "sinusoidal"),
        CodeReference("attendo.model.positional_encoding", "ConcatenatedPositions"),
    ),
    inputs=(
        Number(name="position", label=prose("input-position"), default=3, low=0, high=10_000),
        Number(name="d_model", label=prose("input-d-model"), default=D_MODEL, low=2, high=512),
        Choice(
            name="layout",
            label=prose("input-layout"),
            default="interleaved",
            choices=(
                ("interleaved", prose("choice-interleaved")),
                ("halves", prose("choice-halves")),
                ("tensor2tensor", prose("choice-tensor2tensor")),
            ),
        ),
        Choice(
            name="kind",
            label=prose("input-kind"),
            default="sinusoidal",
            choices=(
                ("sinusoidal", prose("choice-sinusoidal")),
                ("learned", prose("choice-learned")),
                ("concatenated", prose("choice-concatenated")),
            ),
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _first_value_at_10,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-2"),
            _num_changed_tokens,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _pair_with_same_dot,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("10,12", prose("choice-10-12")),
                ("3,8", prose("choice-3-8")),
                ("6,10", prose("choice-6-10")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
