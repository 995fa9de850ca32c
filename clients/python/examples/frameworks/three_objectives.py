"""Three objectives: ε, accuracy and seconds. NumPy alone."""

import time

from recipe import data, dp_sgd, search

from dpfront import Maximize, Minimize

X, Y = data()
X_TEST, Y_TEST = data(500, seed=2)


def train(trial):
    """Trains one configuration, and reports the accuracy and the seconds of every epoch."""
    begin = time.process_time()
    for epoch, w in enumerate(dp_sgd(trial, X, Y), 1):
        accuracy = float(((X_TEST @ w > 0) == Y_TEST).mean())
        seconds = time.process_time() - begin
        if trial.report(epoch, accuracy=accuracy, seconds=seconds):
            break  # the server expects nothing more of this run
    trial.tell()


if __name__ == "__main__":
    search(train, metrics=[Maximize("accuracy", 0.5), Minimize("seconds", transform="log")])
