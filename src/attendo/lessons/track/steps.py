"""The ten steps, and their stubs and solutions, cut from the finished file."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from attendo.lessons.blocks import parse_markup
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.lessons.blocks import Lang, LocalizedText

prose = Prose("attendo.lessons.track")

DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)
COMMENT_WIDTH = {"en": 96, "ko": 56}
"""Characters of a line of explanation; a Hangul letter is two columns wide."""


class Step(NamedTuple):
    """Definitions that belong together, and the lessons that explain them."""

    number: int
    names: tuple[str, ...]
    lessons: tuple[int, ...]
    num_hints: int = 2

    @property
    def title(self) -> LocalizedText:
        """What the learner writes."""
        return prose(f"title-{self.number}")

    @property
    def explanation(self) -> LocalizedText:
        """What the parts do, and what they must return."""
        return prose(f"explanation-{self.number}")

    def hint(self, number: int) -> LocalizedText:
        """Return a hint, counted from 1; the last one is the clearest."""
        return prose(f"hint-{self.number}-{min(max(number, 1), self.num_hints)}")

    @property
    def solution(self) -> str:
        """The finished definitions."""
        return _join(_source_of(name) for name in self.names)

    @property
    def stub(self) -> str:
        """The definitions without their bodies."""
        return _join(_stub_of(_find(name), self.number) for name in self.names)


STEPS = (
    Step(1, ("scaled_dot_product",), (4, 5)),
    Step(2, ("padding_mask", "causal_mask"), (7,)),
    Step(3, ("MultiHeadAttention",), (6,)),
    Step(4, ("sinusoidal",), (3,)),
    Step(5, ("FeedForward",), (10,)),
    Step(6, ("TiedEmbedding",), (2, 12)),
    Step(7, ("AddAndNorm",), (8, 9)),
    Step(8, ("EncoderLayer", "Encoder"), (11,)),
    Step(9, ("DecoderLayer", "Decoder"), (7, 11)),
    Step(
        10, ("Transformer", "learning_rate", "smoothed_loss", "train_step", "greedy"), (11, 13, 14)
    ),
)


def last_step(text: str) -> int:
    """Return the highest step that a file has a definition of, also in a file with errors."""
    names = set(DEFINITION.findall(text))
    return max((one.number for one in STEPS if names & set(one.names)), default=0)


def begin_file(lang: Lang) -> str:
    """Return the file that a learner begins with: imports and the first step."""
    return f"{_comment(prose('file-introduction').localize(lang))}\n\n{imports()}\n"


def write_step(step: Step, lang: Lang) -> str:
    """Return what is appended to the learner's file: an explanation and the stub."""
    title = prose("step-title", number=step.number, count=len(STEPS), title=step.title)
    numbers = prose("lesson-numbers", numbers=", ".join(map(str, step.lessons)))
    lines = f"{step.explanation.localize(lang)} {numbers.localize(lang)}"
    comment = "\n".join([_comment(title.localize(lang)), "#", _comment(lines)])
    return f"\n\n{comment}\n\n\n{step.stub}\n"


def _comment(text: str) -> str:
    plain = "".join(part for _, part in parse_markup(text))
    is_korean = any("가" <= letter <= "힣" for letter in plain)
    width = COMMENT_WIDTH["ko" if is_korean else "en"]
    return "\n".join(f"# {line}" for line in wrap(plain, width, break_long_words=False))


@cache
def finished_source() -> str:
    """Return the text of the finished file."""
    return (files("attendo.lessons.track") / "finished.py").read_text(encoding="utf-8")


@cache
def _definitions() -> dict[str, ast.FunctionDef | ast.ClassDef]:
    body = ast.parse(finished_source()).body
    return {one.name: one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}


def _find(name: str) -> ast.FunctionDef | ast.ClassDef:
    return _definitions()[name]


def imports() -> str:
    """Return the imports of the finished file."""
    nodes = ast.parse(finished_source()).body
    lines = [ast.unparse(one) for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]
    return "\n".join([lines[0], "", *lines[1:]])  # the standard library first


def _source_of(name: str) -> str:
    node = _find(name)
    return _lines(_first_line(node), node.end_lineno or node.lineno)


def _lines(first: int, last: int) -> str:
    return "\n".join(finished_source().splitlines()[first - 1 : last])


def _first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _stub_of(node: ast.FunctionDef | ast.ClassDef, step: int) -> str:
    """Return head and docstring, and for a class those of its public methods."""
    head = _lines(_first_line(node), _end_of_head(node))
    if isinstance(node, ast.FunctionDef):
        return f'{head}\n{" " * (node.col_offset + 4)}raise NotImplementedError("step {step}")'
    methods = [
        one
        for one in node.body
        if isinstance(one, ast.FunctionDef) and (one.name == "__init__" or one.name[0] != "_")
    ]
    return "\n\n".join([head, *(_stub_of(one, step) for one in methods)])


def _end_of_head(node: ast.FunctionDef | ast.ClassDef) -> int:
    """Return the last line of the docstring, or of `super().__init__()` in an initializer."""
    first = node.body[0]
    return first.end_lineno or first.lineno


def _join(parts: Iterator[str]) -> str:
    return "\n\n\n".join(parts)
