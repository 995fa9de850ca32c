"""Operations that compute ε."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import errors
from dpfront import privacy as p
from dpfront._operations.calls import Call, Operation, warn_large_delta
from dpfront._operations.fronts import get_front
from dpfront._operations.trials import get_trial
from dpfront._results.fronts import FrontPoint
from dpfront._results.guarantees import (
    Calibration,
    EpsilonCurve,
    Guarantee,
    PrivacyLedger,
    SearchPrices,
    Tradeoff,
)
from dpfront.v1 import parameter_pb2, privacy_pb2, privacy_service_pb2, study_pb2

CURVE_POINTS = 25
"""For how many lengths of a run ε is computed, at most."""


def compute_epsilon(
    privacy: privacy_pb2.PrivacySpec,
    parameters: Mapping[str, parameter_pb2.Value],
    lengths: Iterable[int],
) -> Operation[privacy_service_pb2.ComputeEpsilonResponse]:
    request = convert.fill(
        privacy_service_pb2.ComputeEpsilonRequest(),
        privacy=privacy,
        parameters=parameters,
        lengths=lengths,
    )
    answer: privacy_service_pb2.ComputeEpsilonResponse = yield Call(
        "compute ε", "privacy", "ComputeEpsilon", request
    )
    return answer


def epsilon(
    privacy: p.Privacy | privacy_pb2.PrivacySpec, params: Mapping[str, Any], lengths: Iterable[int]
) -> Operation[list[Guarantee]]:
    answer = yield from compute_epsilon(
        specs.privacy_spec(privacy), convert.to_values(params), lengths
    )
    warn_large_delta(w for x in answer.guarantees for w in x.warnings)
    return [read.guarantee(x) for x in answer.guarantees]


def tradeoff(
    privacy: p.Privacy | privacy_pb2.PrivacySpec,
    params: Mapping[str, parameter_pb2.Value],
    fprs: Iterable[float],
) -> Operation[Tradeoff]:
    rates = enumerate(convert.several("fprs", fprs))
    request = privacy_service_pb2.ComputeTradeoffRequest(
        privacy=specs.privacy_spec(privacy),
        parameters=params,
        false_positive_rates=[convert.number(f"fprs[{i}]", x) for i, x in rates],
    )
    answer: privacy_service_pb2.ComputeTradeoffResponse = yield Call(
        "compute a trade-off curve", "privacy", "ComputeTradeoff", request
    )
    warn_large_delta(answer.guarantee.warnings)
    return read.tradeoff(answer)


def study_tradeoff(
    study: study_pb2.Study,
    point: FrontPoint | Mapping[str, Any],
    fprs: Iterable[float],
    metric: str,
) -> Operation[Tradeoff]:
    params = point.params if isinstance(point, FrontPoint) else point
    if isinstance(point, FrontPoint) and point.constant_point:
        raise ValueError(f"point: {point.constant_point!r} is a constant point, without any run")
    for x in study.spec.metrics:
        if metric in ("", x.id) and x.computed.HasField("privacy"):
            values = convert.to_values(params, convert.kinds(study))
            found = yield from tradeoff(x.computed.privacy, values, fprs)
            return found
    which = f"metric {metric} of {study.name}" if metric else f"no metric of {study.name}"
    raise ValueError(f"{which} is {'not ' if metric else ''}ε of a mechanism")


def epsilon_curves(
    study: study_pb2.Study, trials: Iterable[int] | None, metric: str
) -> Operation[list[EpsilonCurve]]:
    spec = _dp_sgd(study, metric)
    configurations: dict[int, Mapping[str, Any]] = {}
    if trials is None:
        front = yield from get_front(study, "posterior", False)
        for x in sorted(front, key=lambda x: x.step):  # of several, the longest
            if not x.beyond_reference:
                configurations[x.trial] = x.params
    else:
        for number in convert.several("trials", trials):
            number = convert.integer("trials", number)
            info = yield from get_trial(study.name, number)
            configurations[number] = info.params
    unit = "steps" if spec.dp_sgd.steps else "epochs"
    curves = []
    for number, params in sorted(configurations.items()):
        longest = yield from _run_length(spec, unit, params)
        count = min(longest, CURVE_POINTS)
        while True:
            lengths = sorted(
                {longest - k * (longest - 1) // max(count - 1, 1) for k in range(count)}
            )
            try:
                found = yield from epsilon(spec, params, lengths)
                break
            except errors.InvalidArgument as error:  # too much work for one call
                if count <= 2 or not any(v.field == "lengths" for v in error.violations):
                    raise
                count //= 2
        curves.append(EpsilonCurve(number, params, unit, tuple(lengths), tuple(found)))
    return curves


def _dp_sgd(study: study_pb2.Study, metric: str) -> privacy_pb2.PrivacySpec:
    """Returns the mechanism of a metric, or of the first that is ε of DP-SGD."""
    for x in study.spec.metrics:
        if metric in ("", x.id) and x.computed.privacy.HasField("dp_sgd"):
            return x.computed.privacy
    which = f"metric {metric} of {study.name}" if metric else f"no metric of {study.name}"
    raise ValueError(f"{which} is {'not ' if metric else ''}ε of DP-SGD, whose runs have a length")


def _run_length(
    spec: privacy_pb2.PrivacySpec, unit: str, params: Mapping[str, Any]
) -> Operation[int]:
    """Returns the length of a run: a number, the value of a parameter, or the steps that the
    server derives.
    """
    expression: str = getattr(spec.dp_sgd, unit)
    name = expression.removeprefix("int(").removesuffix(")").strip()
    if name in params:
        return max(1, int(params[name]))
    if name.isdecimal():
        return max(1, int(name))
    if unit == "epochs" or spec.dp_sgd.sampling == privacy_pb2.SAMPLING_SHUFFLED:
        raise ValueError(f"the length of a run is {expression!r}, not a parameter or a number")
    whole = yield from epsilon(spec, params, ())
    return whole[0].steps


def price_search(
    privacy: p.Privacy,
    params: Mapping[str, Any],
    *,
    distribution: p.CountDistribution,
    final_run: p.Mechanism | None,
    test_noise: float | None,
    test_epsilon: float | None,
    numbers: Mapping[str, Any],
) -> Operation[SearchPrices]:
    for name, value in numbers.items():
        if name not in ("runs", "portfolios"):
            convert.positive(name, value)
    request = convert.fill(
        privacy_service_pb2.PriceSearchRequest(),
        privacy=specs.privacy_spec(privacy),
        parameters=convert.to_values(params),
        **numbers,
    )
    if distribution == "poisson":
        request.poisson.SetInParent()
    elif isinstance(distribution, str):
        if distribution not in ("geometric", "logarithmic"):
            raise ValueError(
                f"distribution: must be geometric, logarithmic, poisson or η, is {distribution!r}"
            )
        if distribution == "logarithmic":  # the geometric one is the server's default
            request.eta = 0.0
    else:
        request.eta = convert.number("distribution", distribution)
    if final_run is not None:
        request.final_run.CopyFrom(specs.mechanism(final_run))
    if test_noise is not None and test_epsilon is not None:
        raise ValueError("test_noise and test_epsilon: only one of them can be given")
    convert.fill(request, test_noise=test_noise, test_epsilon=test_epsilon)
    answer: privacy_service_pb2.PriceSearchResponse = yield Call(
        "price a search", "privacy", "PriceSearch", request
    )
    warn_large_delta(w for x in answer.ways for w in (*x.training.warnings, *x.test.warnings))
    return read.search_prices(answer)


def calibrate(
    privacy: p.Privacy,
    solve_for: str,
    minimum: float,
    maximum: float,
    target_epsilon: float,
    params: Mapping[str, Any],
) -> Operation[Calibration]:
    request = privacy_service_pb2.CalibrateMechanismRequest(
        privacy=specs.privacy_spec(privacy),
        parameters=convert.to_values(params),
        solve_for=convert.text("solve_for", solve_for),
        min=convert.number("min", minimum),
        max=convert.number("max", maximum),
        target_epsilon=convert.number("epsilon", target_epsilon),
    )
    answer: privacy_service_pb2.CalibrateMechanismResponse = yield Call(
        f"calibrate {solve_for}", "privacy", "CalibrateMechanism", request
    )
    warn_large_delta(answer.guarantee.warnings)
    return read.calibration(answer)


def privacy_ledger(study: str, delta: float, metric: str) -> Operation[PrivacyLedger]:
    request = convert.fill(
        privacy_service_pb2.GetPrivacyLedgerRequest(name=study), delta=delta, metric=metric
    )
    answer: privacy_service_pb2.GetPrivacyLedgerResponse = yield Call(
        f"read the privacy ledger of {study}", "privacy", "GetPrivacyLedger", request
    )
    warn_large_delta(answer.composed.warnings)
    return read.privacy_ledger(answer)
