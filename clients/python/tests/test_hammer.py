"""Many processes, and a server that is killed again and again: nothing is lost, nothing is
there twice."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpfront import Client

from .conftest import Server, make_study

WORKER = Path(__file__).parent / "hammer.py"


def hammer(server: Server, workers: int, seconds: float, every: float) -> int:
    """Has processes ask and tell, kills the server every so often, and compares.

    Returns the number of trials.
    """
    with Client(server.address) as client:
        study = make_study(client)
        processes = [
            subprocess.Popen(
                [sys.executable, str(WORKER), server.address, study.id, str(seconds)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(workers)
        ]
        end = time.monotonic() + seconds
        while time.monotonic() + every < end:
            time.sleep(every)
            server.restart()
        told: dict[int, float] = {}
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            assert not err
            for line in out.splitlines():
                number, error = line.split()
                assert int(number) not in told, f"trial {number} was completed twice"
                told[int(number)] = float.fromhex(error)
        trials = {t.number: t for t in study.trials()}
        lost = sorted(set(told) - set(trials))
        assert not lost, f"the server forgot trials {lost}"
        for n, value in told.items():
            assert trials[n].state == "succeeded"
            assert trials[n].metrics["error"] == value
        # Every trial was handed out, run and told by somebody; none is left over.
        assert {n for n, t in trials.items() if t.state == "succeeded"} == set(told)
        assert sorted(trials) == list(range(1, len(trials) + 1))
        assert [t.number for t in trials.values() if t.state != "succeeded"] == []
        params = {tuple(sorted(t.params.items())) for t in trials.values()}
        assert len(params) == len(trials)
        return len(trials)


def test_eight_processes_and_three_kills(server: Server) -> None:
    assert hammer(server, workers=8, seconds=6, every=1.5) > 50


@pytest.mark.long
def test_64_processes_for_ten_minutes(server: Server) -> None:
    trials = hammer(server, workers=64, seconds=600, every=60)
    print(f"{trials} trials")
    assert trials > 5000
