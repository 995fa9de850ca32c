"""Draws with Plotly."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots

from dpfront.plot._shapes import Chart, Map, Panel, Parallel, Series

COLORS = {"front": "#1f77b4", "behind": "rgba(128,128,128,0.6)"}


def chart(what: Chart) -> Any:
    """Returns a figure of all panels, three in a row."""
    columns = 2 if len(what.panels) == 4 else min(len(what.panels), 3)
    rows = math.ceil(len(what.panels) / columns)
    figure = make_subplots(rows, columns, horizontal_spacing=0.09, vertical_spacing=0.35 / rows)
    seen = {""}
    for k, panel in enumerate(what.panels):
        row, column = k // columns + 1, k % columns + 1
        for j, series in enumerate(panel.series):
            if series.band:
                figure.add_trace(_band(series), row, column)
            trace = _trace(series, named=series.label not in seen)
            if series.role == "each":
                trace.line.color = sample_colorscale("Viridis", j / max(len(panel.series) - 1, 1))[
                    0
                ]
            figure.add_trace(trace, row, column)
            seen.add(series.label)
        _axes(figure, panel, row, column)
    figure.update_layout(
        title=_title(what),
        height=130 + 400 * rows,
        margin={"t": 110},
        legend={"orientation": "h", "y": -0.2 / rows},
    )
    return figure


def _axes(figure: Any, panel: Panel, row: int, column: int) -> None:
    for update, label, log, ticks in (
        (figure.update_xaxes, panel.x_label, panel.x_log, panel.x_ticks),
        (figure.update_yaxes, panel.y_label, panel.y_log, panel.y_ticks),
    ):
        update(
            title=_html(label),
            type="log" if log else "linear",
            dtick="D2" if log else None,
            automargin=True,
            tickvals=list(range(len(ticks))) or None,
            ticktext=[_html(text) for text in ticks] or None,
            row=row,
            col=column,
        )


def _band(s: Series) -> Any:
    """Returns the area of a band: there along its upper end and back along the lower."""
    return go.Scatter(
        x=[*s.x, *reversed(s.x)],
        y=[*(high for _, high in s.band), *(low for low, _ in reversed(s.band))],
        fill="toself",
        fillcolor="rgba(31,119,180,0.25)",
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
    )


def contour(what: Map) -> Any:
    """Returns a figure with filled contours."""
    figure = make_subplots(1, 1)
    figure.add_trace(
        go.Contour(
            x=what.x,
            y=what.y,
            z=[[None if math.isnan(v) else v for v in row] for row in what.values],
            colorscale="Viridis",
            colorbar={"title": {"text": _html(what.label)}},
        ),
        1,
        1,
    )
    _axes(figure, what.panel, 1, 1)
    figure.update_layout(title=_title(what), height=530, margin={"t": 110})
    return figure


def _trace(s: Series, *, named: bool) -> Any:
    """Returns a series; named is whether it stands in the legend, where each label stands once."""
    color = COLORS.get(s.role)
    return go.Scatter(
        x=s.x,
        y=s.y,
        mode="lines+markers" if s.role == "each" else "lines" if s.line else "markers",
        name=_html(s.label),
        showlegend=named,
        line={"color": color} if s.line else None,
        marker={"color": color, "size": 5 if s.role == "behind" else 8},
        error_x=_interval(s.x, s.x_interval),
        error_y=_interval(s.y, s.y_interval),
        hovertext=[_html(text) for text in s.hover] or None,
        hoverinfo="text+x+y" if s.hover else "x+y",
    )


def _interval(values: tuple[float, ...], ends: tuple[tuple[float, float], ...]) -> Any:
    if not ends:
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - v for (_, high), v in zip(ends, values, strict=True)],
        "arrayminus": [v - low for (low, _), v in zip(ends, values, strict=True)],
        "thickness": 1,
    }


def parallel(what: Parallel) -> Any:
    """Returns parallel coordinates. The last axis selects the front until it is clicked."""
    dimensions: list[dict[str, Any]] = [
        {
            "label": _html(axis.label),
            "range": [axis.low, axis.high],
            "tickvals": [at for at, _ in axis.ticks],
            "ticktext": [_html(text) for _, text in axis.ticks],
            "values": [line[k] for line in what.lines],
        }
        for k, axis in enumerate(what.axes)
    ]
    dimensions.append(
        {
            "label": "on the front",
            "range": [0, 1],
            "tickvals": [0, 1],
            "ticktext": ["no", "yes"],
            "values": [int(x) for x in what.on_front],
            "constraintrange": [0.9, 1],
        }
    )
    scale = what.axes[what.color]
    line = {
        "color": [line[what.color] for line in what.lines],
        "cmin": scale.low,
        "cmax": scale.high,
        "colorscale": "Viridis",
        "showscale": True,
        "colorbar": {
            "title": {"text": _html(scale.label)},
            "tickvals": [at for at, _ in scale.ticks],
            "ticktext": [_html(text) for _, text in scale.ticks],
        },
    }
    figure = go.Figure(go.Parcoords(dimensions=dimensions, line=line))
    figure.update_layout(title=_title(what), margin={"t": 150})
    return figure


def _title(what: Chart | Map | Parallel) -> dict[str, Any]:
    """Returns the title with the note below it, at the top of a margin of 110 pixels."""
    lines = [part for line in what.note.splitlines() for part in textwrap.wrap(line, 90)]
    text = _html(what.title) + "".join(f"<br><sup>{_html(line)}</sup>" for line in lines)
    return {"text": text, "y": 0.96, "yanchor": "top"}


def _html(text: str) -> str:
    """Plotly takes some HTML in texts."""
    return escape(text).replace("\n", "<br>")
