"""The client for asyncio.

The same as `dpfront.client`, with ``await`` before calls and ``async with`` before blocks:

    async with dpfront.AsyncClient() as client:
        study = await client.study("adult")
        async with study.trial() as trial:
            ...
            await trial.tell(accuracy=0.9)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

from dpfront import _convert as convert
from dpfront import _operations as ops
from dpfront import _read as read
from dpfront import errors
from dpfront import privacy as p
from dpfront import results as r
from dpfront import spec as s
from dpfront._connection import TLS, connect, failure
from dpfront._search import AsyncSearch, Stopped
from dpfront._study import Parameters, StudyBase, listed, trials_dataframe
from dpfront._trial import Outcome, Values
from dpfront.client import FrontKind, SelectionMethod
from dpfront.trial import AsyncTrial
from dpfront.v1 import (
    admin_service_pb2_grpc,
    analysis_service_pb2_grpc,
    front_service_pb2_grpc,
    privacy_service_pb2_grpc,
    release_service_pb2_grpc,
    study_pb2,
    study_service_pb2_grpc,
    trial_pb2,
)

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

__all__ = ["AsyncClient", "AsyncStudy", "AsyncTrial"]

T = TypeVar("T")


def _is_cancelled() -> bool:
    """Reports whether the current task is being cancelled; always false in Python 3.10."""
    task: Any = asyncio.current_task()
    return hasattr(task, "cancelling") and task.cancelling() > 0


class AsyncClient:
    """A connection to a server for one event loop, with the arguments of `Client`."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        tls: bool | TLS | None = None,
        token_file: str | os.PathLike[str] | None = None,
        token_in_plaintext: bool = False,
        timeout: float = 15.0,
        patience: float = 600.0,
    ) -> None:
        self._connection = connect(address, token, token_file, tls, token_in_plaintext)
        self._policy = ops.Policy(timeout, patience, self._connection.hint())
        self._channel: grpc.aio.Channel | None = None
        self._stubs: dict[str, Any] = {}
        self._closed = False
        self._worker_id = ops.new_worker_id()
        self._page_url: str | None = None  # once it is known

    def __repr__(self) -> str:
        return f"AsyncClient({self.address!r})"

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._connection.address

    @property
    def worker_id(self) -> str:
        """The default worker id of this client, a random one."""
        return self._worker_id

    def _stub(self, service: str) -> Any:
        if self._closed:
            raise errors.DParetoError("the client is closed")
        if self._channel is None:
            credentials = self._connection.credentials()
            options = self._connection.options()
            if credentials is None:
                channel = grpc.aio.insecure_channel(self.address, options)
            else:
                channel = grpc.aio.secure_channel(self.address, credentials, options)
            self._channel = channel
            self._stubs = {
                "studies": study_service_pb2_grpc.StudyServiceStub(channel),
                "fronts": front_service_pb2_grpc.FrontServiceStub(channel),
                "analyses": analysis_service_pb2_grpc.AnalysisServiceStub(channel),
                "privacy": privacy_service_pb2_grpc.PrivacyServiceStub(channel),
                "releases": release_service_pb2_grpc.ReleaseServiceStub(channel),
                "admin": admin_service_pb2_grpc.AdminServiceStub(channel),
            }
        return self._stubs[service]

    async def close(self) -> None:
        """Closes the connection."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()
        self._channel = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, operation: ops.Operation[T], stopping: asyncio.Event | None = None) -> T:
        """Runs an operation: attempts its calls and waits, unless it should stop."""
        try:
            step = next(operation)
            while True:
                if isinstance(step, ops.Pause):
                    if stopping is None:
                        await asyncio.sleep(step.seconds)
                    else:
                        with suppress(asyncio.TimeoutError):
                            await asyncio.wait_for(stopping.wait(), step.seconds)
                            raise Stopped
                    step = operation.send(None)
                    continue
                method = getattr(self._stub(step.service), step.method)
                metadata = self._connection.metadata()
                try:
                    answer = await method(step.request, timeout=step.timeout, metadata=metadata)
                except (asyncio.CancelledError, grpc.aio.UsageError):
                    if not self._closed or _is_cancelled():
                        raise
                    raise errors.DParetoError("the client is closed") from None  # and its channel
                except grpc.aio.AioRpcError as error:
                    step = operation.throw(failure(error))
                else:
                    step = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def create_study(
        self,
        id: str,
        spec: s.StudySpec | study_pb2.StudySpec,
        *,
        display_name: str = "",
        description: str = "",
        labels: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> AsyncStudy:
        """Creates a study, or loads the existing one of that id if its spec is equal."""
        message = await self._run(
            ops.create_study(
                self._policy, id, spec, display_name, description, labels, validate_only
            )
        )
        return AsyncStudy(self, message)

    async def study(self, id: str) -> AsyncStudy:
        """Loads a study; `NotFound` if there is no study of that id."""
        name = convert.study_name(id)
        return AsyncStudy(self, await self._run(ops.get_study(self._policy, name)))

    async def studies(self, filter: str = "", order_by: str = "") -> list[r.StudyInfo]:
        """Lists studies."""
        return await self._run(ops.list_studies(self._policy, filter, order_by))

    async def epsilon(self, privacy: p.Privacy, **params: Any) -> r.Guarantee:
        """Computes ε of a mechanism."""
        return (await self._run(ops.epsilon(self._policy, privacy, params, ())))[0]

    async def epsilon_curve(
        self, privacy: p.Privacy, lengths: Sequence[int], **params: Any
    ) -> list[r.Guarantee]:
        """Computes ε of runs of several lengths, in the unit of the mechanism's length."""
        return await self._run(ops.epsilon(self._policy, privacy, params, lengths))

    async def tradeoff(
        self, privacy: p.Privacy, fprs: Sequence[float] = (), **params: Any
    ) -> r.Tradeoff:
        """Computes the best attack on one record by its false positive rate: what ε means.

        Args:
            privacy: The mechanism.
            fprs: False positive rates; by default some that suffice for a picture, with 0.01
                and 0.1.
            params: Values of the parameters in its expressions, as for `epsilon`.
        """
        return await self._run(ops.tradeoff(self._policy, privacy, convert.to_values(params), fprs))

    async def price_search(
        self,
        privacy: p.Privacy,
        *,
        runs: int,
        distribution: p.CountDistribution = "geometric",
        max_runs: int | None = None,
        budget: float | None = None,
        portfolios: Sequence[int] = (),
        subset_share: float | None = None,
        subset_batch_size: int | None = None,
        final_run: p.Mechanism | None = None,
        test_records: int | None = None,
        test_noise: float | None = None,
        test_epsilon: float | None = None,
        checkpoints: int | None = None,
        **params: Any,
    ) -> r.SearchPrices:
        """Computes what every way to search costs, before anything is run.

        Args:
            privacy: One run, of the same cost as all others.
            runs: Number of runs, the mean where it is random.
            distribution: Distribution of the number of runs, where a way can take any.
            max_runs: Hard cap of the number of runs, for the way with one; by default 4 times
                ``runs``.
            budget: ε for which to find how many runs each way affords.
            portfolios: Numbers of runs that are released together; by default 2, 4 and 8.
            subset_share: Share of the records to search on before one run on all, for lots of a
                fixed size; by default a tenth.
            subset_batch_size: Records per lot on the subset; by default as large a share.
            final_run: The run on all records after the subset; by default one like the others.
            test_records: Number of records that scores, of values in [0, 1], are averages over.
            test_noise: Standard deviation of the noise on every score.
            test_epsilon: ε of the test records for which to find the noise, in the place of
                ``test_noise``.
            checkpoints: Scores of a run that are released with all its checkpoints.
            params: Values of the parameters in the expressions, as for `epsilon`.
        """
        return await self._run(
            ops.price_search(
                self._policy,
                privacy,
                params,
                distribution=distribution,
                final_run=final_run,
                test_noise=test_noise,
                test_epsilon=test_epsilon,
                numbers={
                    "runs": runs,
                    "max_runs": max_runs,
                    "budget": budget,
                    "portfolios": portfolios,
                    "subset_share": subset_share,
                    "subset_batch_size": subset_batch_size,
                    "test_records": test_records,
                    "checkpoints": checkpoints,
                },
            )
        )

    async def calibrate(
        self,
        privacy: p.Privacy,
        solve_for: str,
        *,
        epsilon: float,
        min: float,
        max: float,
        **params: Any,
    ) -> r.Calibration:
        """Finds the value of a parameter in [min, max] for which ε is just below a target."""
        return await self._run(
            ops.calibrate(self._policy, privacy, solve_for, min, max, epsilon, params)
        )

    async def server_version(self) -> str:
        """Returns the version of the server."""
        return await self._run(ops.server_version(self._policy))

    async def page_url(self) -> str | None:
        """Returns the URL of the server's page, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        self._page_url = await self._run(ops.page_url(self._policy))
        return self._page_url

    # --- publishing

    async def create_ledger(
        self,
        id: str,
        *,
        records: int,
        epsilon: float,
        delta: float,
        adjacency: p.Adjacency = "replace_one",
        description: str = "",
    ) -> r.LedgerInfo:
        """Opens the ledger of a dataset, as `Client.create_ledger` does."""
        return await self._run(
            ops.create_ledger(self._policy, id, records, epsilon, delta, adjacency, description)
        )

    async def ledger(self, id: str) -> r.LedgerInfo:
        """Reads the ledger of a dataset: its budget and spending."""
        return await self._run(ops.get_ledger(self._policy, convert.ledger_name(id)))

    async def ledgers(self) -> list[r.LedgerInfo]:
        """Lists the ledgers of all datasets."""
        return await self._run(ops.list_ledgers(self._policy))

    async def charges(self, ledger: str | r.LedgerInfo) -> list[r.Charge]:
        """Lists the charges of a ledger, oldest first."""
        return await self._run(ops.list_charges(self._policy, convert.ledger_name(ledger)))

    async def select_privately(
        self,
        ledger: str | r.LedgerInfo,
        utilities: Sequence[float],
        sensitivity: float,
        epsilon: float,
        *,
        method: SelectionMethod = "permute_and_flip",
        request_id: str = "",
    ) -> r.Release:
        """Publishes which of several candidates is the best, as
        `Client.select_privately` does.
        """
        return await self._run(
            ops.select_privately(
                self._policy,
                convert.ledger_name(ledger),
                utilities,
                sensitivity,
                epsilon,
                method,
                request_id,
            )
        )

    async def releases(self, ledger: str | r.LedgerInfo) -> list[r.Release]:
        """Lists the `select_privately` releases of a ledger, oldest first."""
        return await self._run(ops.list_releases(self._policy, convert.ledger_name(ledger)))

    async def release(self, name: str) -> r.Release:
        """Reads a release by its resource name."""
        return await self._run(ops.get_release(self._policy, name))


class AsyncStudy(StudyBase):
    """A study on a server."""

    _client: AsyncClient

    def __init__(self, client: AsyncClient, message: study_pb2.Study) -> None:
        super().__init__(message)
        self._client = client

    @classmethod
    async def create(
        cls,
        client: AsyncClient,
        id: str,
        parameters: Parameters,
        metrics: Sequence[s.Metric],
        *,
        display_name: str = "",
        description: str = "",
        labels: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> AsyncStudy:
        """Creates a study, or loads an equal one, as `Study.create` does."""
        return await client.create_study(
            id,
            s.StudySpec(listed(parameters), metrics, **fields),
            display_name=display_name,
            description=description,
            labels=labels,
        )

    @classmethod
    async def load(cls, client: AsyncClient, id: str) -> AsyncStudy:
        """Loads a study; `NotFound` if there is none."""
        return await client.study(id)

    def __repr__(self) -> str:
        return f"<AsyncStudy {self.id} on {self._client.address}>"

    @property
    def client(self) -> AsyncClient:
        """The client of the study."""
        return self._client

    async def page_url(self) -> str | None:
        """Returns the URL of the page that shows the study live, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        await self._client.page_url()
        return self._page()

    async def info(self) -> r.StudyInfo:
        """Reads the current study: its state, and its numbers of trials."""
        return read.study_info(await self._run(ops.get_study(self._policy, self.name)))

    @property
    def _policy(self) -> ops.Policy:
        return self._client._policy

    async def _run(self, operation: ops.Operation[T]) -> T:
        return await self._client._run(operation)

    async def pause(self) -> None:
        """Makes the study hand out no trials until `resume`."""
        await self._run(ops.pause_study(self._policy, self.name))

    async def resume(self) -> None:
        """Makes the study hand out trials again."""
        await self._run(ops.resume_study(self._policy, self.name))

    async def delete(self) -> None:
        """Deletes the study with all its trials, and its ledger."""
        await self._run(ops.delete_study(self._policy, self.name))

    async def update(
        self,
        *,
        parameters: Iterable[s.Parameter] | None = None,
        units: Mapping[str, str] | None = None,
        display_name: str | None = None,
        description: str | None = None,
        labels: Mapping[str, str] | None = None,
        **fields: Unpack[s.UpdatableFields],
    ) -> r.StudyInfo:
        """Changes the study, as `Study.update` does."""
        details = {"display_name": display_name, "description": description, "labels": labels}
        update = ops.update_study(self._policy, self.name, details, parameters, units, fields)
        return self._keep(await self._run(update))

    async def extend(
        self,
        id: str,
        parameters: Sequence[s.Parameter],
        prior_values: Mapping[str, Any],
        *,
        metrics: Sequence[s.Metric] | None = None,
        display_name: str = "",
        description: str = "",
        labels: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> AsyncStudy:
        """Creates a study that learns from this one, as `Study.extend` does."""
        details = {"display_name": display_name, "description": description, "labels": labels}
        message = await self._run(
            ops.extend_study(
                self._policy, self.name, id, parameters, prior_values, metrics, details, fields
            )
        )
        return AsyncStudy(self._client, message)

    async def watch(self, after_revision: int = 0) -> AsyncIterator[r.StudyChange]:
        """Follows the study, as `Study.watch` does: ``async for change in study.watch():``."""
        study = await self._run(ops.watched(self._policy, self._message))
        while not ops.seen_all(study, after_revision):
            request, seconds = ops.watch_request(study, after_revision)
            metadata = self._client._connection.metadata()
            stub = self._client._stub("studies")
            stream = stub.WatchStudy(request, timeout=seconds, metadata=metadata)
            pause = ops.WATCH_PAUSE
            try:
                async for change in stream:
                    after_revision = change.revision
                    yield read.study_change(change)
                    if ops.may_be_last(study, change):
                        study = await self._run(ops.watched(self._policy, self._message))
                        if ops.seen_all(study, after_revision):
                            return
            except asyncio.CancelledError:
                if not self._client._closed or _is_cancelled():
                    raise
                raise errors.DParetoError("the client is closed") from None
            except grpc.aio.AioRpcError as error:
                pause = ops.watch_pause(study.name, failure(error))
            finally:
                stream.cancel()
            await asyncio.sleep(pause)
            study = await self._run(ops.watched(self._policy, self._message))

    async def reaccount(
        self, privacy: p.Privacy, *, metric: str | None = None, validate_only: bool = False
    ) -> r.Reaccounting:
        """Computes ε of all trials again, as `Study.reaccount` does."""
        result = await self._run(
            ops.reaccount_study(self._policy, self._message, privacy, metric, validate_only)
        )
        if not validate_only:
            self._keep(await self._run(ops.get_study(self._policy, self.name)))
        return result

    async def ask(
        self,
        worker_id: str | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        at_most: Mapping[str, float] | None = None,
        timeout: float | None = None,
    ) -> AsyncTrial:
        """Asks for a trial to run, as `Study.ask` does."""
        trials = await self.ask_many(1, worker_id, fixed=fixed, at_most=at_most, timeout=timeout)
        return trials[0]

    async def ask_many(
        self,
        count: int,
        worker_id: str | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        at_most: Mapping[str, float] | None = None,
        timeout: float | None = None,
    ) -> list[AsyncTrial]:
        """Asks for several trials at once, as `Study.ask_many` does."""
        condition = ops.condition(self._message, fixed, at_most)
        operation = ops.ask(
            self._policy,
            self.name,
            self._client.worker_id if worker_id is None else worker_id,
            worker_id is not None,
            count,
            condition,
            timeout,
        )
        return await self._wait_for(operation, asyncio.Event())

    async def _ask_until(
        self, worker_id: str, timeout: float | None, stopping: asyncio.Event
    ) -> AsyncTrial:
        """Asks for a trial; raises `Stopped` if the event is set while it waits."""
        asking = ops.ask(self._policy, self.name, worker_id, True, 1, None, timeout)
        return (await self._wait_for(asking, stopping))[0]

    async def _wait_for(
        self, operation: ops.Operation[list[trial_pb2.Trial]], stopping: asyncio.Event
    ) -> list[AsyncTrial]:
        asking = asyncio.create_task(self._client._run(operation, stopping))
        try:
            messages = await asyncio.shield(asking)
        except asyncio.CancelledError:
            # Otherwise trials in an answer under way would stay leased without a worker.
            stopping.set()
            await asyncio.wait([asking], timeout=ops.LAST_PATIENCE)
            if not asking.done():
                asking.cancel()
            elif not asking.cancelled() and asking.exception() is None:
                for m in asking.result():
                    with suppress(errors.DParetoError):
                        await AsyncTrial(self, m)._give_back("nobody waits for it any more")
            raise
        return [AsyncTrial(self, m) for m in messages]

    @asynccontextmanager
    async def trial(
        self, worker_id: str | None = None, **conditions: Any
    ) -> AsyncIterator[AsyncTrial]:
        """Asks for a trial and holds it for the length of a block, as `Study.trial` does."""
        async with await self.ask(worker_id, **conditions) as trial:
            yield trial

    async def enqueue_trial(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        replicate_of: int | None = None,
        user_attrs: Mapping[str, Any] | None = None,
        skip_if_exists: bool = False,
    ) -> r.TrialInfo:
        """Queues a configuration, as `Study.enqueue_trial` does."""
        return await self._run(
            ops.create_trial(
                self._policy,
                self._message,
                params,
                None,
                replicate_of,
                "",
                user_attrs=user_attrs,
                skip_if_exists=skip_if_exists,
            )
        )

    async def add_trial(
        self,
        params: Mapping[str, Any],
        note: str = "",
        seeded: bool = False,
        user_attrs: Mapping[str, Any] | None = None,
        **metrics: Values,
    ) -> r.TrialInfo:
        """Adds a trial that was run elsewhere, with its results.

        Set ``seeded`` if somebody knows the seed of the run: no ε holds for it.
        """
        return await self._run(
            ops.create_trial(
                self._policy, self._message, params, metrics, None, note, seeded, user_attrs
            )
        )

    async def stop_trial(self, number: int, reason: str = "") -> None:
        """Asks the worker that holds a trial to complete it with what it has."""
        await self._run(ops.stop_trial(self._policy, self.name, number, reason))

    async def delete_trial(self, number: int) -> None:
        """Deletes a trial that no worker holds. Its privacy cost stays in the ledger."""
        await self._run(ops.delete_trial(self._policy, self.name, number))

    async def trials(self, filter: str = "", order_by: str = "") -> list[r.TrialInfo]:
        """Lists trials."""
        return await self._run(ops.list_trials(self._policy, self.name, filter, order_by))

    async def get_trial(self, number: int) -> r.TrialInfo:
        """Reads a trial, with its past attempts."""
        return await self._run(ops.get_trial(self._policy, self.name, number))

    async def best_trials(self) -> list[r.TrialInfo]:
        """The trials whose final results are on the observed front, like Optuna's.

        Of noisy measurements these are the luckiest. `front` says what fresh runs should give,
        and also counts measurements on the way, in studies with a checkpoint parameter.
        """
        return await self._run(ops.best_trials(self._policy, self._message))

    async def trials_dataframe(self, filter: str = "", order_by: str = "") -> pandas.DataFrame:
        """Lists trials as a pandas DataFrame, as `Study.trials_dataframe` does."""
        return trials_dataframe(await self.trials(filter, order_by))

    async def optimize(
        self,
        objective: Callable[[AsyncTrial], Awaitable[Outcome]],
        *,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        callbacks: Iterable[Callable[[AsyncStudy, r.TrialInfo], object]] = (),
        progress: bool | None = None,
    ) -> int:
        """Runs trials until the study hands out no more, as `Study.optimize` does.

        ``n_jobs`` tasks await the objective at a time. A callback may be a coroutine function.
        """
        search = AsyncSearch(self, objective, n_trials, timeout, n_jobs, catch, callbacks, progress)
        self._searches.add(search)
        try:
            return await search.run()
        finally:
            self._searches.discard(search)

    async def front(self, kind: FrontKind = "posterior", *, final_only: bool = False) -> r.Front:
        """Reads the Pareto front, as `Study.front` does."""
        return await self._run(ops.get_front(self._policy, self._message, kind, final_only))

    async def hypervolumes(
        self, kind: FrontKind = "observed", *, final_only: bool = False
    ) -> list[r.HypervolumePoint]:
        """Reads the hypervolume of a front after completed trials."""
        return await self._run(ops.hypervolumes(self._policy, self.name, kind, final_only))

    async def epsilon_curves(
        self, trials: Iterable[int] | None = None, *, metric: str = ""
    ) -> list[r.EpsilonCurve]:
        """Computes how ε grows with the length of runs, as `Study.epsilon_curves` does."""
        return await self._run(ops.epsilon_curves(self._policy, self._message, trials, metric))

    async def importance(self) -> r.Importance:
        """Computes the importance of the parameters, as `Study.importance` does."""
        return await self._run(ops.importance(self._policy, self.name))

    async def slices(self, params: Mapping[str, Any] | None = None, *, points: int = 0) -> r.Slices:
        """Computes the objectives along each parameter, as `Study.slices` does."""
        return await self._run(ops.slices(self._policy, self._message, params, points))

    async def contour(
        self,
        x: str,
        y: str,
        *,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
    ) -> r.Contour:
        """Computes an objective over two parameters, as `Study.contour` does."""
        return await self._run(
            ops.contour(self._policy, self._message, x, y, metric, params, points)
        )

    async def recommend(
        self,
        *,
        confidence: float = 0.5,
        optimize: str = "",
        measured_only: bool = False,
        **bounds: float,
    ) -> r.Recommendation:
        """Returns the best configuration within bounds on objectives."""
        return await self._run(
            ops.recommend(self._policy, self.name, bounds, confidence, optimize, measured_only)
        )

    async def predict(
        self, configurations: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, r.Prediction]]:
        """Returns what the model expects of configurations, by metric id."""
        return await self._run(ops.predict(self._policy, self._message, configurations))

    async def tradeoff(
        self,
        point: r.FrontPoint | Mapping[str, Any],
        fprs: Sequence[float] = (),
        *,
        metric: str = "",
    ) -> r.Tradeoff:
        """Computes the best attack on one record, for one run of a configuration.

        Args:
            point: A point of the front, or the parameters of a configuration.
            fprs: False positive rates; by default some that suffice for a picture.
            metric: Id of a metric that is ε; by default the first.
        """
        return await self._run(ops.study_tradeoff(self._policy, self._message, point, fprs, metric))

    async def cross_validate(self) -> r.Validation:
        """Predicts every measurement without the runs of its configuration."""
        return await self._run(ops.cross_validate(self._policy, self.name))

    async def expected_gain(self, runs: int = 10) -> r.ExpectedGain:
        """Returns what the next runs are expected to gain, as `Study.expected_gain` does."""
        return await self._run(ops.expected_gain(self._policy, self.name, runs))

    async def privacy_ledger(self, delta: float = 0, metric: str = "") -> r.PrivacyLedger:
        """Returns what all runs of the study cost together."""
        return await self._run(ops.privacy_ledger(self._policy, self.name, delta, metric))

    # --- publishing

    async def release_best(
        self,
        metric: str,
        *,
        at_most: Mapping[str, float] | None = None,
        epsilon: float | None = None,
        kusner: Mapping[str, Any] | None = None,
        request_id: str = "",
    ) -> r.Release:
        """Publishes the best configuration, as `Study.release_best` does."""
        return await self._run(
            ops.release_best(self._policy, self.name, metric, at_most, epsilon, kusner, request_id)
        )

    async def release_front(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        request_id: str = "",
    ) -> r.Release:
        """Publishes the front, as `Study.release_front` does."""
        return await self._run(
            ops.release_front(self._policy, self.name, epsilon, delta, request_id)
        )

    async def releases(self) -> list[r.Release]:
        """Lists the releases of the study, oldest first."""
        return await self._run(ops.list_releases(self._policy, self.name))
