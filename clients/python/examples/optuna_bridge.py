"""An Optuna study of DP-SGD with two objectives, error and ε, that reports every epoch.

    python examples/optuna_bridge.py --trials 16

It is `logistic_regression.py` for those who have an Optuna program: the objective suggests,
trains and returns its values as ever. What is new is that the server computes ε before the run,
that reports work with two objectives, that every reported epoch is a point of the front, and
that the server ends runs that cannot reach it.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import optuna
from logistic_regression import FEATURES, LOT, RECORDS, TEST_RECORDS, data
from optuna.distributions import FloatDistribution, IntDistribution

import dpfront
from dpfront.integrations.optuna import DParetoSampler, dpareto_trial, epsilon, report

SPACE = {
    "learning_rate": FloatDistribution(0.01, 10, log=True),
    "clipping_norm": FloatDistribution(0.05, 1, log=True),
    "noise_multiplier": FloatDistribution(0.5, 30, log=True),
    "epochs": IntDistribution(1, 30, log=True),
}


def objective(trial: optuna.Trial) -> tuple[float, float]:
    """Trains one configuration, and returns its test error and ε."""
    rate = trial.suggest_float("learning_rate", 0.01, 10, log=True)
    clip = trial.suggest_float("clipping_norm", 0.05, 1, log=True)
    sigma = trial.suggest_float("noise_multiplier", 0.5, 30, log=True)
    epochs = trial.suggest_int("epochs", 1, 30, log=True)
    x, y = data(RECORDS, seed=1)
    test_x, test_y = data(TEST_RECORDS, seed=2)
    # Noise that anybody can repeat protects nothing: a model to release takes secret randomness.
    rng = np.random.default_rng(trial.number)
    dpareto_trial(trial).seeded = True
    loader = math.ceil(RECORDS / LOT)  # lots in an epoch
    w, error = np.zeros(FEATURES), 0.5
    for epoch in range(1, epochs + 1):
        for _ in range(loader):
            lot = rng.random(RECORDS) < 1 / loader
            gradients = -(y[lot] / (1 + np.exp(y[lot] * (x[lot] @ w))))[:, None] * x[lot]
            norms = np.linalg.norm(gradients, axis=1, keepdims=True)
            gradients /= np.maximum(1, norms / clip)
            noise = rng.normal(scale=sigma * clip, size=FEATURES)
            w -= rate * (gradients.sum(axis=0) + noise) / LOT
        error = float(np.mean(test_y * (test_x @ w) <= 0))
        if report(trial, epoch, error=error):
            break  # the server expects nothing more of this run
    return error, epsilon(trial)


def main() -> None:
    """Runs the study on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=16)
    args = parser.parse_args()
    privacy = dpfront.opacus(
        dataset_size=RECORDS,
        batch_size=LOT,
        epochs="epochs",
        delta=1e-6,
        learning_rate="learning_rate",  # with the clipping norm fewer runs do
        clipping_norm="clipping_norm",
    )
    metrics = [
        dpfront.Minimize("error", 0.5, "logit", sample_size=TEST_RECORDS),
        dpfront.epsilon(privacy),
    ]
    with dpfront.local_server() as server:
        sampler = DParetoSampler.create(
            server.client(), "optuna", SPACE, metrics, checkpoint_parameter="epochs"
        )
        study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        study.optimize(objective, n_trials=args.trials)
        front = sampler.study.front()
        planned = {t.number: t.raw.parameters["epochs"].int_value for t in sampler.study.trials()}
        early = sum(point.step < planned[point.trial] for point in front)
        print(f"{len(study.best_trials)} best trials in Optuna, {len(front)} points of the front,")
        print(f"{early} of them from reports on the way. ε is an upper bound for one run,")
        print("at δ = 1e-6, if one record is added or removed.")
        for point in front:
            if not point.beyond_reference:
                error, eps = point.values["error"].value, point.values["epsilon"].value
                print(f"ε {eps:8.4f}  error {error:.4f}  step {point.step}  {dict(point.params)}")


if __name__ == "__main__":
    main()
