"""Checks and reports a training loop with opake, which makes PyTorch private by functions.

loader = DataLoader(data, batch_sampler=PoissonSampler(data, sample_rate=q, key=random_key()))
noise_fn, state = gaussian_noise(noise_multiplier=trial["sigma"], key=random_key())
lots, noise_fn = trial_steps(trial, loader, noise_fn, lambda: accuracy(params))
for x, y in lots:
    grads, clip_state = grad_fn(params, x, y, state=clip_state)
    noisy, state = noise_fn(grads, state)
    ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from dpfront._sync.trial import Trial
from dpfront._trial import Outcome
from dpfront.integrations._run import LARGEST_HAND_SET_SEED, TrialRun

__all__ = ["trial_steps"]

NoiseFn = Callable[[Any, Any], tuple[Any, Any]]


def trial_steps(
    trial: Trial,
    loader: Any,
    noise_fn: NoiseFn,
    evaluate: Callable[[], Outcome] | None = None,
) -> tuple[Iterator[Any], NoiseFn]:
    """Returns the batches of a trial, one for every step, and the noise function to use.

    After every epoch the result of ``evaluate`` is reported: a dict of metrics, or a number if
    there is only one. The trial ends after its last step, or when the server expects nothing
    more of it. Checked are:

    - at once: the sampler, its probability, and its numbers of records and steps;
    - at every step: that noise was added once, from a new state, with the noise multiplier of the
      trial, and for the clipping norm of the first step;
    - in every report: ε, if ``evaluate`` returns it by the name of the study's metric.

    It does not see whether gradients are of the batch alone.

    Args:
        trial: The trial, of a study with `DpSgd`.
        loader: A ``DataLoader`` whose ``batch_sampler`` is a ``PoissonSampler`` of opake, or a
            ``KOutOfTSampler`` with "block" allocation for random allocation.
        noise_fn: The noise function of ``gaussian_noise``.
        evaluate: Called after every epoch.

    A trial whose noise has a key of a seed below 2³² is marked as seeded (`Trial.seeded`). Such a
    seed is not seen behind ``fold_in`` or ``split``.

    Raises:
        PrivacyMismatch: Training and study differ. The trial is given back.
    """
    run = _OpakeRun(trial, noise_fn)
    run.check_loader(loader.batch_sampler)
    return run.loop(loader, evaluate), run.add_noise


class _OpakeRun(TrialRun):
    """One training run with opake."""

    def __init__(self, trial: Trial, noise_fn: NoiseFn) -> None:
        super().__init__(trial, "trial_steps")
        self.noise_fn = noise_fn
        self.noises = 0  # how often noise was added
        self.norms: list[Any] = []  # to which gradients are clipped

    def check_loader(self, sampler: Any) -> None:
        """Compares the sampler of a loader with the trial."""
        kind, name = type(sampler), type(sampler).__name__
        if not kind.__module__.startswith("opake.") or name not in (
            "PoissonSampler",
            "KOutOfTSampler",
        ):
            self.fail(
                "sampler",
                f"{kind.__module__}.{kind.__qualname__}",
                "PoissonSampler or KOutOfTSampler of opake.dpsgd.sampling",
                "give the DataLoader one of them as batch_sampler",
            )
        records, known = len(sampler.data_source), self.plans[0].records
        if known not in (None, records):
            self.fail("records", records, known, "sample from the records of the study")
        if name == "PoissonSampler":
            if sampler.truncated_batch_size is not None:
                self.fail("sampler", "truncated lots", "Poisson lots", "leave out the truncation")
            self.check_sampler(name, sampler.sample_rate)
            steps = sampler.n_steps
        else:
            epochs, steps = sampler.k, sampler.t
            if sampler.allocation != "block" or steps % epochs:
                self.fail(
                    "allocation",
                    f"{sampler.allocation} of {steps} steps, {epochs} times",
                    "one in every epoch",
                    'use allocation="block", and a multiple of k as t',
                )
            lots = steps // epochs
            self.check_sampler(name, 1 / lots, lots=lots, allocation=True)
        if steps not in (None, self.planned_steps()) or sampler.consumed:
            self.fail(
                "steps",
                f"{steps}, {sampler.consumed} of them consumed",
                self.planned_steps(),
                "make a new sampler of so many steps for every trial",
            )

    def add_noise(self, grads: Any, state: Any) -> tuple[Any, Any]:
        """Adds noise as opake does, and compares it."""
        kind = type(state)
        if not kind.__module__.startswith("opake.") or kind.__name__ != "GaussianNoiseState":
            self.fail(
                "noise",
                f"{kind.__module__}.{kind.__qualname__}",
                "gaussian_noise of opake.dpsgd.noise",
                "give trial_steps its function, and the function its state",
            )
        if state._step_counter != self.noises:
            self.fail(
                "noise state",
                f"of step {state._step_counter}",
                f"of step {self.noises}",
                "keep the state that the noise function returns: an old one adds the same noise",
            )
        self.trial.seeded |= state._rng_key.seed < LARGEST_HAND_SET_SEED
        noisy, following = self.noise_fn(grads, state)
        # With a second moment there are two, and with groups of parameters a value for each.
        streams = [noisy] if hasattr(noisy, "noise_stddev") else list(noisy)
        norms = [norm for stream in streams for norm in _values(stream.max_norm)]
        deviations = [sd for stream in streams for sd in _values(stream.noise_stddev)]
        moved = math.hypot(
            *(c / sd if sd else math.inf for c, sd in zip(norms, deviations, strict=True))
        )
        self.check_noise(1 / moved if moved else math.nan)
        self.norms = self.norms or norms
        if norms != self.norms:
            self.fail(
                "clipping norm",
                norms,
                f"{self.norms}, of the first step",
                "keep it fixed, and divide by the expected size of a batch: adaptive clipping "
                "and sizes of batches are not covered by ε",
            )
        self.noises += 1
        return noisy, following

    def step(self, count: int = 1) -> None:
        """Counts a step, for which noise must have been added once."""
        super().step(count)
        if self.noises != self.steps:
            self.fail(
                "noise",
                f"added {self.noises} times in {self.steps} steps",
                "once a step",
                "call the noise function that trial_steps returned, also for an empty batch",
            )


def _values(x: Any) -> list[float]:
    """Returns the values of all groups of parameters."""
    return list(x.values.values()) if hasattr(x, "values") else [x]
