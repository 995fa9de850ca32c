# Generated from _async by make generate-python. Do not edit.

"""Studies, and the loop of `Study.optimize`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import _threads as runtime
from dpfront import errors
from dpfront import privacy as p
from dpfront import spec as s
from dpfront._connection import Failure
from dpfront._executor import Executor
from dpfront._operations import releases, studies, trials
from dpfront._operations.calls import Operation, Stopped, new_worker_id
from dpfront._results.guarantees import Reaccounting
from dpfront._results.releases import Release
from dpfront._results.trials import StudyChange, StudyInfo, TrialInfo
from dpfront._search import SearchBase, exits_on_sigterm
from dpfront._study import Parameters, listed
from dpfront._sync.connection import Connection
from dpfront._sync.dispatch import Dispatch
from dpfront._sync.reader import StudyReader
from dpfront._sync.running import Objective, run_trial
from dpfront._sync.trial import Trial
from dpfront._trial import Values
from dpfront.v1 import trial_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Study(StudyReader):
    """A study on a server. It can be shared and pickled like its client."""

    @classmethod
    def create(
        cls,
        client: Connection,
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
        spec = s.StudySpec(listed(parameters), metrics, **fields)
        creating = studies.create_study(id, spec, display_name, description, labels)
        return cls(client._transport, client._transport.run(creating))

    @classmethod
    def load(cls, client: Connection, id: str) -> Study:
        """Loads a study; `NotFound` if there is none."""
        reading = studies.get_study(convert.study_name(id))
        return cls(client._transport, client._transport.run(reading))

    def pause(self) -> None:
        """Makes the study hand out no trials until `resume`."""
        self._run(studies.pause_study(self.name))

    def resume(self) -> None:
        """Makes the study hand out trials again."""
        self._run(studies.resume_study(self.name))

    def delete(self) -> None:
        """Deletes the study with all its trials, and its ledger."""
        self._run(studies.delete_study(self.name))

    def update(
        self,
        *,
        parameters: Iterable[s.Parameter] | None = None,
        units: Mapping[str, str] | None = None,
        display_name: str | None = None,
        description: str | None = None,
        labels: Mapping[str, str] | None = None,
        **fields: Unpack[s.UpdatableFields],
    ) -> StudyInfo:
        """Changes the study, and returns it. Omitted settings keep their values.

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
        update = studies.update_study(self.name, details, parameters, units, fields)
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

        The new study has this one's spec, also its budget, but another seed. ``parameters`` are
        added, or replace those with the same id (wider domains). This study, with its own priors,
        becomes its ``prior_studies``.

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
            studies.extend_study(self.name, id, parameters, prior_values, metrics, details, fields)
        )
        return Study(self._transport, message)

    def watch(self, after_revision: int = 0) -> Iterator[StudyChange]:
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
        study = self._run(studies.watched(self._message))
        while not studies.seen_all(study, after_revision):
            request, seconds = studies.watch_request(study, after_revision)
            pause = studies.WATCH_PAUSE
            try:
                with self._transport.stream("WatchStudy", request, seconds) as changes:
                    for change in changes:
                        after_revision = change.revision
                        yield read.study_change(change)
                        if studies.may_be_last(study, change):
                            study = self._run(studies.watched(self._message))
                            if studies.seen_all(study, after_revision):
                                return
            except Failure as failure:
                pause = studies.watch_pause(study.name, failure)
            self._transport.pause(pause)
            study = self._run(studies.watched(self._message))

    def reaccount(
        self, privacy: p.Privacy, *, metric: str | None = None, validate_only: bool = False
    ) -> Reaccounting:
        """Computes ε of all trials again, under another account of the mechanism that ran.

        For a better accountant, another δ, or a mistake in the spec. The study and all its
        trials change at once; the same call with the old mechanism restores them.

        Args:
            privacy: How to account the mechanism. It must be the one that the trainer ran: the
                server cannot know.
            metric: Id of the privacy metric, if the study has several.
            validate_only: Returns the result without storing it.
        """
        result = self._run(studies.reaccount_study(self._message, privacy, metric, validate_only))
        if not validate_only:
            self._keep(self._run(studies.get_study(self.name)))
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

        The worker keeps the trial as long as its lease is renewed: by `Trial.report`, and in
        the background within ``with trial:``.

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
        trials = self.ask_many(1, worker_id, fixed=fixed, at_most=at_most, timeout=timeout)
        return trials[0]

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
        condition = trials.condition(self._message, fixed, at_most)
        worker = self._transport.worker_id if worker_id is None else worker_id
        resume = worker_id is not None
        return self._ask(trials.ask(self.name, worker, resume, count, condition, timeout), None)

    def _ask_until(self, worker_id: str, timeout: float | None, stopping: runtime.Event) -> Trial:
        """Asks for a trial; raises `Stopped` if the event is set while it waits."""
        asking = trials.ask(self.name, worker_id, True, 1, None, timeout)
        return (self._ask(asking, stopping))[0]

    def _ask(
        self, operation: Operation[list[trial_pb2.Trial]], stopping: runtime.Event | None
    ) -> list[Trial]:
        messages = runtime.received(self._transport, operation, stopping, self._give_back)
        return [Trial(self._transport, m, self._info) for m in messages]

    def _give_back(self, messages: list[trial_pb2.Trial]) -> None:
        for message in messages:
            with suppress(errors.DParetoError):
                trial = Trial(self._transport, message, self._info)
                trial._give_back("nobody waits for it any more")

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
    ) -> TrialInfo:
        """Queues a configuration, or another run of a trial, for the next worker that asks.

        Args:
            params: A value for every parameter whose condition holds.
            replicate_of: Number of the trial to run again, instead of ``params``.
            user_attrs: Kept with the trial (see `Trial.set_user_attr`).
            skip_if_exists: Returns the first trial with the same ``params``, if there is one,
                in any state, instead of another one.
        """
        return self._run(
            trials.create_trial(
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
    ) -> TrialInfo:
        """Adds a trial that was run elsewhere, with its results.

        Set ``seeded`` if somebody knows the seed of the run: no ε holds for it.
        """
        return self._run(
            trials.create_trial(self._message, params, metrics, None, note, seeded, user_attrs)
        )

    def stop_trial(self, number: int, reason: str = "") -> None:
        """Asks the worker that holds a trial to complete it with what it has."""
        self._run(trials.stop_trial(self.name, number, reason))

    def delete_trial(self, number: int) -> None:
        """Deletes a trial that no worker holds. Its privacy cost stays in the ledger."""
        self._run(trials.delete_trial(self.name, number))

    def optimize(
        self,
        objective: Objective,
        *,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        executor: Executor | None = None,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        callbacks: Iterable[Callable[[Study, TrialInfo], object]] = (),
        progress: bool | None = None,
    ) -> int:
        """Runs trials until the study hands out no more.

        ``objective(trial)`` trains a configuration and returns its results, as a dict by metric id.
        A number will do if the study has one reported metric. So will a tuple with a number for
        each objective, in the study's order, if workers report all of them. None stands for the
        last reported measurement. The values of several runs are `Runs`.

        `Infeasible`, a result that is not finite, and the exceptions in ``catch`` end the trial as
        infeasible: the model learns to avoid such configurations, and the search continues. Any
        other exception is a mistake in the program or a failure of the machine. The trial goes back
        to the queue, the model ignores it, and the exception propagates. The same holds for Ctrl-C,
        and for SIGTERM, which announces that a machine is taken away: in the main thread, and
        unless the program handles it itself, it raises SystemExit.

        If it runs nothing, or less than ``n_trials``, because the study is done, a warning says
        why and what to do. While the study is paused, it waits.

        Args:
            objective: Called for ``n_jobs`` trials concurrently: in threads, or by the client for
                asyncio in tasks. (Python runs one of them at a time, except in numpy, PyTorch
                and the like. For more, start the program several times: all share the study.)
            n_trials: Number of trials after which to end, unless the study ends first.
            timeout: Seconds after which no further trial starts. Those that run end normally.
            n_jobs: Number of concurrent trials; -1 means one for every core.
            executor: Runs the trials, instead of threads or tasks of this process: a
                ``concurrent.futures.ProcessPoolExecutor``, or anything with its ``submit``. A
                trial goes back to the queue, as one of its attempts, if its worker dies.
                ``objective`` is then a plain function, and gets a `dpfront.Trial`.
            catch: Exceptions of ``objective`` that the configuration causes, such as
                ``torch.cuda.OutOfMemoryError``. Errors of this package are not caught.
            callbacks: Called as ``callback(study, trial)`` with a `TrialInfo` after every trial
                that this search ran, where it ran. An exception ends the search. With
                asyncio it may be a coroutine function.
            progress: Whether to show a bar; by default on terminals and in notebooks.

        Returns:
            Number of trials that were run.
        """
        search = Search(
            self, objective, n_trials, timeout, n_jobs, executor, catch, callbacks, progress
        )
        self._searches.add(search)
        try:
            return search.run()
        finally:
            self._searches.discard(search)

    # --- publishing

    def release_best(
        self,
        metric: str,
        *,
        at_most: Mapping[str, float] | None = None,
        epsilon: float | None = None,
        kusner: Mapping[str, Any] | None = None,
        request_id: str = "",
    ) -> Release:
        """Publishes the best configuration by a metric, under bounds of computed ones.

        ``release.best`` is the configuration. With private_mode or random_stopping it costs nothing
        more. It costs ``epsilon``, charged to the test_ledger, if the configurations were fixed
        before any result was seen ("quasi_random", "random", "grid") and all trials have ended.
        Other studies release nothing but by ``kusner``.

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
            releases.release_best(self.name, metric, at_most, epsilon, kusner, request_id)
        )

    def release_front(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        request_id: str = "",
    ) -> Release:
        """Publishes the front: configurations with noisy values, smoothed by a model.

        With private_mode it costs nothing more; with configurations fixed beforehand it costs
        (epsilon, delta), charged to the study's test_ledger. ``request_id`` and errors are as
        for `release_best`. ``release.points`` are the points.
        """
        return self._run(releases.release_front(self.name, epsilon, delta, request_id))


class Search(SearchBase):
    """The loop of `Study.optimize`."""

    def __init__(
        self,
        study: Study,
        objective: Objective,
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        executor: Executor | None,
        catch: type[Exception] | tuple[type[Exception], ...],
        callbacks: Iterable[Callable[[Study, TrialInfo], object]],
        progress: bool | None,
    ) -> None:
        super().__init__(n_trials, timeout, n_jobs, catch, progress)
        self.study = study
        self.objective = objective
        self.callbacks = tuple(callbacks)
        self.lock = threading.Lock()  # never held during a call
        self.stopping = runtime.Event()
        self.held: set[Trial] = set()
        self.dispatch = None if executor is None else Dispatch(study, executor, self.jobs)

    def run(self) -> int:
        info = self.study.info() if self.n_trials is None else None
        with exits_on_sigterm(), self.open_bar(info):
            # Use separate ids, so that trials that the process asked for elsewhere stay
            # untouched.
            base = new_worker_id()
            jobs = [partial(self.work, f"{base}-{k}") for k in range(self.jobs)]
            try:
                runtime.run_all(jobs, self.stopping)
            except BaseException:
                # Threads cannot be interrupted. Release their trials now, for other workers.
                self.stopping.set()
                with self.lock:
                    held = list(self.held)
                if self.dispatch is not None:
                    self.dispatch.cancel()
                for trial in held:
                    with suppress(errors.DParetoError):
                        trial._give_back("interrupted")
                raise
        if done := self.cut_short():
            self.warn(done, self.study.info())
        return self.ended

    def work(self, worker_id: str) -> None:
        while not self.stopping.is_set():
            with self.lock:
                if not self.take():
                    return
            try:
                trial = self.study._ask_until(worker_id, self.left(), self.stopping)
            except errors.StudyDone as done:
                self.done = done
                return
            except (Stopped, TimeoutError):
                return
            with self.lock:
                self.held.add(trial)
            try:
                if self.stopping.is_set():  # since it was asked for
                    with suppress(errors.DParetoError):
                        trial._give_back("the search has ended")
                    return
                ended = self.one(trial)
            finally:
                with self.lock:
                    self.held.discard(trial)
            if not ended:
                continue
            if self.callbacks and trial._lost is None:
                info = self.study.get_trial(trial.number)
                for callback in self.callbacks:
                    runtime.answered(callback(self.study, info))

    def one(self, trial: Trial) -> bool:
        """Runs a trial, and reports whether it ended."""
        infeasible: errors.Infeasible | None = None
        if self.dispatch is None:
            with suppress(errors.LeaseLost):  # another worker has the trial
                infeasible = run_trial(trial, self.objective, self.catch)
        else:
            ending = self.dispatch.run(trial, self.objective, self.catch)
            if ending is None:
                with self.lock:
                    self.started -= 1
                return False
            infeasible = ending.infeasible
        if infeasible is not None:
            self.warn_not_finite(trial.name, infeasible)
        with self.lock:
            self.count(infeasible is not None)
        return True
