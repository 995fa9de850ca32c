"""The shapes of pictures, which every plotting library draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["front", "behind", "each"]


@dataclass(frozen=True)
class Series:
    """Points, or the corners of a line."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    label: str = ""
    """In the legend; empty for none."""
    role: Role = "front"
    """The front or best, what is behind it, or one of several of equal rank."""
    line: bool = False
    x_interval: tuple[tuple[float, float], ...] = ()
    """Lower and upper end at every point, or none at all."""
    y_interval: tuple[tuple[float, float], ...] = ()
    hover: tuple[str, ...] = ()
    """What each point is."""
    band: tuple[tuple[float, float], ...] = ()
    """Lower and upper end of an area around a line at every corner, or none at all."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    x_ticks: tuple[str, ...] = ()
    """Names of the places 0, 1, ... of an axis without numbers."""
    y_ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A picture of one or several panels."""

    title: str
    panels: tuple[Panel, ...]
    note: str = ""
    """What every ε in it says."""


@dataclass(frozen=True)
class Map:
    """A picture of values over two axes."""

    title: str
    panel: Panel
    """The axes, without series."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    """A row for each y; NaN for none."""
    label: str
    """Of the values."""
    note: str


@dataclass(frozen=True)
class Axis:
    """An axis of parallel coordinates, on which categories and logarithms are positions."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Parallel:
    """A picture of configurations as lines through several axes."""

    title: str
    note: str
    axes: tuple[Axis, ...]
    color: int
    """Index of the axis that gives the colour."""
    lines: tuple[tuple[float, ...], ...]
    """A position on every axis."""
    on_front: tuple[bool, ...]
