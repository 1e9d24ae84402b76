"""Lesson 0: the whole machine on one drawing, and a tiny one at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.inspection import capture
from attendo.inspection.activations import capture_attention
from attendo.lessons.blocks import Block, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch00_overview.tiny_translation import PAIRS, translate
from attendo.lessons.diagrams.machine import draw_machine
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.lessons.tiny_model import START
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch00_overview")

SENTENCE = PAIRS[0][0]
PARTS = (
    ("decoder", prose("decoder")),
    ("encoder", prose("encoder")),
    ("softmax", prose("softmax")),
)
TENSORS = (
    ("decoder-input", prose("decoder-input")),
    ("encoder-output", prose("encoder-output")),
    ("vocabulary", prose("vocabulary")),
)
MAX_STEPS = 24
"""An untrained model does not know when to stop."""


def build_blocks() -> list[Block]:
    """Return the drawing, and the steps of a tiny model."""
    translation = translate(SENTENCE)
    rows: list[list[Label | float | int | None]] = [
        [
            step,
            " ".join(translation.decoder_input[:step]),
            word,
            float(translation.probabilities[step - 1].max()),
        ]
        for step, word in enumerate(translation.tgt, 1)
    ]
    headers: list[Label] = [prose("step"), prose("reads"), prose("writes"), prose("probability")]
    return [
        Paragraph(prose("in-and-out")),
        draw_machine(),
        Paragraph(prose("how-to-read")),
        Paragraph(
            prose("word-by-word", src=SENTENCE, num_steps=translation.num_decoder_runs),
        ),
        Table(headers, rows, digits=2),
        Note(prose("same-weights")),
    ]


def _num_decoder_runs() -> float:
    return float(translate(SENTENCE).num_decoder_runs)


def _runs_once() -> str:
    translation = translate(SENTENCE)
    runs = {"encoder": translation.num_encoder_runs, "decoder": translation.num_decoder_runs}
    return next(name for name, count in runs.items() if count == 1)


def _source_of_keys() -> str:
    """Compare the input of the key projection with what each part outputs."""
    translation = translate(SENTENCE)
    model, forced_pass = translation.tiny.model, translation.forced_pass
    given = torch.from_numpy(capture_attention(model, forced_pass, "cross", 0).key_value_input)
    with torch.inference_mode():
        outputs = {
            "encoder-output": model.encode(forced_pass.src_ids).states[0],
            "decoder-input": model.tgt_embedding(forced_pass.decoder_input_ids)[0],
            "vocabulary": model.src_embedding(forced_pass.src_ids)[0],
        }
    return next(
        name
        for name, output in outputs.items()
        if output.shape == given.shape and torch.allclose(output, given, atol=1e-5)
    )


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the steps of the learner's own model."""
    if not isinstance(translator.model, Transformer):
        return [Note(prose("own-no-attention"))]
    record = capture(translator, text, positions=False, neighbors=False)
    weights = record.attention("cross")[-1].mean(0)  # (T, S)
    src, tgt = ([token["piece"] for token in side["tokens"]] for side in (record.src, record.tgt))
    rows: list[list[Label | float | int | None]] = [
        [" ".join([START, *tgt[:row]]), tgt[row], step["probability"], src[int(looks.argmax())]]
        for row, (step, looks) in enumerate(zip(record.steps, weights, strict=True))
    ]
    headers: list[Label] = [
        prose("reads"),
        prose("writes"),
        prose("probability"),
        prose("looks-at"),
    ]
    return [
        Paragraph(prose("own-steps", text=text)),
        Table(headers, rows[:MAX_STEPS], digits=2),
        ModelPlot("stack", prose("own-figure")),
    ]


LESSON = Lesson(
    number=0,
    title=prose("title"),
    summary=prose("summary"),
    paper="3",
    code=(
        CodeReference("attendo.model.transformer", "Transformer"),
        CodeReference("attendo.decoding.search", "search"),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _num_decoder_runs,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _runs_once,
            prose("explanation-2"),
            choices=PARTS,
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _source_of_keys,
            prose("explanation-3"),
            choices=TENSORS,
            hints=(prose("hint-3-1"), prose("hint-3-2")),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
