"""Logistic regression with DP-SGD: the front of its error and ε."""

from __future__ import annotations

import argparse

import numpy as np
import optuna
import optunahub
from optuna.distributions import FloatDistribution, IntDistribution

import dpfront

RECORDS, FEATURES, LOT, DELTA = 4000, 10, 100, 1e-6

SPACE = {
    "learning_rate": FloatDistribution(0.01, 10, log=True),
    "noise_multiplier": FloatDistribution(0.5, 30, log=True),
    "epochs": IntDistribution(1, 10),
}


def main() -> None:
    """Runs a study on a server of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=12)
    args = parser.parse_args()
    dpareto = optunahub.load_module("samplers/dpareto")

    rng = np.random.default_rng()  # of secret randomness
    x = rng.normal(size=(2 * RECORDS, FEATURES))
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    y = np.where(x.sum(axis=1) + 0.3 * rng.normal(size=len(x)) > 0, 1.0, -1.0)
    test_x, test_y, x, y = x[RECORDS:], y[RECORDS:], x[:RECORDS], y[:RECORDS]

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        rate = trial.suggest_float("learning_rate", 0.01, 10, log=True)
        sigma = trial.suggest_float("noise_multiplier", 0.5, 30, log=True)
        w, error = np.zeros(FEATURES), 1.0
        for epoch in range(1, trial.suggest_int("epochs", 1, 10) + 1):
            for _ in range(RECORDS // LOT):
                lot = rng.random(RECORDS) < LOT / RECORDS
                # Records of norm 1 have gradients of norm 1: nothing needs clipping.
                gradient = -(y[lot] / (1 + np.exp(y[lot] * (x[lot] @ w)))) @ x[lot]
                w -= rate * (gradient + rng.normal(scale=sigma, size=FEATURES)) / LOT
            error = float(np.mean(test_y * (test_x @ w) <= 0))
            if dpareto.report(trial, epoch, error=error):
                break
        return error, dpareto.epsilon(trial)

    privacy = dpfront.opacus(dataset_size=RECORDS, batch_size=LOT, epochs="epochs", delta=DELTA)
    metrics = [dpfront.Minimize("error", 0.5, "logit"), dpfront.epsilon(privacy)]
    with dpfront.local_server() as server:
        sampler = dpareto.DParetoSampler.create(
            server.client(), "example", SPACE, metrics, checkpoint_parameter="epochs"
        )
        study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        study.optimize(objective, n_trials=args.trials)
        print(f"error, ε of one run (upper bound, δ = {DELTA}, add/remove one record):")
        for trial in study.best_trials:
            print(trial.values, trial.params)
        print("for ε = 1:", sampler.study.recommend(epsilon=1.0).params)


if __name__ == "__main__":
    main()
