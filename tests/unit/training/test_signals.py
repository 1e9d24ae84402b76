from __future__ import annotations

import signal

import pytest

from attendo.training.signals import SignalHandler


@pytest.fixture
def hangup():
    """Send this thread SIGHUP as the closing terminal and then the shell do; restore it after.

    `os.kill` may choose another thread, which receives the signal at any time.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    yield lambda: [signal.raise_signal(signal.SIGHUP) for _ in range(2)]
    signal.signal(signal.SIGHUP, before)


def test_a_second_hangup_does_not_end_the_process_before_it_has_saved(hangup):
    handler, messages = SignalHandler(), []
    with handler.install(messages.append):
        hangup()
    assert handler.signum == signal.SIGHUP
    assert messages == []  # nobody reads them, and writing may fail
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


def test_nohup_is_respected(hangup):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    handler = SignalHandler()
    with handler.install(lambda _: None):
        hangup()
    assert handler.signum is None
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_second_interrupt_ends_the_process(hangup):
    handler, messages = SignalHandler(), []
    with handler.install(messages.append):
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert (handler.signum, len(messages)) == (signal.SIGTERM, 1)
