"""The errors of the package.

    DParetoError
    ├── CallError                 the server refused a call, or did not answer
    │   ├── InvalidArgument       with every violated field in .violations
    │   ├── NotFound
    │   ├── AlreadyExists         a study of that id has another spec
    │   ├── FailedPrecondition    a resource is in the wrong state
    │   ├── PermissionDenied
    │   ├── Unauthenticated
    │   ├── ResourceExhausted
    │   └── Unavailable           no answer within Client(patience=...)
    ├── StudyDone                 the study hands out no more trials
    ├── LeaseLost                 the trial is no longer this worker's
    ├── PrivacyMismatch           a training run is not what its study accounts for
    └── ServerError               a local_server() could not start, or has ended

`Infeasible` is not among them: objective functions raise it. Neither is `NotFinite`, which is
raised for a result that is infinite or NaN, and also counts as infeasible.
"""

from __future__ import annotations

from typing import NamedTuple

import grpc

__all__ = [
    "AlreadyExists",
    "CallError",
    "DParetoError",
    "FailedPrecondition",
    "FieldViolation",
    "Infeasible",
    "InvalidArgument",
    "LeaseLost",
    "NotFinite",
    "NotFound",
    "PermissionDenied",
    "PrivacyMismatch",
    "ResourceExhausted",
    "ServerError",
    "StudyDone",
    "Unauthenticated",
    "Unavailable",
]


class DParetoError(Exception):
    """Base of all errors of the package."""


class FieldViolation(NamedTuple):
    """An invalid field of a request."""

    field: str
    """Path of the field in the request, such as ``study.spec.metrics[0].goal``."""
    description: str
    """What is wrong with it."""


class CallError(DParetoError):
    """A call that failed.

    ``code`` is the gRPC status code, ``message`` the server's message, ``action`` what was
    attempted, and ``violations`` names every invalid field of a request.
    """

    def __init__(
        self,
        action: str,
        code: grpc.StatusCode,
        message: str,
        violations: tuple[FieldViolation, ...] = (),
    ) -> None:
        super().__init__(action, code, message, violations)
        self.action = action
        self.code = code
        self.message = message
        self.violations = violations

    def __str__(self) -> str:
        seen = dict.fromkeys(f"{v.field}: {v.description}" for v in self.violations)
        return f"{self.action}: {'; '.join(seen) or self.message} ({self.code.name})"


class InvalidArgument(CallError, ValueError):
    """An invalid request; ``violations`` names its invalid fields."""


class NotFound(CallError, LookupError):
    """There is no such study, trial, ledger or release."""


class AlreadyExists(CallError):
    """A study or ledger of that id exists and differs."""


class FailedPrecondition(CallError):
    """The state of a study or trial does not allow the call."""


class PermissionDenied(CallError):
    """The token does not allow this."""


class Unauthenticated(CallError):
    """The server needs a token, or another one."""


class ResourceExhausted(CallError):
    """A limit of the server, or the budget of a ledger, is exceeded."""


class Unavailable(CallError, ConnectionError):
    """The server did not answer within the client's patience."""


_BY_CODE: dict[grpc.StatusCode, type[CallError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unavailable,
    grpc.StatusCode.CANCELLED: Unavailable,
    grpc.StatusCode.ABORTED: Unavailable,
}


def call_error(
    action: str,
    code: grpc.StatusCode,
    message: str,
    violations: tuple[FieldViolation, ...] = (),
) -> CallError:
    """Returns the error of a code."""
    return _BY_CODE.get(code, CallError)(action, code, message, violations)


class StudyDone(DParetoError):
    """The study hands out no more trials; the text says what to do.

    ``reason`` is one of budget_spent, stagnant, space_exhausted, privacy_budget_spent,
    condition and completed. ``cause`` is the same for people; by default what the reason says.
    """

    def __init__(self, study: str, reason: str, cause: str = "") -> None:
        super().__init__(study, reason, cause)
        self.study = study
        self.reason = reason
        self.cause = cause or _CAUSES.get(reason, reason)

    def __str__(self) -> str:
        text = f"{self.study} hands out no more trials: {self.cause}"
        return f"{text}; {_ADVICE[self.reason]}" if self.reason in _ADVICE else text


_CAUSES = {
    "budget_spent": "its budget of trials or time is spent",
    "stagnant": "its front has not grown for as many trials as max_stagnant_trials allows",
    "space_exhausted": "every configuration has been handed out",
    "privacy_budget_spent": "its privacy budget is spent",
    "condition": "no further configuration meets the conditions",
    "completed": "it is complete",
}

_ADVICE = {
    "budget_spent": "raise it with study.update(max_trials=...) or study.update("
    "max_duration=...), unless private_mode or random_stopping fix it",
    "stagnant": "raise the number with study.update(max_stagnant_trials=...), or lift it with 0",
    "space_exhausted": "run one again with study.enqueue_trial(replicate_of=...), or create a "
    "study with a larger space and prior_studies=[...]",
    "privacy_budget_spent": "it was fixed when the study was created",
    "condition": "ask with other values of fixed= and at_most=",
}


class LeaseLost(DParetoError):
    """The trial is no longer this worker's.

    Its lease ran out and another worker has it, or it is complete or deleted. The worker
    should drop it and ask for another.
    """

    def __init__(self, trial: str, message: str) -> None:
        super().__init__(trial, message)
        self.trial = trial
        self.message = message

    def __str__(self) -> str:
        return f"the lease of {self.trial} is lost: {self.message}"


class PrivacyMismatch(DParetoError):
    """A training run is not what its study accounts for: no ε of the study holds for it.

    ``what`` names the part that differs, such as ``noise multiplier``, ``here`` is what the run
    has, ``study`` what the study says, and ``advice`` what to change.
    """

    def __init__(self, what: str, here: object, study: object, advice: str) -> None:
        super().__init__(what, here, study, advice)
        self.what = what
        self.here = here
        self.study = study
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}: {self.here} in training, {self.study} in the study; {self.advice}"


class ServerError(DParetoError):
    """A local server could not be started, or has ended; the text has the last lines of its log."""


class Infeasible(Exception):
    """Raised by an objective function: the configuration cannot work.

    The model learns to avoid it. Its text is the reason.
    """


class NotFinite(Infeasible, ValueError):
    """A result is infinite or not a number, for example because training diverged.

    ``result`` names the metric and its value.
    """

    def __init__(self, result: str) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        return f"{self.result}; trial.infeasible(reason) ends such a run"
