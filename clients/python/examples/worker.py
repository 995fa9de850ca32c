"""A worker for job controllers: it trains trials of a study until the study hands out no more.

    python examples/worker.py --study logistic-regression --create 64
    python examples/worker.py --study logistic-regression

The first command makes the study, for 64 trials, and ends; the second can run any number of times
at once. On SIGTERM a worker gives its trial back and ends with exit code 143. The environment
variable DPARETO_SERVER is the address of the server. deploy/kubernetes and deploy/slurm start this
program.
"""

from __future__ import annotations

import argparse

import logistic_regression

import dpfront


def main() -> None:
    """Runs the worker."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--study", required=True, help="id of the study")
    parser.add_argument("--create", type=int, metavar="TRIALS", help="make the study, and end")
    parser.add_argument("--token-file", help="file with the token, where the server wants one")
    parser.add_argument("--ca", help="file with the authority of the server's certificate")
    args = parser.parse_args()

    tls = dpfront.TLS(ca=args.ca) if args.ca else None
    with dpfront.Client(token_file=args.token_file, tls=tls) as client:
        if args.create is not None:
            logistic_regression.create(client, args.study, max_trials=args.create)
            return
        count = client.study(args.study).optimize(logistic_regression.train)
        print(f"trials: {count}")


if __name__ == "__main__":
    main()
