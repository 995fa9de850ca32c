"""What the recipes share: made-up data, and a study whose front is printed and drawn.

python lightning_mlp.py [TRIALS]
"""

import math
import sys
from pathlib import Path

import numpy as np

import dpfront
from dpfront import Float, Int, Maximize, Study

RECORDS, DELTA = 1000, 1e-5


def data(records=RECORDS, seed=1):
    """Returns records of eight numbers, and a label of each: whether the first three add up."""
    x = np.random.default_rng(seed).normal(size=(records, 8)).astype(np.float32)
    return x, (x[:, :3].sum(axis=1) > 0).astype(np.int64)


def dp_sgd(trial, x, y):
    """Yields the weights of logistic regression after every epoch of DP-SGD, in NumPy alone."""
    trial.seeded = True  # NumPy's numbers are no secret: a model to release takes others
    rng, w = np.random.default_rng(), np.zeros(x.shape[1])
    steps = math.ceil(len(x) / trial["batch_size"])  # in an epoch
    for _ in range(trial["epochs"]):
        for _ in range(steps):
            lot = rng.random(len(x)) < 1 / steps
            gradients = (1 / (1 + np.exp(-x[lot] @ w)) - y[lot])[:, None] * x[lot]
            gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1, keepdims=True))
            noise = rng.normal(scale=trial["sigma"], size=len(w))
            w = w - 4 * trial["lr"] * (gradients.sum(axis=0) + noise) / trial["batch_size"]
        yield w


def search(
    train, privacy=None, parameters=None, metrics=None, largest_epsilon=10.0, checkpoint="epochs"
):
    """Runs a study of a training function, and shows its front."""
    privacy = privacy or dpfront.opacus(
        dataset_size=RECORDS, noise_multiplier="sigma", epochs="epochs", delta=DELTA
    )
    parameters = parameters or [
        Float("lr", 0.01, 1, log=True),
        Float("sigma", 0.5, 4, log=True),
        Int("batch_size", 32, 256, log=True),
        Int("epochs", 1, 4),
    ]
    name = Path(sys.argv[0]).stem
    with dpfront.local_server() as server, server.client() as client:
        study = Study.create(
            client,
            name.replace("_", "-"),
            parameters=parameters,
            metrics=[
                *(metrics or [Maximize("accuracy", 0.5)]),
                dpfront.epsilon(privacy, largest_epsilon),
            ],
            checkpoint_parameter=checkpoint if any(p.id == checkpoint for p in parameters) else "",
        )
        study.optimize(train, n_trials=int(sys.argv[1]) if len(sys.argv) > 1 else 16)
        show(study, name)
        return study


def show(study, name):
    """Prints the front of the measured runs, and draws it."""
    front = study.front("observed")
    print(front)
    try:
        from matplotlib import use
    except ImportError:
        return
    use("Agg")
    from dpfront import plot

    plot.front(front, study.trials()).figure.savefig(f"{name}.png")
