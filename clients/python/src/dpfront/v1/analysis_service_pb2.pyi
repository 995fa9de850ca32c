from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import metric_pb2 as _metric_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from dpfront.v1 import trial_pb2 as _trial_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IntervalEstimate(_message.Message):
    __slots__ = ("value", "lower", "upper")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    value: float
    lower: float
    upper: float
    def __init__(self, value: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ...) -> None: ...

class AnalyzeImportanceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class AnalyzeImportanceResponse(_message.Message):
    __slots__ = ("objectives", "warnings", "revision")
    OBJECTIVES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    objectives: _containers.RepeatedCompositeFieldContainer[ObjectiveImportance]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    def __init__(self, objectives: _Optional[_Iterable[_Union[ObjectiveImportance, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class ObjectiveImportance(_message.Message):
    __slots__ = ("metric", "transform", "variance", "parameters")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    metric: str
    transform: _metric_pb2.Transform
    variance: IntervalEstimate
    parameters: _containers.RepeatedCompositeFieldContainer[ParameterImportance]
    def __init__(self, metric: _Optional[str] = ..., transform: _Optional[_Union[_metric_pb2.Transform, str]] = ..., variance: _Optional[_Union[IntervalEstimate, _Mapping]] = ..., parameters: _Optional[_Iterable[_Union[ParameterImportance, _Mapping]]] = ...) -> None: ...

class ParameterImportance(_message.Message):
    __slots__ = ("parameter", "first_order", "total")
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    FIRST_ORDER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    parameter: str
    first_order: IntervalEstimate
    total: IntervalEstimate
    def __init__(self, parameter: _Optional[str] = ..., first_order: _Optional[_Union[IntervalEstimate, _Mapping]] = ..., total: _Optional[_Union[IntervalEstimate, _Mapping]] = ...) -> None: ...

class AnalyzeSlicesRequest(_message.Message):
    __slots__ = ("name", "parameters", "points")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    points: int
    def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., points: _Optional[int] = ...) -> None: ...

class AnalyzeSlicesResponse(_message.Message):
    __slots__ = ("parameters", "slices", "warnings", "revision")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    slices: _containers.RepeatedCompositeFieldContainer[Slice]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    def __init__(self, parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., slices: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class Slice(_message.Message):
    __slots__ = ("metric", "parameter", "points")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    metric: str
    parameter: str
    points: _containers.RepeatedCompositeFieldContainer[SlicePoint]
    def __init__(self, metric: _Optional[str] = ..., parameter: _Optional[str] = ..., points: _Optional[_Iterable[_Union[SlicePoint, _Mapping]]] = ...) -> None: ...

class SlicePoint(_message.Message):
    __slots__ = ("value", "prediction")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    value: _parameter_pb2.Value
    prediction: _trial_pb2.MetricPrediction
    def __init__(self, value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ..., prediction: _Optional[_Union[_trial_pb2.MetricPrediction, _Mapping]] = ...) -> None: ...

class AnalyzeContourRequest(_message.Message):
    __slots__ = ("name", "metric", "x_parameter", "y_parameter", "parameters", "points")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    X_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    Y_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    metric: str
    x_parameter: str
    y_parameter: str
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    points: int
    def __init__(self, name: _Optional[str] = ..., metric: _Optional[str] = ..., x_parameter: _Optional[str] = ..., y_parameter: _Optional[str] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., points: _Optional[int] = ...) -> None: ...

class AnalyzeContourResponse(_message.Message):
    __slots__ = ("parameters", "x_values", "y_values", "predictions", "warnings", "revision")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    X_VALUES_FIELD_NUMBER: _ClassVar[int]
    Y_VALUES_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    x_values: _containers.RepeatedCompositeFieldContainer[_parameter_pb2.Value]
    y_values: _containers.RepeatedCompositeFieldContainer[_parameter_pb2.Value]
    predictions: _containers.RepeatedCompositeFieldContainer[_trial_pb2.MetricPrediction]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    def __init__(self, parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., x_values: _Optional[_Iterable[_Union[_parameter_pb2.Value, _Mapping]]] = ..., y_values: _Optional[_Iterable[_Union[_parameter_pb2.Value, _Mapping]]] = ..., predictions: _Optional[_Iterable[_Union[_trial_pb2.MetricPrediction, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class CrossValidateRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CrossValidateResponse(_message.Message):
    __slots__ = ("objectives", "warnings", "revision")
    OBJECTIVES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    objectives: _containers.RepeatedCompositeFieldContainer[ObjectiveValidation]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    def __init__(self, objectives: _Optional[_Iterable[_Union[ObjectiveValidation, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class ObjectiveValidation(_message.Message):
    __slots__ = ("metric", "points", "coverage", "r_squared")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    R_SQUARED_FIELD_NUMBER: _ClassVar[int]
    metric: str
    points: _containers.RepeatedCompositeFieldContainer[ValidationPoint]
    coverage: float
    r_squared: float
    def __init__(self, metric: _Optional[str] = ..., points: _Optional[_Iterable[_Union[ValidationPoint, _Mapping]]] = ..., coverage: _Optional[float] = ..., r_squared: _Optional[float] = ...) -> None: ...

class ValidationPoint(_message.Message):
    __slots__ = ("trial", "step", "observed", "predicted")
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    trial: str
    step: int
    observed: float
    predicted: _trial_pb2.MetricPrediction
    def __init__(self, trial: _Optional[str] = ..., step: _Optional[int] = ..., observed: _Optional[float] = ..., predicted: _Optional[_Union[_trial_pb2.MetricPrediction, _Mapping]] = ...) -> None: ...

class ForecastGainRequest(_message.Message):
    __slots__ = ("name", "runs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    runs: int
    def __init__(self, name: _Optional[str] = ..., runs: _Optional[int] = ...) -> None: ...

class ForecastGainResponse(_message.Message):
    __slots__ = ("hypervolume", "points", "cost_unit", "warnings", "revision")
    HYPERVOLUME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    COST_UNIT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    hypervolume: float
    points: _containers.RepeatedCompositeFieldContainer[GainPoint]
    cost_unit: str
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    def __init__(self, hypervolume: _Optional[float] = ..., points: _Optional[_Iterable[_Union[GainPoint, _Mapping]]] = ..., cost_unit: _Optional[str] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class GainPoint(_message.Message):
    __slots__ = ("runs", "gain", "cost", "probability")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    runs: int
    gain: IntervalEstimate
    cost: float
    probability: float
    def __init__(self, runs: _Optional[int] = ..., gain: _Optional[_Union[IntervalEstimate, _Mapping]] = ..., cost: _Optional[float] = ..., probability: _Optional[float] = ...) -> None: ...
