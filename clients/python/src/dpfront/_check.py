"""Compares the ε of another accountant with ours."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dpfront import privacy as p
from dpfront._card import Card, Shown
from dpfront._results.guarantees import Guarantee, bound
from dpfront._sync.client import Client

RELATIVE, ABSOLUTE = 0.01, 0.01
"""Differences below both together are agreement."""


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """The ε of another accountant, compared with ours."""

    tool: str
    accountant: str
    """Its accountant: prv, rdp, gdp, pld."""
    epsilon: float
    """Its ε."""
    ours: Guarantee
    agrees: bool
    """Whether both are the same within 1 % and 0.01, for the same adjacency and sampler."""
    safe: bool
    """Whether its ε is shown to be an upper bound for what training ran: it is not below a lower
    bound of the true ε, and not below ours by more than 1 % and 0.01."""
    reasons: tuple[str, ...]
    """Why they differ, a sentence each; none if they agree."""
    privacy: p.Privacy
    """Whose ε ours is."""

    def _card(self) -> Card:
        return Card(
            f"{self.tool} against dpareto",
            [
                (f"ε by {self.tool} ({self.accountant})", f"{self.epsilon:.5g}"),
                ("ours", bound(self.ours)),
                ("verdict", "they agree" if self.agrees else "they differ"),
                ("its ε is an upper bound", "yes" if self.safe else "NO"),
            ],
            notes=self.reasons,
        )


def check(
    client: Client,
    theirs: Any,
    *,
    delta: float,
    epsilon: float | None = None,
    epsilon_delta: float | None = None,
    adjacency: p.Adjacency | None = None,
    executed: p.Privacy | None = None,
) -> Check:
    """Compares the ε of another accountant with ours, and says why they differ.

    Args:
        client: Of the server that computes ours.
        theirs: An accountant of Opacus, or its ``state_dict()``; an accountant or event of
            dp_accounting. Also an execution plan of JAX-Privacy 2, or its configuration, and an
            accountant or process of opake, or its ``state_dict``.
        delta: δ of our ε, and of theirs where it is computed.
        epsilon: Their ε, where it is known: of recorded histories.
        epsilon_delta: δ of ``epsilon``, if it is another one.
        adjacency: The adjacency that the guarantee is for, of the same noise; by default theirs.
        executed: What training ran, if it is not what they account: another sampler.

    Raises:
        ValueError: It is not of these kinds, or has no counterpart among our mechanisms.
    """
    found = _read(theirs, delta, computed=epsilon is None)
    value = found.epsilon if epsilon is None else epsilon
    if executed is not None and adjacency is not None:
        raise ValueError("adjacency: executed has its own")
    ours = executed or found.privacy
    if adjacency is not None and adjacency != ours.adjacency:
        ours = replace(ours, adjacency=adjacency, mechanism=_under(ours.mechanism, adjacency))
    guarantee = client.epsilon(replace(ours, delta=delta))
    reasons = _differences(found, ours, delta, epsilon_delta)
    same = not reasons
    near = abs(value - guarantee.epsilon) <= ABSOLUTE + RELATIVE * guarantee.epsilon
    if not near:
        reasons += _sizes(found, value, guarantee)
    # Whether theirs is an upper bound is judged at its own δ. Without a bound from below, only an
    # ε of at least ours is shown to be one.
    at = guarantee
    if epsilon_delta not in (None, delta):
        at = client.epsilon(replace(ours, delta=epsilon_delta))
    floor = at.epsilon
    if at.epsilon_lower is not None:
        floor = max(at.epsilon_lower, at.epsilon * (1 - RELATIVE) - ABSOLUTE)
    return Check(
        found.tool,
        found.accountant,
        value,
        guarantee,
        same and near,
        value >= floor * (1 - 1e-9),
        tuple(reasons),
        ours,
    )


@dataclass(frozen=True)
class _Theirs:
    tool: str
    accountant: str
    epsilon: float
    privacy: p.Privacy


def _read(theirs: Any, delta: float, *, computed: bool) -> _Theirs:
    from dpfront.integrations import accountants

    package = type(theirs).__module__.partition(".")[0]
    if isinstance(theirs, Mapping):
        package = "opacus" if "history" in theirs else "opake"
    if package == "opacus":
        recorded = isinstance(theirs, Mapping)
        history = theirs["history"] if recorded else theirs.history
        name = theirs.get("mechanism", "prv") if recorded else theirs.mechanism()
        return _Theirs(
            _tool("opacus"),
            name,
            _known(theirs, "get_epsilon", delta) if computed else math.nan,
            accountants.from_opacus(history, delta=delta),
        )
    if package == "opake":
        return _Theirs(
            _tool("opake-accounting"),
            "pld",
            _known(theirs, "epsilon_at", delta) if computed else math.nan,
            accountants.from_opake(theirs, delta=delta),
        )
    if package == "jax_privacy":
        accountant = getattr(theirs, "accountant", None)
        event = getattr(theirs, "plan", theirs).dp_event
        value, kind = _by_dp_accounting(event, accountant, delta, computed=computed)
        privacy = accountants.from_jax_privacy(theirs, delta=delta)
        return _Theirs(_tool("jax-privacy"), kind, value, privacy)
    if package == "dp_accounting":
        from dpfront.integrations.dp_accounting import from_event

        accountant = theirs if hasattr(theirs, "ledger") else None
        event = theirs if accountant is None else theirs.ledger
        relation = getattr(getattr(accountant, "neighboring_relation", None), "name", "")
        value, kind = _by_dp_accounting(event, accountant, delta, computed=computed)
        return _Theirs(
            _tool("dp-accounting"),
            kind,
            value,
            from_event(
                event,
                delta=delta,
                adjacency="replace_one" if relation == "REPLACE_ONE" else "add_remove",
                # Its accountants read the same event differently under replace-one.
                noise_relative_to="sensitivity" if kind == "rdp" else "norm",
            ),
        )
    raise ValueError(
        "theirs: must be of opacus, opake, jax_privacy or dp_accounting, "
        f"is {type(theirs).__name__}"
    )


def _known(theirs: Any, method: str, delta: float) -> float:
    if isinstance(theirs, Mapping):
        raise ValueError("epsilon: must be given with a recorded history")
    return float(getattr(theirs, method)(delta))


def _by_dp_accounting(
    event: Any, accountant: Any, delta: float, *, computed: bool
) -> tuple[float, str]:
    from dp_accounting import NeighboringRelation, pld

    kind = "rdp" if "Rdp" in type(accountant).__name__ else "pld"
    if not computed:
        return math.nan, kind
    if accountant is None:
        accountant = pld.PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        if "Truncated" in repr(event):
            accountant = pld.PLDAccountant(NeighboringRelation.REPLACE_SPECIAL)
    fresh = copy.deepcopy(accountant)
    if "NoOp" in repr(fresh.ledger):  # of a plan: it has composed nothing yet
        fresh.compose(event)
    return float(fresh.get_epsilon(delta)), kind


def _tool(distribution: str) -> str:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution


def _differences(
    found: _Theirs, ours: p.Privacy, delta: float, epsilon_delta: float | None
) -> list[str]:
    """Returns in what the two guarantees are not of the same thing."""
    reasons = []
    if epsilon_delta is not None and epsilon_delta != delta:
        reasons.append(f"Theirs is at δ = {epsilon_delta:g}, ours at δ = {delta:g}.")
    if ours.adjacency != found.privacy.adjacency:
        reasons.append(
            f"Theirs is for {found.privacy.adjacency} adjacency, ours for {ours.adjacency}; "
            "an exchanged record moves a sum by up to twice the clipping norm."
        )
    theirs, run = (_samplers(x.mechanism) for x in (found.privacy, ours))
    if theirs != run:
        reasons.append(
            f"Theirs is for {', '.join(sorted(theirs))}, training ran {', '.join(sorted(run))}: "
            "their ε does not hold for it."
        )
    elif ours.adjacency == found.privacy.adjacency and found.privacy.mechanism != ours.mechanism:
        reasons.append("Theirs is for other settings than training ran.")
    return reasons


def _under(m: p.Mechanism, adjacency: p.Adjacency) -> p.Mechanism:
    """Returns the same training under the other adjacency.

    A noise multiplier is relative to the sensitivity: the clipping norm where a record is added or
    removed, and twice the norm where one is exchanged. The noise itself stays.
    """
    factor = 2.0 if adjacency == "replace_one" else 0.5
    if isinstance(m, p.Composition):
        return p.Composition(
            tuple(replace(part, mechanism=_under(part.mechanism, adjacency)) for part in m.parts)
        )
    if isinstance(m, (p.DpSgd, p.RandomAllocation)) and not isinstance(m.noise_multiplier, str):
        return replace(m, noise_multiplier=m.noise_multiplier / factor)
    if isinstance(m, p.DpFtrl):  # its multiplier is relative to the norm under both
        return m
    if isinstance(m, p.Gaussian) and not isinstance(m.sensitivity, str):
        return replace(m, sensitivity=m.sensitivity * factor)
    raise ValueError(f"adjacency: {type(m).__name__} is not known under {adjacency}")


def _samplers(m: p.Mechanism) -> set[str]:
    if isinstance(m, p.Composition):
        return set().union(*(_samplers(part.mechanism) for part in m.parts))
    if isinstance(m, p.DpSgd):
        truncated = "truncated " if m.physical_batch_size is not None else ""
        return {f"{truncated}{m.sampling.replace('_', ' ')} lots"}
    return {"random allocation lots" if isinstance(m, p.RandomAllocation) else type(m).__name__}


def _sizes(found: _Theirs, value: float, ours: Guarantee) -> list[str]:
    """Returns why an accountant can give this number."""
    if found.accountant == "gdp":
        return ["Their number is the limit of the central limit theorem for many steps, no bound."]
    lower = ours.epsilon_lower
    if value < ours.epsilon:
        if lower is not None and value < lower:
            return [
                f"Theirs is below {lower:.5g}, a lower bound of the true ε: it is no guarantee."
            ]
        return ["Ours is the looser one: both are upper bounds."]
    if found.accountant == "rdp":
        return [
            "Rényi divergences at some orders bound the tail of the privacy loss from above; ours "
            f"({ours.accountant}) follows its whole distribution."
        ]
    if found.accountant == "prv":
        return [
            "The PRV accountant adds its numerical error, by default 0.01 and more for large ε."
        ]
    if "truncated poisson lots" in _samplers(found.privacy.mechanism):
        return [
            "Theirs truncates lots under an add/remove adjacency for each number of records, ours "
            "under zero-out with a public number."
        ]
    return [
        "Both are upper bounds, theirs the looser one; rounding privacy losses up to a grid is the "
        "usual cause."
    ]
