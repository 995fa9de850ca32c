"""Private synthetic data by MST of smartnoise-synth; what counts is a model trained on it."""

import warnings

import numpy as np
import pandas as pd
from recipe import DELTA, data, search
from sklearn.linear_model import LogisticRegression
from snsynth import Synthesizer
from snsynth.utils import cdp_rho

from dpfront import Float, Infeasible, Privacy
from dpfront.privacy import ZeroConcentrated

warnings.simplefilter("ignore")
COLUMNS = [*"abcdefgh", "label"]


def table(records, seed):
    """Returns records whose numbers are rounded to one of five, by public bounds."""
    x, y = data(records, seed)
    return pd.DataFrame(np.column_stack([np.digitize(x, [-1, -0.3, 0.3, 1]), y]), columns=COLUMNS)


def epsilon_of(rho):
    """Returns ε that MST, which turns ε and δ into zero-concentrated privacy, spends as ρ."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cdp_rho(middle, DELTA) <= rho else (low, middle)
    return low


def train(trial):
    """Makes synthetic data, and returns the accuracy of a model of it on real records."""
    synthesizer = Synthesizer.create("mst", epsilon=epsilon_of(trial["rho"]), delta=DELTA)
    made = synthesizer.fit_sample(table(1000, 1), categorical_columns=COLUMNS, preprocessor_eps=0.0)
    made = pd.DataFrame(np.asarray(made), columns=COLUMNS)
    if made["label"].nunique() < 2:
        raise Infeasible("the synthetic records have one label")
    model = LogisticRegression().fit(made[COLUMNS[:-1]], made["label"])
    test = table(500, 2)
    return float(model.score(test[COLUMNS[:-1]], test["label"]))


if __name__ == "__main__":
    privacy = Privacy(ZeroConcentrated("rho"), DELTA, "add_remove")
    search(train, privacy, [Float("rho", 1e-3, 1, log=True)])
