"""Lesson 13: training; teacher forcing, the loss, label smoothing, and the learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.inspection import capture
from attendo.lessons.blocks import Block, Formula, Matrix, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch13_training.teacher_forcing import (
    CAFE,
    D_MODEL,
    EARLY_STEPS,
    SMOOTHING,
    STEPS,
    STUDENT,
    WARMUP,
    count_correct,
    first_probabilities,
    forcing_steps,
    learned_distributions,
    learning_rate_chart,
    loss_parts,
    smoothed_target_chart,
    target_distributions,
)
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.lessons.tiny_model import END, TARGET_VOCABULARY
from attendo.training.schedule import noam

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch13_training")


def build_blocks(steps: int, smoothing: float, d_model: int, warmup: int) -> list[Block]:
    """Return teacher forcing, smoothed targets, the loss, and the learning rate."""
    return [
        *_forcing_section(steps),
        *_smoothing_section(smoothing),
        *_loss_section(smoothing),
        *_update_section(steps),
        *_learned_section(smoothing),
        *_warmup_section(d_model, warmup),
    ]


def _forcing_section(steps: int) -> list[Block]:
    num_src, num_tgt = (len(side.split()) for side in CAFE)
    forced, free = count_correct(steps)
    return [
        Paragraph(prose("why")),
        Paragraph(
            prose("teacher-forcing", src=CAFE[0], tgt=CAFE[1], num_src=num_src, num_tgt=num_tgt)
        ),
        Paragraph(
            prose("forced-and-free", steps=steps, forced=forced, free=free, total=num_tgt + 1)
        ),
        forcing_steps(steps=steps),
        Note(prose("one-pass", total=num_tgt + 1)),
    ]


def _smoothing_section(smoothing: float) -> list[Block]:
    target = target_distributions(smoothing)[0]
    correct = TARGET_VOCABULARY.index("i")
    return [
        Paragraph(
            prose(
                "label-smoothing", epsilon=smoothing, p=float(target[correct]), q=float(target[0])
            )
        ),
        Formula("p = (1 − ε) · one-hot + ε / V"),
        smoothed_target_chart("i", smoothing=smoothing),
    ]


def _loss_section(smoothing: float) -> list[Block]:
    return [
        Paragraph(prose("cross-entropy-loss")),
        Formula("−∑ pᵢ log qᵢ = H(p) + KL(p ‖ q)"),
        Table(
            [prose("loss-of"), "H(p)", "KL(p ‖ q)", prose("cross-entropy")],
            [
                [prose("before-training"), *loss_parts(0, smoothing)],
                [prose("after-steps", steps=STEPS), *loss_parts(STEPS, smoothing)],
            ],
            digits=4,
        ),
    ]


def _update_section(steps: int) -> list[Block]:
    word = CAFE[1].split()[0]
    before, after = (first_probabilities(count) for count in (steps, steps + 1))
    others = sum(before) - before[0], sum(after) - after[0]
    return [
        Paragraph(prose("one-update", word=word, steps=steps)),
        Table(
            ["", prose("before-update"), prose("after-update")],
            [
                [prose("p-of", word=word), before[0], after[0]],
                [prose("p-of-others"), *others],
            ],
            digits=4,
        ),
        *([Paragraph(prose("all-weights"))] if after[0] > before[0] else []),
    ]


def _learned_section(smoothing: float) -> list[Block]:
    targets, learned = target_distributions(smoothing), learned_distributions(smoothing)
    difference = float((targets - learned).abs().max())
    return [
        Paragraph(
            prose(
                "targets-and-learned",
                src=STUDENT[0],
                tgt=STUDENT[1],
                steps=STEPS,
                difference=difference,
            )
        ),
        *(
            Matrix(
                title,
                values.tolist(),
                rows=[*STUDENT[1].split(), END],
                columns=list(TARGET_VOCABULARY),
                digits=4,
                shade=True,
            )
            for title, values in ((prose("targets"), targets), (prose("learned"), learned))
        ),
    ]


def _warmup_section(d_model: int, warmup: int) -> list[Block]:
    peak = noam(warmup, d_model=d_model, warmup_steps=warmup)
    later = noam(4 * warmup, d_model=d_model, warmup_steps=warmup)
    return [
        Paragraph(prose("warmup", warmup=warmup)),
        Formula("rate = d_model^(−0.5) · min(step^(−0.5), step · warmup^(−1.5))"),
        learning_rate_chart(d_model=d_model, warmup_steps=warmup),
        Paragraph(
            prose(
                "peak-rate", d_model=d_model, warmup=warmup, peak=peak, late=4 * warmup, later=later
            )
        ),
    ]


def _target_of_true_word() -> float:
    return float(target_distributions(SMOOTHING).max())


def _input_after_error() -> str:
    """Return which word the early model reads after its first wrong prediction in training."""
    tables = [frame.blocks[0] for frame in forcing_steps(steps=EARLY_STEPS).frames]
    rows = [table.rows[0] for table in tables if isinstance(table, Table)]
    true_words = [*CAFE[1].split(), END]
    wrong = next(step for step, row in enumerate(rows) if row[2] != true_words[step])
    next_input = str(rows[wrong + 1][1]).split()[-1]
    return "predicted" if next_input == rows[wrong][2] else "true"


def _learning_rate_ratio() -> float:
    peak, later = (
        noam(step, d_model=D_MODEL, warmup_steps=WARMUP) for step in (WARMUP, 4 * WARMUP)
    )
    return peak / later


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the predictions of the learner's model under teacher forcing, and their targets."""
    record = capture(translator, text, top=1, positions=False, neighbors=False)
    pieces = [token["piece"] for token in record.tgt["tokens"]]
    size = translator.tokenizer.tgt_vocab_size
    target = 1 - SMOOTHING + SMOOTHING / size
    losses = [-step["log_prob"] for step in record.steps]
    rows: list[list[Label | float | int | None]] = [
        [piece, target, step["probability"], loss]
        for piece, step, loss in zip(pieces, record.steps, losses, strict=True)
    ]
    mean = sum(losses) / len(losses)
    return [
        Paragraph(prose("own-forced", text=text, smoothing=SMOOTHING, target=target, mean=mean)),
        Table([prose("token"), prose("target-p"), prose("prediction-q"), "−log q"], rows, digits=4),
        ModelPlot("decoder_steps", prose("own-figure")),
    ]


LESSON = Lesson(
    number=13,
    title=prose("title"),
    summary=prose("summary"),
    paper="5.3, 5.4",
    code=(
        CodeReference("attendo.training.losses", "label_smoothed_nll"),
        CodeReference("attendo.training.schedule", "noam"),
        CodeReference("attendo.lessons.tiny_model", "train_tiny_model"),
    ),
    inputs=(
        Number(name="steps", label=prose("input-steps"), default=EARLY_STEPS, low=0, high=100),
        Number(
            name="smoothing",
            label=prose("input-smoothing"),
            default=SMOOTHING,
            low=0.0,
            high=0.5,
            step=0.05,
        ),
        Number(name="d_model", label=prose("input-d-model"), default=D_MODEL, low=64, high=4096),
        Number(name="warmup", label=prose("input-warmup"), default=WARMUP, low=100, high=20_000),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _target_of_true_word,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.001,
        ),
        Question(
            prose("question-2"),
            _input_after_error,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("predicted", prose("choice-predicted")),
                ("true", prose("choice-true")),
                ("none", prose("choice-none")),
            ),
        ),
        Question(
            prose("question-3"),
            _learning_rate_ratio,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.01,
            is_ratio=True,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
