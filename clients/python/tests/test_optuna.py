"""The sampler, with the real Optuna."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import logging
import math
import pickle
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import Client, Maximize, Minimize

from .conftest import Server

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from dpfront.integrations import optuna as bridge  # noqa: E402
from dpfront.integrations.optuna import (  # noqa: E402
    DParetoSampler,
    catching,
    distributions,
    dpareto_trial,
    epsilon,
    infeasible,
    report,
    should_stop,
)

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


DIRECTIONS = ["maximize", "minimize"]


def make(client: Client, id: str, **fields: Any) -> tuple[DParetoSampler, Any]:
    """Returns a sampler of random suggestions, and an Optuna study of two objectives with it."""
    fields = {"algorithm": "random", "seed": 1, **fields}
    sampler = DParetoSampler.create(client, f"optuna-{id}", SPACE, METRICS, **fields)
    return sampler, optuna.create_study(directions=DIRECTIONS, sampler=sampler)


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


def test_results_that_are_not_finite(client: Client) -> None:
    """Optuna takes infinity for a result, and NaN for a failure like any other."""
    sampler, study = make(client, "not-finite")

    def wild(trial: Any) -> tuple[float, float]:
        objective(trial)
        return (math.inf if trial.number == 0 else math.nan), 1.0

    study.optimize(wild, n_trials=2)
    first, second = sampler.study.trials()
    assert first.state == "infeasible"
    assert (second.state, second.raw.attempt) == ("queued", 1)

    study.optimize(catching(wild), n_trials=1)
    trial = sampler.study.get_trial(2)
    assert trial.state == "infeasible"
    assert "the objective returned (nan, 1.0)" in trial.state_reason
    assert study.trials[-1].state.name == "PRUNED"


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


def test_hyperband_of_optuna(client: Client) -> None:
    """Its samplers see a study of another class, with fewer methods."""
    sampler = DParetoSampler.create(
        client,
        "optuna-hyperband",
        SPACE,
        METRICS,
        returns=["accuracy"],
        algorithm="random",
        max_trials=2,
    )
    pruner = optuna.pruners.HyperbandPruner()
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    study.optimize(lambda trial: train(trial)[0], n_trials=4)
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 2
    with pytest.raises(dpfront.StudyDone):
        study.ask()


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


def test_one_objective_of_optuna(client: Client) -> None:
    """A study with one direction gets its ε on the side. Optuna's reports are for its pruner."""
    sampler = DParetoSampler.create(
        client,
        "optuna-single",
        SPACE,
        METRICS,
        returns=["accuracy"],
        algorithm="random",
        checkpoint_parameter="epochs",
    )
    pruner = optuna.pruners.ThresholdPruner(lower=0.5)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)

    def train(trial: Any) -> float:
        trial.suggest_int("epochs", 1, 20)
        trial.suggest_float("own", 0, 1)  # a parameter of Optuna alone
        if trial.number == 0:
            report(trial, 1, 0.25)
        for step in range(2):
            trial.report(0.1 if trial.number < 2 else 0.9, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 0.75

    study.optimize(train, n_trials=3)
    assert [t.state.name for t in study.trials] == ["PRUNED", "PRUNED", "COMPLETE"]
    reported, pruned, complete = sampler.study.trials()
    # Steps of Optuna often begin at 0: taken for epochs, their ε would be too small.
    assert (reported.metrics["accuracy"], reported.raw.final_measurement.step) == (0.25, 1)
    assert (pruned.state, pruned.state_reason) == ("failed", "pruned")
    assert "accuracy" not in pruned.metrics
    assert complete.metrics["accuracy"] == 0.75
    assert complete.metrics["epsilon"] == pytest.approx(
        complete.raw.computed_metrics["epsilon"].value
    )


def test_mistakes_are_told(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-mistakes", SPACE, METRICS, algorithm="random")
    with pytest.raises(ValueError, match="epsilon is to be maximized"):
        optuna.create_study(directions=["maximize", "maximize"], sampler=sampler).ask()
    with pytest.raises(ValueError, match="has 1 directions for accuracy, epsilon"):
        optuna.create_study(direction="maximize", sampler=sampler).ask()
    with pytest.raises(ValueError, match="has no eror"):
        DParetoSampler(sampler.study, returns=["eror"])
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
    copy.study._transport.close()


def test_several_threads(client: Client) -> None:
    sampler = DParetoSampler.create(client, "optuna-jobs", SPACE, METRICS, algorithm="random")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=12, n_jobs=4)
    assert sampler.study.info().trial_counts["succeeded"] == 12


@pytest.mark.parametrize("named", [False, True])
def test_a_parameter_that_the_study_does_not_have_is_told_once(
    client: Client, caplog: pytest.LogCaptureFixture, named: bool
) -> None:
    sampler, _ = make(client, f"unknown-parameter-{named}".lower())
    if named:
        other = optuna.samplers.RandomSampler()
        sampler = DParetoSampler(sampler.study, choices=sampler._choices, independent_sampler=other)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def more(trial: Any) -> Any:
        trial.suggest_float("dropout", 0, 1)
        return objective(trial)

    with caplog.at_level(logging.WARNING, "dpfront"):
        study.optimize(more, n_trials=2)
    assert caplog.text.count("dropout is not a parameter of") == (0 if named else 1)


@pytest.mark.parametrize("error", [KeyError, NotImplementedError, KeyboardInterrupt])
def test_a_programming_error_teaches_nothing(
    client: Client, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    sampler, study = make(client, f"error-{error.__name__.lower()}")

    def wrong(trial: Any) -> tuple[float, float]:
        raise error("sigmaa")

    with caplog.at_level(logging.WARNING, "dpfront"), pytest.raises(error, match="sigmaa"):
        study.optimize(wrong, n_trials=3)
    trial = sampler.study.get_trial(1)
    assert (trial.state, set(trial.metrics)) == ("queued", {"epsilon"})
    assert "goes back to the queue, and the study learns nothing" in caplog.text
    study.optimize(objective, n_trials=1)  # corrected
    assert sampler.study.get_trial(1).state == "succeeded"


def test_the_exception_of_the_objective_is_not_hidden(server: Server) -> None:
    """Its server is gone when the objective fails."""
    with Client(server.address, patience=5) as client:
        _, study = make(client, "gone")

        def wrong(trial: Any) -> tuple[float, float]:
            server.kill()
            raise KeyError("sigmaa")

        with pytest.raises(KeyError, match="sigmaa"):
            study.optimize(wrong, n_trials=1)


def test_a_configuration_that_always_fails_is_given_up(client: Client) -> None:
    """Optuna's catch= goes on, and asks again."""
    sampler, study = make(client, "catch", max_attempts=2)

    def fails(trial: Any) -> tuple[float, float]:
        raise ValueError("no gradient")

    study.optimize(fails, n_trials=4, catch=(ValueError,))
    assert [t.state for t in sampler.study.trials()] == ["failed", "failed"]


def test_failures_that_are_caught_make_a_configuration_infeasible(client: Client) -> None:
    sampler, study = make(client, "caught")

    def fails(trial: Any) -> tuple[float, float]:
        match trial.number:
            case 0:
                raise dpfront.Infeasible("too wide")
            case 1:
                raise ZeroDivisionError("no gradient")
            case 2:
                raise infeasible(trial, "diverged")
            case 3:
                raise optuna.TrialPruned
            case 4:
                report(trial, 1, accuracy=math.nan)
            case 5:
                raise KeyError("sigmaa")
        raise AssertionError("never here")

    with pytest.raises(KeyError, match="sigmaa"):
        study.optimize(catching(fails, ArithmeticError), n_trials=8)
    trials = [(t.state, t.state_reason) for t in sampler.study.trials()]
    assert trials[:4] == [
        ("infeasible", "too wide"),
        ("infeasible", "ZeroDivisionError: no gradient"),
        ("infeasible", "diverged"),
        ("failed", "pruned"),
    ]
    assert trials[4][0] == "infeasible"
    assert "accuracy is nan" in trials[4][1]
    assert trials[5][0] == "queued"
    assert [t.state.name for t in study.trials] == ["PRUNED"] * 5 + ["FAIL"]


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


def train(trial: Any, stop_at: int = 0) -> tuple[float, float]:
    """Reports every epoch, and ends when it is told to."""
    sigma = trial.suggest_float("sigma", 0.5, 8, log=True)
    accuracy = 0.0
    for epoch in range(1, trial.suggest_int("epochs", 1, 20) + 1):
        accuracy = 1 - 1 / (1 + epoch) - sigma / 100
        if epoch == stop_at:
            trial.study.sampler.study.stop_trial(dpareto_trial(trial).number, "enough")
        if report(trial, epoch, accuracy=accuracy):
            break
    return accuracy, epsilon(trial)


def test_reports_with_several_objectives_are_points_of_the_front(client: Client) -> None:
    """Optuna's own report raises NotImplementedError."""
    sampler, study = make(client, "reports", checkpoint_parameter="epochs")
    study.optimize(train, n_trials=4)
    ours = {t.number: t for t in sampler.study.trials()}
    early = [p for p in sampler.study.front("observed") if p.step < last_step(ours[p.trial])]
    assert early
    for point in early:
        measured = {m.step: m for m in ours[point.trial].measurements}[point.step]
        assert point.values["accuracy"].value == measured.metrics["accuracy"]
        assert point.values["epsilon"].value < epsilon(study.trials[point.trial - 1])


def last_step(trial: dpfront.TrialInfo) -> int:
    ended = trial.raw.final_measurement.step
    return ended or int(trial.params["epochs"])


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_run_that_is_told_to_stop(client: Client, checkpoint: bool) -> None:
    """With a checkpoint parameter its ε covers the epochs that were run."""
    fields = {"checkpoint_parameter": "epochs"} if checkpoint else {}
    sampler, study = make(client, f"stop-{checkpoint}".lower(), **fields)
    study.enqueue_trial({"epochs": 20})
    study.optimize(lambda trial: train(trial, stop_at=3), n_trials=1)
    trial = sampler.study.get_trial(1)
    whole = trial.raw.computed_metrics["epsilon"].value
    assert (trial.state, len(trial.measurements)) == ("succeeded", 3)
    assert study.trials[0].values == [trial.metrics["accuracy"], trial.metrics["epsilon"]]
    assert not trial.warnings
    assert trial.raw.final_measurement.step == (3 if checkpoint else 0)
    if checkpoint:
        assert trial.metrics["epsilon"] < 0.6 * whole
        assert trial.metrics["epsilon"] == epsilon(study.trials[0])
    else:
        assert trial.metrics["epsilon"] == whole


def test_should_stop(client: Client) -> None:
    sampler, study = make(client, "should-stop", checkpoint_parameter="epochs")
    study.enqueue_trial({"epochs": 20})
    trial = study.ask(SPACE)
    assert not should_stop(trial)
    assert not report(trial, 1, (0.5, epsilon(trial)))  # as the objective returns them
    whole = epsilon(trial)
    sampler.study.stop_trial(1, "enough")
    assert report(trial, 2, {"accuracy": 0.6})
    assert should_stop(trial)
    assert dpareto_trial(trial).stop_reason == "enough"
    assert epsilon(trial) < whole
    study.tell(trial, state=optuna.trial.TrialState.PRUNED)  # a habit with one objective
    ended = sampler.study.get_trial(1)
    assert (ended.metrics["accuracy"], ended.raw.final_measurement.step) == (0.6, 2)
    with pytest.raises(RuntimeError, match="trial 0 has ended"):
        report(trial, 3, accuracy=0.7)
    assert epsilon(trial) == ended.metrics["epsilon"]


def test_should_stop_does_not_know_how_far_the_run_is(client: Client) -> None:
    """The run went on after its last report: ε of that is not ε of what is returned."""
    sampler, study = make(client, "should-stop-later", checkpoint_parameter="epochs")
    study.enqueue_trial({"epochs": 20})
    trial = study.ask(SPACE)
    whole = epsilon(trial)
    assert not report(trial, 1, accuracy=0.5)
    asked = dpareto_trial(trial)
    sampler.study.stop_trial(1, "enough")
    asked._stop_reason = "enough"  # as after a renewal, when five epochs have run
    assert should_stop(trial)
    assert epsilon(trial) == whole
    study.tell(trial, (0.9, epsilon(trial)))
    ended = sampler.study.get_trial(1)  # the checkpoint is a point of the front
    assert (ended.metrics["accuracy"], ended.raw.final_measurement.step) == (0.5, 1)
    assert ended.metrics["epsilon"] < whole == study.trials[0].values[1]


def test_studies_of_one_name_do_not_share_a_sampler(client: Client) -> None:
    """Their trials have the same numbers: one's reports would go to the other's."""
    sampler, first = make(client, "one-name")
    second = optuna.create_study(
        study_name=first.study_name, directions=DIRECTIONS, sampler=sampler
    )
    trial = first.ask(SPACE)
    with pytest.raises(ValueError, match="need a sampler each"):
        second.ask(SPACE)
    first.tell(trial, (0.5, epsilon(trial)))
    assert [t.state for t in sampler.study.trials()] == ["succeeded"]


def test_epsilon_is_there_before_the_first_suggestion(client: Client) -> None:
    sampler, study = make(client, "before")
    trial = study.ask()
    assert not trial.params
    guarantee = dpareto_trial(trial).guarantee
    assert guarantee is not None
    assert guarantee.epsilon == epsilon(trial) > 0
    assert guarantee.delta == 1e-6
    assert trial.user_attrs["dpareto:trial"] == f"{sampler.study.name}/trials/1"
    (frozen,) = study.get_trials()
    assert epsilon(frozen) == epsilon(trial)
    dpareto_trial(trial).seeded = True
    study.tell(trial, objective(trial))
    (warning,) = sampler.study.get_trial(1).warnings
    assert warning.code == "SEEDED"


def test_what_reports_say_of_mistakes(client: Client) -> None:
    _, study = make(client, "report-mistakes")
    trial = study.ask()
    with pytest.raises(ValueError, match="are 3, and the objective returns accuracy, epsilon"):
        report(trial, 1, [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="given twice: accuracy"):
        report(trial, 1, 0.5, accuracy=0.5)
    with pytest.raises(dpfront.InvalidArgument, match="eror"):
        report(trial, 1, eror=0.5)
    other = optuna.create_study(sampler=optuna.samplers.RandomSampler()).ask()
    with pytest.raises(TypeError, match="is RandomSampler, not DParetoSampler"):
        report(other, 1, accuracy=0.5)
    with pytest.raises(TypeError, match="is RandomSampler, not DParetoSampler"):
        epsilon(other)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)


def test_a_worker_that_lost_its_trial_goes_on(client: Client) -> None:
    sampler, study = make(client, "lost", checkpoint_parameter="epochs")

    def late(trial: Any) -> tuple[float, float]:
        if trial.number == 0:  # another worker was faster
            held = dpareto_trial(trial)
            sampler.study.stop_trial(held.number)
            pickle.loads(pickle.dumps(held)).tell(accuracy=0.5)
        return train(trial)

    study.optimize(late, n_trials=2)
    assert [t.state.name for t in study.trials] == ["PRUNED", "COMPLETE"]
    assert sampler.study.get_trial(1).metrics["accuracy"] == 0.5
    assert sampler.study.get_trial(2).state == "succeeded"


def test_threads_that_report(client: Client) -> None:
    sampler, study = make(client, "report-jobs", checkpoint_parameter="epochs")
    study.optimize(train, n_trials=9, n_jobs=3)
    assert sampler.study.info().trial_counts["succeeded"] == 9
    for theirs in study.trials:
        number = int(theirs.user_attrs["dpareto:trial"].rsplit("/", 1)[1])
        trial = sampler.study.get_trial(number)
        assert theirs.values == [trial.metrics["accuracy"], trial.metrics["epsilon"]]


WORKER = """
import pickle, sys
import optuna
from tests.test_optuna import train
with open(sys.argv[1], "rb") as file:
    sampler = pickle.load(file)
study = optuna.load_study(study_name="shared", storage=sys.argv[2], sampler=sampler)
study.optimize(train, n_trials=2)
"""


def test_processes_share_both_studies(client: Client, tmp_path: Path) -> None:
    sampler, _ = make(client, "processes", checkpoint_parameter="epochs")
    storage = f"sqlite:///{tmp_path}/optuna.db"
    study = optuna.create_study(
        study_name="shared", storage=storage, directions=DIRECTIONS, sampler=sampler
    )
    trial = study.ask(SPACE)  # held here while the other process runs
    (tmp_path / "sampler").write_bytes(pickle.dumps(sampler))
    command = [sys.executable, "-c", WORKER, str(tmp_path / "sampler"), storage]
    subprocess.run(command, cwd=Path(__file__).resolve().parents[1], check=True, timeout=120)
    study.tell(trial, train(trial))
    assert sampler.study.info().trial_counts["succeeded"] == 3
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 3
    assert {epsilon(t) for t in study.trials} == {
        t.metrics["epsilon"] for t in sampler.study.trials()
    }


def test_one_sampler_for_two_studies(client: Client) -> None:
    """Their trials have the same numbers."""
    sampler, study = make(client, "two")
    second = optuna.create_study(directions=DIRECTIONS, sampler=sampler)
    pairs = [(s, s.ask()) for s in (study, second)]
    assert len({dpareto_trial(t).name for _, t in pairs}) == 2
    for theirs, trial in pairs:
        theirs.tell(trial, objective(trial))
    assert sampler.study.info().trial_counts["succeeded"] == 2


HUB = Path(__file__).resolve().parents[1] / "optunahub-registry" / "package"


def load_hub_module(package: str) -> Any:
    """Loads a package of the local registry, as optunahub does."""
    name = "optunahub_registry.package." + package.replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, HUB / package / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package optunahub that loads from the local registry."""
    module = types.ModuleType("optunahub")
    module.load_module = load_hub_module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", module)
    monkeypatch.setenv("DPARETO_BINARY", binary)


@pytest.mark.usefixtures("hub")
def test_the_package_of_optunahub(capsys: pytest.CaptureFixture[str]) -> None:
    """Its README has what the registry asks for, and an example that runs."""
    yaml = pytest.importorskip("yaml")
    package = HUB / "samplers" / "dpareto"
    readme = (package / "README.md").read_text()
    _, front_matter, text = readme.split("---\n", 2)
    fields = yaml.safe_load(front_matter)
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "sampler" in fields["tags"]
    assert fields["license"] == (package / "LICENSE").read_text().splitlines()[0] == "MIT License"
    assert "pip install dpfront" in text

    module = load_hub_module("samplers/dpareto")
    assert module.DParetoSampler is DParetoSampler
    assert all(f"`{name}(" in text or f"`{name}.create(" in text for name in module.__all__)

    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example.replace("n_trials=12", "n_trials=4"), names)
    assert len(names["study"].trials) == 4
    assert names["study"].best_trials
    assert "noise_multiplier" in capsys.readouterr().out


@pytest.mark.usefixtures("hub")
def test_the_example_of_optunahub(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["example.py", "--trials", "4"])
    runpy.run_path(str(HUB / "samplers" / "dpareto" / "example.py"), run_name="__main__")
    assert "for ε = 1: {" in capsys.readouterr().out


def test_only_public_names_of_optuna_are_used() -> None:
    study = optuna.create_study()
    trial = study.ask()
    theirs = {*dir(study), *dir(trial), *dir(study.get_trials()[0])}
    tree = ast.parse(inspect.getsource(bridge))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "suggest_float" in theirs
    assert "study_name" in used & theirs
    private = {name for name in used & theirs if name.startswith("_")}
    assert not private - {"__name__", "__dict__"}
