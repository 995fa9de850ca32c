"""Parameters of studies as distributions of Optuna, and the other way round."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from dpfront import spec as s
from dpfront._space import categories, float_parameter, int_parameter
from dpfront.v1 import parameter_pb2, study_pb2

Choices = Mapping[str, Mapping[str, Any]]


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
        parameter: s.Parameter | None
        if isinstance(d, FloatDistribution):
            parameter = float_parameter(name, d.low, d.high, d.step, d.log)
        elif isinstance(d, IntDistribution):
            parameter = int_parameter(name, d.low, d.high, d.step, d.log)
        elif isinstance(d, CategoricalDistribution):
            names = categories(name, d.choices)
            parameter = s.Categorical(name, list(names)) if len(names) > 1 else None
            if parameter and any(not isinstance(c, str) for c in d.choices):
                choices[name] = names
        else:
            raise TypeError(f"{name}: {type(d).__name__} is not known")
        if parameter is not None:
            out.append(parameter)
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
