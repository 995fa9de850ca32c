"""Operations that read the answers of a study: fronts and analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront._operations.calls import Call, Operation
from dpfront._operations.trials import list_trials
from dpfront._results.analyses import Contour, ExpectedGain, Importance, Slices, Validation
from dpfront._results.fronts import Front, HypervolumePoint, Recommendation
from dpfront._results.trials import Prediction, TrialInfo
from dpfront.v1 import analysis_service_pb2, front_service_pb2, metric_pb2, study_pb2


def get_front(study: study_pb2.Study, kind: str, final_only: bool) -> Operation[Front]:
    request = convert.fill(
        front_service_pb2.GetFrontRequest(),
        name=study.name,
        kind=convert.enum_value(front_service_pb2.FrontKind, kind, "kind"),
        final_only=final_only,
    )
    answer: front_service_pb2.GetFrontResponse = yield Call(
        f"read the front of {study.name}", "fronts", "GetFront", request
    )
    return read.front(answer.front, study)


def hypervolumes(study: str, kind: str, final_only: bool) -> Operation[list[HypervolumePoint]]:
    request = convert.fill(
        front_service_pb2.ListHypervolumesRequest(),
        name=study,
        kind=convert.enum_value(front_service_pb2.FrontKind, kind, "kind"),
        final_only=final_only,
    )
    answer: front_service_pb2.ListHypervolumesResponse = yield Call(
        f"read the hypervolumes of {study}", "fronts", "ListHypervolumes", request
    )
    return [read.hypervolume(x) for x in answer.points]


def recommend(
    study: str, bounds: Mapping[str, float], confidence: float, optimize: str, measured_only: bool
) -> Operation[Recommendation]:
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
    answer: front_service_pb2.QueryFrontResponse = yield Call(
        f"query the front of {study}", "fronts", "QueryFront", request
    )
    return read.recommendation(answer)


def predict(
    study: study_pb2.Study, configurations: Sequence[Mapping[str, Any]]
) -> Operation[list[dict[str, Prediction]]]:
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
    answer: front_service_pb2.PredictMetricsResponse = yield Call(
        f"predict metrics of {study.name}", "fronts", "PredictMetrics", request
    )
    return [read.predictions(x.predictions) for x in answer.predictions]


def best_trials(study: study_pb2.Study) -> Operation[list[TrialInfo]]:
    front = yield from get_front(study, "observed", final_only=True)
    trials = yield from list_trials(study.name, "state = SUCCEEDED", "")
    by_number = {trial.number: trial for trial in trials}
    return [by_number[point.trial] for point in front if point.trial in by_number]


def cross_validate(study: str) -> Operation[Validation]:
    request = analysis_service_pb2.CrossValidateRequest(name=study)
    answer: analysis_service_pb2.CrossValidateResponse = yield Call(
        f"cross-validate the model of {study}", "analyses", "CrossValidate", request
    )
    return read.validation(answer)


def expected_gain(study: str, runs: int) -> Operation[ExpectedGain]:
    request = convert.fill(analysis_service_pb2.ForecastGainRequest(name=study), runs=runs)
    if request.runs < 1:
        raise ValueError(f"runs: must be at least 1, is {runs}")
    answer: analysis_service_pb2.ForecastGainResponse = yield Call(
        f"forecast the gain of runs of {study}", "analyses", "ForecastGain", request
    )
    return read.expected_gain(answer)


def importance(study: str) -> Operation[Importance]:
    answer: analysis_service_pb2.AnalyzeImportanceResponse = yield Call(
        f"compute the importance of the parameters of {study}",
        "analyses",
        "AnalyzeImportance",
        analysis_service_pb2.AnalyzeImportanceRequest(name=study),
    )
    return read.importance(answer)


def slices(
    study: study_pb2.Study, params: Mapping[str, Any] | None, points: int
) -> Operation[Slices]:
    request = convert.fill(
        analysis_service_pb2.AnalyzeSlicesRequest(),
        name=study.name,
        parameters=convert.to_values({} if params is None else params, convert.kinds(study)),
        points=points,
    )
    answer: analysis_service_pb2.AnalyzeSlicesResponse = yield Call(
        f"compute slices of {study.name}", "analyses", "AnalyzeSlices", request
    )
    return read.slices(answer, study)


def contour(
    study: study_pb2.Study,
    x: str,
    y: str,
    metric: str,
    params: Mapping[str, Any] | None,
    points: int,
) -> Operation[Contour]:
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
    answer: analysis_service_pb2.AnalyzeContourResponse = yield Call(
        f"compute a contour of {study.name}", "analyses", "AnalyzeContour", request
    )
    return read.contour(answer, request, study)
