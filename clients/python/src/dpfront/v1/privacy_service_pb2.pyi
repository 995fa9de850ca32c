from dpfront.v1 import method_pb2 as _method_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from dpfront.v1 import study_pb2 as _study_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LedgerOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEDGER_OUTCOME_UNSPECIFIED: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_SUCCEEDED: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_IMPORTED: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_INFEASIBLE: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_FAILED: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_ABANDONED: _ClassVar[LedgerOutcome]
    LEDGER_OUTCOME_ACTIVE: _ClassVar[LedgerOutcome]
LEDGER_OUTCOME_UNSPECIFIED: LedgerOutcome
LEDGER_OUTCOME_SUCCEEDED: LedgerOutcome
LEDGER_OUTCOME_IMPORTED: LedgerOutcome
LEDGER_OUTCOME_INFEASIBLE: LedgerOutcome
LEDGER_OUTCOME_FAILED: LedgerOutcome
LEDGER_OUTCOME_ABANDONED: LedgerOutcome
LEDGER_OUTCOME_ACTIVE: LedgerOutcome

class ComputeEpsilonRequest(_message.Message):
    __slots__ = ("privacy", "parameters", "lengths", "epsilons")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    EPSILONS_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    epsilons: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., lengths: _Optional[_Iterable[int]] = ..., epsilons: _Optional[_Iterable[float]] = ...) -> None: ...

class ComputeEpsilonResponse(_message.Message):
    __slots__ = ("guarantees", "derived")
    class DerivedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    GUARANTEES_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FIELD_NUMBER: _ClassVar[int]
    guarantees: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.PrivacyGuarantee]
    derived: _containers.ScalarMap[str, float]
    def __init__(self, guarantees: _Optional[_Iterable[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]]] = ..., derived: _Optional[_Mapping[str, float]] = ...) -> None: ...

class CalibrateMechanismRequest(_message.Message):
    __slots__ = ("privacy", "parameters", "solve_for", "min", "max", "target_epsilon")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SOLVE_FOR_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    TARGET_EPSILON_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    solve_for: str
    min: float
    max: float
    target_epsilon: float
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., solve_for: _Optional[str] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., target_epsilon: _Optional[float] = ...) -> None: ...

class CalibrateMechanismResponse(_message.Message):
    __slots__ = ("reachable", "value", "guarantee", "derived")
    class DerivedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FIELD_NUMBER: _ClassVar[int]
    reachable: bool
    value: _parameter_pb2.Value
    guarantee: _privacy_pb2.PrivacyGuarantee
    derived: _containers.ScalarMap[str, float]
    def __init__(self, reachable: bool = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ..., guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., derived: _Optional[_Mapping[str, float]] = ...) -> None: ...

class ComputeTradeoffRequest(_message.Message):
    __slots__ = ("privacy", "parameters", "false_positive_rates", "priors")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    FALSE_POSITIVE_RATES_FIELD_NUMBER: _ClassVar[int]
    PRIORS_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    false_positive_rates: _containers.RepeatedScalarFieldContainer[float]
    priors: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., false_positive_rates: _Optional[_Iterable[float]] = ..., priors: _Optional[_Iterable[float]] = ...) -> None: ...

class ComputeTradeoffResponse(_message.Message):
    __slots__ = ("points", "guarantee", "exact_profile", "advantage", "bayes_errors", "mu", "mu_regret")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    EXACT_PROFILE_FIELD_NUMBER: _ClassVar[int]
    ADVANTAGE_FIELD_NUMBER: _ClassVar[int]
    BAYES_ERRORS_FIELD_NUMBER: _ClassVar[int]
    MU_FIELD_NUMBER: _ClassVar[int]
    MU_REGRET_FIELD_NUMBER: _ClassVar[int]
    points: _containers.RepeatedCompositeFieldContainer[TradeoffPoint]
    guarantee: _privacy_pb2.PrivacyGuarantee
    exact_profile: bool
    advantage: float
    bayes_errors: _containers.RepeatedScalarFieldContainer[float]
    mu: float
    mu_regret: float
    def __init__(self, points: _Optional[_Iterable[_Union[TradeoffPoint, _Mapping]]] = ..., guarantee: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., exact_profile: bool = ..., advantage: _Optional[float] = ..., bayes_errors: _Optional[_Iterable[float]] = ..., mu: _Optional[float] = ..., mu_regret: _Optional[float] = ...) -> None: ...

class TradeoffPoint(_message.Message):
    __slots__ = ("false_positive_rate", "true_positive_rate")
    FALSE_POSITIVE_RATE_FIELD_NUMBER: _ClassVar[int]
    TRUE_POSITIVE_RATE_FIELD_NUMBER: _ClassVar[int]
    false_positive_rate: float
    true_positive_rate: float
    def __init__(self, false_positive_rate: _Optional[float] = ..., true_positive_rate: _Optional[float] = ...) -> None: ...

class PriceSearchRequest(_message.Message):
    __slots__ = ("privacy", "parameters", "runs", "eta", "poisson", "max_runs", "budget", "portfolios", "subset_share", "subset_batch_size", "final_run", "test_records", "test_noise", "test_epsilon", "checkpoints")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    ETA_FIELD_NUMBER: _ClassVar[int]
    POISSON_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    PORTFOLIOS_FIELD_NUMBER: _ClassVar[int]
    SUBSET_SHARE_FIELD_NUMBER: _ClassVar[int]
    SUBSET_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    FINAL_RUN_FIELD_NUMBER: _ClassVar[int]
    TEST_RECORDS_FIELD_NUMBER: _ClassVar[int]
    TEST_NOISE_FIELD_NUMBER: _ClassVar[int]
    TEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    runs: int
    eta: float
    poisson: _privacy_pb2.PoissonDistribution
    max_runs: int
    budget: float
    portfolios: _containers.RepeatedScalarFieldContainer[int]
    subset_share: float
    subset_batch_size: int
    final_run: _privacy_pb2.PrivacySpec
    test_records: int
    test_noise: float
    test_epsilon: float
    checkpoints: int
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., runs: _Optional[int] = ..., eta: _Optional[float] = ..., poisson: _Optional[_Union[_privacy_pb2.PoissonDistribution, _Mapping]] = ..., max_runs: _Optional[int] = ..., budget: _Optional[float] = ..., portfolios: _Optional[_Iterable[int]] = ..., subset_share: _Optional[float] = ..., subset_batch_size: _Optional[int] = ..., final_run: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., test_records: _Optional[int] = ..., test_noise: _Optional[float] = ..., test_epsilon: _Optional[float] = ..., checkpoints: _Optional[int] = ...) -> None: ...

class PriceSearchResponse(_message.Message):
    __slots__ = ("ways",)
    WAYS_FIELD_NUMBER: _ClassVar[int]
    ways: _containers.RepeatedCompositeFieldContainer[SearchPrice]
    def __init__(self, ways: _Optional[_Iterable[_Union[SearchPrice, _Mapping]]] = ...) -> None: ...

class SearchPrice(_message.Message):
    __slots__ = ("way", "released", "adaptive", "training", "test", "test_noise", "mean_runs", "max_runs", "runs_for_budget")
    WAY_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    TEST_NOISE_FIELD_NUMBER: _ClassVar[int]
    MEAN_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FOR_BUDGET_FIELD_NUMBER: _ClassVar[int]
    way: str
    released: str
    adaptive: bool
    training: _privacy_pb2.PrivacyGuarantee
    test: _privacy_pb2.PrivacyGuarantee
    test_noise: float
    mean_runs: float
    max_runs: int
    runs_for_budget: int
    def __init__(self, way: _Optional[str] = ..., released: _Optional[str] = ..., adaptive: bool = ..., training: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., test: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., test_noise: _Optional[float] = ..., mean_runs: _Optional[float] = ..., max_runs: _Optional[int] = ..., runs_for_budget: _Optional[int] = ...) -> None: ...

class GetPrivacyLedgerRequest(_message.Message):
    __slots__ = ("name", "delta", "metric")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    name: str
    delta: float
    metric: str
    def __init__(self, name: _Optional[str] = ..., delta: _Optional[float] = ..., metric: _Optional[str] = ...) -> None: ...

class GetPrivacyLedgerResponse(_message.Message):
    __slots__ = ("runs", "largest_epsilon", "composed", "metric", "adaptive", "fixed_in_advance", "entries", "mechanisms", "unknown_runs", "warnings", "revision", "publication")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    COMPOSED_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_FIELD_NUMBER: _ClassVar[int]
    FIXED_IN_ADVANCE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MECHANISMS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RUNS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PUBLICATION_FIELD_NUMBER: _ClassVar[int]
    runs: int
    largest_epsilon: float
    composed: _privacy_pb2.PrivacyGuarantee
    metric: str
    adaptive: bool
    fixed_in_advance: _privacy_pb2.PrivacyGuarantee
    entries: _containers.RepeatedCompositeFieldContainer[LedgerEntry]
    mechanisms: int
    unknown_runs: int
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    revision: int
    publication: _study_pb2.Publication
    def __init__(self, runs: _Optional[int] = ..., largest_epsilon: _Optional[float] = ..., composed: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., metric: _Optional[str] = ..., adaptive: bool = ..., fixed_in_advance: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[LedgerEntry, _Mapping]]] = ..., mechanisms: _Optional[int] = ..., unknown_runs: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., revision: _Optional[int] = ..., publication: _Optional[_Union[_study_pb2.Publication, _Mapping]] = ...) -> None: ...

class LedgerEntry(_message.Message):
    __slots__ = ("outcome", "runs", "deleted_runs", "shortened_runs", "unknown_runs", "largest_epsilon")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    DELETED_RUNS_FIELD_NUMBER: _ClassVar[int]
    SHORTENED_RUNS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RUNS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    outcome: LedgerOutcome
    runs: int
    deleted_runs: int
    shortened_runs: int
    unknown_runs: int
    largest_epsilon: float
    def __init__(self, outcome: _Optional[_Union[LedgerOutcome, str]] = ..., runs: _Optional[int] = ..., deleted_runs: _Optional[int] = ..., shortened_runs: _Optional[int] = ..., unknown_runs: _Optional[int] = ..., largest_epsilon: _Optional[float] = ...) -> None: ...

class ReaccountStudyRequest(_message.Message):
    __slots__ = ("name", "metric", "privacy", "validate_only", "request_id", "etag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    metric: str
    privacy: _privacy_pb2.PrivacySpec
    validate_only: bool
    request_id: str
    etag: str
    def __init__(self, name: _Optional[str] = ..., metric: _Optional[str] = ..., privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., validate_only: bool = ..., request_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class ReaccountStudyResponse(_message.Message):
    __slots__ = ("trials", "before", "after", "differing_reports", "revision")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_REPORTS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    trials: int
    before: AccountingSummary
    after: AccountingSummary
    differing_reports: int
    revision: int
    def __init__(self, trials: _Optional[int] = ..., before: _Optional[_Union[AccountingSummary, _Mapping]] = ..., after: _Optional[_Union[AccountingSummary, _Mapping]] = ..., differing_reports: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class AccountingSummary(_message.Message):
    __slots__ = ("privacy", "smallest_epsilon", "median_epsilon", "largest_epsilon", "not_computable", "accountants")
    class AccountantsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PRIVACY_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_EPSILON_FIELD_NUMBER: _ClassVar[int]
    LARGEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    NOT_COMPUTABLE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTANTS_FIELD_NUMBER: _ClassVar[int]
    privacy: _privacy_pb2.PrivacySpec
    smallest_epsilon: float
    median_epsilon: float
    largest_epsilon: float
    not_computable: int
    accountants: _containers.ScalarMap[str, int]
    def __init__(self, privacy: _Optional[_Union[_privacy_pb2.PrivacySpec, _Mapping]] = ..., smallest_epsilon: _Optional[float] = ..., median_epsilon: _Optional[float] = ..., largest_epsilon: _Optional[float] = ..., not_computable: _Optional[int] = ..., accountants: _Optional[_Mapping[str, int]] = ...) -> None: ...
