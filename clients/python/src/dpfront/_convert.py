"""Converts values, enums and names between Python and the messages of the contract.

`_specs` does so with specs; `_read` makes results of messages.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf import struct_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dpfront.errors import NotFinite
from dpfront.v1 import metric_pb2, parameter_pb2, study_pb2, trial_pb2
from dpfront.values import Mean, Runs

Scalar = int | float | str
Values = float | Runs | Mean
T = TypeVar("T")
M = TypeVar("M", bound=Message)


# --- enums ------------------------------------------------------------------------------


def enum_value(enum: Any, name: str, what: str) -> Any:
    """Returns the number of an enum's value by its short name in lower case."""
    prefix = _prefix(enum)
    names = [v.name[len(prefix) :].lower() for v in enum.DESCRIPTOR.values if v.number != 0]
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"{what}: {shown(name)} is not one of {', '.join(names)}")
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


def shown(value: Any) -> str:
    """Returns a value for errors, shortened."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int with too many digits
        return f"<{type(value).__name__}>"


def positive(name: str, value: Any) -> None:
    """Refuses zero, which would stand for an argument that was left out."""
    if value is not None and number(name, value) == 0:
        raise ValueError(f"{name}: must be positive, is {value}")


def integer(what: str, value: Any) -> int:
    """Returns an integer for an int, a whole float such as 1e3, or a numpy scalar."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError, ValueError):  # infinity and NaN
            whole = math.floor(value)
            if whole == value:
                return int(whole)
    raise TypeError(f"{what}: {shown(value)} is not an integer")


def number(what: str, value: Any) -> float:
    """Returns a number of Python, or of an array or tensor that holds one."""
    try:
        with suppress(TypeError, ValueError, RuntimeError):  # of arrays and tensors of several
            plain = value.item() if hasattr(value, "item") else value
            if hasattr(plain, "__float__") and not isinstance(plain, bool):
                return float(plain)
    except OverflowError:
        raise ValueError(f"{what}: {shown(value)} is too large; floats end at 1.8e308") from None
    raise TypeError(f"{what}: {shown(value)} is not a number")


def text(what: str, value: Any) -> str:
    """Returns a text that can be sent."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: {shown(value)} is not a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what}: {value!a} is not valid Unicode") from None
    return str(value)


def flag(what: str, value: Any) -> bool:
    """Returns a bool of Python or numpy."""
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "item"):  # of numpy
        return bool(value)
    raise TypeError(f"{what}: {shown(value)} is not True or False")


def several(what: str, values: Any) -> list[Any]:
    """Returns the items of a list, tuple, array or other iterable; not the letters of a text."""
    if isinstance(values, str):
        raise TypeError(f"{what}: is one text instead of a list")
    if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}: {shown(values)} is not a list")
    return list(values)


def mapping(what: str, values: Any) -> Mapping[str, Any]:
    """Returns a dict whose keys are texts."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{what}: {shown(values)} is not a dict")
    for key in values:
        text(f"{what}: a key", key)
    return values


def instance(what: str, value: Any, *kinds: type[T]) -> T:
    """Returns an object of one of several classes."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{what}: {shown(value)} is not a {names}")
    return value


# --- messages ---------------------------------------------------------------------------


def fill(out: M, where: str = "", /, **fields: Any) -> M:
    """Sets fields of a message, and returns it.

    An error about a value names ``where`` and the field. None leaves a field as it is.
    """
    for name, value in fields.items():
        if value is not None:
            _fill(out, out.DESCRIPTOR.fields_by_name[name], value, where + name)
    return out


def _fill(out: Message, field: Any, value: Any, what: str) -> None:
    target = getattr(out, field.name)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        kind = entry.fields_by_name["value"]
        for key, x in mapping(what, value).items():
            if kind.message_type is not None:
                target[key].CopyFrom(x)
            else:
                target[key] = _scalar(kind, x, f"{what}[{key!r}]")
    elif hasattr(target, "extend"):  # a repeated field
        target.extend(_scalar(field, x, f"{what}[{i}]") for i, x in enumerate(several(what, value)))
    elif entry is not None:
        target.CopyFrom(value)
    else:
        setattr(out, field.name, _scalar(field, value, what))


_INT64 = (-(2**63), 2**63)
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: _INT64,
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}
_SCALARS: dict[int, Callable[[str, Any], Any]] = {
    FieldDescriptor.CPPTYPE_DOUBLE: number,
    FieldDescriptor.CPPTYPE_STRING: text,
    FieldDescriptor.CPPTYPE_BOOL: flag,
}


def _scalar(field: Any, value: Any, what: str) -> Any:
    """Returns the value for a field, or for one of its items; messages and enums as they are."""
    if field.cpp_type in _RANGES:
        return _whole(what, value, _RANGES[field.cpp_type])
    convert = _SCALARS.get(field.cpp_type)
    return value if convert is None else convert(what, value)


def _whole(what: str, value: Any, limits: tuple[int, int]) -> int:
    """Returns an integer of a type of the contract."""
    whole, (low, high) = integer(what, value), limits
    if not low <= whole < high:
        raise ValueError(f"{what}: {shown(value)} is out of range, from {low} to {high - 1}")
    return whole


# --- values -----------------------------------------------------------------------------


def to_value(value: Any, what: str) -> parameter_pb2.Value:
    """Returns the message of a parameter's value, which may be a numpy scalar."""
    if isinstance(value, str):
        return parameter_pb2.Value(string_value=text(what, value))
    if isinstance(value, bool):
        raise TypeError(f"{what}: is a bool; categories are names, such as 'true'")
    if isinstance(value, numbers.Integral):
        return parameter_pb2.Value(int_value=_whole(what, value, _INT64))
    if isinstance(value, numbers.Real):
        return parameter_pb2.Value(double_value=number(what, value))
    raise TypeError(f"{what}: {type(value).__name__} is not a number or a name")


def from_value(value: parameter_pb2.Value) -> Scalar:
    """Returns the plain value of a parameter."""
    kind = value.WhichOneof("kind")
    if kind is None:
        raise ValueError("the server sent a kind of value that this client does not know")
    plain: Scalar = getattr(value, kind)
    return plain


def to_values(
    params: Mapping[str, Any], kinds: Mapping[str, str] | None = None, what: str = "params"
) -> dict[str, parameter_pb2.Value]:
    """Returns messages of parameters, each of the kind of its domain if that is known."""
    out = {}
    for key, value in mapping(what, params).items():
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
    message = fill(trial_pb2.Measurement(), step=step, seeded=seeded)
    if elapsed is not None:
        message.elapsed.FromTimedelta(duration("elapsed", elapsed))
    for key, value in mapping("metrics", metrics).items():
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
    try:
        return metric_pb2.MetricValue(runs=[_finite(id, number(id, x)) for x in runs])
    except TypeError as error:
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
            raise TypeError(f"{error}; the values of several runs are Runs([...])") from None
        raise


def _finite(id: str, value: float) -> float:
    if not math.isfinite(value):
        raise NotFinite(f"{id} is {value}")
    return value


def duration(what: str, seconds: Any) -> timedelta:
    """Returns a duration in seconds."""
    try:
        return timedelta(seconds=number(what, seconds))
    except (OverflowError, ValueError):  # infinity, NaN, and beyond what a timedelta holds
        raise ValueError(f"{what}: {shown(seconds)} is not a number of seconds") from None


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
        return struct_pb2.Value(string_value=text(what, value))
    if isinstance(value, numbers.Real):
        plain = number(what, value)
        if not math.isfinite(plain) or plain != value:
            raise ValueError(f"{what}: {value!r} is no number of JSON; keep it as a text")
        return struct_pb2.Value(number_value=plain)
    if isinstance(value, Mapping):
        out = struct_pb2.Value(struct_value=struct_pb2.Struct())
        for key, x in value.items():
            out.struct_value.fields[text(f"{what}: a key", key)].CopyFrom(to_json(x, what))
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
    return {
        key: to_json(value, f"attribute {key}")
        for key, value in mapping("user_attrs", values).items()
    }


def to_artifact(
    id: str, uri: str | None, path: str | os.PathLike[str] | None
) -> trial_pb2.Artifact:
    """Returns the message of an artifact, with the hash of its file if that is given."""
    message = fill(trial_pb2.Artifact(), "artifact: ", id=id, uri=uri)
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


def study_name(id: str, what: str = "study") -> str:
    """Returns the resource name of a study."""
    return id if text(what, id).startswith("studies/") else f"studies/{id}"


def study_id(name: str) -> str:
    """Returns the id in the resource name of a study."""
    return name.removeprefix("studies/")


def ledger_name(ledger: object, what: str = "ledger") -> str:
    """Returns the resource name of a ledger, given by its name, its id or a `LedgerInfo`."""
    name = text(what, getattr(ledger, "id", ledger))
    return name if name.startswith("ledgers/") else f"ledgers/{name}"


def trial_number(name: str) -> int:
    """Returns the number in the resource name of a trial or another numbered resource."""
    return int(name.rsplit("/", 1)[-1])


def optional(message: Message, name: str) -> Any:
    """Returns a field of a message, None if it is absent."""
    return getattr(message, name) if message.HasField(name) else None


def trial_name(study: str, number: Any) -> str:
    """Returns the resource name of a trial."""
    return f"{study}/trials/{integer('number', number)}"


# --- expressions ------------------------------------------------------------------------


def expression(value: Any, what: str) -> str:
    """Returns an expression as text: ints and floats keep their types, also from numpy."""
    if isinstance(value, str):
        return text(what, value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return repr(_whole(what, value, _INT64))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        plain = number(what, value)
        if not math.isfinite(plain):
            raise ValueError(f"{what}: {plain} is not finite")
        return repr(plain)
    raise TypeError(f"{what}: {shown(value)} is not a number or an expression")
