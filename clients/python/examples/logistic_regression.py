"""DP-SGD for logistic regression with numpy alone, and its Pareto front of error and ε.

    python examples/logistic_regression.py --trials 16 --plot front.png

The lots are Poisson samples, gradients are clipped one by one, and the noise on their sum has
a standard deviation of noise_multiplier times the clipping norm: the conventions of
`dpfront.opacus`. Every epoch is reported, so that every run gives a whole string of points.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpfront
from dpfront import Float, Int, Minimize, Study, Trial

Array = NDArray[np.float64]

RECORDS = 8000
TEST_RECORDS = 4000
FEATURES = 20
LOT = 200


def data(records: int, seed: int) -> tuple[Array, Array]:
    """Returns records of norm at most 1 and their labels, -1 or 1, from a noisy linear rule."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, FEATURES))
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    rule = np.random.default_rng(0).normal(size=FEATURES)
    return x, np.where(x @ rule + 0.3 * rng.normal(size=records) > 0, 1.0, -1.0)


def train(trial: Trial) -> None:
    """Trains one configuration, and reports the test error of every epoch."""
    x, y = data(RECORDS, seed=1)
    test_x, test_y = data(TEST_RECORDS, seed=2)
    # Noise that anybody can repeat protects nothing: a model to release takes secret randomness.
    rng = np.random.default_rng(trial.number)
    trial.seeded = True
    clip = trial["clipping_norm"]
    loader = math.ceil(RECORDS / LOT)  # lots in an epoch
    w = np.zeros(FEATURES)
    for epoch in range(1, trial["epochs"] + 1):
        for _ in range(loader):
            lot = rng.random(RECORDS) < 1 / loader
            margin = y[lot] * (x[lot] @ w)
            gradients = -(y[lot] / (1 + np.exp(margin)))[:, None] * x[lot]
            norms = np.linalg.norm(gradients, axis=1, keepdims=True)
            gradients /= np.maximum(1, norms / clip)
            noise = rng.normal(scale=trial["noise_multiplier"] * clip, size=FEATURES)
            # Divided by the expected size of a lot: that of the lot drawn would be private.
            w -= trial["learning_rate"] * (gradients.sum(axis=0) + noise) / LOT
        error = float(np.mean(test_y * (test_x @ w) <= 0))
        if trial.report(epoch, error=error):
            break  # the server expects nothing more of this run
    trial.tell()


def create(client: dpfront.Client, id: str, **fields: Any) -> Study:
    """Creates the study."""
    return Study.create(
        client,
        id,
        parameters=[
            Float("learning_rate", 0.01, 10, log=True),
            Float("clipping_norm", 0.05, 1, log=True),
            Float("noise_multiplier", 0.5, 30, log=True),
            Int("epochs", 1, 30, log=True),
        ],
        metrics=[
            Minimize("error", 0.5, "logit", sample_size=TEST_RECORDS),
            dpfront.epsilon(
                dpfront.opacus(
                    dataset_size=RECORDS,
                    batch_size=LOT,
                    epochs="epochs",
                    delta=1e-6,
                    learning_rate="learning_rate",  # with the clipping norm fewer runs do
                    clipping_norm="clipping_norm",
                )
            ),
        ],
        checkpoint_parameter="epochs",
        **fields,
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs the study on a server of its own, or on one that runs already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--server", help="address of a server; without, one is started")
    parser.add_argument("--study", default="logistic-regression")
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--plot", help="file for a picture of the front; takes matplotlib")
    args = parser.parse_args(arguments)

    server = None if args.server else dpfront.local_server()
    client = server.client() if server else dpfront.Client(args.server)
    try:
        study = create(client, args.study)
        study.optimize(train, n_trials=args.trials, n_jobs=args.workers)
        front = study.front()
        print(f"{len(front)} points, hypervolume {front.hypervolume:.3f}")
        for point in front:
            if point.beyond_reference:
                continue
            error, epsilon = point.values["error"], point.values["epsilon"]
            print(f"ε {epsilon.value:8.4f}  error {error.value:.4f}  {dict(point.params)}")
        best = study.recommend(epsilon=1.0)
        print(f"for ε = 1: {dict(best.params)}, error {best.reached['error']:.4f}")
        if args.plot:
            study.plot_front().figure.savefig(args.plot)
    finally:
        client.close()
        if server:
            server.stop()


if __name__ == "__main__":
    main()
