"""Tails of the distributions that replayed steps have if the loop is right."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from dpfront.audit._bounds import beta_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = Any


def normal_two_sided(z: float) -> float:
    """Returns the probability that a standard normal number is at least as far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def normal_quantile(probability: float) -> float:
    """Returns the standard normal quantile."""
    return NormalDist().inv_cdf(probability)


def _gamma_series(a: float, x: float) -> float:
    term = total = 1 / a
    k = a
    while term > total * 1e-16:
        k += 1
        term *= x / k
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


def _gamma_fraction(a: float, x: float) -> float:
    b = x + 1 - a
    c, d = 1e300, 1 / b
    result = d
    for k in range(1, 1_000_000):
        numerator = -k * (k - a)
        b += 2
        d = 1 / (numerator * d + b)
        c = b + numerator / c
        result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result * math.exp(a * math.log(x) - x - math.lgamma(a))


def chi_squared_tails(x: float, degrees: float) -> tuple[float, float]:
    """Returns P[X <= x] and P[X >= x] for X of a chi-squared distribution."""
    a, half = degrees / 2, x / 2
    if half <= 0:
        return 0.0, 1.0
    if half < a + 1:
        lower = _gamma_series(a, half)
        return lower, 1 - lower
    upper = _gamma_fraction(a, half)
    return 1 - upper, upper


def chi_squared_two_sided(x: float, degrees: float) -> float:
    """Returns twice the smaller tail of a chi-squared distribution."""
    return min(1.0, 2 * min(chi_squared_tails(x, degrees)))


def chi_squared_interval(degrees: float, error: float) -> tuple[float, float]:
    """Returns values between which a chi-squared number is, but for this error."""
    ends = []
    for probability in (error / 2, 1 - error / 2):
        low, high = 0.0, degrees + 100 + 40 * math.sqrt(degrees)
        for _ in range(80):
            middle = (low + high) / 2
            lower, upper = chi_squared_tails(middle, degrees)
            below = lower < probability if probability < 0.5 else upper > 1 - probability
            low, high = (middle, high) if below else (low, middle)
        ends.append(low)
    return ends[0], ends[1]


def binomial_two_sided(successes: int, trials: int, probability: float) -> float:
    """Returns twice the smaller tail of a binomial distribution."""
    if not 0 < probability < 1:
        return 1.0 if successes == trials * probability else 0.0
    at_least = (
        beta_probability(probability, successes, trials - successes + 1) if successes > 0 else 1.0
    )
    at_most = (
        beta_probability(1 - probability, trials - successes, successes + 1)
        if successes < trials
        else 1.0
    )
    return min(1.0, 2 * min(at_least, at_most))


def dispersion(counts: Array, trials: int, probability: float) -> float:
    """Returns the p-value of how independent binomial counts vary.

    The sum of their squared deviations is compared with the multiple of a chi-squared number that
    has its mean and variance.
    """
    variance = trials * probability * (1 - probability)
    if variance == 0:
        return 1.0 if (counts == trials * probability).all() else 0.0
    fourth = variance * (1 + 3 * (trials - 2) * probability * (1 - probability))
    total = float(((counts - trials * probability) ** 2).sum())
    return _matched(total, len(counts) * variance, len(counts) * (fourth - variance**2))


def overlap(drawn: Array, records: int, size: int, lots: int) -> float:
    """Returns the p-value of how often records are drawn by lots of a fixed size.

    The squared deviations of ``drawn`` sum up to those of the numbers of records that two lots
    share, which are hypergeometric and independent in pairs.
    """
    share = size / records
    if share == 1:
        return 1.0
    mean = records * lots * share * (1 - share)
    pair = size * share * (1 - share) * (records - size) / (records - 1)
    total = float(((drawn - lots * share) ** 2).sum())
    return _matched(total, mean, 2 * lots * (lots - 1) * pair)


def _matched(total: float, mean: float, variance: float) -> float:
    scale = variance / (2 * mean)
    return chi_squared_two_sided(total / scale, mean / scale)


def cosine_tail(cosine: float, dimension: int) -> float:
    """Returns the probability that the cosine of two random directions is at least this large."""
    return beta_probability(max(0.0, 1 - cosine * cosine), (dimension - 1) / 2, 0.5)
