"""Makes the results that users see of the messages that servers answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from google.protobuf.message import Message

from dpfront import _card as card
from dpfront import _convert as convert
from dpfront import _describe as describe
from dpfront._results import analyses, fronts, guarantees, releases, trials
from dpfront.v1 import (
    analysis_service_pb2,
    front_service_pb2,
    metric_pb2,
    privacy_pb2,
    privacy_service_pb2,
    release_service_pb2,
    study_pb2,
    study_service_pb2,
    trial_pb2,
)


def user_attrs(message: trial_pb2.Trial) -> dict[str, Any]:
    """Returns the attributes of a trial."""
    return {key: convert.from_json(message.attributes[key]) for key in sorted(message.attributes)}


def artifacts(message: trial_pb2.Trial) -> tuple[trials.Artifact, ...]:
    """Returns the artifacts of a trial."""
    return tuple(trials.Artifact(x.id, x.uri, x.sha256) for x in message.artifacts)


def _time(message: Message, name: str) -> datetime | None:
    """Returns a time, None if it is absent."""
    if not message.HasField(name):
        return None
    time: datetime = getattr(message, name).ToDatetime(tzinfo=timezone.utc)
    return time


def _warnings(messages: Iterable[Any]) -> tuple[guarantees.ResultWarning, ...]:
    return tuple(guarantees.ResultWarning(w.code, w.message) for w in messages)


def _assumptions(
    messages: Iterable[privacy_pb2.Assumption],
) -> tuple[guarantees.Assumption, ...]:
    return tuple(
        guarantees.Assumption(
            text=a.text,
            premise=convert.enum_name(privacy_pb2.Premise, a.premise),
            checked_by=convert.enum_name(privacy_pb2.Checker, a.checked_by),
        )
        for a in messages
    )


def guarantee(
    message: privacy_pb2.PrivacyGuarantee, covers: str = card.ONE_RUN
) -> guarantees.Guarantee:
    """Returns a guarantee."""
    return guarantees.Guarantee(
        epsilon=message.epsilon,
        epsilon_lower=convert.optional(message, "epsilon_lower"),
        delta=message.delta,
        adjacency=convert.enum_name(privacy_pb2.Adjacency, message.adjacency),
        accountant=convert.enum_name(privacy_pb2.Accountant, message.accountant),
        steps=message.steps,
        assumptions=_assumptions(message.assumptions),
        warnings=_warnings(message.warnings),
        covers=covers,
        raw=message,
    )


def tradeoff(message: privacy_service_pb2.ComputeTradeoffResponse) -> guarantees.Tradeoff:
    """Returns a trade-off curve."""
    return guarantees.Tradeoff(
        fprs=tuple(x.false_positive_rate for x in message.points),
        tprs=tuple(x.true_positive_rate for x in message.points),
        guarantee=guarantee(message.guarantee),
        exact_profile=message.exact_profile,
        advantage=message.advantage,
        mu=message.mu,
        mu_regret=message.mu_regret,
    )


def search_prices(message: privacy_service_pb2.PriceSearchResponse) -> guarantees.SearchPrices:
    """Returns the prices of the ways to search."""
    return guarantees.SearchPrices(
        tuple(
            guarantees.SearchPrice(
                way=x.way,
                released=x.released,
                adaptive=x.adaptive,
                training=guarantee(
                    x.training, f"the search, for the training records: {x.released}"
                ),
                test=guarantee(x.test, f"the search, for the test records: {x.released}")
                if x.HasField("test")
                else None,
                test_noise=convert.optional(x, "test_noise"),
                mean_runs=x.mean_runs,
                max_runs=convert.optional(x, "max_runs"),
                runs_for_budget=convert.optional(x, "runs_for_budget"),
            )
            for x in message.ways
        )
    )


def calibration(message: privacy_service_pb2.CalibrateMechanismResponse) -> guarantees.Calibration:
    """Returns a calibration."""
    return guarantees.Calibration(
        value=convert.from_value(message.value),
        reachable=message.reachable,
        guarantee=guarantee(message.guarantee),
        derived=dict(message.derived),
    )


def _metrics(values: Mapping[str, metric_pb2.MetricValue]) -> dict[str, float]:
    return {key: values[key].value for key in sorted(values) if values[key].HasField("value")}


def _guarantees(values: Mapping[str, metric_pb2.MetricValue]) -> dict[str, guarantees.Guarantee]:
    return {
        k: guarantee(values[k].privacy) for k in sorted(values) if values[k].HasField("privacy")
    }


def _measurements(messages: Iterable[trial_pb2.Measurement]) -> tuple[trials.Measurement, ...]:
    return tuple(map(_measurement, messages))


def _measurement(message: trial_pb2.Measurement) -> trials.Measurement:
    values = [(key, message.metrics[key]) for key in sorted(message.metrics)]
    return trials.Measurement(
        step=message.step,
        metrics=_metrics(message.metrics),
        runs={key: tuple(v.runs) for key, v in values if v.runs},
        standard_errors={k: v.standard_error for k, v in values if v.HasField("standard_error")},
        reported={key: v.reported for key, v in values if v.HasField("reported")},
        elapsed=message.elapsed.ToTimedelta() if message.HasField("elapsed") else None,
    )


def trial_info(message: trial_pb2.Trial) -> trials.TrialInfo:
    """Returns a trial."""
    values = {**message.computed_metrics, **message.final_measurement.metrics}
    return trials.TrialInfo(
        number=message.number,
        state=convert.enum_name(trial_pb2.TrialState, message.state),
        state_reason=message.state_reason,
        origin=convert.enum_name(trial_pb2.TrialOrigin, message.origin),
        params=convert.from_values(message.parameters),
        metrics=_metrics(values),
        guarantees=_guarantees(values),
        measurements=_measurements(message.measurements),
        final_measurement=(
            _measurement(message.final_measurement)
            if message.HasField("final_measurement")
            else None
        ),
        worker_id=message.worker_id,
        attempt=message.attempt,
        past_attempts=tuple(
            trials.PastAttempt(
                number=a.number,
                worker_id=a.worker_id,
                outcome=convert.enum_name(trial_pb2.AttemptOutcome, a.outcome),
                reason=a.reason,
                start_time=a.start_time.ToDatetime(tzinfo=timezone.utc),
                end_time=a.end_time.ToDatetime(tzinfo=timezone.utc),
                measurements=_measurements(a.measurements),
            )
            for a in message.past_attempts
        ),
        note=message.note,
        labels=dict(message.labels),
        user_attrs=user_attrs(message),
        artifacts=artifacts(message),
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        start_time=_time(message, "start_time"),
        end_time=_time(message, "end_time"),
        provenance=_provenance(message.provenance),
        predictions=predictions(message.provenance.predictions),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def _provenance(message: trial_pb2.Provenance) -> str:
    if not message.algorithm:
        return ""
    text = f"{message.algorithm} at revision {message.study_revision}"
    if message.conditioned:
        text += ", under a condition"
    return f"{text}; {message.fallback_reason}" if message.fallback_reason else text


def study_change(message: study_service_pb2.WatchStudyResponse) -> trials.StudyChange:
    """Returns a change of a study."""
    revision, time = message.revision, message.time.ToDatetime(tzinfo=timezone.utc)
    kind = message.WhichOneof("change")
    if kind == "trial":
        return trials.TrialChanged(revision, time, trial_info(message.trial))
    if kind == "deleted_trial":
        return trials.TrialDeleted(revision, time, convert.trial_number(message.deleted_trial))
    if kind == "study":
        return trials.StudyChanged(revision, time, study_info(message.study))
    return trials.StudyChange(revision, time)  # from a server newer than the client


def reaccounting(message: privacy_service_pb2.ReaccountStudyResponse) -> guarantees.Reaccounting:
    """Returns what a re-accounting changed."""

    def summary(x: privacy_service_pb2.AccountingSummary) -> guarantees.AccountingSummary:
        return guarantees.AccountingSummary(
            delta=x.privacy.delta,
            adjacency=convert.enum_name(privacy_pb2.Adjacency, x.privacy.adjacency),
            smallest_epsilon=convert.optional(x, "smallest_epsilon"),
            median_epsilon=convert.optional(x, "median_epsilon"),
            largest_epsilon=convert.optional(x, "largest_epsilon"),
            not_computable=x.not_computable,
            accountants={key: x.accountants[key] for key in sorted(x.accountants)},
        )

    return guarantees.Reaccounting(
        trials=message.trials,
        before=summary(message.before),
        after=summary(message.after),
        differing_reports=message.differing_reports,
        revision=message.revision,
    )


def study_info(message: study_pb2.Study) -> trials.StudyInfo:
    """Returns a study."""
    counts = message.trial_counts
    objective, tracked = metric_pb2.METRIC_ROLE_OBJECTIVE, metric_pb2.METRIC_ROLE_TRACKED
    metrics = message.spec.metrics
    reported = [m for m in metrics if m.HasField("reported")]
    return trials.StudyInfo(
        id=convert.study_id(message.name),
        display_name=message.display_name,
        description=message.description,
        labels=dict(message.labels),
        state=convert.enum_name(study_pb2.StudyState, message.state),
        state_reason=message.state_reason,
        trial_counts={f.name: getattr(counts, f.name) for f in counts.DESCRIPTOR.fields},
        seed=message.seed,
        revision=message.revision,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        parameters=tuple(x.id for x in message.spec.parameters),
        objectives=tuple(m.id for m in metrics if m.role == objective),
        reported=tuple(m.id for m in sorted(reported, key=lambda m: m.role == tracked)),
        max_trials=message.spec.budget.max_trials,
        checkpoint_parameter=message.spec.checkpoint_parameter,
        features=describe.features(message.spec),
        publication=(publication(message.publication) if message.HasField("publication") else None),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def front(message: front_service_pb2.Front, study: study_pb2.Study) -> fronts.Front:
    """Returns a front of a study."""
    kind_name = front_service_pb2.FrontKind
    metrics = [m for m in study.spec.metrics if m.id in message.objectives]
    goals = {m.id: m.goal for m in metrics}
    return fronts.Front(
        kind=convert.enum_name(kind_name, message.kind),
        points=tuple(_point(x, message.objectives) for x in message.points),
        hypervolume=message.hypervolume,
        hypervolumes={
            convert.enum_name(kind_name, h.kind): h.hypervolume for h in message.hypervolumes
        },
        reference=dict(message.reference),
        objectives=tuple(message.objectives),
        minimize={key: goals.get(key) != metric_pb2.GOAL_MAXIMIZE for key in message.objectives},
        transforms={m.id: convert.enum_name(metric_pb2.Transform, m.transform) for m in metrics},
        epsilons=describe.epsilons(metrics),
        revision=message.revision,
        warnings=_warnings(message.warnings),
        raw=message,
    )


def _point(message: front_service_pb2.FrontPoint, objectives: Iterable[str]) -> fronts.FrontPoint:
    def value(v: front_service_pb2.FrontValue) -> fronts.FrontValue:
        names = ("lower", "upper", "observed", "standard_error", "best", "worst")
        return fronts.FrontValue(v.value, **{n: convert.optional(v, n) for n in names})

    return fronts.FrontPoint(
        trial=convert.trial_number(message.trial) if message.trial else 0,
        step=message.step,
        params=convert.from_values(message.parameters),
        values={key: value(message.values[key]) for key in objectives if key in message.values},
        runs=message.runs,
        trials=tuple(convert.trial_number(t) for t in message.trials),
        contribution=message.contribution,
        knee=message.knee,
        beyond_reference=message.beyond_reference,
        guarantee=guarantee(message.privacy) if message.HasField("privacy") else None,
        constant_point=message.constant_point,
    )


def hypervolume(message: front_service_pb2.HypervolumePoint) -> fronts.HypervolumePoint:
    """Returns the hypervolume after a trial."""
    return fronts.HypervolumePoint(
        convert.trial_number(message.trial),
        message.completed_trials,
        message.hypervolume,
        message.runs,
        message.steps,
    )


def _prediction(message: trial_pb2.MetricPrediction) -> trials.Prediction:
    return trials.Prediction(message.median, message.lower, message.upper)


def predictions(
    messages: Mapping[str, trial_pb2.MetricPrediction],
) -> dict[str, trials.Prediction]:
    """Returns predictions by metric id."""
    return {key: _prediction(m) for key, m in sorted(messages.items())}


def recommendation(message: front_service_pb2.QueryFrontResponse) -> fronts.Recommendation:
    """Returns a recommendation."""
    return fronts.Recommendation(
        reachable=message.reachable,
        params=convert.from_values(message.parameters),
        predictions=predictions(message.predictions),
        computed=_metrics(message.computed_metrics),
        guarantees=_guarantees(message.computed_metrics),
        reached=dict(message.reached),
        optimize=message.optimize,
        trials=tuple(convert.trial_number(t) for t in message.trials),
        runs=message.runs,
        step=message.step,
        guarantee=guarantee(message.privacy) if message.HasField("privacy") else None,
        warnings=_warnings(message.warnings),
        constant_point=message.constant_point,
    )


def privacy_ledger(
    message: privacy_service_pb2.GetPrivacyLedgerResponse,
) -> guarantees.PrivacyLedger:
    """Returns a ledger."""
    fixed = message.HasField("fixed_in_advance")
    return guarantees.PrivacyLedger(
        runs=message.runs,
        largest_epsilon=message.largest_epsilon,
        composed=guarantee(message.composed, "all runs of the study together"),
        adaptive=message.adaptive,
        fixed_in_advance=(
            guarantee(message.fixed_in_advance, "the same runs, had they been fixed beforehand")
            if fixed
            else None
        ),
        warnings=_warnings(message.warnings),
        raw=message,
    )


# --- analyses ---------------------------------------------------------------------------


def _estimate(message: analysis_service_pb2.IntervalEstimate) -> analyses.Estimate:
    return analyses.Estimate(message.value, message.lower, message.upper)


def importance(message: analysis_service_pb2.AnalyzeImportanceResponse) -> analyses.Importance:
    """Returns the importance of parameters."""
    return analyses.Importance(
        parameters=tuple(
            analyses.ParameterImportance(
                o.metric, p.parameter, _estimate(p.first_order), _estimate(p.total)
            )
            for o in message.objectives
            for p in o.parameters
        ),
        variances={o.metric: _estimate(o.variance) for o in message.objectives},
        transforms={
            o.metric: convert.enum_name(metric_pb2.Transform, o.transform)
            for o in message.objectives
        },
        warnings=_warnings(message.warnings),
        raw=message,
    )


def slices(
    message: analysis_service_pb2.AnalyzeSlicesResponse, study: study_pb2.Study
) -> analyses.Slices:
    """Returns slices."""
    return analyses.Slices(
        params=convert.from_values(message.parameters),
        slices=tuple(
            analyses.Slice(
                s.metric,
                s.parameter,
                tuple(convert.from_value(p.value) for p in s.points),
                tuple(_prediction(p.prediction) for p in s.points),
            )
            for s in message.slices
        ),
        epsilons=describe.epsilons(study.spec.metrics),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def contour(
    message: analysis_service_pb2.AnalyzeContourResponse,
    request: analysis_service_pb2.AnalyzeContourRequest,
    study: study_pb2.Study,
) -> analyses.Contour:
    """Returns the answer to a request for a contour."""
    width = len(message.x_values)
    rows = [message.predictions[k * width : (k + 1) * width] for k in range(len(message.y_values))]
    return analyses.Contour(
        metric=request.metric,
        x=request.x_parameter,
        y=request.y_parameter,
        params=convert.from_values(message.parameters),
        x_values=tuple(convert.from_value(v) for v in message.x_values),
        y_values=tuple(convert.from_value(v) for v in message.y_values),
        predictions=tuple(tuple(_prediction(p) for p in row) for row in rows),
        epsilons=describe.epsilons(study.spec.metrics),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def validation(message: analysis_service_pb2.CrossValidateResponse) -> analyses.Validation:
    """Returns how well a model predicts."""
    return analyses.Validation(
        objectives=tuple(
            analyses.ObjectiveValidation(
                metric=o.metric,
                points=tuple(
                    analyses.ValidationPoint(
                        trial=convert.trial_number(p.trial),
                        step=p.step,
                        observed=p.observed,
                        predicted=_prediction(p.predicted),
                    )
                    for p in o.points
                ),
                coverage=convert.optional(o, "coverage"),
                r_squared=convert.optional(o, "r_squared"),
            )
            for o in message.objectives
        ),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def expected_gain(message: analysis_service_pb2.ForecastGainResponse) -> analyses.ExpectedGain:
    """Returns what the next runs are expected to gain."""
    return analyses.ExpectedGain(
        hypervolume=message.hypervolume,
        points=tuple(
            analyses.GainPoint(
                runs=p.runs,
                gain=p.gain.value,
                lower=p.gain.lower,
                upper=p.gain.upper,
                probability=p.probability,
                cost=convert.optional(p, "cost"),
            )
            for p in message.points
        ),
        cost_unit=message.cost_unit,
        warnings=_warnings(message.warnings),
        raw=message,
    )


# --- publishing -------------------------------------------------------------------------


def _guarantee(message: Message, name: str, covers: str) -> guarantees.Guarantee | None:
    return guarantee(getattr(message, name), covers) if message.HasField(name) else None


def publication(message: study_pb2.Publication) -> releases.Publication:
    """Returns what publishing guarantees."""
    published, spent = "all that the study publishes", "what the study published so far"
    return releases.Publication(
        train=guarantee(message.train, published),
        test=_guarantee(message, "test", published),
        final_run=_guarantee(message, "final_run", "the final run"),
        assumptions=_assumptions(message.assumptions),
        not_covered=tuple(message.not_covered),
        noise_standard_deviation=message.noise_standard_deviation,
        spent_train=_guarantee(message.spent, "train", spent),
        spent_test=_guarantee(message.spent, "test", spent),
        values=message.spent.values,
        max_values=message.spent.max_values,
        raw=message,
    )


def release(message: release_service_pb2.Release) -> releases.Release:
    """Returns a release."""
    return releases.Release(
        name=message.name,
        guarantee=guarantee(message.guarantee, "what is published"),
        protects=message.protects,
        assumptions=_assumptions(message.assumptions),
        not_covered=tuple(message.not_covered),
        warnings=_warnings(message.warnings),
        training_guarantee=_guarantee(
            message, "training_guarantee", "all runs of the study together"
        ),
        points=tuple(
            releases.ReleasedPoint(
                params=convert.from_values(x.parameters),
                values={key: x.values[key] for key in sorted(x.values)},
                standard_deviations={
                    key: x.standard_deviations[key] for key in sorted(x.standard_deviations)
                },
                run=x.run,
                on_front=x.on_front,
            )
            for x in message.points
        ),
        index=convert.optional(message, "index"),
        mechanism=message.mechanism,
        model_claim=message.model_claim,
        ledger=message.ledger.removeprefix("ledgers/"),
        noise_standard_deviation=message.noise_standard_deviation,
        study_revision=message.study_revision,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        raw=message,
    )


def ledger_info(message: release_service_pb2.Ledger) -> releases.LedgerInfo:
    """Returns the ledger of a dataset."""
    return releases.LedgerInfo(
        id=message.name.removeprefix("ledgers/"),
        description=message.description,
        records=message.records,
        epsilon=message.epsilon,
        delta=message.delta,
        adjacency=convert.enum_name(privacy_pb2.Adjacency, message.adjacency),
        spent=guarantee(message.spent, "everything charged to the ledger so far"),
        charges=message.charges,
        remaining_epsilon=message.remaining_epsilon,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        raw=message,
    )


def charge(message: release_service_pb2.Charge) -> releases.Charge:
    """Returns an entry of a ledger."""
    return releases.Charge(
        number=convert.trial_number(message.name),
        guarantee=guarantee(message.guarantee, "one charge of the ledger"),
        resource=message.resource,
        reason=message.reason,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
    )
