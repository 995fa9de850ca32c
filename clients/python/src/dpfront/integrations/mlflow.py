"""MLflow: logs the trials of a study as runs, and imports finished runs as trials.

    with MLflowTracker(study) as tracker:
        study.optimize(train, callbacks=[tracker])

logs a parent run for the study, with the front as an artifact, and a child run for each trial. A
child has the parameters, the metrics by step, and as tags ε of its run with δ, adjacency and
coverage.

    print(import_runs(study, ["adult"], names={"lr": "learning_rate", "val_error": "error"}))

adds the finished runs of an experiment to the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.tracking import MlflowClient

from dpfront._sync.study import Study
from dpfront.integrations._importing import Finished, Imported, add
from dpfront.integrations._tracking import STUDY, TRIAL, Record, Tracker

__all__ = ["MLflowTracker", "import_runs"]

BATCH = 100
"""How many parameters MLflow takes at once; it takes more metrics and tags."""

FINISHED = "FINISHED"


class MLflowTracker(Tracker):
    """Logs a study to MLflow.

    Args:
        study: The study.
        experiment: Name of the experiment, which is created if there is none; by default the
            study's id.
        tracking_uri: Where MLflow is; by default what ``mlflow.set_tracking_uri`` or
            MLFLOW_TRACKING_URI say.
        timeout: How long the end of the block waits for MLflow, in seconds.
    """

    def __init__(
        self,
        study: Study,
        *,
        experiment: str | None = None,
        tracking_uri: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(study, timeout=timeout)
        self._name, self._uri = experiment or study.id, tracking_uri
        self._client: Any = None
        self._experiment, self._parent = "", ""  # their ids

    def _connect(self) -> Any:
        """Returns the client, with the parent run."""
        if self._client is None:
            client = MlflowClient(tracking_uri=self._uri)
            found = client.get_experiment_by_name(self._name)
            self._experiment = (
                client.create_experiment(self._name) if found is None else found.experiment_id
            )
            query = f"tags.`{STUDY}` = '{self._study.id}' and tags.`dpareto.kind` = 'study'"
            runs = client.search_runs([self._experiment], query)
            tags = {STUDY: self._study.id, "dpareto.kind": "study"}
            run = (
                runs[0]
                if runs
                else client.create_run(self._experiment, tags=tags, run_name=self._study.id)
            )
            self._client, self._parent = client, run.info.run_id
        return self._client

    def _known(self) -> set[int]:
        client = self._connect()
        query = f"tags.`mlflow.parentRunId` = '{self._parent}'"
        known, token = set(), None
        while True:
            page = client.search_runs([self._experiment], query, page_token=token)
            for run in page:
                if run.info.status == "RUNNING":  # an attempt that was interrupted
                    client.delete_run(run.info.run_id)
                elif TRIAL in run.data.tags:
                    known.add(int(run.data.tags[TRIAL]))
            token = page.token
            if not token:
                return known

    def _log(self, record: Record) -> None:
        client, end = self._connect(), _milliseconds(record.end)
        tags = {**record.tags, "mlflow.parentRunId": self._parent}
        start = _milliseconds(record.start)
        run = client.create_run(self._experiment, start, tags, record.name).info.run_id
        last = max((step for step, _ in record.curve), default=0)
        metrics = [
            Metric(key, value, end, step)
            for step, values in (*record.curve, (last, record.metrics))
            for key, value in values.items()
        ]
        params = [Param(key, str(value)) for key, value in record.params.items()]
        for at in range(0, len(params), BATCH):
            client.log_batch(run, params=params[at : at + BATCH])
        for at in range(0, len(metrics), BATCH):
            client.log_batch(run, metrics=metrics[at : at + BATCH])
        client.set_terminated(run, FINISHED if record.succeeded else "FAILED", end)

    def _log_front(self, front: str) -> None:
        client = self._connect()
        client.log_text(self._parent, front, "front.json")
        info = self._study.info()
        tags = [RunTag("dpareto.state", info.state)]
        client.log_batch(self._parent, tags=tags)
        if info.state == "completed":
            client.set_terminated(self._parent, FINISHED)


def import_runs(
    study: Study,
    experiments: Sequence[str],
    *,
    names: Mapping[str, str] | None = None,
    filter: str = "",
    tracking_uri: str | None = None,
) -> Imported:
    """Adds finished runs of MLflow to a study, each once however often it is called.

    Args:
        study: The study.
        experiments: Names of the experiments.
        names: Ids of the study by the names of MLflow's parameters and metrics, where they differ.
        filter: What MLflow calls a filter string, such as ``metrics.error < 0.5``.
        tracking_uri: As for `MLflowTracker`.

    Raises:
        ValueError: There is no experiment of a name.
    """
    client = MlflowClient(tracking_uri=tracking_uri)
    ids = []
    for name in experiments:
        found = client.get_experiment_by_name(name)
        if found is None:
            raise ValueError(f"experiments: MLflow has no experiment {name!r}")
        ids.append(found.experiment_id)
    runs: list[Finished] = []
    token = None
    while True:
        page = client.search_runs(ids, filter, ViewType.ACTIVE_ONLY, page_token=token)
        runs += [_finished(run) for run in page if run.data.tags.get("dpareto.kind") != "study"]
        token = page.token
        if not token:
            return add(study, reversed(runs), names)  # MLflow lists the newest first


def _finished(run: Any) -> Finished:
    status = run.info.status
    return Finished(
        source=f"mlflow:{run.info.run_id}",
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
        problem="" if status == FINISHED else f"its status is {status}",
        study=run.data.tags.get(STUDY, ""),
    )


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
