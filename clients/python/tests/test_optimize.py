"""The loop of a search, and what it shows."""

from __future__ import annotations

import math
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from typing import Any

import pytest

import dpfront
from dpfront import (
    Client,
    Maximize,
    Mean,
    Minimize,
    Runs,
    Study,
    Tracked,
    Trial,
    TrialInfo,
    _search,
)
from dpfront.v1 import study_service_pb2

from .conftest import METRICS, PARAMETERS, Clock, Server, make_study

NOTHING: dict[str, float] = {}


def test_until_the_budget_is_spent(client: Client) -> None:
    study = make_study(client, max_trials=7)
    assert study.optimize(lambda trial: 0.5) == 7
    assert study.info().trial_counts["succeeded"] == 7
    with pytest.warns(UserWarning, match="optimize ran no trials"):
        assert study.optimize(lambda trial: 0.5) == 0


def test_a_search_that_runs_nothing_says_why_and_what_to_do(client: Client) -> None:
    study = make_study(client, max_trials=3)
    with pytest.warns(UserWarning, match="optimize ran 3 of 5 trials: ") as caught:
        assert study.optimize(lambda trial: 0.5, n_trials=5) == 3
    assert caught[0].filename == __file__  # where it was called
    with pytest.warns(UserWarning, match="optimize ran no trials: ") as caught:
        assert study.optimize(lambda trial: 0.5, n_trials=3) == 0
    assert str(caught[0].message) == (
        f"optimize ran no trials: studies/{study.id} hands out no more trials: the budget of 3 "
        "trials is spent; raise it with study.update(max_trials=...) or "
        "study.update(max_duration=...), unless private_mode or random_stopping fix it"
    )
    study = make_study(client, max_stagnant_trials=2)
    study.optimize(lambda trial: 0.5)
    with pytest.warns(UserWarning, match=r"not grown .*; .* study.update\(max_stagnant_trials="):
        study.optimize(lambda trial: 0.5)


def test_every_end_says_what_to_do() -> None:
    for name in study_service_pb2.EndReason.keys()[1:]:
        reason = name.removeprefix("END_REASON_").lower()
        if reason not in ("paused", "parallelism", "preparing"):  # after these, trials come again
            text = str(dpfront.StudyDone("studies/s", reason))
            assert text.startswith("studies/s hands out no more trials: ")
            assert not text.startswith(f"studies/s hands out no more trials: {reason}")
            assert "; " in text


def test_a_paused_study_says_what_it_waits_for(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    study.pause()
    ran: list[int] = []
    thread = threading.Thread(target=lambda: ran.append(study.optimize(lambda trial: 0.5)))
    thread.start()
    while not caplog.messages:
        time.sleep(0.01)
    study.stop()
    thread.join()
    assert ran == [0]
    assert caplog.messages == [f"studies/{study.id} is paused: waiting for study.resume()"]


def test_a_number_of_trials_and_workers(study: Study) -> None:
    together = threading.Barrier(4, timeout=20)

    def objective(trial: Trial) -> dict[str, float]:
        if trial.number <= 4:
            together.wait()  # four threads are here at once
        return {"error": 1 / trial["epochs"]}

    assert study.optimize(objective, n_trials=10, n_jobs=4) == 10
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
        if trial.number == 6:
            trial.tell(error=0.5)
            raise MemoryError("too late")
        return 0.25

    with pytest.warns(UserWarning, match="/trials/2: error is nan: the trial ends as infeasible"):
        study.optimize(objective, n_trials=7, catch=(MemoryError,))
    trials = [(t.state, t.metrics.get("error"), t.state_reason) for t in study.trials()]
    assert trials == [
        ("infeasible", None, "too wide"),
        ("infeasible", None, "error is nan; trial.infeasible(reason) ends such a run"),
        ("succeeded", 0.75, ""),
        ("succeeded", 0.5, ""),
        ("infeasible", None, "MemoryError: of the GPU"),
        ("succeeded", 0.5, ""),
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
        study.optimize(objective, n_jobs=workers)
    assert [t.state for t in study.trials()] == ["queued"] * workers


def test_a_misspelt_parameter_costs_nothing(client: Client) -> None:
    """The review's third stumble: 4 of 12 trials were infeasible, with KeyError."""
    study = make_study(client, max_trials=3)

    def objective(trial: Trial) -> float:
        return float(trial["epoch"])

    for _ in range(2):
        with pytest.raises(KeyError, match=r"did you mean epochs\?"):
            study.optimize(objective)
    counts = study.info().trial_counts
    assert (counts["queued"], sum(counts.values())) == (1, 1)
    assert study.optimize(lambda trial: 1 / trial["epochs"]) == 3
    assert {t.state for t in study.trials()} == {"succeeded"}


@pytest.mark.parametrize("mistake", [TypeError, NotImplementedError, MemoryError])
def test_mistakes_are_raised(study: Study, mistake: type[Exception]) -> None:
    def objective(trial: Trial) -> float:
        raise mistake("oops")

    with pytest.raises(mistake, match="oops"):
        study.optimize(objective)
    assert [t.state for t in study.trials()] == ["queued"]


def test_errors_of_calls_are_not_caught(study: Study) -> None:
    def objective(trial: Trial) -> float:
        trial.report(1, eror=0.5)
        return 0.5

    with pytest.raises(dpfront.InvalidArgument, match="eror"):
        study.optimize(objective, catch=Exception)
    assert [t.state for t in study.trials()] == ["queued"]


def test_errors_of_the_result_are_not_caught(study: Study) -> None:
    with pytest.raises(TypeError, match="error: 'high' is not a number"):
        study.optimize(lambda trial: {"error": "high"}, catch=TypeError)  # type: ignore[dict-item]
    assert [t.state for t in study.trials()] == ["queued"]


def test_a_trial_handed_out_after_a_mistake_goes_back(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=20)
    ask = Study._ask_until

    def late(study: Study, worker_id: str, left: Any, stopping: threading.Event) -> Trial:
        trial = ask(study, worker_id, left, stopping)
        both.wait()
        if trial.number == 2:
            assert stopping.wait(20)
        return trial

    def objective(trial: Trial) -> float:
        return NOTHING["no such key"]

    monkeypatch.setattr(Study, "_ask_until", late)
    with pytest.raises(KeyError, match="no such key"):
        study.optimize(objective, n_jobs=2)
    assert [t.state for t in study.trials()] == ["queued", "queued"]


def test_a_number_needs_one_reported_metric(client: Client) -> None:
    study = Study.create(
        client, "two-metrics", PARAMETERS, [*METRICS, Tracked("seconds")], algorithm="random"
    )
    with pytest.raises(TypeError, match=r"report error, seconds: return {'error': \.\.\., "):
        study.optimize(lambda trial: 0.5)
    study.optimize(lambda trial: {"error": 0.5}, n_trials=1)


def test_a_forgotten_return(study: Study) -> None:
    with pytest.raises(ValueError, match="an objective function returns its result"):
        study.optimize(lambda trial: None)
    with pytest.raises(TypeError, match=r"error: '0\.8' is not a number"):
        study.optimize(lambda trial: "0.8")  # type: ignore[arg-type,return-value]
    assert [t.state for t in study.trials()] == ["queued"]


@pytest.mark.parametrize("result", [(0.8, 0.4), [0.8, 0.4]])
def test_values_of_objectives_are_no_runs(study: Study, result: Any) -> None:
    """The review's second stumble: ``return accuracy, epsilon`` was stored as two runs."""
    with pytest.raises(
        TypeError, match=r"returned .0\.8, 0\.4., but the server computes"
    ) as caught:
        study.optimize(lambda trial: result)
    assert "computes epsilon: return error alone, or {'error': ...}" in str(caught.value)
    assert "Runs([...])" in str(caught.value)
    assert [t.state for t in study.trials()] == ["queued"]
    study.optimize(lambda trial: {"error": 0.8, "epsilon": trial.epsilon or 0.0}, n_trials=1)
    assert study.get_trial(1).metrics["error"] == 0.8


def test_an_array_is_no_run(study: Study) -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match=r"error: array.* is not a number; .* Runs"):
        study.optimize(lambda trial: numpy.array([0.8, 0.4]))
    study.optimize(lambda trial: numpy.float32(0.5), n_trials=1)
    assert study.get_trial(1).metrics["error"] == 0.5


def test_a_tuple_has_the_objectives_in_order(client: Client) -> None:
    metrics = [Maximize("accuracy", 0.1), Tracked("seconds"), Minimize("loss", 1)]
    study = Study.create(client, "tuples", PARAMETERS, metrics, algorithm="random")
    study.optimize(lambda trial: (0.8, 0.4), n_trials=1)
    study.optimize(lambda trial: [Runs([0.7]), Mean(0.3, 0.1)], n_trials=1)
    assert [dict(t.metrics) for t in study.trials()] == [
        {"accuracy": 0.8, "loss": 0.4},
        {"accuracy": 0.7, "loss": 0.3},
    ]
    for wrong in [(0.8,), (0.8, 0.4, 0.5), ()]:
        with pytest.raises(TypeError, match="one value for each objective, which are accuracy, l"):
            study.optimize(lambda trial, wrong=wrong: wrong)  # type: ignore[misc]
    with pytest.raises(TypeError, match="accuracy: 'high' is not a number"):
        study.optimize(lambda trial: ("high", 0.4))  # type: ignore[arg-type, return-value]


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
            study.optimize(objective, n_jobs=2)
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
    client, study = dpfront.Client(sys.argv[1]), None
    while study is None:
        try:
            study = dpfront.Study.load(client, sys.argv[2])
        except dpfront.errors.Unavailable:
            pass  # a busy machine needs longer for the first answer than a client waits
    def objective(trial):
        sys.stdout.write("training\\n")  # at once, unlike print
        sys.stdout.flush()
        time.sleep(60)
    study.optimize(objective, n_jobs=int(sys.argv[3]))
""")

ASYNC_PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from dpfront import AsyncClient, AsyncStudy
    from dpfront.errors import Unavailable
    async def objective(trial):
        sys.stdout.write("training\\n")
        sys.stdout.flush()
        await asyncio.sleep(60)
    async def main():
        async with AsyncClient(sys.argv[1]) as client:
            study = None
            while study is None:
                try:
                    study = await AsyncStudy.load(client, sys.argv[2])
                except Unavailable:
                    pass
            await study.optimize(objective, n_jobs=int(sys.argv[3]))
    asyncio.run(main())
""")


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot send SIGTERM to a process: it ends it")
@pytest.mark.parametrize(
    ("program", "workers", "number", "status"),
    [
        (PROGRAM, 1, signal.SIGINT, -signal.SIGINT),
        (PROGRAM, 3, signal.SIGINT, -signal.SIGINT),
        (PROGRAM, 1, signal.SIGTERM, 128 + signal.SIGTERM),
        (PROGRAM, 3, signal.SIGTERM, 128 + signal.SIGTERM),
        (ASYNC_PROGRAM, 3, signal.SIGTERM, 128 + signal.SIGTERM),
    ],
)
def test_a_signal_gives_trials_back(
    shared_server: Server, study: Study, program: str, workers: int, number: int, status: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program, shared_server.address, study.id, str(workers)],
        stdout=subprocess.PIPE,
        # A shell can start programs that ignore SIGINT, and so do the ones that they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        for _ in range(workers):
            assert process.stdout.readline() == b"training\n"
        process.send_signal(number)
        assert process.wait() == status
    assert [t.state for t in study.trials()] == ["queued"] * workers


def test_a_handler_of_sigterm_stays(study: Study) -> None:
    def own(number: int, frame: types.FrameType | None) -> None: ...

    def seen(trial: Trial) -> float:
        handlers.append(signal.getsignal(signal.SIGTERM))
        return 0.5

    handlers: list[Any] = []
    study.optimize(seen, n_trials=1)
    previous = signal.signal(signal.SIGTERM, own)
    try:
        study.optimize(seen, n_trials=1)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert handlers[0] not in (own, previous)
    assert handlers[1] is own
    assert previous is signal.SIG_DFL  # as it was before the first search


def test_a_time_limit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(client, max_parallel_trials=1)
    clock = Clock()
    monkeypatch.setattr(_search, "time", clock)
    gave_up = threading.Event()
    ask_until = Study._ask_until

    def ask(self: Study, *arguments: Any) -> Trial:
        try:
            return ask_until(self, *arguments)
        except TimeoutError:
            gave_up.set()
            raise

    monkeypatch.setattr(Study, "_ask_until", ask)
    ended = []

    def objective(trial: Trial) -> float:
        gave_up.wait()
        clock.now = 1.0
        ended.append(trial.number)
        return 0.5

    # One thread runs a trial past the limit, the other one waits for its turn.
    assert study.optimize(objective, timeout=0.2, n_jobs=2) == 1
    assert ended == [1]
    assert study.optimize(objective, timeout=0) == 0


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_arguments_out_of_range(study: Study, n_jobs: int) -> None:
    with pytest.raises(ValueError, match=f"n_jobs: must be at least 1, or -1 .*, is {n_jobs}"):
        study.optimize(lambda trial: 0.5, n_jobs=n_jobs)
    with pytest.raises(ValueError, match="n_trials: must be at least 0, is -1"):
        study.optimize(lambda trial: 0.5, n_trials=-1)


def test_a_thread_for_every_core(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    together = threading.Barrier(3, timeout=20)

    def objective(trial: Trial) -> float:
        together.wait()
        return 0.5

    assert study.optimize(objective, n_trials=3, n_jobs=-1) == 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks(study: Study, n_jobs: int) -> None:
    seen: list[tuple[int, str]] = []

    def remember(of: Study, trial: TrialInfo) -> None:
        assert of is study
        seen.append((trial.number, trial.state))

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise dpfront.Infeasible
        return 0.5

    study.optimize(objective, n_trials=3, n_jobs=n_jobs, callbacks=[remember])
    assert sorted(seen) == [(1, "succeeded"), (2, "infeasible"), (3, "succeeded")]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_of_a_callback_ends_the_search(study: Study, n_jobs: int) -> None:
    def fail(study: Study, trial: TrialInfo) -> None:
        raise RuntimeError("no disk")

    with pytest.raises(RuntimeError, match="no disk"):
        study.optimize(lambda trial: 0.5, n_jobs=n_jobs, callbacks=[fail])
    states = {t.state for t in study.trials()}
    # Another thread may have asked for a trial meanwhile, and gives it back.
    assert {"succeeded"} <= states <= {"succeeded", "queued"}
    assert states == {"succeeded"} or n_jobs > 1


def test_stop_in_a_callback(study: Study) -> None:
    def enough(study: Study, trial: TrialInfo) -> None:
        if trial.number == 3:
            study.stop()

    assert study.optimize(lambda trial: 0.5, callbacks=[enough]) == 3
    with pytest.raises(RuntimeError, match="optimize is not running"):
        study.stop()


def test_stop_in_the_objective(client: Client) -> None:
    study = make_study(client, max_parallel_trials=1)

    def objective(trial: Trial) -> float:
        pickle.dumps(trial)  # for a process of its own
        time.sleep(0.2)  # the other thread asks meanwhile
        study.stop()
        return 0.5

    assert study.optimize(objective, n_jobs=2) == 1
    assert [t.state for t in study.trials()] == ["succeeded"]


def test_progress(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(client, max_trials=3)
    study.ask().tell(error=0.5)
    study.ask().release()

    def objective(trial: Trial) -> float:
        raise dpfront.Infeasible

    study.optimize(objective, progress=True)
    shown = capsys.readouterr().err
    assert "0/2 [" in shown
    assert re.search(r"100%.* 2/2 \[.*infeasible=2", shown)
    study = make_study(client, max_trials=3)
    study.optimize(lambda trial: 0.5, n_trials=1)  # not on a terminal
    assert capsys.readouterr().err == ""


def test_progress_in_a_notebook(
    study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    study.optimize(lambda trial: 0.5, n_trials=1)
    assert "1/1 [" in capsys.readouterr().err
    study.optimize(lambda trial: 0.5, n_trials=1, progress=False)
    assert capsys.readouterr().err == ""


def test_progress_without_a_standard_error(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert study.optimize(lambda trial: 0.5, n_trials=1, progress=True) == 1
