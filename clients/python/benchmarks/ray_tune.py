"""Small trials on a Ray cluster: our loop, our searcher, and Ray Tune's OptunaSearch.

    python benchmarks/ray_tune.py --trials 64 --workers 2 4 8 --seeds 1

prints a row for each way and number of workers: seconds from the first trial to the last, on a
cluster that runs already, and the hypervolume of the measured front. A trial trains logistic
regression with DP-SGD for up to 12 epochs, and reports once, at its end. ε of OptunaSearch's
trials comes from the same server, and its trials are added to a study like the others' for the
same measure of the front. It needs the extras ``ray`` and ``optuna``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

import dpfront
from dpfront import Client, Float, Int, Minimize, Study, Trial
from dpfront.integrations.ray import DParetoSearch, RayExecutor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

PRIVACY = dpfront.opacus(
    dataset_size=8000,
    batch_size=200,
    epochs="epochs",
    delta=1e-6,
    learning_rate="learning_rate",
    clipping_norm="clipping_norm",
)
SPACE = [
    Float("learning_rate", 0.01, 10, log=True),
    Float("clipping_norm", 0.05, 1, log=True),
    Float("noise_multiplier", 0.5, 30, log=True),
    Int("epochs", 1, 12, log=True),
]
WORKERS = ["ours: optimize", "ours: Ray Tune", "OptunaSearch"]


def train(params: dict[str, Any]) -> float:
    """Returns the test error of a configuration."""
    import logistic_regression
    import numpy as np

    x, y = logistic_regression.data(logistic_regression.RECORDS, seed=1)
    test_x, test_y = logistic_regression.data(logistic_regression.TEST_RECORDS, seed=2)
    rng, w = np.random.default_rng(3), np.zeros(x.shape[1])
    for _ in range(40 * params["epochs"]):
        lot = rng.random(len(x)) < 1 / 40
        margin = y[lot] * (x[lot] @ w)
        gradients = -(y[lot] / (1 + np.exp(margin)))[:, None] * x[lot]
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        gradients /= np.maximum(1, norms / params["clipping_norm"])
        scale = params["noise_multiplier"] * params["clipping_norm"]
        step = gradients.sum(axis=0) + rng.normal(scale=scale, size=len(w))
        w -= params["learning_rate"] * step / 200
    return float(np.mean(test_y * (test_x @ w) <= 0))


def objective(trial: Trial) -> float:
    """Trains a trial of ours."""
    trial.seeded = True
    return train(trial.params)


def ours(config: dict[str, Any]) -> None:
    """Trains a trial of our searcher."""
    tune.report({"error": train(config)})


class Theirs:
    """Trains a trial of OptunaSearch, which needs ε."""

    def __init__(self, address: str) -> None:
        self.address = address

    def train(self, config: dict[str, Any]) -> None:
        """Trains a configuration, and reports ε with the error."""
        with Client(self.address) as client:
            epsilon = client.epsilon(PRIVACY, **config).epsilon
        tune.report({"error": train(config), "epsilon": epsilon})


def create(client: Client, id: str, trials: int, seed: int) -> Study:
    """Creates the study."""
    metrics = [Minimize("error", 0.5, "logit", sample_size=4000), dpfront.epsilon(PRIVACY)]
    return Study.create(client, id, SPACE, metrics, max_trials=trials, seed=seed)


def run(way: str, study: Study, address: str, trials: int, workers: int, seed: int) -> float:
    """Runs the trials, and returns the seconds."""
    begin = time.monotonic()
    if way == WORKERS[0]:
        study.optimize(objective, n_jobs=workers, executor=RayExecutor(num_cpus=1), progress=False)
        return time.monotonic() - begin
    search: Any
    trainable: Any = ours
    if way == WORKERS[1]:
        search, count = DParetoSearch(study), -1
    else:
        space = {
            "learning_rate": tune.loguniform(0.01, 10),
            "clipping_norm": tune.loguniform(0.05, 1),
            "noise_multiplier": tune.loguniform(0.5, 30),
            "epochs": tune.lograndint(1, 13),
        }
        goals = {"metric": ["error", "epsilon"], "mode": ["min", "min"]}
        search, count = OptunaSearch(space, seed=seed, **goals), trials
        trainable = Theirs(address).train
    with tempfile.TemporaryDirectory() as folder:
        results = tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(
                search_alg=search,
                num_samples=count,
                max_concurrent_trials=workers,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
    seconds = time.monotonic() - begin
    if way == WORKERS[2]:
        for result in results:
            params = {p.id: result.config[p.id] for p in SPACE}
            study.add_trial(params, error=result.metrics["error"], seeded=True)
    return seconds


def main() -> None:
    """Runs all ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--binary", help="the program dpareto")
    args = parser.parse_args()

    print("| workers | | trials | seconds | hypervolume |\n|---|---|---|---|---|")
    for workers in args.workers:
        path = ":".join(sys.path)
        ray.init(
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            runtime_env={"env_vars": {"PYTHONPATH": path}},
        )
        for seed in args.seeds:
            for number, way in enumerate(WORKERS):
                with dpfront.local_server(binary=args.binary) as server:
                    study = create(server.client(), f"s{number}", args.trials, seed)
                    seconds = run(way, study, server.address, args.trials, workers, seed)
                    count = study.info().trial_counts["succeeded"]
                    volume = study.front("observed").hypervolume
                print(f"| {workers} | {way} | {count} | {seconds:.0f} | {volume:.3f} |", flush=True)
        ray.shutdown()


if __name__ == "__main__":
    main()
