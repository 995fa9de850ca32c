"""Loops with opake."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import dpfront
from dpfront import PrivacyMismatch
from dpfront.integrations.opake import trial_steps

from .mistakes import (
    ALLOCATION,
    CONFIGURATION,
    DELTA,
    LOTS,
    MISTAKES,
    PRIVACY,
    RECORDS,
    check,
    make_study,
    marks,
)

pytestmark = marks("opake")


class Data:
    """Records of four numbers, and whether the first is positive."""

    def __init__(self) -> None:
        import torch

        self.x = torch.randn(RECORDS, 4, generator=torch.Generator().manual_seed(1))
        self.y = (self.x[:, 0] > 0).float()

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, at: int) -> Any:
        return self.x[at], self.y[at]


def train(
    client: dpfront.Client,
    trial: dpfront.Trial,
    mistake: str | None,
    *,
    allocation: bool = False,
    adaptive: bool = False,
    clipping: dict[str, Any] | None = None,
    seed: int | None = None,
) -> None:
    """Trains a linear model."""
    import torch
    from opake.dpsgd.clipping import adaptive_clipped_grad, clipped_grad
    from opake.dpsgd.noise import gaussian_noise
    from opake.dpsgd.sampling import KOutOfTSampler, PoissonSampler
    from opake.random import key, random_key
    from torch.nn.functional import binary_cross_entropy_with_logits
    from torch.utils.data import DataLoader

    data = Data()
    epochs = trial["epochs"] + (mistake == "steps")
    steps = LOTS * epochs
    sampler: Any = PoissonSampler(
        data,
        sample_rate=(0.5 if mistake == "batch size" else 1) / LOTS,
        n_steps=steps,
        key=random_key(),
    )
    if allocation:
        sampler = KOutOfTSampler(data, k=epochs, t=steps, allocation="block", key=random_key())
    loader = DataLoader(data, batch_sampler=sampler)
    if mistake == "sampler":
        loader = DataLoader(data, batch_size=64, shuffle=True)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return binary_cross_entropy_with_logits(x @ (w["a"] + w["b"]), y)

    common: dict[str, Any] = {"batch_argnums": (1, 2), "normalize_by": RECORDS / LOTS}
    if adaptive:
        gradients, clip_state = adaptive_clipped_grad(loss, key=random_key(), **common)
    else:
        gradients, clip_state = clipped_grad(
            loss, **{"clipping_norm": 0.7, **(clipping or {})}, **common
        )
    noise, state = gaussian_noise(
        noise_multiplier=trial["sigma"] * (0.5 if mistake == "noise" else 1),
        key=random_key() if seed is None else key(seed),
    )
    w = {"a": torch.zeros(4), "b": torch.zeros(4)}

    def accuracy() -> float:
        return float(((data.x @ (w["a"] + w["b"]) > 0) == (data.y > 0)).float().mean())

    def evaluate() -> dict[str, float]:
        reported = {"accuracy": accuracy()}
        if mistake == "delta":
            other = replace(PRIVACY, delta=DELTA * 100)
            reported["epsilon"] = client.epsilon(other, **{**trial.params, "epochs": 1}).epsilon
        return reported

    lots, noise = trial_steps(trial, loader, noise, evaluate)
    for x, y in lots:
        clipped, clip_state = gradients(w, x, y, state=clip_state)
        noisy, following = noise(clipped, state)
        if mistake != "noise state":
            state = following
        first = noisy if hasattr(noisy, "pytree") else noisy.noisy_grads
        w = {name: w[name] - first.pytree[name] for name in w}
    assert accuracy() > 0.7


@pytest.mark.parametrize("mistake", [None, *MISTAKES, "noise state"])
def test_mistakes(client: dpfront.Client, mistake: str | None) -> None:
    if mistake != "noise state":
        check(make_study(client), mistake, partial(train, client))
        return
    with pytest.raises(PrivacyMismatch, match="keep the state"):
        train(client, make_study(client).ask(fixed=CONFIGURATION), mistake)


def test_random_allocation(client: dpfront.Client) -> None:
    run = partial(train, client, allocation=True)
    check(make_study(client, ALLOCATION), None, run)
    check(make_study(client), "sampler", run)


def test_groups_of_parameters_and_second_moments(client: dpfront.Client) -> None:
    from opake.types import PerGroup

    groups = PerGroup({"a": "first", "b": "second"}, {"first": 0.5, "second": 0.2})
    check(make_study(client), None, partial(train, client, clipping={"clipping_norm": groups}))
    pairs = {"clipping_norm": 0.7, "second_moment": True}
    check(make_study(client), None, partial(train, client, clipping=pairs))


def test_adaptive_clipping(client: dpfront.Client) -> None:
    """Its counts are released too, and no ε of the study covers them."""
    with pytest.raises(PrivacyMismatch, match="adaptive clipping"):
        train(client, make_study(client).ask(fixed=CONFIGURATION), None, adaptive=True)


@pytest.mark.parametrize("seed", [7, None])
def test_seeds(client: dpfront.Client, seed: int | None) -> None:
    trial = make_study(client).ask(fixed=CONFIGURATION)
    train(client, trial, None, seed=seed)
    assert trial.seeded is (seed is not None)
