"""DPSearchCV with an estimator of the test's own, in the place of those of diffprivlib."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("sklearn")

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import dpfront
from dpfront import Float, PrivacyMismatch
from dpfront.integrations.sklearn import DPSearchCV


class Threshold(ClassifierMixin, BaseEstimator):
    """Counts the labels above and below zero, with Laplace noise on both: ε of one fit."""

    def __init__(self, epsilon: float = 1.0, delta: float = 0.0, wrong: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.wrong = wrong

    def fit(self, x: Any, y: Any) -> Threshold:
        above = x[:, 0] > 0
        # One exchanged record moves both counts together by 2 at most.
        noise = np.random.default_rng(1).laplace(0, 2 / self.epsilon, 2)
        counts = np.array([(2 * y[above] - 1).sum(), (2 * y[~above] - 1).sum()]) + noise
        self.classes_, self.signs_ = np.array([0, 1]), counts > 0
        if self.wrong:
            self.epsilon *= 2
        return self

    def predict(self, x: Any) -> Any:
        above, below = self.signs_
        return np.where(x[:, 0] > 0, above, below).astype(int)


def records(seed: int = 1) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).uniform(-1, 1, (60, 2))
    return x, (x[:, 0] > 0).astype(int)


def search(client: dpfront.Client, estimator: Any = None, **options: Any) -> DPSearchCV:
    space = [Float("epsilon", 0.01, 10, log=True)]
    fields = {"algorithm": "random", "seed": 1}
    options = {"n_trials": 6, "cv": 3, "study_options": fields, **options}
    return DPSearchCV(estimator or Threshold(), space, client=client, **options)


def test_cross_validation_gives_no_epsilon(client: dpfront.Client) -> None:
    found = search(client).fit(*records())
    results = found.cv_results_
    assert len(results["params"]) == len(results["split2_test_score"]) == 6
    assert results["rank_test_score"][found.best_index_] == 1
    assert found.best_estimator_.epsilon == found.best_epsilon_ == found.best_params_["epsilon"]
    assert found.score(*records()) == pytest.approx(found.score(*records()))
    assert list(found.classes_) == [0, 1]
    assert found.search_epsilon_ == math.inf
    # No configuration of the front is dominated, and every other one is.
    pairs = list(zip(results["epsilon"], results["mean_test_score"], strict=True))
    for k, (spent, score) in enumerate(pairs):
        dominated = any(e <= spent and s >= score and (e, s) != (spent, score) for e, s in pairs)
        assert results["on_front"][k] == (not dominated)


def test_public_records(client: dpfront.Client) -> None:
    found = search(client, max_epsilon=1.0).fit(*records(), public=records(2))
    spent = found.cv_results_["epsilon"]
    assert found.best_epsilon_ <= 1
    assert max(spent) <= found.search_epsilon_ <= sum(spent) * (1 + 1e-9)
    assert "All 6 trainings together" in found.search_statement_
    with pytest.raises(ValueError, match=r"max_epsilon: no configuration .* at most 0\.001"):
        search(client, max_epsilon=1e-3).fit(*records())


@pytest.mark.parametrize("estimator", [Threshold(wrong=True), Threshold(delta=1e-3)])
def test_other_guarantees(client: dpfront.Client, estimator: Threshold) -> None:
    with pytest.raises(PrivacyMismatch) as caught:
        search(client, estimator).fit(*records())
    assert caught.value.what == ("epsilon" if estimator.wrong else "delta")
