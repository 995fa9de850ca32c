"""A progress bar for searches."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

WIDTH = 24


class Progress:
    """A bar for trials on standard error; does nothing if that is not a terminal."""

    def __init__(
        self, total: int | None, enabled: bool | None = None, out: TextIO | None = None
    ) -> None:
        self.total = total
        found: TextIO | None = out or sys.stderr  # absent in programs without a console
        self._out = found or io.StringIO()
        self.enabled = self._out.isatty() if enabled is None else enabled
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self._done = 0

    def __enter__(self) -> Progress:
        self._begin = time.monotonic()
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.enabled:
            self._out.write("\n")
            self._out.flush()

    def update(self, done: int) -> None:
        """Shows that a number of trials has ended."""
        with self._lock:
            self._done = max(done, self._done)
            self._draw()

    def line(self) -> str:
        """Returns what is shown."""
        elapsed = time.monotonic() - self._begin
        total = f"/{self.total}" if self.total else ""
        text = f"{self._done}{total} trials, {_clock(elapsed)}"
        if not self.total:
            return text
        share = min(self._done / self.total, 1)
        bar = ("#" * round(WIDTH * share)).ljust(WIDTH, ".")
        if 0 < self._done < self.total:
            text += f", {_clock(elapsed * (1 / share - 1))} left"
        return f"[{bar}] {text}"

    def _draw(self) -> None:
        if self.enabled:
            # Back to the first column, and clear to the end of the line.
            self._out.write(f"\r{self.line()}\x1b[K")
            self._out.flush()


def _clock(seconds: float) -> str:
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
