"""A step of a build: what it reads, what it writes, and the commands in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

RECORD_FILE, FAILURE_FILE = "step.json", "failure.json"


class Output(NamedTuple):
    """A file or folder that another step writes."""

    step: str
    path: str


@dataclass(frozen=True)
class Command:
    """A command of `attendo` (words), or a function, and what shows that it is done."""

    run: Sequence[str] | Callable[[], None]
    output: Path
    """Written last, atomically: a command whose output exists is not run again."""
    can_resume: bool = False
    """Whether `--resume` continues an interrupted output."""
    watched: tuple[str, Path, int] | None = None
    """Where its progress can be read: "train" or "lines", a path, and the total."""
    begun: Path | None = None
    """What shows that an interrupted output is there; by default the partial file next to it."""

    def has_begun(self) -> bool:
        """Return whether an interrupted output was kept."""
        if self.begun is not None:
            return self.begun.is_file()
        partial = self.output.with_name(f".{self.output.name}.partial")
        return partial.is_file() and partial.with_name(f"{partial.name}.json").is_file()


@dataclass(frozen=True)
class StepPaths:
    """The folder of a step, and where its inputs are."""

    folder: Path
    inputs: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.inputs[name]


class Work(NamedTuple):
    """How much there is to do, for an estimate of the time."""

    kind: Literal["train", "translate", "other"]
    amount: float
    """Tokens that are trained on, lines that are translated, or seconds."""


@dataclass(frozen=True)
class Step:
    """One step of a build.

    Args:
        name: the name, unique in a build.
        version: of the code of the step: raised when it would write something else.
        settings: every setting that changes the result, as JSON.
        commands: returns the commands; called when the inputs are there.
        outputs: the files and folders that other steps may read.
        files: inputs from outside the build.
        needs: inputs from other steps.
        uses_gpu: whether it is worth running where a GPU is.
        work: how much there is to do, if that is known beforehand.

    """

    name: str
    version: int
    settings: Any
    commands: Callable[[StepPaths], Sequence[Command]]
    outputs: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict)
    needs: Mapping[str, Output] = field(default_factory=dict)
    uses_gpu: bool = False
    work: Work | None = None

    @property
    def parents(self) -> list[str]:
        """The steps whose outputs are read, each once."""
        return list(dict.fromkeys(output.step for output in self.needs.values()))


class StepGraph:
    """Steps in an order in which they can run.

    Args:
        steps: each after those that it needs.

    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self._by_name: dict[str, Step] = {}
        for step in steps:
            for name, output in step.needs.items():
                parent = self._by_name.get(output.step)
                if parent is None or output.path not in parent.outputs:
                    raise ConfigError(f"step {step.name}: input {name} of {output} does not exist")
            if step.name in self._by_name:
                raise ConfigError(f"two steps have the name {step.name}")
            self._by_name[step.name] = step

    def __getitem__(self, name: str) -> Step:
        if name not in self._by_name:
            raise ConfigError(
                message("no step '{name}'", name=name),
                hint=message("its steps are {names}", names=", ".join(self._by_name)),
            )
        return self._by_name[name]

    def ancestors(self, name: str) -> set[str]:
        """Return the steps that a step needs, directly or not."""
        found: set[str] = set()
        for parent in self[name].parents:
            found |= {parent} | self.ancestors(parent)
        return found

    def descendants(self, name: str) -> set[str]:
        """Return the steps that need a step, directly or not."""
        return {step.name for step in self.steps if name in self.ancestors(step.name)} - {
            self[name].name
        }

    def select(
        self, *, only: str | None = None, until: str | None = None, first: str | None = None
    ) -> list[Step]:
        """Return the steps that a command names, in order; all by default."""
        names = {step.name for step in self.steps}
        if only is not None:
            names = {self[only].name}
        if until is not None:
            names &= {until} | self.ancestors(until)
        if first is not None:
            names &= {first} | self.descendants(first)
        return [step for step in self.steps if step.name in names]
