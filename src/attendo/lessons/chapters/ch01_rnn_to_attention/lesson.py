"""Lesson 1: a recurrent state forgets, and attention avoids that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
from attendo.inspection import capture
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    Frame,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Product,
    Series,
    Steps,
    Table,
)
from attendo.lessons.chapters.ch01_rnn_to_attention.memory import (
    LENGTH,
    NAMES,
    PREVIOUS_WORDS,
    WIDTH,
    Step,
    bleu_chart,
    influence_chart,
    load_measurements,
    run_decoder,
    source_gradient_norms,
    word_influence,
)
from attendo.lessons.inputs import Choice, Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from attendo.architectures.config import Cell
    from attendo.translator import Translator

    Rows = list[list[float]]

prose = Prose("attendo.lessons.chapters.ch01_rnn_to_attention")

ANNOTATIONS: Rows = [[1, 0], [0, 1], [1, 1]]
STATE: Rows = [[-1, 1]]
W: Rows = [[1, 0], [0, 1]]
U: Rows = [[2, -1], [-1, 2]]
V: Rows = [[2, 2]]
KEEP = 0.5
SOURCE = ["h₁", "h₂", "h₃"]
CAFE = ("▁카페", "▁cafe")
"""Two tokens of the sentence that the quickstart's model translates."""


def build_blocks(
    annotations: Rows, state: Rows, w: Rows, u: Rows, v: Rows, keep: float, cell: Cell, length: int
) -> list[Block]:
    """Return the recurrence and its bottleneck, additive attention, and the measurements."""
    steps = run_decoder(annotations, state, w, u, v, keep)
    return [
        *_chain_section(cell, length),
        *_attention_section(annotations, state, w, u, v),
        *_score_section(annotations, state, w, u, steps[0]),
        *_decoder_section(annotations, steps, keep),
        *_measurements_section(),
    ]


def _chain_section(cell: Cell, length: int) -> list[Block]:
    norms = word_influence(cell, length).last_state
    return [
        Paragraph(prose("recurrent-network")),
        Formula("h_j = f(h_{j-1}, x_j)"),
        Paragraph(prose("gates")),
        Paragraph(prose("encoder-decoder")),
        Paragraph(prose("bottleneck", width=WIDTH, length=length, ratio=norms[0] / norms[-1])),
        influence_chart(cell, length),
        Paragraph(prose("all-states")),
    ]


def _attention_section(annotations: Rows, state: Rows, w: Rows, u: Rows, v: Rows) -> list[Block]:
    return [
        Paragraph(prose("additive-attention")),
        Paragraph(prose("numbers")),
        Matrix("h", annotations, rows=SOURCE),
        Matrix("s₀", state),
        Matrix("W", w),
        Matrix("U", u),
        Matrix("v", v),
    ]


def _score_section(annotations: Rows, state: Rows, w: Rows, u: Rows, first: Step) -> list[Block]:
    query = torch.tensor(state).float() @ torch.tensor(w).float().T  # (1, A)
    keys = torch.tensor(annotations).float() @ torch.tensor(u).float().T  # (S, A)
    powers = first.scores.double().exp()
    softmax: list[list[Any]] = [
        [name, float(score), float(power), float(weight)]
        for name, score, power, weight in zip(
            SOURCE, first.scores, powers, first.weights, strict=True
        )
    ]
    return [
        Paragraph(prose("score")),
        Formula("e_ij = v · tanh(W · s_{i-1} + U · h_j)"),
        Matrix("W · s₀", query.tolist(), product=Product(state, transpose(w))),
        Matrix("U · h", keys.tolist(), rows=SOURCE, product=Product(annotations, transpose(u))),
        Matrix("tanh(W · s₀ + U · h)", (query + keys).tanh().tolist(), rows=SOURCE, digits=4),
        Matrix("e₁", [first.scores.tolist()], columns=SOURCE),
        Paragraph(prose("softmax", total=float(powers.sum()))),
        Formula("α_ij = exp(e_ij) / ∑ₖ exp(e_ik)"),
        Table(["", "e", "exp(e)", "α"], softmax, digits=4),
        Matrix("α₁", [first.weights.tolist()], columns=SOURCE, digits=4, shade=True),
    ]


def transpose(rows: Rows) -> Rows:
    """Return a matrix with rows and columns exchanged."""
    return [list(column) for column in zip(*rows, strict=True)]


def _decoder_section(annotations: Rows, steps: list[Step], keep: float) -> list[Block]:
    first = steps[0]
    weighted = Product([first.weights.tolist()], annotations)
    return [
        Paragraph(prose("context", **dict(zip("abc", first.weights.tolist(), strict=True)))),
        Formula("c_i = ∑_j α_ij · h_j"),
        Matrix("c₁", [first.context.tolist()], digits=4, product=weighted),
        Paragraph(prose("next-state", keep=keep)),
        Formula("s_i = f(s_{i-1}, y_{i-1}, c_i)"),
        Formula(f"s_i = {keep:g} · s_{{i-1}} + {1 - keep:g} · tanh(y_{{i-1}} + c_i)"),
        Matrix("y", list(PREVIOUS_WORDS.values()), rows=list(PREVIOUS_WORDS)),
        Steps(
            prose("decoder-steps"),
            [
                Frame(
                    prose("previous-word", word=word),
                    [
                        Matrix(f"α{mark}", [step.weights.tolist()], columns=SOURCE, shade=True),
                        Matrix(f"c{mark}", [step.context.tolist()], digits=4),
                        Matrix(f"s{mark}", [step.state.tolist()], digits=4),
                    ],
                )
                for word, mark, step in zip(PREVIOUS_WORDS, "₁₂₃", steps, strict=True)
            ],
        ),
        Paragraph(prose("still-sequential")),
    ]


def _measurements_section() -> list[Block]:
    measurements = load_measurements()
    bleu = measurements["bleu"]
    losses = {kind: values[0] - values[-1] for kind, values in bleu.items()}
    table: list[list[Any]] = [
        [length, count, *(values[index] for values in bleu.values())]
        for index, (length, count) in enumerate(
            zip(measurements["lengths"], measurements["sentences"], strict=True)
        )
    ]
    return [
        Paragraph(
            prose(
                "bleu-loss",
                machine=LocalizedText(**measurements["machine"]),
                rnn_loss=losses["rnn-seq2seq"],
                attention_loss=losses["rnn-attention"],
            )
        ),
        bleu_chart(),
        Table(
            [prose("num-words"), prose("num-sentences"), *(NAMES[kind] for kind in bleu)],
            table,
            digits=1,
        ),
        Note(
            prose(
                "few-long-sentences",
                num_sentences=measurements["sentences"][-1],
                command=measurements["command"],
            )
        ),
        Paragraph(prose("no-recurrence")),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return where the learner's model looks, or what it remembers if it has no attention."""
    model = translator.model
    ids = torch.tensor(translator.tokenizer.encode_src([text]), device=translator.backend.device)
    start = torch.full((1, 1), START_ID, device=ids.device)
    with translator.backend.eval_mode():
        cross = model.explain(ids, start).cross
    if cross:
        cafe, focus = _find_cafe(translator, text)
        return [
            Paragraph(prose("own-steps", text=text)),
            *cafe,
            ModelPlot("decoder_steps", prose("own-decoder-steps")),
            ModelPlot("head_lines", prose("own-head-lines"), {"kind": "cross", **focus}),
        ]
    blocks: list[Block] = [Note(prose("own-no-attention"))]
    if isinstance(model, RnnSeq2Seq):
        pieces = translator.tokenizer.src_pieces(ids[0].tolist())
        blocks.append(
            Chart(
                "bars",
                prose("own-gradients"),
                x=[f"{position} {piece}" for position, piece in enumerate(pieces, 1)],
                series=[Series(prose("gradient-norm"), list(source_gradient_norms(model, ids)))],
            )
        )
    return blocks


def _find_cafe(translator: Translator, text: str) -> tuple[list[Block], dict[str, Any]]:
    """Return how much "cafe" looks at 카페, and the row of "cafe", if the sentence has both."""
    record = capture(translator, text, positions=False, neighbors=False)
    src, tgt = ([token["piece"] for token in side["tokens"]] for side in (record.src, record.tgt))
    if CAFE[0] not in src or CAFE[1] not in tgt:
        return [], {}
    weights = record.attention("cross")[-1].mean(0)  # (T, S), the last layer, all heads
    row = tgt.index(CAFE[1])
    weight = float(weights[row, src.index(CAFE[0])])
    return [Paragraph(prose("own-cafe", weight=weight))], {"row": row}


def _least_known_word() -> str:
    norms = word_influence().last_state
    index = min(range(LENGTH), key=norms.__getitem__)
    return "first" if index < LENGTH / 3 else "last" if index > 2 * LENGTH / 3 else "middle"


def _weight_of_equal_states() -> float:
    return float(run_decoder([[1, 1]] * 3, STATE, W, U, V, KEEP)[0].weights[0])


def _bleu_loss_of_rnn() -> float:
    values = load_measurements()["bleu"]["rnn-seq2seq"]
    return float(values[0] - values[-1])


LESSON = Lesson(
    number=1,
    title=prose("title"),
    summary=prose("summary"),
    paper="1, 2",
    code=(
        CodeReference("attendo.architectures.rnn_attention_scores", "AdditiveScore"),
        CodeReference("attendo.architectures.rnn_attention", "RnnAttention"),
        CodeReference("attendo.architectures.rnn_layers", "RecurrentLayer"),
    ),
    inputs=(
        Grid(name="annotations", label=prose("input-annotations"), default=ANNOTATIONS),
        Grid(name="state", label=prose("input-state"), default=STATE),
        Grid(name="w", label=prose("input-w"), default=W),
        Grid(name="u", label=prose("input-u"), default=U),
        Grid(name="v", label=prose("input-v"), default=V),
        Number(
            name="keep", label=prose("input-keep"), default=KEEP, low=0.05, high=0.95, step=0.05
        ),
        Choice(
            name="cell",
            label=prose("input-cell"),
            default="lstm",
            choices=(("lstm", "LSTM"), ("gru", "GRU")),
        ),
        Number(name="length", label=prose("input-length"), default=LENGTH, low=2, high=60),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _least_known_word,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=(
                ("first", prose("choice-first")),
                ("middle", prose("choice-middle")),
                ("last", prose("choice-last")),
            ),
        ),
        Question(
            prose("question-2"),
            _weight_of_equal_states,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-3"),
            _bleu_loss_of_rnn,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.051,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
