"""Operations on studies, and on the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import grpc
from google.protobuf import field_mask_pb2

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import errors
from dpfront import privacy as p
from dpfront import spec as s
from dpfront._connection import Failure
from dpfront._operations.calls import Call, Operation, pages, warn_large_delta
from dpfront._results.guarantees import Reaccounting
from dpfront._results.trials import StudyInfo
from dpfront.v1 import (
    admin_service_pb2,
    privacy_service_pb2,
    study_pb2,
    study_service_pb2,
    trial_pb2,
)


def create_study(
    id: str,
    spec: s.StudySpec | study_pb2.StudySpec,
    display_name: str,
    description: str,
    labels: Mapping[str, str] | None,
    validate_only: bool = False,
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
        answer: study_service_pb2.CreateStudyResponse = yield Call(
            f"create study {id}", "studies", "CreateStudy", request
        )
    except errors.AlreadyExists as error:
        with suppress(errors.CallError):
            existing = yield from get_study(convert.study_name(id))
            if hint := specs.update_hint(existing.spec, study.spec):
                error.message += f'; study = client.study("{id}") loads it, {hint}'
                error.args = (error.action, error.code, error.message, error.violations)
        raise
    warn_large_delta(answer.study.warnings)
    return answer.study


def update_study(
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
        current = yield from get_study(name)
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
    answer: study_service_pb2.UpdateStudyResponse = yield Call(
        f"update {name}",
        "studies",
        "UpdateStudy",
        study_service_pb2.UpdateStudyRequest(study=study, update_mask=mask),
    )
    return answer.study


def extend_study(
    name: str,
    id: str,
    parameters: Iterable[s.Parameter],
    prior_values: Mapping[str, Any],
    metrics: Iterable[s.Metric] | None,
    details: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> Operation[study_pb2.Study]:
    old = yield from get_study(name)
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
    return (yield from create_study(id, spec, **details))


def watched(study: study_pb2.Study) -> Operation[study_pb2.Study]:
    """Reads the study, and waits while the server cannot be reached."""
    current = yield from get_study(study.name)
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
    study: study_pb2.Study, privacy: p.Privacy, metric: str | None, validate_only: bool
) -> Operation[Reaccounting]:
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
    answer: privacy_service_pb2.ReaccountStudyResponse = yield Call(
        f"re-account {study.name}", "privacy", "ReaccountStudy", request
    )
    return read.reaccounting(answer)


def get_study(name: str) -> Operation[study_pb2.Study]:
    answer: study_service_pb2.GetStudyResponse = yield Call(
        f"read {name}", "studies", "GetStudy", study_service_pb2.GetStudyRequest(name=name)
    )
    return answer.study


def delete_study(name: str) -> Operation[None]:
    request = study_service_pb2.DeleteStudyRequest(name=name)
    yield Call(f"delete {name}", "studies", "DeleteStudy", request)


def pause_study(name: str) -> Operation[None]:
    request = study_service_pb2.PauseStudyRequest(name=name)
    yield Call(f"pause {name}", "studies", "PauseStudy", request)


def resume_study(name: str) -> Operation[None]:
    request = study_service_pb2.ResumeStudyRequest(name=name)
    yield Call(f"resume {name}", "studies", "ResumeStudy", request)


def list_studies(filter: str, order_by: str) -> Operation[list[StudyInfo]]:
    request = convert.fill(study_service_pb2.ListStudiesRequest(), filter=filter, order_by=order_by)
    answers = yield from pages("list the studies", "studies", "ListStudies", request)
    return [read.study_info(x) for answer in answers for x in answer.studies]


def server_info() -> Operation[admin_service_pb2.GetServerInfoResponse]:
    answer: admin_service_pb2.GetServerInfoResponse = yield Call(
        "read what the server is",
        "admin",
        "GetServerInfo",
        admin_service_pb2.GetServerInfoRequest(),
    )
    return answer


def server_version() -> Operation[str]:
    return (yield from server_info()).version


def page_url() -> Operation[str | None]:
    return (yield from server_info()).page_url or None
