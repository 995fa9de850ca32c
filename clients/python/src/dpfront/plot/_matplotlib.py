"""Draws with matplotlib."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from dpfront.plot._shapes import Chart, Map, Panel, Parallel, Series

STYLES: dict[str, dict[str, Any]] = {
    "front": {"color": "C0", "zorder": 3, "ms": 4.5},
    "behind": {"color": "0.6", "zorder": 1, "ms": 2.5, "alpha": 0.6},
    "each": {"zorder": 2, "ms": 3},
}


def chart(what: Chart, ax: Any = None) -> Any:
    """Returns the axes of the picture, or of its first panel."""
    count = len(what.panels)
    if ax is not None:
        if count > 1:
            raise ValueError(f"ax: the picture has {count} panels")
        _panel(what.panels[0], ax)
        ax.set_title(_plain("\n".join([what.title, *_wrapped(what.note, ax.figure)])), fontsize=8)
        return ax
    columns = 2 if count == 4 else min(count, 3)
    rows = math.ceil(count / columns)
    size = (6.5, 4.5) if count == 1 else (4.6 * columns, 4.2 * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for panel, each in zip(what.panels, grid.flat, strict=False):
        _panel(panel, each)
    for empty in grid.flat[count:]:
        empty.remove()
    _titles(figure, what.title, what.note)
    return grid[0, 0]


def _titles(figure: Any, title: str, note: str) -> None:
    figure.suptitle(_plain(title))
    if note:
        figure.supxlabel(_plain("\n".join(_wrapped(note, figure))), fontsize=8)


def _wrapped(note: str, figure: Any) -> list[str]:
    """Returns the lines of a note that fit into the width of a figure."""
    width = int(13 * figure.get_figwidth())
    return [part for line in note.splitlines() for part in textwrap.wrap(line, width)]


def _panel(panel: Panel, ax: Any) -> None:
    for k, series in enumerate(panel.series):
        if series.role == "each":
            color = plt.get_cmap("viridis")(k / max(len(panel.series) - 1, 1))
            _series(series, ax, color=color, marker="o")
        else:
            _series(series, ax)
    _axes(panel, ax)
    ax.grid(alpha=0.3)
    each = sum(series.role == "each" for series in panel.series)
    if each:
        ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), ncols=1 + each // 20)
    elif any(series.label for series in panel.series):
        ax.legend(fontsize=8)


def _axes(panel: Panel, ax: Any) -> None:
    ax.set(xlabel=_plain(panel.x_label), ylabel=_plain(panel.y_label))
    if panel.x_log:
        ax.set_xscale("log")
    if panel.y_log:
        ax.set_yscale("log")
    if panel.x_ticks:
        ax.set_xticks(range(len(panel.x_ticks)), [_plain(text) for text in panel.x_ticks])
    if panel.y_ticks:
        ax.set_yticks(range(len(panel.y_ticks)), [_plain(text) for text in panel.y_ticks])


def contour(what: Map, ax: Any = None) -> Any:
    """Returns the axes with filled contours."""
    if ax is None:
        figure, ax = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
        _titles(figure, what.title, what.note)
    else:
        title = "\n".join([what.title, *_wrapped(what.note, ax.figure)])
        ax.set_title(_plain(title), fontsize=8)
    filled = ax.contourf(what.x, what.y, what.values, levels=12)
    _axes(what.panel, ax)
    ax.figure.colorbar(filled, ax=ax, label=_plain(what.label))
    return ax


def _series(s: Series, ax: Any, **more: Any) -> None:
    how = {**STYLES[s.role], **more, "label": _plain(s.label) or None}
    if s.line:
        ax.plot(s.x, s.y, lw=1.5, **how)
        if s.band:
            low, high = zip(*s.band, strict=True)
            ax.fill_between(s.x, low, high, alpha=0.25, lw=0, color=how.get("color"))
        return
    ax.plot(s.x, s.y, "o", **how)
    for name, ends, values in (("xerr", s.x_interval, s.x), ("yerr", s.y_interval, s.y)):
        if ends:
            gaps = [[v - low for (low, _), v in zip(ends, values, strict=True)]]
            gaps.append([high - v for (_, high), v in zip(ends, values, strict=True)])
            gaps = [[max(g, 0.0) for g in row] for row in gaps]
            ax.errorbar(s.x, s.y, fmt="none", elinewidth=0.8, **{name: gaps}, ecolor="C0")


def parallel(what: Parallel) -> Any:
    """Returns the axes, on which every vertical line has the scale of one of the data."""
    longest = max(len(axis.label) for axis in what.axes)
    width = max(6.5, len(what.axes) * max(1.1, 0.09 * longest))
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
                ha="right", va="center", fontsize=8, zorder=4,
                bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
            )  # fmt: skip
    ax.set_xticks(places, [_plain(axis.label) for axis in what.axes])
    ax.set_yticks([])
    ax.set_xlim(-0.4, len(what.axes) - 0.8)
    for side in ax.spines.values():
        side.set_visible(False)
    _titles(figure, f"{what.title}; thick: the front", what.note)
    bar = figure.colorbar(colors, ax=ax, label=_plain(scale.label))
    bar.set_ticks([at for at, _ in scale.ticks], labels=[_plain(text) for _, text in scale.ticks])
    return ax


def _plain(text: str) -> str:
    """Keeps a dollar sign from starting a formula."""
    return text.replace("$", r"\$")
