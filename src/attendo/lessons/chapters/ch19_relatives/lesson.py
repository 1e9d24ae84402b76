"""Lesson 19: the relatives; encoder-only, decoder-only, and text to text."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from attendo.lessons.blocks import Block, Formula, LocalizedText, Note, Paragraph, Table
from attendo.lessons.chapters.ch19_relatives import own_models
from attendo.lessons.chapters.ch19_relatives.masking_rule import (
    ACTIONS,
    NUM_COUNTED,
    count_actions,
    count_selected,
    read_masked,
)
from attendo.lessons.chapters.ch19_relatives.task_prefixes import NUMBERS, make_pairs, run_tasks
from attendo.lessons.chapters.ch19_relatives.tiny_relatives import (
    CORPUS,
    STEPS,
    count_fills,
    fill_probabilities,
    gap_index,
    next_probabilities,
    next_word_losses,
    train_decoder,
    train_encoder,
)
from attendo.lessons.chapters.ch19_relatives.visibility import (
    BASE_VOCABULARY,
    GPT_2_VOCABULARY,
    PARTS,
    base_models,
    count_gpt_2,
    count_parts,
    count_seen,
    marks,
    measure_visibility,
)
from attendo.lessons.inputs import Number, Text
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.tasks.masked_lm.batching import (
    MASK_RATE,
    MASK_TOKEN_RATE,
    RANDOM_TOKEN_RATE,
    num_masked,
)

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch19_relatives")

SENTENCE = "I went to the cafe there were many people there"
GAP_TEXT = "the ___ drinks milk"
WORDS = ("the", "cat", "drinks", "milk")
NUM_READINGS = 6
NUM_BEST = 5
QUESTION_WORDS, QUESTION_LENGTH = 6, 1000


def build_blocks(sentence: str, seed: int, gap: str, steps: int, number: int) -> list[Block]:
    """Return what each model sees, learns and predicts, and what it consists of."""
    return [
        Paragraph(prose("three-relatives")),
        *_visibility_section(),
        *_masked_section(sentence, seed),
        *_prediction_section(gap, steps),
        *_next_word_section(steps),
        *_prefix_section(number),
        *_parameter_section(),
        *(Paragraph(prose(f"real-{name}")) for name in ("bert", "gpt", "t5")),
    ]


def _visibility_section() -> list[Block]:
    seen = measure_visibility(len(WORDS))
    masks = (seen.encoder_only, seen.decoder_only, seen.source, seen.target_to_source, seen.target)
    headers: list[Label] = [
        prose("word"),
        "BERT",
        "GPT",
        prose("t5-encoder"),
        prose("t5-to-source"),
        prose("t5-decoder"),
    ]
    rows: Rows = [[word, *(marks(mask[row]) for mask in masks)] for row, word in enumerate(WORDS)]
    return [
        Paragraph(prose("what-each-sees", words=" ".join(WORDS))),
        Table(headers, rows),
        Paragraph(
            prose(
                "counted-pairs",
                total=len(WORDS) ** 2,
                both=count_seen(seen.encoder_only),
                left=count_seen(seen.decoder_only),
            )
        ),
    ]


def _masked_section(sentence: str, seed: int) -> list[Block]:
    readings = read_masked(sentence, seed, NUM_READINGS)
    names = {action: prose(f"action-{action}") for action in ACTIONS}
    rates = dict(
        zip(
            ACTIONS,
            (MASK_TOKEN_RATE, RANDOM_TOKEN_RATE, 1 - MASK_TOKEN_RATE - RANDOM_TOKEN_RATE),
            strict=True,
        )
    )
    shares = count_actions(sentence, seed)
    return [
        Paragraph(
            prose("masked-words", sentence=sentence, count=count_selected(sentence), rate=MASK_RATE)
        ),
        Table(
            [prose("reading"), prose("model-reads"), prose("to-predict"), prose("reads-instead")],
            [
                [
                    number,
                    one.text,
                    ", ".join(one.hidden),
                    _join_labels([names[action] for action in one.actions]),
                ]
                for number, one in enumerate(readings, 1)
            ],
            title=prose("readings"),
        ),
        Paragraph(prose("why-three-ways")),
        Table(
            [prose("reads-instead"), prose("rule"), prose("counted", count=NUM_COUNTED)],
            [[names[action], rates[action], shares[action]] for action in ACTIONS],
        ),
    ]


def _join_labels(labels: list[LocalizedText]) -> LocalizedText:
    return LocalizedText(", ".join(one.en for one in labels), ", ".join(one.ko for one in labels))


def _prediction_section(gap: str, steps: int) -> list[Block]:
    index = gap_index(gap)
    words = gap.split()
    encoder, decoder = fill_probabilities(gap, steps), next_probabilities(gap, steps)
    from_both = count_fills(gap, is_left_only=False)
    from_left = count_fills(gap, is_left_only=True)
    shown = dict.fromkeys(
        [*from_left, *from_both, *(one.word for one in (*encoder[:1], *decoder[:NUM_BEST]))]
    )
    of_encoder, of_decoder = dict(encoder), dict(decoder)
    order = sorted(shown, key=lambda word: (-of_encoder[word], word))
    rows: Rows = [
        [
            word,
            from_left.get(word, 0.0) if from_left else None,
            of_decoder[word],
            from_both.get(word, 0.0) if from_both else None,
            of_encoder[word],
        ]
        for word in order
    ]
    sizes = train_encoder(steps).num_parameters(), train_decoder(steps).num_parameters()
    return [
        Paragraph(prose("tiny-corpus", count=len(CORPUS), steps=steps, size=sizes[0])),
        Table(
            [prose("corpus"), ""],
            [[*pair] for pair in zip(CORPUS[::2], CORPUS[1::2], strict=True)],
        ),
        Paragraph(prose("same-gap", gap=gap, left=" ".join(words[:index]) or "–")),
        Table(
            [
                prose("word"),
                prose("corpus-left"),
                prose("gpt-left"),
                prose("corpus-both"),
                prose("bert-both"),
            ],
            rows,
            digits=3,
            title=prose("gap-table"),
        ),
        Paragraph(
            prose(
                "both-sides-help",
                bert=encoder[0].word,
                p_bert=encoder[0].probability,
                gpt=decoder[0].word,
                p_gpt=decoder[0].probability,
            )
        ),
    ]


def _next_word_section(steps: int) -> list[Block]:
    text = CORPUS[0]
    words = text.split()
    losses = next_word_losses(text, steps)
    mean = -sum(log(one.probability) for one in losses) / len(losses)
    rows: Rows = [
        [" ".join(["<sos>", *words[:row]]), one.word, one.probability, -log(one.probability)]
        for row, one in enumerate(losses)
    ]
    return [
        Paragraph(prose("next-word", text=text)),
        Table([prose("reads"), prose("to-predict"), "p", "−log p"], rows, digits=3),
        Formula(f"perplexity = exp({mean:.3f}) = {exp(mean):.3f}"),
        Paragraph(prose("perplexity", perplexity=exp(mean))),
    ]


def _prefix_section(number: int) -> list[Block]:
    return [
        Paragraph(prose("text-to-text", count=len(make_pairs()))),
        Table(
            [prose("input-of-model"), prose("output-of-model"), prose("probability")],
            [[one.src, one.output, one.probability] for one in run_tasks(number)],
            digits=3,
            title=prose("prefix-table"),
        ),
        Note(prose("one-interface")),
    ]


def _parameter_section() -> list[Block]:
    models = base_models()
    counts = {name: count_parts(model) for name, model in models.items()}
    rows: Rows = [
        [prose(f"part-{part}"), *(one[part] for one in counts.values())] for part, _ in PARTS
    ]
    rows.append([prose("total"), *(model.num_parameters() for model in models.values())])
    return [
        Paragraph(prose("same-blocks", vocabulary=BASE_VOCABULARY)),
        Table([prose("parameters"), "BERT", "GPT", "T5"], rows, title=prose("parameter-table")),
        Paragraph(prose("gpt-2", total=count_gpt_2(), vocabulary=GPT_2_VOCABULARY)),
    ]


def _pairs_of_decoder() -> float:
    return float(count_seen(measure_visibility(QUESTION_WORDS).decoder_only))


def _num_mask_symbols() -> float:
    selected = int(num_masked(np.array([QUESTION_LENGTH + 1]))[0])
    return float(round(MASK_TOKEN_RATE * selected))


def _best_for_gap() -> str:
    """Return which tiny model is surest of the right word in the example."""
    right = next(iter(count_fills(GAP_TEXT, is_left_only=False)))
    encoder = dict(fill_probabilities(GAP_TEXT, STEPS))[right]
    decoder = dict(next_probabilities(GAP_TEXT, STEPS))[right]
    return "encoder" if encoder > decoder else "decoder"


LESSON = Lesson(
    number=19,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.1, 3.2.3",
    code=(
        CodeReference("attendo.architectures.encoder_only", "EncoderOnly"),
        CodeReference("attendo.architectures.decoder_only", "DecoderOnly"),
        CodeReference("attendo.tasks.masked_lm.batching", "mask_tokens"),
    ),
    inputs=(
        Text(name="sentence", label=prose("input-sentence"), default=SENTENCE),
        Number(name="seed", label=prose("input-seed"), default=1, low=0, high=9999),
        Text(name="gap", label=prose("input-gap"), default=GAP_TEXT),
        Number(name="steps", label=prose("input-steps"), default=STEPS, low=0, high=STEPS, step=10),
        Number(name="number", label=prose("input-number"), default=3, low=1, high=max(NUMBERS)),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1", words=QUESTION_WORDS, total=QUESTION_WORDS**2),
            _pairs_of_decoder,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2", length=QUESTION_LENGTH),
            _num_mask_symbols,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
        ),
        Question(
            prose("question-3"),
            _best_for_gap,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("decoder", prose("choice-decoder")),
                ("encoder", prose("choice-encoder")),
                ("equal", prose("choice-equal")),
            ),
        ),
    ),
    own_model_blocks=own_models.translator_blocks,
    task_blocks={
        "mask": own_models.filler_blocks,
        "language": own_models.generator_blocks,
    },
)
