"""What all trackers share, and imports of finished runs, without the trackers themselves."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

import dpfront
from dpfront import Study, Trial
from dpfront.integrations._importing import SOURCE, Finished, add
from dpfront.integrations._tracking import Record, Tracker

from .conftest import make_study


class Memory(Tracker):
    """Keeps records, unless it is down."""

    def __init__(self, study: Study, **options: Any) -> None:
        super().__init__(study, **options)
        self.records: dict[int, Record] = {}
        self.fronts: list[dict[str, Any]] = []
        self.down = False

    def _known(self) -> set[int]:
        if self.down:
            raise ConnectionError("no route to the tracker")
        return set(self.records)

    def _log(self, record: Record) -> None:
        if self.down:
            raise ConnectionError("no route to the tracker")
        assert record.number not in self.records
        self.records[record.number] = record

    def _log_front(self, front: str) -> None:
        self.fronts.append(json.loads(front))


def train(trial: Trial) -> float:
    if trial.number == 2:
        raise dpfront.Infeasible("too wide")
    trial.report(1, error=0.75)
    return 0.5


def test_trials_are_logged_with_what_their_epsilon_says(study: Study) -> None:
    study.add_trial(
        {"learning_rate": 0.1, "noise_variance": 1.0, "lot_size": 8, "epochs": 1},
        error=0.25,
        seeded=True,
    )
    with Memory(study) as tracker:
        study.optimize(train, n_trials=2, callbacks=[tracker])
        study.ask()  # still runs
    assert sorted(tracker.records) == [1, 2, 3]
    seeded, infeasible, ran = (tracker.records[k] for k in (1, 2, 3))
    trial = study.get_trial(3)
    guarantee = trial.guarantees["epsilon"]
    assert ran.params == trial.params
    assert ran.metrics == {"error": 0.5, "epsilon": guarantee.epsilon}
    assert [(step, m["error"]) for step, m in ran.curve] == [(1, 0.75)]
    assert ran.tags == {
        "dpareto.study": study.id,
        "dpareto.trial": "3",
        "dpareto.state": "succeeded",
        "dpareto.epsilon": repr(guarantee.epsilon),
        "dpareto.epsilon.delta": "1e-06",
        "dpareto.epsilon.adjacency": guarantee.adjacency,
        "dpareto.epsilon.covers": guarantee.covers,
    }
    assert (infeasible.succeeded, infeasible.tags["dpareto.reason"]) == (False, "too wide")
    assert seeded.metrics == {"error": 0.25}
    assert seeded.tags["dpareto.epsilon"] == "none holds: runs were seeded"
    assert "dpareto.epsilon.delta" not in seeded.tags
    front = tracker.fronts[-1]
    assert "1e-06" in front["guarantees"]["epsilon"]
    assert {p["trial"] for p in front["points"]} <= {1, 3}
    assert all(p["delta"] == 1e-6 for p in front["points"])


def test_a_tracker_that_is_down_fails_nothing(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Memory(study)
    tracker.down = True
    with tracker:
        assert study.optimize(lambda trial: 0.5, n_trials=2, callbacks=[tracker]) == 2
    assert tracker.records == {}
    assert f"Memory did not take trial 1 of studies/{study.id}" in caplog.text
    assert f"Memory did not take the end of studies/{study.id}" in caplog.text
    tracker.down = False
    assert tracker.sync() == 2
    assert tracker.sync() == 0
    assert sorted(tracker.records) == [1, 2]


def test_a_tracker_that_hangs_delays_nothing(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    answers = threading.Event()

    class Hanging(Memory):
        def _log(self, record: Record) -> None:
            answers.wait()
            super()._log(record)

    with Hanging(study, timeout=0) as tracker:
        assert study.optimize(lambda trial: 0.5, n_trials=3, callbacks=[tracker]) == 3
    assert tracker.records == {}
    assert "Hanging has not answered for 0 s: sync() logs the rest" in caplog.text
    answers.set()


def test_an_exception_of_the_training_passes(study: Study) -> None:
    tracker = Memory(study)
    with pytest.raises(KeyError), tracker:
        study.optimize(lambda trial: trial["lr"], callbacks=[tracker])
    assert len(tracker.fronts) == 1


PARAMS = {"lr": "0.1", "noise_variance": "1.0", "lot_size": "8", "epochs": "1"}


def test_finished_runs_are_added_once(study: Study) -> None:
    runs = [
        Finished("tool:a", {**PARAMS, "batch_norm": "True"}, {"val": 0.5, "seconds": 3.0}),
        Finished("tool:b", PARAMS, {"val": 0.25}, problem="its status is FAILED"),
        Finished("tool:c", PARAMS, {"loss": 0.25}),
        Finished("tool:d", {**PARAMS, "epochs": "1.5"}, {"val": 0.25}),
        Finished("tool:e", {**PARAMS, "lr": "7"}, {"val": 0.25}),
        Finished("tool:f", PARAMS, {"val": float("nan")}),
        Finished("tool:g", PARAMS, {"val": 0.25}, study=study.id),
        Finished("tool:h", PARAMS, {"val": 0.25}),
    ]
    names = {"lr": "learning_rate", "val": "error"}
    result = add(study, runs, names)
    assert (result.added, result.existed) == ((1, 2), 0)
    assert result.unused == ("batch_norm", "loss", "seconds")
    reasons = dict(result.left_out)
    assert "7" in reasons.pop("tool:e")
    assert "nan" in reasons.pop("tool:f")
    assert reasons == {
        "tool:b": "its status is FAILED",
        "tool:c": "it has no error",
        "tool:d": "epochs: must be a whole number, is '1.5'",
        "tool:g": "it is a trial of this study",
    }
    assert str(result).startswith("2 trials added, 0 were there\nleft out tool:b: its status is")
    trial = study.get_trial(1)
    assert trial.params == {
        "learning_rate": 0.1,
        "noise_variance": 1.0,
        "lot_size": 8,
        "epochs": 1,
    }
    assert trial.metrics["error"] == 0.5
    assert trial.guarantees["epsilon"].delta == 1e-6
    assert trial.user_attrs == {SOURCE: "tool:a"}
    again = add(study, runs, names)
    assert (again.added, again.existed) == ((), 2)
    with pytest.raises(ValueError, match=r"names: .* has no accuracy"):
        add(study, runs, {"val": "accuracy"})


def test_imported_trials_are_those_of_another_study_too(client: dpfront.Client) -> None:
    """Runs that a tracker logged of one study can be imported into another."""
    study = make_study(client)
    run = Finished("tool:g", {**PARAMS, "learning_rate": "0.1"}, {"error": 0.25}, study="other")
    assert add(study, [run]).added == (1,)
