"""Membership inference as a measurement: RMIA and rates of attacks."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpfront.audit import _bounds as bounds


@dataclass(frozen=True)
class AttackRate:
    """The true positive rate of a membership attack at a false positive rate."""

    tpr: float
    """Share of members that it finds."""
    low: float
    """Lower end of the interval of Clopper and Pearson at ``confidence``."""
    high: float
    """Upper end."""
    fpr: float
    """Largest share of non-members that it takes for members."""
    confidence: float

    def __float__(self) -> float:
        return self.tpr


def rmia(
    target: Sequence[float],
    references: Sequence[Sequence[float]],
    population: Sequence[float],
    population_references: Sequence[Sequence[float]],
    *,
    offline_a: float = 0.3,
) -> list[float]:
    """Returns the membership scores of records by RMIA, larger for those likelier in training.

    The offline attack of Zarifzadeh, Liu and Shokri, "Low-cost high-power membership inference
    attacks" (2024), for γ = 1: the share of records z of the population for which p(x|θ)/p(x) is at
    least p(z|θ)/p(z). Averages over reference models, (1 + a)/2 times their mean plus (1 − a)/2,
    stand for p(x) and p(z).

    Args:
        target: Probability that the attacked model gives the true label of each record.
        references: The same by each reference model, trained without these records.
        population: Probability that the attacked model gives other records of the population.
        population_references: The same by each reference model.
        offline_a: The a of the paper, in [0, 1]; 1 takes reference models as they are.
    """
    if not references or len(references) != len(population_references):
        raise ValueError("references: must be of one model or more, the same for both")
    if not 0 <= offline_a <= 1:
        raise ValueError(f"offline_a: must be in [0, 1], is {offline_a}")
    if not population:
        raise ValueError("population: must have records")

    def ratios(by_model: Sequence[float], by_others: Sequence[Sequence[float]]) -> list[float]:
        found = []
        for i, p in enumerate(by_model):
            mean = math.fsum(model[i] for model in by_others) / len(by_others)
            found.append(p / max((1 + offline_a) / 2 * mean + (1 - offline_a) / 2, 1e-300))
        return found

    others = sorted(ratios(population, population_references))
    return [bisect.bisect_right(others, x) / len(others) for x in ratios(target, references)]


def attack_rate(
    members: Sequence[float],
    others: Sequence[float],
    *,
    fpr: float = 0.01,
    confidence: float = 0.95,
) -> AttackRate:
    """Returns the true positive rate of an attack by its scores of members and of other records.

    The threshold is the smallest one with at most this share of ``others`` above it. So the rate is
    a measurement of one model: an interval for the records, and no bound of ε.
    """
    if not members or not others:
        raise ValueError("members and others: must have scores, one has none")
    if not 0 <= fpr < 1:
        raise ValueError(f"fpr: must be in [0, 1), is {fpr}")
    allowed = int(fpr * len(others) + 1e-9)
    threshold = sorted(others, reverse=True)[allowed]
    hits, count = sum(x > threshold for x in members), len(members)
    error = (1 - confidence) / 2
    return AttackRate(
        hits / count,
        bounds.binomial_lower(hits, count, error),
        bounds.binomial_upper(hits, count, error),
        fpr,
        confidence,
    )
