"""The learner's folder: a README, and a file that grows by one step when the last one passes.

What the learner has written is never changed; the next step is appended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.lessons.prose import Prose
from attendo.lessons.track.steps import STEPS, begin_file, last_step, write_step

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.lessons.blocks import Lang
    from attendo.lessons.track.steps import Step

prose = Prose("attendo.lessons.track")

FILE_NAME = "my_transformer.py"


class TrackFolder(NamedTuple):
    """A folder of the track."""

    path: Path

    @property
    def file(self) -> Path:
        """The learner's file."""
        return self.path / FILE_NAME

    @property
    def step(self) -> Step:
        """The last step that the file has a definition of; the first one in an empty file."""
        return STEPS[max(1, last_step(self.read())) - 1]

    def read(self) -> str:
        """Return the learner's file."""
        try:
            return self.file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(
                message("{path} is not UTF-8", path=self.file), hint="save the file as UTF-8"
            ) from None

    def create(self, lang: Lang) -> None:
        """Write the README, unless there is one, and the file with the first step."""
        self.path.mkdir(parents=True, exist_ok=True)
        readme = self.path / "README.md"
        if not readme.exists():
            write_atomically(readme, write_readme(lang))
        write_atomically(self.file, begin_file(lang) + write_step(STEPS[0], lang))

    def restore(self, lang: Lang) -> None:
        """Append the first step to a file without any."""
        text = self.read()
        if last_step(text) == 0:
            write_atomically(self.file, text + begin_file(lang) + write_step(STEPS[0], lang))

    def append_step(self, step: Step, lang: Lang) -> None:
        """Append an explanation and the stub of a step."""
        text = self.read()
        end = "" if text.endswith("\n") else "\n"
        write_atomically(self.file, text + end + write_step(step, lang))


def write_readme(lang: Lang) -> str:
    """Return the text on how to work, and the ten steps."""
    steps = "\n".join(f"{one.number}. {one.title.localize(lang)}" for one in STEPS)
    parts = [
        f"# {prose('track-title').localize(lang)}",
        prose("introduction", file=FILE_NAME, count=len(STEPS)).localize(lang),
        prose("how-to-work", file=FILE_NAME).localize(lang),
        f"```sh\n{write_usage(lang)}\n```",
        steps,
        prose("when-finished").localize(lang),
    ]
    return "\n\n".join(parts) + "\n"


def write_usage(lang: Lang) -> str:
    """Return the commands, with what they do."""
    options = {"": "check", " --hint": "hint", " --solution": "solution"}
    return "\n".join(
        f"attendo lessons build .{option:<12}# {prose(f'usage-{name}').localize(lang)}"
        for option, name in options.items()
    )
