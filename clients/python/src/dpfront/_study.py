"""What both kinds of study share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import spec as s
from dpfront._results.guarantees import Guarantee, guarantee_terms, seeded
from dpfront._results.releases import Publication
from dpfront._results.trials import StudyInfo, TrialInfo
from dpfront._search import SearchBase
from dpfront._space import space
from dpfront.v1 import study_pb2

if TYPE_CHECKING:
    import pandas


Parameters = Sequence[s.Parameter] | Callable[[Any], Any]
"""The parameters of a study, or an objective whose ``suggest_*`` calls say them."""


def listed(parameters: Parameters) -> Sequence[s.Parameter]:
    """Returns the parameters, of an objective by a dry call."""
    return space(parameters) if callable(parameters) else parameters


class StudyBase:
    """What is known of a study without asking its server."""

    def __init__(self, message: study_pb2.Study) -> None:
        self._keep(message)
        self._searches: set[SearchBase] = set()  # that run

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searches": set()}

    @property
    def _plot(self) -> ModuleType:
        """Loads the module that draws: most programs draw nothing."""
        from dpfront import plot

        return plot

    def _html(self, page: str | None) -> str:
        return self._info._card(state=False, page=page).html()

    def _keep(self, message: study_pb2.Study) -> StudyInfo:
        """Takes the newest message of the study."""
        self._message = message
        self._info = read.study_info(message)
        return self._info

    @property
    def id(self) -> str:
        """Id of the study."""
        return self._info.id

    @property
    def name(self) -> str:
        """Resource name: studies/{id}."""
        return self._message.name

    @property
    def spec(self) -> study_pb2.StudySpec:
        """The spec of the study when it was created, loaded or changed by this object, as the
        message of the contract.
        """
        return self._message.spec

    @property
    def parameters(self) -> list[s.Parameter]:
        """The parameters of the study, like `spec`."""
        return [specs.from_parameter(x) for x in self._message.spec.parameters]

    @property
    def publication(self) -> Publication | None:
        """What publishing the results of the study guarantees, with private_mode or
        random_stopping. ``study.info().publication`` also has the spending so far.
        """
        return self._info.publication

    def stop(self) -> None:
        """Ends `optimize`, from its objective, a callback, or another thread or task.

        No further trial starts, and those that run end normally.

        Raises:
            RuntimeError: No `optimize` of this object runs.
        """
        if not self._searches:
            raise RuntimeError("stop: optimize is not running")
        for search in list(self._searches):
            search.stopping.set()


def trials_dataframe(trials: Sequence[TrialInfo]) -> pandas.DataFrame:
    """Returns a row for each trial, as `Study.trials_dataframe` describes."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        hint = 'pip install "dpfront[pandas]"'
        raise ImportError(f"a data frame takes pandas: {hint}", name="pandas") from None

    groups: dict[str, list[dict[str, Any]]] = {
        "values": [dict(t.metrics) for t in trials],
        "params": [dict(t.params) for t in trials],
        "user_attrs": [dict(t.user_attrs) for t in trials],
    }
    columns: dict[str, Any] = {
        "number": [t.number for t in trials],
        "state": [t.state for t in trials],
    }
    for group, rows in groups.items():
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[f"{group}_{key}"] = [row.get(key) for row in rows]
    for name in ("create", "start", "end"):
        times = pandas.Series([getattr(t, f"{name}_time") for t in trials], dtype=object)
        columns[f"datetime_{name}"] = pandas.to_datetime(times, utc=True)
    columns["duration"] = pandas.to_timedelta(pandas.Series([t.duration for t in trials]))
    frame: pandas.DataFrame = pandas.DataFrame(columns)
    guarantees = {key: g for t in trials for key, g in t.guarantees.items()}
    frame.attrs["guarantees"] = {key: _terms(g) for key, g in sorted(guarantees.items())}
    frame.attrs["seeded"] = [t.number for t in trials if seeded(t.warnings)]
    return frame


def _terms(g: Guarantee) -> str:
    """Returns what an ε of a single run means."""
    return f"upper bound of ε for {g.covers}; {guarantee_terms(g)}"
