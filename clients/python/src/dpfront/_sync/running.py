# Generated from _async by make generate-python. Do not edit.

"""Runs one trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpfront import _threads as runtime
from dpfront import errors
from dpfront._sync.trial import Trial
from dpfront._trial import Outcome, describe, outcome

# On an executor, it is a plain function.
Objective = Callable[[Trial], Outcome]


def run_trial(
    trial: Trial, objective: Callable[[Any], Any], catch: tuple[type[Exception], ...]
) -> errors.Infeasible | None:
    """Runs a trial, and returns why it is infeasible, if it is.

    Raises:
        LeaseLost: Another worker has the trial.
    """
    try:
        with trial:
            try:
                value = runtime.answered(objective(trial))
            except errors.DParetoError:
                raise
            except catch as error:
                raise errors.Infeasible(describe(error)) from error
            if not trial.ended:
                trial.tell(outcome(value, trial._info))
    except errors.Infeasible as error:
        return error
    return None
