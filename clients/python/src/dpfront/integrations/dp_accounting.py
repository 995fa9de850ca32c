"""Events of Google's dp_accounting as specs, and specs as its events.

    from dpfront.integrations.dp_accounting import from_event, to_event

    privacy = from_event(event, delta=1e-6, adjacency="add_remove")
    event = to_event(privacy, noise_multiplier=1.1, epochs=10)

Neither direction ever makes ε too small; what has no counterpart is refused by its name.

dp_accounting states noise relative to the bound C on the norm of a record's contribution. Where
a record is replaced, the sum moves by up to 2C, and readers of an event differ. Its PLD
accountant doubles the sensitivity, its RDP accountant takes the multiplier as relative to it.
``noise_relative_to`` says which is meant under replace-one adjacency: "norm" (C) or
"sensitivity" (2C). It changes nothing under add/remove.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from dp_accounting import dp_event as dp

from dpfront import privacy as p

__all__ = ["from_event", "to_event"]

NoiseReference = Literal["norm", "sensitivity"]


def from_event(
    event: dp.DpEvent,
    *,
    delta: float,
    adjacency: p.Adjacency,
    noise_relative_to: NoiseReference = "norm",
    accountant: p.Accountant = "tightest",
) -> p.Privacy:
    """Returns the guarantee of an event.

    ``adjacency`` is "add_remove" for ADD_OR_REMOVE_ONE and REPLACE_SPECIAL of dp_accounting,
    which give the same ε for all that is imported, and "replace_one" for REPLACE_ONE. ``delta``
    is δ, 0 only where all parts are pure.

    Imported are NoOp, Gaussian, Laplace, Gaussian events under Poisson sampling or sampling
    without replacement (replace-one only) or truncated Poisson sampling (add/remove, where the
    number of records is public: zero-out), RandomizedResponse (replace-one only), ZCDp with
    xi = 0, RepeatAndSelect, trees over one epoch (add/remove: zero-out), and compositions of these.

    Raises:
        ValueError: The event, or one within it, has no counterpart, or is not private.
    """
    _check(adjacency, noise_relative_to)
    mechanism = _Import(adjacency, noise_relative_to).mechanism(event)
    if mechanism is None:
        raise ValueError(f"{_name(event)}: it costs no privacy, and there is nothing to account")
    conversion: p.Conversion | None = "improved" if accountant == "rdp" else None
    return p.Privacy(mechanism, delta, adjacency, accountant, conversion)


def to_event(
    privacy: p.Privacy, *, noise_relative_to: NoiseReference = "sensitivity", **params: Any
) -> dp.DpEvent:
    """Returns the event of a mechanism.

    Keyword arguments are the values of the parameters in its expressions: ``to_event(privacy,
    noise_multiplier=1.1, epochs=10)``. δ and adjacency are not part of an event: give them to
    its accountant.

    Exported are DpSgd, Gaussian, Laplace, RandomizedResponse, ZeroConcentrated,
    RepeatedSelection and Composition.

    Raises:
        ValueError: The mechanism has no counterpart, or an expression cannot be computed.
    """
    _check(privacy.adjacency, noise_relative_to)
    factor = 2.0 if privacy.adjacency == "replace_one" and noise_relative_to == "norm" else 1.0
    return _Export(factor, params).event(privacy.mechanism)


def _check(adjacency: str, noise_relative_to: str) -> None:
    if adjacency not in ("add_remove", "replace_one"):
        raise ValueError(f'adjacency: must be "add_remove" or "replace_one", is {adjacency!r}')
    if noise_relative_to not in ("norm", "sensitivity"):
        raise ValueError(
            f'noise_relative_to: must be "norm" or "sensitivity", is {noise_relative_to!r}'
        )


def _name(x: object) -> str:
    return type(x).__name__


class _Import:
    """From events to mechanisms."""

    def __init__(self, adjacency: p.Adjacency, noise_relative_to: NoiseReference) -> None:
        self.replace_one = adjacency == "replace_one"
        # By how many norms one record can move a sum, in units of the multiplier's reference.
        self.sensitivity = 2.0 if self.replace_one and noise_relative_to == "norm" else 1.0

    def mechanism(self, event: dp.DpEvent) -> p.Mechanism | None:
        """Returns one mechanism for an event; None if it costs no privacy."""
        # Composition is symmetric, and equal parts become one with their number.
        parts: Counter[p.Mechanism] = Counter()
        self.collect(event, 1, parts)
        mechanisms = [
            # Steps of DP-SGD are counted in the mechanism itself.
            p.Part(dataclasses.replace(m, steps=int(m.steps or 1) * count))
            if isinstance(m, p.DpSgd)
            else p.Part(m, count)
            for m, count in parts.items()
        ]
        if len(mechanisms) == 1 and mechanisms[0].count == 1:
            return mechanisms[0].mechanism
        return p.Composition(tuple(mechanisms)) if mechanisms else None

    def collect(self, event: dp.DpEvent, count: int, parts: Counter[p.Mechanism]) -> None:
        """Adds the mechanisms of an event that is applied a number of times."""
        if type(event) is dp.ComposedDpEvent:
            for inner in event.events:
                self.collect(inner, count, parts)
        elif type(event) is dp.SelfComposedDpEvent:
            times = event.count
            if times < 0 or times != int(times):
                raise ValueError(f"{_name(event)}: count must be an integer from 0, is {times}")
            self.collect(event.event, count * int(times), parts)
        else:
            mechanism = self.single(event)
            if mechanism is not None and count > 0:
                parts[mechanism] += count

    def single(self, event: dp.DpEvent) -> p.Mechanism | None:
        """Returns the mechanism of an event that is no composition."""
        kind = type(event)  # not isinstance: a subclass may mean something else
        if kind is dp.NoOpDpEvent:
            return None
        if kind is dp.GaussianDpEvent:
            # Noise of z norms on a sum that moves by one norm, or by two.
            return p.Gaussian(self.sensitivity, _positive(event, "noise_multiplier"))
        if kind is dp.LaplaceDpEvent:
            # The same with norms in L1. A vector costs at most what a number of its L1 norm does.
            return p.Laplace(self.sensitivity, _positive(event, "noise_multiplier"))
        if kind is dp.SingleEpochTreeAggregationDpEvent:
            return self.tree(event)
        if kind is dp.PoissonSampledDpEvent:
            return self.poisson(event)
        if kind is dp.SampledWithoutReplacementDpEvent:
            return self.fixed_size(event)
        if _name(event) == "TruncatedSubsampledGaussianDpEvent":  # of dp_accounting 0.6
            return self.truncated(event)
        if kind is dp.RandomizedResponseDpEvent:
            return self.randomized_response(event)
        if kind is dp.ZCDpEvent:
            if event.xi != 0:
                raise ValueError(f"{_name(event)}: xi must be 0, is {event.xi}")
            # Both say that the Rényi divergence of order α is at most ρα.
            return p.ZeroConcentrated(_positive(event, "rho")) if event.rho != 0 else None
        if kind is dp.RepeatAndSelectDpEvent:
            return self.repeat_and_select(event)
        raise ValueError(f"{_name(event)} has no counterpart among the mechanisms of this package")

    def poisson(self, event: dp.PoissonSampledDpEvent) -> p.Mechanism | None:
        q = event.sampling_probability
        if not 0 <= q <= 1:
            raise ValueError(f"{_name(event)}: sampling_probability must be in [0, 1], is {q}")
        if q == 0:
            return None
        # Our multiplier is relative to the sensitivity of the adjacency. The probability is a
        # setting: nothing says that it was computed from the number of records.
        z = _multiplier(event.event, _name(event)) / self.sensitivity
        return p.DpSgd("poisson", None, None, z, steps=1, sampling_probability=q)

    def tree(self, event: dp.SingleEpochTreeAggregationDpEvent) -> p.Mechanism:
        if self.replace_one:
            raise ValueError(f'{_name(event)}: trees are accounted under "add_remove" only')
        counts = event.step_counts  # of several trees, one of which has the record
        steps = max(counts) if isinstance(counts, Sequence) else counts
        return p.DpFtrl(int(steps), _positive(event, "noise_multiplier"), "tree")

    def truncated(self, event: Any) -> p.Mechanism:
        if self.replace_one:
            raise ValueError(
                f'{_name(event)}: truncated lots are accounted under "add_remove" only'
            )
        return p.DpSgd(
            "poisson",
            event.dataset_size,
            None,
            _positive(event, "noise_multiplier"),
            steps=1,
            sampling_probability=event.sampling_probability,
            physical_batch_size=event.truncated_batch_size,
        )

    def fixed_size(self, event: dp.SampledWithoutReplacementDpEvent) -> p.Mechanism | None:
        if not self.replace_one:
            raise ValueError(
                f'{_name(event)}: lots of a fixed size have a guarantee under "replace_one" only'
            )
        n, m = event.source_dataset_size, event.sample_size
        if not 0 <= m <= n:
            raise ValueError(f"{_name(event)}: sample_size must be in [0, {n}], is {m}")
        z = _multiplier(event.event, _name(event)) / self.sensitivity
        return p.DpSgd("fixed_size", n, m, z, steps=1) if m else None

    def randomized_response(self, event: dp.RandomizedResponseDpEvent) -> p.Mechanism | None:
        if not self.replace_one:
            raise ValueError(f'{_name(event)}: it has a guarantee under "replace_one" only')
        noise, k = event.noise_parameter, event.num_buckets
        if not 0 <= noise <= 1 or k < 1:
            raise ValueError(f"{_name(event)}: the noise must be in [0, 1], is {noise}")
        if k == 1 or noise == 1:
            return None
        _positive(event, "noise_parameter")
        # The true answer has probability 1 - p + p/k, any other p/k: ε is the log of the ratio,
        # rounded up.
        return p.RandomizedResponse(
            math.nextafter(math.log1p(k * (1 - noise) / noise), math.inf), k
        )

    def repeat_and_select(self, event: dp.RepeatAndSelectDpEvent) -> p.Mechanism | None:
        base = self.mechanism(event.event)
        if not event.mean >= 1 or not event.shape >= 0:
            raise ValueError(
                f"{_name(event)}: mean must be at least 1 and shape at least 0, "
                f"are {event.mean} and {event.shape}"
            )
        # Both have the mean of the distribution itself. One that is at least 1 with the mean 1
        # is always 1; the Poisson distribution (an infinite shape) is not.
        if base is None or (event.mean == 1 and event.shape != math.inf):
            return base
        return p.RepeatedSelection(
            base, event.mean, None if event.shape == math.inf else event.shape
        )


def _positive(event: dp.DpEvent, field: str) -> float:
    value = float(getattr(event, field))
    if not 0 < value < math.inf:
        raise ValueError(f"{_name(event)}: {field} must be positive and finite, is {value}")
    return value


def _multiplier(event: dp.DpEvent, within: str) -> float:
    """Returns the noise multiplier of Gaussian events on the same lot, as of one.

    Several queries with σ₁, σ₂ … on one lot tell as much as their average weighted by 1/σ², and
    that has the noise (Σ 1/σᵢ²)^(-1/2).
    """
    kind = type(event)
    if kind is dp.GaussianDpEvent:
        return _positive(event, "noise_multiplier")
    if kind is dp.SelfComposedDpEvent and event.count >= 1:
        return _multiplier(event.event, within) / math.sqrt(event.count)
    if kind is dp.ComposedDpEvent and event.events:
        return 1 / math.sqrt(math.fsum(_multiplier(e, within) ** -2 for e in event.events))
    raise ValueError(f"{within} of {_name(event)} has no counterpart: only Gaussian events have")


class _Export:
    """From mechanisms to events."""

    def __init__(self, factor: float, params: Mapping[str, Any]) -> None:
        self.factor = factor  # of a multiplier relative to the sensitivity
        self.params = params

    def number(self, expression: p.Expression) -> float:
        return float(_evaluate(expression, self.params))

    def integer(self, expression: p.Expression | None) -> int:
        value = _evaluate(expression or 0, self.params)
        if value != int(value) or value < 1:
            raise ValueError(f"{expression!r}: must be an integer of at least 1, is {value}")
        return int(value)

    def event(self, m: p.Mechanism) -> dp.DpEvent:
        """Returns the event of a mechanism. `_Import` says why each fits."""
        if isinstance(m, p.Gaussian):
            ratio = self.number(m.standard_deviation) / self.number(m.sensitivity)
            return dp.GaussianDpEvent(self.factor * ratio)
        if isinstance(m, p.Laplace):
            return dp.LaplaceDpEvent(
                self.factor * self.number(m.scale) / self.number(m.sensitivity)
            )
        if isinstance(m, p.DpSgd):
            return self.dp_sgd(m)
        if isinstance(m, p.RandomizedResponse):
            k = self.integer(m.categories)
            noise = k / (k - 1 + math.exp(self.number(m.epsilon)))
            return dp.RandomizedResponseDpEvent(math.nextafter(noise, 0), k)
        if isinstance(m, p.ZeroConcentrated):
            return dp.ZCDpEvent(self.number(m.rho))
        if isinstance(m, p.RepeatedSelection):
            shape = math.inf if m.eta is None else self.number(m.eta)
            if shape < 0:
                raise ValueError(f"{_name(m)}: eta must be at least 0 in an event, is {shape}")
            return dp.RepeatAndSelectDpEvent(self.event(m.base), self.number(m.mean_runs), shape)
        if isinstance(m, p.Composition):
            return dp.ComposedDpEvent([self.part(part) for part in m.parts])
        raise ValueError(f"{_name(m)} has no counterpart among the events of dp_accounting")

    def part(self, part: p.Part) -> dp.DpEvent:
        event, count = self.event(part.mechanism), self.integer(part.count)
        if isinstance(part.mechanism, (p.RandomizedResponse, p.Composition)):
            # The PLD accountant of dp_accounting 0.6 takes a randomized response that is
            # composed with itself for a single one.
            return dp.ComposedDpEvent([event] * count)
        return dp.SelfComposedDpEvent(event, count)

    def dp_sgd(self, m: p.DpSgd) -> dp.DpEvent:
        if m.physical_batch_size is not None:
            raise ValueError("DpSgd: dp_accounting has no tight event for a physical_batch_size")
        if m.records_per_user is not None:
            raise ValueError("DpSgd: records_per_user cannot be converted to an event")
        if m.sampling == "random_allocation":
            raise ValueError(f"{_name(m)}: random allocation has no event in dp_accounting")
        gaussian = dp.GaussianDpEvent(self.factor * self.number(m.noise_multiplier))
        if m.sampling_probability is not None:
            q = self.number(m.sampling_probability)
            step: dp.DpEvent = dp.PoissonSampledDpEvent(q, gaussian)
            return dp.SelfComposedDpEvent(step, self.integer(m.steps))
        n, batch = self.integer(m.dataset_size), self.integer(m.batch_size)
        if m.sampling == "shuffled":
            # A pass over the data is one release with the full noise; steps are passes of at
            # least ⌊n/m⌋ lots.
            passes = self.integer(m.epochs) if m.epochs is not None else 0
            passes = passes or -(-self.integer(m.steps) // (n // batch))
            return dp.SelfComposedDpEvent(gaussian, passes)
        q, per_epoch = batch / n, max(1, round(Fraction(n, batch)))
        if m.convention == "opacus":
            per_epoch = -(-n // batch)
            q = 1 / per_epoch
        if m.epochs is None:
            steps = self.integer(m.steps)
        elif m.convention == "tensorflow_privacy":
            steps = -(-self.integer(m.epochs) * n // batch)
        else:
            steps = self.integer(m.epochs) * per_epoch
        step = (
            dp.PoissonSampledDpEvent(q, gaussian)
            if m.sampling == "poisson"
            else dp.SampledWithoutReplacementDpEvent(n, batch, gaussian)
        )
        return dp.SelfComposedDpEvent(step, steps)


def _divide(a: Any, b: Any) -> Any:
    """Divides as CEL does: integers towards zero."""
    return int(Fraction(a, b)) if isinstance(a, int) and isinstance(b, int) else a / b


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: _divide,
    ast.USub: lambda a: -a,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": int,
    "double": float,
    "math.sqrt": math.sqrt,
    "math.exp": math.exp,
    "math.log": math.log,
    "math.pow": math.pow,
    "math.ceil": lambda x: float(math.ceil(x)),
    "math.floor": lambda x: float(math.floor(x)),
    "math.greatest": max,
    "math.least": min,
}


def _evaluate(expression: p.Expression, params: Mapping[str, Any]) -> Any:
    """Returns the value of arithmetic in CEL, which the server knows in full."""
    if not isinstance(expression, str):
        return expression

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in params:
                raise ValueError(f"{expression!r}: give a value for {node.id}")
            return params[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _FUNCTIONS:
            return _FUNCTIONS[ast.unparse(node.func)](*map(value, node.args))
        raise ValueError(
            f"{expression!r}: only arithmetic is computed here; put the value in its place with "
            "dataclasses.replace"
        )

    try:
        return value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"{expression!r}: is not arithmetic") from None
