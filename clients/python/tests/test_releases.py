"""What may be published: the four ways of docs/reference/publishing.md, and their ledgers."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from typing import Any

import pytest

import dpfront
from dpfront import AsyncClient, AsyncStudy, Client, Float, Int, Minimize, Study

from .conftest import Server

PRIVACY = dpfront.Privacy(
    dpfront.DpSgd(
        "fixed_size",
        dataset_size=32_561,
        batch_size=256,
        noise_multiplier="noise_multiplier",
        epochs="epochs",
    ),
    delta=1e-6,
    adjacency="replace_one",
)
PARAMETERS = [Float("noise_multiplier", 4, 16, log=True), Int("epochs", 1, 4)]
METRICS = [Minimize("error", 1, "logit"), dpfront.epsilon(PRIVACY)]

_counter = itertools.count(1)


def new_id() -> str:
    return f"published-{next(_counter)}"


def ledger(client: Client, **budget: Any) -> dpfront.LedgerInfo:
    budget = {"records": 10_000, "epsilon": 2, "delta": 1e-6, **budget}
    return client.create_ledger(new_id(), **budget)


def fixed_study(client: Client, test_ledger: str, errors: list[float]) -> Study:
    """Runs a study of configurations that were fixed beforehand."""
    study = Study.create(
        client,
        new_id(),
        PARAMETERS,
        METRICS,
        algorithm="quasi_random",
        max_trials=len(errors),
        test_ledger=test_ledger,
    )
    study.optimize(lambda trial: errors[trial.number - 1])
    return study


def test_a_ledger(client: Client) -> None:
    opened = ledger(client, description="test records")
    assert (opened.records, opened.epsilon, opened.delta) == (10_000, 2, 1e-6)
    assert (opened.adjacency, opened.description) == ("replace_one", "test records")
    assert (opened.charges, opened.spent.epsilon, opened.remaining_epsilon) == (0, 0, 2)
    again = client.create_ledger(
        opened.id, records=10_000, epsilon=2, delta=1e-6, description="test records"
    )
    assert again == opened == client.ledger(opened.id) == client.ledger(f"ledgers/{opened.id}")
    with pytest.raises(dpfront.AlreadyExists):
        client.create_ledger(opened.id, records=10_000, epsilon=3, delta=1e-6)
    with pytest.raises(dpfront.InvalidArgument, match=r"ledger\.delta"):
        ledger(client, delta=0)
    with pytest.raises(dpfront.NotFound):
        client.ledger("nobody")
    assert opened in client.ledgers()


def test_a_choice_among_models_that_were_scored_elsewhere(client: Client) -> None:
    people = ledger(client)
    accuracies = [0.1, 0.2, 0.95, 0.3]

    def choose(request_id: str = "") -> dpfront.Release:
        return client.select_privately(
            people, accuracies, sensitivity=1e-4, epsilon=1, request_id=request_id
        )

    chosen = choose("model")
    # The odds against another one are exp(1 * 0.65 / 2e-4) to 1.
    assert chosen.index == 2
    assert chosen.best is None
    assert (chosen.guarantee.epsilon, chosen.guarantee.delta) == (1, 0)
    assert chosen.guarantee.adjacency == "replace_one"
    assert chosen.ledger == people.id
    assert people.id in chosen.protects
    assert chosen.assumptions
    assert chosen.not_covered
    assert chosen.training_guarantee is None
    assert choose("model") == chosen  # costs nothing again
    assert client.release(chosen.name) == chosen
    assert client.releases(people) == client.releases(people.id) == [chosen]
    (charge,) = client.charges(people)
    assert (charge.number, charge.resource) == (1, chosen.name)
    assert charge.guarantee.epsilon == 1
    assert client.ledger(people.id).spent.epsilon == 1
    with pytest.raises(dpfront.InvalidArgument, match="request_id"):
        client.select_privately(people, accuracies, 1e-4, epsilon=0.5, request_id="model")
    choose()
    with pytest.raises(dpfront.ResourceExhausted, match="exceeds the remaining budget"):
        choose()
    assert client.ledger(people.id).charges == 2
    with pytest.raises(TypeError, match="utilities: 'x' is not a number"):
        client.select_privately(people, ["x"], 1, 1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="method: 'best' is not one of"):
        client.select_privately(people, [1], 1, 1, method="best")  # type: ignore[arg-type]


def test_a_list_that_was_fixed_beforehand(client: Client) -> None:
    people = ledger(client)
    study = fixed_study(client, people.id, [0.9, 0.9, 0.01, 0.9])
    assert study.publication is None
    best = study.release_best("error", epsilon=0.5, request_id="best")
    assert best.best is not None
    assert best.best.params == study.get_trial(3).params
    assert best.best.values.keys() == {"epsilon"}  # the error stays secret
    assert best.guarantee.epsilon == 0.5
    assert best.training_guarantee is not None
    assert best.training_guarantee.epsilon > best.best.values["epsilon"]
    assert "permute-and-flip" in best.mechanism
    assert study.release_best("error", epsilon=0.5, request_id="best") == best
    front = study.release_front(epsilon=0.5, delta=1e-7)
    assert front.points
    assert front.noise_standard_deviation > 0
    point = front.points[0]
    assert point.standard_deviations["error"] > 0
    assert point.as_dict() == {
        **point.values,
        **point.params,
        "error_standard_deviation": point.standard_deviations["error"],
    }
    assert study.releases() == [best, front]
    text = str(front)
    assert "guarantee: ε at most 0.5, δ = 1e-07, replace_one adjacency, " in text
    assert ", for each of the 10000 " in text
    assert "\ntraining records: ε at most " in text
    larger = dataclasses.replace(front.guarantee, epsilon=29.8301)  # rounded up
    assert "ε at most 29.84," in str(dataclasses.replace(front, guarantee=larger))
    third = dataclasses.replace(front.guarantee, delta=1 / 30000)
    assert "δ = 3.334e-05," in str(dataclasses.replace(front, guarantee=third))
    values = {"epsilon": 1.00049, "error": 0.100049}
    rounded = dataclasses.replace(front, points=(dataclasses.replace(point, values=values),))
    assert str(rounded).splitlines()[-1].split()[:2] == ["1.001", "0.1"]  # ε up, error to nearest
    assert "\nprovided that " in text
    assert "\nnot covered: " in text
    assert text.splitlines()[-len(front.points) - 1].split()[0] == next(iter(point.values))
    assert [c.resource for c in client.charges(people)] == [best.name, front.name]
    nothing = study.release_best("error", at_most={"epsilon": 1e-9}, epsilon=0.1)
    assert nothing.best is None
    assert "NOTHING_WITHIN_BOUNDS" in {w.code for w in nothing.warnings}
    with pytest.raises(dpfront.InvalidArgument, match="eror"):
        study.release_best("eror", epsilon=0.1)
    with pytest.raises(dpfront.InvalidArgument, match="epsilon"):
        study.release_best("error")
    with pytest.raises(dpfront.InvalidArgument, match=r"at_most.*epsilon.*must be positive"):
        study.release_best("error", epsilon=0.1, at_most={"epsilon": 0})
    with pytest.raises(dpfront.InvalidArgument, match=r"epsilon.*must be positive"):
        study.release_best("error", epsilon=-1)
    for zero in (0, 0.0):  # which would stand for an argument that is left out
        with pytest.raises(ValueError, match="epsilon: must be positive, is 0"):
            study.release_best("error", epsilon=zero)
        with pytest.raises(ValueError, match="epsilon: must be positive, is 0"):
            study.release_front(epsilon=zero, delta=1e-7)
        with pytest.raises(ValueError, match="delta: must be positive, is 0"):
            study.release_front(epsilon=0.5, delta=zero)


def test_a_study_that_looked_at_the_data_releases_nothing_but_noise(client: Client) -> None:
    people = ledger(client)
    study = Study.create(
        client, new_id(), PARAMETERS, METRICS, max_trials=1, test_ledger=f"ledgers/{people.id}"
    )
    study.optimize(lambda trial: 0.5)
    with pytest.raises(dpfront.FailedPrecondition):
        study.release_best("error", epsilon=0.1)
    assert client.ledger(people.id).charges == 0
    model = {
        "algorithm": 1,
        "prior_mean": 0.2,
        "prior_standard_deviation": 0.05,
        "noise_standard_deviation": 0.01,
        "length_scale": 0.2,
    }
    drawn = study.release_best("error", epsilon=0.25, kusner=model)
    assert drawn.guarantee.epsilon == 0.25
    assert drawn.training_guarantee is None
    assert "not differential privacy" in drawn.model_claim
    assert f"claim of a paper, {drawn.model_claim}" in str(drawn)
    value = study.release_best("error", epsilon=0.25, kusner={"algorithm": 3})
    assert value.model_claim == ""
    assert value.best is not None
    assert value.best.params == {}
    assert client.ledger(people.id).spent.epsilon == 0.5
    with pytest.raises(ValueError, match=r"kusner: .*sigma"):
        study.release_best("error", epsilon=0.1, kusner={"sigma": 1})
    with pytest.raises(dpfront.InvalidArgument, match=r"kusner\.algorithm"):
        study.release_best("error", epsilon=0.1, kusner={"algorithm": 2})


def test_a_private_front(client: Client) -> None:
    study = Study.create(
        client,
        new_id(),
        PARAMETERS,
        METRICS,
        max_trials=6,
        initial_trials=6,
        private_mode=dpfront.PrivateMode(
            test_set_size=16_281, test_epsilon=1, train_epsilon=8, delta=1e-6
        ),
        test_ledger=ledger(client, records=16_281, epsilon=1, delta=1e-4).id,
        train_ledger=ledger(client, records=32_561, epsilon=8, delta=1e-4).id,
    )
    declared = study.publication
    assert declared is not None
    assert declared.test is not None
    assert (declared.test.epsilon, declared.train.epsilon) == (1, 8)
    assert declared.noise_standard_deviation > 0
    assert declared.assumptions
    assert declared.not_covered
    assert (declared.values, declared.max_values) == (0, 6)
    study.optimize(lambda trial: 0.2 + 0.01 * trial["noise_multiplier"])
    with pytest.raises(ValueError, match="epsilon: must be positive, is 0"):
        study.release_best("error", epsilon=0)
    now = study.info().publication
    assert now is not None
    assert (now.values, now.train) == (6, declared.train)
    assert now.spent_train is not None
    assert 0 < now.spent_train.epsilon <= 8
    assert now.spent_test is not None
    assert 0 < now.spent_test.epsilon <= 1
    front = study.release_front()
    assert front.guarantee.epsilon == 1
    assert front.training_guarantee is not None
    assert front.training_guarantee.epsilon == 8
    assert front.ledger == ""
    assert {"error", "epsilon"} <= front.points[0].values.keys()
    assert study.release_best("error").best is not None


def test_a_private_study_is_no_public_prior(client: Client) -> None:
    """Who says so of a study's priors has not said it of the study itself."""
    public = Study.create(client, new_id(), PARAMETERS, METRICS, max_trials=1)
    mode = dpfront.PrivateMode(
        test_set_size=16_281,
        test_epsilon=1,
        train_epsilon=8,
        delta=1e-6,
        prior_studies_are_public=True,
    )
    private = Study.create(
        client,
        new_id(),
        PARAMETERS,
        METRICS,
        max_trials=6,
        private_mode=mode,
        prior_studies=[public.id],
        test_ledger=ledger(client, records=16_281, epsilon=9, delta=1e-4).id,
        train_ledger=ledger(client, records=32_561, epsilon=99, delta=1e-4).id,
    )
    clip = dpfront.Float("clip", 0.1, 10)
    with pytest.raises(dpfront.InvalidArgument, match="prior_studies_are_public"):
        private.extend(new_id(), [clip], {"clip": 1})
    private.extend(new_id(), [clip], {"clip": 1}, private_mode=mode)


def test_constant_points_of_a_private_study_are_public(client: Client) -> None:
    """Who says so of some points has not said it of others."""
    mode = dpfront.PrivateMode(
        test_set_size=16_281,
        test_epsilon=1,
        train_epsilon=8,
        delta=1e-6,
        constant_points_are_public=True,
    )
    fields: dict[str, Any] = {
        "max_trials": 6,
        "constant_points": [dpfront.ConstantPoint("majority", {"error": 0.25, "epsilon": 0})],
        "test_ledger": ledger(client, records=16_281, epsilon=9, delta=1e-4).id,
        "train_ledger": ledger(client, records=32_561, epsilon=99, delta=1e-4).id,
    }
    unsaid = dataclasses.replace(mode, constant_points_are_public=False)
    with pytest.raises(dpfront.InvalidArgument, match="constant_points_are_public"):
        Study.create(client, new_id(), PARAMETERS, METRICS, private_mode=unsaid, **fields)
    private = Study.create(client, new_id(), PARAMETERS, METRICS, private_mode=mode, **fields)
    (point,) = private.front("observed")
    assert point.constant_point == "majority"
    same = private.extend(new_id(), [], {}, prior_studies=[])
    assert list(same.spec.constant_points) == list(private.spec.constant_points)
    other = [dpfront.ConstantPoint("other", {"error": 0.2, "epsilon": 0})]
    for metrics in (None, METRICS):
        with pytest.raises(dpfront.InvalidArgument, match="constant_points_are_public"):
            private.extend(
                new_id(), [], {}, metrics=metrics, prior_studies=[], constant_points=other
            )
    private.extend(new_id(), [], {}, prior_studies=[], private_mode=mode, constant_points=other)


def test_one_tuned_model_of_a_secret_number(client: Client) -> None:
    study = Study.create(
        client,
        new_id(),
        PARAMETERS,
        METRICS,
        algorithm="random",
        random_stopping=dpfront.RandomStopping(
            mean_trials=2, eta=0, listed=20, metric="error", test_set_size=16_281, test_epsilon=1
        ),
        test_ledger=ledger(client, records=16_281, epsilon=1, delta=1e-4).id,
        train_ledger=ledger(client, records=32_561, epsilon=1000, delta=1e-4).id,
    )
    assert study.optimize(lambda trial: 0.25, progress=True) >= 1
    declared = study.info().publication  # by now: the study is prepared
    assert declared is not None
    assert declared.test is not None
    assert declared.test.epsilon == 1
    assert declared.values == 0
    assert declared.spent_train is None
    release = study.release_best("error")
    assert release.best is not None
    assert abs(release.best.values["error"] - 0.25) < 0.1
    assert release.training_guarantee == declared.train
    assert study.release_best("error").points == release.points
    with pytest.raises(dpfront.FailedPrecondition):
        study.release_front()
    with pytest.raises(dpfront.FailedPrecondition):
        study.front()


def test_the_curves_of_a_portfolio(client: Client) -> None:
    study = Study.create(
        client,
        new_id(),
        PARAMETERS,
        METRICS,
        checkpoint_parameter="epochs",
        algorithm="random",
        random_stopping=dpfront.RandomStopping(
            mean_trials=2, eta=1, metric="error", release="curve", portfolio=2, curve_points=2
        ),
        train_ledger=ledger(client, records=32_561, epsilon=1000, delta=1e-4).id,
    )

    def train(trial: dpfront.Trial) -> float:
        epochs = int(trial.params["epochs"])
        for epoch in range(1, epochs + 1):
            trial.report(epoch, error=0.5 - 0.01 * epoch)
        return 0.5 - 0.01 * epochs

    assert study.optimize(train) >= 2
    release = study.release_best("error")
    assert {p.run for p in release.points} == {1, 2}
    for p in release.points:
        assert p.values["error"] == pytest.approx(0.5 - 0.01 * int(p.params["epochs"]))
    assert 1 <= len(release.front) <= len(release.points) <= 4
    assert release.front[0] == release.best
    assert sorted(release.front, key=lambda p: -p.values["error"]) == list(release.front)
    assert "on_front" in str(release)


def test_with_asyncio(shared_server: Server) -> None:
    async def body() -> None:
        async with AsyncClient(shared_server.address) as client:
            people = await client.create_ledger(new_id(), records=10_000, epsilon=2, delta=1e-6)
            assert people == await client.ledger(people.id)
            assert people in await client.ledgers()
            study = await AsyncStudy.create(
                client,
                new_id(),
                PARAMETERS,
                METRICS,
                algorithm="random",
                max_trials=3,
                test_ledger=people.id,
            )
            assert study.publication is None

            async def objective(trial: dpfront.AsyncTrial) -> float:
                return 0.01 if trial.number == 2 else 0.9

            await study.optimize(objective)
            best = await study.release_best("error", epsilon=0.5, request_id="best")
            assert best.best is not None
            assert best.best.params == (await study.get_trial(2)).params
            front = await study.release_front(epsilon=0.5, delta=1e-7)
            assert await study.releases() == [best, front]
            chosen = await client.select_privately(people, [0.1, 0.9], 1e-4, 0.1)
            assert chosen.index == 1
            assert await client.release(chosen.name) == chosen
            assert await client.releases(people) == [chosen]
            assert len(await client.charges(people)) == 3

    asyncio.run(body())
