"""The vocabulary check of `make check`: what it reads, and what it finds."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def vocabulary():
    spec = spec_from_file_location("check_vocabulary", ROOT / "tools" / "check_vocabulary.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sources_messages_pages_and_the_front_end_are_read(vocabulary, monkeypatch):
    monkeypatch.chdir(ROOT)
    files = {str(path) for path in vocabulary.list_files()}
    assert {
        "README.md",
        "docs/guides/train.ko.md",
        "src/attendo/cli/train.py",
        "src/attendo/i18n/locale/ko.po",
        "frontend/src/i18n/ko.ts",
        "frontend/src/app/App.svelte",
    } <= files
    assert not any("node_modules" in path for path in files)


@pytest.mark.parametrize(
    "line",
    [
        "def walk_places(x):",
        "class BeamDesk:",
        "const placeOn = 1;",
        '"""Give the length."""',
        "다음 걸음",
        "그래디언트",
    ],
)
def test_banned_words_are_found_in_identifiers_and_texts(vocabulary, tmp_path, line):
    path = tmp_path / "file.py"
    path.write_text(f"{line}\n")
    assert vocabulary.check(path)


@pytest.mark.parametrize("line", ["place-items: center;", "written in place", "os.walk(x)"])
def test_allowed_phrases_are_no_findings(vocabulary, tmp_path, line):
    path = tmp_path / "file.py"
    path.write_text(f"{line}\n")
    assert vocabulary.check(path) == []


def test_of_tests_only_the_names_are_checked(vocabulary, tmp_path):
    path = tmp_path / "test_file.py"
    path.write_text('def test_walked_places():\n    assert "she told him"\n')
    assert [one.split(": ")[1] for one in vocabulary.check_names(path)] == [
        "places -> index, position, path, slot",
        "walked -> loop, traverse, greedy",
    ]


def test_the_tests_are_read(vocabulary, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert Path("tests/unit/test_vocabulary.py") in vocabulary.list_tests()
    assert Path("frontend/tests/i18n.test.ts") in vocabulary.list_files()
