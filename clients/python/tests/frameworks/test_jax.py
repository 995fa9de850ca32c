"""Loops with optax, and with plans of JAX-Privacy."""

from __future__ import annotations

from typing import Any

import pytest

import dpfront
from dpfront.integrations.jax import trial_steps
from dpfront.samplers import PoissonBatches, RandomAllocationBatches, batches_per_epoch

from .mistakes import ALLOCATION, DELTA, LOTS, MISTAKES, RECORDS, check, make_study, marks

pytestmark = marks("jax", "optax", "jax_privacy")


def data() -> tuple[Any, Any]:
    import numpy as np

    x = np.random.default_rng(1).normal(size=(RECORDS, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.float32)


def key() -> Any:
    """Returns a key that nobody has chosen."""
    import secrets

    import jax

    return jax.random.wrap_key_data(
        jax.numpy.array([secrets.randbits(31) + 1, secrets.randbits(31)], "uint32")
    )


def loss(w: Any, x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    return jnp.mean(jnp.logaddexp(0, -(2 * y - 1) * (x @ w)))


def measured(w: Any, x: Any, y: Any) -> float:
    return float(((x @ w > 0) == (y > 0)).mean())


def with_optax(trial: dpfront.Trial, mistake: str | None, allocation: bool = False) -> None:
    """Trains a linear model with optax."""
    import jax
    import optax

    x, y = data()
    batch = trial["batch_size"] // (2 if mistake == "batch size" else 1)
    batches: Any = PoissonBatches(RECORDS, batch)
    if allocation:
        batches = RandomAllocationBatches(RECORDS, batches_per_epoch(RECORDS, batch))
    if mistake == "sampler":
        batches = [(slice(k, k + batch), None) for k in range(0, RECORDS, batch)]
    noise = optax.contrib.differentially_private_aggregate(
        1.0, trial["sigma"] * (0.5 if mistake == "noise" else 1), key()
    )
    w, state = jax.numpy.zeros(4), noise.init(jax.numpy.zeros(4))
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))

    def evaluate() -> dict[str, float]:
        metrics = {"accuracy": measured(w, x, y)}
        if mistake == "delta":
            metrics["epsilon"] = epsilon_at(trial, DELTA * 100)
        return metrics

    steps = 0
    for indices, mask in trial_steps(trial, batches, noise, evaluate):
        each = gradients(w, x[indices], y[indices]) * mask[:, None]
        update, state = noise.update(each, state)
        # optax divides by the length of the batch, which must not decide anything.
        w = w - update * len(mask) / (RECORDS / len(batches))
        steps += 1
    assert steps == LOTS * 2
    assert measured(w, x, y) > 0.7


def epsilon_at(trial: dpfront.Trial, delta: float) -> float:
    """Returns ε that dp_accounting computes for the first epoch."""
    import dp_accounting as dp

    event = dp.SelfComposedDpEvent(
        dp.PoissonSampledDpEvent(1 / LOTS, dp.GaussianDpEvent(trial["sigma"])), LOTS
    )
    return float(dp.pld.PLDAccountant().compose(event).get_epsilon(delta))


def with_plan(trial: dpfront.Trial, mistake: str | None) -> None:
    """Trains a linear model by a plan of JAX-Privacy."""
    import jax
    import numpy as np
    from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

    x, y = data()
    plan = BandMFExecutionPlanConfig(
        strategy=np.ones(2 if mistake == "sampler" else 1),
        iterations=LOTS * (3 if mistake == "steps" else 2),
        epsilon=None,
        delta=None,
        noise_multiplier=trial["sigma"] * (0.5 if mistake == "noise" else 1),
        sampling_prob=(0.5 if mistake == "batch size" else 1) / LOTS,
        l2_clip_norm=0.7,
    ).plan
    w, gradients = jax.numpy.zeros(4), plan.clipped_grad(loss, batch_argnums=(1, 2))
    state = plan.noise_addition_transform.init(w)

    def evaluate() -> dict[str, float]:
        metrics = {"accuracy": measured(w, x, y)}
        if mistake == "delta":
            metrics["epsilon"] = epsilon_at(trial, DELTA * 100)
        return metrics

    for indices in trial_steps(trial, plan, evaluate=evaluate, records=RECORDS):
        total = gradients(w, x[indices], y[indices])
        noisy, state = plan.noise_addition_transform.update(total, state)
        w = w - noisy / (RECORDS / LOTS)
    assert measured(w, x, y) > 0.7


@pytest.mark.parametrize("mistake", [None, "sampler", "batch size", "noise", "delta"])
def test_mistakes_with_optax(client: dpfront.Client, mistake: str | None) -> None:
    """The number of steps is the trial's: the loop takes it from there."""
    check(make_study(client), mistake, with_optax)


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes_with_a_plan(client: dpfront.Client, mistake: str | None) -> None:
    check(make_study(client), mistake, with_plan)


def test_random_allocation(client: dpfront.Client) -> None:
    check(make_study(client, ALLOCATION), None, lambda trial, _: with_optax(trial, None, True))
    check(make_study(client), "sampler", lambda trial, _: with_optax(trial, None, True))


def test_the_server_ends_a_loop(client: dpfront.Client) -> None:
    study = make_study(client)
    trial = study.ask(fixed={"sigma": 1.0, "batch_size": 64, "epochs": 4})
    study.stop_trial(trial.number, "enough")
    with pytest.raises(AssertionError):  # of the number of steps
        with_optax(trial, None)
    assert study.trials()[0].raw.final_measurement.step == 1


@pytest.mark.parametrize("seeded", [False, True])
def test_seeds(client: dpfront.Client, seeded: bool) -> None:
    import jax
    import optax

    trial = make_study(client).ask(fixed={"sigma": 1.0, "batch_size": 64, "epochs": 1})
    noise = optax.contrib.differentially_private_aggregate(
        1.0, 1.0, jax.random.key(7) if seeded else key()
    )
    for _ in trial_steps(trial, PoissonBatches(RECORDS, 64), noise, lambda: 0.5):
        pass
    assert trial.seeded is seeded
