"""Fine-tuning the last layers of a network, as in Opacus's tutorial on text classification."""

from types import SimpleNamespace

import torch
from opacus import PrivacyEngine
from synthetic import RECORDS, images
from torch import nn
from torch.utils.data import DataLoader


class Pretrained(nn.Module):
    """A network that was trained on public data: its first layers stay as they are."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(8 * 8 * 8, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        """Returns scores of the classes."""
        return self.head(self.body(x))


def evaluate(model, loader):
    """Returns the accuracy."""
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float() for x, y in loader]
    return torch.cat(hits).mean().item()


def main():
    """Trains a model."""
    args = SimpleNamespace(lr=1e-2, sigma=1.0, batch_size=64, epochs=2)
    train_set = images(RECORDS, 1, 20, seed=0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size)
    test_loader = DataLoader(images(200, 1, 20, seed=1), batch_size=100)
    model = Pretrained()
    for parameter in model.body.parameters():
        parameter.requires_grad = False
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=args.lr)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=0.5,
    )
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
        accuracy = evaluate(model, test_loader)
        epsilon = privacy_engine.get_epsilon(1e-5)
        print(f"epoch {epoch}: accuracy {accuracy:.4f}, ε {epsilon:.2f}")


if __name__ == "__main__":
    main()
