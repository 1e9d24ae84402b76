"""Lesson 1: from the RNN to attention. A state that forgets, and a way round it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
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
from attendo.lessons.inputs import Choice, Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.recurrent_memory import (
    LENGTH,
    NAMES,
    SAID,
    WIDTH,
    Step,
    bleu_by_length,
    decode,
    load_findings,
    measure_memories,
    measure_reading,
    memory_curve,
)
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from attendo.architectures.rnn_layers import Cell
    from attendo.translator import Translator

    Rows = list[list[float]]

ANNOTATIONS: Rows = [[1, 0], [0, 1], [1, 1]]
STATE: Rows = [[-1, 1]]
W: Rows = [[1, 0], [0, 1]]
U: Rows = [[2, -1], [-1, 2]]
V: Rows = [[2, 2]]
KEEP = 0.5
SOURCE = ["h₁", "h₂", "h₃"]


def tell(
    annotations: Rows,
    state: Rows,
    w: Rows,
    u: Rows,
    v: Rows,
    keep: float,
    cell: Cell,
    length: int,
) -> list[Block]:
    """Tell of the chain, the bottleneck, the way round it, and what was measured."""
    return [
        *_tell_chain(cell, length),
        *_tell_attention(decode(annotations, state, w, u, v, keep), keep),
        *_tell_findings(),
    ]


def _tell_chain(cell: Cell, length: int) -> list[Block]:
    sizes = measure_memories(cell, length).last_state
    return [
        Paragraph(
            LocalizedText(
                "Before 2017 a sentence was read by a **recurrent network (RNN)**: one word after "
                "the other, each time making a new state from the state before and the word.",
                "2017년 이전에는 **순환 신경망(RNN)**이 문장을 읽었습니다. 단어를 하나씩 차례로 읽으면서, 바로 "
                "앞의 상태와 지금 단어로 새 상태를 만듭니다.",
            )
        ),
        Formula("h_j = f(h_{j-1}, x_j)"),
        Paragraph(
            LocalizedText(
                "The last state was all that the translating half got to see: **one vector** for "
                "five words or for fifty. And a state forgets. Below, a new network of {width} "
                "numbers reads {length} words; how much the last state would change if a word "
                "changed a little is that word's **gradient**. That of the first word is "
                "{ratio:.2g} times that of the last.",
                "번역하는 쪽이 볼 수 있는 것은 마지막 상태, 곧 **벡터 하나**뿐이었습니다. 다섯 단어든 쉰 "
                "단어든 마찬가지입니다. 게다가 상태는 잊습니다. 아래에서는 숫자 {width}개짜리 새 신경망이 "
                "단어 {length}개를 읽습니다. 어떤 단어가 조금 바뀔 때 마지막 상태가 얼마나 바뀌는지를 그 단어의 "
                "**기울기(gradient)**라고 합니다. 첫 단어의 기울기는 마지막 단어의 {ratio:.2g}배입니다.",
            ).format(width=WIDTH, length=length, ratio=sizes[0] / sizes[-1])
        ),
        memory_curve(cell, length),
        Paragraph(
            LocalizedText(
                "The second line is the cure. If the decoder may look at **all** states, not only "
                "the last, the way from any word is short and none fades for being far "
                "away. This network has learnt nothing yet, so it looks at all about equally.",
                "두 번째 선이 해결책입니다. 디코더가 마지막 상태만이 아니라 **모든** 상태를 볼 수 있으면 어느 "
                "단어에서든 길이 짧고, 멀다고 희미해지는 단어가 없습니다. 이 신경망은 아직 아무것도 배우지 않아서 "
                "모두를 거의 고르게 봅니다.",
            )
        ),
    ]


def _tell_attention(steps: list[Step], keep: float) -> list[Block]:
    first = steps[0]
    return [
        Paragraph(
            LocalizedText(
                "That is **attention** (Bahdanau et al. 2015). For every word that it says, the "
                "decoder asks with its state s how well each annotation h_j fits. A small network "
                "gives the score; you can change its matrices and everything else here.",
                "이것이 **어텐션(attention)**입니다(Bahdanau 등, 2015). 디코더는 단어를 하나 말할 때마다 "
                "자신의 상태 s로, 원문의 각 상태 h_j가 지금 얼마나 맞는지 묻습니다. 점수는 작은 신경망이 "
                "매깁니다. 그 행렬을 비롯해 여기 있는 값을 모두 바꿔 볼 수 있습니다.",
            )
        ),
        Formula("e_ij = v · tanh(W · s_{i-1} + U · h_j)"),
        Matrix("e₁", [first.scores.tolist()], columns=SOURCE),
        Formula("α_ij = exp(e_ij) / ∑ₖ exp(e_ik)"),
        Matrix("α₁", [first.weights.tolist()], columns=SOURCE, digits=4, shade=True),
        Paragraph(
            LocalizedText(
                "The **softmax** has made shares of the scores: they sum to 1. The context is the "
                "sum of all annotations, each by its share: {a:.4f} of h₁, {b:.4f} of h₂ and "
                "{c:.4f} of h₃.",
                "**소프트맥스(softmax)**가 점수를 합이 1인 비율로 바꾸었습니다. 문맥 벡터는 모든 h를 비율만큼 "
                "더한 것으로, h₁의 {a:.4f}, h₂의 {b:.4f}, h₃의 {c:.4f}를 합한 벡터입니다.",
            ).format(**dict(zip("abc", first.weights.tolist(), strict=True)))
        ),
        Formula("c_i = ∑_j α_ij · h_j"),
        Matrix("c₁", [first.context.tolist()], digits=4),
        Formula("s_i = f(s_{i-1}, y_{i-1}, c_i)"),
        Paragraph(
            LocalizedText(
                "f makes the next state of the state before, the word just said and the context. "
                "Here f is a GRU whose gates stand still: it keeps {keep:.0%} of the old state "
                "and takes the rest from tanh(y + c). A new state asks anew: step on.",
                "f는 앞의 상태, 방금 말한 단어, 문맥으로 다음 상태를 만듭니다. 여기서 f는 게이트를 고정해 둔 "
                "GRU로, 옛 상태의 {keep:.0%}를 남기고 나머지는 tanh(y + c)에서 가져옵니다. 상태가 새로워지면 물음도 "
                "새로워집니다. 한 단계씩 넘겨 보세요.",
            ).format(keep=keep)
        ),
        Steps(
            LocalizedText("three steps of the decoder", "디코더의 세 단계"),
            [
                Frame(
                    LocalizedText(f"just said: {said}", f"방금 말한 단어: {said}"),
                    [
                        Matrix(f"α{mark}", [step.weights.tolist()], columns=SOURCE, shade=True),
                        Matrix(f"c{mark}", [step.context.tolist()], digits=4),
                        Matrix(f"s{mark}", [step.state.tolist()], digits=4),
                    ],
                )
                for said, mark, step in zip(SAID, "₁₂₃", steps, strict=True)
            ],
        ),
    ]


def _tell_findings() -> list[Block]:
    found = load_findings()
    bleu = found["bleu"]
    lost = {kind: values[0] - values[-1] for kind, values in bleu.items()}
    table: list[list[Any]] = [
        [length, count, *(values[place] for values in bleu.values())]
        for place, (length, count) in enumerate(
            zip(found["lengths"], found["sentences"], strict=True)
        )
    ]
    return [
        Paragraph(
            LocalizedText(
                "Does it matter? These figures are not computed now: they were **measured once** "
                f"on {found['machine']}, after training each model on Multi30k (English to "
                f"German). From short to long sentences the RNN with one vector loses "
                f"{lost['rnn-seq2seq']:.1f} points of BLEU, with attention {lost['rnn-attention']:.1f}.",
                "실제로 차이가 날까요? 이 수치는 지금 계산한 것이 아니라, NVIDIA H200 한 대에서 Multi30k "
                "(영어→독일어)로 모델을 각각 학습시켜 **한 번 측정한** 값입니다. 짧은 문장에서 긴 문장으로 가면 "
                f"벡터 하나짜리 RNN은 BLEU가 {lost['rnn-seq2seq']:.1f}점 떨어지고, 어텐션이 있으면 "
                f"{lost['rnn-attention']:.1f}점 떨어집니다.",
            )
        ),
        bleu_by_length(),
        Table(
            [
                LocalizedText("words", "단어 수"),
                LocalizedText("sentences", "문장 수"),
                *(NAMES[kind] for kind in bleu),
            ],
            table,
            digits=1,
        ),
        Note(
            LocalizedText(
                f"Only {found['sentences'][-1]} sentences are longer than 20 words, and each model "
                "was trained once: that the RNN with attention leads there proves nothing. That "
                f"one vector is too little shows in every row. Command: `{found['command']}`.",
                f"20단어를 넘는 문장은 {found['sentences'][-1]}개뿐이고 모델마다 한 번씩만 학습했으므로, 거기서 "
                "어텐션을 단 RNN이 앞선다고 해서 무엇이 증명되지는 않습니다. 벡터 하나로는 모자라다는 것은 "
                f"모든 행에서 드러납니다. 명령: `{found['command']}`.",
            )
        ),
        Paragraph(
            LocalizedText(
                "The Transformer went one step further: if one may look anywhere, the chain itself "
                "is not needed. How words look at each other without it is lesson 4.",
                "트랜스포머는 한 걸음 더 나아갔습니다. 어디든 볼 수 있다면 사슬 자체가 필요 없습니다. 사슬 없이 "
                "단어들이 서로를 보는 방법은 4과에서 다룹니다.",
            )
        ),
    ]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show where the learner's model looks; or, where it cannot look, what it remembers."""
    model = translator.model
    ids = torch.tensor(translator.tokenizer.encode_src([text]), device=translator.backend.device)
    start = torch.full((1, 1), START_ID, device=ids.device)
    with translator.backend.eval_mode():
        cross = model.explain(ids, start).cross
    if cross:
        return [
            Paragraph(
                LocalizedText(
                    f"Your model, translating “{text}”: at each step, where does it look?",
                    f"여러분의 모델이 “{text}”를 번역합니다. 단계마다 어디를 볼까요?",
                )
            ),
            ModelPlot("decoder_steps", LocalizedText("the decoder's steps", "디코더의 단계")),
            ModelPlot(
                "head_lines",
                LocalizedText("one word looks at the source", "단어 하나가 원문을 보는 모습"),
                {"kind": "cross"},
            ),
        ]
    blocks: list[Block] = [
        Note(
            LocalizedText(
                "Your model has no attention: the source reaches the decoder as one vector.",
                "여러분의 모델에는 어텐션이 없습니다. 원문은 벡터 하나로 디코더에 전해집니다.",
            )
        )
    ]
    if isinstance(model, RnnSeq2Seq):
        pieces = translator.tokenizer.src_pieces(ids[0].tolist())
        blocks.append(
            Chart(
                "bars",
                LocalizedText(
                    "what that vector knows of each piece", "그 벡터가 각 조각에 대해 아는 정도"
                ),
                x=[f"{place} {piece}" for place, piece in enumerate(pieces, 1)],
                series=[
                    Series(
                        LocalizedText("size of the gradient", "기울기의 크기"),
                        list(measure_reading(model, ids)),
                    )
                ],
            )
        )
    return blocks


def _least_known() -> str:
    sizes = measure_memories().last_state
    place = min(range(LENGTH), key=sizes.__getitem__)
    return "first" if place < LENGTH / 3 else "last" if place > 2 * LENGTH / 3 else "middle"


def _share_of_equals() -> float:
    return float(decode([[1, 1]] * 3, STATE, W, U, V, KEEP)[0].weights[0])


def _lost_by_one_vector() -> float:
    values = load_findings()["bleu"]["rnn-seq2seq"]
    return float(values[0] - values[-1])


LESSON = Lesson(
    number=1,
    title=LocalizedText("From RNN to attention", "RNN에서 어텐션까지"),
    summary=LocalizedText(
        "Why one vector is too little for a sentence, and how attention goes round it.",
        "문장 하나를 벡터 하나에 담으면 왜 모자라는지, 어텐션은 그것을 어떻게 해결하는지 봅니다.",
    ),
    paper="1, 2",
    code=(
        CodeReference("attendo.architectures.rnn_attention_scores", "AdditiveScore"),
        CodeReference("attendo.architectures.rnn_attention", "RnnAttention"),
        CodeReference("attendo.architectures.rnn_layers", "Recurrence"),
    ),
    inputs=(
        Grid(
            name="annotations",
            label=LocalizedText("h, one word a row", "h, 행마다 단어 하나"),
            default=ANNOTATIONS,
        ),
        Grid(
            name="state", label=LocalizedText("s₀, the first state", "s₀, 첫 상태"), default=STATE
        ),
        Grid(
            name="w", label=LocalizedText("W, upon the state", "W, 상태에 곱하는 행렬"), default=W
        ),
        Grid(name="u", label=LocalizedText("U, upon each h", "U, h에 곱하는 행렬"), default=U),
        Grid(
            name="v",
            label=LocalizedText("v, which makes one score", "v, 점수 하나로 모으는 벡터"),
            default=V,
        ),
        Number(
            name="keep",
            label=LocalizedText("share of the old state that is kept", "옛 상태를 남기는 비율"),
            default=KEEP,
            low=0.05,
            high=0.95,
            step=0.05,
        ),
        Choice(
            name="cell",
            label=LocalizedText("the network that reads", "읽는 신경망"),
            default="lstm",
            choices=(("lstm", "LSTM"), ("gru", "GRU")),
        ),
        Number(
            name="length",
            label=LocalizedText("words that it reads", "읽는 단어 수"),
            default=LENGTH,
            low=2,
            high=60,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "A recurrent network reads 20 words from left to right. Of which does its last "
                "state know least?",
                "순환 신경망이 단어 20개를 왼쪽부터 읽습니다. 마지막 상태는 어느 단어를 가장 모를까요?",
            ),
            _least_known,
            LocalizedText(
                "Its trace has passed through all the states since then, and each passes on only a "
                "part.",
                "그 단어의 흔적은 그 뒤의 모든 상태를 거치고, 상태마다 일부만 넘겨줍니다.",
            ),
            choices=(
                ("first", LocalizedText("the first", "첫 단어")),
                ("middle", LocalizedText("one in the middle", "가운데 단어")),
                ("last", LocalizedText("the last", "마지막 단어")),
            ),
        ),
        Question(
            LocalizedText(
                "If h₁, h₂ and h₃ were the same vector, which share would each get?",
                "h₁, h₂, h₃가 모두 같은 벡터라면 각각 얼마의 비율을 받을까요?",
            ),
            _share_of_equals,
            LocalizedText(
                "Equal annotations have equal scores, and three equal shares sum to 1.",
                "벡터가 같으면 점수도 같고, 똑같은 비율 셋을 더하면 1이 됩니다.",
            ),
            tolerance=0.005,
        ),
        Question(
            LocalizedText(
                "How many points of BLEU does the RNN with one vector lose from sentences of 6-10 "
                "words to those of 21-30?",
                "벡터 하나짜리 RNN은 6-10단어 문장에서 21-30단어 문장으로 가면 BLEU가 몇 점 떨어지나요?",
            ),
            _lost_by_one_vector,
            LocalizedText(
                "Its first figure less its last one: the longer the sentence, the less fits.",
                "첫 값에서 마지막 값을 뺍니다. 문장이 길수록 벡터 하나에 담지 못하는 것이 늘어납니다.",
            ),
            tolerance=0.051,
        ),
    ),
    own_model_blocks=on_your_model,
)
