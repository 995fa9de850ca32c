"""The server's account of a trial, with which integrations compare what training code runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfront import _convert as convert
from dpfront._operations import accounting
from dpfront._sync.trial import Trial
from dpfront.errors import PrivacyMismatch
from dpfront.v1 import privacy_pb2, privacy_service_pb2

POISSON, ALLOCATION = privacy_pb2.SAMPLING_POISSON, privacy_pb2.SAMPLING_RANDOM_ALLOCATION


@dataclass(frozen=True)
class Plan:
    """What a privacy metric of the study says of the trial."""

    metric: str
    """Its id."""
    spec: privacy_pb2.PrivacySpec
    probability: float
    """Sampling probability of a record; with random allocation one divided by the lots."""
    noise_multiplier: float
    """Standard deviation of the noise relative to the clipping norm."""
    lots: int
    """Number of lots of an epoch."""
    steps: int
    """Number of steps of the whole run."""
    records: int | None
    """Number of records, if it is a number in the study."""

    @property
    def allocation(self) -> bool:
        """Whether every record is in one lot of an epoch, and not in each by chance."""
        return self.spec.dp_sgd.sampling == ALLOCATION

    def noise_mismatch(
        self, noise_multiplier: float, slack: float = 1e-9
    ) -> PrivacyMismatch | None:
        """Compares a noise multiplier with the plan's, up to a relative difference."""
        if close(noise_multiplier, self.noise_multiplier, slack):
            return None
        ratio = noise_multiplier / self.noise_multiplier
        advice = "train with the trial's noise multiplier, and keep it"
        if close(ratio, 0.5, slack) or close(ratio, 2, slack):
            advice += (
                "; it is the noise's standard deviation divided by the clipping norm C, not by 2C"
            )
        return PrivacyMismatch("noise multiplier", noise_multiplier, self.noise_multiplier, advice)


def plans(trial: Trial, who: str) -> list[Plan]:
    """Returns the plans of a trial, one for each privacy metric of its study.

    Raises:
        ValueError: The study has no privacy metric, or one that is not DP-SGD with Poisson lots
            or random allocation; the message names ``who`` checks it.
    """
    metrics = [m for m in trial._info.raw.spec.metrics if m.computed.HasField("privacy")]
    if not metrics:
        raise ValueError(f"study {trial.study_id} has no privacy metric to check against")
    return [_plan(trial, who, m.id, m.computed.privacy) for m in metrics]


def _plan(trial: Trial, who: str, metric: str, spec: privacy_pb2.PrivacySpec) -> Plan:
    kind, sgd = spec.WhichOneof("mechanism"), spec.dp_sgd
    if kind != "dp_sgd" or sgd.sampling not in (POISSON, ALLOCATION):
        sampling = privacy_pb2.Sampling.Name(sgd.sampling)
        raise ValueError(
            f"metric {metric}: {who} checks DP-SGD with Poisson lots or random allocation, as "
            f"dpfront.opacus(...) describes them; the study's mechanism is {kind}"
            + (f" with {sampling}" if kind == "dp_sgd" else "")
        )
    answer = account(trial, spec)
    # Under replace-one adjacency the spec's multiplier is relative to twice the clipping norm.
    replaced = spec.adjacency == privacy_pb2.ADJACENCY_REPLACE_ONE
    multiplier = answer.derived["noise_multiplier"] * (2 if replaced else 1)
    lots = int(answer.derived["steps_per_epoch"])
    records = int(sgd.dataset_size) if sgd.dataset_size.isdigit() else None
    if sgd.sampling == ALLOCATION:
        # The accountant counts epochs, not steps.
        steps = number(trial, "steps", sgd.steps) if sgd.steps else 0
        epochs = number(trial, "epochs", sgd.epochs) if sgd.epochs else -(-steps // lots)
        return Plan(metric, spec, 1 / lots, multiplier, lots, epochs * lots, records)
    probability = answer.derived["sampling_probability"]
    lots = lots or round(1 / probability)
    steps = answer.guarantees[0].steps
    return Plan(metric, spec, probability, multiplier, lots, steps, records)


def number(trial: Trial, field: str, expression: str) -> int:
    """Returns the value of a number or a parameter of the trial."""
    value = trial.params.get(expression, expression)
    try:
        return int(value)
    except ValueError:
        raise ValueError(
            f"{field}: must be a number or a parameter of the study, so that the steps of a run "
            f"can be counted, is {expression!r}"
        ) from None


def account(
    trial: Trial, spec: privacy_pb2.PrivacySpec, length: int | None = None
) -> privacy_service_pb2.ComputeEpsilonResponse:
    """Returns ε of a trial by the server, for another length if one is given."""
    lengths = [] if length is None else [length]
    computing = accounting.compute_epsilon(spec, trial.raw.parameters, lengths)
    return trial._transport.run(computing)


def account_at(
    trial: Trial, spec: privacy_pb2.PrivacySpec, checkpoint: str, step: int
) -> privacy_service_pb2.ComputeEpsilonResponse:
    """Returns ε of a trial by the server for a value of the study's checkpoint parameter."""
    parameters = {**trial.raw.parameters}
    if checkpoint:
        kinds = convert.kinds(trial._info.raw)
        parameters |= convert.to_values({checkpoint: step}, kinds)
    return trial._transport.run(accounting.compute_epsilon(spec, parameters, []))


def close(a: float, b: float, slack: float = 1e-9) -> bool:
    """Reports whether two numbers are equal but for rounding, or a relative difference."""
    return math.isclose(a, b, rel_tol=slack)


def fraction(q: float) -> str:
    """Returns a probability as people compare it."""
    return f"{q:.6g} (1/{1 / q:.6g})"
