"""Confidence bounds for audits: binomial limits, and the bound of one run.

Every bound errs on the safe side: a lower bound of ε is rounded down.
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist

_TINY = 1e-300
# Of the error probability, kept for rounding in sums and special functions.
_MARGIN = 1 - 1e-6
_LARGEST_EPSILON = 64.0
_NORMAL = NormalDist()


def beta_probability(x: float, a: float, b: float) -> float:
    """Returns the regularized incomplete beta function I(x; a, b), for a, b > 0.

    It is the probability that a beta variable is at most x. By its continued fraction
    (Abramowitz and Stegun, 26.5.8), evaluated by Lentz's method.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):
        return 1 - math.exp(log_front) * _beta_fraction(1 - x, b, a) / b
    return math.exp(log_front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for k in range(1, 100_000):
        for numerator in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            d = 1 / _away_from_zero(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def _away_from_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY


def binomial_lower(successes: int, trials: int, error: float) -> float:
    """Returns the Clopper-Pearson limit below which a probability is with this error at most."""
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 4 * sys.float_info.epsilon * high:
        middle = low + (high - low) / 2
        if beta_probability(middle, successes, trials - successes + 1) < error * _MARGIN:
            low = middle
        else:
            high = middle
    return low


def binomial_upper(successes: int, trials: int, error: float) -> float:
    """Returns the Clopper-Pearson limit above which a probability is with this error at most."""
    return 1 - binomial_lower(trials - successes, trials, error)


def epsilon_of_rates(fpr: float, tpr: float, delta: float) -> float:
    """Returns the smallest ε of a mechanism for which a test has these rates, or better ones.

    For an (ε, δ) guarantee both TPR <= exp(ε) FPR + δ and 1 − FPR <= exp(ε) (1 − TPR) + δ.
    """
    ratios = [
        (top - delta) / bottom if bottom > 0 else math.inf
        for top, bottom in ((tpr, fpr), (1 - fpr, 1 - tpr))
        if top > delta
    ]
    return max([0.0, *(math.log(x) for x in ratios if x > 0)])


def mu_of_rates(fpr: float, tpr: float) -> float:
    """Returns the smallest μ for which a test of N(μ, 1) against N(0, 1) has these rates."""
    if fpr <= 0 or tpr >= 1:
        return math.inf
    if fpr >= 1 or tpr <= 0:
        return 0.0
    return max(0.0, _NORMAL.inv_cdf(tpr) - _NORMAL.inv_cdf(fpr))


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Returns the largest probability of this many correct guesses or more in one run.

    It is the largest over all (ε, δ) mechanisms that take each of m canaries by a separate fair
    coin. It is also over all rules that guess r of the coins from the output. Let W be binomial, of
    r draws with probability exp(ε) / (1 + exp(ε)), and v the number of correct guesses. It is at
    most

        P[W >= v] + m δ / v · P[W < v] · P[W >= v] / P[W = v].

    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023), have this for
    δ = 0, and a looser term for δ. The proof: averaging a mechanism over permutations and sign
    changes of coins and guesses keeps its DP, since hockey-stick divergences are convex, and its
    number of correct guesses. So every pattern with k correct guesses has the same probability b(k)
    for given guessed coins. DP says b(k+1) <= exp(ε) b(k) + x(k) with x(k) >= 0 and a sum of
    C(r−1, k) x(k) of at most δ m / r. Without x, b(k) ∝ exp(εk), which is W. A unit of δ m / r
    spent on x(k−1) moves at most r P[W >= v] P[W < k] / (k P[W = k]) of the probability to the
    patterns with v correct guesses if k <= v, which increases with k, and
    r P[W < v] P[W >= k] / (k P[W = k]) if k >= v, which decreases. Both agree at k = v.
    """
    if correct <= 0:
        return 1.0
    odds = math.exp(epsilon)
    tail = beta_probability(odds / (1 + odds), correct, guesses - correct + 1)
    if delta == 0:
        return min(1.0, tail)
    # P[W >= v] / P[W = v], as a sum of P[W = k] / P[W = v].
    ratio = term = 1.0
    for k in range(correct, guesses):
        term *= (guesses - k) / (k + 1) * odds
        ratio += term
        if term < 1e-17 * ratio or ratio > 1e300:
            break
    return min(1.0, tail + canaries * delta / correct * (1 - tail) * ratio)


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """Returns a lower bound of ε from one run, which is above ε with this probability at most."""

    def refuted(epsilon: float) -> bool:
        p_value = one_run_p_value(canaries, guesses, correct, epsilon, delta)
        return p_value <= error * _MARGIN

    low, high = 0.0, _LARGEST_EPSILON
    if not refuted(low):
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if refuted(middle):
            low = middle
        else:
            high = middle
    return low
