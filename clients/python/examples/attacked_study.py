"""A study of error and of the members that RMIA finds at a false positive rate of 1 %."""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import dpfront
from dpfront import Float, Int, Minimize, Study, Tracked, Trial, audit

FEATURES, LOT = 60, 0.1  # LOT: share of the records


def data(records: int, seed: int) -> tuple[Any, Any]:
    """Returns records and their labels, -1 or 1."""
    x = (rng := np.random.default_rng(seed)).normal(size=(records, FEATURES)) / 4
    return x, np.where(x[:, 0] + 0.3 * rng.normal(size=records) > 0, 1.0, -1.0)


def fit(x: Any, y: Any, trial: Trial, rng: Any) -> Callable[[Any, Any], list[float]]:
    """DP-SGD; returns the probability that the model gives to labels."""
    w = np.zeros(FEATURES)
    for _ in range(trial["epochs"] * round(1 / LOT)):
        lot = rng.random(len(x)) < LOT
        g = -(y[lot] / (1 + np.exp(y[lot] * (x[lot] @ w))))[:, None] * x[lot]
        g /= np.maximum(1, np.linalg.norm(g, axis=1, keepdims=True))
        noise = rng.normal(scale=trial["noise_multiplier"], size=FEATURES)
        w -= 8 * (g.sum(axis=0) + noise) / (LOT * len(x))
    return lambda x, y: list(1 / (1 + np.exp(-y * (x @ w))))


def train(trial: Trial, records: int) -> dict[str, float]:
    """Trains the model and three references, and attacks it."""
    rng = np.random.default_rng()
    trial.seeded = True  # NumPy's numbers are no secret: a model to release takes others
    members, others, public, test = (data(records, seed) for seed in (1, 2, 3, 4))
    model = fit(*members, trial, rng)
    references = [fit(*data(records, seed), trial, rng) for seed in (10, 11, 12)]
    scores = [
        audit.rmia(model(*group), [r(*group) for r in references],
                   model(*public), [r(*public) for r in references])
        for group in (members, others)
    ]  # fmt: skip
    rate = audit.attack_rate(*scores, fpr=0.01).tpr
    return {"error": float(np.mean(np.array(model(*test)) < 0.5)), "attack": rate}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--records", type=int, default=300)
    n = (args := parser.parse_args()).records
    privacy = dpfront.opacus(dataset_size=n, batch_size=round(LOT * n), epochs="epochs", delta=1e-5)
    metrics = [Minimize("error", 0.6), Minimize("attack"), Tracked("eps", computed=privacy)]
    parameters = [Float("noise_multiplier", 0.3, 8, log=True), Int("epochs", 5, 40)]
    with dpfront.local_server() as server, server.client() as client:
        study = Study.create(client, "attacked", parameters=parameters, metrics=metrics)
        study.optimize(lambda trial: train(trial, n), n_trials=args.trials)
        print(study.front())
