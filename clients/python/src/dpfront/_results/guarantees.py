"""Guarantees, their meaning and their cost."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpfront._card import SEEDED, Card, Scalar, Shown, terms, up
from dpfront.v1 import (
    privacy_pb2,
    privacy_service_pb2,
)

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ResultWarning:
    """Something that a reader of a result should know."""

    code: str
    """For programs, such as LARGE_DELTA."""
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True)
class Assumption:
    """What must be true for a guarantee to hold. Lists of them begin with what is broken most
    often in practice.
    """

    text: str
    """A clause that follows "provided that"."""
    premise: str
    """What it is about, such as "sampler" or "fixed_in_advance"."""
    checked_by: str
    """Who checks it: "server", "client" (the trainer, or its library) or "nobody"."""

    def __str__(self) -> str:
        who = "nobody" if self.checked_by == "nobody" else f"the {self.checked_by}"
        return f"{self.text} ({self.premise.replace('_', ' ')}, checked by {who})"


def notes_of(warnings: Sequence[ResultWarning]) -> list[str]:
    """Returns what a reader of a result should know, a sentence each."""
    return [f"warning: {w}" for w in warnings]


def seeded(warnings: Sequence[ResultWarning]) -> bool:
    """Whether somebody knows the seed of a run, so that no ε holds for it."""
    return any(w.code == SEEDED for w in warnings)


def frame(
    rows: Sequence[Mapping[str, Any]],
    warnings: Sequence[ResultWarning],
    epsilons: Mapping[str, str] | None = None,
) -> pandas.DataFrame:
    """Returns rows as a data frame, with warnings and what each ε says in its ``attrs``."""
    import pandas

    frame: pandas.DataFrame = pandas.DataFrame(rows)
    frame.attrs.update(warnings=[str(w) for w in warnings], guarantees=dict(epsilons or {}))
    return frame


@dataclass(frozen=True)
class Guarantee(Shown):
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
    assumptions: tuple[Assumption, ...]
    """What must be true for the guarantee to hold."""
    warnings: tuple[ResultWarning, ...]
    covers: str = field(compare=False)
    """What it is a guarantee of: "one run, not the search"."""
    raw: privacy_pb2.PrivacyGuarantee = field(repr=False, compare=False)

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return f"{bound(self)}; covers {self.covers}"

    def _card(self) -> Card:
        facts = [
            ("ε", "no bound" if math.isinf(self.epsilon) else f"at most {up(self.epsilon)}"),
            ("terms", guarantee_terms(self)),
            ("covers", self.covers),
        ]
        if self.epsilon_lower is not None:
            facts.append(("lower bound of the true ε", up(self.epsilon_lower, decimal.ROUND_FLOOR)))
        notes = [f"provided that {x}" for x in self.assumptions]
        return Card(
            "Privacy guarantee, an upper bound", facts, notes=notes + notes_of(self.warnings)
        )


def guarantee_terms(g: Guarantee) -> str:
    """Returns the terms of a guarantee."""
    zero_out = any("zero-out adjacency" in x.text for x in g.assumptions)
    return terms(g.delta, g.adjacency, g.accountant, public_size=zero_out)


def bound(g: Guarantee) -> str:
    """Returns an ε with its terms."""
    if math.isinf(g.epsilon):
        return f"no bound of ε, {guarantee_terms(g)}"
    return f"ε at most {up(g.epsilon)}, {guarantee_terms(g)}"


def covered(g: Guarantee, warnings: Sequence[ResultWarning]) -> str:
    """Returns an ε with all that it says, unless runs were seeded."""
    return "no ε holds: runs were seeded" if seeded(warnings) else str(g)


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
class Tradeoff(Shown):
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
    advantage: float
    """Upper bound of the true minus the false positive rate of any test."""
    mu: float
    """μ: telling N(μ, 1) from N(0, 1) is at least as easy, by tests of which both error rates are
    at least 1e-6; infinite where no μ says so."""
    mu_regret: float
    """How far μ's curve is above the bounds. Below 0.01 μ describes the mechanism well."""

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

    def _card(self) -> Card:
        notes = (
            [] if self.exact_profile else ["not known to be attained: attacks may be much weaker"]
        )
        return Card(
            "The best attack on one record, an upper bound",
            [("guarantee", bound(self.guarantee)), ("covers", self.guarantee.covers)],
            rows=[{"fpr": x, "tpr": y} for x, y in zip(self.fprs, self.tprs, strict=True)],
            notes=notes
            + [f"provided that {x}" for x in self.guarantee.assumptions]
            + notes_of(self.guarantee.warnings),
        )


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
class SearchPrices(Shown):
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

    def _card(self) -> Card:
        rows = []
        guarantees = []
        for x in self.ways:
            lower = x.training.epsilon_lower
            guarantees += [g for g in (x.training, x.test) if g is not None]
            rows.append(
                {
                    **x.as_dict(),
                    "epsilon": up(x.training.epsilon),
                    "epsilon_lower": None if lower is None else up(lower, decimal.ROUND_FLOOR),
                    "test_epsilon": None if x.test is None else up(x.test.epsilon),
                    "adaptive": "yes" if x.adaptive else "no",
                }
            )
        empty = (
            {name for name in rows[0] if all(row[name] is None for row in rows)} if rows else set()
        )
        hidden = empty | {"delta", "adjacency"}
        return Card(
            "What every way to search costs, an upper bound",
            [
                ("terms", f"δ = {up(g.delta)}, {g.adjacency} adjacency for the training records")
                for g in guarantees[:1]
            ],
            rows=[
                {
                    key: "" if cell is None else cell
                    for key, cell in row.items()
                    if key not in hidden
                }
                for row in rows
            ],
            notes=[
                f"provided that {x}"
                for x in dict.fromkeys(a for g in guarantees for a in g.assumptions)
            ],
        )


@dataclass(frozen=True, repr=False)
class PrivacyLedger(Shown):
    """What all runs of a study cost together."""

    runs: int
    largest_epsilon: float
    """Of a single run."""
    composed: Guarantee
    """Of everything that the runs released together."""
    adaptive: bool
    """Whether results may have influenced later runs."""
    fixed_in_advance: Guarantee | None
    """The cost of the same runs if they had been fixed before the first."""
    warnings: tuple[ResultWarning, ...]
    raw: privacy_service_pb2.GetPrivacyLedgerResponse = field(repr=False, compare=False)

    def _card(self) -> Card:
        how = "results may have decided it" if self.adaptive else "fixed in advance"
        facts = [("what was run", how), ("composed", covered(self.composed, self.warnings))]
        if self.fixed_in_advance is not None:
            facts.append(("fixed in advance", covered(self.fixed_in_advance, self.warnings)))
        return Card(f"Privacy ledger of {self.runs} runs", facts, notes=notes_of(self.warnings))


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
