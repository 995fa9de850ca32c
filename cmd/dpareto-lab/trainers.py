"""Compare the time of DP-SGD with Opacus and JAX.

    pip install opacus jax numpy
    taskset -c 0 dpareto-lab bench trainer | taskset -c 0 python cmd/dpareto-lab/trainers.py

Takes the rows of dpareto-lab bench trainer on standard input, and prints a table in Markdown with a
row for each model and lot: processor nanoseconds of one example. Opacus has its hooks and its ghost
clipping. JAX has ghost clipping written by hand, one jitted scan an epoch, and the same training
without privacy. Both add noise in float32, which is not exact. Inputs are dense. Each library
trains one epoch that is not counted; the fastest of --rounds others counts.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import opacus
import torch

RATE = 1e-3
Epoch = Callable[[], object]


def examples(widths: list[int], lot: int, lots: int) -> tuple[Any, Any]:
    """Random lots of inputs in [0, 1), and of classes."""
    rng = np.random.default_rng(1)
    x = rng.random((lots, lot, widths[0]), dtype=np.float32)
    return x, rng.integers(0, max(2, widths[-1]), (lots, lot))


def opacus_epoch(widths: list[int], lot: int, lots: int, mode: str) -> Epoch:
    """One epoch of Opacus in a mode of gradients."""
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    between = [part for layer in layers for part in (layer, torch.nn.ReLU())]
    module = torch.nn.Sequential(*between[:-1])
    inputs, classes = examples(widths, lot, lots)
    x = torch.from_numpy(inputs)
    two = widths[-1] == 1
    y = torch.from_numpy(classes).float()[..., None] if two else torch.from_numpy(classes)
    criterion = torch.nn.BCEWithLogitsLoss() if two else torch.nn.CrossEntropyLoss()
    data = torch.utils.data.TensorDataset(x.flatten(0, 1))
    private = opacus.PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=RATE),
        criterion=criterion,
        data_loader=torch.utils.data.DataLoader(data, batch_size=lot),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    module, optimizer = private[:2]
    if mode == "ghost":
        criterion = private[2]

    def epoch() -> None:
        for a, b in zip(x, y, strict=True):
            optimizer.zero_grad()
            criterion(module(a), b).backward()
            optimizer.step()

    return epoch


def jax_epoch(widths: list[int], lot: int, lots: int, private: bool) -> Epoch:
    """One epoch of JAX, with or without ghost clipping and noise."""
    key = jax.random.key(1)
    state = [
        (0.01 * jax.random.normal(key, (a, b)), jnp.zeros(b)) for a, b in itertools.pairwise(widths)
    ]
    inputs, classes = examples(widths, lot, lots)
    x, y = jnp.asarray(inputs), jnp.asarray(classes)

    def step(carry: Any, batch: Any) -> tuple[Any, None]:
        (weights, key), (a, y) = carry, batch
        inputs = []
        for i, (w, b) in enumerate(weights):
            inputs.append(a)
            a = a @ w + b
            a = jax.nn.relu(a) if i + 1 < len(weights) else a
        if a.shape[1] == 1:
            delta = jax.nn.sigmoid(a) - y[:, None]
        else:
            delta = jax.nn.softmax(a) - jax.nn.one_hot(y, a.shape[1])
        deltas, squared = [], 0.0
        for a, (w, _) in zip(reversed(inputs), reversed(weights), strict=True):
            deltas.append(delta)
            squared += ((a * a).sum(1) + 1) * (delta * delta).sum(1)
            delta = (delta @ w.T) * (a > 0)
        factor = jnp.minimum(1, 1 / jnp.sqrt(squared))[:, None] if private else 1.0
        moved = []
        for a, delta, (w, b) in zip(inputs, reversed(deltas), weights, strict=True):
            gradients = (a.T @ (delta * factor), (delta * factor).sum(0))
            if private:  # of sensitivity 2, for lots of a fixed size
                key, *keys = jax.random.split(key, 3)
                noise = [
                    jax.random.normal(k, g.shape) for k, g in zip(keys, gradients, strict=True)
                ]
                gradients = (gradients[0] + 2 * noise[0], gradients[1] + 2 * noise[1])
            moved.append((w - RATE / lot * gradients[0], b - RATE / lot * gradients[1]))
        return (moved, key), None

    run = jax.jit(lambda state, key: jax.lax.scan(step, (state, key), (x, y))[0])
    return lambda: jax.block_until_ready(run(state, key)[0])


def least(epoch: Epoch, examples: int, rounds: int) -> float:
    """The processor nanoseconds of an example in the fastest epoch."""
    epoch()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        epoch()
        times.append(time.process_time() - start)
    return 1e9 * min(times) / examples


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="epochs that are timed")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    packages = ["opacus", "torch", "jax"]
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages) + "\n")
    print(
        "| model | lot | dpareto | clipped alone | not private | private / not "
        "| JAX ghost | JAX not private | private / not "
        "| Opacus hooks | Opacus ghost | JAX ghost / dpareto |"
    )
    print("|---" * 12 + "|")
    for row in csv.DictReader(sys.stdin):
        widths, lot = [int(w) for w in row["widths"].split()], int(row["lot"])
        lots = max(1, round(int(row["rows"]) / lot))
        theirs = [
            least(make(widths, lot, lots, kind), lot * lots, options.rounds)
            for make, kind in (
                (jax_epoch, True),
                (jax_epoch, False),
                (opacus_epoch, "hooks"),
                (opacus_epoch, "ghost"),
            )
        ]
        ours = [float(row[kind]) for kind in ("private", "clipped", "not_private")]
        times = [ours[0], ours[1], ours[2], ours[0] / ours[2]]
        times += [theirs[0], theirs[1], theirs[0] / theirs[1], theirs[2], theirs[3]]
        times.append(theirs[0] / ours[0])
        cells = [f"{x:,.0f}" if x > 30 else f"{x:.2f}" for x in times]
        print(f"| {row['model']} | {lot} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
