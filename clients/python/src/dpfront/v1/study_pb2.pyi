import datetime

from dpfront.v1 import metric_pb2 as _metric_pb2
from dpfront.v1 import parameter_pb2 as _parameter_pb2
from dpfront.v1 import privacy_pb2 as _privacy_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StudyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STUDY_STATE_UNSPECIFIED: _ClassVar[StudyState]
    STUDY_STATE_ACTIVE: _ClassVar[StudyState]
    STUDY_STATE_PAUSED: _ClassVar[StudyState]
    STUDY_STATE_COMPLETED: _ClassVar[StudyState]
    STUDY_STATE_PREPARING: _ClassVar[StudyState]

class Algorithm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALGORITHM_UNSPECIFIED: _ClassVar[Algorithm]
    ALGORITHM_DEFAULT: _ClassVar[Algorithm]
    ALGORITHM_RANDOM: _ClassVar[Algorithm]
    ALGORITHM_GRID: _ClassVar[Algorithm]
    ALGORITHM_QUASI_RANDOM: _ClassVar[Algorithm]
    ALGORITHM_DPARETO: _ClassVar[Algorithm]
    ALGORITHM_EHVI: _ClassVar[Algorithm]
    ALGORITHM_NSGA2: _ClassVar[Algorithm]

class TrainFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRAIN_FILTER_UNSPECIFIED: _ClassVar[TrainFilter]
    TRAIN_FILTER_GAUSSIAN: _ClassVar[TrainFilter]
    TRAIN_FILTER_RENYI: _ClassVar[TrainFilter]

class RandomStoppingRelease(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RANDOM_STOPPING_RELEASE_UNSPECIFIED: _ClassVar[RandomStoppingRelease]
    RANDOM_STOPPING_RELEASE_BEST_VALUE: _ClassVar[RandomStoppingRelease]
    RANDOM_STOPPING_RELEASE_CURVE: _ClassVar[RandomStoppingRelease]
STUDY_STATE_UNSPECIFIED: StudyState
STUDY_STATE_ACTIVE: StudyState
STUDY_STATE_PAUSED: StudyState
STUDY_STATE_COMPLETED: StudyState
STUDY_STATE_PREPARING: StudyState
ALGORITHM_UNSPECIFIED: Algorithm
ALGORITHM_DEFAULT: Algorithm
ALGORITHM_RANDOM: Algorithm
ALGORITHM_GRID: Algorithm
ALGORITHM_QUASI_RANDOM: Algorithm
ALGORITHM_DPARETO: Algorithm
ALGORITHM_EHVI: Algorithm
ALGORITHM_NSGA2: Algorithm
TRAIN_FILTER_UNSPECIFIED: TrainFilter
TRAIN_FILTER_GAUSSIAN: TrainFilter
TRAIN_FILTER_RENYI: TrainFilter
RANDOM_STOPPING_RELEASE_UNSPECIFIED: RandomStoppingRelease
RANDOM_STOPPING_RELEASE_BEST_VALUE: RandomStoppingRelease
RANDOM_STOPPING_RELEASE_CURVE: RandomStoppingRelease

class Study(_message.Message):
    __slots__ = ("name", "uid", "etag", "display_name", "description", "labels", "spec", "state", "state_reason", "revision", "seed", "trial_counts", "create_time", "update_time", "warnings", "publication", "design_change", "preparation")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TRIAL_COUNTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    PUBLICATION_FIELD_NUMBER: _ClassVar[int]
    DESIGN_CHANGE_FIELD_NUMBER: _ClassVar[int]
    PREPARATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    etag: str
    display_name: str
    description: str
    labels: _containers.ScalarMap[str, str]
    spec: StudySpec
    state: StudyState
    state_reason: str
    revision: int
    seed: int
    trial_counts: TrialCounts
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    warnings: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Warning]
    publication: Publication
    design_change: DesignChange
    preparation: Preparation
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., etag: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., spec: _Optional[_Union[StudySpec, _Mapping]] = ..., state: _Optional[_Union[StudyState, str]] = ..., state_reason: _Optional[str] = ..., revision: _Optional[int] = ..., seed: _Optional[int] = ..., trial_counts: _Optional[_Union[TrialCounts, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., warnings: _Optional[_Iterable[_Union[_privacy_pb2.Warning, _Mapping]]] = ..., publication: _Optional[_Union[Publication, _Mapping]] = ..., design_change: _Optional[_Union[DesignChange, _Mapping]] = ..., preparation: _Optional[_Union[Preparation, _Mapping]] = ...) -> None: ...

class Preparation(_message.Message):
    __slots__ = ("done", "total")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    done: int
    total: int
    def __init__(self, done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class DesignChange(_message.Message):
    __slots__ = ("fields", "time")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    time: _timestamp_pb2.Timestamp
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TrialCounts(_message.Message):
    __slots__ = ("queued", "active", "stopping", "succeeded", "infeasible", "failed")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    STOPPING_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    INFEASIBLE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    queued: int
    active: int
    stopping: int
    succeeded: int
    infeasible: int
    failed: int
    def __init__(self, queued: _Optional[int] = ..., active: _Optional[int] = ..., stopping: _Optional[int] = ..., succeeded: _Optional[int] = ..., infeasible: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class StudySpec(_message.Message):
    __slots__ = ("parameters", "metrics", "parameter_constraints", "checkpoint_parameter", "replicates", "algorithm", "budget", "lease", "seed", "cost", "trainer", "prior_studies", "private_mode", "random_stopping", "disable_early_stopping", "test_ledger", "train_ledger", "prior_values", "constant_points")
    class PriorValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    REPLICATES_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    PRIOR_STUDIES_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_MODE_FIELD_NUMBER: _ClassVar[int]
    RANDOM_STOPPING_FIELD_NUMBER: _ClassVar[int]
    DISABLE_EARLY_STOPPING_FIELD_NUMBER: _ClassVar[int]
    TEST_LEDGER_FIELD_NUMBER: _ClassVar[int]
    TRAIN_LEDGER_FIELD_NUMBER: _ClassVar[int]
    PRIOR_VALUES_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_POINTS_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.RepeatedCompositeFieldContainer[_parameter_pb2.ParameterSpec]
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricSpec]
    parameter_constraints: _containers.RepeatedScalarFieldContainer[str]
    checkpoint_parameter: str
    replicates: int
    algorithm: AlgorithmSpec
    budget: Budget
    lease: LeasePolicy
    seed: int
    cost: CostSpec
    trainer: TrainerSpec
    prior_studies: _containers.RepeatedScalarFieldContainer[str]
    private_mode: PrivateModeSpec
    random_stopping: RandomStoppingSpec
    disable_early_stopping: bool
    test_ledger: str
    train_ledger: str
    prior_values: _containers.MessageMap[str, _parameter_pb2.Value]
    constant_points: _containers.RepeatedCompositeFieldContainer[ConstantPoint]
    def __init__(self, parameters: _Optional[_Iterable[_Union[_parameter_pb2.ParameterSpec, _Mapping]]] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricSpec, _Mapping]]] = ..., parameter_constraints: _Optional[_Iterable[str]] = ..., checkpoint_parameter: _Optional[str] = ..., replicates: _Optional[int] = ..., algorithm: _Optional[_Union[AlgorithmSpec, _Mapping]] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., lease: _Optional[_Union[LeasePolicy, _Mapping]] = ..., seed: _Optional[int] = ..., cost: _Optional[_Union[CostSpec, _Mapping]] = ..., trainer: _Optional[_Union[TrainerSpec, _Mapping]] = ..., prior_studies: _Optional[_Iterable[str]] = ..., private_mode: _Optional[_Union[PrivateModeSpec, _Mapping]] = ..., random_stopping: _Optional[_Union[RandomStoppingSpec, _Mapping]] = ..., disable_early_stopping: bool = ..., test_ledger: _Optional[str] = ..., train_ledger: _Optional[str] = ..., prior_values: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., constant_points: _Optional[_Iterable[_Union[ConstantPoint, _Mapping]]] = ...) -> None: ...

class ConstantPoint(_message.Message):
    __slots__ = ("id", "display_name", "description", "values")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    id: str
    display_name: str
    description: str
    values: _containers.ScalarMap[str, float]
    def __init__(self, id: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., values: _Optional[_Mapping[str, float]] = ...) -> None: ...

class AlgorithmSpec(_message.Message):
    __slots__ = ("name", "initial_trials", "published_acquisition", "dp_sgd_features")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INITIAL_TRIALS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ACQUISITION_FIELD_NUMBER: _ClassVar[int]
    DP_SGD_FEATURES_FIELD_NUMBER: _ClassVar[int]
    name: Algorithm
    initial_trials: int
    published_acquisition: bool
    dp_sgd_features: DpSgdFeatures
    def __init__(self, name: _Optional[_Union[Algorithm, str]] = ..., initial_trials: _Optional[int] = ..., published_acquisition: bool = ..., dp_sgd_features: _Optional[_Union[DpSgdFeatures, _Mapping]] = ...) -> None: ...

class DpSgdFeatures(_message.Message):
    __slots__ = ("learning_rate", "clipping_norm", "optimizer", "without_public_runs", "without_datasets", "disabled")
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    CLIPPING_NORM_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_PUBLIC_RUNS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_DATASETS_FIELD_NUMBER: _ClassVar[int]
    DISABLED_FIELD_NUMBER: _ClassVar[int]
    learning_rate: str
    clipping_norm: str
    optimizer: _privacy_pb2.DpSgdOptimizer
    without_public_runs: bool
    without_datasets: _containers.RepeatedScalarFieldContainer[str]
    disabled: bool
    def __init__(self, learning_rate: _Optional[str] = ..., clipping_norm: _Optional[str] = ..., optimizer: _Optional[_Union[_privacy_pb2.DpSgdOptimizer, str]] = ..., without_public_runs: bool = ..., without_datasets: _Optional[_Iterable[str]] = ..., disabled: bool = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("max_trials", "max_duration", "max_stagnant_trials", "max_parallel_trials")
    MAX_TRIALS_FIELD_NUMBER: _ClassVar[int]
    MAX_DURATION_FIELD_NUMBER: _ClassVar[int]
    MAX_STAGNANT_TRIALS_FIELD_NUMBER: _ClassVar[int]
    MAX_PARALLEL_TRIALS_FIELD_NUMBER: _ClassVar[int]
    max_trials: int
    max_duration: _duration_pb2.Duration
    max_stagnant_trials: int
    max_parallel_trials: int
    def __init__(self, max_trials: _Optional[int] = ..., max_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_stagnant_trials: _Optional[int] = ..., max_parallel_trials: _Optional[int] = ...) -> None: ...

class LeasePolicy(_message.Message):
    __slots__ = ("duration", "max_attempts")
    DURATION_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    max_attempts: int
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_attempts: _Optional[int] = ...) -> None: ...

class CostSpec(_message.Message):
    __slots__ = ("runs", "checkpoint_parameter", "metric")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    runs: RunsCost
    checkpoint_parameter: CheckpointParameterCost
    metric: str
    def __init__(self, runs: _Optional[_Union[RunsCost, _Mapping]] = ..., checkpoint_parameter: _Optional[_Union[CheckpointParameterCost, _Mapping]] = ..., metric: _Optional[str] = ...) -> None: ...

class RunsCost(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckpointParameterCost(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TrainerSpec(_message.Message):
    __slots__ = ("name", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    settings: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PrivateModeSpec(_message.Message):
    __slots__ = ("test_set_size", "test_epsilon", "train_epsilon", "delta", "training_shards", "max_values", "prior_studies_are_public", "constant_points_are_public", "train_filter", "slots")
    TEST_SET_SIZE_FIELD_NUMBER: _ClassVar[int]
    TEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    TRAIN_EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TRAINING_SHARDS_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUES_FIELD_NUMBER: _ClassVar[int]
    PRIOR_STUDIES_ARE_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_POINTS_ARE_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    TRAIN_FILTER_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    test_set_size: int
    test_epsilon: float
    train_epsilon: float
    delta: float
    training_shards: int
    max_values: int
    prior_studies_are_public: bool
    constant_points_are_public: bool
    train_filter: TrainFilter
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    def __init__(self, test_set_size: _Optional[int] = ..., test_epsilon: _Optional[float] = ..., train_epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., training_shards: _Optional[int] = ..., max_values: _Optional[int] = ..., prior_studies_are_public: bool = ..., constant_points_are_public: bool = ..., train_filter: _Optional[_Union[TrainFilter, str]] = ..., slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("parameters", "count")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.MessageMap[str, _parameter_pb2.Value]
    count: int
    def __init__(self, parameters: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., count: _Optional[int] = ...) -> None: ...

class RandomStoppingSpec(_message.Message):
    __slots__ = ("mean_trials", "eta", "poisson", "binomial", "fixed", "metric", "delta", "test_set_size", "test_epsilon", "release", "portfolio", "listed", "subset_share", "final_run", "curve_points", "max_trials")
    MEAN_TRIALS_FIELD_NUMBER: _ClassVar[int]
    ETA_FIELD_NUMBER: _ClassVar[int]
    POISSON_FIELD_NUMBER: _ClassVar[int]
    BINOMIAL_FIELD_NUMBER: _ClassVar[int]
    FIXED_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TEST_SET_SIZE_FIELD_NUMBER: _ClassVar[int]
    TEST_EPSILON_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    PORTFOLIO_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    SUBSET_SHARE_FIELD_NUMBER: _ClassVar[int]
    FINAL_RUN_FIELD_NUMBER: _ClassVar[int]
    CURVE_POINTS_FIELD_NUMBER: _ClassVar[int]
    MAX_TRIALS_FIELD_NUMBER: _ClassVar[int]
    mean_trials: float
    eta: float
    poisson: _privacy_pb2.PoissonDistribution
    binomial: int
    fixed: _privacy_pb2.FixedNumber
    metric: str
    delta: float
    test_set_size: int
    test_epsilon: float
    release: RandomStoppingRelease
    portfolio: int
    listed: int
    subset_share: float
    final_run: FinalRunSpec
    curve_points: int
    max_trials: int
    def __init__(self, mean_trials: _Optional[float] = ..., eta: _Optional[float] = ..., poisson: _Optional[_Union[_privacy_pb2.PoissonDistribution, _Mapping]] = ..., binomial: _Optional[int] = ..., fixed: _Optional[_Union[_privacy_pb2.FixedNumber, _Mapping]] = ..., metric: _Optional[str] = ..., delta: _Optional[float] = ..., test_set_size: _Optional[int] = ..., test_epsilon: _Optional[float] = ..., release: _Optional[_Union[RandomStoppingRelease, str]] = ..., portfolio: _Optional[int] = ..., listed: _Optional[int] = ..., subset_share: _Optional[float] = ..., final_run: _Optional[_Union[FinalRunSpec, _Mapping]] = ..., curve_points: _Optional[int] = ..., max_trials: _Optional[int] = ...) -> None: ...

class FinalRunSpec(_message.Message):
    __slots__ = ("values", "dataset_size")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _parameter_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_parameter_pb2.Value, _Mapping]] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    DATASET_SIZE_FIELD_NUMBER: _ClassVar[int]
    values: _containers.MessageMap[str, _parameter_pb2.Value]
    dataset_size: int
    def __init__(self, values: _Optional[_Mapping[str, _parameter_pb2.Value]] = ..., dataset_size: _Optional[int] = ...) -> None: ...

class Publication(_message.Message):
    __slots__ = ("train", "test", "assumptions", "not_covered", "noise_standard_deviation", "final_run", "spent")
    TRAIN_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    NOT_COVERED_FIELD_NUMBER: _ClassVar[int]
    NOISE_STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    FINAL_RUN_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    train: _privacy_pb2.PrivacyGuarantee
    test: _privacy_pb2.PrivacyGuarantee
    assumptions: _containers.RepeatedCompositeFieldContainer[_privacy_pb2.Assumption]
    not_covered: _containers.RepeatedScalarFieldContainer[str]
    noise_standard_deviation: float
    final_run: _privacy_pb2.PrivacyGuarantee
    spent: PrivateModeOdometers
    def __init__(self, train: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., test: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., assumptions: _Optional[_Iterable[_Union[_privacy_pb2.Assumption, _Mapping]]] = ..., not_covered: _Optional[_Iterable[str]] = ..., noise_standard_deviation: _Optional[float] = ..., final_run: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., spent: _Optional[_Union[PrivateModeOdometers, _Mapping]] = ...) -> None: ...

class PrivateModeOdometers(_message.Message):
    __slots__ = ("values", "max_values", "test", "train", "order", "train_budget", "shard_costs", "typical_cost", "slots", "checkpoints")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUES_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    TRAIN_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    TRAIN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    SHARD_COSTS_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_COST_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    values: int
    max_values: int
    test: _privacy_pb2.PrivacyGuarantee
    train: _privacy_pb2.PrivacyGuarantee
    order: float
    train_budget: float
    shard_costs: _containers.RepeatedScalarFieldContainer[float]
    typical_cost: float
    slots: _containers.RepeatedCompositeFieldContainer[SlotUse]
    checkpoints: float
    def __init__(self, values: _Optional[int] = ..., max_values: _Optional[int] = ..., test: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., train: _Optional[_Union[_privacy_pb2.PrivacyGuarantee, _Mapping]] = ..., order: _Optional[float] = ..., train_budget: _Optional[float] = ..., shard_costs: _Optional[_Iterable[float]] = ..., typical_cost: _Optional[float] = ..., slots: _Optional[_Iterable[_Union[SlotUse, _Mapping]]] = ..., checkpoints: _Optional[float] = ...) -> None: ...

class SlotUse(_message.Message):
    __slots__ = ("slot", "used")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    slot: Slot
    used: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, slot: _Optional[_Union[Slot, _Mapping]] = ..., used: _Optional[_Iterable[int]] = ...) -> None: ...
