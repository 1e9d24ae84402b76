"""Lines of a function or class, read from its source when a lesson is shown.

Docstrings are left out, because the lesson explains the code. A region of a function begins at
the statement that assigns a name, so that it moves with the code.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import keyword
import tokenize
from importlib import import_module
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILTINS = frozenset(dir(builtins))
STRING_TOKENS = {"STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END"}
"""Python 3.12 splits an f-string into several tokens."""


class Excerpt(NamedTuple):
    """A function, method or class, or the part of a function from an assignment on."""

    module: str
    name: str
    since: str = ""
    """The variable or attribute that the first statement of the region assigns."""


class SourceLines(NamedTuple):
    """The lines of an excerpt and where they are."""

    file: str
    """Below the repository."""
    line: int
    text: str


def read_excerpt(excerpt: Excerpt) -> SourceLines:
    """Return the lines of an excerpt, without indentation and docstrings."""
    target: Any = import_module(excerpt.module)
    for part in excerpt.name.split("."):
        target = getattr(target, part)
    lines, first = inspect.getsourcelines(target)
    code = dedent("".join(lines))
    (node,) = ast.parse(code).body
    kept = sorted(set(range(1, len(lines) + 1)) - set(_docstring_lines(node)))
    if excerpt.since:
        begin = _first_assignment(node, excerpt)
        kept = [number for number in kept if number >= begin]
    code_lines = code.splitlines()
    text = dedent("\n".join(code_lines[number - 1] for number in kept)).strip("\n")
    return SourceLines(f"src/{excerpt.module.replace('.', '/')}.py", first + kept[0] - 1, text)


def _docstring_lines(node: ast.AST) -> Iterator[int]:
    """Yield the lines of every docstring, and the empty line after that of a class."""
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one):
            docstring = one.body[0]
            end = docstring.end_lineno or docstring.lineno
            yield from range(docstring.lineno, end + 1 + isinstance(one, ast.ClassDef))


def _first_assignment(node: ast.stmt, excerpt: Excerpt) -> int:
    """Return the line of the first statement of a function that assigns the name."""
    for statement in getattr(node, "body", []):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names = {getattr(one, "id", getattr(one, "attr", "")) for one in targets}
        if excerpt.since in names:
            return int(statement.lineno)
    raise ValueError(f"{excerpt.name} assigns no '{excerpt.since}' in a statement of its own")


def highlight(code: str) -> list[list[tuple[str, str]]]:
    """Return the lines of code as pairs of a style and a text.

    Styles are keyword, string, number, comment, definition, builtin, or empty.

    >>> highlight("x = len(y)  # how many")
    [[('', 'x = '), ('builtin', 'len'), ('', '(y)  '), ('comment', '# how many')]]
    """
    lines = code.splitlines()
    styled: list[list[tuple[str, str]]] = [[] for _ in lines]
    ends = [0] * len(lines)
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        style = _style_of(token, previous)
        previous = token.string if token.type == tokenize.NAME else ""
        if not style:
            continue
        for row in range(token.start[0] - 1, token.end[0]):
            begin = token.start[1] if row == token.start[0] - 1 else 0
            end = token.end[1] if row == token.end[0] - 1 else len(lines[row])
            if begin > ends[row]:
                styled[row].append(("", lines[row][ends[row] : begin]))
            styled[row].append((style, lines[row][begin:end]))
            ends[row] = end
    for row, line in enumerate(lines):
        if ends[row] < len(line):
            styled[row].append(("", line[ends[row] :]))
    return styled


def _style_of(token: tokenize.TokenInfo, previous: str) -> str:
    """Return the style of a token; `previous` is the name before it."""
    if tokenize.tok_name[token.type] in STRING_TOKENS:
        return "string"
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type != tokenize.NAME:
        return ""
    if keyword.iskeyword(token.string):
        return "keyword"
    if previous in ("def", "class"):
        return "definition"
    return "builtin" if token.string in BUILTINS or token.string == "self" else ""
