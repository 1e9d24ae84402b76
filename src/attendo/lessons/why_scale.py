"""Lesson 5: why divide by √d_k. Dot products grow, softmax hardens, its gradient dies: measured."""

from __future__ import annotations

from functools import cache, lru_cache
from math import exp, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.inspection.activations import capture_attention
from attendo.inspection.teacher_forcing import TeacherForcedPass
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    LocalizedText,
    ModelPlot,
    Note,
    Paragraph,
    Series,
    Table,
)
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.translator import Translator

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The d_k that are measured."""
NUM_QUERIES, NUM_KEYS, D_K = 200, 8, 64
SEED = 1
LEAD = 8
"""Points by which one score leads, for an example."""
UNDIVIDED = LocalizedText("undivided", "나누지 않음")
DIVIDED = LocalizedText("divided by √d_k", "√d_k로 나눔")


class Spread(NamedTuple):
    """What becomes of many queries and keys."""

    deviation: float
    """Standard deviation of the scores."""
    largest: float
    """Largest share of a row after the softmax, on average."""
    gradient: float
    """What is left of the softmax's gradient (`size_gradient`), in the middle row of all."""


@lru_cache(maxsize=1)
def draw_words(num_keys: int) -> tuple[Tensor, Tensor]:
    """Draw queries (rows, 1, 1024) and their keys (rows, n, 1024), numbers of variance 1."""
    draw = torch.Generator().manual_seed(SEED)
    query = torch.randn(NUM_QUERIES, 1, SIZES[-1], generator=draw, dtype=torch.float64)
    key = torch.randn(NUM_QUERIES, num_keys, SIZES[-1], generator=draw, dtype=torch.float64)
    return query, key


def weigh(query: Tensor, key: Tensor, *, divided: bool, temperature: float = 1.0) -> Tensor:
    """Give the shares (..., T, S) of the keys, with the division by √d_k or without."""
    factor = 1.0 / sqrt(query.size(-1)) if divided else 1.0
    return scaled_dot_product(query, key, key, need_weights=True, scale=factor / temperature)[1]


def size_gradient(weights: Tensor) -> Tensor:
    """Give how much shares (..., S) move with their own scores: the sum of a · (1 − a).

    That is the diagonal of the softmax's derivative, added up.

    >>> size_gradient(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.5000, 0.0000])
    """
    return (weights * (1.0 - weights)).sum(dim=-1)


@cache
def measure_spread(d_k: int, num_keys: int = NUM_KEYS, *, divided: bool) -> Spread:
    """Measure scores, shares and gradient over many rows."""
    query, key = (vectors[..., :d_k] for vectors in draw_words(num_keys))
    scores = attention_scores(query, key, scale=None if divided else 1.0)
    weights = weigh(query, key, divided=divided)
    return Spread(
        float(scores.std()),
        float(weights.amax(dim=-1).mean()),
        float(size_gradient(weights).median()),
    )


def score_growth(num_keys: int = NUM_KEYS) -> Chart:
    """Draw the standard deviation of the scores over d_k, divided and not."""
    return _draw_over_sizes(
        LocalizedText("standard deviation of the scores", "점수의 표준편차"), "deviation", num_keys
    )


def gradient_decay(num_keys: int = NUM_KEYS) -> Chart:
    """Draw what is left of the softmax's gradient over d_k, divided and not."""
    return _draw_over_sizes(
        LocalizedText("what is left of the softmax's gradient", "소프트맥스에 남은 기울기"),
        "gradient",
        num_keys,
    )


def _draw_over_sizes(title: LocalizedText, figure: str, num_keys: int) -> Chart:
    return Chart(
        "lines",
        title,
        x=[float(size) for size in SIZES],
        series=[
            Series(
                name,
                [getattr(measure_spread(size, num_keys, divided=way), figure) for size in SIZES],
            )
            for name, way in ((UNDIVIDED, False), (DIVIDED, True))
        ],
        x_label="d_k",
        log_x=True,
        log_y=True,
    )


def tell(d_k: int, num_keys: int, temperature: float) -> list[Block]:
    """Dot products grow, softmax hardens, gradients die, and what the root does."""
    return [
        *_tell_growth(num_keys),
        *_tell_one_word(d_k, num_keys, temperature),
        *_tell_gradients(num_keys),
    ]


def _tell_growth(num_keys: int) -> list[Block]:
    small, large = (measure_spread(size, num_keys, divided=False).deviation for size in (4, 1024))
    return [
        Paragraph(
            LocalizedText(
                "A score is a dot product: d_k products, added up. If the numbers of query and key "
                "have mean 0 and variance 1, each product has variance 1, and **variances add**: "
                "the sum has variance d_k, a standard deviation of √d_k.",
                "점수는 내적, 곧 곱 d_k개를 더한 것입니다. 쿼리(query)와 키(key)의 숫자가 평균 0, 분산 1이면 곱 하나의 "
                "분산도 1이고, **분산은 더해집니다**. 그래서 합의 분산은 d_k, 표준편차는 √d_k입니다.",
            )
        ),
        Formula("q · k = ∑ᵢ qᵢ kᵢ     Var(q · k) = d_k     Var(q · k / √d_k) = 1"),
        Paragraph(
            LocalizedText(
                "Measured just now on {rows} random queries with {keys} keys each: at d_k = 4 the "
                "scores spread by {small:.2f}, at d_k = 1024 by {large:.2f}. Divided by √d_k they "
                "spread by about 1, whatever d_k is.",
                "방금 무작위 쿼리 {rows}개와 쿼리마다 키 {keys}개로 재어 보았습니다. 점수의 표준편차는 d_k = 4에서 "
                "{small:.2f}, d_k = 1024에서 {large:.2f}입니다. √d_k로 나누면 d_k가 얼마든 1쯤 됩니다.",
            ).format(rows=NUM_QUERIES, keys=num_keys, small=small, large=large)
        ),
        score_growth(num_keys),
    ]


def _tell_one_word(d_k: int, num_keys: int, temperature: float) -> list[Block]:
    query, key = (vectors[0, :, :d_k] for vectors in draw_words(num_keys))
    ways: list[tuple[LocalizedText, Tensor]] = [
        (UNDIVIDED, weigh(query, key, divided=False)),
        (DIVIDED, weigh(query, key, divided=True)),
    ]
    if temperature != 1.0:
        warm = weigh(query, key, divided=True, temperature=temperature)
        name = LocalizedText(f"divided by {temperature:g} √d_k", f"{temperature:g} √d_k로 나눔")
        ways.append((name, warm))
    return [
        Paragraph(
            LocalizedText(
                "Large scores make the **softmax** hard: it raises e to each of them, and a lead "
                f"of {LEAD} is a factor of {exp(LEAD):,.0f}. One word and {num_keys} keys at d_k = {d_k}: "
                f"undivided, the largest share is {float(ways[0][1].max()):.3f}, divided "
                f"{float(ways[1][1].max()):.3f}.",
                "점수가 크면 **소프트맥스(softmax)**가 딱딱해집니다. e를 점수만큼 거듭제곱하므로, 점수가 "
                f"{LEAD}만큼 앞서면 비율은 {exp(LEAD):,.0f}배가 됩니다. d_k = {d_k}에서 단어 하나와 키 {num_keys}개를 보면, 가장 큰 비율이 나누지 않을 때 "
                f"{float(ways[0][1].max()):.3f}, 나눌 때 {float(ways[1][1].max()):.3f}입니다.",
            )
        ),
        Chart(
            "bars",
            LocalizedText(f"shares of one word, d_k = {d_k}", f"단어 하나의 비율, d_k = {d_k}"),
            x=[f"k{place}" for place in range(1, num_keys + 1)],
            series=[Series(name, weights[0].tolist()) for name, weights in ways],
            y_label=LocalizedText("share", "비율"),
        ),
        Note(
            LocalizedText(
                "Dividing scores is also called a **temperature**: a high one makes shares alike, "
                "a low one lets the largest win. √d_k is just the temperature at which d_k no "
                "longer matters. Move the temperature to feel it.",
                "점수를 나누는 수를 **온도(temperature)**라고도 부릅니다. 온도가 높으면 비율이 고르게 되고, 낮으면 "
                "가장 큰 것이 다 가져갑니다. √d_k는 d_k의 영향이 사라지는 온도입니다. 온도를 바꿔 보세요.",
            )
        ),
    ]


def _tell_gradients(num_keys: int) -> list[Block]:
    rows: list[list[Any]] = []
    for size in SIZES:
        plain, scaled = (measure_spread(size, num_keys, divided=way) for way in (False, True))
        rows.append(
            [
                size,
                plain.deviation,
                scaled.deviation,
                plain.largest,
                scaled.largest,
                plain.gradient,
                scaled.gradient,
            ]
        )
    return [
        Paragraph(
            LocalizedText(
                "A hard softmax cannot learn. When a score moves, its share a moves by a · (1 − a): "
                "nothing if a is 0, and nothing if a is 1. Added up over the keys, this is what is "
                "left of the **gradient**. Undivided, it is all but gone for half of all words long "
                "before d_k = 1024.",
                "딱딱해진 소프트맥스는 배우지 못합니다. 점수가 움직이면 비율 a는 a · (1 − a)만큼 움직입니다. a가 0이어도, "
                "1이어도 꼼짝하지 않습니다. 이것을 모든 키에 대해 더하면 남아 있는 **기울기(gradient)**가 됩니다. 나누지 "
                "않으면 단어의 절반은 d_k = 1024가 되기 훨씬 전에 기울기를 거의 잃습니다.",
            )
        ),
        Formula("∂aᵢ / ∂eᵢ = aᵢ · (1 − aᵢ)"),
        gradient_decay(num_keys),
        Table(
            [
                "d_k",
                LocalizedText("deviation", "표준편차"),
                "÷ √d_k",
                LocalizedText("largest share", "최대 비율"),
                "÷ √d_k",
                LocalizedText("gradient", "기울기"),
                "÷ √d_k",
            ],
            rows,
        ),
        Paragraph(
            LocalizedText(
                "So the Transformer divides. The additive score of lesson 1 needs no such care: "
                "its tanh keeps every number within −1 and 1.",
                "그래서 트랜스포머는 나눕니다. 1과에서 본 덧셈 점수는 이런 걱정이 훨씬 적습니다. tanh가 모든 수를 −1과 1 사이에 "
                "묶어 두기 때문입니다.",
            )
        ),
    ]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Measure the scores of the learner's own heads, divided and not."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [
            Note(
                LocalizedText(
                    "Your model is no single Transformer: its scores are not divided by √d_k.",
                    "여러분의 모델은 트랜스포머 하나가 아니어서, √d_k로 나누는 점수가 없습니다.",
                )
            )
        ]
    rows = measure_heads(translator, model, text)
    d_k = model.config.d_k or model.config.d_model // model.config.num_heads
    return [
        Paragraph(
            LocalizedText(
                f"The heads of your first encoder layer on “{text}”, d_k = {d_k}: how far the "
                "scores spread, and the largest share of a word on average.",
                f"여러분 모델의 첫 인코더 층이 “{text}”를 볼 때입니다. d_k = {d_k}이고, 헤드마다 점수의 표준편차와 "
                "단어별 최대 비율의 평균을 보여 줍니다.",
            )
        ),
        Table(
            [
                LocalizedText("head (from 0)", "헤드 (0부터)"),
                LocalizedText("deviation", "표준편차"),
                "÷ √d_k",
                LocalizedText("largest share", "최대 비율"),
                "÷ √d_k",
            ],
            rows,
        ),
        ModelPlot("score_matrix", LocalizedText("the scores of one head", "헤드 하나의 점수")),
    ]


def measure_heads(translator: Translator, model: Transformer, text: str) -> list[list[Any]]:
    """Give for each head: its number from 0, deviations and largest shares, undivided and divided."""
    device = translator.backend.device
    ids = torch.tensor(translator.tokenizer.encode_src([text]), device=device)
    start = torch.full((1, 1), START_ID, device=device)
    with translator.backend.eval_mode():
        inside = capture_attention(
            model, TeacherForcedPass(ids, start, start[0]), "encoder_self", 0
        )
    rows: list[list[Any]] = []
    for number, (queries, keys) in enumerate(zip(inside.queries, inside.keys, strict=True)):
        query, key = torch.from_numpy(queries), torch.from_numpy(keys)
        spreads = [float(attention_scores(query, key, scale=scale).std()) for scale in (1.0, None)]
        shares = [
            float(weigh(query, key, divided=way).amax(dim=-1).mean()) for way in (False, True)
        ]
        rows.append([number, *spreads, *shares])
    return rows


def _right_divisor() -> float:
    """By the house's own code: what a score of ones is divided by at d_k = 256."""
    ones = torch.ones(1, 256)
    return float(attention_scores(ones, ones, scale=1.0) / attention_scores(ones, ones))


def _slope_of_sure_share() -> float:
    share = torch.tensor(0.99, dtype=torch.float64)
    score = (share / (1 - share)).log().requires_grad_()  # against one other key of score 0
    sure = torch.stack((score, torch.zeros_like(score))).softmax(dim=0)[0]
    return float(torch.autograd.grad(sure, score)[0])


def _growth_from_64_to_256() -> str:
    small, large = (measure_spread(size, divided=False).deviation for size in (64, 256))
    known = {"same": 1.0, "double": 2.0, "fourfold": 4.0}
    return min(known, key=lambda name: abs(known[name] - large / small))


LESSON = Lesson(
    number=5,
    title=LocalizedText("Why divide by √d_k", "왜 √d_k로 나누나"),
    summary=LocalizedText(
        "Long queries and keys give large scores; large scores stop the softmax from learning.",
        "쿼리와 키가 길면 점수가 커지고, 점수가 크면 소프트맥스가 배우지 못합니다. 얼마나 그런지 재어 봅니다.",
    ),
    paper="3.2.1",
    code=(
        CodeReference("attendo.model.attention", "attention_scores"),
        CodeReference("attendo.model.attention", "scaled_dot_product"),
    ),
    inputs=(
        Number(
            name="d_k",
            label=LocalizedText("d_k, numbers in a key", "d_k, 키 하나의 숫자 개수"),
            default=D_K,
            low=1,
            high=1024,
        ),
        Number(
            name="num_keys",
            label=LocalizedText("keys", "키의 개수"),
            default=NUM_KEYS,
            low=2,
            high=16,
        ),
        Number(
            name="temperature",
            label=LocalizedText("temperature", "온도"),
            default=1.0,
            low=0.1,
            high=10.0,
            step=0.1,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "At d_k = 256, by which number must scores be divided to have variance 1?",
                "d_k = 256일 때 점수의 분산이 1이 되려면 얼마로 나누어야 하나요?",
            ),
            _right_divisor,
            LocalizedText(
                "Their variance is 256, so their standard deviation is √256.",
                "분산이 256이므로 표준편차는 √256입니다.",
            ),
        ),
        Question(
            LocalizedText(
                "A key has the share 0.99. By how much does the share grow for each unit of score, "
                "to begin with?",
                "어떤 키의 비율이 0.99입니다. 점수가 늘기 시작할 때, 비율은 점수 1당 얼마의 빠르기로 늘어나나요?",
            ),
            _slope_of_sure_share,
            LocalizedText(
                "a · (1 − a) with a = 0.99. At a = 0.5 it would be 0.25.",
                "a = 0.99일 때의 a · (1 − a)입니다. a = 0.5라면 0.25입니다.",
            ),
            tolerance=0.0001,
        ),
        Question(
            LocalizedText(
                "d_k goes from 64 to 256. What do undivided scores do?",
                "d_k가 64에서 256으로 커집니다. 나누지 않은 점수의 퍼짐은 어떻게 되나요?",
            ),
            _growth_from_64_to_256,
            LocalizedText(
                "Their standard deviation is √d_k: from 8 to 16.",
                "표준편차는 √d_k이므로 8에서 16이 됩니다.",
            ),
            choices=(
                ("same", LocalizedText("spread as before", "그대로이다")),
                ("double", LocalizedText("spread twice as far", "2배가 된다")),
                ("fourfold", LocalizedText("spread four times as far", "4배가 된다")),
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
