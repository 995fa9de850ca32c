"""A driver of the tests with Ray, which they kill.

    python -m tests.ray_driver optimize|tune ADDRESS STUDY FOLDER

runs a study on the Ray cluster of RAY_ADDRESS. Workers write their process ids into FOLDER/pids,
and a line for each run that they finish into FOLDER/finished.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import dpfront
from dpfront import Trial

WORKERS = 4


def error(params: Any) -> float:
    """What a trial must have measured."""
    return float(1 / (1 + params["epochs"]) + params["learning_rate"] / 10)


def on_the_way(params: Any, epoch: int) -> float:
    """What it has measured at an epoch: another run measures other values, but for the last."""
    noise = os.getpid() / 1e8 if epoch < params["epochs"] else 0
    return error({**params, "epochs": epoch}) + noise


def begin(folder: Path) -> None:
    (folder / "pids" / str(os.getpid())).touch()


def finish(folder: Path, params: Any) -> None:
    (folder / "pids" / str(os.getpid())).unlink(missing_ok=True)
    with open(folder / "finished", "a") as file:
        file.write(f"{params['learning_rate']!r}\n")


def objective(trial: Trial, folder: Path) -> float:
    """Trains for a tenth of a second, and reports on the way."""
    begin(folder)
    for epoch in range(1, trial["epochs"] + 1):
        threading.Event().wait(0.03)
        trial.report(epoch, error=on_the_way(trial.params, epoch))
    finish(folder, trial.params)
    return error(trial.params)


def trainable(config: dict[str, Any]) -> None:
    """The same for Ray Tune."""
    from ray import tune

    folder = Path(config["folder"])
    begin(folder)
    for epoch in range(1, config["epochs"] + 1):
        threading.Event().wait(0.03)
        if epoch == config["epochs"]:
            finish(folder, config)
        tune.report({"error": on_the_way(config, epoch)})


def main(mode: str, address: str, study_id: str, place: str) -> None:
    import functools

    import ray
    from ray import tune

    from dpfront.integrations.ray import DParetoSearch, RayExecutor
    from tests import ray_driver

    folder = Path(place)
    here = os.pathsep.join(sys.path)
    ray.init(
        log_to_driver=False,
        logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": here}},
    )
    with dpfront.Client(address) as client:
        study = client.study(study_id)
        if mode == "optimize":
            run = functools.partial(ray_driver.objective, folder=folder)
            study.optimize(run, n_jobs=WORKERS, executor=RayExecutor(num_cpus=1))
            return
        path = str(folder / "results" / "kills")
        if tune.Tuner.can_restore(path):
            tuner = tune.Tuner.restore(path, ray_driver.trainable)
        else:
            tuner = tune.Tuner(
                ray_driver.trainable,
                param_space={"folder": place},
                tune_config=tune.TuneConfig(
                    search_alg=DParetoSearch(study),
                    num_samples=-1,
                    max_concurrent_trials=WORKERS,
                    reuse_actors=True,
                ),
                run_config=tune.RunConfig(
                    name="kills", storage_path=str(folder / "results"), verbose=0
                ),
            )
        tuner.fit()


if __name__ == "__main__":
    main(*sys.argv[1:])
