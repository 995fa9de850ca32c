r"""Runs other tools on the surfaces of `dpareto-lab bench dp`.

    python benchmarks/dp_surfaces.py results.jsonl --tables ~/dp-tables \
        --surface adult-logistic-sgd --method ax,botorch,optuna_tpe,optuna_gp
    dpareto-lab bench dp --surface adult-logistic-sgd --tables ~/dp-tables \
        --designer default,random --results results.jsonl

Every study is a line of the file of results. Studies that are in the file are not run again: stop
the script at any time and start it again. `dpareto-lab bench dp-serve` trains and measures, so
that a study is measured as one of dpareto's own designers is: of all epochs of its runs.

A tool is told the space with logarithmic scales, both objectives as measured at the end of a run,
and the reference as their thresholds. What it is not told is that ε can be computed and that a run
passes through shorter ones. ε is cut off at ten times its reference, so that single values do not
spoil a scale.

- `ax`: the default strategy of Ax, with the thresholds (`ax-platform`).
- `botorch`: qLogNEHVI of BoTorch (`botorch`): 12 Sobol points, then one suggestion after the other
  from a `SingleTaskGP` for each objective, ε in logarithms, with the reduced settings below.
- `optuna_tpe`, `optuna_gp`: Optuna's TPESampler and GPSampler (`optuna`, `torch` for the latter).

The seconds of a record are processor time, of all threads.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

CUT = 10
"""ε is cut off at this multiple of its reference."""

Configuration = dict[str, float]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a surface. All are on logarithmic scales."""

    name: str
    min: float
    max: float
    integer: bool


@dataclass(frozen=True)
class Problem:
    """What a tool is told of a surface."""

    parameters: list[Parameter]
    reference: dict[str, float]


class Tool(Protocol):
    """A study of a tool."""

    def ask(self) -> Configuration:
        """Suggests a configuration."""

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration, which it need not have suggested."""


class Lab(AbstractContextManager["Lab"]):
    """`dpareto-lab bench dp-serve` on one surface."""

    def __init__(self, command: list[str]) -> None:
        """Starts the process."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def request(self, **fields: Any) -> dict[str, Any]:
        """Returns the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(fields) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"dpareto-lab ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer and "states" not in answer:
            raise RuntimeError(answer["error"])
        return answer

    def __exit__(self, *_: object) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Ax:
    """Ax with its default strategy."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """Begins a study."""
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig
        from ax.utils.common.logger import set_ax_logger_levels

        set_ax_logger_levels(logging.WARNING)
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(
            parameters=[
                RangeParameterConfig(
                    name=p.name,
                    bounds=(p.min, p.max),
                    parameter_type="int" if p.integer else "float",
                    scaling="log",
                )
                for p in problem.parameters
            ]
        )
        # A constraint on an objective is its threshold.
        self._client.configure_optimization(
            objective=", ".join(f"-{name}" for name in problem.reference),
            outcome_constraints=[f"{name} <= {v}" for name, v in problem.reference.items()],
        )
        self._trial: tuple[int, Configuration] | None = None

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        ((index, parameters),) = self._client.get_next_trials(max_trials=1).items()
        self._trial = index, parameters
        return dict(parameters)

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration."""
        if self._trial is not None:
            index = self._trial[0]
        else:
            index = self._client.attach_trial(parameters=configuration)
        self._trial = None
        self._client.complete_trial(trial_index=index, raw_data=values)


class BoTorch:
    """qLogNEHVI of BoTorch."""

    SAMPLES = 64  # quasi-random draws of the posterior
    RESTARTS = 4
    RAW_SAMPLES = 128
    FIRST = 12  # Sobol points: twice the dimension plus 2

    def __init__(self, problem: Problem, seed: int) -> None:
        """Begins a study."""
        import torch

        torch.manual_seed(seed)
        self._problem = problem
        self._seed = seed
        self._sobol = torch.quasirandom.SobolEngine(len(problem.parameters), True, seed)
        self._x: list[list[float]] = []
        self._y: list[list[float]] = []

    @staticmethod
    def _scale(values: dict[str, float]) -> list[float]:
        return [-math.log(values["epsilon"]), -values["error"]]

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        unit = self._sobol.draw(1)[0].tolist() if len(self._x) < self.FIRST else self._optimum()
        configuration = {}
        for u, p in zip(unit, self._problem.parameters, strict=True):
            v = min(max(p.min * (p.max / p.min) ** u, p.min), p.max)
            configuration[p.name] = round(v) if p.integer else v
        return configuration

    def _optimum(self) -> list[float]:
        import torch
        from botorch.acquisition.multi_objective.logei import (
            qLogNoisyExpectedHypervolumeImprovement,
        )
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.optim import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler
        from gpytorch.mlls import SumMarginalLogLikelihood

        x = torch.tensor(self._x, dtype=torch.double)
        y = torch.tensor(self._y, dtype=torch.double)
        model = ModelListGP(*(SingleTaskGP(x, y[:, j : j + 1]) for j in range(y.shape[1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model=model,
            ref_point=self._scale(self._problem.reference),
            X_baseline=x,
            prune_baseline=True,
            sampler=SobolQMCNormalSampler(torch.Size([self.SAMPLES]), seed=self._seed),
        )
        d = x.shape[1]
        bounds = torch.stack([torch.zeros(d), torch.ones(d)]).to(x)
        best, _ = optimize_acqf(
            acquisition, bounds, 1, num_restarts=self.RESTARTS, raw_samples=self.RAW_SAMPLES
        )
        unit: list[float] = best[0].tolist()
        return unit

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration."""
        self._x.append(
            [
                math.log(configuration[p.name] / p.min) / math.log(p.max / p.min)
                for p in self._problem.parameters
            ]
        )
        self._y.append(self._scale(values))


class Optuna:
    """A sampler of Optuna."""

    def __init__(self, problem: Problem, sampler: Callable[[Any], Any]) -> None:
        """Begins a study."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._distributions: dict[str, Any] = {
            p.name: optuna.distributions.IntDistribution(int(p.min), int(p.max), log=True)
            if p.integer
            else optuna.distributions.FloatDistribution(p.min, p.max, log=True)
            for p in problem.parameters
        }
        self._study = optuna.create_study(
            directions=["minimize"] * len(problem.reference), sampler=sampler(optuna.samplers)
        )
        self._trial: Any = None

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        self._trial = self._study.ask(self._distributions)
        return dict(self._trial.params)

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration."""
        if self._trial is not None:
            self._study.tell(self._trial, list(values.values()))
        else:
            self._study.add_trial(
                self._optuna.trial.create_trial(
                    params=configuration,
                    distributions=self._distributions,
                    values=list(values.values()),
                )
            )
        self._trial = None


METHODS: dict[str, Callable[[Problem, int], Tool]] = {
    "ax": Ax,
    "botorch": BoTorch,
    "optuna_tpe": lambda problem, seed: Optuna(problem, lambda s: s.TPESampler(seed=seed)),
    "optuna_gp": lambda problem, seed: Optuna(
        problem, lambda s: s.GPSampler(seed=seed, deterministic_objective=False)
    ),
}


def describe(lab: Lab) -> tuple[dict[str, Any], Problem]:
    """Returns what tells the records of a surface from others, and the problem."""
    answer = lab.request(describe=True)
    identity = {
        k: answer[k] for k in ("surface", "noiseless", "smooth", "reported_epsilon", "table")
    }
    parameters = [
        Parameter(p["name"], p["min"], p["max"], p["integer"]) for p in answer["parameters"]
    ]
    return identity, Problem(parameters, {o["name"]: o["reference"] for o in answer["objectives"]})


def study(
    lab: Lab, problem: Problem, method: str, seed: int, budget: int, initial: int
) -> dict[str, Any]:
    """Runs one study and returns its record."""
    tool = METHODS[method](problem, seed)
    shared = lab.request(start={"method": method, "seed": seed, "initial": initial})["initial"]
    seconds, asked = 0.0, 0
    for n in range(budget):
        begin = time.process_time()
        if n < initial:
            configuration = {p.name: shared[n][p.name] for p in problem.parameters}
            for p in problem.parameters:
                configuration[p.name] = (int if p.integer else float)(configuration[p.name])
        else:
            configuration = tool.ask()
            asked += 1
        taken = time.process_time() - begin
        run = lab.request(evaluate=configuration)
        values = {name: run[name] for name in problem.reference}
        most = CUT * problem.reference["epsilon"]
        values["epsilon"] = most if values["epsilon"] is None else min(values["epsilon"], most)
        begin = time.process_time()
        tool.tell(configuration, values)
        taken += time.process_time() - begin
        if n >= initial:
            seconds += taken
    return lab.request(finish={"seconds": seconds / max(asked, 1)})


def done(path: Path) -> list[dict[str, Any]]:
    """Returns the records that are in a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: list[str] | None = None) -> None:
    """Runs the studies that are not in the file of results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="file of results")
    parser.add_argument("--surface", required=True)
    parser.add_argument("--tables", required=True, help="folder of the tables")
    parser.add_argument("--method", default=",".join(METHODS), help="with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="seeds: 1, 2, and so on")
    parser.add_argument("--budget", type=int, default=30, help="runs of a study")
    parser.add_argument("--initial", type=int, default=0, help="shared quasi-random points")
    parser.add_argument("--noiseless", action="store_true")
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--lab", default="dpareto-lab", help="the program, with its arguments")
    o = parser.parse_args(arguments)
    methods = o.method.split(",")
    for method in methods:
        if method not in METHODS:
            parser.error(f"--method must be some of {', '.join(METHODS)}, is {method}")
    warnings.simplefilter("ignore")

    command = [*shlex.split(o.lab), "bench", "dp-serve", "--surface", o.surface]
    command += ["--tables", o.tables]
    command += [f"--{flag}" for flag in ("noiseless", "smooth") if getattr(o, flag)]
    with Lab(command) as lab:
        identity, problem = describe(lab)
        for seed in range(1, o.seeds + 1):
            for method in methods:
                wanted = {**identity, "method": method, "seed": seed, "initial": o.initial}
                if any(
                    all(r.get(k) == v for k, v in wanted.items()) and len(r["epochs"]) >= o.budget
                    for r in done(o.results)
                ):
                    continue
                record = study(lab, problem, method, seed, o.budget, o.initial)
                with o.results.open("a") as out:
                    out.write(json.dumps(record) + "\n")
                print(
                    f"{method}, seed {seed}: {record['reported'][-1]:.4f}, "
                    f"{record['seconds']:.2f} s a suggestion",
                    file=sys.stderr,
                )


if __name__ == "__main__":
    main()
