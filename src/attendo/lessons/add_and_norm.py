"""Lesson 8: add and norm. One vector by hand, and why not batch norm."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import nn

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
from attendo.lessons.inputs import Grid, Number, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Numbers = list[list[float]]
    Rows = list[list[Label | float | int | None]]

X: Numbers = [[2, 1, 4, 3, 5]]
SUBLAYER: Numbers = [[-1, 2, 0, 2, 2]]
OTHERS: Numbers = [[3, 3, 0, 1, 2], [6, 1, 2, 5, 4]]
EPS = 1e-5
PLACES = ["x₁", "x₂", "x₃", "x₄", "x₅"]


def tell(
    x: Numbers,
    sublayer: Numbers,
    others: Numbers,
    gamma: float,
    beta: float,
    eps: float,
    residual: bool,
) -> list[Block]:
    """Add, norm by hand, norm by the model's own layer; set batch norm beside it."""
    word = torch.tensor(x, dtype=torch.float64)
    added = torch.tensor(sublayer, dtype=torch.float64)
    add = make_add_and_norm(gamma=gamma, beta=beta, eps=eps, residual=residual)
    total = word + added if residual else added
    with torch.no_grad():
        output = add.post(word, added)
    return [
        *_tell_sum(x, sublayer, total, residual=residual),
        *_tell_norm(total, output, gamma=gamma, beta=beta, eps=eps),
        *_tell_batch(total, others, eps=eps),
    ]


def make_add_and_norm(
    *, gamma: float = 1.0, beta: float = 0.0, eps: float = EPS, residual: bool = True
) -> AddAndNorm:
    """Build the model's own layer for five numbers."""
    add = AddAndNorm(len(PLACES), dropout=0.0, norm="post", eps=eps, residual=residual).double()
    with torch.no_grad():
        add.norm.weight.fill_(gamma)
        add.norm.bias.fill_(beta)
    return add


def _tell_sum(x: Numbers, sublayer: Numbers, total: Tensor, *, residual: bool) -> list[Block]:
    per_encoder, per_decoder = count_places()
    return [
        Paragraph(
            LocalizedText(
                "Around every sub-layer, attention or feed-forward, stands the same thing: what "
                "came in is added to what came out (the **residual connection**), and the sum is "
                f"brought to a common size (**layer normalisation**). {per_encoder} times in an "
                f"encoder layer, {per_decoder} times in a decoder layer.",
                "어텐션(attention)이든 피드포워드든, 모든 하위 층은 같은 것으로 둘러싸여 있습니다. 들어온 것을 "
                "나온 것에 더하는 **잔차 연결(residual connection)**, 그리고 그 합의 크기를 고르게 맞추는 **층 "
                f"정규화(layer normalisation)**입니다. 인코더 층에는 {per_encoder}번, 디코더 층에는 "
                f"{per_decoder}번 나옵니다.",
            )
        ),
        Formula("LayerNorm(x + Sublayer(x))" if residual else "LayerNorm(Sublayer(x))"),
        Matrix("x", x),
        Matrix("Sublayer(x)", sublayer),
        Matrix(LocalizedText("sum", "합"), total.tolist())
        if residual
        else Note(
            LocalizedText(
                "The residual connection is off: x is gone, and only what the sub-layer made of it "
                "goes on.",
                "잔차 연결이 꺼져 있습니다. x는 사라지고 하위 층이 만든 것만 다음으로 넘어갑니다.",
            )
        ),
    ]


def measure(total: Tensor, eps: float) -> tuple[float, float, float]:
    """Give mean, variance and the root of variance + eps of one vector, number by number."""
    numbers = total[0].tolist()
    mean = sum(numbers) / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return mean, variance, sqrt(variance + eps)


def _tell_norm(
    total: Tensor, output: Tensor, *, gamma: float, beta: float, eps: float
) -> list[Block]:
    mean, variance, spread = measure(total, eps)
    normed = [[(number - mean) / spread for number in total[0].tolist()]]
    by_hand = torch.tensor(normed, dtype=torch.float64) * gamma + beta
    apart = float((by_hand - output).abs().max())
    fresh = AddAndNorm(len(PLACES), dropout=0.0, norm="post", eps=eps).norm
    start = [own.detach().mean().item() for own in (fresh.weight, fresh.bias)]
    return [
        Paragraph(
            LocalizedText(
                "The norm looks at this one vector alone: subtract its mean, divide by its spread. "
                "The tiny ε keeps the root away from 0 when all numbers are equal.",
                "정규화는 이 벡터 하나만 봅니다. 평균을 빼고, 퍼진 정도로 나눕니다. 아주 작은 ε은 모든 숫자가 "
                "같을 때 0으로 나누지 않게 해 줍니다.",
            )
        ),
        Formula("(x − mean) / √(var + ε) · γ + β"),
        Table(
            [LocalizedText("of the sum", "합에서"), LocalizedText("value", "값")],
            [
                [LocalizedText("mean", "평균(mean)"), mean],
                [LocalizedText("variance (var)", "분산(var)"), variance],
                ["√(var + ε)", spread],
            ],
            digits=4,
        ),
        Matrix("(x − mean) / √(var + ε)", normed, digits=4),
        Paragraph(
            LocalizedText(
                f"γ and β are learnt. At the start γ = {start[0]:g} and β = {start[1]:g}, so that "
                "nothing changes; later each of the d_model places may have a scale and a shift of "
                f"its own. Here γ = {gamma:g}, β = {beta:g}, and the model's own layer gives:",
                f"γ와 β는 학습됩니다. 처음에는 γ = {start[0]:g}, β = {start[1]:g}이라 아무것도 바뀌지 않고, "
                "나중에는 d_model개의 자리마다 자기만의 배율과 이동을 가질 수 있습니다. 여기서는 "
                f"γ = {gamma:g}, β = {beta:g}이고, 모델의 층이 내는 값은 다음과 같습니다.",
            )
        ),
        Matrix(LocalizedText("output", "출력"), output.tolist(), digits=4),
        Note(
            LocalizedText(
                f"By hand and by the model: at most {apart:.1e} apart.",
                f"손으로 계산한 값과 모델이 낸 값의 차이는 많아야 {apart:.1e}입니다.",
            )
        ),
    ]


def norm_both(rows: Tensor, eps: float) -> tuple[list[float], list[float]]:
    """Norm a batch of words by layer norm and by batch norm (learning); give the first word."""
    layer = nn.LayerNorm(rows.size(1), eps=eps, elementwise_affine=False)
    batch = nn.BatchNorm1d(rows.size(1), eps=eps, affine=False, track_running_stats=False)
    first: tuple[list[float], list[float]] = (layer(rows)[0].tolist(), batch(rows)[0].tolist())
    return first


def compare_norms(total: Tensor, others: Numbers, eps: float = EPS) -> Table:
    """Norm the same word in three batches."""
    beside = torch.cat([total, torch.tensor(others, dtype=total.dtype)])
    padded = torch.cat([beside, torch.zeros_like(total)])
    batches = (
        (LocalizedText("two other words", "다른 두 단어"), beside),
        (LocalizedText("and a <pad> of zeros", "거기에 0뿐인 <pad>"), padded),
        (LocalizedText("only the first other", "첫째 다른 단어만"), beside[:2]),
    )
    rows: Rows = []
    for place, name in enumerate((LocalizedText("layer", "층"), LocalizedText("batch", "배치"))):
        rows += [[name, who, *norm_both(own, eps)[place]] for who, own in batches]
    return Table(
        [LocalizedText("norm", "정규화"), LocalizedText("beside it", "함께 있는 것"), *PLACES],
        rows,
        title=LocalizedText("The same word in three batches", "같은 단어, 세 가지 배치"),
    )


def _tell_batch(total: Tensor, others: Numbers, *, eps: float) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "**Batch normalisation** goes the other way: it takes each place on its own and "
                "averages over all words of the batch. Then the result for a word depends on who "
                "happens to stand beside it. Watch one word, the sum from above, in three batches.",
                "**배치 정규화(batch normalisation)**는 방향이 다릅니다. 자리 하나하나를 배치 안의 모든 단어에 "
                "걸쳐 평균 냅니다. 그래서 한 단어의 결과가 우연히 옆에 있는 단어에 따라 달라집니다. 위에서 구한 "
                "합을 세 가지 배치에 넣어 봅시다.",
            )
        ),
        compare_norms(total, others, eps),
        Paragraph(
            LocalizedText(
                "The rows of layer norm are equal, those of batch norm are not. Sentences make it "
                "worse: their lengths differ, so padding joins in, and a translator reads one "
                "sentence at a time. With a single word in the batch, batch norm cannot even be "
                "computed while learning.",
                "층 정규화의 세 행은 같고, 배치 정규화의 세 행은 다릅니다. 문장에서는 더 나쁩니다. 길이가 "
                "제각각이라 패딩이 섞이고, 번역할 때는 한 문장씩 읽기 때문입니다. 배치에 단어가 하나뿐이면 "
                "학습 중의 배치 정규화는 계산조차 할 수 없습니다.",
            )
        ),
    ]


def count_places() -> tuple[int, int]:
    """Count add and norm in an encoder layer and in a decoder layer."""
    layers = (EncoderLayer(8, 8, 2), DecoderLayer(8, 8, 2))
    encoder, decoder = (
        sum(isinstance(part, AddAndNorm) for part in layer.modules()) for layer in layers
    )
    return encoder, decoder


def _norm(*, shift: float = 0.0, gamma: float = 1.0, beta: float = 0.0) -> float:
    """Give the first number of the lesson's vector, normed."""
    word, added = (torch.tensor(rows, dtype=torch.float64) for rows in (X, SUBLAYER))
    with torch.no_grad():
        return float(make_add_and_norm(gamma=gamma, beta=beta).post(word + shift, added)[0, 0])


def _which_depends() -> str:
    total = torch.tensor(X, dtype=torch.float64) + torch.tensor(SUBLAYER, dtype=torch.float64)
    here, there = (
        norm_both(torch.cat([total, torch.tensor([other], dtype=torch.float64)]), EPS)
        for other in OTHERS
    )
    changed = [first != second for first, second in zip(here, there, strict=True)]
    return {(True, False): "layer", (False, True): "batch", (True, True): "both"}.get(
        (changed[0], changed[1]), "none"
    )


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show add and norm on a vector of the learner's own model, and what γ and β became."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [
            Note(
                LocalizedText(
                    "This model is no Transformer: it has no add and norm around its parts.",
                    "이 모델은 트랜스포머가 아니어서, 부분마다 둘러싼 더하기와 정규화가 없습니다.",
                )
            )
        ]
    return [
        Paragraph(
            LocalizedText(
                f"The first add and norm of your own model, for one word of “{text}”. Training has "
                "moved γ away from 1 and β away from 0:",
                f"여러분의 모델에서 첫 번째 더하기와 정규화를 “{text}”의 한 단어로 봅니다. 학습은 γ를 1에서, "
                "β를 0에서 옮겨 놓았습니다.",
            )
        ),
        _list_gains(model),
        ModelPlot(
            "add_and_norm",
            LocalizedText("add and norm on one vector", "벡터 하나의 더하기와 정규화"),
        ),
    ]


def _list_gains(model: Transformer) -> Table:
    stacks = {
        "encoder": LocalizedText("encoder, layer {n}", "인코더 층 {n}"),
        "decoder": LocalizedText("decoder, layer {n}", "디코더 층 {n}"),
    }
    rows: Rows = []
    for stack, name in stacks.items():
        for number, layer in enumerate(getattr(model, stack).layers):
            norms = [part.norm for part in layer.children() if isinstance(part, AddAndNorm)]
            gains, biases = (
                torch.cat([getattr(norm, kind).detach().float() for norm in norms])
                for kind in ("weight", "bias")
            )
            ends = (float(end) for own in (gains, biases) for end in (own.min(), own.max()))
            rows.append([name.format(n=number), *ends])
    return Table(
        [
            LocalizedText("where", "어디"),
            LocalizedText("smallest γ", "가장 작은 γ"),
            LocalizedText("largest γ", "가장 큰 γ"),
            LocalizedText("smallest β", "가장 작은 β"),
            LocalizedText("largest β", "가장 큰 β"),
        ],
        rows,
    )


LESSON = Lesson(
    number=8,
    title=LocalizedText("Add and norm", "더하기와 정규화"),
    summary=LocalizedText(
        "What stands around every sub-layer: the residual sum and layer normalisation, by hand.",
        "모든 하위 층을 둘러싼 잔차 합과 층 정규화를 손으로 계산해 봅니다.",
    ),
    paper="3.1",
    code=(CodeReference("attendo.model.layers", "AddAndNorm"),),
    inputs=(
        Grid(name="x", label=LocalizedText("x, what comes in", "들어오는 x"), default=X),
        Grid(
            name="sublayer",
            label=LocalizedText(
                "Sublayer(x), what the sub-layer gives", "하위 층이 내는 Sublayer(x)"
            ),
            default=SUBLAYER,
        ),
        Grid(
            name="others",
            label=LocalizedText("two other words of the batch", "배치에 있는 다른 두 단어"),
            default=OTHERS,
        ),
        Number(
            name="gamma",
            label=LocalizedText("γ, the scale", "배율 γ"),
            default=1.0,
            low=-5.0,
            high=5.0,
            step=0.1,
        ),
        Number(
            name="beta",
            label=LocalizedText("β, the shift", "이동 β"),
            default=0.0,
            low=-5.0,
            high=5.0,
            step=0.1,
        ),
        Number(
            name="eps",
            label=LocalizedText("ε under the root", "제곱근 안의 ε"),
            default=EPS,
            low=1e-9,
            high=10.0,
            step=1e-5,
        ),
        Switch(
            name="residual",
            label=LocalizedText("residual connection", "잔차 연결"),
            default=True,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "Add 100 to every number of x. What does the first number of the output become?",
                "x의 모든 숫자에 100을 더하면, 출력의 첫 숫자는 얼마가 되나요?",
            ),
            lambda: _norm(shift=100.0),
            LocalizedText(
                "The mean grows by 100 too, and is subtracted: nothing changes.",
                "평균도 100만큼 커지고, 그것을 빼므로 달라지지 않습니다.",
            ),
            tolerance=0.01,
        ),
        Question(
            LocalizedText(
                "Another sentence joins the batch. Whose result for your word changes?",
                "배치에 다른 문장이 들어왔습니다. 여러분 단어의 결과가 달라지는 것은 어느 쪽인가요?",
            ),
            _which_depends,
            LocalizedText(
                "Layer norm reads one vector, batch norm all of them.",
                "층 정규화는 벡터 하나만, 배치 정규화는 모두를 읽습니다.",
            ),
            choices=(
                ("layer", LocalizedText("layer norm's", "층 정규화")),
                ("batch", LocalizedText("batch norm's", "배치 정규화")),
                ("both", LocalizedText("both", "둘 다")),
                ("none", LocalizedText("neither", "둘 다 아님")),
            ),
        ),
        Question(
            LocalizedText(
                "With γ = 2 and β = 1, what is the first number of the output?",
                "γ = 2, β = 1이면 출력의 첫 숫자는 얼마인가요?",
            ),
            lambda: _norm(gamma=2.0, beta=1.0),
            LocalizedText(
                "Scale the normed number by 2, then shift it by 1.",
                "정규화한 숫자에 2를 곱하고 1을 더합니다.",
            ),
            tolerance=0.01,
        ),
    ),
    own_model_blocks=on_your_model,
)
