# Generated from _async by make generate-python. Do not edit.

"""The trials that workers hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from dpfront import _convert as convert
from dpfront import _threads as runtime
from dpfront import errors
from dpfront._operations import calls, trials
from dpfront._results.trials import StudyInfo
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

T = TypeVar("T")


class Trial(TrialBase):
    """A trial that this worker holds under a lease.

    Within ``with trial:`` the lease is renewed in the background. If the block does not end
    the trial by `tell`, `infeasible`, `fail` or `release`, the trial ends with the last reported
    measurement. It ends as infeasible if the block raises `Infeasible` or a result is not finite.
    Any other exception, also of an interrupted or cancelled block, releases it: the next worker
    that asks gets it. The exception propagates in all cases.
    """

    def __init__(
        self, transport: runtime.Transport, message: trial_pb2.Trial, study: StudyInfo
    ) -> None:
        super().__init__(message, study)
        self._transport = transport
        self._heartbeat: runtime.Heartbeat | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_heartbeat": None}

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
            Whether the run should stop: then end it with ``trial.tell()``.

        Raises:
            LeaseLost: The trial is no longer this worker's.
        """
        self._check_held()
        measurement = convert.to_measurement(
            reported(step, metrics, named), step, elapsed, self.seeded
        )
        answer = self._run(trials.add_measurement(self._message, measurement))
        return self._reported(step, answer)

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
        self._kept(self._run(trials.keep(self.name, {key: value})))

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
        artifact = runtime.at_once(convert.to_artifact, id, uri, path)
        self._kept(self._run(trials.keep(self.name, artifact=artifact)))

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
        self._run(trials.release(self._message, reason))
        self._ended = True

    def _give_back(self, reason: str) -> None:
        """Releases the trial, with little patience: the lease runs out anyway."""
        self._stop_heartbeat()
        releasing = trials.release(self._message, reason)
        runtime.finished(self._transport.run(releasing, hurry=True))
        self._ended = True

    def keep_alive(self) -> None:
        """Renews the lease in the background until the trial ends."""
        if self._heartbeat is None and not self._ended:
            seconds = self._lease_seconds() / 3
            self._heartbeat = runtime.Heartbeat(self._renew, seconds, f"lease of {self.name}")

    def _renew(self) -> bool:
        """Renews the lease, and reports whether to continue."""
        try:
            result = self._transport.run(trials.renew(self._message))
            if not self._ended:  # meanwhile
                self._renewed(result)
        except errors.LeaseLost as error:
            if not self._ended:
                self._lost = error.message
        except (errors.DParetoError, OSError, ValueError):  # temporary; so may be a missing token
            return not self._transport.closed
        return self._lost is None

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
        self._run(trials.complete(self._message, request))
        self._ended = True
        self._stop_heartbeat()

    def _run(self, operation: calls.Operation[T]) -> T:
        try:
            return self._transport.run(operation)
        except errors.LeaseLost as error:
            self._lost = error.message
            raise

    def _stop_heartbeat(self) -> None:
        beats, self._heartbeat = self._heartbeat, None
        if beats is not None:
            beats.stop()
