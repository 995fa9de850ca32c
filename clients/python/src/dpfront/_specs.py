"""Converts specs between the objects of the package and the messages of the contract."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from google.protobuf.message import Message

from dpfront import _convert as convert
from dpfront import privacy as p
from dpfront import spec as s
from dpfront.v1 import metric_pb2, parameter_pb2, privacy_pb2, study_pb2


def study_spec(spec: s.StudySpec) -> study_pb2.StudySpec:
    """Returns the message of a study's spec."""
    out = study_pb2.StudySpec(
        parameters=[_parameter(x) for x in spec.parameters],
        metrics=[_metric(x) for x in spec.metrics],
        parameter_constraints=convert.several("parameter_constraints", spec.parameter_constraints),
        checkpoint_parameter=spec.checkpoint_parameter or "",
        replicates=convert.integer("replicates", spec.replicates),
        seed=None if spec.seed is None else convert.integer("seed", spec.seed),
        prior_studies=[
            convert.study_name(x) for x in convert.several("prior_studies", spec.prior_studies)
        ],
        disable_early_stopping=not spec.early_stopping,
        test_ledger=spec.test_ledger and convert.ledger_name(spec.test_ledger),
        train_ledger=spec.train_ledger and convert.ledger_name(spec.train_ledger),
        constant_points=[study_pb2.ConstantPoint(**_shallow(p)) for p in spec.constant_points],
    )
    out.algorithm.name = convert.enum_value(study_pb2.Algorithm, spec.algorithm, "algorithm")
    out.algorithm.initial_trials = convert.integer("initial_trials", spec.initial_trials)
    out.algorithm.published_acquisition = spec.published_acquisition
    budget = study_pb2.Budget(
        max_trials=convert.integer("max_trials", spec.max_trials),
        max_stagnant_trials=convert.integer("max_stagnant_trials", spec.max_stagnant_trials),
        max_parallel_trials=convert.integer("max_parallel_trials", spec.max_parallel_trials),
    )
    if spec.prior_values:
        values = convert.to_values(spec.prior_values, convert.kinds(study_pb2.Study(spec=out)))
        for key, value in values.items():
            out.prior_values[key].CopyFrom(value)
    if spec.max_duration is not None:
        budget.max_duration.FromTimedelta(_duration("max_duration", spec.max_duration))
    if budget != study_pb2.Budget():
        out.budget.CopyFrom(budget)
    if spec.lease is not None:
        out.lease.duration.FromTimedelta(_duration("lease", spec.lease))
    if spec.max_attempts:
        out.lease.max_attempts = convert.integer("max_attempts", spec.max_attempts)
    if spec.cost is not None:
        if spec.cost == spec.checkpoint_parameter:
            out.cost.checkpoint_parameter.SetInParent()
        else:
            out.cost.metric = spec.cost
    if spec.trainer is not None:
        out.trainer.name = spec.trainer.name
        out.trainer.settings.update(spec.trainer.settings)
    if spec.private_mode is not None:
        fields = _shallow(spec.private_mode)
        train_filter = fields.pop("train_filter")
        slots = fields.pop("slots")
        out.private_mode.CopyFrom(study_pb2.PrivateModeSpec(**fields))
        kinds = convert.kinds(study_pb2.Study(spec=out))
        for slot in slots:
            out.private_mode.slots.add(
                parameters=convert.to_values(slot.parameters, kinds),
                count=convert.integer("count", slot.count),
            )
        if train_filter is not None:
            out.private_mode.train_filter = convert.enum_value(
                study_pb2.TrainFilter, train_filter, "train_filter"
            )
    if spec.random_stopping is not None:
        fields = _shallow(spec.random_stopping)
        flags = {name: fields.pop(name) for name in _FLAGS}
        release = fields.pop("release")
        _one_distribution(spec.random_stopping)
        final_run = fields.pop("final_run")
        stopping = study_pb2.RandomStoppingSpec(**fields)
        if release is not None:
            stopping.release = convert.enum_value(
                study_pb2.RandomStoppingRelease, release, "release"
            )
        if final_run is not None:
            stopping.final_run.dataset_size = convert.integer(
                "dataset_size", final_run.dataset_size
            )
            values = convert.to_values(final_run.values, convert.kinds(study_pb2.Study(spec=out)))
            for key, value in values.items():
                stopping.final_run.values[key].CopyFrom(value)
        for name, is_set in flags.items():
            if is_set:
                getattr(stopping, name).SetInParent()
        out.random_stopping.CopyFrom(stopping)
    return out


_FLAGS = ("poisson", "fixed")
"""Distributions of a number of runs that have no parameter but the mean."""


def _one_distribution(x: p.RepeatedSelection | s.RandomStopping) -> None:
    """Refuses several distributions of a number of runs, of which a message would keep the last."""
    given = [
        name
        for name in ("eta", "binomial", *_FLAGS)
        if getattr(x, name) is not None and getattr(x, name) is not False
    ]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are both distributions; give one of them")


SPEC_PATHS = {
    "algorithm": "algorithm.name",
    "initial_trials": "algorithm.initial_trials",
    "published_acquisition": "algorithm.published_acquisition",
    "max_trials": "budget.max_trials",
    "max_duration": "budget.max_duration",
    "max_stagnant_trials": "budget.max_stagnant_trials",
    "max_parallel_trials": "budget.max_parallel_trials",
    "lease": "lease.duration",
    "max_attempts": "lease.max_attempts",
    "early_stopping": "disable_early_stopping",
}
"""Where fields of `spec.StudySpec` are in its message, if under another name."""


def set_spec_fields(spec: study_pb2.StudySpec, fields: Mapping[str, Any]) -> list[str]:
    """Sets fields of a spec, named as in `spec.StudySpec`, and returns their paths."""
    known = {f.name for f in dataclasses.fields(s.StudySpec)} - {"parameters", "metrics"}
    if unknown := sorted(set(fields) - known):
        raise TypeError(f"StudySpec has no field {', '.join(unknown)}")
    # What cost means depends on the checkpoint parameter.
    context = {"checkpoint_parameter": spec.checkpoint_parameter or None}
    values = study_spec(s.StudySpec((), (), **{**context, **fields}))
    paths = [SPEC_PATHS.get(name, name) for name in fields]
    for path in paths:
        copy_field(spec, values, path)
    return paths


def copy_field(target: Message, source: Message, path: str) -> None:
    """Copies a field from another message of the same type."""
    name, _, rest = path.partition(".")
    if rest:
        copy_field(getattr(target, name), getattr(source, name), rest)
        if not getattr(target, name).ByteSize():
            target.ClearField(name)
        return
    target.ClearField(name)
    for field, value in source.ListFields():
        if field.name == name:
            target.MergeFrom(type(target)(**{name: value}))


def merge_parameters(
    spec: study_pb2.StudySpec, parameters: Iterable[s.Parameter], *, new: bool
) -> None:
    """Replaces parameters of a spec by id, and appends others if allowed."""
    places = {x.id: i for i, x in enumerate(spec.parameters)}
    for x in parameters:
        if x.id in places:
            spec.parameters[places[x.id]].CopyFrom(_parameter(x))
        elif new:
            spec.parameters.append(_parameter(x))
        else:
            raise ValueError(
                f"parameters: the study has no {x.id}; study.extend() adds it by a new study "
                "that learns from this one"
            )


def set_units(spec: study_pb2.StudySpec, units: Mapping[str, str]) -> None:
    """Sets the units of metrics by id."""
    own = {m.id: m for m in spec.metrics}
    if unknown := sorted(set(units) - set(own)):
        raise ValueError(f"units: the study has no metric {', '.join(unknown)}")
    for key, unit in units.items():
        own[key].unit = unit


def metrics(metrics: Iterable[s.Metric]) -> list[metric_pb2.MetricSpec]:
    """Returns the messages of metrics."""
    return [_metric(x) for x in metrics]


UPDATABLE = sorted(s.UpdatableFields.__annotations__)


def update_hint(existing: study_pb2.StudySpec, asked: study_pb2.StudySpec) -> str:
    """Returns what makes a spec equal another: a call of Study.update or extend, "" if none can."""
    names = {name: SPEC_PATHS.get(name, name) for name in (*UPDATABLE, "parameters")}
    changes = []
    after = type(existing)()
    after.CopyFrom(existing)
    for name, path in names.items():
        before = after.SerializeToString(deterministic=True)
        if name == "parameters" and len(after.parameters) != len(asked.parameters):
            continue
        copy_field(after, asked, path)
        if after.SerializeToString(deterministic=True) != before:
            changes.append(f"{name}={_shown(asked, name, path)}")
    if after == asked:
        return f"study.update({', '.join(changes)}) changes it"
    there = {p.id for p in existing.parameters}
    new = [p.id for p in asked.parameters if p.id not in there]
    if new and there < {p.id for p in asked.parameters}:
        return f"study.extend(...) adds {', '.join(new)} by a new study that learns from it"
    return ""


def _shown(spec: study_pb2.StudySpec, name: str, path: str) -> str:
    """Returns the value of a field as one writes it in Python."""
    if name == "parameters":
        return "[...]"
    value: Any = spec
    for part in path.split("."):
        value = getattr(value, part)
    if isinstance(value, Message):
        return repr(value.ToTimedelta())  # type: ignore[attr-defined]
    return repr(not value if name == "early_stopping" else value)


def _duration(what: str, value: Any) -> timedelta:
    if not isinstance(value, timedelta):
        raise TypeError(f"{what}: {value!r} is not a timedelta")
    return value


def _shallow(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}


def _parameter(x: s.Parameter) -> parameter_pb2.ParameterSpec:
    out = parameter_pb2.ParameterSpec(id=x.id)
    if isinstance(x, s.Categorical):
        names = convert.several(f"parameter {x.id}: categories", x.categories)
        out.categorical_domain.categories.extend(names)
    elif isinstance(x, (s.Float, s.Int, s.Discrete)):
        out.scale = parameter_pb2.SCALE_LOG if x.log else parameter_pb2.SCALE_LINEAR
    if isinstance(x, s.Float):
        out.double_domain.min, out.double_domain.max = x.min, x.max
    elif isinstance(x, s.Int):
        out.integer_domain.min = convert.integer(f"parameter {x.id}: min", x.min)
        out.integer_domain.max = convert.integer(f"parameter {x.id}: max", x.max)
    elif isinstance(x, s.Discrete):
        out.discrete_domain.values.extend(x.values)
    if isinstance(x, (s.Float, s.Int)):
        out.grid_levels = x.grid_levels
        if x.design is not None:
            _design(x.design, out.design)
    if x.condition is not None:
        if len(x.condition) != 1:
            raise ValueError(
                f"parameter {x.id}: condition names {len(x.condition)} parents instead of one"
            )
        ((parent, values),) = x.condition.items()
        if isinstance(values, str) or not isinstance(values, Iterable):
            values = [values]
        out.condition.parent = parent
        out.condition.values.extend(convert.to_value(v, f"parameter {x.id}: when") for v in values)
    return out


def from_parameter(message: parameter_pb2.ParameterSpec) -> s.Parameter:
    """Returns a parameter."""
    name, log = message.id, message.scale == parameter_pb2.SCALE_LOG
    condition: dict[str, list[convert.Scalar]] | None = None
    if message.HasField("condition"):
        condition = {
            message.condition.parent: [convert.from_value(v) for v in message.condition.values]
        }
    if message.HasField("categorical_domain"):
        categories = list(message.categorical_domain.categories)
        return s.Categorical(name, categories, condition=condition)
    if message.HasField("discrete_domain"):
        return s.Discrete(name, list(message.discrete_domain.values), log, condition=condition)
    design = _from_design(message.design) if message.HasField("design") else None
    levels = message.grid_levels
    if message.HasField("integer_domain"):
        i = message.integer_domain
        return s.Int(name, i.min, i.max, log, design, levels, condition=condition)
    if message.HasField("double_domain"):
        d = message.double_domain
        return s.Float(name, d.min, d.max, log, design, levels, condition=condition)
    raise ValueError(f"parameter {name}: this client does not know its domain")


def _from_design(message: parameter_pb2.DesignDistribution) -> s.Design:
    distribution: s.Uniform | s.LogUniform | s.Normal | s.ShiftedExponential = s.Uniform()
    if message.HasField("log_uniform"):
        distribution = s.LogUniform()
    elif message.HasField("normal"):
        distribution = s.Normal(message.normal.mean, message.normal.standard_deviation)
    elif message.HasField("shifted_exponential"):
        shifted = message.shifted_exponential
        distribution = s.ShiftedExponential(shifted.rate, shifted.shift)
    return s.Design(
        distribution,
        convert.optional(message, "accept_min"),
        convert.optional(message, "accept_max"),
    )


def _design(x: s.Design, out: parameter_pb2.DesignDistribution) -> None:
    if isinstance(x.distribution, s.Uniform):
        out.uniform.SetInParent()
    elif isinstance(x.distribution, s.LogUniform):
        out.log_uniform.SetInParent()
    elif isinstance(x.distribution, s.Normal):
        out.normal.mean = x.distribution.mean
        out.normal.standard_deviation = x.distribution.standard_deviation
    else:
        out.shifted_exponential.rate = x.distribution.rate
        out.shifted_exponential.shift = x.distribution.shift
    if x.accept_min is not None:
        out.accept_min = x.accept_min
    if x.accept_max is not None:
        out.accept_max = x.accept_max


def _metric(x: s.Metric) -> metric_pb2.MetricSpec:
    out = metric_pb2.MetricSpec(id=x.id, unit=x.unit)
    if isinstance(x, (s.Minimize, s.Maximize, s.Constraint)):
        out.transform = convert.enum_value(metric_pb2.Transform, x.transform, f"{x.id}: transform")
    if isinstance(x, (s.Minimize, s.Maximize)):
        out.role = metric_pb2.METRIC_ROLE_OBJECTIVE
        minimize = isinstance(x, s.Minimize)
        out.goal = metric_pb2.GOAL_MINIMIZE if minimize else metric_pb2.GOAL_MAXIMIZE
        if x.reference_value is not None:
            out.reference_value = x.reference_value
    elif isinstance(x, s.Constraint):
        out.role = metric_pb2.METRIC_ROLE_CONSTRAINT
        out.bounds.SetInParent()
        if x.min is not None:
            out.bounds.min = x.min
        if x.max is not None:
            out.bounds.max = x.max
    else:
        out.role = metric_pb2.METRIC_ROLE_TRACKED
    if x.computed is None:
        out.reported.SetInParent()
        out.reported.sample_size = x.sample_size
        if x.noise is not None:
            out.reported.noise = convert.enum_value(metric_pb2.Noise, x.noise, f"{x.id}: noise")
    elif isinstance(x.computed, str):
        out.computed.expression = x.computed
    else:
        out.computed.privacy.CopyFrom(privacy_spec(x.computed))
    if x.report_tolerance is not None:
        out.computed.report_tolerance = x.report_tolerance
    return out


_MECHANISM_FIELDS: dict[type, str] = {
    p.DpSgd: "dp_sgd",
    p.SparseVector: "sparse_vector",
    p.Gaussian: "gaussian",
    p.Laplace: "laplace",
    p.OutputPerturbation: "output_perturbation",
    p.ObjectivePerturbation: "objective_perturbation",
    p.RandomizedResponse: "randomized_response",
    p.Selection: "selection",
    p.ZeroConcentrated: "zero_concentrated",
    p.RepeatedSelection: "repeated_selection",
    p.Composition: "composition",
}

_MECHANISM_ENUMS: dict[str, Any] = {
    "sampling": privacy_pb2.Sampling,
    "convention": privacy_pb2.Convention,
    "calibration": privacy_pb2.ObjectiveCalibration,
    "method": privacy_pb2.SelectionMethod,
}


def privacy_spec(x: p.Privacy | privacy_pb2.PrivacySpec) -> privacy_pb2.PrivacySpec:
    """Returns the message of a mechanism with its guarantee."""
    if isinstance(x, privacy_pb2.PrivacySpec):
        return x
    out = mechanism(x.mechanism)
    out.delta = x.delta
    out.adjacency = convert.enum_value(privacy_pb2.Adjacency, x.adjacency, "adjacency")
    out.accountant = convert.enum_value(privacy_pb2.Accountant, x.accountant, "accountant")
    if x.conversion is not None:
        out.conversion = convert.enum_value(privacy_pb2.Conversion, x.conversion, "conversion")
    return out


def mechanism(x: p.Mechanism) -> privacy_pb2.PrivacySpec:
    """Returns a spec with the mechanism alone. Fields have the same names as in the message."""
    if type(x) not in _MECHANISM_FIELDS:
        raise TypeError(f"{type(x).__name__} is not a mechanism")
    spec = privacy_pb2.PrivacySpec()
    out: Any = getattr(spec, _MECHANISM_FIELDS[type(x)])
    out.SetInParent()
    for f in dataclasses.fields(x):
        value = getattr(x, f.name)
        if value is None:
            continue
        if f.name in _MECHANISM_ENUMS:
            setattr(out, f.name, convert.enum_value(_MECHANISM_ENUMS[f.name], value, f.name))
        elif f.name not in ("base", "parts", *_FLAGS):
            setattr(out, f.name, expression(value, f.name))
    if isinstance(x, p.RepeatedSelection):
        _one_distribution(x)
        out.base.CopyFrom(mechanism(x.base))
        for name in _FLAGS:
            if getattr(x, name):
                getattr(out, name).SetInParent()
    elif isinstance(x, p.Composition):
        for part in x.parts:
            out.parts.add(
                mechanism=mechanism(part.mechanism), count=expression(part.count, "count")
            )
    return spec


def expression(value: p.Expression, what: str) -> str:
    """Returns an expression as text: ints and floats keep their types, also from numpy."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return repr(int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return repr(float(value))
    raise TypeError(f"{what}: {value!r} is not a number or an expression")
