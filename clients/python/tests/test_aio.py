"""The client for asyncio."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

import dpfront
from dpfront import AsyncClient, AsyncStudy, AsyncTrial, TrialInfo, _search

from .conftest import METRICS, PARAMETERS, Clock, Server

NOTHING: dict[str, float] = {}
Body = Callable[[AsyncClient], Awaitable[None]]


def run(server: Server, body: Body) -> None:
    async def main() -> None:
        async with AsyncClient(server.address) as client:
            await body(client)

    asyncio.run(main())


async def make(client: AsyncClient, id: str, **fields: Any) -> AsyncStudy:
    return await AsyncStudy.create(
        client, id, PARAMETERS, METRICS, algorithm="random", seed=1, **fields
    )


def test_the_whole_loop(shared_server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-loop", max_trials=8)
        running = 0
        most = 0

        async def objective(trial: AsyncTrial) -> float:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await trial.report(1, error=0.9)
            await asyncio.sleep(0.01)
            running -= 1
            if trial.number == 3:
                raise dpfront.Infeasible("too wide")
            return 1 / trial.number

        assert await study.optimize(objective, n_jobs=3) == 8
        assert most > 1
        states = [t.state for t in await study.trials()]
        assert states == ["succeeded"] * 2 + ["infeasible"] + ["succeeded"] * 5
        front = await study.front("observed")
        assert front.hypervolume > 0
        found = await study.recommend(epsilon=1000)
        assert found.reachable
        assert (await study.hypervolumes())[-1].completed_trials == 7
        assert (await study.privacy_ledger()).runs == 8
        assert (await study.predict([front[0].params]))[0]["error"].median > 0
        assert (await client.study("aio-loop")).id == "aio-loop"
        assert "aio-loop" in {x.id for x in await client.studies()}
        privacy = dpfront.paper(
            dataset_size=1000, batch_size=10, noise_multiplier=1.0, epochs="epochs", delta=1e-6
        )
        one = await client.epsilon(privacy, epochs=3)
        curve = await client.epsilon_curve(privacy, [1, 3], epochs=1)
        assert curve[1].epsilon == one.epsilon > curve[0].epsilon
        attack = await client.tradeoff(privacy, [0.01], epochs=3)
        gaussian = dpfront.Privacy(dpfront.privacy.Gaussian(1.0, "noise"), 1e-6, "add_remove")
        prices = await client.price_search(gaussian, runs=2, noise=3.0)
        single = await client.epsilon(gaussian, noise=3.0)
        assert prices["one run, no search"].training.epsilon == single.epsilon
        assert 0.01 < attack.tpr(0.01) < 1
        assert (await study.tradeoff(front[0])).guarantee.epsilon > 0

    run(shared_server, body)


def test_blocks(shared_server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-blocks", lease=timedelta(seconds=1))
        async with study.trial() as trial:
            await asyncio.sleep(1.5)  # its lease is renewed
            assert not trial.should_stop
            await trial.tell(error=0.5)
        assert trial.attempt == 1
        with pytest.raises(ZeroDivisionError):
            async with study.trial() as trial:
                raise ZeroDivisionError("no gradient")
        assert (await study.get_trial(trial.number)).state == "queued"
        with pytest.raises(dpfront.Infeasible):
            async with study.trial() as again:
                raise dpfront.Infeasible("no gradient")
        assert again.number == trial.number
        assert (await study.get_trial(trial.number)).state == "infeasible"

        held: list[AsyncTrial] = []

        async def work() -> None:
            async with study.trial() as trial:
                held.append(trial)
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        while not held:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await study.get_trial(held[0].number)).state == "queued"
        again = await study.ask()
        assert again.number == held[0].number
        await again.fail("no disk", retryable=False)
        released = await study.ask()
        await released.release()
        async with study.trial() as trial:
            await trial.report(1, error=0.5)
            await study.stop_trial(trial.number)
            while not trial.should_stop:
                await asyncio.sleep(0.05)
        assert (await study.get_trial(trial.number)).state == "succeeded"

    run(shared_server, body)


def test_errors_and_mistakes(shared_server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        with pytest.raises(dpfront.NotFound):
            await client.study("no-such-study")
        study = await make(client, "aio-errors")

        together = asyncio.Event()

        async def objective(trial: AsyncTrial) -> float:
            if trial.number == 2:
                together.set()
            await together.wait()
            return NOTHING["no such key"]

        with pytest.raises(KeyError):
            await study.optimize(objective, n_jobs=2)
        assert {t.state for t in await study.trials()} == {"queued"}
        assert await study.optimize(objective, n_trials=1, catch=KeyError) == 1

        async def as_in_optuna(trial: AsyncTrial) -> tuple[float, float]:
            return 0.8, 0.4

        with pytest.raises(TypeError, match="the server computes epsilon: return error alone"):
            await study.optimize(as_in_optuna)
        trial = await study.ask()
        with pytest.raises(dpfront.InvalidArgument, match="eror"):
            await trial.tell(eror=1)
        await trial.tell(error=0.5)
        with pytest.raises(dpfront.LeaseLost):
            await trial.tell(error=0.6)
        await client.close()
        with pytest.raises(dpfront.DParetoError, match="closed"):
            await study.info()

    run(shared_server, body)


def test_when_a_search_ends(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(_search, "time", clock)
    ask_until = AsyncStudy._ask_until

    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-ends", max_trials=4, max_parallel_trials=1)
        seen: list[tuple[int, str]] = []
        gave_up = asyncio.Event()

        async def ask(self: AsyncStudy, *arguments: Any) -> AsyncTrial:
            try:
                return await ask_until(self, *arguments)
            except TimeoutError:
                gave_up.set()
                raise

        monkeypatch.setattr(AsyncStudy, "_ask_until", ask)

        async def objective(trial: AsyncTrial) -> float:
            await gave_up.wait()
            clock.now = 1.0
            return 0.5

        async def remember(of: AsyncStudy, trial: TrialInfo) -> None:
            assert of is study
            seen.append((trial.number, trial.state))

        def enough(study: AsyncStudy, trial: TrialInfo) -> None:
            study.stop()

        # One task runs a trial past the limit, the other one waits for its turn.
        assert await study.optimize(objective, timeout=0.1, n_jobs=2, callbacks=[remember]) == 1
        assert seen == [(1, "succeeded")]
        assert await study.optimize(objective, n_jobs=2, callbacks=[enough]) == 1
        with pytest.raises(RuntimeError, match="optimize is not running"):
            study.stop()
        with pytest.raises(ValueError, match="n_jobs: must be at least 1"):
            await study.optimize(objective, n_jobs=0)
        with pytest.warns(UserWarning, match="optimize ran 2 of 5 trials: .* the budget of 4") as w:
            assert await study.optimize(objective, n_trials=5) == 2
        assert w[0].filename == __file__

    run(shared_server, body)


def test_a_restart(server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-restart")
        trial = await study.ask()
        await asyncio.to_thread(server.kill)
        task = asyncio.create_task(trial.tell(error=0.5))
        await asyncio.sleep(0.3)
        assert not task.done()
        await asyncio.to_thread(server.start)
        await task
        assert (await study.get_trial(1)).metrics["error"] == 0.5

    run(server, body)


def test_a_trial_that_nobody_waits_for_goes_back(shared_server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-ask", max_parallel_trials=1)
        stub: Any = client.stubs.studies
        suggest = stub.SuggestTrials
        on_its_way = asyncio.Event()

        async def slow(*arguments: Any, **named: Any) -> Any:
            answer = await suggest(*arguments, **named)
            on_its_way.set()
            await asyncio.sleep(0.2)
            return answer

        stub.SuggestTrials = slow
        task = asyncio.create_task(study.ask())
        await on_its_way.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await study.get_trial(1)).state == "queued"
        stub.SuggestTrials = suggest
        trial = await study.ask()
        with pytest.raises(asyncio.TimeoutError):  # while it waits for its turn
            await asyncio.wait_for(study.ask(), 0.2)
        await trial.tell(error=0.5)
        assert (await study.ask(timeout=20)).number == 2

    run(shared_server, body)


def test_closing_ends_what_is_under_way(server: Server) -> None:
    async def body(client: AsyncClient) -> None:
        study = await make(client, "aio-closed", lease=timedelta(seconds=1))
        trial = await study.ask()
        trial.keep_alive()
        beats = trial._heartbeat
        assert beats is not None
        assert server._process is not None
        server._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server._process.pid, os.WSTOPPED | os.WNOWAIT)  # it stops later
        task = asyncio.create_task(study.info())
        await asyncio.sleep(0.2)
        await client.close()
        with pytest.raises(dpfront.DParetoError, match="the client is closed"):
            await task
        await asyncio.wait([beats.task], timeout=10)
        assert beats.task.done()

    run(server, body)
