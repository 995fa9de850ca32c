"""Records the steps of loops with Opacus, right and with seeded faults, into fixtures/steps.json.

    python -m tests.record_steps          # needs torch and Opacus
    python -m tests.record_steps --runs 200

With --runs it replays that many loops without a fault, and prints what was found.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import opacus
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.nn.functional import cross_entropy

from dpfront import DpSgd, Privacy, audit

FIXTURE = Path(__file__).parent / "fixtures" / "steps.json"
RECORDS, WIDTH, LOT, EPOCHS, NORM, NOISE = 120, 6, 12, 7, 0.5, 1.5
RATE = 0.1
FAULTS = {
    "clipping to twice the norm": "clipping",
    "clipping of the sum of a micro-batch": "clipping",
    "noise of the mean on the sum": "noise",
    "noise of each micro-batch": "noise",
    "reused noise": "reused noise",
    "shuffled for Poisson": "sampling",
    "last batch dropped": "steps",
}


def make_privacy() -> Privacy:
    """Returns what Opacus accounts."""
    mechanism = DpSgd(
        "poisson", RECORDS, LOT, NOISE, epochs=EPOCHS, clipping_norm=NORM, convention="opacus"
    )
    return Privacy(mechanism, 1e-5, "add_remove")


def data() -> tuple[Any, Any]:
    """Returns records whose gradients are mostly longer than the norm."""
    rng = np.random.default_rng(7)
    x = np.round(3 * rng.normal(size=(RECORDS, WIDTH)), 2)
    y = (x.sum(axis=1) + rng.normal(size=RECORDS) > 0).astype(int)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def seed_fault(optimizer: Any, fault: str) -> None:
    """Makes a fault of a right optimizer."""
    noise, clip = optimizer.add_noise, optimizer.clip_and_accumulate

    def add_noise() -> None:
        if fault == "reused noise":
            torch.manual_seed(5)
        if fault == "noise of each micro-batch":
            noise()
            for p in optimizer.params:
                p.summed_grad = p.grad
        noise()

    def clip_and_accumulate() -> None:
        if fault == "clipping to twice the norm":
            optimizer.max_grad_norm = 2 * NORM
        if fault == "clipping of the sum of a micro-batch":
            for p in optimizer.params:
                p.grad_sample = optimizer._get_flat_grad_sample(p).sum(0, keepdim=True)
        clip()
        optimizer.max_grad_norm = NORM

    optimizer.add_noise, optimizer.clip_and_accumulate = add_noise, clip_and_accumulate
    if fault == "noise of the mean on the sum":
        optimizer.noise_multiplier = NOISE / LOT


def run(seed: int, fault: str = "", split: bool = False) -> tuple[list[audit.Step], Any]:
    """Trains with Opacus, and returns the recorded steps and gradients by torch alone."""
    torch.manual_seed(seed)
    x, y = data()
    model = torch.nn.Linear(WIDTH, 2)
    gradients = audit.torch_gradients(
        model, lambda module, i: cross_entropy(module(x[i : i + 1]), y[i : i + 1])
    )
    private, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), RATE),
        data_loader=torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), batch_size=LOT, shuffle=True
        ),
        noise_multiplier=NOISE,
        max_grad_norm=NORM,
        poisson_sampling=fault != "shuffled for Poisson",
    )
    seed_fault(optimizer, fault)
    with audit.opacus_steps(optimizer, loader) as steps:
        for _ in range(EPOCHS):
            if split:
                with BatchMemoryManager(
                    data_loader=loader, max_physical_batch_size=4, optimizer=optimizer
                ) as parts:
                    epoch(private, optimizer, parts)
            else:
                count = len(loader) - (fault == "last batch dropped")
                epoch(private, optimizer, itertools.islice(loader, count))
    return steps, gradients


def epoch(model: Any, optimizer: Any, batches: Any) -> None:
    """Trains on batches."""
    for x, y in batches:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def replay(seed: int, fault: str = "", split: bool = False) -> audit.Replay:
    """Replays a loop."""
    steps, gradients = run(seed, fault, split)
    return audit.replay(steps, gradients, make_privacy(), divisor=LOT)


def fixture() -> dict[str, Any]:
    """Returns the recorded steps of a right loop, one with split lots, and one for each fault."""

    x, y = data()
    found: dict[str, Any] = {
        "opacus": opacus.__version__,
        "torch": torch.__version__,
        "x": np.round(x.double().numpy(), 2).tolist(),
        "y": y.tolist(),
        "runs": [],
    }
    for k, fault in enumerate(["", "split", *FAULTS]):
        steps, _ = run(k, "" if fault == "split" else fault, fault == "split")
        weights = [s.weights for s in steps]
        last = weights[-1] - RATE * steps[-1].released
        found["runs"].append(
            {
                "fault": "" if fault == "split" else fault,
                "finding": FAULTS.get(fault, ""),
                "lots": [s.lot for s in steps],
                "weights": [np.round(w, 6).tolist() for w in [*weights, last]],
            }
        )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if arguments.runs:
        results = [replay(1000 + seed, split=seed % 2 == 1) for seed in range(arguments.runs)]
        for result in results:
            if not result:
                print(result)
        print(f"{sum(not r for r in results)} of {arguments.runs} right loops have a finding")
        low = math.fsum(r.noise_multiplier[0] for r in results) / arguments.runs
        high = math.fsum(r.noise_multiplier[1] for r in results) / arguments.runs
        print(f"noise multiplier {NOISE}, measured {low:.3f} to {high:.3f} on average")
    else:
        FIXTURE.write_text(json.dumps(fixture(), separators=(",", ":")) + "\n")
