"""Weights & Biases: logs the trials of a study as runs, and imports finished runs as trials.

    with WandbTracker(study, project="adult", mode="offline") as tracker:
        study.optimize(train, callbacks=[tracker])

logs a run for each trial, in a group with the study's name: its parameters and ε, δ, adjacency and
coverage as its config, its metrics by step. The front is the artifact of a run of its own.
``wandb sync`` uploads what was logged offline.

    print(import_runs(study, "team/adult", names={"lr": "learning_rate"}))

adds the finished runs of a project to the study.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import wandb

from dpfront._sync.study import Study
from dpfront.integrations._importing import Finished, Imported, add
from dpfront.integrations._tracking import STUDY, Record, Tracker

__all__ = ["WandbTracker", "import_runs"]

DONE = "dpareto-done"
"""A file of a run that was logged to its end."""


class WandbTracker(Tracker):
    """Logs a study to Weights & Biases.

    Trials that were logged are known by their files below ``dir``.

    Args:
        study: The study.
        project: Name of the project; by default the study's id.
        mode: "online" needs ``wandb login`` before, "offline" writes files only.
        dir: Where wandb keeps its files.
        timeout: How long the end of the block waits for wandb, in seconds.
    """

    def __init__(
        self,
        study: Study,
        *,
        project: str | None = None,
        mode: Literal["online", "offline"] = "online",
        dir: str | Path = ".",
        timeout: float = 60.0,
    ) -> None:
        super().__init__(study, timeout=timeout)
        self._project, self._mode, self._dir = project or study.id, mode, Path(dir)

    def _start_run(self, name: str, config: Mapping[str, Any]) -> Any:
        return wandb.init(
            project=self._project,
            group=self._study.id,
            name=name,
            config=dict(config),
            mode=self._mode,
            dir=self._dir,
            reinit="create_new",  # the training may have a run of its own
            settings=wandb.Settings(silent=True),
        )

    def _known(self) -> set[int]:
        mark = re.compile(rf"{DONE}-{re.escape(self._study.id)}-(\d+)")
        files = self._dir.glob(f"wandb/*run-*/files/{DONE}-*")
        return {int(found[1]) for path in files if (found := mark.fullmatch(path.name))}

    def _log(self, record: Record) -> None:
        run = self._start_run(record.name, {**record.params, **record.tags})
        for step, metrics in record.curve:
            run.log(dict(metrics), step=step)
        run.summary.update(dict(record.metrics))
        mark = Path(run.dir, f"{DONE}-{record.study}-{record.number}")
        run.finish(exit_code=0 if record.succeeded else 1)
        mark.touch()

    def _log_front(self, front: str) -> None:
        run = self._start_run("front", {STUDY: self._study.id})
        artifact = wandb.Artifact(f"{self._study.id}-front", type="front")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "front.json")
            path.write_text(front, encoding="utf-8")
            artifact.add_file(str(path))
            run.log_artifact(artifact)
            run.finish()


def import_runs(
    study: Study,
    project: str,
    *,
    names: Mapping[str, str] | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Imported:
    """Adds finished runs of Weights & Biases to a study, each once however often it is called.

    Args:
        study: The study.
        project: What wandb calls a path: ``entity/project``.
        names: Ids of the study by the names of configs and summaries, where they differ.
        filters: What wandb's public API calls filters, such as ``{"group": "adult"}``.
    """
    runs = wandb.Api().runs(project, filters=dict(filters or {}), order="+created_at")
    return add(study, map(_finished, runs), names)


def _finished(run: Any) -> Finished:
    config, state = dict(run.config), run.state
    return Finished(
        source=f"wandb:{run.entity}/{run.project}/{run.id}",
        params=config,
        metrics={k: v for k, v in dict(run.summary).items() if isinstance(v, (int, float))},
        problem="" if state == "finished" else f"its state is {state}",
        study=str(config.get(STUDY, "")),
    )
