r"""Another tool as a designer in `dpareto-lab bench engine` and `bench dp`.

    dpareto-lab bench engine --problem zdt1 --designer default --unknown-noise \
        --tool "ax=python benchmarks/peers.py ax"
    dpareto-lab bench dp --surface adult-logistic-sgd --tables ~/dp-tables --results results.jsonl \
        --designer default --tool "botorch=python benchmarks/peers.py botorch"

It answers lines of JSON on standard input, which cmd/dpareto-lab/notes/benchmarks.md describes.
A tool is told the space with its scales, the objectives as measured, and their references as
thresholds. Objectives on logarithmic scales are cut off at ten times their reference, so that
single values do not spoil a scale.

- `ax`: the default strategy of Ax, with the thresholds (`ax-platform`).
- `botorch`: qLogNEHVI of BoTorch (`botorch`): 2(d + 1) Sobol points for d parameters, then one
  suggestion after the other from a `SingleTaskGP` for each objective, those on logarithmic scales
  in logarithms, with the reduced settings below.
- `optuna_tpe`, `optuna_gp`: Optuna's TPESampler and GPSampler (`optuna`, `torch` for the latter).

Constraints are for `ax` only. Seconds are processor time, of all threads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

CUT = 10
"""An objective on a logarithmic scale is cut off at this multiple of its reference."""

Configuration = dict[str, float]


class Asked(dict[tuple[tuple[str, float], ...], list[Any]]):
    """The trials that a tool has suggested and knows no result of, by their configurations."""

    @staticmethod
    def _key(configuration: Configuration) -> tuple[tuple[str, float], ...]:
        return tuple(sorted(configuration.items()))

    def put(self, configuration: Configuration, trial: Any) -> None:
        """Remembers the trial of a configuration."""
        self.setdefault(self._key(configuration), []).append(trial)

    def take(self, configuration: Configuration) -> Any:
        """Returns the trial of a configuration, or None if it was not suggested."""
        trials = self.get(self._key(configuration))
        return trials.pop(0) if trials else None


@dataclass(frozen=True)
class Parameter:
    """A parameter: a number in a range."""

    name: str
    min: float
    max: float
    integer: bool
    logarithmic: bool

    def at(self, u: float) -> float:
        """Returns the value at a place in [0, 1] of the range."""
        if self.logarithmic:
            v: float = self.min * (self.max / self.min) ** u
        else:
            v = self.min + (self.max - self.min) * u
        v = min(max(v, self.min), self.max)
        return round(v) if self.integer else v

    def place(self, v: float) -> float:
        """Returns the place of a value in [0, 1]."""
        if self.logarithmic:
            return math.log(v / self.min) / math.log(self.max / self.min)
        return (v - self.min) / (self.max - self.min)


@dataclass(frozen=True)
class Objective:
    """An objective with its anti-ideal value."""

    name: str
    maximize: bool
    reference: float
    logarithmic: bool

    def value(self, measured: float | None) -> float:
        """Returns what tools are told for a value, of which None is infinite."""
        if not self.logarithmic or self.maximize:
            if measured is None:
                raise ValueError(f"{self.name} is infinite")
            return measured
        most = CUT * self.reference
        return most if measured is None else min(measured, most)


@dataclass(frozen=True)
class Constraint:
    """A range that a metric must be in."""

    name: str
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Problem:
    """What a tool is told of a problem."""

    parameters: list[Parameter]
    objectives: list[Objective]
    constraints: list[Constraint]

    def configuration(self, values: Configuration) -> Configuration:
        """Returns a configuration with whole numbers where they are."""
        return {
            p.name: round(values[p.name]) if p.integer else float(values[p.name])
            for p in self.parameters
        }

    def values(self, measured: dict[str, float | None]) -> dict[str, float]:
        """Returns what tools are told of a run."""
        values = {o.name: o.value(measured[o.name]) for o in self.objectives}
        for c in self.constraints:
            v = measured[c.name]
            if v is None:
                raise ValueError(f"{c.name} is infinite")
            values[c.name] = v
        return values


class Tool(Protocol):
    """A study of a tool."""

    def ask(self) -> Configuration:
        """Suggests a configuration."""

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the values of a configuration, which it need not have suggested."""


def unconstrained(problem: Problem) -> None:
    """Raises an error for a problem with constraints."""
    if problem.constraints:
        raise ValueError("this tool is run without constraints only")


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
                    scaling="log" if p.logarithmic else None,
                )
                for p in problem.parameters
            ]
        )
        # A constraint on an objective is its threshold.
        bounds = [
            f"{o.name} {'>=' if o.maximize else '<='} {o.reference}" for o in problem.objectives
        ]
        for c in problem.constraints:
            if c.lower is not None:
                bounds.append(f"{c.name} >= {c.lower}")
            if c.upper is not None:
                bounds.append(f"{c.name} <= {c.upper}")
        self._client.configure_optimization(
            objective=", ".join(o.name if o.maximize else f"-{o.name}" for o in problem.objectives),
            outcome_constraints=bounds,
        )
        self._asked = Asked()

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        ((index, parameters),) = self._client.get_next_trials(max_trials=1).items()
        self._asked.put(parameters, index)
        return dict(parameters)

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration."""
        index = self._asked.take(configuration)
        if index is None:
            index = self._client.attach_trial(parameters=configuration)
        self._client.complete_trial(trial_index=index, raw_data=values)


class BoTorch:
    """qLogNEHVI of BoTorch."""

    SAMPLES = 64  # quasi-random draws of the posterior
    RESTARTS = 4
    RAW_SAMPLES = 128

    def __init__(self, problem: Problem, seed: int) -> None:
        """Begins a study."""
        import torch

        # What a suggestion needs is loaded before its time is measured.
        for module in ("botorch.acquisition.multi_objective.logei", "botorch.fit", "botorch.optim"):
            importlib.import_module(module)
        unconstrained(problem)
        torch.manual_seed(seed)
        self._problem = problem
        self._first = 2 * (len(problem.parameters) + 1)
        self._seed = seed
        self._sobol = torch.quasirandom.SobolEngine(len(problem.parameters), True, seed)
        self._x: list[list[float]] = []
        self._y: list[list[float]] = []

    def _scale(self, values: dict[str, float]) -> list[float]:
        scaled = []
        for o in self._problem.objectives:
            v = math.log(values[o.name]) if o.logarithmic else values[o.name]
            scaled.append(v if o.maximize else -v)
        return scaled

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        unit = self._sobol.draw(1)[0].tolist() if len(self._x) < self._first else self._optimum()
        return {p.name: p.at(u) for u, p in zip(unit, self._problem.parameters, strict=True)}

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
            ref_point=self._scale({o.name: o.reference for o in self._problem.objectives}),
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
        self._x.append([p.place(configuration[p.name]) for p in self._problem.parameters])
        self._y.append(self._scale(values))


class Optuna:
    """A sampler of Optuna."""

    def __init__(self, problem: Problem, sampler: Callable[[Any], Any]) -> None:
        """Begins a study."""
        import optuna

        unconstrained(problem)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._distributions: dict[str, Any] = {
            p.name: optuna.distributions.IntDistribution(int(p.min), int(p.max), log=p.logarithmic)
            if p.integer
            else optuna.distributions.FloatDistribution(p.min, p.max, log=p.logarithmic)
            for p in problem.parameters
        }
        self._study = optuna.create_study(
            directions=["maximize" if o.maximize else "minimize" for o in problem.objectives],
            sampler=sampler(optuna.samplers),
        )
        self._asked = Asked()

    def ask(self) -> Configuration:
        """Suggests a configuration."""
        trial = self._study.ask(self._distributions)
        self._asked.put(trial.params, trial)
        return dict(trial.params)

    def tell(self, configuration: Configuration, values: dict[str, float]) -> None:
        """Takes the objectives of a configuration."""
        trial = self._asked.take(configuration)
        if trial is not None:
            self._study.tell(trial, list(values.values()))
        else:
            self._study.add_trial(
                self._optuna.trial.create_trial(
                    params=configuration,
                    distributions=self._distributions,
                    values=list(values.values()),
                )
            )


METHODS: dict[str, Callable[[Problem, int], Tool]] = {
    "ax": Ax,
    "botorch": BoTorch,
    "optuna_tpe": lambda problem, seed: Optuna(problem, lambda s: s.TPESampler(seed=seed)),
    "optuna_gp": lambda problem, seed: Optuna(
        problem, lambda s: s.GPSampler(seed=seed, deterministic_objective=False)
    ),
}


def read(problem: dict[str, Any]) -> Problem:
    """Returns the problem of a line."""
    return Problem(
        [Parameter(**p) for p in problem["parameters"]],
        [Objective(**o) for o in problem["objectives"]],
        [Constraint(**c) for c in problem["constraints"]],
    )


def serve(method: Callable[[Problem, int], Tool], lines: Iterator[str], out: TextIO) -> None:
    """Answers the lines of one study."""
    first = json.loads(next(lines))
    problem = read(first["problem"])
    tool = method(problem, first["seed"])
    print("{}", file=out, flush=True)
    for line in lines:
        begin = time.process_time()
        for result in json.loads(line)["results"]:
            tool.tell(
                problem.configuration(result["configuration"]), problem.values(result["values"])
            )
        configuration = tool.ask()
        answer = {"configuration": configuration, "seconds": time.process_time() - begin}
        print(json.dumps(answer), file=out, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs a tool on one study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=METHODS)
    method = METHODS[parser.parse_args(arguments).method]
    warnings.simplefilter("ignore")
    # What a tool prints is no answer.
    out, sys.stdout = sys.stdout, sys.stderr
    serve(method, sys.stdin, out)


if __name__ == "__main__":
    main()
