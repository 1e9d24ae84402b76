from __future__ import annotations

from pathlib import Path

import pytest

from attendo.serving.config import ServeConfig
from attendo.serving.errors import to_error_response
from attendo.serving.limits import TooLargeError
from attendo.serving.request_budget import check_budget

CONFIG = ServeConfig(models=[Path("m")], max_request_characters=100, beam_size=4)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["a" * 50] * 2, {}),
        (["a" * 50] * 2, {"beam_size": 1}),
        (["a" * 25], {"beam_size": 16}),
        (["a" * 40], {"glossary": {"a": "b"}}),
    ],
)
def test_a_request_within_its_budget_is_accepted(texts, options) -> None:
    check_budget(texts, CONFIG, options)


@pytest.mark.parametrize(
    ("texts", "options", "most"),
    [
        (["a" * 50, "b" * 51], {}, "100"),
        (["a" * 26], {"beam_size": 16}, "25"),
        (["a" * 51], {"do_sample": True, "n_best": 8, "beam_size": 1}, "50"),
        (["a" * 41], {"glossary": {"a": "b"}}, "40"),
    ],
)
def test_a_request_above_it_is_rejected_with_what_is_allowed(texts, options, most) -> None:
    with pytest.raises(TooLargeError, match=rf"at most {most} allowed") as caught:
        check_budget(texts, CONFIG, options)
    assert to_error_response(caught.value).status_code == 413
