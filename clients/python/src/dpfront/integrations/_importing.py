"""Adds finished runs of other tools to a study, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpfront import _convert as convert
from dpfront import errors
from dpfront._sync.study import Study

SOURCE = "imported_from"
"""The attribute of a trial that names the run it was made from."""


@dataclass(frozen=True)
class Finished:
    """A run of another tool."""

    source: str
    """Its name among all runs of all tools."""
    params: Mapping[str, Any]
    metrics: Mapping[str, Any]
    problem: str = ""
    """Why it has no result, if it has none."""
    study: str = ""
    """Id of the study whose tracker logged it."""


@dataclass(frozen=True)
class Imported:
    """What an import added to a study, and what it could not take."""

    added: tuple[int, ...]
    """Numbers of the new trials."""
    existed: int
    """Number of runs that were imported before."""
    left_out: Mapping[str, str]
    """The runs that were not taken, each with the reason."""
    unused: tuple[str, ...] = field(default=())
    """Names of parameters and metrics that the study does not have, and of other parts."""

    def __str__(self) -> str:
        lines = [f"{len(self.added)} trials added, {self.existed} were there"]
        lines += [f"left out {source}: {reason}" for source, reason in self.left_out.items()]
        if self.unused:
            lines.append(f"not taken: {', '.join(self.unused)}")
        return "\n".join(lines)


def add(
    study: Study,
    runs: Iterable[Finished],
    names: Mapping[str, str] | None = None,
    unused: Iterable[str] = (),
) -> Imported:
    """Adds runs to a study, under other names where they differ."""
    names = names or {}
    info = study.info()
    kinds, known = convert.kinds(info.raw), {m.id for m in info.raw.spec.metrics}
    unknown = sorted(set(names.values()) - set(kinds) - known)
    if unknown:
        raise ValueError(f"names: {study.name} has no {', '.join(unknown)}")
    there = {t.user_attrs.get(SOURCE) for t in study.trials()}
    added, existed = [], 0
    left_out: dict[str, str] = {}
    others: set[str] = set()
    for run in runs:
        if run.source in there:
            existed += 1
            continue
        if run.problem or run.study == study.id:
            left_out[run.source] = run.problem or "it is a trial of this study"
            continue
        params = {names.get(k, k): v for k, v in run.params.items()}
        metrics = {names.get(k, k): v for k, v in run.metrics.items()}
        others |= (set(params) - set(kinds)) | (set(metrics) - known)
        missing = [x for x in info.reported if x not in metrics]
        if missing:
            left_out[run.source] = f"it has no {', '.join(missing)}"
            continue
        try:
            trial = study.add_trial(
                {k: _value(k, v, kinds[k]) for k, v in params.items() if k in kinds},
                user_attrs={SOURCE: run.source},
                **{k: v for k, v in metrics.items() if k in known},
            )
        except (errors.InvalidArgument, errors.Infeasible, ValueError) as error:
            left_out[run.source] = str(error)
            continue
        there.add(run.source)
        added.append(trial.number)
    return Imported(tuple(added), existed, left_out, (*unused, *sorted(others)))


def _value(name: str, value: Any, kind: str) -> Any:
    """Returns a value as its parameter has it; other tools keep texts."""
    try:
        if kind == "string":
            return value if isinstance(value, str) else repr(value)
        number = float(value)
        if kind == "double":
            return number
        if number.is_integer():
            return int(number)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{name}: must be {'a whole number' if kind == 'int' else 'a number'}, is {value!r}"
    )
