"""An Optuna sampler whose suggestions come from a dpareto study.

    sampler = DParetoSampler.create(
        client,
        "adult",
        space,
        [Maximize("accuracy", 0.5), dpfront.epsilon(privacy)],
        checkpoint_parameter="epochs",
    )
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=32)

An objective for Optuna runs as it is. It returns the metrics in the order of the dpareto
study's objectives; ε, which the server knows before the run, is `epsilon(trial)`. It can also
report on the way, with any number of objectives, and learn when to stop:

    def objective(trial):
        model = build(trial.suggest_float("learning_rate", 1e-3, 1, log=True))
        for epoch in range(1, trial.suggest_int("epochs", 1, 20) + 1):
            train_one_epoch(model)
            if report(trial, epoch, accuracy=evaluate(model)):
                break  # the server expects nothing more of this run
        return evaluate(model), epsilon(trial)

How a trial of Optuna ends decides what the dpareto study learns:

| in Optuna, the trial | in the dpareto study, it |
|---|---|
| returns finite values | succeeds |
| returns after `report` or `should_stop` said to stop | succeeds, with its last report (*) |
| raises ``TrialPruned`` after a `report` | succeeds, with its last report (*) |
| raises ``TrialPruned`` without one | fails for good: it counts, and teaches nothing |
| calls `infeasible`, or reports NaN or infinity | is infeasible: similar ones are avoided |
| returns infinity | is infeasible |
| fails in any other way | goes back to the queue, and teaches nothing |

(*) In a study with a checkpoint parameter. Without one, a report on the way says nothing about
the whole run: values that are returned count, and a pruned trial fails for good.

Optuna does not tell a sampler *why* a trial failed: a bug, Ctrl-C, an exception in ``catch=`` and a
result that is NaN all look the same. So a failure says nothing about the configuration. The trial
is handed out again, up to ``max_attempts`` times (a field of the study, 5 by default), and fails
for good after that. To tell the study which failures are the configuration's fault, wrap the
objective: ``study.optimize(catching(objective, ValueError), n_trials=32)``.

Any number of threads and processes can share the dpareto study, with any Optuna storage or
none. A process can report only on the trials that it asked for.
"""

from __future__ import annotations

import functools
import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from dpfront import errors
from dpfront import spec as s
from dpfront._operations import trials
from dpfront._sync.client import Client
from dpfront._sync.study import Study
from dpfront._sync.trial import Trial
from dpfront._trial import Values, describe, failure_request, merge
from dpfront.integrations._distributions import Choices, distributions, parameters
from dpfront.v1 import metric_pb2

__all__ = [
    "DParetoSampler",
    "catching",
    "distributions",
    "dpareto_trial",
    "epsilon",
    "infeasible",
    "parameters",
    "report",
    "should_stop",
]

logger = logging.getLogger("dpfront")

EPSILON_KEY = "dpareto:epsilon"
TRIAL_KEY = "dpareto:trial"

Objective = Callable[[optuna.Trial], float | Sequence[float]]


@dataclass
class _Run:
    """A trial that this process runs."""

    trial: Trial
    epsilon: float | None
    """ε of the whole run, or of what was run until the objective was told to stop."""
    step: int | None = None
    """Of the last report."""
    stop_step: int | None = None
    """The same, if the objective was then told to stop."""
    noted: bool = False
    """Whether Optuna's trial has the attributes."""


def dpareto_trial(trial: optuna.Trial) -> Trial:
    """Returns the dpareto trial behind a running trial of Optuna.

    It has the ``guarantee`` with δ and adjacency, the ``replicates`` to make, and ``seeded`` to
    set. The sampler ends it, after the objective.

    Raises:
        TypeError: The sampler of the trial's study is no `DParetoSampler`.
        RuntimeError: The trial has ended, or another process asked for it.
    """
    return _run(trial).trial


def epsilon(trial: optuna.Trial | FrozenTrial) -> float:
    """Returns ε of the trial's run, an upper bound that the server computes.

    It is known before the run, and even before the first ``trial.suggest_float``. It covers the
    whole run until `report` says to stop. Then, if the study has a checkpoint parameter, it covers
    the run up to this report. `should_stop` does not change it: it cannot know how far the run is.
    It covers this run alone. Its δ and adjacency are in ``dpareto_trial(trial).guarantee``.

    Raises:
        KeyError: The study has no privacy metric. Of a trial that has ended, also: neither
            `epsilon` nor another function of this module was called while it ran.
    """
    try:
        value = _run(trial).epsilon if isinstance(trial, optuna.Trial) else None
    except RuntimeError:  # it has ended: its attributes tell
        value = None
    if value is None:
        value = trial.user_attrs.get(EPSILON_KEY)
    if value is None:
        raise KeyError(
            f"trial {trial.number} has no ε: its study has no privacy metric, or the objective "
            "did not ask for it"
        )
    return float(value)


def report(
    trial: optuna.Trial,
    step: int,
    values: Values | Sequence[Values] | Mapping[str, Values] | None = None,
    **metrics: Values,
) -> bool:
    """Reports results on the way, and renews the lease. It works with any number of objectives.

    If the study has a checkpoint parameter, such as the epochs, the step is its value at this point
    of the run, from 1 on. The report is then a point of the front, with its own ε. Loops over
    ``range(epochs)`` are one behind: report ``epoch + 1``. Optuna and its pruner see nothing of
    these reports. The methods ``trial.report`` and ``trial.should_prune`` continue to work, with
    one objective, and the dpareto study sees nothing of them.

    Args:
        trial: The trial of Optuna.
        step: Where in the run the results belong.
        values: Metrics by id; or as the objective returns them, where values of computed
            metrics are left out, since the server knows them at every step.
        metrics: The same by name: ``report(trial, epoch, accuracy=0.8)``.

    Returns:
        Whether the run should stop. Then return the values as usual, or raise
        ``optuna.TrialPruned``: the trial ends with this report.

    Raises:
        optuna.TrialPruned: A value is not finite, so that the configuration is infeasible; or
            another worker has the trial. Let it pass.
    """
    run = _run(trial)
    try:
        stop = run.trial.report(step, merge(_sampler(trial)._named(values), metrics))
    except errors.NotFinite as error:
        raise infeasible(trial, str(error)) from error
    except errors.LeaseLost as error:
        raise optuna.TrialPruned(str(error)) from error
    run.step = step
    _told(run, stop)
    if stop and run.epsilon is not None:
        run.epsilon = _epsilon_at(run.trial, step, run.epsilon, _sampler(trial).study)
        trial.set_user_attr(EPSILON_KEY, run.epsilon)
    return stop


def should_stop(trial: optuna.Trial) -> bool:
    """Returns whether the run should stop, as `report` does.

    The answer is known from the last report and from the renewals of the lease, without a call.
    Ask right after a report: a run that stops ends with its last report.
    """
    run = _run(trial)
    stop = run.trial.should_stop
    _told(run, stop)
    return stop


def infeasible(trial: optuna.Trial, reason: str) -> optuna.TrialPruned:
    """Ends the trial: its configuration cannot work, and the study avoids similar ones.

    Returns:
        What ends the trial in Optuna, to be raised by the objective:
        ``raise infeasible(trial, "diverged")``. With ask and tell, tell Optuna the state PRUNED.
    """
    asked = _run(trial).trial
    with suppress(errors.LeaseLost):  # another worker has it
        asked.infeasible(reason)
    return optuna.TrialPruned(reason)


def catching(objective: Objective, *exceptions: type[Exception]) -> Objective:
    """Returns an objective whose failures say that a configuration is infeasible.

    The failures are the exceptions, `dpfront.Infeasible`, and results that are not finite. The
    study learns to avoid similar configurations; in Optuna the trial is pruned. Other
    exceptions, ``TrialPruned`` and errors of this package pass unchanged.
    """
    caught: tuple[type[Exception], ...] = (errors.Infeasible, *exceptions)

    @functools.wraps(objective)
    def wrapped(trial: optuna.Trial) -> float | Sequence[float]:
        try:
            values = objective(trial)
        except (optuna.TrialPruned, errors.DParetoError):
            raise
        except caught as error:
            raise infeasible(trial, describe(error)) from error
        for value in values if isinstance(values, Sequence) else [values]:
            with suppress(TypeError, ValueError):  # no number: Optuna complains
                if not math.isfinite(value):
                    raise infeasible(trial, f"the objective returned {values}")
        return values

    return wrapped


def _sampler(trial: optuna.Trial) -> DParetoSampler:
    """Returns the sampler of a trial's study."""
    sampler = trial.study.sampler
    if not isinstance(sampler, DParetoSampler):
        raise TypeError(
            f"trial {trial.number}: the sampler of its study is {type(sampler).__name__}, "
            "not DParetoSampler"
        )
    return sampler


def _run(trial: optuna.Trial) -> _Run:
    """Returns the run of a trial of Optuna."""
    sampler = _sampler(trial)
    key = _key(trial.study, trial)
    if key in sampler._done:
        raise optuna.TrialPruned(sampler._done[key])
    run = sampler._runs.get(key)
    if run is None:
        raise RuntimeError(f"trial {trial.number} has ended, or another process asked for it")
    if not run.noted:
        run.noted = True
        trial.set_user_attr(TRIAL_KEY, run.trial.name)
        if run.epsilon is not None:
            trial.set_user_attr(EPSILON_KEY, run.epsilon)
    return run


def _told(run: _Run, stop: bool) -> None:
    """Notes whether the objective is told to stop."""
    run.stop_step = run.step if stop else None


def _epsilon_at(asked: Trial, step: int, whole: float, study: Study) -> float:
    """Returns ε of a run up to a report. That of the whole run is an upper bound of it."""
    if study.spec.checkpoint_parameter:
        private = min(k for k, v in asked.raw.computed_metrics.items() if v.HasField("privacy"))
        with suppress(errors.CallError):  # the upper bound will do
            for measured in study.get_trial(asked.number).measurements:
                if measured.step == step:
                    return measured.metrics[private]
    return whole


def _key(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> tuple[str, int]:
    """Returns the key of a trial: several studies of Optuna can share a sampler."""
    return study.study_name, trial.number


class DParetoSampler(BaseSampler):
    """Takes configurations of trials from a dpareto study, and reports their results to it.

    What becomes of a trial is told at the top of the module. The objective sets metrics that it
    does not return, such as constraints, as user attributes of the trial by their ids.
    Configurations from ``study.enqueue_trial`` become conditions of requests. Leases are renewed
    in the background. ``optimize`` ends when the dpareto study is done; a trial begun by then is
    pruned.

    Args:
        study: The study. Its parameters have the names that the objective suggests.
        returns: Ids of the metrics that the objective returns, in their order. By default the
            study's objectives. Own values of a computed metric are kept beside the server's.
        choices: For categorical parameters, what the objective gets for a category instead of
            its name.
        independent_sampler: Sampler of parameters that the study does not have; random by
            default.
    """

    def __init__(
        self,
        study: Study,
        *,
        returns: Sequence[str] | None = None,
        choices: Choices | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        self._study = study
        info = study.info()
        self._returns = tuple(returns or info.objectives)
        self._reported = info.reported
        self._choices = {k: dict(v) for k, v in (choices or {}).items()}
        self._space = distributions(study.spec, self._choices)
        self._independent = independent_sampler or RandomSampler()
        # Who names a sampler of other parameters knows of them.
        self._warned: set[str] | None = set() if independent_sampler is None else None
        self._runs: dict[tuple[str, int], _Run] = {}
        self._done: dict[tuple[str, int], str] = {}  # trials after the end, with the reason
        goals = {m.id: m.goal for m in study.spec.metrics}
        unknown = [m for m in self._returns if m not in goals]
        if unknown:
            raise ValueError(f"returns: {study.name} has no {', '.join(unknown)}")
        self._goals = [goals[m] for m in self._returns]

    @classmethod
    def create(
        cls,
        client: Client,
        id: str,
        space: Mapping[str, BaseDistribution],
        metrics: Sequence[s.Metric],
        *,
        returns: Sequence[str] | None = None,
        **fields: Any,
    ) -> DParetoSampler:
        """Creates a dpareto study over distributions of Optuna, or loads it if it is the same.

        Further keyword arguments are fields of `dpfront.StudySpec`.
        """
        params, choices = parameters(space)
        study = Study.create(client, id, params, metrics, **fields)
        return cls(study, returns=returns, choices=choices)

    @property
    def study(self) -> Study:
        """The dpareto study, with its front and recommendations."""
        return self._study

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": {}, "_done": {}}  # another process asks by itself

    def reseed_rng(self) -> None:
        """Reseeds the sampler of other parameters; the study's draws need none."""
        self._independent.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Asks the dpareto study for a configuration."""
        self._check_directions(study)
        if _key(study, trial) in self._runs:
            raise ValueError(
                f"trial {trial.number} of {study.study_name} runs already: two Optuna studies of "
                "one name, in different storages, need a sampler each"
            )
        fixed = trial.system_attrs.get("fixed_params") or {}
        try:
            asked = self._study.ask(
                fixed={k: self._category(k, v) for k, v in fixed.items() if k in self._space}
            )
        except errors.StudyDone as done:
            try:
                study.stop()
            except RuntimeError:  # ask was called, not optimize
                with suppress(AttributeError):  # under Optuna's Hyperband a study has no tell
                    study.tell(trial.number, state=TrialState.FAIL)
                raise done from None
            self._done[_key(study, trial)] = str(done)
            return
        asked.keep_alive()
        self._runs[_key(study, trial)] = _Run(asked, asked.epsilon)

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
        run = self._runs.get(_key(study, trial))
        return {} if run is None else self._configuration(run.trial)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draws a parameter that the dpareto study does not have."""
        key = _key(study, trial)
        if key in self._done:
            raise optuna.TrialPruned(self._done[key])
        if param_name in self._space:
            run = self._runs.get(key)
            if run is not None and param_name not in run.trial.params:
                raise ValueError(
                    f"{param_name} does not exist in this trial: its condition in "
                    f"{self._study.name} does not hold"
                )
            raise ValueError(
                f"{param_name} is {self._space[param_name]} in {self._study.name}, and "
                f"{param_distribution} does not hold the value that was suggested"
            )
        if self._warned is not None and param_name not in self._warned:
            self._warned.add(param_name)
            logger.warning(
                "%s is not a parameter of %s: %s chooses it, and the study knows nothing of it. "
                "study.extend() adds a parameter",
                param_name,
                self._study.name,
                type(self._independent).__name__,
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
        key = _key(study, trial)
        self._done.pop(key, None)
        run = self._runs.pop(key, None)
        if run is None:
            return
        try:
            if not run.trial.ended:
                self._end(run, trial, state, values)
        except errors.LeaseLost:
            pass  # another worker has it
        except BaseException:
            with suppress(errors.DParetoError):
                run.trial._give_back("its result was refused")  # no worker is left to end it
            raise
        finally:
            run.trial._stop_heartbeat()
        # After a failure no call may hide the exception that Optuna is about to raise.
        if state is not TrialState.FAIL and self._study.info().state == "completed":
            with suppress(RuntimeError):  # between ask and tell there is nothing to stop
                study.stop()

    def _end(
        self, run: _Run, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Ends a trial by its state in Optuna."""
        asked = run.trial
        expected = self._configuration(asked)
        other = [k for k, v in trial.params.items() if k in self._space and v != expected.get(k)]
        checkpoint = self._study.spec.checkpoint_parameter
        if state is TrialState.FAIL:
            self._requeue(asked, trial)
        elif other:
            warnings.warn(
                f"trial {trial.number} ran another {', '.join(other)} than {asked.name} has, "
                "which is given back",
                stacklevel=2,
            )
            asked.release("another configuration was run")
        elif checkpoint and (run.stop_step or (state is TrialState.PRUNED and run.step)):
            asked.tell()
        elif state is TrialState.PRUNED or values is None:
            asked.fail("pruned", retryable=False)
        else:
            self._succeed(run, trial, values)

    def _succeed(self, run: _Run, trial: FrozenTrial, values: Sequence[float]) -> None:
        """Reports results, and the trial's attributes of other metrics."""
        asked = run.trial
        metrics: dict[str, Values] = dict(zip(self._returns, values, strict=True))
        for metric in self._reported:
            if metric not in metrics and metric in trial.user_attrs:
                metrics[metric] = trial.user_attrs[metric]
        try:
            asked.tell(metrics)
        except errors.NotFinite as error:
            asked.infeasible(str(error))

    def _requeue(self, asked: Trial, trial: FrozenTrial) -> None:
        """Gives a trial back to the queue, which counts as one of its attempts.

        Giving it back by `Trial.release` would not count: with an exception in ``catch=`` and
        a configuration that cannot work, Optuna would run that configuration again and again.
        """
        logger.warning(
            "trial %d of Optuna failed: %s goes back to the queue, and the study learns nothing. "
            "If the configuration cannot work, wrap the objective in catching(), or call "
            "infeasible(trial, reason)",
            trial.number,
            asked.name,
        )
        # Little patience, as the program may be about to end. Unless told, the lease runs out.
        request = failure_request(f"trial {trial.number} of Optuna failed", retryable=True)
        with suppress(errors.DParetoError):
            asked._transport.run(trials.complete(asked.raw, request), hurry=True)

    def _named(
        self, values: Values | Sequence[Values] | Mapping[str, Values] | None
    ) -> dict[str, Values]:
        """Returns reported metrics by id."""
        if values is None or isinstance(values, Mapping):
            return dict(values or {})
        parts = list(values) if isinstance(values, Sequence) else [values]
        ids = self._returns
        if len(parts) == 1 and len(self._reported) == 1:
            ids = self._reported
        if len(parts) != len(ids):
            raise ValueError(
                f"values: {values!r} are {len(parts)}, and the objective returns {', '.join(ids)}"
            )
        return {k: v for k, v in zip(ids, parts, strict=True) if k in self._reported}

    def _configuration(self, asked: Trial) -> dict[str, Any]:
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
        if len(directions) != len(self._returns):
            raise ValueError(
                f"the Optuna study has {len(directions)} directions for {', '.join(self._returns)}"
            )
        for metric, goal, direction in zip(self._returns, self._goals, directions, strict=True):
            minimize = direction is optuna.study.StudyDirection.MINIMIZE
            if goal and minimize != (goal == metric_pb2.GOAL_MINIMIZE):
                raise ValueError(
                    f"{metric} is to be {direction.name.lower()}d in the Optuna study, and the "
                    f"other way round in {self._study.name}"
                )
