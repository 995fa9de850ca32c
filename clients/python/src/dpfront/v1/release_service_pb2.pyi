import datetime

from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ledger(_message.Message):
    __slots__ = ("name", "uid", "description", "records", "epsilon", "delta", "adjacency", "spent", "charges", "remaining_epsilon", "create_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    ADJACENCY_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    REMAINING_EPSILON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    description: str
    records: int
    epsilon: float
    delta: float
    adjacency: _privacy_pb2.Adjacency
    spent: _privacy_pb2.PrivacyGuarantee
    charges: int
    remaining_epsilon: float
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., description: _Optional[str] = ..., records: _Optional[int] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., adjacency: _Optional[_Union[_privacy_pb2.Adjacency, str]] = ..., spent: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., charges: _Optional[int] = ..., remaining_epsilon: _Optional[float] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Charge(_message.Message):
    __slots__ = ("name", "guarantee", "resource", "study_uid", "reason", "create_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    STUDY_UID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    guarantee: _privacy_pb2.PrivacyGuarantee
    resource: str
    study_uid: str
    reason: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., resource: _Optional[str] = ..., study_uid: _Optional[str] = ..., reason: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("name", "guarantee", "protects", "assumptions", "points", "create_time", "training_guarantee", "not_covered", "mechanism", "ledger", "noise_standard_deviation", "study_revision", "index", "warnings", "model_claim")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    PROTECTS_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TRAINING_GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    NOT_COVERED_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    NOISE_STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    STUDY_REVISION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    MODEL_CLAIM_FIELD_NUMBER: _ClassVar[int]
    name: str
    guarantee: _privacy_pb2.PrivacyGuarantee
    protects: str
    assumptions: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Assumption]
    points: _containers.RepeatedCompositeFieldContainer[ReleasedPoint]
    create_time: _timestamp_pb2.Timestamp
    training_guarantee: _privacy_pb2.PrivacyGuarantee
    not_covered: _containers.RepeatedScalarFieldContainer[str]
    mechanism: str
    ledger: str
    noise_standard_deviation: float
    study_revision: int
    index: int
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    model_claim: str
    def __init__(self, name: _Optional[str] = ..., guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., protects: _Optional[str] = ..., assumptions: _Optional[_Iterable[_Union[_privacy_pb2.Assumption, _Mapping]]] = ..., points: _Optional[_Iterable[_Union[ReleasedPoint, _Mapping]]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., training_guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., not_covered: _Optional[_Iterable[str]] = ..., mechanism: _Optional[str] = ..., ledger: _Optional[str] = ..., noise_standard_deviation: _Optional[float] = ..., study_revision: _Optional[int] = ..., index: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., model_claim: _Optional[str] = ...) -> None: ...

class ReleasedPoint(_message.Message):
    __slots__ = ("parameters", "values", "standard_deviations", "run", "on_front")
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
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class StandardDeviationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    STANDARD_DEVIATIONS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ON_FRONT_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    values: _containers.ScalarMap[str, float]
    standard_deviations: _containers.ScalarMap[str, float]
    run: int
    on_front: bool
    def __init__(self, parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., values: _Optional[_Mapping[str, float]] = ..., standard_deviations: _Optional[_Mapping[str, float]] = ..., run: _Optional[int] = ..., on_front: bool = ...) -> None: ...

class CreateLedgerRequest(_message.Message):
    __slots__ = ("ledger_id", "ledger", "request_id")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ledger_id: str
    ledger: Ledger
    request_id: str
    def __init__(self, ledger_id: _Optional[str] = ..., ledger: _Optional[_Union[Ledger, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateLedgerResponse(_message.Message):
    __slots__ = ("ledger",)
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ledger: Ledger
    def __init__(self, ledger: _Optional[_Union[Ledger, _Mapping]] = ...) -> None: ...

class GetLedgerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetLedgerResponse(_message.Message):
    __slots__ = ("ledger",)
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ledger: Ledger
    def __init__(self, ledger: _Optional[_Union[Ledger, _Mapping]] = ...) -> None: ...

class ListLedgersRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLedgersResponse(_message.Message):
    __slots__ = ("ledgers", "next_page_token")
    LEDGERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ledgers: _containers.RepeatedCompositeFieldContainer[Ledger]
    next_page_token: str
    def __init__(self, ledgers: _Optional[_Iterable[_Union[Ledger, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListChargesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListChargesResponse(_message.Message):
    __slots__ = ("charges", "next_page_token")
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    charges: _containers.RepeatedCompositeFieldContainer[Charge]
    next_page_token: str
    def __init__(self, charges: _Optional[_Iterable[_Union[Charge, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReleaseBestRequest(_message.Message):
    __slots__ = ("name", "metric", "at_most", "epsilon", "request_id", "kusner")
    class AtMostEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KUSNER_FIELD_NUMBER: _ClassVar[int]
    name: str
    metric: str
    at_most: _containers.ScalarMap[str, float]
    epsilon: float
    request_id: str
    kusner: KusnerMethod
    def __init__(self, name: _Optional[str] = ..., metric: _Optional[str] = ..., at_most: _Optional[_Mapping[str, float]] = ..., epsilon: _Optional[float] = ..., request_id: _Optional[str] = ..., kusner: _Optional[_Union[KusnerMethod, _Mapping]] = ...) -> None: ...

class KusnerMethod(_message.Message):
    __slots__ = ("algorithm", "candidates", "prior_mean", "prior_standard_deviation", "noise_standard_deviation", "length_scale", "delta", "lipschitz")
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    PRIOR_MEAN_FIELD_NUMBER: _ClassVar[int]
    PRIOR_STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    NOISE_STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    LENGTH_SCALE_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    LIPSCHITZ_FIELD_NUMBER: _ClassVar[int]
    algorithm: int
    candidates: int
    prior_mean: float
    prior_standard_deviation: float
    noise_standard_deviation: float
    length_scale: float
    delta: float
    lipschitz: float
    def __init__(self, algorithm: _Optional[int] = ..., candidates: _Optional[int] = ..., prior_mean: _Optional[float] = ..., prior_standard_deviation: _Optional[float] = ..., noise_standard_deviation: _Optional[float] = ..., length_scale: _Optional[float] = ..., delta: _Optional[float] = ..., lipschitz: _Optional[float] = ...) -> None: ...

class ReleaseBestResponse(_message.Message):
    __slots__ = ("release",)
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    release: Release
    def __init__(self, release: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class ReleaseFrontRequest(_message.Message):
    __slots__ = ("name", "epsilon", "delta", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    epsilon: float
    delta: float
    request_id: str
    def __init__(self, name: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReleaseFrontResponse(_message.Message):
    __slots__ = ("release",)
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    release: Release
    def __init__(self, release: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class SelectPrivatelyRequest(_message.Message):
    __slots__ = ("utilities", "sensitivity", "epsilon", "request_id", "ledger", "method")
    UTILITIES_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    utilities: _containers.RepeatedScalarFieldContainer[float]
    sensitivity: float
    epsilon: float
    request_id: str
    ledger: str
    method: _privacy_pb2.SelectionMethod
    def __init__(self, utilities: _Optional[_Iterable[float]] = ..., sensitivity: _Optional[float] = ..., epsilon: _Optional[float] = ..., request_id: _Optional[str] = ..., ledger: _Optional[str] = ..., method: _Optional[_Union[_privacy_pb2.SelectionMethod, str]] = ...) -> None: ...

class SelectPrivatelyResponse(_message.Message):
    __slots__ = ("index", "guarantee", "release")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    index: int
    guarantee: _privacy_pb2.PrivacyGuarantee
    release: Release
    def __init__(self, index: _Optional[int] = ..., guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class GetReleaseRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetReleaseResponse(_message.Message):
    __slots__ = ("release",)
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    release: Release
    def __init__(self, release: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class ListReleasesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReleasesResponse(_message.Message):
    __slots__ = ("releases", "next_page_token")
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    releases: _containers.RepeatedCompositeFieldContainer[Release]
    next_page_token: str
    def __init__(self, releases: _Optional[_Iterable[_Union[Release, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
