"""The client: a connection to a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dpfront import _convert as convert
from dpfront import privacy as p
from dpfront import spec as s
from dpfront._async.connection import AsyncConnection
from dpfront._async.study import AsyncStudy
from dpfront._operations import accounting, releases, studies
from dpfront._results.guarantees import Calibration, Guarantee, SearchPrices, Tradeoff
from dpfront._results.releases import Charge, LedgerInfo, Release
from dpfront._results.trials import StudyInfo
from dpfront.v1 import study_pb2

T = TypeVar("T")


class AsyncClient(AsyncConnection):
    """A connection to a server.

    It connects at the first call. While the server cannot be reached, calls are retried with
    growing pauses, so that a worker survives a restart of its server. Requests that are not
    idempotent carry a key, so that the server applies them once.

        async with dpfront.AsyncClient() as client:
            study = await client.study("adult")
            async with study.trial() as trial:
                await trial.tell(accuracy=0.9)

    Threads can share a blocking client, which can also be pickled and used in a forked process:
    each process connects by itself. A client for asyncio belongs to one event loop.

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

    # --- studies

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
        """Creates a study, or loads the existing one of that id if its spec is equal.

        Raises:
            AlreadyExists: The existing study's spec differs; the message names the fields.
            InvalidArgument: ``violations`` names every invalid field.
        """
        creating = studies.create_study(id, spec, display_name, description, labels, validate_only)
        return AsyncStudy(self._transport, await self._run(creating))

    async def study(self, id: str) -> AsyncStudy:
        """Loads a study.

        Raises:
            NotFound: There is no study of that id.
        """
        return await AsyncStudy.load(self, id)

    async def studies(self, filter: str = "", order_by: str = "") -> list[StudyInfo]:
        """Lists studies: ``filter="state = ACTIVE AND labels.team = vision"``."""
        return await self._run(studies.list_studies(filter, order_by))

    # --- privacy

    async def epsilon(self, privacy: p.Privacy, **params: Any) -> Guarantee:
        """Computes ε of a mechanism.

        Keyword arguments are the values of the parameters in its expressions, with the types
        that the expressions need: ``client.epsilon(privacy, noise_multiplier=1.1,
        epochs=10)``.
        """
        return (await self._run(accounting.epsilon(privacy, params, ())))[0]

    async def epsilon_curve(
        self, privacy: p.Privacy, lengths: Sequence[int], **params: Any
    ) -> list[Guarantee]:
        """Computes ε of runs of several lengths, in the unit of the mechanism's length."""
        return await self._run(accounting.epsilon(privacy, params, lengths))

    async def tradeoff(
        self, privacy: p.Privacy, fprs: Sequence[float] = (), **params: Any
    ) -> Tradeoff:
        """Computes the best attack on one record by its false positive rate: what ε means.

        Args:
            privacy: The mechanism.
            fprs: False positive rates; by default some that suffice for a picture, with 0.01
                and 0.1.
            params: Values of the parameters in its expressions, as for `epsilon`.
        """
        return await self._run(accounting.tradeoff(privacy, convert.to_values(params), fprs))

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
    ) -> SearchPrices:
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
            subset_batch_size: Records per lot on the subset; by default the same share of records.
            final_run: The run on all records after the subset; by default one like the others.
            test_records: Number of records that scores, of values in [0, 1], are averages over.
            test_noise: Standard deviation of the noise on every score.
            test_epsilon: ε of the test records for which to find the noise, instead of
                ``test_noise``.
            checkpoints: Scores of a run that are released with all its checkpoints.
            params: Values of the parameters in the expressions, as for `epsilon`.
        """
        return await self._run(
            accounting.price_search(
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
    ) -> Calibration:
        """Finds the value of a parameter in [min, max] for which ε is just below a target."""
        return await self._run(accounting.calibrate(privacy, solve_for, min, max, epsilon, params))

    async def server_version(self) -> str:
        """Returns the version of the server."""
        return await self._run(studies.server_version())

    async def page_url(self) -> str | None:
        """Returns the URL of the server's page, to be opened in a browser.

        None if the server has no page, or none that this machine can reach.
        """
        self._transport.page_url = await self._run(studies.page_url())
        return self._transport.page_url

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
    ) -> LedgerInfo:
        """Opens the ledger of a dataset: the budget of everything that will ever be published
        about it.

        Creating it again with the same arguments returns it. A ledger cannot be changed or
        deleted. ``records`` is the number of records of the dataset, which is public; half of
        ``delta`` is for composition.

        Raises:
            AlreadyExists: The ledger has another budget.
        """
        return await self._run(
            releases.create_ledger(id, records, epsilon, delta, adjacency, description)
        )

    async def ledger(self, id: str) -> LedgerInfo:
        """Reads the ledger of a dataset: its budget and spending."""
        return await self._run(releases.get_ledger(convert.ledger_name(id)))

    async def ledgers(self) -> list[LedgerInfo]:
        """Lists the ledgers of all datasets."""
        return await self._run(releases.list_ledgers())

    async def charges(self, ledger: str | LedgerInfo) -> list[Charge]:
        """Lists the charges of a ledger, oldest first."""
        return await self._run(releases.list_charges(convert.ledger_name(ledger)))

    async def select_privately(
        self,
        ledger: str | LedgerInfo,
        utilities: Sequence[float],
        sensitivity: float,
        epsilon: float,
        *,
        method: p.SelectionMethod = "permute_and_flip",
        request_id: str = "",
    ) -> Release:
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
        return await self._run(
            releases.select_privately(
                convert.ledger_name(ledger),
                utilities,
                sensitivity,
                epsilon,
                method,
                request_id,
            )
        )

    async def releases(self, ledger: str | LedgerInfo) -> list[Release]:
        """Lists the `select_privately` releases of a ledger, oldest first."""
        return await self._run(releases.list_releases(convert.ledger_name(ledger)))

    async def release(self, name: str) -> Release:
        """Reads a release by its resource name."""
        return await self._run(releases.get_release(name))
