"""A small network on a table, as a first program with Opacus looks."""

from types import SimpleNamespace

import torch
from opacus import PrivacyEngine
from synthetic import RECORDS, table
from torch import nn
from torch.utils.data import DataLoader

import dpfront


def accuracy(model, data):
    """Returns the share of rows that the model classifies correctly."""
    x, y = data.tensors
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def fit(args, model, privacy_engine):
    """Trains the model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)
    train_set = table(RECORDS, seed=0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size)
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=1.0,
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
        scheduler.step()


def main(trial):
    """Trains a model."""
    args = SimpleNamespace(**trial.params)
    test_set = table(200, seed=1)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
    privacy_engine = PrivacyEngine()
    with dpfront.opacus_trial(trial, privacy_engine, lambda: accuracy(model, test_set)):
        fit(args, model, privacy_engine)
    print(f"accuracy {accuracy(model, test_set):.4f}")


if __name__ == "__main__":
    dpfront.Study.load(dpfront.Client(), "table").optimize(main)
