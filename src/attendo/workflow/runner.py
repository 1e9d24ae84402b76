"""Runs the steps of a build that are not done, one after the other, and records each.

A killed step resumes where it was: its folder belongs to its key, training resumes from its
checkpoint, a translation from its partial file. What is finished stays, whatever happens later.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from attendo.core.errors import AttendoError, InputError
from attendo.core.files import write_atomically
from attendo.core.message import join_messages, message
from attendo.core.process_lock import process_lock
from attendo.core.version import __version__
from attendo.workflow.digests import DigestCache
from attendo.workflow.states import STEPS_DIR, BuildFolder, StepStatus
from attendo.workflow.step import FAILURE_FILE, RECORD_FILE, StepPaths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.workflow.step import Command, Step, StepGraph

STATE_FILE, LOCK_FILE, DIGESTS_FILE = "state.json", ".lock", ".digests.json"
LATEST_DIR = "latest"
FAILED_HINT = "everything finished is kept: correct the cause, then run the same command again"


class Rates(Protocol):
    """Estimates how long a step takes."""

    def estimate(self, step: Step) -> float | None:
        """Return the seconds, if they are known."""
        ...


class BuildRunner:
    """Runs steps in a build folder.

    Args:
        graph: the steps.
        folder: the build folder; it is created.
        execute: runs a command of `attendo`, given as words; raises an error if it fails.
        rates: estimates times.
        report: receives lines for the user.

    """

    def __init__(
        self,
        graph: StepGraph,
        folder: Path,
        execute: Callable[[Sequence[str]], None],
        *,
        rates: Rates | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.graph, self.folder, self.execute = graph, BuildFolder(folder), execute
        self.rates, self._report = rates, report or (lambda _: None)
        self.digests = DigestCache(folder / DIGESTS_FILE if folder.is_dir() else None)

    # -- what is to be done

    def inspect(self) -> dict[str, StepStatus]:
        """Return the state of all steps."""
        return self.folder.inspect(self.graph, self.digests)

    def estimate(self, status: StepStatus) -> float | None:
        """Return the seconds that a step will take: as long as last time, or from rates."""
        if status.seconds is not None:
            return status.seconds
        return None if self.rates is None else self.rates.estimate(status.step)

    def time_left(self, statuses: Sequence[StepStatus]) -> float | None:
        """Return the sum of the estimates of the steps that are not done, as far as known."""
        seconds = [self.estimate(one) for one in statuses if not one.is_done]
        known = [one for one in seconds if one is not None]
        return sum(known) if known else None

    # -- doing it

    def run(self, steps: Sequence[Step], *, force: bool = False) -> list[str]:
        """Run those of the steps that are not done, in order; return their names.

        Args:
            steps: the chosen steps, in the order of the graph.
            force: run all of them again.

        """
        path = self.folder.path
        path.mkdir(parents=True, exist_ok=True)
        self.digests = DigestCache(path / DIGESTS_FILE)
        with process_lock(path / LOCK_FILE, wait=False):
            if force:
                self._forget(steps)
            names = {step.name for step in steps}
            self._check_inputs(names)
            return self._run_all(names)

    def _forget(self, steps: Sequence[Step]) -> None:
        """Delete the current results of steps, so that they are made again."""
        statuses = self.inspect()
        for step in steps:
            key = statuses[step.name].key
            if key is not None:
                shutil.rmtree(self.folder.step_dir(step.name, key), ignore_errors=True)

    def _check_inputs(self, names: set[str]) -> None:
        """Raise an error if a chosen step needs one that is neither done nor chosen."""
        statuses = self.inspect()
        for step in self.graph.steps:
            if step.name not in names or statuses[step.name].is_done:
                continue
            missing = [p for p in step.parents if p not in names and not statuses[p].is_done]
            if missing:
                raise InputError(
                    message(
                        "step {name} needs {missing}, which is not done",
                        name=step.name,
                        missing=", ".join(missing),
                    ),
                    hint=message("run it first: --until {name}", name=step.name),
                )

    def _run_all(self, names: set[str]) -> list[str]:
        ran: list[str] = []
        statuses: dict[str, StepStatus] = {}
        chosen = [step for step in self.graph.steps if step.name in names]
        for step in self.graph.steps:
            statuses[step.name] = self.folder.inspect_step(step, statuses, self.digests)
            status = statuses[step.name]
            if step.name in names and not status.is_done:
                number = f"{chosen.index(step) + 1} / {len(chosen)}"
                self._announce(status, number, statuses)
                self._run_step(status, statuses)
                statuses[step.name] = self.folder.inspect_step(step, statuses, self.digests)
                ran.append(step.name)
            if statuses[step.name].is_done:
                self._link_latest(statuses[step.name])
        self.digests.save()
        self.write_state()
        return ran

    def _announce(self, status: StepStatus, number: str, statuses: dict[str, StepStatus]) -> None:
        self._report(message("step {number}: {name}", number=number, name=status.step.name))
        if status.reason:
            self._report(status.reason)
        rest = [one for one in self.inspect().values() if one.step.name not in statuses]
        seconds = self.time_left([status, *rest])
        if seconds is not None:
            text = "all steps: about {minutes} minutes left"
            self._report(message(text, minutes=max(1, round(seconds / 60))))

    def _run_step(self, status: StepStatus, statuses: dict[str, StepStatus]) -> None:
        step, key = status.step, status.key
        if key is None:
            for path in step.files.values():
                self.digests.digest(path)  # raises the error of the file that cannot be read
            raise InputError(message("step {name} has no inputs", name=step.name))
        folder = self.folder.step_dir(step.name, key)
        if (folder / RECORD_FILE).exists():  # an output is damaged
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FAILURE_FILE).unlink(missing_ok=True)
        paths = StepPaths(folder, self._find_inputs(step, statuses))
        started = time.monotonic()
        self.write_state(running=step.name)
        try:
            for command in step.commands(paths):
                self._run_command(command, running=step.name)
            self._check_unchanged(status)
            outputs = {name: self.digests.digest(folder / name) for name in step.outputs}
        except AttendoError as error:
            raise self._explain_failure(step, folder, error) from error
        record = {
            "name": step.name,
            "key": key,
            "version": step.version,
            "settings": step.settings,
            "inputs": status.inputs,
            "outputs": outputs,
            "seconds": round(time.monotonic() - started, 1),
            "finished": datetime.now(UTC).isoformat(timespec="microseconds"),
            "attendo": __version__,
        }
        text = json.dumps(record, indent=2, ensure_ascii=False)
        write_atomically(folder / RECORD_FILE, text + "\n")
        self.digests.save()

    def _find_inputs(self, step: Step, statuses: dict[str, StepStatus]) -> dict[str, Path]:
        """Return where the inputs of a step are; raise an error if one is on another machine."""
        inputs = {name: path.resolve() for name, path in step.files.items()}
        for name, output in step.needs.items():
            parent = statuses[output.step]
            if output.path in parent.absent:
                raise InputError(
                    message(
                        "step {name} needs {path} of step {parent}, which is on another machine",
                        name=step.name,
                        path=output.path,
                        parent=output.step,
                    ),
                    hint=message(
                        "unpack it here (attendo build --unpack), or make it again with "
                        "--only {parent} --force",
                        parent=output.step,
                    ),
                )
            folder = self.folder.step_dir(output.step, str(parent.key))
            inputs[name] = (folder / output.path).resolve()
        return inputs

    def _run_command(self, command: Command, *, running: str) -> None:
        if command.output.exists():
            return
        self.write_state(running=running, watched=command.watched)
        if callable(command.run):
            command.run()
            return
        words = list(command.run)
        if command.can_resume:
            words += ["--resume"] if command.has_begun() else ["--force"]
        self.execute(words)
        if not command.output.exists():
            raise AttendoError(
                message("the command has not written {path}", path=command.output),
                hint="run the command alone to see why: attendo {words}".format(
                    words=" ".join(words)
                ),
            )

    def _check_unchanged(self, status: StepStatus) -> None:
        """Raise an error if a file has changed while the step ran: the result has no key."""
        for name, path in status.step.files.items():
            if self.digests.digest(path) != status.inputs[name]:
                raise InputError(
                    message("{path} has changed while the step ran", path=path),
                    hint="run the same command again: the step starts with the new content",
                )

    def _explain_failure(self, step: Step, folder: Path, error: AttendoError) -> AttendoError:
        """Return the error of the build, and write it down for the next look at the build."""
        if error.exit_code >= 128:  # a signal: the step resumes the next time
            self.write_state()
            return error
        failure = {"reason": error.reason, "hint": error.hint}
        with suppress(OSError):
            write_atomically(folder / FAILURE_FILE, json.dumps(failure, ensure_ascii=False))
            self.write_state()
        reason = message("step {name} failed: {reason}", name=step.name, reason=error.reason)
        hints = [error.hint, FAILED_HINT] if error.hint else [FAILED_HINT]
        hint = join_messages("\n  ", [message(one) if one is FAILED_HINT else one for one in hints])
        return AttendoError(reason, hint=hint)

    def _link_latest(self, status: StepStatus) -> None:
        """Let `latest/NAME` point to the newest result, where links are possible."""
        link = self.folder.path / LATEST_DIR / status.step.name
        target = f"../{STEPS_DIR}/{status.step.name}/{status.key}"
        with suppress(OSError):
            if link.is_symlink() and str(link.readlink()) == target:
                return
            link.parent.mkdir(exist_ok=True)
            partial = link.with_name(f".{link.name}.partial")
            partial.unlink(missing_ok=True)
            partial.symlink_to(target)
            partial.replace(link)

    # -- the state, for those who watch

    def write_state(
        self, *, running: str | None = None, watched: tuple[str, Path, int] | None = None
    ) -> None:
        """Write `state.json`: the state of all steps, and where progress can be read."""
        statuses = self.inspect()
        steps = [
            {
                "name": status.step.name,
                "state": "running" if status.step.name == running else status.state,
                "reason": status.reason,
                "needs": status.step.parents,
                "seconds": status.seconds if status.is_done else None,
                "estimate": None if status.is_done else self.estimate(status),
            }
            for status in statuses.values()
        ]
        watch = None
        if watched is not None:
            kind, path, total = watched
            with suppress(ValueError):
                relative = path.resolve().relative_to(self.folder.path.resolve())
                watch = {"kind": kind, "path": relative.as_posix(), "total": total}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        state: dict[str, Any] = {"steps": steps, "watch": watch, "updated": now}
        write_atomically(
            self.folder.path / STATE_FILE, json.dumps(state, indent=2, ensure_ascii=False) + "\n"
        )
