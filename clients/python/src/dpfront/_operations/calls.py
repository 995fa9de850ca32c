"""How calls are made: time limits, request ids and retries."""

from __future__ import annotations

import logging
import os
import random
import socket
import time
import warnings
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import Message

from dpfront import _convert as convert
from dpfront import errors
from dpfront._connection import Failure, Pauses
from dpfront.v1 import (
    admin_service_pb2,
    analysis_service_pb2,
    front_service_pb2,
    method_pb2,
    privacy_service_pb2,
    release_service_pb2,
    study_service_pb2,
)

logger = logging.getLogger("dpfront")

T = TypeVar("T")

SLOW_FACTOR = 8
"""How much longer than others a call of a slow method may take."""

FIRST_PATIENCE = 20.0
"""How long, at most, a client that never reached its server tries, in seconds."""

LAST_PATIENCE = 3.0
"""How long an interrupted worker tries to release its trial, in seconds."""

ASK_AGAIN = 1.0
"""After how long a worker asks again if the server does not say, in seconds."""

MAX_REASON = 2000


@dataclass(frozen=True)
class Call:
    """A call of a method."""

    action: str
    """Its purpose, for people."""
    service: str
    method: str
    request: Message
    timeout: float = 0.0
    """Time limit of an attempt in seconds."""


@dataclass(frozen=True)
class Pause:
    """A time to wait."""

    seconds: float


class Stopped(Exception):
    """The caller stopped waiting."""


Operation = Generator[Call | Pause, Any, T]


@dataclass
class Policy:
    """How patient a client is."""

    timeout: float
    patience: float
    hint: str = ""  # advice if the server never answered
    connected: bool = False  # whether the server ever answered

    def __post_init__(self) -> None:
        if not convert.number("timeout", self.timeout) > 0:
            raise ValueError(f"timeout: must be positive, is {self.timeout}")
        if not convert.number("patience", self.patience) >= 0:
            raise ValueError(f"patience: must be at least 0, is {self.patience}")


def impatient(policy: Policy) -> Policy:
    """Returns the policy for a program that is about to end."""
    timeout, patience = min(policy.timeout, LAST_PATIENCE), min(policy.patience, LAST_PATIENCE)
    return replace(policy, timeout=timeout, patience=patience)


def new_request_id() -> str:
    """Returns an id that begins with the time, so that the server stores recent ones together."""
    return f"{time.time_ns():016x}-{random.SystemRandom().getrandbits(64):016x}"


def new_worker_id() -> str:
    """Returns a worker id that no other process has."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{random.SystemRandom().getrandbits(32):08x}"


@dataclass(frozen=True)
class Rules:
    """How calls of a method are made."""

    slow: bool
    """Whether a call may fit a model or account for many runs."""
    repeatable: bool
    """Whether a call can be repeated when it is not known whether it took effect."""
    identified: bool
    """Whether it can be repeated under one request id only."""


_SERVICES = {
    "studies": study_service_pb2.DESCRIPTOR.services_by_name["StudyService"],
    "fronts": front_service_pb2.DESCRIPTOR.services_by_name["FrontService"],
    "analyses": analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
    "privacy": privacy_service_pb2.DESCRIPTOR.services_by_name["PrivacyService"],
    "releases": release_service_pb2.DESCRIPTOR.services_by_name["ReleaseService"],
    "admin": admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
}


@cache
def rules(service: str, method: str) -> Rules:
    """Reads the rules of a method in the contract."""
    found = _SERVICES[service].methods_by_name[method]
    options = found.GetOptions()
    declared: Any = method_pb2.rules  # an extension; its stub lacks the type
    slow: bool = options.Extensions[declared].slow
    if options.idempotency_level != options.IDEMPOTENCY_UNKNOWN:
        return Rules(slow, repeatable=True, identified=False)
    identified = "request_id" in found.input_type.fields_by_name
    return Rules(slow, repeatable=identified, identified=identified)


def patiently(policy: Policy, operation: Operation[T]) -> Operation[T]:
    """Returns an operation whose calls are single attempts that raise `Failure`.

    Failed attempts are repeated until a call is answered, fails for good, or the patience is
    spent.
    """
    try:
        step = next(operation)
        while True:
            if isinstance(step, Pause):
                yield step
                step = operation.send(None)
                continue
            try:
                answer = yield from _attempts(policy, step)
            except errors.CallError as error:
                step = operation.throw(error)
            else:
                step = operation.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _attempts(policy: Policy, call: Call) -> Operation[Any]:
    """Attempts a call again and again.

    A call that could make a change twice gets a request id, the same in all attempts, under
    which the server remembers its answer.
    """
    how = rules(call.service, call.method)
    request: Any = call.request
    if how.identified and not request.request_id:
        request.request_id = new_request_id()
    call = replace(call, timeout=policy.timeout * (SLOW_FACTOR if how.slow else 1))
    pauses = Pauses()
    begin = time.monotonic()
    warned = False
    while True:
        try:
            answer = yield call
        except Failure as failure:
            waited = time.monotonic() - begin
            patience = policy.patience
            if not policy.connected:
                patience = min(patience, FIRST_PATIENCE)
            if not failure.transient or not how.repeatable or waited >= patience:
                message = failure.message
                if failure.transient and not policy.connected:
                    message = f"{policy.hint} {message}"
                raise errors.call_error(
                    call.action, failure.code, message, failure.violations
                ) from None
            if not warned:
                warned = True
                logger.warning("%s: %s; trying again", call.action, failure.message)
            yield Pause(min(pauses.next(failure.retry_delay), max(patience - waited, 0.01)))
        else:
            policy.connected = True
            return answer


def warn_large_delta(found: Iterable[Any]) -> None:
    """Says on screen that a δ allows the publication of a record."""
    for text in dict.fromkeys(w.message for w in found if w.code == "LARGE_DELTA"):
        warnings.warn(text, stacklevel=2)


def pages(action: str, service: str, method: str, request: Any) -> Operation[list[Any]]:
    """Calls a method that lists something, once for every page."""
    answers: list[Any] = []
    while True:
        answer = yield Call(action, service, method, request)
        answers.append(answer)
        if not answer.next_page_token:
            return answers
        request.page_token = answer.next_page_token


def held(name: str, call: Call) -> Operation[Any]:
    """Makes a call whose refusal because of a trial's state or absence is `LeaseLost`."""
    try:
        return (yield call)
    except (errors.FailedPrecondition, errors.NotFound) as error:
        raise errors.LeaseLost(name, error.message) from error


def clip(reason: str) -> str:
    """Makes a reason valid text of limited length."""
    if not isinstance(reason, str):
        raise TypeError(f"reason: {convert.shown(reason)} is not a text")
    return reason.encode("utf-8", "replace").decode()[:MAX_REASON]
