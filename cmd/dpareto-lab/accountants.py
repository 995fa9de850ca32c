"""Compare ε and the time of one ε with dp_accounting, jax-privacy, PLD_accounting and opake.

    pip install dp-accounting jax-privacy PLD_accounting opake-accounting
    dpareto-lab bench accountants --settings 100 | python cmd/dpareto-lab/accountants.py

Takes the rows of dpareto-lab bench accountants on standard input, and prints a table in Markdown with a row for each
sampler and library: processor milliseconds of one ε, their ratio to dpareto's at the same settings, and ε relative to
dpareto's. Each library first computes one ε that is not counted, and then as many settings as fit in --seconds.
Discretisations are the libraries' defaults. The last library may take minutes for one ε.
"""

from __future__ import annotations

import argparse
import csv
import importlib.machinery
import importlib.metadata
import importlib.util
import math
import pathlib
import sys
import time
from collections.abc import Callable

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution as plds
from jax_privacy.accounting import accountants, analysis
from PLD_accounting.random_allocation_api import gaussian_allocation_epsilon_range

Row = dict[str, float]


def load_opake():
    """Load opake's extension alone: its Python package cannot be imported by Python 3.11.7."""
    folder = pathlib.Path(dp_accounting.__file__).parents[1] / "opake/api/accounting/core"
    spec = importlib.util.spec_from_file_location(
        "opake_accounting", next(folder.glob("opake_accounting*.so"))
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


opake = load_opake()
config = opake.DiscretizationConfig()


def opake_poisson(r: Row) -> float:
    step = opake.poisson_pld(opake.gaussian_pld(r["sigma"], config), r["q"])
    return step.self_compose(int(r["runs"])).epsilon_at(r["delta"])


def opake_allocation(r: Row) -> float:
    epoch = opake.random_allocation_gaussian_pld(r["sigma"], int(r["steps"]), 1, config)
    return epoch.self_compose(int(r["epochs"])).epsilon_at(r["delta"])


def opake_truncated(r: Row) -> float:
    step = opake.truncated_poisson_gaussian_pld(
        r["sigma"], r["q"], int(r["batch"]), int(r["records"]), config
    )
    return step.self_compose(int(r["runs"])).epsilon_at(r["delta"])


def pld_allocation(r: Row) -> float:
    upper, _ = gaussian_allocation_epsilon_range(
        delta=r["delta"], sigma=r["sigma"], num_steps=int(r["steps"]), num_epochs=int(r["epochs"])
    )
    return upper


def google(event: dp_accounting.DpEvent, r: Row) -> float:
    accountant = dp_accounting.pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    return accountant.compose(event, int(r["runs"])).get_epsilon(r["delta"])


def google_poisson(r: Row) -> float:
    return google(
        dp_accounting.PoissonSampledDpEvent(r["q"], dp_accounting.GaussianDpEvent(r["sigma"])), r
    )


def google_truncated(r: Row) -> float:
    event = dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(
        int(r["records"]), r["q"], int(r["batch"]), r["sigma"]
    )
    return google(event, r)


def google_discrete_gaussian(r: Row) -> float:
    one = plds.from_discrete_gaussian_mechanism(r["sigma"], int(r["sensitivity"]))
    return one.self_compose(int(r["runs"])).get_epsilon_for_delta(r["delta"])


def google_discrete_laplace(r: Row) -> float:
    one = plds.from_discrete_laplace_mechanism(1 / r["sigma"], int(r["sensitivity"]))
    return one.self_compose(int(r["runs"])).get_epsilon_for_delta(r["delta"])


RECORDS = 10**9  # of jax-privacy, which takes sampling probabilities as batch sizes


def jax_band_mf(r: Row) -> float:
    params = analysis.DpParams(
        noise_multipliers=r["sigma"],
        num_samples=8 * RECORDS,
        delta=r["delta"],
        batch_size=round(r["q"] * RECORDS),
        cycle_length=8,
    )
    accountant = analysis.DpsgdTrainingAccountant(accountants.PldAccountantConfig())
    return accountant.compute_epsilon(8 * int(r["runs"]), params)


def jax_fixed_size(r: Row) -> float:
    params = analysis.DpParams(
        noise_multipliers=r["sigma"],
        num_samples=int(r["records"]),
        delta=r["delta"],
        batch_size=int(r["batch"]),
        sampling_method=analysis.SamplingMethod.FIXED_BATCH_SIZE,
    )
    accountant = analysis.DpsgdTrainingAccountant(accountants.PldAccountantConfig())
    return accountant.compute_epsilon(int(r["runs"]), params)


def jax_user(r: Row) -> float:
    params = analysis.DpParams(
        noise_multipliers=r["sigma"],
        num_samples=RECORDS,
        delta=r["delta"],
        batch_size=round(r["q"] * RECORDS),
        examples_per_user=int(r["users"]),
    )
    accountant = analysis.DpsgdTrainingUserLevelAccountant(accountants.PldAccountantConfig())
    return accountant.compute_epsilon(int(r["runs"]), params)


def percentile(times: list[float]) -> float:
    """Return the 99th percentile, for fewer than 100 times the largest."""
    return sorted(times)[math.ceil(0.99 * len(times)) - 1]


# By mechanism, the libraries that account it.
LIBRARIES: list[tuple[str, str, Callable[[Row], float]]] = [
    ("discrete_laplace", "dp_accounting", google_discrete_laplace),
    ("discrete_gaussian", "dp_accounting", google_discrete_gaussian),
    ("poisson_gaussian", "opake", opake_poisson),
    ("truncated_poisson_gaussian", "opake", opake_truncated),
    ("poisson_gaussian", "dp_accounting", google_poisson),
    ("fixed_size_add_remove_gaussian", "jax-privacy", jax_fixed_size),
    ("band_mf", "jax-privacy", jax_band_mf),
    ("user_poisson_gaussian", "jax-privacy", jax_user),
    ("truncated_poisson_gaussian", "dp_accounting", google_truncated),
    ("random_allocation", "PLD_accounting", pld_allocation),
    ("random_allocation", "opake", opake_allocation),
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="processor time after which a library stops"
    )
    options = parser.parse_args()
    rows = list(csv.DictReader(sys.stdin))
    packages = ["dp-accounting", "jax-privacy", "PLD_accounting", "opake-accounting"]
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages) + "\n")
    print(
        "| sampler | library | settings | dpareto: mean, p99 ms | library: mean, p99 ms | ratio of means | ε / dpareto's |"
    )
    print("|---|---|---|---|---|---|---|")
    for mechanism, library, epsilon in LIBRARIES:
        own = [
            {k: float(v) for k, v in r.items() if k != "mechanism"}
            for r in rows
            if r["mechanism"] == mechanism
        ]
        epsilon(own[0])
        times: list[float] = []
        ratios: list[float] = []
        for r in own:
            if sum(times) > 1e3 * options.seconds:
                break
            start = time.process_time()
            theirs = epsilon(r)
            times.append(1e3 * (time.process_time() - start))
            ratios.append(theirs / r["epsilon"])
        n = len(times)
        ours = [r["milliseconds"] for r in own[:n]]
        print(
            f"| {mechanism} | {library} | {n} | {sum(ours) / n:.1f}, {percentile(ours):.1f} | {sum(times) / n:.0f}, {percentile(times):.0f} "
            f"| {sum(times) / sum(ours):.0f} | {min(ratios):.4f} to {max(ratios):.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
