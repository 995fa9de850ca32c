"""Executors of Dask and submitit: make test-ray."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from dpfront import Client

from . import executors
from .conftest import make_study

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


def test_dask(client: Client) -> None:
    distributed = pytest.importorskip("distributed")
    study = make_study(client, max_trials=6)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as dask,
    ):
        assert study.optimize(executors.train, n_jobs=2, executor=dask.get_executor()) == 6
    assert [(t.state, t.attempt) for t in study.trials()] == [("succeeded", 1)] * 6
    assert len({t.params["learning_rate"] for t in study.trials()}) == 6


def test_submitit(client: Client, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    study = make_study(client, max_trials=3)
    pool = submitit.AutoExecutor(folder=tmp_path, cluster="local")
    pool.update_parameters(timeout_min=5)
    assert study.optimize(executors.train, n_jobs=2, executor=pool) == 3
    assert [(t.state, t.attempt) for t in study.trials()] == [("succeeded", 1)] * 3


def test_a_dead_job_of_submitit(client: Client, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    study = make_study(client, max_trials=1)
    pool = submitit.AutoExecutor(folder=tmp_path, cluster="local")
    pool.update_parameters(timeout_min=5)

    def kill() -> None:
        while not (study.trials() and study.trials()[0].measurements):
            time.sleep(0.05)
        (stdout,) = tmp_path.glob("*_0_log.out")
        job = stdout.name.partition("_")[0]
        # A cluster ends all processes of a job: the controller, and the one that trains.
        for pid in [job, *Path(f"/proc/{job}/task/{job}/children").read_text().split()]:
            os.kill(int(pid), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    assert study.optimize(executors.slow, executor=pool) == 1
    thread.join()
    assert [(t.state, t.attempt) for t in study.trials()] == [("succeeded", 2)]
