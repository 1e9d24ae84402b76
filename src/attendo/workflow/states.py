"""The state of each step of a build: done, stale and why, interrupted, failed, or to do.

A build folder::

    BUILD/
      steps/NAME/KEY/     what a step has written; the key follows from settings, inputs and code
        step.json         its record, written last: with it, the step is done
        failure.json      why it failed
      latest/NAME         a link to the newest result of each step
      model/, int8/       the finished student, and its export
      report.md, report.json
      state.json          the state of all steps, for the page of runs
      .lock               held while a process builds
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.workflow.digests import make_key
from attendo.workflow.step import FAILURE_FILE, RECORD_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.workflow.digests import DigestCache
    from attendo.workflow.step import Step, StepGraph

StepState = Literal["done", "stale", "failed", "interrupted", "to do"]
STEPS_DIR = "steps"
MAX_REASONS = 3


@dataclass(frozen=True)
class StepStatus:
    """The state of a step, and what is known of it."""

    step: Step
    state: StepState
    key: str | None
    """None if an input is not there yet."""
    inputs: dict[str, str]
    """The digest of each input that is known."""
    reason: str = ""
    record: dict[str, Any] | None = None
    """What `step.json` says, of this result if it is done, or else of the newest one."""
    absent: tuple[str, ...] = ()
    """Outputs of a done step that are not in this folder: they were made on another machine."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == "done"

    @property
    def seconds(self) -> float | None:
        """How long the step took, this time or the last time."""
        return None if self.record is None else self.record.get("seconds")


class BuildFolder:
    """The folder of a build, and the records in it.

    Args:
        path: the folder.

    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def step_dir(self, name: str, key: str) -> Path:
        """Return the folder of a result of a step."""
        return self.path / STEPS_DIR / name / key

    def read_record(self, name: str, key: str) -> dict[str, Any] | None:
        """Return the record of a result; None if it is not complete."""
        return _read_json(self.step_dir(name, key) / RECORD_FILE)

    def newest_record(self, name: str) -> dict[str, Any] | None:
        """Return the record of the newest result of a step, whatever its key."""
        paths = (self.path / STEPS_DIR / name).glob(f"*/{RECORD_FILE}")
        records = [record for record in map(_read_json, paths) if record is not None]
        return max(records, key=lambda record: str(record.get("finished", "")), default=None)

    def inspect(self, graph: StepGraph, digests: DigestCache) -> dict[str, StepStatus]:
        """Return the state of each step, by name, in the order of the graph."""
        found: dict[str, StepStatus] = {}
        for step in graph.steps:
            found[step.name] = self.inspect_step(step, found, digests)
        digests.save()
        return found

    def inspect_step(
        self, step: Step, others: dict[str, StepStatus], digests: DigestCache
    ) -> StepStatus:
        """Return the state of a step, given those of the steps before it."""
        newest = self.newest_record(step.name)
        inputs: dict[str, str] = {}
        try:
            for name, path in step.files.items():
                inputs[name] = _digest_file(name, path, newest, digests)
        except InputError as error:  # it is raised again when the step is to run
            return StepStatus(step, "to do", None, inputs, error.reason, newest)
        waiting = []
        for name, output in step.needs.items():
            parent = others[output.step]
            if parent.is_done and parent.record is not None:
                inputs[name] = parent.record["outputs"][output.path]
            else:
                waiting.append(output.step)
        if waiting:
            names = ", ".join(dict.fromkeys(waiting))
            if newest is None:
                text = message("waits for {names}", names=names)
                return StepStatus(step, "to do", None, inputs, text)
            text = message("{names} will be made again", names=names)
            return StepStatus(step, "stale", None, inputs, text, newest)
        key = make_key(step.version, step.settings, inputs)
        record = self.read_record(step.name, key)
        if record is not None:
            return self._check_outputs(step, key, inputs, record, digests)
        return self._explain(step, key, inputs, newest)

    def _check_outputs(
        self,
        step: Step,
        key: str,
        inputs: dict[str, str],
        record: dict[str, Any],
        digests: DigestCache,
    ) -> StepStatus:
        """Return that a step is done, unless one of its outputs is damaged."""
        folder = self.step_dir(step.name, key)
        absent = tuple(name for name in step.outputs if not (folder / name).exists())
        for name in step.outputs:
            if name in absent:
                continue
            try:
                is_same = digests.digest(folder / name) == record["outputs"].get(name)
            except InputError:
                is_same = False
            if not is_same:
                text = message("{path} has changed since it was written", path=folder / name)
                return StepStatus(step, "stale", key, inputs, text, record)
        return StepStatus(step, "done", key, inputs, "", record, absent)

    def _explain(
        self, step: Step, key: str, inputs: dict[str, str], newest: dict[str, Any] | None
    ) -> StepStatus:
        """Return why a step is not done."""
        folder = self.step_dir(step.name, key)
        failure = _read_json(folder / FAILURE_FILE)
        if failure is not None:
            return StepStatus(step, "failed", key, inputs, str(failure.get("reason", "")), newest)
        if folder.is_dir() and any(folder.iterdir()):
            text = message("resumes where it was interrupted")
            return StepStatus(step, "interrupted", key, inputs, text, newest)
        if newest is None:
            return StepStatus(step, "to do", key, inputs)
        reasons = list(_differences(step, inputs, newest))
        shown = reasons[:MAX_REASONS] + ["..."] * (len(reasons) > MAX_REASONS)
        return StepStatus(step, "stale", key, inputs, join_messages("; ", shown), newest)


def _digest_file(name: str, path: Path, newest: dict[str, Any] | None, digests: DigestCache) -> str:
    """Return the digest of an input; where it is missing, that of the result from elsewhere."""
    known = (newest or {}).get("inputs", {}).get(name)
    return known if known is not None and not path.exists() else digests.digest(path)


def _differences(step: Step, inputs: dict[str, str], record: dict[str, Any]) -> Iterator[str]:
    """Yield what has changed since a record."""
    if record.get("version") != step.version:
        yield message("the code of the step has changed")
    before, now = flatten(record.get("settings")), flatten(step.settings)
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield message(
                "{name}: {before}, now {now}",
                name=name,
                before=_shorten(before.get(name)),
                now=_shorten(now.get(name)),
            )
    earlier = record.get("inputs", {})
    for name in sorted({*earlier, *inputs}):
        if name not in earlier:
            yield message("new input: {name}", name=name)
        elif name not in inputs:
            yield message("input left out: {name}", name=name)
        elif earlier[name] != inputs[name]:
            yield message("{name} has changed", name=name)


def flatten(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested settings as dotted keys.

    >>> flatten({"model": {"d_model": 256}, "train": [1, 2]})
    {'model.d_model': 256, 'train': [1, 2]}
    """
    if not isinstance(settings, dict):
        return {prefix: settings}
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= flatten(value, f"{prefix}.{key}" if prefix else str(key))
    return flat


def _shorten(value: Any) -> str:
    text = message("not set") if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
