"""Trials and studies, and their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dpfront import _describe as describe
from dpfront._card import Card, Scalar, Shown, number
from dpfront._results.guarantees import (
    Guarantee,
    ResultWarning,
    covered,
    notes_of,
)
from dpfront._results.releases import Publication
from dpfront.v1 import (
    study_pb2,
    trial_pb2,
)

if TYPE_CHECKING:
    pass


def metric_facts(
    values: Mapping[str, float],
    guarantees: Mapping[str, Guarantee],
    warnings: Sequence[ResultWarning],
) -> list[tuple[str, str]]:
    return [
        (key, covered(guarantees[key], warnings) if key in guarantees else number(value))
        for key, value in values.items()
    ]


@dataclass(frozen=True)
class Prediction:
    """What a model expects of a metric: median and central 90 % interval of the mean that
    fresh runs would have.
    """

    median: float
    lower: float
    upper: float

    def as_dict(self) -> dict[str, Scalar]:
        """Returns the numbers by name."""
        return {"median": self.median, "lower": self.lower, "upper": self.upper}


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
class TrialInfo(Shown):
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
    """Of the attempt that runs, or completed the trial; empty while it is queued."""
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

    def _card(self) -> Card:
        facts = [(key, number(value)) for key, value in self.params.items()]
        facts += metric_facts(self.metrics, self.guarantees, self.warnings)
        said = {
            "reason": self.state_reason,
            "note": self.note,
            "worker": self.worker_id,
            "measurements": str(len(self.measurements) or ""),
            "attempt": str(self.attempt if self.attempt > 1 else ""),
            **{f"label {key}": value for key, value in self.labels.items()},
        }
        facts += [(key, value) for key, value in said.items() if value]
        return Card(f"Trial {self.number}: {self.state}", facts, notes=notes_of(self.warnings))


@dataclass(frozen=True)
class StudyInfo(Shown):
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
    """Features of DP-SGD that the model uses instead of parameters: "on" with the learning rate and
    clipping norm, or "off" with what to name. Empty for a study without DP-SGD or a model. See
    `dpfront.DpSgdFeatures`."""
    publication: Publication | None
    """What publishing its results guarantees, with private_mode or random_stopping."""
    warnings: tuple[ResultWarning, ...]
    raw: study_pb2.Study = field(repr=False, compare=False)

    def _card(self, *, state: bool = True, page: str | None = None) -> Card:
        spec: study_pb2.StudySpec = self.raw.spec
        counts = ", ".join(f"{n} {name}" for name, n in self.trial_counts.items() if n) or "none"
        said = {
            "state": ": ".join(x for x in (self.state, self.state_reason) if x) if state else "",
            f"trials of {self.max_trials}" if self.max_trials else "trials": counts
            if state
            else "",
            "name": self.display_name,
            "description": self.description,
            **{f"parameter {x.id}": describe.domain(x) for x in spec.parameters},
            **{f"metric {x.id}": describe.metric(x) for x in spec.metrics},
            "checkpoint parameter": self.checkpoint_parameter,
            "features of DP-SGD": self.features,
            **{f"label {key}": value for key, value in self.labels.items()},
        }
        facts = [(key, value) for key, value in said.items() if value]
        notes = notes_of(self.warnings) if state else ["info() reads its state."]
        return Card(f"Study {self.id}", facts, notes=notes, page=page)


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
