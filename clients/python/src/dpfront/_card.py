"""How results are shown: as text, and as HTML in notebooks."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Scalar = int | float | str


@dataclass(frozen=True)
class Card:
    """What is shown of an object."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    """Names and values. Names of parameters can equal others."""
    rows: Sequence[Mapping[str, Scalar]] = ()
    notes: Sequence[str] = ()
    """What a reader must know, a sentence each."""
    page: str | None = None
    """URL of more about it, for a browser."""

    def text(self) -> str:
        """Returns it for a terminal."""
        facts = (f"{name}: {value}" for name, value in self.facts)
        lines = [" ".join(line.splitlines()) for line in (self.title, *facts, *self.notes)]
        return "\n".join([*lines, "", table(self.rows)] if self.rows else lines)

    def html(self) -> str:
        """Returns it for a notebook: it takes colours and fonts from there."""
        parts = [f"<p><b>{escape(self.title)}</b></p>"]
        if self.facts:
            cells = (
                f'<tr><th style="text-align:left">{escape(name)}</th>'
                f'<td style="text-align:left">{escape(value)}</td></tr>'
                for name, value in self.facts
            )
            parts.append(f"<table>{''.join(cells)}</table>")
        if self.rows:
            head, *rows = cells_of(self.rows)
            heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            body = "".join(
                f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
            )
            parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<p><small>{escape(note)}</small></p>" for note in self.notes]
        if self.page:
            link = f'<a href="{escape(self.page)}" target="_blank" rel="noopener">'
            parts.append(f"<p>{link}see it live</a></p>")
        return f'<div style="overflow-x:auto">{"".join(parts)}</div>'


class Shown:
    """An object that is printed as its card."""

    def _card(self) -> Card:
        raise NotImplementedError

    def __str__(self) -> str:
        return self._card().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._card().html()


def cells_of(rows: Sequence[Mapping[str, Scalar]]) -> list[list[str]]:
    """Returns the names of columns, in the order in which they appear, and the cells below."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([number(row.get(name, "")) for name in names] for row in rows)]


def table(rows: Sequence[Mapping[str, Scalar]]) -> str:
    """Returns rows in columns."""
    lines = cells_of(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
        if line
    )


def number(value: Scalar) -> str:
    """Returns four digits of a float, and everything else in full."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def up(value: float, rounding: str = decimal.ROUND_CEILING) -> str:
    """Returns four digits, rounded up: a bound must not shrink on its way to a reader."""
    digits = decimal.Context(prec=4, rounding=rounding)
    return f"{float(digits.create_decimal(repr(value))):.4g}"


ONE_RUN = "one run, not the search"
SEEDED = "SEEDED"
PUBLIC_SIZE = " with a public number of records (zero-out)"


def terms(delta: float, adjacency: str, accountant: str, *, public_size: bool = False) -> str:
    """Returns δ, adjacency and accountant, without which an ε means nothing."""
    size = PUBLIC_SIZE if public_size and adjacency == "add_remove" else ""
    return f"δ = {up(delta)}, {adjacency} adjacency{size}, {accountant} accountant"


def said(epsilons: Mapping[str, str]) -> list[str]:
    """Returns what metrics that are ε mean, a sentence each."""
    return [f"{key}: {said}" for key, said in epsilons.items()]
