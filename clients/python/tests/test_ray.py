"""A real Ray cluster of several processes: make test-ray."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from dpfront import Categorical, Client, Float, Int, Minimize, Study, epsilon, opacus

from . import ray_driver
from .conftest import Server

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore"),  # of Ray
]

PACKAGE = Path(__file__).resolve().parents[1]
TRIALS = int(os.environ.get("RAY_TRIALS", "40"))
KILLED_WORKERS = TRIALS * 30 // 200
SCRIPTS = Path(sys.executable).parent
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_raylet_start_wait_time_s": "240",
    "RAY_worker_niceness": "0",  # 15 by default: on a busy machine workers hardly start
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A head and a second node, which outlive the drivers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    # Ray's sockets have paths of at most 107 characters.
    folder = tmp_path_factory.mktemp("r", numbered=True)
    environment = {**os.environ, **SETTINGS}
    ray = [str(SCRIPTS / "ray"), "start", "--num-cpus=2", "--disable-usage-stats", "--block"]
    port = address.partition(":")[2]
    head = [f"--port={port}", "--head", "--include-dashboard=false", f"--temp-dir={folder}"]
    nodes = []
    for options in (head, [f"--address={address}"]):
        nodes.append(subprocess.Popen([*ray, *options], env=environment, stdout=subprocess.DEVNULL))
        while nodes[0].poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                break
            time.sleep(0.1)
    count = "import ray; ray.init(); print(sum(node['Alive'] for node in ray.nodes()))"
    command = [sys.executable, "-c", count]
    environment["RAY_ADDRESS"] = address
    while nodes[0].poll() is None:
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        if found.stdout.strip() == "2":
            break
    yield address
    for node in reversed(nodes):
        node.terminate()
        node.wait()


def run_and_kill(
    server: Server, cluster: str, folder: Path, mode: str, seed: int
) -> tuple[Study, dict[str, int]]:
    """Runs a study on the cluster, and kills workers and drivers on the way."""
    (folder / "pids").mkdir(parents=True)
    (folder / "finished").touch()
    draw = random.Random(seed)
    client = Client(server.address)
    study = Study.create(
        client,
        mode,
        [
            Float("learning_rate", 1e-3, 1, log=True),
            Int("epochs", 1, 6),
            Categorical("optimizer", ["sgd", "adam"]),
            Float("momentum", 0, 1, condition={"optimizer": "sgd"}),
        ],
        [
            Minimize("error", 1, "logit"),
            epsilon(
                opacus(
                    dataset_size=10_000,
                    batch_size=100,
                    noise_multiplier="1.0 + learning_rate",
                    epochs="epochs",
                    delta=1e-6,
                )
            ),
        ],
        checkpoint_parameter="epochs",
        algorithm="random",
        seed=seed,
        early_stopping=False,
        max_trials=TRIALS,
        max_attempts=50,
        lease=timedelta(seconds=10),
    )
    command = [sys.executable, "-m", "tests.ray_driver", mode, server.address, study.id]
    environment = {
        **os.environ,
        **SETTINGS,
        "RAY_ADDRESS": cluster,
        "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(PACKAGE / "src")]),
    }
    log = open(folder / "log", "w")  # noqa: SIM115

    def drive() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, str(folder)], cwd=PACKAGE, env=environment, stdout=log, stderr=log
        )

    driver, workers, drivers = drive(), 0, 0
    while driver.poll() is None:
        done = study.info().trial_counts["succeeded"]
        if drivers < 2 and done >= TRIALS * (drivers + 1) // 3:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            driver, drivers = drive(), drivers + 1
        elif workers < KILLED_WORKERS and done >= TRIALS * workers // (KILLED_WORKERS + 2):
            alive = sorted((folder / "pids").iterdir())
            if alive:
                pid = draw.choice(alive)
                pid.unlink(missing_ok=True)
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    # Ray names its workers so; the number may be another process's by now.
                    if "ray::" in Path("/proc", pid.name, "cmdline").read_text():
                        os.kill(int(pid.name), signal.SIGKILL)
                        workers += 1
        time.sleep(0.02)
    log.close()
    assert driver.returncode == 0, (folder / "log").read_text()[-4000:]
    finished = (folder / "finished").read_text().split()
    return study, {
        "killed workers": workers,
        "killed drivers": drivers,
        "runs": sum(t.attempt for t in study.trials()),
        "finished runs": len(finished),
    }


@pytest.mark.parametrize("mode", ["tune", "optimize"])
def test_nothing_is_lost_and_nothing_counts_twice(
    server: Server, cluster: str, tmp_path: Path, mode: str
) -> None:
    begin = time.monotonic()
    study, counts = run_and_kill(server, cluster, tmp_path / mode, mode, seed=1)
    trials = study.trials()
    complete = [t for t in trials if t.state == "succeeded"]
    lost = TRIALS - sum(t.metrics["error"] == ray_driver.error(t.params) for t in complete)
    configurations = {tuple(sorted(t.params.items())) for t in complete}
    duplicates = len(complete) - len(configurations)
    print(
        f"{mode}: {counts}, completions {len(complete)}, lost {lost}, duplicates {duplicates}, "
        f"{time.monotonic() - begin:.0f} s"
    )
    assert (counts["killed workers"], counts["killed drivers"]) == (KILLED_WORKERS, 2)
    assert (len(trials), len(complete), lost, duplicates) == (TRIALS, TRIALS, 0, 0)
    assert all(len(t.measurements) == t.params["epochs"] for t in complete)
