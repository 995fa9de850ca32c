"""Studies of Optuna and Ax as studies of ours."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import optuna
import pytest

import dpfront
from dpfront import Categorical, Client, Discrete, Float, Int, Maximize, Minimize, Tracked
from dpfront.integrations.importing import import_ax, import_optuna

AX = Path(__file__).parent / "fixtures" / "ax.json"  # Ax 1.3.1's save_experiment

_ids = (f"imported-{k}" for k in itertools.count())

PRIVACY = dpfront.opacus(
    dataset_size=10_000, batch_size=100, noise_multiplier="noise", epochs="epochs", delta=1e-6
)


def objective(trial: optuna.Trial) -> tuple[float, float]:
    trial.suggest_float("lr", 1e-3, 1, log=True)
    trial.suggest_float("noise", 0.5, 2.0 + trial.number)
    trial.suggest_int("epochs", 1, 5)
    trial.suggest_categorical("layers", [1, 2, 4])
    trial.suggest_float("seedless", 0.5, 0.5)
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0, 1)
    if trial.number == 1:
        raise optuna.TrialPruned
    trial.set_user_attr("seconds", 3)
    return 0.5 + trial.number / 100, 3.0


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """A storage with two studies."""
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=3)
    study = optuna.create_study(
        storage=url, study_name="adult", directions=["maximize", "minimize"], sampler=sampler
    )
    study.optimize(objective, n_trials=8)
    single = optuna.create_study(storage=url, study_name="single", sampler=sampler)

    def reports(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.report(x, 1)
        if trial.number < 2:
            trial.suggest_float("odd", 0, 1)
        return x

    single.optimize(reports, n_trials=4)
    return url


def test_optuna(client: Client, storage: str) -> None:
    name = next(_ids)
    metrics = [Maximize("accuracy", 0.5), dpfront.epsilon(PRIVACY)]
    study, result = import_optuna(client, name, storage, "adult", metrics=metrics)
    assert study.parameters == [
        Float("lr", 1e-3, 1, log=True),
        Float("noise", 0.5, 9.0),
        Int("epochs", 1, 5),
        Categorical("layers", ["1", "2", "4"]),
        Categorical("optimizer", ["sgd", "adam"]),
        Float("momentum", 0, 1, condition={"optimizer": ["sgd"]}),
    ]
    assert result.added == tuple(range(1, 8))
    assert result.left_out == {"optuna:adult/1": "its state is PRUNED"}
    assert result.unused == ("seedless (has one value)", "user_attrs seconds")
    known = optuna.load_study(study_name="adult", storage=storage).trials
    for trial, source in zip(study.trials(), [known[0], *known[2:]], strict=True):
        expected = {k: v for k, v in source.params.items() if k != "seedless"}
        assert trial.params == {**expected, "layers": str(expected["layers"])}
        assert trial.metrics["accuracy"] == source.values[0]
        assert trial.final_measurement is not None
        assert trial.final_measurement.reported == {"epsilon": 3.0}
        assert trial.metrics["epsilon"] != 3.0
        assert [w.code for w in trial.warnings] == ["REPORT_DIFFERS"]
    again, result = import_optuna(client, name, storage, "adult", metrics=metrics)
    assert (again.id, result.added, result.existed) == (name, (), 7)
    assert len(study.trials()) == 7


def test_optuna_without_more_words(client: Client, storage: str) -> None:
    study, result = import_optuna(client, next(_ids), storage, "single")
    assert [m.id for m in study.spec.metrics] == ["values_0"]
    assert len(result.added) == 2
    assert [reason for reason in result.left_out.values() if "odd" in reason] == list(
        result.left_out.values()
    )
    assert result.unused == (
        "odd (in 2 of 4 trials, and no category decides)",
        "intermediate values of 4 trials",
    )
    with pytest.raises(ValueError, match="metrics: x must be minimized, as values_0 was"):
        import_optuna(client, next(_ids), storage, "single", metrics=[Maximize("x")])


def test_ax(client: Client) -> None:
    name = next(_ids)
    metrics = [Minimize("error", 1), dpfront.epsilon(PRIVACY)]
    study, result = import_ax(client, name, AX, metrics=metrics)
    assert study.parameters == [
        Float("lr", 1e-3, 1, log=True),
        Int("epochs", 1, 20),
        Float("noise", 0.5, 4),
        Categorical("optimizer", ["sgd", "adam"]),
        Discrete("layers", [1, 2, 4], log=True),
    ]
    assert len(result.added) == 4
    assert result.left_out == {
        "ax:adult/3/3_0": "its status is FAILED",
        "ax:adult/4/4_0": "its status is ABANDONED",
        "ax:adult/6/6_0": "its status is RUNNING",
    }
    assert result.unused == ()
    assert [t.metrics["error"] for t in study.trials()] == [0.5, 0.49, 0.48, 0.45]
    assert study.get_trial(2).final_measurement.reported == {"epsilon": 2.0}  # type: ignore[union-attr]
    assert import_ax(client, name, AX, metrics=metrics)[1].existed == 4


def ax_file(folder: Path, **changes: Any) -> Path:
    """An experiment as older versions of Ax wrote it, inside of a client's file."""
    experiment = json.loads(AX.read_text())
    experiment.update(changes)
    path = folder / "ax.json"
    path.write_text(json.dumps({"_type": "AxClient", "experiment": experiment}))
    return path


def test_ax_of_older_versions(client: Client, tmp_path: Path) -> None:
    def metric(name: str, minimize: bool) -> dict[str, Any]:
        return {"metric": {"name": name}, "minimize": minimize}

    objective = {"objectives": [metric("error", True), metric("eps", True)]}
    config = {"objective": objective, "outcome_constraints": [{}]}
    study, result = import_ax(client, next(_ids), ax_file(tmp_path, optimization_config=config))
    assert [m.id for m in study.spec.metrics] == ["error", "eps"]
    assert result.unused == ("1 outcome constraints (see Constraint)",)
    weighted = {"objective": {"expression": "2*error + eps"}}
    path = ax_file(tmp_path, optimization_config=weighted)
    with pytest.raises(ValueError, match="metrics: must be given"):
        import_ax(client, next(_ids), path)
    study, result = import_ax(client, next(_ids), path, metrics=[Tracked("eps"), Minimize("error")])
    assert len(result.added) == 4
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"ax.json: has no experiment of Ax"):
        import_ax(client, next(_ids), path)
