"""What Ray Tune calls of a searcher: python -m tests.ray_recorded records it for make test.

The record is a run of seven trials: one actor dies, one trial reports NaN, and one says that it
is infeasible.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import dpfront
from dpfront import Float, Int, Minimize, Study

RECORD = Path(__file__).parent / "fixtures" / "ray_tune.json"
KEPT = ("error", "infeasible", "training_iteration", "done")


def create(client: dpfront.Client, name: str) -> Study:
    return Study.create(
        client,
        name,
        [Float("learning_rate", 1e-3, 1, log=True), Int("epochs", 1, 4)],
        [Minimize("error", 1), Minimize("seconds", 1, computed="double(epochs)")],
        checkpoint_parameter="epochs",
        algorithm="random",
        seed=2,
        max_trials=7,
    )


def states(study: Study) -> list[dict[str, Any]]:
    """What the study has of its trials in the end."""
    return [
        {
            "state": t.state,
            "reason": t.state_reason,
            "attempt": t.attempt,
            "errors": {str(m.step): m.metrics["error"] for m in t.measurements},
        }
        for t in study.trials()
    ]


def trainable(config: dict[str, Any]) -> None:
    """Ends in a way that its rank by the learning rate decides."""
    from ray import tune

    way = Path(config["folder"], repr(config["learning_rate"]))
    first = not way.exists()
    if first:
        way.write_text(str(len(os.listdir(config["folder"])) + 1))
    number = int(way.read_text())
    for epoch in range(1, config["epochs"] + 1):
        if number == 2 and first:
            os._exit(1)
        if number == 3:
            tune.report({"infeasible": "too wide"})
        tune.report({"error": float("nan") if number == 4 else 1 / (1 + epoch)})


def record() -> None:
    """Runs the trials on a real Ray, one after the other, and writes what it called."""
    import tempfile

    import ray
    from ray import tune

    from dpfront.integrations.ray import DParetoSearch, EarlyStopping

    events: list[list[Any]] = []
    ids: list[str] = []

    def known(trial_id: str) -> int:
        if trial_id not in ids:
            ids.append(trial_id)
        return ids.index(trial_id)

    def kept(result: Any) -> Any:
        return result and {k: result[k] for k in KEPT if k in result}

    class Search(DParetoSearch):
        def suggest(self, trial_id: str) -> Any:
            found = super().suggest(trial_id)
            events.append(["suggest", known(trial_id)])
            return found

        def on_trial_result(self, trial_id: str, result: Any) -> None:
            events.append(["result", known(trial_id), kept(result)])
            super().on_trial_result(trial_id, result)

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            events.append(["complete", known(trial_id), kept(result), error])
            super().on_trial_complete(trial_id, result, error)

    class Stop(EarlyStopping):
        def __call__(self, trial_id: str, result: Any) -> bool:
            events.append(["stop", known(trial_id), kept(result)])
            return super().__call__(trial_id, result)

    ray.init(num_cpus=1, include_dashboard=False)
    with dpfront.local_server(binary=os.environ["DPARETO_BINARY"]) as server:
        study = create(server.client(), "recorded")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "seen").mkdir()
            tune.Tuner(
                trainable,
                param_space={"folder": str(Path(folder) / "seen")},
                tune_config=tune.TuneConfig(search_alg=Search(study), num_samples=-1),
                run_config=tune.RunConfig(stop=Stop(), storage_path=folder, verbose=0),
            ).fit()
        RECORD.write_text(
            json.dumps({"ray": ray.__version__, "events": events, "trials": states(study)}) + "\n"
        )


def stand_in() -> dict[str, types.ModuleType]:
    """Returns modules with what dpfront.integrations.ray takes of Ray."""

    class Searcher:
        FINISHED = "FINISHED"

        def __init__(self, metric: Any = None, mode: Any = None) -> None:
            pass

    class Domain:
        def __init__(self, lower: Any = None, upper: Any = None, sampler: Any = None) -> None:
            self.lower, self.upper, self.sampler = lower, upper, sampler

        def get_sampler(self) -> Any:
            return self.sampler

    class Categorical(Domain):
        def __init__(self, categories: list[Any]) -> None:
            self.categories = categories

    class Quantized:
        def __init__(self, sampler: Any, q: Any) -> None:
            self.sampler, self.q = sampler, q

        def get_sampler(self) -> Any:
            return self.sampler

    names: dict[str, dict[str, Any]] = {
        "ray": {},
        "ray.tune": {},
        "ray.tune.search": {"Searcher": Searcher},
        "ray.tune.search.sample": {
            "Categorical": Categorical,
            "Domain": Domain,
            "Float": type("Float", (Domain,), {}),
            "Integer": type("Integer", (Domain,), {}),
            "LogUniform": type("LogUniform", (), {}),
            "Quantized": Quantized,
            "Uniform": type("Uniform", (), {}),
        },
        "ray.tune.stopper": {"Stopper": type("Stopper", (), {})},
        "ray.tune.utils": {"flatten_dict": dict},
    }
    modules = {name: types.ModuleType(name) for name in names}
    for name, content in names.items():
        vars(modules[name]).update(content)
    return modules


if __name__ == "__main__":
    sys.modules["tests.ray_recorded"] = sys.modules["__main__"]
    record()
