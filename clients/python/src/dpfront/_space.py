"""The ``suggest_*`` methods of Optuna, and the parameters that an objective suggests."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from dpfront import _convert as convert
from dpfront import _specs as specs
from dpfront import spec as s
from dpfront.v1 import study_pb2

__all__ = ["Suggestions", "categories", "float_parameter", "int_parameter", "space"]

Scalar = int | float | str

MAX_STEPS = 1000
"""How many values a server takes for a parameter."""


def float_parameter(
    name: str, low: float, high: float, step: float | None = None, log: bool = False
) -> s.Float | s.Discrete | None:
    """Returns the parameter of a `Suggestions.suggest_float`, None if it has only one value."""
    where = f"parameter {convert.text('parameter name', name)}"
    low, high = convert.number(f"{where}: low", low), convert.number(f"{where}: high", high)
    if log and step is not None:
        raise ValueError(f"parameter {name}: step and log exclude each other")
    _check_ends(name, low, high, log)
    if step is None:
        return s.Float(name, low, high, log=log) if low < high else None
    return _steps(name, low, high, convert.number(f"{where}: step", step))


def int_parameter(
    name: str, low: int, high: int, step: int = 1, log: bool = False
) -> s.Int | s.Discrete | None:
    """Returns the parameter of a `Suggestions.suggest_int`, None if it has only one value."""
    convert.text("parameter name", name)
    low = convert.integer(f"parameter {name}: low", low)
    high = convert.integer(f"parameter {name}: high", high)
    step = convert.integer(f"parameter {name}: step", step)
    _check_ends(name, low, high, log)
    if step == 1:
        return s.Int(name, low, high, log=log) if low < high else None
    if log:
        raise ValueError(f"parameter {name}: a step other than 1 and log exclude each other")
    return _steps(name, low, high, step)


def _check_ends(name: str, low: float, high: float, log: bool) -> None:
    if not -math.inf < low <= high < math.inf:
        raise ValueError(f"parameter {name}: low {low} is not a number below high {high}")
    if log and low <= 0:
        raise ValueError(f"parameter {name}: low must be positive with log, is {low}")


def _steps(name: str, low: float, high: float, step: float) -> s.Discrete | None:
    if not step > 0:
        raise ValueError(f"parameter {name}: step must be positive, is {step}")
    # In decimals, since 0.1 + 2 * 0.1 is not the float 0.3.
    first, last, width = (Decimal(str(x)) for x in (low, high, step))
    count = int((last - first) // width) + 1
    if count > MAX_STEPS:
        raise ValueError(
            f"parameter {name}: has {count} steps, of at most {MAX_STEPS}; leave step out, and "
            "round in the objective"
        )
    return s.Discrete(name, [float(first + k * width) for k in range(count)]) if count > 1 else None


def categories(name: str, choices: Sequence[Any]) -> dict[str, Any]:
    """Returns choices, which may be None, bools or numbers, by the names of their categories."""
    convert.text("parameter name", name)
    if isinstance(choices, str) or not isinstance(choices, Iterable):
        raise ValueError(f"parameter {name}: choices must be a list, is {choices!r}")
    choices = list(choices)
    if not choices:
        raise ValueError(f"parameter {name}: choices must be a list, is {choices!r}")
    names = {c if isinstance(c, str) else repr(c): c for c in choices}
    if len(names) != len(choices):
        raise ValueError(f"parameter {name}: choices look alike: {list(choices)}")
    return names


class Suggestions:
    """The ``suggest_*`` methods of Optuna's trials, over `_suggested`."""

    def _suggested(self, parameter: s.Parameter) -> Scalar:
        """Returns the value of a parameter."""
        raise NotImplementedError

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Returns the value of a parameter that the study has with the domain [low, high].

        With ``step`` it is one of low, low + step, ...; with ``log`` ratios matter. The
        arguments must equal the study's, which chose the value before.

        Raises:
            ValueError: The study has no such parameter, or another domain for it; or its
                condition does not hold in this trial.
        """
        parameter = float_parameter(name, low, high, step, log)
        return float(low if parameter is None else self._suggested(parameter))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Returns the value of an integer parameter, as `suggest_float` does."""
        parameter = int_parameter(name, low, high, step, log)
        return int(low if parameter is None else self._suggested(parameter))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Returns one of several choices, as `suggest_float` does.

        In the study, ``repr()`` of a choice that is not a text is the name of its category.
        """
        names = categories(name, choices)
        if len(names) == 1:
            return choices[0]
        return names[str(self._suggested(s.Categorical(name, list(names))))]


def suggested(
    spec: study_pb2.StudySpec, params: Mapping[str, Scalar], parameter: s.Parameter
) -> Scalar:
    """Returns the value that a trial has for a parameter, if the study agrees on its domain."""
    name = parameter.id
    own = next((specs.from_parameter(x) for x in spec.parameters if x.id == name), None)
    if own is None:
        raise ValueError(
            f"parameter {name}: the study has only {', '.join(x.id for x in spec.parameters)}; "
            "declare a parameter that is not suggested in every trial when the study is "
            "created, or add it by study.extend()"
        )
    if not _same_domain(own, parameter):
        raise ValueError(
            f"parameter {name}: the study has {_domain(own)}, and the objective suggests "
            f"{_domain(parameter)}; write the study's domain, or widen it by study.update()"
        )
    if name not in params:
        raise ValueError(
            f"parameter {name}: does not exist in this trial: its condition "
            f"{dict(own.condition or {})} does not hold"
        )
    value = params[name]
    if not _contains(parameter, value):
        raise ValueError(
            f"parameter {name}: is {value!r}, outside {_domain(parameter)}: the study's domain "
            "was widened since it was loaded; load it again"
        )
    return value


def _same_domain(own: s.Parameter, asked: s.Parameter) -> bool:
    if isinstance(own, (s.Float, s.Int)) and type(asked) is type(own):
        return (own.min, own.max, own.log) == (asked.min, asked.max, asked.log)
    if isinstance(own, s.Categorical) and isinstance(asked, s.Categorical):
        return set(own.categories) == set(asked.categories)
    if isinstance(own, s.Discrete):
        values: Sequence[float] = ()
        if isinstance(asked, s.Discrete):
            values = asked.values
        elif isinstance(asked, s.Int) and len(own.values) == asked.max - asked.min + 1:
            values = range(asked.min, asked.max + 1)
        return len(values) == len(own.values) and all(map(_close, own.values, values))
    return False


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _contains(parameter: s.Parameter, value: Scalar) -> bool:
    if isinstance(parameter, s.Categorical):
        return value in parameter.categories
    if isinstance(parameter, s.Discrete):
        return any(_close(float(value), v) for v in parameter.values)
    assert isinstance(parameter, (s.Float, s.Int))
    return parameter.min <= float(value) <= parameter.max


def _domain(parameter: s.Parameter) -> str:
    """Describes a domain for errors."""
    if isinstance(parameter, s.Categorical):
        return f"the categories {', '.join(map(repr, parameter.categories))}"
    if isinstance(parameter, s.Discrete):
        shown = [f"{v:g}" for v in parameter.values]
        return f"the values {', '.join([*shown[:8], '...'] if len(shown) > 9 else shown)}"
    assert isinstance(parameter, (s.Float, s.Int))
    kind = "integers" if isinstance(parameter, s.Int) else "floats"
    return f"{kind} from {parameter.min!r} to {parameter.max!r}{', log' * parameter.log}"


# --- the space of an objective ----------------------------------------------------------


def space(objective: Callable[[Any], Any]) -> list[s.Parameter]:
    """Returns the parameters that an objective suggests, in their order.

    It calls the objective once, with a trial that exists nowhere. ``suggest_*`` return a value
    in the middle, and anything else that the objective does with the trial, such as
    ``trial.report``, ``trial.params``, ``trial["x"]`` or ``trial.epsilon``, ends the call. An
    objective that trains before it uses the trial so would train once, for nothing, and on
    data whose privacy nobody accounts for. Then suggest in a function of its own, and give
    that one:

        def configuration(trial):
            return {"lr": trial.suggest_float("lr", 1e-3, 1, log=True)}

        parameters = dpfront.space(configuration)

    One call sees one branch: declare parameters of other branches yourself, with a
    `Parameter.condition`. A coroutine function is followed to its first await that waits.

    Raises:
        ValueError: Nothing was suggested, or one name with two domains.
    """
    trial = _DryTrial()
    try:
        result = objective(trial)
        if inspect.iscoroutine(result):
            try:
                result.send(None)
            except StopIteration:
                pass
            finally:
                result.close()
    except _EndOfDryCallError:
        pass
    if not trial.parameters:
        what = f"before it used {trial.ended_by}" if trial.ended_by else "at all"
        raise ValueError(f"space: {objective!r} suggested no parameter {what}")
    return list(trial.parameters.values())


class _EndOfDryCallError(BaseException):
    """Ends the dry call of an objective, also one that catches every Exception."""


class _DryTrial(Suggestions):
    """Records what is suggested, and ends the call of the objective at any other use."""

    def __init__(self) -> None:
        self.parameters: dict[str, s.Parameter] = {}
        self.ended_by = ""

    def _suggested(self, parameter: s.Parameter) -> Scalar:
        known = self.parameters.setdefault(parameter.id, parameter)
        if known != parameter:
            raise ValueError(
                f"parameter {parameter.id}: is suggested from {_domain(known)}, and then from "
                f"{_domain(parameter)}"
            )
        return _middle(parameter)

    def _end(self, use: str) -> NoReturn:
        self.ended_by = self.ended_by or use
        raise _EndOfDryCallError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._end(f"trial.{name}")

    def __getitem__(self, id: str) -> Any:
        self._end(f"trial[{id!r}]")

    def __enter__(self) -> Any:
        self._end("a with statement")

    def __exit__(self, *_: object) -> None:
        """Never called, but needed for a with statement to begin."""

    __aenter__, __aexit__ = __enter__, __exit__


def _middle(parameter: s.Parameter) -> Scalar:
    if isinstance(parameter, s.Categorical):
        return parameter.categories[0]
    if isinstance(parameter, s.Discrete):
        return parameter.values[len(parameter.values) // 2]
    assert isinstance(parameter, (s.Float, s.Int))
    low, high = parameter.min, parameter.max
    middle = math.sqrt(low) * math.sqrt(high) if parameter.log else low / 2 + high / 2
    return min(max(round(middle), low), high) if isinstance(parameter, s.Int) else middle
