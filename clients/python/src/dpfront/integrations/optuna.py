"""An Optuna sampler whose suggestions come from a dpareto study.

    sampler = DParetoSampler.create(
        client, "adult", space, [Maximize("accuracy", 0.5), dpfront.epsilon(privacy)]
    )
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=32)

The objective stays as it is. It returns the metrics in the order of the dpareto study's
objectives; ε, which the server knows before the run, is `epsilon(trial)`. Any number of
processes can share the dpareto study, with any Optuna storage or none.
"""

from __future__ import annotations

import inspect
import itertools
import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from dpfront import errors
from dpfront import spec as s
from dpfront._space import categories, float_parameter, int_parameter
from dpfront._trial import describe
from dpfront.client import Client, Study, Trial
from dpfront.v1 import metric_pb2, parameter_pb2, study_pb2

__all__ = ["DParetoSampler", "distributions", "epsilon", "parameters"]

EPSILON_KEY = "dpareto:epsilon"
TRIAL_KEY = "dpareto:trial"

Choices = Mapping[str, Mapping[str, Any]]


def epsilon(trial: optuna.Trial | FrozenTrial) -> float:
    """Returns ε of the trial's run, as the server computes it."""
    value = trial.user_attrs.get(EPSILON_KEY)
    if value is None:
        raise KeyError(f"trial {trial.number} has no ε: its study has no privacy metric")
    return float(value)


class DParetoSampler(BaseSampler):
    """Takes configurations of trials from a dpareto study, and reports their results to it.

    A trial that raises an exception, or has a result that is not finite, is infeasible: the
    study avoids similar ones. A trial that is interrupted (Ctrl-C), or fails in a call of this
    package, goes back to the queue. A trial that Optuna prunes counts up to its last report if
    the study has a checkpoint parameter (the steps of the reports are then its values, from 1
    on), and otherwise not at all. The objective sets metrics that it does not return, such as
    constraints, as user attributes of the trial by their ids. Configurations from
    ``study.enqueue_trial`` become conditions of requests. Leases are renewed in the
    background. ``optimize`` ends when the dpareto study is done; a trial begun by then is
    pruned.

    Args:
        study: The study. Its parameters have the names that the objective suggests.
        metrics: Ids of the metrics that the objective returns, in their order. By default the
            study's objectives. A value of a computed metric is kept beside the server's.
        choices: For categorical parameters, what the objective gets for a category instead of
            its name.
        independent_sampler: Sampler of parameters that the study does not have; random by
            default.
    """

    def __init__(
        self,
        study: Study,
        *,
        metrics: Sequence[str] | None = None,
        choices: Choices | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        self._study = study
        info = study.info()
        self._metrics = tuple(metrics or info.objectives)
        self._reported = info.reported
        self._choices = {k: dict(v) for k, v in (choices or {}).items()}
        self._space = distributions(study.spec, self._choices)
        self._independent = independent_sampler or RandomSampler()
        self._held: dict[int, Trial] = {}
        self._done: dict[int, str] = {}  # trials after the end, with the reason
        self._lock = threading.Lock()
        goals = {m.id: m.goal for m in study.spec.metrics}
        unknown = [m for m in self._metrics if m not in goals]
        if unknown:
            raise ValueError(f"metrics: {study.name} has no {', '.join(unknown)}")
        self._goals = [goals[m] for m in self._metrics]

    @classmethod
    def create(
        cls,
        client: Client,
        id: str,
        space: Mapping[str, BaseDistribution],
        metrics: Sequence[s.Metric],
        **fields: Any,
    ) -> DParetoSampler:
        """Creates a dpareto study over distributions of Optuna, or loads it if it is the same.

        Further keyword arguments are fields of `dpfront.StudySpec`.
        """
        params, choices = parameters(space)
        return cls(Study.create(client, id, params, metrics, **fields), choices=choices)

    @property
    def study(self) -> Study:
        """The dpareto study, with its front and recommendations."""
        return self._study

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_lock"]
        state["_held"], state["_done"] = {}, {}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        """Reseeds the sampler of other parameters; the study's draws need none."""
        self._independent.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Asks the dpareto study for a configuration."""
        self._check_directions(study)
        fixed = trial.system_attrs.get("fixed_params") or {}
        try:
            asked = self._study.ask(
                fixed={k: self._category(k, v) for k, v in fixed.items() if k in self._space}
            )
        except errors.StudyDone as done:
            try:
                study.stop()
            except RuntimeError:  # ask was called, not optimize
                study.tell(trial.number, state=TrialState.FAIL)
                raise done from None
            self._done[trial.number] = str(done)
            return
        asked.keep_alive()
        with self._lock:
            self._held[trial.number] = asked
        attributes: dict[str, Any] = {TRIAL_KEY: asked.name}
        if asked.epsilon is not None:
            attributes[EPSILON_KEY] = asked.epsilon
        for key, value in attributes.items():
            # Samplers have no public way to the attributes of a running trial: the storage
            # keeps them, and the trial at hand shows them.
            study._storage.set_trial_user_attr(trial._trial_id, key, value)
            trial.user_attrs[key] = value

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Returns the parameters of the dpareto study."""
        return dict(self._space)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Returns the configuration that was asked for."""
        asked = self._held.get(trial.number)
        return {} if asked is None else self._params(asked)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draws a parameter that the dpareto study does not have."""
        if trial.number in self._done:
            raise optuna.TrialPruned(self._done[trial.number])
        if param_name in self._space:
            asked = self._held.get(trial.number)
            if asked is not None and param_name not in asked.params:
                raise ValueError(
                    f"{param_name} does not exist in this trial: its condition in "
                    f"{self._study.name} does not hold"
                )
            raise ValueError(
                f"{param_name} is {self._space[param_name]} in {self._study.name}, and "
                f"{param_distribution} does not hold the value that was suggested"
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Reports the outcome of a trial to the dpareto study."""
        with self._lock:
            self._done.pop(trial.number, None)
            asked = self._held.pop(trial.number, None)
        if asked is None:
            return
        try:
            self._tell(asked, trial, state, values)
        except errors.LeaseLost:
            pass  # another worker has it
        except BaseException:
            with suppress(errors.DParetoError):
                asked._give_back("its result was refused")  # no worker is left to end it
            raise
        if self._study.info().state == "completed":
            with suppress(RuntimeError):  # between ask and tell there is nothing to stop
                study.stop()

    def _tell(
        self,
        asked: Trial,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        expected = self._params(asked)
        other = [k for k, v in trial.params.items() if k in self._space and v != expected.get(k)]
        if other:
            warnings.warn(
                f"trial {trial.number} ran another {', '.join(other)} than {asked.name} has, "
                "which is given back",
                stacklevel=2,
            )
            asked.release("another configuration was run")
        elif state is TrialState.COMPLETE and values is not None:
            self._succeed(asked, trial, values, None)
        elif state is TrialState.PRUNED:
            reports = trial.intermediate_values
            step = max(reports, default=0)
            # Step 0 would mean the end of the whole run.
            if step > 0 and self._study.spec.checkpoint_parameter and len(self._metrics) == 1:
                self._succeed(asked, trial, [reports[step]], step)
            else:
                asked.fail("pruned", retryable=False)
        else:
            error = _error_of_objective()
            if error is None:
                asked.infeasible("the objective failed")
            elif isinstance(error, errors.DParetoError) or not isinstance(error, Exception):
                asked._give_back(describe(error))
            else:
                asked.infeasible(describe(error))

    def _succeed(
        self, asked: Trial, trial: FrozenTrial, values: Sequence[float], step: int | None
    ) -> None:
        """Reports results, and the trial's attributes of other metrics."""
        metrics = dict(zip(self._metrics, values, strict=True))
        for metric in self._reported:
            if metric not in metrics and metric in trial.user_attrs:
                metrics[metric] = trial.user_attrs[metric]
        try:
            asked.tell(metrics, step=step)
        except errors.NotFinite as error:
            asked.infeasible(str(error))

    def _params(self, asked: Trial) -> dict[str, Any]:
        """Returns the configuration as the objective gets it."""
        out = {}
        for name, value in asked.params.items():
            if name in self._choices:
                value = self._choices[name][str(value)]
            elif isinstance(self._space[name], IntDistribution):
                value = int(value)
            out[name] = value
        return out

    def _category(self, name: str, value: Any) -> Any:
        """Returns the category of the study that stands for what an objective gets."""
        for category, choice in self._choices.get(name, {}).items():
            if choice == value and type(choice) is type(value):
                return category
        return value

    def _check_directions(self, study: optuna.Study) -> None:
        directions = study.directions
        if len(directions) != len(self._metrics):
            raise ValueError(
                f"the Optuna study has {len(directions)} directions for {', '.join(self._metrics)}"
            )
        for metric, goal, direction in zip(self._metrics, self._goals, directions, strict=True):
            minimize = direction is optuna.study.StudyDirection.MINIMIZE
            if goal and minimize != (goal == metric_pb2.GOAL_MINIMIZE):
                raise ValueError(
                    f"{metric} is to be {direction.name.lower()}d in the Optuna study, and the "
                    f"other way round in {self._study.name}"
                )


def _error_of_objective() -> BaseException | None:
    """Returns the exception with which an objective function failed, if any.

    Optuna tells samplers that a trial failed, but not how: only its loop, up the stack, knows.
    Otherwise every failure would count against the configuration.
    """
    frame = inspect.currentframe()
    while frame is not None:
        error = frame.f_locals.get("func_err")
        if isinstance(error, BaseException) and frame.f_globals.get("__name__", "").startswith(
            "optuna."
        ):
            return error
        frame = frame.f_back
    return None


def parameters(
    space: Mapping[str, BaseDistribution],
) -> tuple[list[s.Parameter], dict[str, dict[str, Any]]]:
    """Returns the parameters of a dpareto study for distributions of Optuna.

    Steps become lists of values; distributions with one value are left to Optuna. The second
    result says what an objective gets for categories that are not names.
    """
    out: list[s.Parameter] = []
    choices: dict[str, dict[str, Any]] = {}
    for name, d in space.items():
        found: s.Parameter | None = None
        if isinstance(d, IntDistribution):
            found = int_parameter(name, d.low, d.high, d.step, d.log)
        elif isinstance(d, FloatDistribution):
            found = float_parameter(name, d.low, d.high, d.step, d.log)
        elif isinstance(d, CategoricalDistribution):
            texts = categories(name, d.choices)
            if len(texts) > 1:
                found = s.Categorical(name, list(texts))
                if any(not isinstance(c, str) for c in d.choices):
                    choices[name] = texts
        else:
            raise TypeError(f"{name}: {type(d).__name__} is not known")
        if found is not None:
            out.append(found)
    return out, choices


def distributions(
    spec: study_pb2.StudySpec, choices: Choices | None = None
) -> dict[str, BaseDistribution]:
    """Returns the distributions of Optuna for the parameters of a dpareto study.

    Values at equal distances become a step, others choices.
    """
    out: dict[str, BaseDistribution] = {}
    for p in spec.parameters:
        log = p.scale == parameter_pb2.SCALE_LOG
        domain = p.WhichOneof("domain")
        if domain == "double_domain":
            out[p.id] = FloatDistribution(p.double_domain.min, p.double_domain.max, log=log)
        elif domain == "integer_domain":
            out[p.id] = IntDistribution(p.integer_domain.min, p.integer_domain.max, log=log)
        elif domain == "discrete_domain":
            out[p.id] = _discrete(list(p.discrete_domain.values))
        else:
            names = list(p.categorical_domain.categories)
            mapped = (choices or {}).get(p.id)
            out[p.id] = CategoricalDistribution([mapped[n] for n in names] if mapped else names)
    return out


def _discrete(values: list[float]) -> BaseDistribution:
    steps = [b - a for a, b in itertools.pairwise(values)]
    if not all(math.isclose(step, steps[0], rel_tol=1e-9) for step in steps):
        return CategoricalDistribution(values)
    if all(v.is_integer() for v in values):
        return IntDistribution(int(values[0]), int(values[-1]), step=int(steps[0]))
    return FloatDistribution(values[0], values[-1], step=steps[0])
