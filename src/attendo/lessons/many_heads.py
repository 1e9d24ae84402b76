"""Lesson 6: many heads. One sentence, two questions at once, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.inspection.heads import get_attentions
from attendo.inspection.record import KINDS
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
    Series,
    Steps,
    Table,
)
from attendo.lessons.constructed_heads import (
    ANIMAL,
    IT,
    SENTENCE,
    TIRED,
    WORDS,
    look,
    make_one_head,
    make_two_heads,
    read_sentence,
)
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.attention import MultiHeadAttention, scaled_dot_product
from attendo.model.config import split_heads_evenly
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

SHARPNESS = 8.0


def tell(d_model: str, num_heads: str, length: int, sharpness: float) -> list[Block]:
    """Split, attend, concatenate, W_O; count the cost; let two heads look from "it"."""
    width, count = int(d_model), int(num_heads)
    size = split_heads_evenly(width, count)
    return [
        Paragraph(
            LocalizedText(
                "One attention gives each word one row of shares, and the shares add up to 1: what "
                "goes to one word is taken from the others. A sentence asks several things at "
                f"once. So d_model is split: {width} = {count} × {size}, and each of the "
                f"{count} **heads** attends on its own, with queries, keys and values of {size} "
                "numbers.",
                "어텐션(attention) 하나는 단어마다 비율을 한 줄만 주고, 비율의 합은 1입니다. 한 단어를 더 "
                "보면 다른 단어는 덜 보게 됩니다. 그런데 문장은 여러 가지를 한꺼번에 묻습니다. 그래서 "
                f"d_model을 나눕니다. {width} = {count} × {size}, 곧 **헤드(head)** {count}개가 저마다 "
                f"숫자 {size}개짜리 쿼리, 키, 값으로 따로 봅니다.",
            )
        ),
        Formula("headᵢ = Attention(Q · W_Qᵢ, K · W_Kᵢ, V · W_Vᵢ)"),
        Formula("MultiHead(Q, K, V) = Concat(head₁, …, headₕ) · W_O"),
        list_shapes(width, count, length),
        Note(
            LocalizedText(
                f"A head does not get a slice of the word: each reads all {width} numbers of x. "
                "Only what it makes of them is small.",
                f"헤드가 단어의 한 조각만 받는 것은 아닙니다. 모든 헤드가 x의 숫자 {width}개를 다 읽고, "
                "만들어 내는 벡터만 작습니다.",
            )
        ),
        Paragraph(
            LocalizedText(
                "That is why many heads cost no more. Counted for a sentence of "
                f"{length} words, without biases: many small heads need the parameters and the "
                "multiply-adds of one full head. Heads of full size would need many times as much.",
                "그래서 헤드가 많아도 비용은 늘지 않습니다. 단어 "
                f"{length}개짜리 문장에 대해 편향 없이 세어 보면, 작은 헤드 여럿은 온전한 헤드 하나와 "
                "매개변수도, 곱셈·덧셈 횟수도 같습니다. 헤드마다 온전한 크기를 주면 몇 배가 듭니다.",
            )
        ),
        compare_costs(width, count, length),
        *_tell_example(sharpness),
    ]


def list_shapes(d_model: int, num_heads: int, length: int) -> Table:
    """Run one attention and note the shape at every stage."""
    attention = MultiHeadAttention(d_model, num_heads, bias=False)
    x = torch.ones(1, length, d_model)
    with torch.no_grad():
        projected = attention.key(x)
        keys, values = attention.project_key_value(x, x)
        heads, weights = scaled_dot_product(keys, keys, values, need_weights=True)
        side_by_side = heads.transpose(1, 2).flatten(2)
        output = attention.output(side_by_side)
    stages = (
        (LocalizedText("x, one word a row", "x, 행마다 단어 하나"), x),
        (LocalizedText("x · W_K (W_Q, W_V alike)", "x · W_K (W_Q, W_V도 같음)"), projected),
        (LocalizedText("split into heads", "헤드로 나누기"), keys),
        (LocalizedText("shares of every head", "헤드마다의 비율"), weights),
        (LocalizedText("what every head gives", "헤드마다의 출력"), heads),
        (LocalizedText("heads side by side", "헤드를 이어 붙이기"), side_by_side),
        (LocalizedText("times W_O", "W_O를 곱하기"), output),
    )
    rows: Rows = [[name, str(tuple(tensor.shape[1:]))] for name, tensor in stages]
    return Table([LocalizedText("stage", "단계"), LocalizedText("shape", "모양")], rows)


def compare_costs(d_model: int = 512, num_heads: int = 8, length: int = 11) -> Table:
    """Count parameters and multiply-adds: one full head, many small ones, many full ones."""
    size = split_heads_evenly(d_model, num_heads)
    plans = {
        (f"1 × {d_model}", 1, d_model),
        (f"{num_heads} × {size}", num_heads, size),
        (f"{num_heads} × {d_model}", num_heads, d_model),
    }
    full, _ = count_cost(d_model, 1, d_model, length)
    rows: Rows = []
    for name, heads, head_size in sorted(plans, key=lambda plan: (plan[1] * plan[2], plan[1])):
        parameters, operations = count_cost(d_model, heads, head_size, length)
        rows.append([name, parameters, operations, parameters / full])
    return Table(
        [
            LocalizedText("heads × size", "헤드 수 × 크기"),
            LocalizedText("parameters", "매개변수"),
            LocalizedText("multiply-adds", "곱셈·덧셈"),
            LocalizedText("times one full head", "온전한 헤드 하나의 몇 배"),
        ],
        rows,
        digits=2,
        title=LocalizedText("What heads cost", "헤드의 비용"),
    )


def count_cost(d_model: int, num_heads: int, size: int, length: int) -> tuple[int, int]:
    """Count the parameters of an attention, and its multiply-adds over a sentence."""
    with torch.device("meta"):  # shapes without numbers
        attention = MultiHeadAttention(d_model, num_heads, d_k=size, d_v=size, bias=False)
    parameters = sum(weight.numel() for weight in attention.parameters())
    compared = length * length * attention.key.out_features  # every query with every key
    weighed = length * length * attention.value.out_features
    return parameters, length * parameters + compared + weighed


def _tell_example(sharpness: float) -> list[Block]:
    one, two = (look(make(sharpness)) for make in (make_one_head, make_two_heads))
    return [
        Paragraph(
            LocalizedText(
                f"“{SENTENCE}.” What is “it”? And how is it? Here are two heads for these two "
                "questions. **They are constructed**: the words have four numbers, the matrices "
                "are set by hand, and nothing was learnt. Both ask only from “it”: the "
                "first for a being, the second for a state.",
                f"“{SENTENCE}.” 여기서 “it”은 무엇이고, 어떤 상태일까요? 두 물음에 헤드를 하나씩 "
                "두었습니다. **이 예는 일부러 만든 것입니다.** 단어는 숫자 네 개이고, 행렬은 손으로 "
                "정했으며, 학습한 것은 없습니다. 두 헤드 모두 “it”에서만 묻습니다. 첫째는 생물을, 둘째는 "
                "상태를 찾습니다.",
            )
        ),
        draw_heads(two[1][:, IT]),
        Paragraph(
            LocalizedText(
                f"From “it”, head 1 gives {two[1][0, IT, ANIMAL]:.3f} to “animal” and head 2 "
                f"{two[1][1, IT, TIRED]:.3f} to “tired”. One full head that asks both questions "
                f"has to share: {one[1][0, IT, ANIMAL]:.3f} and {one[1][0, IT, TIRED]:.3f}, never "
                "more than a half each, however sharp the question.",
                f"“it”에서 헤드 1은 “animal”에 {two[1][0, IT, ANIMAL]:.3f}, 헤드 2는 “tired”에 "
                f"{two[1][1, IT, TIRED]:.3f}의 비율을 줍니다. 온전한 헤드 하나가 두 가지를 다 물으면 "
                f"{one[1][0, IT, ANIMAL]:.3f}, {one[1][0, IT, TIRED]:.3f}처럼 나누어야 합니다. 아무리 "
                "뚜렷하게 물어도 절반을 넘지 못합니다.",
            )
        ),
        Table(
            [
                LocalizedText("numbers of “it”", "“it”의 숫자"),
                LocalizedText("before", "어텐션 전"),
                LocalizedText("one head", "헤드 하나"),
                LocalizedText("two heads", "헤드 둘"),
            ],
            [
                [name, *(float(row[IT, place]) for row in (read_sentence(), one[0], two[0]))]
                for place, name in enumerate(
                    (
                        LocalizedText("a pronoun", "대명사"),
                        LocalizedText("a being", "생물"),
                        LocalizedText("a place", "장소"),
                        LocalizedText("a state: tired", "상태: 지침"),
                    )
                )
            ],
            title=LocalizedText("What “it” knows after W_O", "W_O를 지난 뒤 “it”이 아는 것"),
        ),
        Note(
            LocalizedText(
                "In a trained model nobody tells a head what to ask. Some do look from a pronoun "
                "to its noun, many do things that have no name.",
                "학습한 모델에서는 누구도 헤드에게 무엇을 물으라고 정해 주지 않습니다. 대명사에서 그것이 "
                "가리키는 명사를 보는 헤드도 있지만, 이름 붙이기 어려운 일을 하는 헤드가 많습니다.",
            )
        ),
    ]


def draw_heads(weights: Tensor) -> Steps:
    """Show the shares of one word, (H, S): all heads at once, then one by one."""
    names = [f"h{place}" for place in range(1, len(weights) + 1)]
    together = Matrix(
        LocalizedText("shares", "비율"), weights.T.tolist(), rows=WORDS, columns=names, shade=True
    )
    alone = [
        Frame(
            LocalizedText(f"head {place}", f"헤드 {place}"),
            [
                Chart(
                    "bars",
                    LocalizedText(
                        f"Head {place} looks from “it”", f"“it”에서 보는 곳: 헤드 {place}"
                    ),
                    WORDS,
                    [Series(LocalizedText("share", "비율"), own.tolist())],
                    y_label=LocalizedText("share", "비율"),
                )
            ],
        )
        for place, own in enumerate(weights, 1)
    ]
    return Steps(
        LocalizedText("Where “it” looks", "“it”이 보는 곳"),
        [Frame(LocalizedText("all heads at once", "모든 헤드를 한꺼번에"), [together]), *alone],
    )


def _compare_parameters() -> str:
    one, eight = (count_cost(512, heads, 512 // heads, 11)[0] for heads in (1, 8))
    return "same" if one == eight else "more" if eight > one else "less"


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show the heads of the learner's own model."""
    model, kind = translator.model, {}
    blocks: list[Block] = [
        Note(
            LocalizedText(
                "This model is no Transformer: its attention, if it has one, has a single head.",
                "이 모델은 트랜스포머가 아닙니다. 어텐션이 있더라도 헤드는 하나뿐입니다.",
            )
        )
    ]
    if isinstance(model, Transformer):
        kind = {"kind": "encoder_self"}
        blocks = [
            Paragraph(
                LocalizedText(
                    f"The heads of your own model, which nobody set by hand, for “{text}”: all at "
                    "once, then two of them, then one, then what W_O makes of them.",
                    f"이번에는 여러분의 모델이 스스로 배운 헤드를 “{text}”에서 봅니다. 모든 헤드, 그중 둘, "
                    "하나, 그리고 W_O가 이들을 합치는 모습입니다.",
                )
            ),
            _count_heads(model),
        ]
    return [
        *blocks,
        ModelPlot("all_heads", LocalizedText("all heads", "모든 헤드"), {**kind}),
        ModelPlot("two_heads", LocalizedText("two heads, one word", "한 단어, 두 헤드"), {**kind}),
        ModelPlot("head_lines", LocalizedText("one head's lines", "헤드 하나의 선"), {**kind}),
        ModelPlot("concatenated_heads", LocalizedText("heads times W_O", "헤드와 W_O의 곱")),
    ]


def _count_heads(model: Transformer) -> Table:
    names = {
        "encoder_self": LocalizedText("encoder self-attention", "인코더 셀프 어텐션"),
        "decoder_self": LocalizedText("decoder self-attention", "디코더 셀프 어텐션"),
        "cross": LocalizedText("encoder-decoder attention", "인코더-디코더 어텐션"),
    }
    rows: Rows = []
    for kind in KINDS:
        attentions = get_attentions(model, kind)
        first = attentions[0]
        size = first.query.out_features // first.num_heads
        total = sum(weight.numel() for own in attentions for weight in own.parameters())
        rows.append([names[kind], len(attentions), first.num_heads, size, total])
    return Table(
        [
            LocalizedText("attention", "어텐션"),
            LocalizedText("layers", "층"),
            LocalizedText("heads in each", "층마다 헤드"),
            LocalizedText("size of a head", "헤드의 크기"),
            LocalizedText("parameters", "매개변수"),
        ],
        rows,
    )


LESSON = Lesson(
    number=6,
    title=LocalizedText("Many heads", "여러 개의 헤드"),
    summary=LocalizedText(
        "Why attention is split into heads, how they are put together, and why they cost no more than one.",
        "어텐션을 왜 여러 헤드로 나누는지, 어떻게 다시 합치는지, 왜 비용이 늘지 않는지 봅니다.",
    ),
    paper="3.2.2",
    code=(CodeReference("attendo.model.attention", "MultiHeadAttention"),),
    inputs=(
        Choice(
            name="d_model",
            label=LocalizedText("d_model, the size of a word", "d_model, 단어의 크기"),
            default="512",
            choices=tuple((size, size) for size in ("64", "128", "256", "512", "1024")),
        ),
        Choice(
            name="num_heads",
            label=LocalizedText("number of heads", "헤드의 수"),
            default="8",
            choices=tuple((count, count) for count in ("1", "2", "4", "8", "16")),
        ),
        Number(
            name="length",
            label=LocalizedText("words of the sentence", "문장의 단어 수"),
            default=len(WORDS),
            low=1,
            high=256,
        ),
        Number(
            name="sharpness",
            label=LocalizedText("how sharply “it” asks", "“it”이 얼마나 뚜렷하게 묻는지"),
            default=SHARPNESS,
            low=0.0,
            high=40.0,
            step=0.5,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "A model has d_model = 768 and 12 heads. How many numbers has a query of one head?",
                "d_model = 768이고 헤드가 12개인 모델에서, 헤드 하나의 쿼리는 숫자 몇 개인가요?",
            ),
            lambda: float(split_heads_evenly(768, 12)),
            LocalizedText(
                "The heads share d_model evenly.", "헤드들은 d_model을 똑같이 나누어 가집니다."
            ),
        ),
        Question(
            LocalizedText(
                "You replace one head of 512 by eight heads of 64. The number of parameters …",
                "크기 512인 헤드 하나를 크기 64인 헤드 여덟 개로 바꾸면 매개변수의 수는 …",
            ),
            _compare_parameters,
            LocalizedText(
                "The eight small matrices of a kind, side by side, are as large as the one.",
                "작은 행렬 여덟 개를 나란히 놓으면 큰 행렬 하나와 크기가 같습니다.",
            ),
            choices=(
                ("more", LocalizedText("grows", "늘어난다")),
                ("same", LocalizedText("stays the same", "그대로다")),
                ("less", LocalizedText("shrinks", "줄어든다")),
            ),
        ),
        Question(
            LocalizedText(
                "One head asks for “animal” and “tired” alike. Make its question ever sharper: "
                "which share of “it” goes to “animal” in the end?",
                "헤드 하나가 “animal”과 “tired”를 똑같이 찾습니다. 물음을 한없이 뚜렷하게 하면 “it”이 "
                "“animal”에 주는 비율은 결국 얼마가 되나요?",
            ),
            lambda: float(look(make_one_head(1000.0))[1][0, IT, ANIMAL]),
            LocalizedText(
                "Equal scores get equal shares, and a row adds up to 1.",
                "점수가 같으면 비율도 같고, 한 행의 합은 1입니다.",
            ),
            tolerance=0.005,
        ),
    ),
    own_model_blocks=on_your_model,
)
