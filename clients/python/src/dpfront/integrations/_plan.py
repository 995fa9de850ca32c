"""The server's account of a trial, with which integrations compare what training code runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfront._operations import accounting
from dpfront._sync.trial import Trial
from dpfront.errors import PrivacyMismatch
from dpfront.v1 import privacy_pb2, privacy_service_pb2


@dataclass(frozen=True)
class Plan:
    """What a privacy metric of the study says of the trial."""

    spec: privacy_pb2.PrivacySpec
    probability: float
    """Sampling probability of a record."""
    noise_multiplier: float
    """Standard deviation of the noise relative to the clipping norm."""
    lots: int
    """Number of lots of an epoch."""
    steps: int
    """Number of steps of the whole run."""

    def noise_mismatch(self, noise_multiplier: float) -> PrivacyMismatch | None:
        """Compares a noise multiplier with the plan's."""
        if close(noise_multiplier, self.noise_multiplier):
            return None
        ratio = noise_multiplier / self.noise_multiplier
        advice = "pass the trial's noise multiplier to make_private, and keep it"
        if close(ratio, 0.5) or close(ratio, 2):
            advice += (
                "; Opacus's is the noise's standard deviation divided by the clipping norm C, "
                "not by 2C"
            )
        return PrivacyMismatch("noise multiplier", noise_multiplier, self.noise_multiplier, advice)


def plans(trial: Trial, who: str) -> list[Plan]:
    """Returns the plans of a trial, one for each privacy metric of its study.

    Raises:
        ValueError: The study has no privacy metric, or one that is not Poisson-sampled DP-SGD;
            the message names ``who`` checks it.
    """
    metrics = [m for m in trial._info.raw.spec.metrics if m.computed.HasField("privacy")]
    if not metrics:
        raise ValueError(f"study {trial.study_id} has no privacy metric to check against")
    return [_plan(trial, who, m.id, m.computed.privacy) for m in metrics]


def _plan(trial: Trial, who: str, metric: str, spec: privacy_pb2.PrivacySpec) -> Plan:
    kind = spec.WhichOneof("mechanism")
    if kind != "dp_sgd" or spec.dp_sgd.sampling != privacy_pb2.SAMPLING_POISSON:
        sampling = privacy_pb2.Sampling.Name(spec.dp_sgd.sampling)
        raise ValueError(
            f"metric {metric}: {who} checks Poisson-sampled DP-SGD, as dpfront.opacus(...) "
            f"describes it; the study's mechanism is {kind}"
            + (f" with {sampling}" if kind == "dp_sgd" else "")
        )
    answer = account(trial, spec)
    probability = answer.derived["sampling_probability"]
    # Under replace-one adjacency the spec's multiplier is relative to twice the clipping norm.
    replaced = spec.adjacency == privacy_pb2.ADJACENCY_REPLACE_ONE
    return Plan(
        spec,
        probability,
        answer.derived["noise_multiplier"] * (2 if replaced else 1),
        int(answer.derived["steps_per_epoch"]) or round(1 / probability),
        answer.guarantees[0].steps,
    )


def account(
    trial: Trial, spec: privacy_pb2.PrivacySpec, length: int | None = None
) -> privacy_service_pb2.ComputeEpsilonResponse:
    """Returns ε of a trial by the server, for another length if one is given."""
    lengths = [] if length is None else [length]
    computing = accounting.compute_epsilon(spec, trial.raw.parameters, lengths)
    return trial._transport.run(computing)


def close(a: float, b: float) -> bool:
    """Reports whether two numbers are equal but for rounding."""
    return math.isclose(a, b, rel_tol=1e-9)
