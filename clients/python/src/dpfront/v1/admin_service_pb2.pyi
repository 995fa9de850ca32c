import datetime

from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import release_service_pb2 as _release_service_pb2
from dpfront.v1 import study_pb2 as _study_pb2
from dpfront.v1 import trial_pb2 as _trial_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: str
    def __init__(self, study: _Optional[str] = ...) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "go_version", "start_time", "algorithms", "store_format", "max_request_bytes", "caller", "caller_role", "page_url")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GO_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    ALGORITHMS_FIELD_NUMBER: _ClassVar[int]
    STORE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    CALLER_ROLE_FIELD_NUMBER: _ClassVar[int]
    PAGE_URL_FIELD_NUMBER: _ClassVar[int]
    version: str
    go_version: str
    start_time: _timestamp_pb2.Timestamp
    algorithms: _containers.RepeatedCompositeFieldContainer[AlgorithmInfo]
    store_format: int
    max_request_bytes: int
    caller: str
    caller_role: _method_pb2.Role
    page_url: str
    def __init__(self, version: _Optional[str] = ..., go_version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., algorithms: _Optional[_Iterable[_Union[AlgorithmInfo, _Mapping]]] = ..., store_format: _Optional[int] = ..., max_request_bytes: _Optional[int] = ..., caller: _Optional[str] = ..., caller_role: _Optional[_Union[_method_pb2.Role, str]] = ..., page_url: _Optional[str] = ...) -> None: ...

class AlgorithmInfo(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: _study_pb2.Algorithm
    version: str
    def __init__(self, name: _Optional[_Union[_study_pb2.Algorithm, str]] = ..., version: _Optional[str] = ...) -> None: ...

class BackupStoreRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupStoreResponse(_message.Message):
    __slots__ = ("data", "total_bytes", "sha256")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    total_bytes: int
    sha256: bytes
    def __init__(self, data: _Optional[bytes] = ..., total_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class ExportStudyRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExportStudyResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: ExportedRecord
    def __init__(self, record: _Optional[_Union[ExportedRecord, _Mapping]] = ...) -> None: ...

class ImportStudyRequest(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: ExportedRecord
    def __init__(self, record: _Optional[_Union[ExportedRecord, _Mapping]] = ...) -> None: ...

class ImportStudyResponse(_message.Message):
    __slots__ = ("study", "trials", "existed")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    trials: int
    existed: bool
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., trials: _Optional[int] = ..., existed: bool = ...) -> None: ...

class ExportedRecord(_message.Message):
    __slots__ = ("study", "trial", "release")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    study: ExportedStudy
    trial: ExportedTrial
    release: ExportedRelease
    def __init__(self, study: _Optional[_Union[ExportedStudy, _Mapping]] = ..., trial: _Optional[_Union[ExportedTrial, _Mapping]] = ..., release: _Optional[_Union[ExportedRelease, _Mapping]] = ...) -> None: ...

class ExportedStudy(_message.Message):
    __slots__ = ("study", "next_trial_number", "completed_trials", "stagnation", "own_revision", "private_mode", "random_stopping")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    NEXT_TRIAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_TRIALS_FIELD_NUMBER: _ClassVar[int]
    STAGNATION_FIELD_NUMBER: _ClassVar[int]
    OWN_REVISION_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_MODE_FIELD_NUMBER: _ClassVar[int]
    RANDOM_STOPPING_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    next_trial_number: int
    completed_trials: int
    stagnation: ExportedStagnation
    own_revision: int
    private_mode: ExportedPrivateMode
    random_stopping: ExportedRandomStopping
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., next_trial_number: _Optional[int] = ..., completed_trials: _Optional[int] = ..., stagnation: _Optional[_Union[ExportedStagnation, _Mapping]] = ..., own_revision: _Optional[int] = ..., private_mode: _Optional[_Union[ExportedPrivateMode, _Mapping]] = ..., random_stopping: _Optional[_Union[ExportedRandomStopping, _Mapping]] = ...) -> None: ...

class ExportedRandomStopping(_message.Message):
    __slots__ = ("trials", "listed", "paid", "subset_key")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    SUBSET_KEY_FIELD_NUMBER: _ClassVar[int]
    trials: int
    listed: _containers.RepeatedScalarFieldContainer[float]
    paid: bool
    subset_key: bytes
    def __init__(self, trials: _Optional[int] = ..., listed: _Optional[_Iterable[float]] = ..., paid: bool = ..., subset_key: _Optional[bytes] = ...) -> None: ...

class ExportedPrivateMode(_message.Message):
    __slots__ = ("order", "train_budget", "shard_costs", "least_cost", "max_values", "noise_standard_deviation", "values", "reserved_values", "started_trials", "exhausted", "max_hand_outs", "typical_cost", "slots_used")
    ORDER_FIELD_NUMBER: _ClassVar[int]
    TRAIN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    SHARD_COSTS_FIELD_NUMBER: _ClassVar[int]
    LEAST_COST_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUES_FIELD_NUMBER: _ClassVar[int]
    NOISE_STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_VALUES_FIELD_NUMBER: _ClassVar[int]
    STARTED_TRIALS_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTED_FIELD_NUMBER: _ClassVar[int]
    MAX_HAND_OUTS_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_COST_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    order: float
    train_budget: float
    shard_costs: _containers.RepeatedScalarFieldContainer[float]
    least_cost: float
    max_values: int
    noise_standard_deviation: float
    values: int
    reserved_values: int
    started_trials: int
    exhausted: bool
    max_hand_outs: int
    typical_cost: float
    slots_used: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, order: _Optional[float] = ..., train_budget: _Optional[float] = ..., shard_costs: _Optional[_Iterable[float]] = ..., least_cost: _Optional[float] = ..., max_values: _Optional[int] = ..., noise_standard_deviation: _Optional[float] = ..., values: _Optional[int] = ..., reserved_values: _Optional[int] = ..., started_trials: _Optional[int] = ..., exhausted: bool = ..., max_hand_outs: _Optional[int] = ..., typical_cost: _Optional[float] = ..., slots_used: _Optional[_Iterable[int]] = ...) -> None: ...

class ExportedStagnation(_message.Message):
    __slots__ = ("trials", "hypervolume", "front")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    HYPERVOLUME_FIELD_NUMBER: _ClassVar[int]
    FRONT_FIELD_NUMBER: _ClassVar[int]
    trials: int
    hypervolume: float
    front: _containers.RepeatedCompositeFieldContainer[ExportedPoint]
    def __init__(self, trials: _Optional[int] = ..., hypervolume: _Optional[float] = ..., front: _Optional[_Iterable[_Union[ExportedPoint, _Mapping]]] = ...) -> None: ...

class ExportedPoint(_message.Message):
    __slots__ = ("costs",)
    COSTS_FIELD_NUMBER: _ClassVar[int]
    costs: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, costs: _Optional[_Iterable[float]] = ...) -> None: ...

class ExportedTrial(_message.Message):
    __slots__ = ("trial", "deleted", "lease_tokens", "completion_token", "completion_digest", "completion_order", "releases", "change_time", "private_mode", "stop_requested")
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_ORDER_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    CHANGE_TIME_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_MODE_FIELD_NUMBER: _ClassVar[int]
    STOP_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    deleted: bool
    lease_tokens: _containers.RepeatedScalarFieldContainer[str]
    completion_token: str
    completion_digest: bytes
    completion_order: int
    releases: int
    change_time: _timestamp_pb2.Timestamp
    private_mode: ExportedPrivateTrial
    stop_requested: bool
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ..., deleted: bool = ..., lease_tokens: _Optional[_Iterable[str]] = ..., completion_token: _Optional[str] = ..., completion_digest: _Optional[bytes] = ..., completion_order: _Optional[int] = ..., releases: _Optional[int] = ..., change_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., private_mode: _Optional[_Union[ExportedPrivateTrial, _Mapping]] = ..., stop_requested: bool = ...) -> None: ...

class ExportedPrivateTrial(_message.Message):
    __slots__ = ("charges", "values", "reserved_values", "checkpoints", "last_checkpoint")
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_VALUES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    LAST_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    charges: _containers.RepeatedCompositeFieldContainer[ExportedTrainingCharge]
    values: int
    reserved_values: int
    checkpoints: int
    last_checkpoint: int
    def __init__(self, charges: _Optional[_Iterable[_Union[ExportedTrainingCharge, _Mapping]]] = ..., values: _Optional[int] = ..., reserved_values: _Optional[int] = ..., checkpoints: _Optional[int] = ..., last_checkpoint: _Optional[int] = ...) -> None: ...

class ExportedTrainingCharge(_message.Message):
    __slots__ = ("shard", "cost", "slot")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    shard: int
    cost: float
    slot: int
    def __init__(self, shard: _Optional[int] = ..., cost: _Optional[float] = ..., slot: _Optional[int] = ...) -> None: ...

class ExportedRelease(_message.Message):
    __slots__ = ("release", "caller", "request_id", "request_type", "request_digest")
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_TYPE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    release: _release_service_pb2.Release
    caller: str
    request_id: str
    request_type: str
    request_digest: bytes
    def __init__(self, release: _Optional[_Union[_release_service_pb2.Release, _Mapping]] = ..., caller: _Optional[str] = ..., request_id: _Optional[str] = ..., request_type: _Optional[str] = ..., request_digest: _Optional[bytes] = ...) -> None: ...
