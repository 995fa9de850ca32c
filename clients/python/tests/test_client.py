"""Studies, trials and fronts against a real server."""

from __future__ import annotations

import logging
import math
import pickle
import threading

import pytest

import dpfront
from dpfront import Client, Int, Minimize, Study

from .conftest import METRICS, PARAMETERS, make_study


def test_create_and_load(client: Client) -> None:
    study = make_study(client, max_trials=3)
    again = make_study_like(client, study)
    assert again.spec == study.spec
    loaded = Study.load(client, study.id)
    assert loaded.spec == study.spec
    info = loaded.info()
    assert info.state == "active"
    assert info.objectives == ("error", "epsilon")
    assert info.reported == ("error",)
    assert info.max_trials == 3
    assert info.trial_counts["succeeded"] == 0
    assert any(x.id == study.id for x in client.studies())
    assert [x.id for x in client.studies(f'name = "studies/{study.id}"')] == [study.id]
    assert study.id in repr(study)


def make_study_like(client: Client, study: Study) -> Study:
    return client.create_study(study.id, study.spec)


def test_the_same_id_with_another_spec_is_refused(client: Client, study: Study) -> None:
    with pytest.raises(dpfront.AlreadyExists, match="fields that differ: budget"):
        Study.create(
            client, study.id, PARAMETERS, METRICS, algorithm="random", seed=1, max_trials=99
        )


def test_errors_name_every_field(client: Client) -> None:
    with pytest.raises(dpfront.InvalidArgument) as caught:
        Study.create(
            client,
            "bad",
            [Int("epochs", 5, 1), Int("2x", 1, 5)],
            [Minimize("error", 1)],
        )
    fields = [v.field for v in caught.value.violations]
    assert any("parameters[0]" in f for f in fields), fields
    assert any("parameters[1]" in f for f in fields), fields
    for v in caught.value.violations:
        assert v.description in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, dpfront.CallError)


def test_errors_survive_pickling(client: Client) -> None:
    with pytest.raises(dpfront.NotFound) as caught:
        client.study("no-such-study")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.code == caught.value.code
    lost = dpfront.LeaseLost("studies/s/trials/1", "gone")
    assert str(pickle.loads(pickle.dumps(lost))) == str(lost)
    done = dpfront.StudyDone("studies/s", "budget_spent")
    assert str(pickle.loads(pickle.dumps(done))) == str(done)


def test_ask_and_tell(study: Study) -> None:
    trial = study.ask()
    assert set(trial.params) == {"learning_rate", "noise_variance", "lot_size", "epochs"}
    assert isinstance(trial["epochs"], int)
    assert isinstance(trial["learning_rate"], float)
    assert trial.epsilon is not None
    assert trial.epsilon == trial.computed["epsilon"]
    guarantee = trial.guarantee
    assert guarantee is not None
    assert float(guarantee) == trial.epsilon
    assert guarantee.adjacency == "replace_one"
    assert (trial.replicates, trial.attempt) == (1, 1)
    trial.tell(error=0.25)
    read = study.get_trial(trial.number)
    assert read.state == "succeeded"
    assert read.metrics == {"error": 0.25, "epsilon": trial.epsilon}
    assert read.params == trial.params


def test_every_ask_gives_another_trial(study: Study) -> None:
    trials = [study.ask(), study.ask(), *study.ask_many(3)]
    assert len({t.number for t in trials}) == 5


def test_a_named_worker_gets_its_trial_again(study: Study) -> None:
    first = study.ask("w")
    again = study.ask("w")
    assert first.number == again.number
    with pytest.raises(dpfront.LeaseLost):
        first.report(1, error=0.5)  # its lease is the other's now
    again.tell(error=0.5)


def test_tell_is_idempotent_and_never_overwrites(study: Study) -> None:
    trial = study.ask()
    trial.tell(error=0.5)
    trial.tell(error=0.5)
    with pytest.raises(dpfront.LeaseLost):
        trial.tell(error=0.1)
    assert study.get_trial(trial.number).metrics["error"] == 0.5


def test_metrics_are_checked(study: Study) -> None:
    trial = study.ask()
    with pytest.raises(dpfront.InvalidArgument, match="eror"):
        trial.tell(eror=0.5)
    with pytest.raises(dpfront.NotFinite):
        trial.tell(error=math.nan)
    with pytest.raises(ValueError, match="given twice: error"):
        trial.tell({"error": 0.5}, error=0.5)
    with pytest.raises(ValueError, match="no metrics"):
        trial.tell()
    with pytest.raises(dpfront.InvalidArgument, match="has replicates, 1, holds 2"):
        trial.tell({"error": dpfront.Runs([0.4, 0.6])})
    trial.tell({"error": dpfront.Mean(0.5, 0.1)})
    assert study.get_trial(trial.number).metrics["error"] == 0.5


def test_report_and_end_with_the_last(study: Study) -> None:
    trial = study.ask()
    assert trial.report(1, error=0.9) is False
    assert trial.report(1, error=0.9) is False  # once more changes nothing
    trial.report(2, {"error": 0.8}, elapsed=1.5)
    with pytest.raises(dpfront.LeaseLost):
        trial.report(2, error=0.1)
    fresh = study.ask()
    fresh.report(1, error=0.7)
    fresh.tell()
    read = study.get_trial(fresh.number)
    assert read.metrics["error"] == 0.7
    assert [(m.step, m.metrics["error"]) for m in read.measurements] == [(1, 0.7)]


def test_stopping(client: Client) -> None:
    study = make_study(client, checkpoint_parameter="epochs")
    trial = study.ask(fixed={"epochs": 10})
    assert not trial.should_stop
    study.stop_trial(trial.number, "enough seen")
    assert trial.report(3, error=0.5) is True
    assert trial.should_stop
    assert "enough seen" in trial.stop_reason
    with pytest.raises(ValueError, match="stop at step 3 of 10"):
        trial.tell(error=0.5)
    trial.tell(error=0.5, step=3)
    read = study.get_trial(trial.number)
    assert read.state == "succeeded"
    assert read.final_measurement is not None
    assert read.final_measurement.step == 3
    other = study.ask(fixed={"epochs": 10})
    study.stop_trial(other.number)
    other.report(10, error=0.5)
    other.tell(error=0.5)  # it was at its end


def test_outcomes(study: Study) -> None:
    infeasible, failed, retried, released = study.ask_many(4)
    infeasible.infeasible("diverged")
    failed.fail("no disk", retryable=False)
    retried.fail("no memory")
    released.release("not now")
    states = {t.number: (t.state, t.state_reason) for t in study.trials()}
    assert states[infeasible.number] == ("infeasible", "diverged")
    assert states[failed.number] == ("failed", "no disk")
    assert states[retried.number][0] == "queued"
    assert states[released.number][0] == "queued"
    assert "no memory" in states[retried.number][1]


def test_conditions(study: Study) -> None:
    trial = study.ask(fixed={"lot_size": 16, "epochs": 3.0}, at_most={"epsilon": 1.0})
    assert trial["lot_size"] == 16
    assert trial["epochs"] == 3
    assert trial.epsilon is not None
    assert trial.epsilon <= 1
    with pytest.raises(dpfront.InvalidArgument, match="width"):
        study.ask(fixed={"width": 3})
    with pytest.raises(dpfront.StudyDone) as caught:
        study.ask(at_most={"epsilon": 1e-12})
    assert caught.value.reason == "condition"


def test_done_and_waiting(client: Client) -> None:
    study = make_study(client, max_trials=1)
    trial = study.ask()
    with pytest.raises(TimeoutError, match="budget_spent"):
        study.ask(timeout=0.2)  # the trial could come back
    trial.tell(error=0.5)
    with pytest.raises(dpfront.StudyDone) as caught:
        study.ask()
    assert caught.value.reason == "budget_spent"
    assert study.info().state == "completed"


def test_pause_resume_and_delete(study: Study) -> None:
    study.pause()
    assert study.info().state == "paused"
    with pytest.raises(TimeoutError, match="paused"):
        study.ask(timeout=0.1)
    study.resume()
    study.ask()
    study.delete()
    with pytest.raises(dpfront.NotFound):
        study.info()
    with pytest.raises(dpfront.NotFound):
        study.ask()


def test_whole_floats_are_integers(client: Client) -> None:
    study = Study.create(client, "whole-floats", [Int("shift", -1, 1)], [Minimize("error", 1)])
    for value in (0.0, 1.0, -0.0):
        assert study.enqueue_trial({"shift": value}).params == {"shift": int(value)}
    with pytest.raises(dpfront.InvalidArgument):
        study.enqueue_trial({"shift": 0.5})


def test_enqueue_add_and_replicate(study: Study) -> None:
    params = {"learning_rate": 0.1, "noise_variance": 4, "lot_size": 64, "epochs": 2}
    queued = study.enqueue_trial(params)
    assert queued.state == "queued"
    trial = study.ask()
    assert trial.number == queued.number
    assert trial.params == {**params, "noise_variance": 4.0}
    trial.tell(error=0.3)
    replicate = study.enqueue_trial(replicate_of=trial.number)
    assert replicate.origin == "replicate"
    assert replicate.params == trial.params
    added = study.add_trial({**params, "epochs": 5}, "elsewhere", error=0.2)
    assert (added.state, added.origin, added.note) == ("succeeded", "imported", "elsewhere")
    assert [t.number for t in study.trials("metrics.error <= 0.25")] == [added.number]


def test_front_and_recommendation(client: Client) -> None:
    study = make_study(client)
    for k in range(6):
        trial = study.ask()
        trial.tell(error=0.5 - 0.05 * k)
    front = study.front("observed")
    assert front.objectives == ("error", "epsilon")
    assert front.minimize == {"error": True, "epsilon": True}
    assert len(front) == len(front.points) >= 1
    assert front.reference == {"error": 1, "epsilon": 10}
    epsilons = [x.values["epsilon"].value for x in front]
    errors = [x.values["error"].value for x in front]
    assert errors == sorted(errors)
    assert epsilons == sorted(epsilons, reverse=True)
    point = front[0]
    assert point.guarantee is not None
    assert point.guarantee.epsilon == point.values["epsilon"].value
    assert point.params == study.get_trial(point.trial).params
    lines = str(front).split("\n\n")[1].splitlines()[:2]
    shown = dict(zip(*(line.split() for line in lines), strict=False))  # the remark may be empty
    assert 0 <= float(shown["epsilon"]) / point.guarantee.epsilon - 1 < 0.001  # never rounded down
    posterior = study.front()
    assert posterior.points[0].values["error"].lower is not None
    bound = max(epsilons)
    found = study.recommend(epsilon=bound, measured_only=True)
    assert found.reachable
    assert found.computed["epsilon"] <= bound
    assert found.optimize == "error"
    assert study.hypervolumes()[-1].hypervolume == pytest.approx(front.hypervolume)
    predicted = study.predict([point.params])[0]["error"]
    assert predicted.lower <= predicted.median <= predicted.upper
    ledger = study.privacy_ledger()
    assert ledger.runs == 6
    # By other accountants: the study reports the published one.
    assert ledger.composed.epsilon > 0
    assert ledger.largest_epsilon > 0


def test_a_front_becomes_a_frame(client: Client, study: Study) -> None:
    pandas = pytest.importorskip("pandas")
    study.ask().tell(error=0.25)
    front = study.front("observed")
    assert isinstance(front, dpfront.Front)
    frame = front.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["error"].tolist() == [0.25]
    assert {"epsilon", "learning_rate", "trial", "knee"} <= set(frame.columns)
    assert frame.attrs["kind"] == "observed"
    head, row = str(front).splitlines()[-2:]
    expected = ["error", "epsilon", *sorted(study.info().parameters), "trial"]
    assert head.split()[: len(expected)] == expected
    assert row.split()[0] == "0.25"
    empty = str(make_study(client).front("observed"))
    assert empty.splitlines()[0] == "no points on the observed front"


def test_clients_pickle_without_their_connection(client: Client, study: Study) -> None:
    copy = pickle.loads(pickle.dumps(study))
    assert copy._transport.connection == client._transport.connection
    trial = copy.ask()
    carried = pickle.loads(pickle.dumps(trial))
    carried.tell(error=0.5)
    assert study.get_trial(trial.number).state == "succeeded"
    assert copy._transport.worker_id != client.worker_id
    copy._transport.close()
    carried._transport.close()


def test_threads_share_a_client(study: Study) -> None:
    numbers: list[int] = []

    def work() -> None:
        for _ in range(5):
            trial = study.ask()
            trial.tell(error=0.5)
            numbers.append(trial.number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 41))


def test_closed(shared_server: object, client: Client) -> None:
    other = Client(client.address)
    other.server_version()
    other.close()
    with pytest.raises(dpfront.DParetoError, match="closed"):
        other.server_version()
    other.close()


def test_a_seeded_run_is_marked(study: Study) -> None:
    for told in (False, True):
        trial = study.ask()
        trial.seeded = True
        if told:
            trial.tell(error=0.25)
        else:
            trial.report(1, error=0.25)
            trial.tell()
        read = study.get_trial(trial.number)
        assert "SEEDED" in [w.code for w in read.warnings]
    added = [study.add_trial(trial.params, seeded=seeded, error=0.25) for seeded in (False, True)]
    assert [[w.code for w in x.warnings if w.code == "SEEDED"] for x in added] == [[], ["SEEDED"]]


def test_another_epsilon_than_the_servers_is_told(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    with study.trial() as trial, caplog.at_level(logging.WARNING, "dpfront"):
        trial.tell({"error": 0.5, "epsilon": trial.computed["epsilon"]})
    assert not caplog.records
    with study.trial() as trial, caplog.at_level(logging.WARNING, "dpfront"):
        trial.tell({"error": 0.5, "epsilon": 1e-4})
    (record,) = caplog.records
    assert trial.name in record.getMessage()
    assert "0.0001" in record.getMessage()
