from dpfront.v1 import privacy_pb2 as _privacy_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetricRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METRIC_ROLE_UNSPECIFIED: _ClassVar[MetricRole]
    METRIC_ROLE_OBJECTIVE: _ClassVar[MetricRole]
    METRIC_ROLE_CONSTRAINT: _ClassVar[MetricRole]
    METRIC_ROLE_TRACKED: _ClassVar[MetricRole]

class Goal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GOAL_UNSPECIFIED: _ClassVar[Goal]
    GOAL_MINIMIZE: _ClassVar[Goal]
    GOAL_MAXIMIZE: _ClassVar[Goal]

class Transform(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSFORM_UNSPECIFIED: _ClassVar[Transform]
    TRANSFORM_IDENTITY: _ClassVar[Transform]
    TRANSFORM_LOG: _ClassVar[Transform]
    TRANSFORM_LOGIT: _ClassVar[Transform]

class Noise(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOISE_UNSPECIFIED: _ClassVar[Noise]
    NOISE_NONE: _ClassVar[Noise]
    NOISE_UNKNOWN: _ClassVar[Noise]
    NOISE_KNOWN: _ClassVar[Noise]
METRIC_ROLE_UNSPECIFIED: MetricRole
METRIC_ROLE_OBJECTIVE: MetricRole
METRIC_ROLE_CONSTRAINT: MetricRole
METRIC_ROLE_TRACKED: MetricRole
GOAL_UNSPECIFIED: Goal
GOAL_MINIMIZE: Goal
GOAL_MAXIMIZE: Goal
TRANSFORM_UNSPECIFIED: Transform
TRANSFORM_IDENTITY: Transform
TRANSFORM_LOG: Transform
TRANSFORM_LOGIT: Transform
NOISE_UNSPECIFIED: Noise
NOISE_NONE: Noise
NOISE_UNKNOWN: Noise
NOISE_KNOWN: Noise

class MetricSpec(_message.Message):
    __slots__ = ("id", "role", "goal", "transform", "reference_value", "reported", "computed", "unit", "bounds")
    ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_VALUE_FIELD_NUMBER: _ClassVar[int]
    REPORTED_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    role: MetricRole
    goal: Goal
    transform: Transform
    reference_value: float
    reported: ReportedSource
    computed: ComputedSource
    unit: str
    bounds: MetricBounds
    def __init__(self, id: _Optional[str] = ..., role: _Optional[_Union[MetricRole, str]] = ..., goal: _Optional[_Union[Goal, str]] = ..., transform: _Optional[_Union[Transform, str]] = ..., reference_value: _Optional[float] = ..., reported: _Optional[_Union[ReportedSource, _Mapping]] = ..., computed: _Optional[_Union[ComputedSource, _Mapping]] = ..., unit: _Optional[str] = ..., bounds: _Optional[_Union[MetricBounds, _Mapping]] = ...) -> None: ...

class MetricBounds(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: float
    max: float
    def __init__(self, min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class ReportedSource(_message.Message):
    __slots__ = ("sample_size", "noise")
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    sample_size: float
    noise: Noise
    def __init__(self, sample_size: _Optional[float] = ..., noise: _Optional[_Union[Noise, str]] = ...) -> None: ...

class ComputedSource(_message.Message):
    __slots__ = ("privacy", "expression", "report_tolerance")
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    REPORT_TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    expression: str
    report_tolerance: float
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., expression: _Optional[str] = ..., report_tolerance: _Optional[float] = ...) -> None: ...

class MetricValue(_message.Message):
    __slots__ = ("value", "runs", "standard_error", "min", "max", "reported", "privacy")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    REPORTED_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    value: float
    runs: _containers.RepeatedScalarFieldContainer[float]
    standard_error: float
    min: float
    max: float
    reported: float
    privacy: _privacy_pb2.PrivacyGuarantee
    def __init__(self, value: _Optional[float] = ..., runs: _Optional[_Iterable[float]] = ..., standard_error: _Optional[float] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., reported: _Optional[float] = ..., privacy: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ...) -> None: ...
