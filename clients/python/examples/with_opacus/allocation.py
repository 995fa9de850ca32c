"""The network of table.py on randomly allocated lots: another sampler, and a smaller ε.

Opacus leaves the loader as it is with poisson_sampling=False, adds its noise to every lot and
divides by len(train_set) / len(train_loader). Its accountant does not know the sampler: ε is from
dpareto.
"""

from types import SimpleNamespace

import torch
from opacus import PrivacyEngine
from synthetic import RECORDS, table
from torch import nn
from torch.utils.data import DataLoader

import dpfront
from dpfront.samplers import RandomAllocationSampler, batches_per_epoch, with_empty

DELTA = 1e-5


def fit(args, model, privacy_engine):
    """Trains the model. Returns the sampler."""
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)
    train_set = table(RECORDS, seed=0)
    sampler = RandomAllocationSampler(RECORDS, batches_per_epoch(RECORDS, args.batch_size))
    # Was: DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    train_loader = DataLoader(train_set, batch_sampler=sampler, collate_fn=with_empty(train_set[0]))
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
    return sampler


def main():
    """Trains a model, and prints ε of shuffled and of allocated lots with its noise."""
    args = SimpleNamespace(lr=0.5, sigma=1.0, batch_size=64, epochs=2)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
    sampler = fit(args, model, PrivacyEngine())
    run = {
        "dataset_size": RECORDS,
        "batch_size": args.batch_size,
        "noise_multiplier": args.sigma,
        "epochs": args.epochs,
        "delta": DELTA,
        "poisson_sampling": False,
    }
    allocated = dpfront.opacus(**run, random_allocation=True)
    sampler.check(allocated)
    with dpfront.local_server() as server, server.client() as client:
        before, after = client.epsilon(dpfront.opacus(**run)), client.epsilon(allocated)
    print(f"shuffled lots: ε = {before.epsilon:.3f} for one exchanged record")
    print(f"allocated lots: ε = {after.epsilon:.3f} for one record more or less")


if __name__ == "__main__":
    main()
