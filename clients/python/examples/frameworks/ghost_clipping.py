"""Ghost clipping, large lots in small pieces, and mixed precision, all by Opacus."""

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from recipe import data, search
from torch.utils.data import DataLoader, TensorDataset

import dpfront

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRAIN = TensorDataset(*map(torch.tensor, data()))
X_TEST, Y_TEST = (torch.tensor(part, device=DEVICE) for part in data(500, seed=2))


def train(trial):
    """Trains one configuration."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    model = model.to(DEVICE)
    engine = PrivacyEngine()

    def accuracy():
        with torch.no_grad():
            return (model(X_TEST).argmax(1) == Y_TEST).float().mean().item()

    with dpfront.opacus_trial(trial, engine, accuracy):  # the line
        private, optimizer, criterion, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=trial["lr"]),
            data_loader=DataLoader(TRAIN, batch_size=trial["batch_size"]),
            criterion=torch.nn.CrossEntropyLoss(),
            noise_multiplier=trial["sigma"],
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
        )
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=64, optimizer=optimizer
        ) as pieces:
            for _ in range(trial["epochs"]):
                for x, y in pieces:
                    optimizer.zero_grad()
                    # In bfloat16, which needs no GradScaler: a scaler skips steps.
                    with torch.autocast(DEVICE, dtype=torch.bfloat16):
                        loss = criterion(private(x.to(DEVICE)), y.to(DEVICE))
                    loss.backward()
                    optimizer.step()


if __name__ == "__main__":
    search(train)
