"""Records what other accountants say of the same trainings, for fixtures/accountants.json.

    python -m tests.record_accountants opacus        # with that package installed
    python -m tests.record_accountants opake
    python -m tests.record_accountants jax-privacy   # dp_accounting too

Each call replaces the entries of its packages.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parent / "fixtures" / "accountants.json"
DELTA = 1e-5
# Noise multiplier, sampling probability, steps.
TRAININGS: list[list[tuple[float, float, int]]] = [
    [(1.1, 0.01, 1000)],
    [(0.7, 0.004, 5000)],
    [(2.0, 0.1, 200)],
    [(1.0, 0.02, 500), (1.5, 0.02, 500)],
    [(4.0, 1.0, 10)],
]


def opacus() -> list[dict[str, Any]]:
    """Returns the ε of its three accountants."""
    from opacus.accountants import create_accountant

    found = []
    for history in TRAININGS:
        for mechanism in ("prv", "rdp", "gdp"):
            accountant = create_accountant(mechanism)
            accountant.history = [tuple(part) for part in history]
            if mechanism == "gdp" and (len(history) > 1 or history[0][1] == 1):
                continue
            state = {"history": history, "mechanism": mechanism}
            found.append(entry("opacus", state, accountant.get_epsilon(DELTA)))
    return found


def opake() -> list[dict[str, Any]]:
    """Returns the ε of its accountant."""
    import opake.api.accounting.core  # noqa: F401
    from opake.accounting import Accountant
    from opake.api.accounting import dpsgd
    from opake.serialization import state_dict

    processes = []
    for history in TRAININGS:
        whole = Accountant()
        for sigma, q, steps in history:
            whole |= dpsgd.poisson(dpsgd.gaussian(sigma), q) * steps
        processes.append(whole)
    truncated = dpsgd.poisson(
        dpsgd.gaussian(1.0), 0.02, truncated_batch_size=128, dataset_size=5000
    )
    processes.append(Accountant() | truncated * 500)
    allocated = dpsgd.k_out_of_t(dpsgd.gaussian(1.0), k=4, t=200, allocation="block")
    processes.append(Accountant() | allocated)
    return [entry("opake-accounting", state_dict(a), a.epsilon_at(DELTA)) for a in processes]


def jax_privacy() -> list[dict[str, Any]]:
    """Returns the ε of its plans, and of accountants of dp_accounting."""
    import dp_accounting as dp
    from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

    found = []
    relation = dp.NeighboringRelation
    more: list[dict[str, Any]] = [
        {"num_bands": 4, "iterations": 400, "noise_multiplier": 1.0, "sampling_prob": 0.08},
        {
            "num_bands": 1,
            "iterations": 500,
            "noise_multiplier": 1.0,
            "sampling_prob": 0.02,
            "truncated_batch_size": 128,
            "num_examples": 5000,
        },
    ]
    plans = [
        {"num_bands": 1, "iterations": t, "noise_multiplier": s, "sampling_prob": q}
        for ((s, q, t),) in (h for h in TRAININGS if len(h) == 1)
    ]
    for arguments in plans + more:
        config = BandMFExecutionPlanConfig.default(
            epsilon=None, delta=None, strategy_optimization_steps=5, **arguments
        )
        accountant = dp.pld.PLDAccountant(relation.REPLACE_SPECIAL)
        value = accountant.compose(config.plan.dp_event).get_epsilon(DELTA)
        found.append(entry("jax-privacy", arguments, value) | {"event": repr(config.plan.dp_event)})
    for history in TRAININGS:
        event = dp.ComposedDpEvent(
            [
                dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(s)), t)
                for s, q, t in history
            ]
        )
        for kind, accountant in (
            ("pld", dp.pld.PLDAccountant(relation.ADD_OR_REMOVE_ONE)),
            ("rdp", dp.rdp.RdpAccountant()),
            ("pld, replace one", dp.pld.PLDAccountant(relation.REPLACE_ONE)),
        ):
            value = accountant.compose(event).get_epsilon(DELTA)
            found.append(entry("dp-accounting", {"history": history, "kind": kind}, value))
    return found


def entry(package: str, state: Any, epsilon: float) -> dict[str, Any]:
    """Returns what one accountant says."""
    return {
        "package": package,
        "version": version(package),
        "state": state,
        "epsilon": float(epsilon),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    recorded = {"opacus": opacus, "opake": opake, "jax-privacy": jax_privacy}[sys.argv[1]]()
    packages = {x["package"] for x in recorded}
    kept = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else []
    kept = [x for x in kept if x["package"] not in packages] + recorded
    lines = ",\n".join(json.dumps(x) for x in kept)
    FIXTURE.write_text(f"[\n{lines}\n]\n")
