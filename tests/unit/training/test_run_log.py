from __future__ import annotations

import json
import os

import pytest

from attendo.core.errors import AttendoError
from attendo.core.run_folder import read_json_lines
from attendo.training.run_log import RunLog, append_json_line, truncate_after


def test_events_are_lines_of_json_in_order(tmp_path):
    log = RunLog(tmp_path)
    log.write("train", 1, loss=2.5, note="왕자")
    log.write("validation", 2, loss=2.0)
    log.close()
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["train", "validation"]
    first = read_json_lines(tmp_path / "log.jsonl")[0]
    assert (first["step"], first["loss"], first["note"]) == (1, 2.5, "왕자")
    assert first["time"].endswith("+00:00")


def test_numbers_go_to_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = RunLog(tmp_path)
    log.write("train", 7, loss=2.5, note="text")
    log.close()
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert board.Tags()["scalars"] == ["train/loss"]
    assert [(event.step, event.value) for event in board.Scalars("train/loss")] == [(7, 2.5)]


def test_a_resumed_run_drops_what_came_after_its_checkpoint(tmp_path):
    for name in ("log.jsonl", "samples.jsonl"):
        for step in (0, 4, 8, 9):
            append_json_line(tmp_path / name, {"event": "train", "step": step})
    RunLog(tmp_path, step=8).close()
    for name in ("log.jsonl", "samples.jsonl"):
        assert [event["step"] for event in read_json_lines(tmp_path / name)] == [0, 4, 8]


@pytest.mark.parametrize("size", range(1, 40))
def test_a_line_that_a_crash_cut_is_left_out(tmp_path, size):
    path = tmp_path / "log.jsonl"
    append_json_line(path, {"step": 1})
    whole = path.read_bytes()
    append_json_line(path, {"step": 2, "text": "공주를 구했다"})
    path.write_bytes(path.read_bytes()[: len(whole) + size])
    if b"}" not in path.read_bytes()[len(whole) :]:
        assert read_json_lines(path) == [{"step": 1}]
        truncate_after(path, 5)
        append_json_line(path, {"step": 3})
        assert [event["step"] for event in read_json_lines(path)] == [1, 3]


def test_bug_other_line_separators_in_a_text_cut_the_record(tmp_path):
    path = tmp_path / "samples.jsonl"
    text = "a\u2028b\u0085c\u000bd\re\nf"
    append_json_line(path, {"step": 1, "src": text})
    append_json_line(path, {"step": 2})
    truncate_after(path, 2)
    assert [event.get("src") for event in read_json_lines(path)] == [text, None]


def test_nothing_written_yet(tmp_path):
    assert read_json_lines(tmp_path / "log.jsonl") == []
    (tmp_path / "log.jsonl").touch()
    assert read_json_lines(tmp_path / "log.jsonl") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_reported(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(AttendoError, match="No space left") as raised:
        append_json_line(tmp_path / "log.jsonl", {"step": 1})
    assert "same command" in raised.value.hint
