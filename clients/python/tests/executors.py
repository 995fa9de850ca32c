"""A pool of processes for the tests, of which any can be killed."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpfront
from dpfront import Trial

PROGRAM = """
import pickle, sys
function, *arguments = pickle.loads(sys.stdin.buffer.read())
sys.stdout.buffer.write(pickle.dumps(function(*arguments)))
"""
PACKAGE = Path(__file__).resolve().parents[1]


class Death(Exception):
    """A worker ended without a result."""


class Job:
    """A call in a process of its own."""

    def __init__(self, data: bytes) -> None:
        path = os.pathsep.join([str(PACKAGE), str(PACKAGE / "src")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.data = data

    def result(self) -> Any:
        try:
            answer, _ = self.process.communicate(self.data)
        except BrokenPipeError:
            answer = b""
        if self.process.wait() != 0 or not answer:
            raise Death(f"exit code {self.process.returncode}")
        return pickle.loads(answer)

    def cancel(self) -> None:
        self.process.kill()


class Processes:
    """Runs each call in a process."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Job:
        job = Job(pickle.dumps((function, *arguments)))
        self.jobs.append(job)
        return job


def train(trial: Trial) -> float:
    """Reports on the way."""
    trial.report(1, error=0.75)
    return 0.5


def slow(trial: Trial) -> float:
    """Trains until it is killed, at its first attempt."""
    trial.report(1, error=0.75)
    if trial.attempt == 1:
        threading.Event().wait()
    return 0.25


def dies(trial: Trial) -> float:
    """Ends its process, as the kernel does when memory is short."""
    os._exit(137)


def fragile_first(trial: Trial) -> float:
    """Dies of the first configuration."""
    return dies(trial) if trial.number == 1 else 0.5


def tells_and_dies(trial: Trial) -> float:
    """Dies after its trial has ended."""
    trial.tell(error=0.5)
    return dies(trial)


def fragile(trial: Trial) -> float:
    """Dies in about a third of its attempts."""
    if random.Random(f"{trial.number}-{trial.attempt}").random() < 0.3:
        os._exit(137)
    return float(trial["learning_rate"])


def drive(address: str, study: str) -> None:
    """A driver, that a test kills."""
    from tests import executors  # this module is __main__, which workers do not have

    with dpfront.Client(address) as client:
        client.study(study).optimize(executors.fragile, n_jobs=3, executor=Processes())


if __name__ == "__main__":
    drive(*sys.argv[1:])
