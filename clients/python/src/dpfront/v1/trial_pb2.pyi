import datetime

from dpfront.v1 import metric_pb2 as _metric_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttemptOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_OUTCOME_UNSPECIFIED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_LOST: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_RESUMED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_RELEASED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_FAILED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_OVERTAKEN: _ClassVar[AttemptOutcome]

class TrialState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRIAL_STATE_UNSPECIFIED: _ClassVar[TrialState]
    TRIAL_STATE_QUEUED: _ClassVar[TrialState]
    TRIAL_STATE_ACTIVE: _ClassVar[TrialState]
    TRIAL_STATE_STOPPING: _ClassVar[TrialState]
    TRIAL_STATE_SUCCEEDED: _ClassVar[TrialState]
    TRIAL_STATE_INFEASIBLE: _ClassVar[TrialState]
    TRIAL_STATE_FAILED: _ClassVar[TrialState]

class TrialOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRIAL_ORIGIN_UNSPECIFIED: _ClassVar[TrialOrigin]
    TRIAL_ORIGIN_SUGGESTED: _ClassVar[TrialOrigin]
    TRIAL_ORIGIN_REQUESTED: _ClassVar[TrialOrigin]
    TRIAL_ORIGIN_IMPORTED: _ClassVar[TrialOrigin]
    TRIAL_ORIGIN_REPLICATE: _ClassVar[TrialOrigin]
ATTEMPT_OUTCOME_UNSPECIFIED: AttemptOutcome
ATTEMPT_OUTCOME_LOST: AttemptOutcome
ATTEMPT_OUTCOME_RESUMED: AttemptOutcome
ATTEMPT_OUTCOME_RELEASED: AttemptOutcome
ATTEMPT_OUTCOME_FAILED: AttemptOutcome
ATTEMPT_OUTCOME_OVERTAKEN: AttemptOutcome
TRIAL_STATE_UNSPECIFIED: TrialState
TRIAL_STATE_QUEUED: TrialState
TRIAL_STATE_ACTIVE: TrialState
TRIAL_STATE_STOPPING: TrialState
TRIAL_STATE_SUCCEEDED: TrialState
TRIAL_STATE_INFEASIBLE: TrialState
TRIAL_STATE_FAILED: TrialState
TRIAL_ORIGIN_UNSPECIFIED: TrialOrigin
TRIAL_ORIGIN_SUGGESTED: TrialOrigin
TRIAL_ORIGIN_REQUESTED: TrialOrigin
TRIAL_ORIGIN_IMPORTED: TrialOrigin
TRIAL_ORIGIN_REPLICATE: TrialOrigin

class Trial(_message.Message):
    __slots__ = ("name", "number", "etag", "state", "state_reason", "origin", "parameters", "replicates", "computed_metrics", "measurements", "final_measurement", "lease", "attempt", "provenance", "replicate_of", "labels", "note", "warnings", "revision", "create_time", "start_time", "end_time", "training_shard", "past_attempts", "attributes", "artifacts", "training_subset", "worker_id")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    class ComputedMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _metric_pb2.MetricValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_metric_pb2.MetricValue, _Mapping]] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    REPLICATES_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_METRICS_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    FINAL_MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    REPLICATE_OF_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TRAINING_SHARD_FIELD_NUMBER: _ClassVar[int]
    PAST_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    TRAINING_SUBSET_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    etag: str
    state: TrialState
    state_reason: str
    origin: TrialOrigin
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    replicates: int
    computed_metrics: _containers.MessageMap[str, _metric_pb2.MetricValue]
    measurements: _containers.RepeatedCompositeFieldContainer[Measurement]
    final_measurement: Measurement
    lease: Lease
    attempt: int
    provenance: Provenance
    replicate_of: str
    labels: _containers.ScalarMap[str, str]
    note: str
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    training_shard: int
    past_attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    attributes: _containers.MessageMap[str, _struct_pb2.Value]
    artifacts: _containers.RepeatedCompositeFieldContainer[Artifact]
    training_subset: TrainingSubset
    worker_id: str
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ..., etag: _Optional[str] = ..., state: _Optional[_Union[TrialState, str]] = ..., state_reason: _Optional[str] = ..., origin: _Optional[_Union[TrialOrigin, str]] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., replicates: _Optional[int] = ..., computed_metrics: _Optional[_Mapping[str, _metric_pb2.MetricValue]] = ..., measurements: _Optional[_Iterable[_Union[Measurement, _Mapping]]] = ..., final_measurement: _Optional[_Union[Measurement, _Mapping]] = ..., lease: _Optional[_Union[Lease, _Mapping]] = ..., attempt: _Optional[int] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., replicate_of: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., note: _Optional[str] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., training_shard: _Optional[int] = ..., past_attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., attributes: _Optional[_Mapping[str, _struct_pb2.Value]] = ..., artifacts: _Optional[_Iterable[_Union[Artifact, _Mapping]]] = ..., training_subset: _Optional[_Union[TrainingSubset, _Mapping]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class TrainingSubset(_message.Message):
    __slots__ = ("key", "size", "of")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    size: int
    of: int
    def __init__(self, key: _Optional[bytes] = ..., size: _Optional[int] = ..., of: _Optional[int] = ...) -> None: ...

class Artifact(_message.Message):
    __slots__ = ("id", "uri", "sha256")
    ID_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    id: str
    uri: str
    sha256: str
    def __init__(self, id: _Optional[str] = ..., uri: _Optional[str] = ..., sha256: _Optional[str] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("number", "worker_id", "start_time", "end_time", "outcome", "reason", "training_shard", "measurements", "warnings")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TRAINING_SHARD_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    number: int
    worker_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    outcome: AttemptOutcome
    reason: str
    training_shard: int
    measurements: _containers.RepeatedCompositeFieldContainer[Measurement]
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    def __init__(self, number: _Optional[int] = ..., worker_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[AttemptOutcome, str]] = ..., reason: _Optional[str] = ..., training_shard: _Optional[int] = ..., measurements: _Optional[_Iterable[_Union[Measurement, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ...) -> None: ...

class Measurement(_message.Message):
    __slots__ = ("step", "elapsed", "metrics", "report_time", "seeded")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _metric_pb2.MetricValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_metric_pb2.MetricValue, _Mapping]] = ...) -> None: ...
    STEP_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    REPORT_TIME_FIELD_NUMBER: _ClassVar[int]
    SEEDED_FIELD_NUMBER: _ClassVar[int]
    step: int
    elapsed: _duration_pb2.Duration
    metrics: _containers.MessageMap[str, _metric_pb2.MetricValue]
    report_time: _timestamp_pb2.Timestamp
    seeded: bool
    def __init__(self, step: _Optional[int] = ..., elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., metrics: _Optional[_Mapping[str, _metric_pb2.MetricValue]] = ..., report_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., seeded: bool = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("worker_id", "token", "expire_time")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    token: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, worker_id: _Optional[str] = ..., token: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("algorithm", "algorithm_version", "server_version", "seed", "study_revision", "predictions", "acquisition_value", "fallback_reason", "conditioned", "drawn_for")
    class PredictionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetricPrediction
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetricPrediction, _Mapping]] = ...) -> None: ...
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_VERSION_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STUDY_REVISION_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    ACQUISITION_VALUE_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    CONDITIONED_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FOR_FIELD_NUMBER: _ClassVar[int]
    algorithm: str
    algorithm_version: str
    server_version: str
    seed: int
    study_revision: int
    predictions: _containers.MessageMap[str, MetricPrediction]
    acquisition_value: float
    fallback_reason: str
    conditioned: bool
    drawn_for: int
    def __init__(self, algorithm: _Optional[str] = ..., algorithm_version: _Optional[str] = ..., server_version: _Optional[str] = ..., seed: _Optional[int] = ..., study_revision: _Optional[int] = ..., predictions: _Optional[_Mapping[str, MetricPrediction]] = ..., acquisition_value: _Optional[float] = ..., fallback_reason: _Optional[str] = ..., conditioned: bool = ..., drawn_for: _Optional[int] = ...) -> None: ...

class MetricPrediction(_message.Message):
    __slots__ = ("median", "lower", "upper")
    MEDIAN_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    median: float
    lower: float
    upper: float
    def __init__(self, median: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ...) -> None: ...

class Infeasible(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("reason", "retryable")
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    retryable: bool
    def __init__(self, reason: _Optional[str] = ..., retryable: bool = ...) -> None: ...
