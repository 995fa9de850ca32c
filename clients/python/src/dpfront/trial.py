"""The trials that workers hold."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from dpfront import _convert as convert
from dpfront import _operations as ops
from dpfront import errors
from dpfront._trial import (
    TrialBase,
    Values,
    describe,
    failure_request,
    infeasible_request,
    merge,
    reported,
)
from dpfront.v1 import trial_pb2

if TYPE_CHECKING:
    from dpfront.aio import AsyncStudy
    from dpfront.client import Study

__all__ = ["AsyncTrial", "Trial"]

T = TypeVar("T")


class Trial(TrialBase):
    """A trial that this worker holds under a lease.

    Within ``with trial:`` a thread renews the lease. If the block does not end the trial by
    `tell`, `infeasible`, `fail` or `release`, the trial ends with the last reported
    measurement, or as infeasible if the block raises `Infeasible` or a result is not finite.
    Any other exception, KeyboardInterrupt included, gives it back: the next worker that asks
    gets it. The exception goes on in all cases.
    """

    def __init__(self, study: Study, message: trial_pb2.Trial) -> None:
        super().__init__(message, study._info)
        self._study = study
        self._heartbeat: _Heartbeat | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_heartbeat": None}

    @property
    def study(self) -> Study:
        """The study."""
        return self._study

    def report(
        self,
        step: int,
        metrics: Mapping[str, Values] | None = None,
        *,
        elapsed: float | None = None,
        **named: Values,
    ) -> bool:
        """Records an intermediate measurement, and renews the lease.

        In a study with a checkpoint parameter the step is the value of that parameter at the
        measurement. A value is a number, or `Runs` or `Mean` of several runs.

        Returns:
            Whether the run should stop: then end it with ``tell()``.

        Raises:
            LeaseLost: The trial is no longer this worker's.
        """
        self._check_held()
        measurement = convert.to_measurement(
            reported(step, metrics, named), step, elapsed, self.seeded
        )
        return self._reported(
            step,
            self._run(ops.add_measurement(self._study._policy, self._message, measurement)),
        )

    def tell(
        self,
        metrics: Mapping[str, Values] | None = None,
        *,
        step: int | None = None,
        elapsed: float | None = None,
        **named: Values,
    ) -> None:
        """Ends the trial with its results, or, without any, with the last reported ones.

        Results belong to the end of the run, unless ``step`` says where it ended. Telling the
        same again changes nothing; other results are refused.

        Raises:
            LeaseLost: Another worker has completed the trial.
            InvalidArgument: ``violations`` names the metrics that are missing or unknown.
        """
        self._complete(self._tell(merge(metrics, named), step, elapsed))

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keeps a value with the trial, in any of its states: ``trial.user_attrs`` has it.

        The value is one of JSON: a number, text, bool, list or mapping. Whole numbers come
        back as ints. None removes the key.
        """
        study = self._study
        self._kept(study._run(ops.keep(study._policy, self.name, {key: value})))

    def add_artifact(
        self, id: str, uri: str | None = None, *, path: str | os.PathLike[str] | None = None
    ) -> None:
        """Says where a file of the trial is kept, such as a model: ``trial.artifacts`` has it.

        The server does not read the file. Another artifact of the same id is replaced.

        Args:
            id: Its name among the trial's artifacts.
            uri: Where it is: ``s3://models/7.pt``.
            path: The local file, of which the SHA-256 is kept, and, without ``uri``, the
                file: URI.
        """
        artifact = convert.to_artifact(id, uri, path)
        study = self._study
        self._kept(study._run(ops.keep(study._policy, self.name, artifact=artifact)))

    def infeasible(self, reason: str) -> None:
        """Ends the trial: its configuration cannot work, and the study avoids similar ones."""
        self._complete(infeasible_request(reason))

    def fail(self, reason: str, *, retryable: bool = True) -> None:
        """Ends the attempt: the machinery failed, which says nothing about the configuration.

        With ``retryable`` the trial is queued again, up to the study's number of attempts.
        """
        self._complete(failure_request(reason, retryable))

    def release(self, reason: str = "") -> None:
        """Gives the trial back unfinished, so that another worker can get it at once."""
        self._stop_heartbeat()
        self._run(ops.release(self._study._policy, self._message, reason))
        self._ended = True

    def _give_back(self, reason: str) -> None:
        """Releases the trial, with little patience: the lease runs out anyway."""
        self._stop_heartbeat()
        self._run(ops.release(ops.impatient(self._study._policy), self._message, reason))
        self._ended = True

    def keep_alive(self) -> None:
        """Starts a thread that renews the lease until the trial ends."""
        if self._heartbeat is None and not self._ended:
            self._heartbeat = _Heartbeat(self)
            self._heartbeat.start()

    def __enter__(self) -> Trial:
        self.keep_alive()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._ended or self._lost is not None:
                return
            if error is None:
                if self._reported_step is None:
                    self.release("the worker ended the trial without a result")
                    raise errors.DParetoError(
                        f"{self.name}: the block ended without a result; call tell()"
                    )
                self.tell()
            elif isinstance(error, errors.Infeasible):
                with suppress(errors.DParetoError):
                    self.infeasible(describe(error))
            else:  # the program or the machine failed, not the configuration
                with suppress(errors.DParetoError):
                    self._give_back(describe(error))
        finally:
            self._stop_heartbeat()

    def _complete(self, request: Any) -> None:
        self._run(ops.complete(self._study._policy, self._message, request))
        self._ended = True
        self._stop_heartbeat()

    def _run(self, operation: ops.Operation[T]) -> T:
        try:
            return self._study._run(operation)
        except errors.LeaseLost as error:
            self._lost = error.message
            raise

    def _stop_heartbeat(self) -> None:
        beats, self._heartbeat = self._heartbeat, None
        if beats is not None:
            beats.stop()


class _Heartbeat(threading.Thread):
    """Renews the lease of a trial, every third of its duration."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(name=f"dpareto lease {trial.name}", daemon=True)
        self._trial = trial
        self._stopped = threading.Event()

    def run(self) -> None:
        trial = self._trial
        policy, study = trial._study._policy, trial._study.name
        while not self._stopped.wait(trial._lease_seconds() / 3):
            try:
                result = trial._study._run(ops.renew(policy, study, trial._message))
            except errors.LeaseLost as error:
                trial._lost = error.message
            except (errors.DParetoError, OSError, ValueError):
                if trial._study.client._closed.is_set():
                    return
                continue  # temporary; so may be a missing token file
            else:
                trial._renewed(result)
            if trial._lost is not None:
                return

    def stop(self) -> None:
        """Ends the renewals, without waiting for one under way."""
        self._stopped.set()


class AsyncTrial(TrialBase):
    """A trial that this worker holds under a lease.

    Within ``async with trial:`` a task renews the lease, and the trial ends with the block as
    with `Trial`. A cancelled block gives it back.
    """

    def __init__(self, study: AsyncStudy, message: trial_pb2.Trial) -> None:
        super().__init__(message, study._info)
        self._study = study
        self._heartbeat: asyncio.Task[None] | None = None

    @property
    def study(self) -> AsyncStudy:
        """The study."""
        return self._study

    async def report(
        self,
        step: int,
        metrics: Mapping[str, Values] | None = None,
        *,
        elapsed: float | None = None,
        **named: Values,
    ) -> bool:
        """Records an intermediate measurement, as `Trial.report` does.

        Returns whether the run should stop: then end it with ``await trial.tell()``.
        """
        self._check_held()
        measurement = convert.to_measurement(
            reported(step, metrics, named), step, elapsed, self.seeded
        )
        return self._reported(
            step,
            await self._run(ops.add_measurement(self._study._policy, self._message, measurement)),
        )

    async def tell(
        self,
        metrics: Mapping[str, Values] | None = None,
        *,
        step: int | None = None,
        elapsed: float | None = None,
        **named: Values,
    ) -> None:
        """Ends the trial with its results, or, without any, with the last reported ones."""
        await self._complete(self._tell(merge(metrics, named), step, elapsed))

    async def set_user_attr(self, key: str, value: Any) -> None:
        """Keeps a value with the trial, as `Trial.set_user_attr` does."""
        study = self._study
        self._kept(await study._run(ops.keep(study._policy, self.name, {key: value})))

    async def add_artifact(
        self, id: str, uri: str | None = None, *, path: str | os.PathLike[str] | None = None
    ) -> None:
        """Says where a file of the trial is kept, as `Trial.add_artifact` does."""
        artifact = await asyncio.to_thread(convert.to_artifact, id, uri, path)
        study = self._study
        self._kept(await study._run(ops.keep(study._policy, self.name, artifact=artifact)))

    async def infeasible(self, reason: str) -> None:
        """Ends the trial: its configuration cannot work, and the study avoids similar ones."""
        await self._complete(infeasible_request(reason))

    async def fail(self, reason: str, *, retryable: bool = True) -> None:
        """Ends the attempt: the machinery failed, which says nothing about the configuration."""
        await self._complete(failure_request(reason, retryable))

    async def release(self, reason: str = "") -> None:
        """Gives the trial back unfinished, so that another worker can get it at once."""
        self._stop_heartbeat()
        await self._run(ops.release(self._study._policy, self._message, reason))
        self._ended = True

    async def _give_back(self, reason: str) -> None:
        """Releases the trial, with little patience: the lease runs out anyway. A cancelled task
        finishes it first: if one of several fails, the others are cancelled on their way out.
        """
        self._stop_heartbeat()
        policy = ops.impatient(self._study._policy)
        release = asyncio.create_task(self._run(ops.release(policy, self._message, reason)))
        try:
            await asyncio.shield(release)
        finally:
            await asyncio.gather(release, return_exceptions=True)
        self._ended = True

    def keep_alive(self) -> None:
        """Starts a task that renews the lease until the trial ends."""
        if self._heartbeat is None and not self._ended:
            self._heartbeat = asyncio.create_task(self._beat(), name=f"lease of {self.name}")

    async def _beat(self) -> None:
        policy, study = self._study._policy, self._study.name
        while self._lost is None:
            await asyncio.sleep(self._lease_seconds() / 3)
            try:
                result = await self._study._run(ops.renew(policy, study, self._message))
            except errors.LeaseLost as error:
                self._lost = error.message
            except (errors.DParetoError, OSError, ValueError):
                if self._study.client._closed:
                    return
                continue  # temporary; so may be a missing token file
            else:
                self._renewed(result)

    async def __aenter__(self) -> AsyncTrial:
        self.keep_alive()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._ended or self._lost is not None:
                return
            if error is None:
                if self._reported_step is None:
                    await self.release("the worker ended the trial without a result")
                    raise errors.DParetoError(
                        f"{self.name}: the block ended without a result; call tell()"
                    )
                await self.tell()
            elif isinstance(error, errors.Infeasible):
                with suppress(errors.DParetoError):
                    await self.infeasible(describe(error))
            else:  # the program or the machine failed, not the configuration
                with suppress(errors.DParetoError):
                    await self._give_back(describe(error))
        finally:
            self._stop_heartbeat()

    async def _complete(self, request: Any) -> None:
        await self._run(ops.complete(self._study._policy, self._message, request))
        self._ended = True
        self._stop_heartbeat()

    async def _run(self, operation: ops.Operation[T]) -> T:
        try:
            return await self._study._run(operation)
        except errors.LeaseLost as error:
            self._lost = error.message
            raise

    def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
