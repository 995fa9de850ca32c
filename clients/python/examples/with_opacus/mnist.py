"""A convolutional network on images of digits, in the shape of Opacus's examples/mnist.py."""

import argparse

import torch
import torch.nn.functional as F  # noqa: N812
from opacus import PrivacyEngine
from synthetic import RECORDS, images
from torch import nn, optim
from torch.utils.data import DataLoader


class SampleConvNet(nn.Module):
    """The network of the example."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 8, 2, padding=3)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.fc1 = nn.Linear(32 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        """Returns scores of the digits for pictures of shape [B, 1, 28, 28]."""
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(x, 2, 1)
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2, 1)
        x = x.view(-1, 32 * 4 * 4)
        return self.fc2(F.relu(self.fc1(x)))


def train(args, model, train_loader, optimizer, privacy_engine, epoch):
    """Trains one epoch."""
    model.train()
    criterion = nn.CrossEntropyLoss()
    losses = []
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    epsilon = privacy_engine.get_epsilon(delta=args.delta)
    print(f"Train Epoch: {epoch} \tLoss: {sum(losses) / len(losses):.6f} (ε = {epsilon:.2f})")


def test(model, test_loader):
    """Returns the share of pictures that the model classifies correctly."""
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            correct += (model(data).argmax(1) == target).sum().item()
    return correct / len(test_loader.dataset)


def main():
    """Trains a model."""
    parser = argparse.ArgumentParser(description="Opacus MNIST Example")
    parser.add_argument("-b", "--batch-size", type=int, default=64)
    parser.add_argument("-n", "--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--sigma", type=float, default=1.0, help="Noise multiplier")
    parser.add_argument("-c", "--max-per-sample-grad_norm", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    args = parser.parse_args([])
    train_set = images(RECORDS, 1, 28, seed=0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size)
    test_loader = DataLoader(images(200, 1, 28, seed=1), batch_size=100)
    model = SampleConvNet()
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=args.max_per_sample_grad_norm,
    )
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, privacy_engine, epoch)
    print(f"Test accuracy: {test(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
