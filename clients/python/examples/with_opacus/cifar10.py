"""DP-Adam on color images in virtual steps, in the shape of Opacus's tutorial on CIFAR10.

Lots are larger than fits into memory: BatchMemoryManager cuts them into physical batches.
"""

import argparse

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from synthetic import RECORDS, images
from torch import nn
from torch.utils.data import DataLoader

MAX_PHYSICAL_BATCH_SIZE = 24


def make_model():
    """Returns a network whose batch normalization Opacus replaces by group normalization."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(5),
        nn.Flatten(),
        nn.Linear(800, 10),
    )
    return ModuleValidator.fix(model)


def train(args, model, train_loader, optimizer, epoch):
    """Trains one epoch in physical batches."""
    model.train()
    criterion = nn.CrossEntropyLoss()
    with BatchMemoryManager(
        data_loader=train_loader,
        max_physical_batch_size=MAX_PHYSICAL_BATCH_SIZE,
        optimizer=optimizer,
    ) as memory_safe_data_loader:
        for pictures, target in memory_safe_data_loader:
            optimizer.zero_grad()
            loss = criterion(model(pictures), target)
            loss.backward()
            optimizer.step()
    print(f"Train Epoch: {epoch} \tLoss: {loss.item():.6f}")


def test(model, test_loader):
    """Returns the accuracy."""
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float() for x, y in test_loader]
    return torch.cat(hits).mean().item()


def main():
    """Trains a model."""
    parser = argparse.ArgumentParser(description="Opacus CIFAR10 Example")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--max-grad-norm", type=float, default=1.2)
    args = parser.parse_args([])
    train_set = images(RECORDS, 3, 20, seed=0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size)
    test_loader = DataLoader(images(200, 3, 20, seed=1), batch_size=100)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=args.max_grad_norm,
    )
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)
        print(f"Test accuracy: {test(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
