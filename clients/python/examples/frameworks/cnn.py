"""A convolutional network on images of stripes, in an ordinary loop with Opacus."""

import numpy as np
import torch
from opacus import PrivacyEngine
from recipe import RECORDS, search
from torch.utils.data import DataLoader, TensorDataset

import dpfront

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def images(records, seed):
    """Returns images of 8 × 8 pixels, and whether the bright stripe in each is upright."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, 1, 8, 8)).astype(np.float32)
    upright, places = rng.integers(2, size=records), rng.integers(8, size=records)
    for image, label, place in zip(x[:, 0], upright, places, strict=True):
        (image.T if label else image)[place] += 2
    return torch.tensor(x), torch.tensor(upright)


TRAIN = TensorDataset(*images(RECORDS, seed=1))
X_TEST, Y_TEST = (part.to(DEVICE) for part in images(500, seed=2))


def train(trial):
    """Trains one configuration."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 4 * 4, 2),
    ).to(DEVICE)
    engine = PrivacyEngine()

    def accuracy():
        with torch.no_grad():
            return (model(X_TEST).argmax(1) == Y_TEST).float().mean().item()

    with dpfront.opacus_trial(trial, engine, accuracy):  # the line
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=trial["lr"]),
            data_loader=DataLoader(TRAIN, batch_size=trial["batch_size"]),
            noise_multiplier=trial["sigma"],
            max_grad_norm=1.0,
        )
        for _ in range(trial["epochs"]):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(x.to(DEVICE)), y.to(DEVICE)).backward()
                optimizer.step()


if __name__ == "__main__":
    search(train)
