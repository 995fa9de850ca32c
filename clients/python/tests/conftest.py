"""A server for the tests, built from the repository."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import Float, Int, Minimize, Study, epsilon, paper

REPOSITORY = Path(__file__).resolve().parents[3]

_counter = itertools.count(1)


def pytest_report_header() -> str:
    """Says what is not run."""
    fixtures = Path(__file__).parent / "fixtures"
    recorded = json.loads((fixtures / "opacus.json").read_text())
    ray = json.loads((fixtures / "ray_tune.json").read_text())["ray"]
    return (
        f"Opacus: as recorded with opacus {recorded['opacus']}, torch {recorded['torch']}; "
        "make test-frameworks runs the real ones\n"
        f"Ray Tune: as recorded with ray {ray}; make test-ray runs the real one, Dask, submitit, "
        "MLflow, W&B and TensorBoard"
    )


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program: DPARETO_BINARY, or built from the sources."""
    given = os.environ.get("DPARETO_BINARY")
    if given:
        return given
    path = tmp_path_factory.mktemp("bin") / "dpareto"
    subprocess.run(["go", "build", "-o", path, "./cmd/dpareto"], cwd=REPOSITORY, check=True)
    return str(path)


class Server:
    """A server that can be killed and started again on its address."""

    def __init__(self, binary: str, store: Path, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self._command = [binary, "serve", "--listen", self.address, "--store", str(store)]
        self._command += ["--create", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(b"listening on "), line

    def kill(self) -> None:
        """Ends the server as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@pytest.fixture
def server(binary: str, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with Server(binary, tmp_path / "dpareto.db") as server:
        yield server


@pytest.fixture(scope="session")
def shared_server(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests share which do not harm it."""
    with Server(binary, tmp_path_factory.mktemp("store") / "dpareto.db") as server:
        yield server


@pytest.fixture
def client(shared_server: Server) -> Iterator[dpfront.Client]:
    """A client of the shared server."""
    with dpfront.Client(shared_server.address) as client:
        yield client


PARAMETERS = [
    Float("learning_rate", 1e-3, 1, log=True),
    Float("noise_variance", 0.25, 64, log=True),
    Int("lot_size", 8, 512, log=True),
    Int("epochs", 1, 64, log=True),
]
METRICS = [
    Minimize("error", 1, "logit"),
    epsilon(paper(dataset_size=10_000, epochs="epochs", delta=1e-6)),
]


class Clock:
    """Stands in for the module time in dpfront._search, and goes when a test says so."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def make_study(client: dpfront.Client, **fields: Any) -> Study:
    """Creates a study of DP-SGD whose suggestions are random, and so fast."""
    fields.setdefault("algorithm", "random")
    fields.setdefault("seed", 1)
    return Study.create(client, f"test-{next(_counter)}", PARAMETERS, METRICS, **fields)


@pytest.fixture
def study(client: dpfront.Client) -> Study:
    """A study of DP-SGD."""
    return make_study(client)
