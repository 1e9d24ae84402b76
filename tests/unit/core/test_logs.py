from __future__ import annotations

import io
import logging

import pytest

from attendo.core import logs
from attendo.core.errors import ConfigError


@pytest.fixture(autouse=True)
def _leave_logging_as_it_was():
    root = logging.getLogger("attendo")
    before = (root.level, root.handlers, root.propagate)
    yield
    root.level, root.handlers, root.propagate = before


def test_loggers_hang_below_attendo():
    assert logs.get_logger("attendo.model").name == "attendo.model"
    assert logs.get_logger("elsewhere").name == "attendo.elsewhere"


def test_configure_twice_writes_once():
    stream = io.StringIO()
    for _ in range(2):
        logs.configure("info", handler=logging.StreamHandler(stream))
    logs.get_logger("attendo.x").info("hello")
    logs.get_logger("attendo.x").debug("hidden")
    assert stream.getvalue() == "hello\n"


def test_environment_sets_the_level(monkeypatch):
    monkeypatch.setenv("ATTENDO_LOG", "debug")
    logs.configure()
    assert logging.getLogger("attendo").level == logging.DEBUG


def test_unknown_level_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'debug'"):
        logs.configure("debg")
