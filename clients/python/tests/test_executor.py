"""Trials on executors, whose workers die."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import AsyncClient, Client, Study, Trial

from . import executors
from .conftest import Server, make_study
from .executors import Processes

PACKAGE = Path(__file__).resolve().parents[1]


def states(study: Study) -> list[str]:
    return [t.state for t in study.trials()]


def test_threads(study: Study) -> None:
    seen: list[int] = []
    with futures.ThreadPoolExecutor(2) as pool:
        count = study.optimize(
            lambda trial: 0.5,
            n_trials=5,
            n_jobs=2,
            executor=pool,
            callbacks=[lambda _, trial: seen.append(trial.number)],
        )
    assert count == 5
    assert states(study) == ["succeeded"] * 5
    assert sorted(seen) == [1, 2, 3, 4, 5]


def test_processes(study: Study) -> None:
    spawn = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        assert study.optimize(executors.train, n_trials=4, n_jobs=2, executor=pool) == 4
        with pytest.raises((AttributeError, TypeError), match=r"pickle|local object"):
            study.optimize(lambda trial: 0.5, n_trials=1, executor=pool)
    assert states(study) == ["succeeded"] * 4 + ["queued"]
    assert all(len(t.measurements) == 1 for t in study.trials()[:4])


def infeasible(trial: Trial) -> float:
    if trial.number == 1:
        raise MemoryError("of the GPU")
    if trial.number == 2:
        raise dpfront.Infeasible("too wide")
    return float("nan") if trial.number == 3 else 0.5


def test_outcomes_come_from_workers(study: Study) -> None:
    with pytest.warns(UserWarning, match="trials/3: error is nan"):
        study.optimize(infeasible, n_trials=4, catch=MemoryError, executor=Processes())
    assert states(study) == ["infeasible"] * 3 + ["succeeded"]
    assert study.get_trial(1).state_reason == "MemoryError: of the GPU"


class OwnError(Exception):
    """Pickles, but cannot be read again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def mistaken(trial: Trial) -> float:
    raise KeyError("lerning_rate") if trial.number == 1 else OwnError(1, 2)


def test_errors_of_the_objective_are_raised_with_their_traceback(client: Client) -> None:
    study = make_study(client, max_trials=1)
    with pytest.raises(KeyError, match="lerning_rate") as caught:
        study.optimize(mistaken, executor=Processes())
    assert "in mistaken" in str(caught.value.__cause__)
    assert states(study) == ["queued"]
    study = make_study(client)
    study.add_trial(study.ask().params, error=0.5)
    with pytest.raises(RuntimeError, match="OwnError: 1 and 2"):
        study.optimize(mistaken, executor=Processes())


def test_a_dead_worker_gives_its_trial_back_at_once(study: Study) -> None:
    """Well before its lease of a minute runs out."""
    pool = Processes()
    killed = threading.Event()

    def kill() -> None:
        while not (study.trials() and study.trials()[0].measurements):
            time.sleep(0.01)
        pool.jobs[0].cancel()
        killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    assert study.optimize(executors.slow, n_trials=1, executor=pool) == 1
    thread.join()
    trial = study.get_trial(1)
    assert (trial.state, trial.attempt, trial.metrics["error"]) == ("succeeded", 2, 0.25)
    assert [(a.outcome, a.reason) for a in trial.past_attempts] == [
        ("failed", "its worker died: Death: exit code -9")
    ]


def test_workers_that_always_die_end_the_search(client: Client) -> None:
    study = make_study(client, max_trials=9, max_attempts=50)
    with pytest.raises(executors.Death):
        study.optimize(executors.dies, n_jobs=2, executor=Processes())
    assert sum(t.attempt for t in study.trials()) <= 7  # two workers, and five deaths
    assert set(states(study)) == {"queued"}


def test_a_configuration_that_kills_every_worker_fails(client: Client) -> None:
    study = make_study(client, max_trials=2, max_attempts=2)
    assert study.optimize(executors.fragile_first, executor=Processes()) == 1
    assert states(study) == ["failed", "succeeded"]


def test_a_broken_pool_ends_the_search_and_loses_nothing(client: Client) -> None:
    study = make_study(client, max_trials=3)
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(1, mp_context=spawn)
    with pool, pytest.raises(futures.BrokenExecutor):
        study.optimize(executors.dies, executor=pool)
    assert states(study) == ["queued"]
    assert study.optimize(lambda trial: 0.5) == 3


def test_a_result_counts_though_its_worker_died_later(study: Study) -> None:
    assert study.optimize(executors.tells_and_dies, n_trials=2, executor=Processes()) == 2
    assert states(study) == ["succeeded"] * 2


class Late:
    """Runs calls after something else has happened."""

    def __init__(self, before: Callable[[Trial], object]) -> None:
        self.before = before

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> futures.Future[Any]:
        self.before(pickle.loads(pickle.dumps(arguments[0])))
        done: futures.Future[Any] = futures.Future()
        done.set_result(function(*arguments))
        return done


def test_a_trial_that_was_lost_in_a_queue_is_not_run(study: Study) -> None:
    ran: list[int] = []

    def objective(trial: Trial) -> float:
        ran.append(trial.number)
        return 0.5

    others: list[Trial] = []

    def take(trial: Trial) -> None:
        if not others:
            trial.release()
            others.append(study.ask())

    assert study.optimize(objective, n_trials=1, executor=Late(take)) == 1
    assert ran == [2]
    assert [(t.state, t.attempt) for t in study.trials()] == [("active", 2), ("succeeded", 1)]


def test_an_executor_that_repeats_a_run(study: Study) -> None:
    """As Dask does after the death of a worker: the run reports other values than the first."""

    def run_before(trial: Trial) -> None:
        if trial.attempt == 1:
            trial.report(1, error=0.7)

    assert study.optimize(executors.train, n_trials=1, executor=Late(run_before)) == 1
    trial = study.get_trial(1)
    assert (trial.state, trial.attempt, trial.metrics["error"]) == ("succeeded", 2, 0.5)


def test_a_dead_driver_leaves_its_trials_to_the_next(server: Server) -> None:
    """Twice killed in the middle, with workers that die: all trials complete, each once."""
    with Client(server.address) as client:
        study = make_study(client, max_trials=12, max_attempts=20, lease=timedelta(seconds=1))
        for ended in (2, 5):
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.executors", server.address, study.id],
                cwd=PACKAGE,
                env={**os.environ, "PYTHONPATH": str(PACKAGE / "src")},
                stderr=subprocess.DEVNULL,
            )
            while study.info().trial_counts["succeeded"] < ended and driver.poll() is None:
                time.sleep(0.05)
            assert driver.poll() is None
            driver.kill()
            driver.wait()
        study.optimize(executors.fragile, n_jobs=3, executor=Processes())
        assert states(study) == ["succeeded"] * 12
        assert len({t.params["learning_rate"] for t in study.trials()}) == 12


def test_asyncio(server: Server) -> None:
    async def search() -> tuple[int, list[str]]:
        async with AsyncClient(server.address) as client:
            with Client(server.address) as blocking:
                study = await client.study(make_study(blocking).id)
            count = await study.optimize(
                executors.train, n_trials=3, n_jobs=3, executor=Processes()
            )
            return count, [t.state for t in await study.trials()]

    assert asyncio.run(search()) == (3, ["succeeded"] * 3)
