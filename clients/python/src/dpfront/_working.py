"""Says on screen that a call takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SLOW_AFTER = 1.0
"""How long a call takes in silence, in seconds."""


def is_watched() -> bool:
    """Reports whether a user sees standard error: on a terminal, or in a notebook."""
    if sys.stderr is None:  # in programs without a console
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def working(action: str, timer: Callable[..., Any] = threading.Timer) -> Iterator[None]:
    """Shows what the block does once it has taken a second, and removes that at its end.

    Other threads than the main one stay silent: their lines would mix.
    """
    if not is_watched() or threading.current_thread() is not threading.main_thread():
        yield
        return
    line, lock, state = f"{action} …", threading.Lock(), {"ended": False, "shown": False}

    def show() -> None:
        with lock:
            if not state["ended"]:
                state["shown"] = True
                print(f"\r{line}", end="", file=sys.stderr, flush=True)

    waiting = timer(SLOW_AFTER, show)
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
        with lock:
            state["ended"] = True
            if state["shown"]:
                print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)
