"""Lesson 10: the position-wise feed-forward network. One small network, used at every word."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.inspection.activations import capture_sublayer
from attendo.inspection.capture import capture
from attendo.inspection.teacher_forcing import teacher_force
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
from attendo.lessons.inputs import Choice, Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.attention import MultiHeadAttention
from attendo.model.feed_forward import FeedForward
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Numbers = list[list[float]]
    Rows = list[list[Label | float | int | None]]

X: Numbers = [[1, 2], [2, -1], [0, 1]]
W_1: Numbers = [[1, -1, 0, 2], [0, 1, -1, 1]]
B_1: Numbers = [[0, 0, 1, -2]]
W_2: Numbers = [[1, 0], [0, 1], [1, 1], [-1, 0]]
B_2: Numbers = [[0, 1]]
ORDERS = {"123": [0, 1, 2], "321": [2, 1, 0], "231": [1, 2, 0]}
WORDS = ["x₁", "x₂", "x₃"]
NUM_WORDS = 64
"""How many words the silent units of a new network are counted over."""


def tell(
    x: Numbers,
    w_1: Numbers,
    b_1: Numbers,
    w_2: Numbers,
    b_2: Numbers,
    order: str,
    d_model: int,
    d_ff: int,
) -> list[Block]:
    """Go through the two layers by hand, move the words about, count weights and zeros."""
    network = make_network(w_1, b_1, w_2, b_2)
    return [
        *_tell_steps(network, x),
        *_tell_order(network, torch.tensor(x, dtype=torch.float64), ORDERS[order]),
        *_tell_size(d_model, d_ff),
        *_tell_layers(d_model, d_ff),
    ]


def make_network(w_1: Numbers, b_1: Numbers, w_2: Numbers, b_2: Numbers) -> FeedForward:
    """Build the model's own network with given weights."""
    network = FeedForward(len(w_1), len(w_2)).double()
    with torch.no_grad():
        network.inner.weight.copy_(torch.tensor(w_1).T)
        network.inner.bias.copy_(torch.tensor(b_1[0]))
        network.outer.weight.copy_(torch.tensor(w_2).T)
        network.outer.bias.copy_(torch.tensor(b_2[0]))
    return network


@torch.no_grad()
def _tell_steps(network: FeedForward, rows: Numbers) -> list[Block]:
    x = torch.tensor(rows, dtype=torch.float64)
    inner = network.inner(x)
    hidden = network.activation(inner)
    silent = int((hidden == 0).sum())
    return [
        Paragraph(
            LocalizedText(
                "Attention moves information between words. Then every word thinks for itself: the "
                "**feed-forward network** makes each vector wider, cuts off what is negative "
                "(ReLU), and makes it narrow again.",
                "어텐션(attention)은 단어 사이에서 정보를 옮깁니다. 그다음에는 단어마다 혼자 생각합니다. "
                "**피드포워드 신경망(feed-forward network)**은 벡터를 넓히고, 음수를 잘라 내고(ReLU), 다시 "
                "좁힙니다.",
            )
        ),
        Formula("FFN(x) = max(0, x · W₁ + b₁) · W₂ + b₂"),
        Matrix("x", rows, rows=WORDS),
        Matrix("x · W₁ + b₁", inner.tolist(), rows=WORDS),
        Matrix("max(0, x · W₁ + b₁)", hidden.tolist(), rows=WORDS, shade=True),
        Paragraph(
            LocalizedText(
                f"{silent} of the {hidden.numel()} numbers are 0 now: these units are silent for "
                "this word. Each word wakes a different set of units, and without the ReLU both "
                "matrices would melt into one.",
                f"숫자 {hidden.numel()}개 가운데 {silent}개가 0입니다. 그 자리의 유닛은 그 단어에 대해 침묵합니다. "
                "단어마다 깨우는 유닛이 다르며, ReLU가 없다면 두 행렬은 하나로 합쳐져 버립니다.",
            )
        ),
        Matrix("FFN(x)", network(x).tolist(), rows=WORDS),
    ]


@torch.no_grad()
def _tell_order(network: FeedForward, x: Tensor, order: list[int]) -> list[Block]:
    names = [WORDS[place] for place in order]
    moved = network(x[order])
    apart = float((moved - network(x)[order]).abs().max())
    attention = make_attention(x.size(1))
    rows: Rows = [
        [word, *shifts]
        for word, *shifts in zip(
            WORDS, measure_reach(network, x), measure_reach(attention, x), strict=True
        )
    ]
    return [
        Paragraph(
            LocalizedText(
                f"**Position-wise** means: the same weights at every position. Put the words in "
                f"the order {', '.join(names)}, and the outputs come in that order, "
                f"{apart:g} apart from the old ones.",
                f"**위치별(position-wise)**이란 모든 자리에서 같은 가중치를 쓴다는 뜻입니다. 단어를 "
                f"{', '.join(names)} 순서로 놓으면 출력도 그 순서로 나옵니다. 값의 차이는 {apart:g}입니다.",
            )
        ),
        Matrix(
            LocalizedText("FFN(x), words moved", "FFN(x), 순서를 바꾼 뒤"),
            moved.tolist(),
            rows=names,
        ),
        Paragraph(
            LocalizedText(
                "And no word hears of another. Add 1 to all numbers of x₂: here only its own "
                "output moves. In self-attention (below with random weights) every word moves.",
                "또한 어느 단어도 다른 단어의 소식을 듣지 못합니다. x₂의 모든 숫자에 1을 더하면 여기서는 "
                "x₂의 출력만 움직입니다. 셀프 어텐션(아래는 무작위 가중치)에서는 모든 단어가 움직입니다.",
            )
        ),
        Table(
            [
                LocalizedText("moved by a new x₂", "x₂를 바꿀 때의 변화"),
                LocalizedText("feed-forward", "피드포워드"),
                LocalizedText("self-attention", "셀프 어텐션"),
            ],
            rows,
        ),
        Note(
            LocalizedText(
                "The paper's other name for it: two convolutions of width 1. Computed that way, "
                f"the outputs are {compare_convolution(network, x):.1g} apart.",
                "논문은 이것을 폭이 1인 합성곱(convolution) 두 번이라고도 부릅니다. 그렇게 계산해도 출력의 "
                f"차이는 {compare_convolution(network, x):.1g}입니다.",
            )
        ),
    ]


def make_attention(d_model: int) -> Callable[[Tensor], Tensor]:
    """Build a self-attention with random weights, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        attention = MultiHeadAttention(d_model, 1).double()
    return lambda x: attention(x[None], x[None], x[None])[0][0]


@torch.no_grad()
def measure_reach(layer: Callable[[Tensor], Tensor], x: Tensor) -> list[float]:
    """Add 1 to the second word and give how far each output moves."""
    changed = x.clone()
    changed[1] += 1.0
    moved: list[float] = (layer(changed) - layer(x)).abs().amax(-1).tolist()
    return moved


@torch.no_grad()
def compare_convolution(network: FeedForward, x: Tensor) -> float:
    """Compute the same by two convolutions of width 1; give the largest difference."""
    channels = x.T[None]  # (1, D, T)
    for place, linear in enumerate((network.inner, network.outer)):
        channels = F.conv1d(channels, linear.weight[:, :, None], linear.bias)
        channels = channels if place else network.activation(channels)
    return float((channels[0].T - network(x)).abs().max())


def count_parameters(d_model: int, d_ff: int) -> int:
    """Count the weights and biases of one network."""
    with torch.device("meta"):  # shapes without numbers
        network = FeedForward(d_model, d_ff)
    return sum(weight.numel() for weight in network.parameters())


def measure_silence(d_model: int, d_ff: int) -> float:
    """Give the share of zeros after the ReLU of a new network, over random words."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        network = FeedForward(d_model, d_ff)
        hidden = network.activation(network.inner(torch.randn(NUM_WORDS, d_model)))
    return float((hidden == 0).float().mean())


def _tell_size(d_model: int, d_ff: int) -> list[Block]:
    with torch.device("meta"):
        attention = MultiHeadAttention(d_model, 1)
    beside = sum(weight.numel() for weight in attention.parameters())
    own, silent = count_parameters(d_model, d_ff), measure_silence(d_model, d_ff)
    rows: Rows = [
        ["W₁", f"{d_model} × {d_ff}", d_model * d_ff],
        ["b₁", f"{d_ff}", d_ff],
        ["W₂", f"{d_ff} × {d_model}", d_ff * d_model],
        ["b₂", f"{d_model}", d_model],
        [LocalizedText("together", "합계"), f"{d_model} → {d_ff} → {d_model}", own],
        [
            LocalizedText("self-attention beside it", "옆에 있는 셀프 어텐션"),
            f"4 · {d_model} × {d_model}",
            beside,
        ],
    ]
    return [
        Paragraph(
            LocalizedText(
                f"In the real size a word goes {d_model} → {d_ff} → {d_model}. Counted on the "
                f"model's own layer, with biases, that is {own:,} parameters: "
                f"{own / (own + beside):.0%} of an encoder layer's sub-layers, the rest being its "
                "attention.",
                f"실제 크기에서 단어는 {d_model} → {d_ff} → {d_model}의 길을 갑니다. 모델의 층에서 편향까지 세어 "
                f"보면 매개변수는 {own:,}개로, 인코더 층의 두 하위 층 가운데 {own / (own + beside):.0%}를 "
                "차지하고 나머지가 어텐션입니다.",
            )
        ),
        Table(
            [
                LocalizedText("part", "부분"),
                LocalizedText("shape", "모양"),
                LocalizedText("parameters", "매개변수"),
            ],
            rows,
        ),
        Paragraph(
            LocalizedText(
                f"In a new network {silent:.1%} of the {d_ff} hidden numbers are 0 after the ReLU, "
                f"counted over {NUM_WORDS} random words: a coin toss. Training makes the units "
                "choosy; how choosy, you see on your own model.",
                f"새로 만든 신경망에서는 무작위 단어 {NUM_WORDS}개로 세었을 때 숨은 숫자 {d_ff}개의 "
                f"{silent:.1%}가 ReLU 뒤에 0입니다. 동전 던지기와 같습니다. 학습은 유닛을 까다롭게 만듭니다. "
                "얼마나 까다로워지는지는 여러분의 모델에서 볼 수 있습니다.",
            )
        ),
    ]


def find_networks(model: Transformer) -> list[FeedForward]:
    """Give every feed-forward network of a model."""
    return [part for part in model.modules() if isinstance(part, FeedForward)]


def make_deep() -> Transformer:
    """Build a model as deep as the paper's base model, but narrow."""
    with torch.random.fork_rng(devices=[]):
        return Transformer(vocab_size=9, d_model=8, d_ff=16, num_heads=1)


def count_distinct(networks: list[FeedForward]) -> int:
    """Count the networks that have weights of their own."""
    return len({network.inner.weight.data_ptr() for network in networks})


def _tell_layers(d_model: int, d_ff: int) -> list[Block]:
    networks = find_networks(make_deep())
    total = len(networks) * count_parameters(d_model, d_ff)
    return [
        Paragraph(
            LocalizedText(
                "The same at every position, but **other weights in every layer**: a model as deep "
                f"as the paper's, six encoder and six decoder layers, has {len(networks)} such "
                f"networks, {count_distinct(networks)} of them with weights of their own. In this "
                f"size they hold {total:,} parameters together.",
                "자리마다 같지만 **층마다 가중치가 다릅니다**. 논문처럼 인코더 6층, 디코더 6층인 모델에는 이런 "
                f"신경망이 {len(networks)}개 있고, 그중 자기만의 가중치를 가진 것은 "
                f"{count_distinct(networks)}개입니다. 이 크기에서 매개변수를 모두 합치면 {total:,}개입니다.",
            )
        )
    ]


@torch.no_grad()
def _say_exchange() -> str:
    """Exchange the first and the third word, and say what becomes of the outputs."""
    network, x = make_network(W_1, B_1, W_2, B_2), torch.tensor(X, dtype=torch.float64)
    before, after = network(x), network(x[ORDERS["321"]])
    if torch.equal(after, before):
        return "none"
    return "exchanged" if torch.equal(after, before[ORDERS["321"]]) else "all"


@torch.no_grad()
def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Count the silent units in every layer of the learner's own model."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [
            Note(
                LocalizedText(
                    "This model is no Transformer: it has no position-wise feed-forward network.",
                    "이 모델은 트랜스포머가 아니어서 위치별 피드포워드 신경망이 없습니다.",
                )
            )
        ]
    record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
    look = partial(capture_sublayer, model, teacher_force(translator, record))
    rows: Rows = []
    for stack, name in (
        ("encoder", LocalizedText("encoder, layer {n}", "인코더 층 {n}")),
        ("decoder", LocalizedText("decoder, layer {n}", "디코더 층 {n}")),
    ):
        for number, layer in enumerate(getattr(model, stack).layers):
            with translator.backend.eval_mode():
                inside = look(f"{stack}_feed_forward", number)
            network: FeedForward = layer.feed_forward
            read = torch.tensor(inside.normed if inside.is_pre_norm else inside.x)
            hidden = network.inner(read.to(network.inner.weight))
            rows.append([name.format(n=number), float((hidden <= 0).float().mean())])
    size = (model.config.d_model, model.config.d_ff)
    return [
        Paragraph(
            LocalizedText(
                f"Your own model goes {size[0]} → {size[1]} → {size[0]}. For “{text}”, this share "
                "of its hidden numbers is not above 0, so that a ReLU cuts it off:",
                f"여러분의 모델은 {size[0]} → {size[1]} → {size[0]}의 길을 갑니다. “{text}”에서 숨은 숫자 "
                "가운데 0 이하여서 ReLU가 잘라 내는 비율은 다음과 같습니다.",
            )
        ),
        Table([LocalizedText("where", "어디"), LocalizedText("silent", "침묵하는 비율")], rows),
        ModelPlot("stack", LocalizedText("where it stands in the stack", "전체 구조에서의 자리")),
    ]


LESSON = Lesson(
    number=10,
    title=LocalizedText("Position-wise feed-forward", "위치별 피드포워드"),
    summary=LocalizedText(
        "What happens to each word between two attentions: wider, ReLU, narrow again.",
        "두 어텐션 사이에서 단어마다 일어나는 일, 곧 넓히고 ReLU를 거쳐 다시 좁히는 과정을 봅니다.",
    ),
    paper="3.3",
    code=(CodeReference("attendo.model.feed_forward", "FeedForward"),),
    inputs=(
        Grid(name="x", label=LocalizedText("x, one word a row", "x, 행마다 단어 하나"), default=X),
        Grid(name="w_1", label=LocalizedText("W₁, 2 → 4", "첫 행렬 W₁, 2 → 4"), default=W_1),
        Grid(name="b_1", label=LocalizedText("b₁, a bias", "편향 b₁"), default=B_1),
        Grid(name="w_2", label=LocalizedText("W₂, 4 → 2", "둘째 행렬 W₂, 4 → 2"), default=W_2),
        Grid(name="b_2", label=LocalizedText("b₂, a bias", "편향 b₂"), default=B_2),
        Choice(
            name="order",
            label=LocalizedText("order of the words", "단어의 순서"),
            default="321",
            choices=tuple(
                (key, ", ".join(WORDS[place] for place in order)) for key, order in ORDERS.items()
            ),
        ),
        Number(
            name="d_model",
            label=LocalizedText("d_model, the size of a word", "d_model, 단어의 크기"),
            default=512,
            low=8,
            high=1024,
        ),
        Number(
            name="d_ff",
            label=LocalizedText("d_ff, the width between", "d_ff, 가운데의 너비"),
            default=2048,
            low=8,
            high=4096,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "How many parameters has the network with d_model = 256 and d_ff = 1024, biases "
                "included?",
                "d_model = 256, d_ff = 1024인 신경망의 매개변수는 편향까지 모두 몇 개인가요?",
            ),
            lambda: float(count_parameters(256, 1024)),
            LocalizedText(
                "256 · 1024 twice, and one bias for each of the 1024 and 256 outputs.",
                "256 · 1024가 두 번, 그리고 출력 1024개와 256개마다 편향이 하나씩입니다.",
            ),
        ),
        Question(
            LocalizedText(
                "You exchange the first and the third word of x. The outputs …",
                "x의 첫 단어와 셋째 단어를 맞바꾸면 출력은 …",
            ),
            _say_exchange,
            LocalizedText(
                "Every position has the same weights and sees nothing but its own word.",
                "모든 자리가 같은 가중치를 쓰고, 자기 단어만 봅니다.",
            ),
            choices=(
                ("none", LocalizedText("stay where they are", "제자리에 그대로 있다")),
                ("exchanged", LocalizedText("are exchanged too", "똑같이 맞바뀐다")),
                ("all", LocalizedText("all become other numbers", "모두 다른 숫자가 된다")),
            ),
        ),
        Question(
            LocalizedText(
                "A sentence of 20 words goes through six encoder layers, its translation of 25 words "
                "through six decoder layers. How many different feed-forward networks are at work?",
                "20단어 문장이 인코더 6층을, 25단어 번역문이 디코더 6층을 지나갑니다. 서로 다른 피드포워드 신경망은 "
                "몇 개가 일하나요?",
            ),
            lambda: float(count_distinct(find_networks(make_deep()))),
            LocalizedText(
                "One in every layer, however long the sentences are.",
                "문장이 아무리 길어도 층마다 하나입니다.",
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
