from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Adjacency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADJACENCY_UNSPECIFIED: _ClassVar[Adjacency]
    ADJACENCY_ADD_REMOVE: _ClassVar[Adjacency]
    ADJACENCY_REPLACE_ONE: _ClassVar[Adjacency]

class Accountant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCOUNTANT_UNSPECIFIED: _ClassVar[Accountant]
    ACCOUNTANT_TIGHTEST: _ClassVar[Accountant]
    ACCOUNTANT_RDP: _ClassVar[Accountant]
    ACCOUNTANT_PLD: _ClassVar[Accountant]
    ACCOUNTANT_PURE: _ClassVar[Accountant]
    ACCOUNTANT_EXACT: _ClassVar[Accountant]
    ACCOUNTANT_GDP: _ClassVar[Accountant]
    ACCOUNTANT_PURE_ADVANCED: _ClassVar[Accountant]
    ACCOUNTANT_PURE_OPTIMAL: _ClassVar[Accountant]
    ACCOUNTANT_RDP_ODOMETER: _ClassVar[Accountant]
    ACCOUNTANT_ADAPTIVE_COMPOSITION: _ClassVar[Accountant]
    ACCOUNTANT_LOCATION: _ClassVar[Accountant]
    ACCOUNTANT_CHERNOFF: _ClassVar[Accountant]

class Conversion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVERSION_UNSPECIFIED: _ClassVar[Conversion]
    CONVERSION_CLASSIC: _ClassVar[Conversion]
    CONVERSION_IMPROVED: _ClassVar[Conversion]

class Sampling(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAMPLING_UNSPECIFIED: _ClassVar[Sampling]
    SAMPLING_FIXED_SIZE: _ClassVar[Sampling]
    SAMPLING_POISSON: _ClassVar[Sampling]
    SAMPLING_SHUFFLED: _ClassVar[Sampling]
    SAMPLING_RANDOM_ALLOCATION: _ClassVar[Sampling]

class Convention(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVENTION_UNSPECIFIED: _ClassVar[Convention]
    CONVENTION_ROUNDED: _ClassVar[Convention]
    CONVENTION_OPACUS: _ClassVar[Convention]
    CONVENTION_TENSORFLOW_PRIVACY: _ClassVar[Convention]

class DpSgdOptimizer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DP_SGD_OPTIMIZER_UNSPECIFIED: _ClassVar[DpSgdOptimizer]
    DP_SGD_OPTIMIZER_SGD: _ClassVar[DpSgdOptimizer]
    DP_SGD_OPTIMIZER_NORMALIZED: _ClassVar[DpSgdOptimizer]

class ObjectiveCalibration(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECTIVE_CALIBRATION_UNSPECIFIED: _ClassVar[ObjectiveCalibration]
    OBJECTIVE_CALIBRATION_RANK_ONE: _ClassVar[ObjectiveCalibration]
    OBJECTIVE_CALIBRATION_CHAUDHURI: _ClassVar[ObjectiveCalibration]
    OBJECTIVE_CALIBRATION_CONTINUOUS: _ClassVar[ObjectiveCalibration]

class SelectionMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SELECTION_METHOD_UNSPECIFIED: _ClassVar[SelectionMethod]
    SELECTION_METHOD_EXPONENTIAL: _ClassVar[SelectionMethod]
    SELECTION_METHOD_PERMUTE_AND_FLIP: _ClassVar[SelectionMethod]
    SELECTION_METHOD_REPORT_NOISY_MAX: _ClassVar[SelectionMethod]

class NoiseMatrix(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOISE_MATRIX_UNSPECIFIED: _ClassVar[NoiseMatrix]
    NOISE_MATRIX_TREE: _ClassVar[NoiseMatrix]
    NOISE_MATRIX_BLT: _ClassVar[NoiseMatrix]
    NOISE_MATRIX_TOEPLITZ: _ClassVar[NoiseMatrix]

class Allocation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALLOCATION_UNSPECIFIED: _ClassVar[Allocation]
    ALLOCATION_FRESH: _ClassVar[Allocation]
    ALLOCATION_SAME: _ClassVar[Allocation]

class Premise(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PREMISE_UNSPECIFIED: _ClassVar[Premise]
    PREMISE_SAMPLER: _ClassVar[Premise]
    PREMISE_FIXED_IN_ADVANCE: _ClassVar[Premise]
    PREMISE_SENSITIVITY: _ClassVar[Premise]
    PREMISE_NOISE: _ClassVar[Premise]
    PREMISE_DATA: _ClassVar[Premise]
    PREMISE_THEOREM: _ClassVar[Premise]
    PREMISE_INDEPENDENCE: _ClassVar[Premise]
    PREMISE_SECRECY: _ClassVar[Premise]
    PREMISE_SCORES: _ClassVar[Premise]
    PREMISE_DISJOINT: _ClassVar[Premise]
    PREMISE_PUBLIC_DATA: _ClassVar[Premise]
    PREMISE_ADMISSION: _ClassVar[Premise]
    PREMISE_SERVER_NOISE: _ClassVar[Premise]

class Checker(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKER_UNSPECIFIED: _ClassVar[Checker]
    CHECKER_SERVER: _ClassVar[Checker]
    CHECKER_CLIENT: _ClassVar[Checker]
    CHECKER_NOBODY: _ClassVar[Checker]
ADJACENCY_UNSPECIFIED: Adjacency
ADJACENCY_ADD_REMOVE: Adjacency
ADJACENCY_REPLACE_ONE: Adjacency
ACCOUNTANT_UNSPECIFIED: Accountant
ACCOUNTANT_TIGHTEST: Accountant
ACCOUNTANT_RDP: Accountant
ACCOUNTANT_PLD: Accountant
ACCOUNTANT_PURE: Accountant
ACCOUNTANT_EXACT: Accountant
ACCOUNTANT_GDP: Accountant
ACCOUNTANT_PURE_ADVANCED: Accountant
ACCOUNTANT_PURE_OPTIMAL: Accountant
ACCOUNTANT_RDP_ODOMETER: Accountant
ACCOUNTANT_ADAPTIVE_COMPOSITION: Accountant
ACCOUNTANT_LOCATION: Accountant
ACCOUNTANT_CHERNOFF: Accountant
CONVERSION_UNSPECIFIED: Conversion
CONVERSION_CLASSIC: Conversion
CONVERSION_IMPROVED: Conversion
SAMPLING_UNSPECIFIED: Sampling
SAMPLING_FIXED_SIZE: Sampling
SAMPLING_POISSON: Sampling
SAMPLING_SHUFFLED: Sampling
SAMPLING_RANDOM_ALLOCATION: Sampling
CONVENTION_UNSPECIFIED: Convention
CONVENTION_ROUNDED: Convention
CONVENTION_OPACUS: Convention
CONVENTION_TENSORFLOW_PRIVACY: Convention
DP_SGD_OPTIMIZER_UNSPECIFIED: DpSgdOptimizer
DP_SGD_OPTIMIZER_SGD: DpSgdOptimizer
DP_SGD_OPTIMIZER_NORMALIZED: DpSgdOptimizer
OBJECTIVE_CALIBRATION_UNSPECIFIED: ObjectiveCalibration
OBJECTIVE_CALIBRATION_RANK_ONE: ObjectiveCalibration
OBJECTIVE_CALIBRATION_CHAUDHURI: ObjectiveCalibration
OBJECTIVE_CALIBRATION_CONTINUOUS: ObjectiveCalibration
SELECTION_METHOD_UNSPECIFIED: SelectionMethod
SELECTION_METHOD_EXPONENTIAL: SelectionMethod
SELECTION_METHOD_PERMUTE_AND_FLIP: SelectionMethod
SELECTION_METHOD_REPORT_NOISY_MAX: SelectionMethod
NOISE_MATRIX_UNSPECIFIED: NoiseMatrix
NOISE_MATRIX_TREE: NoiseMatrix
NOISE_MATRIX_BLT: NoiseMatrix
NOISE_MATRIX_TOEPLITZ: NoiseMatrix
ALLOCATION_UNSPECIFIED: Allocation
ALLOCATION_FRESH: Allocation
ALLOCATION_SAME: Allocation
PREMISE_UNSPECIFIED: Premise
PREMISE_SAMPLER: Premise
PREMISE_FIXED_IN_ADVANCE: Premise
PREMISE_SENSITIVITY: Premise
PREMISE_NOISE: Premise
PREMISE_DATA: Premise
PREMISE_THEOREM: Premise
PREMISE_INDEPENDENCE: Premise
PREMISE_SECRECY: Premise
PREMISE_SCORES: Premise
PREMISE_DISJOINT: Premise
PREMISE_PUBLIC_DATA: Premise
PREMISE_ADMISSION: Premise
PREMISE_SERVER_NOISE: Premise
CHECKER_UNSPECIFIED: Checker
CHECKER_SERVER: Checker
CHECKER_CLIENT: Checker
CHECKER_NOBODY: Checker

class PrivacySpec(_message.Message):
    __slots__ = ("dp_sgd", "sparse_vector", "gaussian", "laplace", "output_perturbation", "objective_perturbation", "repeated_selection", "composition", "randomized_response", "selection", "zero_concentrated", "random_allocation", "discrete_gaussian", "discrete_laplace", "dp_ftrl", "delta", "adjacency", "accountant", "conversion")
    DP_SGD_FIELD_NUMBER: _ClassVar[int]
    SPARSE_VECTOR_FIELD_NUMBER: _ClassVar[int]
    GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
    LAPLACE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_PERTURBATION_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_PERTURBATION_FIELD_NUMBER: _ClassVar[int]
    REPEATED_SELECTION_FIELD_NUMBER: _ClassVar[int]
    COMPOSITION_FIELD_NUMBER: _ClassVar[int]
    RANDOMIZED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    ZERO_CONCENTRATED_FIELD_NUMBER: _ClassVar[int]
    RANDOM_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    DISCRETE_GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
    DISCRETE_LAPLACE_FIELD_NUMBER: _ClassVar[int]
    DP_FTRL_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    ADJACENCY_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTANT_FIELD_NUMBER: _ClassVar[int]
    CONVERSION_FIELD_NUMBER: _ClassVar[int]
    dp_sgd: DpSgdMechanism
    sparse_vector: SparseVectorMechanism
    gaussian: GaussianMechanism
    laplace: LaplaceMechanism
    output_perturbation: OutputPerturbationMechanism
    objective_perturbation: ObjectivePerturbationMechanism
    repeated_selection: RepeatedSelectionMechanism
    composition: CompositionMechanism
    randomized_response: RandomizedResponseMechanism
    selection: SelectionMechanism
    zero_concentrated: ZeroConcentratedMechanism
    random_allocation: RandomAllocationMechanism
    discrete_gaussian: DiscreteGaussianMechanism
    discrete_laplace: DiscreteLaplaceMechanism
    dp_ftrl: DpFtrlMechanism
    delta: float
    adjacency: Adjacency
    accountant: Accountant
    conversion: Conversion
    def __init__(self, dp_sgd: _Optional[_Union[DpSgdMechanism, _Mapping]] = ..., sparse_vector: _Optional[_Union[SparseVectorMechanism, _Mapping]] = ..., gaussian: _Optional[_Union[GaussianMechanism, _Mapping]] = ..., laplace: _Optional[_Union[LaplaceMechanism, _Mapping]] = ..., output_perturbation: _Optional[_Union[OutputPerturbationMechanism, _Mapping]] = ..., objective_perturbation: _Optional[_Union[ObjectivePerturbationMechanism, _Mapping]] = ..., repeated_selection: _Optional[_Union[RepeatedSelectionMechanism, _Mapping]] = ..., composition: _Optional[_Union[CompositionMechanism, _Mapping]] = ..., randomized_response: _Optional[_Union[RandomizedResponseMechanism, _Mapping]] = ..., selection: _Optional[_Union[SelectionMechanism, _Mapping]] = ..., zero_concentrated: _Optional[_Union[ZeroConcentratedMechanism, _Mapping]] = ..., random_allocation: _Optional[_Union[RandomAllocationMechanism, _Mapping]] = ..., discrete_gaussian: _Optional[_Union[DiscreteGaussianMechanism, _Mapping]] = ..., discrete_laplace: _Optional[_Union[DiscreteLaplaceMechanism, _Mapping]] = ..., dp_ftrl: _Optional[_Union[DpFtrlMechanism, _Mapping]] = ..., delta: _Optional[float] = ..., adjacency: _Optional[_Union[Adjacency, str]] = ..., accountant: _Optional[_Union[Accountant, str]] = ..., conversion: _Optional[_Union[Conversion, str]] = ...) -> None: ...

class DpSgdMechanism(_message.Message):
    __slots__ = ("sampling", "dataset_size", "batch_size", "noise_multiplier", "epochs", "steps", "convention", "sampling_probability", "learning_rate", "clipping_norm", "optimizer", "physical_batch_size", "records_per_user", "clipping_count_deviation", "bands")
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    DATASET_SIZE_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    NOISE_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    CONVENTION_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    CLIPPING_NORM_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_PER_USER_FIELD_NUMBER: _ClassVar[int]
    CLIPPING_COUNT_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    BANDS_FIELD_NUMBER: _ClassVar[int]
    sampling: Sampling
    dataset_size: str
    batch_size: str
    noise_multiplier: str
    epochs: str
    steps: str
    convention: Convention
    sampling_probability: str
    learning_rate: str
    clipping_norm: str
    optimizer: DpSgdOptimizer
    physical_batch_size: str
    records_per_user: str
    clipping_count_deviation: str
    bands: str
    def __init__(self, sampling: _Optional[_Union[Sampling, str]] = ..., dataset_size: _Optional[str] = ..., batch_size: _Optional[str] = ..., noise_multiplier: _Optional[str] = ..., epochs: _Optional[str] = ..., steps: _Optional[str] = ..., convention: _Optional[_Union[Convention, str]] = ..., sampling_probability: _Optional[str] = ..., learning_rate: _Optional[str] = ..., clipping_norm: _Optional[str] = ..., optimizer: _Optional[_Union[DpSgdOptimizer, str]] = ..., physical_batch_size: _Optional[str] = ..., records_per_user: _Optional[str] = ..., clipping_count_deviation: _Optional[str] = ..., bands: _Optional[str] = ...) -> None: ...

class SparseVectorMechanism(_message.Message):
    __slots__ = ("cutoff", "noise_scale")
    CUTOFF_FIELD_NUMBER: _ClassVar[int]
    NOISE_SCALE_FIELD_NUMBER: _ClassVar[int]
    cutoff: str
    noise_scale: str
    def __init__(self, cutoff: _Optional[str] = ..., noise_scale: _Optional[str] = ...) -> None: ...

class GaussianMechanism(_message.Message):
    __slots__ = ("sensitivity", "standard_deviation")
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    sensitivity: str
    standard_deviation: str
    def __init__(self, sensitivity: _Optional[str] = ..., standard_deviation: _Optional[str] = ...) -> None: ...

class LaplaceMechanism(_message.Message):
    __slots__ = ("sensitivity", "scale")
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    sensitivity: str
    scale: str
    def __init__(self, sensitivity: _Optional[str] = ..., scale: _Optional[str] = ...) -> None: ...

class DiscreteGaussianMechanism(_message.Message):
    __slots__ = ("sensitivity", "sigma")
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    SIGMA_FIELD_NUMBER: _ClassVar[int]
    sensitivity: str
    sigma: str
    def __init__(self, sensitivity: _Optional[str] = ..., sigma: _Optional[str] = ...) -> None: ...

class DiscreteLaplaceMechanism(_message.Message):
    __slots__ = ("sensitivity", "scale")
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    sensitivity: str
    scale: str
    def __init__(self, sensitivity: _Optional[str] = ..., scale: _Optional[str] = ...) -> None: ...

class OutputPerturbationMechanism(_message.Message):
    __slots__ = ("dataset_size", "regularization", "feature_norm", "standard_deviation", "radius")
    DATASET_SIZE_FIELD_NUMBER: _ClassVar[int]
    REGULARIZATION_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NORM_FIELD_NUMBER: _ClassVar[int]
    STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    dataset_size: str
    regularization: str
    feature_norm: str
    standard_deviation: str
    radius: str
    def __init__(self, dataset_size: _Optional[str] = ..., regularization: _Optional[str] = ..., feature_norm: _Optional[str] = ..., standard_deviation: _Optional[str] = ..., radius: _Optional[str] = ...) -> None: ...

class ObjectivePerturbationMechanism(_message.Message):
    __slots__ = ("epsilon", "dataset_size", "regularization", "curvature", "calibration", "split")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DATASET_SIZE_FIELD_NUMBER: _ClassVar[int]
    REGULARIZATION_FIELD_NUMBER: _ClassVar[int]
    CURVATURE_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    epsilon: str
    dataset_size: str
    regularization: str
    curvature: str
    calibration: ObjectiveCalibration
    split: str
    def __init__(self, epsilon: _Optional[str] = ..., dataset_size: _Optional[str] = ..., regularization: _Optional[str] = ..., curvature: _Optional[str] = ..., calibration: _Optional[_Union[ObjectiveCalibration, str]] = ..., split: _Optional[str] = ...) -> None: ...

class RandomizedResponseMechanism(_message.Message):
    __slots__ = ("epsilon", "categories")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    epsilon: str
    categories: str
    def __init__(self, epsilon: _Optional[str] = ..., categories: _Optional[str] = ...) -> None: ...

class SelectionMechanism(_message.Message):
    __slots__ = ("method", "epsilon")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    method: SelectionMethod
    epsilon: str
    def __init__(self, method: _Optional[_Union[SelectionMethod, str]] = ..., epsilon: _Optional[str] = ...) -> None: ...

class ZeroConcentratedMechanism(_message.Message):
    __slots__ = ("rho",)
    RHO_FIELD_NUMBER: _ClassVar[int]
    rho: str
    def __init__(self, rho: _Optional[str] = ...) -> None: ...

class RandomAllocationMechanism(_message.Message):
    __slots__ = ("steps_per_epoch", "picks", "noise_multiplier", "epochs", "allocation")
    STEPS_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PICKS_FIELD_NUMBER: _ClassVar[int]
    NOISE_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    steps_per_epoch: str
    picks: str
    noise_multiplier: str
    epochs: str
    allocation: Allocation
    def __init__(self, steps_per_epoch: _Optional[str] = ..., picks: _Optional[str] = ..., noise_multiplier: _Optional[str] = ..., epochs: _Optional[str] = ..., allocation: _Optional[_Union[Allocation, str]] = ...) -> None: ...

class DpFtrlMechanism(_message.Message):
    __slots__ = ("steps", "separation", "participations", "noise_multiplier", "matrix", "column", "buffer_scale", "buffer_decay")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SEPARATION_FIELD_NUMBER: _ClassVar[int]
    PARTICIPATIONS_FIELD_NUMBER: _ClassVar[int]
    NOISE_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    MATRIX_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    BUFFER_SCALE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_DECAY_FIELD_NUMBER: _ClassVar[int]
    steps: str
    separation: str
    participations: str
    noise_multiplier: str
    matrix: NoiseMatrix
    column: _containers.RepeatedScalarFieldContainer[float]
    buffer_scale: _containers.RepeatedScalarFieldContainer[float]
    buffer_decay: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, steps: _Optional[str] = ..., separation: _Optional[str] = ..., participations: _Optional[str] = ..., noise_multiplier: _Optional[str] = ..., matrix: _Optional[_Union[NoiseMatrix, str]] = ..., column: _Optional[_Iterable[float]] = ..., buffer_scale: _Optional[_Iterable[float]] = ..., buffer_decay: _Optional[_Iterable[float]] = ...) -> None: ...

class RepeatedSelectionMechanism(_message.Message):
    __slots__ = ("base", "mean_runs", "eta", "poisson", "binomial", "fixed", "max_runs")
    BASE_FIELD_NUMBER: _ClassVar[int]
    MEAN_RUNS_FIELD_NUMBER: _ClassVar[int]
    ETA_FIELD_NUMBER: _ClassVar[int]
    POISSON_FIELD_NUMBER: _ClassVar[int]
    BINOMIAL_FIELD_NUMBER: _ClassVar[int]
    FIXED_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    base: PrivacySpec
    mean_runs: str
    eta: str
    poisson: PoissonDistribution
    binomial: str
    fixed: FixedNumber
    max_runs: str
    def __init__(self, base: _Optional[_Union[PrivacySpec, _Mapping]] = ..., mean_runs: _Optional[str] = ..., eta: _Optional[str] = ..., poisson: _Optional[_Union[PoissonDistribution, _Mapping]] = ..., binomial: _Optional[str] = ..., fixed: _Optional[_Union[FixedNumber, _Mapping]] = ..., max_runs: _Optional[str] = ...) -> None: ...

class FixedNumber(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PoissonDistribution(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompositionMechanism(_message.Message):
    __slots__ = ("parts",)
    class Part(_message.Message):
        __slots__ = ("mechanism", "count")
        MECHANISM_FIELD_NUMBER: _ClassVar[int]
        COUNT_FIELD_NUMBER: _ClassVar[int]
        mechanism: PrivacySpec
        count: str
        def __init__(self, mechanism: _Optional[_Union[PrivacySpec, _Mapping]] = ..., count: _Optional[str] = ...) -> None: ...
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[CompositionMechanism.Part]
    def __init__(self, parts: _Optional[_Iterable[_Union[CompositionMechanism.Part, _Mapping]]] = ...) -> None: ...

class PrivacyGuarantee(_message.Message):
    __slots__ = ("epsilon", "epsilon_lower", "delta", "adjacency", "accountant", "conversion", "order", "steps", "assumptions", "warnings")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LOWER_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    ADJACENCY_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTANT_FIELD_NUMBER: _ClassVar[int]
    CONVERSION_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    epsilon: float
    epsilon_lower: float
    delta: float
    adjacency: Adjacency
    accountant: Accountant
    conversion: Conversion
    order: float
    steps: int
    assumptions: _containers.RepeatedCompositeFieldContainer[Assumption]
    warnings: _containers.RepeatedCompositeFieldContainer[Warning]
    def __init__(self, epsilon: _Optional[float] = ..., epsilon_lower: _Optional[float] = ..., delta: _Optional[float] = ..., adjacency: _Optional[_Union[Adjacency, str]] = ..., accountant: _Optional[_Union[Accountant, str]] = ..., conversion: _Optional[_Union[Conversion, str]] = ..., order: _Optional[float] = ..., steps: _Optional[int] = ..., assumptions: _Optional[_Iterable[_Union[Assumption, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[Warning, _Mapping]]] = ...) -> None: ...

class Assumption(_message.Message):
    __slots__ = ("text", "premise", "checked_by")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PREMISE_FIELD_NUMBER: _ClassVar[int]
    CHECKED_BY_FIELD_NUMBER: _ClassVar[int]
    text: str
    premise: Premise
    checked_by: Checker
    def __init__(self, text: _Optional[str] = ..., premise: _Optional[_Union[Premise, str]] = ..., checked_by: _Optional[_Union[Checker, str]] = ...) -> None: ...

class Warning(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
