"""The real trackers: make test-ray."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import Trial

from .conftest import make_study

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


def train(trial: Trial) -> float:
    if trial.number == 2:
        raise dpfront.Infeasible("too wide")
    for epoch in range(1, 4):
        trial.report(epoch, error=1 / (1 + epoch))
    return 0.25


def check_front(text: str) -> None:
    front = json.loads(text)
    assert front["points"]
    assert all(p["delta"] == 1e-6 and p["adjacency"] for p in front["points"])
    assert "δ" in front["guarantees"]["epsilon"]


@pytest.fixture(autouse=True)
def file_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def test_mlflow(client: dpfront.Client, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    from dpfront.integrations.mlflow import MLflowTracker, import_runs

    uri = (tmp_path / "mlruns").as_uri()
    study = make_study(client, max_trials=4)
    with MLflowTracker(study, tracking_uri=uri) as tracker:
        study.optimize(train, n_trials=3, callbacks=[tracker])
    assert MLflowTracker(study, tracking_uri=uri).sync() == 0
    study.optimize(train, n_trials=1)
    assert MLflowTracker(study, tracking_uri=uri).sync() == 1  # finds the parent again

    mlflow = MlflowClient(tracking_uri=uri)
    experiment = mlflow.get_experiment_by_name(study.id).experiment_id
    (parent,) = mlflow.search_runs([experiment], "tags.`dpareto.kind` = 'study'")
    assert (parent.info.status, parent.data.tags["dpareto.state"]) == ("FINISHED", "completed")
    check_front(Path(mlflow.download_artifacts(parent.info.run_id, "front.json")).read_text())
    children = {
        int(run.data.tags["dpareto.trial"]): run
        for run in mlflow.search_runs(
            [experiment], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
        )
    }
    assert {k: run.info.status for k, run in children.items()} == {
        1: "FINISHED",
        2: "FAILED",
        3: "FINISHED",
        4: "FINISHED",
    }
    run, trial = children[1], study.get_trial(1)
    assert run.data.params == {k: str(v) for k, v in trial.params.items()}
    assert run.data.metrics == trial.metrics
    assert run.data.tags["dpareto.epsilon"] == repr(trial.metrics["epsilon"])
    assert run.data.tags["dpareto.epsilon.delta"] == "1e-06"
    assert run.data.tags["dpareto.epsilon.adjacency"] == trial.guarantees["epsilon"].adjacency
    curve = mlflow.get_metric_history(run.info.run_id, "error")
    assert [(m.step, m.value) for m in curve] == [(1, 1 / 2), (2, 1 / 3), (3, 1 / 4), (3, 1 / 4)]

    other = make_study(client)
    result = import_runs(other, [study.id], tracking_uri=uri)
    assert len(result.added) == 3
    assert list(result.left_out.values()) == ["its status is FAILED"]
    assert [t.params for t in other.trials()] == [study.get_trial(k).params for k in (1, 3, 4)]
    assert [t.metrics for t in other.trials()] == [study.get_trial(k).metrics for k in (1, 3, 4)]
    assert import_runs(other, [study.id], tracking_uri=uri).existed == 3
    with pytest.raises(ValueError, match="MLflow has no experiment 'nowhere'"):
        import_runs(other, ["nowhere"], tracking_uri=uri)


def test_an_mlflow_server_that_is_down_fails_nothing(
    client: dpfront.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from dpfront.integrations.mlflow import MLflowTracker

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    study = make_study(client)
    with MLflowTracker(study, tracking_uri="http://127.0.0.1:9") as tracker:
        assert study.optimize(train, n_trials=2, callbacks=[tracker]) == 2
    assert "MLflowTracker did not take trial 1" in caplog.text


def test_an_interrupted_run_of_mlflow_is_logged_again(
    client: dpfront.Client, tmp_path: Path
) -> None:
    from dpfront.integrations.mlflow import MLflowTracker

    uri = (tmp_path / "mlruns").as_uri()
    study = make_study(client)
    study.optimize(train, n_trials=1)
    tracker = MLflowTracker(study, tracking_uri=uri)
    mlflow = tracker._connect()
    broken = mlflow.create_run(
        tracker._experiment, tags={"mlflow.parentRunId": tracker._parent, "dpareto.trial": "1"}
    )
    assert tracker.sync() == 1
    assert mlflow.get_run(broken.info.run_id).info.lifecycle_stage == "deleted"


def test_wandb(client: dpfront.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    from dpfront.integrations.wandb import WandbTracker, import_runs

    study = make_study(client)
    options: dict[str, Any] = {"mode": "offline", "dir": tmp_path, "timeout": 300}
    with WandbTracker(study, **options) as tracker:
        study.optimize(train, n_trials=2, callbacks=[tracker])
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 3  # one has the front
    assert WandbTracker(study, **options)._known() == {1, 2}
    assert WandbTracker(make_study(client), **options)._known() == set()

    class Run:  # as the public API, which needs an account, returns it
        entity, project, id, state = "team", "adult", "3f", "finished"
        config = {**study.get_trial(1).params, "dpareto.study": study.id}  # noqa: RUF012
        summary = {"error": 0.25, "epsilon": 3.0, "_runtime": 4, "note": "x"}  # noqa: RUF012

    class Api:
        def runs(self, path: str, **_: Any) -> list[type[Run]]:
            assert path == "team/adult"
            return [Run]

    monkeypatch.setattr(wandb, "Api", Api)
    other = make_study(client)
    assert import_runs(other, "team/adult").added == (1,)
    assert other.get_trial(1).metrics["error"] == 0.25
    assert import_runs(other, "team/adult").existed == 1


def test_tensorboard(client: dpfront.Client, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.metadata import (
        parse_session_end_info_plugin_data,
        parse_session_start_info_plugin_data,
    )

    from dpfront.integrations.tensorboard import TensorBoardTracker

    study = make_study(client)
    with TensorBoardTracker(study, tmp_path) as tracker:
        study.optimize(train, n_trials=2, callbacks=[tracker])
    assert TensorBoardTracker(study, tmp_path).sync() == 0
    check_front((tmp_path / study.id / "front.json").read_text())
    assert sorted(os.listdir(tmp_path / study.id)) == ["front.json", "trial-1", "trial-2"]
    events = EventAccumulator(str(tmp_path / study.id / "trial-1"))
    events.Reload()
    trial = study.get_trial(1)
    assert [round(e.value, 6) for e in events.Scalars("error")] == [0.5, 0.333333, 0.25, 0.25]
    assert events.Scalars("epsilon")[-1].value == pytest.approx(trial.metrics["epsilon"])
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = parse_session_start_info_plugin_data(content)
    assert start.hparams["lot_size"].number_value == trial.params["lot_size"]
    content = events.SummaryMetadata("_hparams_/session_end_info").plugin_data.content
    assert parse_session_end_info_plugin_data(content).status == 1  # STATUS_SUCCESS
    (text,) = events.Tensors("dpareto/text_summary")
    assert b"dpareto.epsilon.delta | 1e-06" in text.tensor_proto.string_val[0]
