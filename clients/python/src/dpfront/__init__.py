"""Finds the Pareto front of privacy and utility of differentially private training.

    import dpfront

    with dpfront.local_server() as server:
        study = dpfront.Study.create(server.client(), "demo", parameters=[...], metrics=[...])
        study.optimize(train, n_trials=32)
        print(study.front())

`Client` is a connection to a server, `Study` a question about a trade-off, `Trial` one of its
configurations. `AsyncClient` is the same for asyncio. `spec` has the parts of studies,
`privacy` the mechanisms from which ε follows, `plot` the pictures.
"""

from importlib.metadata import PackageNotFoundError, version

from dpfront._async.client import AsyncClient
from dpfront._async.study import AsyncStudy
from dpfront._async.trial import AsyncTrial
from dpfront._connection import TLS
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
from dpfront.results import (
    Artifact,
    Contour,
    Estimate,
    ExpectedGain,
    Front,
    FrontPoint,
    Guarantee,
    Importance,
    LedgerInfo,
    ParameterImportance,
    PrivacyLedger,
    Publication,
    Reaccounting,
    Recommendation,
    Release,
    SearchPrice,
    SearchPrices,
    Slice,
    Slices,
    StudyChange,
    StudyChanged,
    StudyInfo,
    Tradeoff,
    TrialChanged,
    TrialDeleted,
    TrialInfo,
    Validation,
)
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
    "AlreadyExists",
    "Artifact",
    "AsyncClient",
    "AsyncStudy",
    "AsyncTrial",
    "CallError",
    "Categorical",
    "Client",
    "ConstantPoint",
    "Constraint",
    "Contour",
    "DParetoError",
    "Design",
    "Discrete",
    "DpSgd",
    "DpSgdFeatures",
    "Estimate",
    "ExpectedGain",
    "FailedPrecondition",
    "FieldViolation",
    "FinalRun",
    "Float",
    "Front",
    "FrontPoint",
    "Guarantee",
    "Importance",
    "Infeasible",
    "Int",
    "InvalidArgument",
    "LeaseLost",
    "LedgerInfo",
    "LocalServer",
    "Maximize",
    "Mean",
    "Minimize",
    "NotFinite",
    "NotFound",
    "ParameterImportance",
    "PermissionDenied",
    "Privacy",
    "PrivacyLedger",
    "PrivacyMismatch",
    "PrivateMode",
    "Publication",
    "RandomStopping",
    "Reaccounting",
    "Recommendation",
    "Release",
    "ResourceExhausted",
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
    "epsilon",
    "local_server",
    "opacus",
    "opacus_trial",
    "paper",
    "space",
]
