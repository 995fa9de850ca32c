"""What both kinds of trial share: the configuration, and how a run ends."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpfront import _card as card
from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import errors
from dpfront import spec as s
from dpfront._card import Scalar
from dpfront._operations.calls import clip
from dpfront._results.guarantees import Guarantee, ResultWarning, seeded
from dpfront._results.trials import Artifact, StudyInfo
from dpfront._space import Suggestions, suggested
from dpfront._subset import TrainingSubset
from dpfront.v1 import study_service_pb2, trial_pb2

Values = convert.Values
Outcome = Values | Sequence[Values] | Mapping[str, Values] | None

LONGEST_LEASE = 24 * 3600.0
DEFAULT_LEASE = 60.0


class TrialBase(Suggestions):
    """A trial that this worker holds under a lease."""

    seeded = False
    """Set to True if the randomness of the run comes from a seed that somebody knows.

    Anyone with the seed can remove its noise, so no ε holds for it. The trial is marked as not
    for release.
    """

    def __init__(self, message: trial_pb2.Trial, info: StudyInfo) -> None:
        self._message = message
        self._info = info
        self._kept(message)
        self._params = convert.from_values(message.parameters)
        self._reported_step: int | None = None  # the last one
        self._stop_reported = False  # the last report was answered with a request to stop
        self._stop_reason: str | None = None
        self._lost: str | None = None
        self._ended = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} of {self.study_id}: {self._params}>"

    def _repr_html_(self) -> str:
        state = "ended" if self._ended else "stopping" if self.should_stop else "held"
        info = replace(read.trial_info(self._message), state=state)
        if self.seeded and not seeded(info.warnings):
            told = ResultWarning(card.SEEDED, "the run can be repeated, and its noise removed")
            info = replace(info, warnings=(*info.warnings, told))
        return info._repr_html_()

    @property
    def number(self) -> int:
        """Position of the trial in its study, from 1."""
        return self._message.number

    @property
    def name(self) -> str:
        """Resource name: studies/{study}/trials/{number}."""
        return self._message.name

    @property
    def study_id(self) -> str:
        """Id of the study."""
        return self._message.name.split("/")[1]

    @property
    def params(self) -> dict[str, Any]:
        """The configuration: floats, ints and names by parameter id.

        A parameter with a condition is present only if the condition holds.
        """
        return dict(self._params)

    def __getitem__(self, id: str) -> Any:
        """Returns the value of a parameter.

        Raises:
            KeyError: The study has no such parameter, or it is absent from this trial because
                its condition does not hold.
        """
        if id in self._params:
            return self._params[id]
        if id in self._info.parameters:
            raise KeyError(f"{id} is absent from {self.name}: its condition does not hold")
        close = difflib.get_close_matches(id, self._params, 1)
        guess = f"; did you mean {close[0]}?" if close else ""
        there = ", ".join(self._params)
        raise KeyError(f"{id} is not a parameter of {self.study_id}, which has {there}{guess}")

    def _suggested(self, parameter: s.Parameter) -> Scalar:
        return suggested(self._info.raw.spec, self._params, parameter)

    def _kept(self, message: trial_pb2.Trial) -> None:
        """Takes what the server keeps with the trial."""
        self._user_attrs = read.user_attrs(message)
        self._artifacts = read.artifacts(message)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What programs keep with the trial, as it was handed out or last changed here."""
        return dict(self._user_attrs)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Where files of the trial are, as it was handed out or last changed here."""
        return self._artifacts

    @property
    def computed(self) -> dict[str, float]:
        """The metrics that the server computes, by id, for the whole run."""
        return {key: v.value for key, v in self._message.computed_metrics.items()}

    @property
    def epsilon(self) -> float | None:
        """ε of the whole run, in studies with a privacy metric; of several, the first by id."""
        guarantee = self.guarantee
        return None if guarantee is None else guarantee.epsilon

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee of the whole run, in studies with a privacy metric."""
        for _, v in sorted(self._message.computed_metrics.items()):
            if v.HasField("privacy"):
                return read.guarantee(v.privacy)
        return None

    @property
    def training_subset(self) -> TrainingSubset | None:
        """The secret subset of the training records to train on; None for all of them.

        Candidates of a study with ``random_stopping`` and a ``subset_share`` have one.
        """
        if not self._message.HasField("training_subset"):
            return None
        asked = self._message.training_subset
        return TrainingSubset(size=asked.size, of=asked.of, _key=asked.key)

    @property
    def replicates(self) -> int:
        """How many independent runs of the configuration to make, at least 1."""
        return max(1, self._message.replicates)

    @property
    def attempt(self) -> int:
        """How often the trial has been handed out, this time included."""
        return self._message.attempt

    @property
    def raw(self) -> trial_pb2.Trial:
        """The trial as it was handed out."""
        return self._message

    @property
    def should_stop(self) -> bool:
        """Whether the run should end: the server expects nothing more from it, a user asked to
        stop, or the lease is lost.
        """
        return self._stop_reason is not None or self._lost is not None

    @property
    def stop_reason(self) -> str:
        """Why, if it should stop."""
        return self._lost or self._stop_reason or ""

    @property
    def ended(self) -> bool:
        """Whether the worker is done with the trial."""
        return self._ended

    def _lease_seconds(self) -> float:
        """How long a renewed lease lasts. Both times are from the server's clock."""
        expire, start = self._message.lease.expire_time, self._message.start_time
        seconds = (expire.ToDatetime() - start.ToDatetime()).total_seconds()
        return seconds if 0 < seconds <= LONGEST_LEASE else DEFAULT_LEASE

    def _check_held(self) -> None:
        if self._lost is not None:
            raise errors.LeaseLost(self.name, self._lost)

    def _reported(self, step: int, answer: study_service_pb2.AddMeasurementResponse) -> bool:
        self._reported_step = step
        self._stop_reported = answer.should_stop
        if answer.should_stop:
            self._stop_reason = answer.stop_reason or "the server asks to stop"
        return answer.should_stop

    def _renewed(self, result: study_service_pb2.RenewLeasesResponse.Result) -> None:
        if not result.held:
            self._lost = "another worker has it, or it is complete"
        elif result.should_stop and self._reported_step is not None:
            # A run without a measurement would be worthless: it continues to its first.
            self._stop_reason = self._stop_reason or "the server asks to stop"

    def _tell(
        self,
        metrics: Mapping[str, Values],
        step: int | None,
        elapsed: float | None,
    ) -> study_service_pb2.CompleteTrialRequest:
        """Returns the request that ends the trial with metrics, or the last measurement."""
        if not metrics:
            if self._reported_step is None:
                raise ValueError(
                    "tell: there are no metrics, and none were reported before: an objective "
                    "function returns its result"
                )
            return study_service_pb2.CompleteTrialRequest(
                use_last_measurement=study_service_pb2.UseLastMeasurement()
            )
        if step is None and self._stop_reported and self._info.checkpoint_parameter:
            end = self._params[self._info.checkpoint_parameter]
            if self._reported_step != end:
                raise ValueError(
                    f"tell: the run was to stop at step {self._reported_step} of {end}; say at "
                    "which it ended with step=..., or end with the last report by tell()"
                )
        return study_service_pb2.CompleteTrialRequest(
            measurement=convert.to_measurement(metrics, step or 0, elapsed, self.seeded)
        )


def reported(
    step: object, metrics: Mapping[str, Values] | None, named: Mapping[str, Values]
) -> dict[str, Values]:
    """Returns the metrics of a report, whose arguments Optuna has the other way round."""
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(
            f"report: first the step and then a dict of values by metric id, as in report(1, "
            f"{{'accuracy': 0.8}}) or report(1, accuracy=0.8); it was called with {step!r} and "
            f"{reprlib.repr(metrics)}"
        )
    return merge(metrics, named)


def infeasible_request(reason: str) -> study_service_pb2.CompleteTrialRequest:
    """Returns the request that ends a trial whose configuration cannot work."""
    return study_service_pb2.CompleteTrialRequest(
        infeasible=trial_pb2.Infeasible(reason=clip(reason) or "no reason was given")
    )


def failure_request(reason: str, retryable: bool) -> study_service_pb2.CompleteTrialRequest:
    """Returns the request that ends an attempt whose machinery failed."""
    failure = trial_pb2.Failure(
        reason=clip(reason) or "no reason was given", retryable=convert.flag("retryable", retryable)
    )
    return study_service_pb2.CompleteTrialRequest(failure=failure)


def merge(metrics: Mapping[str, Values] | None, named: Mapping[str, Values]) -> dict[str, Values]:
    """Returns the metrics of a mapping and of keyword arguments together."""
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"metrics: {reprlib.repr(metrics)} is not a dict of values by metric id")
    both = set(metrics or {}) & set(named)
    if both:
        raise ValueError(f"given twice: {', '.join(sorted(both))}")
    return {**(metrics or {}), **named}


def outcome(value: Outcome, study: StudyInfo) -> dict[str, Values]:
    """Returns the metrics of an objective function's result.

    None stands for the last measurement that it reported, and a mapping for itself. A tuple or list
    stands for the study's objectives in their order, and anything else for its only reported
    metric.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _in_order(value, study)
    if len(study.reported) != 1:
        raise TypeError(
            f"the objective function returned {reprlib.repr(value)}, but workers report "
            f"{', '.join(study.reported)}: return {_dict_of(study.reported)}"
        )
    return {study.reported[0]: value}


def _in_order(values: Sequence[Values], study: StudyInfo) -> dict[str, Values]:
    """Returns the objectives by id, if workers report all of them."""
    said = f"the objective function returned {reprlib.repr(values)}"
    computed = [x for x in study.objectives if x not in study.reported]
    if computed:
        alone = f"{study.reported[0]} alone, or " if len(study.reported) == 1 else ""
        raise TypeError(
            f"{said}, but the server computes {', '.join(computed)}: return {alone}"
            f"{_dict_of(study.reported)} (your own {computed[0]!r} in the dict is compared with "
            f"the computed one). {_SEVERAL}"
        )
    if len(values) != len(study.objectives):
        raise TypeError(
            f"{said}: return one value for each objective, which are "
            f"{', '.join(study.objectives)}, or {_dict_of(study.reported)}. {_SEVERAL}"
        )
    return dict(zip(study.objectives, values, strict=True))


_SEVERAL = "The values of several runs of a metric are Runs([...])"


def _dict_of(ids: Sequence[str]) -> str:
    return "{" + ", ".join(f"{x!r}: ..." for x in ids) + "}"


def describe(error: BaseException) -> str:
    """Returns the reason for an exception."""
    text = str(error)
    if isinstance(error, errors.Infeasible) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
