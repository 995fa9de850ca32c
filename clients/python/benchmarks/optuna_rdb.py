"""Pairs of an ask and a tell per second of many workers, beside Optuna's RDB storage.

    python benchmarks/optuna_rdb.py 'postgres://dpareto@/dpareto?host=/run/postgresql' \
        'postgresql+psycopg://dpareto@/optuna?host=/run/postgresql'

The first is the URL of an empty database for a dpareto server that the program starts, the second
one for Optuna; both should be of one PostgreSQL server. Workers are threads, divided equally among
processes. All of them ask one study of two floats and an objective, with random suggestions, for a
trial and tell its value at once. The two take turns; a row of the table is a turn of both.
Optuna needs psycopg.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import optuna

import dpfront
from dpfront import Float, Minimize, Study
from dpfront._program import find_binary

NAMES = ["x", "y"]
SPACE = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}

Step = Callable[[str], None]


def dpareto_step(address: str, name: str) -> Step:
    """Returns a step of a worker of a dpareto study."""
    study = Study.load(dpfront.Client(address), name)

    def step(worker: str) -> None:
        trial = study.ask(worker)
        trial.tell(f=trial["x"] + trial["y"])

    return step


def optuna_step(url: str, name: str) -> Step:
    """Returns a step of a worker of an Optuna study."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler()
    study = optuna.load_study(study_name=name, storage=url, sampler=sampler)

    def step(_: str) -> None:
        trial = study.ask(dict(SPACE))
        study.tell(trial, trial.params["x"] + trial.params["y"])

    return step


def work(
    make: Callable[[str, str], Step],
    where: str,
    name: str,
    threads: int,
    seconds: float,
    ready: threading.Barrier,
    counts: multiprocessing.Queue[int],
) -> None:
    """Runs the workers of one process, and counts the pairs between two moments."""
    step = make(where, name)
    done = [0] * threads

    def run(k: int) -> None:
        worker = f"{os.getpid()}-{k}"
        step(worker)  # connects
        ready.wait()
        end = time.monotonic() + seconds
        while True:
            step(worker)
            if time.monotonic() > end:
                return
            done[k] += 1

    running = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    counts.put(sum(done))


def measure(
    make: Callable[[str, str], Step], where: str, name: str, args: argparse.Namespace
) -> float:
    """Returns the pairs per second of all workers."""
    context = multiprocessing.get_context("spawn")
    threads = args.workers // args.processes
    ready, counts = context.Barrier(args.processes * threads), context.Queue()
    processes = [
        context.Process(target=work, args=(make, where, name, threads, args.seconds, ready, counts))
        for _ in range(args.processes)
    ]
    for process in processes:
        process.start()
    total = sum(counts.get(timeout=args.seconds + 120) for _ in processes)
    for process in processes:
        process.join()
    return float(total / args.seconds)


@contextmanager
def server(store: str) -> Iterator[str]:
    """Runs a server on a database, and gives its address."""
    command = [find_binary(), "serve", "--create", "--store", store, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--http-listen", "none"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            if not line:
                raise SystemExit("the server does not start: is the URL right?")
            yield line.split()[-1]
        finally:
            process.terminate()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Asks and tells, beside Optuna's RDB storage.")
    parser.add_argument("dpareto", help="URL of an empty database, postgres://...")
    parser.add_argument("optuna", help="URL of another one, postgresql+psycopg://...")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--processes", type=int, default=8, help="that share the workers")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    if args.workers % args.processes:
        parser.error("--workers must be a multiple of --processes")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ratios = []
    print("| pairs per second | dpareto | Optuna | ratio |\n|---|---|---|---|")
    with server(args.dpareto) as address, dpfront.Client(address) as client:
        for turn in range(args.repeat):
            name = f"bench-{uuid.uuid4().hex[:8]}"
            Study.create(
                client, name, [Float(n, 0, 1) for n in NAMES], [Minimize("f", 2)],
                algorithm="random",
            )  # fmt: skip
            optuna.create_study(study_name=name, storage=args.optuna)
            ours = measure(dpareto_step, address, name, args)
            theirs = measure(optuna_step, args.optuna, name, args)
            if theirs == 0:
                raise SystemExit("Optuna made no pair: give more --seconds")
            ratios.append(ours / theirs)
            print(f"| {turn + 1} | {ours:.0f} | {theirs:.1f} | {ours / theirs:.1f} |", flush=True)
    print(f"| median | | | {statistics.median(ratios):.1f} |")


if __name__ == "__main__":
    main()
