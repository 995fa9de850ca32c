"""The half of a study that reads: trials, fronts, analyses and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dpfront import _read as read
from dpfront import _statement as statements
from dpfront import _tasks as runtime
from dpfront._operations import accounting, fronts, releases, studies, trials
from dpfront._operations.calls import Operation
from dpfront._results.analyses import Contour, ExpectedGain, Importance, Slices, Validation
from dpfront._results.fronts import Front, FrontKind, FrontPoint, HypervolumePoint, Recommendation
from dpfront._results.guarantees import EpsilonCurve, PrivacyLedger, Tradeoff
from dpfront._results.releases import Release
from dpfront._results.trials import Prediction, StudyInfo, TrialInfo
from dpfront._study import StudyBase, trials_dataframe
from dpfront.v1 import study_pb2

if TYPE_CHECKING:
    import pandas

    from dpfront import plot

T = TypeVar("T")


class AsyncStudyReader(StudyBase):
    """The methods of `AsyncStudy` that read its trials and answers."""

    def __init__(self, transport: runtime.Transport, message: study_pb2.Study) -> None:
        super().__init__(message)
        self._transport = transport

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} on {self._transport.connection.address}>"

    def _repr_html_(self) -> str:
        return self._html(self._page())

    def _page(self) -> str | None:
        """Returns the URL of its page, if its client knows where the server's is."""
        page = self._transport.page_url
        return f"{page}{self.name}" if page else None

    async def _run(self, operation: Operation[T]) -> T:
        return await self._transport.run(operation)

    async def page_url(self) -> str | None:
        """Returns the URL of the page that shows the study live, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        self._transport.page_url = await self._run(studies.page_url())
        return self._page()

    async def info(self) -> StudyInfo:
        """Reads the current study: its state, and its numbers of trials."""
        return read.study_info(await self._run(studies.get_study(self.name)))

    async def trials(self, filter: str = "", order_by: str = "") -> list[TrialInfo]:
        """Lists trials: ``filter="state = SUCCEEDED AND metrics.epsilon <= 1"``.

        It asks the server each time, so it is a method, unlike Optuna's property.
        """
        return await self._run(trials.list_trials(self.name, filter, order_by))

    async def get_trial(self, number: int) -> TrialInfo:
        """Reads a trial, with its past attempts."""
        return await self._run(trials.get_trial(self.name, number))

    async def best_trials(self) -> list[TrialInfo]:
        """The trials whose final results are on the observed front, like Optuna's.

        Of noisy measurements these are the luckiest. `front` says what fresh runs should give,
        and also counts measurements on the way, in studies with a checkpoint parameter.
        """
        return await self._run(fronts.best_trials(self._message))

    async def trials_dataframe(self, filter: str = "", order_by: str = "") -> pandas.DataFrame:
        """Lists trials as a pandas DataFrame, one row each. It needs pandas.

        Columns: number, state, values_{metric} (means over runs; computed ones, such as ε,
        too), params_{parameter}, user_attrs_{key}, datetime_create, datetime_start,
        datetime_end (UTC) and duration. What a trial lacks is missing there. The attribute
        ``attrs["guarantees"]`` of the frame says for each ε its δ and adjacency, and
        ``attrs["seeded"]`` has the numbers of trials for which no ε holds.
        """
        return trials_dataframe(await self.trials(filter, order_by))

    async def releases(self) -> list[Release]:
        """Lists the releases of the study, oldest first."""
        return await self._run(releases.list_releases(self.name))

    # --- the answer

    async def front(self, kind: FrontKind = "posterior", *, final_only: bool = False) -> Front:
        """Reads the Pareto front: a sequence of points, which prints as a table.

        The posterior front is what fresh runs should give; the observed one, of the means of
        measured runs, shows the luckiest of noisy measurements. The kinds "best" and "worst" are
        of the best and worst of the measured runs. `Front.to_dataframe` makes a pandas DataFrame
        of it.
        """
        return await self._run(fronts.get_front(self._message, kind, final_only))

    async def hypervolumes(
        self, kind: FrontKind = "observed", *, final_only: bool = False
    ) -> list[HypervolumePoint]:
        """Reads the hypervolume of a front after completed trials."""
        return await self._run(fronts.hypervolumes(self.name, kind, final_only))

    async def epsilon_curves(
        self, trials: Iterable[int] | None = None, *, metric: str = ""
    ) -> list[EpsilonCurve]:
        """Computes how ε grows with the length of runs of DP-SGD: at most 25 lengths of every
        configuration, up to its own.

        Args:
            trials: Numbers of trials; by default all on the posterior front.
            metric: Id of a metric that is ε; by default the first.

        Raises:
            ValueError: The metric is not ε of DP-SGD, or the number of epochs is not simply a
                number or a parameter.
        """
        return await self._run(accounting.epsilon_curves(self._message, trials, metric))

    # --- analyses

    async def importance(self) -> Importance:
        """Computes how much each parameter contributes to the variation of each objective: Sobol
        indices with 90 % intervals. It prints as a table.
        """
        return await self._run(fronts.importance(self.name))

    async def slices(self, params: Mapping[str, Any] | None = None, *, points: int = 0) -> Slices:
        """Computes what the model expects of the objectives along each parameter.

        Args:
            params: The configuration at which the other parameters are held; by default the knee
                of the posterior front, or its middle point.
            points: Number of values of a continuous parameter, by default 41.
        """
        return await self._run(fronts.slices(self._message, params, points))

    async def contour(
        self,
        x: str,
        y: str,
        *,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
    ) -> Contour:
        """Computes what the model expects of an objective over two parameters.

        Args:
            x: Id of the horizontal parameter.
            y: Id of the vertical one.
            metric: Id of the objective; by default the first that is measured.
            params: As in `slices`.
            points: Number of values on each axis, by default 25.
        """
        return await self._run(fronts.contour(self._message, x, y, metric, params, points))

    # --- pictures: dpfront.plot explains them and their arguments

    async def plot_front(
        self, kind: FrontKind = "posterior", *, backend: plot.Backend = "matplotlib", ax: Any = None
    ) -> Any:
        """Draws the front over the results of trials (`dpfront.plot.front`)."""
        return self._plot.front(await self.front(kind), await self.trials(), backend=backend, ax=ax)

    async def plot_history(
        self, kind: FrontKind = "observed", *, backend: plot.Backend = "matplotlib"
    ) -> Any:
        """Draws the hypervolume and every objective over trials (`dpfront.plot.history`)."""
        return self._plot.history(
            self._info,
            await self.hypervolumes(kind),
            await self.trials(),
            kind=kind,
            backend=backend,
        )

    async def plot_parallel_coordinates(
        self,
        kind: FrontKind = "posterior",
        *,
        color: str = "",
        backend: plot.Backend = "matplotlib",
    ) -> Any:
        """Draws configurations as lines through parameters and objectives
        (`dpfront.plot.parallel_coordinates`).
        """
        return self._plot.parallel_coordinates(
            self._info, await self.front(kind), await self.trials(), color=color, backend=backend
        )

    async def plot_learning_curves(
        self,
        kind: FrontKind = "posterior",
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws a metric over the steps of runs (`dpfront.plot.learning_curves`)."""
        return self._plot.learning_curves(
            self._info,
            await self.front(kind),
            await self.trials(),
            metric=metric,
            backend=backend,
            ax=ax,
        )

    async def plot_fit(self, *, backend: plot.Backend = "matplotlib") -> Any:
        """Draws what the model predicts over what was measured (`dpfront.plot.fit`)."""
        return self._plot.fit(self._info, await self.cross_validate(), backend=backend)

    async def plot_epsilon_over_epochs(
        self,
        trials: Iterable[int] | None = None,
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws how ε grows during runs (`epsilon_curves`)."""
        curves = await self.epsilon_curves(trials, metric=metric)
        return self._plot.epsilon_over_epochs(curves, backend=backend, ax=ax)

    async def plot_tradeoff(
        self,
        point: FrontPoint | Mapping[str, Any],
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws the best attack on one record, for one run of a configuration (`tradeoff`)."""
        return self._plot.tradeoff(
            await self.tradeoff(point, metric=metric), backend=backend, ax=ax
        )

    async def plot_importance(self, *, backend: plot.Backend = "matplotlib", ax: Any = None) -> Any:
        """Draws the importance of the parameters (`dpfront.plot.importance`)."""
        return self._plot.importance(await self.importance(), backend=backend, ax=ax)

    async def plot_slice(
        self,
        *parameters: str,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws objectives along parameters, by default all (`dpfront.plot.slices`)."""
        found = await self.slices(params, points=points)
        return self._plot.slices(
            self._info, found, parameters=parameters, metric=metric, backend=backend, ax=ax
        )

    async def plot_contour(
        self,
        x: str,
        y: str,
        *,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws an objective over two parameters (`dpfront.plot.contour`)."""
        found = await self.contour(x, y, metric=metric, params=params, points=points)
        return self._plot.contour(self._info, found, backend=backend, ax=ax)

    async def recommend(
        self,
        *,
        confidence: float = 0.5,
        optimize: str = "",
        measured_only: bool = False,
        **bounds: float,
    ) -> Recommendation:
        """Returns the best configuration within bounds on objectives.

        ``study.recommend(epsilon=1.0)`` returns the one with the best accuracy at ε of at most 1.
        With ``study.recommend(error=0.1, confidence=0.9)`` it is the most private one whose error
        is at most 0.1 with a probability of 90 %. A bound is the largest value of an objective to
        minimise, the smallest of one to maximise. Above a confidence of 0.5 only configurations
        that were run are recommended.
        """
        return await self._run(
            fronts.recommend(self.name, bounds, confidence, optimize, measured_only)
        )

    async def predict(
        self, configurations: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Prediction]]:
        """Returns what the model expects of configurations, by metric id."""
        return await self._run(fronts.predict(self._message, configurations))

    async def tradeoff(
        self,
        point: FrontPoint | Mapping[str, Any],
        fprs: Sequence[float] = (),
        *,
        metric: str = "",
    ) -> Tradeoff:
        """Computes the best attack on one record, for one run of a configuration.

        Args:
            point: A point of the front, or the parameters of a configuration.
            fprs: False positive rates; by default some that suffice for a picture.
            metric: Id of a metric that is ε; by default the first.
        """
        return await self._run(accounting.study_tradeoff(self._message, point, fprs, metric))

    async def cross_validate(self) -> Validation:
        """Predicts every measurement without the runs of its configuration.

        With a checkpoint parameter that leaves out all steps of these runs. ``coverage`` near
        90 % and ``r_squared`` near 1 say that predictions and intervals can be relied on.
        """
        return await self._run(fronts.cross_validate(self.name))

    async def expected_gain(self, runs: int = 10) -> ExpectedGain:
        """Returns by how much the next runs are expected to enlarge the hypervolume of the
        posterior front, and what they cost: whether going on is worthwhile.

        The runs are those that would be handed out together; seeing results in between is
        expected to gain more, if the model is right. It is a forecast and no bound. ``runs`` is
        at most 50.
        """
        return await self._run(fronts.expected_gain(self.name, runs))

    async def privacy_ledger(self, delta: float = 0, metric: str = "") -> PrivacyLedger:
        """Returns what all runs of the study cost together."""
        return await self._run(accounting.privacy_ledger(self.name, delta, metric))

    async def statement(
        self,
        *,
        epsilon: float | None = None,
        trial: int | None = None,
        sampler: str = "",
        price: bool = True,
        output: Literal["text", "html", "json"] = "text",
    ) -> str:
        """Writes one ε of the study as a page to sign, as ``dpareto statement`` does, which it
        runs: see `local_server` for where that program is.

        Args:
            epsilon: States the best measured trial within it.
            trial: Number of the trial to state. A study with private_mode or random_stopping
                takes none.
            sampler: How the trainer drew its lots, as you attest it, such as "poisson"; needed
                without a bundled trainer.
            price: Compute what a planned search of as many runs costs, which takes seconds.
            output: What is returned: text, a page of HTML which prints, or JSON.

        Raises:
            DParetoError: The study does not support the statement; the text says why.
            ServerError: There is no program.
        """
        return await runtime.at_once(
            statements.write,
            self._transport.connection,
            self.id,
            epsilon,
            trial,
            sampler,
            price,
            output,
        )
