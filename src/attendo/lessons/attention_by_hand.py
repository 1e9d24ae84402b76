"""Lesson 4: attention by hand. Three words, three matrices, every number on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.lessons.blocks import Block, Formula, LocalizedText, Matrix, ModelPlot, Note, Paragraph
from attendo.lessons.inputs import Grid, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.translator import Translator

    Rows = list[list[float]]

X: Rows = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
W_Q: Rows = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_K: Rows = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_V: Rows = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
WORDS = ["x₁", "x₂", "x₃"]


def tell(x: Rows, w_q: Rows, w_k: Rows, w_v: Rows, scale: bool) -> list[Block]:
    """Project, compare, softmax, weigh."""
    query, key, value = (project(x, matrix) for matrix in (w_q, w_k, w_v))
    factor = None if scale else 1.0
    raw = attention_scores(query, key, scale=1.0)
    output, weights = scaled_dot_product(query, key, value, need_weights=True, scale=factor)
    first = weights[0].tolist()
    return [
        Paragraph(
            LocalizedText(
                "Three words stand as the rows of X, four numbers each. Every word asks, answers "
                "and has something to give: its **query**, **key** and **value**, three products "
                "with three matrices that are learnt. Here you can set them yourself.",
                "단어 세 개가 X의 행으로 놓여 있고, 단어마다 숫자 네 개를 가집니다. 단어는 저마다 묻고, "
                "답하고, 내어 줍니다. 이것이 **쿼리(query)**, **키(key)**, **값(value)**이며, 학습되는 행렬 "
                "세 개와 곱해서 얻습니다. 여기서는 그 행렬을 직접 바꿔 볼 수 있습니다.",
            )
        ),
        Formula("Q = X · W_Q     K = X · W_K     V = X · W_V"),
        Matrix("Q", query.tolist(), rows=WORDS),
        Matrix("K", key.tolist(), rows=WORDS),
        Matrix("V", value.tolist(), rows=WORDS),
        Paragraph(
            LocalizedText(
                "How well a question fits an answer is their dot product: row i, column j tells "
                "how well the query of word i fits the key of word j.",
                "물음과 답이 얼마나 잘 맞는지는 내적으로 잽니다. i행 j열은 i번째 단어의 쿼리가 j번째 "
                "단어의 키와 얼마나 맞는지를 말해 줍니다.",
            )
        ),
        Matrix("Q · Kᵀ", raw.tolist(), rows=WORDS, columns=WORDS, shade=True),
        Paragraph(
            LocalizedText(
                "The scores are divided by √d_k = √3 and pass the **softmax**: every row becomes "
                "shares that add up to 1."
                if scale
                else "The scores go into the **softmax** undivided: see how one share swallows the "
                "others, and switch the scale on again.",
                "점수를 √d_k = √3으로 나누고 **소프트맥스(softmax)**에 넣으면 행마다 합이 1인 비율이 "
                "됩니다."
                if scale
                else "점수를 나누지 않고 **소프트맥스(softmax)**에 넣었습니다. 하나가 나머지를 삼켜 버리는 "
                "것을 보고, 나누기를 다시 켜 보세요.",
            )
        ),
        Formula("A = softmax(Q · Kᵀ / √d_k)" if scale else "A = softmax(Q · Kᵀ)"),
        Matrix("A", weights.tolist(), rows=WORDS, columns=WORDS, digits=5, shade=True),
        Paragraph(
            LocalizedText(
                "What a word gets is the sum of all values, each taken by its share: for the "
                "first word {a:.5f} of v₁, {b:.5f} of v₂ and {c:.5f} of v₃.",
                "단어가 받는 것은 모든 값을 비율만큼 더한 것입니다. 첫 단어는 v₁의 {a:.5f}, v₂의 {b:.5f}, "
                "v₃의 {c:.5f}를 받습니다.",
            ).format(**dict(zip("abc", first, strict=True)))
        ),
        Formula("softmax(Q · Kᵀ / √d_k) · V" if scale else "softmax(Q · Kᵀ) · V"),
        Matrix(LocalizedText("output", "출력"), output.tolist(), rows=WORDS, digits=4),
        Note(
            LocalizedText(
                "No word had to wait for another: all rows are computed at once.",
                "어느 단어도 다른 단어를 기다리지 않았습니다. 모든 행을 한꺼번에 계산합니다.",
            )
        ),
    ]


def project(x: Rows, matrix: Rows) -> Tensor:
    """Multiply words by one of the matrices."""
    return torch.tensor(x, dtype=torch.float32) @ torch.tensor(matrix, dtype=torch.float32)


def _weights() -> Tensor:
    query, key, value = (project(X, matrix) for matrix in (W_Q, W_K, W_V))
    return scaled_dot_product(query, key, value, need_weights=True)[1]


def _score_of_first_and_second() -> float:
    return float(attention_scores(project(X, W_Q), project(X, W_K), scale=1.0)[0, 1])


def _most_looked_at() -> str:
    return WORDS[int(_weights()[2].argmax())]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show the same for a head of the learner's own model."""
    if not isinstance(translator.model, Transformer):
        return [
            Note(
                LocalizedText(
                    "This model is no Transformer: it does not have heads with queries, keys and "
                    "values of their own.",
                    "이 모델은 트랜스포머가 아니어서, 쿼리와 키와 값을 따로 가진 헤드가 없습니다.",
                )
            )
        ]
    return [
        Paragraph(
            LocalizedText(
                f"The same three steps in one head of your model, for “{text}”: one word's "
                "query against all keys, the shares, the weighted sum of the values. Below each "
                "picture stands which head it is; layers and heads are counted from 0.",
                f"여러분의 모델, 헤드 하나에서 “{text}”에 대해 같은 세 단계를 봅니다. 한 단어의 쿼리와 "
                "모든 키의 점수, 비율, 값의 가중합입니다. 어느 헤드인지는 그림 아래에 있고, 층과 헤드는 "
                "0부터 셉니다.",
            )
        ),
        ModelPlot("query_key_value", LocalizedText("Q, K and V of one word", "한 단어의 Q, K, V")),
        ModelPlot(
            "one_word", LocalizedText("score, softmax, weighted sum", "점수, 소프트맥스, 가중합")
        ),
        ModelPlot("score_matrix", LocalizedText("all scores of the head", "헤드의 모든 점수")),
    ]


LESSON = Lesson(
    number=4,
    title=LocalizedText("Attention by hand", "손으로 계산하는 어텐션"),
    summary=LocalizedText(
        "How three words look at each other: queries, keys, values, softmax and a weighted sum.",
        "단어 세 개가 서로를 어떻게 보는지, 쿼리·키·값·소프트맥스·가중합을 숫자로 따라갑니다.",
    ),
    paper="3.2.1",
    code=(CodeReference("attendo.model.attention", "scaled_dot_product"),),
    inputs=(
        Grid(name="x", label=LocalizedText("X, one word a row", "X, 행마다 단어 하나"), default=X),
        Grid(name="w_q", label=LocalizedText("W_Q", "W_Q"), default=W_Q),
        Grid(name="w_k", label=LocalizedText("W_K", "W_K"), default=W_K),
        Grid(name="w_v", label=LocalizedText("W_V", "W_V"), default=W_V),
        Switch(name="scale", label=LocalizedText("divide by √d_k", "√d_k로 나누기"), default=True),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "What is the score of the first word's query and the second word's key?",
                "첫 단어의 쿼리와 둘째 단어의 키의 점수는 얼마인가요?",
            ),
            _score_of_first_and_second,
            LocalizedText(
                "Multiply row 1 of Q by row 2 of K, number by number, and add up.",
                "Q의 1행과 K의 2행을 숫자끼리 곱해서 더합니다.",
            ),
        ),
        Question(
            LocalizedText(
                "At which word does the third word look most?",
                "셋째 단어는 어느 단어를 가장 많이 보나요?",
            ),
            _most_looked_at,
            LocalizedText(
                "The largest share in row 3 of A.", "A의 3행에서 가장 큰 비율을 찾습니다."
            ),
            choices=tuple((word, word) for word in WORDS),
        ),
        Question(
            LocalizedText("What is the sum of every row of A?", "A의 각 행을 더하면 얼마인가요?"),
            lambda: float(_weights()[0].sum()),
            LocalizedText(
                "Softmax makes shares of every row, whatever the scores are.",
                "점수가 무엇이든 소프트맥스는 행마다 비율을 만듭니다.",
            ),
            tolerance=1e-6,
        ),
    ),
    own_model_blocks=on_your_model,
)
