"""Draws with matplotlib."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from dpfront.plot._data import Chart, Panel, Parallel, Series

MOST_IN_LEGEND = 12

STYLES: dict[str, dict[str, Any]] = {
    "front": {"color": "C0", "zorder": 3},
    "behind": {"color": "0.6", "zorder": 1, "alpha": 0.7},
    "each": {"zorder": 2},
}


def chart(what: Chart, ax: Any = None) -> Any:
    """Returns the axes of a panel, or an array of those of several, three in a row."""
    count = len(what.panels)
    if ax is not None:
        if count > 1:
            raise ValueError(f"ax: the picture has {count} panels")
        axes = [ax]
    else:
        columns = min(count, 3)
        rows = math.ceil(count / columns)
        size = (6.5, 4.5) if count == 1 else (4.6 * columns, 4.2 * rows)
        figure, grid = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False
        )
        axes = list(grid.flat)
        for empty in axes[count:]:
            empty.remove()
        if count > 1:
            figure.suptitle(_plain(what.title))
        else:
            axes[0].set_title(_plain(what.title))
    for panel, each in zip(what.panels, axes, strict=False):
        _panel(panel, each)
    return axes[0] if count == 1 else grid


def _panel(panel: Panel, ax: Any) -> None:
    for series in panel.series:
        _series(series, ax)
    if panel.x_log:
        ax.set_xscale("log")
    if panel.y_log:
        ax.set_yscale("log")
    for axis, label in ((ax.xaxis, panel.x_label), (ax.yaxis, panel.y_label)):
        small = 8 if "\n" in label else 10
        axis.set_label_text(_plain(label), fontsize=small)
    ax.grid(alpha=0.3)
    labels = [s for s in panel.series if s.label]
    if labels and len(labels) <= MOST_IN_LEGEND:
        ax.legend(fontsize=8)


def _series(s: Series, ax: Any) -> None:
    style = STYLES[s.role]
    label = _plain(s.label) or None
    if s.line:
        ax.plot(s.x, s.y, lw=1.5, label=label, **style)
        return
    ax.plot(s.x, s.y, "o", ms=3 if s.role == "behind" else 4.5, label=label, **style)
    for name, ends, values in (("xerr", s.x_interval, s.x), ("yerr", s.y_interval, s.y)):
        if ends:
            gaps = [[v - low for (low, _), v in zip(ends, values, strict=True)]]
            gaps.append([high - v for (_, high), v in zip(ends, values, strict=True)])
            gaps = [[max(g, 0.0) for g in row] for row in gaps]
            ax.errorbar(s.x, s.y, fmt="none", elinewidth=0.8, **{name: gaps}, ecolor="C0")


def parallel(what: Parallel) -> Any:
    """Returns the axes, on which every vertical line has the scale of one of the data."""
    width = max(6.5, 1.5 * len(what.axes))
    figure, ax = plt.subplots(figsize=(width, 4.8), layout="constrained")
    scale = what.axes[what.color]
    colors: Any = ScalarMappable(Normalize(scale.low, scale.high), "viridis")
    places = range(len(what.axes))
    for line, on_front in zip(what.lines, what.on_front, strict=True):
        heights = [
            (v - axis.low) / (axis.high - axis.low) for v, axis in zip(line, what.axes, strict=True)
        ]
        emphasis: dict[str, Any] = (
            {"lw": 2.2, "zorder": 2} if on_front else {"lw": 0.8, "alpha": 0.35}
        )
        ax.plot(places, heights, color=colors.to_rgba(line[what.color]), **emphasis)
    for place, axis in zip(places, what.axes, strict=True):
        ax.axvline(place, color="0.4", lw=0.8, zorder=0)
        for at, text in axis.ticks:
            height = (at - axis.low) / (axis.high - axis.low)
            ax.annotate(
                _plain(text), (place, height), (-3, 0), textcoords="offset points",
                ha="right", va="center", fontsize=7, zorder=4,
                bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.6},
            )  # fmt: skip
    ax.set_xticks(places, [_plain(axis.label) for axis in what.axes])
    if sum(len(axis.label) for axis in what.axes) > 9 * len(what.axes):
        ax.tick_params(axis="x", rotation=20)
    ax.set_yticks([])
    ax.set_xlim(-0.4, len(what.axes) - 0.8)
    for side in ax.spines.values():
        side.set_visible(False)
    title, _, terms = what.title.partition("\n")
    figure.suptitle(_plain(title))
    ax.set_title(_plain(terms), fontsize=8)
    bar = figure.colorbar(colors, ax=ax, label=_plain(scale.label))
    bar.set_ticks([at for at, _ in scale.ticks], labels=[_plain(text) for _, text in scale.ticks])
    return ax


def _plain(text: str) -> str:
    """Keeps a dollar sign from starting a formula."""
    return text.replace("$", r"\$")
