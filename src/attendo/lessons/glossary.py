"""The glossary of the lessons: each term in both languages, and the lesson that explains it.

`python -m attendo.lessons.glossary docs` writes `glossary.md` and `glossary.ko.md`.
"""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.files import write_atomically
from attendo.lessons.blocks import LANGUAGES, LocalizedText
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.lessons.blocks import Lang

prose = Prose("attendo.lessons")


class Term(NamedTuple):
    """A term of the lessons."""

    name: LocalizedText
    lesson: int
    meaning: LocalizedText

    def sort_key(self, lang: Lang) -> str:
        """Return what the terms of a language are sorted by."""
        return self.name.localize(lang).casefold()


@cache
def load_terms() -> tuple[Term, ...]:
    """Return all terms."""
    text = (files("attendo.lessons") / "glossary.toml").read_text(encoding="utf-8")
    return tuple(
        Term(LocalizedText(one["en"], one["ko"]), one["lesson"], LocalizedText(**one["meaning"]))
        for one in tomllib.loads(text)["term"]
    )


def sorted_terms(lang: Lang) -> list[Term]:
    """Return the terms in the alphabetical order of a language."""
    return sorted(load_terms(), key=lambda term: term.sort_key(lang))


def terms_of(lesson: int, lang: Lang) -> list[Term]:
    """Return the terms that a lesson explains, in the alphabetical order of a language."""
    return [term for term in sorted_terms(lang) if term.lesson == lesson]


def headers(lang: Lang) -> list[str]:
    """Return the headers of the table: the term, its translation, the lesson, the meaning."""
    names = (
        prose("term"),
        prose("term-in-other-language"),
        prose("figure-lesson"),
        prose("meaning"),
    )
    return [name.localize(lang) for name in names]


def rows(lang: Lang, lesson: int | None = None) -> list[list[str]]:
    """Return the rows of the table, or those of one lesson."""
    terms = sorted_terms(lang) if lesson is None else terms_of(lesson, lang)
    return [
        [
            term.name.localize(lang),
            term.name.localize(other_language(lang)),
            str(term.lesson),
            term.meaning.localize(lang),
        ]
        for term in terms
    ]


def other_language(lang: Lang) -> Lang:
    """Return the other of the two languages."""
    return "en" if lang == "ko" else "ko"


def to_markdown(lang: Lang) -> str:
    """Return the page of the documentation."""
    lines = [headers(lang), [":--", ":--", "--:", ":--"]]
    for name, other, lesson, meaning in rows(lang):
        link = f"[{lesson}](lessons/lesson-{int(lesson):02d}.md)"
        lines.append([name, other, link, meaning])
    parts = [
        f"# {prose('glossary').localize(lang)}",
        prose("glossary-introduction").localize(lang),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
    ]
    return "\n\n".join(parts) + "\n"


def main(folder: Path) -> None:
    """Write the pages of the documentation."""
    for lang in LANGUAGES:
        suffix = "" if lang == "en" else f".{lang}"
        write_atomically(folder / f"glossary{suffix}.md", to_markdown(lang))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
