from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import metric_pb2 as _metric_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from dpfront.v1 import trial_pb2 as _trial_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FrontKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRONT_KIND_UNSPECIFIED: _ClassVar[FrontKind]
    FRONT_KIND_OBSERVED: _ClassVar[FrontKind]
    FRONT_KIND_POSTERIOR: _ClassVar[FrontKind]
    FRONT_KIND_BEST: _ClassVar[FrontKind]
    FRONT_KIND_WORST: _ClassVar[FrontKind]
FRONT_KIND_UNSPECIFIED: FrontKind
FRONT_KIND_OBSERVED: FrontKind
FRONT_KIND_POSTERIOR: FrontKind
FRONT_KIND_BEST: FrontKind
FRONT_KIND_WORST: FrontKind

class GetFrontRequest(_message.Message):
    __slots__ = ("name", "kind", "final_only", "max_others")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FINAL_ONLY_FIELD_NUMBER: _ClassVar[int]
    MAX_OTHERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: FrontKind
    final_only: bool
    max_others: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[FrontKind, str]] = ..., final_only: bool = ..., max_others: _Optional[int] = ...) -> None: ...

class GetFrontResponse(_message.Message):
    __slots__ = ("front",)
    FRONT_FIELD_NUMBER: _ClassVar[int]
    front: Front
    def __init__(self, front: _Optional[_Union[Front, _Mapping]] = ...) -> None: ...

class Front(_message.Message):
    __slots__ = ("kind", "points", "hypervolume", "reference", "candidates", "revision", "objectives", "warnings", "hypervolumes", "others")
    class ReferenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    HYPERVOLUME_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    HYPERVOLUMES_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    kind: FrontKind
    points: _containers.RepeatedCompositeFieldContainer[FrontPoint]
    hypervolume: float
    reference: _containers.ScalarMap[str, float]
    candidates: int
    revision: int
    objectives: _containers.RepeatedScalarFieldContainer[str]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    hypervolumes: _containers.RepeatedCompositeFieldContainer[KindHypervolume]
    others: _containers.RepeatedCompositeFieldContainer[MeasuredPoint]
    def __init__(self, kind: _Optional[_Union[FrontKind, str]] = ..., points: _Optional[_Iterable[_Union[FrontPoint, _Mapping]]] = ..., hypervolume: _Optional[float] = ..., reference: _Optional[_Mapping[str, float]] = ..., candidates: _Optional[int] = ..., revision: _Optional[int] = ..., objectives: _Optional[_Iterable[str]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., hypervolumes: _Optional[_Iterable[_Union[KindHypervolume, _Mapping]]] = ..., others: _Optional[_Iterable[_Union[MeasuredPoint, _Mapping]]] = ...) -> None: ...

class MeasuredPoint(_message.Message):
    __slots__ = ("trial", "step", "values", "intermediate")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    INTERMEDIATE_FIELD_NUMBER: _ClassVar[int]
    trial: str
    step: int
    values: _containers.ScalarMap[str, float]
    intermediate: bool
    def __init__(self, trial: _Optional[str] = ..., step: _Optional[int] = ..., values: _Optional[_Mapping[str, float]] = ..., intermediate: bool = ...) -> None: ...

class KindHypervolume(_message.Message):
    __slots__ = ("kind", "hypervolume")
    KIND_FIELD_NUMBER: _ClassVar[int]
    HYPERVOLUME_FIELD_NUMBER: _ClassVar[int]
    kind: FrontKind
    hypervolume: float
    def __init__(self, kind: _Optional[_Union[FrontKind, str]] = ..., hypervolume: _Optional[float] = ...) -> None: ...

class FrontPoint(_message.Message):
    __slots__ = ("trial", "step", "parameters", "values", "privacy", "runs", "trials", "beyond_reference", "contribution", "knee", "constant_point")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: FrontValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[FrontValue, _Mapping]] = ...) -> None: ...
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    BEYOND_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    KNEE_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_POINT_FIELD_NUMBER: _ClassVar[int]
    trial: str
    step: int
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    values: _containers.MessageMap[str, FrontValue]
    privacy: _privacy_pb2.PrivacyGuarantee
    runs: int
    trials: _containers.RepeatedScalarFieldContainer[str]
    beyond_reference: bool
    contribution: float
    knee: bool
    constant_point: str
    def __init__(self, trial: _Optional[str] = ..., step: _Optional[int] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., values: _Optional[_Mapping[str, FrontValue]] = ..., privacy: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., runs: _Optional[int] = ..., trials: _Optional[_Iterable[str]] = ..., beyond_reference: bool = ..., contribution: _Optional[float] = ..., knee: bool = ..., constant_point: _Optional[str] = ...) -> None: ...

class FrontValue(_message.Message):
    __slots__ = ("value", "observed", "lower", "upper", "standard_error", "best", "worst")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    value: float
    observed: float
    lower: float
    upper: float
    standard_error: float
    best: float
    worst: float
    def __init__(self, value: _Optional[float] = ..., observed: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ..., standard_error: _Optional[float] = ..., best: _Optional[float] = ..., worst: _Optional[float] = ...) -> None: ...

class QueryFrontRequest(_message.Message):
    __slots__ = ("name", "bounds", "confidence", "optimize", "measured_only")
    class BoundsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_FIELD_NUMBER: _ClassVar[int]
    MEASURED_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    bounds: _containers.ScalarMap[str, float]
    confidence: float
    optimize: str
    measured_only: bool
    def __init__(self, name: _Optional[str] = ..., bounds: _Optional[_Mapping[str, float]] = ..., confidence: _Optional[float] = ..., optimize: _Optional[str] = ..., measured_only: bool = ...) -> None: ...

class QueryFrontResponse(_message.Message):
    __slots__ = ("reachable", "parameters", "predictions", "privacy", "computed_metrics", "reached", "optimize", "trials", "runs", "step", "warnings", "revision", "constant_point")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    class PredictionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _trial_pb2.MetricPrediction
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_trial_pb2.MetricPrediction, _Mapping]] = ...) -> None: ...
    class ComputedMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _metric_pb2.MetricValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_metric_pb2.MetricValue, _Mapping]] = ...) -> None: ...
    class ReachedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_METRICS_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_POINT_FIELD_NUMBER: _ClassVar[int]
    reachable: bool
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    predictions: _containers.MessageMap[str, _trial_pb2.MetricPrediction]
    privacy: _privacy_pb2.PrivacyGuarantee
    computed_metrics: _containers.MessageMap[str, _metric_pb2.MetricValue]
    reached: _containers.ScalarMap[str, float]
    optimize: str
    trials: _containers.RepeatedScalarFieldContainer[str]
    runs: int
    step: int
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    constant_point: str
    def __init__(self, reachable: bool = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., predictions: _Optional[_Mapping[str, _trial_pb2.MetricPrediction]] = ..., privacy: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., computed_metrics: _Optional[_Mapping[str, _metric_pb2.MetricValue]] = ..., reached: _Optional[_Mapping[str, float]] = ..., optimize: _Optional[str] = ..., trials: _Optional[_Iterable[str]] = ..., runs: _Optional[int] = ..., step: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ..., constant_point: _Optional[str] = ...) -> None: ...

class ListHypervolumesRequest(_message.Message):
    __slots__ = ("name", "final_only", "kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINAL_ONLY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    final_only: bool
    kind: FrontKind
    def __init__(self, name: _Optional[str] = ..., final_only: bool = ..., kind: _Optional[_Union[FrontKind, str]] = ...) -> None: ...

class ListHypervolumesResponse(_message.Message):
    __slots__ = ("points", "reference")
    class ReferenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    POINTS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    points: _containers.RepeatedCompositeFieldContainer[HypervolumePoint]
    reference: _containers.ScalarMap[str, float]
    def __init__(self, points: _Optional[_Iterable[_Union[HypervolumePoint, _Mapping]]] = ..., reference: _Optional[_Mapping[str, float]] = ...) -> None: ...

class HypervolumePoint(_message.Message):
    __slots__ = ("trial", "completed_trials", "hypervolume", "runs", "steps")
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_TRIALS_FIELD_NUMBER: _ClassVar[int]
    HYPERVOLUME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    trial: str
    completed_trials: int
    hypervolume: float
    runs: int
    steps: int
    def __init__(self, trial: _Optional[str] = ..., completed_trials: _Optional[int] = ..., hypervolume: _Optional[float] = ..., runs: _Optional[int] = ..., steps: _Optional[int] = ...) -> None: ...

class PredictMetricsRequest(_message.Message):
    __slots__ = ("name", "configurations")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    configurations: _containers.RepeatedCompositeFieldContainer[Configuration]
    def __init__(self, name: _Optional[str] = ..., configurations: _Optional[_Iterable[_Union[Configuration, _Mapping]]] = ...) -> None: ...

class Configuration(_message.Message):
    __slots__ = ("parameters",)
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    def __init__(self, parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ...) -> None: ...

class PredictMetricsResponse(_message.Message):
    __slots__ = ("predictions", "revision", "warnings")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    predictions: _containers.RepeatedCompositeFieldContainer[ConfigurationPrediction]
    revision: int
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    def __init__(self, predictions: _Optional[_Iterable[_Union[ConfigurationPrediction, _Mapping]]] = ..., revision: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ...) -> None: ...

class ConfigurationPrediction(_message.Message):
    __slots__ = ("predictions", "computed_metrics", "warnings")
    class PredictionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _trial_pb2.MetricPrediction
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_trial_pb2.MetricPrediction, _Mapping]] = ...) -> None: ...
    class ComputedMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _metric_pb2.MetricValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_metric_pb2.MetricValue, _Mapping]] = ...) -> None: ...
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_METRICS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    predictions: _containers.MessageMap[str, _trial_pb2.MetricPrediction]
    computed_metrics: _containers.MessageMap[str, _metric_pb2.MetricValue]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    def __init__(self, predictions: _Optional[_Mapping[str, _trial_pb2.MetricPrediction]] = ..., computed_metrics: _Optional[_Mapping[str, _metric_pb2.MetricValue]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ...) -> None: ...
