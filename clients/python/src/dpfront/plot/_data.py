"""What pictures show, computed from results without a plotting library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dpfront import _card as card
from dpfront import _describe as describe
from dpfront._results import guarantees
from dpfront._results.analyses import (
    Contour,
    Importance,
    ObjectiveValidation,
    Slice,
    Slices,
    Validation,
)
from dpfront._results.fronts import Front, FrontPoint, HypervolumePoint
from dpfront._results.guarantees import EpsilonCurve, Tradeoff
from dpfront._results.trials import StudyInfo, TrialInfo
from dpfront.audit import LowerBound
from dpfront.plot._shapes import Axis, Chart, Map, Panel, Parallel, Series
from dpfront.v1 import metric_pb2, parameter_pb2

Scalar = int | float | str
# --- front ------------------------------------------------------------------------------


def front(front: Front, trials: Sequence[TrialInfo]) -> Chart:
    """Returns the picture of a front, a panel for every pair of objectives."""
    if len(front.objectives) < 2:
        raise ValueError("the study has one objective: it has a best trial instead of a front")
    ids = sorted(front.objectives, key=lambda key: key not in front.epsilons)  # ε is horizontal
    panels = tuple(_pair(front, trials, x, y) for x, y in itertools.combinations(ids, 2))
    return Chart(f"{front.kind.capitalize()} front", panels, _front_note(front))


def _pair(front: Front, trials: Sequence[TrialInfo], x: str, y: str) -> Panel:
    points = [p for p in front if not p.beyond_reference]
    points.sort(key=lambda p: p.values[x].value, reverse=not front.minimize[x])
    measured, out = _measured(front, trials)
    series = []
    if measured:
        left_out = f"; {out} beyond the reference" if out else ""
        series.append(
            Series(
                tuple(m[x] for _, m in measured),
                tuple(m[y] for _, m in measured),
                f"measured ({len(measured)}{left_out})",
                "behind",
                hover=tuple(name for name, _ in measured),
            )
        )
    if points:
        xs, ys = (_drawn_at(front, points, measured, key) for key in (x, y))
        if len(front.objectives) == 2:
            # A value reached at x is also reached at everything worse in x.
            series.append(_stairs([*xs, front.reference[x]], [*ys, ys[-1]]))
        series.append(
            Series(
                tuple(xs),
                tuple(ys),
                f"{front.kind} front",
                x_interval=_interval(points, x),
                y_interval=_interval(points, y),
                hover=tuple(_hover(p) for p in points),
            )
        )
    x_log, y_log = (
        front.transforms.get(key) == "log" and all(v > 0 for s in series for v in getattr(s, end))
        for key, end in ((x, "x"), (y, "y"))
    )
    return Panel(_label(x, front.epsilons), _label(y, front.epsilons), tuple(series), x_log, y_log)


def _drawn_at(
    front: Front,
    points: Sequence[FrontPoint],
    measured: Sequence[tuple[str, Mapping[str, float]]],
    key: str,
) -> list[float]:
    """Returns where points are drawn. A constant point with 0 on a logarithmic axis, as ε = 0, is
    drawn where the others begin: the stairs are a level from there on.
    """
    values = [p.values[key].value for p in points]
    if front.transforms.get(key) != "log":
        return values
    known = [*values, *(m[key] for _, m in measured), front.reference[key]]
    least = min((v for v in known if v > 0), default=1.0)
    return [
        least if p.constant_point and v <= 0 else v for p, v in zip(points, values, strict=True)
    ]


def _label(key: str, epsilons: Mapping[str, str]) -> str:
    return f"{key} (ε of one run)" if key in epsilons else key


def _note(epsilons: Mapping[str, str], *, seeded: bool) -> str:
    lines = [f"{key}: {said}" for key, said in epsilons.items()]
    if seeded and epsilons:
        lines.append("Runs were seeded: no ε holds for them.")
    return "\n".join(lines)


def _front_note(front: Front) -> str:
    return _note(front.epsilons, seeded=guarantees.seeded(front.warnings))


def _measured(
    front: Front, trials: Sequence[TrialInfo]
) -> tuple[list[tuple[str, Mapping[str, float]]], int]:
    """Returns the results within the reference, also those on the way of runs with a
    checkpoint parameter, and the number of the others.
    """

    def within(m: Mapping[str, float]) -> bool:
        return all(
            math.isfinite(m[key]) and (m[key] < end if front.minimize[key] else m[key] > end)
            for key, end in front.reference.items()
        )

    results = [(f"trial {t.number}", t.metrics) for t in trials]
    if any(p.step for p in front):
        results += [
            (f"trial {t.number}, step {m.step}", m.metrics) for t in trials for m in t.measurements
        ]
    whole = [(name, m) for name, m in results if all(key in m for key in front.objectives)]
    inside = [(name, m) for name, m in whole if within(m)]
    return inside, len(whole) - len(inside)


def _stairs(xs: Sequence[float], ys: Sequence[float]) -> Series:
    """Returns the line that keeps each value of y up to the next x."""
    corners = [(xs[0], ys[0])]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        corners += [(x, corners[-1][1]), (x, y)]
    corners = [c for c, _ in itertools.groupby(corners)]
    return Series(tuple(x for x, _ in corners), tuple(y for _, y in corners), line=True)


def _interval(points: Sequence[FrontPoint], key: str) -> tuple[tuple[float, float], ...]:
    values = [p.values[key] for p in points]
    if all(v.lower is None or v.upper is None for v in values):
        return ()
    return tuple(
        (v.value if v.lower is None else v.lower, v.value if v.upper is None else v.upper)
        for v in values
    )


def _hover(p: FrontPoint) -> str:
    if p.constant_point:
        return f"no run: {p.constant_point}"
    step = f", step {p.step}" if p.step else ""
    return "\n".join([f"trial {p.trial}{step}", *_configuration(p.params)])


def _configuration(params: Mapping[str, Scalar]) -> list[str]:
    return [f"{name} = {card.number(value)}" for name, value in params.items()]


# --- history ----------------------------------------------------------------------------


def history(
    info: StudyInfo,
    hypervolumes: Sequence[HypervolumePoint],
    trials: Sequence[TrialInfo],
    kind: str,
) -> Chart:
    """Returns the picture of the hypervolume and of every objective."""
    volume = Series(
        tuple(float(h.completed_trials) for h in hypervolumes),
        tuple(h.hypervolume for h in hypervolumes),
        line=True,
        hover=tuple(f"trial {h.trial}" for h in hypervolumes),
    )
    panels = [Panel("completed trials", f"hypervolume of the {kind} front", (volume,))]
    epsilons = describe.epsilons(info.raw.spec.metrics)
    for m in (m for m in info.raw.spec.metrics if m.role == metric_pb2.METRIC_ROLE_OBJECTIVE):
        done = [(t.number, t.metrics[m.id]) for t in _succeeded(trials) if m.id in t.metrics]
        done = sorted((n, v) for n, v in done if math.isfinite(v))
        numbers, values = [float(n) for n, _ in done], [v for _, v in done]
        maximize = m.goal == metric_pb2.GOAL_MAXIMIZE
        best = list(itertools.accumulate(values, max if maximize else min))
        hover = tuple(f"trial {n}" for n, _ in done)
        series = [Series(tuple(numbers), tuple(values), "trials", "behind", hover=hover)]
        if numbers:
            word = "largest" if maximize else "smallest"
            stairs = _stairs(numbers, best)
            series.append(Series(stairs.x, stairs.y, f"{word} so far", line=True))
        log = m.transform == metric_pb2.TRANSFORM_LOG and all(v > 0 for v in values)
        panels.append(Panel("trial", _label(m.id, epsilons), tuple(series), y_log=log))
    seeded = any(guarantees.seeded(t.warnings) for t in trials)
    return Chart(f"History of {info.id}", tuple(panels), _note(epsilons, seeded=seeded))


def _succeeded(trials: Iterable[TrialInfo]) -> list[TrialInfo]:
    return [t for t in trials if t.state == "succeeded"]


# --- parallel coordinates ---------------------------------------------------------------


def parallel(info: StudyInfo, front: Front, trials: Sequence[TrialInfo], color: str) -> Parallel:
    """Returns the picture of configurations: the points of the front, and other trials."""
    color = color or front.objectives[0]
    if color not in front.objectives:
        raise ValueError(f"color: {color!r} is not one of {', '.join(front.objectives)}")
    points = [p for p in front if not p.beyond_reference and not p.constant_point]
    rows: list[tuple[bool, dict[str, Scalar]]] = [
        (False, {**t.metrics, **t.params})
        for t in _succeeded(trials)
        if all(math.isfinite(t.metrics.get(key, math.nan)) for key in front.objectives)
        and all(t.params != p.params for p in points)
    ]
    rows += [(True, {**{k: v.value for k, v in p.values.items()}, **p.params}) for p in points]
    if not rows:
        raise ValueError("no trial of the study has finite values of all objectives yet")
    axes, columns = [], []
    for x in info.raw.spec.parameters:
        axis, column = _parameter_axis(x, [row.get(x.id) for _, row in rows])
        axes.append(axis)
        columns.append(column)
    for key in front.objectives:
        values = [float(row[key]) for _, row in rows]
        log = front.transforms.get(key) == "log" and min(values) > 0
        columns.append([math.log10(v) if log else v for v in values])
        axes.append(_number_axis(key, min(values), max(values), log))
    return Parallel(
        f"Configurations of {info.id}",
        _front_note(front),
        tuple(axes),
        len(info.raw.spec.parameters) + front.objectives.index(color),
        tuple(zip(*columns, strict=True)),
        tuple(on_front for on_front, _ in rows),
    )


def _parameter_axis(
    x: parameter_pb2.ParameterSpec, values: Sequence[Scalar | None]
) -> tuple[Axis, list[float]]:
    """Returns the axis of a parameter over its domain, and the values as positions on it."""
    log = x.scale == parameter_pb2.SCALE_LOG
    positions: dict[Scalar, float]
    if x.HasField("categorical_domain"):
        positions = {c: float(k) for k, c in enumerate(x.categorical_domain.categories)}
        axis = Axis(
            x.id, 0.0, len(positions) - 1.0, tuple((at, str(c)) for c, at in positions.items())
        )
    else:
        if x.HasField("discrete_domain"):
            low, high = x.discrete_domain.values[0], x.discrete_domain.values[-1]
        else:
            domain = x.double_domain if x.HasField("double_domain") else x.integer_domain
            low, high = float(domain.min), float(domain.max)
        axis = _number_axis(x.id, low, high, log)
        listed = x.discrete_domain.values
        if 0 < len(listed) <= describe.MOST_CATEGORIES:
            ticks = tuple((math.log10(v) if log else v, f"{v:.6g}") for v in listed)
            axis = replace(axis, ticks=ticks)
        positions = {
            v: math.log10(v) if log else float(v) for v in values if isinstance(v, int | float)
        }
    if None not in values:
        return axis, [positions[v] for v in values if v is not None]
    # The parameter does not exist everywhere: a place below its axis stands for its absence.
    absent = axis.low - 0.2 * (axis.high - axis.low)
    ticks = ((absent, "absent"), *axis.ticks)
    column = [absent if v is None else positions[v] for v in values]
    return Axis(axis.label, absent, axis.high, ticks), column


def _number_axis(label: str, low: float, high: float, log: bool) -> Axis:
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    ticks = _log_ticks(low, high) if log else _ticks(low, high)
    ends = (math.log10(low), math.log10(high)) if log else (low, high)
    return Axis(label, *ends, ticks)


def _ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Returns three to six round numbers."""
    power = 10.0 ** math.floor(math.log10((high - low) / 6))
    step = next(m * power for m in (1, 2, 5, 10) if (high - low) / (m * power) < 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple((k * step, f"{k * step:.6g}") for k in range(first, last + 1))


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Returns powers of ten, at most seven, or also their double and fivefold."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = range(first, last + 1, max(1, (last - first) // 6))
    mantissas = (1, 2, 5) if last - first <= 2 else (1,)
    values = [m * 10.0**k for k in decades for m in mantissas]
    inside = [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
    if len(inside) < 2:
        inside = [low, high]
    return tuple((math.log10(v), f"{v:.3g}") for v in inside)


# --- curves -----------------------------------------------------------------------------


def learning_curves(
    info: StudyInfo, front: Front, trials: Sequence[TrialInfo], metric: str
) -> Chart:
    """Returns the picture of a metric over the steps of runs."""
    if not metric:
        metric = next((m for m in info.objectives if m in info.reported), info.objectives[0])
    elif metric not in {m.id for m in info.raw.spec.metrics}:
        known = ", ".join(m.id for m in info.raw.spec.metrics)
        raise ValueError(f"metric: {metric!r} is not one of {known}")
    best = {n for p in front if not p.beyond_reference for n in p.trials}
    series: list[Series] = []
    labelled: set[bool] = set()
    for t in sorted(trials, key=lambda t: (t.number in best, t.number)):
        curve = _curve(t, metric, info.checkpoint_parameter)
        if not curve:
            continue
        is_best = t.number in best
        label = (
            ""
            if is_best in labelled
            else f"on the {front.kind} front"
            if is_best
            else "other trials"
        )
        labelled.add(is_best)
        hover = "\n".join([f"trial {t.number}", *_configuration(t.params)])
        series.append(
            Series(
                tuple(float(step) for step in curve),
                tuple(curve.values()),
                label,
                "front" if is_best else "behind",
                line=True,
                hover=(hover,) * len(curve),
            )
        )
    epsilons = describe.epsilons(m for m in info.raw.spec.metrics if m.id == metric)
    note = _note(epsilons, seeded=any(guarantees.seeded(t.warnings) for t in trials))
    if not series:
        note = f"no trial has reported {metric} on the way: trial.report() does"
    panel = Panel(info.checkpoint_parameter or "step", _label(metric, epsilons), tuple(series))
    return Chart(f"Learning curves of {info.id}", (panel,), note)


def _curve(t: TrialInfo, metric: str, checkpoint: str) -> dict[int, float]:
    """Returns finite values by step, with the final one where its step is known."""
    curve = {m.step: m.metrics[metric] for m in t.measurements if metric in m.metrics}
    final = t.raw.final_measurement
    step = final.step or int(t.params.get(checkpoint, 0))
    if step and metric in final.metrics:
        curve[step] = final.metrics[metric].value
    return {step: v for step, v in sorted(curve.items()) if math.isfinite(v)}


def epsilon_over_epochs(curves: Sequence[EpsilonCurve]) -> Chart:
    """Returns the picture of ε over the lengths of runs."""
    if not curves:
        raise ValueError("there is no configuration: the front has no point within the reference")
    series = []
    for c in curves:
        known = [(n, g.epsilon) for n, g in zip(c.lengths, c.guarantees, strict=True)]
        known = [(n, e) for n, e in known if math.isfinite(e)]
        hover = "\n".join([f"trial {c.trial}", *_configuration(c.params)])
        series.append(
            Series(
                tuple(float(n) for n, _ in known),
                tuple(e for _, e in known),
                f"trial {c.trial}",
                "each",
                line=True,
                hover=(hover,) * len(known),
            )
        )
    series.sort(key=lambda s: -max(s.y, default=0.0))  # the legend in the order of the curves
    g, unit = curves[0].guarantees[0], curves[0].unit
    note = f"upper bound of ε for {g.covers}; {guarantees.guarantee_terms(g)}"
    log = all(e > 0 for s in series for e in s.y)
    return Chart(f"ε over {unit}", (Panel(unit, "ε", tuple(series), y_log=log),), note)


def tradeoff(curve: Tradeoff, audit: LowerBound | None = None) -> Chart:
    """Returns the picture of a trade-off curve, on logarithmic axes without their zero."""
    inside = [(x, y) for x, y in zip(curve.fprs, curve.tprs, strict=True) if x > 0 and y > 0]
    xs = tuple(x for x, _ in inside)
    note = f"{guarantees.bound(curve.guarantee)}; covers {curve.guarantee.covers}"
    if not curve.exact_profile:
        note += "\nNot known to be attained: attacks may be much weaker."
    series = [
        Series(xs, xs, "guessing", "behind", line=True),
        Series(xs, tuple(y for _, y in inside), "best attack, upper bound", line=True),
    ]
    if audit is not None:
        series += _audited(audit, xs)
        note += f"\n{audit.summary()}"
    panel = Panel(
        "false positive rate", "true positive rate", tuple(series), x_log=True, y_log=True
    )
    return Chart("What the best attack on one record achieves", (panel,), note)


def _audited(audit: LowerBound, fprs: Sequence[float]) -> list[Series]:
    """Returns the curve of an audit's (ε, δ), and the limits of its rates."""
    grown = math.exp(audit.epsilon)
    tprs = (min(1.0, grown * x + audit.delta, 1 - (1 - x - audit.delta) / grown) for x in fprs)
    found = [Series(tuple(fprs), tuple(tprs), "ε of the audit", "each", line=True)]
    if audit.fpr and audit.tpr:
        found.append(Series((audit.fpr,), (audit.tpr,), "attack of the audit"))
    return found


# --- fit --------------------------------------------------------------------------------


def fit(info: StudyInfo, validation: Validation) -> Chart:
    """Returns the picture of predictions over measurements, a panel for every objective."""
    panels = tuple(_fit(o, _is_log(info, o.metric)) for o in validation.objectives if o.points)
    if not panels:
        raise ValueError("there is nothing to compare: no measurement has made a model yet")
    title = f"Fit of the model of {info.id}"
    return Chart(title, panels, "without the runs of each configuration; 90 % intervals with noise")


def _fit(o: ObjectiveValidation, log: bool) -> Panel:
    both = [v for p in o.points for v in (p.observed, p.predicted.median)]
    ends = (min(both), max(both))
    label = f"{o.coverage:.0%} within" if o.coverage is not None else ""
    if o.r_squared is not None:
        label += f", R² = {o.r_squared:.2f}"
    series = (
        Series(ends, ends, "as measured", "behind", line=True),
        Series(
            tuple(p.observed for p in o.points),
            tuple(p.predicted.median for p in o.points),
            label,
            y_interval=tuple((p.predicted.lower, p.predicted.upper) for p in o.points),
            hover=tuple(f"trial {p.trial}" + (f" at {p.step}" if p.step else "") for p in o.points),
        ),
    )
    log = log and all(v > 0 for p in o.points for v in (p.observed, p.predicted.lower))
    return Panel(f"{o.metric}, measured", f"{o.metric}, predicted", series, log, log)


# --- analyses ---------------------------------------------------------------------------


def importance(found: Importance) -> Chart:
    """Returns a panel for each objective, with the parameters from top to bottom."""
    if not found.parameters:
        raise ValueError("nothing has been measured yet")
    panels = []
    for metric in found.variances:
        rows = [p for p in found.parameters if p.metric == metric][::-1]
        series = []
        for name, role, shift in (("in total", "front", 0.1), ("by itself", "behind", -0.1)):
            shares = [p.total if role == "front" else p.first_order for p in rows]
            series.append(
                Series(
                    tuple(s.value for s in shares),
                    tuple(k + shift for k in range(len(rows))),
                    name,
                    "front" if role == "front" else "behind",
                    x_interval=tuple((s.lower, s.upper) for s in shares),
                    hover=tuple(f"{p.parameter}, {name}" for p in rows),
                )
            )
        label = f"share of the variance of {metric}"
        names = tuple(p.parameter for p in rows)
        panels.append(Panel(label, "", tuple(series), y_ticks=names))
    return Chart("Importance of parameters, with 90 % intervals", tuple(panels))


def slices(info: StudyInfo, found: Slices, parameters: Sequence[str], metric: str) -> Chart:
    """Returns a panel for each slice."""
    shown = [
        s
        for s in found.slices
        if (not parameters or s.parameter in parameters) and metric in ("", s.metric)
    ]
    if not shown:
        raise ValueError("no slice of these parameters and objectives is known")
    panels = tuple(_slice(info, s, found.epsilons) for s in shown)
    held = ", ".join(_configuration(found.params))
    note = _note({k: v for k, v in found.epsilons.items() if any(s.metric == k for s in shown)},
                 seeded=guarantees.seeded(found.warnings))  # fmt: skip
    return Chart("Slices, with 90 % intervals", panels, "\n".join(filter(None, (held, note))))


def _slice(info: StudyInfo, s: Slice, epsilons: Mapping[str, str]) -> Panel:
    x, ticks, x_log = _places(info, s.parameter, s.values)
    medians = tuple(p.median for p in s.predictions)
    band = tuple((p.lower, p.upper) for p in s.predictions)
    is_exact = all(low == high for low, high in band)
    if ticks:
        series = Series(x, medians, y_interval=() if is_exact else band)
    else:
        series = Series(x, medians, line=True, band=() if is_exact else band)
    log = _is_log(info, s.metric) and all(low > 0 for low, _ in band)
    return Panel(s.parameter, _label(s.metric, epsilons), (series,), x_log, log, ticks)


def contour(info: StudyInfo, found: Contour) -> Map:
    """Returns the medians over two parameters."""
    if not found.predictions:
        raise ValueError("nothing has been measured yet")
    if min(len(found.x_values), len(found.y_values)) < 2:
        raise ValueError("a contour takes at least two values of each parameter")
    x, x_ticks, x_log = _places(info, found.x, found.x_values)
    y, y_ticks, y_log = _places(info, found.y, found.y_values)
    values = tuple(tuple(p.median for p in row) for row in found.predictions)
    label = _label(found.metric, found.epsilons)
    if _is_log(info, found.metric) and all(v > 0 for row in values for v in row if v == v):
        label = f"log10 {label}"
        values = tuple(tuple(math.log10(v) for v in row) for row in values)
    others = {k: v for k, v in found.params.items() if k not in (found.x, found.y)}
    said = {k: v for k, v in found.epsilons.items() if k == found.metric}
    note = _note(said, seeded=guarantees.seeded(found.warnings))
    panel = Panel(found.x, found.y, (), x_log, y_log, x_ticks, y_ticks)
    note = "\n".join(filter(None, (", ".join(_configuration(others)), note)))
    return Map(f"Median of {found.metric}", panel, x, y, values, label, note)


def _is_log(info: StudyInfo, metric: str) -> bool:
    return any(
        m.id == metric and m.transform == metric_pb2.TRANSFORM_LOG for m in info.raw.spec.metrics
    )


def _places(
    info: StudyInfo, parameter: str, values: Sequence[Scalar]
) -> tuple[tuple[float, ...], tuple[str, ...], bool]:
    """Returns where values stand on an axis, names of these places, and whether it is a
    logarithmic one.
    """
    (spec,) = (p for p in info.raw.spec.parameters if p.id == parameter)
    if spec.HasField("categorical_domain"):
        return tuple(map(float, range(len(values)))), tuple(map(str, values)), False
    return tuple(map(float, values)), (), spec.scale == parameter_pb2.SCALE_LOG
