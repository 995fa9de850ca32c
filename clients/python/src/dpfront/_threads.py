"""Calls, waits and background work in threads. `_tasks` has the same for asyncio."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from dpfront import errors
from dpfront._connection import Connection, Failure, failure
from dpfront._operations.calls import (
    Operation,
    Pause,
    Policy,
    Stopped,
    impatient,
    new_worker_id,
    patiently,
)
from dpfront._working import working
from dpfront.v1.admin_service_pb2_grpc import AdminServiceStub
from dpfront.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from dpfront.v1.front_service_pb2_grpc import FrontServiceStub
from dpfront.v1.privacy_service_pb2_grpc import PrivacyServiceStub
from dpfront.v1.release_service_pb2_grpc import ReleaseServiceStub
from dpfront.v1.study_service_pb2_grpc import StudyServiceStub

T = TypeVar("T")
Event = threading.Event


@dataclass(frozen=True)
class Stubs:
    """The generated stubs of a connection, for everything without a method here. Their calls
    are plain: without time limit, token or retries.
    """

    studies: StudyServiceStub
    fronts: FrontServiceStub
    analyses: AnalysisServiceStub
    privacy: PrivacyServiceStub
    releases: ReleaseServiceStub
    admin: AdminServiceStub


class Transport:
    """The calls of a client. Threads can share it, and it can be pickled.

    A forked process connects by itself.
    """

    def __init__(self, connection: Connection, timeout: float, patience: float) -> None:
        self.connection = connection
        self.policy = Policy(timeout, patience, connection.hint())
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._end_reason = ""
        self._channel: grpc.Channel | None = None
        self._stubs: Stubs | None = None
        self._pid = os.getpid()
        self._worker_id = ""
        self.page_url: str | None = None  # once it is known

    def __reduce__(self) -> Any:
        return Transport, (self.connection, self.policy.timeout, self.policy.patience)

    @property
    def stubs(self) -> Stubs:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            if self.closed:
                raise self._closed_error()
            if self._stubs is None:
                address = self.connection.address
                credentials, options = self.connection.credentials(), self.connection.options()
                if credentials is None:
                    self._channel = grpc.insecure_channel(address, options)
                else:
                    self._channel = grpc.secure_channel(address, credentials, options)
                self._stubs = Stubs(
                    StudyServiceStub(self._channel),
                    FrontServiceStub(self._channel),
                    AnalysisServiceStub(self._channel),
                    PrivacyServiceStub(self._channel),
                    ReleaseServiceStub(self._channel),
                    AdminServiceStub(self._channel),
                )
            return self._stubs

    @property
    def worker_id(self) -> str:
        """The default worker id of this process."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._worker_id = self._worker_id or new_worker_id()
            return self._worker_id

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self, reason: str = "") -> None:
        """Closes the connection; the reason, if there is one, is that the server has ended."""
        self._end_reason = reason or self._end_reason
        self._closed.set()
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._stubs = None

    def _closed_error(self) -> errors.DParetoError:
        if self._end_reason:
            return errors.ServerError(self._end_reason)
        return errors.DParetoError("the client is closed")

    def pause(self, seconds: float, stopping: Event | None = None) -> None:
        """Waits, unless the client is closed or the caller should stop."""
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0)
            if self._closed.wait(left if stopping is None else min(left, 0.1)):
                raise self._closed_error()
            if stopping is not None and stopping.is_set():
                raise Stopped
            if time.monotonic() >= end:
                return

    def run(
        self, operation: Operation[T], stopping: Event | None = None, *, hurry: bool = False
    ) -> T:
        """Runs an operation: attempts its calls and waits, with little patience in a hurry."""
        steps = patiently(impatient(self.policy) if hurry else self.policy, operation)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.pause(step.seconds, stopping)
                    step = steps.send(None)
                    continue
                method = getattr(getattr(self.stubs, step.service), step.method)
                try:
                    # A search shows its own bar.
                    with working(step.action) if stopping is None else nullcontext():
                        answer = method(
                            step.request, timeout=step.timeout, metadata=self.connection.metadata()
                        )
                except (grpc.RpcError, ValueError) as error:
                    step = steps.throw(self._failure(error))
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _failure(self, error: Exception) -> Failure:
        """Returns the failure for an error, unless the client is closed."""
        if self.closed:
            raise self._closed_error() from None
        if isinstance(error, ValueError):  # gRPC's error of a closed channel, or a bad token
            raise error
        return failure(error)

    @contextmanager
    def stream(self, method: str, request: Any, timeout: float) -> Iterator[Any]:
        """Calls a method of the study service that answers with a stream; raises `Failure`."""
        call = getattr(self.stubs.studies, method)
        answers = call(request, timeout=timeout, metadata=self.connection.metadata())
        try:
            yield answers
        except grpc.RpcError as error:
            raise self._failure(error) from None
        finally:
            answers.cancel()


class Heartbeat(threading.Thread):
    """Calls a function every few seconds, until it returns False or `stop` is called."""

    def __init__(self, beat: Callable[[], bool], seconds: float, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._beat, self._seconds = beat, seconds
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(self._seconds) and self._beat():
            pass

    def stop(self) -> None:
        """Ends the calls, without waiting for one under way."""
        self._stopped.set()


def received(transport: Transport, operation: Operation[T], stopping: Event | None, _: Any) -> T:
    """Runs an operation that hands out trials."""
    return transport.run(operation, stopping)


def at_once(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function that reads files."""
    return function(*arguments)


def finished(value: T) -> T:
    """Returns the result of a call."""
    return value


answered = finished


def result_of(job: Any) -> Any:
    """Waits for the result of an executor's job."""
    return job.result()


def run_all(jobs: Sequence[Callable[[], object]], stopping: Event) -> None:
    """Runs jobs, several in threads, and raises their first error; the event ends the others."""
    if len(jobs) == 1:
        jobs[0]()
        return
    failed: list[BaseException] = []

    def guard(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)
            stopping.set()

    threads = [threading.Thread(target=guard, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # short, since an endless join blocks Ctrl-C on Windows
    if failed:
        raise failed[0]
