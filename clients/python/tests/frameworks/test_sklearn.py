"""DPSearchCV with estimators of diffprivlib."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import dpfront
from dpfront import Float, Int, PrivacyMismatch

from .mistakes import marks

pytestmark = marks("diffprivlib", "sklearn")
SPACE = [Float("epsilon", 0.05, 20, log=True)]
OPTIONS = {"algorithm": "random", "seed": 1}


def records(count: int = 200, seed: int = 1) -> tuple[Any, Any]:
    import numpy as np

    x = np.random.default_rng(seed).uniform(-1, 1, (count, 3))
    return x, (x[:, 0] > 0).astype(int)


def estimator(**options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from diffprivlib.models import GaussianNB
    return GaussianNB(**{"bounds": (-1, 1), **options})


def search(client: dpfront.Client, model: Any, **options: Any) -> Any:
    from dpfront.integrations.sklearn import DPSearchCV

    options = {"n_trials": 8, "study_options": OPTIONS, **options}
    return DPSearchCV(model, options.pop("parameters", SPACE), client=client, **options)


def test_cross_validation(client: dpfront.Client) -> None:
    x, y = records()
    found = search(client, estimator(), cv=4).fit(x, y)
    results = found.cv_results_
    assert len(results["params"]) == 8
    assert {f"split{k}_test_score" for k in range(4)} < set(results)
    assert results["rank_test_score"][found.best_index_] == 1
    assert found.best_score_ == max(results["mean_test_score"])
    assert found.best_estimator_.epsilon == found.best_epsilon_
    assert found.predict(x).shape == y.shape
    assert found.score(x, y) > 0.5
    assert 1 <= results["on_front"].sum() <= 8
    assert found.search_epsilon_ == math.inf
    assert "has no ε" in found.search_statement_


def test_public_records_give_the_search_an_epsilon(client: dpfront.Client) -> None:
    x, y = records()
    found = search(client, estimator()).fit(x, y, public=records(100, 2))
    total = sum(found.cv_results_["epsilon"])
    assert max(found.cv_results_["epsilon"]) <= found.search_epsilon_ <= total + 1e-9
    assert found.best_estimator_.epsilon == found.best_epsilon_ < found.search_epsilon_
    limited = search(client, estimator(), max_epsilon=1.0).fit(x, y, public=records(100, 2))
    assert limited.best_epsilon_ <= 1


def test_a_server_of_its_own_and_another_parameter(
    binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffprivlib.models import RandomForestClassifier

    monkeypatch.setenv("DPARETO_BINARY", binary)
    forest = RandomForestClassifier(bounds=(-1, 1), classes=[0, 1], n_estimators=2)
    found = search(None, forest, n_trials=3, parameters=[*SPACE, Int("max_depth", 1, 4)])  # type: ignore[arg-type]
    found.fit(*records(), public=records(100, 2))
    assert all(p["max_depth"] in range(1, 5) for p in found.cv_results_["params"])


def test_the_habits_of_scikit_learn(client: dpfront.Client) -> None:
    from sklearn.base import clone

    found = search(client, estimator())
    assert clone(found).get_params()["n_trials"] == 8
    assert found.set_params(estimator__priors=[0.5, 0.5]).estimator.priors == [0.5, 0.5]
    with pytest.raises(ValueError, match="parameters: must have 'epsilon'"):
        search(client, estimator(), parameters=[Float("bounds", 0, 1)]).fit(*records())


@pytest.mark.parametrize("mistake", ["noise", "steps", "delta", "bounds"])
def test_mistakes(client: dpfront.Client, mistake: str) -> None:
    """These estimators have neither a sampler nor batches."""
    base = type(estimator())

    class Wrong(base):  # type: ignore[misc, valid-type]
        def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
            if mistake == "noise":
                self.epsilon *= 2
            if mistake == "delta":
                self.accountant.spend(0, 1e-3)
            if mistake == "steps":
                super().fit(x, y)
            return super().fit(x, y)

    model = Wrong(bounds=None if mistake == "bounds" else (-1, 1))
    with pytest.raises(PrivacyMismatch) as caught:
        search(client, model).fit(*records())
    expected = {"noise": "epsilon", "steps": "epsilon"}.get(mistake, mistake)
    assert caught.value.what == expected
