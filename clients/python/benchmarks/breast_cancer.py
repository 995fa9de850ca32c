"""Compares ways to the front of DP-SGD on breast-cancer data, with real Opacus.

    python benchmarks/breast_cancer.py run results.jsonl      # 40 studies of 24 trials; resumable
    python benchmarks/breast_cancer.py table results.jsonl

Four ways search the same space with the same budget: dpfront's own loop, Optuna with
`DParetoSampler`, and Optuna's GPSampler with ε, or its logarithm, as the second objective. Every
way gets the error on a validation set. Then every configuration of its front is trained again,
five times, with new noise, and measured on records that no search has seen.

Figures of merit, fixed before the first run:

- *error*: for an ε, a front offers the point with at most that ε that has the smallest error by
  the front's own account. The figure is the mean held-out error of what it offers for 50 values
  of ε from 0.1 to 10, evenly spaced on a logarithmic scale; 0.37, the share of the larger class,
  counts where it offers nothing.
- *hypervolume*: of the re-measured points, within an error of 0.4 and an ε of 10.

ε is the same for all: the server's, for δ = 1e-5, one record more or less, of one run.

It needs the extras opacus and optuna, scikit-learn, and the program dpareto.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_breast_cancer

import dpfront
from dpfront import Float, Int, Minimize
from dpfront.integrations.optuna import DParetoSampler, epsilon, report

TRIALS = 24
RUNS = 5
DELTA = 1e-5
LARGER_CLASS = 0.373
REFERENCE = (0.4, 10.0)
SPACE = {
    "noise_multiplier": (0.5, 10.0),
    "learning_rate": (0.01, 10.0),
    "max_grad_norm": (0.1, 10.0),
    "batch_size": (16, 128),
    "epochs": (1, 30),
}
PARAMETERS: list[dpfront.spec.Parameter] = [
    Int(name, low, high, log=name == "batch_size")
    if isinstance(low, int) and isinstance(high, int)
    else Float(name, low, high, log=True)
    for name, (low, high) in SPACE.items()
]

Loader = Any  # torch.utils.data.DataLoader


@dataclass
class Data:
    """One split into records for training, for the search and for the end."""

    train: torch.utils.data.TensorDataset
    validation: tuple[torch.Tensor, torch.Tensor]
    test: tuple[torch.Tensor, torch.Tensor]

    @staticmethod
    def split(seed: int) -> Data:
        """Splits the 569 records 341 : 114 : 114. The scale is the public one of the data's
        description: the maxima that it prints.
        """
        x, y = load_breast_cancer(return_X_y=True)
        maxima = np.array(
            [28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097,
             2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03,
             36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208]
        )  # fmt: skip
        inputs = torch.tensor(4 * np.sqrt(np.clip(x / maxima, 0, 1)) - 2, dtype=torch.float32)
        labels = torch.tensor(y, dtype=torch.float32)
        order = torch.tensor(np.random.default_rng(seed).permutation(len(y)))
        parts = [(inputs[k], labels[k]) for k in torch.split(order, [341, 114, 114])]
        return Data(torch.utils.data.TensorDataset(*parts[0]), parts[1], parts[2])


def error_of(model: torch.nn.Module, records: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Returns the share of records that a model gets wrong."""
    with torch.no_grad():
        return float(((model(records[0])[:, 0] > 0) != (records[1] > 0.5)).float().mean())


def private(
    data: Data, params: dict[str, Any], engine: PrivacyEngine
) -> tuple[torch.nn.Module, torch.optim.Optimizer, Loader]:
    """Returns a model, its optimizer and its loader, made private."""
    model: Any = torch.nn.Linear(30, 1)
    torch.nn.init.zeros_(model.weight)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=params["learning_rate"])
    loader: Any = torch.utils.data.DataLoader(data.train, batch_size=params["batch_size"])
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=params["noise_multiplier"],
        max_grad_norm=params["max_grad_norm"],
    )
    return model, optimizer, loader


def one_epoch(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader: Loader) -> None:
    """Trains a model for an epoch."""
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y).backward()
        optimizer.step()


# --- the ways: what a user writes, in full, beside the training above


def own_loop(data: Data, client: dpfront.Client, id: str) -> Points:
    """Searches with dpfront's own loop."""
    privacy = dpfront.opacus(
        dataset_size=len(data.train), batch_size="batch_size", epochs="epochs", delta=DELTA
    )
    study = dpfront.Study.create(
        client,
        id,
        PARAMETERS,
        [Minimize("error", REFERENCE[0]), dpfront.epsilon(privacy)],
        checkpoint_parameter="epochs",
    )

    def train(trial: dpfront.Trial) -> None:
        engine = PrivacyEngine()
        with dpfront.opacus_trial(trial, engine, lambda: error_of(model, data.validation)):
            model, optimizer, loader = private(data, trial.params, engine)
            for _ in range(trial["epochs"]):
                one_epoch(model, optimizer, loader)

    study.optimize(train, n_trials=TRIALS)
    return front_of(study)


def bridge(data: Data, client: dpfront.Client, id: str) -> Points:
    """Searches with Optuna and our sampler."""
    privacy = dpfront.opacus(
        dataset_size=len(data.train), batch_size="batch_size", epochs="epochs", delta=DELTA
    )
    sampler = DParetoSampler.create(
        client,
        id,
        distributions(),
        [Minimize("error", REFERENCE[0]), dpfront.epsilon(privacy)],
        checkpoint_parameter="epochs",
    )

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        params = suggested(trial)
        model, optimizer, loader = private(data, params, PrivacyEngine())
        for epoch in range(1, params["epochs"] + 1):
            one_epoch(model, optimizer, loader)
            if report(trial, epoch, error=error_of(model, data.validation)):
                break
        return error_of(model, data.validation), epsilon(trial)

    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=TRIALS)
    return front_of(sampler.study)


def gp(data: Data, client: dpfront.Client, id: str, logarithm: bool = False) -> Points:
    """Searches with Optuna's GPSampler."""
    seed = int(id.split("-")[-1])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        params = suggested(trial)
        engine = PrivacyEngine()
        model, optimizer, loader = private(data, params, engine)
        for _ in range(params["epochs"]):
            one_epoch(model, optimizer, loader)
        cost = engine.get_epsilon(DELTA)
        return error_of(model, data.validation), math.log(cost) if logarithm else cost

    sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=False)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=TRIALS)
    return [(t.params, t.values[0]) for t in study.best_trials]


def gp_log(data: Data, client: dpfront.Client, id: str) -> Points:
    """Searches with Optuna's GPSampler and the logarithm of ε."""
    return gp(data, client, id, logarithm=True)


# --- the end of the ways

Points = list[tuple[dict[str, Any], float]]
"""Configurations of a front, with the error that it states for each."""

WAYS: dict[str, Callable[[Data, dpfront.Client, str], Points]] = {
    "own-loop": own_loop,
    "bridge": bridge,
    "gp": gp,
    "gp-log": gp_log,
}


def distributions() -> dict[str, Any]:
    """Returns the space for Optuna."""
    return {
        name: optuna.distributions.IntDistribution(low, high, log=name == "batch_size")
        if isinstance(low, int) and isinstance(high, int)
        else optuna.distributions.FloatDistribution(low, high, log=True)
        for name, (low, high) in SPACE.items()
    }


def suggested(trial: optuna.Trial) -> dict[str, Any]:
    """Asks Optuna for a configuration."""
    return {
        name: trial.suggest_int(name, low, high, log=name == "batch_size")
        if isinstance(low, int) and isinstance(high, int)
        else trial.suggest_float(name, low, high, log=True)
        for name, (low, high) in SPACE.items()
    }


def front_of(study: dpfront.Study) -> Points:
    """Returns the posterior front, at the steps where its points were measured."""
    points: Points = []
    for p in study.front():
        params = dict(p.params)
        params["epochs"] = p.step or params["epochs"]
        points.append((params, p.values["error"].value))
    return points


def remeasured(data: Data, params: dict[str, Any]) -> float:
    """Returns the mean held-out error of fresh runs."""
    errors = []
    for _ in range(RUNS):
        model, optimizer, loader = private(data, params, PrivacyEngine())
        for _ in range(params["epochs"]):
            one_epoch(model, optimizer, loader)
        errors.append(error_of(model, data.test))
    return statistics.fmean(errors)


def study(way: str, seed: int, client: dpfront.Client) -> dict[str, Any]:
    """Runs one study, and measures its front again."""
    torch.manual_seed(seed)
    data = Data.split(seed)
    begin = time.perf_counter()
    points = WAYS[way](data, client, f"{way}-{seed}")
    seconds = time.perf_counter() - begin
    privacy = dpfront.opacus(
        dataset_size=len(data.train), batch_size="batch_size", epochs="epochs", delta=DELTA
    )
    torch.manual_seed(1000 + seed)
    front = []
    for params, stated in points:
        needed = {k: params[k] for k in ("noise_multiplier", "batch_size", "epochs")}
        cost = client.epsilon(privacy, **needed).epsilon
        if cost <= REFERENCE[1]:
            front.append(
                {"epsilon": cost, "stated": stated, "test": remeasured(data, params), **params}
            )
    return {"way": way, "seed": seed, "seconds": seconds, "front": front}


def mean_error(front: list[dict[str, float]]) -> float:
    """Returns the figure *error* of a front."""
    errors = []
    for target in np.geomspace(0.1, 10, 50):
        within = [p for p in front if p["epsilon"] <= target]
        offered = min(within, key=lambda p: p["stated"]) if within else None
        errors.append(offered["test"] if offered else LARGER_CLASS)
    return statistics.fmean(errors)


def hypervolume(front: list[dict[str, float]]) -> float:
    """Returns the figure *hypervolume* of a front."""
    total, ceiling = 0.0, REFERENCE[0]
    for p in sorted(front, key=lambda p: p["epsilon"]):
        if p["test"] < ceiling:
            total += (ceiling - p["test"]) * (REFERENCE[1] - p["epsilon"])
            ceiling = p["test"]
    return total


def read(path: Path) -> list[dict[str, Any]]:
    """Reads the studies that are done."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(path: Path, seeds: range) -> None:
    """Runs the studies that are not in a file yet, and appends them."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    done = {(s["way"], s["seed"]) for s in read(path)}
    for seed in seeds:
        for way in WAYS:
            if (way, seed) in done:
                continue
            with dpfront.local_server() as server, server.client() as client:
                result = study(way, seed, client)
            with path.open("a") as out:
                out.write(json.dumps(result) + "\n")
            print(way, seed, f"{result['seconds']:.0f} s", flush=True)


def lines(way: str) -> int:
    """Returns the number of lines of a way, without its docstring and empty lines."""
    body = inspect.getsource(gp if way == "gp-log" else WAYS[way]).splitlines()[2:]
    return sum(1 for line in body if line.strip())


def interval(values: list[float]) -> Iterator[float]:
    """Yields mean and the half-width of its 95 % interval (Student's t for ten values)."""
    yield statistics.fmean(values)
    yield 2.262 * statistics.stdev(values) / math.sqrt(len(values))


def table(path: Path) -> None:
    """Prints the comparison."""
    studies = read(path)
    print("| way | error | hypervolume | points | seconds | lines of user code |")
    print("|---|---|---|---|---|---|")
    for way in WAYS:
        mine = [s for s in studies if s["way"] == way]
        error, volume = ([f(s["front"]) for s in mine] for f in (mean_error, hypervolume))
        cells = [
            "{:.4f} ± {:.4f}".format(*interval(error)),
            "{:.3f} ± {:.3f}".format(*interval(volume)),
            f"{statistics.fmean(len(s['front']) for s in mine):.1f}",
            f"{statistics.median(s['seconds'] for s in mine):.1f}",
            str(lines(way)),
        ]
        print(f"| {way} | {' | '.join(cells)} |")
    other = {s["seed"]: s for s in studies if s["way"] == "gp-log"}
    for way in ("own-loop", "bridge", "gp"):
        pairs = [
            (mean_error(s["front"]), mean_error(other[s["seed"]]["front"]))
            for s in studies
            if s["way"] == way
        ]
        gain = "{:+.4f} ± {:.4f}".format(*interval([a - b for a, b in pairs]))
        print(f"{way} less gp-log, by seed: {gain}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--last-seed", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.file, range(arguments.first_seed, arguments.last_seed + 1))
    else:
        table(arguments.file)


if __name__ == "__main__":
    main()
