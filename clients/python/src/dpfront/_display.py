"""How results are shown: as text, and as HTML in notebooks."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from dpfront import _convert as convert
from dpfront.v1 import metric_pb2, parameter_pb2, privacy_pb2, study_pb2

if TYPE_CHECKING:
    from dpfront import results as r

Scalar = int | float | str

MOST_CATEGORIES = 8
"""How many values of a parameter are listed."""


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


# --- what an ε says ---------------------------------------------------------------------

ONE_RUN = "one run, not the search"
SEEDED = "SEEDED"
PUBLIC_SIZE = " with a public number of records (zero-out)"


def terms(delta: float, adjacency: str, accountant: str, *, public_size: bool = False) -> str:
    """Returns δ, adjacency and accountant, without which an ε means nothing."""
    size = PUBLIC_SIZE if public_size and adjacency == "add_remove" else ""
    return f"δ = {up(delta)}, {adjacency} adjacency{size}, {accountant} accountant"


def guarantee_terms(g: r.Guarantee) -> str:
    """Returns the terms of a guarantee."""
    zero_out = any("zero-out adjacency" in x for x in g.assumptions)
    return terms(g.delta, g.adjacency, g.accountant, public_size=zero_out)


def bound(g: r.Guarantee) -> str:
    """Returns an ε with its terms."""
    if math.isinf(g.epsilon):
        return f"no bound of ε, {guarantee_terms(g)}"
    return f"ε at most {up(g.epsilon)}, {guarantee_terms(g)}"


def spec_terms(spec: privacy_pb2.PrivacySpec) -> str:
    """Returns what ε of a metric say: the terms, and what they cover."""
    said = terms(
        spec.delta,
        convert.enum_name(privacy_pb2.Adjacency, spec.adjacency),
        convert.enum_name(privacy_pb2.Accountant, spec.accountant) or "tightest",
        public_size=_size_is_public(spec),
    )
    return f"upper bound of ε for {ONE_RUN}; {said}"


def epsilons(metrics: Iterable[metric_pb2.MetricSpec]) -> dict[str, str]:
    """Returns the metrics that are ε, with what an ε says."""
    return {m.id: spec_terms(m.computed.privacy) for m in metrics if m.computed.HasField("privacy")}


def _size_is_public(spec: privacy_pb2.PrivacySpec) -> bool:
    """Whether the probability of Poisson sampling follows from the number of records."""
    kind = spec.WhichOneof("mechanism")
    if kind == "dp_sgd":
        poisson = spec.dp_sgd.sampling == privacy_pb2.SAMPLING_POISSON
        return poisson and bool(spec.dp_sgd.dataset_size)
    if kind == "repeated_selection":
        return _size_is_public(spec.repeated_selection.base)
    if kind == "composition":
        return any(_size_is_public(part.mechanism) for part in spec.composition.parts)
    return False


def _warnings(warnings: Sequence[r.ResultWarning]) -> list[str]:
    return [f"warning: {w}" for w in warnings]


def seeded(warnings: Sequence[r.ResultWarning]) -> bool:
    """Whether somebody knows the seed of a run, so that no ε holds for it."""
    return any(w.code == SEEDED for w in warnings)


def _covered(g: r.Guarantee, warnings: Sequence[r.ResultWarning]) -> str:
    """Returns an ε with all that it says, unless runs were seeded."""
    return "no ε holds: runs were seeded" if seeded(warnings) else str(g)


# --- cards ------------------------------------------------------------------------------


def guarantee(g: r.Guarantee) -> Card:
    """Shows a guarantee."""
    facts = [
        ("ε", "no bound" if math.isinf(g.epsilon) else f"at most {up(g.epsilon)}"),
        ("terms", guarantee_terms(g)),
        ("covers", g.covers),
    ]
    if g.epsilon_lower is not None:
        facts.append(("lower bound of the true ε", up(g.epsilon_lower, decimal.ROUND_FLOOR)))
    notes = [f"provided that {x}" for x in g.assumptions]
    return Card("Privacy guarantee, an upper bound", facts, notes=notes + _warnings(g.warnings))


def tradeoff(t: r.Tradeoff) -> Card:
    """Shows a trade-off curve."""
    notes = [] if t.exact_profile else ["not known to be attained: attacks may be much weaker"]
    return Card(
        "The best attack on one record, an upper bound",
        [("guarantee", bound(t.guarantee)), ("covers", t.guarantee.covers)],
        rows=[{"fpr": x, "tpr": y} for x, y in zip(t.fprs, t.tprs, strict=True)],
        notes=notes
        + [f"provided that {x}" for x in t.guarantee.assumptions]
        + _warnings(t.guarantee.warnings),
    )


def search_prices(prices: r.SearchPrices) -> Card:
    """Shows what the ways to search cost. Columns without a number are left out."""
    rows = []
    guarantees = []
    for x in prices.ways:
        lower = x.training.epsilon_lower
        guarantees += [g for g in (x.training, x.test) if g is not None]
        rows.append(
            {
                **x.as_dict(),
                "epsilon": up(x.training.epsilon),
                "epsilon_lower": None if lower is None else up(lower, decimal.ROUND_FLOOR),
                "test_epsilon": None if x.test is None else up(x.test.epsilon),
                "adaptive": "yes" if x.adaptive else "no",
            }
        )
    empty = {name for name in rows[0] if all(row[name] is None for row in rows)} if rows else set()
    hidden = empty | {"delta", "adjacency"}
    return Card(
        "What every way to search costs, an upper bound",
        [
            ("terms", f"δ = {up(g.delta)}, {g.adjacency} adjacency for the training records")
            for g in guarantees[:1]
        ],
        rows=[
            {key: "" if cell is None else cell for key, cell in row.items() if key not in hidden}
            for row in rows
        ],
        notes=[
            f"provided that {x}"
            for x in dict.fromkeys(a for g in guarantees for a in g.assumptions)
        ],
    )


def trial(t: r.TrialInfo) -> Card:
    """Shows a trial."""
    facts = [(key, number(value)) for key, value in t.params.items()]
    facts += _metrics(t.metrics, t.guarantees, t.warnings)
    said = {
        "reason": t.state_reason,
        "note": t.note,
        "worker": t.worker_id,
        "measurements": str(len(t.measurements) or ""),
        "attempt": str(t.attempt if t.attempt > 1 else ""),
        **{f"label {key}": value for key, value in t.labels.items()},
    }
    facts += [(key, value) for key, value in said.items() if value]
    return Card(f"Trial {t.number}: {t.state}", facts, notes=_warnings(t.warnings))


def _metrics(
    values: Mapping[str, float],
    guarantees: Mapping[str, r.Guarantee],
    warnings: Sequence[r.ResultWarning],
) -> list[tuple[str, str]]:
    return [
        (key, _covered(guarantees[key], warnings) if key in guarantees else number(value))
        for key, value in values.items()
    ]


def study(s: r.StudyInfo, *, state: bool = True, page: str | None = None) -> Card:
    """Shows a study, with its state or without, and a link to its page if there is one."""
    spec: study_pb2.StudySpec = s.raw.spec
    counts = ", ".join(f"{n} {name}" for name, n in s.trial_counts.items() if n) or "none"
    said = {
        "state": ": ".join(x for x in (s.state, s.state_reason) if x) if state else "",
        f"trials of {s.max_trials}" if s.max_trials else "trials": counts if state else "",
        "name": s.display_name,
        "description": s.description,
        **{f"parameter {x.id}": _domain(x) for x in spec.parameters},
        **{f"metric {x.id}": _metric(x) for x in spec.metrics},
        "checkpoint parameter": s.checkpoint_parameter,
        "features of DP-SGD": s.features,
        **{f"label {key}": value for key, value in s.labels.items()},
    }
    facts = [(key, value) for key, value in said.items() if value]
    notes = _warnings(s.warnings) if state else ["info() reads its state."]
    return Card(f"Study {s.id}", facts, notes=notes, page=page)


_RATES = ("learning_rate", "lr")
_NORMS = ("clipping_norm", "max_grad_norm", "l2_norm_clip", "clip")
"""Names of parameters that are a learning rate or a clipping norm in most programs."""


def features(spec: study_pb2.StudySpec) -> str:
    """Returns what the engine sees of DP-SGD, or what to name for that."""
    algorithm = spec.algorithm
    if algorithm.HasField("dp_sgd_features"):
        x = algorithm.dp_sgd_features
        if x.disabled:
            return "off"
        normalized = x.optimizer == privacy_pb2.DP_SGD_OPTIMIZER_NORMALIZED
        return (
            f"on: learning rate {x.learning_rate}, clipping norm {x.clipping_norm}"
            + (", normalized gradients" if normalized else "")
            + (", without public runs" if x.without_public_runs else "")
        )
    if algorithm.name != study_pb2.ALGORITHM_DEFAULT or spec.HasField("random_stopping"):
        return ""
    for m in spec.metrics:
        if m.computed.privacy.dp_sgd.dataset_size:
            rate, norm = _only(spec, _RATES), _only(spec, _NORMS)
            names = "learning_rate and clipping_norm"
            if rate and norm:
                names = f"learning_rate={rate!r} and clipping_norm={norm!r}"
            return f"off; add {names} to the mechanism of metric {m.id} to need fewer runs"
    return ""


def _only(spec: study_pb2.StudySpec, names: Sequence[str]) -> str:
    """Returns the one parameter with such a name, which always has a value; or ""."""
    found = [x for x in spec.parameters if x.id.lower() in names]
    return found[0].id if len(found) == 1 and not found[0].HasField("condition") else ""


def _domain(x: parameter_pb2.ParameterSpec) -> str:
    kind = x.WhichOneof("domain")
    log = ", log scale" if x.scale == parameter_pb2.SCALE_LOG else ""
    where = ""
    if x.HasField("condition"):
        values = [str(getattr(v, v.WhichOneof("kind") or "")) for v in x.condition.values]
        where = f", where {x.condition.parent} is {_some(values)}"
    if kind == "double_domain":
        return f"{x.double_domain.min:g} to {x.double_domain.max:g}{log}{where}"
    if kind == "integer_domain":
        return f"integers, {x.integer_domain.min} to {x.integer_domain.max}{log}{where}"
    if kind == "discrete_domain":
        return f"{_some([f'{v:g}' for v in x.discrete_domain.values])}{log}{where}"
    return f"{_some(list(x.categorical_domain.categories))}{where}"


def _some(values: Sequence[str]) -> str:
    more = f" and {len(values) - MOST_CATEGORIES} more" if len(values) > MOST_CATEGORIES else ""
    return ", ".join(values[:MOST_CATEGORIES]) + more


_NOISE = {
    metric_pb2.NOISE_NONE: "without noise",
    metric_pb2.NOISE_KNOWN: "with standard errors",
}


def _metric(x: metric_pb2.MetricSpec) -> str:
    if x.role == metric_pb2.METRIC_ROLE_OBJECTIVE:
        verb = "maximize" if x.goal == metric_pb2.GOAL_MAXIMIZE else "minimize"
        is_given = x.HasField("reference_value")
        said = f"{verb}, reference {f'{x.reference_value:g}' if is_given else 'from the results'}"
    elif x.role == metric_pb2.METRIC_ROLE_CONSTRAINT:
        ends = [
            f"at {name} {getattr(x.bounds, end):g}"
            for name, end in (("least", "min"), ("most", "max"))
            if x.bounds.HasField(end)
        ]
        said = f"constraint, {' and '.join(ends)}"
    else:
        said = "tracked"
    if x.unit:
        said += f", in {x.unit}"
    if x.reported.noise in _NOISE:
        said += f", {_NOISE[x.reported.noise]}"
    if x.HasField("computed"):
        computed = x.computed
        is_epsilon = computed.HasField("privacy")
        said += f"; {spec_terms(computed.privacy) if is_epsilon else computed.expression}"
    return said


def front(f: r.Front) -> Card:
    """Shows a front: objectives, parameters and the trial of every point."""
    if not f.points:
        return Card(f"no points on the {f.kind} front", notes=_warnings(f.warnings))
    points = f"{len(f)} points" if len(f) > 1 else "1 point"
    return Card(
        f"{f.kind} front: {points}, hypervolume {number(f.hypervolume)}",
        rows=[_row(p, f.epsilons) for p in f],
        notes=[f"{key}: {said}" for key, said in f.epsilons.items()] + _warnings(f.warnings),
    )


def _row(p: r.FrontPoint, epsilons: Mapping[str, str]) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {}
    for key, v in p.values.items():
        row[key] = up(v.value) if key in epsilons else v.value
        if v.lower is not None and v.upper is not None:
            row[f"{key}_90%"] = f"{number(v.lower)}..{number(v.upper)}"
    row.update(p.params)
    row["trial"] = f"none: {p.constant_point}" if p.constant_point else p.trial
    remarks = [name for name in ("knee", "beyond_reference") if getattr(p, name)]
    if remarks:
        row["remark"] = ", ".join(remarks)
    return row


def recommendation(x: r.Recommendation) -> Card:
    """Shows a recommendation."""
    if x.constant_point:
        facts = [(key, number(value)) for key, value in x.reached.items()]
        title = f"Recommended for {x.optimize}: nothing has to be run ({x.constant_point})"
        if not x.reachable:
            title += ": out of reach, this is nearest"
        return Card(title, facts, notes=_warnings(x.warnings))
    if not x.params:
        return Card("No recommendation yet", notes=_warnings(x.warnings))
    facts = [(key, number(value)) for key, value in x.params.items()]
    for key, p in x.predictions.items():
        interval = f"90 % interval {number(p.lower)} to {number(p.upper)}"
        facts.append((f"expected {key}", f"{number(p.median)}, {interval}"))
    facts += _metrics(x.computed, x.guarantees, ())  # of a run to come
    trials = ", ".join(map(str, x.trials))
    measured = f"trials {trials} ({x.runs} runs)" if x.trials else "no trial yet"
    facts.append(("measured by", measured))
    title = f"Recommended for {x.optimize}" if x.optimize else "Recommended"
    if not x.reachable:
        title += ": out of reach, this is nearest"
    return Card(title, facts, notes=_warnings(x.warnings))


def validation(x: r.Validation) -> Card:
    """Shows how well a model predicts."""
    rows: list[dict[str, Scalar]] = []
    for o in x.objectives:
        row: dict[str, Scalar] = {"metric": o.metric, "measurements": len(o.points)}
        if o.coverage is not None:
            row["within 90 % interval"] = f"{100 * o.coverage:.0f} %"
        if o.r_squared is not None:
            row["R²"] = o.r_squared
        rows.append(row)
    title = "Fit of the model" if rows else "No model yet"
    return Card(title, rows=rows, notes=_warnings(x.warnings))


def expected_gain(x: r.ExpectedGain) -> Card:
    """Shows what the next runs are expected to gain."""
    if not x.points:
        return Card("No forecast", notes=_warnings(x.warnings))
    rows: list[dict[str, Scalar]] = []
    for p in x.points:
        row: dict[str, Scalar] = {
            "runs": p.runs,
            "gain": p.gain,
            "lower": p.lower,
            "upper": p.upper,
            "more than 1 %": f"{100 * p.probability:.0f} %",
        }
        if p.cost is not None and x.cost_unit != "runs":
            row[f"cost ({x.cost_unit})"] = p.cost
        rows.append(row)
    facts = [("hypervolume today", number(x.hypervolume))]
    return Card("Expected gain of the next runs", facts, rows, _warnings(x.warnings))


def importance_rows(x: r.Importance) -> list[dict[str, Scalar]]:
    """Returns a row for each objective and parameter."""
    return [
        {
            "metric": p.metric,
            "parameter": p.parameter,
            "first_order": p.first_order.value,
            "first_order_lower": p.first_order.lower,
            "first_order_upper": p.first_order.upper,
            "total": p.total.value,
            "total_lower": p.total.lower,
            "total_upper": p.total.upper,
        }
        for p in x.parameters
    ]


def importance(x: r.Importance) -> Card:
    """Shows shares with two decimals."""
    rows = [
        {key: f"{v:.2f}" if isinstance(v, float) else v for key, v in row.items()}
        for row in importance_rows(x)
    ]
    title = "Importance: share of the variance that a parameter explains, by itself and in total"
    return Card(title if rows else "No importance yet", rows=rows, notes=_warnings(x.warnings))


def slice_rows(x: r.Slices) -> list[dict[str, Scalar]]:
    """Returns a row for each value of each slice."""
    return [
        {"metric": s.metric, "parameter": s.parameter, "value": value, **_prediction(p)}
        for s in x.slices
        for value, p in zip(s.values, s.predictions, strict=True)
    ]


def contour_rows(x: r.Contour) -> list[dict[str, Scalar]]:
    """Returns a row for each place."""
    return [
        {x.x: at_x, x.y: at_y, **_prediction(p)}
        for at_y, row in zip(x.y_values, x.predictions, strict=True)
        for at_x, p in zip(x.x_values, row, strict=True)
    ]


def _prediction(p: r.Prediction) -> dict[str, Scalar]:
    return {"median": p.median, "lower": p.lower, "upper": p.upper}


def slices(x: r.Slices) -> Card:
    """Shows at which configuration the slices are, and their ends."""
    if not x.slices:
        return Card("No slices yet", notes=_warnings(x.warnings))
    facts = [(f"held {key}", number(value)) for key, value in x.params.items()]
    rows: list[dict[str, Scalar]] = []
    for s in x.slices:
        row: dict[str, Scalar] = {"metric": s.metric, "parameter": s.parameter}
        for value, p in (
            (s.values[k], s.predictions[k]) for k in dict.fromkeys((0, -1)) if s.values
        ):
            shown = up(p.median) if s.metric in x.epsilons else number(p.median)
            row[f"at the {'last' if len(row) > 2 else 'first'} value"] = f"{number(value)}: {shown}"
        rows.append(row)
    return Card("Slices", facts, rows, [*_said(x.epsilons), *_warnings(x.warnings)])


def contour(x: r.Contour) -> Card:
    """Shows the medians in a table, a row for each value of y."""
    if not x.predictions:
        return Card("No contour yet", notes=_warnings(x.warnings))
    facts = [(f"held {k}", number(v)) for k, v in x.params.items() if k not in (x.x, x.y)]
    say = up if x.metric in x.epsilons else number
    rows = [
        {
            f"{x.y} \\ {x.x}": number(at_y),
            **{
                number(at_x): say(p.median) if math.isfinite(p.median) else ""
                for at_x, p in zip(x.x_values, row, strict=True)
            },
        }
        for at_y, row in zip(x.y_values, x.predictions, strict=True)
    ]
    said = {k: v for k, v in x.epsilons.items() if k == x.metric}
    return Card(f"Median of {x.metric}", facts, rows, [*_said(said), *_warnings(x.warnings)])


def _said(epsilons: Mapping[str, str]) -> list[str]:
    return [f"{key}: {said}" for key, said in epsilons.items()]


def privacy_ledger(x: r.PrivacyLedger) -> Card:
    """Shows what all runs of a study cost."""
    how = "results may have decided it" if x.adaptive else "fixed in advance"
    facts = [("what was run", how), ("composed", _covered(x.composed, x.warnings))]
    if x.fixed_in_advance is not None:
        facts.append(("fixed in advance", _covered(x.fixed_in_advance, x.warnings)))
    return Card(f"Privacy ledger of {x.runs} runs", facts, notes=_warnings(x.warnings))


def release(x: r.Release) -> Card:
    """Shows what was published, with everything that a reader must know."""
    facts = [("guarantee", f"{bound(x.guarantee)}, for {x.protects}")]
    if x.index is not None:
        facts.insert(0, ("candidate", str(x.index)))
    assumptions = x.assumptions
    if x.training_guarantee is not None:
        facts.append(("training records", _covered(x.training_guarantee, x.warnings)))
        assumptions += x.training_guarantee.assumptions
    notes = [f"claim of a paper, {x.model_claim}"] if x.model_claim else []
    notes += [f"provided that {a}" for a in assumptions]
    notes += [f"not covered: {a}" for a in x.not_covered]
    rows = [p.as_dict() for p in x.points]
    for row, p in zip(rows, x.points, strict=True):  # what has no noise is computed, such as ε
        row.update((k, up(v)) for k, v in p.values.items() if k not in p.standard_deviations)
    return Card(f"{x.name}: {x.mechanism}", facts, rows, notes + _warnings(x.warnings))
