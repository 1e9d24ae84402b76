"""Lesson 11: the whole architecture; every shape, the sources of Q, K and V, all parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import Block, Formula, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch11_architecture.model_tables import (
    attention_source_table,
    build_meta_model,
    count_layers_reading_memory,
    decoder_shape_table,
    encoder_shape_table,
    parameter_table,
    trace_forward,
)
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.presets import get_preset
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch11_architecture")

MILLION = 1e6
PAPER_VOCABULARY = 37_000
NUM_LAYERS = 6
"""The layers of the paper, in both of its sizes."""
HYPERPARAMETERS = {
    "d_model": prose("d-model"),
    "num_layers": prose("num-layers"),
    "num_heads": prose("num-heads"),
    "d_ff": prose("d-ff"),
}
LENGTHS = (7, 5)
"""The source and target lengths of a question."""


def build_blocks(
    batch: int,
    source_length: int,
    target_length: int,
    preset: str,
    num_layers: int,
    vocab_size: int,
) -> list[Block]:
    """Return the shapes of a forward pass, the inputs of each attention, and the parameters."""
    model = build_meta_model(preset, vocab_size, num_layers)
    trace = trace_forward(model, batch, source_length, target_length)
    num_fed = count_layers_reading_memory(model, trace)
    return [
        Paragraph(prose("stacks", num_layers=num_layers)),
        Paragraph(prose("layers-and-steps", num_layers=num_layers)),
        Paragraph(prose("shapes", batch=batch, source_length=source_length)),
        encoder_shape_table(model, trace),
        decoder_shape_table(model, trace),
        Paragraph(prose("constant-shape")),
        Paragraph(prose("three-attentions")),
        attention_source_table(model, trace),
        Note(prose("last-output", num_fed=num_fed, num_layers=num_layers)),
        *_parameters_section(model, preset),
    ]


def _parameters_section(model: Transformer, preset: str) -> list[Block]:
    total = model.num_parameters()
    published = get_preset(preset).published_parameters or 0
    d_model = model.config.d_model
    others = total - model.src_embedding.weight.numel()
    needed = round((published * MILLION - others) / d_model)
    return [
        Paragraph(prose("no-lengths")),
        parameter_table(model),
        Formula(f"{total:,} ≈ {total / MILLION:.1f}M"),
        *(
            [Paragraph(prose("published-size", published=published, needed=needed))]
            if len(model.encoder.layers) == NUM_LAYERS
            else []
        ),
        Paragraph(prose("hyperparameters")),
        hyperparameter_table(model),
    ]


def hyperparameter_table(model: Transformer) -> Table:
    """Return the hyperparameters that fix the shapes of this model."""
    return Table(
        [prose("hyperparameter"), prose("value"), prose("meaning")],
        [[name, getattr(model.config, name), HYPERPARAMETERS[name]] for name in HYPERPARAMETERS],
    )


def _cross_shape() -> str:
    model = build_meta_model("base", PAPER_VOCABULARY)
    rows, columns = trace_forward(model, 1, *LENGTHS).cross.shape[-2:]
    return f"{rows}x{columns}"


def _extra_decoder_parameters() -> float:
    model = build_meta_model("base", PAPER_VOCABULARY)
    layers = (model.decoder.layers[0], model.encoder.layers[0])
    decoder, encoder = (sum(one.numel() for one in layer.parameters()) for layer in layers)
    return decoder - encoder


def _key_source_of_layer_4() -> str:
    model = build_meta_model("base", PAPER_VOCABULARY)
    trace = trace_forward(model, 1, *LENGTHS)
    keys = trace.projection_inputs[model.decoder.layers[3].cross_attention, "key"]
    outputs = [trace.modules[layer].output for layer in model.encoder.layers]
    return next(f"encoder-{number}" for number, output in enumerate(outputs, 1) if output is keys)


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the stack and the parameters of the learner's own model."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    return [
        Paragraph(prose("own-shapes", text=text, num_parameters=model.num_parameters())),
        ModelPlot("stack", prose("own-stack")),
        parameter_table(model),
    ]


LESSON = Lesson(
    number=11,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.1",
    code=(
        CodeReference("attendo.model.transformer", "Transformer"),
        CodeReference("attendo.model.encoder", "Encoder"),
        CodeReference("attendo.model.decoder", "Decoder"),
    ),
    inputs=(
        Number(name="batch", label=prose("input-batch"), default=2, low=1, high=64),
        Number(
            name="source_length", label=prose("input-source-length"), default=6, low=1, high=200
        ),
        Number(
            name="target_length", label=prose("input-target-length"), default=10, low=1, high=200
        ),
        Choice(
            name="preset",
            label=prose("input-preset"),
            default="base",
            choices=(("base", prose("choice-base")), ("big", prose("choice-big"))),
        ),
        Number(
            name="num_layers", label=prose("input-num-layers"), default=NUM_LAYERS, low=1, high=24
        ),
        Number(
            name="vocab_size",
            label=prose("input-vocab-size"),
            default=PAPER_VOCABULARY,
            low=100,
            high=100_000,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _cross_shape,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=(("5x7", "5 × 7"), ("7x5", "7 × 5"), ("7x7", "7 × 7"), ("5x5", "5 × 5")),
        ),
        Question(
            prose("question-2"),
            _extra_decoder_parameters,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _key_source_of_layer_4,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("encoder-3", prose("choice-encoder-3")),
                ("encoder-4", prose("choice-encoder-4")),
                ("encoder-6", prose("choice-encoder-6")),
                ("decoder-3", prose("choice-decoder-3")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
)
