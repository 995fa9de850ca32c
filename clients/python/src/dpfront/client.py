"""The blocking client."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import grpc

from dpfront import _convert as convert
from dpfront import _operations as ops
from dpfront import _read as read
from dpfront import errors, plot
from dpfront import privacy as p
from dpfront import results as r
from dpfront import spec as s
from dpfront._connection import TLS, connect, failure
from dpfront._search import Search, Stopped
from dpfront._study import Parameters, StudyBase, listed, trials_dataframe
from dpfront._trial import Outcome, Values
from dpfront._working import working
from dpfront.trial import Trial
from dpfront.v1 import (
    admin_service_pb2_grpc,
    analysis_service_pb2_grpc,
    front_service_pb2_grpc,
    privacy_service_pb2_grpc,
    release_service_pb2_grpc,
    study_pb2,
    study_service_pb2_grpc,
)

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

__all__ = ["Client", "FrontKind", "SelectionMethod", "Stubs", "Study", "Trial"]

T = TypeVar("T")
FrontKind = Literal["posterior", "observed", "best", "worst"]
"""Of what a front is: the model's expectation of fresh runs ("posterior"), or the mean
("observed"), best or worst of the measured runs."""
SelectionMethod = Literal["permute_and_flip", "exponential", "report_noisy_max"]
"""How a configuration is chosen privately."""


@dataclass(frozen=True)
class Stubs:
    """The generated stubs of a connection, for everything without a method here. Their calls
    are plain: without time limit, token or retries.
    """

    studies: study_service_pb2_grpc.StudyServiceStub
    fronts: front_service_pb2_grpc.FrontServiceStub
    analyses: analysis_service_pb2_grpc.AnalysisServiceStub
    privacy: privacy_service_pb2_grpc.PrivacyServiceStub
    releases: release_service_pb2_grpc.ReleaseServiceStub
    admin: admin_service_pb2_grpc.AdminServiceStub


class Client:
    """A connection to a server. Threads can share it.

    It connects at the first call. While the server cannot be reached, calls are retried with
    growing pauses, so that a worker survives a restart of its server; requests that would
    change something twice carry an id, under which the server makes the change once. A client
    can be pickled, and used in a forked process: each process connects by itself.

    Args:
        address: ``host:port``, or any target of gRPC such as ``unix:///run/dpareto.sock``. By
            default the environment variable DPARETO_SERVER, or 127.0.0.1:8321.
        token: Bearer token. By default the environment variable DPARETO_TOKEN, if set.
        tls: Whether to use TLS, or how (`TLS`). Default: only to other machines.
        token_file: File with the token, read for every call; instead of ``token``.
        token_in_plaintext: Allows sending the token to another machine in plain text.
        timeout: Time limit of one attempt of a call in seconds; calls that may fit a model or
            account for many runs get eight times as much.
        patience: How long calls are retried while the server cannot be reached, in seconds; at
            most 20 before the first answer.
    """

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
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._end_reason = ""
        self._channel: grpc.Channel | None = None
        self._stubs: Stubs | None = None
        self._pid = os.getpid()
        self._worker_id = ""
        self._page_url: str | None = None  # once it is known

    def __getstate__(self) -> dict[str, Any]:
        return {
            "connection": self._connection,
            "timeout": self._policy.timeout,
            "patience": self._policy.patience,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._connection = state["connection"]
        self._policy = ops.Policy(state["timeout"], state["patience"], self._connection.hint())
        self._reset()

    def __repr__(self) -> str:
        return f"Client({self.address!r})"

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._connection.address

    @property
    def stubs(self) -> Stubs:
        """The generated stubs."""
        if self._pid != os.getpid():
            self._reset()  # a forked process cannot use its parent's connection
        with self._lock:
            if self._closed.is_set():
                raise self._closed_error()
            if self._stubs is None:
                credentials = self._connection.credentials()
                options = self._connection.options()
                if credentials is None:
                    self._channel = grpc.insecure_channel(self.address, options)
                else:
                    self._channel = grpc.secure_channel(self.address, credentials, options)
                self._stubs = Stubs(
                    studies=study_service_pb2_grpc.StudyServiceStub(self._channel),
                    fronts=front_service_pb2_grpc.FrontServiceStub(self._channel),
                    analyses=analysis_service_pb2_grpc.AnalysisServiceStub(self._channel),
                    privacy=privacy_service_pb2_grpc.PrivacyServiceStub(self._channel),
                    releases=release_service_pb2_grpc.ReleaseServiceStub(self._channel),
                    admin=admin_service_pb2_grpc.AdminServiceStub(self._channel),
                )
            return self._stubs

    @property
    def worker_id(self) -> str:
        """The default worker id of this process, a random one."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._worker_id = self._worker_id or ops.new_worker_id()
            return self._worker_id

    def _end(self, reason: str) -> None:
        """Closes the connection to a server that has ended."""
        self._end_reason = reason
        self.close()

    def _closed_error(self) -> errors.DParetoError:
        if self._end_reason:
            return errors.ServerError(self._end_reason)
        return errors.DParetoError("the client is closed")

    def close(self) -> None:
        """Closes the connection. Calls that wait end with an error."""
        self._closed.set()
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._stubs = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _pause(self, seconds: float, stopping: threading.Event | None) -> None:
        """Waits, unless the client is closed or the caller should stop."""
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0)
            if self._closed.wait(left if stopping is None else min(left, 0.1)):
                raise self._closed_error()
            if stopping is not None and stopping.is_set():
                raise Stopped
            if time.monotonic() >= end:
                return

    def _run(self, operation: ops.Operation[T], stopping: threading.Event | None = None) -> T:
        """Runs an operation: attempts its calls and waits."""
        try:
            step = next(operation)
            while True:
                if isinstance(step, ops.Pause):
                    self._pause(step.seconds, stopping)
                    step = operation.send(None)
                    continue
                method = getattr(getattr(self.stubs, step.service), step.method)
                try:
                    # A search shows its own bar.
                    with working(step.action) if stopping is None else nullcontext():
                        answer = method(
                            step.request, timeout=step.timeout, metadata=self._connection.metadata()
                        )
                except (grpc.RpcError, ValueError) as error:  # ValueError: of a closed channel
                    if self._closed.is_set():
                        raise self._closed_error() from None
                    if isinstance(error, ValueError):
                        raise
                    step = operation.throw(failure(error))
                else:
                    step = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _stream(self, method: str, request: Any, timeout: float) -> Any:
        """Attempts a call of the study service that answers with a stream."""
        call = getattr(self.stubs.studies, method)
        return call(request, timeout=timeout, metadata=self._connection.metadata())

    # --- studies

    def create_study(
        self,
        id: str,
        spec: s.StudySpec | study_pb2.StudySpec,
        *,
        display_name: str = "",
        description: str = "",
        labels: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> Study:
        """Creates a study, or loads the existing one of that id if its spec is equal.

        Raises:
            AlreadyExists: The existing study's spec differs; the message names the fields.
            InvalidArgument: ``violations`` names every invalid field.
        """
        message = self._run(
            ops.create_study(
                self._policy, id, spec, display_name, description, labels, validate_only
            )
        )
        return Study(self, message)

    def study(self, id: str) -> Study:
        """Loads a study.

        Raises:
            NotFound: There is no study of that id.
        """
        return Study(self, self._run(ops.get_study(self._policy, convert.study_name(id))))

    def studies(self, filter: str = "", order_by: str = "") -> list[r.StudyInfo]:
        """Lists studies: ``filter="state = ACTIVE AND labels.team = vision"``."""
        return self._run(ops.list_studies(self._policy, filter, order_by))

    # --- privacy

    def epsilon(self, privacy: p.Privacy, **params: Any) -> r.Guarantee:
        """Computes ε of a mechanism.

        Keyword arguments are the values of the parameters in its expressions, with the types
        that the expressions need: ``client.epsilon(privacy, noise_multiplier=1.1,
        epochs=10)``.
        """
        return self._run(ops.epsilon(self._policy, privacy, params, ()))[0]

    def epsilon_curve(
        self, privacy: p.Privacy, lengths: Sequence[int], **params: Any
    ) -> list[r.Guarantee]:
        """Computes ε of runs of several lengths, in the unit of the mechanism's length."""
        return self._run(ops.epsilon(self._policy, privacy, params, lengths))

    def tradeoff(self, privacy: p.Privacy, fprs: Sequence[float] = (), **params: Any) -> r.Tradeoff:
        """Computes the best attack on one record by its false positive rate: what ε means.

        Args:
            privacy: The mechanism.
            fprs: False positive rates; by default some that suffice for a picture, with 0.01
                and 0.1.
            params: Values of the parameters in its expressions, as for `epsilon`.
        """
        return self._run(ops.tradeoff(self._policy, privacy, convert.to_values(params), fprs))

    def price_search(
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
        return self._run(
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

    def calibrate(
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
        return self._run(ops.calibrate(self._policy, privacy, solve_for, min, max, epsilon, params))

    def server_version(self) -> str:
        """Returns the version of the server."""
        return self._run(ops.server_version(self._policy))

    def page_url(self) -> str | None:
        """Returns the URL of the server's page, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        self._page_url = self._run(ops.page_url(self._policy))
        return self._page_url

    # --- publishing

    def create_ledger(
        self,
        id: str,
        *,
        records: int,
        epsilon: float,
        delta: float,
        adjacency: p.Adjacency = "replace_one",
        description: str = "",
    ) -> r.LedgerInfo:
        """Opens the ledger of a dataset: the budget of everything that will ever be published
        about it.

        Creating it again with the same arguments returns it. A ledger cannot be changed or
        deleted. ``records`` is the number of records of the dataset, which is public; half of
        ``delta`` is for composition.

        Raises:
            AlreadyExists: The ledger has another budget.
        """
        return self._run(
            ops.create_ledger(self._policy, id, records, epsilon, delta, adjacency, description)
        )

    def ledger(self, id: str) -> r.LedgerInfo:
        """Reads the ledger of a dataset: its budget and spending."""
        return self._run(ops.get_ledger(self._policy, convert.ledger_name(id)))

    def ledgers(self) -> list[r.LedgerInfo]:
        """Lists the ledgers of all datasets."""
        return self._run(ops.list_ledgers(self._policy))

    def charges(self, ledger: str | r.LedgerInfo) -> list[r.Charge]:
        """Lists the charges of a ledger, oldest first."""
        return self._run(ops.list_charges(self._policy, convert.ledger_name(ledger)))

    def select_privately(
        self,
        ledger: str | r.LedgerInfo,
        utilities: Sequence[float],
        sensitivity: float,
        epsilon: float,
        *,
        method: SelectionMethod = "permute_and_flip",
        request_id: str = "",
    ) -> r.Release:
        """Publishes the best of several candidates, chosen privately.

        ``release.index`` is the choice. The ledger is charged first.

        Args:
            ledger: The ledger of the dataset on which the utilities were computed.
            utilities: Utilities of the candidates, larger is better; they are not kept. The
                candidates must be fixed before looking at the data.
            sensitivity: The largest change of a utility by one record: 1 / records for an
                accuracy.
            epsilon: ε of the choice.
            method: The mechanism.
            request_id: Name of the release. Calling again with it, even after a restart,
                returns the same release free of charge; without one every call is another
                release.

        Raises:
            ResourceExhausted: It no longer fits into the ledger.
        """
        return self._run(
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

    def releases(self, ledger: str | r.LedgerInfo) -> list[r.Release]:
        """Lists the `select_privately` releases of a ledger, oldest first."""
        return self._run(ops.list_releases(self._policy, convert.ledger_name(ledger)))

    def release(self, name: str) -> r.Release:
        """Reads a release by its resource name."""
        return self._run(ops.get_release(self._policy, name))


class Study(StudyBase):
    """A study on a server. Threads can share it, and it can be pickled."""

    _client: Client

    def __init__(self, client: Client, message: study_pb2.Study) -> None:
        super().__init__(message)
        self._client = client

    @classmethod
    def create(
        cls,
        client: Client,
        id: str,
        parameters: Parameters,
        metrics: Sequence[s.Metric],
        *,
        display_name: str = "",
        description: str = "",
        labels: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Study:
        """Creates a study, or loads the existing one of that id if its spec is equal.

        ``parameters`` can also be an objective: `space` finds what it suggests, by calling it
        once. Further keyword arguments are fields of `StudySpec`: ``max_trials=64``.

        Raises:
            AlreadyExists: The existing study's spec differs; the message names the fields, and
                says if `update` can change them.
        """
        return client.create_study(
            id,
            s.StudySpec(listed(parameters), metrics, **fields),
            display_name=display_name,
            description=description,
            labels=labels,
        )

    @classmethod
    def load(cls, client: Client, id: str) -> Study:
        """Loads a study; `NotFound` if there is none."""
        return client.study(id)

    def __repr__(self) -> str:
        return f"<Study {self.id} on {self._client.address}>"

    @property
    def client(self) -> Client:
        """The client of the study."""
        return self._client

    def page_url(self) -> str | None:
        """Returns the URL of the page that shows the study live, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        self._client.page_url()
        return self._page()

    def info(self) -> r.StudyInfo:
        """Reads the current study: its state, and its numbers of trials."""
        return read.study_info(self._run(ops.get_study(self._policy, self.name)))

    @property
    def _policy(self) -> ops.Policy:
        return self._client._policy

    def _run(self, operation: ops.Operation[T]) -> T:
        return self._client._run(operation)

    def pause(self) -> None:
        """Makes the study hand out no trials until `resume`."""
        self._run(ops.pause_study(self._policy, self.name))

    def resume(self) -> None:
        """Makes the study hand out trials again."""
        self._run(ops.resume_study(self._policy, self.name))

    def delete(self) -> None:
        """Deletes the study with all its trials, and its ledger."""
        self._run(ops.delete_study(self._policy, self.name))

    def update(
        self,
        *,
        parameters: Iterable[s.Parameter] | None = None,
        units: Mapping[str, str] | None = None,
        display_name: str | None = None,
        description: str | None = None,
        labels: Mapping[str, str] | None = None,
        **fields: Unpack[s.UpdatableFields],
    ) -> r.StudyInfo:
        """Changes the study, and returns it. What is not given stays as it is.

        Open and complete trials keep their configurations. A new budget or domain after the
        first trial ends what `release_best` and `release_front` guarantee.

        Args:
            parameters: Parameters with wider domains: larger intervals, more values or more
                categories. Parameters that are not listed stay as they are.
            units: Units of metrics by id.
            display_name: Another name for people.
            description: Another description.
            labels: The new labels; {} removes all.
            **fields: Fields of `StudySpec`: max_trials, max_duration, max_stagnant_trials,
                max_parallel_trials (0 or None is no limit), lease, max_attempts,
                early_stopping, and test_ledger where it is empty.

        Raises:
            InvalidArgument: ``violations`` names every field that cannot change.
        """
        details = {"display_name": display_name, "description": description, "labels": labels}
        update = ops.update_study(self._policy, self.name, details, parameters, units, fields)
        return self._keep(self._run(update))

    def extend(
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
    ) -> Study:
        """Creates a study with more parameters that learns from this one's trials.

        The new study has this one's spec, also its budget, but another seed, with ``parameters``
        added, or in place of those with the same id (wider domains), and this study, with its
        own priors, as ``prior_studies``.

        Args:
            id: Id of the new study.
            parameters: The new parameters.
            prior_values: The values that they had in the trials so far, by id.
            metrics: Metrics instead of this study's, for instance with a privacy metric whose
                expressions use a new parameter. Objectives must be the same by id, goal and
                transform.
            display_name: Name of the new study for people.
            description: Its description.
            labels: Its labels.
            **fields: Other fields of `StudySpec` in which it differs: ``max_trials=64``.
        """
        details = {"display_name": display_name, "description": description, "labels": labels}
        message = self._run(
            ops.extend_study(
                self._policy, self.name, id, parameters, prior_values, metrics, details, fields
            )
        )
        return Study(self._client, message)

    def watch(self, after_revision: int = 0) -> Iterator[r.StudyChange]:
        """Follows the study: yields its changes until it is complete.

        It first yields what exists: each trial, and the study's own fields, by their last
        change. Later, a slow reader gets only the last of several changes of a trial. It
        continues by itself after a restart of the server. It ends when the study is complete
        and everything was yielded; a paused study is not complete.

        Args:
            after_revision: Only changes after this revision, such as the ``revision`` of the
                last change of an earlier call.

        Raises:
            NotFound: The study was deleted.
            CallError: The study has no such revision (OUT_OF_RANGE): it was restored from a
                backup.
        """
        study = self._run(ops.watched(self._policy, self._message))
        while not ops.seen_all(study, after_revision):
            request, seconds = ops.watch_request(study, after_revision)
            stream = self._client._stream("WatchStudy", request, seconds)
            pause = ops.WATCH_PAUSE
            try:
                for change in stream:
                    after_revision = change.revision
                    yield read.study_change(change)
                    if ops.may_be_last(study, change):
                        study = self._run(ops.watched(self._policy, self._message))
                        if ops.seen_all(study, after_revision):
                            return
            except grpc.RpcError as error:
                pause = ops.watch_pause(study.name, failure(error))
            finally:
                stream.cancel()
            self._client._pause(pause, None)
            study = self._run(ops.watched(self._policy, self._message))

    def reaccount(
        self, privacy: p.Privacy, *, metric: str | None = None, validate_only: bool = False
    ) -> r.Reaccounting:
        """Computes ε of all trials again, under another account of the mechanism that ran.

        For a better accountant, another δ, or a mistake in the spec. The study and all its
        trials change at once; the same call with the old mechanism restores them.

        Args:
            privacy: How to account the mechanism. It must be the one that the trainer ran: the
                server cannot know.
            metric: Id of the privacy metric, if the study has several.
            validate_only: Returns the result without storing it.
        """
        result = self._run(
            ops.reaccount_study(self._policy, self._message, privacy, metric, validate_only)
        )
        if not validate_only:
            self._keep(self._run(ops.get_study(self._policy, self.name)))
        return result

    # --- ask and tell

    def ask(
        self,
        worker_id: str | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        at_most: Mapping[str, float] | None = None,
        timeout: float | None = None,
    ) -> Trial:
        """Asks for a trial to run, and waits while the study has none but may get one.

        The worker keeps the trial as long as its lease is renewed: by `Trial.report`, and by a
        background thread within ``with trial:``.

        Args:
            worker_id: Name of the worker among all workers of the study, the same after a
                restart. A worker that holds a trial gets it again, to run from the beginning.
                By default every call asks for another trial.
            fixed: Values that parameters of the trial must have.
            at_most: Bounds of computed metrics: ``{"epsilon": 1}``.
            timeout: How long to wait for a trial at most, in seconds.

        Raises:
            StudyDone: The study hands out no more trials.
            TimeoutError: There was no trial within ``timeout``.
        """
        return self.ask_many(1, worker_id, fixed=fixed, at_most=at_most, timeout=timeout)[0]

    def ask_many(
        self,
        count: int,
        worker_id: str | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        at_most: Mapping[str, float] | None = None,
        timeout: float | None = None,
    ) -> list[Trial]:
        """Asks for several trials at once, chosen to complement each other: at least one, and
        at most ``count``. Other arguments are as for `ask`.
        """
        condition = ops.condition(self._message, fixed, at_most)
        messages = self._run(
            ops.ask(
                self._policy,
                self.name,
                self._client.worker_id if worker_id is None else worker_id,
                worker_id is not None,
                count,
                condition,
                timeout,
            )
        )
        return [Trial(self, m) for m in messages]

    def _ask_until(self, worker_id: str, timeout: float | None, stopping: threading.Event) -> Trial:
        """Asks for a trial; raises `Stopped` if the event is set while it waits."""
        asking = ops.ask(self._policy, self.name, worker_id, True, 1, None, timeout)
        return Trial(self, self._client._run(asking, stopping)[0])

    @contextmanager
    def trial(self, worker_id: str | None = None, **conditions: Any) -> Iterator[Trial]:
        """Asks for a trial and holds it for the length of a block, as ``with trial:`` does.

        The arguments are as for `ask`.
        """
        with self.ask(worker_id, **conditions) as trial:
            yield trial

    def enqueue_trial(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        replicate_of: int | None = None,
        user_attrs: Mapping[str, Any] | None = None,
        skip_if_exists: bool = False,
    ) -> r.TrialInfo:
        """Queues a configuration, or another run of a trial, for the next worker that asks.

        Args:
            params: A value for every parameter whose condition holds.
            replicate_of: Number of the trial to run again, instead of ``params``.
            user_attrs: Kept with the trial (see `Trial.set_user_attr`).
            skip_if_exists: Returns the first trial with the same ``params``, if there is one,
                in any state, instead of another one.
        """
        return self._run(
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

    def add_trial(
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
        return self._run(
            ops.create_trial(
                self._policy, self._message, params, metrics, None, note, seeded, user_attrs
            )
        )

    def stop_trial(self, number: int, reason: str = "") -> None:
        """Asks the worker that holds a trial to complete it with what it has."""
        self._run(ops.stop_trial(self._policy, self.name, number, reason))

    def delete_trial(self, number: int) -> None:
        """Deletes a trial that no worker holds. Its privacy cost stays in the ledger."""
        self._run(ops.delete_trial(self._policy, self.name, number))

    def trials(self, filter: str = "", order_by: str = "") -> list[r.TrialInfo]:
        """Lists trials: ``filter="state = SUCCEEDED AND metrics.epsilon <= 1"``.

        It asks the server each time, so it is a method, unlike Optuna's property.
        """
        return self._run(ops.list_trials(self._policy, self.name, filter, order_by))

    def get_trial(self, number: int) -> r.TrialInfo:
        """Reads a trial, with its past attempts."""
        return self._run(ops.get_trial(self._policy, self.name, number))

    @property
    def best_trials(self) -> list[r.TrialInfo]:
        """The trials whose final results are on the observed front, like Optuna's.

        Of noisy measurements these are the luckiest. `front` says what fresh runs should give,
        and also counts measurements on the way, in studies with a checkpoint parameter.
        """
        return self._run(ops.best_trials(self._policy, self._message))

    def trials_dataframe(self, filter: str = "", order_by: str = "") -> pandas.DataFrame:
        """Lists trials as a pandas DataFrame, one row each. It needs pandas.

        Columns: number, state, values_{metric} (means over runs; computed ones, such as ε,
        too), params_{parameter}, user_attrs_{key}, datetime_create, datetime_start,
        datetime_end (UTC) and duration. What a trial lacks is missing there. The attribute
        ``attrs["guarantees"]`` of the frame says for each ε its δ and adjacency, and
        ``attrs["seeded"]`` has the numbers of trials for which no ε holds.
        """
        return trials_dataframe(self.trials(filter, order_by))

    def optimize(
        self,
        objective: Callable[[Trial], Outcome],
        *,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        callbacks: Iterable[Callable[[Study, r.TrialInfo], object]] = (),
        progress: bool | None = None,
    ) -> int:
        """Runs trials until the study hands out no more.

        ``objective(trial)`` trains a configuration and returns its results: a dict by metric
        id; a number if the study has one reported metric; a tuple with a number for each
        objective, in the study's order, if workers report all of them. None stands for the
        last reported measurement. The values of several runs are `Runs`.

        `Infeasible`, a result that is not finite, and the exceptions in ``catch`` end the trial
        as infeasible: the model learns to avoid such configurations, and the search continues.
        Any other exception is a mistake in the program or a failure of the machine: the trial
        goes back to the queue, nothing is learned from it, and the exception is raised. The
        same holds for Ctrl-C, and for SIGTERM, which announces that a machine is taken away: in
        the main thread, and unless the program handles it itself, it raises SystemExit.

        If it runs nothing, or less than ``n_trials``, because the study is done, a warning says
        why and what to do. While the study is paused, it waits.

        Args:
            objective: Called by ``n_jobs`` threads concurrently. (Python runs one of them at a
                time, except in numpy, PyTorch and the like. For more, start the program
                several times: all share the study.)
            n_trials: Number of trials after which to end, unless the study ends first.
            timeout: Seconds after which no further trial starts. Those that run end normally.
            n_jobs: Number of threads; -1 means one for every core.
            catch: Exceptions of ``objective`` that the configuration causes, such as
                ``torch.cuda.OutOfMemoryError``. Errors of this package are not caught.
            callbacks: Called as ``callback(study, trial)`` with a `TrialInfo` after every trial
                that this search ran, by the thread that ran it. An exception ends the search.
            progress: Whether to show a bar; by default on terminals and in notebooks.

        Returns:
            Number of trials that were run.
        """
        search = Search(self, objective, n_trials, timeout, n_jobs, catch, callbacks, progress)
        self._searches.add(search)
        try:
            return search.run()
        finally:
            self._searches.discard(search)

    # --- the answer

    def front(self, kind: FrontKind = "posterior", *, final_only: bool = False) -> r.Front:
        """Reads the Pareto front: a sequence of points, which prints as a table.

        The posterior front is what fresh runs should give; the observed one shows the luckiest
        of noisy measurements. `Front.to_dataframe` makes a pandas DataFrame of it.
        """
        return self._run(ops.get_front(self._policy, self._message, kind, final_only))

    def hypervolumes(
        self, kind: FrontKind = "observed", *, final_only: bool = False
    ) -> list[r.HypervolumePoint]:
        """Reads the hypervolume of a front after completed trials."""
        return self._run(ops.hypervolumes(self._policy, self.name, kind, final_only))

    def epsilon_curves(
        self, trials: Iterable[int] | None = None, *, metric: str = ""
    ) -> list[r.EpsilonCurve]:
        """Computes how ε grows with the length of runs of DP-SGD: at most 25 lengths of every
        configuration, up to its own.

        Args:
            trials: Numbers of trials; by default all on the posterior front.
            metric: Id of a metric that is ε; by default the first.

        Raises:
            ValueError: The metric is not ε of DP-SGD, or the number of epochs is not simply a
                number or a parameter.
        """
        return self._run(ops.epsilon_curves(self._policy, self._message, trials, metric))

    # --- analyses

    def importance(self) -> r.Importance:
        """Computes how much each parameter contributes to the variation of each objective: Sobol
        indices with 90 % intervals. It prints as a table.
        """
        return self._run(ops.importance(self._policy, self.name))

    def slices(self, params: Mapping[str, Any] | None = None, *, points: int = 0) -> r.Slices:
        """Computes what the model expects of the objectives along each parameter.

        Args:
            params: The configuration at which the other parameters are held; by default the knee
                of the posterior front, or its middle point.
            points: Number of values of a continuous parameter, by default 41.
        """
        return self._run(ops.slices(self._policy, self._message, params, points))

    def contour(
        self,
        x: str,
        y: str,
        *,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
    ) -> r.Contour:
        """Computes what the model expects of an objective over two parameters.

        Args:
            x: Id of the horizontal parameter.
            y: Id of the vertical one.
            metric: Id of the objective; by default the first that is measured.
            params: As in `slices`.
            points: Number of values on each axis, by default 25.
        """
        return self._run(ops.contour(self._policy, self._message, x, y, metric, params, points))

    # --- pictures: dpfront.plot explains them and their arguments

    def plot_front(
        self, kind: FrontKind = "posterior", *, backend: plot.Backend = "matplotlib", ax: Any = None
    ) -> Any:
        """Draws the front over the results of trials (`dpfront.plot.front`)."""
        return plot.front(self.front(kind), self.trials(), backend=backend, ax=ax)

    def plot_history(
        self, kind: FrontKind = "observed", *, backend: plot.Backend = "matplotlib"
    ) -> Any:
        """Draws the hypervolume and every objective over trials (`dpfront.plot.history`)."""
        return plot.history(
            self._info, self.hypervolumes(kind), self.trials(), kind=kind, backend=backend
        )

    def plot_parallel_coordinates(
        self,
        kind: FrontKind = "posterior",
        *,
        color: str = "",
        backend: plot.Backend = "matplotlib",
    ) -> Any:
        """Draws configurations as lines through parameters and objectives
        (`dpfront.plot.parallel_coordinates`).
        """
        return plot.parallel_coordinates(
            self._info, self.front(kind), self.trials(), color=color, backend=backend
        )

    def plot_learning_curves(
        self,
        kind: FrontKind = "posterior",
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws a metric over the steps of runs (`dpfront.plot.learning_curves`)."""
        return plot.learning_curves(
            self._info, self.front(kind), self.trials(), metric=metric, backend=backend, ax=ax
        )

    def plot_fit(self, *, backend: plot.Backend = "matplotlib") -> Any:
        """Draws what the model predicts over what was measured (`dpfront.plot.fit`)."""
        return plot.fit(self._info, self.cross_validate(), backend=backend)

    def plot_epsilon_over_epochs(
        self,
        trials: Iterable[int] | None = None,
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws how ε grows during runs (`epsilon_curves`)."""
        curves = self.epsilon_curves(trials, metric=metric)
        return plot.epsilon_over_epochs(curves, backend=backend, ax=ax)

    def plot_tradeoff(
        self,
        point: r.FrontPoint | Mapping[str, Any],
        *,
        metric: str = "",
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws the best attack on one record, for one run of a configuration (`tradeoff`)."""
        return plot.tradeoff(self.tradeoff(point, metric=metric), backend=backend, ax=ax)

    def plot_importance(self, *, backend: plot.Backend = "matplotlib", ax: Any = None) -> Any:
        """Draws the importance of the parameters (`dpfront.plot.importance`)."""
        return plot.importance(self.importance(), backend=backend, ax=ax)

    def plot_slice(
        self,
        *parameters: str,
        metric: str = "",
        params: Mapping[str, Any] | None = None,
        points: int = 0,
        backend: plot.Backend = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """Draws objectives along parameters, by default all (`dpfront.plot.slices`)."""
        found = self.slices(params, points=points)
        return plot.slices(
            self._info, found, parameters=parameters, metric=metric, backend=backend, ax=ax
        )

    def plot_contour(
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
        found = self.contour(x, y, metric=metric, params=params, points=points)
        return plot.contour(self._info, found, backend=backend, ax=ax)

    def recommend(
        self,
        *,
        confidence: float = 0.5,
        optimize: str = "",
        measured_only: bool = False,
        **bounds: float,
    ) -> r.Recommendation:
        """Returns the best configuration within bounds on objectives.

        ``study.recommend(epsilon=1.0)`` returns the one with the best accuracy at ε of at most
        1, ``study.recommend(error=0.1, confidence=0.9)`` the most private one whose error is
        at most 0.1 with a probability of 90 %. A bound is the largest value of an objective to
        minimise, the smallest of one to maximise. Above a confidence of 0.5 only
        configurations that were run are recommended.
        """
        return self._run(
            ops.recommend(self._policy, self.name, bounds, confidence, optimize, measured_only)
        )

    def predict(self, configurations: Sequence[Mapping[str, Any]]) -> list[dict[str, r.Prediction]]:
        """Returns what the model expects of configurations, by metric id."""
        return self._run(ops.predict(self._policy, self._message, configurations))

    def tradeoff(
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
        return self._run(ops.study_tradeoff(self._policy, self._message, point, fprs, metric))

    def cross_validate(self) -> r.Validation:
        """Predicts every measurement without the runs of its configuration.

        With a checkpoint parameter that leaves out all steps of these runs. ``coverage`` near
        90 % and ``r_squared`` near 1 say that predictions and intervals can be relied on.
        """
        return self._run(ops.cross_validate(self._policy, self.name))

    def expected_gain(self, runs: int = 10) -> r.ExpectedGain:
        """Returns by how much the next runs are expected to enlarge the hypervolume of the
        posterior front, and what they cost: whether going on is worthwhile.

        The runs are those that would be handed out together; seeing results in between is
        expected to gain more, if the model is right. It is a forecast and no bound. ``runs`` is
        at most 50.
        """
        return self._run(ops.expected_gain(self._policy, self.name, runs))

    def privacy_ledger(self, delta: float = 0, metric: str = "") -> r.PrivacyLedger:
        """Returns what all runs of the study cost together."""
        return self._run(ops.privacy_ledger(self._policy, self.name, delta, metric))

    # --- publishing

    def release_best(
        self,
        metric: str,
        *,
        at_most: Mapping[str, float] | None = None,
        epsilon: float | None = None,
        kusner: Mapping[str, Any] | None = None,
        request_id: str = "",
    ) -> r.Release:
        """Publishes the best configuration by a metric, under bounds of computed ones.

        ``release.best`` is the configuration. The cost depends on the study: nothing more with
        private_mode or random_stopping; ``epsilon``, charged to its test_ledger, if the
        configurations were fixed before any result was seen ("quasi_random", "random", "grid")
        and all trials have ended. Other studies release nothing but by ``kusner``.

        Args:
            metric: A reported objective, an average over the test records in [0, 1].
            at_most: Bounds of computed metrics: ``{"epsilon": 1}``.
            epsilon: ε of the release, for the test records.
            kusner: Fields of the contract's KusnerMethod, for a method of Kusner et al. (2015)
                on a study that chose configurations by results, hardly more than noise:
                ``{"algorithm": 3}``. What their paper claims under its model is in
                ``release.model_claim``.
            request_id: Name of the release. Calling again with it, even after a restart,
                returns the same release free of charge; without one every call is another
                release.

        Raises:
            FailedPrecondition: The study chose configurations by results, or is not complete.
            ResourceExhausted: It no longer fits into the ledger.
        """
        return self._run(
            ops.release_best(self._policy, self.name, metric, at_most, epsilon, kusner, request_id)
        )

    def release_front(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        request_id: str = "",
    ) -> r.Release:
        """Publishes the front: configurations with noisy values, smoothed by a model.

        With private_mode it costs nothing more; with configurations fixed beforehand it costs
        (epsilon, delta), charged to the study's test_ledger. ``request_id`` and errors are as
        for `release_best`. ``release.points`` are the points.
        """
        return self._run(ops.release_front(self._policy, self.name, epsilon, delta, request_id))

    def releases(self) -> list[r.Release]:
        """Lists the releases of the study, oldest first."""
        return self._run(ops.list_releases(self._policy, self.name))
