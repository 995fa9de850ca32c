"""Bounds of audits: against brute force, scipy, and mechanisms of a known ε."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

import dpfront
from dpfront import DpSgd, Privacy, audit
from dpfront.audit import _bounds as bounds
from dpfront.privacy import Gaussian
from dpfront.v1 import privacy_pb2

np = pytest.importorskip("numpy")


def test_binomial_limits_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for n, error in itertools.product((1, 7, 100, 4321), (0.2, 0.025, 1e-6)):
        for k in {0, 1, n // 3, n - 1, n}:
            low, high = bounds.binomial_lower(k, n, error), bounds.binomial_upper(k, n, error)
            want = stats.beta.ppf(error, k, n - k + 1) if k else 0
            assert low <= want * (1 + 1e-12)
            assert low == pytest.approx(want, rel=1e-4)
            want = stats.beta.isf(error, k + 1, n - k) if k < n else 1
            assert high >= want * (1 - 1e-12)
            assert high == pytest.approx(want, rel=1e-4)


def test_beta_probability_against_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    for a, b, x in itertools.product((0.5, 1, 40, 5e4), (0.5, 3, 999, 1e5), (1e-3, 0.1, 0.4, 0.99)):
        want = special.betainc(a, b, x)
        assert bounds.beta_probability(x, a, b) == pytest.approx(want, rel=1e-8, abs=1e-14)


def worst_attack(canaries: int, correct: int, epsilon: float, delta: float) -> float:
    """The largest probability of that many correct guesses over all (ε, δ) mechanisms.

    A linear programme over all mechanisms that guess every coin. Averaged over the symmetries of
    coins, the best one gives each pattern of correct guesses a probability by their number alone,
    and an average of private mechanisms is private.
    """
    optimize = pytest.importorskip("scipy.optimize")
    m = canaries
    ratio = math.exp(epsilon)
    choose = [math.comb(m - 1, k) for k in range(m)]
    # The variables are probabilities a(k), and excesses over both directions of each neighbour.
    objective = [-float(math.comb(m, k)) * (k >= correct) for k in range(m + 1)] + [0.0] * (2 * m)
    rows, limits = [], []
    for k in range(m):
        for one, other, slack in ((k, k + 1, k), (k + 1, k, m + k)):
            row = [0.0] * (3 * m + 1)
            row[one], row[other], row[m + 1 + slack] = 1.0, -ratio, -1.0
            rows.append(row)
            limits.append(0.0)
    rows.append([0.0] * (m + 1) + [float(c) for c in choose] * 2)
    limits.append(delta)
    total = [[float(math.comb(m, k)) for k in range(m + 1)] + [0.0] * (2 * m)]
    found = optimize.linprog(objective, rows, limits, total, [1.0])
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("canaries", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_one_run_against_the_worst_mechanism(canaries: int, epsilon: float, delta: float) -> None:
    for correct in range(canaries + 1):
        worst = worst_attack(canaries, correct, epsilon, delta)
        p = bounds.one_run_p_value(canaries, canaries, correct, epsilon, delta)
        assert p == pytest.approx(worst, abs=1e-6)  # the bound is attained


def test_one_run_is_not_refuted_by_its_own_mechanism() -> None:
    """Randomized response attains the bound: errors of 5 % are seen, and not many more."""
    epsilon, wrong, tries = 1.0, 0, 200
    source = random.Random(3)
    for k in range(tries):

        def respond(coins: Sequence[bool]) -> list[float]:
            truth = 1 / (1 + math.exp(-epsilon))
            answers = [c if source.random() < truth else not c for c in coins]
            return [float(a) + 0.5 * source.random() for a in answers]

        shown = audit.one_run(respond, 200, delta=0.0, guesses=200, seed=k)
        wrong += shown.epsilon > epsilon
    assert 1 <= wrong <= 0.05 * tries + 4 * math.sqrt(0.05 * tries)


@pytest.mark.parametrize("guesses", [200, 40, [40, 200]])
def test_one_run_splits_the_error_over_its_numbers_of_guesses(guesses: Any) -> None:
    source = random.Random(4)

    def train(coins: Sequence[bool]) -> list[float]:
        return [c + source.gauss(0, 1) for c in coins]

    shown = audit.one_run(train, 200, delta=1e-5, guesses=guesses, seed=1, confidence=0.9)
    correct, made = (int(word) for word in shown.evidence.split()[:3] if word.isdigit())
    error = 0.1 / (2 if isinstance(guesses, list) else 1)
    assert shown.epsilon == bounds.one_run_epsilon(200, made, correct, 1e-5, error)
    assert shown.epsilon > 0


def test_one_run_against_the_term_of_the_paper() -> None:
    """The term for δ of Steinke, Nasr and Jagielski (2023), as JAX-Privacy 2.0.0 has it."""
    term_of_the_paper = [
        ((1000, 200, 190, 0.0, 0.05), 2.397871),
        ((1000, 200, 190, 1e-6, 0.05), 2.397448),
        ((1000, 200, 190, 1e-4, 0.05), 2.352564),
        ((1000, 1000, 600, 1e-5, 0.05), 0.297226),
        ((10000, 500, 480, 1e-5, 0.05), 2.770387),
    ]
    for arguments, theirs in term_of_the_paper:
        ours = bounds.one_run_epsilon(*arguments)
        assert ours == pytest.approx(theirs, rel=0.02)
        assert ours > theirs - 1e-5  # its term for δ is larger


def test_one_run_finds_a_broken_mechanism(client: dpfront.Client) -> None:
    claim = client.epsilon(Privacy(Gaussian(1, 4), 1e-6, "add_remove"))
    rng = np.random.default_rng(1)

    def noisy(sigma: float) -> Any:
        return lambda coins: np.asarray(coins) + rng.normal(scale=sigma, size=len(coins))

    right = audit.one_run(noisy(4), 1000, claim=claim, seed=1)
    assert not right.refuted
    assert right.delta == claim.delta
    broken = audit.one_run(noisy(0.4), 1000, claim=claim, seed=2)
    assert broken.refuted
    assert "THE CLAIM IS FALSE" in str(broken)
    assert "95" in str(broken)


def test_two_worlds_is_tight_for_gaussian_noise(client: dpfront.Client) -> None:
    privacy = Privacy(Gaussian(1, 1), 1e-2, "add_remove")
    claim = client.epsilon(privacy)
    rng = np.random.default_rng(7)

    def train(included: bool) -> float:
        return audit.dirac_score([included + rng.normal()], 1.0)

    shown = audit.two_worlds(train, 4000, claim=claim, seed=1)
    assert 0.5 * claim.epsilon < shown.epsilon <= claim.epsilon
    assert shown.mu is not None
    assert 0.7 < shown.mu <= 1
    assert shown.runs == 8000
    curve = client.tradeoff(privacy, [shown.fpr or 0])
    assert (shown.tpr or 0) <= curve.tprs[0]

    def broken(included: bool) -> float:
        return included + float(rng.normal(scale=0.3))

    assert audit.two_worlds(broken, 2000, claim=claim, seed=1).refuted


def test_the_coverage_of_two_worlds() -> None:
    """The rates of a fixed threshold: no more than 5 % of the bounds are above the true one."""
    tpr, fpr, wrong = 0.6, 0.2, 0
    truth = bounds.epsilon_of_rates(fpr, tpr, 1e-5)
    rng = np.random.default_rng(11)
    for _ in range(400):
        inside = (rng.random(300) < tpr).astype(float).tolist()
        outside = (rng.random(300) < fpr).astype(float).tolist()
        shown = audit.rates(inside, outside, delta=1e-5, threshold=0.5)
        wrong += shown.epsilon > truth
    assert wrong <= 0.05 * 400
    assert truth == pytest.approx(math.log((0.6 - 1e-5) / 0.2))


def test_assumptions_have_premises() -> None:
    """They have the premises and the order of the contract. Choices after looking stand first."""
    scores = [float(k) for k in range(40)]
    chosen = audit.rates(scores, scores, delta=1e-5)
    given = audit.rates(scores, scores, delta=1e-5, threshold=20.0)
    for shown in (
        chosen,
        given,
        audit.two_worlds(float, 20, delta=1e-5, seed=1),
        audit.one_run(list, 10, delta=1e-5, seed=1),
    ):
        numbers = [
            privacy_pb2.Premise.Value(f"PREMISE_{a.premise.upper()}") for a in shown.assumptions
        ]
        assert numbers == sorted(numbers)
        assert shown.assumptions[0].premise == "fixed_in_advance"
        assert {a.checked_by for a in shown.assumptions} == {"nobody"}
        assert "(fixed in advance, checked by nobody)" in str(shown)
    assert "the threshold, the number" in given.assumptions[0].text
    assert "first quarter" in chosen.assumptions[0].text


def test_dirac_score_of_poisson_lots() -> None:
    source = random.Random(1)
    for _ in range(200):
        q, sigma = source.uniform(0.01, 1), source.uniform(0.3, 5)
        seen = [source.gauss(0.5, 2) for _ in range(3)]
        want = math.fsum(math.log(1 - q + q * math.exp((x - 0.5) / sigma**2)) for x in seen)
        assert audit.dirac_score(seen, sigma, q) == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_a_white_box_audit_of_dp_sgd(client: dpfront.Client) -> None:
    """A thousand Dirac canaries in one run, each along a coordinate of its own."""
    n, steps, q, sigma, m = 2000, 40, 0.25, 1.0, 1000
    mechanism = DpSgd("poisson", n, None, sigma, steps=steps, sampling_probability=q)
    claim = client.epsilon(Privacy(mechanism, 1e-5, "add_remove"))
    rng = np.random.default_rng(3)

    def train(coins: Sequence[bool]) -> list[float]:
        drawn = rng.random((steps, m)) < q
        noisy = drawn * np.asarray(coins) + rng.normal(scale=sigma, size=(steps, m))
        return [audit.dirac_score(noisy[:, i], sigma, q) for i in range(m)]

    shown = audit.one_run(train, m, claim=claim, seed=5)
    assert not shown.refuted
    assert shown.epsilon > 0.15 * claim.epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"canaries": 0}, "canaries: must be an integer of at least 1, is 0"),
        ({"runs": 0}, "runs: must be an integer of at least 1, is 0"),
        ({"delta": 1.0}, r"delta: must be in \[0, 1\), is 1.0"),
        ({"delta": None}, "delta: must be given without a claim"),
        ({"confidence": 1}, r"confidence: must be in \(0, 1\), is 1"),
        ({"guesses": 11}, "guesses: must be from 1 to 10, is 11"),
        ({"train": lambda coins: [1.0]}, "train: must return 10 numbers, returned 1"),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"train": list, "canaries": 10, "delta": 1e-5, **arguments}
    with pytest.raises(ValueError, match=message):
        audit.one_run(given.pop("train"), given.pop("canaries"), **given)


def test_attack_rate() -> None:
    found = audit.attack_rate([3, 2, 2, 0.5], [k / 100 for k in range(100)], fpr=0.01)
    assert found.tpr == 0.75  # above 0.98, of which 1 of 100 is
    assert found.low < 0.75 < found.high
    assert float(audit.attack_rate([1, 1], [1, 1], fpr=0)) == 0  # ties are no evidence


def test_rmia_finds_memorised_records() -> None:
    source = random.Random(2)
    easy = [source.uniform(0.2, 0.8) for _ in range(300)]
    models = [[min(1, p * source.uniform(0.9, 1.1)) for p in easy] for _ in range(3)]
    target = [min(1, p + 0.3) if i < 100 else p for i, p in enumerate(easy)]
    scores = audit.rmia(
        target[:200],
        [m[:200] for m in models],
        target[200:],
        [m[200:] for m in models],
    )
    assert audit.attack_rate(scores[:100], scores[100:200], fpr=0.01).tpr > 0.8
    assert audit.attack_rate(target[:100], target[100:200], fpr=0.01).tpr < 0.7
