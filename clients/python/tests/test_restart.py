"""Servers that come and go."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent import futures
from typing import Any

import grpc
import pytest

import dpfront
from dpfront import Client
from dpfront._operations import calls
from dpfront._threads import Transport
from dpfront.v1 import (
    release_service_pb2,
    release_service_pb2_grpc,
    study_service_pb2,
    study_service_pb2_grpc,
)

from .conftest import Server, make_study


def test_work_goes_on_after_a_kill(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with Client(server.address) as client:
        study = make_study(client)
        first = study.ask()
        server.restart()
        first.report(1, error=0.9)
        server.restart()
        first.tell(error=0.5)
        server.restart()
        second = study.ask()
        assert (first.number, second.number) == (1, 2)
        assert study.get_trial(1).metrics["error"] == 0.5


def test_calls_wait_for_a_server_that_is_away(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(server.address) as client:
        study = make_study(client)
        server.kill()
        starter = threading.Timer(1.0, server.start)
        starter.start()
        with caplog.at_level(logging.WARNING, "dpfront"):
            trial = study.ask()
        starter.join()
        assert trial.number == 1
        messages = [r.getMessage() for r in caplog.records]
        assert len(messages) == 1
        assert messages[0].startswith(f"ask for a trial of {study.name}: ")
        assert messages[0].endswith("; trying again")


def test_patience_ends(server: Server) -> None:
    with Client(server.address, patience=0.3) as client:
        study = make_study(client)
        server.kill()
        with pytest.raises(dpfront.Unavailable) as caught:
            study.ask()
        assert isinstance(caught.value, ConnectionError)


def test_a_wrong_address_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PATIENCE", 0.2)
    with (
        Client("127.0.0.1:1") as client,
        pytest.raises(dpfront.Unavailable, match=r"is a server running at 127\.0\.0\.1:1,"),
    ):
        client.server_version()


def test_closing_ends_calls_that_wait(server: Server) -> None:
    client = Client(server.address)
    study = make_study(client)
    server.kill()
    threading.Timer(0.3, client.close).start()
    with pytest.raises(dpfront.DParetoError, match="closed"):
        study.ask()


class Proxy:
    """A server whose answers get lost: every call takes effect, and the first answer to it
    is an error."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.studies = study_service_pb2_grpc.StudyServiceStub(self.channel)
        self.releases = release_service_pb2_grpc.ReleaseServiceStub(self.channel)
        self.requests: list[Any] = []
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        servicer: Any = self
        study_service_pb2_grpc.add_StudyServiceServicer_to_server(servicer, self.server)
        release_service_pb2_grpc.add_ReleaseServiceServicer_to_server(servicer, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def stop(self) -> None:
        self.server.stop(None).wait()
        self.channel.close()


def _lossy(stubs: str, method: str) -> Any:
    def handle(self: Proxy, request: Any, context: grpc.ServicerContext) -> Any:
        answer = getattr(getattr(self, stubs), method)(request)
        first = not self.requests or self.requests[-1] != request
        self.requests.append(request)
        if first:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the answer got lost")
        return answer

    return handle


for _stubs, _service in (
    ("studies", study_service_pb2.DESCRIPTOR.services_by_name["StudyService"]),
    ("releases", release_service_pb2.DESCRIPTOR.services_by_name["ReleaseService"]),
):
    for _method in _service.methods:
        setattr(Proxy, _method.name, _lossy(_stubs, _method.name))


def test_lost_answers_do_nothing_twice(server: Server) -> None:
    proxy = Proxy(server.address)
    with Client(f"127.0.0.1:{proxy.port}") as client:
        study = make_study(client)
        params = {"learning_rate": 0.1, "noise_variance": 4, "lot_size": 64, "epochs": 2}
        assert study.enqueue_trial(params).number == 1
        assert study.add_trial(params, error=0.25).number == 2
        assert [t.number for t in study.ask_many(3)] == [1, 3, 4]
        trial = study.ask()
        assert trial.number == 5
        trial.report(1, error=0.5)
        trial.tell(error=0.5)
        other = study.ask()
        other.release()
        study.pause()
        study.resume()
        assert len(study.trials()) == 6
        study.delete()
    proxy.stop()
    names = [type(r).__name__.removesuffix("Request") for r in proxy.requests]
    needs_id = {"SuggestTrials", "CreateTrial", "PauseStudy", "ResumeStudy", "DeleteStudy"}
    without = {"CreateStudy", "AddMeasurement", "CompleteTrial", "ReleaseTrial"}
    assert set(names) >= needs_id | without
    attempts = Counter(
        (name, request.SerializeToString(deterministic=True))
        for name, request in zip(names, proxy.requests, strict=True)
        if name in needs_id | without
    )
    assert set(attempts.values()) == {2}
    for name, request in zip(names, proxy.requests, strict=True):
        assert bool(getattr(request, "request_id", "")) == (name in needs_id)


def test_lost_answers_charge_nothing_twice(server: Server) -> None:
    proxy = Proxy(server.address)
    with Client(f"127.0.0.1:{proxy.port}") as client:
        people = client.create_ledger("people", records=1000, epsilon=2, delta=1e-6)
        study = make_study(client, algorithm="quasi_random", max_trials=2, test_ledger=people.id)
        study.optimize(lambda trial: 0.5)
        released = [
            client.select_privately(people, [0.1, 0.9], 1e-3, 0.1),
            study.release_best("error", epsilon=0.1),
            study.release_front(epsilon=0.1, delta=1e-8),
        ]
        assert [c.resource for c in client.charges(people)] == [x.name for x in released]
    proxy.stop()


def test_ctrl_c_does_not_wait_for_a_server_that_is_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LAST_PATIENCE", 0.2)
    with Client(server.address, patience=3600) as client:
        study = make_study(client)

        def interrupted() -> None:
            with study.trial():
                server.kill()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()


def test_calls_that_race_with_close(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(shared_server.address)
    stubs = client.stubs
    client.close()
    monkeypatch.setattr(Transport, "stubs", property(lambda _: stubs))
    with pytest.raises(dpfront.DParetoError, match="the client is closed"):
        client.server_version()


def test_rules_of_methods() -> None:
    assert calls.rules("studies", "GetTrial") == calls.Rules(False, True, False)
    assert calls.rules("studies", "CompleteTrial") == calls.Rules(False, True, False)
    assert calls.rules("studies", "RenewLeases") == calls.Rules(False, True, False)
    assert calls.rules("studies", "PauseStudy") == calls.Rules(False, True, True)
    assert calls.rules("studies", "SuggestTrials") == calls.Rules(True, True, True)
    assert calls.rules("fronts", "GetFront") == calls.Rules(True, True, False)
    assert calls.rules("releases", "SelectPrivately") == calls.Rules(True, True, True)
