"""Audits DP-SGD on Adult and on MNIST: lower bounds of ε beside the claim, and what they cost.

    DPARETO_DATA_DIR=... python benchmarks/audits.py adult --canaries 1000
    DPARETO_DATA_DIR=... python benchmarks/audits.py mnist --canaries 1000 --records 5000

The canaries are Dirac canaries: each has the gradient (0, …, C, …, 0) along a coordinate of its own
that no record moves, and the attacker sees every noisy sum. A second audit has ordinary canaries:
training records with wrong labels, of which the attacker sees the final loss.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dpfront
from dpfront import DpSgd, Privacy, audit

DATA = Path(os.environ.get("DPARETO_DATA_DIR", "../../../shared/data"))


def adult() -> tuple[Any, Any]:
    """Returns the rows of a9a and their labels, 0 or 1."""
    lines = (DATA / "adult" / "a9a").read_text().splitlines()
    x = np.zeros((len(lines), 124))
    x[:, 0] = 1
    for i, line in enumerate(lines):
        x[i, [int(part.split(":")[0]) for part in line.split()[1:]]] = 1
    return x / np.sqrt(15), np.array([line.startswith("+1") for line in lines]).astype(int)


def mnist(records: int) -> tuple[Any, Any]:
    """Returns the first images, with a column of ones, and their digits."""
    raw = gzip.decompress((DATA / "mnist" / "train-images-idx3-ubyte.gz").read_bytes())
    x = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[:records] / 255
    labels = gzip.decompress((DATA / "mnist" / "train-labels-idx1-ubyte.gz").read_bytes())
    y = np.frombuffer(labels, np.uint8, offset=8)[:records].astype(int)
    return np.hstack([np.ones((len(x), 1)), x / 10]), y


class Loop:
    """DP-SGD for softmax regression on Poisson samples."""

    def __init__(self, x: Any, y: Any, q: float, steps: int, sigma: float) -> None:
        self.x, self.y, self.q, self.steps, self.sigma = x, y, q, steps, sigma
        self.classes = int(y.max()) + 1
        self.rng = np.random.default_rng()

    def run(self, x: Any, y: Any, canaries: int, included: Any) -> tuple[Any, Any]:
        """Returns the model, and the noisy sums of every step along the canaries' coordinates."""
        w = np.zeros((self.classes, x.shape[1]))
        seen = np.empty((self.steps, canaries))
        for step in range(self.steps):
            lot = self.rng.random(len(x)) < self.q
            p = softmax(x[lot] @ w.T)
            p[np.arange(len(p)), y[lot]] -= 1
            norms = np.linalg.norm(p, axis=1) * np.linalg.norm(x[lot], axis=1)
            total = (p / np.maximum(1, norms)[:, None]).T @ x[lot]
            w -= 2 * (total + self.rng.normal(scale=self.sigma, size=w.shape)) / (self.q * len(x))
            drawn = (self.rng.random(canaries) < self.q) & included
            seen[step] = drawn + self.rng.normal(scale=self.sigma, size=canaries)
        return w, seen

    def dirac(self, coins: Sequence[bool]) -> list[float]:
        """Returns the white-box scores of Dirac canaries."""
        _, seen = self.run(self.x, self.y, len(coins), np.asarray(coins))
        return [audit.dirac_score(column, self.sigma, self.q) for column in seen.T]

    def wrong_labels(self, coins: Sequence[bool]) -> list[float]:
        """Returns minus the final loss of the first records, with labels that are wrong."""
        m = len(coins)
        y = self.y.copy()
        y[:m] = (y[:m] + 1) % self.classes
        kept = np.concatenate([np.asarray(coins), np.ones(len(y) - m, dtype=bool)])
        w, _ = self.run(self.x[kept], y[kept], 0, np.zeros(0, dtype=bool))
        losses = -np.log(softmax(self.x[:m] @ w.T)[np.arange(m), y[:m]] + 1e-300)
        return [-float(loss) for loss in losses]


def softmax(scores: Any) -> Any:
    """Returns probabilities."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def main() -> None:
    """Prints both audits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["adult", "mnist"])
    parser.add_argument("--canaries", type=int, default=1000)
    parser.add_argument("--records", type=int, default=5000, help="of MNIST")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    x, y = adult() if args.data == "adult" else mnist(args.records)
    q, steps, sigma = 0.02, 500, 1.0
    privacy = Privacy(
        DpSgd("poisson", None, None, sigma, steps=steps, sampling_probability=q),
        1e-5,
        "add_remove",
    )
    loop = Loop(x, y, q, steps, sigma)
    with dpfront.local_server() as server, server.client() as client:
        claim = client.epsilon(privacy)
        for train in (loop.dirac, loop.wrong_labels):
            began = time.monotonic()
            shown = audit.one_run(train, args.canaries, claim=claim, runs=args.runs)
            print(f"{args.data}, {train.__name__}, {time.monotonic() - began:.0f} s\n{shown}\n")


if __name__ == "__main__":
    main()
