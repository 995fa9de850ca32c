"""The operations of clients, without input and output.

Every operation is a generator. It yields a `Call` to attempt a call once, which returns the
answer or raises `Failure`, and a `Pause` to wait; it returns the result. The blocking and the
asyncio client run the same operations, so that retries, request ids and errors cannot differ
between them.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import grpc
from google.protobuf import field_mask_pb2
from google.protobuf.message import Message

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import errors
from dpfront import privacy as p
from dpfront import results as r
from dpfront import spec as s
from dpfront._connection import Failure, Pauses
from dpfront.v1 import (
    admin_service_pb2,
    analysis_service_pb2,
    front_service_pb2,
    method_pb2,
    metric_pb2,
    parameter_pb2,
    privacy_pb2,
    privacy_service_pb2,
    release_service_pb2,
    study_pb2,
    study_service_pb2,
    trial_pb2,
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

CURVE_POINTS = 25
"""For how many lengths of a run ε is computed, at most."""


@dataclass(frozen=True)
class Call:
    """One attempt of a call."""

    service: str
    method: str
    request: Message
    timeout: float
    action: str
    """What it does, for people."""


@dataclass(frozen=True)
class Pause:
    """A time to wait."""

    seconds: float


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


def call(policy: Policy, action: str, service: str, method: str, request: Any) -> Operation[Any]:
    """Calls a method until it is answered, fails for good, or the patience is spent.

    A call that could make a change twice gets a request id, the same in all attempts, under
    which the server remembers its answer.
    """
    how = rules(service, method)
    if how.identified and not request.request_id:
        request.request_id = new_request_id()
    timeout = policy.timeout * (SLOW_FACTOR if how.slow else 1)
    pauses = Pauses()
    begin = time.monotonic()
    warned = False
    while True:
        try:
            answer = yield Call(service, method, request, timeout, action)
        except Failure as failure:
            waited = time.monotonic() - begin
            patience = policy.patience
            if not policy.connected:
                patience = min(patience, FIRST_PATIENCE)
            if not failure.transient or not how.repeatable or waited >= patience:
                message = failure.message
                if failure.transient and not policy.connected:
                    message = f"{policy.hint} {message}"
                raise errors.call_error(action, failure.code, message, failure.violations) from None
            if not warned:
                warned = True
                logger.warning("%s: %s; trying again", action, failure.message)
            yield Pause(min(pauses.next(failure.retry_delay), max(patience - waited, 0.01)))
        else:
            policy.connected = True
            return answer


def warn_large_delta(found: Iterable[Any]) -> None:
    """Says on screen that a δ allows the publication of a record."""
    for text in dict.fromkeys(w.message for w in found if w.code == "LARGE_DELTA"):
        warnings.warn(text, stacklevel=2)


def pages(
    policy: Policy, action: str, service: str, method: str, request: Any
) -> Operation[list[Any]]:
    """Calls a method that lists something, once for every page."""
    answers: list[Any] = []
    while True:
        answer = yield from call(policy, action, service, method, request)
        answers.append(answer)
        if not answer.next_page_token:
            return answers
        request.page_token = answer.next_page_token


# --- studies ----------------------------------------------------------------------------


def create_study(
    policy: Policy,
    id: str,
    spec: s.StudySpec | study_pb2.StudySpec,
    display_name: str,
    description: str,
    labels: Mapping[str, str] | None,
    validate_only: bool,
) -> Operation[study_pb2.Study]:
    study = convert.fill(
        study_pb2.Study(),
        display_name=display_name,
        description=description,
        labels=labels,
        spec=spec if isinstance(spec, study_pb2.StudySpec) else specs.study_spec(spec),
    )
    request = study_service_pb2.CreateStudyRequest(
        study_id=convert.study_id(convert.text("id", id)),
        study=study,
        validate_only=convert.flag("validate_only", validate_only),
    )
    try:
        answer: study_service_pb2.CreateStudyResponse = yield from call(
            policy, f"create study {id}", "studies", "CreateStudy", request
        )
    except errors.AlreadyExists as error:
        with suppress(errors.CallError):
            existing = yield from get_study(policy, convert.study_name(id))
            if hint := specs.update_hint(existing.spec, study.spec):
                error.message += f'; study = client.study("{id}") loads it, {hint}'
                error.args = (error.action, error.code, error.message, error.violations)
        raise
    warn_large_delta(answer.study.warnings)
    return answer.study


def update_study(
    policy: Policy,
    name: str,
    details: Mapping[str, Any],
    parameters: Iterable[s.Parameter] | None,
    units: Mapping[str, str] | None,
    fields: Mapping[str, Any],
) -> Operation[study_pb2.Study]:
    """Details are display_name, description and labels; None leaves one as it is."""
    details = {key: value for key, value in details.items() if value is not None}
    study = convert.fill(study_pb2.Study(name=name), **details)
    if parameters is not None or units is not None:
        current = yield from get_study(policy, name)
        study.spec.CopyFrom(current.spec)
    paths = specs.set_spec_fields(study.spec, fields)
    if parameters is not None:
        specs.merge_parameters(study.spec, parameters, new=False)
        paths.append("parameters")
    if units is not None:
        specs.set_units(study.spec, units)
        paths.append("metrics")
    mask = field_mask_pb2.FieldMask(paths=[*details, *(f"spec.{path}" for path in paths)])
    if not mask.paths:
        raise TypeError("update: needs at least one field to change")
    answer: study_service_pb2.UpdateStudyResponse = yield from call(
        policy,
        f"update {name}",
        "studies",
        "UpdateStudy",
        study_service_pb2.UpdateStudyRequest(study=study, update_mask=mask),
    )
    return answer.study


def extend_study(
    policy: Policy,
    name: str,
    id: str,
    parameters: Iterable[s.Parameter],
    prior_values: Mapping[str, Any],
    metrics: Iterable[s.Metric] | None,
    details: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> Operation[study_pb2.Study]:
    old = yield from get_study(policy, name)
    spec = study_pb2.StudySpec()
    spec.CopyFrom(old.spec)
    spec.ClearField("seed")  # it would draw the same first trials again
    specs.merge_parameters(spec, parameters, new=True)
    if metrics is not None:
        del spec.metrics[:]
        spec.metrics.extend(specs.metrics(metrics))
        del spec.constant_points[:]  # their values are of the old metrics
    if "prior_studies" not in fields:
        # Earlier priors lack the new parameters too, and have the same values for them.
        spec.prior_studies[:] = [name, *old.spec.prior_studies]
    if spec.HasField("private_mode"):
        spec.private_mode.prior_studies_are_public = False  # it was said of other studies
        if metrics is not None or "constant_points" in fields:
            spec.private_mode.constant_points_are_public = False  # it was said of other points
    kinds = convert.kinds(study_pb2.Study(spec=spec))
    convert.fill(spec, prior_values=convert.to_values(prior_values, kinds, "prior_values"))
    specs.set_spec_fields(spec, fields)
    return (yield from create_study(policy, id, spec, **details, validate_only=False))


def watched(policy: Policy, study: study_pb2.Study) -> Operation[study_pb2.Study]:
    """Reads the study, and waits while the server cannot be reached."""
    current = yield from get_study(policy, study.name)
    if current.uid != study.uid:
        raise errors.NotFound(
            f"watch {study.name}",
            grpc.StatusCode.NOT_FOUND,
            "the study was deleted; another one has its name now",
        )
    return current


WATCH_SECONDS = 60.0
"""How long a stream of changes lasts at most: a study may also end by the clock, in silence."""

REPLAY_SECONDS = 2.0
"""The same, of a completed study: the rest of its changes exists already."""


def watch_request(
    study: study_pb2.Study, revision: int
) -> tuple[study_service_pb2.WatchStudyRequest, float]:
    """Returns the request for the changes after a revision, and its time limit."""
    completed = study.state == study_pb2.STUDY_STATE_COMPLETED
    request = study_service_pb2.WatchStudyRequest(
        name=study.name, after_revision=revision, study_uid=study.uid
    )
    return request, REPLAY_SECONDS if completed else WATCH_SECONDS


def seen_all(study: study_pb2.Study, revision: int) -> bool:
    """Reports whether a study will not change any more after a revision."""
    return study.state == study_pb2.STUDY_STATE_COMPLETED and study.revision <= revision


def may_be_last(study: study_pb2.Study, change: study_service_pb2.WatchStudyResponse) -> bool:
    """Reports whether the study, read before, may be complete with a change."""
    going = (trial_pb2.TRIAL_STATE_QUEUED, trial_pb2.TRIAL_STATE_ACTIVE)
    return change.revision >= study.revision and not (
        change.HasField("trial") and change.trial.state in going
    )


WATCH_PAUSE = 0.2
"""After how long a broken stream begins again, in seconds."""


def watch_pause(study: str, failure: Failure) -> float:
    """Returns the pause after a stream broke, or raises its error if it failed for good."""
    if not failure.transient:
        raise errors.call_error(f"watch {study}", failure.code, failure.message, failure.violations)
    return failure.retry_delay or WATCH_PAUSE


def reaccount_study(
    policy: Policy,
    study: study_pb2.Study,
    privacy: p.Privacy,
    metric: str | None,
    validate_only: bool,
) -> Operation[r.Reaccounting]:
    if metric is None:
        own = [m.id for m in study.spec.metrics if m.computed.HasField("privacy")]
        if len(own) != 1:
            raise ValueError(
                f"metric: must be one of the privacy metrics of {study.name}, which has "
                f"{', '.join(own) or 'none'}"
            )
        metric = own[0]
    request = convert.fill(
        privacy_service_pb2.ReaccountStudyRequest(),
        name=study.name,
        metric=metric,
        privacy=specs.privacy_spec(privacy),
        validate_only=validate_only,
    )
    answer: privacy_service_pb2.ReaccountStudyResponse = yield from call(
        policy, f"re-account {study.name}", "privacy", "ReaccountStudy", request
    )
    return read.reaccounting(answer)


def get_study(policy: Policy, name: str) -> Operation[study_pb2.Study]:
    answer: study_service_pb2.GetStudyResponse = yield from call(
        policy,
        f"read {name}",
        "studies",
        "GetStudy",
        study_service_pb2.GetStudyRequest(name=name),
    )
    return answer.study


def delete_study(policy: Policy, name: str) -> Operation[None]:
    request = study_service_pb2.DeleteStudyRequest(name=name)
    yield from call(policy, f"delete {name}", "studies", "DeleteStudy", request)


def pause_study(policy: Policy, name: str) -> Operation[None]:
    request = study_service_pb2.PauseStudyRequest(name=name)
    yield from call(policy, f"pause {name}", "studies", "PauseStudy", request)


def resume_study(policy: Policy, name: str) -> Operation[None]:
    request = study_service_pb2.ResumeStudyRequest(name=name)
    yield from call(policy, f"resume {name}", "studies", "ResumeStudy", request)


def list_studies(policy: Policy, filter: str, order_by: str) -> Operation[list[r.StudyInfo]]:
    request = convert.fill(study_service_pb2.ListStudiesRequest(), filter=filter, order_by=order_by)
    answers = yield from pages(policy, "list the studies", "studies", "ListStudies", request)
    return [read.study_info(x) for answer in answers for x in answer.studies]


# --- trials -----------------------------------------------------------------------------


def ask(
    policy: Policy,
    study: str,
    worker_id: str,
    resume: bool,
    count: int,
    condition: study_service_pb2.SuggestionCondition | None,
    timeout: float | None,
) -> Operation[list[trial_pb2.Trial]]:
    """Asks for at least one and at most count trials, and waits for them."""
    if timeout is not None:
        timeout = convert.number("timeout", timeout)
    action = f"ask for a trial of {study}"
    begin = time.monotonic()
    warned = False
    while True:
        request = convert.fill(
            study_service_pb2.SuggestTrialsRequest(parent=study, resume=resume),
            count=count,
            worker_id=worker_id,
        )
        if condition is not None:
            request.conditions.extend([condition] * request.count)
        answer: study_service_pb2.SuggestTrialsResponse = yield from call(
            policy, action, "studies", "SuggestTrials", request
        )
        if answer.trials:
            return list(answer.trials)
        reason = convert.enum_name(study_service_pb2.EndReason, answer.end_reason)
        pause = answer.retry_after.ToTimedelta().total_seconds()
        if pause <= 0:
            if reason in _DONE or answer.study_state == study_pb2.STUDY_STATE_COMPLETED:
                raise errors.StudyDone(study, reason or "completed")
            pause = ASK_AGAIN
        if reason == "paused" and not warned:
            warned = True
            logger.warning("%s is paused: waiting for study.resume()", study)
        if timeout is not None:
            left = timeout - (time.monotonic() - begin)
            if left <= 0:
                raise TimeoutError(f"{action}: none within {timeout} s ({reason})")
            pause = min(pause, left)
        yield Pause(pause)


_DONE = frozenset(
    {"budget_spent", "stagnant", "space_exhausted", "privacy_budget_spent", "condition"}
)


def condition(
    study: study_pb2.Study, fixed: Mapping[str, Any] | None, at_most: Mapping[str, float] | None
) -> study_service_pb2.SuggestionCondition | None:
    """Returns the condition on a trial, if there is one."""
    if fixed is None and at_most is None:
        return None
    found = convert.fill(
        study_service_pb2.SuggestionCondition(),
        fixed_parameters=convert.to_values(
            {} if fixed is None else fixed, convert.kinds(study), "fixed"
        ),
        at_most=at_most,
    )
    return found if found.ByteSize() else None


def get_trial(policy: Policy, study: str, number: int) -> Operation[r.TrialInfo]:
    name = convert.trial_name(study, number)
    answer: study_service_pb2.GetTrialResponse = yield from call(
        policy, f"read {name}", "studies", "GetTrial", study_service_pb2.GetTrialRequest(name=name)
    )
    return read.trial_info(answer.trial)


def list_trials(
    policy: Policy, study: str, filter: str, order_by: str
) -> Operation[list[r.TrialInfo]]:
    request = convert.fill(
        study_service_pb2.ListTrialsRequest(parent=study, page_size=1000),
        filter=filter,
        order_by=order_by,
    )
    answers = yield from pages(
        policy, f"list the trials of {study}", "studies", "ListTrials", request
    )
    return [read.trial_info(x) for answer in answers for x in answer.trials]


def create_trial(
    policy: Policy,
    study: study_pb2.Study,
    params: Mapping[str, Any] | None,
    metrics: Mapping[str, convert.Values] | None,
    replicate_of: int | None,
    note: str,
    seeded: bool = False,
    user_attrs: Mapping[str, Any] | None = None,
    skip_if_exists: bool = False,
) -> Operation[r.TrialInfo]:
    values = convert.to_values({} if params is None else params, convert.kinds(study))
    if skip_if_exists:
        same = convert.from_values(values)
        for known in (yield from list_trials(policy, study.name, "", "")):
            if known.params == same:
                return known
    trial = convert.fill(
        trial_pb2.Trial(),
        parameters=values,
        note=note,
        attributes=convert.attributes({} if user_attrs is None else user_attrs),
    )
    if metrics is not None:
        trial.final_measurement.CopyFrom(convert.to_measurement(metrics, seeded=seeded))
    if replicate_of is not None:
        number = convert.integer("replicate_of", replicate_of)
        trial.replicate_of = f"{study.name}/trials/{number}"
    answer: study_service_pb2.CreateTrialResponse = yield from call(
        policy,
        f"create a trial of {study.name}",
        "studies",
        "CreateTrial",
        study_service_pb2.CreateTrialRequest(parent=study.name, trial=trial),
    )
    return read.trial_info(answer.trial)


def keep(
    policy: Policy,
    name: str,
    attributes: Mapping[str, Any] | None = None,
    artifact: trial_pb2.Artifact | None = None,
) -> Operation[trial_pb2.Trial]:
    """Keeps attributes and an artifact with a trial, beside those that it has."""
    trial = trial_pb2.Trial(
        name=name, attributes=convert.attributes({} if attributes is None else attributes)
    )
    mask = field_mask_pb2.FieldMask(paths=["attributes"])
    if artifact is not None:
        trial.artifacts.append(artifact)
        mask.paths[:] = ["artifacts"]
    answer: study_service_pb2.UpdateTrialResponse = yield from call(
        policy,
        f"update {name}",
        "studies",
        "UpdateTrial",
        study_service_pb2.UpdateTrialRequest(trial=trial, update_mask=mask),
    )
    return answer.trial


def best_trials(policy: Policy, study: study_pb2.Study) -> Operation[list[r.TrialInfo]]:
    front = yield from get_front(policy, study, "observed", final_only=True)
    trials = yield from list_trials(policy, study.name, "state = SUCCEEDED", "")
    by_number = {trial.number: trial for trial in trials}
    return [by_number[point.trial] for point in front if point.trial in by_number]


def stop_trial(policy: Policy, study: str, number: int, reason: str) -> Operation[None]:
    name = convert.trial_name(study, number)
    request = study_service_pb2.StopTrialRequest(name=name, reason=clip(reason))
    yield from call(policy, f"stop {name}", "studies", "StopTrial", request)


def delete_trial(policy: Policy, study: str, number: int) -> Operation[None]:
    name = convert.trial_name(study, number)
    request = study_service_pb2.DeleteTrialRequest(name=name)
    yield from call(policy, f"delete {name}", "studies", "DeleteTrial", request)


def held(name: str, operation: Operation[T]) -> Operation[T]:
    """Turns a refusal because of a trial's state, or its absence, into LeaseLost."""
    try:
        return (yield from operation)
    except (errors.FailedPrecondition, errors.NotFound) as error:
        raise errors.LeaseLost(name, error.message) from error


def add_measurement(
    policy: Policy, trial: trial_pb2.Trial, measurement: trial_pb2.Measurement
) -> Operation[study_service_pb2.AddMeasurementResponse]:
    request = study_service_pb2.AddMeasurementRequest(
        name=trial.name, lease_token=trial.lease.token, measurement=measurement
    )
    action = f"report on {trial.name}"
    answer: study_service_pb2.AddMeasurementResponse = yield from held(
        trial.name, call(policy, action, "studies", "AddMeasurement", request)
    )
    return answer


def renew(
    policy: Policy, study: str, trial: trial_pb2.Trial
) -> Operation[study_service_pb2.RenewLeasesResponse.Result]:
    request = study_service_pb2.RenewLeasesRequest(
        parent=study, lease_tokens={trial.name: trial.lease.token}
    )
    action = f"renew the lease of {trial.name}"
    answer: study_service_pb2.RenewLeasesResponse = yield from held(
        trial.name, call(policy, action, "studies", "RenewLeases", request)
    )
    return answer.results[trial.name]


def complete(
    policy: Policy, trial: trial_pb2.Trial, request: study_service_pb2.CompleteTrialRequest
) -> Operation[r.TrialInfo]:
    request.name, request.lease_token = trial.name, trial.lease.token
    action = f"complete {trial.name}"
    answer: study_service_pb2.CompleteTrialResponse = yield from held(
        trial.name, call(policy, action, "studies", "CompleteTrial", request)
    )
    for warning in answer.trial.warnings:
        if warning.code == "REPORT_DIFFERS":  # most of all, a worker's own ε
            logger.warning("%s: %s", trial.name, warning.message)
    return read.trial_info(answer.trial)


def release(policy: Policy, trial: trial_pb2.Trial, reason: str) -> Operation[None]:
    request = study_service_pb2.ReleaseTrialRequest(
        name=trial.name, lease_token=trial.lease.token, reason=clip(reason)
    )
    action = f"release {trial.name}"
    yield from held(trial.name, call(policy, action, "studies", "ReleaseTrial", request))


def clip(reason: str) -> str:
    """Makes a reason valid text of limited length."""
    if not isinstance(reason, str):
        raise TypeError(f"reason: {convert.shown(reason)} is not a text")
    return reason.encode("utf-8", "replace").decode()[:MAX_REASON]


# --- fronts -----------------------------------------------------------------------------


def get_front(
    policy: Policy, study: study_pb2.Study, kind: str, final_only: bool
) -> Operation[r.Front]:
    request = convert.fill(
        front_service_pb2.GetFrontRequest(),
        name=study.name,
        kind=convert.enum_value(front_service_pb2.FrontKind, kind, "kind"),
        final_only=final_only,
    )
    answer: front_service_pb2.GetFrontResponse = yield from call(
        policy, f"read the front of {study.name}", "fronts", "GetFront", request
    )
    return read.front(answer.front, study)


def hypervolumes(
    policy: Policy, study: str, kind: str, final_only: bool
) -> Operation[list[r.HypervolumePoint]]:
    request = convert.fill(
        front_service_pb2.ListHypervolumesRequest(),
        name=study,
        kind=convert.enum_value(front_service_pb2.FrontKind, kind, "kind"),
        final_only=final_only,
    )
    answer: front_service_pb2.ListHypervolumesResponse = yield from call(
        policy, f"read the hypervolumes of {study}", "fronts", "ListHypervolumes", request
    )
    return [read.hypervolume(x) for x in answer.points]


def recommend(
    policy: Policy,
    study: str,
    bounds: Mapping[str, float],
    confidence: float,
    optimize: str,
    measured_only: bool,
) -> Operation[r.Recommendation]:
    if not bounds:
        raise ValueError("recommend: a bound on an objective is required, such as epsilon=1.0")
    request = convert.fill(
        front_service_pb2.QueryFrontRequest(),
        name=study,
        bounds={key: convert.number(key, value) for key, value in bounds.items()},
        confidence=confidence,
        optimize=optimize,
        measured_only=measured_only,
    )
    answer: front_service_pb2.QueryFrontResponse = yield from call(
        policy, f"query the front of {study}", "fronts", "QueryFront", request
    )
    return read.recommendation(answer)


def predict(
    policy: Policy, study: study_pb2.Study, configurations: Sequence[Mapping[str, Any]]
) -> Operation[list[dict[str, r.Prediction]]]:
    kinds = convert.kinds(study)
    request = front_service_pb2.PredictMetricsRequest(
        name=study.name,
        configurations=[
            front_service_pb2.Configuration(
                parameters=convert.to_values(x, kinds, f"configurations[{i}]")
            )
            for i, x in enumerate(convert.several("configurations", configurations))
        ],
    )
    answer: front_service_pb2.PredictMetricsResponse = yield from call(
        policy, f"predict metrics of {study.name}", "fronts", "PredictMetrics", request
    )
    return [read.predictions(x.predictions) for x in answer.predictions]


# --- analyses ---------------------------------------------------------------------------


def cross_validate(policy: Policy, study: str) -> Operation[r.Validation]:
    request = analysis_service_pb2.CrossValidateRequest(name=study)
    answer: analysis_service_pb2.CrossValidateResponse = yield from call(
        policy, f"cross-validate the model of {study}", "analyses", "CrossValidate", request
    )
    return read.validation(answer)


def expected_gain(policy: Policy, study: str, runs: int) -> Operation[r.ExpectedGain]:
    request = convert.fill(analysis_service_pb2.ForecastGainRequest(name=study), runs=runs)
    if request.runs < 1:
        raise ValueError(f"runs: must be at least 1, is {runs}")
    answer: analysis_service_pb2.ForecastGainResponse = yield from call(
        policy, f"forecast the gain of runs of {study}", "analyses", "ForecastGain", request
    )
    return read.expected_gain(answer)


def importance(policy: Policy, study: str) -> Operation[r.Importance]:
    answer: analysis_service_pb2.AnalyzeImportanceResponse = yield from call(
        policy,
        f"compute the importance of the parameters of {study}",
        "analyses",
        "AnalyzeImportance",
        analysis_service_pb2.AnalyzeImportanceRequest(name=study),
    )
    return read.importance(answer)


def slices(
    policy: Policy, study: study_pb2.Study, params: Mapping[str, Any] | None, points: int
) -> Operation[r.Slices]:
    request = convert.fill(
        analysis_service_pb2.AnalyzeSlicesRequest(),
        name=study.name,
        parameters=convert.to_values({} if params is None else params, convert.kinds(study)),
        points=points,
    )
    answer: analysis_service_pb2.AnalyzeSlicesResponse = yield from call(
        policy, f"compute slices of {study.name}", "analyses", "AnalyzeSlices", request
    )
    return read.slices(answer, study)


def contour(
    policy: Policy,
    study: study_pb2.Study,
    x: str,
    y: str,
    metric: str,
    params: Mapping[str, Any] | None,
    points: int,
) -> Operation[r.Contour]:
    objectives = [m for m in study.spec.metrics if m.role == metric_pb2.METRIC_ROLE_OBJECTIVE]
    measured = [m.id for m in objectives if m.HasField("reported")]
    request = convert.fill(
        analysis_service_pb2.AnalyzeContourRequest(),
        name=study.name,
        metric=metric or (measured or [objectives[0].id])[0],
        x_parameter=convert.text("x", x),
        y_parameter=convert.text("y", y),
        parameters=convert.to_values({} if params is None else params, convert.kinds(study)),
        points=points,
    )
    answer: analysis_service_pb2.AnalyzeContourResponse = yield from call(
        policy, f"compute a contour of {study.name}", "analyses", "AnalyzeContour", request
    )
    return read.contour(answer, request, study)


# --- privacy ----------------------------------------------------------------------------


def compute_epsilon(
    policy: Policy,
    privacy: privacy_pb2.PrivacySpec,
    parameters: Mapping[str, parameter_pb2.Value],
    lengths: Iterable[int],
) -> Operation[privacy_service_pb2.ComputeEpsilonResponse]:
    request = convert.fill(
        privacy_service_pb2.ComputeEpsilonRequest(),
        privacy=privacy,
        parameters=parameters,
        lengths=lengths,
    )
    answer: privacy_service_pb2.ComputeEpsilonResponse = yield from call(
        policy, "compute ε", "privacy", "ComputeEpsilon", request
    )
    return answer


def epsilon(
    policy: Policy,
    privacy: p.Privacy | privacy_pb2.PrivacySpec,
    params: Mapping[str, Any],
    lengths: Iterable[int],
) -> Operation[list[r.Guarantee]]:
    answer = yield from compute_epsilon(
        policy, specs.privacy_spec(privacy), convert.to_values(params), lengths
    )
    warn_large_delta(w for x in answer.guarantees for w in x.warnings)
    return [read.guarantee(x) for x in answer.guarantees]


def tradeoff(
    policy: Policy,
    privacy: p.Privacy | privacy_pb2.PrivacySpec,
    params: Mapping[str, parameter_pb2.Value],
    fprs: Iterable[float],
) -> Operation[r.Tradeoff]:
    rates = enumerate(convert.several("fprs", fprs))
    request = privacy_service_pb2.ComputeTradeoffRequest(
        privacy=specs.privacy_spec(privacy),
        parameters=params,
        false_positive_rates=[convert.number(f"fprs[{i}]", x) for i, x in rates],
    )
    answer: privacy_service_pb2.ComputeTradeoffResponse = yield from call(
        policy, "compute a trade-off curve", "privacy", "ComputeTradeoff", request
    )
    warn_large_delta(answer.guarantee.warnings)
    return read.tradeoff(answer)


def study_tradeoff(
    policy: Policy,
    study: study_pb2.Study,
    point: r.FrontPoint | Mapping[str, Any],
    fprs: Iterable[float],
    metric: str,
) -> Operation[r.Tradeoff]:
    params = point.params if isinstance(point, r.FrontPoint) else point
    if isinstance(point, r.FrontPoint) and point.constant_point:
        raise ValueError(f"point: {point.constant_point!r} is a constant point, without any run")
    for x in study.spec.metrics:
        if metric in ("", x.id) and x.computed.HasField("privacy"):
            values = convert.to_values(params, convert.kinds(study))
            found = yield from tradeoff(policy, x.computed.privacy, values, fprs)
            return found
    which = f"metric {metric} of {study.name}" if metric else f"no metric of {study.name}"
    raise ValueError(f"{which} is {'not ' if metric else ''}ε of a mechanism")


def epsilon_curves(
    policy: Policy, study: study_pb2.Study, trials: Iterable[int] | None, metric: str
) -> Operation[list[r.EpsilonCurve]]:
    spec = _dp_sgd(study, metric)
    configurations: dict[int, Mapping[str, Any]] = {}
    if trials is None:
        front = yield from get_front(policy, study, "posterior", False)
        for x in sorted(front, key=lambda x: x.step):  # of several, the longest
            if not x.beyond_reference:
                configurations[x.trial] = x.params
    else:
        for number in convert.several("trials", trials):
            number = convert.integer("trials", number)
            info = yield from get_trial(policy, study.name, number)
            configurations[number] = info.params
    unit = "steps" if spec.dp_sgd.steps else "epochs"
    curves = []
    for number, params in sorted(configurations.items()):
        longest = yield from _run_length(policy, spec, unit, params)
        count = min(longest, CURVE_POINTS)
        while True:
            lengths = sorted(
                {longest - k * (longest - 1) // max(count - 1, 1) for k in range(count)}
            )
            try:
                found = yield from epsilon(policy, spec, params, lengths)
                break
            except errors.InvalidArgument as error:  # too much work for one call
                if count <= 2 or not any(v.field == "lengths" for v in error.violations):
                    raise
                count //= 2
        curves.append(r.EpsilonCurve(number, params, unit, tuple(lengths), tuple(found)))
    return curves


def _dp_sgd(study: study_pb2.Study, metric: str) -> privacy_pb2.PrivacySpec:
    """Returns the mechanism of a metric, or of the first that is ε of DP-SGD."""
    for x in study.spec.metrics:
        if metric in ("", x.id) and x.computed.privacy.HasField("dp_sgd"):
            return x.computed.privacy
    which = f"metric {metric} of {study.name}" if metric else f"no metric of {study.name}"
    raise ValueError(f"{which} is {'not ' if metric else ''}ε of DP-SGD, whose runs have a length")


def _run_length(
    policy: Policy, spec: privacy_pb2.PrivacySpec, unit: str, params: Mapping[str, Any]
) -> Operation[int]:
    """Returns the length of a run: a number, the value of a parameter, or the steps that the
    server derives.
    """
    expression: str = getattr(spec.dp_sgd, unit)
    name = expression.removeprefix("int(").removesuffix(")").strip()
    if name in params:
        return max(1, int(params[name]))
    if name.isdecimal():
        return max(1, int(name))
    if unit == "epochs" or spec.dp_sgd.sampling == privacy_pb2.SAMPLING_SHUFFLED:
        raise ValueError(f"the length of a run is {expression!r}, not a parameter or a number")
    whole = yield from epsilon(policy, spec, params, ())
    return whole[0].steps


def price_search(
    policy: Policy,
    privacy: p.Privacy,
    params: Mapping[str, Any],
    *,
    distribution: p.CountDistribution,
    final_run: p.Mechanism | None,
    test_noise: float | None,
    test_epsilon: float | None,
    numbers: Mapping[str, Any],
) -> Operation[r.SearchPrices]:
    for name, value in numbers.items():
        if name not in ("runs", "portfolios"):
            _positive(name, value)
    request = convert.fill(
        privacy_service_pb2.PriceSearchRequest(),
        privacy=specs.privacy_spec(privacy),
        parameters=convert.to_values(params),
        **numbers,
    )
    if distribution == "poisson":
        request.poisson.SetInParent()
    elif isinstance(distribution, str):
        if distribution not in ("geometric", "logarithmic"):
            raise ValueError(
                f"distribution: must be geometric, logarithmic, poisson or η, is {distribution!r}"
            )
        if distribution == "logarithmic":  # the geometric one is the server's default
            request.eta = 0.0
    else:
        request.eta = convert.number("distribution", distribution)
    if final_run is not None:
        request.final_run.CopyFrom(specs.mechanism(final_run))
    if test_noise is not None and test_epsilon is not None:
        raise ValueError("test_noise and test_epsilon: only one of them can be given")
    convert.fill(request, test_noise=test_noise, test_epsilon=test_epsilon)
    answer: privacy_service_pb2.PriceSearchResponse = yield from call(
        policy, "price a search", "privacy", "PriceSearch", request
    )
    warn_large_delta(w for x in answer.ways for w in (*x.training.warnings, *x.test.warnings))
    return read.search_prices(answer)


def calibrate(
    policy: Policy,
    privacy: p.Privacy,
    solve_for: str,
    minimum: float,
    maximum: float,
    target_epsilon: float,
    params: Mapping[str, Any],
) -> Operation[r.Calibration]:
    request = privacy_service_pb2.CalibrateMechanismRequest(
        privacy=specs.privacy_spec(privacy),
        parameters=convert.to_values(params),
        solve_for=convert.text("solve_for", solve_for),
        min=convert.number("min", minimum),
        max=convert.number("max", maximum),
        target_epsilon=convert.number("epsilon", target_epsilon),
    )
    answer: privacy_service_pb2.CalibrateMechanismResponse = yield from call(
        policy, f"calibrate {solve_for}", "privacy", "CalibrateMechanism", request
    )
    warn_large_delta(answer.guarantee.warnings)
    return read.calibration(answer)


def privacy_ledger(
    policy: Policy, study: str, delta: float, metric: str
) -> Operation[r.PrivacyLedger]:
    request = convert.fill(
        privacy_service_pb2.GetPrivacyLedgerRequest(name=study), delta=delta, metric=metric
    )
    answer: privacy_service_pb2.GetPrivacyLedgerResponse = yield from call(
        policy, f"read the privacy ledger of {study}", "privacy", "GetPrivacyLedger", request
    )
    warn_large_delta(answer.composed.warnings)
    return read.privacy_ledger(answer)


def server_info(policy: Policy) -> Operation[admin_service_pb2.GetServerInfoResponse]:
    answer: admin_service_pb2.GetServerInfoResponse = yield from call(
        policy,
        "read what the server is",
        "admin",
        "GetServerInfo",
        admin_service_pb2.GetServerInfoRequest(),
    )
    return answer


def server_version(policy: Policy) -> Operation[str]:
    return (yield from server_info(policy)).version


def page_url(policy: Policy) -> Operation[str | None]:
    return (yield from server_info(policy)).page_url or None


# --- publishing -------------------------------------------------------------------------


def create_ledger(
    policy: Policy,
    id: str,
    records: int,
    target_epsilon: float,
    delta: float,
    adjacency: p.Adjacency,
    description: str,
) -> Operation[r.LedgerInfo]:
    request = release_service_pb2.CreateLedgerRequest(
        ledger_id=convert.text("id", id),
        ledger=convert.fill(
            release_service_pb2.Ledger(),
            description=description,
            records=records,
            epsilon=target_epsilon,
            delta=delta,
            adjacency=convert.enum_value(privacy_pb2.Adjacency, adjacency, "adjacency"),
        ),
    )
    answer: release_service_pb2.CreateLedgerResponse = yield from call(
        policy, f"create ledger {id}", "releases", "CreateLedger", request
    )
    return read.ledger_info(answer.ledger)


def get_ledger(policy: Policy, name: str) -> Operation[r.LedgerInfo]:
    request = release_service_pb2.GetLedgerRequest(name=name)
    answer: release_service_pb2.GetLedgerResponse = yield from call(
        policy, f"read {name}", "releases", "GetLedger", request
    )
    return read.ledger_info(answer.ledger)


def list_ledgers(policy: Policy) -> Operation[list[r.LedgerInfo]]:
    request = release_service_pb2.ListLedgersRequest()
    answers = yield from pages(policy, "list the ledgers", "releases", "ListLedgers", request)
    return [read.ledger_info(x) for answer in answers for x in answer.ledgers]


def list_charges(policy: Policy, ledger: str) -> Operation[list[r.Charge]]:
    request = release_service_pb2.ListChargesRequest(parent=ledger)
    answers = yield from pages(
        policy, f"list the charges of {ledger}", "releases", "ListCharges", request
    )
    return [read.charge(x) for answer in answers for x in answer.charges]


def select_privately(
    policy: Policy,
    ledger: str,
    utilities: Sequence[float],
    sensitivity: float,
    target_epsilon: float,
    method: str,
    request_id: str,
) -> Operation[r.Release]:
    request = convert.fill(
        release_service_pb2.SelectPrivatelyRequest(),
        ledger=ledger,
        utilities=[convert.number("utilities", x) for x in convert.several("utilities", utilities)],
        sensitivity=sensitivity,
        epsilon=target_epsilon,
        method=convert.enum_value(privacy_pb2.SelectionMethod, method, "method"),
        request_id=request_id,
    )
    answer: release_service_pb2.SelectPrivatelyResponse = yield from call(
        policy, f"select privately on {ledger}", "releases", "SelectPrivately", request
    )
    return read.release(answer.release)


def _kusner(fields: Mapping[str, Any]) -> release_service_pb2.KusnerMethod:
    try:
        return convert.fill(
            release_service_pb2.KusnerMethod(), "kusner.", **convert.mapping("kusner", fields)
        )
    except KeyError as error:
        raise ValueError(f"kusner: there is no field {error}") from None


def _positive(name: str, value: Any) -> None:
    """Refuses zero, which would stand for an argument that was left out."""
    if value is not None and convert.number(name, value) == 0:
        raise ValueError(f"{name}: must be positive, is {value}")


def release_best(
    policy: Policy,
    study: str,
    metric: str,
    at_most: Mapping[str, float] | None,
    target_epsilon: float | None,
    kusner: Mapping[str, Any] | None,
    request_id: str,
) -> Operation[r.Release]:
    _positive("epsilon", target_epsilon)
    request = convert.fill(
        release_service_pb2.ReleaseBestRequest(),
        name=study,
        metric=metric,
        at_most=at_most,
        epsilon=target_epsilon,
        kusner=None if kusner is None else _kusner(kusner),
        request_id=request_id,
    )
    answer: release_service_pb2.ReleaseBestResponse = yield from call(
        policy, f"release the best of {study}", "releases", "ReleaseBest", request
    )
    return read.release(answer.release)


def release_front(
    policy: Policy,
    study: str,
    target_epsilon: float | None,
    delta: float | None,
    request_id: str,
) -> Operation[r.Release]:
    _positive("epsilon", target_epsilon)
    _positive("delta", delta)
    request = convert.fill(
        release_service_pb2.ReleaseFrontRequest(name=study),
        epsilon=target_epsilon,
        delta=delta,
        request_id=request_id,
    )
    answer: release_service_pb2.ReleaseFrontResponse = yield from call(
        policy, f"release the front of {study}", "releases", "ReleaseFront", request
    )
    return read.release(answer.release)


def get_release(policy: Policy, name: str) -> Operation[r.Release]:
    request = release_service_pb2.GetReleaseRequest(name=convert.text("name", name))
    answer: release_service_pb2.GetReleaseResponse = yield from call(
        policy, f"read {name}", "releases", "GetRelease", request
    )
    return read.release(answer.release)


def list_releases(policy: Policy, parent: str) -> Operation[list[r.Release]]:
    request = release_service_pb2.ListReleasesRequest(parent=parent)
    answers = yield from pages(
        policy, f"list the releases of {parent}", "releases", "ListReleases", request
    )
    return [read.release(x) for answer in answers for x in answer.releases]
