"""Replayed steps: seeded faults are found, and loops that are right have no findings."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpfront import DpSgd, Privacy, audit
from dpfront.audit import Step
from dpfront.audit import _statistics as statistics

np = pytest.importorskip("numpy")

from . import dp_sgd  # noqa: E402
from .dp_sgd import FAULTS, Loop, make_privacy  # noqa: E402


def replayed(seed: int, fault: str = "", **arguments: Any) -> audit.Replay:
    loop = Loop(seed, fault)
    return audit.replay(loop.run(), loop.gradients, make_privacy(), **arguments)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_seeded_faults_are_found(fault: str, seed: int) -> None:
    found = replayed(seed, fault)
    assert FAULTS[fault] in [f.what for f in found.findings], found
    assert not found


def test_right_loops_have_no_findings() -> None:
    assert [r for seed in range(30) if not (r := replayed(1000 + seed))] == []


@pytest.mark.long
def test_200_right_loops_have_no_findings() -> None:
    assert [r for seed in range(200) if not (r := replayed(2000 + seed))] == []
    # At a confidence of 80 % each loop may have a finding in one of five runs, and some have.
    weak = sum(not replayed(3000 + seed, confidence=0.8) for seed in range(200))
    assert 5 <= weak <= 40 + 3 * 6


def test_what_a_replay_says() -> None:
    right = replayed(1)
    low, high = right.noise_multiplier
    assert low < dp_sgd.NOISE < high
    assert 0 < right.clipping_resolution < 0.2
    assert "findings: none" in str(right)
    assert "noise: its multiplier is about" in str(replayed(1, "noise of each micro-batch"))


def test_a_multiplier_of_twice_the_norm_is_found() -> None:
    """Noise relative to C where the guarantee, of exchanged records, needs 2C."""
    loop = Loop(1)
    assert audit.replay(loop.run(), loop.gradients, make_privacy())
    found = audit.replay(
        loop.run(),
        loop.gradients,
        dataclasses.replace(make_privacy(), adjacency="replace_one"),
    )
    assert "noise" in [f.what for f in found.findings]


FIXTURES = Path(__file__).parent / "fixtures"


def steps_of(lots: Any, weights: Any, rate: float) -> list[Step]:
    """The steps of SGD with the weights before each, and after the last."""
    released = (weights[:-1] - weights[1:]) / rate
    return [Step(*step) for step in zip(lots, weights[:-1], released, strict=True)]


def bundled(file: Path) -> list[tuple[dict[str, Any], audit.Replay]]:
    """Replays runs of the bundled trainer, as its TestRecordedSteps records them."""
    recorded = json.loads(file.read_text())
    x, y = np.array(recorded["x"]), np.array(recorded["y"])
    x = np.hstack([x, np.ones((len(x), 1))])  # the bias

    def gradients(weights: Any, lot: Sequence[int]) -> Any:
        rows = np.asarray(lot)
        return -(y[rows] / (1 + np.exp(y[rows] * (x[rows] @ weights))))[:, None] * x[rows]

    found = []
    for run in recorded["runs"]:
        mechanism = DpSgd(
            run["sampling"].replace("-", "_"),
            recorded["records"],
            recorded["lot_size"],
            recorded["noise_multiplier"],
            recorded["epochs"],
            clipping_norm=recorded["clipping_norm"],
        )
        steps = steps_of(run["lots"], np.array(run["weights"]), recorded["learning_rate"])
        privacy = Privacy(mechanism, 1e-5, "add_remove")
        found.append((run, audit.replay(steps, gradients, privacy)))
    return found


def test_recorded_steps_of_the_bundled_trainer() -> None:
    found = bundled(FIXTURES / "bundled.json")
    assert len(found) == 8
    for run, result in found:
        kinds = [f.what for f in result.findings]
        if run["fault"]:
            assert run["finding"] in kinds, run["fault"]
        else:
            assert kinds == [], run["sampling"]


@pytest.mark.long
def test_right_runs_of_the_bundled_trainer() -> None:
    """Runs that DPARETO_RECORD and DPARETO_RECORD_RUNS made (see record_test.go)."""
    file = os.environ.get("DPARETO_RECORD")
    if not file:
        pytest.skip("DPARETO_RECORD names no recorded runs")
    found = bundled(Path(file))
    assert len(found) >= 200
    assert [result for _, result in found if not result] == []


def softmax_gradients(x: Any, y: Any) -> Callable[[Any, Sequence[int]], Any]:
    """Gradients of a linear layer of two classes, weights before biases, as torch has them."""

    def gradients(weights: Any, lot: Sequence[int]) -> Any:
        rows = np.asarray(lot)
        width = x.shape[1]
        w, b = weights[: 2 * width].reshape(2, width), weights[2 * width :]
        scores = x[rows] @ w.T + b
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(rows)), y[rows]] -= 1
        outer = p[:, :, None] * x[rows][:, None, :]
        return np.hstack([outer.reshape(len(rows), -1), p])

    return gradients


def test_recorded_steps_of_opacus() -> None:
    """What the real one did, as tests/record_steps.py recorded it; NumPy has the gradients."""
    recorded = json.loads((FIXTURES / "steps.json").read_text())
    gradients = softmax_gradients(np.array(recorded["x"]), np.array(recorded["y"]))
    mechanism = DpSgd("poisson", 120, 12, 1.5, 7, clipping_norm=0.5, convention="opacus")
    assert len(recorded["runs"]) == 9
    for run in recorded["runs"]:
        steps = steps_of(run["lots"], np.array(run["weights"]), 0.1)
        result = audit.replay(steps, gradients, Privacy(mechanism, 1e-5, "add_remove"), divisor=12)
        kinds = [f.what for f in result.findings]
        assert (run["finding"] in kinds) if run["fault"] else kinds == [], run["fault"]


SAMPLERS: dict[str, DpSgd] = {
    "fixed_size": DpSgd("fixed_size", 100, 20, 1.0, epochs=6, clipping_norm=1.0),
    "shuffled": DpSgd("shuffled", 100, 20, 1.0, epochs=6, clipping_norm=1.0),
    "random_allocation": DpSgd("random_allocation", 100, 20, 1.0, epochs=6, clipping_norm=1.0),
    "poisson": DpSgd("poisson", 100, 20, 1.0, epochs=6, clipping_norm=1.0, convention="opacus"),
}


def drawn(sampler: str, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    lots: list[Any] = []
    for _ in range(6):
        if sampler == "fixed_size":
            lots += [rng.choice(100, 20, replace=False) for _ in range(5)]
        elif sampler == "shuffled":
            lots += np.array_split(rng.permutation(100), 5)
        elif sampler == "random_allocation":
            bins = rng.integers(5, size=100)
            lots += [np.flatnonzero(bins == k) for k in range(5)]
        else:
            lots += [np.flatnonzero(rng.random(100) < 0.2) for _ in range(5)]
    return [[int(i) for i in lot] for lot in lots]


@pytest.mark.parametrize("accounted", SAMPLERS)
@pytest.mark.parametrize("executed", SAMPLERS)
def test_samplers_are_told_apart(accounted: str, executed: str) -> None:
    rng = np.random.default_rng(5)
    adjacency: Any = "replace_one" if accounted == "fixed_size" else "add_remove"
    privacy = Privacy(SAMPLERS[accounted], 1e-5, adjacency)
    scale = 2.0 if accounted == "fixed_size" else 1.0
    for seed in range(3):
        steps = [
            Step(lot, np.zeros(4), scale * rng.normal(size=4) / 20) for lot in drawn(executed, seed)
        ]
        found = audit.replay(steps, lambda w, lot: np.zeros((len(lot), 4)), privacy)
        assert ("sampling" in [f.what for f in found.findings]) == (accounted != executed), found


def test_tails_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for k in (0.5, 3, 80, 4000):
        for x in (0.2 * k, 0.9 * k, 1.1 * k, 3 * k):
            lower, upper = statistics.chi_squared_tails(x, k)
            assert lower == pytest.approx(stats.chi2.cdf(x, k), rel=1e-6, abs=1e-12)
            assert upper == pytest.approx(stats.chi2.sf(x, k), rel=1e-6, abs=1e-12)
        low, high = statistics.chi_squared_interval(k, 1e-4)
        assert low == pytest.approx(stats.chi2.ppf(5e-5, k), rel=1e-5)
        assert high == pytest.approx(stats.chi2.isf(5e-5, k), rel=1e-5)
    for k in (0, 17, 300, 1000):
        want = min(1, 2 * min(stats.binom.cdf(k, 1000, 0.3), stats.binom.sf(k - 1, 1000, 0.3)))
        got = statistics.binomial_two_sided(k, 1000, 0.3)
        assert got == pytest.approx(want, rel=1e-6, abs=1e-14)


def test_p_values_of_samplers_are_uniform() -> None:
    """Those of right samplers: a tenth of them is below a tenth, within errors."""
    rng = np.random.default_rng(9)
    below = [0, 0]
    for _ in range(1000):
        sizes = rng.binomial(200, 0.05, size=60).astype(float)
        below[0] += statistics.dispersion(sizes, 200, 0.05) < 0.1
        counts = np.bincount(
            np.concatenate([rng.choice(80, 10, replace=False) for _ in range(12)]), minlength=80
        )
        below[1] += statistics.overlap(counts, 80, 10, 12) < 0.1
    assert all(60 < b < 140 for b in below), below


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clipping_norm": None}, "clipping_norm: must be a number to replay a loop, is None"),
        ({"epochs": "epochs"}, "epochs: must be a number to replay a loop, is 'epochs'"),
        ({"bands": 4}, "bands: a replay does not support it"),
    ],
)
def test_mechanisms_that_are_refused(change: dict[str, Any], message: str) -> None:
    mechanism: Any = make_privacy().mechanism
    privacy = Privacy(dataclasses.replace(mechanism, **change), 1e-5, "add_remove")
    loop = Loop(1)
    with pytest.raises(ValueError, match=message):
        audit.replay(loop.run(), loop.gradients, privacy)


def test_steps_that_are_refused() -> None:
    loop = Loop(1)
    steps = loop.run()
    steps[3] = dataclasses.replace(steps[3], released=np.full(dp_sgd.WIDTH, np.nan))
    with pytest.raises(ValueError, match=r"steps\[3\].released: must be 12 finite numbers"):
        audit.replay(steps, loop.gradients, make_privacy())
    with pytest.raises(ValueError, match="steps: must be at least 2, are 1"):
        audit.replay(steps[:1], loop.gradients, make_privacy())
    with pytest.raises(ValueError, match="gradients: must return"):
        audit.replay(steps, lambda w, lot: np.zeros((1, 1)), make_privacy())
