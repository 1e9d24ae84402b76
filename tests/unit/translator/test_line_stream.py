from __future__ import annotations

import queue
import threading

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.translator.line_stream import batch_arrivals, translate_lines


def test_what_waits_comes_together_and_in_order():
    lines = [str(number) for number in range(2500)]
    parts = list(batch_arrivals(lines, max_lines=1000))
    assert [line for part in parts for line in part] == lines
    assert max(map(len, parts)) <= 1000
    assert list(batch_arrivals([])) == []


def test_a_line_that_comes_alone_is_given_at_once():
    channel: queue.Queue[str | None] = queue.Queue()
    parts = batch_arrivals(iter(channel.get, None))
    for line in ("first", "second"):
        channel.put(line)
        assert next(parts) == [line]  # while the channel is still open
    channel.put(None)
    assert list(parts) == []


def test_what_goes_wrong_while_reading_comes_after_what_was_read():
    def broken():
        yield "ka"
        raise InputError("line 2 is broken")

    parts = batch_arrivals(broken())
    assert next(parts) == ["ka"]
    with pytest.raises(InputError, match="line 2 is broken"):
        next(parts)


def test_no_thread_is_left():
    before = threading.active_count()
    list(batch_arrivals(["a", "b"]))
    assert threading.active_count() <= before + 1


def test_one_line_in_one_line_out(parrot):
    made = list(translate_lines(parrot, [["ka", ""], ["to mi"]], beam_size=1))
    assert made == ["KA", "", "TO MI"]


def test_a_line_that_fails_is_empty_and_says_why_and_the_others_are_not_lost(parrot, monkeypatch):
    encode = parrot.model.encode
    bad = parrot.tokenizer.encode_src(["re"])[0][0]

    def fragile(src_ids, src_mask=None):
        if bool(src_ids.eq(bad).any()):
            raise RuntimeError("cannot be read\nsecond line")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(parrot.model, "encode", fragile)
    made = list(translate_lines(parrot, [["ka", "re", "to"], ["mi"]]))
    assert made == ["KA", "", "TO", "MI"]
    assert made[1].notes == ["failed: cannot be read"]
    assert not made[1].is_finished
    assert made[0].notes == []


def test_a_wrong_option_stops_at_once(parrot):
    with pytest.raises(ConfigError, match="beam_size"):
        list(translate_lines(parrot, [["ka"]], beam_size=0))
