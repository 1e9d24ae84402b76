"""One tiny encoder-decoder for three tasks that a prefix selects, as in T5."""

from __future__ import annotations

from typing import NamedTuple

import torch

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.lessons.tiny_model import END, TinyModel, train_tiny_model
from attendo.synthetic.number_words import ONES, spell_sino

NUMBERS = range(1, 10)
STEPS, DECAY_STEPS = 120, 40
MAX_LENGTH = 3


class TaskOutput(NamedTuple):
    """A source with its prefix, and what the model makes of it."""

    src: str
    output: str
    probability: float


def make_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of all tasks, each source with the prefix of `configs/text_to_text.toml`.

    >>> make_pairs()[6:9]
    (('spell en: 3', 'three'), ('spell ko: 3', '삼'), ('number: three', '3'))
    """
    return tuple(pair for number in NUMBERS for pair in _pairs_of(number))


def _pairs_of(number: int) -> tuple[tuple[str, str], ...]:
    return (
        (f"spell en: {number}", ONES[number]),
        (f"spell ko: {number}", spell_sino(number)),
        (f"number: {ONES[number]}", str(number)),
    )


def train_model() -> TinyModel:
    """Return one model that has learned all tasks."""
    pairs = make_pairs()
    words = (*dict.fromkeys(tgt for _, tgt in pairs), END)
    return train_tiny_model(pairs, words, steps=STEPS, smoothing=0.0, decay_steps=DECAY_STEPS)


def run_tasks(number: int) -> list[TaskOutput]:
    """Return the outputs of the three tasks for one number, decoded greedily."""
    tiny = train_model()
    options = DecodingOptions(beam_size=1, max_length=MAX_LENGTH)
    outputs = []
    for src, _ in _pairs_of(number):
        (result,) = search(tiny.model, tiny.encode_src(src), tiny.special_ids, options)
        words = [tiny.tgt_words[index] for index in result.hypotheses[0].ids]
        first = tiny.teacher_force(src, words[0]).probabilities[0] if words else torch.zeros(1)
        outputs.append(TaskOutput(src, " ".join(words), float(first.max())))
    return outputs
