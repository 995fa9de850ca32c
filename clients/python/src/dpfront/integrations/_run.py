"""What all integrations share: a run is compared with its trial, reported and stopped.

A framework's integration says what it sees, and nothing else: the sampler and its probability,
the noise multiplier, every step, the metrics of every epoch, and where the run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from dpfront._sync.trial import Trial
from dpfront._trial import Outcome, outcome
from dpfront.errors import DParetoError, PrivacyMismatch
from dpfront.integrations._plan import Plan, account_at, close, fraction, plans

# ε that training code computes is an upper bound of some accountant: Rényi accounting can be far
# above the server's, but none is below it by more than its discretisation.
RELATIVE_SLACK = 0.01
# Seeds that frameworks draw have 53 bits or more, those that people set are smaller than this.
LARGEST_HAND_SET_SEED = 2**32


class TrialRun:
    """One training run of a trial.

    Every method that begins with ``check`` raises `PrivacyMismatch` if training and study
    differ. Then the trial is given back, and the run cannot be finished.
    """

    def __init__(self, trial: Trial, who: str) -> None:
        if not isinstance(trial, Trial):
            raise TypeError(f"trial: must be a Trial of the blocking client, is {trial!r}")
        self.trial = trial
        self.checkpoint = trial._info.checkpoint_parameter
        self.plans = plans(trial, who)
        self.mismatch: PrivacyMismatch | None = None
        self.sampled = False  # whether a sampler was compared
        self.noised = False
        self.lots = self.plans[0].lots  # of an epoch
        self.steps = 0  # in all

    def fail(self, what: str, here: object, study: object, advice: str) -> NoReturn:
        """Raises a mismatch, and again when the run ends, should training code catch it."""
        self.raise_mismatch(PrivacyMismatch(what, here, study, advice))

    def raise_mismatch(self, mismatch: PrivacyMismatch) -> NoReturn:
        """Gives the trial back, and raises the mismatch."""
        self.mismatch = mismatch
        give_back(self.trial, mismatch)
        raise mismatch

    # --- what is executed

    def check_sampler(
        self, name: str, probability: float, *, lots: int | None = None, allocation: bool = False
    ) -> None:
        """Compares a sampler: that of Poisson lots, or one that allocates records randomly."""
        for plan in self.plans:
            if plan.allocation != allocation:
                wanted = "random allocation" if plan.allocation else "Poisson lots"
                self.fail("sampler", name, wanted, "train on lots of the study's sampler")
            if not close(probability, plan.probability):
                self.fail(
                    "sampling probability",
                    fraction(probability),
                    fraction(plan.probability),
                    "train with the batch size of the trial, on the records of the study",
                )
        self.sampled = True
        self.lots = lots or self.lots

    def check_noise(self, noise_multiplier: float, slack: float = 1e-9) -> None:
        """Compares a noise multiplier, relative to the clipping norm; ``slack`` is the relative
        error of one that was measured.
        """
        for plan in self.plans:
            if mismatch := plan.noise_mismatch(noise_multiplier, slack):
                self.raise_mismatch(mismatch)
        self.noised = True

    def check_delta(self, delta: float) -> None:
        """Compares δ for which training code computes ε."""
        if not any(close(delta, plan.spec.delta) for plan in self.plans):
            self.fail(
                "delta",
                f"{delta:g}",
                " or ".join(f"{plan.spec.delta:g}" for plan in self.plans),
                "compute ε at the study's delta: at another it is another guarantee",
            )

    def check_epsilon(self, plan: Plan, here: float, study: float) -> None:
        """Compares ε that training code computed with the study's, from below."""
        if not here >= study * (1 - RELATIVE_SLACK):
            self.fail(
                plan.metric,
                f"{here:.6g}",
                f"{study:.6g} at δ = {plan.spec.delta:g}",
                "leave it out of the report, or compute it with the study's δ, noise, sampling "
                "and steps",
            )

    def step(self, count: int = 1) -> None:
        """Counts optimizer steps that were made, and raises if they are too many."""
        if self.mismatch is not None:
            raise self.mismatch
        self.steps += count
        planned = self.planned_steps()
        if self.steps > planned:
            self.fail("steps", f"more than {planned}", planned, "train as long as the trial says")

    def planned_steps(self) -> int:
        """Steps of the whole run."""
        return self.plans[0].steps

    def loop(self, batches: Iterable[Any], evaluate: Callable[[], Outcome] | None) -> Iterator[Any]:
        """Yields batches, one for every step, reports after every epoch, and ends the trial."""
        for batch in batches:
            yield batch
            self.step()
            if self.steps % self.lots == 0 or self.steps == self.planned_steps():
                if evaluate is not None and self.report(evaluate()):
                    break
                if self.steps >= self.planned_steps():
                    break
        if evaluate is None:
            self.finish()
        else:
            self.end()

    # --- reports

    def in_steps(self) -> bool:
        """Whether the study's checkpoint parameter counts steps, not epochs."""
        return bool(self.trial.params.get(self.checkpoint) == self.planned_steps())

    def report_step(self) -> int:
        """Returns the step of a report now: the epoch, or the number of steps if the study's
        checkpoint parameter is in steps.
        """
        return self.steps if self.in_steps() else -(-self.steps // self.lots)

    def report(self, value: Outcome) -> bool:
        """Reports the metrics of an epoch, and returns whether the run should stop."""
        if self.mismatch is not None:
            raise self.mismatch
        self.check_begun()
        step, metrics = self.report_step(), outcome(value, self.trial._info)
        for plan in self.plans:
            answer = account_at(self.trial, plan.spec, self.checkpoint, step).guarantees[0]
            if not plan.allocation and self.steps > answer.steps:
                self.fail("steps", self.steps, answer.steps, f"make so many until report {step}")
            if isinstance(epsilon := metrics.get(plan.metric), (int, float)):
                self.check_epsilon(plan, epsilon, answer.epsilon)
        return self.trial.report(step, metrics)

    def check_begun(self) -> None:
        """Checks that sampler, noise and steps were seen."""
        for name, seen in (("sampler", self.sampled), ("noise", self.noised)):
            if not seen:
                self.fail(name, "none that could be checked", "private training", "")
        if self.steps == 0:
            self.fail("steps", 0, self.planned_steps(), "train before the first report")

    def finish(self) -> None:
        """Checks the run as a whole."""
        if self.mismatch is not None:
            raise self.mismatch
        if self.trial.ended:
            return
        self.check_begun()
        if self.trial.should_stop or self.at_checkpoint():
            return
        planned = self.planned_steps()
        if self.steps != planned:
            epochs = f"{planned // self.lots} epochs of {self.lots} steps"
            self.fail("steps", self.steps, planned, f"train {epochs}")

    def end(self) -> None:
        """Checks the run as a whole, and ends the trial with its last report."""
        self.finish()
        if not self.trial.ended:
            self.trial.tell()

    def at_checkpoint(self) -> bool:
        """Whether the last report, of a study with a checkpoint parameter, has all steps."""
        return bool(self.checkpoint) and self.trial._reported_step == self.report_step()


def give_back(trial: Trial, mismatch: PrivacyMismatch) -> None:
    """Gives a trial back whose run is not what its study accounts for."""
    if not trial.ended:
        with suppress(DParetoError):
            trial.release(str(mismatch))


def validation_metrics(
    trial: Trial,
    logged: Mapping[str, Any],
    names: Mapping[str, str] | None,
    *,
    held_out: bool = False,
) -> dict[str, float]:
    """Returns the study's metrics among the values that a framework has logged.

    ``names`` has the logged names by the study's; without it ``accuracy`` is ``val_accuracy`` or
    ``eval_accuracy``. A plain ``accuracy`` may be of training data, which no ε covers: it must be
    named, unless all that is logged is of held-out records.
    """
    found: dict[str, float] = {}
    for metric in trial._info.reported:
        wanted = (
            [names[metric]]
            if names and metric in names
            else [f"val_{metric}", f"eval_{metric}"] + [metric] * held_out
        )
        there = [name for name in wanted if name in logged]
        if not there:
            raise ValueError(
                f"metric {metric}: {' or '.join(wanted)} must be logged in every epoch, is not "
                f"among {', '.join(sorted(logged)) or 'any values'}; metrics={{...}} names another "
                "value of held-out records"
            )
        found[metric] = float(logged[there[0]])
    # ε of the training code is compared with the server's.
    computed = [m.id for m in trial._info.raw.spec.metrics if m.computed.HasField("privacy")]
    return found | {metric: float(logged[metric]) for metric in computed if metric in logged}


def batch_size(batch: Any) -> int:
    """Returns the number of records of a batch: the first dimension of its first array."""
    while isinstance(batch, (Mapping, list, tuple)):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return int(batch.shape[0])
