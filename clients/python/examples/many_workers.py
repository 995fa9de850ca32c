"""Many workers: the trials of one study on all cores, or on a cluster.

    python examples/many_workers.py --workers 4 --plot front.png
    python examples/many_workers.py --workers 16 --on ray --server dpareto.example.org:8321

The processes of an executor train; this program asks for trials and waits. A worker that dies
costs its trial one of five attempts. If this program dies, start it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import logistic_regression

import dpfront


def executor(name: str, workers: int) -> Any:
    """Returns an executor of so many workers."""
    if name == "ray":
        from dpfront.integrations.ray import RayExecutor

        return RayExecutor(num_cpus=1)
    if name == "dask":
        from distributed import Client

        return Client(n_workers=workers, threads_per_worker=1).get_executor()
    if name == "slurm":
        import submitit

        jobs = submitit.AutoExecutor("many-workers-jobs")
        jobs.update_parameters(timeout_min=60, cpus_per_task=1)
        return jobs
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def main() -> None:
    """Runs the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--on", choices=["processes", "ray", "dask", "slurm"], default="processes")
    parser.add_argument("--plot", help="file for a picture of the front; takes matplotlib")
    parser.add_argument("--server", help="that all workers reach; by default one on this machine")
    args = parser.parse_args()
    with dpfront.Client(args.server) if args.server else dpfront.local_server().client() as client:
        study = logistic_regression.create(client, "many", max_trials=args.trials)
        pool = executor(args.on, args.workers)
        study.optimize(logistic_regression.train, n_jobs=args.workers, executor=pool)
        print(f"{study.info().trial_counts['succeeded']} of {args.trials} trials succeeded")
        if args.plot:
            study.plot_front().figure.savefig(args.plot)


if __name__ == "__main__":
    main()
