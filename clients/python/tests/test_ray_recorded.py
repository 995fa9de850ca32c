"""The searcher for Ray Tune, by calls that were recorded of the real one; make test-ray runs it."""

from __future__ import annotations

import importlib
import itertools
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import Categorical, Discrete, Float, Int, Study

from . import ray_recorded
from .conftest import make_study

MODULE = "dpfront.integrations.ray"
_ids = (f"recorded-{k}" for k in itertools.count())


@pytest.fixture
def module() -> Iterator[Any]:
    """The integration, over a stand-in of Ray."""
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in ray_recorded.stand_in().items():
            patch.setitem(sys.modules, name, stand_in)
        patch.delitem(sys.modules, MODULE, raising=False)
        yield importlib.import_module(MODULE)
        sys.modules.pop(MODULE, None)


def replay(module: Any, study: Study, folder: Path, restore: bool) -> None:
    """Makes the calls of the record, with a restored searcher between any two of them."""
    search, stop = module.DParetoSearch(study), module.EarlyStopping()
    for event in json.loads(ray_recorded.RECORD.read_text())["events"]:
        kind, trial, *rest = event
        if kind == "suggest":
            found = search.suggest(str(trial))  # None while the last trials run
            assert found in (None, "FINISHED") or sorted(found) == ["epochs", "learning_rate"]
        elif kind == "result":
            search.on_trial_result(str(trial), *rest)
        elif kind == "stop":
            stop(str(trial), *rest)
        else:
            search.on_trial_complete(str(trial), *rest)
        if restore:
            search.save(str(folder / "searcher"))
            search = pickle.loads(pickle.dumps(search))
            for run in module._runs.values():
                run.trial._stop_heartbeat()
            module._runs.clear()  # as in another process
            search.restore(str(folder / "searcher"))
    assert module._runs == {}


@pytest.mark.parametrize("restore", [False, True])
def test_what_ray_calls(module: Any, client: dpfront.Client, tmp_path: Path, restore: bool) -> None:
    study = ray_recorded.create(client, next(_ids))
    replay(module, study, tmp_path, restore)
    assert ray_recorded.states(study) == json.loads(ray_recorded.RECORD.read_text())["trials"]


def test_the_record_has_all_ends() -> None:
    trials = json.loads(ray_recorded.RECORD.read_text())["trials"]
    assert [t["state"] for t in trials].count("infeasible") == 2
    assert [t["state"] for t in trials].count("succeeded") == 5
    assert [t["attempt"] for t in trials].count(2) == 1


def test_a_study_that_waits(module: Any, client: dpfront.Client) -> None:
    study = make_study(client, max_trials=1)
    held = study.ask()
    search = module.DParetoSearch(study)
    assert search.suggest("a") is None
    held.tell(error=0.5)
    assert search.suggest("b") == "FINISHED"


def test_a_result_that_is_refused_gives_the_trial_back(module: Any, study: Study) -> None:
    search = module.DParetoSearch(study)
    search.suggest("a")
    with pytest.raises(dpfront.InvalidArgument):
        search.on_trial_complete("a", {"error": 0.5, "training_iteration": -1})
    assert [t.state for t in study.trials()] == ["queued"]


def test_a_trial_that_ends_without_a_result_goes_back(module: Any, study: Study) -> None:
    search = module.DParetoSearch(study)
    search.suggest("a")
    search.on_trial_complete("a")
    assert [t.state for t in study.trials()] == ["queued"]


def test_a_late_result_of_a_lost_trial_changes_nothing(module: Any, study: Study) -> None:
    search = module.DParetoSearch(study)
    search.suggest("a")
    pickle.loads(pickle.dumps(module._runs["a"].trial)).release()
    study.ask().tell(error=0.25)
    result = {"error": 0.5, "training_iteration": 1}
    assert module.EarlyStopping()("a", result)
    search.on_trial_complete("a", result)
    assert [(t.state, t.metrics["error"]) for t in study.trials()] == [("succeeded", 0.25)]


def test_a_trial_that_tune_starts_again_is_another_attempt(
    module: Any, client: dpfront.Client
) -> None:
    study = make_study(client, max_attempts=2)
    search = module.DParetoSearch(study)
    search.suggest("a")
    for step, error in [(1, 0.75), (2, 0.5), (1, 0.7), (1, 0.7), (2, 0.6)]:
        search.on_trial_result("a", {"error": error, "training_iteration": step})
    search.on_trial_complete("a", {"error": 0.6, "training_iteration": 2})
    trial = study.get_trial(1)
    assert (trial.state, trial.attempt, trial.metrics["error"]) == ("succeeded", 2, 0.6)
    assert [m.metrics["error"] for m in trial.measurements] == [0.7, 0.6]
    assert [m.metrics["error"] for m in trial.past_attempts[0].measurements] == [0.75, 0.5]

    search.suggest("b")
    for error in (0.75, 0.5, 0.25):  # of three attempts, and the study allows two
        search.on_trial_result("b", {"error": error, "training_iteration": 1})
    search.on_trial_complete("b", {"error": 0.25, "training_iteration": 1})
    # The server hands out another trial then, which nobody has asked for.
    assert [t.state for t in study.trials()] == ["succeeded", "failed", "queued"]


def test_search_spaces(module: Any, client: dpfront.Client) -> None:
    sample = sys.modules["ray.tune.search.sample"]
    uniform, log = sample.Uniform(), sample.LogUniform()
    space = {
        "lr": sample.Float(1e-3, 1.0, log),
        "width": sample.Integer(1, 9, uniform),
        "lot": sample.Integer(8, 64, sample.Quantized(uniform, 8)),
        "dropout": sample.Float(0.0, 0.5, sample.Quantized(uniform, 0.25)),
        "layers": sample.Categorical([1, 2]),
        "optimizer": sample.Categorical(["sgd", "adam"]),
        "one": sample.Categorical(["only"]),
        "data": "/data",
    }
    params, choices = module.parameters(space)
    assert params == [
        Float("lr", 1e-3, 1, log=True),
        Int("width", 1, 8),
        Discrete("lot", [8, 16, 24, 32, 40, 48, 56, 64]),
        Discrete("dropout", [0, 0.25, 0.5]),
        Categorical("layers", ["1", "2"]),
        Categorical("optimizer", ["sgd", "adam"]),
    ]
    assert choices == {"layers": {"1": 1, "2": 2}}
    search = module.DParetoSearch.create(
        client, next(_ids), space, [dpfront.Minimize("error", 1)], algorithm="random"
    )
    assert search.suggest("a")["layers"] in (1, 2)
    search.on_trial_complete("a")
    assert search.set_search_properties(None, None, {"data": "/data"})
    with pytest.raises(ValueError, match="param_space: lr must be parameters of studies/"):
        search.set_search_properties(None, None, {"lr": space["lr"]})
    with pytest.raises(ValueError, match="x: must be a domain of Ray Tune or a constant"):
        module.parameters({"x": {}})
    with pytest.raises(ValueError, match="x: must be uniform or loguniform"):
        module.parameters({"x": sample.Float(0, 1, object())})


def test_the_executor(module: Any, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's part is only to call functions elsewhere."""
    ray = sys.modules["ray"]
    options: list[dict[str, Any]] = []
    cancelled: list[Any] = []

    class Remote:
        def __init__(self, function: Any) -> None:
            self.function = function

        def options(self, **given: Any) -> Remote:
            options.append(given)
            return self

        def remote(self, *args: Any) -> Any:
            return self.function, args

    vars(ray).update(
        remote=Remote, get=lambda ref: ref[0](*ref[1]), cancel=lambda ref: cancelled.append(ref)
    )
    assert study.optimize(lambda t: 0.5, n_trials=2, executor=module.RayExecutor(num_cpus=2)) == 2
    assert options == [{"max_retries": 0, "num_cpus": 2}] * 2
    module.RayJob("a").cancel()
    assert cancelled == ["a"]
