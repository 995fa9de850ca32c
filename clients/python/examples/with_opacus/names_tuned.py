"""An LSTM over letters, in the shape of Opacus's examples/char-lstm-classification.py."""

import argparse

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from synthetic import RECORDS, names
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

import dpfront


class CharNNClassifier(nn.Module):
    """The network of the example: letters are embedded, read, and the last state classified."""

    def __init__(self, embedding_size, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(27, embedding_size)
        self.lstm = DPLSTM(embedding_size, hidden_size, batch_first=True)
        self.out_layer = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        """Returns scores of the languages for names of shape [B, length]."""
        x, _ = self.lstm(self.embedding(x))
        return self.out_layer(x.mean(1))


def padded_collate(batch):
    """Joins names of several lengths."""
    x = pad_sequence([letters for letters, _ in batch], batch_first=True)
    return x, torch.tensor([language for _, language in batch])


def train(model, criterion, optimizer, train_loader):
    """Trains one epoch."""
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def test(model, test_loader):
    """Returns the accuracy."""
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float() for x, y in test_loader]
    return torch.cat(hits).mean().item()


def run(args, privacy_engine, model, train_loader, test_loader):
    """Trains a model."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=args.max_per_sample_grad_norm,
    )
    for epoch in range(args.epochs):
        train(model, criterion, optimizer, train_loader)
        print(f"Epoch {epoch}: accuracy {test(model, test_loader):.4f}")


def main(trial):
    """Reads the data and trains a model."""
    parser = argparse.ArgumentParser(description="Name classification with an LSTM")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2.0)
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--max-per-sample-grad-norm", type=float, default=1.5)
    args = parser.parse_args([], argparse.Namespace(**trial.params))
    train_set = names(RECORDS, seed=0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, collate_fn=padded_collate)
    test_loader = DataLoader(names(200, seed=1), batch_size=100, collate_fn=padded_collate)
    model = CharNNClassifier(16, 32, 2)
    privacy_engine = PrivacyEngine()
    with dpfront.opacus_trial(trial, privacy_engine, lambda: test(model, test_loader)):
        run(args, privacy_engine, model, train_loader, test_loader)


if __name__ == "__main__":
    dpfront.Study.load(dpfront.Client(), "names").optimize(main)
