"""What the recipes share: made-up data, and a study whose front is printed and drawn.

python lightning_mlp.py [TRIALS]
"""

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


def search(train, privacy=None, parameters=None):
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
            metrics=[Maximize("accuracy", 0.5), dpfront.epsilon(privacy)],
            checkpoint_parameter="epochs" if any(p.id == "epochs" for p in parameters) else "",
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
