"""Lesson 2: words to vectors. Ids, one-hot rows, a table that is looked up, and neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.inspection.embeddings import nearest_neighbors
from attendo.lessons.blocks import (
    Block,
    Formula,
    LocalizedText,
    Matrix,
    Note,
    Paragraph,
    Table,
)
from attendo.lessons.inputs import Choice, Number, Text
from attendo.lessons.learnt_table import (
    LEARNT_SIZE,
    NUM_SENTENCES,
    NUM_STEPS,
    SPECIAL,
    learn_table,
    make_embedding,
    mean_length,
    size_chart,
)
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional_encoding import sinusoidal
from attendo.text.tokenizer import UNK_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.translator import Translator

VOCABULARY = [
    *SPECIAL,
    "나는",
    "너는",
    "학생",
    "선생님",
    "이다",
    "i",
    "am",
    "a",
    "student",
    "teacher",
]
SENTENCE = "나는 학생 이다"
D_MODEL = 4
SHOWN = 8
"""Dimensions that are shown at most."""
PROBES = ("monday", "happy", "three", "doctor", "dog", "he", "went")


def look_up(sentence: str) -> list[int]:
    """Give the id of each word; a word that the vocabulary lacks is <unk>.

    >>> look_up("나는 의사 이다")
    [4, 1, 8]
    """
    places = {word: place for place, word in enumerate(VOCABULARY)}
    return [places.get(word.lower(), UNK_ID) for word in sentence.split()]


def tell(sentence: str, d_model: int, word: str) -> list[Block]:
    """Tell how a word is numbered, looked up, scaled and compared."""
    ids = look_up(sentence)
    return [
        *_tell_ids(sentence, ids),
        *_tell_lookup(ids, make_embedding(d_model, len(VOCABULARY))),
        *_tell_scale(d_model),
        *_tell_neighbours(word),
    ]


def _tell_ids(sentence: str, ids: list[int]) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "A network computes with numbers, so every word first gets one: its place in the "
                "**vocabulary**, its **id**. The vocabulary here has {size} entries; four of them "
                "are signs (padding, unknown, start, end).",
                "신경망은 숫자로 계산하므로 먼저 단어마다 번호를 붙입니다. **어휘(vocabulary)** 안의 자리, 곧 "
                "**id**입니다. 여기 어휘에는 {size}개가 있고, 그중 넷은 기호입니다(채움, 모르는 단어, 시작, 끝).",
            ).format(size=len(VOCABULARY))
        ),
        Table(
            [LocalizedText("word", "단어"), "id", LocalizedText("entry", "어휘의 항목")],
            [
                [said, number, VOCABULARY[number]]
                for said, number in zip(sentence.split(), ids, strict=True)
            ],
        ),
        Paragraph(
            LocalizedText(
                "An id is only a name: “학생” is not more than “나는”. Written fairly, it is a "
                "**one-hot** row: 1 at its place, 0 elsewhere. But then any two different words "
                "are equally far apart, and their dot product is 0.",
                "id는 이름일 뿐입니다. ‘학생’이 ‘나는’보다 크다는 뜻이 아닙니다. 공평하게 쓰면 **원-핫(one-hot)** "
                "행이 됩니다. 자기 자리만 1이고 나머지는 0입니다. 그런데 이렇게 하면 서로 다른 두 단어는 모두 똑같이 "
                "멀고, 내적은 언제나 0입니다.",
            )
        ),
        Matrix(
            "one-hot",
            F.one_hot(torch.tensor(ids), len(VOCABULARY)).tolist(),
            rows=[str(number) for number in ids],
            columns=[str(place) if place < 10 else "·" for place in range(len(VOCABULARY))],
        ),
    ]


def _tell_lookup(ids: list[int], embedding: ScaledEmbedding) -> list[Block]:
    table = embedding.weight
    product = F.one_hot(torch.tensor(ids), len(table)).float() @ table
    shown = table.size(1) if table.size(1) <= SHOWN else SHOWN
    labels = [str(number) for number in ids]
    cut = LocalizedText(
        "" if shown == table.size(1) else f" (the first {shown} of {table.size(1)} numbers)",
        "" if shown == table.size(1) else f" (숫자 {table.size(1)}개 중 앞의 {shown}개)",
    )
    return [
        Paragraph(
            LocalizedText(
                "So each word gets a vector that is learnt: a row of the table E, with d_model "
                "numbers a row. One-hot times E picks exactly that row, and looking the row up "
                f"does the same without multiplying: the **embedding**{cut.en}.",
                "그래서 단어마다 학습되는 벡터를 줍니다. 표 E의 한 행이며, 행마다 숫자가 d_model개입니다. 원-핫에 "
                "E를 곱하면 바로 그 행이 나오고, 곱하지 않고 그 행을 찾아 읽어도 같습니다. 이것이 "
                f"**임베딩(embedding)**입니다{cut.ko}.",
            )
        ),
        Matrix(
            "E",
            table[:, :shown].tolist(),
            rows=[str(place) for place in range(len(table))],
        ),
        Matrix("one-hot · E", product[:, :shown].tolist(), rows=labels),
        Paragraph(
            LocalizedText(
                "The paper multiplies what it has looked up by √d_model, here {root:.4g}:",
                "논문은 찾아 읽은 벡터에 √d_model을 곱합니다. 여기서는 {root:.4g}입니다.",
            ).format(root=embedding.scale)
        ),
        Matrix("E[id] · √d_model", embedding(torch.tensor(ids))[:, :shown].tolist(), rows=labels),
    ]


def _tell_scale(d_model: int) -> list[Block]:
    embedding = make_embedding(d_model, 256)
    plain, scaled = mean_length(embedding.weight), mean_length(embedding(torch.arange(256)))
    place = mean_length(sinusoidal(20, d_model))
    return [
        Paragraph(
            LocalizedText(
                "Why? The numbers of a new table are small, so that a whole row has about length "
                "1, however many there are. Next (lesson 3) a position is added, whose length is "
                "√(d_model / 2). At d_model = {d} the embedding is {plain:.2f} long, the position "
                "{place:.2f}, the scaled embedding {scaled:.2f}. Unscaled, the place of a word "
                "would drown the word itself, the more so the larger d_model is.",
                "왜 곱할까요? 새 표의 숫자는 작아서, 숫자가 몇 개든 한 행의 길이가 1쯤 됩니다. 그런데 다음(3과)에 "
                "더할 위치 벡터의 길이는 √(d_model / 2)입니다. d_model = {d}일 때 임베딩의 길이는 {plain:.2f}, 위치 "
                "벡터의 길이는 {place:.2f}, 곱한 뒤 임베딩의 길이는 {scaled:.2f}입니다. 곱하지 않고 더하면 단어의 "
                "위치가 단어 자체를 덮어 버리고, d_model이 클수록 더 심해집니다.",
            ).format(d=d_model, plain=plain, place=place, scaled=scaled)
        ),
        size_chart(),
    ]


def _tell_neighbours(word: str) -> list[Block]:
    learnt = learn_table()
    rows: list[list[Any]] = []
    for (old, far), (new, near) in zip(
        learnt.neighbours(word, is_learnt=False), learnt.neighbours(word), strict=True
    ):
        rows.append([old, far, new, near])
    return [
        Paragraph(
            LocalizedText(
                "At first the rows are chance. Learning moves them: words that are used alike come "
                "to lie near each other, because the same guesses are right for them. Just now, "
                f"{NUM_STEPS} steps on {NUM_SENTENCES:,} English sentences of Attendo's own corpus "
                f"taught {len(learnt.names)} rows of {LEARNT_SIZE} numbers to guess what stands "
                f"beside a word. The nearest to **{word}**, by the cosine of the angle:",
                "처음에 행은 우연히 정해집니다. 학습하면 행이 움직여서, 비슷하게 쓰이는 단어끼리 가까워집니다. 비슷한 "
                "단어에는 같은 답이 맞기 때문입니다. 방금 Attendo에 들어 있는 말뭉치의 영어 문장 "
                f"{NUM_SENTENCES:,}개로 {NUM_STEPS}단계 학습하여, 숫자 {LEARNT_SIZE}개짜리 행 {len(learnt.names)}개가 "
                f"옆에 올 단어를 맞히도록 배웠습니다. 코사인으로 잰 **{word}**의 이웃입니다.",
            )
        ),
        Formula("cos(a, b) = a · b / (|a| · |b|)"),
        Table(
            [
                LocalizedText("before", "학습 전"),
                "cos",
                LocalizedText("after learning", "학습 후"),
                "cos",
            ],
            rows,
        ),
        Note(
            LocalizedText(
                "Nobody told the network what a weekday or a feeling is. It only saw which words "
                "stand beside which. In a Transformer the same table is learnt by translating.",
                "요일이나 감정이 무엇인지 아무도 알려 주지 않았습니다. 어떤 단어 옆에 어떤 단어가 오는지만 "
                "보았습니다. 트랜스포머에서는 이 표를 번역하면서 배웁니다.",
            )
        ),
    ]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Give ids, lengths and neighbours of the learner's own words."""
    embedding = getattr(translator.model, "src_embedding", None)
    if embedding is None:
        return [
            Note(
                LocalizedText(
                    "This is several models in one: open one of them to see its embeddings.",
                    "여러 모델을 하나로 묶은 것입니다. 임베딩을 보려면 그중 하나를 여세요.",
                )
            )
        ]
    ids = translator.tokenizer.encode_src([text])[0]
    table: Tensor = embedding.weight.detach().float().cpu()
    scale = float(getattr(embedding, "scale", 1.0))
    found = nearest_neighbors(table, ids, count=3)
    pieces = translator.tokenizer.src_pieces
    rows: list[list[Any]] = [
        [
            pieces([number])[0],
            number,
            float(table[number].norm()) * scale,
            ", ".join(f"{pieces([other])[0]} {cosine:.2f}" for other, cosine in near),
        ]
        for number, near in zip(ids, found, strict=True)
    ]
    size, width = table.shape
    return [
        Paragraph(
            LocalizedText(
                f"“{text}” in your model: {size:,} pieces, {width} numbers each, multiplied by "
                f"{scale:.4g}. Signs such as the end have no neighbours.",
                f"여러분의 모델에서 본 “{text}”입니다. 조각은 {size:,}개, 조각마다 숫자가 {width}개이고, "
                f"곱하는 수는 {scale:.4g}입니다. 끝 기호 같은 기호에는 이웃이 없습니다.",
            )
        ),
        Table(
            [
                LocalizedText("piece", "조각"),
                "id",
                LocalizedText("length", "길이"),
                LocalizedText("nearest, with cosines", "가까운 조각과 코사인"),
            ],
            rows,
            digits=2,
        ),
    ]


def _dot_of_one_hots() -> float:
    one, other = F.one_hot(torch.tensor([6, 7]), len(VOCABULARY)).float()
    return float(one @ other)


def _scale_of_256() -> float:
    return ScaledEmbedding(1, 256).scale


def _what_one_hot_picks() -> str:
    table = make_embedding(
        len(VOCABULARY), len(VOCABULARY)
    ).weight  # as wide as high, so that a column fits too
    picked = F.one_hot(torch.tensor(6), len(table)).float() @ table
    known = {"row": table[6], "column": table[:, 6], "sum": table.sum(dim=0)}
    return next(name for name, vector in known.items() if torch.equal(vector, picked))


LESSON = Lesson(
    number=2,
    title=LocalizedText("Words to vectors", "단어를 벡터로"),
    summary=LocalizedText(
        "How a word becomes an id, a row of a table, and a neighbour of words like it.",
        "단어가 번호가 되고, 표의 한 행이 되고, 비슷한 단어의 이웃이 되는 과정을 봅니다.",
    ),
    paper="3.4",
    code=(
        CodeReference("attendo.model.embeddings", "ScaledEmbedding"),
        CodeReference("attendo.inspection.embeddings", "nearest_neighbors"),
    ),
    inputs=(
        Text(
            name="sentence",
            label=LocalizedText("words of the vocabulary", "어휘에 있는 단어들"),
            default=SENTENCE,
            most=60,
        ),
        Number(
            name="d_model",
            label=LocalizedText("d_model, numbers a word", "d_model, 단어마다 숫자 몇 개"),
            default=D_MODEL,
            low=2,
            high=512,
        ),
        Choice(
            name="word",
            label=LocalizedText("whose neighbours to show", "이웃을 볼 단어"),
            default=PROBES[0],
            choices=tuple((word, word) for word in PROBES),
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "What is the dot product of the one-hot rows of “학생” and “선생님”?",
                "‘학생’과 ‘선생님’의 원-핫 행을 내적하면 얼마인가요?",
            ),
            _dot_of_one_hots,
            LocalizedText(
                "Their ones stand at different places: one-hot rows know nothing of likeness.",
                "1이 서로 다른 자리에 있습니다. 원-핫 행은 비슷함을 전혀 모릅니다.",
            ),
        ),
        Question(
            LocalizedText(
                "What does the one-hot row of id 6, times E, give?",
                "id가 6인 원-핫 행에 E를 곱하면 무엇이 나오나요?",
            ),
            _what_one_hot_picks,
            LocalizedText(
                "Every row of E is multiplied by 0 but that one: so it need only be looked up.",
                "E의 다른 행에는 모두 0이 곱해집니다. 그래서 그 행을 찾아 읽기만 하면 됩니다.",
            ),
            choices=(
                ("row", LocalizedText("row 6 of E", "E의 6번 행")),
                ("column", LocalizedText("column 6 of E", "E의 6번 열")),
                ("sum", LocalizedText("the sum of all rows", "모든 행의 합")),
            ),
        ),
        Question(
            LocalizedText(
                "With d_model = 256, by which number is every embedding multiplied?",
                "d_model = 256이면 임베딩에 얼마를 곱하나요?",
            ),
            _scale_of_256,
            LocalizedText("By √256.", "√256을 곱합니다."),
        ),
    ),
    own_model_blocks=on_your_model,
)
