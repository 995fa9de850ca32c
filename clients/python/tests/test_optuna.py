"""The sampler, with the real Optuna."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import dpfront
from dpfront import Client, Maximize, Minimize

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from dpfront.integrations.optuna import DParetoSampler, distributions, epsilon  # noqa: E402

SPACE = {
    "rate": FloatDistribution(1e-3, 1, log=True),
    "sigma": FloatDistribution(0.5, 8, log=True),
    "epochs": IntDistribution(1, 20),
    "width": IntDistribution(16, 64, step=16),
    "momentum": FloatDistribution(0, 0.9, step=0.45),
    "bias": CategoricalDistribution([True, False, None]),
    "optimizer": CategoricalDistribution(["sgd", "adam"]),
}
PRIVACY = dpfront.opacus(
    dataset_size=10_000, batch_size=100, noise_multiplier="sigma", epochs="epochs", delta=1e-6
)
METRICS = [Maximize("accuracy", 0, "identity"), dpfront.epsilon(PRIVACY, 100)]


def objective(trial: Any) -> tuple[float, float]:
    rate = trial.suggest_float("rate", 1e-3, 1, log=True)
    sigma = trial.suggest_float("sigma", 0.5, 8, log=True)
    epochs = trial.suggest_int("epochs", 1, 20)
    width = trial.suggest_int("width", 16, 64, step=16)
    momentum = trial.suggest_float("momentum", 0, 0.9, step=0.45)
    bias = trial.suggest_categorical("bias", [True, False, None])
    trial.suggest_categorical("optimizer", ["sgd", "adam"])
    assert width in (16, 32, 48, 64)
    assert min(abs(momentum - m) for m in (0, 0.45, 0.9)) < 1e-12
    assert bias in (True, False, None)
    accuracy: float = 1 / (1 + math.log(rate / 0.1) ** 2 + 1 / epochs + sigma / 10)
    return accuracy, epsilon(trial)


def test_a_multi_objective_study_with_computed_epsilon(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-both", SPACE, METRICS, seed=1, initial_trials=6)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=8)
    ours = sampler.study
    assert ours.info().trial_counts["succeeded"] == 8
    for theirs, trial in zip(study.trials, ours.trials(), strict=True):
        assert theirs.values == [trial.metrics["accuracy"], trial.metrics["epsilon"]]
        assert theirs.params["rate"] == trial.params["rate"]
        assert str(theirs.params["bias"]) == trial.params["bias"]
        assert not trial.warnings  # its own report of ε agrees with the server's
    front = ours.front("observed")
    best = {t.user_attrs["dpareto:trial"] for t in study.best_trials}
    assert {f"{ours.name}/trials/{p.trial}" for p in front} == best
    # Model-based from the 7th trial on.
    assert ours.trials()[-1].raw.provenance.algorithm != ours.trials()[0].raw.provenance.algorithm


def test_failures_and_results_that_are_not_finite(client: Client) -> None:
    sampler = DParetoSampler.create(
        client, "optuna-failures", SPACE, METRICS, algorithm="random", seed=1
    )
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def sometimes(trial: Any) -> tuple[float, float]:
        objective(trial)
        if trial.number == 0:
            raise ZeroDivisionError("no gradient")
        return (math.nan if trial.number == 1 else math.inf), 1.0

    study.optimize(sometimes, n_trials=3, catch=(ZeroDivisionError,))
    assert [t.state for t in sampler.study.trials()] == ["infeasible"] * 3


def test_it_stops_when_the_budget_is_spent(client: Client) -> None:
    sampler = DParetoSampler.create(
        client, "optuna-budget", SPACE, METRICS, algorithm="random", max_trials=3
    )
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == 3
    with pytest.raises(dpfront.StudyDone):
        study.ask()
    assert study.trials[-1].state == optuna.trial.TrialState.FAIL


def test_enqueued_trials_are_conditions(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-enqueued", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.enqueue_trial({"epochs": 7, "bias": None})
    study.optimize(objective, n_trials=1)
    trial = sampler.study.get_trial(1)
    assert (trial.params["epochs"], trial.params["bias"]) == (7, "None")
    assert study.trials[0].params["bias"] is None
    assert trial.state == "succeeded"


def test_ask_and_tell_of_optuna(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-ask", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    trials = [study.ask(SPACE) for _ in range(3)]
    for trial in trials:
        study.tell(trial, objective(trial))
    assert sampler.study.info().trial_counts["succeeded"] == 3


def test_one_reported_metric_and_pruning(client: Client) -> None:
    """A study with one direction gets its ε on the side."""
    base = DParetoSampler.create(
        client,
        "optuna-single",
        SPACE,
        METRICS,
        algorithm="random",
        checkpoint_parameter="epochs",
    )
    sampler = DParetoSampler(base.study, metrics=["accuracy"], choices=base._choices)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def pruned(trial: Any) -> float:
        accuracy, _ = objective(trial)
        trial.suggest_float("own", 0, 1)  # a parameter of Optuna alone
        if trial.number == 0:
            trial.report(accuracy, step=1)
            raise optuna.TrialPruned
        return accuracy

    study.optimize(pruned, n_trials=2)
    first, second = base.study.trials()
    assert (first.state, first.raw.final_measurement.step) == ("succeeded", 1)
    assert second.metrics["accuracy"] == study.trials[1].value


def test_mistakes_are_told(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-mistakes", SPACE, METRICS, algorithm="random")
    with pytest.raises(ValueError, match="epsilon is to be maximized"):
        optuna.create_study(directions=["maximize", "maximize"], sampler=sampler).ask()
    with pytest.raises(ValueError, match="has 1 directions for accuracy, epsilon"):
        optuna.create_study(direction="maximize", sampler=sampler).ask()
    with pytest.raises(ValueError, match="has no eror"):
        DParetoSampler(sampler.study, metrics=["eror"])
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    trial = study.ask()
    with pytest.raises(ValueError, match="does not hold the value"):
        trial.suggest_float("rate", 2, 3, log=True)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)


def test_conditional_parameters(client: Client) -> None:
    study = dpfront.Study.create(
        client,
        "optuna-conditional",
        [
            dpfront.Categorical("optimizer", ["sgd", "adam"]),
            dpfront.Float("beta", 0.5, 0.99, condition={"optimizer": "adam"}),
            dpfront.Discrete("power", [1, 2, 8]),
        ],
        [Minimize("error", 1)],
        algorithm="random",
        seed=1,
    )
    sampler = DParetoSampler(study)
    theirs = optuna.create_study(sampler=sampler)

    def objective(trial: Any) -> float:
        power: float = trial.suggest_categorical("power", [1.0, 2.0, 8.0])
        if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "adam":
            return float(trial.suggest_float("beta", 0.5, 0.99)) / power
        with pytest.raises(ValueError, match="its condition"):
            trial.suggest_float("beta", 0.5, 0.99)
        return 0.9

    theirs.optimize(objective, n_trials=8)
    assert study.info().trial_counts["succeeded"] == 8
    assert {t.params["optimizer"] for t in theirs.trials} == {"sgd", "adam"}


def test_distributions_there_and_back(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-space", SPACE, METRICS, algorithm="random")
    again = distributions(sampler.study.spec, sampler._choices)
    assert again == SPACE
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.infer_relative_search_space(None, None) == SPACE
    copy.study.client.close()


def test_several_threads(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-jobs", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=12, n_jobs=4)
    assert sampler.study.info().trial_counts["succeeded"] == 12


def test_ctrl_c_gives_the_trial_back(client: Client) -> None:
    """Optuna tells a sampler of an interruption as of any failure."""
    sampler = DParetoSampler.create(client, "optuna-ctrl-c", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def interrupted(trial: Any) -> tuple[float, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=1)
    assert sampler.study.get_trial(1).state == "queued"


def test_reasons_of_failures(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-reasons", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def fails(trial: Any) -> tuple[float, float]:
        if trial.number == 0:
            raise dpfront.Infeasible("too wide")
        raise ZeroDivisionError("no gradient")

    study.optimize(fails, n_trials=2, catch=(ZeroDivisionError, dpfront.Infeasible))
    reasons = [t.state_reason for t in sampler.study.trials("state = INFEASIBLE")]
    assert reasons == ["too wide", "ZeroDivisionError: no gradient"]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_study_that_is_done_ends_the_loop(client: Client, n_jobs: int) -> None:
    sampler = DParetoSampler.create(
        client, f"optuna-done-{n_jobs}", SPACE, METRICS, algorithm="random", max_trials=4
    )
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=20, n_jobs=n_jobs)
    study.optimize(objective, n_trials=20, n_jobs=n_jobs)  # a program that is started again
    assert sampler.study.info().trial_counts["succeeded"] == 4
    complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    assert len(complete) == 4
    assert {t.state.name for t in study.trials} <= {"COMPLETE", "PRUNED"}


def test_constraints_are_attributes(client: Client) -> None:
    sampler = DParetoSampler.create(
        client,
        "optuna-constraints",
        {"x": FloatDistribution(0, 1)},
        [Minimize("error", 1), dpfront.Constraint("gap", max=0.05)],
        algorithm="random",
    )
    study = optuna.create_study(sampler=sampler)

    def objective(trial: Any) -> float:
        if trial.number > 0:
            trial.set_user_attr("gap", 0.01)
        return float(trial.suggest_float("x", 0, 1))

    with pytest.raises(dpfront.InvalidArgument, match="gap"):
        study.optimize(objective, n_trials=1)
    assert sampler.study.get_trial(1).state == "queued"  # and nobody renews its lease
    study.optimize(objective, n_trials=1)
    assert sampler.study.get_trial(1).metrics["gap"] == 0.01


@pytest.mark.parametrize(
    ("step", "value", "state"),
    [(0, 0.5, "failed"), (1, math.nan, "infeasible"), (1, 0.5, "succeeded")],
)
def test_what_pruned_trials_are_worth(client: Client, step: int, value: float, state: str) -> None:
    """A step of 0 would be the end of the whole run."""
    base = DParetoSampler.create(
        client,
        f"optuna-pruned-{step}-{value}".replace(".", "-"),
        SPACE,
        METRICS,
        algorithm="random",
        checkpoint_parameter="epochs",
    )
    sampler = DParetoSampler(base.study, metrics=["accuracy"], choices=base._choices)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def pruned(trial: Any) -> float:
        objective(trial)
        trial.report(value, step=step)
        raise optuna.TrialPruned

    study.optimize(pruned, n_trials=1)
    assert base.study.get_trial(1).state == state
