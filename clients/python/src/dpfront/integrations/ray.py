"""Ray: an executor for `dpfront.Study.optimize`, and a searcher for Ray Tune.

With ``optimize``, trials run as tasks of a Ray cluster:

    study.optimize(train, n_jobs=16, executor=RayExecutor(num_cpus=2))

With Ray Tune, the study suggests the configurations of a trainable:

    search = DParetoSearch(study)
    tuner = tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=-1),
        run_config=tune.RunConfig(stop=EarlyStopping()),
    )
    tuner.fit()
    print(study.front())

The trainable calls ``tune.report`` with the study's reported metrics by id. The server knows ε
by itself. ``num_samples=-1`` runs until the study hands out no more trials.

How a trial of Tune ends decides what the study learns:

| in Tune, the trial | in the study, it |
|---|---|
| reports, and returns | succeeds, with its last report |
| is stopped by `EarlyStopping` or a scheduler | succeeds, with its last report (*) |
| reports ``{"infeasible": reason}``, NaN or infinity | is infeasible: similar ones are avoided |
| fails, or its actor dies, after Tune's ``max_failures`` | goes back to the queue |
| is ended before it reports | goes back to the queue |

(*) A scheduler that stops trials needs a study with a checkpoint parameter. Without one, a report
on the way says nothing about the whole run.

The driver renews the leases. If it dies, ``tune.Tuner.restore`` continues its experiment. Trials
that Tune had not yet saved come back when their leases run out. A trial that Tune starts again from
its beginning is another attempt in the study.
"""

from __future__ import annotations

import contextlib
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.tune.search import Searcher
from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized
from ray.tune.search.sample import Uniform as TuneUniform
from ray.tune.stopper import Stopper
from ray.tune.utils import flatten_dict

from dpfront import errors
from dpfront import spec as s
from dpfront._operations import trials
from dpfront._space import categories, float_parameter, int_parameter
from dpfront._sync.client import Client
from dpfront._sync.study import Study
from dpfront._sync.trial import Trial

__all__ = ["DParetoSearch", "EarlyStopping", "RayExecutor", "parameters"]

INFEASIBLE = "infeasible"
"""The key of a result that says why a configuration cannot work."""


@dataclass
class _Run:
    """A trial of this driver."""

    trial: Trial
    step: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Of the last report."""


_runs: dict[str, _Run] = {}
# By ids in Tune, which makes copies of searchers and stoppers that must see the same trials.


class RayExecutor:
    """Runs trials as tasks on a Ray cluster.

    Args:
        options: What Ray calls the options of a task, such as ``num_cpus=1, num_gpus=0.5``.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {"max_retries": 0, **options}  # deaths are the study's attempts

    def submit(self, function: Callable[..., Any], /, *args: Any) -> RayJob:
        """Starts a task. Ray queues it until the cluster has room."""
        return RayJob(ray.remote(function).options(**self._options).remote(*args))


class RayJob:
    """A task on a Ray cluster."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def result(self) -> Any:
        """Waits for the task, and returns its result; raises if its worker died."""
        return ray.get(self._reference)

    def cancel(self) -> None:
        """Cancels the task; one that runs gets a KeyboardInterrupt."""
        ray.cancel(self._reference)


class DParetoSearch(Searcher):
    """A searcher of Ray Tune whose configurations come from a dpareto study.

    The study may have any number of objectives, conditional parameters and constraints. The
    ``metric`` and ``mode`` of Tune are for its own tables, and change nothing here.

    Args:
        study: The dpareto study.
        step: The key of a result that says where in the run it belongs, which is the value of
            the study's checkpoint parameter, if it has one. By default Tune's count of reports.
        choices: For categorical parameters, what the trainable gets for a category instead of
            its name.
    """

    def __init__(
        self,
        study: Study,
        *,
        step: str = "training_iteration",
        choices: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        self._study, self._step = study, step
        self._choices = {key: dict(value) for key, value in (choices or {}).items()}
        self._ids: set[str] = set()  # of trials in Tune

    @classmethod
    def create(
        cls,
        client: Client,
        id: str,
        space: Mapping[str, Any],
        metrics: Sequence[s.Metric],
        **fields: Any,
    ) -> DParetoSearch:
        """Creates a dpareto study over a search space of Tune, or loads it if it is the same.

        Further keyword arguments are fields of `dpfront.StudySpec`. For conditional parameters
        create the study with `dpfront.Study.create`.
        """
        params, choices = parameters(space)
        return cls(Study.create(client, id, params, metrics, **fields), choices=choices)

    @property
    def study(self) -> Study:
        """The dpareto study, with its front."""
        return self._study

    def set_search_properties(
        self, metric: Any, mode: Any, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """Takes what Tune was given beside the searcher; ``param_space`` may have constants.

        Raises:
            ValueError: ``param_space`` has a search space, which is the study's.
        """
        searched = [key for key, value in flatten_dict(config).items() if isinstance(value, Domain)]
        if searched:
            raise ValueError(
                f"param_space: {', '.join(searched)} must be parameters of {self._study.name}; "
                "DParetoSearch.create makes a study of a search space"
            )
        return True

    def suggest(self, trial_id: str) -> Any:
        """Asks the study for a configuration; None while it waits for other workers."""
        try:
            trial = self._study.ask(_worker(trial_id), timeout=0)
        except TimeoutError:
            return None
        except errors.StudyDone:
            return Searcher.FINISHED
        trial.keep_alive()
        _runs[trial_id] = _Run(trial)
        self._ids.add(trial_id)
        return {
            key: self._choices[key][str(value)] if key in self._choices else value
            for key, value in trial.params.items()
        }

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Reports a result to the study."""
        _report(trial_id, result, self._step)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Ends a trial in the study."""
        self._ids.discard(trial_id)
        run = _runs.get(trial_id)
        if run is None:
            return
        try:
            if result is not None and not error:
                _report(trial_id, result, self._step)
            if run.trial.ended:
                return
            if error:
                run.trial.fail("it failed in Ray Tune")
            elif run.step == 0:
                run.trial.release("it ended in Ray Tune without a result")
            else:
                run.trial.tell()
        except errors.LeaseLost:
            pass  # another worker has it
        except BaseException:
            with contextlib.suppress(errors.DParetoError):
                run.trial._give_back("its result was refused")  # Tune does not try again
            raise
        finally:
            run.trial._stop_heartbeat()
            del _runs[trial_id]

    def save(self, checkpoint_path: str) -> None:
        """Saves the trials that run, with their leases."""
        state = {key: _runs[key] for key in self._ids if key in _runs}
        Path(checkpoint_path).write_bytes(pickle.dumps(state))

    def restore(self, checkpoint_path: str) -> None:
        """Takes the saved trials up again, unless other workers have them."""
        state = pickle.loads(Path(checkpoint_path).read_bytes())
        self._ids = set(state)
        for key, run in state.items():
            if key not in _runs:
                run.trial._renew()  # at once, before Tune asks for more
                run.trial.keep_alive()
                _runs[key] = run

    def get_state(self) -> dict[str, Any]:
        """Returns nothing: `save` has the state."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes what `get_state` returns."""


class EarlyStopping(Stopper):
    """Stops trials of `DParetoSearch` that can no longer add to the front.

    Without it every trial runs to its end. ``step`` is as for the searcher.
    """

    def __init__(self, step: str = "training_iteration") -> None:
        self._step = step

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Reports a result, and returns whether the trial should stop."""
        return _report(trial_id, flatten_dict(dict(result)), self._step)

    def stop_all(self) -> bool:
        """Returns False: the searcher knows when the study is done."""
        return False


def _worker(trial_id: str) -> str:
    """Returns the worker id of a trial of Tune."""
    return f"ray-{trial_id}"


def _report(trial_id: str, result: Mapping[str, Any], key: str) -> bool:
    """Reports a result once, and returns whether the trial should stop."""
    run = _runs.get(trial_id)
    if run is None or run.trial.ended:
        return run is not None
    try:
        if result.get(INFEASIBLE):
            run.trial.infeasible(str(result[INFEASIBLE]))
            return True
        metrics = {x: result[x] for x in run.trial._info.reported if x in result}
        step = int(result[key])
        # Tune passes results on twice, the last one also when the trial ends.
        if metrics and (step, metrics) != (run.step, run.metrics):
            if step <= run.step:
                _begin_again(run, _worker(trial_id))
            run.trial.report(step, metrics)
            run.step, run.metrics = step, metrics
    except errors.NotFinite as error:
        run.trial.infeasible(str(error))
        return True
    except errors.LeaseLost:
        return True
    return run.trial.should_stop


def _begin_again(run: _Run, worker: str) -> None:
    """Begins another attempt of a trial that Tune has started again, with other randomness."""
    old, transport = run.trial, run.trial._transport
    old._stop_heartbeat()
    asking = trials.ask(f"studies/{old.study_id}", worker, True, 1, None, 0)
    try:
        (message,) = transport.run(asking)
    except (errors.StudyDone, TimeoutError):
        raise errors.LeaseLost(old.name, "it was handed out too often") from None
    trial = Trial(transport, message, old._info)
    if trial.number != old.number:
        trial._give_back("Ray Tune runs another trial")
        raise errors.LeaseLost(old.name, "another worker has it")
    trial.keep_alive()
    run.trial, run.step, run.metrics = trial, 0, {}


def parameters(space: Mapping[str, Any]) -> tuple[list[s.Parameter], dict[str, dict[str, Any]]]:
    """Returns the parameters of a dpareto study for a search space of Ray Tune.

    Quantized domains become lists of values. Constants are left out: pass them to Tune as
    ``param_space``. The second result says what a trainable gets for categories.

    Raises:
        ValueError: A domain has no bounds, is nested, or is a function or grid.
    """
    out: list[s.Parameter] = []
    choices: dict[str, dict[str, Any]] = {}
    for name, domain in space.items():
        if isinstance(domain, Mapping):
            raise ValueError(f"{name}: must be a domain of Ray Tune or a constant, is a mapping")
        if not isinstance(domain, Domain):
            continue
        if isinstance(domain, Categorical):
            names = categories(name, domain.categories)
            parameter: s.Parameter | None = (
                s.Categorical(name, list(names)) if len(names) > 1 else None
            )
            if parameter and any(not isinstance(c, str) for c in domain.categories):
                choices[name] = names
        else:
            parameter = _number(name, domain)
        if parameter is not None:
            out.append(parameter)
    return out, choices


def _number(name: str, domain: Any) -> s.Parameter | None:
    """Returns the parameter for a domain of numbers."""
    sampler = domain.get_sampler()
    step = sampler.q if isinstance(sampler, Quantized) else None
    inner = sampler.get_sampler() if step is not None else sampler
    if not isinstance(domain, (Float, Integer)) or not isinstance(inner, (TuneUniform, LogUniform)):
        raise ValueError(
            f"{name}: must be uniform or loguniform, of floats or integers, or a choice; is "
            f"{type(domain).__name__} with {type(inner).__name__}"
        )
    low, high, log = domain.lower, domain.upper, isinstance(inner, LogUniform)
    whole = isinstance(domain, Integer)
    if step in (None, 1) and whole:
        return int_parameter(name, low, high - 1, log=log)  # Tune's upper bound is exclusive
    if step is None:
        return float_parameter(name, low, high, log=log)
    low, high = math.ceil(low / step - 1e-9) * step, math.floor(high / step + 1e-9) * step
    make = int_parameter if whole else float_parameter
    return make(name, low, high, step, log)
