"""A sampler of Optuna for the Pareto front of differentially private training.

The code is in the package dpfront: ``pip install dpfront``.
"""

from dpfront.integrations.optuna import (
    DParetoSampler,
    catching,
    dpareto_trial,
    epsilon,
    infeasible,
    report,
    should_stop,
)

__all__ = [
    "DParetoSampler",
    "catching",
    "dpareto_trial",
    "epsilon",
    "infeasible",
    "report",
    "should_stop",
]
