"""Finds the Pareto front of privacy and utility of differentially private training.

    import dpfront

    with dpfront.local_server() as server:
        study = dpfront.Study.create(server.client(), "demo", parameters=[...], metrics=[...])
        study.optimize(train, n_trials=32)
        print(study.front())

`Client` is a connection to a server, `Study` a question about a trade-off, `Trial` one of its
configurations. `AsyncClient` is the same for asyncio. `spec` has the parts of studies,
`privacy` the mechanisms from which ε follows, `samplers` batches by random allocation, `audit` what
attacks and replays show of a training loop, `plot` the pictures. `check` compares the ε of other
accountants with ours.
"""

from importlib.metadata import PackageNotFoundError, version

from dpfront._async.client import AsyncClient
from dpfront._async.study import AsyncStudy
from dpfront._async.trial import AsyncTrial
from dpfront._check import Check, check
from dpfront._connection import TLS
from dpfront._results.analyses import (
    Contour,
    Estimate,
    ExpectedGain,
    GainPoint,
    Importance,
    ObjectiveValidation,
    ParameterImportance,
    Slice,
    Slices,
    Validation,
    ValidationPoint,
)
from dpfront._results.fronts import (
    Front,
    FrontPoint,
    FrontValue,
    HypervolumePoint,
    Recommendation,
)
from dpfront._results.guarantees import (
    AccountingSummary,
    Assumption,
    Calibration,
    EpsilonCurve,
    Guarantee,
    PrivacyLedger,
    Reaccounting,
    ResultWarning,
    SearchPrice,
    SearchPrices,
    Tradeoff,
)
from dpfront._results.releases import Charge, LedgerInfo, Publication, Release, ReleasedPoint
from dpfront._results.trials import (
    Artifact,
    Measurement,
    PastAttempt,
    Prediction,
    StudyChange,
    StudyChanged,
    StudyInfo,
    TrialChanged,
    TrialDeleted,
    TrialInfo,
)
from dpfront._space import space
from dpfront._sync.client import Client
from dpfront._sync.study import Study
from dpfront._sync.trial import Trial
from dpfront.errors import (
    AlreadyExists,
    CallError,
    DParetoError,
    FailedPrecondition,
    FieldViolation,
    Infeasible,
    InvalidArgument,
    LeaseLost,
    NotFinite,
    NotFound,
    PermissionDenied,
    PrivacyMismatch,
    ResourceExhausted,
    ServerError,
    StudyDone,
    Unauthenticated,
    Unavailable,
)
from dpfront.integrations.opacus import opacus_trial
from dpfront.privacy import DpSgd, Privacy, opacus, paper
from dpfront.server import LocalServer, local_server
from dpfront.spec import (
    Categorical,
    ConstantPoint,
    Constraint,
    Design,
    Discrete,
    DpSgdFeatures,
    FinalRun,
    Float,
    Int,
    Maximize,
    Minimize,
    PrivateMode,
    RandomStopping,
    Slot,
    StudySpec,
    Tracked,
    epsilon,
)
from dpfront.values import Mean, Runs

try:
    __version__ = version("dpfront")
except PackageNotFoundError:  # the sources alone, not installed
    __version__ = "unknown"

__all__ = [
    "TLS",
    "AccountingSummary",
    "AlreadyExists",
    "Artifact",
    "Assumption",
    "AsyncClient",
    "AsyncStudy",
    "AsyncTrial",
    "Calibration",
    "CallError",
    "Categorical",
    "Charge",
    "Check",
    "Client",
    "ConstantPoint",
    "Constraint",
    "Contour",
    "DParetoError",
    "Design",
    "Discrete",
    "DpSgd",
    "DpSgdFeatures",
    "EpsilonCurve",
    "Estimate",
    "ExpectedGain",
    "FailedPrecondition",
    "FieldViolation",
    "FinalRun",
    "Float",
    "Front",
    "FrontPoint",
    "FrontValue",
    "GainPoint",
    "Guarantee",
    "HypervolumePoint",
    "Importance",
    "Infeasible",
    "Int",
    "InvalidArgument",
    "LeaseLost",
    "LedgerInfo",
    "LocalServer",
    "Maximize",
    "Mean",
    "Measurement",
    "Minimize",
    "NotFinite",
    "NotFound",
    "ObjectiveValidation",
    "ParameterImportance",
    "PastAttempt",
    "PermissionDenied",
    "Prediction",
    "Privacy",
    "PrivacyLedger",
    "PrivacyMismatch",
    "PrivateMode",
    "Publication",
    "RandomStopping",
    "Reaccounting",
    "Recommendation",
    "Release",
    "ReleasedPoint",
    "ResourceExhausted",
    "ResultWarning",
    "Runs",
    "SearchPrice",
    "SearchPrices",
    "ServerError",
    "Slice",
    "Slices",
    "Slot",
    "Study",
    "StudyChange",
    "StudyChanged",
    "StudyDone",
    "StudyInfo",
    "StudySpec",
    "Tracked",
    "Tradeoff",
    "Trial",
    "TrialChanged",
    "TrialDeleted",
    "TrialInfo",
    "Unauthenticated",
    "Unavailable",
    "Validation",
    "ValidationPoint",
    "check",
    "epsilon",
    "local_server",
    "opacus",
    "opacus_trial",
    "paper",
    "space",
]
