"""The loop of a search, and what it shows."""

from __future__ import annotations

import io
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import dpfront
from dpfront import Client, Study, Tracked, Trial
from dpfront._progress import Progress
from dpfront._search import Search

from .conftest import METRICS, PARAMETERS, Server, make_study

NOTHING: dict[str, float] = {}


def test_until_the_budget_is_spent(client: Client) -> None:
    study = make_study(client, max_trials=7)
    assert study.optimize(lambda trial: 0.5) == 7
    assert study.info().trial_counts["succeeded"] == 7
    assert study.optimize(lambda trial: 0.5) == 0


def test_a_number_of_trials_and_workers(study: Study) -> None:
    together = threading.Barrier(4, timeout=20)

    def objective(trial: Trial) -> dict[str, float]:
        if trial.number <= 4:
            together.wait()  # four threads are here at once
        return {"error": 1 / trial["epochs"]}

    assert study.optimize(objective, n_trials=10, workers=4) == 10
    assert [t.state for t in study.trials()] == ["succeeded"] * 10


def test_outcomes_of_the_objective(study: Study) -> None:
    def objective(trial: Trial) -> float | None:
        if trial.number == 1:
            raise dpfront.Infeasible("too wide")
        if trial.number == 2:
            return math.nan
        if trial.number == 3:
            trial.report(1, error=0.75)
            return None
        if trial.number == 4:
            trial.tell(error=0.5)
            return 0.1
        if trial.number == 5:
            raise MemoryError("of the GPU")
        return 0.25

    study.optimize(objective, n_trials=6, catch=(MemoryError,))
    trials = [(t.state, t.metrics.get("error"), t.state_reason) for t in study.trials()]
    assert trials == [
        ("infeasible", None, "too wide"),
        ("infeasible", None, "error is nan; trial.infeasible(reason) ends such a run"),
        ("succeeded", 0.75, ""),
        ("succeeded", 0.5, ""),
        ("infeasible", None, "MemoryError: of the GPU"),
        ("succeeded", 0.25, ""),
    ]


def test_one_exception_to_catch(study: Study) -> None:
    def objective(trial: Trial) -> float:
        return NOTHING["no such key"]

    assert study.optimize(objective, n_trials=2, catch=KeyError) == 2
    assert [t.state for t in study.trials()] == ["infeasible"] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_ends_the_search(study: Study, workers: int) -> None:
    together = threading.Barrier(workers, timeout=20)

    def objective(trial: Trial) -> float:
        together.wait()
        return NOTHING["no such key"]

    with pytest.raises(KeyError, match="no such key"):
        study.optimize(objective, workers=workers)
    assert [t.state for t in study.trials()] == ["infeasible"] * workers


def test_a_trial_handed_out_after_a_mistake_goes_back(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=20)
    ask = Search.ask

    def late(search: Search, worker_id: str) -> Trial:
        trial = ask(search, worker_id)
        both.wait()
        if trial.number == 2:
            assert search.stopping.wait(20)
        return trial

    def objective(trial: Trial) -> float:
        return NOTHING["no such key"]

    monkeypatch.setattr(Search, "ask", late)
    with pytest.raises(KeyError, match="no such key"):
        study.optimize(objective, workers=2)
    assert [t.state for t in study.trials()] == ["infeasible", "queued"]


def test_a_number_needs_one_reported_metric(client: Client) -> None:
    study = Study.create(
        client, "two-metrics", PARAMETERS, [*METRICS, Tracked("seconds")], algorithm="random"
    )
    with pytest.raises(TypeError, match="workers report error, seconds: return a dict"):
        study.optimize(lambda trial: 0.5)
    study.optimize(lambda trial: {"error": 0.5}, n_trials=1)


def test_a_lost_lease_ends_a_trial_only(study: Study) -> None:
    def objective(trial: Trial) -> float:
        if trial.number == 1:
            trial.release("it goes to the next, who completes it")
            study.ask().tell(error=0.25)
            trial._ended = False
        return 0.5

    study.optimize(objective, n_trials=2)
    assert [t.metrics["error"] for t in study.trials()] == [0.25, 0.5]


def test_a_mistake_ends_the_search_of_workers_that_wait(client: Client) -> None:
    study = make_study(client, max_parallel_trials=1)
    ran = []
    raised: list[BaseException] = []

    def objective(trial: Trial) -> float:
        ran.append(trial.number)
        time.sleep(0.5)  # the other worker asks meanwhile
        study.pause()
        return NOTHING["no such key"]

    def search() -> None:
        try:
            study.optimize(objective, workers=2)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    study.resume()
    assert [type(e) for e in raised] == [KeyError]
    assert ran == [1]


PROGRAM = textwrap.dedent("""
    import sys, time, dpfront
    study = dpfront.Study.load(dpfront.Client(sys.argv[1]), sys.argv[2])
    def objective(trial):
        sys.stdout.write("training\\n")  # at once, unlike print
        sys.stdout.flush()
        time.sleep(60)
    study.optimize(objective, workers=int(sys.argv[3]))
""")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_gives_trials_back(shared_server: Server, study: Study, workers: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, shared_server.address, study.id, str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    for _ in range(workers):
        assert process.stdout.readline() == b"training\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    process.stdout.close()
    assert [t.state for t in study.trials()] == ["queued"] * workers


def test_progress() -> None:
    out = io.StringIO()
    with Progress(4, enabled=True, out=out) as bar:
        bar.update(1)
        assert re.fullmatch(r"\[#{6}\.{18}\] 1/4 trials, 0:00, 0:00 left", bar.line())
        bar.update(4)
        assert re.fullmatch(r"\[#{24}\] 4/4 trials, 0:00", bar.line())
    assert out.getvalue().endswith("\n")
    endless = Progress(None, enabled=True, out=io.StringIO())
    endless.update(3)
    assert endless.line() == "3 trials, 0:00"


def test_progress_is_quiet_without_a_terminal() -> None:
    out = io.StringIO()
    with Progress(4, out=out) as bar:
        bar.update(1)
    assert out.getvalue() == ""


def test_progress_without_a_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress(4) as bar:
        bar.update(1)
    assert not bar.enabled


def test_progress_counts_what_is_left(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(client, max_trials=3)
    study.ask().tell(error=0.5)
    study.optimize(lambda trial: 0.5, progress=True)
    assert "2/2 trials" in capsys.readouterr().err
