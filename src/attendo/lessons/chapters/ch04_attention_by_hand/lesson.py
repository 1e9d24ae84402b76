"""Lesson 4: self-attention by hand, one word in six steps, then all words as matrices."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attendo.inspection import capture
from attendo.lessons.blocks import (
    Block,
    Formula,
    Frame,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Product,
    Steps,
    Table,
)
from attendo.lessons.inputs import Choice, Grid, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.inspection.record import Record
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[float]]
    Cells = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch04_attention_by_hand")

X: Rows = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
W_Q: Rows = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_K: Rows = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_V: Rows = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
WORDS = ["x₁", "x₂", "x₃"]


MAX_POWER = 50.0
CAFE, THERE = "▁카페", "▁거기"
"""The café and the word that stands for it, in the sentence of the quickstart."""


class Projections(NamedTuple):
    """The queries, keys and values (T, d_k) of all words."""

    query: Tensor
    key: Tensor
    value: Tensor


def build_blocks(x: Rows, w_q: Rows, w_k: Rows, w_v: Rows, word: str, scale: bool) -> list[Block]:
    """Return the idea, the inputs, one word in six steps, all words at once, and comparisons."""
    matrices = {"W_Q": w_q, "W_K": w_k, "W_V": w_v}
    vectors = Projections(*(project(x, matrix) for matrix in matrices.values()))
    index = WORDS.index(word)
    return [
        *_idea_section(),
        *_inputs_section(x, matrices),
        Paragraph(prose("one-word", word=word)),
        one_word_steps(vectors, index, scale=scale),
        *_matrix_section(x, matrices, vectors, scale=scale),
        *_comparison_section(x, vectors),
    ]


def _idea_section() -> list[Block]:
    return [
        Paragraph(prose("why")),
        Paragraph(prose("self-attention")),
        Paragraph(prose("search")),
        Table(
            [prose("vector"), prose("in-a-search"), prose("in-self-attention")],
            [
                [prose("query"), prose("query-in-a-search"), prose("query-of-a-word")],
                [prose("key"), prose("key-in-a-search"), prose("key-of-a-word")],
                [prose("value"), prose("value-in-a-search"), prose("value-of-a-word")],
            ],
        ),
    ]


def _inputs_section(x: Rows, matrices: dict[str, Rows]) -> list[Block]:
    return [
        Paragraph(prose("projections")),
        Matrix("X", x, rows=WORDS),
        *(Matrix(name, matrix) for name, matrix in matrices.items()),
        Paragraph(prose("why-matrices")),
    ]


def _matrix_section(
    x: Rows, matrices: dict[str, Rows], vectors: Projections, *, scale: bool
) -> list[Block]:
    query, key, value = vectors
    raw = attention_scores(query, key, scale=1.0)
    factor = None if scale else 1.0
    output, weights = scaled_dot_product(query, key, value, need_weights=True, scale=factor)
    scaled = [
        Matrix(
            "Q · Kᵀ / √d_k",
            attention_scores(query, key).tolist(),
            rows=WORDS,
            columns=WORDS,
            shade=True,
        )
    ]
    return [
        Paragraph(prose("all-words")),
        Formula("Q = X · W_Q     K = X · W_K     V = X · W_V"),
        *(
            Matrix(name, vector.tolist(), rows=WORDS, product=Product(x, matrix))
            for name, vector, matrix in zip("QKV", vectors, matrices.values(), strict=True)
        ),
        Paragraph(prose("scores")),
        Matrix(
            "Q · Kᵀ",
            raw.tolist(),
            rows=WORDS,
            columns=WORDS,
            shade=True,
            product=Product(query.tolist(), key.T.tolist()),
        ),
        *(scaled if scale else []),
        Paragraph(prose("softmax-scaled") if scale else prose("softmax-unscaled")),
        Formula("A = softmax(Q · Kᵀ / √d_k)" if scale else "A = softmax(Q · Kᵀ)"),
        Matrix("A", weights.tolist(), rows=WORDS, columns=WORDS, digits=5, shade=True),
        Paragraph(prose("weighted-sum", **dict(zip("abc", weights[0].tolist(), strict=True)))),
        Formula(
            "Attention(Q, K, V) = softmax(Q · Kᵀ / √d_k) · V" if scale else "softmax(Q · Kᵀ) · V"
        ),
        Matrix(
            prose("output"),
            output.tolist(),
            rows=WORDS,
            digits=4,
            product=Product(weights.tolist(), value.tolist()),
        ),
        Note(prose("parallel")),
    ]


def _comparison_section(x: Rows, vectors: Projections) -> list[Block]:
    query, key, _ = vectors
    score = float(query[0] @ key[1])
    lengths = float(query[0].norm() * key[1].norm())
    symmetric = project(x, torch.tensor(x).T.tolist())
    return [
        Paragraph(prose("from-attention")),
        Table(
            ["", prose("attention-of-lesson-1"), prose("self-attention-here")],
            [
                [prose("query"), prose("query-of-decoder"), prose("from-each-word")],
                [prose("key"), prose("key-of-encoder"), prose("from-each-word")],
                [prose("value"), prose("value-of-encoder"), prose("from-each-word")],
                [prose("score"), "v · tanh(W · s + U · h)", "q · k / √d_k"],
                [prose("looks-from"), prose("one-sentence-to-other"), prose("within-a-sentence")],
                [prose("runs"), prose("once-per-output-word"), prose("all-words-at-once")],
                [prose("needs-rnn"), prose("yes"), prose("no")],
            ],
        ),
        Paragraph(prose("itself-most", num_self=count_own_maximum(vectors))),
        Matrix("X · Xᵀ", symmetric.tolist(), rows=WORDS, columns=WORDS, shade=True),
        Note(
            prose("cosine", score=score, lengths=lengths, cosine=score / lengths if lengths else 0)
        ),
    ]


def one_word_steps(vectors: Projections, index: int, *, scale: bool) -> Steps:
    """Return the six steps of self-attention for one word, every number spelled out."""
    query, key, value = vectors
    own, scores = query[index], attention_scores(query, key, scale=1.0)[index]
    divided = scores / sqrt(query.size(-1)) if scale else scores
    largest = float(divided.max())
    shift = largest if largest > MAX_POWER else 0.0  # e^x would be too large a number
    powers, weights = (divided.double() - shift).exp(), divided.softmax(-1)
    number = "₁₂₃"[index]
    letters = zip("qkv", ("W_Q", "W_K", "W_V"), vectors, strict=True)
    products: Cells = [
        [name, spell_product(own, other), float(score)]
        for name, other, score in zip(WORDS, key, scores, strict=True)
    ]
    softmax: Cells = [
        [name, float(power), float(weight)]
        for name, power, weight in zip(WORDS, powers, weights, strict=True)
    ]
    weighted = weights[:, None] * value
    frames = [
        Frame(
            prose("step-vectors"),
            [
                Matrix(f"{letter}{number} = x{number} · {name}", [vector[index].tolist()])
                for letter, name, vector in letters
            ],
        ),
        Frame(
            prose("step-scores"),
            [Table([prose("key"), f"q{number} · k", prose("score")], products)],
        ),
        Frame(
            prose("step-divide") if scale else prose("step-divide-off"),
            [Matrix(prose("divided"), [divided.tolist()], columns=WORDS, digits=4)],
        ),
        Frame(
            prose("step-softmax", total=float(powers.sum())),
            [
                Table(
                    [prose("key"), f"e^(x - {shift:.4g})" if shift else "e^x", prose("weight")],
                    softmax,
                    digits=5,
                )
            ],
        ),
        Frame(
            prose("step-values"),
            [Matrix(prose("weighted-values"), weighted.tolist(), rows=WORDS, digits=4)],
        ),
        Frame(
            prose("step-sum"),
            [Matrix(f"z{number}", [weighted.sum(0).tolist()], digits=4)],
        ),
    ]
    return Steps(prose("six-steps"), frames)


def spell_product(one: Tensor, other: Tensor) -> str:
    """Return a dot product as it is computed by hand.

    >>> spell_product(torch.tensor([1.0, 0.0]), torch.tensor([2.0, -1.5]))
    '1·2 + 0·(-1.5)'
    """
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return " + ".join(f"{_spell(a)}·{_spell(b)}" for a, b in pairs)


def _spell(number: float) -> str:
    return f"({number:.4g})" if number < 0 else f"{number:.4g}"


def count_own_maximum(vectors: Projections) -> int:
    """Return how many words give their largest attention weight to themselves."""
    scores = attention_scores(vectors.query, vectors.key)
    return sum(int(row.argmax()) == index for index, row in enumerate(scores))


def project(x: Rows, matrix: Rows) -> Tensor:
    """Return the words multiplied by one of the matrices."""
    return torch.tensor(x, dtype=torch.float32) @ torch.tensor(matrix, dtype=torch.float32)


def _weights() -> Tensor:
    query, key, value = (project(X, matrix) for matrix in (W_Q, W_K, W_V))
    return scaled_dot_product(query, key, value, need_weights=True)[1]


def _score_1_2() -> float:
    return float(attention_scores(project(X, W_Q), project(X, W_K), scale=1.0)[0, 1])


def _most_attended() -> str:
    return WORDS[int(_weights()[2].argmax())]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the same steps for a head of the learner's own model."""
    if not isinstance(translator.model, Transformer):
        return [Note(prose("own-not-transformer"))]
    record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
    weights = record.attention("encoder_self")  # (layers, heads, S, S)
    num_self = int((weights.argmax(-1) == np.arange(weights.shape[-1])).sum())
    focus = find_cafe_head(record)
    cafe = [Paragraph(prose("own-cafe", **_describe_cafe(record, focus)))] if focus else []
    return [
        Paragraph(prose("own-itself", text=text, num_self=num_self, total=weights[..., 0].size)),
        *cafe,
        Paragraph(prose("own-head", text=text)),
        ModelPlot("query_key_value", prose("own-query-key-value"), {**focus}),
        ModelPlot("one_word", prose("own-one-word"), {**focus}),
        ModelPlot("score_matrix", prose("own-score-matrix"), {**focus}),
    ]


def find_cafe_head(record: Record) -> dict[str, Any]:
    """Return the head in which the café of the example looks most at "there".

    It is empty for other sentences.
    """
    pieces = [token["piece"] for token in record.src["tokens"]]
    if not {CAFE, THERE} <= set(pieces):
        return {}
    weights = record.attention("encoder_self")[..., pieces.index(CAFE), pieces.index(THERE)]
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return {"kind": "encoder_self", "layer": layer, "head": head, "row": pieces.index(CAFE)}


def _describe_cafe(record: Record, focus: dict[str, Any]) -> dict[str, float]:
    pieces = [token["piece"] for token in record.src["tokens"]]
    layer, head = focus["layer"], focus["head"]
    row = record.attention("encoder_self")[layer, head, focus["row"]]
    return {"weight": float(row[pieces.index(THERE)]), "layer": layer + 1, "head": head + 1}


LESSON = Lesson(
    number=4,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.2.1",
    code=(CodeReference("attendo.model.attention", "scaled_dot_product"),),
    inputs=(
        Grid(name="x", label=prose("input-x"), default=X),
        Grid(name="w_q", label=prose("input-w-q"), default=W_Q),
        Grid(name="w_k", label=prose("input-w-k"), default=W_K),
        Grid(name="w_v", label=prose("input-w-v"), default=W_V),
        Choice(
            name="word",
            label=prose("input-word"),
            default=WORDS[0],
            choices=tuple((word, word) for word in WORDS),
        ),
        Switch(name="scale", label=prose("input-scale"), default=True),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _score_1_2,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _most_attended,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=tuple((word, word) for word in WORDS),
        ),
        Question(
            prose("question-3"),
            lambda: float(_weights()[0].sum()),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=1e-6,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
