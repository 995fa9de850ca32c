"""DP-SGD with PyTorch and Opacus on MNIST, and its Pareto front of accuracy and ε.

    python examples/opacus_mnist.py --data-dir FOLDER --trials 6

FOLDER has the four files of MNIST, or of data in its format (train-images-idx3-ubyte.gz and so
on). The study accounts as Opacus does (`dpfront.opacus`), and the table at the end has Opacus's
own ε of every run beside the server's. Both account for Poisson sampling exactly; Opacus gives
an upper bound that is as far above as its eps_error allows.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import dpfront
from dpfront import Float, Int, Maximize, Study, Trial

DELTA = 1e-5
EPS_ERROR = 4e-4  # of Opacus's accountant, whose default of 0.01 is too coarse to compare


def read(folder: Path, kind: str, records: int) -> TensorDataset:
    """Returns the first records of a set, as vectors of pixels in [0, 1] and labels."""

    def idx(name: str, header: int) -> Any:
        with gzip.open(folder / f"{kind}-{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    images = idx("images-idx3", 16).reshape(-1, 784)[:records]
    labels = idx("labels-idx1", 8)[:records]
    x = torch.tensor(images.astype(np.float32) / 255)
    return TensorDataset(x, torch.tensor(labels.astype(np.int64)))


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """Returns the share of records that a model classifies correctly."""
    x, y = data.tensors
    model.eval()
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def train(trial: Trial, train_set: TensorDataset, test_set: TensorDataset) -> None:
    """Trains one configuration, and reports accuracy and Opacus's ε after every epoch."""
    # Noise that anybody can repeat protects nothing: a model to release takes secure_mode. The
    # block below sees the seed, and marks the trial.
    torch.manual_seed(trial.number)
    model = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
    engine = PrivacyEngine(accountant="prv")

    def evaluate() -> dict[str, float]:
        epsilon = engine.accountant.get_epsilon(DELTA, eps_error=EPS_ERROR)
        return {"accuracy": accuracy(model, test_set), "epsilon": epsilon}

    with dpfront.opacus_trial(trial, engine, evaluate):
        fit(trial, model, engine, train_set)


def fit(trial: Trial, model: nn.Module, engine: Any, train_set: TensorDataset) -> None:
    """Trains a model as with Opacus alone."""
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=trial["learning_rate"]),
        data_loader=DataLoader(train_set, batch_size=trial["batch_size"]),
        noise_multiplier=trial["noise_multiplier"],
        max_grad_norm=trial["max_grad_norm"],
        poisson_sampling=True,
    )
    loss_of = nn.CrossEntropyLoss()
    for _ in range(trial["epochs"]):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()


def create(client: dpfront.Client, id: str, records: int, **fields: Any) -> Study:
    """Creates the study."""
    privacy = dpfront.opacus(
        dataset_size=records,
        epochs="epochs",
        delta=DELTA,
        learning_rate="learning_rate",  # with the clipping norm fewer runs do
        clipping_norm="max_grad_norm",
    )
    return Study.create(
        client,
        id,
        parameters=[
            Float("learning_rate", 0.05, 5, log=True),
            Float("max_grad_norm", 0.1, 3, log=True),
            Float("noise_multiplier", 0.6, 4, log=True),
            Int("batch_size", 128, 1024, log=True),
            Int("epochs", 1, 4),
        ],
        metrics=[
            Maximize("accuracy", 0.1, "logit"),
            dpfront.epsilon(privacy, reference_value=20, report_tolerance=1e-3),
        ],
        checkpoint_parameter="epochs",
        **fields,
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs the study on a server of its own, or on one that runs already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with MNIST")
    parser.add_argument("--records", type=int, default=10_000, help="training records to take")
    parser.add_argument("--server", help="address of a server; without, one is started")
    parser.add_argument("--study", default="opacus-mnist")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--plot", help="file for a picture of the front")
    args = parser.parse_args(arguments)
    # Of Opacus: noise without secure_mode, its hooks in torch, and a first guess at ε.
    warnings.filterwarnings(
        "ignore", message="Secure RNG turned off|Full backward hook|Optimal order"
    )

    train_set = read(args.data_dir, "train", args.records)
    test_set = read(args.data_dir, "t10k", 10_000)
    server = None if args.server else dpfront.local_server()
    client = server.client() if server else dpfront.Client(args.server)
    try:
        study = create(client, args.study, len(train_set))
        study.optimize(lambda trial: train(trial, train_set, test_set), n_trials=args.trials)
        print("trial  epochs  accuracy  ε by dpareto  ε by Opacus  difference")
        for info in study.trials("state = SUCCEEDED"):
            final = info.raw.final_measurement.metrics
            ours, theirs = final["epsilon"].value, final["epsilon"].reported
            print(
                f"{info.number:5}  {info.raw.final_measurement.step:6}  "
                f"{final['accuracy'].value:8.4f}  {ours:12.5f}  {theirs:11.5f}  "
                f"{theirs - ours:+.5f}"
            )
        print("\nthe front:")
        for point in study.front():
            print(
                f"ε {point.values['epsilon'].value:8.4f}  "
                f"accuracy {point.values['accuracy'].value:.4f}  {dict(point.params)}"
            )
        best = study.recommend(epsilon=2.0)
        print(f"\nfor ε = 2: {dict(best.params)}, accuracy {best.reached['accuracy']:.4f}")
        if args.plot:
            study.plot_front().figure.savefig(args.plot)
    finally:
        client.close()
        if server:
            server.stop()


if __name__ == "__main__":
    main()
