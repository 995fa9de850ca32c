"""What all trackers of experiments share: trials are logged by a thread beside the training."""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING

from dpfront._card import Scalar
from dpfront._results.guarantees import seeded
from dpfront._results.trials import TrialInfo
from dpfront._sync.study import Study

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("dpfront")

STUDY, TRIAL, STATE = "dpareto.study", "dpareto.trial", "dpareto.state"
"""Tags of runs."""

ENDED = ("succeeded", "infeasible", "failed")


@dataclass(frozen=True)
class Record:
    """What a tracker keeps of a trial that has ended."""

    study: str
    number: int
    params: Mapping[str, Scalar]
    metrics: Mapping[str, float]
    """Final, with ε of every privacy metric unless runs were seeded."""
    curve: tuple[tuple[int, Mapping[str, float]], ...]
    """Metrics by step."""
    tags: Mapping[str, str]
    """Study, trial and state; of each ε its bound, δ, adjacency and what it covers."""
    succeeded: bool
    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """The name of its run."""
        return f"trial-{self.number}"


def record(study: str, trial: TrialInfo) -> Record:
    """Returns what trackers keep of a trial."""
    hidden = set(trial.guarantees) if seeded(trial.warnings) else set()

    def shown(metrics: Mapping[str, float]) -> dict[str, float]:
        return {k: v for k, v in metrics.items() if k not in hidden and math.isfinite(v)}

    tags = {STUDY: study, TRIAL: str(trial.number), STATE: trial.state}
    if trial.state_reason:
        tags["dpareto.reason"] = trial.state_reason
    for key, g in trial.guarantees.items():
        at = f"dpareto.{key}"
        if key in hidden:
            tags[at] = "none holds: runs were seeded"
            continue
        tags[at] = "no bound" if math.isinf(g.epsilon) else repr(g.epsilon)
        tags |= {f"{at}.delta": repr(g.delta), f"{at}.adjacency": g.adjacency}
        tags[f"{at}.covers"] = g.covers
    return Record(
        study,
        trial.number,
        trial.params,
        shown(trial.metrics),
        tuple((m.step, shown(m.metrics)) for m in trial.measurements),
        tags,
        trial.state == "succeeded",
        trial.start_time or trial.create_time,
        trial.end_time or trial.create_time,
    )


def front_json(study: Study) -> str:
    """Returns the measured front with what its ε say, as JSON."""
    front = study.front("observed")
    points = []
    for point in front:
        row = point.as_dict()
        if point.guarantee is not None:
            row |= {"delta": point.guarantee.delta, "adjacency": point.guarantee.adjacency}
        points.append({k: None if v in (math.inf, -math.inf) else v for k, v in row.items()})
    text = {
        "study": study.id,
        "hypervolume": front.hypervolume,
        "reference": dict(front.reference),
        "guarantees": dict(front.epsilons),
        "warnings": [str(w) for w in front.warnings],
        "points": points,
    }
    return json.dumps(text, indent=1, allow_nan=False, ensure_ascii=False)


class Tracker:
    """Logs the trials of a study: as a callback of `dpfront.Study.optimize`, or by `sync`.

    Within ``with tracker:`` a thread logs trials as they end. A tracker that is down delays and
    fails nothing: errors are logged as warnings, and the end of the block logs what is missing,
    for at most ``timeout`` seconds. `sync` does so at any time, also for trials of other workers.

    Args:
        study: The study.
        timeout: How long the end of the block waits for the tracker, in seconds.
    """

    def __init__(self, study: Study, *, timeout: float = 60.0) -> None:
        self._study = study
        self._timeout = timeout
        self._waiting: queue.SimpleQueue[TrialInfo | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # one thread logs at a time
        self._logged: set[int] = set()
        self._thread: threading.Thread | None = None

    def __call__(self, study: object, trial: TrialInfo) -> None:
        """Logs a trial in the background; the callback for ``optimize``."""
        self._start()
        self._waiting.put(trial)

    def sync(self) -> int:
        """Logs all trials that have ended and are not there, and the front.

        Returns:
            Number of trials that were logged.
        """
        with self._lock:
            self._logged |= self._known()
            count = sum(map(self._log_once, self._ended()))
            self._log_front(front_json(self._study))
            return count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._start()
        self._waiting.put(None)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(self._timeout)
            if thread.is_alive():
                logger.warning(
                    "%s has not answered for %g s: sync() logs the rest of %s later",
                    type(self).__name__,
                    self._timeout,
                    self._study.name,
                )

    def _start(self) -> None:
        if self._thread is None:
            name = f"{type(self).__name__} of {self._study.name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Logs until the end of the block. Nothing that happens here may end the training."""
        while (trial := self._waiting.get()) is not None:
            self._try(trial)
        self._try(None)

    def _try(self, trial: TrialInfo | None) -> None:
        try:
            if trial is None:
                self.sync()
                return
            with self._lock:
                self._log_once(trial)
        except Exception as error:  # noqa: BLE001 - of any tracker
            what = "the end" if trial is None else f"trial {trial.number}"
            logger.warning(
                "%s did not take %s of %s: %s: %s",
                type(self).__name__,
                what,
                self._study.name,
                type(error).__name__,
                error,
            )

    def _ended(self) -> Iterator[TrialInfo]:
        return (t for t in self._study.trials() if t.state in ENDED)

    def _log_once(self, trial: TrialInfo) -> bool:
        if trial.number in self._logged or trial.state not in ENDED:
            return False
        self._log(record(self._study.id, trial))
        self._logged.add(trial.number)
        return True

    # What trackers implement. No two calls run at the same time.

    def _known(self) -> set[int]:
        """Returns the numbers of the trials that the tracker has."""
        raise NotImplementedError

    def _log(self, record: Record) -> None:
        """Logs a trial, replacing an unfinished attempt."""
        raise NotImplementedError

    def _log_front(self, front: str) -> None:
        """Logs the front, which is JSON."""
        raise NotImplementedError
