"""The specs of studies and mechanisms in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpfront import _convert as convert
from dpfront._card import ONE_RUN, terms
from dpfront.v1 import metric_pb2, parameter_pb2, privacy_pb2, study_pb2

MOST_CATEGORIES = 8
"""How many values of a parameter are listed."""


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


def domain(x: parameter_pb2.ParameterSpec) -> str:
    """Returns the values of a parameter."""
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


def metric(x: metric_pb2.MetricSpec) -> str:
    """Returns what a metric is for."""
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
