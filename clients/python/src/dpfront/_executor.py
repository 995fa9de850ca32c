"""Runs trials on executors: pools of threads or processes, and clusters."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from dpfront import errors
from dpfront._search import exits_on_sigterm
from dpfront._sync.running import run_trial
from dpfront._sync.trial import Trial
from dpfront._threads import Transport
from dpfront._trial import TrialBase, describe


class Job(Protocol):
    """A call that an executor runs, like `concurrent.futures.Future`."""

    def result(self) -> Any:
        """Waits for the call, and returns its result; raises if the worker died."""

    def cancel(self) -> Any:
        """Cancels the call if it has not begun; others may run to their end."""


class Executor(Protocol):
    """Runs functions elsewhere, like `concurrent.futures.Executor`."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Job:
        """Starts a call of a function, or queues it."""


@dataclass(frozen=True)
class Ending:
    """How a worker left a trial that it no longer holds."""

    infeasible: errors.Infeasible | None = None
    lease_lost: str | None = None
    stopped: str | None = None
    """Why the worker had to end. It has given the trial back."""
    raised: BaseException | None = None
    """By the objective. The worker has given the trial back."""
    trace: str = ""


class RemoteTraceback(Exception):
    """The traceback of an exception in a worker, as its cause."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def carrier(transport: Any) -> Transport:
    """Returns a transport for workers, which work without asyncio."""
    if isinstance(transport, Transport):
        return transport
    policy = transport.policy
    return Transport(transport.connection, policy.timeout, policy.patience)


def job(
    trial: TrialBase, transport: Transport, objective: Any, catch: tuple[type[Exception], ...]
) -> tuple[Any, ...]:
    """Returns the function that runs a trial elsewhere, and its arguments."""
    copy = Trial(transport, trial._message, trial._info)
    return _work, copy, objective, catch, os.getpid()


def _work(trial: Trial, objective: Any, catch: tuple[type[Exception], ...], driver: int) -> Ending:
    """Runs a trial in a worker. What this raises is the executor's fault, or the machine's."""
    try:
        with exits_on_sigterm():
            trial._renew()  # it may have waited for long
            trial._check_held()
            return Ending(infeasible=run_trial(trial, objective, catch))
    except errors.LeaseLost as error:
        return Ending(lease_lost=error.message)
    except (KeyboardInterrupt, SystemExit) as error:
        return Ending(stopped=describe(error))
    except BaseException as error:  # noqa: BLE001 - raised by the driver
        return Ending(raised=_portable(error), trace=traceback.format_exc())
    finally:
        if os.getpid() != driver:  # threads share the driver's connection
            trial._transport.close()


def _portable(error: BaseException) -> BaseException:
    """Returns an exception that another process can read."""
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))
        return error
    return RuntimeError(describe(error))


def is_of_pickling(error: BaseException) -> bool:
    """Reports whether the executor could not send the objective to a worker."""
    # What an objective raises is in its Ending.
    return isinstance(error, (pickle.PicklingError, AttributeError, TypeError))
