"""The text of the lessons: named fragments in Markdown files, one file per language.

A folder holds `text.en.md` and `text.ko.md` with the same fragments. A fragment is a paragraph
under a `## name` heading or, for short labels, a list item `- name: text` under a `# Title`
heading. `{hole}` and `{hole:.2f}` are filled in by the code, as in `str.format`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from attendo.lessons.blocks import LANGUAGES, Lang, LocalizedText

LABEL = re.compile(r"- ([a-z0-9-]+): (.+)")


class Prose:
    """The fragments of one package, filled in on request.

    >>> prose = Prose("attendo.lessons")
    >>> prose("paper-section", section="3.1").ko
    '논문 3.1절'
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __call__(self, name: str, /, **values: Any) -> LocalizedText:
        """Return a fragment with its holes filled; values may be localized texts themselves."""
        texts = {}
        for lang in LANGUAGES:
            template = load_fragments(self.package, lang)[name]
            if holes_of(template) != set(values):
                reason = f"{self.package}: '{name}' has the holes {sorted(holes_of(template))}"
                raise ValueError(f"{reason}, not {sorted(values)}")
            localized = {
                key: value.localize(lang) if isinstance(value, LocalizedText) else value
                for key, value in values.items()
            }
            texts[lang] = template.format(**localized)
        return LocalizedText(**texts)


@cache
def load_fragments(package: str, lang: Lang) -> dict[str, str]:
    """Return the fragments of a package in one language, by name."""
    file = files(package) / f"text.{lang}.md"
    return parse_fragments(file.read_text(encoding="utf-8"))


def parse_fragments(text: str) -> dict[str, str]:
    r"""Return the fragments of a Markdown text; the lines of a paragraph are joined.

    >>> parse_fragments("# Labels\n- sum: the sum\n## greeting\nHello,\n{name}.")
    {'sum': 'the sum', 'greeting': 'Hello, {name}.'}
    """
    lines: dict[str, list[str]] = {}
    current: str | None = None  # the fragment whose paragraph is being read
    for line in filter(None, map(str.strip, text.splitlines())):
        label = LABEL.fullmatch(line) if current is None else None
        if line.startswith("# "):
            current = None
        elif line.startswith("## ") or label:
            name, content = label.groups() if label else (line.removeprefix("## "), "")
            if name in lines:
                raise ValueError(f"two fragments are called '{name}'")
            lines[name] = [content] if content else []
            current = None if label else name
        elif current is not None:
            lines[current].append(line)
        else:
            raise ValueError(f"text outside of a fragment: {line}")
    return {name: " ".join(parts) for name, parts in lines.items()}


def holes_of(template: str) -> set[str]:
    """Return the names of the holes of a template.

    >>> sorted(holes_of("{a:.2f} of {b}, {{literally}}"))
    ['a', 'b']
    """
    return {hole for _, hole, _, _ in Formatter().parse(template) if hole is not None}
