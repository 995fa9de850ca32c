"""The loops of `Study.optimize` and `AsyncStudy.optimize`."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dpfront import _convert as convert
from dpfront import _operations as ops
from dpfront import errors
from dpfront import results as r
from dpfront._trial import Outcome, describe, outcome
from dpfront._working import is_watched

if TYPE_CHECKING:
    from dpfront.aio import AsyncStudy, AsyncTrial
    from dpfront.client import Study, Trial


MAX_JOBS = 1024
"""How many trials one search runs at the same time, at most."""


class Stopped(Exception):
    """The caller stopped waiting."""


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
    """What both loops share: when the next trial may start, and what is said about it."""

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

    def open_bar(self, info: r.StudyInfo | None) -> Any:
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

    def warn(self, done: errors.StudyDone, info: r.StudyInfo) -> None:
        """Says why less was run than was asked for, and what to do."""
        count = "no trials" if self.ended == 0 else f"{self.ended} of {self.n_trials} trials"
        why = errors.StudyDone(done.study, done.reason, info.state_reason)
        # The caller of optimize is four frames up.
        warnings.warn(f"optimize ran {count}: {why}", stacklevel=4)


class Search(SearchBase):
    """The loop in threads."""

    def __init__(
        self,
        study: Study,
        objective: Callable[[Trial], Outcome],
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        catch: type[Exception] | tuple[type[Exception], ...],
        callbacks: Iterable[Callable[[Study, r.TrialInfo], object]],
        progress: bool | None,
    ) -> None:
        super().__init__(n_trials, timeout, n_jobs, catch, progress)
        self.study = study
        self.objective = objective
        self.callbacks = tuple(callbacks)
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.error: BaseException | None = None
        self.held: set[Trial] = set()

    def run(self) -> int:
        info = self.study.info() if self.n_trials is None else None
        with exits_on_sigterm(), self.open_bar(info):
            # Use separate ids, so that trials that the process asked for elsewhere stay
            # untouched.
            base = ops.new_worker_id()
            if self.jobs == 1:
                self.work(base)
            else:
                self.share(base)
        if done := self.cut_short():
            self.warn(done, self.study.info())
        return self.ended

    def share(self, base: str) -> None:
        """Runs the worker threads and waits for them."""
        threads = [
            threading.Thread(target=self.guard, args=(f"{base}-{k}",), daemon=True)
            for k in range(self.jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # short, since an endless join blocks Ctrl-C on Windows
        except BaseException:
            # Threads cannot be interrupted. Release their trials now, for other workers.
            self.stopping.set()
            with self.lock:
                held = list(self.held)
            for trial in held:
                with suppress(errors.DParetoError):
                    trial._give_back("interrupted")
            raise
        if self.error is not None:
            raise self.error

    def guard(self, worker_id: str) -> None:
        try:
            self.work(worker_id)
        except BaseException as error:  # noqa: BLE001 - share raises it
            with self.lock:
                self.error = self.error or error
            self.stopping.set()

    def work(self, worker_id: str) -> None:
        while not self.stopping.is_set():
            with self.lock:
                if not self.take():
                    return
            try:
                trial = self.ask(worker_id)
            except errors.StudyDone as done:
                self.done = done
                return
            except (Stopped, TimeoutError):
                return
            with self.lock:
                self.held.add(trial)
            if self.stopping.is_set():  # since it was asked for
                with suppress(errors.DParetoError):
                    trial._give_back("the search has ended")
                return
            try:
                infeasible = self.one(trial)
            finally:
                with self.lock:
                    self.held.discard(trial)
            with self.lock:
                self.count(infeasible)
            if self.callbacks and trial._lost is None:
                info = self.study.get_trial(trial.number)
                for callback in self.callbacks:
                    callback(self.study, info)

    def ask(self, worker_id: str) -> Trial:
        """Asks for a trial, while the search continues."""
        return self.study._ask_until(worker_id, self.left(), self.stopping)

    def one(self, trial: Trial) -> bool:
        """Runs a trial, and reports whether it is infeasible."""
        try:
            with trial:
                try:
                    value = self.objective(trial)
                except errors.DParetoError:
                    raise
                except self.catch as error:
                    raise errors.Infeasible(describe(error)) from error
                if not trial.ended:
                    trial.tell(outcome(value, self.study._info))
        except errors.Infeasible as error:
            self.warn_not_finite(trial.name, error)
            return True
        except errors.LeaseLost:
            pass  # another worker has the trial
        return False


class AsyncSearch(SearchBase):
    """The loop in tasks."""

    def __init__(
        self,
        study: AsyncStudy,
        objective: Callable[[AsyncTrial], Awaitable[Outcome]],
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        catch: type[Exception] | tuple[type[Exception], ...],
        callbacks: Iterable[Callable[[AsyncStudy, r.TrialInfo], object]],
        progress: bool | None,
    ) -> None:
        super().__init__(n_trials, timeout, n_jobs, catch, progress)
        self.study = study
        self.objective = objective
        self.callbacks = tuple(callbacks)
        self.stopping = asyncio.Event()

    async def run(self) -> int:
        info = await self.study.info() if self.n_trials is None else None
        with exits_on_sigterm(), self.open_bar(info):
            base = ops.new_worker_id()
            tasks = [asyncio.create_task(self.work(f"{base}-{k}")) for k in range(self.jobs)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if done := self.cut_short():
            self.warn(done, await self.study.info())
        return self.ended

    async def work(self, worker_id: str) -> None:
        while not self.stopping.is_set() and self.take():
            try:
                trial = await self.study._ask_until(worker_id, self.left(), self.stopping)
            except errors.StudyDone as done:
                self.done = done
                return
            except (Stopped, TimeoutError):
                return
            if self.stopping.is_set():  # since it was asked for
                with suppress(errors.DParetoError):
                    await trial._give_back("the search has ended")
                return
            self.count(await self.one(trial))
            if self.callbacks and trial._lost is None:
                info = await self.study.get_trial(trial.number)
                for callback in self.callbacks:
                    answer = callback(self.study, info)
                    if inspect.isawaitable(answer):
                        await answer

    async def one(self, trial: AsyncTrial) -> bool:
        """Runs a trial, and reports whether it is infeasible."""
        try:
            async with trial:
                try:
                    value = await self.objective(trial)
                except errors.DParetoError:
                    raise
                except self.catch as error:
                    raise errors.Infeasible(describe(error)) from error
                if not trial.ended:
                    await trial.tell(outcome(value, self.study._info))
        except errors.Infeasible as error:
            self.warn_not_finite(trial.name, error)
            return True
        except errors.LeaseLost:
            pass  # another worker has the trial
        return False
