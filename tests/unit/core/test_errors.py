from __future__ import annotations

import pickle

import pytest

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest


def test_message_holds_reason_and_hint():
    error = InputError("the file is empty", hint="give a line")
    assert str(error) == "the file is empty\n  hint: give a line"
    assert isinstance(error, AttendoError)
    assert isinstance(error, ValueError)


def test_all_reasons_are_gathered():
    error = ConfigError.from_reasons("RunConfig", ["first", "second"])
    assert error.reasons == ("first", "second")
    assert "2 settings" in str(error)
    assert "- first" in str(error)
    assert "- second" in str(error)


def test_missing_extra_names_the_extra():
    error = MissingExtraError("matplotlib", "plots")
    assert "pip install 'attendo[plots]'" in str(error)
    assert isinstance(error, ImportError)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("bse", "base"), ("BIG", "big"), ("smal", "small"), ("c-layer-2", "C-layers-2")],
)
def test_nearest_name(given, nearest):
    assert suggest(given, ["tiny", "small", "base", "big", "C-layers-2"]).startswith(
        f"did you mean '{nearest}'?"
    )


def test_no_nearest_name_lists_all():
    assert suggest("xyzzy", ["tiny", "base"]) == "Known: tiny, base"


def test_errors_survive_a_process_boundary():
    assert "hint: b" in str(pickle.loads(pickle.dumps(InputError("a", hint="b"))))  # noqa: S301
