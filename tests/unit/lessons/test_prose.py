"""The text files of the lessons: the same fragments in both languages, each used by the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import attendo.lessons
from attendo.lessons.blocks import LocalizedText
from attendo.lessons.prose import Prose, holes_of, load_fragments, parse_fragments

LESSONS = Path(attendo.lessons.__file__).parent
FOLDERS = [
    LESSONS,
    LESSONS / "diagrams",
    LESSONS / "excerpts",
    LESSONS / "track",
    *sorted(LESSONS.glob("chapters/ch*")),
]


def package_of(folder):
    return ".".join(("attendo", *folder.relative_to(LESSONS.parent).parts))


def modules_of(folder):
    """Return the modules that use the text of a folder; some are in other folders."""
    others = {
        LESSONS: [one for one in LESSONS.glob("render/*.py") if one.stem != "track_page"],
        LESSONS / "track": [
            LESSONS / "render" / "track_page.py",
            LESSONS.parent / "cli" / "lessons_build.py",
        ],
    }
    return [*folder.glob("*.py"), *others.get(folder, [])]


def calls_of(folder):
    """Return a pattern of the name and the keywords of every call of `prose` in a folder."""
    for path in modules_of(folder):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "prose":
                yield name_pattern(node.args[0]), {keyword.arg for keyword in node.keywords}


def name_pattern(node):
    """Return a regular expression for a name, where an f-string stands for several."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(
        re.escape(part.value) if isinstance(part, ast.Constant) else "[a-z0-9-]+" for part in parts
    )


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def test_both_languages_have_the_same_fragments_and_holes(folder):
    english, korean = (load_fragments(package_of(folder), lang) for lang in ("en", "ko"))
    assert list(english) == list(korean)
    assert all(english.values())
    assert all(korean.values())
    for name in english:
        assert holes_of(english[name]) == holes_of(korean[name]), name


def test_every_fragment_is_used_and_every_use_has_a_fragment(folder):
    fragments = load_fragments(package_of(folder), "en")
    used = set()
    for pattern, keywords in calls_of(folder):
        names = [name for name in fragments if re.fullmatch(pattern, name)]
        assert names, f"no fragment {pattern}"
        used.update(names)
        for name in names:
            assert None in keywords or keywords == holes_of(fragments[name]), name
    assert not set(fragments) - used


def test_a_fragment_is_filled_in_both_languages():
    prose = Prose("attendo.lessons.chapters.ch11_architecture")
    side = LocalizedText("encoder", "인코더")
    filled = prose("part-of-stack", side=side, part="W")
    assert (filled.en, filled.ko) == ("encoder: W", "인코더: W")
    with pytest.raises(ValueError, match="has the holes"):
        prose("part-of-stack", side=side)
    with pytest.raises(KeyError):
        prose("no-such-fragment")


@pytest.mark.parametrize("text", ["stray text", "## a\none\n## a\ntwo", "# T\n- a: b\n- a: c"])
def test_a_bad_file_is_rejected(text):
    with pytest.raises(ValueError, match=r"outside of a fragment|two fragments"):
        parse_fragments(text)
