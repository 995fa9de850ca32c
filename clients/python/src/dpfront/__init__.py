"""Finds the Pareto front of privacy and utility of differentially private training.

    import dpfront

    with dpfront.local_server() as server:
        study = dpfront.Study.create(server.client(), "demo", parameters=[...], metrics=[...])
        study.optimize(train, n_trials=32)
        print(study.front())

`Client` is a connection to a server, `Study` a question about a trade-off, `Trial` one of its
configurations. `AsyncClient` is the same for asyncio. `spec` has the parts of studies,
`privacy` the mechanisms from which ε follows.
"""

from dpfront._connection import TLS
from dpfront.aio import AsyncClient, AsyncStudy, AsyncTrial
from dpfront.client import Client, Study, Trial
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
    Front,
    FrontPoint,
    Guarantee,
    LedgerInfo,
    PrivacyLedger,
    Publication,
    Recommendation,
    Release,
    StudyInfo,
    TrialInfo,
)
from dpfront.server import LocalServer, local_server
from dpfront.spec import (
    Categorical,
    Constraint,
    Design,
    Discrete,
    Float,
    Int,
    Maximize,
    Minimize,
    PrivateMode,
    RandomStopping,
    StudySpec,
    Tracked,
    epsilon,
)

__version__ = "0.1.0"

__all__ = [
    "TLS",
    "AlreadyExists",
    "AsyncClient",
    "AsyncStudy",
    "AsyncTrial",
    "CallError",
    "Categorical",
    "Client",
    "Constraint",
    "DParetoError",
    "Design",
    "Discrete",
    "DpSgd",
    "FailedPrecondition",
    "FieldViolation",
    "Float",
    "Front",
    "FrontPoint",
    "Guarantee",
    "Infeasible",
    "Int",
    "InvalidArgument",
    "LeaseLost",
    "LedgerInfo",
    "LocalServer",
    "Maximize",
    "Minimize",
    "NotFinite",
    "NotFound",
    "PermissionDenied",
    "Privacy",
    "PrivacyLedger",
    "PrivacyMismatch",
    "PrivateMode",
    "Publication",
    "RandomStopping",
    "Recommendation",
    "Release",
    "ResourceExhausted",
    "ServerError",
    "Study",
    "StudyDone",
    "StudyInfo",
    "StudySpec",
    "Tracked",
    "Trial",
    "TrialInfo",
    "Unauthenticated",
    "Unavailable",
    "epsilon",
    "local_server",
    "opacus",
    "opacus_trial",
    "paper",
]
