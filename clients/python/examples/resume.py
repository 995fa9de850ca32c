"""Resume after a crash: start it again, and it continues where it was.

    python examples/resume.py --crash-at 3    # dies in its third trial, as without power
    python examples/resume.py --plot front.png

The study and its results are in the file of the server. The trial that was running is given to
the next worker that asks when its lease has run out, here after five seconds, and runs again
from its beginning. Nothing of the dead run is lost, and nothing counts twice.
"""

from __future__ import annotations

import argparse
import os
from datetime import timedelta

import logistic_regression

import dpfront


def main() -> None:
    """Runs the study to its end, or to the crash."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", default="resume.db", help="file of the server")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--crash-at", type=int, default=0, metavar="TRIAL")
    parser.add_argument("--plot", help="file for a picture of the front; takes matplotlib")
    args = parser.parse_args()

    def train(trial: dpfront.Trial) -> None:
        if trial.number == args.crash_at:
            os._exit(1)
        print(f"trial {trial.number}, attempt {trial.attempt}", flush=True)
        logistic_regression.train(trial)

    with dpfront.local_server(args.store) as server, server.client() as client:
        # Creating a study that exists with an equal spec loads it.
        study = logistic_regression.create(
            client, "resume", max_trials=args.trials, lease=timedelta(seconds=5)
        )
        study.optimize(train)
        print(f"{study.info().trial_counts['succeeded']} of {args.trials} trials succeeded")
        if args.plot:
            study.plot_front().figure.savefig(args.plot)


if __name__ == "__main__":
    main()
