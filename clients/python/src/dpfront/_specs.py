"""Converts specs between the objects of the package and the messages of the contract."""

from __future__ import annotations

import dataclasses
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
    spec = convert.instance("spec", spec, s.StudySpec)
    ledgers = {
        name: convert.ledger_name(getattr(spec, name), name)
        for name in ("test_ledger", "train_ledger")
        if not _is_empty(getattr(spec, name))
    }
    out = convert.fill(
        study_pb2.StudySpec(),
        parameters=[_parameter(x) for x in convert.several("parameters", spec.parameters)],
        metrics=metrics(spec.metrics),
        parameter_constraints=spec.parameter_constraints,
        checkpoint_parameter=spec.checkpoint_parameter,
        replicates=spec.replicates,
        seed=spec.seed,
        prior_studies=[
            convert.study_name(x, "prior_studies")
            for x in convert.several("prior_studies", spec.prior_studies)
        ],
        disable_early_stopping=not convert.flag("early_stopping", spec.early_stopping),
        constant_points=[
            convert.fill(
                study_pb2.ConstantPoint(),
                f"constant_points[{i}].",
                **_shallow(convert.instance(f"constant_points[{i}]", x, s.ConstantPoint)),
            )
            for i, x in enumerate(convert.several("constant_points", spec.constant_points))
        ],
        **ledgers,
    )
    out.algorithm.name = convert.enum_value(study_pb2.Algorithm, spec.algorithm, "algorithm")
    convert.fill(
        out.algorithm,
        initial_trials=spec.initial_trials,
        published_acquisition=spec.published_acquisition,
    )
    if spec.dp_sgd_features is not None:
        _features(spec.dp_sgd_features, out.algorithm)
    kinds = convert.kinds(study_pb2.Study(spec=out))
    convert.fill(out, prior_values=convert.to_values(spec.prior_values, kinds, "prior_values"))
    budget = convert.fill(
        study_pb2.Budget(),
        max_trials=spec.max_trials,
        max_stagnant_trials=spec.max_stagnant_trials,
        max_parallel_trials=spec.max_parallel_trials,
    )
    if spec.max_duration is not None:
        budget.max_duration.FromTimedelta(
            convert.instance("max_duration", spec.max_duration, timedelta)
        )
    if budget != study_pb2.Budget():
        out.budget.CopyFrom(budget)
    if spec.lease is not None:
        out.lease.duration.FromTimedelta(convert.instance("lease", spec.lease, timedelta))
    if spec.max_attempts:
        convert.fill(out.lease, max_attempts=spec.max_attempts)
    if spec.cost is not None:
        if spec.cost == spec.checkpoint_parameter:
            out.cost.checkpoint_parameter.SetInParent()
        else:
            out.cost.metric = convert.text("cost", spec.cost)
    if spec.trainer is not None:
        trainer = _shallow(convert.instance("trainer", spec.trainer, s.Trainer))
        convert.fill(out.trainer, "trainer.", **trainer)
    if spec.private_mode is not None:
        _private_mode(spec.private_mode, kinds, out.private_mode)
    if spec.random_stopping is not None:
        _random_stopping(spec.random_stopping, kinds, out.random_stopping)
    return out


def _features(x: s.DpSgdFeatures | bool, out: study_pb2.AlgorithmSpec) -> None:
    where = "dp_sgd_features"
    if not isinstance(x, s.DpSgdFeatures):
        if not convert.flag(where, x):
            out.dp_sgd_features.disabled = True
        return
    fields = _shallow(x)
    for name in ("learning_rate", "clipping_norm"):
        if fields[name] is not None:
            fields[name] = convert.expression(fields[name], f"{where}.{name}")
    optimizer = fields.pop("optimizer")
    convert.fill(out.dp_sgd_features, f"{where}.", **fields)
    out.dp_sgd_features.SetInParent()
    if optimizer is not None:
        out.dp_sgd_features.optimizer = convert.enum_value(
            privacy_pb2.DpSgdOptimizer, optimizer, f"{where}.optimizer"
        )


def _private_mode(
    x: s.PrivateMode, kinds: Mapping[str, str], out: study_pb2.PrivateModeSpec
) -> None:
    where = "private_mode"
    fields = _shallow(convert.instance(where, x, s.PrivateMode))
    train_filter = fields.pop("train_filter")
    slots = convert.several(f"{where}.slots", fields.pop("slots"))
    convert.fill(out, f"{where}.", **fields)
    for i, slot in enumerate(slots):
        what = f"{where}.slots[{i}]"
        slot = convert.instance(what, slot, s.Slot)
        values = convert.to_values(slot.parameters, kinds, f"{what}.parameters")
        convert.fill(out.slots.add(), f"{what}.", parameters=values, count=slot.count)
    if train_filter is not None:
        out.train_filter = convert.enum_value(study_pb2.TrainFilter, train_filter, "train_filter")


def _random_stopping(
    x: s.RandomStopping, kinds: Mapping[str, str], out: study_pb2.RandomStoppingSpec
) -> None:
    where = "random_stopping"
    fields = _shallow(convert.instance(where, x, s.RandomStopping))
    _one_distribution(x)
    flags = {name: fields.pop(name) for name in _FLAGS}
    release, final_run = fields.pop("release"), fields.pop("final_run")
    convert.fill(out, f"{where}.", **fields)
    out.SetInParent()
    if release is not None:
        out.release = convert.enum_value(study_pb2.RandomStoppingRelease, release, "release")
    if final_run is not None:
        what = f"{where}.final_run"
        final_run = convert.instance(what, final_run, s.FinalRun)
        values = convert.to_values(final_run.values, kinds, f"{what}.values")
        convert.fill(out.final_run, f"{what}.", dataset_size=final_run.dataset_size, values=values)
    for name, is_set in flags.items():
        if convert.flag(f"{where}.{name}", is_set):
            getattr(out, name).SetInParent()


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
    "dp_sgd_features": "algorithm.dp_sgd_features",
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
    for x in map(_parameter, convert.several("parameters", parameters)):
        if x.id in places:
            spec.parameters[places[x.id]].CopyFrom(x)
        elif new:
            spec.parameters.append(x)
        else:
            raise ValueError(
                f"parameters: the study has no {x.id}; study.extend() adds it by a new study "
                "that learns from this one"
            )


def set_units(spec: study_pb2.StudySpec, units: Mapping[str, str]) -> None:
    """Sets the units of metrics by id."""
    own = {m.id: m for m in spec.metrics}
    if unknown := sorted(set(convert.mapping("units", units)) - set(own)):
        raise ValueError(f"units: the study has no metric {', '.join(unknown)}")
    for key, unit in units.items():
        convert.fill(own[key], f"units[{key!r}]: ", unit=unit)


def metrics(metrics: Iterable[s.Metric]) -> list[metric_pb2.MetricSpec]:
    """Returns the messages of metrics."""
    return [
        _metric(
            convert.instance(f"metrics[{i}]", x, s.Minimize, s.Maximize, s.Constraint, s.Tracked)
        )
        for i, x in enumerate(convert.several("metrics", metrics))
    ]


UPDATABLE = sorted(s.UpdatableFields.__annotations__)


def update_hint(existing: study_pb2.StudySpec, asked: study_pb2.StudySpec) -> str:
    """Returns what makes a spec equal another: a call of Study.update or extend, "" if none can."""
    names = {name: SPEC_PATHS.get(name, name) for name in (*UPDATABLE, "parameters")}
    changes = []
    asked = _as_stored(asked, existing)
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


def _as_stored(asked: study_pb2.StudySpec, existing: study_pb2.StudySpec) -> study_pb2.StudySpec:
    """Returns a spec with what the server takes from a mechanism that names its learning rate."""
    if not any(x.computed.privacy.dp_sgd.learning_rate for x in asked.metrics):
        return asked
    stored, filled = existing.algorithm.dp_sgd_features, study_pb2.StudySpec()
    filled.CopyFrom(asked)
    if not asked.algorithm.HasField("dp_sgd_features"):
        copy_field(filled, existing, "algorithm.dp_sgd_features")
    elif not asked.algorithm.dp_sgd_features.disabled:
        own = filled.algorithm.dp_sgd_features
        own.learning_rate = own.learning_rate or stored.learning_rate
        own.clipping_norm = own.clipping_norm or stored.clipping_norm
        own.optimizer = own.optimizer or stored.optimizer
    return filled


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


def _is_empty(text: str | None) -> bool:
    return text is None or (isinstance(text, str) and not text)


def _given(where: str, name: str, x: Any) -> Any:
    """Returns a field that a message must have: None is no value of it."""
    value = getattr(x, name)
    if value is None:
        raise TypeError(f"{where}{name}: is missing: it is None")
    return value


def _shallow(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}


def _parameter(x: s.Parameter) -> parameter_pb2.ParameterSpec:
    convert.instance("parameters", x, s.Float, s.Int, s.Discrete, s.Categorical)
    where = f"parameter {convert.text('parameter id', x.id)}: "
    out = parameter_pb2.ParameterSpec(id=x.id)
    if isinstance(x, (s.Float, s.Int, s.Discrete)):
        log = convert.flag(f"{where}log", x.log)
        out.scale = parameter_pb2.SCALE_LOG if log else parameter_pb2.SCALE_LINEAR
    if isinstance(x, s.Float):
        convert.fill(
            out.double_domain, where, min=_given(where, "min", x), max=_given(where, "max", x)
        )
    elif isinstance(x, s.Int):
        convert.fill(
            out.integer_domain, where, min=_given(where, "min", x), max=_given(where, "max", x)
        )
    elif isinstance(x, s.Discrete):
        convert.fill(out.discrete_domain, where, values=_given(where, "values", x))
    elif isinstance(x, s.Categorical):
        convert.fill(out.categorical_domain, where, categories=_given(where, "categories", x))
    if isinstance(x, (s.Float, s.Int)):
        convert.fill(out, where, grid_levels=x.grid_levels)
        if x.design is not None:
            _design(convert.instance(f"{where}design", x.design, s.Design), where, out.design)
    if x.condition is not None:
        condition = convert.mapping(f"{where}condition", x.condition)
        if len(condition) != 1:
            raise ValueError(f"{where}condition names {len(condition)} parents instead of one")
        ((parent, values),) = condition.items()
        if isinstance(values, str) or not isinstance(values, Iterable):
            values = [values]
        out.condition.parent = parent
        out.condition.values.extend(convert.to_value(v, f"{where}when") for v in values)
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


_DISTRIBUTIONS: dict[type, str] = {
    s.Uniform: "uniform",
    s.LogUniform: "log_uniform",
    s.Normal: "normal",
    s.ShiftedExponential: "shifted_exponential",
}


def _design(x: s.Design, where: str, out: parameter_pb2.DesignDistribution) -> None:
    distribution: Any = convert.instance(f"{where}distribution", x.distribution, *_DISTRIBUTIONS)
    message = getattr(out, _DISTRIBUTIONS[type(distribution)])
    message.SetInParent()
    convert.fill(message, where, **_shallow(distribution))
    convert.fill(out, where, accept_min=x.accept_min, accept_max=x.accept_max)


def _metric(x: s.Metric) -> metric_pb2.MetricSpec:
    where = f"metric {convert.text('metric id', x.id)}: "
    out = convert.fill(metric_pb2.MetricSpec(id=x.id), where, unit=x.unit)
    if isinstance(x, (s.Minimize, s.Maximize, s.Constraint)):
        out.transform = convert.enum_value(metric_pb2.Transform, x.transform, f"{x.id}: transform")
    if isinstance(x, (s.Minimize, s.Maximize)):
        out.role = metric_pb2.METRIC_ROLE_OBJECTIVE
        minimize = isinstance(x, s.Minimize)
        out.goal = metric_pb2.GOAL_MINIMIZE if minimize else metric_pb2.GOAL_MAXIMIZE
        convert.fill(out, where, reference_value=x.reference_value)
    elif isinstance(x, s.Constraint):
        out.role = metric_pb2.METRIC_ROLE_CONSTRAINT
        out.bounds.SetInParent()
        convert.fill(out.bounds, where, min=x.min, max=x.max)
    else:
        out.role = metric_pb2.METRIC_ROLE_TRACKED
    if x.computed is None:
        out.reported.SetInParent()
        convert.fill(out.reported, where, sample_size=x.sample_size)
        if x.noise is not None:
            out.reported.noise = convert.enum_value(metric_pb2.Noise, x.noise, f"{x.id}: noise")
    elif isinstance(x.computed, str):
        convert.fill(out.computed, where, expression=x.computed)
    else:
        out.computed.privacy.CopyFrom(privacy_spec(x.computed, where))
    if x.report_tolerance is not None:
        convert.fill(out.computed, where, report_tolerance=x.report_tolerance)
    return out


_MECHANISM_FIELDS: dict[type, str] = {
    p.DpSgd: "dp_sgd",
    p.RandomAllocation: "random_allocation",
    p.DpFtrl: "dp_ftrl",
    p.SparseVector: "sparse_vector",
    p.Gaussian: "gaussian",
    p.Laplace: "laplace",
    p.OutputPerturbation: "output_perturbation",
    p.ObjectivePerturbation: "objective_perturbation",
    p.RandomizedResponse: "randomized_response",
    p.Selection: "selection",
    p.ZeroConcentrated: "zero_concentrated",
    p.DiscreteGaussian: "discrete_gaussian",
    p.DiscreteLaplace: "discrete_laplace",
    p.RepeatedSelection: "repeated_selection",
    p.Composition: "composition",
}

_MECHANISM_ENUMS: dict[str, Any] = {
    "sampling": privacy_pb2.Sampling,
    "allocation": privacy_pb2.Allocation,
    "convention": privacy_pb2.Convention,
    "calibration": privacy_pb2.ObjectiveCalibration,
    "method": privacy_pb2.SelectionMethod,
    "optimizer": privacy_pb2.DpSgdOptimizer,
    "matrix": privacy_pb2.NoiseMatrix,
}

_MECHANISM_LISTS = ("column", "buffer_scale", "buffer_decay")


def privacy_spec(
    x: p.Privacy | privacy_pb2.PrivacySpec, where: str = ""
) -> privacy_pb2.PrivacySpec:
    """Returns the message of a mechanism with its guarantee."""
    if isinstance(x, privacy_pb2.PrivacySpec):
        return x
    if not isinstance(x, p.Privacy):
        raise TypeError(f"{where or 'privacy: '}{convert.shown(x)} is not a Privacy")
    out = convert.fill(mechanism(x.mechanism), where, delta=_given(where, "delta", x))
    out.adjacency = convert.enum_value(privacy_pb2.Adjacency, x.adjacency, "adjacency")
    out.accountant = convert.enum_value(privacy_pb2.Accountant, x.accountant, "accountant")
    if x.conversion is not None:
        out.conversion = convert.enum_value(privacy_pb2.Conversion, x.conversion, "conversion")
    return out


def mechanism(x: p.Mechanism) -> privacy_pb2.PrivacySpec:
    """Returns a spec with the mechanism alone. Fields have the same names as in the message."""
    if type(x) not in _MECHANISM_FIELDS:
        raise TypeError(f"mechanism: {type(x).__name__} is not a mechanism")
    spec = privacy_pb2.PrivacySpec()
    out: Any = getattr(spec, _MECHANISM_FIELDS[type(x)])
    out.SetInParent()
    for f in dataclasses.fields(x):
        value = getattr(x, f.name)
        if value is None:
            continue
        if f.name in _MECHANISM_ENUMS:
            setattr(out, f.name, convert.enum_value(_MECHANISM_ENUMS[f.name], value, f.name))
        elif f.name in _MECHANISM_LISTS:
            getattr(out, f.name).extend(
                convert.number(f.name, v) for v in convert.several(f.name, value)
            )
        elif f.name not in ("base", "parts", *_FLAGS):
            setattr(out, f.name, convert.expression(value, f.name))
    if isinstance(x, p.RepeatedSelection):
        _one_distribution(x)
        out.base.CopyFrom(mechanism(x.base))
        for name in _FLAGS:
            if getattr(x, name):
                getattr(out, name).SetInParent()
    elif isinstance(x, p.Composition):
        for i, part in enumerate(convert.several("parts", x.parts)):
            part = convert.instance(f"parts[{i}]", part, p.Part)
            out.parts.add(
                mechanism=mechanism(part.mechanism), count=convert.expression(part.count, "count")
            )
    return spec
