"""Analyses of the model of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from dpfront._card import Card, Scalar, Shown, number, said, up
from dpfront._results.guarantees import (
    ResultWarning,
    frame,
    notes_of,
)
from dpfront._results.trials import Prediction
from dpfront.v1 import (
    analysis_service_pb2,
)

if TYPE_CHECKING:
    import pandas


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
    """How well the model predicts one objective on measurements it was not fitted to."""

    metric: str
    points: tuple[ValidationPoint, ...]
    """The measurements that the model was made of."""
    coverage: float | None
    """Share of the measurements within their 90 % intervals; None without points."""
    r_squared: float | None
    """Share of the variance that the predictions explain, on the scale of the objective's
    transform; None if the measurements do not vary."""


@dataclass(frozen=True, repr=False)
class Validation(Shown):
    """How well the model of a study predicts measurements it was not fitted to."""

    objectives: tuple[ObjectiveValidation, ...]
    """The measured objectives; empty without a model."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.CrossValidateResponse = field(repr=False, compare=False)

    def _card(self) -> Card:
        rows: list[dict[str, Scalar]] = []
        for o in self.objectives:
            row: dict[str, Scalar] = {"metric": o.metric, "measurements": len(o.points)}
            if o.coverage is not None:
                row["within 90 % interval"] = f"{100 * o.coverage:.0f} %"
            if o.r_squared is not None:
                row["R²"] = o.r_squared
            rows.append(row)
        title = "Fit of the model" if rows else "No model yet"
        return Card(title, rows=rows, notes=notes_of(self.warnings))

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
        return frame(rows, self.warnings)


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
class ExpectedGain(Shown):
    """By how much the next runs are expected to enlarge the hypervolume of the posterior front."""

    hypervolume: float
    """Of the posterior front today."""
    points: tuple[GainPoint, ...]
    """After one more run, two, and so on; empty without a model."""
    cost_unit: str
    """The study's cost metric, its checkpoint parameter, or "runs"."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.ForecastGainResponse = field(repr=False, compare=False)

    def _card(self) -> Card:
        if not self.points:
            return Card("No forecast", notes=notes_of(self.warnings))
        rows: list[dict[str, Scalar]] = []
        for p in self.points:
            row: dict[str, Scalar] = {
                "runs": p.runs,
                "gain": p.gain,
                "lower": p.lower,
                "upper": p.upper,
                "more than 1 %": f"{100 * p.probability:.0f} %",
            }
            if p.cost is not None and self.cost_unit != "runs":
                row[f"cost ({self.cost_unit})"] = p.cost
            rows.append(row)
        facts = [("hypervolume today", number(self.hypervolume))]
        return Card("Expected gain of the next runs", facts, rows, notes_of(self.warnings))

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each number of runs. It needs pandas."""
        return frame([asdict(p) for p in self.points], self.warnings)


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
class Importance(Shown):
    """The importance of the parameters for each objective, over the whole search space."""

    parameters: tuple[ParameterImportance, ...]
    """By objective, then by parameter, in the order of the study."""
    variances: Mapping[str, Estimate]
    """Of the objectives, on the scale of their transforms."""
    transforms: Mapping[str, str]
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.AnalyzeImportanceResponse = field(repr=False, compare=False)

    def _rows(self) -> list[dict[str, Scalar]]:
        return [
            {
                "metric": p.metric,
                "parameter": p.parameter,
                "first_order": p.first_order.value,
                "first_order_lower": p.first_order.lower,
                "first_order_upper": p.first_order.upper,
                "total": p.total.value,
                "total_lower": p.total.lower,
                "total_upper": p.total.upper,
            }
            for p in self.parameters
        ]

    def _card(self) -> Card:
        rows = [
            {key: f"{v:.2f}" if isinstance(v, float) else v for key, v in row.items()}
            for row in self._rows()
        ]
        title = (
            "Importance: share of the variance that a parameter explains, by itself and in total"
        )
        return Card(
            title if rows else "No importance yet", rows=rows, notes=notes_of(self.warnings)
        )

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each objective and parameter. It needs pandas."""
        return frame(self._rows(), self.warnings)


@dataclass(frozen=True)
class Slice:
    """An objective along one parameter."""

    metric: str
    parameter: str
    values: tuple[Scalar, ...]
    predictions: tuple[Prediction, ...]
    """At the values. Those of computed objectives are exact and have no width."""


@dataclass(frozen=True, repr=False)
class Slices(Shown):
    """The objectives along each parameter, the others held at one configuration."""

    params: Mapping[str, Scalar]
    """The configuration; empty if nothing is known yet."""
    slices: tuple[Slice, ...]
    """By objective, then by parameter, in the order of the study."""
    epsilons: Mapping[str, str]
    """What the objectives that are ε say, by id."""
    warnings: tuple[ResultWarning, ...]
    raw: analysis_service_pb2.AnalyzeSlicesResponse = field(repr=False, compare=False)

    def _rows(self) -> list[dict[str, Scalar]]:
        return [
            {"metric": s.metric, "parameter": s.parameter, "value": value, **p.as_dict()}
            for s in self.slices
            for value, p in zip(s.values, s.predictions, strict=True)
        ]

    def _card(self) -> Card:
        if not self.slices:
            return Card("No slices yet", notes=notes_of(self.warnings))
        facts = [(f"held {key}", number(value)) for key, value in self.params.items()]
        rows: list[dict[str, Scalar]] = []
        for s in self.slices:
            row: dict[str, Scalar] = {"metric": s.metric, "parameter": s.parameter}
            for value, p in (
                (s.values[k], s.predictions[k]) for k in dict.fromkeys((0, -1)) if s.values
            ):
                shown = up(p.median) if s.metric in self.epsilons else number(p.median)
                row[f"at the {'last' if len(row) > 2 else 'first'} value"] = (
                    f"{number(value)}: {shown}"
                )
            rows.append(row)
        return Card("Slices", facts, rows, [*said(self.epsilons), *notes_of(self.warnings)])

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each value of each slice. It needs pandas."""
        return frame(self._rows(), self.warnings, self.epsilons)


@dataclass(frozen=True, repr=False)
class Contour(Shown):
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

    def _rows(self) -> list[dict[str, Scalar]]:
        return [
            {self.x: at_x, self.y: at_y, **p.as_dict()}
            for at_y, row in zip(self.y_values, self.predictions, strict=True)
            for at_x, p in zip(self.x_values, row, strict=True)
        ]

    def _card(self) -> Card:
        if not self.predictions:
            return Card("No contour yet", notes=notes_of(self.warnings))
        facts = [
            (f"held {k}", number(v)) for k, v in self.params.items() if k not in (self.x, self.y)
        ]
        say = up if self.metric in self.epsilons else number
        rows = [
            {
                f"{self.y} \\ {self.x}": number(at_y),
                **{
                    number(at_x): say(p.median) if math.isfinite(p.median) else ""
                    for at_x, p in zip(self.x_values, row, strict=True)
                },
            }
            for at_y, row in zip(self.y_values, self.predictions, strict=True)
        ]
        own = {k: v for k, v in self.epsilons.items() if k == self.metric}
        return Card(f"Median of {self.metric}", facts, rows, [*said(own), *notes_of(self.warnings)])

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns a row for each place. It needs pandas."""
        return frame(self._rows(), self.warnings, self.epsilons)
