"""Histories of the accountants of Opacus and opake, and JAX-Privacy's plans, in and out.

    privacy = from_opacus(privacy_engine.accountant.history, delta=1e-5)
    history = to_opacus(privacy)

`dpfront.check` compares their ε with ours. ``to_`` functions need dp_accounting, nothing else needs
the other packages: objects are read by their attributes, and opake's also as its ``state_dict``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpfront import privacy as p

__all__ = [
    "from_jax_privacy",
    "from_opacus",
    "from_opake",
    "to_jax_privacy",
    "to_opacus",
    "to_opake",
]

History = Sequence[tuple[float, float, int]]
"""Noise multiplier, sampling probability and number of steps of each part of a training."""


def from_opacus(
    history: History, *, delta: float, accountant: p.Accountant = "tightest"
) -> p.Privacy:
    """Returns the guarantee of a history of Opacus: Poisson samples, add/remove adjacency.

    Raises:
        ValueError: There is no step, or one has no noise.
    """
    parts: Counter[p.Mechanism] = Counter()
    for sigma, q, steps in history:
        if not sigma > 0 or not 0 < q <= 1:
            raise ValueError(f"history: noise {sigma} with probability {q} is not private")
        parts[_poisson(sigma, q)] += int(steps)
    return _privacy(parts, delta, accountant)


def to_opacus(privacy: p.Privacy, **params: Any) -> list[tuple[float, float, int]]:
    """Returns the history of a mechanism for an accountant of Opacus.

    Keyword arguments are the values of the parameters in its expressions.

    Raises:
        ValueError: It is not of Poisson samples and Gaussian noise under "add_remove".
    """
    if privacy.adjacency != "add_remove":
        raise ValueError(f'adjacency: Opacus has "add_remove" only, is {privacy.adjacency!r}')
    return _history(privacy, params)


def from_opake(process: Any, *, delta: float, accountant: p.Accountant = "tightest") -> p.Privacy:
    """Returns the guarantee of an ``Accountant`` or process of opake, or of its ``state_dict``.

    Imported are Gaussian, Poisson, also truncated, KOutOfT, Repeated, Composed and Identity.

    Raises:
        ValueError: A part has no counterpart.
    """
    parts: Counter[p.Mechanism] = Counter()
    _collect(_field(process, "process") or process, 1, parts)
    return _privacy(parts, delta, accountant)


def to_opake(privacy: p.Privacy, **params: Any) -> dict[str, Any]:
    """Returns a mechanism as the ``state_dict`` of an accountant of opake.

    Raises:
        ValueError: It is not of Poisson samples and Gaussian noise under "add_remove".
    """
    if privacy.adjacency != "add_remove":
        raise ValueError(f'adjacency: opake has "add_remove" only, is {privacy.adjacency!r}')
    whole: dict[str, Any] | None = None
    for sigma, q, steps in _history(privacy, params):
        step: dict[str, Any] = {"type": "Gaussian", "noise_multiplier": sigma}
        if q < 1:
            step = {"type": "Poisson", "inner": step, "sample_rate": q}
            step |= {"truncated_batch_size": None, "dataset_size": None}
        part = {"type": "Repeated", "inner": step, "count": steps} if steps > 1 else step
        whole = part if whole is None else {"type": "Composed", "left": whole, "right": part}
    return {"process": whole}


def from_jax_privacy(
    plan: Any, *, delta: float, accountant: p.Accountant = "tightest"
) -> p.Privacy:
    """Returns the guarantee of an execution plan of JAX-Privacy 2, or of its configuration.

    It is for "add_remove" with a public number of records where the plan is for zero-out.

    Raises:
        ValueError: The plan's event has no counterpart.
    """
    from dpfront.integrations.dp_accounting import from_event

    relation = getattr(getattr(plan, "accountant", None), "neighboring_relation", None)
    adjacency: p.Adjacency = (
        "replace_one" if getattr(relation, "name", "") == "REPLACE_ONE" else "add_remove"
    )
    event = getattr(plan, "plan", plan).dp_event
    return from_event(event, delta=delta, adjacency=adjacency, accountant=accountant)


def to_jax_privacy(privacy: p.Privacy, **params: Any) -> dict[str, Any]:
    """Returns the arguments of ``BandMFExecutionPlanConfig.default`` for a mechanism.

    The plan has one band: independent noise. Its batches are Poisson samples.

    Raises:
        ValueError: It is not one Poisson-sampled DP-SGD under "add_remove".
    """
    history = _history(privacy, params)
    if len(history) != 1 or privacy.adjacency != "add_remove":
        raise ValueError('privacy: a plan is for one DP-SGD under "add_remove"')
    ((sigma, q, steps),) = history
    return {
        "num_bands": 1,
        "iterations": steps,
        "epsilon": None,
        "delta": None,
        "noise_multiplier": sigma,
        "sampling_prob": q,
    }


def _poisson(sigma: float, q: float) -> p.Mechanism:
    return p.DpSgd("poisson", None, None, float(sigma), steps=1, sampling_probability=float(q))


def _privacy(parts: Counter[p.Mechanism], delta: float, accountant: p.Accountant) -> p.Privacy:
    mechanisms = [
        p.Part(replace(m, steps=count)) if isinstance(m, p.DpSgd) else p.Part(m, count)
        for m, count in parts.items()
        if count > 0
    ]
    if not mechanisms:
        raise ValueError("history: it has no step")
    conversion: p.Conversion | None = "improved" if accountant == "rdp" else None
    whole: p.Mechanism = (
        mechanisms[0].mechanism
        if len(mechanisms) == 1 and mechanisms[0].count == 1
        else p.Composition(tuple(mechanisms))
    )
    return p.Privacy(whole, delta, "add_remove", accountant, conversion)


def _field(x: Any, name: str) -> Any:
    return x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)


def _collect(x: Any, count: int, parts: Counter[p.Mechanism]) -> None:
    """Adds the mechanisms of a process of opake that is applied a number of times."""
    kind = x["type"] if isinstance(x, Mapping) else type(x).__name__
    if kind == "Identity":
        return
    if kind == "Repeated":
        _collect(_field(x, "inner"), count * int(_field(x, "count")), parts)
    elif kind == "Composed":
        _collect(_field(x, "left"), count, parts)
        _collect(_field(x, "right"), count, parts)
    elif kind == "Gaussian":
        parts[p.Gaussian(1.0, _sigma(x))] += count
    elif kind == "Poisson":
        cap, n = _field(x, "truncated_batch_size"), _field(x, "dataset_size")
        step: Any = _poisson(_sigma(_field(x, "inner")), _field(x, "sample_rate"))
        if cap is not None:
            step = replace(step, dataset_size=n, physical_batch_size=cap)
        parts[step] += count
    elif kind == "KOutOfT":
        parts[_allocation(x)] += count
    else:
        raise ValueError(f"{kind} of opake has no counterpart among the mechanisms of this package")


def _sigma(x: Any) -> float:
    kind = x["type"] if isinstance(x, Mapping) else type(x).__name__
    if kind != "Gaussian" or not _field(x, "noise_multiplier") > 0:
        raise ValueError(f"{kind} of opake has no counterpart: only Gaussian noise has")
    return float(_field(x, "noise_multiplier"))


def _allocation(x: Any) -> p.RandomAllocation:
    """In blocks, each record takes part in one step of each of k blocks, as of k epochs."""
    k, t, sigma = _field(x, "k"), _field(x, "n_steps"), _sigma(_field(x, "inner"))
    if _field(x, "allocation") == "block":
        if t % k:
            raise ValueError(f"KOutOfT: blocks of {t} / {k} steps are not equal")
        return p.RandomAllocation(t // k, sigma, k)
    return p.RandomAllocation(t, sigma, 1, picks=k)


def _history(privacy: p.Privacy, params: Mapping[str, Any]) -> list[tuple[float, float, int]]:
    """Returns the steps of the event of a mechanism."""
    from dp_accounting import dp_event as dp

    from dpfront.integrations.dp_accounting import to_event

    if isinstance(privacy.mechanism, p.DpSgd) and privacy.mechanism.sampling == "shuffled":
        raise ValueError("DpSgd: shuffled lots are not Poisson samples")
    found: list[tuple[float, float, int]] = []

    def walk(event: Any, count: int) -> None:
        if isinstance(event, dp.ComposedDpEvent):
            for inner in event.events:
                walk(inner, count)
        elif isinstance(event, dp.SelfComposedDpEvent):
            walk(event.event, count * event.count)
        elif isinstance(event, dp.GaussianDpEvent):
            found.append((event.noise_multiplier, 1.0, count))
        elif isinstance(event, dp.PoissonSampledDpEvent) and isinstance(
            event.event, dp.GaussianDpEvent
        ):
            found.append((event.event.noise_multiplier, event.sampling_probability, count))
        else:
            raise ValueError(f"{type(event).__name__}: only Poisson samples with Gaussian noise")

    walk(to_event(privacy, **params), 1)
    if not all(math.isfinite(sigma) and sigma > 0 for sigma, _, _ in found):
        raise ValueError("noise_multiplier: must be positive and finite")
    return found
