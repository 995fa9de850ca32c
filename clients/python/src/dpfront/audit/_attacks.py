"""Audits that run a training loop: lower bounds of its ε beside the claim."""

from __future__ import annotations

import decimal
import math
import random
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dpfront._card import Card, Shown, up
from dpfront._results.guarantees import Assumption, Guarantee, bound
from dpfront.audit import _bounds as bounds

SHARE_TO_CHOOSE = 0.25
"""Share of the runs that choose a threshold, and are not used for the bound."""


@dataclass(frozen=True, repr=False)
class LowerBound(Shown):
    """A lower bound of ε that an attack has shown, beside the claim."""

    method: str
    epsilon: float
    """Lower bound of ε at ``delta``; at most the true one with probability ``confidence``."""
    delta: float
    confidence: float
    """Of one audit. Whoever reports the best of several audits has less."""
    runs: int
    """Number of trainings that it took."""
    evidence: str
    """What was seen."""
    assumptions: tuple[Assumption, ...]
    """What must be true for the bound to hold. Nobody checks it."""
    fpr: float | None
    """Upper limit of the false positive rate of the attack; None for an audit in one run."""
    tpr: float | None
    """Lower limit of its true positive rate; both hold together with ``confidence``."""
    mu: float | None
    """Lower bound of μ from the same rates: no curve with a smaller μ allows them."""
    claim: Guarantee | None = field(compare=False)

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, at this confidence."""
        return self.claim is not None and self.epsilon > self.claim.epsilon

    def summary(self) -> str:
        """Returns the bound with its terms, in a line."""
        shown = up(self.epsilon, decimal.ROUND_FLOOR)
        return (
            f"Audited: ε at least {shown} at δ = {self.delta:g}, confidence {self.confidence:g}, "
            f"{self.method}."
        )

    def _card(self) -> Card:
        facts = [
            ("ε", f"at least {up(self.epsilon, decimal.ROUND_FLOOR)} at δ = {self.delta:g}"),
            ("confidence", f"{self.confidence:g}"),
            ("seen", self.evidence),
            ("trainings", str(self.runs)),
        ]
        if self.mu is not None:
            facts.append(("μ", f"at least {up(self.mu, decimal.ROUND_FLOOR)}"))
        if self.claim is not None:
            facts.append(("claim", bound(self.claim)))
            facts.append(
                ("verdict", "THE CLAIM IS FALSE" if self.refuted else "the claim is not refuted")
            )
        notes = [f"provided that {x}" for x in self.assumptions]
        notes.append("A lower bound: a stronger attack can show more, and none proves privacy.")
        return Card(f"Audit, {self.method}", facts, notes=notes)


def one_run(
    train: Callable[[Sequence[bool]], Iterable[float]],
    canaries: int,
    *,
    claim: Guarantee | None = None,
    delta: float | None = None,
    guesses: int | Sequence[int] | None = None,
    runs: int = 1,
    confidence: float = 0.95,
    seed: int | None = None,
) -> LowerBound:
    """Audits a training loop by canaries in one run (Steinke, Nasr and Jagielski 2023).

    A fair coin decides for each canary whether training gets it. From the scores the audit guesses
    coins: "in" for the highest, "out" for the lowest, and abstains between. Too many correct
    guesses refute every small ε.

    Args:
        train: Trains once. Its argument says of each canary whether to include it. The result is a
            score for each, larger for those that seem to be in: minus a loss, or a projection of
            noisy gradients. For a claim under "replace_one" the canary that is not in stands for
            another record, so that the number of records stays.
        canaries: Number of canaries. Ordinary records of the data can be canaries.
        claim: The guarantee to compare with, as of `Client.epsilon`.
        delta: δ, by default that of the claim.
        guesses: Number of coins to guess, or several numbers, of which the best counts; each is
            then tested at a part of the error. By default all, a quarter and a twentieth.
        runs: Number of runs, with new coins each; their canaries count together.
        confidence: Probability with which the lower bound holds.
        seed: Of the coins, for tests. Training must not know it.

    Raises:
        ValueError: An argument is out of range, or there is not a number for every canary.
    """
    delta = _delta(claim, delta)
    _check_confidence(confidence)
    _check_count("canaries", canaries)
    _check_count("runs", runs)
    total = canaries * runs
    if guesses is None:
        guesses = sorted({max(1, total // share) for share in (1, 4, 20)})
    numbers = [guesses] if isinstance(guesses, int) else list(guesses)
    if not numbers or not all(1 <= r <= total for r in numbers):
        raise ValueError(f"guesses: must be from 1 to {total}, is {guesses}")
    coin = secrets.SystemRandom() if seed is None else random.Random(seed)
    coins: list[bool] = []
    scores: list[float] = []
    for _ in range(runs):
        included = tuple(coin.random() < 0.5 for _ in range(canaries))
        found = [float(x) for x in train(included)]
        if len(found) != canaries or any(math.isnan(x) for x in found):
            raise ValueError(f"train: must return {canaries} numbers, returned {len(found)}")
        coins += included
        scores += found
    order = sorted(range(total), key=lambda i: scores[i])
    error = (1 - confidence) / len(numbers)
    best = (-1.0, 0, 0)
    for r in numbers:
        low, high = order[: r // 2], order[total - (r - r // 2) :]
        correct = sum(not coins[i] for i in low) + sum(coins[i] for i in high)
        best = max(best, (bounds.one_run_epsilon(total, r, correct, delta, error), r, correct))
    epsilon, r, correct = best
    return LowerBound(
        method="canaries in one run" if runs == 1 else f"canaries in {runs} runs",
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        runs=runs,
        evidence=f"{correct} of {r} guesses correct, {total} canaries",
        assumptions=_assume(
            fixed_in_advance="the canaries, the numbers of guesses and of runs, and whether to "
            "report this audit, were decided before any score was seen",
            data="each canary counts as one record of the guarantee",
            secrecy="training and scores know the coins from the data alone",
        ),
        fpr=None,
        tpr=None,
        mu=None,
        claim=claim,
    )


def two_worlds(
    train: Callable[[bool], float],
    runs: int,
    *,
    claim: Guarantee | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> LowerBound:
    """Audits a training loop by runs with and without one canary.

    Let the attacker see the noisy gradients of every step, and let the canary's gradient be along a
    coordinate that no other record moves (a Dirac canary). Then it is the white-box audit of Nasr
    et al., "Tight auditing of differentially private machine learning" (2023), and `dirac_score` is
    the best score. Both error rates of the attack get Clopper-Pearson limits, each of half the
    error.

    Args:
        train: Trains once, with the canary or without, and returns a score, larger for "with".
        runs: Number of runs with the canary, and as many without.
        claim: The guarantee to compare with, as of `Client.epsilon`.
        delta: δ, by default that of the claim.
        threshold: Above it a score means "with". By default a quarter of the runs choose it, which
            then do not count.
        confidence: Probability with which the lower bound holds.
        seed: Of the order of the runs, for tests.

    Raises:
        ValueError: An argument is out of range.
    """
    delta = _delta(claim, delta)
    _check_confidence(confidence)
    _check_count("runs", runs)
    order = [True] * runs + [False] * runs
    (random.Random(seed) if seed is not None else secrets.SystemRandom()).shuffle(order)
    scores: dict[bool, list[float]] = {True: [], False: []}
    for included in order:
        scores[included].append(float(train(included)))
    return rates(
        scores[True],
        scores[False],
        claim=claim,
        delta=delta,
        threshold=threshold,
        confidence=confidence,
        runs=2 * runs,
    )


def rates(
    inside: Sequence[float],
    outside: Sequence[float],
    *,
    claim: Guarantee | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    runs: int | None = None,
) -> LowerBound:
    """Returns the lower bound that scores of independent runs show, as `two_worlds` does.

    ``inside`` are the scores of runs with the canary, ``outside`` of runs without, both in an order
    that does not depend on them, such as the order of the runs.
    """
    delta = _delta(claim, delta)
    _check_confidence(confidence)
    if any(math.isnan(x) for x in (*inside, *outside)):
        raise ValueError("inside and outside: must be numbers, one is not a number")
    seen = len(inside) + len(outside)
    chosen = "the threshold"
    if threshold is None:
        chosen = "the order of the scores, whose first quarter chooses the threshold"
        (first, inside), (second, outside) = _divide(inside), _divide(outside)
        threshold = _best_threshold(first, second, delta, (1 - confidence) / 2)
    if not inside or not outside:
        raise ValueError("inside and outside: must have scores, one has none")
    hits, alarms = (sum(x > threshold for x in group) for group in (inside, outside))
    error = (1 - confidence) / 2
    tpr = bounds.binomial_lower(hits, len(inside), error)
    fpr = bounds.binomial_upper(alarms, len(outside), error)
    return LowerBound(
        method="runs with and without a canary",
        epsilon=bounds.epsilon_of_rates(fpr, tpr, delta),
        delta=delta,
        confidence=confidence,
        runs=seen if runs is None else runs,
        evidence=f"{hits} of {len(inside)} runs with the canary above the threshold, "
        f"{alarms} of {len(outside)} without",
        assumptions=_assume(
            fixed_in_advance=f"{chosen}, the number of runs, and whether to report this audit, "
            "were decided before any score was seen",
            independence="runs are independent, and differ in the canary alone",
        ),
        fpr=fpr,
        tpr=tpr,
        mu=bounds.mu_of_rates(fpr, tpr),
        claim=claim,
    )


def dirac_score(
    observed: Iterable[float], noise_multiplier: float, sampling_probability: float = 1.0
) -> float:
    """Returns the log-likelihood ratio of a Dirac canary in a run: the best score there is.

    ``observed`` has the noisy sum of each step along the canary's coordinate, in units of the
    clipping norm: N(0, σ²) without the canary, and 1 more where a step drew it. Lots are Poisson
    samples.
    """
    q, variance = sampling_probability, noise_multiplier**2
    if not 0 < q <= 1:
        raise ValueError(f"sampling_probability: must be in (0, 1], is {q}")
    if not variance > 0:
        raise ValueError(f"noise_multiplier: must be positive, is {noise_multiplier}")
    result = 0.0
    for x in observed:
        ratio = (x - 0.5) / variance  # of the densities, as a logarithm
        if q == 1:
            result += ratio
        elif ratio > 0:
            result += ratio + math.log(q + (1 - q) * math.exp(-ratio))
        else:
            result += math.log1p(q * math.expm1(ratio))
    return result


def _assume(**texts: str) -> tuple[Assumption, ...]:
    """Returns assumptions by their premises, of which nobody checks any."""
    return tuple(Assumption(text, premise, "nobody") for premise, text in texts.items())


def _divide(scores: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    count = math.ceil(SHARE_TO_CHOOSE * len(scores))
    return scores[:count], scores[count:]


def _best_threshold(
    inside: Sequence[float], outside: Sequence[float], delta: float, error: float
) -> float:
    """Returns the threshold with the largest bound, among at most 256 of the scores."""
    marks = sorted({*inside, *outside})
    if not marks:
        raise ValueError("inside and outside: must have scores, one has none")
    best, threshold = -1.0, marks[0]
    for mark in marks[:: max(1, len(marks) // 256)]:
        tpr = bounds.binomial_lower(sum(x > mark for x in inside), max(1, len(inside)), error)
        fpr = bounds.binomial_upper(sum(x > mark for x in outside), max(1, len(outside)), error)
        found = bounds.epsilon_of_rates(fpr, tpr, delta) or 1e-9 * (tpr - fpr)
        if found > best:
            best, threshold = found, mark
    return threshold


def _delta(claim: Guarantee | None, delta: float | None) -> float:
    if delta is None:
        if claim is None:
            raise ValueError("delta: must be given without a claim")
        delta = claim.delta
    if not 0 <= delta < 1:
        raise ValueError(f"delta: must be in [0, 1), is {delta}")
    if claim is not None and delta < claim.delta:
        raise ValueError(f"delta: must be at least the claim's ({claim.delta}), is {delta}")
    return delta


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: must be in (0, 1), is {confidence}")


def _check_count(name: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"{name}: must be an integer of at least 1, is {count!r}")
