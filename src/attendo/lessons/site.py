"""The lessons as pages of the documentation: `python -m attendo.lessons.site docs/lessons`.

Pages and pictures are computed anew whenever the documentation is built; none is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from attendo.core.files import write_atomically
from attendo.lessons.blocks import LANGUAGES, Lang
from attendo.lessons.contents import list_lessons
from attendo.lessons.markdown import write_page

TITLES = {"en": "Lessons", "ko": "강의"}
OPENINGS = {
    "en": "Fifteen short lessons; every number is computed by Attendo's own model. In the terminal `attendo lessons 4` shows one and "
    "`--set` changes its inputs; in the web application (`attendo serve`) they follow as you change them. "
    '`attendo.lessons.pictures.draw("two_heads", "heads.png", translator=...)` draws any picture of theirs.',
    "ko": "짧은 강의 열다섯 편입니다. 모든 숫자는 Attendo의 모델이 직접 계산한 것입니다. 터미널에서는 `attendo lessons 4 --lang ko`로 열고 "
    "`--set`으로 값을 바꿉니다. 웹 화면(`attendo serve`)에서는 바꾸는 대로 숫자가 따라옵니다. "
    '`attendo.lessons.pictures.draw("two_heads", "heads.png", translator=..., lang="ko")`는 강의의 그림을 하나씩 그려 줍니다.',
}


def write_site(folder: Path) -> list[Path]:
    """Write an index and a page a lesson, in both languages."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for lang in LANGUAGES:
        suffix = "" if lang == "en" else f".{lang}"
        written.append(folder / f"index{suffix}.md")
        write_atomically(written[-1], _write_index(lang))
        for lesson in list_lessons():
            fixed = {one.name: False for one in lesson.inputs if one.name == "measure"}
            page = write_page(lesson, lesson.blocks(fixed), lang)  # no timings of this machine
            written.append(folder / f"{page.name}{suffix}.md")
            write_atomically(written[-1], page.text)
            for name, data in page.pictures.items():
                write_atomically(folder / name, data)
    return written


def _write_index(lang: Lang) -> str:
    lines = [
        f"{lesson.number}. [{lesson.title.say(lang)}](lesson-{lesson.number:02d}.md): {lesson.summary.say(lang)}"
        for lesson in list_lessons()
    ]
    return "\n\n".join([f"# {TITLES[lang]}", OPENINGS[lang], "\n".join(lines)]) + "\n"


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
