"""Lesson 4: attention by hand with three words, three matrices, and every intermediate number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.lessons.blocks import Block, Formula, Matrix, ModelPlot, Note, Paragraph
from attendo.lessons.inputs import Grid, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.translator import Translator

    Rows = list[list[float]]

prose = Prose("attendo.lessons.chapters.ch04_attention_by_hand")

X: Rows = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
W_Q: Rows = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_K: Rows = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_V: Rows = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
WORDS = ["x₁", "x₂", "x₃"]


def build_blocks(x: Rows, w_q: Rows, w_k: Rows, w_v: Rows, scale: bool) -> list[Block]:
    """Return projections, scores, attention weights and the weighted sum."""
    query, key, value = (project(x, matrix) for matrix in (w_q, w_k, w_v))
    factor = None if scale else 1.0
    raw = attention_scores(query, key, scale=1.0)
    output, weights = scaled_dot_product(query, key, value, need_weights=True, scale=factor)
    first = weights[0].tolist()
    return [
        Paragraph(prose("projections")),
        Formula("Q = X · W_Q     K = X · W_K     V = X · W_V"),
        Matrix("Q", query.tolist(), rows=WORDS),
        Matrix("K", key.tolist(), rows=WORDS),
        Matrix("V", value.tolist(), rows=WORDS),
        Paragraph(prose("scores")),
        Matrix("Q · Kᵀ", raw.tolist(), rows=WORDS, columns=WORDS, shade=True),
        Paragraph(prose("softmax-scaled") if scale else prose("softmax-unscaled")),
        Formula("A = softmax(Q · Kᵀ / √d_k)" if scale else "A = softmax(Q · Kᵀ)"),
        Matrix("A", weights.tolist(), rows=WORDS, columns=WORDS, digits=5, shade=True),
        Paragraph(prose("weighted-sum", **dict(zip("abc", first, strict=True)))),
        Formula("softmax(Q · Kᵀ / √d_k) · V" if scale else "softmax(Q · Kᵀ) · V"),
        Matrix(prose("output"), output.tolist(), rows=WORDS, digits=4),
        Note(prose("parallel")),
    ]


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
    return [
        Paragraph(prose("own-head", text=text)),
        ModelPlot("query_key_value", prose("own-query-key-value")),
        ModelPlot("one_word", prose("own-one-word")),
        ModelPlot("score_matrix", prose("own-score-matrix")),
    ]


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
        Switch(name="scale", label=prose("input-scale"), default=True),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(prose("question-1"), _score_1_2, prose("explanation-1")),
        Question(
            prose("question-2"),
            _most_attended,
            prose("explanation-2"),
            choices=tuple((word, word) for word in WORDS),
        ),
        Question(
            prose("question-3"),
            lambda: float(_weights()[0].sum()),
            prose("explanation-3"),
            tolerance=1e-6,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
