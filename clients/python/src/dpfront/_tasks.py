"""Calls, waits and background work in tasks of asyncio. `_threads` has the same for threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

from dpfront import errors
from dpfront._connection import Connection, Failure, failure
from dpfront._operations.calls import (
    LAST_PATIENCE,
    Operation,
    Pause,
    Policy,
    Stopped,
    impatient,
    new_worker_id,
    patiently,
)
from dpfront.v1.admin_service_pb2_grpc import AdminServiceStub
from dpfront.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from dpfront.v1.front_service_pb2_grpc import FrontServiceStub
from dpfront.v1.privacy_service_pb2_grpc import PrivacyServiceStub
from dpfront.v1.release_service_pb2_grpc import ReleaseServiceStub
from dpfront.v1.study_service_pb2_grpc import StudyServiceStub

if TYPE_CHECKING:
    from dpfront.v1.admin_service_pb2_grpc import AdminServiceAsyncStub
    from dpfront.v1.analysis_service_pb2_grpc import AnalysisServiceAsyncStub
    from dpfront.v1.front_service_pb2_grpc import FrontServiceAsyncStub
    from dpfront.v1.privacy_service_pb2_grpc import PrivacyServiceAsyncStub
    from dpfront.v1.release_service_pb2_grpc import ReleaseServiceAsyncStub
    from dpfront.v1.study_service_pb2_grpc import StudyServiceAsyncStub

T = TypeVar("T")
Event = asyncio.Event


@dataclass(frozen=True)
class Stubs:
    """The generated stubs of a connection, for everything without a method here. Their calls
    are plain: without time limit, token or retries.
    """

    studies: StudyServiceAsyncStub
    fronts: FrontServiceAsyncStub
    analyses: AnalysisServiceAsyncStub
    privacy: PrivacyServiceAsyncStub
    releases: ReleaseServiceAsyncStub
    admin: AdminServiceAsyncStub


def _is_cancelled() -> bool:
    """Reports whether the current task is being cancelled; always false in Python 3.10."""
    task: Any = asyncio.current_task()
    return hasattr(task, "cancelling") and task.cancelling() > 0


class Transport:
    """The calls of a client in one event loop."""

    def __init__(self, connection: Connection, timeout: float, patience: float) -> None:
        self.connection = connection
        self.policy = Policy(timeout, patience, connection.hint())
        self.page_url: str | None = None  # once it is known
        self.worker_id = new_worker_id()
        self.closed = False
        self._channel: grpc.aio.Channel | None = None
        self._stubs: Stubs | None = None

    @property
    def stubs(self) -> Stubs:
        if self.closed:
            raise errors.DParetoError("the client is closed")
        if self._stubs is None:
            address = self.connection.address
            credentials, options = self.connection.credentials(), self.connection.options()
            if credentials is None:
                self._channel = grpc.aio.insecure_channel(address, options)
            else:
                self._channel = grpc.aio.secure_channel(address, credentials, options)
            self._stubs = Stubs(
                StudyServiceStub(self._channel),
                FrontServiceStub(self._channel),
                AnalysisServiceStub(self._channel),
                PrivacyServiceStub(self._channel),
                ReleaseServiceStub(self._channel),
                AdminServiceStub(self._channel),
            )
        return self._stubs

    async def close(self) -> None:
        """Closes the connection."""
        self.closed = True
        if self._channel is not None:
            await self._channel.close()
        self._channel = self._stubs = None

    async def pause(self, seconds: float, stopping: Event | None = None) -> None:
        """Waits, unless the caller should stop."""
        if stopping is None:
            await asyncio.sleep(seconds)
            return
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopping.wait(), seconds)
            raise Stopped

    async def run(
        self, operation: Operation[T], stopping: Event | None = None, *, hurry: bool = False
    ) -> T:
        """Runs an operation: attempts its calls and waits, with little patience in a hurry."""
        steps = patiently(impatient(self.policy) if hurry else self.policy, operation)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await self.pause(step.seconds, stopping)
                    step = steps.send(None)
                    continue
                method = getattr(getattr(self.stubs, step.service), step.method)
                metadata = self.connection.metadata()
                try:
                    answer = await method(step.request, timeout=step.timeout, metadata=metadata)
                except (grpc.RpcError, asyncio.CancelledError, grpc.aio.UsageError) as error:
                    step = steps.throw(self._failure(error))
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _failure(self, error: BaseException) -> Failure:
        """Returns the failure for an error, unless the task is cancelled or the client closed."""
        if isinstance(error, grpc.RpcError):
            return failure(error)
        if not self.closed or _is_cancelled():
            raise error
        raise errors.DParetoError("the client is closed") from None

    @asynccontextmanager
    async def stream(self, method: str, request: Any, timeout: float) -> AsyncIterator[Any]:
        """Calls a method of the study service that answers with a stream; raises `Failure`."""
        call = getattr(self.stubs.studies, method)
        answers = call(request, timeout=timeout, metadata=self.connection.metadata())
        try:
            yield answers
        except (grpc.RpcError, asyncio.CancelledError) as error:
            raise self._failure(error) from None
        finally:
            answers.cancel()


class Heartbeat:
    """Calls a function every few seconds, until it returns False or `stop` is called."""

    def __init__(self, beat: Callable[[], Awaitable[bool]], seconds: float, name: str) -> None:
        self._beat, self._seconds = beat, seconds
        self.task = asyncio.create_task(self._run(), name=name)

    async def _run(self) -> None:
        await asyncio.sleep(self._seconds)
        while await self._beat():
            await asyncio.sleep(self._seconds)

    def stop(self) -> None:
        """Ends the calls."""
        self.task.cancel()


async def received(
    transport: Transport,
    operation: Operation[T],
    stopping: Event | None,
    give_back: Callable[[T], Awaitable[None]],
) -> T:
    """Runs an operation that hands out trials. If nobody waits for them, they are given back:
    trials in an answer under way would stay leased without a worker.
    """
    stopping = stopping or asyncio.Event()
    asking = asyncio.create_task(transport.run(operation, stopping))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.wait([asking], timeout=LAST_PATIENCE)
        if not asking.done():
            asking.cancel()
        elif not asking.cancelled() and asking.exception() is None:
            await give_back(asking.result())
        raise


async def at_once(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function that reads files, in a thread."""
    return await asyncio.to_thread(function, *arguments)


async def finished(call: Coroutine[Any, Any, T]) -> T:
    """Finishes a call, even if the task is cancelled: if one of several tasks fails, the others
    are cancelled on their way out.
    """
    task = asyncio.create_task(call)
    try:
        return await asyncio.shield(task)
    finally:
        await asyncio.gather(task, return_exceptions=True)


async def answered(value: Any) -> Any:
    """Returns what a function returned, or a coroutine function returns in the end."""
    return await value if inspect.isawaitable(value) else value


async def result_of(job: Any) -> Any:
    """Waits for the result of an executor's job, in a thread of its own."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Any] = loop.create_future()

    def give(setter: Callable[[Any], object], value: Any) -> None:
        if not found.done():
            setter(value)

    def wait() -> None:
        try:
            outcome = (found.set_result, job.result())
        except BaseException as error:  # noqa: BLE001 - raised in the task
            outcome = (found.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(give, *outcome)

    threading.Thread(target=wait, daemon=True).start()
    return await found


async def run_all(jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]], _: Event) -> None:
    """Runs jobs as tasks, and raises their first error; the others are cancelled."""
    tasks = [asyncio.create_task(job()) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
