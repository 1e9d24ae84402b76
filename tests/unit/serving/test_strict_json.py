from __future__ import annotations

from json import JSONDecodeError
from time import process_time

import pytest

from attendo.serving.strict_json import MAX_VALUES, count_values, parse_json


def test_marks_in_a_text_do_not_count() -> None:
    assert count_values(b'["' + b"[" * (MAX_VALUES + 1) + b'"]') == 1


@pytest.mark.parametrize("part", [rb"[\"", b"[\\\\\\", b'["', b"[", rb"[\"]\\"])
def test_a_text_that_never_ends_is_read_in_linear_time(part) -> None:
    """The first one, of 330 kB, stopped the server for half an hour."""
    begin = process_time()
    with pytest.raises(JSONDecodeError):
        parse_json(b'{"text": "' + part * (MAX_VALUES + 10_000))
    assert process_time() - begin < 10  # CPU time: how busy the machine is does not count
