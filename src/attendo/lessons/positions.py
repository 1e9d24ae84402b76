"""Lesson 3: where is each word. What attention cannot see, and the waves that tell it."""

from __future__ import annotations

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
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.word_order import (
    D_MODEL,
    compare_orders,
    count_layer,
    count_mixing,
    measure_change,
    position_curves,
)
from attendo.model.positional_encoding import SinusoidalPositions, sinusoidal
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.model.positional_encoding import Layout
    from attendo.translator import Translator

PRINCE = "왕자 는 공주 를 구했다"
PRINCESS = "공주 는 왕자 를 구했다"
EXAM = "Although I did not get 95 in last TOEFL , I could get in the Ph.D program"
OTHER_EXAM = "Although I did get 95 in last TOEFL , I could not get in the Ph.D program"
TOY_SIZE, TOY_POSITIONS = 4, 6
FAR = 5000
"""A position that no training sentence reaches."""
SHOWN = 8
SAME = 1e-6
"""Two vectors nearer than this are the same but for rounding."""


def tell(position: int, d_model: int, layout: Layout, kind: str) -> list[Block]:
    """Tell what is missing, of the waves and their virtues, and what adding saves."""
    return [
        *_tell_missing(kind),
        *_tell_waves(position, d_model, layout),
        *_tell_virtues(d_model),
        *_tell_costs(),
    ]


def _tell_missing(kind: str) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "Attention compares every word with every word, all at once. Nothing in it says "
                "which came first: to it a sentence is a **set**. So a Transformer without "
                "positions cannot tell “the prince saved the princess” from “the princess saved "
                "the prince”.",
                "어텐션(attention)은 모든 단어를 모든 단어와 한꺼번에 비교합니다. 그 안에는 무엇이 먼저인지 말해 "
                "주는 것이 없습니다. 어텐션에게 문장은 **집합**입니다. 그래서 위치를 모르는 트랜스포머는 “왕자는 "
                "공주를 구했다”와 “공주는 왕자를 구했다”를 가려내지 못합니다.",
            )
        ),
        _tabulate_change(PRINCE, PRINCESS, kind),
        Paragraph(
            LocalizedText(
                "This was computed just now with a small encoder of two layers, words cut from "
                "their particles. Without positions each word gets the **same vector** in both "
                "sentences; what is left is rounding. With positions all change: even 구했다, "
                "which has not moved, sees other words at other places.",
                "방금 층이 두 개인 작은 인코더로, 단어와 조사를 나누어 계산했습니다. 위치가 없으면 두 문장에서 단어마다 "
                "**같은 벡터**가 나옵니다. 남은 차이는 반올림 오차입니다. 위치가 있으면 모두 달라집니다. 자리를 옮기지 "
                "않은 ‘구했다’도 다른 자리에 있는 다른 단어를 보기 때문입니다.",
            )
        ),
        Paragraph(
            LocalizedText(
                f"The same with one small word. “{_write(EXAM)}” and “{_write(OTHER_EXAM)}” hold "
                "the same words, and mean the opposite.",
                f"작은 단어 하나도 마찬가지입니다. “{_write(EXAM)}”과 “{_write(OTHER_EXAM)}”은 같은 단어로 "
                "이루어졌지만 뜻은 반대입니다. 한쪽은 점수를 못 받고도 합격했고, 다른 쪽은 점수를 받고도 "
                "떨어졌습니다.",
            )
        ),
        _tabulate_change(EXAM, OTHER_EXAM, kind),
    ]


def _write(sentence: str) -> str:
    """Give a cut sentence as it is written."""
    return sentence.replace(" ,", ",")


def _tabulate_change(first: str, second: str, kind: str) -> Table:
    without, given = (compare_orders(first, second, chosen) for chosen in ("none", kind))
    return Table(
        [
            LocalizedText("word", "단어"),
            LocalizedText("change without positions", "위치가 없을 때의 변화"),
            LocalizedText("with positions", "위치가 있을 때"),
        ],
        [
            [word, near, far]
            for (word, near), (_, far) in zip(without, given, strict=True)
            if word != ","
        ],
    )


def _tell_waves(position: int, d_model: int, layout: Layout) -> list[Block]:
    size = min(d_model, SHOWN)
    vector = sinusoidal(1, d_model, layout=layout, offset=position, dtype=torch.float64)
    return [
        Paragraph(
            LocalizedText(
                "The remedy is a vector for every position, added to the word's embedding: the "
                "**positional encoding**. Its numbers are sines and cosines, quick waves first, "
                "slow ones last, like the hands of many clocks. With {size} dimensions:",
                "해결책은 위치마다 벡터를 하나 만들어 단어의 임베딩(embedding)에 더하는 것입니다. 이것이 **위치 "
                "인코딩(positional encoding)**입니다. 숫자는 사인과 코사인이며, 빠른 물결이 앞에, 느린 물결이 뒤에 "
                "옵니다. 바늘이 여럿인 시계와 같습니다. 차원이 {size}개일 때입니다.",
            ).format(size=TOY_SIZE)
        ),
        Formula(
            "PE(pos, 2i) = sin(pos / 10000^(2i/d))     PE(pos, 2i+1) = cos(pos / 10000^(2i/d))"
        ),
        _write_toy("interleaved", LocalizedText("interleaved (paper)", "번갈아 놓기 (논문)")),
        Paragraph(
            LocalizedText(
                "Some programs, tensor2tensor first, put all sines before all cosines. The numbers "
                "are the same in another order, and a network does not care which.",
                "tensor2tensor를 비롯한 몇몇 프로그램은 사인을 모두 앞에, 코사인을 모두 뒤에 둡니다. 숫자는 같고 "
                "순서만 다르며, 신경망에는 어느 쪽이든 상관없습니다.",
            )
        ),
        _write_toy("halves", LocalizedText("halves (tensor2tensor)", "반씩 놓기 (tensor2tensor)")),
        Paragraph(
            LocalizedText(
                f"Position {position} at d_model = {d_model}, the first {size} numbers; move "
                "both and watch:",
                f"d_model = {d_model}일 때 {position}번 위치의 처음 숫자 {size}개입니다. 둘 다 바꿔 보세요.",
            )
        ),
        Matrix(
            f"PE({position})",
            vector[:, :size].tolist(),
            columns=[str(place) for place in range(size)],
            digits=4,
        ),
        position_curves(layout=layout),
    ]


def _write_toy(layout: Layout, title: LocalizedText) -> Matrix:
    columns = ["sin", "cos", "sin", "cos"] if layout == "interleaved" else ["sin"] * 2 + ["cos"] * 2
    table = sinusoidal(TOY_POSITIONS, TOY_SIZE, layout=layout, dtype=torch.float64)
    return Matrix(
        title,
        table.tolist(),
        rows=[str(place) for place in range(TOY_POSITIONS)],
        columns=columns,
        digits=4,
        shade=True,
    )


def _tell_virtues(d_model: int) -> list[Block]:
    table = sinusoidal(500, d_model, dtype=torch.float64)
    gaps = torch.cdist(table, table).fill_diagonal_(torch.inf)
    positions = SinusoidalPositions(d_model)
    quiet, loud = torch.zeros(1, 9, d_model), torch.full((1, 9, d_model), 7.0)
    difference = (positions.table(quiet, 0) - positions.table(loud, 0)).abs().max()
    far = sinusoidal(1, d_model, offset=FAR, dtype=torch.float64)
    rows: list[list[Any]] = [
        [
            LocalizedText(
                "largest absolute number, 500 positions", "위치 500개에서 절댓값이 가장 큰 수"
            ),
            float(table.abs().max()),
            LocalizedText("never leaves −1 … 1", "−1 … 1을 벗어나지 않음"),
        ],
        [
            LocalizedText("one position under other words", "단어가 달라질 때 같은 위치의 차이"),
            float(difference),
            LocalizedText("the same vector", "같은 벡터"),
        ],
        [
            LocalizedText("nearest two of 500 positions", "500개 중 가장 가까운 두 위치의 거리"),
            float(gaps.min()),
            LocalizedText("never the same", "같은 벡터는 없음"),
        ],
        [
            LocalizedText(
                f"largest absolute number at position {FAR:,}",
                f"{FAR:,}번 위치에서 절댓값이 가장 큰 수",
            ),
            float(far.abs().max()),
            LocalizedText("defined for every position", "어느 위치에서나 정해짐"),
        ],
    ]
    dots = {pair: float(table[pair[0]] @ table[pair[1]]) for pair in ((3, 5), (10, 12), (3, 8))}
    return [
        Table(
            [
                LocalizedText("measured", "잰 것"),
                LocalizedText("value", "값"),
                LocalizedText("which means", "뜻"),
            ],
            rows,
            digits=4,
            title=LocalizedText(
                f"what the waves give, d_model = {d_model}", f"물결의 성질, d_model = {d_model}"
            ),
        ),
        Paragraph(
            LocalizedText(
                "And how alike two positions are depends only on how far apart they stand: "
                f"PE(3)·PE(5) = {dots[3, 5]:.4f}, PE(10)·PE(12) = {dots[10, 12]:.4f}, but "
                f"PE(3)·PE(8) = {dots[3, 8]:.4f}. So “two words back” means the same everywhere.",
                "게다가 두 위치가 얼마나 비슷한지는 서로 얼마나 떨어져 있는지로만 정해집니다. "
                f"PE(3)·PE(5) = {dots[3, 5]:.4f}, PE(10)·PE(12) = {dots[10, 12]:.4f}이지만 "
                f"PE(3)·PE(8) = {dots[3, 8]:.4f}입니다. 그래서 “두 단어 앞”은 어디서나 같은 뜻입니다.",
            )
        ),
    ]


def _tell_costs() -> list[Block]:
    rows: list[list[Any]] = [
        [LocalizedText("add (paper)", "더하기 (논문)"), D_MODEL, 0, count_layer(D_MODEL)],
        [
            LocalizedText("put beside, project back", "이어 붙이고 다시 줄이기"),
            D_MODEL,
            count_mixing(D_MODEL),
            count_layer(D_MODEL),
        ],
        [
            LocalizedText("put beside, stay wide", "이어 붙인 채 두기"),
            2 * D_MODEL,
            0,
            count_layer(2 * D_MODEL),
        ],
    ]
    return [
        Paragraph(
            LocalizedText(
                "Why add, and not put the position beside the word? That would keep the two apart, "
                "at a price. Counted for d_model = 512, d_ff = 2048:",
                "왜 단어 옆에 이어 붙이지(concatenate) 않고 더할까요? 이어 붙이면 둘이 섞이지 않지만 값이 비쌉니다. "
                "d_model = 512, d_ff = 2048일 때 세어 보았습니다.",
            )
        ),
        Table(
            [
                LocalizedText("way", "방법"),
                LocalizedText("width", "폭"),
                LocalizedText("parameters for mixing", "섞는 데 드는 매개변수"),
                LocalizedText("of each encoder layer", "인코더 층마다"),
            ],
            rows,
        ),
        Note(
            LocalizedText(
                "Adding costs nothing, and little is lost: in so many dimensions a network can "
                "keep some for words and some for places. Adding is also what mixing would do if "
                "both halves of its matrix were the identity.",
                "더하기는 공짜이고 잃는 것도 적습니다. 차원이 이렇게 많으면 일부는 단어에, 일부는 위치에 쓸 수 있기 "
                "때문입니다. 섞는 행렬의 두 반쪽이 모두 단위행렬이면 바로 더하기가 됩니다.",
            )
        ),
    ]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Draw the positions of the learner's own model, and turn two words of the sentence round."""
    model = translator.model
    if describe_positions(model, 1) is None:
        return [
            Note(
                LocalizedText(
                    "Your model has no vectors for positions: a recurrent one knows the order by "
                    "reading word after word; others were built without.",
                    "여러분의 모델에는 위치 벡터가 없습니다. 순환 신경망은 단어를 차례로 읽어서 순서를 압니다. 위치 "
                    "없이 만든 모델일 수도 있습니다.",
                )
            )
        ]
    blocks: list[Block] = [
        ModelPlot(
            "positions", LocalizedText("the positions of your model", "여러분 모델의 위치 벡터")
        ),
        ModelPlot(
            "position_toy",
            LocalizedText("four dimensions, your words", "4차원으로 본 여러분의 단어"),
        ),
    ]
    if not isinstance(model, Transformer):
        return blocks
    ids = translator.tokenizer.encode_src([text])[0]
    turned = [*ids[1:2], *ids[:1], *ids[2:]]
    with translator.backend.eval_mode():
        device = translator.backend.device
        changes = measure_change(
            model, torch.tensor([ids], device=device), torch.tensor([turned], device=device)
        )
    return [
        *blocks,
        ModelPlot(
            "input_sum", LocalizedText("embedding + position = input", "임베딩 + 위치 = 입력")
        ),
        Paragraph(
            LocalizedText(
                f"“{text}” with its first two pieces turned round: how far each encoding moves.",
                f"“{text}”의 처음 두 조각을 맞바꾸면 조각마다 인코딩이 얼마나 움직이는지 봅니다.",
            )
        ),
        Table(
            [LocalizedText("piece", "조각"), LocalizedText("change", "변화")],
            _pair(translator.tokenizer.src_pieces(ids), changes),
        ),
    ]


def _pair(names: Sequence[str], numbers: Sequence[float]) -> list[list[Any]]:
    return [[name, number] for name, number in zip(names, numbers, strict=True)]


def _wave_at_ten() -> float:
    return float(sinusoidal(1, TOY_SIZE, offset=10)[0, 0])


def _num_changed() -> float:
    changes = compare_orders(PRINCE, PRINCESS, "sinusoidal")
    return float(sum(change > SAME for _, change in changes))


def _same_dot() -> str:
    table = sinusoidal(20, D_MODEL, dtype=torch.float64)
    pairs = {"10,12": (10, 12), "3,8": (3, 8), "6,10": (6, 10)}
    wanted = table[3] @ table[5]
    return min(pairs, key=lambda name: abs(table[pairs[name][0]] @ table[pairs[name][1]] - wanted))


LESSON = Lesson(
    number=3,
    title=LocalizedText("Where is each word", "단어는 어디에 있나"),
    summary=LocalizedText(
        "Why attention needs to be told the order of words, and how sines and cosines tell it.",
        "어텐션에 단어의 순서를 왜 알려 주어야 하는지, 사인과 코사인이 그것을 어떻게 알려 주는지 봅니다.",
    ),
    paper="3.5",
    code=(
        CodeReference("attendo.model.positional_encoding", "sinusoidal"),
        CodeReference("attendo.model.positional_encoding", "ConcatenatedPositions"),
    ),
    inputs=(
        Number(
            name="position",
            label=LocalizedText("position", "위치"),
            default=3,
            low=0,
            high=10_000,
        ),
        Number(
            name="d_model",
            label=LocalizedText("d_model, numbers a position", "d_model, 위치마다 숫자 몇 개"),
            default=TOY_SIZE,
            low=2,
            high=512,
        ),
        Choice(
            name="layout",
            label=LocalizedText("order of the waves", "물결의 순서"),
            default="interleaved",
            choices=(
                ("interleaved", LocalizedText("sine, cosine, sine, cosine", "사인·코사인 번갈아")),
                ("halves", LocalizedText("all sines, then all cosines", "사인 먼저, 코사인 나중")),
            ),
        ),
        Choice(
            name="kind",
            label=LocalizedText("positions of the small encoder", "작은 인코더의 위치"),
            default="sinusoidal",
            choices=(
                ("sinusoidal", LocalizedText("waves, added", "물결을 더함")),
                ("learned", LocalizedText("learnt vectors, added", "학습되는 벡터를 더함")),
                ("concatenated", LocalizedText("waves, put beside", "물결을 이어 붙임")),
            ),
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "With 4 dimensions, what is the first number of position 10?",
                "차원이 4개일 때 10번 위치의 첫 번째 숫자는 얼마인가요?",
            ),
            _wave_at_ten,
            LocalizedText(
                "i = 0, so it is sin(10 / 10000⁰) = sin(10), in radians. Move the position to see.",
                "i = 0이므로 sin(10 / 10000⁰) = sin(10)이고, 각도는 라디안입니다. 위치를 바꿔 확인해 보세요.",
            ),
            tolerance=0.005,
        ),
        Question(
            LocalizedText(
                "With positions, how many of the five pieces of 왕자 는 공주 를 구했다 are encoded "
                "differently after prince and princess change places?",
                "위치가 있을 때, 왕자와 공주가 자리를 바꾸면 ‘왕자 는 공주 를 구했다’의 다섯 조각 중 몇 개의 "
                "인코딩이 달라지나요?",
            ),
            _num_changed,
            LocalizedText(
                "Two have moved; the others see those two at other places.",
                "두 조각은 자리를 옮겼고, 나머지는 그 두 조각을 다른 자리에서 보게 됩니다.",
            ),
        ),
        Question(
            LocalizedText(
                "Which two positions are as alike as 3 and 5 are?",
                "위치 3과 5만큼 서로 비슷한 두 위치는 어느 것인가요?",
            ),
            _same_dot,
            LocalizedText(
                "Only the distance counts, and it is 2.",
                "거리만 중요하고, 그 거리는 2입니다.",
            ),
            choices=(
                ("10,12", LocalizedText("10 and 12", "10과 12")),
                ("3,8", LocalizedText("3 and 8", "3과 8")),
                ("6,10", LocalizedText("6 and 10", "6과 10")),
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
