"""Results as a server would send them, made without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dpfront
from dpfront import Categorical, Float, Int, Maximize, Minimize, StudySpec
from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront.v1 import (
    front_service_pb2,
    metric_pb2,
    privacy_pb2,
    privacy_service_pb2,
    study_pb2,
    trial_pb2,
)

SPEC = StudySpec(
    parameters=[
        Float("noise", 0.1, 10, log=True),
        Int("epochs", 1, 20),
        Categorical("optimizer", ["sgd", "<b>$adam$"]),
        Float("momentum", 0, 1, condition={"optimizer": "sgd"}),
    ],
    metrics=[
        Maximize("accuracy", 0.1, "logit"),
        dpfront.epsilon(
            dpfront.opacus(
                dataset_size=1000,
                batch_size=10,
                noise_multiplier="noise",
                epochs="epochs",
                delta=1e-6,
            )
        ),
        Minimize("seconds", 100, "log"),
    ],
)


def study(**fields: Any) -> study_pb2.Study:
    """A study of two objectives, accuracy and ε; of three with seconds=True."""
    spec = specs.study_spec(SPEC)
    if not fields.pop("seconds", False):
        del spec.metrics[2]
    spec.checkpoint_parameter = fields.pop("checkpoint_parameter", "")
    return study_pb2.Study(name="studies/made", spec=spec, **fields)


def privacy(epsilon: float) -> privacy_pb2.PrivacyGuarantee:
    return privacy_pb2.PrivacyGuarantee(
        epsilon=epsilon,
        epsilon_lower=epsilon * 0.99996,
        delta=1e-6,
        adjacency=privacy_pb2.ADJACENCY_ADD_REMOVE,
        accountant=privacy_pb2.ACCOUNTANT_EXACT,
        assumptions=[
            privacy_pb2.Assumption(
                text="a record is zeroed out (zero-out adjacency)",
                premise=privacy_pb2.PREMISE_DATA,
                checked_by=privacy_pb2.CHECKER_NOBODY,
            )
        ],
    )


def metric_values(metrics: Mapping[str, float]) -> dict[str, metric_pb2.MetricValue]:
    return {
        k: metric_pb2.MetricValue(value=v, privacy=privacy(v) if k == "epsilon" else None)
        for k, v in metrics.items()
    }


def warnings(*codes: str) -> list[privacy_pb2.Warning]:
    return [privacy_pb2.Warning(code=code, message=f"about {code}") for code in codes]


def trial(
    number: int,
    params: Mapping[str, Any],
    steps: Mapping[int, Mapping[str, float]] | None = None,
    codes: Sequence[str] = (),
    **metrics: float,
) -> dpfront.TrialInfo:
    """A trial that succeeded with metrics."""
    return read.trial_info(
        trial_pb2.Trial(
            name=f"studies/made/trials/{number}",
            number=number,
            state=trial_pb2.TRIAL_STATE_SUCCEEDED,
            parameters=convert.to_values(params),
            measurements=[
                trial_pb2.Measurement(step=step, metrics=metric_values(m))
                for step, m in (steps or {}).items()
            ],
            final_measurement=trial_pb2.Measurement(metrics=metric_values(metrics)),
            warnings=warnings(*codes),
        )
    )


def point(
    number: int,
    params: Mapping[str, Any],
    *,
    beyond: bool = False,
    step: int = 0,
    interval: float = 0,
    **metrics: float,
) -> front_service_pb2.FrontPoint:
    """A point of a front; the accuracy has the 90 % interval ± ``interval``."""
    found = front_service_pb2.FrontPoint(
        trial=f"studies/made/trials/{number}",
        trials=[f"studies/made/trials/{number}"],
        step=step,
        parameters=convert.to_values(params),
        values={k: front_service_pb2.FrontValue(value=v) for k, v in metrics.items()},
        privacy=privacy(metrics["epsilon"]),
        beyond_reference=beyond,
    )
    for key in set(metrics) - {"epsilon"}:
        value = found.values[key]
        value.observed = value.value
        if interval and key == "accuracy":
            value.lower, value.upper = value.value - interval, value.value + interval
    return found


def front(
    of: study_pb2.Study, *points: front_service_pb2.FrontPoint, codes: Sequence[str] = ()
) -> dpfront.Front:
    """A posterior front."""
    objectives = [m.id for m in of.spec.metrics]
    return read.front(
        front_service_pb2.Front(
            kind=front_service_pb2.FRONT_KIND_POSTERIOR,
            points=points,
            hypervolume=1.5,
            objectives=objectives,
            reference={m.id: m.reference_value for m in of.spec.metrics},
            warnings=warnings(*codes),
        ),
        of,
    )


def ledger(*codes: str) -> dpfront.PrivacyLedger:
    return read.privacy_ledger(
        privacy_service_pb2.GetPrivacyLedgerResponse(
            runs=3, composed=privacy(2.00001), adaptive=True, warnings=warnings(*codes)
        )
    )
