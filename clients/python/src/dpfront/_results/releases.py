"""What is published, and the ledgers that it is charged to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dpfront._card import Card, Scalar, Shown, up
from dpfront._results.guarantees import (
    Assumption,
    Guarantee,
    ResultWarning,
    bound,
    covered,
    notes_of,
)
from dpfront.v1 import (
    release_service_pb2,
    study_pb2,
)

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Publication:
    """What publishing the results of a study guarantees: with private_mode for everything
    that it shows, with random_stopping for its one release.
    """

    train: Guarantee
    """For the training records, over all that the study will ever publish."""
    test: Guarantee | None
    """For the test records; None if they are not protected."""
    final_run: Guarantee | None
    """Of the final run alone, for the training records; None without one. ``train`` includes it."""
    assumptions: tuple[Assumption, ...]
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
class Release(Shown):
    """Something that was published, with its guarantee and limits."""

    name: str
    """Resource name, by which `Client.release` reads it again."""
    guarantee: Guarantee
    """For the test records, on which results were evaluated."""
    protects: str
    """Which records the guarantee protects."""
    assumptions: tuple[Assumption, ...]
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

    def _card(self) -> Card:
        facts = [("guarantee", f"{bound(self.guarantee)}, for {self.protects}")]
        if self.index is not None:
            facts.insert(0, ("candidate", str(self.index)))
        assumptions = self.assumptions
        if self.training_guarantee is not None:
            facts.append(("training records", covered(self.training_guarantee, self.warnings)))
            assumptions += self.training_guarantee.assumptions
        notes = [f"claim of a paper, {self.model_claim}"] if self.model_claim else []
        notes += [f"provided that {a}" for a in assumptions]
        notes += [f"not covered: {a}" for a in self.not_covered]
        rows = [p.as_dict() for p in self.points]
        for row, p in zip(
            rows, self.points, strict=True
        ):  # what has no noise is computed, such as ε
            row.update((k, up(v)) for k, v in p.values.items() if k not in p.standard_deviations)
        return Card(f"{self.name}: {self.mechanism}", facts, rows, notes + notes_of(self.warnings))

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
