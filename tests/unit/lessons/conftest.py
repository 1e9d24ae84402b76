"""Lessons as a reader sees them, computed once per set of inputs, and small models for them."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import pytest
import torch
from rich.console import Console

from attendo.bundle import build_model
from attendo.lessons.blocks import Block, Steps
from attendo.lessons.contents import load_lesson
from attendo.lessons.render.terminal import render_lesson, render_questions
from attendo.translator import Translator

SIZES: dict[str, dict[str, Any]] = {
    "transformer": {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2},
    "rnn-attention": {"d_model": 16},
    "rnn-seq2seq": {"d_model": 16},
    "conv-s2s": {"d_model": 16, "num_layers": 2, "num_decoder_layers": 2},
}


@cache
def compute_blocks(number: int, values: str) -> list[Block]:
    return load_lesson(number).blocks(json.loads(values))


@cache
def render_text(number: int, values: str, lang: str, width: int) -> str:
    lesson = load_lesson(number)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render_lesson(lesson, compute_blocks(number, values), lang))
    console.print(render_questions(lesson, lang, with_answers=True))
    return console.export_text()


class LessonView:
    """The blocks and the text of one lesson for given inputs, cached."""

    def __init__(self, lesson):
        self.lesson = lesson

    def blocks(self, kind=Block, values=None, **more):
        key = json.dumps({**(values or {}), **more})
        return self.select(kind, compute_blocks(self.lesson.number, key))

    def text(self, lang, values=None, *, width=120, **more):
        """Return what the terminal shows, every run of spaces as one."""
        return " ".join(self.lines(lang, values, width=width, **more))

    def lines(self, lang, values=None, *, width=120, **more):
        key = json.dumps({**(values or {}), **more})
        lines = render_text(self.lesson.number, key, lang, width).splitlines()
        return [" ".join(line.split()) for line in lines]

    def all_blocks(self, values=None):
        """Yield all blocks, also those inside of steps."""
        for block in self.blocks(values=values):
            yield block
            if isinstance(block, Steps):
                yield from (one for frame in block.frames for one in frame.blocks)

    @staticmethod
    def select(kind, blocks):
        return [block for block in blocks if isinstance(block, kind)]


@pytest.fixture(scope="module")
def view(request):
    """The lesson of the test module: its `LESSON`."""
    return LessonView(request.module.LESSON)


@pytest.fixture(scope="session")
def view_of():
    """A view of any lesson by its number."""
    return lambda number: LessonView(load_lesson(number))


@pytest.fixture(scope="session")
def make_translator(toy):
    """Make an untrained model of a kind; options override the small sizes."""

    def make(kind="transformer", *, seed=5, **options):
        tokenizer = toy.prepared.tokenizer
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = build_model(kind, {**SIZES[kind], **options}, tokenizer).eval()
        return Translator(model, tokenizer)

    return make
