"""The lessons as pages of the documentation: `python -m attendo.lessons.render.site docs/lessons`.

Pages and images are computed whenever the documentation is built; none is kept in the repository.
With `--model`, the last section of every lesson shows a trained model, and one page runs it in the
browser.
"""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.lessons.blocks import LANGUAGES, Lang
from attendo.lessons.contents import load_lessons
from attendo.lessons.figures import LESSON_NUMBERS, describe
from attendo.lessons.machine_values import page_drawing
from attendo.lessons.own_model import build_section
from attendo.lessons.prose import Prose
from attendo.lessons.render.markdown import write_code_page, write_lesson
from attendo.lessons.render.track_page import write_track_page
from attendo.lessons.teaching.guide import write_teaching_page
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

prose = Prose("attendo.lessons")

PAGE_FOLDER, PAGE_STYLE = "translator-page", "width: 100%; height: 60rem; border: 0"
MACHINE_LESSON, MACHINE_HASH = 0, "#machine"
"""The lesson that shows the drawing, and where the page shows only that."""
PAGE_EXAMPLES = {"ko": "어제 카페 갔었어 거기 사람 많더라", "en": "I went to the cafe yesterday."}

EXAMPLE_CALL = """```python
from attendo import Translator

translator = Translator.load("runs/quickstart/ko-en")
text = "어제 카페 갔었어 거기 사람 많더라"
plot("two_heads", "two_heads.png", translator=translator, text=text, lang="{lang}")
plot("learning_rate", "learning_rate.svg", lang="{lang}")  # {comment}
```"""


def write_site(folder: Path, *, model: Path | None = None, text: str | None = None) -> list[Path]:
    """Write an index and one page per lesson, in both languages; return the pages.

    Args:
        folder: the folder to write to.
        model: a trained model for the last section of every lesson.
        text: the sentence for it; by default a short one in the model's language.

    """
    folder.mkdir(parents=True, exist_ok=True)
    translator = None if model is None else Translator.load(model)
    for old in folder.glob("lesson-*"):  # images of an earlier model
        old.unlink()
    written = _write(folder, {f"index{_suffix(lang)}.md": _write_index(lang) for lang in LANGUAGES})
    _write(folder, {f"code{_suffix(lang)}.md": write_code_page(lang) for lang in LANGUAGES})
    _write(folder, {f"teaching{_suffix(lang)}.md": write_teaching_page(lang) for lang in LANGUAGES})
    _write(folder, {f"build{_suffix(lang)}.md": write_track_page(lang) for lang in LANGUAGES})
    reason = "no model" if model is None else _write_page(folder / PAGE_FOLDER, model, text)
    _write(
        folder, {f"translator{_suffix(lang)}.md": _embed_page(lang, reason) for lang in LANGUAGES}
    )
    for lesson in load_lessons():
        own_section = None if translator is None else build_section(lesson, translator, text)
        fixed_inputs = {one.name: False for one in lesson.inputs if one.name == "measure"}
        for lang in LANGUAGES:  # timings of this computer are left out
            page = write_lesson(lesson, lesson.blocks(fixed_inputs), lang, own_section)
            frame = ""
            if lesson.number == MACHINE_LESSON and reason is None:
                title = prose("machine-at-work").localize(lang)
                frame = f"\n## {title}\n\n{_embed(lang, title, MACHINE_HASH)}\n"
            written += _write(folder, {f"{page.name}{_suffix(lang)}.md": page.text + frame})
            _write(folder, page.images)
    return written


def _write_page(folder: Path, model: Path, text: str | None) -> str | None:
    """Export the model as a page that runs in the browser; return why that is impossible."""
    from attendo.interop.web.export import export_web

    shutil.rmtree(folder, ignore_errors=True)
    lang = Translator.load(model).about.get("src_lang")
    examples = [text] if text else [PAGE_EXAMPLES[lang]] if lang in PAGE_EXAMPLES else []
    try:
        export_web([model], folder, examples=examples, draw=page_drawing)
    except AttendoError as error:
        return str(error)
    return None


def _embed_page(lang: Lang, reason: str | None) -> str:
    title = prose("translator-title").localize(lang)
    if reason is not None:
        return f"# {title}\n\n{prose('translator-missing').localize(lang)}\n"
    introduction = prose("translator-introduction").localize(lang)
    return f"# {title}\n\n{introduction}\n\n{_embed(lang, title)}\n"


def _embed(lang: Lang, title: str, fragment: str = "") -> str:
    """Return an element that shows the page which runs the model."""
    up = "../" if lang == "en" else "../../../lessons/"
    source = f"{up}{PAGE_FOLDER}/index.html{fragment}"
    frame = f'<iframe src="{source}" title="{title}" class="translator" loading="lazy"'
    return f'{frame} style="{PAGE_STYLE}"></iframe>'


def _write(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


def _suffix(lang: Lang) -> str:
    return "" if lang == "en" else f".{lang}"


def _write_index(lang: Lang) -> str:
    lines = [
        f"{lesson.number}. [{lesson.title.localize(lang)}](lesson-{lesson.number:02d}.md): "
        f"{lesson.summary.localize(lang)}"
        for lesson in load_lessons()
    ]
    headers = (prose("figure"), prose("figure-shows"), prose("figure-lesson"))
    table = [" | ".join(one.localize(lang) for one in headers), ":-- | :-- | --:"]
    table += [
        f"`{name}` | {describe(name, lang)} | {number}" for name, number in LESSON_NUMBERS.items()
    ]
    parts = [
        f"# {prose('site-title').localize(lang)}",
        prose("site-introduction").localize(lang),
        "\n".join(lines),
        prose("for-teachers").localize(lang),
        prose("site-track").localize(lang),
        f"## {prose('figures').localize(lang)}",
        prose("figures-introduction").localize(lang),
    ]
    parts += [
        EXAMPLE_CALL.format(lang=lang, comment=prose("example-comment").localize(lang)),
        "\n".join(f"| {row} |" for row in table),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages, with options from the command line."""
    parser = ArgumentParser(
        prog="python -m attendo.lessons.render.site", description="Write the lessons as pages."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text")
    options = parser.parse_args(arguments)
    try:
        write_site(options.folder, model=options.model, text=options.text)
    except AttendoError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
