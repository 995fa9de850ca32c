"""A network in JAX, with Poisson batches and optax's noise."""

import secrets

import jax
import jax.numpy as jnp
import optax
from recipe import RECORDS, data, search

from dpfront.integrations.jax import trial_steps
from dpfront.samplers import PoissonBatches

X, Y = data()
X_TEST, Y_TEST = data(500, seed=2)


def scores(w, x):
    """Returns the scores of both classes."""
    return jnp.tanh(x @ w["in"]) @ w["out"]


def loss(w, x, y):
    """Returns the loss of one record."""
    return optax.softmax_cross_entropy_with_integer_labels(scores(w, x), y)


gradients = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))


def train(trial):
    """Trains one configuration."""
    # A key of 64 secret bits: jax.random.key(1) would mark the trial as seeded.
    key = jax.random.wrap_key_data(
        jnp.array([secrets.randbits(32), secrets.randbits(32)], jnp.uint32)
    )
    noise = optax.contrib.differentially_private_aggregate(1.0, trial["sigma"], key)
    batches = PoissonBatches(RECORDS, trial["batch_size"])
    w = {
        "in": jax.random.normal(jax.random.key(1), (8, 16)) / 3,
        "out": jnp.zeros((16, 2)),
    }
    state = noise.init(w)

    def accuracy():
        return float((scores(w, X_TEST).argmax(1) == Y_TEST).mean())

    for indices, mask in trial_steps(trial, batches, noise, accuracy):  # the line
        each = gradients(w, X[indices], Y[indices])
        each = jax.tree.map(lambda g: g * mask.reshape(-1, *[1] * (g.ndim - 1)), each)  # noqa: B023
        update, state = noise.update(each, state)
        # optax divides by the length of the padded batch, which must decide nothing.
        rate = trial["lr"] * len(mask) / batches.expected_batch_size
        w = jax.tree.map(lambda a, g: a - rate * g, w, update)  # noqa: B023


if __name__ == "__main__":
    search(train)
