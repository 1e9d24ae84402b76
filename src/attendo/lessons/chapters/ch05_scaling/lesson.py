"""Lesson 5: why scores are divided by √d_k; dot products grow and saturate the softmax."""

from __future__ import annotations

from functools import cache, lru_cache
from math import exp, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.inspection.activations import capture_attention
from attendo.inspection.teacher_forcing import TeacherForcedPass
from attendo.lessons.blocks import Block, Chart, Formula, ModelPlot, Note, Paragraph, Series, Table
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch05_scaling")

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The values of d_k that are measured."""
NUM_QUERIES, NUM_KEYS, D_K = 200, 8, 64
SEED = 1
LEAD = 8
"""The lead of one score over another in an example."""
UNDIVIDED = prose("undivided")
DIVIDED = prose("divided")


class ScoreStatistics(NamedTuple):
    """Statistics of the attention of many random queries and keys."""

    deviation: float
    """The standard deviation of the scores."""
    largest_weight: float
    """The largest attention weight of a row, on average."""
    gradient: float
    """The median over the rows of `remaining_gradient`."""


@lru_cache(maxsize=1)
def sample_vectors(num_keys: int) -> tuple[Tensor, Tensor]:
    """Return random queries (rows, 1, 1024) and keys (rows, n, 1024) with variance 1."""
    generator = torch.Generator().manual_seed(SEED)
    query = torch.randn(NUM_QUERIES, 1, SIZES[-1], generator=generator, dtype=torch.float64)
    key = torch.randn(NUM_QUERIES, num_keys, SIZES[-1], generator=generator, dtype=torch.float64)
    return query, key


def attention_weights(
    query: Tensor, key: Tensor, *, divided: bool, temperature: float = 1.0
) -> Tensor:
    """Return the attention weights (..., T, S), with or without the division by √d_k."""
    factor = 1.0 / sqrt(query.size(-1)) if divided else 1.0
    return scaled_dot_product(query, key, key, need_weights=True, scale=factor / temperature)[1]


def remaining_gradient(weights: Tensor) -> Tensor:
    """Return how much weights (..., S) change with their own scores: the sum of a · (1 − a).

    This is the trace of the Jacobian of the softmax.

    >>> remaining_gradient(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.5000, 0.0000])
    """
    return (weights * (1.0 - weights)).sum(dim=-1)


@cache
def score_statistics(d_k: int, num_keys: int = NUM_KEYS, *, divided: bool) -> ScoreStatistics:
    """Return the statistics of scores, attention weights and gradient over many rows."""
    query, key = (vectors[..., :d_k] for vectors in sample_vectors(num_keys))
    scores = attention_scores(query, key, scale=None if divided else 1.0)
    weights = attention_weights(query, key, divided=divided)
    return ScoreStatistics(
        float(scores.std()),
        float(weights.amax(dim=-1).mean()),
        float(remaining_gradient(weights).median()),
    )


def deviation_chart(num_keys: int = NUM_KEYS) -> Chart:
    """Plot the standard deviation of the scores over d_k, with and without division."""
    return _chart_over_sizes(prose("score-deviation"), "deviation", num_keys)


def gradient_chart(num_keys: int = NUM_KEYS) -> Chart:
    """Plot the remaining gradient of the softmax over d_k, with and without division."""
    return _chart_over_sizes(prose("remaining-gradient"), "gradient", num_keys)


def _chart_over_sizes(title: Label, statistic: str, num_keys: int) -> Chart:
    return Chart(
        "lines",
        title,
        x=[float(size) for size in SIZES],
        series=[
            Series(
                name,
                [
                    getattr(score_statistics(size, num_keys, divided=way), statistic)
                    for size in SIZES
                ],
            )
            for name, way in ((UNDIVIDED, False), (DIVIDED, True))
        ],
        x_label="d_k",
        log_x=True,
        log_y=True,
    )


def build_blocks(d_k: int, num_keys: int, temperature: float) -> list[Block]:
    """Return how dot products grow, the softmax saturates and gradients vanish."""
    return [
        *_growth_section(num_keys),
        *_one_word_section(d_k, num_keys, temperature),
        *_gradients_section(num_keys),
    ]


def _growth_section(num_keys: int) -> list[Block]:
    small, large = (score_statistics(size, num_keys, divided=False).deviation for size in (4, 1024))
    return [
        Paragraph(prose("variance")),
        Formula("q · k = ∑ᵢ qᵢ kᵢ     Var(q · k) = d_k     Var(q · k / √d_k) = 1"),
        Paragraph(
            prose("measured-spread", rows=NUM_QUERIES, keys=num_keys, small=small, large=large)
        ),
        deviation_chart(num_keys),
    ]


def _one_word_section(d_k: int, num_keys: int, temperature: float) -> list[Block]:
    query, key = (vectors[0, :, :d_k] for vectors in sample_vectors(num_keys))
    ways: list[tuple[Label, Tensor]] = [
        (UNDIVIDED, attention_weights(query, key, divided=False)),
        (DIVIDED, attention_weights(query, key, divided=True)),
    ]
    if temperature != 1.0:
        warm = attention_weights(query, key, divided=True, temperature=temperature)
        name = prose("divided-by-temperature", temperature=temperature)
        ways.append((name, warm))
    return [
        Paragraph(
            prose(
                "saturation",
                lead=LEAD,
                factor=exp(LEAD),
                num_keys=num_keys,
                d_k=d_k,
                unscaled=float(ways[0][1].max()),
                scaled=float(ways[1][1].max()),
            )
        ),
        Chart(
            "bars",
            prose("weights-of-one-word", d_k=d_k),
            x=[f"k{number}" for number in range(1, num_keys + 1)],
            series=[Series(name, weights[0].tolist()) for name, weights in ways],
            y_label=prose("attention-weight"),
        ),
        Note(prose("temperature")),
    ]


def _gradients_section(num_keys: int) -> list[Block]:
    rows: list[list[Any]] = []
    for size in SIZES:
        plain, scaled = (score_statistics(size, num_keys, divided=way) for way in (False, True))
        rows.append(
            [
                size,
                plain.deviation,
                scaled.deviation,
                plain.largest_weight,
                scaled.largest_weight,
                plain.gradient,
                scaled.gradient,
            ]
        )
    return [
        Paragraph(prose("vanishing-gradient")),
        Formula("∂aᵢ / ∂eᵢ = aᵢ · (1 − aᵢ)"),
        gradient_chart(num_keys),
        Table(
            [
                "d_k",
                prose("deviation"),
                "÷ √d_k",
                prose("largest-weight"),
                "÷ √d_k",
                prose("gradient"),
                "÷ √d_k",
            ],
            rows,
        ),
        Paragraph(prose("conclusion")),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return statistics of the scores of the learner's own heads."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    rows = head_statistics(translator, model, text)
    d_k = model.config.d_k or model.config.d_model // model.config.num_heads
    return [
        Paragraph(prose("own-heads", text=text, d_k=d_k)),
        Table(
            [prose("head-number"), prose("deviation"), "÷ √d_k", prose("largest-weight"), "÷ √d_k"],
            rows,
        ),
        ModelPlot("score_matrix", prose("own-score-matrix")),
    ]


def head_statistics(translator: Translator, model: Transformer, text: str) -> list[list[Any]]:
    """Return per head: number, deviations and largest weights, without and with division."""
    device = translator.backend.device
    ids = torch.tensor(translator.tokenizer.encode_src([text]), device=device)
    start = torch.full((1, 1), START_ID, device=device)
    with translator.backend.eval_mode():
        activations = capture_attention(
            model, TeacherForcedPass(ids, start, start[0]), "encoder_self", 0
        )
    rows: list[list[Any]] = []
    for number, (queries, keys) in enumerate(
        zip(activations.queries, activations.keys, strict=True)
    ):
        query, key = torch.from_numpy(queries), torch.from_numpy(keys)
        deviations = [
            float(attention_scores(query, key, scale=scale).std()) for scale in (1.0, None)
        ]
        largest = [
            float(attention_weights(query, key, divided=way).amax(dim=-1).mean())
            for way in (False, True)
        ]
        rows.append([number + 1, *deviations, *largest])
    return rows


def _right_divisor() -> float:
    """Return the divisor of a score at d_k = 256, as the model computes it."""
    ones = torch.ones(1, 256)
    return float(attention_scores(ones, ones, scale=1.0) / attention_scores(ones, ones))


def _gradient_at_099() -> float:
    share = torch.tensor(0.99, dtype=torch.float64)
    score = (share / (1 - share)).log().requires_grad_()  # against one other key of score 0
    sure = torch.stack((score, torch.zeros_like(score))).softmax(dim=0)[0]
    return float(torch.autograd.grad(sure, score)[0])


def _growth_from_64_to_256() -> str:
    small, large = (score_statistics(size, divided=False).deviation for size in (64, 256))
    known = {"same": 1.0, "double": 2.0, "fourfold": 4.0}
    return min(known, key=lambda name: abs(known[name] - large / small))


LESSON = Lesson(
    number=5,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.2.1",
    code=(
        CodeReference("attendo.model.attention", "attention_scores"),
        CodeReference("attendo.model.attention", "scaled_dot_product"),
    ),
    inputs=(
        Number(name="d_k", label=prose("input-d-k"), default=D_K, low=1, high=1024),
        Number(name="num_keys", label=prose("input-num-keys"), default=NUM_KEYS, low=2, high=16),
        Number(
            name="temperature",
            label=prose("input-temperature"),
            default=1.0,
            low=0.1,
            high=10.0,
            step=0.1,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _right_divisor,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _gradient_at_099,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.0001,
        ),
        Question(
            prose("question-3"),
            _growth_from_64_to_256,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("same", prose("choice-same")),
                ("double", prose("choice-double")),
                ("fourfold", prose("choice-quadruple")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
