import datetime

from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import study_pb2 as _study_pb2
from dpfront.v1 import trial_pb2 as _trial_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_REASON_UNSPECIFIED: _ClassVar[EndReason]
    END_REASON_BUDGET_SPENT: _ClassVar[EndReason]
    END_REASON_SPACE_EXHAUSTED: _ClassVar[EndReason]
    END_REASON_PAUSED: _ClassVar[EndReason]
    END_REASON_PRIVACY_BUDGET_SPENT: _ClassVar[EndReason]
    END_REASON_PARALLELISM: _ClassVar[EndReason]
    END_REASON_STAGNANT: _ClassVar[EndReason]
    END_REASON_CONDITION: _ClassVar[EndReason]
    END_REASON_PREPARING: _ClassVar[EndReason]
END_REASON_UNSPECIFIED: EndReason
END_REASON_BUDGET_SPENT: EndReason
END_REASON_SPACE_EXHAUSTED: EndReason
END_REASON_PAUSED: EndReason
END_REASON_PRIVACY_BUDGET_SPENT: EndReason
END_REASON_PARALLELISM: EndReason
END_REASON_STAGNANT: EndReason
END_REASON_CONDITION: EndReason
END_REASON_PREPARING: EndReason

class CreateStudyRequest(_message.Message):
    __slots__ = ("study_id", "study", "request_id", "validate_only")
    STUDY_ID_FIELD_NUMBER: _ClassVar[int]
    STUDY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    study_id: str
    study: _study_pb2.Study
    request_id: str
    validate_only: bool
    def __init__(self, study_id: _Optional[str] = ..., study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class CreateStudyResponse(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ...) -> None: ...

class GetStudyRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetStudyResponse(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ...) -> None: ...

class ListStudiesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "filter", "order_by")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    filter: str
    order_by: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ...) -> None: ...

class ListStudiesResponse(_message.Message):
    __slots__ = ("studies", "next_page_token")
    STUDIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    studies: _containers.RepeatedCompositeFieldContainer[_study_pb2.Study]
    next_page_token: str
    def __init__(self, studies: _Optional[_Iterable[_Union[_study_pb2.Study, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateStudyRequest(_message.Message):
    __slots__ = ("study", "update_mask", "request_id")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateStudyResponse(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ...) -> None: ...

class DeleteStudyRequest(_message.Message):
    __slots__ = ("name", "etag", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    etag: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteStudyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PauseStudyRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PauseStudyResponse(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ...) -> None: ...

class ResumeStudyRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeStudyResponse(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: _study_pb2.Study
    def __init__(self, study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ...) -> None: ...

class WatchStudyRequest(_message.Message):
    __slots__ = ("name", "after_revision", "study_uid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    STUDY_UID_FIELD_NUMBER: _ClassVar[int]
    name: str
    after_revision: int
    study_uid: str
    def __init__(self, name: _Optional[str] = ..., after_revision: _Optional[int] = ..., study_uid: _Optional[str] = ...) -> None: ...

class WatchStudyResponse(_message.Message):
    __slots__ = ("revision", "time", "study", "trial", "deleted_trial")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    STUDY_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    DELETED_TRIAL_FIELD_NUMBER: _ClassVar[int]
    revision: int
    time: _timestamp_pb2.Timestamp
    study: _study_pb2.Study
    trial: _trial_pb2.Trial
    deleted_trial: str
    def __init__(self, revision: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., study: _Optional[_Union[_study_pb2.Study, _Mapping]] = ..., trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ..., deleted_trial: _Optional[str] = ...) -> None: ...

class SuggestTrialsRequest(_message.Message):
    __slots__ = ("parent", "count", "worker_id", "resume", "conditions", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    count: int
    worker_id: str
    resume: bool
    conditions: _containers.RepeatedCompositeFieldContainer[SuggestionCondition]
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., count: _Optional[int] = ..., worker_id: _Optional[str] = ..., resume: bool = ..., conditions: _Optional[_Iterable[_Union[SuggestionCondition, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SuggestionCondition(_message.Message):
    __slots__ = ("fixed_parameters", "at_most")
    class FixedParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    class AtMostEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FIXED_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    fixed_parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    at_most: _containers.ScalarMap[str, float]
    def __init__(self, fixed_parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., at_most: _Optional[_Mapping[str, float]] = ...) -> None: ...

class SuggestTrialsResponse(_message.Message):
    __slots__ = ("trials", "end_reason", "study_state", "retry_after")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    STUDY_STATE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    trials: _containers.RepeatedCompositeFieldContainer[_trial_pb2.Trial]
    end_reason: EndReason
    study_state: _study_pb2.StudyState
    retry_after: _duration_pb2.Duration
    def __init__(self, trials: _Optional[_Iterable[_Union[_trial_pb2.Trial, _Mapping]]] = ..., end_reason: _Optional[_Union[EndReason, str]] = ..., study_state: _Optional[_Union[_study_pb2.StudyState, str]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CreateTrialRequest(_message.Message):
    __slots__ = ("parent", "trial", "request_id", "validate_only")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    parent: str
    trial: _trial_pb2.Trial
    request_id: str
    validate_only: bool
    def __init__(self, parent: _Optional[str] = ..., trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class CreateTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...

class GetTrialRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...

class ListTrialsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "filter", "order_by", "after_revision")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    filter: str
    order_by: str
    after_revision: int
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ..., after_revision: _Optional[int] = ...) -> None: ...

class ListTrialsResponse(_message.Message):
    __slots__ = ("trials", "next_page_token", "revision", "deleted_trials")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DELETED_TRIALS_FIELD_NUMBER: _ClassVar[int]
    trials: _containers.RepeatedCompositeFieldContainer[_trial_pb2.Trial]
    next_page_token: str
    revision: int
    deleted_trials: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, trials: _Optional[_Iterable[_Union[_trial_pb2.Trial, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ..., deleted_trials: _Optional[_Iterable[str]] = ...) -> None: ...

class UpdateTrialRequest(_message.Message):
    __slots__ = ("trial", "update_mask", "request_id")
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...

class DeleteTrialRequest(_message.Message):
    __slots__ = ("name", "etag", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    etag: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteTrialResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AddMeasurementRequest(_message.Message):
    __slots__ = ("name", "lease_token", "measurement", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    lease_token: str
    measurement: _trial_pb2.Measurement
    request_id: str
    def __init__(self, name: _Optional[str] = ..., lease_token: _Optional[str] = ..., measurement: _Optional[_Union[_trial_pb2.Measurement, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class AddMeasurementResponse(_message.Message):
    __slots__ = ("should_stop", "stop_reason", "lease_expire_time")
    SHOULD_STOP_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    should_stop: bool
    stop_reason: str
    lease_expire_time: _timestamp_pb2.Timestamp
    def __init__(self, should_stop: bool = ..., stop_reason: _Optional[str] = ..., lease_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RenewLeasesRequest(_message.Message):
    __slots__ = ("parent", "lease_tokens", "request_id")
    class LeaseTokensEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    lease_tokens: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., lease_tokens: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RenewLeasesResponse(_message.Message):
    __slots__ = ("results",)
    class Result(_message.Message):
        __slots__ = ("held", "should_stop", "expire_time")
        HELD_FIELD_NUMBER: _ClassVar[int]
        SHOULD_STOP_FIELD_NUMBER: _ClassVar[int]
        EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
        held: bool
        should_stop: bool
        expire_time: _timestamp_pb2.Timestamp
        def __init__(self, held: bool = ..., should_stop: bool = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    class ResultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RenewLeasesResponse.Result
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RenewLeasesResponse.Result, _Mapping]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.MessageMap[str, RenewLeasesResponse.Result]
    def __init__(self, results: _Optional[_Mapping[str, RenewLeasesResponse.Result]] = ...) -> None: ...

class CompleteTrialRequest(_message.Message):
    __slots__ = ("name", "lease_token", "measurement", "use_last_measurement", "infeasible", "failure", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    USE_LAST_MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    INFEASIBLE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    lease_token: str
    measurement: _trial_pb2.Measurement
    use_last_measurement: UseLastMeasurement
    infeasible: _trial_pb2.Infeasible
    failure: _trial_pb2.Failure
    request_id: str
    def __init__(self, name: _Optional[str] = ..., lease_token: _Optional[str] = ..., measurement: _Optional[_Union[_trial_pb2.Measurement, _Mapping]] = ..., use_last_measurement: _Optional[_Union[UseLastMeasurement, _Mapping]] = ..., infeasible: _Optional[_Union[_trial_pb2.Infeasible, _Mapping]] = ..., failure: _Optional[_Union[_trial_pb2.Failure, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UseLastMeasurement(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompleteTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...

class ReleaseTrialRequest(_message.Message):
    __slots__ = ("name", "lease_token", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    lease_token: str
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., lease_token: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReleaseTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...

class StopTrialRequest(_message.Message):
    __slots__ = ("name", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class StopTrialResponse(_message.Message):
    __slots__ = ("trial",)
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    trial: _trial_pb2.Trial
    def __init__(self, trial: _Optional[_Union[_trial_pb2.Trial, _Mapping]] = ...) -> None: ...
