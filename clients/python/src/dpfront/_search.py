"""The loop of `Study.optimize`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dpfront import _operations as ops
from dpfront import errors
from dpfront._progress import Progress
from dpfront._trial import Outcome, infeasible_errors, outcome

if TYPE_CHECKING:
    from dpfront.client import Study, Trial


class Stopped(Exception):
    """The caller stopped waiting."""


class Search:
    """The loop of `Study.optimize`."""

    def __init__(
        self,
        study: Study,
        objective: Callable[[Trial], Outcome],
        n_trials: int | None,
        catch: type[Exception] | tuple[type[Exception], ...],
        progress: bool | None,
    ) -> None:
        self.study = study
        self.objective = objective
        self.n_trials = n_trials
        self.catch = infeasible_errors(catch)
        self.lock = threading.Lock()
        self.started = 0
        self.ended = 0
        self.stopping = threading.Event()
        self.error: BaseException | None = None
        self.held: set[Trial] = set()
        self.progress = Progress(n_trials, progress)

    def run(self, workers: int) -> int:
        if workers < 1:
            raise ValueError("workers: must be at least 1")
        if self.n_trials is None and self.progress.enabled:
            info = self.study.info()
            left = info.max_trials - sum(info.trial_counts.values())
            self.progress.total = left if info.max_trials else None
        with self.progress:
            # Use separate ids, so that trials that the process asked for elsewhere stay
            # untouched.
            base = ops.new_worker_id()
            if workers == 1:
                self.work(base)
            else:
                self.share(base, workers)
        return self.ended

    def share(self, base: str, workers: int) -> None:
        """Runs the worker threads and waits for them."""
        threads = [
            threading.Thread(target=self.guard, args=(f"{base}-{k}",), daemon=True)
            for k in range(workers)
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
        while not self.stopping.is_set() and self.take():
            try:
                trial = self.ask(worker_id)
            except (errors.StudyDone, Stopped):
                return
            with self.lock:
                self.held.add(trial)
            if self.stopping.is_set():  # since it was asked for
                with suppress(errors.DParetoError):
                    trial._give_back("the search has ended")
                return
            try:
                self.one(trial)
            except errors.LeaseLost:
                pass  # another worker has the trial
            finally:
                with self.lock:
                    self.held.discard(trial)
                    self.ended += 1
            self.progress.update(self.ended)

    def ask(self, worker_id: str) -> Trial:
        """Asks for a trial, while the search continues."""
        return self.study._ask_until(worker_id, self.stopping)

    def take(self) -> bool:
        with self.lock:
            if self.n_trials is not None and self.started >= self.n_trials:
                return False
            self.started += 1
            return True

    def one(self, trial: Trial) -> None:
        with suppress(*self.catch), trial:
            value = self.objective(trial)
            if not trial.ended:
                trial.tell(outcome(value, self.study._info.reported))
