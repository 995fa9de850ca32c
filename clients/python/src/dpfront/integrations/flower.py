"""Federated averaging in Flower with a guarantee for users: their whole data, not one record.

    strategy = TrialStrategy(trial, clients=100, clients_per_round=trial["batch_size"],
                             noise_multiplier=trial["sigma"], clipping_norm=1.0)
    strategy.start(grid, arrays, num_rounds=trial["rounds"], evaluate_fn=evaluate)

`flower_privacy` describes the study's privacy.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MessageType, RecordDict
from flwr.serverapp.strategy import FedAvg, Result

from dpfront._convert import expression
from dpfront._sync.trial import Trial
from dpfront._trial import describe
from dpfront.errors import DParetoError
from dpfront.integrations._run import TrialRun, validation_metrics
from dpfront.privacy import DpSgd, Expression, Privacy

__all__ = ["TrialStrategy", "flower_privacy"]


def flower_privacy(
    *,
    clients: int,
    clients_per_round: Expression = "clients_per_round",
    noise_multiplier: Expression = "noise_multiplier",
    rounds: Expression = "rounds",
    delta: float,
) -> Privacy:
    """Returns the guarantee of `TrialStrategy` for one client more or less, with all its data.

    It is that of DP-SGD with clients in place of records, and one round in place of one step.
    The number of clients is public.
    """
    drawn = expression(clients_per_round, "clients_per_round")
    mechanism = DpSgd(
        "poisson",
        clients,
        None,
        noise_multiplier,
        steps=rounds,
        sampling_probability=f"double({drawn}) / double({clients})",
    )
    return Privacy(mechanism, delta, "add_remove")


class TrialStrategy(FedAvg):
    """A Flower strategy: federated averaging of clipped updates with noise, for one trial.

    Every round draws each client independently with probability ``clients_per_round / clients``,
    and clips the change of the model that each sends to ``clipping_norm``. It adds Gaussian noise
    of ``noise_multiplier`` times that norm to their sum, and divides it by ``clients_per_round``. A
    client that fails contributes nothing. Metrics that clients send have no noise, and are dropped.

    ``start`` compares all of it with the trial. After every round it reports ``evaluate_fn``, which
    the server calls on its data. It ends early when the server of the study expects nothing more,
    and ends the trial. ``metrics`` has the names of its values by the study's.

    McMahan et al. (2018), "Learning differentially private recurrent language models".
    """

    def __init__(
        self,
        trial: Trial,
        *,
        clients: int,
        clients_per_round: int,
        noise_multiplier: float,
        clipping_norm: float,
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(fraction_evaluate=0.0, min_available_nodes=clients)
        self.clients = clients
        self.clients_per_round = clients_per_round
        self.clipping_norm = clipping_norm
        self.noise_multiplier = noise_multiplier
        self.metrics = metrics
        self.run = TrialRun(trial, "TrialStrategy")
        self.drawn: set[int] | None = None
        self.arrays: Any = None

    def start(self, grid: Any, initial_arrays: Any, num_rounds: int = 3, **options: Any) -> Any:
        """Runs the rounds of the trial.

        Raises:
            PrivacyMismatch: Training and study differ. The trial is given back.
        """
        run, evaluate = self.run, options.get("evaluate_fn")
        if evaluate is None:
            raise ValueError("evaluate_fn: must be given, to report on data of the server")
        # A fraction would be rounded up in the draw, and not in the accounting.
        drawn = self.clients_per_round
        if drawn != int(drawn) or not 1 <= drawn <= self.clients:
            raise ValueError(
                f"clients_per_round: must be a whole number from 1 to {self.clients}, is {drawn:g}"
            )
        if (known := run.plans[0].records) not in (None, self.clients):
            run.fail("clients", self.clients, known, "account for as many users as there are")
        run.check_sampler("TrialStrategy", self.clients_per_round / self.clients)
        run.check_noise(self.noise_multiplier)
        if num_rounds != run.planned_steps():
            run.fail("steps", num_rounds, run.planned_steps(), "run the trial's number of rounds")
        result = Result()
        options["evaluate_fn"] = self._reporting(evaluate, result)
        try:
            result = super().start(grid, initial_arrays, num_rounds, **options)
        except _Stop:
            result.arrays = self.arrays
        except Exception as error:
            # Flower's simulation does not hand exceptions on: the trial must not stay with nobody.
            if not run.trial.ended:
                with suppress(DParetoError):
                    run.trial.fail(describe(error))
            raise
        run.end()
        return result

    def _reporting(self, evaluate: Callable[..., Any], result: Any) -> Callable[..., Any]:
        def evaluate_fn(number: int, arrays: Any) -> Any:
            record = evaluate(number, arrays)
            if number > 0:
                result.evaluate_metrics_serverapp[number] = record
                values = validation_metrics(
                    self.run.trial, dict(record), self.metrics, held_out=True
                )
                if self.run.report(values):
                    self.arrays = arrays
                    raise _Stop
            return record

        return evaluate_fn

    def configure_train(
        self, server_round: int, arrays: Any, config: Any, grid: Any
    ) -> Iterable[Any]:
        """Draws the clients of a round."""
        nodes = list(grid.get_node_ids())
        while len(nodes) < self.clients:  # they connect one after the other
            _wait()
            nodes = list(grid.get_node_ids())
        if len(nodes) > self.clients:
            self.run.fail("clients", len(nodes), self.clients, "connect as many as are accounted")
        source = secrets.SystemRandom()
        chosen = [n for n in nodes if source.randrange(self.clients) < self.clients_per_round]
        self.arrays, self.drawn = arrays, set(chosen)
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        messages: Iterable[Any] = self._construct_messages(record, chosen, MessageType.TRAIN)
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, None]:
        """Adds up the clipped updates of the drawn clients, and noise."""
        received = [reply for reply in replies if not reply.has_error()]
        senders = [reply.metadata.src_node_id for reply in received]
        if self.drawn is None or not set(senders) <= self.drawn or len(set(senders)) < len(senders):
            self.run.fail(
                "sampler",
                "updates of other clients",
                "one of each client that configure_train drew",
                "leave configure_train as it is",
            )
        self.drawn = None
        names, before = list(self.arrays), self.arrays.to_numpy_ndarrays()
        total = [np.zeros(x.shape) for x in before]
        for reply in received:
            after = reply.content[self.arrayrecord_key].to_numpy_ndarrays()
            change = [a.astype(float) - b for a, b in zip(after, before, strict=True)]
            norm = float(np.sqrt(sum(float((x**2).sum()) for x in change)))
            if not np.isfinite(norm):
                continue  # a client must not be able to break a round
            for sum_of, x in zip(total, change, strict=True):
                sum_of += x * min(1.0, self.clipping_norm / max(norm, 1e-12))
        source, deviation = np.random.default_rng(), self.noise_multiplier * self.clipping_norm
        noisy = [
            x + (s + source.normal(0, deviation, x.shape)) / self.clients_per_round
            for x, s in zip(before, total, strict=True)
        ]
        self.run.step()
        made = (Array(y.astype(x.dtype)) for x, y in zip(before, noisy, strict=True))
        return ArrayRecord(dict(zip(names, made, strict=True))), None

    def configure_evaluate(
        self, server_round: int, arrays: Any, config: Any, grid: Any
    ) -> Iterable[Any]:
        """Asks no client: its answer would have no noise."""
        return []


class _Stop(Exception):
    """Ends the rounds early."""


def _wait() -> None:
    import time

    time.sleep(0.2)
