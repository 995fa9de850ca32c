"""Makes a dpareto study of an Optuna study or an Ax experiment, with all its trials.

    study, imported = import_optuna(
        client,
        "adult",
        "sqlite:///adult.db",
        metrics=[Maximize("accuracy", 0.5), dpfront.epsilon(privacy)],
    )
    print(imported)

Calling it again loads the study and adds only trials that are not there. The result names what
could not be taken. Values of a computed metric, such as ε, are kept beside the server's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfront import spec as s
from dpfront._space import categories
from dpfront._sync.client import Client
from dpfront._sync.study import Study
from dpfront.integrations._importing import Finished, Imported, add
from dpfront.values import Mean

if TYPE_CHECKING:
    import optuna

__all__ = ["import_ax", "import_optuna"]


@dataclass
class _Foreign:
    """A study of another tool."""

    parameters: list[s.Parameter] = field(default_factory=list)
    goals: dict[str, bool] = field(default_factory=dict)
    """Whether its objectives are minimized, by name."""
    runs: list[Finished] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def import_optuna(
    client: Client,
    id: str,
    storage: str | optuna.storages.BaseStorage,
    study_name: str | None = None,
    *,
    metrics: Sequence[s.Metric] | None = None,
    names: Mapping[str, str] | None = None,
    **fields: Any,
) -> tuple[Study, Imported]:
    """Creates a study of an Optuna study with its complete trials.

    A parameter that some trials lack becomes conditional on a categorical one if its values
    decide; otherwise trials without it are left out.

    Args:
        client: A client of the server.
        id: Id of the new study.
        storage: URL of Optuna's storage, or the storage.
        study_name: Name of the Optuna study, if the storage has several.
        metrics: Metrics of the new study; its objectives are Optuna's, in their order, if
            ``names`` does not say otherwise. By default one for every objective.
        names: Ids of the study by Optuna's names of objectives, ``values_0`` and so on unless
            ``set_metric_names`` gave others.
        fields: Fields of `dpfront.StudySpec`.
    """
    import optuna

    loaded = optuna.load_study(study_name=study_name, storage=storage)
    return _create(client, id, _from_optuna(loaded), metrics, names, fields)


def import_ax(
    client: Client,
    id: str,
    path: str | os.PathLike[str],
    *,
    metrics: Sequence[s.Metric] | None = None,
    names: Mapping[str, str] | None = None,
    **fields: Any,
) -> tuple[Study, Imported]:
    """Creates a study of an Ax experiment with its completed trials. Ax is not needed.

    Args:
        client: A client of the server.
        id: Id of the new study.
        path: The file that ``save_to_json_file`` of a client, or ``save_experiment``, wrote.
        metrics: As for `import_optuna`.
        names: Ids of the study by the names of Ax's metrics.
        fields: Fields of `dpfront.StudySpec`.

    Raises:
        ValueError: The file has no experiment.
    """
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    experiment = content.get("experiment", content)
    if "search_space" not in experiment or "trials" not in experiment:
        raise ValueError(f"{path}: has no experiment of Ax")
    return _create(client, id, _from_ax(experiment), metrics, names, fields)


def _create(
    client: Client,
    id: str,
    foreign: _Foreign,
    metrics: Sequence[s.Metric] | None,
    names: Mapping[str, str] | None,
    fields: Mapping[str, Any],
) -> tuple[Study, Imported]:
    """Creates or loads the study, and adds the trials."""
    if metrics is None:
        metrics = [
            (s.Minimize if minimize else s.Maximize)((names or {}).get(name, name))
            for name, minimize in foreign.goals.items()
        ]
        if not metrics:
            raise ValueError("metrics: must be given, since the objective is an expression")
    elif names is None:
        objectives = [m for m in metrics if isinstance(m, (s.Minimize, s.Maximize))]
        if len(objectives) == len(foreign.goals):
            names = dict(zip(foreign.goals, (m.id for m in objectives), strict=True))
    goals = {m.id: isinstance(m, s.Minimize) for m in metrics if not isinstance(m, s.Tracked)}
    for name, minimize in foreign.goals.items():
        target = (names or {}).get(name, name)
        if goals.get(target, minimize) != minimize:
            goal = "minimized" if minimize else "maximized"
            raise ValueError(f"metrics: {target} must be {goal}, as {name} was")
    study = Study.create(client, id, foreign.parameters, metrics, **fields)
    return study, add(study, foreign.runs, names, foreign.unused)


# --- Optuna


def _from_optuna(study: optuna.Study) -> _Foreign:
    from optuna.trial import TrialState

    from dpfront.integrations._distributions import parameters

    titles = study.metric_names or [f"values_{k}" for k in range(len(study.directions))]
    out = _Foreign(
        goals={t: d.name == "MINIMIZE" for t, d in zip(titles, study.directions, strict=True)}
    )
    trials = study.get_trials(deepcopy=False)
    complete = [t for t in trials if t.state is TrialState.COMPLETE]
    space: dict[str, Any] = {}
    for trial in complete:
        for name, found in trial.distributions.items():
            space[name] = found if name not in space else _widest(space[name], found)
    taken, _ = parameters(space)
    there = {p.id for p in taken}
    out.unused += [f"{name} (has one value)" for name in space if name not in there]
    for parameter in taken:
        condition, reason = _condition(parameter.id, space, complete)
        if reason:
            out.unused.append(reason)
        out.parameters.append(_conditional(parameter, condition))
    out.runs = [
        Finished(
            source=f"optuna:{study.study_name}/{t.number}",
            params={k: v for k, v in t.params.items() if k in there},
            metrics=dict(zip(titles, t.values or (), strict=False)),
            problem="" if t.state is TrialState.COMPLETE else f"its state is {t.state.name}",
        )
        for t in trials
    ]
    curves = sum(bool(t.intermediate_values) for t in complete)
    if curves:
        out.unused.append(f"intermediate values of {curves} trials")
    for what in ("user_attrs", "system_attrs"):
        keys = sorted({key for t in complete for key in getattr(t, what)})
        if keys:
            out.unused.append(f"{what} {', '.join(keys)}")
    return out


def _widest(one: Any, other: Any) -> Any:
    """Returns a distribution that holds both, where they differ in their ends alone."""
    ends = {"low", "high"}
    if type(one) is not type(other) or not hasattr(one, "low"):
        return one
    same = {k: v for k, v in one._asdict().items() if k not in ends}
    if same != {k: v for k, v in other._asdict().items() if k not in ends}:
        return one  # the server refuses values outside
    return type(one)(min(one.low, other.low), max(one.high, other.high), **same)


def _condition(
    name: str, space: Mapping[str, Any], trials: Sequence[Any]
) -> tuple[dict[str, list[str]] | None, str]:
    """Returns the categories of another parameter that decide whether trials have this one."""
    present = [name in t.params for t in trials]
    if all(present):
        return None, ""
    for parent, distribution in space.items():
        choices = getattr(distribution, "choices", None)
        if choices is None or len(choices) < 2 or any(parent not in t.params for t in trials):
            continue
        named = {v: k for k, v in categories(parent, choices).items()}
        having = {named[t.params[parent]] for t, x in zip(trials, present, strict=True) if x}
        lacking = {named[t.params[parent]] for t, x in zip(trials, present, strict=True) if not x}
        if not having & lacking:
            return {parent: sorted(having)}, ""
    count = sum(present)
    return None, f"{name} (in {count} of {len(trials)} trials, and no category decides)"


def _conditional(parameter: s.Parameter, condition: Mapping[str, list[str]] | None) -> s.Parameter:
    return parameter if condition is None else replace(parameter, condition=condition)


# --- Ax


def _from_ax(experiment: Mapping[str, Any]) -> _Foreign:
    out = _Foreign()
    space = experiment["search_space"]
    conditions: dict[str, dict[str, list[str]]] = {}
    for p in space["parameters"]:
        for value, children in (p.get("dependents") or {}).items():
            for child in children:
                conditions.setdefault(child, {}).setdefault(p["name"], []).append(str(value))
    for p in space["parameters"]:
        parameter = _ax_parameter(p)
        if parameter is None:
            out.unused.append(f"{p['name']} (is {p['__type']}, with one value)")
            continue
        out.parameters.append(_conditional(parameter, conditions.get(p["name"])))
        lost = [x for x in ("logit_scale", "digits", "is_fidelity") if p.get(x)]
        out.unused += [f"{x} of {p['name']}" for x in lost]
    count = len(space.get("parameter_constraints") or ())
    if count:
        out.unused.append(f"{count} parameter constraints (see parameter_constraints=)")
    config = experiment.get("optimization_config") or {}
    out.goals = _ax_goals(config.get("objective") or {})
    count = len(config.get("outcome_constraints") or ())
    if count:
        out.unused.append(f"{count} outcome constraints (see Constraint)")
    ids = {p.id for p in out.parameters}
    for index, trial in experiment["trials"].items():
        structs = trial.get("generator_run_structs") or []
        generated = [x["generator_run"] for x in structs] or [trial.get("generator_run") or {}]
        status = trial["status"]["name"]
        results = _ax_results((experiment.get("data_by_trial") or {}).get(index))
        for arm in (arm for run in generated for arm in run.get("arms", ())):
            out.runs.append(
                Finished(
                    source=f"ax:{experiment['name']}/{index}/{arm['name']}",
                    params={k: v for k, v in arm["parameters"].items() if k in ids},
                    metrics=results.get(arm["name"], {}),
                    problem="" if status == "COMPLETED" else f"its status is {status}",
                )
            )
    return out


def _ax_parameter(p: Mapping[str, Any]) -> s.Parameter | None:
    name, kind, log = p["name"], p["parameter_type"]["name"], bool(p.get("log_scale"))
    if p["__type"] == "RangeParameter":
        if p["lower"] == p["upper"]:
            return None
        if kind == "INT":
            return s.Int(name, int(p["lower"]), int(p["upper"]), log=log)
        return s.Float(name, p["lower"], p["upper"], log=log)
    values = p.get("values") or [p.get("value")]
    if len(values) < 2:
        return None
    if kind in ("INT", "FLOAT") and p.get("is_ordered"):
        return s.Discrete(name, sorted(map(float, values)), log=log and min(values) > 0)
    return s.Categorical(name, list(categories(name, values)))


def _ax_goals(objective: Mapping[str, Any]) -> dict[str, bool]:
    """Returns whether objectives are minimized; nothing for weighted sums."""
    if "expression" in objective:
        terms = [x.strip() for x in objective["expression"].split(",")]
        found = [re.fullmatch(r"(-?)\s*([A-Za-z_][\w.]*)", x) for x in terms]
        return {x[2]: x[1] == "-" for x in found if x} if all(found) else {}
    parts = objective.get("objectives") or [objective]
    return {x["metric"]["name"]: bool(x["minimize"]) for x in parts if "metric" in x}


def _ax_results(data: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Returns the last value of each metric, with its standard error, by arm."""
    if not data or not data.get("value"):
        return {}
    table = json.loads(data["value"][-1][1]["df"]["value"])
    out: dict[str, dict[str, Any]] = {}
    steps: dict[tuple[str, str], float] = {}
    for row in table.get("mean", {}):
        arm, metric = table["arm_name"][row], table["metric_name"][row]
        step = table.get("step", {}).get(row)
        at = float("inf") if step is None else step
        if at < steps.get((arm, metric), 0):
            continue
        steps[arm, metric] = at
        mean, sem = table["mean"][row], table["sem"][row]
        out.setdefault(arm, {})[metric] = Mean(mean, sem) if sem else mean
    return out
