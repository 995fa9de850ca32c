"""Fronts and recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from dpfront._card import Card, Scalar, Shown, number, up
from dpfront._results.guarantees import (
    Guarantee,
    ResultWarning,
    notes_of,
)
from dpfront._results.trials import Prediction, metric_facts
from dpfront.v1 import (
    front_service_pb2,
)

if TYPE_CHECKING:
    import pandas


FrontKind = Literal["posterior", "observed", "best", "worst"]
"""The values of a front: the model's expectation of fresh runs ("posterior"), or the mean
("observed"), best or worst of the measured runs."""


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

    def _row(self, epsilons: Mapping[str, str]) -> dict[str, Scalar]:
        row: dict[str, Scalar] = {}
        for key, v in self.values.items():
            row[key] = up(v.value) if key in epsilons else v.value
            if v.lower is not None and v.upper is not None:
                row[f"{key}_90%"] = f"{number(v.lower)}..{number(v.upper)}"
        row.update(self.params)
        row["trial"] = f"none: {self.constant_point}" if self.constant_point else self.trial
        remarks = [name for name in ("knee", "beyond_reference") if getattr(self, name)]
        if remarks:
            row["remark"] = ", ".join(remarks)
        return row


@dataclass(frozen=True, repr=False)
class Front(Shown, Sequence[FrontPoint]):
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

    def _card(self) -> Card:
        if not self.points:
            return Card(f"no points on the {self.kind} front", notes=notes_of(self.warnings))
        points = f"{len(self)} points" if len(self) > 1 else "1 point"
        return Card(
            f"{self.kind} front: {points}, hypervolume {number(self.hypervolume)}",
            rows=[p._row(self.epsilons) for p in self],
            notes=[f"{key}: {said}" for key, said in self.epsilons.items()]
            + notes_of(self.warnings),
        )

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
class Recommendation(Shown):
    """A configuration for bounds on objectives."""

    reachable: bool
    """Whether a configuration meets the bounds; if not, this one is nearest."""
    params: Mapping[str, Scalar]
    """Empty if nothing is known yet, or a constant point answers."""
    predictions: Mapping[str, Prediction]
    """Of measured objectives; empty if no model agrees with the measurements."""
    computed: Mapping[str, float]
    """Computed metrics, exact."""
    guarantees: Mapping[str, Guarantee]
    """Of the computed metrics that are ε, by id."""
    reached: Mapping[str, float]
    """What every objective reaches with the confidence asked for, or measured values."""
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

    def _card(self) -> Card:
        if self.constant_point:
            facts = [(key, number(value)) for key, value in self.reached.items()]
            title = (
                f"Recommended for {self.optimize}: nothing has to be run ({self.constant_point})"
            )
            if not self.reachable:
                title += ": out of reach, this is nearest"
            return Card(title, facts, notes=notes_of(self.warnings))
        if not self.params:
            return Card("No recommendation yet", notes=notes_of(self.warnings))
        facts = [(key, number(value)) for key, value in self.params.items()]
        for key, p in self.predictions.items():
            interval = f"90 % interval {number(p.lower)} to {number(p.upper)}"
            facts.append((f"expected {key}", f"{number(p.median)}, {interval}"))
        for key, value in self.reached.items():
            if key not in self.predictions and key not in self.computed:
                facts.append((f"measured {key}", number(value)))
        facts += metric_facts(self.computed, self.guarantees, ())  # of a run to come
        trials = ", ".join(map(str, self.trials))
        measured = f"trials {trials} ({self.runs} runs)" if self.trials else "no trial yet"
        facts.append(("measured by", measured))
        title = f"Recommended for {self.optimize}" if self.optimize else "Recommended"
        if not self.reachable:
            title += ": out of reach, this is nearest"
        return Card(title, facts, notes=notes_of(self.warnings))
