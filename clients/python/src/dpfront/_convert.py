"""Converts between the messages of the contract and the objects of the package."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import numbers
import os
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.message import Message

from dpfront import _display as display
from dpfront import privacy as p
from dpfront import results as r
from dpfront import spec as s
from dpfront.errors import NotFinite
from dpfront.v1 import (
    front_service_pb2,
    metric_pb2,
    parameter_pb2,
    privacy_pb2,
    privacy_service_pb2,
    release_service_pb2,
    study_pb2,
    study_service_pb2,
    trial_pb2,
)
from dpfront.values import Mean, Runs

Scalar = int | float | str
Values = float | Runs | Mean


# --- enums ------------------------------------------------------------------------------


def enum_value(enum: Any, name: str, what: str) -> Any:
    """Returns the number of an enum's value by its short name in lower case."""
    prefix = _prefix(enum)
    names = [v.name[len(prefix) :].lower() for v in enum.DESCRIPTOR.values if v.number != 0]
    if name not in names:
        raise ValueError(f"{what}: {name!r} is not one of {', '.join(names)}")
    return enum.Value(prefix + name.upper())


def enum_name(enum: Any, number: int) -> str:
    """Returns the short name of an enum's value, empty for the unspecified one."""
    if number == 0:
        return ""
    if number not in enum.DESCRIPTOR.values_by_number:
        return str(number)  # from a server newer than the client
    return str(enum.Name(number))[len(_prefix(enum)) :].lower()


def _prefix(enum: Any) -> str:
    unspecified = str(enum.DESCRIPTOR.values_by_number[0].name)
    return unspecified[: -len("UNSPECIFIED")]


# --- lenient input ----------------------------------------------------------


def integer(what: str, value: Any) -> int:
    """Returns an integer for an int, a whole float such as 1e3, or a numpy scalar."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError, ValueError):  # infinity and NaN
            whole = math.floor(value)
            if whole == value:
                return int(whole)
    raise TypeError(f"{what}: {value!r} is not an integer")


def several(what: str, values: Iterable[str]) -> list[str]:
    """Returns a list of texts, and refuses a single text, which is a sequence of letters."""
    if isinstance(values, str):
        raise TypeError(f"{what}: is one text instead of a list")
    return list(values)


# --- values -----------------------------------------------------------------------------


def to_value(value: Any, what: str) -> parameter_pb2.Value:
    """Returns the message of a parameter's value, which may be a numpy scalar."""
    if isinstance(value, str):
        return parameter_pb2.Value(string_value=value)
    if isinstance(value, bool):
        raise TypeError(f"{what}: is a bool; categories are names, such as 'true'")
    if isinstance(value, numbers.Integral):
        whole = int(value)
        if not -(2**63) <= whole < 2**63:
            raise ValueError(f"{what}: {whole} is out of range")
        return parameter_pb2.Value(int_value=whole)
    if isinstance(value, numbers.Real):
        return parameter_pb2.Value(double_value=float(value))
    raise TypeError(f"{what}: {type(value).__name__} is not a number or a name")


def from_value(value: parameter_pb2.Value) -> Scalar:
    """Returns the plain value of a parameter."""
    kind = value.WhichOneof("kind")
    if kind is None:
        raise ValueError("the server sent a kind of value that this client does not know")
    plain: Scalar = getattr(value, kind)
    return plain


def to_values(
    params: Mapping[str, Any], kinds: Mapping[str, str] | None = None
) -> dict[str, parameter_pb2.Value]:
    """Returns messages of parameters, each of the kind of its domain if that is known."""
    out = {}
    for key, value in params.items():
        message = to_value(value, f"parameter {key}")
        kind = (kinds or {}).get(key)
        if kind == "double" and message.HasField("int_value"):
            message = parameter_pb2.Value(double_value=float(message.int_value))
        elif (
            kind == "int" and message.HasField("double_value") and message.double_value.is_integer()
        ):
            message = parameter_pb2.Value(int_value=int(message.double_value))
        out[key] = message
    return out


def from_values(params: Mapping[str, parameter_pb2.Value]) -> dict[str, Scalar]:
    """Returns plain values, in the order of their ids."""
    return {key: from_value(params[key]) for key in sorted(params)}


def kinds(study: study_pb2.Study) -> dict[str, str]:
    """Returns by parameter whether its values are double, int or string."""
    by_domain = {
        "double_domain": "double",
        "discrete_domain": "double",
        "integer_domain": "int",
        "categorical_domain": "string",
    }
    return {x.id: by_domain.get(x.WhichOneof("domain") or "", "") for x in study.spec.parameters}


def to_measurement(
    metrics: Mapping[str, Values],
    step: int = 0,
    elapsed: float | None = None,
    seeded: bool = False,
) -> trial_pb2.Measurement:
    """Returns the message of metrics; raises NotFinite for a value that is not finite."""
    message = trial_pb2.Measurement(step=int(step), seeded=seeded)
    if elapsed is not None:
        message.elapsed.FromTimedelta(timedelta(seconds=elapsed))
    for key, value in metrics.items():
        message.metrics[key].CopyFrom(_metric_value(key, value))
    return message


def _metric_value(id: str, value: Any) -> metric_pb2.MetricValue:
    """Returns the message of a metric's value."""
    if isinstance(value, Mean):
        error = number(f"{id}: standard_error", value.standard_error)
        if not 0 <= error < math.inf:
            raise ValueError(f"{id}: standard_error: must be finite and at least 0, is {error}")
        mean = _finite(id, number(id, value.value))
        return metric_pb2.MetricValue(value=mean, standard_error=error)
    runs = value.values if isinstance(value, Runs) else (value,)
    return metric_pb2.MetricValue(runs=[_finite(id, number(id, x)) for x in runs])


def _finite(id: str, value: float) -> float:
    if not math.isfinite(value):
        raise NotFinite(f"{id} is {value}; trial.infeasible(reason) ends such a run")
    return value


def number(what: str, value: Any) -> float:
    """Returns a number of Python, or of an array or tensor that holds one."""
    with suppress(TypeError, ValueError, RuntimeError):  # which arrays and tensors of several raise
        plain = value.item() if hasattr(value, "item") else value
        if hasattr(plain, "__float__") and not isinstance(plain, bool):
            return float(plain)
    shown = reprlib.repr(value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        raise TypeError(
            f"{what}: {shown} is not a number; the values of several runs are Runs([...])"
        )
    raise TypeError(f"{what}: {shown} is not a number")


# --- attributes and artifacts -----------------------------------------------------------


def to_json(value: Any, what: str) -> struct_pb2.Value:
    """Returns the message of a value of JSON: None, a bool, number, text, list or mapping."""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, numbers.Real):
        plain = float(value)
        if not math.isfinite(plain) or plain != value:
            raise ValueError(f"{what}: {value!r} is no number of JSON; keep it as a text")
        return struct_pb2.Value(number_value=plain)
    if isinstance(value, Mapping):
        out = struct_pb2.Value(struct_value=struct_pb2.Struct())
        for key, x in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{what}: the key {key!r} is not a text")
            out.struct_value.fields[key].CopyFrom(to_json(x, what))
        return out
    if isinstance(value, (list, tuple)):
        values = [to_json(x, what) for x in value]
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=values))
    raise TypeError(f"{what}: {type(value).__name__} is not a value of JSON")


def from_json(value: struct_pb2.Value) -> Any:
    """Returns the plain value of a message. Whole numbers are ints."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        return {key: from_json(fields[key]) for key in sorted(fields)}
    if kind == "list_value":
        return [from_json(x) for x in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    return None if kind in (None, "null_value") else getattr(value, kind)


def attributes(values: Mapping[str, Any]) -> dict[str, struct_pb2.Value]:
    """Returns the messages of attributes."""
    return {key: to_json(value, f"attribute {key}") for key, value in values.items()}


def user_attrs(message: trial_pb2.Trial) -> dict[str, Any]:
    """Returns the attributes of a trial."""
    return {key: from_json(message.attributes[key]) for key in sorted(message.attributes)}


def to_artifact(
    id: str, uri: str | None, path: str | os.PathLike[str] | None
) -> trial_pb2.Artifact:
    """Returns the message of an artifact, with the hash of its file if that is given."""
    message = trial_pb2.Artifact(id=id, uri=uri or "")
    if path is not None:
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        message.sha256 = digest.hexdigest()
        message.uri = uri or Path(path).resolve().as_uri()
    elif uri is None:
        raise ValueError(f"artifact {id}: has neither uri nor path")
    return message


def artifacts(message: trial_pb2.Trial) -> tuple[r.Artifact, ...]:
    """Returns the artifacts of a trial."""
    return tuple(r.Artifact(x.id, x.uri, x.sha256) for x in message.artifacts)


# --- specs ------------------------------------------------------------------------------


def study_spec(spec: s.StudySpec) -> study_pb2.StudySpec:
    """Returns the message of a study's spec."""
    out = study_pb2.StudySpec(
        parameters=[_parameter(x) for x in spec.parameters],
        metrics=[_metric(x) for x in spec.metrics],
        parameter_constraints=several("parameter_constraints", spec.parameter_constraints),
        checkpoint_parameter=spec.checkpoint_parameter or "",
        replicates=integer("replicates", spec.replicates),
        seed=None if spec.seed is None else integer("seed", spec.seed),
        prior_studies=[study_name(x) for x in several("prior_studies", spec.prior_studies)],
        disable_early_stopping=not spec.early_stopping,
        test_ledger=spec.test_ledger and ledger_name(spec.test_ledger),
        train_ledger=spec.train_ledger and ledger_name(spec.train_ledger),
    )
    out.algorithm.name = enum_value(study_pb2.Algorithm, spec.algorithm, "algorithm")
    out.algorithm.initial_trials = integer("initial_trials", spec.initial_trials)
    budget = study_pb2.Budget(
        max_trials=integer("max_trials", spec.max_trials),
        max_stagnant_trials=integer("max_stagnant_trials", spec.max_stagnant_trials),
        max_parallel_trials=integer("max_parallel_trials", spec.max_parallel_trials),
    )
    if spec.prior_values:
        values = to_values(spec.prior_values, kinds(study_pb2.Study(spec=out)))
        for key, value in values.items():
            out.prior_values[key].CopyFrom(value)
    if spec.max_duration is not None:
        budget.max_duration.FromTimedelta(_duration("max_duration", spec.max_duration))
    if budget != study_pb2.Budget():
        out.budget.CopyFrom(budget)
    if spec.lease is not None:
        out.lease.duration.FromTimedelta(_duration("lease", spec.lease))
    if spec.max_attempts:
        out.lease.max_attempts = integer("max_attempts", spec.max_attempts)
    if spec.cost is not None:
        if spec.cost == spec.checkpoint_parameter:
            out.cost.checkpoint_parameter.SetInParent()
        else:
            out.cost.metric = spec.cost
    if spec.trainer is not None:
        out.trainer.name = spec.trainer.name
        out.trainer.settings.update(spec.trainer.settings)
    if spec.private_mode is not None:
        out.private_mode.CopyFrom(study_pb2.PrivateModeSpec(**_shallow(spec.private_mode)))
    if spec.random_stopping is not None:
        fields = _shallow(spec.random_stopping)
        eta = fields.pop("eta")
        stopping = study_pb2.RandomStoppingSpec(**fields)
        if eta is None:
            stopping.poisson.SetInParent()
        else:
            stopping.eta = eta
        out.random_stopping.CopyFrom(stopping)
    return out


SPEC_PATHS = {
    "algorithm": "algorithm.name",
    "initial_trials": "algorithm.initial_trials",
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
    """Makes a field of a message equal that of another one of its type."""
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
    """Replaces parameters of a spec by those of the same id, and appends others if allowed."""
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
        names = several(f"parameter {x.id}: categories", x.categories)
        out.categorical_domain.categories.extend(names)
    elif isinstance(x, (s.Float, s.Int, s.Discrete)):
        out.scale = parameter_pb2.SCALE_LOG if x.log else parameter_pb2.SCALE_LINEAR
    if isinstance(x, s.Float):
        out.double_domain.min, out.double_domain.max = x.min, x.max
    elif isinstance(x, s.Int):
        out.integer_domain.min = integer(f"parameter {x.id}: min", x.min)
        out.integer_domain.max = integer(f"parameter {x.id}: max", x.max)
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
        out.condition.values.extend(to_value(v, f"parameter {x.id}: when") for v in values)
    return out


def from_parameter(message: parameter_pb2.ParameterSpec) -> s.Parameter:
    """Returns a parameter."""
    name, log = message.id, message.scale == parameter_pb2.SCALE_LOG
    condition: dict[str, list[Scalar]] | None = None
    if message.HasField("condition"):
        condition = {message.condition.parent: [from_value(v) for v in message.condition.values]}
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
        distribution, _optional(message, "accept_min"), _optional(message, "accept_max")
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
        out.transform = enum_value(metric_pb2.Transform, x.transform, f"{x.id}: transform")
    if isinstance(x, (s.Minimize, s.Maximize)):
        out.role = metric_pb2.METRIC_ROLE_OBJECTIVE
        minimize = isinstance(x, s.Minimize)
        out.goal = metric_pb2.GOAL_MINIMIZE if minimize else metric_pb2.GOAL_MAXIMIZE
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
    out = _mechanism(x.mechanism)
    out.delta = x.delta
    out.adjacency = enum_value(privacy_pb2.Adjacency, x.adjacency, "adjacency")
    out.accountant = enum_value(privacy_pb2.Accountant, x.accountant, "accountant")
    if x.conversion is not None:
        out.conversion = enum_value(privacy_pb2.Conversion, x.conversion, "conversion")
    return out


def _mechanism(x: p.Mechanism) -> privacy_pb2.PrivacySpec:
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
            setattr(out, f.name, enum_value(_MECHANISM_ENUMS[f.name], value, f.name))
        elif f.name not in ("base", "parts"):
            setattr(out, f.name, expression(value, f.name))
    if isinstance(x, p.RepeatedSelection):
        out.base.CopyFrom(_mechanism(x.base))
        if x.eta is None:
            out.poisson.SetInParent()
    elif isinstance(x, p.Composition):
        for part in x.parts:
            out.parts.add(
                mechanism=_mechanism(part.mechanism), count=expression(part.count, "count")
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


# --- results ----------------------------------------------------------------------------


def study_name(id: str) -> str:
    """Returns the resource name of a study."""
    return id if id.startswith("studies/") else f"studies/{id}"


def study_id(name: str) -> str:
    """Returns the id in the resource name of a study."""
    return name.removeprefix("studies/")


def ledger_name(ledger: str | r.LedgerInfo) -> str:
    """Returns the resource name of a dataset's ledger."""
    name = ledger.id if isinstance(ledger, r.LedgerInfo) else ledger
    return name if name.startswith("ledgers/") else f"ledgers/{name}"


def trial_number(name: str) -> int:
    """Returns the number in the resource name of a trial or another numbered resource."""
    return int(name.rsplit("/", 1)[-1])


def _optional(message: Message, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _time(message: Message, name: str) -> datetime | None:
    """Returns a time, None if it is absent."""
    if not message.HasField(name):
        return None
    time: datetime = getattr(message, name).ToDatetime(tzinfo=timezone.utc)
    return time


def _warnings(messages: Iterable[Any]) -> tuple[r.ResultWarning, ...]:
    return tuple(r.ResultWarning(w.code, w.message) for w in messages)


def guarantee(message: privacy_pb2.PrivacyGuarantee, covers: str = display.ONE_RUN) -> r.Guarantee:
    """Returns a guarantee."""
    return r.Guarantee(
        epsilon=message.epsilon,
        epsilon_lower=_optional(message, "epsilon_lower"),
        delta=message.delta,
        adjacency=enum_name(privacy_pb2.Adjacency, message.adjacency),
        accountant=enum_name(privacy_pb2.Accountant, message.accountant),
        steps=message.steps,
        assumptions=tuple(message.assumptions),
        warnings=_warnings(message.warnings),
        covers=covers,
        raw=message,
    )


def calibration(message: privacy_service_pb2.CalibrateMechanismResponse) -> r.Calibration:
    """Returns a calibration."""
    return r.Calibration(
        value=from_value(message.value),
        reachable=message.reachable,
        guarantee=guarantee(message.guarantee),
        derived=dict(message.derived),
    )


def _metrics(values: Mapping[str, metric_pb2.MetricValue]) -> dict[str, float]:
    return {key: values[key].value for key in sorted(values) if values[key].HasField("value")}


def _guarantees(values: Mapping[str, metric_pb2.MetricValue]) -> dict[str, r.Guarantee]:
    return {
        k: guarantee(values[k].privacy) for k in sorted(values) if values[k].HasField("privacy")
    }


def _measurements(messages: Iterable[trial_pb2.Measurement]) -> tuple[r.Measurement, ...]:
    return tuple(map(_measurement, messages))


def _measurement(message: trial_pb2.Measurement) -> r.Measurement:
    values = [(key, message.metrics[key]) for key in sorted(message.metrics)]
    return r.Measurement(
        step=message.step,
        metrics=_metrics(message.metrics),
        runs={key: tuple(v.runs) for key, v in values if v.runs},
        standard_errors={k: v.standard_error for k, v in values if v.HasField("standard_error")},
        reported={key: v.reported for key, v in values if v.HasField("reported")},
        elapsed=message.elapsed.ToTimedelta() if message.HasField("elapsed") else None,
    )


def trial_info(message: trial_pb2.Trial) -> r.TrialInfo:
    """Returns a trial."""
    values = {**message.computed_metrics, **message.final_measurement.metrics}
    return r.TrialInfo(
        number=message.number,
        state=enum_name(trial_pb2.TrialState, message.state),
        state_reason=message.state_reason,
        origin=enum_name(trial_pb2.TrialOrigin, message.origin),
        params=from_values(message.parameters),
        metrics=_metrics(values),
        guarantees=_guarantees(values),
        measurements=_measurements(message.measurements),
        final_measurement=(
            _measurement(message.final_measurement)
            if message.HasField("final_measurement")
            else None
        ),
        worker_id=message.lease.worker_id,
        attempt=message.attempt,
        past_attempts=tuple(
            r.PastAttempt(
                number=a.number,
                worker_id=a.worker_id,
                outcome=enum_name(trial_pb2.AttemptOutcome, a.outcome),
                reason=a.reason,
                start_time=a.start_time.ToDatetime(tzinfo=timezone.utc),
                end_time=a.end_time.ToDatetime(tzinfo=timezone.utc),
                measurements=_measurements(a.measurements),
            )
            for a in message.past_attempts
        ),
        note=message.note,
        labels=dict(message.labels),
        user_attrs=user_attrs(message),
        artifacts=artifacts(message),
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        start_time=_time(message, "start_time"),
        end_time=_time(message, "end_time"),
        provenance=_provenance(message.provenance),
        predictions=predictions(message.provenance.predictions),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def _provenance(message: trial_pb2.Provenance) -> str:
    if not message.algorithm:
        return ""
    text = f"{message.algorithm} at revision {message.study_revision}"
    if message.conditioned:
        text += ", under a condition"
    return f"{text}; {message.fallback_reason}" if message.fallback_reason else text


def study_change(message: study_service_pb2.WatchStudyResponse) -> r.StudyChange:
    """Returns a change of a study."""
    revision, time = message.revision, message.time.ToDatetime(tzinfo=timezone.utc)
    kind = message.WhichOneof("change")
    if kind == "trial":
        return r.TrialChanged(revision, time, trial_info(message.trial))
    if kind == "deleted_trial":
        return r.TrialDeleted(revision, time, trial_number(message.deleted_trial))
    if kind == "study":
        return r.StudyChanged(revision, time, study_info(message.study))
    return r.StudyChange(revision, time)  # from a server newer than the client


def reaccounting(message: privacy_service_pb2.ReaccountStudyResponse) -> r.Reaccounting:
    """Returns what a re-accounting changed."""

    def summary(x: privacy_service_pb2.AccountingSummary) -> r.AccountingSummary:
        return r.AccountingSummary(
            delta=x.privacy.delta,
            adjacency=enum_name(privacy_pb2.Adjacency, x.privacy.adjacency),
            smallest_epsilon=_optional(x, "smallest_epsilon"),
            median_epsilon=_optional(x, "median_epsilon"),
            largest_epsilon=_optional(x, "largest_epsilon"),
            not_computable=x.not_computable,
            accountants={key: x.accountants[key] for key in sorted(x.accountants)},
        )

    return r.Reaccounting(
        trials=message.trials,
        before=summary(message.before),
        after=summary(message.after),
        differing_reports=message.differing_reports,
        revision=message.revision,
    )


def study_info(message: study_pb2.Study) -> r.StudyInfo:
    """Returns a study."""
    counts = message.trial_counts
    objective, tracked = metric_pb2.METRIC_ROLE_OBJECTIVE, metric_pb2.METRIC_ROLE_TRACKED
    metrics = message.spec.metrics
    reported = [m for m in metrics if m.HasField("reported")]
    return r.StudyInfo(
        id=study_id(message.name),
        display_name=message.display_name,
        description=message.description,
        labels=dict(message.labels),
        state=enum_name(study_pb2.StudyState, message.state),
        state_reason=message.state_reason,
        trial_counts={f.name: getattr(counts, f.name) for f in counts.DESCRIPTOR.fields},
        seed=message.seed,
        revision=message.revision,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        parameters=tuple(x.id for x in message.spec.parameters),
        objectives=tuple(m.id for m in metrics if m.role == objective),
        reported=tuple(m.id for m in sorted(reported, key=lambda m: m.role == tracked)),
        max_trials=message.spec.budget.max_trials,
        checkpoint_parameter=message.spec.checkpoint_parameter,
        publication=(publication(message.publication) if message.HasField("publication") else None),
        warnings=_warnings(message.warnings),
        raw=message,
    )


def front(message: front_service_pb2.Front, study: study_pb2.Study) -> r.Front:
    """Returns a front of a study."""
    kind_name = front_service_pb2.FrontKind
    metrics = [m for m in study.spec.metrics if m.id in message.objectives]
    goals = {m.id: m.goal for m in metrics}
    return r.Front(
        kind=enum_name(kind_name, message.kind),
        points=tuple(_point(x, message.objectives) for x in message.points),
        hypervolume=message.hypervolume,
        hypervolumes={enum_name(kind_name, h.kind): h.hypervolume for h in message.hypervolumes},
        reference=dict(message.reference),
        objectives=tuple(message.objectives),
        minimize={key: goals.get(key) != metric_pb2.GOAL_MAXIMIZE for key in message.objectives},
        transforms={m.id: enum_name(metric_pb2.Transform, m.transform) for m in metrics},
        epsilons={
            m.id: display.spec_terms(m.computed.privacy)
            for m in metrics
            if m.computed.HasField("privacy")
        },
        revision=message.revision,
        warnings=_warnings(message.warnings),
        raw=message,
    )


def _point(message: front_service_pb2.FrontPoint, objectives: Iterable[str]) -> r.FrontPoint:
    def value(v: front_service_pb2.FrontValue) -> r.FrontValue:
        names = ("lower", "upper", "observed", "standard_error", "best", "worst")
        return r.FrontValue(v.value, **{n: _optional(v, n) for n in names})

    return r.FrontPoint(
        trial=trial_number(message.trial),
        step=message.step,
        params=from_values(message.parameters),
        values={key: value(message.values[key]) for key in objectives if key in message.values},
        runs=message.runs,
        trials=tuple(trial_number(t) for t in message.trials),
        contribution=message.contribution,
        knee=message.knee,
        beyond_reference=message.beyond_reference,
        guarantee=guarantee(message.privacy) if message.HasField("privacy") else None,
    )


def hypervolume(message: front_service_pb2.HypervolumePoint) -> r.HypervolumePoint:
    """Returns the hypervolume after a trial."""
    return r.HypervolumePoint(
        trial_number(message.trial),
        message.completed_trials,
        message.hypervolume,
        message.runs,
        message.steps,
    )


def predictions(
    messages: Mapping[str, trial_pb2.MetricPrediction],
) -> dict[str, r.Prediction]:
    """Returns predictions by metric id."""
    return {key: r.Prediction(m.median, m.lower, m.upper) for key, m in sorted(messages.items())}


def recommendation(message: front_service_pb2.QueryFrontResponse) -> r.Recommendation:
    """Returns a recommendation."""
    return r.Recommendation(
        reachable=message.reachable,
        params=from_values(message.parameters),
        predictions=predictions(message.predictions),
        computed=_metrics(message.computed_metrics),
        guarantees=_guarantees(message.computed_metrics),
        reached=dict(message.reached),
        optimize=message.optimize,
        trials=tuple(trial_number(t) for t in message.trials),
        runs=message.runs,
        step=message.step,
        guarantee=guarantee(message.privacy) if message.HasField("privacy") else None,
        warnings=_warnings(message.warnings),
    )


def privacy_ledger(message: privacy_service_pb2.GetPrivacyLedgerResponse) -> r.PrivacyLedger:
    """Returns a ledger."""
    fixed = message.HasField("fixed_in_advance")
    return r.PrivacyLedger(
        runs=message.runs,
        largest_epsilon=message.largest_epsilon,
        composed=guarantee(message.composed, "all runs of the study together"),
        adaptive=message.adaptive,
        fixed_in_advance=(
            guarantee(message.fixed_in_advance, "the same runs, had they been fixed beforehand")
            if fixed
            else None
        ),
        warnings=_warnings(message.warnings),
        raw=message,
    )


# --- publishing -------------------------------------------------------------------------


def _guarantee(message: Message, name: str, covers: str) -> r.Guarantee | None:
    return guarantee(getattr(message, name), covers) if message.HasField(name) else None


def publication(message: study_pb2.Publication) -> r.Publication:
    """Returns what publishing guarantees."""
    published, spent = "all that the study publishes", "what the study published so far"
    return r.Publication(
        train=guarantee(message.train, published),
        test=_guarantee(message, "test", published),
        assumptions=tuple(message.assumptions),
        not_covered=tuple(message.not_covered),
        noise_standard_deviation=message.noise_standard_deviation,
        spent_train=_guarantee(message.spent, "train", spent),
        spent_test=_guarantee(message.spent, "test", spent),
        values=message.spent.values,
        max_values=message.spent.max_values,
        raw=message,
    )


def release(message: release_service_pb2.Release) -> r.Release:
    """Returns a release."""
    return r.Release(
        name=message.name,
        guarantee=guarantee(message.guarantee, "what is published"),
        protects=message.protects,
        assumptions=tuple(message.assumptions),
        not_covered=tuple(message.not_covered),
        warnings=_warnings(message.warnings),
        training_guarantee=_guarantee(
            message, "training_guarantee", "all runs of the study together"
        ),
        points=tuple(
            r.ReleasedPoint(
                params=from_values(x.parameters),
                values={key: x.values[key] for key in sorted(x.values)},
                standard_deviations={
                    key: x.standard_deviations[key] for key in sorted(x.standard_deviations)
                },
            )
            for x in message.points
        ),
        index=_optional(message, "index"),
        mechanism=message.mechanism,
        ledger=message.ledger.removeprefix("ledgers/"),
        noise_standard_deviation=message.noise_standard_deviation,
        study_revision=message.study_revision,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        raw=message,
    )


def ledger_info(message: release_service_pb2.Ledger) -> r.LedgerInfo:
    """Returns the ledger of a dataset."""
    return r.LedgerInfo(
        id=message.name.removeprefix("ledgers/"),
        description=message.description,
        records=message.records,
        epsilon=message.epsilon,
        delta=message.delta,
        adjacency=enum_name(privacy_pb2.Adjacency, message.adjacency),
        spent=guarantee(message.spent, "everything charged to the ledger so far"),
        charges=message.charges,
        remaining_epsilon=message.remaining_epsilon,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
        raw=message,
    )


def charge(message: release_service_pb2.Charge) -> r.Charge:
    """Returns an entry of a ledger."""
    return r.Charge(
        number=trial_number(message.name),
        guarantee=guarantee(message.guarantee, "one charge of the ledger"),
        resource=message.resource,
        reason=message.reason,
        create_time=message.create_time.ToDatetime(tzinfo=timezone.utc),
    )
