"""DP-SGD for logistic regression in NumPy, with a fault on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpfront import DpSgd, Privacy
from dpfront.audit import Step

Array = Any

RECORDS, WIDTH, LOT, EPOCHS, NORM, NOISE = 300, 12, 30, 8, 1.0, 1.5
FAULTS = {
    "clipping to twice the norm": "clipping",
    "clipping of each half of a gradient": "clipping",
    "clipping of the sum of a micro-batch": "clipping",
    "no clipping": "clipping",
    "noise of the mean on the sum": "noise",
    "noise of each micro-batch": "noise",
    "noise without the norm": "noise",
    "no noise on a coordinate": "noise",
    "reused noise": "reused noise",
    "reused noise of an epoch": "reused noise",
    "shuffled for Poisson": "sampling",
    "lots of a fixed size": "sampling",
    "the same lots in every epoch": "sampling",
    "short lots skipped": "sampling",
    "last batch dropped": "steps",
}


def make_privacy() -> Privacy:
    mechanism = DpSgd("poisson", RECORDS, LOT, NOISE, epochs=EPOCHS, clipping_norm=NORM)
    return Privacy(mechanism, 1e-5, "add_remove")


def data(rng: np.random.Generator) -> tuple[Array, Array]:
    """Records of which most have gradients beyond the norm."""
    x = 4 * rng.normal(size=(RECORDS, WIDTH))
    return x, np.sign(x @ rng.normal(size=WIDTH) + rng.normal(size=RECORDS))


class Loop:
    """A run, whose recorded steps are those of the loop as it is."""

    def __init__(self, seed: int, fault: str = "") -> None:
        if fault and fault not in FAULTS:
            raise ValueError(fault)
        self.rng = np.random.default_rng(seed)
        self.fault = fault
        self.x, self.y = data(self.rng)
        self.norm = 0.5 if fault == "noise without the norm" else NORM

    def gradients(self, weights: Array, lot: Sequence[int]) -> Array:
        rows = np.asarray(lot, dtype=int)
        margin = self.y[rows] * (self.x[rows] @ weights)
        return -(self.y[rows] / (1 + np.exp(margin)))[:, None] * self.x[rows]

    def lots(self) -> Iterator[Array]:
        steps = RECORDS // LOT
        kept = self.rng.random((steps, RECORDS)) < 1 / steps
        for _ in range(EPOCHS):
            shuffled = self.rng.permutation(RECORDS)
            for k in range(steps):
                if self.fault == "last batch dropped" and k == steps - 1:
                    continue
                if self.fault == "shuffled for Poisson":
                    yield shuffled[k * LOT : (k + 1) * LOT]
                elif self.fault == "lots of a fixed size":
                    yield self.rng.choice(RECORDS, LOT, replace=False)
                elif self.fault == "the same lots in every epoch":
                    yield np.flatnonzero(kept[k])
                else:
                    yield self.poisson(1 / steps)

    def poisson(self, probability: float) -> Array:
        while True:
            lot = np.flatnonzero(self.rng.random(RECORDS) < probability)
            if self.fault != "short lots skipped" or len(lot) >= LOT:
                return lot

    def clipped(self, rows: Array) -> Array:
        def clip(x: Array, norm: float) -> Array:
            lengths = np.linalg.norm(x, axis=-1, keepdims=True)
            return x / np.maximum(1, lengths / norm)

        if self.fault == "no clipping":
            return rows.sum(axis=0)
        if self.fault == "clipping to twice the norm":
            return clip(rows, 2 * NORM).sum(axis=0)
        if self.fault == "clipping of each half of a gradient":
            halves = [clip(half, NORM) for half in np.split(rows, 2, axis=1)]
            return np.concatenate(halves, axis=1).sum(axis=0)
        if self.fault == "clipping of the sum of a micro-batch":
            parts = [clip(part.sum(axis=0), NORM) for part in np.array_split(rows, 2)]
            return sum(parts)
        return clip(rows, self.norm).sum(axis=0)

    def noise(self, step: int) -> Array:
        sigma = NOISE * NORM
        rng = self.rng
        if self.fault == "reused noise":
            rng = np.random.default_rng(5)
        if self.fault == "reused noise of an epoch":
            rng = np.random.default_rng(step % (RECORDS // LOT))
        if self.fault == "noise of the mean on the sum":
            sigma /= LOT
        if self.fault == "noise of each micro-batch":
            return rng.normal(scale=sigma, size=(2, WIDTH)).sum(axis=0)
        if self.fault == "noise without the norm":
            sigma = NOISE * self.norm
        noise = rng.normal(scale=sigma, size=WIDTH)
        if self.fault == "no noise on a coordinate":
            noise[3] = 0
        return noise

    def run(self) -> list[Step]:
        weights = np.zeros(WIDTH)
        steps: list[Step] = []
        for lot in self.lots():
            released = (self.clipped(self.gradients(weights, lot)) + self.noise(len(steps))) / LOT
            steps.append(Step(lot.tolist(), weights.copy(), released))
            weights -= 0.1 * released
        return steps
