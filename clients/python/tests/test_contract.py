"""The scenarios that all clients run: clients/contract/README.md explains the table."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from google.protobuf import json_format, message_factory
from google.protobuf.message import Message

from dpfront import AsyncClient, AsyncStudy, AsyncTrial, Client, Mean, Runs, Study, errors
from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import privacy as p
from dpfront._connection import failure
from dpfront._threads import Stubs
from dpfront.v1 import (
    admin_service_pb2,
    analysis_service_pb2,
    front_service_pb2,
    privacy_pb2,
    privacy_service_pb2,
    release_service_pb2,
    study_pb2,
    study_service_pb2,
)

from .conftest import REPOSITORY, Server

TABLE: dict[str, Any] = yaml.safe_load(
    (REPOSITORY / "clients" / "contract" / "scenarios.yaml").read_text()
)
STEP = {
    *("step", "restart", "call", "as", "stub", "request", "requests", "take", "eventually"),
    *("code", "violations", "answer", "save"),
}
SERVICES = {
    "StudyService": ("studies", study_service_pb2),
    "FrontService": ("fronts", front_service_pb2),
    "AnalysisService": ("analyses", analysis_service_pb2),
    "PrivacyService": ("privacy", privacy_service_pb2),
    "ReleaseService": ("releases", release_service_pb2),
    "AdminService": ("admin", admin_service_pb2),
}
PATIENCE = 60.0
PAUSE = 0.05


class DifferentError(AssertionError):
    """An answer is not what the table says."""


# --- expectations -----------------------------------------------------------------------


def expand(value: Any, saved: Mapping[str, Any]) -> Any:
    """Replaces references by what earlier steps have saved."""
    if isinstance(value, dict):
        return {expand(k, saved): expand(v, saved) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(x, saved) for x in value]
    if isinstance(value, str):
        if whole := re.fullmatch(r"\$\{(\w+)\}", value):
            return saved[whole[1]]
        return re.sub(r"\$\{(\w+)\}", lambda m: str(saved[m[1]]), value)
    return value


def lookup(value: Any, path: str) -> Any:
    """Returns the part of an answer at a path such as trials.0.name; "." is all of it."""
    for part in path.split(".") if path != "." else ():
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def match(path: str, want: Any, got: Any) -> list[str]:
    """Compares an answer with what is expected of it, and returns the differences."""
    if isinstance(want, dict):
        if len(want) == 1 and next(iter(want)).startswith("$"):
            ((operator, argument),) = want.items()
            return match_operation(path, operator, argument, got)
        if not isinstance(got, dict) and got is not None:
            return [f"{path}: got {got!r}, want {want!r}"]
        return [d for k, v in want.items() for d in match(f"{path}.{k}", v, (got or {}).get(k))]
    if isinstance(want, list):
        if not isinstance(got, list) and got is not None:
            return [f"{path}: got {got!r}, want {want!r}"]
        if len(got or []) != len(want):
            return [f"{path}: got {len(got or [])} elements, want {len(want)}"]
        pairs = enumerate(zip(want, got or [], strict=True))
        return [d for i, (w, g) in pairs for d in match(f"{path}[{i}]", w, g)]
    if got is None and is_default(want):
        return []
    number = (int, float)
    same = type(want) is type(got) or (type(want) in number and type(got) in number)
    return [] if same and want == got else [f"{path}: got {got!r}, want {want!r}"]


def match_operation(path: str, operator: str, argument: Any, got: Any) -> list[str]:
    number = got if isinstance(got, (int, float)) else math.nan
    several = got if isinstance(got, list) else []
    if operator in ("$first", "$last") and several:
        return match(path, argument, several[0 if operator == "$first" else -1])
    holds: dict[str, Callable[[], bool]] = {
        "$present": lambda: (got is not None) == argument,
        "$not": lambda: bool(match(path, argument, got)),
        "$contains": lambda: isinstance(got, str) and argument in got,
        "$length": lambda: len(several) == argument,
        "$first": lambda: False,
        "$last": lambda: False,
        "$above": lambda: number > argument,
        "$at_most": lambda: number <= argument,
        "$near": lambda: abs(number - argument[0]) <= argument[1],
    }
    return [] if holds[operator]() else [f"{path}: got {got!r}, want {operator} {argument!r}"]


def is_default(value: Any) -> bool:
    """Reports whether a value is one that JSON leaves out."""
    return (
        value is None
        or value in ("", "0", 0, False)
        or (isinstance(value, str) and value.endswith("_UNSPECIFIED"))
    )


@pytest.mark.parametrize(
    ("want", "got", "differences"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0),
        ({"a": 1, "b": 2}, {"a": 2, "b": 3}, 2),
        ({"a": {"b": 0, "c": "", "d": False, "e": [], "f": None}}, {}, 0),
        ({"a": None}, {"a": 1}, 1),
        ({"a": {}}, {"a": 1}, 1),
        ([1, 2], [1], 1),
        ([], {"a": 1}, 1),
        (1, True, 1),
        (0.30000000000000004, 0.3, 1),
        ("17", 17, 1),
        ({"$present": True}, None, 1),
        ({"$present": False}, 0, 1),
        ({"$not": 1}, 1, 1),
        ({"$contains": "b"}, "abc", 0),
        ({"$contains": "d"}, "abc", 1),
        ({"$length": 1}, [], 1),
        ({"$last": {"a": 2}}, [{"a": 1}, {"a": 2}], 0),
        ({"$first": {"a": 2}}, [{"a": 1}, {"a": 2}], 1),
        ({"$last": 1}, [], 1),
        ({"$above": 1}, 1, 1),
        ({"$at_most": 1}, 1, 0),
        ({"$near": [1, 0.1]}, 1.05, 0),
        ({"$near": [1, 0.1]}, 1.2, 1),
    ],
)
def test_match(want: Any, got: Any, differences: int) -> None:
    assert len(match("", want, got)) == differences


# --- calls ------------------------------------------------------------------------------


@dataclass
class Wire:
    """The last call of a client."""

    request: Any = None
    reply: Any = None
    refused: Any = None
    """The last request that was refused."""


class RecordingStub:
    """A generated stub, of a channel that blocks or not, that notes calls."""

    def __init__(self, stub: Any, wire: Wire) -> None:
        self._stub = stub
        self._wire = wire

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._stub, method)

        def noted(request: Any, **options: Any) -> Any:
            self._wire.request, self._wire.reply = request, None
            try:
                reply = self._wire.reply = call(request, **options)
            except grpc.RpcError:
                self._wire.refused = request
                raise
            return reply

        return noted


class RecordingAsyncStub(RecordingStub):
    """The same of a channel for asyncio."""

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._stub, method)

        async def noted(request: Any, **options: Any) -> Any:
            self._wire.request, self._wire.reply = request, None
            try:
                reply = self._wire.reply = await call(request, **options)
            except grpc.RpcError:
                self._wire.refused = request
                raise
            return reply

        return noted


@dataclass
class Connection:
    """A client with a token: the blocking one, and the twin whose own ways are taken."""

    client: Any
    stubs: Stubs
    wire: Wire
    metadata: tuple[tuple[str, str], ...]


class Blocking:
    """An object of the client for asyncio whose coroutines are run to their ends."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(value):
            return value

        def run(*arguments: Any, **named: Any) -> Any:
            result = self._loop.run_until_complete(value(*arguments, **named))
            if isinstance(result, list):
                return [self._block(x) for x in result]
            return self._block(result)

        return run

    def _block(self, result: Any) -> Any:
        twins = (AsyncStudy, AsyncTrial)
        return Blocking(result, self._loop) if isinstance(result, twins) else result


class Inexpressible(Exception):
    """The client has no way of its own to say this."""


@dataclass
class Caller:
    """Makes calls by the client's own ways where it has them, and by its stubs elsewhere.

    It checks that the client sends what the table says, and returns what the server answered.
    """

    address: str
    twin: str  # "blocking" or "asyncio"
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    connections: dict[str, Connection] = field(default_factory=dict)
    studies: dict[str, Any] = field(default_factory=dict)  # messages by name
    trials: dict[str, Any] = field(default_factory=dict)  # by token
    clients: list[Any] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # methods that were called the client's way

    def connect(self, token: str) -> Connection:
        if token not in self.connections:
            wire = Wire()
            blocking = Client(self.address, token=token or None)
            client: Any = blocking
            stubs = blocking.stubs
            if self.twin == "asyncio":
                twin = AsyncClient(self.address, token=token or None)
                self.loop.run_until_complete(self.record(twin, RecordingAsyncStub, wire))
                client = Blocking(twin, self.loop)
                self.clients.append(client)
            else:
                self.loop.run_until_complete(self.record(blocking, RecordingStub, wire))
            self.clients.append(blocking)
            metadata = (("authorization", f"Bearer {token}"),) if token else ()
            self.connections[token] = Connection(client, stubs, wire, metadata)
        return self.connections[token]

    async def record(self, client: Any, recording: type[RecordingStub], wire: Wire) -> None:
        """Makes a client record its calls; stubs for asyncio need a running loop."""
        stubs = client.stubs
        recorded = {name: recording(getattr(stubs, name), wire) for name, _ in SERVICES.values()}
        client._transport._stubs = type(stubs)(**recorded)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.loop.close()

    def call(self, name: str, token: str, messages: list[Any], stub: bool, take: int) -> Any:
        """Returns the answer in JSON, a list of answers if the server streams."""
        service, method = name.split(".")
        descriptor = SERVICES[service][1].DESCRIPTOR.services_by_name[service]
        what = descriptor.methods_by_name[method]
        kind = message_factory.GetMessageClass(what.input_type)
        requests: list[Any] = [json_format.ParseDict(m, kind()) for m in messages]
        connection = self.connect(token)
        own = OWN_WAYS.get(method)
        if own is not None and not stub:
            try:
                return in_json(self.idiomatic(own, connection, requests[0], method))
            except Inexpressible:
                pass
        call = getattr(getattr(connection.stubs, SERVICES[service][0]), method)
        options: dict[str, Any] = {"metadata": connection.metadata, "timeout": PATIENCE}
        try:
            answer = call(iter(requests) if what.client_streaming else requests[0], **options)
            if not what.server_streaming:
                return in_json(answer)
            answers = []
            for message in answer:
                answers.append(in_json(message))
                if len(answers) == take:
                    answer.cancel()
                    break
            return answers
        except grpc.RpcError as error:
            f = failure(error)
            raise errors.call_error(name, f.code, f.message, f.violations) from None

    def idiomatic(
        self,
        own: Callable[[Caller, Connection, Any], Any],
        connection: Connection,
        request: Any,
        method: str,
    ) -> Any:
        connection.wire.request = connection.wire.reply = connection.wire.refused = None
        error: errors.CallError | None = None
        result = None
        try:
            result = own(self, connection, request)
        except errors.CallError as refusal:
            error = refusal
        except errors.LeaseLost as lost:
            error = cause(lost)
        self.used.add(method)
        sent, reply = connection.wire.request, connection.wire.reply
        if error is not None:  # an explanation may have been asked for since
            sent = connection.wire.refused
        if plain(sent) != plain(request):
            raise DifferentError(f"the client sends {plain(sent)}, the table says {plain(request)}")
        if error is not None:
            raise error
        if result is not None and result != reply:
            raise DifferentError(f"the client returns {result}, the server answers {reply}")
        return reply

    def study(self, connection: Connection, name: str) -> Any:
        message = self.studies.get(name, study_pb2.Study(name=name))
        if self.twin == "asyncio":
            return Blocking(AsyncStudy(connection.client._inner._transport, message), self.loop)
        return Study(connection.client._transport, message)

    def trial_study(self, connection: Connection, name: str) -> tuple[Any, int]:
        study, number = name.split("/trials/")
        return self.study(connection, study), int(number)

    def held(self, request: Any) -> Any:
        trial = self.trials.get(request.lease_token)
        if trial is None or trial.name != request.name:
            raise Inexpressible
        return trial


def cause(lost: errors.LeaseLost) -> errors.CallError:
    """Returns the refusal that a lost lease showed by."""
    assert isinstance(lost.__cause__, (errors.FailedPrecondition, errors.NotFound))
    return lost.__cause__


def in_json(message: Message) -> Any:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def plain(message: Any) -> str:
    """Returns a request without what clients add to it: the id of the request, and defaults
    that are written out or chosen by the client.
    """
    if message is None:
        return "nothing"
    copy = type(message)()
    copy.CopyFrom(message)
    if "request_id" in copy.DESCRIPTOR.fields_by_name:
        copy.ClearField("request_id")
    if isinstance(copy, study_service_pb2.SuggestTrialsRequest):
        copy.count = 0 if copy.count == 1 else copy.count
        if copy.resume:
            copy.ClearField("resume")
    if isinstance(
        copy, (study_service_pb2.ListStudiesRequest, study_service_pb2.ListTrialsRequest)
    ):
        copy.page_size = 0
    return f"{type(copy).__name__} {json_format.MessageToJson(copy, sort_keys=True)}"


def values(message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns plain values of parameters."""
    return {k: getattr(v, v.WhichOneof("kind")) for k, v in message.items()}


def measured(measurement: Any) -> dict[str, Any]:
    """Returns the metrics of a measurement, if they are runs or means."""
    out: dict[str, Any] = {}
    for key, value in measurement.metrics.items():
        fields = [f.name for f, _ in value.ListFields()]
        if fields == ["runs"]:
            out[key] = Runs(value.runs)
        elif fields == ["value", "standard_error"]:
            out[key] = Mean(value.value, value.standard_error)
        else:
            raise Inexpressible
        try:
            convert.to_measurement({key: out[key]})
        except ValueError:  # before anything is sent
            raise Inexpressible from None
    return out


def elapsed(measurement: Any) -> float | None:
    if not measurement.HasField("elapsed"):
        return None
    seconds: float = measurement.elapsed.ToTimedelta().total_seconds()
    return seconds


def only(message: Any, *fields: str) -> None:
    """Checks that a message has no other fields than these."""
    if {f.name for f, _ in message.ListFields()} - set(fields):
        raise Inexpressible


def names(enum: Any, value: int) -> str:
    return convert.enum_name(enum, value)


def privacy(message: Any) -> p.Privacy:
    """Returns the mechanism of a message."""
    kind = message.WhichOneof("mechanism")
    inner = getattr(message, kind)
    fields: dict[str, Any] = {f.name: v for f, v in inner.ListFields()}
    if kind == "dp_sgd":
        fields["sampling"] = names(privacy_pb2.Sampling, inner.sampling)
        fields["convention"] = names(privacy_pb2.Convention, inner.convention)
    kinds: dict[str, Any] = {
        "dp_sgd": p.DpSgd,
        "gaussian": p.Gaussian,
        "sparse_vector": p.SparseVector,
    }
    return p.Privacy(
        kinds[kind](**fields),
        delta=message.delta,
        adjacency=names(privacy_pb2.Adjacency, message.adjacency),  # type: ignore[arg-type]
        accountant=names(privacy_pb2.Accountant, message.accountant),  # type: ignore[arg-type]
    )


def create_study(caller: Caller, c: Connection, q: Any) -> Any:
    only(q.study, "spec", "display_name", "description", "labels")
    study = c.client.create_study(
        q.study_id,
        q.study.spec,
        display_name=q.study.display_name,
        description=q.study.description,
        labels=q.study.labels,
        validate_only=q.validate_only,
    )
    assert study.name == f"studies/{q.study_id}"
    assert study.spec == c.wire.reply.study.spec
    caller.studies[study.name] = c.wire.reply.study


def get_study(caller: Caller, c: Connection, q: Any) -> Any:
    return study_service_pb2.GetStudyResponse(study=caller.study(c, q.name).info().raw)


def update_study(caller: Caller, c: Connection, q: Any) -> Any:
    only(q.study, "name", "display_name", "description", "labels", "spec")
    named = {f"spec.{specs.SPEC_PATHS.get(x, x)}": x for x in specs.UPDATABLE}
    details = {x: x for x in ("display_name", "description", "labels")}
    fields: dict[str, Any] = {}
    for path in q.update_mask.paths:
        if path not in {**details, **named}:
            raise Inexpressible
        fields[{**details, **named}[path]] = functools.reduce(getattr, path.split("."), q.study)
    return study_service_pb2.UpdateStudyResponse(
        study=caller.study(c, q.study.name).update(**fields).raw
    )


def delete_study(caller: Caller, c: Connection, q: Any) -> None:
    caller.study(c, q.name).delete()


def pause_study(caller: Caller, c: Connection, q: Any) -> None:
    caller.study(c, q.name).pause()


def resume_study(caller: Caller, c: Connection, q: Any) -> None:
    caller.study(c, q.name).resume()


def list_studies(_: Caller, c: Connection, q: Any) -> Any:
    only(q, "filter", "order_by")
    found = c.client.studies(q.filter, q.order_by)
    return study_service_pb2.ListStudiesResponse(studies=[x.raw for x in found])


def suggest_trials(caller: Caller, c: Connection, q: Any) -> None:
    conditions = list(q.conditions)
    if (q.HasField("resume") and not q.resume) or any(x != conditions[0] for x in conditions):
        raise Inexpressible
    condition = conditions[0] if conditions else study_service_pb2.SuggestionCondition()
    trials: list[Any] = []
    done: errors.StudyDone | None = None
    try:
        trials = caller.study(c, q.parent).ask_many(
            max(q.count, 1),
            q.worker_id,
            fixed=values(condition.fixed_parameters),
            at_most=dict(condition.at_most),
            timeout=0,
        )
    except errors.StudyDone as error:
        done = error
    except TimeoutError:
        pass  # it would wait
    reply = c.wire.reply
    if done is not None:
        assert done.reason == names(study_service_pb2.EndReason, reply.end_reason)
        assert not reply.HasField("retry_after")
    for trial, message in zip(trials, reply.trials, strict=True):
        assert trial.raw == message
        assert trial.params == values(message.parameters)
        assert trial.computed == {k: v.value for k, v in message.computed_metrics.items()}
        caller.trials[message.lease.token] = trial


def get_trial(caller: Caller, c: Connection, q: Any) -> Any:
    study, number = caller.trial_study(c, q.name)
    info = study.get_trial(number)
    final = info.raw.final_measurement.metrics
    assert {k: info.metrics[k] for k in final} == {k: v.value for k, v in final.items()}
    return study_service_pb2.GetTrialResponse(trial=info.raw)


def list_trials(caller: Caller, c: Connection, q: Any) -> Any:
    only(q, "parent", "filter", "order_by")
    found = caller.study(c, q.parent).trials(q.filter, q.order_by)
    return study_service_pb2.ListTrialsResponse(
        trials=[x.raw for x in found], revision=c.wire.reply.revision
    )


def create_trial(caller: Caller, c: Connection, q: Any) -> Any:
    only(q.trial, "parameters", "final_measurement", "replicate_of", "note")
    study = caller.study(c, q.parent)
    params = values(q.trial.parameters)
    if q.trial.HasField("final_measurement"):
        only(q.trial.final_measurement, "metrics")
        info = study.add_trial(params, q.trial.note, **measured(q.trial.final_measurement))
    else:
        of = q.trial.replicate_of.rsplit("/", 1)[-1]
        info = study.enqueue_trial(params, replicate_of=int(of) if of else None)
    return study_service_pb2.CreateTrialResponse(trial=info.raw)


def stop_trial(caller: Caller, c: Connection, q: Any) -> None:
    study, number = caller.trial_study(c, q.name)
    study.stop_trial(number, q.reason)


def delete_trial(caller: Caller, c: Connection, q: Any) -> None:
    study, number = caller.trial_study(c, q.name)
    study.delete_trial(number)


def add_measurement(caller: Caller, c: Connection, q: Any) -> None:
    m = q.measurement
    trial, metrics = caller.held(q), measured(m)
    # The table goes on where a worker would not.
    getattr(trial, "_inner", trial)._lost = None
    stop = trial.report(m.step, metrics, elapsed=elapsed(m))
    assert stop == c.wire.reply.should_stop
    assert trial.stop_reason == c.wire.reply.stop_reason


def complete_trial(caller: Caller, _: Connection, q: Any) -> None:
    trial = caller.held(q)
    if q.HasField("measurement"):
        m = q.measurement
        trial.tell(measured(m), step=m.step or None, elapsed=elapsed(m))
    elif q.HasField("infeasible"):
        trial.infeasible(q.infeasible.reason)
    elif q.HasField("failure"):
        trial.fail(q.failure.reason, retryable=q.failure.retryable)
    else:
        trial.tell()


def release_trial(caller: Caller, _: Connection, q: Any) -> None:
    caller.held(q).release(q.reason)


def get_front(caller: Caller, c: Connection, q: Any) -> Any:
    kind: Any = names(front_service_pb2.FrontKind, q.kind)
    front = caller.study(c, q.name).front(kind, final_only=q.final_only)
    for point, message in zip(front, front.raw.points, strict=True):
        assert {k: v.value for k, v in point.values.items()} == {
            k: v.value for k, v in message.values.items()
        }
    return front_service_pb2.GetFrontResponse(front=front.raw)


def list_hypervolumes(caller: Caller, c: Connection, q: Any) -> None:
    kind: Any = names(front_service_pb2.FrontKind, q.kind)
    points = caller.study(c, q.name).hypervolumes(kind, final_only=q.final_only)
    assert [x.hypervolume for x in points] == [x.hypervolume for x in c.wire.reply.points]


def query_front(caller: Caller, c: Connection, q: Any) -> None:
    found = caller.study(c, q.name).recommend(
        confidence=q.confidence,
        optimize=q.optimize,
        measured_only=q.measured_only,
        **dict(q.bounds),
    )
    reply = c.wire.reply
    assert found.reachable == reply.reachable
    assert found.params == values(reply.parameters)
    assert found.computed == {k: v.value for k, v in reply.computed_metrics.items()}


def predict_metrics(caller: Caller, c: Connection, q: Any) -> None:
    found = caller.study(c, q.name).predict([values(x.parameters) for x in q.configurations])
    assert [{k: v.median for k, v in x.items()} for x in found] == [
        {k: v.median for k, v in x.predictions.items()} for x in c.wire.reply.predictions
    ]


def analyze_importance(caller: Caller, c: Connection, q: Any) -> Any:
    found = caller.study(c, q.name).importance()
    assert [x.parameter for x in found.parameters] == [
        x.parameter for o in c.wire.reply.objectives for x in o.parameters
    ]
    return found.raw


def analyze_slices(caller: Caller, c: Connection, q: Any) -> Any:
    found = caller.study(c, q.name).slices(values(q.parameters), points=q.points)
    assert found.params == values(c.wire.reply.parameters)
    return found.raw


def analyze_contour(caller: Caller, c: Connection, q: Any) -> Any:
    found = caller.study(c, q.name).contour(
        q.x_parameter,
        q.y_parameter,
        metric=q.metric,
        params=values(q.parameters),
        points=q.points,
    )
    assert [p.median for row in found.predictions for p in row] == [
        p.median for p in c.wire.reply.predictions
    ]
    return found.raw


def cross_validate(caller: Caller, c: Connection, q: Any) -> Any:
    found = caller.study(c, q.name).cross_validate()
    assert [p.observed for o in found.objectives for p in o.points] == [
        p.observed for o in c.wire.reply.objectives for p in o.points
    ]
    return found.raw


def forecast_gain(caller: Caller, c: Connection, q: Any) -> Any:
    found = caller.study(c, q.name).expected_gain(q.runs)
    assert [p.gain for p in found.points] == [p.gain.value for p in c.wire.reply.points]
    return found.raw


def get_privacy_ledger(caller: Caller, c: Connection, q: Any) -> Any:
    return caller.study(c, q.name).privacy_ledger(q.delta, q.metric).raw


def reaccount_study(caller: Caller, c: Connection, q: Any) -> None:
    only(q, "name", "metric", "privacy", "validate_only")
    if not q.validate_only:
        raise Inexpressible  # it also reads the study
    found = caller.study(c, q.name).reaccount(
        privacy(q.privacy), metric=q.metric, validate_only=True
    )
    assert found == read.reaccounting(c.wire.reply)


def compute_epsilon(_: Caller, c: Connection, q: Any) -> Any:
    only(q, "privacy", "parameters", "lengths")
    mechanism, params = privacy(q.privacy), values(q.parameters)
    if q.lengths:
        found = c.client.epsilon_curve(mechanism, list(q.lengths), **params)
    else:
        found = [c.client.epsilon(mechanism, **params)]
    assert [float(x) for x in found] == [x.epsilon for x in c.wire.reply.guarantees]


def compute_tradeoff(_: Caller, c: Connection, q: Any) -> None:
    only(q, "privacy", "parameters", "false_positive_rates")
    found = c.client.tradeoff(
        privacy(q.privacy), list(q.false_positive_rates), **values(q.parameters)
    )
    assert list(found.tprs) == [x.true_positive_rate for x in c.wire.reply.points]


def price_search(_: Caller, c: Connection, q: Any) -> None:
    distribution = {"eta": q.eta, "poisson": "poisson", None: "geometric"}
    fields = {f.name: value for f, value in q.ListFields()}
    for name in ("privacy", "parameters", "eta", "poisson"):
        fields.pop(name, None)
    found = c.client.price_search(
        privacy(q.privacy),
        runs=fields.pop("runs", 0),
        distribution=distribution[q.WhichOneof("distribution")],
        **fields,
        **values(q.parameters),
    )
    assert found == read.search_prices(c.wire.reply)


def calibrate_mechanism(_: Caller, c: Connection, q: Any) -> None:
    found = c.client.calibrate(
        privacy(q.privacy),
        q.solve_for,
        epsilon=q.target_epsilon,
        min=q.min,
        max=q.max,
        **values(q.parameters),
    )
    assert found.reachable == c.wire.reply.reachable


def get_server_info(_: Caller, c: Connection, q: Any) -> None:
    version = c.client.server_version()
    assert version == c.wire.reply.version


OWN_WAYS: dict[str, Callable[[Caller, Connection, Any], Any]] = {
    "CreateStudy": create_study,
    "GetStudy": get_study,
    "UpdateStudy": update_study,
    "DeleteStudy": delete_study,
    "PauseStudy": pause_study,
    "ResumeStudy": resume_study,
    "ListStudies": list_studies,
    "SuggestTrials": suggest_trials,
    "GetTrial": get_trial,
    "ListTrials": list_trials,
    "CreateTrial": create_trial,
    "StopTrial": stop_trial,
    "DeleteTrial": delete_trial,
    "AddMeasurement": add_measurement,
    "CompleteTrial": complete_trial,
    "ReleaseTrial": release_trial,
    "GetFront": get_front,
    "ListHypervolumes": list_hypervolumes,
    "QueryFront": query_front,
    "PredictMetrics": predict_metrics,
    "AnalyzeImportance": analyze_importance,
    "AnalyzeSlices": analyze_slices,
    "AnalyzeContour": analyze_contour,
    "CrossValidate": cross_validate,
    "ForecastGain": forecast_gain,
    "GetPrivacyLedger": get_privacy_ledger,
    "ReaccountStudy": reaccount_study,
    "ComputeEpsilon": compute_epsilon,
    "ComputeTradeoff": compute_tradeoff,
    "PriceSearch": price_search,
    "CalibrateMechanism": calibrate_mechanism,
    "GetServerInfo": get_server_info,
}


# --- the table --------------------------------------------------------------------------


@dataclass
class Side:
    """A server with those who call it."""

    server: Server
    caller: Caller
    credentials: dict[str, str]


def start_sides(binary: str, folder: Path, twin: str) -> Iterator[dict[bool, Side]]:
    """Starts the server that everybody may call, and the one that asks for tokens."""
    credentials = {}
    for token in TABLE["tokens"]:
        command = [binary, "token", "create", "--auth-file", str(folder / "auth.yaml")]
        command += ["--name", token["name"], "--role", token["role"]]
        for pattern in token.get("studies", ()):
            command += ["--study", pattern]
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        credentials[token["name"]] = made.stdout.strip()
    guarded = ("--auth-file", str(folder / "auth.yaml"))
    out = {}
    for authentication in (False, True):
        store = folder / f"{authentication}.db"
        server = Server(binary, store, *(guarded if authentication else ()))
        out[authentication] = Side(server, Caller(server.address, twin), credentials)
    yield out
    for side in out.values():
        side.caller.close()
        side.server.kill()


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def sides(
    binary: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[bool, Side]]:
    """The two servers, for each of the client's twins."""
    yield from start_sides(binary, tmp_path_factory.mktemp("contract"), request.param)


def run(side: Side, step: Mapping[str, Any], saved: dict[str, Any]) -> None:
    """Takes a step, and raises what differs from its expectations."""
    name = step.get("as", "nobody")
    token = "" if name == "nobody" else side.credentials.get(name, name)
    request = step.get("request", {})
    messages = expand(step.get("requests", [request]), saved)
    stub = step.get("stub", False) or "request_id" in request
    deadline = time.monotonic() + PATIENCE
    while True:
        code, violations, text, answer = "OK", set(), "", None
        try:
            answer = side.caller.call(step["call"], token, messages, stub, step.get("take", 0))
        except errors.CallError as error:
            code, text = error.code.name, str(error)
            violations = {v.field for v in error.violations}
        differences = []
        if code != step.get("code", "OK"):
            differences.append(f"code: got {code}, want {step.get('code', 'OK')}: {text}")
        elif violations != set(step.get("violations", ())):
            differences.append(
                f"violations: got {sorted(violations)}, want {step.get('violations')}: {text}"
            )
        elif "answer" in step:
            differences = match("", expand(step["answer"], saved), answer)
        if not differences:
            saved.update({k: lookup(answer, path) for k, path in step.get("save", {}).items()})
            return
        if not step.get("eventually") or time.monotonic() > deadline:
            raise DifferentError("\n".join([*differences, f"answer: {answer}"]))
        time.sleep(PAUSE)


def run_scenario(scenario: Mapping[str, Any], side: Side, restart_always: bool = False) -> None:
    """Takes the steps of a scenario."""
    saved: dict[str, Any] = {}
    between = restart_always or scenario.get("restart_between_steps", False)
    for number, step in enumerate(scenario["steps"], 1):
        assert set(step) <= STEP
        restart = step.get("restart", False)
        if restart or (number > 1 and between):
            side.server.restart()
        if restart:
            continue
        try:
            run(side, step, saved)
        except Exception as error:
            where = f"scenario {scenario['name']!r}, step {number}, {step['step']}"
            raise AssertionError(f"{where} ({step['call']}):\n{error}") from error


EVERY = pytest.mark.parametrize(
    "scenario", TABLE["scenarios"], ids=lambda s: s["name"].replace(" ", "-")
)


@EVERY
def test_scenario(scenario: Mapping[str, Any], sides: dict[bool, Side]) -> None:
    run_scenario(scenario, sides[scenario.get("authentication", False)])


def test_every_own_way_is_taken(sides: dict[bool, Side], request: pytest.FixtureRequest) -> None:
    twin = sides[False].caller.twin
    ids = {f"test_scenario[{twin}-{x['name'].replace(' ', '-')}]" for x in TABLE["scenarios"]}
    if not ids <= {x.name for x in request.session.items} or request.session.testsfailed:
        pytest.skip("not all scenarios were run, or some failed")
    used = {method for side in sides.values() for method in side.caller.used}
    assert used == set(OWN_WAYS)


@pytest.fixture(scope="module")
def killed_sides(
    binary: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[bool, Side]]:
    """Servers of their own for scenarios between whose steps they are killed."""
    yield from start_sides(binary, tmp_path_factory.mktemp("killed"), "blocking")


@pytest.mark.long
@EVERY
def test_scenario_between_restarts(
    scenario: Mapping[str, Any], killed_sides: dict[bool, Side]
) -> None:
    run_scenario(scenario, killed_sides[scenario.get("authentication", False)], True)
