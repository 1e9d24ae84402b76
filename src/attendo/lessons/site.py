"""The lessons as pages of the documentation: `python -m attendo.lessons.site docs/lessons`.

Pages and pictures are computed anew whenever the documentation is built; none is kept. With
`--model` the last part of every lesson is drawn from a trained model.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.lessons.blocks import LANGUAGES, Lang
from attendo.lessons.contents import load_lessons
from attendo.lessons.markdown import write_lesson
from attendo.lessons.own_model import build_section
from attendo.lessons.pictures import LESSON_NUMBERS, describe
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TITLES = {"en": "Lessons", "ko": "강의"}
INTRODUCTIONS = {
    "en": "Fifteen short lessons; every number is computed by Attendo's own model. In the terminal `attendo lessons 4` shows one and "
    "`--set` changes its inputs; in the web application (`attendo serve`) they follow as you change them.",
    "ko": "짧은 강의 열다섯 편입니다. 모든 숫자는 Attendo의 모델이 직접 계산한 것입니다. 터미널에서는 `attendo lessons 4 --lang ko`로 열고 "
    "`--set`으로 값을 바꿉니다. 웹 화면(`attendo serve`)에서는 바꾸는 대로 숫자가 따라옵니다.",
}
PICTURES = {
    "en": (
        "Pictures",
        "One call draws any picture of the lessons, from your own model and sentence where it shows a model; "
        "`decoder_steps` can also be written as an animated GIF.",
        ("picture", "what it shows", "lesson"),
    ),
    "ko": (
        "그림",
        "강의의 그림은 어느 것이든 한 번의 호출로 그립니다. 모델을 보여 주는 그림은 여러분의 모델과 문장으로 그리고, "
        "`decoder_steps`는 움직이는 GIF로도 쓸 수 있습니다.",
        ("그림", "보여 주는 것", "강의"),
    ),
}
EXAMPLE_CALL = """```python
from attendo import Translator
from attendo.lessons.pictures import draw

translator = Translator.load("runs/quickstart/ko-en")
draw("two_heads", "two_heads.png", translator=translator, text="나는 학생이다.", lang="{lang}")
draw("learning_rate", "learning_rate.svg", lang="{lang}")  # {comment}
```"""
COMMENTS = {"en": "needs no model", "ko": "모델이 필요 없습니다"}


def write_site(folder: Path, *, model: Path | None = None, text: str | None = None) -> list[Path]:
    """Write an index and a page a lesson, in both languages.

    Args:
        folder: where to.
        model: a trained model, for the last part of every lesson; told to get one if none.
        text: the sentence for it; a short one in the model's language when not given.

    """
    folder.mkdir(parents=True, exist_ok=True)
    translator = None if model is None else Translator.load(model)
    for old in folder.glob("lesson-*"):  # pictures of a model that is not there any more
        old.unlink()
    written = _write(folder, {f"index{_suffix(lang)}.md": _write_index(lang) for lang in LANGUAGES})
    for lesson in load_lessons():
        own_section = None if translator is None else build_section(lesson, translator, text)
        fixed_inputs = {one.name: False for one in lesson.inputs if one.name == "measure"}
        for lang in LANGUAGES:  # without timings of this machine
            page = write_lesson(lesson, lesson.blocks(fixed_inputs), lang, own_section)
            written += _write(folder, {f"{page.name}{_suffix(lang)}.md": page.text})
            _write(folder, page.images)
    return written


def _write(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


def _suffix(lang: Lang) -> str:
    return "" if lang == "en" else f".{lang}"


def _write_index(lang: Lang) -> str:
    lines = [
        f"{lesson.number}. [{lesson.title.localize(lang)}](lesson-{lesson.number:02d}.md): {lesson.summary.localize(lang)}"
        for lesson in load_lessons()
    ]
    title, introduction, headers = PICTURES[lang]
    table = [" | ".join(headers), ":-- | :-- | --:"]
    table += [
        f"`{name}` | {describe(name, lang)} | {number}" for name, number in LESSON_NUMBERS.items()
    ]
    parts = [
        f"# {TITLES[lang]}",
        INTRODUCTIONS[lang],
        "\n".join(lines),
        f"## {title}",
        introduction,
    ]
    parts += [
        EXAMPLE_CALL.format(lang=lang, comment=COMMENTS[lang]),
        "\n".join(f"| {row} |" for row in table),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages that a command line asks for."""
    parser = ArgumentParser(
        prog="python -m attendo.lessons.site", description="Write the lessons as pages."
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
