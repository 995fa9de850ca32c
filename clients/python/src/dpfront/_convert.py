"""Converts values, enums and names between Python and the messages of the contract.

`_specs` does so with specs; `_read` makes results of messages.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import struct_pb2
from google.protobuf.message import Message

from dpfront.errors import NotFinite
from dpfront.v1 import metric_pb2, parameter_pb2, study_pb2, trial_pb2
from dpfront.values import Mean, Runs

if TYPE_CHECKING:
    from dpfront import results as r

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


# --- lenient input ----------------------------------------------------------------------


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


# --- names ------------------------------------------------------------------------------


def study_name(id: str) -> str:
    """Returns the resource name of a study."""
    return id if id.startswith("studies/") else f"studies/{id}"


def study_id(name: str) -> str:
    """Returns the id in the resource name of a study."""
    return name.removeprefix("studies/")


def ledger_name(ledger: str | r.LedgerInfo) -> str:
    """Returns the resource name of a dataset's ledger."""
    name = ledger if isinstance(ledger, str) else ledger.id
    return name if name.startswith("ledgers/") else f"ledgers/{name}"


def trial_number(name: str) -> int:
    """Returns the number in the resource name of a trial or another numbered resource."""
    return int(name.rsplit("/", 1)[-1])


def optional(message: Message, name: str) -> Any:
    """Returns a field of a message, None if it is absent."""
    return getattr(message, name) if message.HasField(name) else None
