"""Compares private linear models on two made-up tables at equal ε: error and seconds.

    python benchmarks/linear_peers.py [loans] [rents]

The tables are `dpareto data example loans` (two classes) and `rents` (a number), of 20,000 rows.
All train on about 14,000 rows, encoded alike, and are measured on 10,000 new rows. dpareto searches
24 configurations of DP-SGD once per table, and trains the one that it recommends for each ε. This
is the ε of the final run, without the search. diffprivlib and OpenDP have no search: they train
with their defaults. Their ε is pure; dpareto's has δ = 1e-5. OpenDP's linear regression
takes a single feature, the area, and its ε is for replacing one row (two in its distance).

It needs NumPy, diffprivlib, opendp with its extra scikit-learn, and the program dpareto.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import diffprivlib.models
import numpy as np
import opendp.prelude as dp
import sklearn.linear_model

import dpfront
from dpfront._program import find_binary

RUNS = 5
TRAINING = 14_000
EPSILONS = (0.3, 1.0, 3.0)
LABELS = {"loans": "repaid", "rents": "rent"}


def dpareto(*arguments: str) -> str:
    """Runs the program, and returns what it prints."""
    return subprocess.run(
        [find_binary(), *arguments], check=True, capture_output=True, text=True
    ).stdout


def encode(schema: dict[str, Any], row: dict[str, str]) -> list[float]:
    """Returns the features of a row as docs/tutorials/own-data.md does."""
    x: list[float] = []
    for feature in schema["features"]:
        cell = row[feature["column"]]
        known = [cell == category for category in feature.get("categories", [])]
        absent = cell in ("", "?")
        if "range" in feature:
            low, high = feature["range"]
            x.append(
                0 if absent else 2 * (min(max(float(cell), low), high) - low) / (high - low) - 1
            )
        x += known
        if "unknown" in feature:
            x.append(not absent and not any(known))
        if "missing" in feature:
            x.append(absent)
    return x


class Table:
    """A table with new rows to measure on, and its schema as the card of a model has it."""

    def __init__(self, name: str) -> None:
        self.name, self.label = name, LABELS[name]
        Path(f"{name}.csv").write_text(dpareto("data", "example", name))
        new = dpareto("data", "example", name, "--rows", "10000", "--seed", "2")
        Path(f"{name}-new.csv").write_text(new)
        propose = ["--public-rows", "2000", "--label", self.label, "--number-public"]
        Path(f"{name}.yaml").write_text(dpareto("data", "schema", f"{name}.csv", *propose))
        init = [
            "--schema",
            f"{name}.yaml",
            "--trials",
            "24",
            "--id",
            name,
            "--file",
            f"{name}-study.yaml",
        ]
        dpareto("study", "init", "--data", f"{name}.csv", *init)
        dpareto("study", "create", f"{name}-study.yaml")
        start = time.perf_counter()
        dpareto("agent", "--study", name)
        self.search_seconds = time.perf_counter() - start
        self.truth = [row[self.label] for row in csv.DictReader(new.splitlines())]

    def train(self, epsilon: float) -> list[str]:
        """Trains a model and returns its predictions of the new rows."""
        folder = tempfile.mkdtemp(dir=".")
        dpareto("train", self.name, "--recommend", f"epsilon={epsilon}", "--out", folder)
        self.schema = json.loads(Path(folder, "card.json").read_text())["schema"]
        predicted = csv.DictReader(dpareto("predict", folder, f"{self.name}-new.csv").splitlines())
        return [row[self.label] for row in predicted]

    def load(self, file: str, rows: int) -> tuple[Any, Any]:
        """Returns encoded rows and labels, 0 and 1 or numbers within their range."""
        read = list(csv.DictReader(Path(file).read_text().splitlines()))[:rows]
        labels = [row[self.label] for row in read]
        x = np.array([encode(self.schema, row) for row in read], float)
        if self.name == "loans":
            return x, np.array([label == "yes" for label in labels], int)
        return x, np.clip(np.array(labels, float), *self.schema["label"]["range"])

    def error(self, predicted: Any) -> float:
        """The share that is wrong, or the root mean squared error."""
        if self.name == "loans":
            pairs = zip(predicted, self.truth, strict=True)
            return float(np.mean([a != b for a, b in pairs]))
        low, high = self.schema["label"]["range"]
        distance = np.clip(np.array(predicted, float), low, high) - np.array(self.truth, float)
        return float(np.sqrt(np.mean(distance**2)))


def area(file: str) -> Any:
    """Returns the column of OpenDP's single feature."""
    rows = csv.DictReader(Path(file).read_text().splitlines())
    return np.array([float(row["area"]) for row in rows])


def opendp_regression(table: Table, epsilon: float) -> Any:
    """The regression on the area whose noise has just the scale for ε."""
    schema = table.schema
    (area,) = [f["range"] for f in schema["features"] if f["column"] == "area"]

    def make(scale: float) -> Any:
        return dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(),
            x_bounds=[tuple(map(float, area))],
            y_bounds=tuple(map(float, schema["label"]["range"])),
            scale=scale,
        )

    low, high = 1e-4, 1e6
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if make(middle).measurement.map(2) <= epsilon else (middle, high)
    return make(high)


def peers(table: Table, epsilon: float) -> dict[str, Callable[[], Any]]:
    """Functions that train one model each and return predictions of the new rows."""
    x, y = table.load(f"{table.name}.csv", TRAINING)
    new, _ = table.load(f"{table.name}-new.csv", 10_000)
    if table.name == "loans":
        names, norm = np.array(["no", "yes"]), float(len(table.schema["features"])) ** 0.5
        public = sklearn.linear_model.LogisticRegression()
        private = diffprivlib.models.LogisticRegression(epsilon=epsilon, data_norm=norm)
        return {
            "scikit-learn, not private": lambda: names[public.fit(x, y).predict(new)],
            "diffprivlib": lambda: names[private.fit(x, y).predict(new)],
        }
    bounds = (x.min(0) * 0 - 1, x.min(0) * 0 + 1)
    raw, raw_new = area("rents.csv")[:TRAINING], area("rents-new.csv")
    private = opendp_regression(table, epsilon)
    return {
        "scikit-learn, not private": lambda: (
            sklearn.linear_model.LinearRegression().fit(x, y).predict(new)
        ),
        "diffprivlib": lambda: (
            diffprivlib.models.LinearRegression(
                epsilon=epsilon, bounds_X=bounds, bounds_y=tuple(table.schema["label"]["range"])
            )
            .fit(x, y)
            .predict(new)
        ),
        "OpenDP, of the area": lambda: private.fit(X=raw[:, None], y=y).predict(raw_new[:, None]),
    }


def measure(table: Table, predict: Callable[[], Any]) -> tuple[float, float]:
    """Returns the error of a model that is trained now, and the seconds."""
    start = time.perf_counter()
    predicted = predict()
    seconds = time.perf_counter() - start
    return table.error(predicted), seconds


def main() -> None:
    """Prints a table in Markdown."""
    warnings.simplefilter("ignore")
    dp.enable_features("contrib", "floating-point", "honest-but-curious", "idealized-numerics")
    with tempfile.TemporaryDirectory() as folder, dpfront.local_server() as server:
        os.chdir(folder)
        os.environ["DPARETO_SERVER"] = server.address
        print("| table | ε | model | error | least to most | seconds |\n|---|---|---|---|---|---|")
        for table in map(Table, sys.argv[1:] or LABELS):
            for epsilon in EPSILONS:
                models = {"dpareto": partial(table.train, epsilon)}
                table.train(epsilon)  # for the schema, and to warm up
                for model, predict in (models | peers(table, epsilon)).items():
                    runs = [measure(table, predict) for _ in range(RUNS)]
                    errors = [error for error, _ in runs]
                    seconds = statistics.median(seconds for _, seconds in runs)
                    print(
                        f"| {table.name} | {epsilon:g} | {model} | {statistics.mean(errors):.4g} "
                        f"| {min(errors):.4g} to {max(errors):.4g} | {seconds:.2f} |",
                        flush=True,
                    )
            print(f"\n{table.name}: the search took {table.search_seconds:.0f} s\n", flush=True)
        os.chdir("/")


if __name__ == "__main__":
    main()
