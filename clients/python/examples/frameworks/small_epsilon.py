"""A front of ε up to 1: larger values are worthless to this study. NumPy alone."""

from recipe import data, dp_sgd, search

from dpfront import Float, Int

X, Y = data()
X_TEST, Y_TEST = data(500, seed=2)


def train(trial):
    """Trains one configuration, and reports the accuracy of every epoch."""
    for epoch, w in enumerate(dp_sgd(trial, X, Y), 1):
        if trial.report(epoch, accuracy=float(((X_TEST @ w > 0) == Y_TEST).mean())):
            break  # the server expects nothing more of this run
    trial.tell()


if __name__ == "__main__":
    parameters = [
        Float("lr", 0.01, 1, log=True),
        Float("sigma", 1, 16, log=True),
        Int("batch_size", 16, 256, log=True),
        Int("epochs", 1, 8),
    ]
    search(train, parameters=parameters, largest_epsilon=1.0)
