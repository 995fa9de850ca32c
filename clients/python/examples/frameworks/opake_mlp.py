"""A network in PyTorch, which opake makes private by functions."""

import math

import torch
from opake.dpsgd.clipping import clipped_grad
from opake.dpsgd.noise import gaussian_noise
from opake.dpsgd.sampling import PoissonSampler
from opake.random import random_key
from recipe import RECORDS, data, search
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from dpfront.integrations.opake import trial_steps

TRAIN = TensorDataset(*map(torch.tensor, data()))
X_TEST, Y_TEST = map(torch.tensor, data(500, seed=2))


def scores(w, x):
    """Returns the scores of both classes."""
    return torch.tanh(x @ w["in"]) @ w["out"]


def loss(w, x, y):
    """Returns the loss of one record."""
    return cross_entropy(scores(w, x), y)


def train(trial):
    """Trains one configuration."""
    steps = math.ceil(RECORDS / trial["batch_size"])  # in an epoch
    sampler = PoissonSampler(TRAIN, sample_rate=1 / steps, key=random_key())
    loader = DataLoader(TRAIN, batch_sampler=sampler)
    gradients, clip_state = clipped_grad(
        loss, batch_argnums=(1, 2), clipping_norm=1.0, normalize_by=RECORDS / steps
    )
    # Keys are random: key(42) would mark the trial as seeded.
    noise_fn, state = gaussian_noise(noise_multiplier=trial["sigma"], key=random_key())
    w = {"in": torch.randn(8, 16) / 3, "out": torch.zeros(16, 2)}

    def accuracy():
        return float((scores(w, X_TEST).argmax(1) == Y_TEST).float().mean())

    lots, noise_fn = trial_steps(trial, loader, noise_fn, accuracy)  # the line
    for x, y in lots:
        clipped, clip_state = gradients(w, x, y, state=clip_state)
        noisy, state = noise_fn(clipped, state)
        w = {name: w[name] - trial["lr"] * noisy.pytree[name] for name in w}


if __name__ == "__main__":
    search(train)
