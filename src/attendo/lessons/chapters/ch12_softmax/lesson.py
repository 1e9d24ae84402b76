"""Lesson 12: from vector to word; six logits, a softmax, and the output word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.inspection import capture
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Product,
    Series,
    Table,
)
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.lessons.tiny_model import TARGET_VOCABULARY, train_tiny_model

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.tiny_model import TeacherForcedPass, TinyModel
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch12_softmax")

SRC, TGT = "merci", "thanks"
EXAMPLE = "am"
STEPS = 150
D_MODEL = 8
NUM_SHOWN = 5


def build_blocks(temperature: float, steps: int) -> list[Block]:
    """Return logits, probabilities and the output word, before and after training."""
    tiny = train_model(steps)
    forced, untrained = tiny.teacher_force(SRC, TGT), train_model(0).teacher_force(SRC, TGT)
    return [
        *_logits_section(tiny, forced),
        *_softmax_section(forced.logits[0], temperature),
        *_training_section(untrained, forced, steps),
    ]


def _logits_section(tiny: TinyModel, forced: TeacherForcedPass) -> list[Block]:
    size = len(TARGET_VOCABULARY)
    one_hot = torch.eye(size)[TARGET_VOCABULARY.index(EXAMPLE)]
    state, weight = forced.states[0].tolist(), tiny.model.output.weight.detach()
    return [
        Paragraph(prose("why")),
        Paragraph(prose("six-words", word=EXAMPLE)),
        Matrix(f"one-hot({EXAMPLE})", [one_hot.tolist()], columns=list(TARGET_VOCABULARY)),
        Paragraph(prose("decoder-output", d_model=D_MODEL)),
        Matrix("h", [state], digits=3),
        Paragraph(prose("logits")),
        Formula("z = W · h"),
        Matrix("W", weight.tolist(), rows=list(TARGET_VOCABULARY), digits=3),
        Matrix(
            "z",
            [forced.logits[0].tolist()],
            columns=list(TARGET_VOCABULARY),
            digits=3,
            product=Product([state], weight.T.tolist()),
        ),
    ]


def _softmax_section(logits: Tensor, temperature: float) -> list[Block]:
    plain, warm = softmax(logits), softmax(logits, temperature)
    chosen = TARGET_VOCABULARY[int(plain.argmax())]
    return [
        Paragraph(prose("softmax")),
        Formula("pᵢ = exp(zᵢ / τ) / ∑ⱼ exp(zⱼ / τ)"),
        Table(
            [
                prose("id"),
                prose("word"),
                prose("logit-z"),
                prose("probability-plain"),
                prose("probability-warm", temperature=temperature),
            ],
            [
                [index, word, float(logits[index]), float(plain[index]), float(warm[index])]
                for index, word in enumerate(TARGET_VOCABULARY)
            ],
            digits=4,
        ),
        Paragraph(prose("argmax", word=chosen, p=float(plain.max()))),
    ]


def _training_section(
    untrained: TeacherForcedPass, forced: TeacherForcedPass, steps: int
) -> list[Block]:
    before, after = (softmax(one.logits[0]) for one in (untrained, forced))
    right = TARGET_VOCABULARY.index(TGT)
    return [
        Paragraph(
            prose(
                "training",
                guess=TARGET_VOCABULARY[int(before.argmax())],
                tgt=TGT,
                before=float(before[right]),
                after=float(after[right]),
                steps=steps,
            )
        ),
        training_chart(steps=steps),
        Note(prose("below-one")),
    ]


def training_chart(*, steps: int = STEPS) -> Chart:
    """Plot the probabilities for “merci” before training and after `steps` steps."""
    before, after = (softmax(train_model(n).teacher_force(SRC, TGT).logits[0]) for n in (0, steps))
    return Chart(
        "bars",
        prose("first-word"),
        list(TARGET_VOCABULARY),
        [
            Series(prose("untrained"), before.tolist()),
            Series(prose("after-steps", steps=steps), after.tolist()),
        ],
        y_label=prose("probability"),
    )


def train_model(steps: int) -> TinyModel:
    """Return a tiny model trained on the one pair."""
    return train_tiny_model(((SRC, TGT),), steps=steps, d_model=D_MODEL)


def softmax(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Return the softmax of logits divided by a temperature."""
    return (logits / temperature).softmax(-1)


def _uniform_probability() -> float:
    return float(softmax(torch.zeros(len(TARGET_VOCABULARY)))[0])


def _best_word_at_5() -> str:
    logits = train_model(STEPS).teacher_force(SRC, TGT).logits[0]
    return TARGET_VOCABULARY[int(softmax(logits, 5.0).argmax())]


def _effect_of_shift() -> str:
    logits = train_model(STEPS).teacher_force(SRC, TGT).logits[0].double()
    right = TARGET_VOCABULARY.index(TGT)
    change = float((softmax(logits + 10.0) - softmax(logits))[right])
    if abs(change) < 1e-9:
        return "stays"
    return "rises" if change > 0 else "falls"


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the first output token of the learner's own model."""
    record = capture(translator, text, top=NUM_SHOWN, positions=False, neighbors=False)
    size = translator.tokenizer.tgt_vocab_size
    first = record.steps[0]
    return [
        Paragraph(prose("own-first-token", size=size, uniform=1 / size, text=text)),
        Table(
            [prose("first-token"), prose("probability")],
            [[one["piece"], one["probability"]] for one in first["top"]],
            digits=4,
        ),
        ModelPlot("logits", prose("own-figure")),
    ]


LESSON = Lesson(
    number=12,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.4",
    code=(
        CodeReference("attendo.model.transformer", "Transformer.forward"),
        CodeReference("attendo.lessons.tiny_model", "train_tiny_model"),
    ),
    inputs=(
        Number(
            name="temperature",
            label=prose("input-temperature"),
            default=2.0,
            low=0.1,
            high=5.0,
            step=0.1,
        ),
        Number(name="steps", label=prose("input-steps"), default=STEPS, low=0, high=STEPS),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _uniform_probability,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-2"),
            _best_word_at_5,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=tuple((word, word) for word in TARGET_VOCABULARY),
        ),
        Question(
            prose("question-3"),
            _effect_of_shift,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("rises", prose("choice-rises")),
                ("stays", prose("choice-stays")),
                ("falls", prose("choice-falls")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
