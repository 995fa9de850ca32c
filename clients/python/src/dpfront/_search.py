"""What the loops of `Study.optimize` and `AsyncStudy.optimize` share."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpfront import _convert as convert
from dpfront import errors
from dpfront._results.trials import StudyInfo
from dpfront._working import is_watched

MAX_JOBS = 1024
"""How many trials one search runs at the same time, at most."""


def _exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)  # the exit code that shells give for a signal


@contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit in the block, as Ctrl-C raises KeyboardInterrupt.

    Python would end at once, and the trials stay with this worker until their leases run out. A
    handler that the program has set stays, and only the main thread can set one.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class SearchBase:
    """When the next trial may start, and what is shown of it."""

    stopping: Any
    """An event that ends the loop."""

    def __init__(
        self,
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        catch: type[Exception] | tuple[type[Exception], ...],
        progress: bool | None,
    ) -> None:
        n_jobs = convert.integer("n_jobs", n_jobs)
        if n_trials is not None:
            n_trials = convert.integer("n_trials", n_trials)
        if timeout is not None:
            timeout = convert.number("timeout", timeout)
        if n_jobs > MAX_JOBS:
            raise ValueError(f"n_jobs: must be at most {MAX_JOBS}, is {convert.shown(n_jobs)}")
        if n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"n_jobs: must be at least 1, or -1 for all cores, is {n_jobs}")
        if n_trials is not None and n_trials < 0:
            raise ValueError(f"n_trials: must be at least 0, is {n_trials}")
        self.n_trials = n_trials
        self.jobs = n_jobs if n_jobs > 0 else os.cpu_count() or 1
        self.end = None if timeout is None else time.monotonic() + timeout
        self.catch = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
        if not all(isinstance(x, type) and issubclass(x, BaseException) for x in self.catch):
            raise TypeError(f"catch: {convert.shown(catch)} is not a type of exception")
        self.progress = progress
        self.bar: Any = None
        self.started = self.ended = self.infeasible = 0
        self.done: errors.StudyDone | None = None

    def left(self) -> float | None:
        """Returns for how long trials may start, in seconds; None means without limit."""
        return None if self.end is None else max(self.end - time.monotonic(), 0)

    def take(self) -> bool:
        """Counts another trial as started, if it may start."""
        if self.left() == 0 or (self.n_trials is not None and self.started >= self.n_trials):
            return False
        self.started += 1
        return True

    def open_bar(self, info: StudyInfo | None) -> Any:
        """Returns a bar for ``n_trials``, or for what the study has left."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets there is a plain bar
            from tqdm.auto import tqdm

        total = self.n_trials
        if info is not None and info.max_trials:
            waiting = info.trial_counts["queued"]
            total = info.max_trials - sum(info.trial_counts.values()) + waiting
        shown = self.progress
        if shown is None or sys.stderr is None:
            shown = is_watched()
        self.bar = tqdm(total=total, unit="trial", disable=not shown)
        return self.bar

    def count(self, infeasible: bool) -> None:
        """Counts a trial that ended, and shows it."""
        self.ended += 1
        self.infeasible += infeasible
        if self.infeasible:
            self.bar.set_postfix(infeasible=self.infeasible, refresh=False)
        self.bar.update()

    def cut_short(self) -> errors.StudyDone | None:
        """Returns why nothing, or less than was asked for, was run, if the study was done."""
        return self.done if self.ended < (self.n_trials or 1) else None

    def warn_not_finite(self, trial: str, error: errors.Infeasible) -> None:
        """Says on screen that a result was not finite: the objective may be wrong."""
        if isinstance(error, errors.NotFinite):
            warnings.warn(
                f"{trial}: {error.result}: the trial ends as infeasible, and the model avoids "
                "similar configurations",
                stacklevel=2,
            )

    def warn(self, done: errors.StudyDone, info: StudyInfo) -> None:
        """Says why less was run than was asked for, and what to do."""
        count = "no trials" if self.ended == 0 else f"{self.ended} of {self.n_trials} trials"
        why = errors.StudyDone(done.study, done.reason, info.state_reason)
        # The caller of optimize is four frames up.
        warnings.warn(f"optimize ran {count}: {why}", stacklevel=4)
