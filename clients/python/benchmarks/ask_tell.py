"""Time of an ask and a tell, beside Optuna's.

    python benchmarks/ask_tell.py --repeat 3

A study of six floats and two objectives gets as many finished trials as a column says, and
then the time of an ask with a tell is taken for some more, one after the other. The table has
the medians in milliseconds, the smallest of all repetitions. Servers run on this machine and
keep their state on disk; nothing trains.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna

import dpfront
from dpfront import Client, Float, Minimize, Study

NAMES = [f"x{k}" for k in range(6)]
SPACE = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}

Step = Callable[[], None]


def values(params: dict[str, Any]) -> tuple[float, float]:
    """Returns two objectives in [0, 1] that are in each other's way (ZDT1, scaled)."""
    f = params["x0"]
    g = 1 + sum(params[n] for n in NAMES[1:]) / 5
    return f, g * (1 - (f / g) ** 0.5) / 2


@contextmanager
def dpareto_study(algorithm: str, size: int) -> Iterator[Step]:
    """A dpareto study on a server of its own."""
    with dpfront.local_server() as server:
        client: Client = server.client()
        study = Study.create(
            client,
            "bench",
            [Float(n, 0, 1) for n in NAMES],
            [Minimize("f", 1.1), Minimize("g", 1.1)],
            algorithm=algorithm,
            seed=1,
        )
        rng = random.Random(1)
        for _ in range(size):
            params = {n: rng.random() for n in NAMES}
            f, g = values(params)
            study.add_trial(params, f=f, g=g)

        def step() -> None:
            trial = study.ask()
            f, g = values(trial.params)
            trial.tell(f=f, g=g)

        yield step


def optuna_step(sampler: str, storage: Any, size: int) -> Step:
    """Returns a step of an Optuna study in a storage."""
    samplers: dict[str, Any] = {
        "random": lambda: optuna.samplers.RandomSampler(seed=1),
        "tpe": lambda: optuna.samplers.TPESampler(seed=1),
    }
    study = optuna.create_study(
        storage=storage, directions=["minimize", "minimize"], sampler=samplers[sampler]()
    )
    rng = random.Random(1)
    for _ in range(size):
        params = {n: rng.random() for n in NAMES}
        study.add_trial(
            optuna.trial.create_trial(
                params=params, distributions=dict(SPACE), values=list(values(params))
            )
        )

    def step() -> None:
        trial = study.ask(dict(SPACE))
        study.tell(trial, values(trial.params))

    return step


@contextmanager
def optuna_memory(sampler: str, size: int) -> Iterator[Step]:
    """An Optuna study in memory."""
    yield optuna_step(sampler, None, size)


SERVER = """
import sys, optuna
storage = optuna.storages.RDBStorage("sqlite:///" + sys.argv[1])
optuna.storages.run_grpc_proxy_server(storage, host="localhost", port=int(sys.argv[2]))
"""


@contextmanager
def optuna_grpc(sampler: str, size: int) -> Iterator[Step]:
    """An Optuna study behind its gRPC proxy, on SQLite."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER, str(Path(folder) / "o.db"), str(port)],
            stderr=subprocess.DEVNULL,
        )
        storage = optuna.storages.GrpcStorageProxy(host="localhost", port=port)
        try:
            storage.wait_server_ready(timeout=60)
            yield optuna_step(sampler, storage, size)
        finally:
            storage.close()
            process.kill()
            process.wait()


ROWS: list[tuple[str, Callable[[str, int], Any], str]] = [
    ("dpareto, random", dpareto_study, "random"),
    ("Optuna in memory, random", optuna_memory, "random"),
    ("Optuna through gRPC, random", optuna_grpc, "random"),
    ("dpareto, its engine", dpareto_study, "default"),
    ("Optuna in memory, TPE", optuna_memory, "tpe"),
    ("Optuna through gRPC, TPE", optuna_grpc, "tpe"),
]


def measure(make: Callable[[str, int], Any], method: str, size: int, steps: int) -> float:
    """Returns the median time of a step in seconds."""
    times = []
    with make(method, size) as step:
        step()
        for _ in range(steps):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Time of an ask and a tell, beside Optuna's.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 250, 1000])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("| ms | " + " | ".join(str(n) for n in args.sizes) + " |")
    print("|---|" + "---|" * len(args.sizes))
    for name, make, method in ROWS:
        cells = []
        for size in args.sizes:
            best = min(measure(make, method, size, args.steps) for _ in range(args.repeat))
            cells.append(f"{1000 * best:.3g}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
