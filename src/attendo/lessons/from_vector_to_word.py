"""Lesson 12: from vector to word. Six logits, a softmax, and the word that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.inspection import capture
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Series,
    Table,
)
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.tiny_model import TARGET_VOCABULARY, train_tiny_model

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.tiny_model import TeacherForcedPass, TinyModel
    from attendo.translator import Translator

SRC, TGT = "merci", "thanks"
STEPS = 150
D_MODEL = 8
NUM_SHOWN = 5


def tell(temperature: float, steps: int) -> list[Block]:
    """Multiply, softmax, choose; then before and after training."""
    tiny = make_model(steps)
    forced, blank = tiny.teacher_force(SRC, TGT), make_model(0).teacher_force(SRC, TGT)
    return [
        *_tell_logits(tiny, forced),
        *_tell_softmax(forced.logits[0], temperature),
        *_tell_training(blank, forced, steps),
    ]


def _tell_logits(tiny: TinyModel, forced: TeacherForcedPass) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "What leaves the decoder is a vector, and a vector is no word. Our little model "
                "knows six words and has read “merci”; its decoder, given only the start, answers "
                "with h, a vector of d_model = {d} numbers.",
                "디코더에서 나오는 것은 벡터이지 단어가 아닙니다. 이 작은 모델은 단어 여섯 개를 알고 있고 "
                "“merci”를 읽었습니다. 시작 기호만 받은 디코더는 d_model = {d}개의 숫자로 된 벡터 h를 "
                "내놓습니다.",
            ).format(d=D_MODEL)
        ),
        Matrix("h", [forced.states[0].tolist()], digits=3),
        Paragraph(
            LocalizedText(
                "The last **linear** layer holds one row for each word of the vocabulary. The dot "
                "product of h with a word's row is that word's score, its **logit**. (The rows are "
                "the words' embeddings once more: the paper shares the matrix.)",
                "마지막 **선형(linear)** 층에는 어휘의 단어마다 행이 하나씩 있습니다. h와 그 행의 내적이 그 "
                "단어의 점수, 곧 **로짓(logit)**입니다. (이 행들은 단어의 임베딩(embedding)과 같은 행렬입니다. "
                "논문이 함께 쓰도록 했습니다.)",
            )
        ),
        Formula("z = W · h"),
        Matrix("W", tiny.model.output.weight.tolist(), rows=list(TARGET_VOCABULARY), digits=3),
        Matrix("z", [forced.logits[0].tolist()], columns=list(TARGET_VOCABULARY), digits=3),
    ]


def _tell_softmax(logits: Tensor, temperature: float) -> list[Block]:
    plain, warm = distribution(logits), distribution(logits, temperature)
    chosen = TARGET_VOCABULARY[int(plain.argmax())]
    return [
        Paragraph(
            LocalizedText(
                "Logits may be any numbers. The **softmax** makes probabilities of them: each one "
                "is positive, together they are 1. Dividing by a **temperature** first makes the "
                "model bolder (below 1) or more doubtful (above 1).",
                "로짓은 어떤 숫자든 될 수 있습니다. **소프트맥스(softmax)**는 이것을 확률로 바꿉니다. 모두 "
                "양수이고 합은 1입니다. 먼저 **온도(temperature)**로 나누면 모델은 더 단호해지거나(1보다 "
                "작을 때) 더 망설입니다(1보다 클 때).",
            )
        ),
        Formula("pᵢ = exp(zᵢ / τ) / ∑ⱼ exp(zⱼ / τ)"),
        Table(
            [
                LocalizedText("id", "번호"),
                LocalizedText("word", "단어"),
                LocalizedText("logit z", "로짓 z"),
                LocalizedText("p, τ = 1", "확률, τ = 1"),
                LocalizedText("p, τ = {t:g}", "확률, τ = {t:g}").format(t=temperature),
            ],
            [
                [place, word, float(logits[place]), float(plain[place]), float(warm[place])]
                for place, word in enumerate(TARGET_VOCABULARY)
            ],
            digits=4,
        ),
        Paragraph(
            LocalizedText(
                "The **argmax**, the word with the greatest probability, is said: **{word}**, with "
                "{p:.4f} at τ = 1. No temperature changes which one it is, since dividing keeps the order. "
                "It matters when words are drawn by chance.",
                "확률이 가장 큰 단어(**argmax**)를 말합니다. 여기서는 τ = 1에서 확률 {p:.4f}인 **{word}**입니다. 나누어도 "
                "순서는 그대로이므로 온도가 달라져도 1등은 바뀌지 않습니다. 온도는 단어를 확률에 따라 뽑을 때 "
                "중요합니다.",
            ).format(word=chosen, p=float(plain.max()))
        ),
    ]


def _tell_training(blank: TeacherForcedPass, forced: TeacherForcedPass, steps: int) -> list[Block]:
    before, after = (distribution(one.logits[0]) for one in (blank, forced))
    right = TARGET_VOCABULARY.index(TGT)
    return [
        Paragraph(
            LocalizedText(
                "Before training the weights are drawn by chance, and so is the answer: "
                "“{guess}” comes first, and “{tgt}” gets {before:.4f}. After {steps} steps on this "
                "one pair it gets {after:.4f}. Nothing was added to the machine; only the numbers "
                "in its matrices have moved.",
                "학습 전에는 가중치가 무작위이므로 답도 무작위입니다. 1등은 “{guess}”이고 “{tgt}”의 확률은 "
                "{before:.4f}입니다. 이 한 쌍으로 {steps}스텝 학습하면 {after:.4f}입니다. 모델에 더해진 것은 "
                "없습니다. 행렬 안의 숫자가 움직였을 뿐입니다.",
            ).format(
                guess=TARGET_VOCABULARY[int(before.argmax())],
                tgt=TGT,
                before=float(before[right]),
                after=float(after[right]),
                steps=steps,
            )
        ),
        before_and_after(steps=steps),
        Note(
            LocalizedText(
                "It does not reach 1: training aimed at a little less, for a reason that the next "
                "lesson gives.",
                "1까지 오르지는 않습니다. 학습의 목표 자체가 1보다 조금 작기 때문이며, 그 까닭은 13과에서 "
                "다룹니다.",
            )
        ),
    ]


def before_and_after(*, steps: int = STEPS) -> Chart:
    """Draw the answer to “merci” before training and after so many steps."""
    before, after = (
        distribution(make_model(n).teacher_force(SRC, TGT).logits[0]) for n in (0, steps)
    )
    return Chart(
        "bars",
        LocalizedText("the first word after “merci”", "“merci” 다음 첫 단어"),
        list(TARGET_VOCABULARY),
        [
            Series(LocalizedText("untrained", "학습 전"), before.tolist()),
            Series(LocalizedText(f"after {steps} steps", f"{steps}스텝 학습 후"), after.tolist()),
        ],
        y_label=LocalizedText("probability", "확률"),
    )


def make_model(steps: int) -> TinyModel:
    """Train on the one pair."""
    return train_tiny_model(((SRC, TGT),), steps=steps, d_model=D_MODEL)


def distribution(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Give the softmax of logits over a temperature."""
    return (logits / temperature).softmax(-1)


def _share_of_the_ignorant() -> float:
    return float(distribution(torch.zeros(len(TARGET_VOCABULARY)))[0])


def _first_at_five() -> str:
    logits = make_model(STEPS).teacher_force(SRC, TGT).logits[0]
    return TARGET_VOCABULARY[int(distribution(logits, 5.0).argmax())]


def _what_a_shift_does() -> str:
    logits = make_model(STEPS).teacher_force(SRC, TGT).logits[0].double()
    right = TARGET_VOCABULARY.index(TGT)
    change = float((distribution(logits + 10.0) - distribution(logits))[right])
    if abs(change) < 1e-9:
        return "stays"
    return "rises" if change > 0 else "falls"


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show the last step of the learner's own model for the first word that it says."""
    record = capture(translator, text, top=NUM_SHOWN, positions=False, neighbors=False)
    size = translator.tokenizer.tgt_vocab_size
    first = record.steps[0]
    return [
        Paragraph(
            LocalizedText(
                f"Your model chooses among {size:,} pieces; knowing nothing, it would give each "
                f"{1 / size:.6f}. This is how it begins the translation of “{text}”.",
                f"여러분의 모델은 조각 {size:,}개 가운데에서 고릅니다. 아무것도 모른다면 확률을 저마다 {1 / size:.6f}씩 "
                f"줄 것입니다. “{text}”의 번역은 이렇게 시작합니다.",
            )
        ),
        Table(
            [LocalizedText("first piece", "첫 조각"), LocalizedText("probability", "확률")],
            [[one["piece"], one["probability"]] for one in first["top"]],
            digits=4,
        ),
        ModelPlot(
            "logits", LocalizedText("logits, softmax, chosen word", "로짓, 소프트맥스, 고른 단어")
        ),
    ]


LESSON = Lesson(
    number=12,
    title=LocalizedText("From vector to word", "벡터에서 단어로"),
    summary=LocalizedText(
        "How the decoder's vector becomes a word: a logit for every word, softmax, argmax.",
        "디코더의 벡터가 단어가 되기까지, 단어마다의 로짓과 소프트맥스, argmax를 따라갑니다.",
    ),
    paper="3.4",
    code=(
        CodeReference("attendo.model.transformer", "Transformer.forward"),
        CodeReference("attendo.lessons.tiny_model", "train_tiny_model"),
    ),
    inputs=(
        Number(
            name="temperature",
            label=LocalizedText("temperature τ", "온도 τ"),
            default=2.0,
            low=0.1,
            high=5.0,
            step=0.1,
        ),
        Number(
            name="steps",
            label=LocalizedText("steps of training", "학습 스텝(step) 수"),
            default=STEPS,
            low=0,
            high=STEPS,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "A model that knows nothing gives all six words the same logit. Which probability "
                "has each?",
                "아무것도 모르는 모델이 여섯 단어에 똑같은 로짓을 준다면 단어마다 확률은 얼마인가요?",
            ),
            _share_of_the_ignorant,
            LocalizedText(
                "Equal logits make equal shares, and six equal shares sum to 1.",
                "로짓이 같으면 몫도 같고, 똑같은 몫 여섯을 더하면 1입니다.",
            ),
            tolerance=0.005,
        ),
        Question(
            LocalizedText(
                "The trained model is asked at temperature 5. Which word has the greatest "
                "probability?",
                "학습된 모델에 온도 5로 물었습니다. 확률이 가장 큰 단어는 무엇인가요?",
            ),
            _first_at_five,
            LocalizedText(
                "A temperature flattens the distribution but keeps the order.",
                "온도는 분포를 평평하게 할 뿐 순서는 바꾸지 않습니다.",
            ),
            choices=tuple((word, word) for word in TARGET_VOCABULARY),
        ),
        Question(
            LocalizedText(
                "10 is added to all six logits. What does the probability of `thanks` do?",
                "여섯 로짓에 모두 10을 더했습니다. `thanks`의 확률은 어떻게 되나요?",
            ),
            _what_a_shift_does,
            LocalizedText(
                "exp(z + 10) = exp(z) · exp(10): the factor stands above and below the fraction.",
                "exp(z + 10) = exp(z) · exp(10)이고, 이 인수는 분자와 분모에서 지워집니다.",
            ),
            choices=(
                ("rises", LocalizedText("it rises", "커진다")),
                ("stays", LocalizedText("it stays", "그대로다")),
                ("falls", LocalizedText("it falls", "작아진다")),
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
