"""Replays recorded steps of DP-SGD against what is accounted for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfront import privacy as p
from dpfront._card import Card, Shown
from dpfront.audit import _statistics as statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = Any

MOST_PAIRS = 2000
"""Number of steps, from the first, whose noises are compared with each other."""


@dataclass(frozen=True)
class Step:
    """What a training loop did in a step."""

    lot: Sequence[int]
    """Numbers of the records whose gradients it took, from 0."""
    weights: Array
    """The model before the step, as one vector."""
    released: Array
    """The noisy average of clipped gradients that moved the model, as a vector of that length."""


@dataclass(frozen=True)
class Finding:
    """A difference between training and what is accounted."""

    what: str
    """steps, lots, sampling, clipping, noise, or reused noise."""
    message: str
    p_value: float
    """Probability of such a difference, or a larger one, in a loop that is right; 0 if it cannot
    be. Of clipping and noise after another finding it can be that one's consequence."""


@dataclass(frozen=True, repr=False)
class Replay(Shown):
    """What the replay of a run has found."""

    findings: tuple[Finding, ...]
    confidence: float
    """Probability that a loop that is right has no finding."""
    steps: int
    noise_multiplier: tuple[float, float]
    """What the noise is measured to be, in units of the sensitivity: both ends of an interval of
    that confidence."""
    clipping_resolution: float
    """Share by which all clipped gradients can be too large, with even odds of a finding."""

    def __bool__(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def _card(self) -> Card:
        low, high = self.noise_multiplier
        facts = [
            ("findings", str(len(self.findings)) if self.findings else "none"),
            ("noise multiplier", f"{low:.4g} to {high:.4g}"),
            ("clipping, smallest visible excess", f"{100 * self.clipping_resolution:.2g} %"),
            ("confidence", f"{self.confidence:g}"),
        ]
        notes = [f"{f.what}: {f.message} (p = {f.p_value:.2g})" for f in self.findings]
        notes.append("A replay finds faults of these steps; it proves no guarantee.")
        return Card(f"Replay of {self.steps} steps", facts, notes=notes)


def replay(
    steps: Iterable[Step],
    gradients: Callable[[Array, Sequence[int]], Array],
    privacy: p.Privacy,
    *,
    divisor: float | None = None,
    confidence: float = 0.9999,
) -> Replay:
    """Compares recorded steps of a training loop with what is accounted for them.

    The clipped gradients of every step are computed again, by other code than the loop's. What the
    loop released beyond their average must be fresh Gaussian noise of the accounted size, and its
    lots must be such as the accounted sampler draws. The tests are for the number of steps, the
    lots, their sampler, and the length of clipped gradients. Others are for the size of the noise
    as a whole and in each coordinate, and for noise that is used twice.

    It finds faults of a few per cent in some hundred steps; ``clipping_resolution`` and
    ``noise_multiplier`` of the result have the figures. Use records whose gradients are longer than
    the clipping norm: others test no clipping. It needs NumPy.

    Args:
        steps: The steps of a run, as a loop records them or `opacus_steps`.
        gradients: Returns the gradients of records at given weights, unclipped: a row for each.
        privacy: What is accounted: `DpSgd` of numbers, with a ``clipping_norm``. Bands, users,
            truncated lots and adaptive clipping are unsupported.
        divisor: By what the loop divides noisy sums; by default the expected size of a lot.
        confidence: Probability that a loop that is right has no finding.

    Raises:
        ValueError: The mechanism is unsupported, or a step does not fit the others.
    """
    import numpy as np

    if not 0 < confidence < 1:
        raise ValueError(f"confidence: must be in (0, 1), is {confidence}")
    plan = _Plan(privacy, divisor)
    recorded = list(steps)
    if len(recorded) < 2:
        raise ValueError(f"steps: must be at least 2, are {len(recorded)}")
    tests = _Tests((1 - confidence) / 10)
    _check_lots(recorded, plan, tests)
    width = len(recorded[0].weights)
    noises = np.empty((len(recorded), width))
    along_clipped: list[float] = []
    along_excess: list[float] = []
    length = 0.0
    for k, step in enumerate(recorded):
        clipped, excess = _sums(step, gradients, plan.norm, width, k)
        noises[k] = np.asarray(step.released, dtype=float) * plan.divisor - clipped
        for direction, seen in ((clipped, along_clipped), (excess, along_excess)):
            size = float(np.linalg.norm(direction))
            if size > 0:
                seen.append(float(noises[k] @ direction) / size)
        length += float(np.linalg.norm(clipped))
    noises /= plan.deviation
    _check_clipping(along_clipped, along_excess, plan.deviation, tests)
    multiplier = _check_noise(noises, plan, tests)
    _check_reuse(noises, tests)
    count = len(along_clipped)
    threshold = statistics.normal_quantile(1 - tests.error / 2)
    return Replay(
        tuple(tests.findings),
        confidence,
        len(recorded),
        multiplier,
        threshold * plan.deviation * math.sqrt(count) / length if length else math.inf,
    )


class _Plan:
    """What is accounted, in numbers."""

    def __init__(self, privacy: p.Privacy, divisor: float | None) -> None:
        m = privacy.mechanism
        if not isinstance(m, p.DpSgd):
            raise ValueError(f"privacy: must be of DpSgd, is of {type(m).__name__}")
        for name in ("bands", "records_per_user", "physical_batch_size"):
            if getattr(m, name) is not None:
                raise ValueError(f"{name}: a replay does not support it")
        if m.clipping_count_deviation is not None:
            raise ValueError("clipping_count_deviation: a replay does not support it")
        self.sampling = m.sampling
        self.records = int(_number("dataset_size", m.dataset_size))
        self.norm = _number("clipping_norm", m.clipping_norm)
        sensitivity = self.norm * (2 if privacy.adjacency == "replace_one" else 1)
        self.noise_multiplier = _number("noise_multiplier", m.noise_multiplier)
        self.deviation = self.noise_multiplier * sensitivity
        if not self.deviation > 0:
            raise ValueError("noise_multiplier and clipping_norm: must be positive")
        n = self.records
        if m.sampling_probability is not None:
            self.probability = _number("sampling_probability", m.sampling_probability)
            self.per_epoch, batch = max(1, round(1 / self.probability)), n * self.probability
        else:
            batch = _number("batch_size", m.batch_size)
            shuffled = self.sampling == "shuffled" or m.convention == "opacus"
            self.per_epoch = math.ceil(n / batch) if shuffled else max(1, round(n / batch))
            exact = m.convention == "opacus" or self.sampling == "random_allocation"
            self.probability = 1 / self.per_epoch if exact else batch / n
        self.batch = batch
        self.divisor = divisor if divisor is not None else n * self.probability
        if not self.divisor > 0:
            raise ValueError(f"divisor: must be positive, is {self.divisor}")
        if m.epochs is None:
            self.steps = int(_number("steps", m.steps))
        elif m.convention == "tensorflow_privacy":
            self.steps = math.ceil(_number("epochs", m.epochs) * n / batch)
        else:
            self.steps = int(_number("epochs", m.epochs)) * self.per_epoch


def _number(name: str, x: p.Expression | None) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise ValueError(f"{name}: must be a number to replay a loop, is {x!r}")
    return x


class _Tests:
    """What tests have found, each at the same part of the error."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.findings: list[Finding] = []

    def add(self, what: str, message: str, p_value: float) -> None:
        if p_value <= self.error:
            self.findings.append(Finding(what, message, p_value))


def _sums(
    step: Step,
    gradients: Callable[[Array, Sequence[int]], Array],
    norm: float,
    width: int,
    k: int,
) -> tuple[Array, Array]:
    """Returns the sum of clipped gradients, and what clipping took off it."""
    import numpy as np

    for name, vector in (("weights", step.weights), ("released", step.released)):
        if len(vector) != width or not np.isfinite(vector).all():
            raise ValueError(f"steps[{k}].{name}: must be {width} finite numbers")
    if len(step.lot) == 0:
        return np.zeros(width), np.zeros(width)
    rows = np.asarray(gradients(step.weights, step.lot), dtype=float)
    if rows.shape != (len(step.lot), width):
        raise ValueError(
            f"gradients: must return {len(step.lot)} rows of {width} numbers, "
            f"returned the shape {rows.shape}"
        )
    norms = np.linalg.norm(rows, axis=1)
    factors = norm / np.maximum(norms, norm)
    clipped = factors @ rows
    return clipped, rows.sum(axis=0) - clipped


def _check_lots(steps: Sequence[Step], plan: _Plan, tests: _Tests) -> None:
    import numpy as np

    n, count = plan.records, len(steps)
    if count != plan.steps:
        tests.add("steps", f"{count} in training, {plan.steps} are accounted", 0.0)
    sizes = np.array([len(s.lot) for s in steps], dtype=float)
    drawn = np.zeros(n)
    for k, step in enumerate(steps):
        lot = np.asarray(step.lot, dtype=int)
        if len(lot) and (lot.min() < 0 or lot.max() >= n or len(np.unique(lot)) != len(lot)):
            tests.add("lots", f"step {k} has a record twice, or one beyond {n - 1}", 0.0)
            return
        drawn[lot] += 1
    if plan.sampling in ("shuffled", "random_allocation"):
        _check_partition(steps, plan, tests)
    q = plan.probability
    if plan.sampling == "poisson":
        rate = float(sizes.sum()) / (n * count)
        tests.add(
            "sampling",
            f"records are drawn with probability {rate:.4g}, {q:.4g} is accounted",
            statistics.binomial_two_sided(int(sizes.sum()), n * count, q),
        )
        tests.add(
            "sampling",
            f"sizes of lots have the standard deviation {sizes.std():.3g}, "
            f"Poisson samples {math.sqrt(n * q * (1 - q)):.3g}: are lots shuffled or of one size?",
            statistics.dispersion(sizes, n, q),
        )
    elif plan.sampling == "random_allocation":
        even = n / plan.per_epoch
        tests.add(
            "sampling",
            f"sizes of lots have the standard deviation {sizes.std():.3g}, randomly allocated "
            f"ones {math.sqrt(even * (1 - 1 / plan.per_epoch)):.3g}",
            statistics.chi_squared_two_sided(
                float(((sizes - even) ** 2).sum()) / even,
                (plan.per_epoch - 1) * count / plan.per_epoch,
            ),
        )
    elif plan.sampling == "fixed_size" and not (sizes == plan.batch).all():
        tests.add("sampling", f"lots do not all have {plan.batch:g} records", 0.0)
    if plan.sampling in ("poisson", "fixed_size"):
        tests.add(
            "sampling",
            f"numbers of steps of a record have the variance {drawn.var():.3g}, independent lots "
            f"{count * q * (1 - q):.3g}: are lots shuffled, or used again?",
            statistics.dispersion(drawn, count, q)
            if plan.sampling == "poisson"
            else statistics.overlap(drawn, n, int(plan.batch), count),
        )


def _check_partition(steps: Sequence[Step], plan: _Plan, tests: _Tests) -> None:
    for epoch in range(len(steps) // plan.per_epoch):
        lots = steps[epoch * plan.per_epoch : (epoch + 1) * plan.per_epoch]
        taken = sum(len(s.lot) for s in lots)
        if taken != plan.records or len({i for s in lots for i in s.lot}) != plan.records:
            tests.add(
                "sampling",
                f"epoch {epoch + 1} does not take each of {plan.records} records once: its lots "
                f"have {taken}",
                0.0,
            )
            return
        if plan.sampling == "shuffled" and any(len(s.lot) != plan.batch for s in lots[:-1]):
            tests.add("sampling", f"lots do not all have {plan.batch:g} records", 0.0)
            return


def _check_clipping(
    along_clipped: Sequence[float],
    along_excess: Sequence[float],
    deviation: float,
    tests: _Tests,
) -> None:
    for name, seen in (
        ("the clipped gradients", along_clipped),
        ("what clipping takes off", along_excess),
    ):
        if not seen:
            continue
        z = math.fsum(seen) / (deviation * math.sqrt(len(seen)))
        way = "long" if z > 0 else "short"
        tests.add(
            "clipping",
            f"sums of gradients are too {way} along {name}, by {abs(z):.3g} standard errors",
            statistics.normal_two_sided(z),
        )


def _check_noise(noises: Array, plan: _Plan, tests: _Tests) -> tuple[float, float]:
    """Returns the interval of the noise multiplier."""
    import numpy as np

    count = noises.size
    total = float((noises**2).sum())
    measured = plan.noise_multiplier * math.sqrt(total / count)
    tests.add(
        "noise",
        f"its multiplier is about {measured:.4g}, {plan.noise_multiplier:.4g} is accounted",
        statistics.chi_squared_two_sided(total, count),
    )
    each = (noises**2).sum(axis=0)
    if noises.shape[1] > 1:
        for k in {int(np.argmin(each)), int(np.argmax(each))}:
            tests.add(
                "noise",
                f"that of coordinate {k} has the multiplier "
                f"{plan.noise_multiplier * math.sqrt(each[k] / len(noises)):.3g}, "
                f"{plan.noise_multiplier:.4g} is accounted",
                len(each) * statistics.chi_squared_two_sided(float(each[k]), len(noises)),
            )
    low, high = statistics.chi_squared_interval(count, tests.error)
    smallest, largest = (plan.noise_multiplier * math.sqrt(total / x) for x in (high, low))
    return smallest, largest


def _check_reuse(noises: Array, tests: _Tests) -> None:
    import numpy as np

    first = noises[:MOST_PAIRS]
    width = first.shape[1]
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    if width < 3 or not norms.all():
        return
    cosines = np.abs((first / norms) @ (first / norms).T)
    np.fill_diagonal(cosines, 0)
    a, b = sorted(int(i) for i in np.unravel_index(np.argmax(cosines), cosines.shape))
    largest = float(cosines[a, b])
    pairs = len(first) * (len(first) - 1) / 2
    tests.add(
        "reused noise",
        f"steps {a} and {b} have noise of the correlation {largest:.4g}",
        pairs * statistics.cosine_tail(largest, width),
    )
