"""Events of dp_accounting against the numbers of its accountants, in both directions."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest

import dpfront
from dpfront import DpSgd, Privacy
from dpfront import privacy as p

pytest.importorskip("dp_accounting")
pytestmark = pytest.mark.filterwarnings("ignore")  # numpy in its accountants

from dp_accounting import NeighboringRelation, pld, rdp  # noqa: E402
from dp_accounting import dp_event as dp  # noqa: E402

from dpfront.integrations.dp_accounting import from_event, to_event  # noqa: E402

DELTA = 1e-5
RELATIONS = {
    "add_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}
Kind = Literal["pld", "rdp"]


def theirs(event: Any, adjacency: p.Adjacency, kind: Kind) -> float:
    """ε of an event by dp_accounting."""
    if kind == "pld":
        accountant = pld.PLDAccountant(RELATIONS[adjacency], value_discretization_interval=1e-3)
    else:
        orders = [1 + k / 20 for k in range(1, 200)] + [*range(11, 64), 64, 96, 128, 256, 512, 1024]
        accountant = rdp.RdpAccountant(orders, RELATIONS[adjacency])
    return float(accountant.compose(event).get_epsilon(DELTA))


def gaussian(z: float, q: float, n: int, m: int, steps: int) -> Any:
    return dp.SelfComposedDpEvent(dp.GaussianDpEvent(3 * z), min(steps, 9))


def poisson(z: float, q: float, n: int, m: int, steps: int) -> Any:
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), steps)


def laplace(z: float, q: float, n: int, m: int, steps: int) -> Any:
    return dp.SelfComposedDpEvent(dp.LaplaceDpEvent(4 * z), min(steps, 9))


def mixed(z: float, q: float, n: int, m: int, steps: int) -> Any:
    return dp.ComposedDpEvent(
        [
            dp.NoOpDpEvent(),
            poisson(z, q, n, m, steps),
            dp.SelfComposedDpEvent(
                dp.ComposedDpEvent([dp.GaussianDpEvent(5 * z), dp.GaussianDpEvent(7 * z)]), 2
            ),
            poisson(z, q, n, m, 3),
        ]
    )


def same_lot(z: float, q: float, n: int, m: int, steps: int) -> Any:
    """Two groups of clipped gradients with their own noise, on the same lot."""
    lot = dp.ComposedDpEvent(
        [dp.GaussianDpEvent(2 * z), dp.SelfComposedDpEvent(dp.GaussianDpEvent(3 * z), 2)]
    )
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, lot), steps)


def zcdp(z: float, q: float, n: int, m: int, steps: int) -> Any:
    return dp.ComposedDpEvent(
        [dp.ZCDpEvent(q / 9), dp.SelfComposedDpEvent(dp.ZCDpEvent(q / 50), 3)]
    )


def selection(z: float, q: float, n: int, m: int, steps: int) -> Any:
    shape = random.Random(z).choice([0.0, 0.5, 1.0, math.inf])
    return dp.RepeatAndSelectDpEvent(gaussian(3 + z, q, n, m, steps), 1 + 20 * q, shape)


def randomized(z: float, q: float, n: int, m: int, steps: int) -> Any:
    # A SelfComposedDpEvent would be accounted as one response by its PLD accountant.
    response = dp.RandomizedResponseDpEvent(0.2 + q, random.Random(z).choice([2, 3, 10]))
    return dp.ComposedDpEvent([response, response])


def fixed_size(z: float, q: float, n: int, m: int, steps: int) -> Any:
    step = dp.SampledWithoutReplacementDpEvent(n, m, dp.GaussianDpEvent(2 * z))
    return dp.SelfComposedDpEvent(step, steps)


Build = Callable[[float, float, int, int, int], Any]
# Event, adjacency, their accountant, and how small our ε may be as a share of theirs. Theirs are
# upper bounds, on a grid of losses or orders. One from Rényi divergences is some way above; of
# selection ours takes the whole profile of a run, and theirs its divergences.
GRID: list[tuple[Build, p.Adjacency, Kind, float]] = [
    (gaussian, "add_remove", "pld", 0.99),
    (gaussian, "replace_one", "pld", 0.99),
    (poisson, "add_remove", "pld", 0.97),
    (poisson, "replace_one", "pld", 0.97),
    (laplace, "add_remove", "pld", 0.97),
    (mixed, "add_remove", "pld", 0.97),
    (mixed, "replace_one", "pld", 0.97),
    (same_lot, "add_remove", "rdp", 0.7),
    (zcdp, "add_remove", "rdp", 0.99),
    (selection, "add_remove", "rdp", 0.6),
    (randomized, "replace_one", "pld", 0.98),
]


def draw(seed: int) -> tuple[float, float, int, int, int]:
    source = random.Random(seed)
    n = source.randint(200, 5000)
    m = source.randint(5, n // 4)
    return source.uniform(0.7, 3), source.uniform(0.005, 0.3), n, m, source.randint(2, 60)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("build", "adjacency", "kind", "share"), GRID, ids=[f"{g[0].__name__}-{g[1]}" for g in GRID]
)
def test_import(
    client: dpfront.Client,
    build: Build,
    adjacency: p.Adjacency,
    kind: Kind,
    share: float,
    seed: int,
) -> None:
    event = build(*draw(seed))
    privacy = from_event(event, delta=DELTA, adjacency=adjacency)
    ours, other = client.epsilon(privacy).epsilon, theirs(event, adjacency, kind)
    assert share * other - 0.002 <= ours <= other * (1 + 1e-6), (event, privacy)
    back = to_event(privacy, noise_relative_to="norm")
    assert theirs(back, adjacency, kind) == pytest.approx(other, rel=1e-6)
    # Whoever reads the event: never too small.
    safe = to_event(privacy)
    assert theirs(safe, adjacency, "pld" if kind == "pld" else "rdp") >= ours * (1 - 1e-6)


def test_trees(client: dpfront.Client) -> None:
    """Its accountant knows trees under zero-out alone, which is our add/remove of a place."""
    event = dp.SelfComposedDpEvent(dp.SingleEpochTreeAggregationDpEvent(9.0, [100, 700]), 3)
    privacy = from_event(event, delta=DELTA, adjacency="add_remove")
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    other = float(accountant.compose(event).get_epsilon(DELTA))
    assert 0.85 * other <= client.epsilon(privacy).epsilon <= other
    with pytest.raises(ValueError, match='under "add_remove" only'):
        from_event(event, delta=DELTA, adjacency="replace_one")


@pytest.mark.parametrize("seed", range(2))
def test_lots_of_a_fixed_size(client: dpfront.Client, seed: int) -> None:
    """Its RDP accountant takes the multiplier relative to the sensitivity, and so do we if told;
    else relative to the norm, which says half the multiplier.
    """
    event = fixed_size(*draw(seed))
    like_theirs = from_event(
        event, delta=DELTA, adjacency="replace_one", noise_relative_to="sensitivity"
    )
    by_definition = from_event(event, delta=DELTA, adjacency="replace_one")
    assert isinstance(by_definition.mechanism, DpSgd)
    assert by_definition.mechanism.noise_multiplier == event.event.event.noise_multiplier / 2
    other = theirs(event, "replace_one", "rdp")
    ours = client.epsilon(like_theirs).epsilon
    assert ours <= other * (1 + 1e-6)
    by_rdp = dataclasses.replace(like_theirs, accountant="rdp", conversion="improved")
    # They use the published divergence. We use the dominating pair's, which is smaller.
    assert 0.4 * other <= client.epsilon(by_rdp).epsilon <= other
    assert client.epsilon(by_definition).epsilon > 1.5 * ours
    # The default of the export is what no accountant can read as more noise than there is.
    assert theirs(to_event(like_theirs), "replace_one", "rdp") == pytest.approx(other, rel=1e-9)
    assert theirs(to_event(by_definition), "replace_one", "rdp") >= client.epsilon(
        by_definition
    ).epsilon * (1 - 1e-6)


SPECS: dict[str, tuple[Privacy, dict[str, Any], Kind]] = {
    "opacus": (
        dpfront.opacus(dataset_size=1000, epochs="epochs", delta=DELTA),
        {"batch_size": 150, "noise_multiplier": 1.3, "epochs": 5},
        "pld",
    ),
    "opacus, drop_last": (
        dpfront.opacus(dataset_size=1000, epochs="epochs", delta=DELTA, drop_last=True),
        {"batch_size": 150, "noise_multiplier": 1.3, "epochs": 5},
        "pld",
    ),
    "opacus, shuffled": (
        dpfront.opacus(dataset_size=1000, steps="steps", delta=DELTA, poisson_sampling=False),
        {"batch_size": 150, "noise_multiplier": 9.5, "steps": 13},
        "rdp",
    ),
    "tensorflow": (
        Privacy(
            DpSgd("poisson", 1000, 150, "z", "epochs", convention="tensorflow_privacy"),
            DELTA,
            "add_remove",
        ),
        {"z": 1.3, "epochs": 5},
        "pld",
    ),
    "rounded": (
        Privacy(
            DpSgd("poisson", "n", "m", 1.5, "2 * epochs + 1", convention="rounded"),
            DELTA,
            "replace_one",
        ),
        {"n": 1000, "m": 400, "epochs": 5},
        "pld",
    ),
    "paper": (
        dataclasses.replace(
            dpfront.paper(dataset_size=1000, epochs="epochs", delta=DELTA), conversion="improved"
        ),
        {"lot_size": 150, "noise_variance": 4.0, "epochs": 5},
        "rdp",
    ),
    "laplace": (
        Privacy(p.Laplace(2, "1.0 / math.sqrt(x) + 3.0"), DELTA, "add_remove"),
        {"x": 4.0},
        "pld",
    ),
    "randomized response": (
        Privacy(p.RandomizedResponse("e", 4), DELTA, "replace_one"),
        {"e": 1.5},
        "pld",
    ),
    "selection": (
        Privacy(p.RepeatedSelection(p.Gaussian(1, 9), 5, 0), DELTA, "add_remove"),
        {},
        "rdp",
    ),
    "composition": (
        Privacy(
            p.Composition((p.Part(p.Gaussian(2, "sd"), "3"), p.Part(p.ZeroConcentrated(0.01)))),
            DELTA,
            "add_remove",
        ),
        {"sd": 10},
        "rdp",
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_export(client: dpfront.Client, name: str) -> None:
    privacy, params, kind = SPECS[name]
    # The server takes ints and doubles apart.
    ours = client.epsilon(privacy, **{k: float(v) if k == "sd" else v for k, v in params.items()})
    # Their only accountant of Poisson lots under replace-one reads multipliers by the norm.
    reference: Any = "norm" if name == "rounded" else "sensitivity"
    event = to_event(privacy, noise_relative_to=reference, **params)
    other = theirs(event, privacy.adjacency, kind)
    assert ours.epsilon * (1 - 1e-6) <= other <= ours.epsilon * (1.02 if kind == "pld" else 2)
    again = from_event(
        event,
        delta=DELTA,
        adjacency=privacy.adjacency,
        noise_relative_to=reference,
        accountant=privacy.accountant,
    )
    assert client.epsilon(again).epsilon == pytest.approx(ours.epsilon, rel=1e-6)


def test_what_costs_nothing() -> None:
    for event in (
        dp.NoOpDpEvent(),
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), 0),
        dp.PoissonSampledDpEvent(0.0, dp.GaussianDpEvent(1.0)),
        dp.ZCDpEvent(0.0),
        dp.ComposedDpEvent([]),
        dp.RepeatAndSelectDpEvent(dp.NoOpDpEvent(), 3.0, 1.0),
    ):
        with pytest.raises(ValueError, match="there is nothing to account"):
            from_event(event, delta=DELTA, adjacency="add_remove")
    for noise, k in ((1.0, 5), (0.0, 1)):
        with pytest.raises(ValueError, match="there is nothing to account"):
            from_event(dp.RandomizedResponseDpEvent(noise, k), delta=DELTA, adjacency="replace_one")


def test_equal_parts_are_counted() -> None:
    event = dp.ComposedDpEvent([dp.GaussianDpEvent(2.0)] * 5000 + [dp.LaplaceDpEvent(1.0)])
    assert from_event(event, delta=DELTA, adjacency="add_remove").mechanism == p.Composition(
        (p.Part(p.Gaussian(1.0, 2.0), 5000), p.Part(p.Laplace(1.0, 1.0), 1))
    )


def test_selection_from_a_single_run_keeps_its_steps() -> None:
    """Of one run that is always selected, the base is the mechanism, with all of its steps."""
    step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    run = dp.SelfComposedDpEvent(step, 1000)
    once = dp.RepeatAndSelectDpEvent(run, 1.0, 1.0)
    privacy = from_event(once, delta=DELTA, adjacency="add_remove")
    assert privacy == from_event(run, delta=DELTA, adjacency="add_remove")
    both = dp.ComposedDpEvent([dp.SelfComposedDpEvent(once, 3), dp.SelfComposedDpEvent(step, 5)])
    mechanism = from_event(both, delta=DELTA, adjacency="add_remove").mechanism
    assert isinstance(mechanism, p.Composition)
    steps = [m.mechanism.steps for m in mechanism.parts if isinstance(m.mechanism, DpSgd)]
    assert steps == [3000, 5]


class Subclass(dp.GaussianDpEvent):  # type: ignore[misc] # mypy reads no types of it
    pass


REFUSED = [
    (dp.NonPrivateDpEvent(), "NonPrivateDpEvent has no counterpart"),
    (dp.UnsupportedDpEvent(), "UnsupportedDpEvent has no counterpart"),
    (dp.DiscreteLaplaceDpEvent(1.0, 1), "DiscreteLaplaceDpEvent has no"),
    (dp.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), "MixtureOfGaussiansDpEvent has no"),
    (dp.TruncatedSubsampledGaussianDpEvent(9, 0.5, 5, 0.0), "noise_multiplier must be positive"),
    (
        dp.SampledWithReplacementDpEvent(9, 3, dp.GaussianDpEvent(1.0)),
        "SampledWithReplacementDpEvent has no",
    ),
    (Subclass(1.0), "Subclass has no counterpart"),
    (dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)), "of LaplaceDpEvent has no"),
    (dp.PoissonSampledDpEvent(0.1, dp.NonPrivateDpEvent()), "of NonPrivateDpEvent has no"),
    (dp.PoissonSampledDpEvent(1.1, dp.GaussianDpEvent(1.0)), "must be in"),
    (dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.NonPrivateDpEvent()]), "NonPrivateDpEvent"),
    (dp.GaussianDpEvent(0.0), "noise_multiplier must be positive"),
    (dp.LaplaceDpEvent(math.nan), "noise_multiplier must be positive"),
    (dp.ZCDpEvent(0.1, 0.1), "xi must be 0"),
    (dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), -1), "count must be"),
    (dp.SampledWithoutReplacementDpEvent(9, 3, dp.GaussianDpEvent(1.0)), '"replace_one" only'),
    (dp.RandomizedResponseDpEvent(0.5, 2), '"replace_one" only'),
    (dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(1.0), 0.5, 1.0), "mean must be"),
]


@pytest.mark.parametrize(("event", "error"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_refused(event: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        from_event(event, delta=DELTA, adjacency="add_remove")


@pytest.mark.parametrize(
    ("mechanism", "error"),
    [
        (p.SparseVector(1, 2), "SparseVector has no counterpart"),
        (p.DpFtrl(10, 2, "tree"), "DpFtrl has no counterpart"),
        (p.RandomAllocation(10, 2, 1), "RandomAllocation has no counterpart"),
        (p.DpSgd("random_allocation", 10, 1, 2, epochs=1), "random allocation has no event"),
        (p.Selection("exponential", 1), "Selection has no counterpart"),
        (p.Gaussian(1, "sd"), "give a value for sd"),
        (p.Gaussian(1, "x ? 1.0 : 2.0"), "is not arithmetic"),
        (p.Gaussian(1, "abs(2.0)"), "only arithmetic"),
        (p.RepeatedSelection(p.Gaussian(1, 1), 5, -0.5), "eta must be at least 0"),
    ],
)
def test_not_exported(mechanism: p.Mechanism, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        to_event(Privacy(mechanism, DELTA, "add_remove"))


def test_truncated_lots(client: dpfront.Client) -> None:
    """Under zero-out, as its PLD accountant has them, and under add/remove with a public size."""
    event = dp.SelfComposedDpEvent(dp.TruncatedSubsampledGaussianDpEvent(5000, 0.02, 128, 1.0), 20)
    accountant = pld.PLDAccountant(NeighboringRelation.REPLACE_SPECIAL)
    theirs = float(accountant.compose(event).get_epsilon(DELTA))
    ours = client.epsilon(from_event(event, delta=DELTA, adjacency="add_remove")).epsilon
    assert 0.97 * theirs <= ours <= 1.001 * theirs
    with pytest.raises(ValueError, match='accounted under "add_remove" only'):
        from_event(event, delta=DELTA, adjacency="replace_one")
