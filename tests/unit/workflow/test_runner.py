"""The engine of a build, with steps that only write text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.process_lock import process_lock
from attendo.workflow.digests import DigestCache
from attendo.workflow.pack import pack_steps, unpack_steps
from attendo.workflow.runner import LOCK_FILE, STATE_FILE, BuildRunner
from attendo.workflow.step import Command, Output, Step, StepGraph, Work


class Toys:
    """Makes a build of three steps: `copy` reads a file, `double` doubles it, `join` joins both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source.txt"
        self.source.write_text("a\n", encoding="utf-8")
        self.settings = {"copy": 1, "double": 2, "join": {"sign": "+"}}
        self.versions = {"copy": 1, "double": 1, "join": 1}
        self.ran: list[str] = []
        self.before: dict[str, object] = {}
        """Called before a step writes; raises to make it fail."""

    def _step(self, name, files, needs, content) -> Step:
        def commands(paths):
            def run() -> None:
                self.ran.append(name)
                if name in self.before:
                    self.before[name](paths)
                (paths.folder / f"{name}.txt").write_text(content(paths), encoding="utf-8")

            return [Command(run, paths.folder / f"{name}.txt")]

        settings, version = self.settings[name], self.versions[name]
        return Step(name, version, settings, commands, (f"{name}.txt",), files, needs)

    def runner(self) -> BuildRunner:
        def read(paths, name):
            return paths[name].read_text(encoding="utf-8")

        copy = {"text": Output("copy", "copy.txt")}
        both = {**copy, "twice": Output("double", "double.txt")}
        steps = [
            self._step("copy", {"source": self.source}, {}, lambda paths: read(paths, "source")),
            self._step(
                "double", {}, copy, lambda paths: read(paths, "text") * self.settings["double"]
            ),
            self._step(
                "join", {}, both, lambda paths: read(paths, "text") + "+" + read(paths, "twice")
            ),
        ]
        return BuildRunner(StepGraph(steps), self.folder / "build", lambda _: None)

    def build(self, *, force: bool = False, **chosen) -> list[str]:
        """Run the chosen steps; return the names of those whose commands ran."""
        self.ran = []
        runner = self.runner()
        runner.run(runner.graph.select(**chosen), force=force)
        return self.ran

    def states(self) -> dict[str, str]:
        return {name: status.state for name, status in self.runner().inspect().items()}

    def result(self) -> str:
        return (self.folder / "build/latest/join/join.txt").read_text(encoding="utf-8")


@pytest.fixture
def toys(tmp_path):
    return Toys(tmp_path)


def test_every_step_runs_once(toys):
    assert set(toys.states().values()) == {"to do"}
    assert toys.build() == ["copy", "double", "join"]
    assert toys.result() == "a\n+a\na\n"
    assert toys.build() == []
    assert set(toys.states().values()) == {"done"}


def test_a_changed_late_step_leaves_the_early_ones(toys):
    toys.build()
    toys.settings["join"] = {"sign": "-"}
    status = toys.runner().inspect()["join"]
    assert status.state == "stale"
    assert status.reason.values["part0"].values == {"name": "sign", "before": '"+"', "now": '"-"'}
    assert toys.build() == ["join"]
    toys.settings["join"] = {"sign": "+"}  # the earlier result is still there
    assert toys.build() == []


def test_a_changed_early_step_makes_the_later_ones_again_if_its_output_changes(toys):
    toys.build()
    toys.settings["copy"] = 7  # the same output
    assert toys.states() == {"copy": "stale", "double": "stale", "join": "stale"}
    assert toys.build() == ["copy"]
    toys.settings["double"] = 3
    assert toys.build() == ["double", "join"]
    assert toys.result() == "a\n+a\na\na\n"


def test_new_code_of_a_step_makes_it_stale(toys):
    toys.build()
    toys.versions["double"] = 2
    assert toys.states() == {"copy": "done", "double": "stale", "join": "stale"}


def test_a_moved_touched_or_compressed_input_changes_nothing(toys, tmp_path):
    import gzip

    toys.build()
    os.utime(toys.source, (1, 1))
    assert toys.build() == []
    toys.source = toys.source.rename(tmp_path / "moved.txt")
    assert toys.build() == []
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(toys.source.read_bytes()))
    toys.source = packed
    assert toys.build() == []
    toys.source = tmp_path / "other.txt"
    toys.source.write_text("b\n", encoding="utf-8")
    reason = toys.runner().inspect()["copy"].reason.values["part0"]
    assert reason.values == {"name": "source"}
    assert toys.build() == ["copy", "double", "join"]


def test_a_failing_step_is_named_and_what_is_finished_stays(toys):
    def fail(_paths):
        raise InputError("no data", hint="buy some")

    toys.before["double"] = fail
    with pytest.raises(AttendoError) as caught:
        toys.build()
    assert caught.value.reason.values["name"] == "double"
    assert "buy some" in caught.value.hint
    assert toys.states() == {"copy": "done", "double": "failed", "join": "to do"}
    assert toys.runner().inspect()["double"].reason == "no data"
    toys.before.clear()
    assert toys.build() == ["double", "join"]


def test_an_interrupted_step_continues_in_its_folder(toys):
    def interrupt(paths):
        (paths.folder / "half").write_text("x", encoding="utf-8")
        raise KeyboardInterrupt

    toys.before["double"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        toys.build()
    assert toys.states()["double"] == "interrupted"

    def look(paths):
        assert (paths.folder / "half").exists()

    toys.before["double"] = look
    assert toys.build() == ["double", "join"]


def test_a_command_whose_output_exists_is_not_run_again(toys):
    toys.build()
    for record in (toys.folder / "build").glob("steps/double/*/step.json"):
        record.unlink()  # killed between the output and the record
    assert toys.states()["double"] == "interrupted"
    assert toys.build() == []
    assert toys.states()["double"] == "done"


def test_a_file_that_changes_while_its_step_runs_gives_no_result(toys):
    def change(_paths):
        toys.source.write_text("changed\n", encoding="utf-8")

    toys.before["copy"] = change
    with pytest.raises(AttendoError) as caught:
        toys.build()
    assert toys.source.name in caught.value.reason
    toys.before.clear()
    assert toys.build() == ["copy", "double", "join"]
    assert toys.result().startswith("changed")


def test_a_damaged_output_is_made_again(toys):
    toys.build()
    path = next((toys.folder / "build").glob("steps/copy/*/copy.txt"))
    path.write_text("damaged", encoding="utf-8")
    assert toys.states()["copy"] == "stale"
    assert toys.build() == ["copy"]
    assert toys.result() == "a\n+a\na\n"


def test_steps_can_be_chosen(toys):
    with pytest.raises(InputError):
        toys.build(only="double")  # what it needs is not done
    assert toys.build(until="double") == ["copy", "double"]
    assert toys.build(only="join") == ["join"]
    assert toys.build(first="double") == []
    assert toys.build(first="double", force=True) == ["double", "join"]
    assert toys.build(only="copy", force=True) == ["copy"]
    with pytest.raises(ConfigError):
        toys.build(only="paint")


def test_one_process_builds_at_a_time(toys):
    toys.build()
    toys.settings["join"] = {}
    with (
        process_lock(toys.folder / "build" / LOCK_FILE),
        pytest.raises(AttendoError),
    ):
        toys.build()


def test_a_missing_input_is_named_with_a_hint(toys):
    toys.source.unlink()
    with pytest.raises(InputError) as caught:
        toys.build()
    assert toys.source.name in caught.value.reason
    assert caught.value.hint


def test_the_state_file_names_the_running_step(toys):
    seen = {}

    def look(_paths):
        text = (toys.folder / "build" / STATE_FILE).read_text(encoding="utf-8")
        seen.update({step["name"]: step["state"] for step in json.loads(text)["steps"]})

    toys.before["double"] = look
    toys.build()
    assert seen == {"copy": "done", "double": "running", "join": "to do"}


def test_words_are_executed_and_resumed_only_with_both_partial_files(tmp_path):
    executed = []

    def execute(words):
        executed.append(list(words))
        (tmp_path / "build/steps/a").mkdir(parents=True, exist_ok=True)
        Path(words[-2]).write_text("x", encoding="utf-8")

    def commands(paths):
        output = paths.folder / "out.txt"
        return [Command(("translate", "-o", str(output)), output, can_resume=True)]

    graph = StepGraph([Step("a", 1, {}, commands, ("out.txt",))])
    runner = BuildRunner(graph, tmp_path / "build", execute)
    runner.run(graph.steps)
    assert executed[0][-1] == "--force"
    output = Path(executed[0][-2])
    (output.parent / "step.json").unlink()
    output.unlink()
    for end in ("", ".json"):
        output.with_name(f".out.txt.partial{end}").write_text("x", encoding="utf-8")
    BuildRunner(graph, tmp_path / "build", execute).run(graph.steps)
    assert executed[1][-1] == "--resume"


def test_a_command_that_writes_nothing_is_an_error(tmp_path):
    graph = StepGraph(
        [Step("a", 1, {}, lambda paths: [Command(("x",), paths.folder / "out")], ("out",))]
    )
    with pytest.raises(AttendoError):
        BuildRunner(graph, tmp_path / "build", lambda _: None).run(graph.steps)


def test_time_left_is_that_of_the_last_time_or_of_the_rates(toys):
    class Rates:
        def estimate(self, step):
            return {"copy": 10.0, "join": 5.0}.get(step.name)

    runner = toys.runner()
    runner.rates = Rates()
    assert runner.time_left(list(runner.inspect().values())) == 15.0
    toys.build(until="double")
    runner = toys.runner()
    assert runner.time_left(list(runner.inspect().values())) is None
    assert Work("train", 1.0).amount == 1.0


# -- from machine to machine


def test_a_pack_carries_results_and_later_steps_continue(toys, tmp_path):
    toys.build(until="double")
    runner = toys.runner()
    statuses = runner.inspect()
    parts = pack_steps(runner.folder, statuses.values(), tmp_path / "pack", part_bytes=100)
    assert len(parts) > 2
    assert max(part.stat().st_size for part in parts) <= 100
    elsewhere = Toys(tmp_path / "pack")  # another folder
    elsewhere.folder = tmp_path / "elsewhere"
    elsewhere.source.unlink()  # the corpora stay behind
    for part in parts:
        part.rename(part.with_name(part.name))
    assert unpack_steps(tmp_path / "pack", elsewhere.runner().folder) == ["copy", "double"]
    assert elsewhere.states() == {"copy": "done", "double": "done", "join": "to do"}
    assert elsewhere.build() == ["join"]
    assert elsewhere.result() == "a\n+a\na\n"


def test_an_output_that_stayed_behind_is_missed_only_where_it_is_read(toys):
    toys.build(until="double")
    next((toys.folder / "build").glob("steps/copy/*/copy.txt")).unlink()
    assert toys.runner().inspect()["copy"].absent == ("copy.txt",)
    with pytest.raises(InputError) as caught:
        toys.build()  # join reads it
    assert caught.value.hint
    assert toys.build(only="copy", force=True) == ["copy"]
    assert toys.build() == ["join"]


def test_a_pack_has_the_records_of_the_steps_before(toys, tmp_path):
    toys.build()
    runner = toys.runner()
    statuses = runner.inspect()
    before = [statuses["copy"], statuses["double"]]
    pack_steps(runner.folder, [statuses["join"]], tmp_path / "pack", before=before)
    elsewhere = Toys(tmp_path)
    elsewhere.folder = tmp_path / "elsewhere"
    unpack_steps(tmp_path / "pack", elsewhere.runner().folder)
    found = elsewhere.runner().inspect()
    assert {status.state for status in found.values()} == {"done"}
    assert [name for name, status in found.items() if status.absent] == ["copy", "double"]
    assert elsewhere.build() == []
    assert elsewhere.result() == "a\n+a\na\n"


@pytest.mark.parametrize("wrong", ["missing", "damaged", "empty"])
def test_an_incomplete_pack_is_rejected(toys, tmp_path, wrong):
    toys.build()
    runner = toys.runner()
    statuses = runner.inspect().values()
    parts = pack_steps(runner.folder, statuses, tmp_path / "pack", part_bytes=100)
    if wrong == "damaged":
        parts[1].write_bytes(b"x" * 100)
    else:
        for part in parts if wrong == "empty" else parts[:1]:
            part.unlink()
    other = Toys(tmp_path)
    other.folder = tmp_path / "other"
    with pytest.raises(InputError) as caught:
        unpack_steps(tmp_path / "pack", other.runner().folder)
    assert caught.value.hint
    assert other.states()["join"] == "to do"


def test_nothing_is_packed_over_something_else(toys, tmp_path):
    runner = toys.runner()
    with pytest.raises(InputError):
        pack_steps(runner.folder, runner.inspect().values(), tmp_path / "pack")
    toys.build()
    (tmp_path / "pack").mkdir()
    with pytest.raises(InputError):
        pack_steps(runner.folder, toys.runner().inspect().values(), tmp_path / "pack")


# -- digests


def test_a_folder_is_its_files_and_their_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("x", encoding="utf-8")
    digests = DigestCache()
    assert digests.digest(tmp_path / "one") == digests.digest(tmp_path / "two")
    (tmp_path / "two" / ".hidden").write_text("y", encoding="utf-8")
    assert digests.digest(tmp_path / "one") == digests.digest(tmp_path / "two")
    (tmp_path / "two" / "a").rename(tmp_path / "two" / "b")
    assert digests.digest(tmp_path / "one") != digests.digest(tmp_path / "two")


def test_digests_are_remembered_and_a_damaged_memory_is_ignored(tmp_path, monkeypatch):
    file, memory = tmp_path / "a", tmp_path / "memory"
    file.write_text("x", encoding="utf-8")
    first = DigestCache(memory)
    digest = first.digest(file)
    first.save()
    monkeypatch.setattr("attendo.workflow.digests._hash_content", lambda _: "computed again")
    assert DigestCache(memory).digest(file) == digest
    os.utime(file, (5, 5))
    assert DigestCache(memory).digest(file) == "computed again"
    memory.write_text("{", encoding="utf-8")
    assert DigestCache(memory).digest(file) == "computed again"


def test_a_graph_rejects_what_does_not_fit():
    def nothing(_):
        return []

    step = Step("a", 1, {}, nothing, ("x",))
    with pytest.raises(ConfigError):
        StepGraph([step, step])
    with pytest.raises(ConfigError):
        StepGraph([Step("b", 1, {}, nothing, (), needs={"x": Output("a", "x")}), step])
    with pytest.raises(ConfigError):
        StepGraph([step, Step("b", 1, {}, nothing, (), needs={"x": Output("a", "y")})])
