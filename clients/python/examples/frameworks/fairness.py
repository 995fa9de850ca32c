"""Fairness: ε, accuracy, and the gap of a minority's true positive rate. NumPy alone."""

from recipe import data, dp_sgd, search

from dpfront import Maximize, Minimize


def people(records, seed):
    """Returns records, labels, and who is in the minority, whose labels have another rule."""
    x, y = data(records, seed)
    minority = x[:, 7] > 1
    y[minority] = x[minority, 1:4].sum(axis=1) > 0
    return x, y, minority


X, Y, _ = people(1000, seed=1)
X_TEST, Y_TEST, MINORITY = people(2000, seed=2)


def train(trial):
    """Trains one configuration, and reports the accuracy and the gap of every epoch."""
    for epoch, w in enumerate(dp_sgd(trial, X, Y), 1):
        found = X_TEST @ w > 0
        rates = [found[(Y_TEST == 1) & group].mean() for group in (MINORITY, ~MINORITY)]
        accuracy, gap = float((found == Y_TEST).mean()), float(abs(rates[0] - rates[1]))
        if trial.report(epoch, accuracy=accuracy, gap=gap):
            break  # the server expects nothing more of this run
    trial.tell()


if __name__ == "__main__":
    search(train, metrics=[Maximize("accuracy", 0.5), Minimize("gap")])
