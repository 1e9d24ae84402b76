from __future__ import annotations

import signal

import pytest

from attendo.serving.server import ignore_hangup


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_hangups_are_ignored_only_while_the_server_runs():
    with ignore_hangup():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
