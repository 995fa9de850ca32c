"""Plots of fronts. They need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpfront.results import Front, TrialInfo

__all__ = ["plot_front"]


def plot_front(front: Front, trials: Sequence[TrialInfo] = (), *, ax: Any = None) -> Any:
    """Draws a front of two objectives as a staircase, over the results of trials.

    ε is on the horizontal axis, on a logarithmic scale, or else the first objective.
    Points beyond the reference values are left out. Returns the axes.
    """
    if len(front.objectives) != 2:
        raise ValueError(f"the study has {len(front.objectives)} objectives instead of two")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 4), layout="constrained")[1]
    x, y = front.objectives
    if any(p.guarantee is not None for p in front) and _is_epsilon(front, y):
        x, y = y, x
    points = [p for p in front if not p.beyond_reference]
    measured = [t.metrics for t in trials if x in t.metrics and y in t.metrics]
    if measured:
        ax.scatter(
            [m[x] for m in measured],
            [m[y] for m in measured],
            s=12, color="0.7", label=f"trials ({len(measured)})", zorder=1,
        )  # fmt: skip
    if points:
        points.sort(key=lambda p: p.values[x].value)
        if not front.minimize[x]:
            points.reverse()
        xs = [p.values[x].value for p in points]
        ys = [p.values[y].value for p in points]
        # A value reached at x is also reached at everything worse in x, up to the reference.
        ax.step([*xs, front.reference[x]], [*ys, ys[-1]], where="post", color="C0", zorder=2)
        lower = [_gap(p.values[y].value, p.values[y].lower) for p in points]
        upper = [_gap(p.values[y].value, p.values[y].upper) for p in points]
        ax.errorbar(
            xs, ys, yerr=[lower, upper] if any(lower + upper) else None,
            fmt="o", ms=4, lw=0.8, color="C0", label=f"{front.kind} front", zorder=3,
        )  # fmt: skip
    if _is_epsilon(front, x):
        ax.set_xscale("log")
        ax.set_xlabel(f"{x} (ε of one run)")
    else:
        ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.3)
    if measured or points:
        ax.legend()
    return ax


def _is_epsilon(front: Front, id: str) -> bool:
    """Whether an objective is the ε of the points' guarantees."""
    return any(p.guarantee is not None and p.guarantee.epsilon == p.values[id].value for p in front)


def _gap(value: float, end: float | None) -> float:
    return 0.0 if end is None else abs(end - value)
