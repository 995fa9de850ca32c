from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Scale(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCALE_UNSPECIFIED: _ClassVar[Scale]
    SCALE_LINEAR: _ClassVar[Scale]
    SCALE_LOG: _ClassVar[Scale]
SCALE_UNSPECIFIED: Scale
SCALE_LINEAR: Scale
SCALE_LOG: Scale

class Value(_message.Message):
    __slots__ = ("double_value", "int_value", "string_value")
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    INT_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    double_value: float
    int_value: int
    string_value: str
    def __init__(self, double_value: _Optional[float] = ..., int_value: _Optional[int] = ..., string_value: _Optional[str] = ...) -> None: ...

class ParameterSpec(_message.Message):
    __slots__ = ("id", "double_domain", "integer_domain", "discrete_domain", "categorical_domain", "scale", "design", "grid_levels", "condition")
    ID_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DISCRETE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    CATEGORICAL_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    DESIGN_FIELD_NUMBER: _ClassVar[int]
    GRID_LEVELS_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    id: str
    double_domain: DoubleDomain
    integer_domain: IntegerDomain
    discrete_domain: DiscreteDomain
    categorical_domain: CategoricalDomain
    scale: Scale
    design: DesignDistribution
    grid_levels: int
    condition: Condition
    def __init__(self, id: _Optional[str] = ..., double_domain: _Optional[_Union[DoubleDomain, _Mapping]] = ..., integer_domain: _Optional[_Union[IntegerDomain, _Mapping]] = ..., discrete_domain: _Optional[_Union[DiscreteDomain, _Mapping]] = ..., categorical_domain: _Optional[_Union[CategoricalDomain, _Mapping]] = ..., scale: _Optional[_Union[Scale, str]] = ..., design: _Optional[_Union[DesignDistribution, _Mapping]] = ..., grid_levels: _Optional[int] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class DoubleDomain(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: float
    max: float
    def __init__(self, min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class IntegerDomain(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: int
    max: int
    def __init__(self, min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class DiscreteDomain(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class CategoricalDomain(_message.Message):
    __slots__ = ("categories",)
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    categories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, categories: _Optional[_Iterable[str]] = ...) -> None: ...

class DesignDistribution(_message.Message):
    __slots__ = ("uniform", "log_uniform", "normal", "shifted_exponential", "accept_min", "accept_max")
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    LOG_UNIFORM_FIELD_NUMBER: _ClassVar[int]
    NORMAL_FIELD_NUMBER: _ClassVar[int]
    SHIFTED_EXPONENTIAL_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_MIN_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_MAX_FIELD_NUMBER: _ClassVar[int]
    uniform: UniformDistribution
    log_uniform: LogUniformDistribution
    normal: NormalDistribution
    shifted_exponential: ShiftedExponentialDistribution
    accept_min: float
    accept_max: float
    def __init__(self, uniform: _Optional[_Union[UniformDistribution, _Mapping]] = ..., log_uniform: _Optional[_Union[LogUniformDistribution, _Mapping]] = ..., normal: _Optional[_Union[NormalDistribution, _Mapping]] = ..., shifted_exponential: _Optional[_Union[ShiftedExponentialDistribution, _Mapping]] = ..., accept_min: _Optional[float] = ..., accept_max: _Optional[float] = ...) -> None: ...

class UniformDistribution(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogUniformDistribution(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NormalDistribution(_message.Message):
    __slots__ = ("mean", "standard_deviation")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    mean: float
    standard_deviation: float
    def __init__(self, mean: _Optional[float] = ..., standard_deviation: _Optional[float] = ...) -> None: ...

class ShiftedExponentialDistribution(_message.Message):
    __slots__ = ("rate", "shift")
    RATE_FIELD_NUMBER: _ClassVar[int]
    SHIFT_FIELD_NUMBER: _ClassVar[int]
    rate: float
    shift: float
    def __init__(self, rate: _Optional[float] = ..., shift: _Optional[float] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("parent", "values")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    parent: str
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, parent: _Optional[str] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...
