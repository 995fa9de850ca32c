"""Write an Optuna study of many trials with two objectives, to compare its dashboard with the page.

    python benchmarks/optuna_dashboard_study.py sqlite:///study.db 10000

It has three parameters, and two objectives in conflict.
"""

import math
import random
import sys

import optuna


def main() -> None:
    """Writes the study: STORAGE TRIALS."""
    storage, trials = sys.argv[1], int(sys.argv[2])
    draw = random.Random(1)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(0, 1) for name in "xyz"
    }
    study = optuna.create_study(
        storage=storage, study_name="speed", directions=["minimize", "minimize"]
    )
    frozen = []
    for _ in range(trials):
        params = {name: draw.random() for name in space}
        spread = 1 + params["y"] + params["z"]
        values = [params["x"], spread * (1 - math.sqrt(params["x"] / spread))]
        frozen.append(optuna.trial.create_trial(params=params, distributions=space, values=values))
    study.add_trials(frozen)


if __name__ == "__main__":
    main()
