"""Pictures of a study: its front, history, configurations, learning curves, ε and analyses.

`Study.plot_front` and its siblings read what they need and call these functions, which take
results of either client:

    front, trials = await study.front(), await study.trials()
    dpfront.plot.front(front, trials, backend="plotly")

``backend`` is "matplotlib" (`pip install "dpfront[matplotlib]"`), which returns an Axes, or
"plotly" (`pip install "dpfront[plotly]"`), which returns a Figure. Of a picture with several
panels it is the first Axes, and ``ax.figure.axes`` has all. Every ε in a picture comes with its
δ, adjacency, accountant and coverage.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Literal

from dpfront._results.analyses import Contour, Importance, Slices, Validation
from dpfront._results.fronts import Front, HypervolumePoint
from dpfront._results.guarantees import EpsilonCurve, Tradeoff
from dpfront._results.trials import StudyInfo, TrialInfo
from dpfront.audit import LowerBound
from dpfront.plot import _data as data
from dpfront.plot import _shapes as shapes

__all__ = [
    "Backend",
    "contour",
    "epsilon_over_epochs",
    "fit",
    "front",
    "history",
    "importance",
    "learning_curves",
    "parallel_coordinates",
    "slices",
    "tradeoff",
]

Backend = Literal["matplotlib", "plotly"]
"""The library that draws."""


def front(
    front: Front,
    trials: Sequence[TrialInfo] = (),
    *,
    backend: Backend = "matplotlib",
    ax: Any = None,
) -> Any:
    """Draws a front over the results of trials.

    Two objectives give a staircase, with 90 % intervals of a posterior front; more give a
    picture for every pair. An ε is on a horizontal, logarithmic axis. Points that are not
    better than the reference values are left out.

    Args:
        front: The front.
        trials: Trials whose results are drawn behind it.
        backend: What draws.
        ax: Axes of matplotlib to draw on, for two objectives.
    """
    return _draw(data.front(front, trials), backend, ax)


def history(
    info: StudyInfo,
    hypervolumes: Sequence[HypervolumePoint],
    trials: Sequence[TrialInfo],
    *,
    kind: str = "observed",
    backend: Backend = "matplotlib",
) -> Any:
    """Draws how a study went: the hypervolume over completed trials, and every objective over
    the numbers of trials, with the best so far.

    ``kind`` is the kind of front that the hypervolumes measure.
    """
    return _draw(data.history(info, hypervolumes, trials, kind), backend)


def parallel_coordinates(
    info: StudyInfo,
    front: Front,
    trials: Sequence[TrialInfo],
    *,
    color: str = "",
    backend: Backend = "matplotlib",
) -> Any:
    """Draws every configuration as a line through its parameters and objectives.

    The front is highlighted: with matplotlib by thick lines; with Plotly by a selection on the
    last axis, which a click removes. ``color`` is the objective that gives the colour, by
    default the first one. Trials without a finite value of every objective are left out.
    """
    return _draw(data.parallel(info, front, trials, color), backend)


def learning_curves(
    info: StudyInfo,
    front: Front,
    trials: Sequence[TrialInfo],
    *,
    metric: str = "",
    backend: Backend = "matplotlib",
    ax: Any = None,
) -> Any:
    """Draws a metric over the steps of runs, and highlights trials on the front.

    ``metric`` is by default the first objective that workers report.
    """
    return _draw(data.learning_curves(info, front, trials, metric), backend, ax)


def epsilon_over_epochs(
    curves: Sequence[EpsilonCurve], *, backend: Backend = "matplotlib", ax: Any = None
) -> Any:
    """Draws how ε grows during runs, as `Study.epsilon_curves` computes it."""
    return _draw(data.epsilon_over_epochs(curves), backend, ax)


def tradeoff(
    curve: Tradeoff,
    *,
    audit: LowerBound | None = None,
    backend: Backend = "matplotlib",
    ax: Any = None,
) -> Any:
    """Draws the best attack on one record beside guessing, as `Study.tradeoff` computes it.

    ``audit`` adds what an audit has shown (`dpfront.audit`): the curve of its ε, which the true one
    reaches somewhere, and the rates of its attack if it has them.
    """
    return _draw(data.tradeoff(curve, audit), backend, ax)


def fit(info: StudyInfo, validation: Validation, *, backend: Backend = "matplotlib") -> Any:
    """Draws what the model predicts for every configuration without its runs over what they
    measured, with 90 % intervals: a picture for every measured objective.

    A model that predicts well has nine of ten intervals on the diagonal.
    """
    return _draw(data.fit(info, validation), backend)


def importance(found: Importance, *, backend: Backend = "matplotlib", ax: Any = None) -> Any:
    """Draws the importance of the parameters, a picture for each objective: the share of its
    variance that a parameter explains by itself and in total, with 90 % intervals.
    """
    return _draw(data.importance(found), backend, ax)


def slices(
    info: StudyInfo,
    found: Slices,
    *,
    parameters: Sequence[str] = (),
    metric: str = "",
    backend: Backend = "matplotlib",
    ax: Any = None,
) -> Any:
    """Draws objectives along parameters, a picture for each of both, with bands of 90 %.

    Without ``parameters`` all are drawn, without ``metric`` all objectives.
    """
    return _draw(data.slices(info, found, parameters, metric), backend, ax)


def contour(
    info: StudyInfo, found: Contour, *, backend: Backend = "matplotlib", ax: Any = None
) -> Any:
    """Draws the median of an objective over two parameters."""
    return _draw(data.contour(info, found), backend, ax)


def _draw(what: shapes.Chart | shapes.Parallel | shapes.Map, backend: str, ax: Any = None) -> Any:
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"backend: {backend!r} is not one of matplotlib, plotly")
    if ax is not None and backend == "plotly":
        raise ValueError("ax: belongs to matplotlib, but the backend is plotly")
    try:
        renderer = importlib.import_module(f"dpfront.plot._{backend}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != backend:
            raise
        hint = f'pip install "dpfront[{backend}]"'
        raise ImportError(f"a picture takes {backend}: {hint}", name=backend) from None
    if isinstance(what, shapes.Parallel):
        return renderer.parallel(what)
    if isinstance(what, shapes.Map):
        return renderer.contour(what, ax) if backend == "matplotlib" else renderer.contour(what)
    return renderer.chart(what, ax) if backend == "matplotlib" else renderer.chart(what)
