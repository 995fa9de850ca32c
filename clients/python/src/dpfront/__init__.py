"""Finds the Pareto front of privacy and utility of differentially private training.

    import dpfront

    with dpfront.local_server() as server:
        study = dpfront.Study.create(server.client(), "demo", parameters=[...], metrics=[...])
        study.optimize(train, n_trials=32)
        print(study.front())

`Client` is a connection to a server, `Study` a question about a trade-off, `Trial` one of its
configurations. `AsyncClient` is the same for asyncio. `spec` has the parts of studies, `privacy`
the mechanisms from which ε follows, `samplers` batches by random allocation. `audit` tests a
training loop by attacks and replays, `plot` has the pictures. `check` compares the ε of other
accountants with ours.
"""

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dpfront import audit, plot, samplers
    from dpfront._async.client import AsyncClient
    from dpfront._async.study import AsyncStudy
    from dpfront._async.trial import AsyncTrial
    from dpfront._check import Check, check
    from dpfront.integrations.opacus import opacus_trial

    __version__: str

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
    "audit",
    "check",
    "epsilon",
    "local_server",
    "opacus",
    "opacus_trial",
    "paper",
    "plot",
    "samplers",
    "space",
]

# Imported at their first use, since many programs do without. They took a sixth of the import.
_LATER = {
    "AsyncClient": "dpfront._async.client",
    "AsyncStudy": "dpfront._async.study",
    "AsyncTrial": "dpfront._async.trial",
    "Check": "dpfront._check",
    "audit": "dpfront.audit",
    "check": "dpfront._check",
    "opacus_trial": "dpfront.integrations.opacus",
    "plot": "dpfront.plot",
    "samplers": "dpfront.samplers",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _LATER:
        module = importlib.import_module(_LATER[name])
        value = module if module.__name__ == f"dpfront.{name}" else getattr(module, name)
    else:
        raise AttributeError(f"module 'dpfront' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dpfront")
    except PackageNotFoundError:  # the sources alone, not installed
        return "unknown"
