"""What is on screen while a call takes long."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dpfront import _working
from dpfront._working import working


class Terminal(io.StringIO):
    """A standard error that a user sees."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Timers that go off when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def timer(self, seconds: float, then: Callable[[], None]) -> Any:
        assert seconds == _working.SLOW_AFTER
        self.due.append(then)
        return threading.Timer(3600, then)


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Returns the terminal of a test. A fixture could not set it: pytest does so for each phase."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_a_slow_call_is_shown_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = watched(monkeypatch), Clock()
    with working("query the front of studies/a", clock.timer):
        assert screen.getvalue() == ""
        clock.due[0]()
        assert screen.getvalue() == "\rquery the front of studies/a …"
    assert screen.getvalue().endswith("\r" + " " * 30 + "\r")


def test_a_fast_call_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = watched(monkeypatch), Clock()
    with working("read", clock.timer):
        pass
    clock.due[0]()  # too late
    assert screen.getvalue() == ""


def test_a_failure_removes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = watched(monkeypatch), Clock()

    def fail() -> None:
        with working("read", clock.timer):
            clock.due[0]()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert screen.getvalue().endswith("\r")


def test_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with working("read", clock.timer):
            pass
    assert clock.due == []


def test_other_threads_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch)
    clock = Clock()

    def work() -> None:
        with working("read", clock.timer):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert clock.due == []
