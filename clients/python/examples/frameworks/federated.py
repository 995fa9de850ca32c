"""Federated learning in Flower's simulation: ε protects a client with all its data."""

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from recipe import DELTA, data, search

from dpfront import Float, Int
from dpfront.integrations.flower import TrialStrategy, flower_privacy

CLIENTS = 20
client = ClientApp()


@client.train()
def update(message, context):
    """Makes a few steps of logistic regression on the client's own 50 records."""
    (w,) = message.content["arrays"].to_numpy_ndarrays()
    x, y = data(50, seed=int(context.node_config["partition-id"]) + 10)
    for _ in range(20):
        w = w - 0.5 * x.T @ (1 / (1 + np.exp(-x @ w)) - y) / len(y)
    arrays = ArrayRecord({"w": Array(w.astype(np.float32))})
    return Message(RecordDict({"arrays": arrays}), reply_to=message)


def evaluate(_, arrays):
    """Returns the accuracy on records of the server."""
    x, y = data(500, seed=2)
    (w,) = arrays.to_numpy_ndarrays()
    return MetricRecord({"accuracy": float(((x @ w > 0) == y).mean())})


def train(trial):
    """Trains one configuration."""
    server = ServerApp()

    @server.main()
    def main(grid, _):
        strategy = TrialStrategy(  # the line
            trial,
            clients=CLIENTS,
            clients_per_round=trial["clients_per_round"],
            noise_multiplier=trial["noise_multiplier"],
            clipping_norm=1.0,
        )
        start = ArrayRecord({"w": Array(np.zeros(8, np.float32))})
        strategy.start(grid, start, trial["rounds"], evaluate_fn=evaluate)

    run_simulation(server, client, CLIENTS)


if __name__ == "__main__":
    space = [Int("clients_per_round", 5, 20), Float("noise_multiplier", 1, 4, log=True)]
    privacy = flower_privacy(clients=CLIENTS, delta=DELTA)
    search(train, privacy, [*space, Int("rounds", 1, 3)], checkpoint="rounds")
