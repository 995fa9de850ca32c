"""The server's answers as plain objects.

``raw`` is the message of the contract behind an object, with everything that has no name here.
``str`` gives a text for people, and notebooks show the same as HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, overload

from dpfront import _display as display

if TYPE_CHECKING:
    import pandas

    from dpfront.v1 import (
        analysis_service_pb2,
        front_service_pb2,
        privacy_pb2,
        privacy_service_pb2,
        release_service_pb2,
        study_pb2,
        trial_pb2,
    )

__all__ = [
    "AccountingSummary",
    "Artifact",
    "Calibration",
    "Charge",
    "Contour",
    "EpsilonCurve",
    "Estimate",
    "ExpectedGain",
    "Front",
    "FrontKind",
    "FrontPoint",
    "FrontValue",
    "GainPoint",
    "Guarantee",
    "HypervolumePoint",
    "Importance",
    "LedgerInfo",
    "Measurement",
    "ObjectiveValidation",
    "ParameterImportance",
    "PastAttempt",
    "Prediction",
    "PrivacyLedger",
    "Publication",
    "Reaccounting",
    "Recommendation",
    "Release",
    "ReleasedPoint",
    "ResultWarning",
    "Slice",
    "Slices",
    "StudyChange",
    "StudyChanged",
    "StudyInfo",
    "Tradeoff",
    "TrialChanged",
    "TrialDeleted",
    "TrialInfo",
    "Validation",
    "ValidationPoint",
]

Scalar = int | float | str
FrontKind = Literal["posterior", "observed", "best", "worst"]
"""The values of a front: the model's expectation of fresh runs ("posterior"), or the mean
("observed"), best or worst of the measured runs."""


@dataclass(frozen=True)
class ResultWarning:
    """Something that a reader of a result should know."""

    code: str
    """For programs, such as LARGE_DELTA."""
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True)
class Guarantee(display.Shown):
    """An (ε, δ) guarantee. ``float(guarantee)`` is ε."""

    epsilon: float
    """An upper bound; infinite if the accountant gives none."""
    epsilon_lower: float | None
    """A lower bound of the true ε, if known."""
    delta: float
    adjacency: str
    accountant: str
    """The one that computed it."""
    steps: int
    assumptions: tuple[str, ...]
    """What must be true for the guarantee to hold."""
    warnings: tuple[ResultWarning, ...]
    covers: str = field(compare=False)
    """What it is a guarantee of: "one run, not the search"."""
    raw: privacy_pb2.PrivacyGuarantee = field(repr=False, compare=False)

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return f"{display.bound(self)}; covers {self.covers}"

    def _card(self) -> display.Card:
        return display.guarantee(self)


@dataclass(frozen=True)
class Calibration:
    """The value of a parameter for which a mechanism has a target ε."""

    value: Scalar
    reachable: bool
    """Whether a value in the range reaches the target."""
    guarantee: Guarantee
    derived: Mapping[str, float]


@dataclass(frozen=True)
class EpsilonCurve:
    """How ε of a configuration grows with the length of its run."""

    trial: int
    """Number of the trial that has the configuration."""
    params: Mapping[str, Scalar]
    unit: str
    """Of the lengths: epochs or steps."""
    lengths: tuple[int, ...]
    """Up to the length that the configuration says."""
    guarantees: tuple[Guarantee, ...]
    """Of runs of these lengths."""


@dataclass(frozen=True, repr=False)
class Tradeoff(display.Shown):
    """What a guarantee means for an attacker who wants to know whether a record was used: the
    largest true positive rate of any test, by its false positive rate. It is an upper bound for
    one record, whatever else the attacker knows.
    """

    fprs: tuple[float, ...]
    tprs: tuple[float, ...]
    """Upper bounds, one for every false positive rate."""
    guarantee: Guarantee
    exact_profile: bool
    """Whether some datasets come close to the bounds; otherwise attacks may be much weaker."""

    def tpr(self, fpr: float) -> float:
        """Returns the bound at one of the false positive rates.

        Raises:
            ValueError: The curve has no point there. Between points a straight line would be
                below the bound.
        """
        if fpr not in self.fprs:
            raise ValueError(f"fpr: {fpr} is not one of {', '.join(map(str, self.fprs))}")
        return self.tprs[self.fprs.index(fpr)]

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each point: fpr and tpr. It needs pandas."""
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame({"fpr": self.fprs, "tpr": self.tprs})
        return frame

    def _card(self) -> display.Card:
        return display.tradeoff(self)


@dataclass(frozen=True)
class SearchPrice:
    """What a way to search costs."""

    way: str
    released: str
    """What is released."""
    adaptive: bool
    """Whether configurations may depend on earlier results."""
    training: Guarantee
    """Of the training records. Its lower bound, if there is one, is what an attack shows."""
    test: Guarantee | None
    """Of the test records, under replace_one adjacency. None without ``test_records``."""
    test_noise: float | None
    """Standard deviation of the noise on every score."""
    mean_runs: float
    """Number of trainings on average."""
    max_runs: int | None
    """Number of trainings at most; None without a bound."""
    runs_for_budget: int | None
    """How many runs the budget affords, up to a million and rounded down by 2 % at most."""

    def as_dict(self) -> dict[str, Scalar | None]:
        """Returns the numbers, and the terms of the guarantee for the training records."""
        return {
            "way": self.way,
            "released": self.released,
            "mean_runs": self.mean_runs,
            "max_runs": self.max_runs,
            "epsilon": self.training.epsilon,
            "epsilon_lower": self.training.epsilon_lower,
            "test_epsilon": None if self.test is None else self.test.epsilon,
            "test_noise": self.test_noise,
            "accountant": self.training.accountant,
            "adaptive": self.adaptive,
            "runs_for_budget": self.runs_for_budget,
            "delta": self.training.delta,
            "adjacency": self.training.adjacency,
        }


@dataclass(frozen=True, repr=False)
class SearchPrices(display.Shown):
    """What the ways to search cost, from those that show everything to those that show least."""

    ways: tuple[SearchPrice, ...]

    def __getitem__(self, way: str) -> SearchPrice:
        """Returns a way by its name.

        Raises:
            KeyError: There is no such way.
        """
        for x in self.ways:
            if x.way == way:
                return x
        raise KeyError(f"{way!r} is not one of {', '.join(x.way for x in self.ways)}")

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each way. It needs pandas."""
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame([x.as_dict() for x in self.ways])
        return frame

    def _card(self) -> display.Card:
        return display.search_prices(self)


@dataclass(frozen=True)
class Prediction:
    """What a model expects of a metric: median and central 90 % interval of the mean that
    fresh runs would have.
    """

    median: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Measurement:
    """Metrics of a trial at one moment of its run, by id; means over repeated runs."""

    step: int
    metrics: Mapping[str, float]
    runs: Mapping[str, tuple[float, ...]]
    """The values of the single runs, by id, of metrics that were reported so."""
    standard_errors: Mapping[str, float]
    """Of the means, by id, where they are known."""
    reported: Mapping[str, float]
    """The worker's own values of computed metrics, such as ε, by id."""
    elapsed: timedelta | None
    """What the worker spent up to here, if it said so."""


@dataclass(frozen=True)
class PastAttempt:
    """An attempt at a trial that ended without completing it."""

    number: int
    """Among the attempts at the trial, from 1."""
    worker_id: str
    outcome: str
    """lost, resumed, released, failed or overtaken."""
    reason: str
    """Given with a release or a failure."""
    start_time: datetime
    end_time: datetime
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class Artifact:
    """A file that belongs to a trial and is kept elsewhere."""

    id: str
    """Its name among the trial's artifacts."""
    uri: str
    """Where it is. The server does not look there."""
    sha256: str
    """Of its content, in hexadecimal digits; empty if it was not given."""


@dataclass(frozen=True)
class TrialInfo(display.Shown):
    """The state of a trial on the server."""

    number: int
    state: str
    """queued, active, stopping, succeeded, infeasible or failed."""
    state_reason: str
    origin: str
    params: Mapping[str, Scalar]
    metrics: Mapping[str, float]
    """Final values by id, computed ones included."""
    guarantees: Mapping[str, Guarantee] = field(repr=False)  # long, and print() shows them
    """Of the metrics that are ε, by id."""
    measurements: tuple[Measurement, ...] = field(repr=False)
    """On the way, of the attempt that runs or completed the trial."""
    final_measurement: Measurement | None = field(repr=False)
    """At the end, of a succeeded trial; step 0 stands for the end of the run."""
    worker_id: str
    attempt: int
    """How often the trial was handed out."""
    past_attempts: tuple[PastAttempt, ...]
    """That did not complete the trial; only from ``get_trial``."""
    note: str
    labels: Mapping[str, str]
    user_attrs: Mapping[str, Any]
    """What programs keep with the trial: `Trial.set_user_attr`."""
    artifacts: tuple[Artifact, ...]
    """Where files of the trial are."""
    create_time: datetime
    start_time: datetime | None
    """When the attempt that runs, or completed the trial, began; None while it is queued."""
    end_time: datetime | None
    """When the trial was completed; None before."""
    provenance: str
    """The method that suggested it, and, if that could not be used, why. Empty if a user chose
    it."""
    predictions: Mapping[str, Prediction]
    """What the model expected when it suggested the trial, by metric id."""
    warnings: tuple[ResultWarning, ...]
    raw: trial_pb2.Trial = field(repr=False, compare=False)

    @property
    def duration(self) -> timedelta | None:
        """From the beginning of the attempt that completed the trial to its end."""
        if self.start_time is None or self.end_time is None:
            return None
        return self.end_time - self.start_time

    def _card(self) -> display.Card:
        return display.trial(self)


@dataclass(frozen=True)
class StudyInfo(display.Shown):
    """The state of a study on the server."""

    id: str
    display_name: str
    description: str
    labels: Mapping[str, str]
    state: str
    """active, paused or completed."""
    state_reason: str
    trial_counts: Mapping[str, int]
    """Number of trials by state."""
    seed: int
    revision: int
    create_time: datetime
    parameters: tuple[str, ...]
    """Ids of the parameters."""
    objectives: tuple[str, ...]
    """Ids of the objectives."""
    reported: tuple[str, ...]
    """Ids of the metrics that workers report: objectives and constraints, then others."""
    max_trials: int
    checkpoint_parameter: str
    features: str
    """What the engine sees of DP-SGD in place of the parameters: "on" with the learning rate and
    clipping norm, or "off" with what to name. Empty for a study without DP-SGD or a model. See
    `dpfront.DpSgdFeatures`."""
    publication: Publication | None
    """What publishing its results guarantees, with private_mode or random_stopping."""
    warnings: tuple[ResultWarning, ...]
    raw: study_pb2.Study = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.study(self)


@dataclass(frozen=True)
class StudyChange:
    """A change of a study: `StudyChanged`, `TrialChanged` or `TrialDeleted`."""

    revision: int
    """Of the study after the change: ``study.watch(after_revision=...)`` continues after it."""
    time: datetime


@dataclass(frozen=True)
class StudyChanged(StudyChange):
    """The study's own fields have changed, or it was created."""

    study: StudyInfo


@dataclass(frozen=True)
class TrialChanged(StudyChange):
    """A trial was created or has changed."""

    trial: TrialInfo


@dataclass(frozen=True)
class TrialDeleted(StudyChange):
    """A trial was deleted."""

    number: int


@dataclass(frozen=True)
class FrontValue:
    """An objective at a point of the front, in its own unit."""

    value: float
    """By which the point was chosen."""
    lower: float | None = None
    """Central 90 % interval of the mean that fresh runs would have, of the posterior front."""
    upper: float | None = None
    observed: float | None = None
    """Mean of the measured runs; None for computed metrics, like the following."""
    standard_error: float | None = None
    best: float | None = None
    worst: float | None = None


@dataclass(frozen=True)
class FrontPoint:
    """A configuration on the front, or a constant point of the study."""

    trial: int
    """Number of the trial that measured it first; 0 for a constant point."""
    step: int
    """Of the measurement, in studies with a checkpoint parameter."""
    params: Mapping[str, Scalar]
    values: Mapping[str, FrontValue]
    """The objectives by id."""
    runs: int
    """Number of runs behind the measured values."""
    trials: tuple[int, ...]
    contribution: float
    """By how much the hypervolume would shrink without the point."""
    knee: bool
    beyond_reference: bool
    guarantee: Guarantee | None
    constant_point: str = ""
    """Id of the constant point that it is, a result without any run; empty for a
    configuration."""

    def as_dict(self) -> dict[str, Any]:
        """Returns a flat row: objectives, parameters, then the rest."""
        row: dict[str, Any] = {key: v.value for key, v in self.values.items()}
        row.update(self.params)
        for key, v in self.values.items():
            for name in ("lower", "upper", "observed", "standard_error"):
                value = getattr(v, name)
                if value is not None:
                    row[f"{key}_{name}"] = value
        row.update(
            trial=self.trial,
            step=self.step,
            runs=self.runs,
            contribution=self.contribution,
            knee=self.knee,
            beyond_reference=self.beyond_reference,
        )
        if self.constant_point:
            row.update(trial=None, constant_point=self.constant_point)
        return row


@dataclass(frozen=True, repr=False)
class Front(display.Shown, Sequence[FrontPoint]):
    """The Pareto front: a sequence of points, best in the first objective first."""

    kind: str
    points: tuple[FrontPoint, ...]
    hypervolume: float
    hypervolumes: Mapping[str, float]
    """Hypervolumes of the fronts of all kinds; the posterior one only if this front is
    posterior."""
    reference: Mapping[str, float]
    objectives: tuple[str, ...]
    minimize: Mapping[str, bool]
    """By objective, whether smaller is better."""
    transforms: Mapping[str, str]
    """By objective, the scale on which it is modelled: identity, log or logit."""
    epsilons: Mapping[str, str]
    """The objectives that are ε, with what an ε says: its δ, adjacency, accountant and what it
    covers."""
    revision: int
    warnings: tuple[ResultWarning, ...]
    raw: front_service_pb2.Front = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.points)

    @overload
    def __getitem__(self, index: int) -> FrontPoint: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[FrontPoint, ...]: ...

    def __getitem__(self, index: int | slice) -> FrontPoint | tuple[FrontPoint, ...]:
        return self.points[index]

    def __iter__(self) -> Iterator[FrontPoint]:
        return iter(self.points)

    def _card(self) -> display.Card:
        return display.front(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each point. It needs pandas.

        ``attrs`` of the frame has the kind of the front, its hypervolume and warnings, and under
        "guarantees" what each ε says.
        """
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame([p.as_dict() for p in self.points])
        frame.attrs.update(
            kind=self.kind,
            hypervolume=self.hypervolume,
            warnings=[str(w) for w in self.warnings],
            guarantees=dict(self.epsilons),
        )
        return frame


@dataclass(frozen=True)
class HypervolumePoint:
    """The hypervolume of a front after a trial."""

    trial: int
    completed_trials: int
    hypervolume: float
    runs: int
    steps: int


@dataclass(frozen=True, repr=False)
class Recommendation(display.Shown):
    """A configuration for bounds on objectives."""

    reachable: bool
    """Whether a configuration meets the bounds; if not, this one is nearest."""
    params: Mapping[str, Scalar]
    """Empty if nothing is known yet, or a constant point answers."""
    predictions: Mapping[str, Prediction]
    """Of measured objectives."""
    computed: Mapping[str, float]
    """Computed metrics, exact."""
    guarantees: Mapping[str, Guarantee]
    """Of the computed metrics that are ε, by id."""
    reached: Mapping[str, float]
    """What every objective reaches with the confidence asked for."""
    optimize: str
    """The optimised objective."""
    trials: tuple[int, ...]
    """Trials that measured it; empty if it was never run."""
    runs: int
    step: int
    guarantee: Guarantee | None
    warnings: tuple[ResultWarning, ...]
    constant_point: str = ""
    """Id of the constant point that answers, if one does: its values are in reached, and nothing
    has to be run."""

    def _card(self) -> display.Card:
        return display.recommendation(self)


@dataclass(frozen=True)
class ValidationPoint:
    """A measurement, and what the model predicts for it without the runs of its configuration."""

    trial: int
    """Number of the trial that first measured the configuration."""
    step: int
    """Of the measurement, for studies with a checkpoint parameter."""
    observed: float
    """The mean of the configuration's runs."""
    predicted: Prediction
    """The interval holds the measurement with a probability of 90 %: it includes noise."""

    @property
    def within(self) -> bool:
        """Whether the measurement lies within the interval."""
        return self.predicted.lower <= self.observed <= self.predicted.upper


@dataclass(frozen=True)
class ObjectiveValidation:
    """How well the model predicts one objective where it does not know it."""

    metric: str
    points: tuple[ValidationPoint, ...]
    """The measurements that the model was made of."""
    coverage: float | None
    """Share of the measurements within their 90 % intervals; None without points."""
    r_squared: float | None
    """Share of the variance that the predictions explain, on the scale of the objective's
    transform; None if the measurements do not vary."""


@dataclass(frozen=True, repr=False)
class Validation(display.Shown):
    """How well the model of a study predicts measurements that it does not know."""

    objectives: tuple[ObjectiveValidation, ...]
    """The measured objectives; empty without a model."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.CrossValidateResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.validation(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each measurement. It needs pandas."""
        rows: list[dict[str, Scalar]] = [
            {
                "metric": o.metric,
                "trial": p.trial,
                "step": p.step,
                "observed": p.observed,
                "predicted": p.predicted.median,
                "lower": p.predicted.lower,
                "upper": p.predicted.upper,
                "within": p.within,
            }
            for o in self.objectives
            for p in o.points
        ]
        return _frame(rows, self.warnings)


@dataclass(frozen=True)
class GainPoint:
    """What a number of further runs is expected to gain."""

    runs: int
    gain: float
    """By how much the hypervolume of the posterior front grows, on average."""
    lower: float
    """5 % quantile over what the runs may show; negative if the front may turn out worse."""
    upper: float
    """95 % quantile."""
    probability: float
    """That the gain exceeds 1 % of today's hypervolume."""
    cost: float | None
    """Of these runs, on average; None if no run has reported its cost."""


@dataclass(frozen=True, repr=False)
class ExpectedGain(display.Shown):
    """By how much the next runs are expected to enlarge the hypervolume of the posterior front."""

    hypervolume: float
    """Of the posterior front today."""
    points: tuple[GainPoint, ...]
    """After one more run, two, and so on; empty without a model."""
    cost_unit: str
    """The study's cost metric, its checkpoint parameter, or "runs"."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.ForecastGainResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.expected_gain(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each number of runs. It needs pandas."""
        return _frame([asdict(p) for p in self.points], self.warnings)


@dataclass(frozen=True)
class Estimate:
    """An estimate with its central 90 % interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class ParameterImportance:
    """What a parameter contributes to the variation of an objective: its Sobol indices."""

    metric: str
    parameter: str
    first_order: Estimate
    """Share of the variance that the parameter explains by itself."""
    total: Estimate
    """Share that it explains by itself and together with others."""


@dataclass(frozen=True, repr=False)
class Importance(display.Shown):
    """The importance of the parameters for each objective, over the whole search space."""

    parameters: tuple[ParameterImportance, ...]
    """By objective, then by parameter, in the order of the study."""
    variances: Mapping[str, Estimate]
    """Of the objectives, on the scale of their transforms."""
    transforms: Mapping[str, str]
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.AnalyzeImportanceResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.importance(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each objective and parameter. It needs pandas."""
        return _frame(display.importance_rows(self), self.warnings)


@dataclass(frozen=True)
class Slice:
    """An objective along one parameter."""

    metric: str
    parameter: str
    values: tuple[Scalar, ...]
    predictions: tuple[Prediction, ...]
    """At the values. Those of computed objectives are exact and have no width."""


@dataclass(frozen=True, repr=False)
class Slices(display.Shown):
    """The objectives along each parameter, the others held at one configuration."""

    params: Mapping[str, Scalar]
    """The configuration; empty if nothing is known yet."""
    slices: tuple[Slice, ...]
    """By objective, then by parameter, in the order of the study."""
    epsilons: Mapping[str, str]
    """What the objectives that are ε say, by id."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.AnalyzeSlicesResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.slices(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each value of each slice. It needs pandas."""
        return _frame(display.slice_rows(self), self.warnings, self.epsilons)


@dataclass(frozen=True, repr=False)
class Contour(display.Shown):
    """An objective over two parameters, the others held at one configuration."""

    metric: str
    x: str
    """Id of the horizontal parameter."""
    y: str
    params: Mapping[str, Scalar]
    """The configuration; empty if nothing is known yet."""
    x_values: tuple[Scalar, ...]
    y_values: tuple[Scalar, ...]
    predictions: tuple[tuple[Prediction, ...], ...]
    """A row for each value of y. NaN where the objective cannot be computed."""
    epsilons: Mapping[str, str]
    """What the objectives that are ε say, by id."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.AnalyzeContourResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.contour(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each place. It needs pandas."""
        return _frame(display.contour_rows(self), self.warnings, self.epsilons)


def _frame(
    rows: Sequence[Mapping[str, Any]],
    warnings: Sequence[ResultWarning],
    epsilons: Mapping[str, str] | None = None,
) -> pandas.DataFrame:
    import pandas

    frame: pandas.DataFrame = pandas.DataFrame(rows)
    frame.attrs.update(warnings=[str(w) for w in warnings], guarantees=dict(epsilons or {}))
    return frame


@dataclass(frozen=True, repr=False)
class PrivacyLedger(display.Shown):
    """What all runs of a study cost together."""

    runs: int
    largest_epsilon: float
    """Of a single run."""
    composed: Guarantee
    """Of everything that the runs released together."""
    adaptive: bool
    """Whether results may have decided what was run."""
    fixed_in_advance: Guarantee | None
    """The cost of the same runs if they had been fixed before the first."""
    warnings: tuple[ResultWarning, ...]
    raw: privacy_service_pb2.GetPrivacyLedgerResponse = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.privacy_ledger(self)


@dataclass(frozen=True)
class AccountingSummary:
    """ε of the trials of a study, each an upper bound for one whole run."""

    delta: float
    adjacency: str
    smallest_epsilon: float | None
    """None, like the others, if no trial has a value."""
    median_epsilon: float | None
    largest_epsilon: float | None
    not_computable: int
    """Number of trials for which the metric has no value."""
    accountants: Mapping[str, int]
    """Number of trials by the accountant that computed the value."""


@dataclass(frozen=True)
class Reaccounting:
    """What computing the ε of all trials again has changed, or would change."""

    trials: int
    """Number of trials computed again."""
    before: AccountingSummary
    after: AccountingSummary
    differing_reports: int
    """Number of trials whose worker reported a value that contradicts the new one."""
    revision: int
    """Of the study after the change."""


@dataclass(frozen=True)
class Publication:
    """What publishing the results of a study guarantees: of a private_mode, everything that it
    shows; of random_stopping, its one release.
    """

    train: Guarantee
    """For the training records, over all that the study will ever publish."""
    test: Guarantee | None
    """For the test records; None if they are not protected."""
    final_run: Guarantee | None
    """Of the final run alone, for the training records; None without one. ``train`` includes it."""
    assumptions: tuple[str, ...]
    """What both guarantees rest on."""
    not_covered: tuple[str, ...]
    noise_standard_deviation: float
    """Of the noise in every measured value, 0 if there is none."""
    spent_train: Guarantee | None
    """What a private_mode has spent so far on the training records, and below on the test
    records. The guarantees are the declared ones; the spending may depend on results."""
    spent_test: Guarantee | None
    values: int
    """Number of noisy values taken so far, at most ``max_values``."""
    max_values: int
    raw: study_pb2.Publication = field(repr=False, compare=False)


@dataclass(frozen=True)
class ReleasedPoint:
    """A published configuration."""

    params: Mapping[str, Scalar]
    values: Mapping[str, float]
    """Published metrics by id: computed ones, and values with noise."""
    standard_deviations: Mapping[str, float]
    """Of the published values, if known."""
    run: int = 0
    """Of a curve, the run that the point is a state of, from 1; 0 for other releases."""
    on_front: bool = False
    """Whether no published point is better; only for curves."""

    def as_dict(self) -> dict[str, Any]:
        """Returns a flat row: values, parameters, standard deviations; of curves also the run."""
        deviations = {f"{k}_standard_deviation": v for k, v in self.standard_deviations.items()}
        curve = {"run": self.run, "on_front": self.on_front} if self.run else {}
        return {**self.values, **self.params, **deviations, **curve}


@dataclass(frozen=True)
class Release(display.Shown):
    """Something that was published, with its guarantee and limits."""

    name: str
    """Resource name, by which `Client.release` reads it again."""
    guarantee: Guarantee
    """For the test records, on which results were evaluated."""
    protects: str
    """Which records the guarantee protects."""
    assumptions: tuple[str, ...]
    """What the guarantee rests on."""
    not_covered: tuple[str, ...]
    warnings: tuple[ResultWarning, ...]
    training_guarantee: Guarantee | None
    """What all runs of the study together cost the training records; None if the server does
    not know it."""
    points: tuple[ReleasedPoint, ...]
    """The published configurations."""
    index: int | None
    """The selected candidate, from 0, of `Client.select_privately`."""
    mechanism: str
    """For people: "permute-and-flip among 64 configurations"."""
    model_claim: str
    """What a paper claims of the method if a model of the data is true, which is not differential
    privacy; empty if there is no such claim."""
    ledger: str
    """Id of the ledger that was charged; empty if nothing was."""
    noise_standard_deviation: float
    """Of the noise in the published values, 0 if there are none."""
    study_revision: int
    create_time: datetime
    """When it was first handed out."""
    raw: release_service_pb2.Release = field(repr=False, compare=False)

    def _card(self) -> display.Card:
        return display.release(self)

    @property
    def best(self) -> ReleasedPoint | None:
        """The published configuration of `release_best`; None if none is within the bounds, or
        if the random number of trials was 0. Of a curve it is the state with the least ε.
        """
        return self.points[0] if self.points else None

    @property
    def front(self) -> tuple[ReleasedPoint, ...]:
        """The points of published curves that are on the front, in rising order of ε."""
        return tuple(p for p in self.points if p.on_front)


@dataclass(frozen=True)
class LedgerInfo:
    """The privacy account of one dataset: the cost of everything published about it."""

    id: str
    description: str
    records: int
    """Number of records of the dataset, which is public."""
    epsilon: float
    """ε and δ of everything that is ever charged; they never change."""
    delta: float
    adjacency: str
    spent: Guarantee
    """The spending so far, which may depend on results; the guarantee of the whole ledger is
    the declared one."""
    charges: int
    """Number of charges."""
    remaining_epsilon: float
    """The largest ε of one more release with δ = 0 that fits."""
    create_time: datetime
    raw: release_service_pb2.Ledger = field(repr=False, compare=False)


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger."""

    number: int
    """From 1, oldest first."""
    guarantee: Guarantee
    """What was charged: the guarantee of one release, or of everything that a study will
    publish."""
    resource: str
    """Name of the release, or of the study that reserved its budget."""
    reason: str
    create_time: datetime
