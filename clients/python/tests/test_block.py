"""What becomes of a trial when its block ends, and of its lease meanwhile."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

import dpfront
from dpfront import Categorical, Client, Float, Mean, Runs, Study

from .conftest import METRICS, PARAMETERS, make_study


def until(condition: object, seconds: float = 20) -> None:
    """Waits for a condition, which must come true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def test_told(study: Study) -> None:
    with study.trial() as trial:
        trial.tell(error=0.5)
    assert study.get_trial(trial.number).state == "succeeded"


def test_ends_with_what_was_reported(study: Study) -> None:
    with study.trial() as trial:
        trial.report(1, error=0.5)
    assert study.get_trial(trial.number).metrics["error"] == 0.5


def test_without_a_result(study: Study) -> None:
    with pytest.raises(dpfront.DParetoError, match="without a result"), study.trial() as trial:
        pass
    assert study.get_trial(trial.number).state == "queued"


def test_infeasible(study: Study) -> None:
    with pytest.raises(dpfront.Infeasible), study.trial() as trial:
        raise dpfront.Infeasible("too wide")
    read = study.get_trial(trial.number)
    assert (read.state, read.state_reason) == ("infeasible", "too wide")


@pytest.mark.parametrize("mistake", [KeyError, TypeError, NotImplementedError, MemoryError])
def test_any_other_exception_gives_it_back(study: Study, mistake: type[Exception]) -> None:
    with pytest.raises(mistake), study.trial() as trial:
        raise mistake("oops")
    read = study.get_trial(trial.number)
    assert read.state == "queued"
    assert [(a.outcome, a.reason) for a in read.past_attempts] == [
        ("released", f"{mistake.__name__}: " + ("'oops'" if mistake is KeyError else "oops"))
    ]
    with study.trial() as again:
        again.tell(error=0.5)
    assert again.number == trial.number
    assert study.info().trial_counts["succeeded"] == 1


def test_mistakes_do_not_use_up_the_attempts(client: Client) -> None:
    study = make_study(client, max_trials=1, max_attempts=2)
    for _ in range(4):
        with pytest.raises(ZeroDivisionError), study.trial():
            raise ZeroDivisionError
    with study.trial() as trial:
        trial.tell(error=0.5)
    assert trial.attempt == 5


def test_a_parameter_that_is_not_there(client: Client) -> None:
    study = Study.create(
        client,
        "absent-parameters",
        [
            *PARAMETERS,
            Categorical("optimizer", ["sgd", "adam"]),
            Float("beta", 0.5, 0.99, condition={"optimizer": "adam"}),
        ],
        METRICS,
        algorithm="random",
    )
    trial = study.ask(fixed={"optimizer": "sgd"})
    with pytest.raises(KeyError, match="learning_rat is not a parameter of absent-parameters, "):
        trial["learning_rat"]
    with pytest.raises(
        KeyError,
        match=r"which has epochs, learning_rate, lot_size, noise_variance, optimizer; "
        r"did you mean epochs\?",
    ):
        trial["epoch"]
    with pytest.raises(KeyError, match=r"noise_variance, optimizer'$"):
        trial["zzz"]
    with pytest.raises(KeyError, match=r"beta is absent from .*: its condition does not hold"):
        trial["beta"]


@pytest.mark.parametrize("results", [(0.8, 0.4), [0.8], 0.8])
def test_results_have_names(study: Study, results: object) -> None:
    trial = study.ask()
    with pytest.raises(TypeError, match=r"metrics: .* is not a dict of values by metric id"):
        trial.tell(results)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"report: first the step and then a dict .* called with 1 and "
    ):
        trial.report(1, results)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"report: .* called with 0\.8 and 1$"):
        trial.report(0.8, 1)  # type: ignore[arg-type]  # as in Optuna


def test_several_values_are_runs_only_when_they_say_so(client: Client) -> None:
    study = make_study(client, replicates=2)
    trial = study.ask()
    with pytest.raises(TypeError, match=r"error: \[0\.5, 0\.7\] is not a number.*Runs"):
        trial.tell(error=[0.5, 0.7])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"error: .*Runs"):
        trial.report(1, error=(0.5, 0.7))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"error: .*Runs"):
        study.add_trial(trial.params, error=[0.5, 0.7])  # type: ignore[arg-type]
    trial.tell(error=Runs([0.5, 0.7]))
    value = study.get_trial(trial.number).raw.final_measurement.metrics["error"]
    assert list(value.runs) == [0.5, 0.7]
    assert value.standard_error == pytest.approx(0.1)


def test_means_keep_their_standard_error(study: Study) -> None:
    for error in (0.01, 0):
        with study.trial() as trial:
            trial.tell(error=Mean(0.5, error))
        value = study.get_trial(trial.number).raw.final_measurement.metrics["error"]
        assert (value.value, value.standard_error) == (0.5, error)
        assert value.HasField("standard_error")


def test_a_result_that_is_not_finite_is_infeasible(study: Study) -> None:
    with pytest.raises(dpfront.NotFinite), study.trial() as trial:
        trial.tell(error=float("nan"))
    read = study.get_trial(trial.number)
    assert read.state == "infeasible"
    assert read.state_reason.startswith("error is nan")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_gives_it_back(study: Study, interruption: type[BaseException]) -> None:
    with pytest.raises(interruption), study.trial() as trial:
        raise interruption
    assert study.get_trial(trial.number).state == "queued"
    assert study.ask().number == trial.number


def test_a_mistake_in_a_call_gives_it_back(study: Study) -> None:
    with pytest.raises(dpfront.InvalidArgument), study.trial() as trial:
        trial.tell(eror=0.5)
    assert study.get_trial(trial.number).state == "queued"


def test_leases_are_renewed(client: Client) -> None:
    study = make_study(client, lease=timedelta(seconds=1))
    with study.trial() as trial:
        first = trial.raw.lease.expire_time.ToDatetime()

        def renewed() -> bool:
            lease = study.get_trial(trial.number).raw.lease
            return (lease.expire_time.ToDatetime() - first).total_seconds() > 2

        until(renewed)
        # Two lease times have passed, and nobody else got the trial.
        assert study.ask().number != trial.number
        trial.tell(error=0.5)
    assert study.get_trial(trial.number).attempt == 1
    until(lambda: f"dpareto lease {trial.name}" not in {t.name for t in threading.enumerate()})


def test_without_a_block_a_lease_runs_out(client: Client) -> None:
    study = make_study(client, lease=timedelta(seconds=1), max_trials=1)
    trial = study.ask()
    other = study.ask("other")  # waits for it
    assert other.number == trial.number
    assert other.attempt == 2
    with pytest.raises(dpfront.LeaseLost):
        trial.report(1, error=0.5)
    assert trial.should_stop
    with pytest.raises(dpfront.LeaseLost):
        trial.report(2, error=0.5)


def test_past_attempts_are_kept(client: Client) -> None:
    study = make_study(client, max_trials=1)
    trial = study.ask()
    trial.report(1, error=0.5)
    trial.release("preempted")
    other = study.ask("other")
    other.report(1, error=0.25)
    info = study.get_trial(trial.number)
    assert [m.metrics["error"] for m in info.measurements] == [0.25]
    (past,) = info.past_attempts
    assert (past.number, past.outcome, past.reason) == (1, "released", "preempted")
    assert past.worker_id == trial.raw.lease.worker_id
    assert past.start_time <= past.end_time
    assert [(m.step, m.metrics["error"]) for m in past.measurements] == [(1, 0.5)]
    (listed,) = study.trials()
    assert listed.past_attempts == ()


def test_a_lost_lease_shows_within_the_block(client: Client) -> None:
    study = make_study(client, lease=timedelta(seconds=1))
    with study.trial("w") as trial:
        thief = study.ask("w")
        assert thief.number == trial.number
        until(lambda: trial.should_stop)
    # The block left the trial to its new owner.
    thief.tell(error=0.5)
    assert study.get_trial(trial.number).metrics["error"] == 0.5


def test_a_request_to_stop_comes_with_a_renewal(client: Client) -> None:
    study = make_study(client, lease=timedelta(seconds=1))
    with study.trial() as trial:
        trial.report(1, error=0.5)
        study.stop_trial(trial.number)
        until(lambda: trial.should_stop)
    assert study.get_trial(trial.number).state == "succeeded"
