import datetime

from dpareto.v1 import study_pb2 as _study_pb2
from dpareto.v1 import trial_pb2 as _trial_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "go_version", "start_time", "algorithms", "store_format", "max_request_bytes")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GO_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    ALGORITHMS_FIELD_NUMBER: _ClassVar[int]
    STORE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    version: str
    go_version: str
    start_time: _timestamp_pb2.Timestamp
    algorithms: _containers.RepeatedCompositeFieldContainer[AlgorithmInfo]
    store_format: int
    max_request_bytes: int
    def __init__(self, version: _Optional[str] = ..., go_version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., algorithms: _Optional[_Iterable[_Union[AlgorithmInfo, _Mapping]]] = ..., store_format: _Optional[int] = ..., max_request_bytes: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("study", "trial")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    study: ExportedStudy
    trial: ExportedTrial
    def __init__(self, study: _Optional[_Union[ExportedStudy, _Mapping]] = ..., trial: _Optional[_Union[ExportedTrial, _Mapping]] = ...) -> None: ...

class ExportedStudy(_message.Message):
    __slots__ = ("study", "next_trial_number", "completed_trials", "stagnation", "own_revision")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    NEXT_TRIAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_TRIALS_FIELD_NUMBER: _ClassVar[int]
    STAGNATION_FIELD_NUMBER: _ClassVar[int]
    OWN_REVISION_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    next_trial_number: int
    completed_trials: int
    stagnation: ExportedStagnation
    own_revision: int
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., next_trial_number: _Optional[int] = ..., completed_trials: _Optional[int] = ..., stagnation: _Optional[_Union[ExportedStagnation, _Mapping]] = ..., own_revision: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("trial", "deleted", "lease_tokens", "completion_token", "completion_digest", "completion_order", "releases", "change_time")
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_ORDER_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    CHANGE_TIME_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    deleted: bool
    lease_tokens: _containers.RepeatedScalarFieldContainer[str]
    completion_token: str
    completion_digest: bytes
    completion_order: int
    releases: int
    change_time: _timestamp_pb2.Timestamp
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ..., deleted: bool = ..., lease_tokens: _Optional[_Iterable[str]] = ..., completion_token: _Optional[str] = ..., completion_digest: _Optional[bytes] = ..., completion_order: _Optional[int] = ..., releases: _Optional[int] = ..., change_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
