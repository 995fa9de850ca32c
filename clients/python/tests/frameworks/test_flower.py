"""The strategy in Flower's local simulation, and with a grid of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import dpfront

from .mistakes import DELTA, MISTAKES, check, make_study, marks

pytestmark = marks("flwr", "ray")
CLIENTS, CONFIGURATION = 20, {"sigma": 1.0, "batch_size": 10, "epochs": 2}
PRIVACY: dict[str, Any] = {
    "clients": CLIENTS,
    "clients_per_round": "batch_size",
    "noise_multiplier": "sigma",
    "rounds": "epochs",
    "delta": DELTA,
}


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower sets in a process of a run, and messages have."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def study_of(client: dpfront.Client) -> dpfront.Study:
    from dpfront.integrations.flower import flower_privacy

    return make_study(client, flower_privacy(**PRIVACY))


class Grid:
    """A stand-in for the network: clients answer at once, by adding one to the model."""

    def __init__(self, clients: int = CLIENTS) -> None:
        self.clients = clients
        self.asked: list[int] = []

    def get_node_ids(self) -> list[int]:
        return list(range(self.clients))

    def send_and_receive(self, messages: Any, timeout: float | None = None) -> list[Any]:
        from flwr.app import Array, ArrayRecord, RecordDict

        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            self.asked.append(node)
            (model,) = message.content["arrays"].to_numpy_ndarrays()
            content = RecordDict({"arrays": ArrayRecord({"w": Array(model + 1)})})
            error = node == 3  # a client that always fails
            replies.append(
                SimpleNamespace(
                    content=content,
                    has_error=lambda error=error: error,
                    metadata=SimpleNamespace(src_node_id=node),
                )
            )
        return replies


def start(trial: dpfront.Trial, mistake: str | None, grid: Any = None) -> Any:
    import numpy as np
    from flwr.app import Array, ArrayRecord, MetricRecord
    from flwr.serverapp.strategy import FedAvg

    from dpfront.integrations.flower import TrialStrategy

    class Wrong(TrialStrategy):
        """Draws clients as Flower does."""

        configure_train = FedAvg.configure_train

    kind = Wrong if mistake == "sampler" else TrialStrategy
    strategy = kind(
        trial,
        clients=CLIENTS,
        clients_per_round=trial["batch_size"] // (2 if mistake == "batch size" else 1),
        noise_multiplier=trial["sigma"] * (0.5 if mistake == "noise" else 1),
        clipping_norm=1.0,
    )

    def evaluate(number: int, arrays: Any) -> Any:
        (w,) = arrays.to_numpy_ndarrays()
        metrics = {"accuracy": float(1 / (1 + np.exp(-w.mean())))}
        return MetricRecord(metrics | ({"epsilon": 0.01} if mistake == "delta" else {}))

    return strategy.start(
        grid or Grid(),
        ArrayRecord({"w": Array(np.zeros(100, np.float32))}),
        num_rounds=trial["epochs"] + (mistake == "steps"),
        evaluate_fn=evaluate,
    )


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes(client: dpfront.Client, mistake: str | None) -> None:
    study = study_of(client)
    check(study, mistake, start, CONFIGURATION)


def test_clipping_and_noise(client: dpfront.Client) -> None:
    """The step is the sum of clipped updates, plus noise, divided by the expected number."""
    import numpy as np

    trial = study_of(client).ask(fixed={**CONFIGURATION, "epochs": 1})
    grid = Grid()
    (w,) = start(trial, None, grid).arrays.to_numpy_ndarrays()
    answers = len(grid.asked) - grid.asked.count(3)
    # Every update has norm 10, and so 0.1 of it is left in each of 100 coordinates.
    deviation = 1.0 / 10
    assert abs(w.mean() - answers * 0.1 / 10) < 6 * deviation / np.sqrt(100)
    assert 0.6 * deviation < w.std() < 1.4 * deviation


def test_the_server_ends_the_rounds(client: dpfront.Client) -> None:
    study = study_of(client)
    trial = study.ask(fixed={**CONFIGURATION, "epochs": 4})
    study.stop_trial(trial.number, "enough")
    assert start(trial, None).arrays is not None
    assert study.trials()[0].raw.final_measurement.step == 1


def test_more_clients_than_accounted(client: dpfront.Client) -> None:
    trial = study_of(client).ask(fixed=CONFIGURATION)
    with pytest.raises(dpfront.PrivacyMismatch, match=r"^clients: 21 in training, 20"):
        start(trial, None, Grid(21))


def test_a_run_that_fails_gives_its_trial_up(client: dpfront.Client) -> None:
    """Flower's simulation hands no exception on."""

    class Broken(Grid):
        def send_and_receive(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("no network")

    study = study_of(client)
    trial = study.ask(fixed=CONFIGURATION)
    with pytest.raises(RuntimeError, match="no network"):
        start(trial, None, Broken())
    assert study.trials()[0].state == "queued"


def test_simulation(client: dpfront.Client) -> None:
    """Flower's own simulation, in processes of Ray."""
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    study = study_of(client)
    trial = study.ask(fixed=CONFIGURATION)
    federated, server = ClientApp(), ServerApp()

    @federated.train()
    def train(message: Any, context: Any) -> Any:
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        content = RecordDict(
            {"arrays": ArrayRecord({"w": Array(w + 1)}), "metrics": MetricRecord({"n": 1})}
        )
        return Message(content=content, reply_to=message)

    @server.main()
    def main(grid: Any, context: Any) -> None:
        start(trial, None, grid)

    run_simulation(
        server_app=server,
        client_app=federated,
        num_supernodes=CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    (info,) = study.trials()
    assert info.state == "succeeded"
    assert [m.step for m in info.raw.measurements] == [1, 2]
