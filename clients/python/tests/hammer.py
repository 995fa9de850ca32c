"""A worker process of the tests that hammer a server.

    python hammer.py ADDRESS STUDY SECONDS

asks and tells for some seconds, and writes a line for each trial that it was told is done.
"""

from __future__ import annotations

import logging
import sys
import time

import dpfront


def main(address: str, study_id: str, seconds: float) -> None:
    logging.getLogger("dpfront").setLevel(logging.ERROR)
    end = time.monotonic() + seconds
    with dpfront.Client(address) as client:
        study = client.study(study_id)
        while time.monotonic() < end:
            try:
                with study.trial() as trial:
                    error = trial["learning_rate"] / 2
                    trial.report(1, error=error)
                    trial.tell(error=error)
            except dpfront.LeaseLost:
                continue
            print(trial.number, error.hex(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
