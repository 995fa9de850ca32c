"""Sends trials to the workers of an executor."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from dpfront import _executor as executors
from dpfront import _tasks as runtime
from dpfront import errors
from dpfront._async.reader import AsyncStudyReader
from dpfront._async.trial import AsyncTrial
from dpfront._trial import describe


class Dispatch:
    """The trials of a search that an executor runs."""

    def __init__(self, study: AsyncStudyReader, executor: executors.Executor, jobs: int) -> None:
        self.study, self.executor = study, executor
        self.max_deaths = jobs + 2
        self.deaths = 0  # of workers, since one of them ended a trial
        self.carrier = executors.carrier(study._transport)
        self.lock = threading.Lock()  # never held during a call
        self.submitted: dict[AsyncTrial, executors.Job] = {}

    async def run(
        self, trial: AsyncTrial, objective: Any, catch: tuple[type[Exception], ...]
    ) -> executors.Ending | None:
        """Runs a trial on the executor. None means that it was given back.

        Raises:
            BaseException: What the objective raised; or of the executor, if it cannot run the
                objective, or many workers died since one of them ended a trial.
        """
        trial.keep_alive()  # also while it waits for a worker
        try:
            ending = await self._ending(trial, objective, catch)
        finally:
            trial._stop_heartbeat()
        if ending is None:
            return None
        self.deaths = 0
        trial._ended, trial._lost = True, None
        if ending.raised is not None:
            raise ending.raised from executors.RemoteTraceback(ending.trace)
        return ending if ending.stopped is None else None

    async def _ending(
        self, trial: AsyncTrial, objective: Any, catch: tuple[type[Exception], ...]
    ) -> executors.Ending | None:
        try:
            job = self.executor.submit(*executors.job(trial, self.carrier, objective, catch))
        except Exception:
            await self._give_back(trial)
            raise
        with self.lock:
            self.submitted[trial] = job
        try:
            ending: executors.Ending = await runtime.result_of(job)
            if ending.lease_lost is None:
                return ending
            # It may be held still, by a run that the executor has repeated.
            return await self._requeue(trial, ending.lease_lost)
        except Exception as error:
            if executors.is_of_pickling(error):
                await self._give_back(trial)
                raise
            ended = await self._requeue(trial, f"its worker died: {describe(error)}")
            with self.lock:
                self.deaths += 1
            if ended is None and self.deaths > self.max_deaths:
                raise
            return ended
        finally:
            with self.lock:
                del self.submitted[trial]

    async def _give_back(self, trial: AsyncTrial) -> None:
        with suppress(errors.DParetoError):
            await trial._give_back("the executor did not run it")

    async def _requeue(self, trial: AsyncTrial, reason: str) -> executors.Ending | None:
        """Gives a trial back, unless its worker ended it before it died.

        It counts as an attempt: a configuration may kill every worker that runs it.
        """
        try:
            await trial.fail(reason)
        except errors.LeaseLost:
            info = await self.study.get_trial(trial.number)
            if info.state in ("succeeded", "infeasible"):
                return executors.Ending()
        return None

    def cancel(self) -> None:
        """Cancels the jobs that have not begun."""
        with self.lock:
            jobs = list(self.submitted.values())
        for job in jobs:
            with suppress(Exception):
                job.cancel()
