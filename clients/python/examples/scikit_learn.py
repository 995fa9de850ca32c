"""Private logistic regression with scikit-learn, by output perturbation.

    python examples/scikit_learn.py --trials 16

The model is trained as usual, and Gaussian noise is added to its weights: Algorithm 2 of Wu et
al. (2017), "Bolt-on differential privacy for scalable stochastic gradient descent-based
analytics". No optimizer has to be changed for it, but the loss must be strongly convex, and
the minimum found to a precision far below the noise.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import dpfront
from dpfront import Float, Minimize, Study, Trial
from dpfront.privacy import OutputPerturbation, Privacy

RECORDS = 15_000

x, y = make_classification(
    20_000, n_features=15, n_informative=8, flip_y=0.05, class_sep=1.5, random_state=1
)
# Every record has a norm of at most 1, by a bound that does not depend on the data. The
# constant feature takes the place of an intercept, which would not be regularised.
x = np.column_stack([x / 10, np.full(len(x), 0.5)])
x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
x_train, x_test, y_train, y_test = train_test_split(x, y, train_size=RECORDS, random_state=1)


def train(trial: Trial) -> float:
    """Trains one configuration, and returns its test error."""
    # scikit-learn minimises |w|²/2 + C Σ loss, the theory the mean of the losses + γ|w|²/2.
    model = LogisticRegression(
        C=1 / (RECORDS * trial["regularization"]), fit_intercept=False, tol=1e-8, max_iter=1000
    )
    model.fit(x_train, y_train)
    # Noise that anybody can repeat protects nothing: a model to release takes secret randomness.
    rng = np.random.default_rng(trial.number)
    trial.seeded = True
    model.coef_ += rng.normal(scale=trial["standard_deviation"], size=model.coef_.shape)
    return 1 - float(model.score(x_test, y_test))


def create(client: dpfront.Client, id: str, **fields: Any) -> Study:
    """Creates the study."""
    mechanism = OutputPerturbation(
        dataset_size=RECORDS,
        regularization="regularization",
        feature_norm=1.0,
        standard_deviation="standard_deviation",
    )
    return Study.create(
        client,
        id,
        parameters=[
            Float("regularization", 1e-4, 1, log=True),
            Float("standard_deviation", 1e-3, 3, log=True),
        ],
        metrics=[
            Minimize("error", 0.5, "logit", sample_size=len(y_test)),
            dpfront.epsilon(Privacy(mechanism, delta=1e-6, adjacency="replace_one")),
        ],
        **fields,
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs the study on a server of its own, or on one that runs already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--server", help="address of a server; without, one is started")
    parser.add_argument("--study", default="output-perturbation")
    parser.add_argument("--trials", type=int, default=16)
    args = parser.parse_args(arguments)

    server = None if args.server else dpfront.local_server()
    client = server.client() if server else dpfront.Client(args.server)
    try:
        study = create(client, args.study)
        study.optimize(train, n_trials=args.trials)
        for point in study.front():
            if point.beyond_reference:
                continue
            error, epsilon = point.values["error"], point.values["epsilon"]
            print(f"ε {epsilon.value:8.4f}  error {error.value:.4f}  {dict(point.params)}")
    finally:
        client.close()
        if server:
            server.stop()


if __name__ == "__main__":
    main()
