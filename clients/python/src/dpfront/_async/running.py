"""Runs one trial."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from dpfront import _tasks as runtime
from dpfront import errors
from dpfront._async.trial import AsyncTrial
from dpfront._sync.trial import Trial
from dpfront._trial import Outcome, describe, outcome

# On an executor, it is a plain function.
Objective = Callable[[AsyncTrial], Awaitable[Outcome]] | Callable[[Trial], Outcome]


async def run_trial(
    trial: AsyncTrial, objective: Callable[[Any], Any], catch: tuple[type[Exception], ...]
) -> errors.Infeasible | None:
    """Runs a trial, and returns why it is infeasible, if it is.

    Raises:
        LeaseLost: Another worker has the trial.
    """
    try:
        async with trial:
            try:
                value = await runtime.answered(objective(trial))
            except errors.DParetoError:
                raise
            except catch as error:
                raise errors.Infeasible(describe(error)) from error
            if not trial.ended:
                await trial.tell(outcome(value, trial._info))
    except errors.Infeasible as error:
        return error
    return None
