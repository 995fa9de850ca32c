"""A search over private scikit-learn estimators, with the habits of ``GridSearchCV``.

    search = DPSearchCV(GaussianNB(bounds=(0, 1)), [Float("epsilon", 0.01, 10, log=True)])
    search.fit(x, y, public=(x_public, y_public))

Any estimator with a parameter that is the ε of one ``fit`` will do, such as those of IBM's
diffprivlib.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing as rows

from dpfront._sync.client import Client
from dpfront._sync.study import Study
from dpfront._sync.trial import Trial
from dpfront.errors import PrivacyMismatch
from dpfront.integrations._run import give_back
from dpfront.privacy import Privacy, RandomizedResponse
from dpfront.server import local_server
from dpfront.spec import Maximize, Parameter, epsilon

__all__ = ["DPSearchCV"]

SLACK = 1e-9  # of sums of ε in floating point
_ids = itertools.count(1)


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


class DPSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Finds the front of ε and score of an estimator.

    ``fit(x, y)`` scores every configuration by cross-validation on the private records.
    ``fit(x, y, public=(x, y))`` trains it once, on all private records, and scores it on
    public ones. Only the second has an ε as a whole: see ``search_epsilon_``.

    Args:
        estimator: An estimator whose ``fit`` has pure differential privacy (δ = 0).
        parameters: The search space. Names are those of ``estimator.set_params``.
        n_trials: Number of configurations.
        epsilon: Name of the estimator's parameter that is ε of one ``fit``.
        max_epsilon: Largest ε of ``best_estimator_``; by default the highest score decides.
        scoring: As in ``GridSearchCV``, of one metric; greater is better.
        reference: The worst score of interest.
        cv: As in ``GridSearchCV``; ignored with public records.
        delta: δ at which the trainings of the whole search are composed.
        refit: Whether to train ``best_estimator_`` on all records after cross-validation. With
            public records it is the one that was scored.
        client: Connection to a server; by default one is started for the search.
        study_options: Other fields of the study, such as ``algorithm`` and ``seed``.

    Attributes:
        cv_results_: Arrays by name as in ``GridSearchCV``, and ``epsilon`` and ``on_front``.
        best_index_, best_params_, best_score_, best_estimator_: As in ``GridSearchCV``.
        best_epsilon_: ε of the training of ``best_estimator_`` alone. It is the guarantee of that
            model only if its configuration was fixed before the search.
        search_epsilon_: ε of all trainings of the search together, at ``delta``: it bounds the
            privacy loss of ``best_estimator_`` and everything in ``cv_results_``, looked at after
            the search. Infinite after cross-validation: scores are exact functions of the
            private records they test.
        search_statement_: The same in words.
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Sequence[Parameter],
        *,
        n_trials: int = 32,
        epsilon: str = "epsilon",
        max_epsilon: float | None = None,
        scoring: Any = None,
        reference: float = 0.0,
        cv: Any = None,
        delta: float = 1e-6,
        refit: bool = True,
        client: Client | None = None,
        study_options: dict[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.parameters = parameters
        self.n_trials = n_trials
        self.epsilon = epsilon
        self.max_epsilon = max_epsilon
        self.scoring = scoring
        self.reference = reference
        self.cv = cv
        self.delta = delta
        self.refit = refit
        self.client = client
        self.study_options = study_options

    def fit(self, x: Any, y: Any = None, *, public: tuple[Any, Any] | None = None) -> DPSearchCV:
        """Runs the search.

        Raises:
            PrivacyMismatch: A training spent another ε than its configuration has, or took
                bounds from the data.
        """
        nested = [
            name for name, value in self.estimator.get_params().items() if _is_estimator(value)
        ]
        if nested:
            raise TypeError(
                f"estimator: must be a single estimator, has {', '.join(nested)}: ε of its "
                "parts, and what they read of the data, would not be counted"
            )
        if self.epsilon not in [p.id for p in self.parameters]:
            raise ValueError(f"parameters: must have {self.epsilon!r}, ε of one fit")
        scorer = check_scoring(self.estimator, self.scoring)
        folds: list[Any] = [None]
        if public is None:
            cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
            folds = list(cv.split(x, y))
        tried: dict[int, dict[str, Any]] = {}

        def train(trial: Trial) -> float:
            scores, seconds = [], []
            for fold in folds:
                start = time.monotonic()
                chosen = (x, y) if fold is None else _rows(x, y, fold[0])
                model = self._train(trial.params, *chosen, trial)
                seconds.append(time.monotonic() - start)
                test = public or _rows(x, y, fold[1])
                scores.append(float(scorer(model, *test)))
            tried[trial.number] = {
                "params": trial.params,
                "scores": scores,
                "seconds": seconds,
                "model": model if public is not None else None,
            }
            return float(np.mean(scores))

        with ExitStack() as stack:
            client = self.client or stack.enter_context(local_server()).client()
            study = Study.create(
                client,
                f"dpsearch-{time.time_ns()}-{next(_ids)}",
                parameters=list(self.parameters),
                metrics=[Maximize("score", self.reference), epsilon(self._privacy(), id="privacy")],
                **(self.study_options or {}),
            )
            study.optimize(train, n_trials=self.n_trials)
            self._results([tried[n] for n in sorted(tried)])
            self._choose()
            self._price(study, public)
        if public is not None:
            self.best_estimator_ = tried[sorted(tried)[self.best_index_]]["model"]
        elif self.refit:
            self.best_estimator_ = self._train(self.best_params_, x, y)
        return self

    def _privacy(self) -> Privacy:
        # Of all mechanisms with pure ε, randomised response between two answers tells most, also
        # in compositions: Kairouz, Oh and Viswanath (2017), "The composition theorem for
        # differential privacy".
        return Privacy(RandomizedResponse(self.epsilon, 2), 0.0, "replace_one")

    def _train(self, params: dict[str, Any], x: Any, y: Any, trial: Trial | None = None) -> Any:
        model = clone(self.estimator).set_params(**params)
        own = model.get_params(deep=False)
        if (accountant := own.get("accountant")) is not None:
            model.set_params(accountant=type(accountant)())  # diffprivlib's; else one for all
        if trial is not None and own.get("random_state") is not None:
            trial.seeded = True
        with _checked(trial):
            model.fit(x, y)
            self._check(model, params[self.epsilon])
        return model

    def _check(self, model: Any, planned: float) -> None:
        own = model.get_params()
        spent, delta = own.get(self.epsilon, math.nan), own.get("delta") or 0
        if hasattr(own.get("accountant"), "total"):
            spent, delta = own["accountant"].total()
        if not math.isclose(spent, planned, rel_tol=SLACK):
            raise PrivacyMismatch(
                self.epsilon, spent, planned, "let fit spend the parameter, once and whole"
            )
        if delta > 0:
            raise PrivacyMismatch(
                "delta", f"{delta:g}", 0, "DPSearchCV takes estimators with pure ε"
            )

    def _results(self, tried: list[dict[str, Any]]) -> None:
        scores = np.array([run["scores"] for run in tried])
        seconds = np.array([run["seconds"] for run in tried])
        spent = np.array([run["params"][self.epsilon] for run in tried], dtype=float)
        mean = scores.mean(axis=1)
        better = (spent[:, None] <= spent) & (mean[:, None] >= mean)
        better &= (spent[:, None] < spent) | (mean[:, None] > mean)
        self.cv_results_: dict[str, Any] = {
            "params": [run["params"] for run in tried],
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": 1 + (mean[:, None] > mean).sum(axis=0),
            "mean_fit_time": seconds.mean(axis=1),
            "epsilon": spent,
            "on_front": ~better.any(axis=0),
        }
        self.cv_results_ |= {f"split{k}_test_score": s for k, s in enumerate(scores.T)}
        for name in {key for run in tried for key in run["params"]}:
            values = [run["params"].get(name) for run in tried]
            self.cv_results_[f"param_{name}"] = np.ma.masked_array(
                np.array(values, dtype=object), [value is None for value in values]
            )

    def _choose(self) -> None:
        results, limit = self.cv_results_, self.max_epsilon
        allowed = results["epsilon"] <= (math.inf if limit is None else limit)
        if not allowed.any():
            raise ValueError(f"max_epsilon: no configuration that was run has ε of at most {limit}")
        self.best_index_ = int(np.argmax(np.where(allowed, results["mean_test_score"], -np.inf)))
        self.best_params_ = results["params"][self.best_index_]
        self.best_score_ = float(results["mean_test_score"][self.best_index_])
        self.best_epsilon_ = float(results["epsilon"][self.best_index_])

    def _price(self, study: Study, public: Any) -> None:
        alone = f"ε of the best model's training alone is {self.best_epsilon_:.4g}"
        if public is None:
            self.search_epsilon_ = math.inf
            self.search_statement_ = (
                f"{alone}. The search has no ε: it chose by scores that are exact functions of the "
                "records they test. Score on public records (fit(..., public=...)), or publish the "
                "choice by Study.release_best of a study with a test ledger."
            )
            return
        composed = study.privacy_ledger(delta=self.delta).composed
        self.search_epsilon_ = composed.epsilon
        self.search_statement_ = (
            f"{alone}, which is its guarantee only if the configuration had been fixed before. All "
            f"{len(self.cv_results_['params'])} trainings together, and so the choice among them, "
            f"have ε = {composed.epsilon:.4g} at δ = {self.delta:g}. This bounds what the search "
            "lost (ex post): a promise beforehand needs a limit fixed before the first run. "
            "The neighbours are those of the estimator. The public records have no protection."
        )

    def predict(self, x: Any) -> Any:
        """Predicts with ``best_estimator_``."""
        return self.best_estimator_.predict(x)

    def score(self, x: Any, y: Any = None) -> float:
        """Returns the score of ``best_estimator_``."""
        return float(check_scoring(self.estimator, self.scoring)(self.best_estimator_, x, y))

    @property
    def classes_(self) -> Any:
        """Classes of ``best_estimator_``."""
        return self.best_estimator_.classes_


def _rows(x: Any, y: Any, indices: Any) -> tuple[Any, Any]:
    """Returns some records."""
    return rows(x, indices), None if y is None else rows(y, indices)


@contextmanager
def _checked(trial: Trial | None) -> Iterator[None]:
    """Turns diffprivlib's warning about bounds taken from the data into a mismatch."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if warning.category.__name__ == "PrivacyLeakWarning":
                raise PrivacyMismatch(
                    "bounds", str(warning.message), "bounds that are public", "give them"
                )
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    except PrivacyMismatch as mismatch:
        if trial is not None:
            give_back(trial, mismatch)
        raise
