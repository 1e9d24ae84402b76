"""What the pages claim exists: files, names, tests and commands."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.model.presets import get_preset
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from pathlib import Path

ROW = re.compile(r"^\| (?P<says>.+?) \| (?P<where>.*?) \| ?(?P<held>.*?) ?\|$", re.MULTILINE)


def names_in(path: Path) -> set[str]:
    """Every class, function and method of a Python file, methods as `Class.method` and alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef)
            }
    return found


def map_rows(repository: Path) -> list[tuple[str, str, str]]:
    text = (repository / "docs/paper_map.md").read_text(encoding="utf-8")
    sections = text.split("## Where we depart")[0]
    rows = [(row["says"], row["where"], row["held"]) for row in ROW.finditer(sections)]
    return [row for row in rows if row[0] != "the paper says" and not row[0].startswith("---")]


def check_references(cell: str, root: Path) -> list[str]:
    """Resolve `file.py` `name`, `name` pairs; give what does not exist."""
    missing, names = [], set()
    for reference in re.findall(r"`([^`]+)`", cell):
        if reference.startswith("configs/"):
            missing += [] if (root.parent.parent / reference).is_file() else [reference]
        elif reference.endswith(".py"):
            path = root / reference
            names = names_in(path) if path.is_file() else set()
            missing += [] if path.is_file() else [reference]
        elif reference not in names:
            missing.append(reference)
    return missing


def test_the_paper_map_points_at_code_and_tests_that_exist(repository):
    rows = map_rows(repository)
    assert len(rows) > 35
    for says, where, held in rows:
        assert not check_references(where, repository / "src/attendo"), says
        assert held, says
        assert not check_references(held, repository / "tests"), says


@pytest.mark.parametrize(
    "page", ["README.md", "README.ko.md", "CONTRIBUTING.md", "docs/index.md", "docs/index.ko.md"]
)
def test_make_targets_and_files_named_on_a_page_exist(repository, page):
    text = (repository / page).read_text(encoding="utf-8")
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)`", text)) <= targets
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if not link.startswith(("http", "lessons/")):  # lessons are written as docs are built
            assert (repository / page).parent.joinpath(link).exists(), link


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/index.md",
        "docs/guides/model.md",
        "docs/guides/translate.md",
        "docs/guides/documents.md",
        "docs/guides/evaluate.md",
        "docs/guides/look.md",
        "docs/guides/baselines.md",
        "docs/guides/interop.md",
        "docs/guides/serve.md",
    ],
)
def test_python_on_a_page_runs(repository, page, folder_with_a_run, monkeypatch):
    monkeypatch.chdir(folder_with_a_run)
    text = (repository / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)  # noqa: S102 - our own pages


@pytest.fixture(scope="module")
def folder_with_a_run(tmp_path_factory) -> Path:
    """A place where `runs/ko-en` holds a model (that has learned nothing)."""
    folder = tmp_path_factory.mktemp("place")
    for language in ("ko", "en"):
        lines = [getattr(pair, language) for pair in synthesize_pairs(400, seed=1)]
        (folder / language).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = (folder / "ko", folder / "en")
    config = TokenizerConfig(vocab_size=900)
    tokenizer = train_tokenizer(*files, config, num_pairs=400, seed=1)
    options = {**get_preset("tiny").options, "num_layers": 1}
    model = build_model("transformer", options, tokenizer)
    save_bundle(folder / "runs" / "ko-en", model, tokenizer)
    return folder


def test_every_package_is_named_in_contributing(repository):
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (repository / "src/attendo").glob("*/__init__.py")]
    assert packages
    assert [name for name in packages if f"`{name}/`" not in text] == []


def test_pages_in_both_languages_have_the_same_code(repository):
    """So that only the English ones need to run."""
    made = repository / "docs" / "lessons"  # by the lessons themselves, each in its language
    pages = (repository / "docs").rglob("*.ko.md")
    korean_pages = [page for page in pages if made not in page.parents]
    assert korean_pages
    for korean in (repository / "README.ko.md", *korean_pages):
        english = korean.with_name(korean.name.replace(".ko.md", ".md"))
        assert code_in(korean) == code_in(english), korean.name


def code_in(page: Path) -> list[str]:
    """The Python of a page, without its comments."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    return [ast.unparse(ast.parse(block)) for block in blocks]
