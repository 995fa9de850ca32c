"""ε against values from elsewhere."""

from __future__ import annotations

import math

import pytest

import dpfront
from dpfront import Client, opacus, paper, plot
from dpfront._results.guarantees import Guarantee
from dpfront.privacy import Convention, Gaussian, Laplace, Privacy

from .conftest import make_study


def test_closed_forms(client: Client) -> None:
    laplace = client.epsilon(Privacy(Laplace(1.0, "scale"), 0, "add_remove"), scale=4.0)
    assert laplace.epsilon == 0.25
    assert laplace.delta == 0
    gaussian = client.epsilon(Privacy(Gaussian(1.0, 2.0), 1e-5, "add_remove"))

    def delta(epsilon: float, mu: float) -> float:
        """Balle and Wang (2018), Theorem 8."""

        def phi(x: float) -> float:
            return math.erfc(-x / math.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)

    assert delta(gaussian.epsilon, 0.5) == pytest.approx(1e-5, rel=1e-6)
    assert float(gaussian) == gaussian.epsilon


def test_the_convention_of_opacus(client: Client) -> None:
    """PRVAccountant of Opacus 1.6.0, with eps_error=1e-4:

    accountant.history = [(1.1, 1 / math.ceil(60000 / 256), 10 * math.ceil(60000 / 256))]
    accountant.get_epsilon(1e-5, eps_error=1e-4)
    """
    privacy = opacus(dataset_size=60_000, batch_size=256, epochs=10, delta=1e-5)
    ours = client.epsilon(privacy, noise_multiplier=1.1)
    assert ours.steps == 10 * 235
    assert ours.adjacency == "add_remove"
    assert ours.epsilon == pytest.approx(0.9176595, abs=1e-3)
    by_steps = opacus(dataset_size=60_000, batch_size=256, steps=2350, delta=1e-5)
    assert client.epsilon(by_steps, noise_multiplier=1.1).epsilon == ours.epsilon


def test_lots_that_do_not_come_out_even(client: Client) -> None:
    """The sampling rate of Opacus is 1/len(loader), not batch_size/dataset_size."""
    ours = opacus(dataset_size=1000, batch_size="b", epochs=5, noise_multiplier=1.0, delta=1e-4)
    even = opacus(dataset_size=1200, batch_size="b", epochs=5, noise_multiplier=1.0, delta=1e-4)
    naive = Privacy(
        dpfront.DpSgd("poisson", 1000, "b", 1.0, epochs=5, convention="rounded"),
        delta=1e-4,
        adjacency="add_remove",
    )
    assert client.epsilon(ours, b=600).epsilon == client.epsilon(even, b=600).epsilon
    assert client.epsilon(ours, b=600).steps == 10
    assert client.epsilon(naive, b=600).epsilon != client.epsilon(ours, b=600).epsilon
    # A discrete parameter is a double in expressions.
    assert client.epsilon(ours, b=600.0).epsilon == client.epsilon(ours, b=600).epsilon


def test_without_poisson_sampling_nothing_is_gained(client: Client) -> None:
    """An epoch in a random order costs as much as one Gaussian release of all records, whose
    sensitivity is twice the clipping norm where a record is replaced."""
    poisson = opacus(dataset_size=1000, batch_size=100, epochs=4, delta=1e-5)
    shuffled = opacus(
        dataset_size=1000, batch_size=100, epochs=4, delta=1e-5, poisson_sampling=False
    )
    passes = client.epsilon(shuffled, noise_multiplier=6.0)
    gaussian = client.epsilon(Privacy(Gaussian(2 * math.sqrt(4), 6.0), 1e-5, "replace_one"))
    assert passes.epsilon == pytest.approx(gaussian.epsilon, rel=1e-6)
    assert passes.adjacency == "replace_one"
    assert passes.epsilon > client.epsilon(poisson, noise_multiplier=6.0).epsilon


def test_the_convention_of_the_paper(client: Client) -> None:
    """Setting A of docs/reference/privacy.md, rounded up there."""
    published = paper(
        dataset_size=40_000, batch_size=128, noise_multiplier=1.0, steps=3120, delta=1e-6
    )
    assert 2.469 <= client.epsilon(published).epsilon <= 2.470
    tightest = paper(
        dataset_size=40_000,
        batch_size=128,
        noise_multiplier=1.0,
        steps=3120,
        delta=1e-6,
        accountant="tightest",
    )
    found = client.epsilon(tightest)
    assert 1.330 <= found.epsilon <= 1.331
    assert found.epsilon_lower is not None
    assert 1.0785 <= found.epsilon_lower <= 1.0795
    first = found.assumptions[0]
    assert (first.premise, first.checked_by) == ("sampler", "client")
    assert str(first).endswith(" (sampler, checked by the client)")


def test_curves_and_calibration(client: Client) -> None:
    privacy = opacus(dataset_size=60_000, batch_size=256, epochs="epochs", delta=1e-5)
    curve = client.epsilon_curve(privacy, [1, 5, 10], noise_multiplier=1.1, epochs=10)
    assert curve[0].epsilon < curve[1].epsilon < curve[2].epsilon
    assert curve[2] == client.epsilon(privacy, noise_multiplier=1.1, epochs=10)
    found = client.calibrate(privacy, "noise_multiplier", epsilon=1.0, min=0.5, max=10.0, epochs=10)
    assert found.reachable
    assert found.guarantee.epsilon == pytest.approx(1, abs=1e-6)
    assert found.guarantee.epsilon <= 1
    back = client.epsilon(privacy, noise_multiplier=found.value, epochs=10)
    assert back.epsilon == found.guarantee.epsilon


@pytest.mark.parametrize("lot", [101, 300, 700, 999, 1000])
def test_conventions(client: Client, lot: int) -> None:
    """Each is q and T of its tool, by its own formula, given as numbers."""

    def explicit(q: float, steps: int) -> Guarantee:
        mechanism = dpfront.DpSgd("poisson", None, None, 2.0, steps=steps, sampling_probability=q)
        return client.epsilon(Privacy(mechanism, 1e-5, "add_remove"))

    def of(convention: Convention) -> Guarantee:
        mechanism = dpfront.DpSgd("poisson", 1000, lot, 2.0, epochs=7, convention=convention)
        return client.epsilon(Privacy(mechanism, 1e-5, "add_remove"))

    loader = math.ceil(1000 / lot)
    assert of("opacus").epsilon == explicit(1 / loader, 7 * loader).epsilon
    assert of("rounded").epsilon == explicit(lot / 1000, 7 * round(1000 / lot)).epsilon
    google = of("tensorflow_privacy")
    assert google.epsilon == explicit(lot / 1000, math.ceil(7 * 1000 / lot)).epsilon
    dropped = opacus(
        dataset_size=1000,
        batch_size=lot,
        noise_multiplier=2.0,
        epochs=7,
        delta=1e-5,
        drop_last=True,
    )
    loader = 1000 // lot
    assert client.epsilon(dropped).epsilon == explicit(1 / loader, 7 * loader).epsilon
    for sized in (of("opacus"), google, client.epsilon(dropped)):
        assert any("zero-out" in a.text for a in sized.assumptions)
    assert not any("zero-out" in a.text for a in explicit(0.5, 3).assumptions)


def test_a_convention_is_required(client: Client) -> None:
    mechanism = dpfront.DpSgd("poisson", 1000, 100, 1.0, epochs=1)
    with pytest.raises(dpfront.InvalidArgument, match="convention"):
        client.epsilon(Privacy(mechanism, 1e-5, "add_remove"))


def test_warnings_come_with_the_number(client: Client) -> None:
    large = opacus(dataset_size=1000, batch_size=10, noise_multiplier=1.0, epochs=1, delta=0.5)
    said = r"delta 0\.5 is not below 1/n = 0\.001 \(n = 1000 records\)"
    with pytest.warns(UserWarning, match=said):
        assert {w.code for w in client.epsilon(large).warnings} == {"LARGE_DELTA"}
    with pytest.warns(UserWarning, match=said):
        client.tradeoff(large)
    parameters, metrics = [dpfront.Float("x", 0, 1)], [dpfront.epsilon(large)]
    with pytest.warns(UserWarning, match=said):
        dpfront.Study.create(client, "large-delta", parameters, metrics, algorithm="random")
    spent = client.create_ledger("large-delta", records=100, epsilon=1, delta=0.5).spent
    assert [w.code for w in spent.warnings] == ["LARGE_TEST_DELTA"]


def test_epsilons_that_no_run_has(client: Client) -> None:
    study = make_study(client)
    for bound in (0, -1, math.nan):
        with pytest.raises(dpfront.InvalidArgument, match=r"epsilon.*must be positive"):
            study.recommend(epsilon=bound)
        with pytest.raises(dpfront.InvalidArgument, match=r"epsilon.*must be positive"):
            study.ask(at_most={"epsilon": bound})
    with pytest.raises(ValueError, match="budget: must be positive"):
        client.price_search(Privacy(Gaussian(1, 1.0), 1e-5, "add_remove"), runs=4, budget=0)
    with pytest.raises(ValueError, match="max_runs: must be positive, is 0"):
        client.price_search(Privacy(Gaussian(1, 1.0), 1e-5, "add_remove"), runs=4, max_runs=0)


def test_tradeoff(client: Client) -> None:
    gaussian = Privacy(Gaussian(1.0, "noise"), 1e-5, "add_remove")
    found = client.tradeoff(gaussian, [0.1, 0.01], noise=1.0)
    # Φ(Φ⁻¹(0.1) + 1) and Φ(Φ⁻¹(0.01) + 1).
    assert found.tpr(0.1) == pytest.approx(0.389143691645, rel=1e-4)
    assert found.tpr(0.01) == pytest.approx(0.0923622480737, rel=1e-4)
    assert found.exact_profile
    assert found.guarantee == client.epsilon(gaussian, noise=1.0)
    assert "δ = 1e-05, add_remove adjacency" in str(found)
    with pytest.raises(ValueError, match=r"0\.5 is not one of 0\.1, 0\.01"):
        found.tpr(0.5)
    pandas = pytest.importorskip("pandas")
    assert isinstance(found.to_dataframe(), pandas.DataFrame)
    assert list(found.to_dataframe().tpr) == list(found.tprs)


def test_price_search(client: Client) -> None:
    run = Privacy(dpfront.DpSgd("fixed_size", 32561, 256, "noise", epochs=10), 1e-6, "replace_one")
    found = client.price_search(
        run, runs=32, test_records=16281, test_noise=0.005, checkpoints=10, noise=4.0
    )
    # Computed by an independent program.
    assert found["best of K, geometric"].training.epsilon == pytest.approx(0.533, abs=1e-3)
    curve = found["best curve of K, geometric"]
    assert curve.test is not None
    assert curve.test.epsilon == pytest.approx(0.259, abs=1e-3)
    assert curve.test.adjacency == "replace_one"
    assert found["all shown, adaptive, Gaussian filter"].adaptive
    capped = found["best of K, geometric, capped"]
    assert capped.max_runs == 128
    assert capped.mean_runs < 32
    assert "the search" in str(capped.training)
    with pytest.raises(KeyError, match="best of luck"):
        found["best of luck"]
    shown = str(found)
    assert "δ = 1e-06, replace_one adjacency" in shown
    assert "0.5331" in shown  # rounded up
    pandas = pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.epsilon) == [x.training.epsilon for x in found.ways]


def test_price_search_in_other_ways(client: Client) -> None:
    run = Privacy(dpfront.DpSgd("fixed_size", 32561, 256, 4.0, epochs=10), 1e-6, "replace_one")
    silent = dpfront.DpSgd("fixed_size", 32561, 256, 1e6, epochs=1)
    found = client.price_search(
        run,
        runs=32,
        distribution=0.5,
        max_runs=64,
        portfolios=[3],
        subset_share=0.2,
        subset_batch_size=128,
        final_run=silent,
        test_records=1000,
        test_epsilon=1,
    )
    ways = [x.way for x in found.ways]
    assert "best portfolio of 3, η = 0.5" in ways
    assert found["best of K, η = 0.5, capped"].max_runs == 64
    assert 0 < found.ways[-1].training.epsilon < found["one run, no search"].training.epsilon
    assert all(x.test is not None and 0.999 < x.test.epsilon <= 1 for x in found.ways)
    gaussian = Privacy(Gaussian(1.0, 10.0), 1e-6, "replace_one")
    poisson = client.price_search(gaussian, runs=3, distribution="poisson", budget=1)
    assert "capped" not in str(poisson)
    assert poisson["all shown, fixed beforehand"].runs_for_budget == 5
    with pytest.raises(ValueError, match="uniform"):
        client.price_search(run, runs=32, distribution="uniform")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only one"):
        client.price_search(run, runs=32, test_records=9, test_noise=1, test_epsilon=1)
    with pytest.raises(dpfront.InvalidArgument, match="max_runs"):
        client.price_search(run, runs=32, max_runs=31)


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_tradeoff_of_a_point(study: dpfront.Study, backend: plot.Backend) -> None:
    pytest.importorskip(backend)
    if backend == "matplotlib":
        pytest.importorskip("matplotlib").use("Agg")
    params = {"learning_rate": 0.1, "noise_variance": 4.0, "lot_size": 128, "epochs": 5}
    study.add_trial(params, error=0.5)
    (info,) = study.trials()
    curve = study.tradeoff(info.params)
    assert curve.guarantee.epsilon == pytest.approx(info.metrics["epsilon"], rel=1e-9)
    assert 0.01 in curve.fprs
    assert 0.1 in curve.fprs
    assert study.plot_tradeoff(info.params, backend=backend) is not None
    with pytest.raises(ValueError, match=r"metric .* is not ε"):
        study.tradeoff(info.params, metric="error")
