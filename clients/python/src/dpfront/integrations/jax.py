"""Checks and reports a training loop in JAX: with optax, or with a plan of JAX-Privacy.

noise = optax.contrib.differentially_private_aggregate(1.0, trial["sigma"], key)
batches = PoissonBatches(len(x), trial["batch_size"])
for indices, mask in trial_steps(trial, batches, noise, lambda: accuracy(params)):
    ...

for indices in trial_steps(trial, plan, records=len(x), evaluate=lambda: accuracy(params)):
    ...  # plan is a DPExecutionPlan of jax_privacy
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpfront._sync.trial import Trial
from dpfront._trial import Outcome
from dpfront.integrations._run import TrialRun
from dpfront.samplers import PoissonBatches, RandomAllocationBatches

__all__ = ["trial_steps"]

# The noise is measured on so many coordinates: its standard deviation within 0.1 %, and so
# never wrongly by a hundredth.
COORDINATES, NOISE_SLACK = 2**19, 0.01


def trial_steps(
    trial: Trial,
    batches: Any,
    noise: Any = None,
    evaluate: Callable[[], Outcome] | None = None,
    *,
    records: int | None = None,
    clipping_norm: float | None = None,
) -> Iterator[Any]:
    """Yields the batches of a trial, one for every step, and ends the trial after the last.

    After every epoch the result of ``evaluate`` is reported: a dict of metrics, or a number if
    there is only one. When the server expects nothing more of the run, the loop ends.

    Args:
        trial: The trial, of a study with `DpSgd`.
        batches: `PoissonBatches` or `RandomAllocationBatches` of `dpfront.samplers`, which yield
            indices and a mask; or a ``DPExecutionPlan`` of JAX-Privacy, which has the noise too
            and yields indices.
        noise: The optax transformation that adds the noise, alone, without an optimizer. It is
            called here, on arrays of zeros, and its noise is measured within 1 %: it takes
            gradients of every record, clips, sums and adds noise.
        evaluate: Called after every epoch.
        records: Number of records, for a plan.
        clipping_norm: Norm of the clipped gradients, if ``noise`` takes their sum.

    A trial whose noise has a key of ``jax.random.key(seed)`` with a seed below 2³² is marked as
    seeded (`Trial.seeded`).

    Raises:
        PrivacyMismatch: Training and study differ. The trial is given back.
    """
    run = TrialRun(trial, "trial_steps")
    if hasattr(batches, "batch_selection_strategy"):
        # l2_norm_bound is how far one record moves the sum, whatever the clipping norm is.
        bound = batches.clipped_grad(lambda _: 0.0).l2_norm_bound
        passes = _planned(run, batches.batch_selection_strategy, records)
        _check_noise(run, batches.noise_addition_transform, float(bound))
    else:
        passes = _passes(run, batches)
        _check_noise(run, noise, clipping_norm)
    yield from run.loop(passes, evaluate)


def _passes(run: TrialRun, batches: Any) -> Iterator[Any]:
    """Returns the batches of passes over a loader."""
    allocation = isinstance(batches, RandomAllocationBatches)
    if not isinstance(batches, (PoissonBatches, RandomAllocationBatches)):
        run.fail(
            "sampler",
            f"{type(batches).__module__}.{type(batches).__qualname__}",
            "PoissonBatches or RandomAllocationBatches of dpfront.samplers",
            "draw batches with one of them",
        )
    sampler: Any = getattr(batches, "sampler", batches)
    if (known := run.plans[0].records) not in (None, sampler.records):
        run.fail("records", sampler.records, known, "give it the number of records")
    run.check_sampler(
        type(batches).__name__, 1 / len(batches), lots=len(batches), allocation=allocation
    )
    if allocation and not sampler.fresh:
        run.fail("allocation", "the one of the first epoch", "a new one in every epoch", "fresh")
    run.trial.seeded |= sampler.generator is not None

    def passes() -> Iterator[Any]:
        while True:
            yield from batches

    return passes()


def _planned(run: TrialRun, strategy: Any, records: int | None) -> Iterator[Any]:
    """Returns the batches of a strategy of JAX-Privacy."""
    kind = f"{type(strategy).__module__}.{type(strategy).__qualname__}"
    cycle = getattr(strategy, "cycle_length", 0)
    if not kind.endswith(".CyclicPoissonSampling") or cycle != 1 or strategy.truncated_batch_size:
        run.fail(
            "sampler",
            f"{kind}, cycle_length {cycle}",
            "Poisson lots",
            "use CyclicPoissonSampling with one band, and without truncation",
        )
    known = run.plans[0].records
    if records is None or (known is not None and records != known):
        run.fail("records", records, known or "a number", "give it as records=len(data)")
    run.check_sampler(kind, strategy.sampling_prob)
    if strategy.iterations != run.planned_steps():
        run.fail("steps", strategy.iterations, run.planned_steps(), "make a plan of so many")
    batches: Iterator[Any] = strategy.batch_iterator(records)
    return batches


def _check_noise(run: TrialRun, noise: Any, clipping_norm: float | None) -> None:
    """Measures the noise of a transformation relative to what one record moves."""
    if not hasattr(noise, "update"):
        run.fail("noise", noise, "an optax transformation that adds noise", "give it as noise=")
    import jax
    import jax.numpy as jnp

    zeros = jnp.zeros(COORDINATES)
    state = noise.init(zeros)
    run.trial.seeded |= any(map(_hand_set, jax.tree.leaves(state)))
    if clipping_norm is not None:
        deviation = float(jnp.std(noise.update(zeros, state)[0]))
        sensitivity = clipping_norm
    else:
        # The same state adds the same noise, with and without a record of a long gradient.
        alone = noise.update(jnp.zeros((1, COORDINATES)), state)[0]
        with_one = noise.update(jnp.full((1, COORDINATES), 1e6), state)[0]
        deviation = float(jnp.std(alone))
        sensitivity = float(jnp.linalg.norm(with_one - alone))
    run.check_noise(deviation / sensitivity if sensitivity else 0.0, NOISE_SLACK)


def _hand_set(leaf: Any) -> bool:
    """Whether an array is a key of a seed that somebody has chosen."""
    import jax
    import numpy as np

    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return leaf.dtype == np.uint32 and leaf.shape == (2,) and int(leaf[0]) == 0
