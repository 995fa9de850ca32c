"""Managing studies, and what is kept with trials."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas
import pytest
from google.protobuf.message import Message

import dpfront
from dpfront import (
    AlreadyExists,
    AsyncClient,
    AsyncStudy,
    Client,
    Float,
    Int,
    InvalidArgument,
    Minimize,
    NotFound,
    Study,
    StudyChanged,
    TrialChanged,
    TrialDeleted,
    epsilon,
    errors,
    paper,
)
from dpfront import _convert as convert
from dpfront._operations import studies

from .conftest import METRICS, PARAMETERS, Server, make_study

PARAMS = {"learning_rate": 0.1, "noise_variance": 1, "lot_size": 64, "epochs": 2}


def run(study: Study, count: int) -> None:
    """Runs trials, better with every one."""
    for k in range(count):
        study.ask().tell(error=0.5 / (k + 1))


# --- update -----------------------------------------------------------------------------


def test_more_trials(client: Client) -> None:
    """A spent study goes on after update(), which the error of create() names."""
    study = make_study(client, max_trials=2)
    run(study, 2)
    with pytest.raises(dpfront.StudyDone):
        study.ask()
    fields: dict[str, Any] = {"algorithm": "random", "seed": 1}
    with pytest.raises(AlreadyExists) as raised:
        Study.create(client, study.id, PARAMETERS, METRICS, max_trials=4, **fields)
    assert (
        f'fields that differ: budget.max_trials; study = client.study("{study.id}") loads it, '
        "study.update(max_trials=4) changes it"
    ) in str(raised.value)
    assert raised.value.args[2] == raised.value.message
    info = study.update(max_trials=4)
    assert (info.max_trials, info.state, study.spec.budget.max_trials) == (4, "active", 4)
    run(study, 2)
    with pytest.raises(dpfront.StudyDone):
        study.ask()
    same = Study.create(client, study.id, PARAMETERS, METRICS, max_trials=4, **fields)
    assert same.info().revision == study.info().revision


def test_hint_for_another_parameter(client: Client) -> None:
    study = make_study(client)
    more = [*PARAMETERS, Float("momentum", 0.1, 0.9)]
    with pytest.raises(AlreadyExists, match=r"loads it, study\.extend\(\.\.\.\) adds momentum by"):
        Study.create(client, study.id, more, METRICS, algorithm="random", seed=1)
    with pytest.raises(ValueError, match="recommend: a bound on an objective is required"):
        study.recommend()


def test_hint(client: Client) -> None:
    """The hint lists everything that update() can change, and nothing if that is not enough."""
    study = make_study(client, max_trials=2, early_stopping=False)
    wider = [Float("learning_rate", 1e-3, 2, log=True), *PARAMETERS[1:]]
    asked: dict[str, Any] = {
        "max_duration": timedelta(hours=1),
        "lease": timedelta(seconds=30),
        "max_attempts": 2,
        "algorithm": "random",
        "seed": 1,
    }
    with pytest.raises(AlreadyExists) as raised:
        Study.create(client, study.id, wider, METRICS, **asked)
    want = (
        "study.update(early_stopping=True, lease=datetime.timedelta(seconds=30), max_attempts=2, "
        "max_duration=datetime.timedelta(seconds=3600), max_trials=0, parameters=[...])"
    )
    assert f"loads it, {want} changes it" in str(raised.value)
    study.update(
        parameters=wider[:1],
        early_stopping=True,
        lease=timedelta(seconds=30),
        max_attempts=2,
        max_duration=timedelta(seconds=3600),
        max_trials=0,
    )
    assert Study.create(client, study.id, wider, METRICS, **asked).spec == study.spec
    for other in ({"seed": 2}, {"replicates": 2}, {"checkpoint_parameter": "epochs"}):
        with pytest.raises(AlreadyExists) as raised:
            Study.create(client, study.id, wider, METRICS, **{**asked, **other, "max_trials": 9})
        assert "update" not in str(raised.value)


def test_update(client: Client) -> None:
    study = make_study(client, max_trials=5, lease=timedelta(seconds=30))
    info = study.update(display_name="A", description="B", labels={"team": "x"})
    assert (info.display_name, info.description, info.labels) == ("A", "B", {"team": "x"})
    assert (info.max_trials, study.spec.lease.duration.seconds) == (5, 30)
    info = study.update(labels={}, max_trials=0, max_duration=timedelta(1), max_parallel_trials=3)
    assert (info.labels, info.display_name, info.max_trials) == ({}, "A", 0)
    assert study.spec.budget.max_parallel_trials == 3
    assert study.update(max_duration=None, max_stagnant_trials=7).raw.spec.budget == type(
        study.spec.budget
    )(max_parallel_trials=3, max_stagnant_trials=7)
    units = {"error": "ratio"}
    assert [m.unit for m in study.update(units=units).raw.spec.metrics] == ["ratio", ""]
    assert client.study(study.id).info() == study.info()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({}, TypeError, "update: needs at least one field"),
        ({"max_trial": 3}, TypeError, "StudySpec has no field max_trial"),
        ({"metrics": []}, TypeError, "StudySpec has no field metrics"),
        ({"max_trials": 1.5}, TypeError, "max_trials: 1.5 is not an integer"),
        ({"max_duration": 60}, TypeError, "max_duration: 60 is not a timedelta"),
        ({"units": {"loss": "x"}}, ValueError, "units: the study has no metric loss"),
        ({"parameters": [Float("clip", 0, 1)]}, ValueError, r"no clip; study.extend\(\) adds it"),
        ({"seed": 2}, InvalidArgument, "study.spec.seed: cannot be changed"),
        ({"max_trials": -1}, InvalidArgument, "budget.max_trials: must"),
        (
            {"parameters": [Int("epochs", 2, 64, log=True)]},
            InvalidArgument,
            r"parameters\[3\].integer_domain.min: must be at most 1",
        ),
        ({"parameters": [Int("epochs", 1, 99)]}, InvalidArgument, r"\[3\].scale: cannot be"),
    ],
)
def test_update_refused(
    client: Client, study: Study, change: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        study.update(**change)
    assert client.study(study.id).spec == study.spec


# --- extend -----------------------------------------------------------------------------


def test_extend(client: Client) -> None:
    """A new parameter, with the old study as prior."""
    first = make_study(client, max_trials=3, labels={"team": "x"})
    run(first, 3)
    clip = Float("clip", 0.1, 10, log=True)
    wider = Int("epochs", 1, 128, log=True)
    second = first.extend(first.id + "-b", [clip, wider], {"clip": 1}, max_trials=9)
    assert second.parameters == [*PARAMETERS[:3], wider, clip]
    assert second.info().max_trials == 9
    assert second.info().labels == {}
    assert list(second.spec.prior_studies) == [first.name]
    assert convert.from_values(second.spec.prior_values) == {"clip": 1.0}
    assert second.spec.prior_values["clip"].HasField("double_value")
    assert second.info().seed != first.info().seed
    assert "clip" in second.ask().params
    third = second.extend(
        second.id + "-c", [Float("x", 0, 1)], {"x": 0.5}, metrics=[METRICS[1], METRICS[0]]
    )
    assert list(third.spec.prior_studies) == [second.name, first.name]
    assert convert.from_values(third.spec.prior_values) == {"clip": 1.0, "x": 0.5}
    assert third.info().objectives == ("epsilon", "error")
    with pytest.raises(InvalidArgument, match="y"):
        second.extend(second.id + "-d", [Float("y", 0, 1)], {})


def test_constant_points(client: Client) -> None:
    """A result without a run is on the front, answers, and stays while its metrics do."""
    majority = dpfront.ConstantPoint(
        "majority", {"error": 0.25, "epsilon": 0}, display_name="always predict no"
    )
    first = make_study(client, max_trials=3, constant_points=[majority])
    (point,) = first.front("observed")
    assert (point.constant_point, point.trial, point.params) == ("majority", 0, {})
    assert {key: v.value for key, v in point.values.items()} == majority.values
    run(first, 3)
    front = first.front("observed")
    assert [p.constant_point for p in front].count("majority") == 1
    assert "none: majority" in str(front)
    assert all(p.values["error"].value < 0.25 for p in front if p.trial)
    answer = first.recommend(epsilon=1e-9)
    assert (answer.constant_point, answer.reachable) == ("majority", True)
    assert answer.reached == majority.values
    clip = Float("clip", 0.1, 10, log=True)
    second = first.extend(first.id + "-b", [clip], {"clip": 1})
    assert list(second.spec.constant_points) == list(first.spec.constant_points)
    assert "majority" in [p.constant_point for p in second.front("observed")]
    other = first.extend(first.id + "-c", [clip], {"clip": 1}, metrics=METRICS)
    assert list(other.spec.constant_points) == []
    better = dpfront.ConstantPoint("published", {"error": 0.125, "epsilon": 0})
    third = first.extend(first.id + "-d", [clip], {"clip": 1}, constant_points=[better])
    assert [p.id for p in third.spec.constant_points] == ["published"]
    with pytest.raises(InvalidArgument, match=r'constant_points\[0\].values\["epsilon"\]'):
        make_study(client, constant_points=[dpfront.ConstantPoint("none", {"error": 0.25})])


# --- watch ------------------------------------------------------------------------------


def shown(change: dpfront.StudyChange) -> tuple[Any, ...]:
    """Returns a change in short."""
    if isinstance(change, TrialChanged):
        return (change.trial.number, change.trial.state)
    if isinstance(change, TrialDeleted):
        return ("deleted", change.number)
    assert isinstance(change, StudyChanged)
    return ("study", change.study.state)


def test_watch_complete(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a complete study, watch() replays everything and ends before the stream does."""
    monkeypatch.setattr(studies, "REPLAY_SECONDS", 3600.0)
    study = make_study(client, max_trials=3)
    run(study, 3)
    changes = list(study.watch())
    assert [shown(c) for c in changes] == [
        ("study", "completed"),
        *[(k, "succeeded") for k in (1, 2, 3)],
    ]
    revisions = [c.revision for c in changes]
    assert revisions == sorted(revisions)
    assert revisions[-1] == study.info().revision
    assert all(abs(c.time - datetime.now(timezone.utc)) < timedelta(minutes=5) for c in changes)
    assert [shown(c) for c in study.watch(revisions[1])] == [(2, "succeeded"), (3, "succeeded")]
    assert list(study.watch(revisions[-1])) == []
    study.update(max_trials=3, display_name="again")
    assert [shown(c) for c in study.watch(revisions[-1])] == [("study", "completed")]


def test_watch_deletion(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream from the start leaves out deletions, also if one is the last change."""
    monkeypatch.setattr(studies, "REPLAY_SECONDS", 0.3)
    study = make_study(client, max_trials=2)
    run(study, 2)
    study.delete_trial(2)
    assert [shown(c) for c in study.watch()][:2] == [("study", "completed"), (1, "succeeded")]


def follow(changes: Iterator[dpfront.StudyChange]) -> tuple[threading.Thread, list[Any]]:
    """Follows a study in a thread."""
    seen: list[Any] = []

    def take() -> None:
        for change in changes:
            seen.append(shown(change))

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, seen


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_watch_restart(server: Server) -> None:
    """It goes on after a restart of the server, and ends when the study is complete."""
    with Client(server.address) as client:
        study = make_study(client, max_trials=3)
        thread, seen = follow(study.watch())
        trial = study.ask()
        eventually(lambda: (1, "active") in seen)
        trial.tell(error=0.5)
        eventually(lambda: (1, "succeeded") in seen)
        server.restart()
        run(study, 1)
        eventually(lambda: (2, "succeeded") in seen)
        assert study.enqueue_trial(trial.params).number == 3
        eventually(lambda: (3, "queued") in seen)
        study.delete_trial(3)
        thread.join(20)
        assert not thread.is_alive()
        assert seen[0] == ("study", "active")
        assert seen[-1] == ("deleted", 3)
        assert [x for x in seen if x[1] == "succeeded"] == [(1, "succeeded"), (2, "succeeded")]


def test_watch_by_the_clock(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study that ends by its max_duration says nothing, but watch() ends."""
    monkeypatch.setattr(studies, "WATCH_SECONDS", 0.3)
    study = make_study(client, max_duration=timedelta(seconds=1))
    assert [shown(c) for c in study.watch()] == [("study", "active")]
    assert study.info().state == "completed"


def test_watch_ends(client: Client, shared_server: Server) -> None:
    """Leaving the loop, closing the client and deleting the study end it."""
    study = make_study(client)
    for change in study.watch():
        assert shown(change) == ("study", "active")
        break
    other = Client(shared_server.address)
    watching = Study.load(other, study.id).watch()
    next(watching)
    closing = threading.Timer(0.2, other.close)
    closing.start()
    with pytest.raises(errors.DParetoError, match="client is closed"):
        next(watching)
    closing.join()
    watching = study.watch()
    next(watching)
    study.delete()
    with pytest.raises(NotFound):
        next(watching)
    Study.create(client, study.id, PARAMETERS, METRICS, algorithm="random")
    with pytest.raises(NotFound, match="another one has its name now"):
        next(study.watch())
    with pytest.raises(errors.CallError, match="OUT_OF_RANGE"):
        next(client.study(study.id).watch(10_000))


def test_kinds_of_changes(study: Study) -> None:
    trial = study.ask()
    trial.tell(error=0.25)
    study.delete_trial(1)
    watching = study.watch(1)
    change = next(watching)
    assert isinstance(change, TrialDeleted)
    assert change.number == 1
    study.pause()
    change = next(watching)
    assert isinstance(change, StudyChanged)
    assert change.study == study.info()
    study.resume()
    number = study.enqueue_trial(trial.params).number
    for change in watching:
        if isinstance(change, TrialChanged):
            assert change.trial == study.get_trial(number)
            break


# --- reaccount --------------------------------------------------------------------------


def test_reaccount(study: Study) -> None:
    run(study, 3)
    before = [t.metrics["epsilon"] for t in study.trials()]
    looser = paper(dataset_size=10_000, epochs="epochs", delta=1e-5)
    planned = study.reaccount(looser, validate_only=True)
    assert [t.metrics["epsilon"] for t in study.trials()] == before
    result = study.reaccount(looser)
    assert (result.trials, result.differing_reports) == (3, 0)
    assert dataclasses.replace(planned, revision=result.revision) == result
    after = [t.metrics["epsilon"] for t in study.trials()]
    assert all(a < b for a, b in zip(after, before, strict=True))
    for summary, values, delta in ((result.before, before, 1e-6), (result.after, after, 1e-5)):
        assert (summary.delta, summary.adjacency) == (delta, "replace_one")
        assert (summary.smallest_epsilon, summary.largest_epsilon) == (min(values), max(values))
        assert summary.median_epsilon == sorted(values)[1]
        assert sum(summary.accountants.values()) == 3
        assert summary.not_computable == 0
    assert result.revision == study.info().revision
    assert study.spec.metrics[1].computed.privacy.delta == 1e-5
    with pytest.raises(InvalidArgument, match="metric"):
        study.reaccount(looser, metric="error")


def test_reaccount_which(client: Client) -> None:
    """The metric can be left out if there is one."""
    privacy = paper(dataset_size=10_000, epochs="epochs", delta=1e-6)
    metrics = [Minimize("error", 1), epsilon(privacy), epsilon(privacy, id="other")]
    study = Study.create(client, "reaccount-two", PARAMETERS, metrics, algorithm="random")
    with pytest.raises(ValueError, match="which has epsilon, other"):
        study.reaccount(privacy)
    assert study.reaccount(privacy, metric="other").trials == 0
    none = Study.create(client, "reaccount-none", PARAMETERS, metrics[:1], algorithm="random")
    with pytest.raises(ValueError, match=r"metric: must be one of .* which has none"):
        none.reaccount(privacy)


# --- attributes and artifacts -----------------------------------------------------------


def test_user_attrs(study: Study) -> None:
    numpy = pytest.importorskip("numpy")
    trial = study.ask()
    assert trial.user_attrs == {}
    values = {
        "int": 3,
        "float": 0.1,
        "text": "ε",
        "bool": True,
        "list": [1, "a", None, [2.5]],
        "dict": {"a": {"b": False}},
        "empty": [],
        "tuple": (1, 2),
        "numpy": numpy.float64(0.5),
        "array": numpy.arange(3),
        "scalar": numpy.int64(7),
    }
    for key, value in values.items():
        trial.set_user_attr(key, value)
    want = {**values, "tuple": [1, 2], "numpy": 0.5, "array": [0, 1, 2], "scalar": 7}
    assert trial.user_attrs == want
    assert type(trial.user_attrs["int"]) is int
    trial.tell(error=0.5)
    trial.set_user_attr("after", 1)
    trial.set_user_attr("text", None)
    del want["text"]
    want["after"] = 1
    assert study.get_trial(1).user_attrs == study.trials()[0].user_attrs == want
    queued = study.enqueue_trial(trial.params, user_attrs={"who": "me"})
    assert queued.user_attrs == study.ask().user_attrs == {"who": "me"}
    added = study.add_trial(trial.params, user_attrs={"from": "paper"}, error=0.4)
    assert added.user_attrs == {"from": "paper"}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, ValueError),
        (math.inf, ValueError),
        (2**53 + 1, ValueError),
        (object(), TypeError),
        ({1: 2}, TypeError),
        (b"x", TypeError),
    ],
)
def test_user_attrs_refused(study: Study, value: Any, error: type[Exception]) -> None:
    trial = study.ask()
    with pytest.raises(error, match="attribute k: "):
        trial.set_user_attr("k", [value])
    with pytest.raises(InvalidArgument, match="attributes"):
        trial.set_user_attr("k", "x" * 20_000)
    assert trial.user_attrs == {}


def test_artifacts(study: Study, tmp_path: Path) -> None:
    trial = study.ask()
    path = tmp_path / "model 1.pt"
    path.write_bytes(b"weights" * 300_000)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    trial.add_artifact("model", path=path)
    trial.add_artifact("log", "s3://bucket/log")
    want = (
        dpfront.Artifact("log", "s3://bucket/log", ""),
        dpfront.Artifact("model", path.as_uri(), digest),
    )
    assert sorted(trial.artifacts, key=lambda x: x.id) == list(want)
    trial.add_artifact("log", "s3://bucket/log2", path=str(path))
    trial.tell(error=0.5)
    kept = {x.id: x for x in study.get_trial(1).artifacts}
    assert kept == {
        "model": want[1],
        "log": dpfront.Artifact("log", "s3://bucket/log2", digest),
    }
    with pytest.raises(ValueError, match="artifact x: has neither uri nor path"):
        trial.add_artifact("x")
    with pytest.raises(FileNotFoundError):
        trial.add_artifact("x", path=tmp_path / "none")
    with pytest.raises(InvalidArgument, match="artifacts"):
        trial.add_artifact("", "s3://x")


# --- tables -----------------------------------------------------------------------------


def test_trials_dataframe(study: Study) -> None:
    assert list(study.trials_dataframe().columns) == [
        *["number", "state", "datetime_create", "datetime_start", "datetime_end", "duration"]
    ]
    run(study, 2)
    trial = study.ask()
    trial.set_user_attr("epsilon", "mine")
    trial.infeasible("diverged")
    study.ask()
    study.enqueue_trial(trial.params)
    frame = study.trials_dataframe()
    assert list(frame.columns) == [
        *["number", "state", "values_epsilon", "values_error"],
        *[f"params_{x}" for x in sorted(p.id for p in PARAMETERS)],
        *["user_attrs_epsilon", "datetime_create", "datetime_start", "datetime_end", "duration"],
    ]
    assert list(frame["number"]) == [1, 2, 3, 4, 5]
    assert list(frame["state"]) == ["succeeded", "succeeded", "infeasible", "active", "queued"]
    infos = study.trials()
    assert list(frame["values_epsilon"]) == [t.metrics["epsilon"] for t in infos]
    assert list(frame["values_error"][:2]) == [0.5, 0.25]
    assert frame["values_error"][2:].isna().all()
    assert list(frame["params_lot_size"]) == [t.params["lot_size"] for t in infos]
    assert frame["user_attrs_epsilon"].dropna().to_dict() == {2: "mine"}
    assert list(frame["datetime_create"]) == [t.create_time for t in infos]
    assert list(frame["duration"][:3]) == [t.duration for t in infos[:3]]
    assert frame["duration"][3:].isna().all()
    assert pandas.api.types.is_timedelta64_dtype(frame["duration"])
    assert isinstance(frame["datetime_end"].dtype, pandas.DatetimeTZDtype)
    assert frame.attrs["guarantees"] == {
        "epsilon": "upper bound of ε for one run, not the search; δ = 1e-06, replace_one "
        "adjacency, rdp accountant"
    }
    assert list(study.trials_dataframe("state = SUCCEEDED", "number desc")["number"]) == [2, 1]


def test_best_trials(client: Client) -> None:
    study = make_study(client)
    assert study.best_trials() == []
    trials = [study.ask() for _ in range(4)]
    for trial in sorted(trials, key=lambda t: t.epsilon or 0):  # the second is dominated
        k = sorted(t.epsilon or 0 for t in trials).index(trial.epsilon or 0)
        trial.tell(error=(0.5, 0.6, 0.3, 0.2)[k])
    best = study.best_trials()
    assert [t.metrics["error"] for t in best] == [0.2, 0.3, 0.5]
    assert best == [study.trials(f"number = {t.number}")[0] for t in best]


def test_times(study: Study) -> None:
    begin = datetime.now(timezone.utc) - timedelta(seconds=1)
    queued = study.enqueue_trial(
        {"learning_rate": 0.1, "noise_variance": 1, "lot_size": 64, "epochs": 2}
    )
    assert (queued.start_time, queued.end_time, queued.duration) == (None, None, None)
    assert (queued.provenance, queued.predictions) == ("", {})
    assert queued.guarantees["epsilon"].delta == 1e-6
    study.ask().tell(error=0.5)
    study.ask()
    done, active = study.trials()
    assert done.start_time is not None
    assert done.end_time is not None
    assert begin < done.create_time <= done.start_time <= done.end_time
    assert done.duration == done.end_time - done.start_time
    assert active.start_time is not None
    assert active.duration is None
    assert active.provenance.startswith("random at revision ")


def test_measurements(client: Client) -> None:
    study = make_study(client, checkpoint_parameter="epochs", replicates=2)
    trial = study.ask(fixed={"epochs": 9})
    trial.report(1, error=dpfront.Runs([0.5, 0.7]), elapsed=1.5)
    assert study.get_trial(1).final_measurement is None
    trial.tell(error=dpfront.Mean(0.25, 0.125), epsilon=0.5, step=3)
    info = study.get_trial(1)
    (on_the_way,) = info.measurements
    assert on_the_way.runs == {"error": (0.5, 0.7)}
    assert on_the_way.standard_errors == {"error": pytest.approx(0.1)}
    assert on_the_way.elapsed == timedelta(seconds=1.5)
    final = info.final_measurement
    assert final is not None
    assert (final.step, final.runs, final.standard_errors) == (3, {}, {"error": 0.125})
    assert (final.reported, final.elapsed) == ({"epsilon": 0.5}, None)
    assert final.metrics["epsilon"] == info.metrics["epsilon"] != 0.5
    assert final.metrics["error"] == info.metrics["error"] == 0.25


def test_skip_if_exists(study: Study) -> None:
    params = PARAMS
    first = study.enqueue_trial(params, skip_if_exists=True)
    assert study.enqueue_trial(params, skip_if_exists=True) == first
    assert study.enqueue_trial({**params, "epochs": 3}, skip_if_exists=True).number == 2
    assert study.enqueue_trial(params).number == 3


def test_plain_results(client: Client) -> None:
    """Results hold nothing of protobuf but ``raw``."""
    study = make_study(client, checkpoint_parameter="epochs", max_trials=3)
    for _ in range(2):
        with study.ask() as trial:
            trial.set_user_attr("a", {"b": [1]})
            trial.report(1, error=0.5)
    trial.add_artifact("x", "s3://x")
    study.ask().release()
    privacy = paper(dataset_size=10_000, epochs="epochs", delta=1e-6)
    results: list[Any] = [study.info(), *study.trials(), study.get_trial(3), *study.best_trials()]
    results += [*study.watch(0)] if study.info().state == "completed" else []
    results += [study.front(), *study.hypervolumes(), study.recommend(epsilon=1.0)]
    results += [study.cross_validate(), study.expected_gain(2)]
    results += [study.privacy_ledger(), study.reaccount(privacy, validate_only=True)]
    results += [*study.predict([trial.params]), study.parameters, trial.params, trial.computed]
    results += [trial.guarantee, trial.user_attrs, trial.artifacts]
    results += list(itertools.islice(study.watch(), 4))
    for x in results:
        check_plain(type(x).__name__, x)


def check_plain(path: str, x: Any) -> None:
    assert not isinstance(x, Message), path
    module = type(x).__module__
    assert not module.startswith("google."), path
    if dataclasses.is_dataclass(x):
        assert module.startswith(("dpfront._results.", "dpfront.spec")), path
        for f in dataclasses.fields(x):
            if f.name != "raw":
                check_plain(f"{path}.{f.name}", getattr(x, f.name))
    elif isinstance(x, dict):
        for key, value in x.items():
            check_plain(f"{path}[{key!r}]", value)
    elif isinstance(x, (list, tuple)):
        for value in x:
            check_plain(f"{path}[]", value)
    else:
        known = (bool, int, float, str, datetime, timedelta, type(None))
        assert isinstance(x, known), f"{path}: {type(x)}"


def test_without_pandas(shared_server: Server) -> None:
    """Only the tables need pandas."""
    program = f"""
import sys
sys.modules["pandas"] = None
import dpfront
study = dpfront.Study.create(
    dpfront.Client({shared_server.address!r}), "no-pandas",
    lambda t: t.suggest_float("x", 0, 1), [dpfront.Minimize("error", 1)],
)
trial = study.ask()
trial.set_user_attr("a", 1)
trial.tell(error=trial.suggest_float("x", 0, 1))
assert [t.number for t in study.best_trials()] == [1]
try:
    study.trials_dataframe()
except ImportError:
    print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "fine\n", done.stderr


# --- asyncio ----------------------------------------------------------------------------


def test_async(server: Server, tmp_path: Path) -> None:
    async def run_it() -> None:
        async with AsyncClient(server.address) as client:
            study = await AsyncStudy.create(
                client, "async", PARAMETERS, METRICS, algorithm="random", max_trials=2
            )
            seen: list[Any] = []

            async def watch() -> None:
                async for change in study.watch():
                    seen.append(shown(change))

            watching = asyncio.create_task(watch())
            trial = await study.ask()
            await trial.set_user_attr("a", 1)
            file = tmp_path / "x"
            file.write_text("x")
            await trial.add_artifact("x", path=file)
            assert trial.user_attrs == {"a": 1}
            assert trial.artifacts[0].sha256 == hashlib.sha256(b"x").hexdigest()
            await trial.tell(error=0.5)
            while (1, "succeeded") not in seen:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.restart)
            assert (await study.update(max_trials=3)).max_trials == 3
            for _ in range(2):
                await (await study.ask()).tell(error=0.5)
            await asyncio.wait_for(watching, 20)
            assert seen[-1] == (3, "succeeded")
            with pytest.raises(AlreadyExists, match=r"study\.update\(max_trials=9\) changes it"):
                await AsyncStudy.create(
                    client, "async", PARAMETERS, METRICS, algorithm="random", max_trials=9
                )
            assert list((await study.trials_dataframe())["number"]) == [1, 2, 3]
            assert {t.number for t in await study.best_trials()} <= {1, 2, 3}
            privacy = paper(dataset_size=10_000, epochs="epochs", delta=1e-5)
            assert (await study.reaccount(privacy)).trials == 3
            assert study.spec.metrics[1].computed.privacy.delta == 1e-5
            added = await study.add_trial(trial.params, user_attrs={"b": 2}, error=0.5)
            assert added.user_attrs == {"b": 2}
            again = await study.enqueue_trial(trial.params, skip_if_exists=True)
            assert again.number == 1
            async for change in study.watch():
                assert shown(change) == (1, "succeeded")
                break

    asyncio.run(run_it())


def test_async_watch_closed(shared_server: Server) -> None:
    async def run_it() -> None:
        client = AsyncClient(shared_server.address)
        study = await AsyncStudy.create(
            client, "async-closed", PARAMETERS, METRICS, algorithm="random"
        )
        watching = study.watch()
        assert shown(await watching.__anext__()) == ("study", "active")
        following = asyncio.ensure_future(watching.__anext__())
        await asyncio.sleep(0.1)
        await client.close()
        with pytest.raises(errors.DParetoError, match="client is closed"):
            await following

    asyncio.run(run_it())


def test_tables_say_what_an_epsilon_means(client: Client) -> None:
    """δ is not rounded down, and seeded trials are named."""
    pytest.importorskip("pandas")
    delta = 1.2345641e-5
    privacy = dpfront.opacus(
        dataset_size=1000, batch_size=100, noise_multiplier="z", epochs=2, delta=delta
    )
    study = Study.create(
        client,
        "tables",
        [Float("z", 0.5, 4)],
        [dpfront.Maximize("accuracy", 0), dpfront.epsilon(privacy)],
        algorithm="random",
    )
    for seeded in (False, True):
        trial = study.ask()
        trial.seeded = seeded
        trial.tell(accuracy=0.5)
    trials, front = study.trials_dataframe(), study.front("observed").to_dataframe()
    assert trials.attrs["seeded"] == [2]
    for frame in (trials, front):
        said = frame.attrs["guarantees"]["epsilon"]
        assert said.startswith("upper bound of ε for one run, not the search; δ = ")
        assert float(said.split("δ = ")[1].split(",")[0]) >= delta
        assert "add_remove adjacency with a public number of records" in said


def test_a_data_frame_takes_pandas(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match=r'a data frame takes pandas: pip install "dpfront\[pandas\]"'
    ):
        study.trials_dataframe()
