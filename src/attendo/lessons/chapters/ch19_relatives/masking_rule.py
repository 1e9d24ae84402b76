"""The 80/10/10 rule of masked language modeling on one sentence, by the project's batches."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from attendo.lessons.chapters.ch19_relatives.tiny_relatives import VOCABULARY
from attendo.tasks.masked_lm.batching import MASK_ID, mask_tokens
from attendo.text.tokenizer import END_ID, PAD_ID

ACTIONS = ("masked", "random", "unchanged")
NUM_COUNTED = 2000
"""Readings over which the shares are counted."""


class Reading(NamedTuple):
    """A sentence as the model reads it once."""

    text: str
    hidden: tuple[str, ...]
    """The words to predict."""
    actions: tuple[str, ...]
    """What the model reads instead of each."""


def read_masked(sentence: str, seed: int, count: int) -> list[Reading]:
    """Return the first readings of a sentence; each has another selection."""
    words = sentence.split()
    vocabulary = [*dict.fromkeys([*VOCABULARY, *words])]
    ids = [vocabulary.index(word) for word in words]
    rows = np.tile(np.array([[*ids, END_ID]], dtype=np.int64), (count, 1))
    masked = mask_tokens(rows, np.arange(count), vocab_size=len(vocabulary), seed=seed)
    readings = []
    for read, label in zip(masked.input_ids.tolist(), masked.labels.tolist(), strict=True):
        selected = [index for index, number in enumerate(label) if number != PAD_ID]
        readings.append(
            Reading(
                " ".join(vocabulary[number] for number in read[:-1]),
                tuple(vocabulary[label[index]] for index in selected),
                tuple(_name_action(read[index], label[index]) for index in selected),
            )
        )
    return readings


def _name_action(read: int, label: int) -> str:
    if read == MASK_ID:
        return "masked"
    return "unchanged" if read == label else "random"


def count_actions(sentence: str, seed: int) -> dict[str, float]:
    """Return the share of each action among the selected words of many readings."""
    readings = read_masked(sentence, seed, NUM_COUNTED)
    counts = Counter(action for one in readings for action in one.actions)
    return {action: counts[action] / counts.total() for action in ACTIONS}


def count_selected(sentence: str) -> int:
    """Return how many words of a sentence are selected in each reading."""
    (reading,) = read_masked(sentence, 1, 1)
    return len(reading.hidden)
