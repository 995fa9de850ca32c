"""Operations on trials: asking, reporting, ending and listing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from google.protobuf import field_mask_pb2

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import errors
from dpfront._operations.calls import ASK_AGAIN, Call, Operation, Pause, clip, held, logger, pages
from dpfront._results.trials import TrialInfo
from dpfront.v1 import study_pb2, study_service_pb2, trial_pb2


def ask(
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
        answer: study_service_pb2.SuggestTrialsResponse = yield Call(
            action, "studies", "SuggestTrials", request
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


def get_trial(study: str, number: int) -> Operation[TrialInfo]:
    name = convert.trial_name(study, number)
    answer: study_service_pb2.GetTrialResponse = yield Call(
        f"read {name}", "studies", "GetTrial", study_service_pb2.GetTrialRequest(name=name)
    )
    return read.trial_info(answer.trial)


def list_trials(study: str, filter: str, order_by: str) -> Operation[list[TrialInfo]]:
    request = convert.fill(
        study_service_pb2.ListTrialsRequest(parent=study, page_size=1000),
        filter=filter,
        order_by=order_by,
    )
    answers = yield from pages(f"list the trials of {study}", "studies", "ListTrials", request)
    return [read.trial_info(x) for answer in answers for x in answer.trials]


def create_trial(
    study: study_pb2.Study,
    params: Mapping[str, Any] | None,
    metrics: Mapping[str, convert.Values] | None,
    replicate_of: int | None,
    note: str,
    seeded: bool = False,
    user_attrs: Mapping[str, Any] | None = None,
    skip_if_exists: bool = False,
) -> Operation[TrialInfo]:
    values = convert.to_values({} if params is None else params, convert.kinds(study))
    if skip_if_exists:
        same = convert.from_values(values)
        for known in (yield from list_trials(study.name, "", "")):
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
    answer: study_service_pb2.CreateTrialResponse = yield Call(
        f"create a trial of {study.name}",
        "studies",
        "CreateTrial",
        study_service_pb2.CreateTrialRequest(parent=study.name, trial=trial),
    )
    return read.trial_info(answer.trial)


def keep(
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
    answer: study_service_pb2.UpdateTrialResponse = yield Call(
        f"update {name}",
        "studies",
        "UpdateTrial",
        study_service_pb2.UpdateTrialRequest(trial=trial, update_mask=mask),
    )
    return answer.trial


def stop_trial(study: str, number: int, reason: str) -> Operation[None]:
    name = convert.trial_name(study, number)
    request = study_service_pb2.StopTrialRequest(name=name, reason=clip(reason))
    yield Call(f"stop {name}", "studies", "StopTrial", request)


def delete_trial(study: str, number: int) -> Operation[None]:
    name = convert.trial_name(study, number)
    request = study_service_pb2.DeleteTrialRequest(name=name)
    yield Call(f"delete {name}", "studies", "DeleteTrial", request)


def add_measurement(
    trial: trial_pb2.Trial, measurement: trial_pb2.Measurement
) -> Operation[study_service_pb2.AddMeasurementResponse]:
    request = study_service_pb2.AddMeasurementRequest(
        name=trial.name, lease_token=trial.lease.token, measurement=measurement
    )
    action = f"report on {trial.name}"
    answer: study_service_pb2.AddMeasurementResponse = yield from held(
        trial.name, Call(action, "studies", "AddMeasurement", request)
    )
    return answer


def renew(trial: trial_pb2.Trial) -> Operation[study_service_pb2.RenewLeasesResponse.Result]:
    request = study_service_pb2.RenewLeasesRequest(
        parent=trial.name.partition("/trials/")[0], lease_tokens={trial.name: trial.lease.token}
    )
    action = f"renew the lease of {trial.name}"
    answer: study_service_pb2.RenewLeasesResponse = yield from held(
        trial.name, Call(action, "studies", "RenewLeases", request)
    )
    return answer.results[trial.name]


def complete(
    trial: trial_pb2.Trial, request: study_service_pb2.CompleteTrialRequest
) -> Operation[TrialInfo]:
    request.name, request.lease_token = trial.name, trial.lease.token
    action = f"complete {trial.name}"
    answer: study_service_pb2.CompleteTrialResponse = yield from held(
        trial.name, Call(action, "studies", "CompleteTrial", request)
    )
    for warning in answer.trial.warnings:
        if warning.code == "REPORT_DIFFERS":  # most of all, a worker's own ε
            logger.warning("%s: %s", trial.name, warning.message)
    return read.trial_info(answer.trial)


def release(trial: trial_pb2.Trial, reason: str) -> Operation[None]:
    request = study_service_pb2.ReleaseTrialRequest(
        name=trial.name, lease_token=trial.lease.token, reason=clip(reason)
    )
    action = f"release {trial.name}"
    yield from held(trial.name, Call(action, "studies", "ReleaseTrial", request))
