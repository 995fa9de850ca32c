"""What a worker reports for a metric when it is not a plain number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Runs:
    """The values of a metric in several independent runs of one configuration.

    ``trial.tell(accuracy=Runs([0.81, 0.79, 0.8]))`` in a study with ``replicates=3``: the server
    keeps every value, and derives their mean and its standard error.

    Args:
        values: One finite number of each run, in any order: a list, or an array of numpy,
            PyTorch or pandas with one dimension.
    """

    values: tuple[float, ...]

    def __init__(self, values: Iterable[float]) -> None:
        plain = values.tolist() if hasattr(values, "tolist") else values
        if isinstance(plain, (str, bytes)) or not isinstance(plain, Iterable):
            raise TypeError(f"Runs: {values!r} is not a list of numbers")
        object.__setattr__(self, "values", tuple(plain))
        if not self.values:
            raise ValueError("Runs: the list is empty")


@dataclass(frozen=True)
class Mean:
    """A mean of a metric whose standard error is known, such as one over repeated runs that were
    not kept.

    ``Mean(0.8, 0)`` is a value without noise: another run would give the same.
    """

    value: float
    """The mean, finite."""
    standard_error: float
    """Standard error of the mean over fresh runs, in the unit of the metric; finite, at least 0."""
