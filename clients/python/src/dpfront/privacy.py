"""Mechanisms: how ε follows from the parameters of a run.

Every field that is an `Expression` takes a number, or text in the Common Expression Language
(https://cel.dev) over the parameters of the study: ``"epochs"``, ``"math.sqrt(variance)"``.
Integer parameters are ints there, float and discrete ones doubles, and CEL does not mix the
two: ``"double(epochs) * 0.5"``.

`opacus` and `paper` return a `Privacy` in the conventions of other tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpfront._convert import expression

__all__ = [
    "Accountant",
    "Adjacency",
    "Allocation",
    "Composition",
    "Convention",
    "Conversion",
    "CountDistribution",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DpFtrl",
    "DpSgd",
    "Expression",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NoiseMatrix",
    "ObjectivePerturbation",
    "Optimizer",
    "OutputPerturbation",
    "Part",
    "Privacy",
    "RandomAllocation",
    "RandomizedResponse",
    "RepeatedSelection",
    "Sampling",
    "Selection",
    "SelectionMethod",
    "SparseVector",
    "ZeroConcentrated",
    "opacus",
    "paper",
]

Expression = str | int | float
"""A number, or text in the Common Expression Language over the parameters of the study."""
Adjacency = Literal["add_remove", "replace_one"]
"""Which data sets are neighbours (see `Privacy.adjacency`)."""
Sampling = Literal["poisson", "fixed_size", "shuffled", "random_allocation"]
"""How a trainer draws its lots (see `DpSgd.sampling`)."""
Convention = Literal["rounded", "opacus", "tensorflow_privacy"]
"""How probability and steps follow from sizes (see `DpSgd.convention`)."""
Allocation = Literal["fresh", "same"]
"""When records are allocated to steps: anew in every epoch, or once."""
NoiseMatrix = Literal["tree", "blt", "toeplitz"]
"""How DP-FTRL correlates the noise of its steps (see `DpFtrl.matrix`)."""
Conversion = Literal["classic", "improved"]
"""How ε follows from Rényi divergences (see `Privacy.conversion`)."""
Accountant = Literal[
    "tightest", "exact", "pld", "rdp", "gdp", "pure", "pure_advanced", "pure_optimal", "location"
]
"""How ε is computed; "tightest" takes the one with the smallest bound."""
SelectionMethod = Literal["permute_and_flip", "exponential", "report_noisy_max"]
"""How a configuration is chosen privately."""
Optimizer = Literal["sgd", "normalized"]
"""What an optimizer does with a noisy gradient: a step is the learning rate times the gradient
("sgd", with momentum or without), or the gradient is divided by its size first ("normalized",
Adam)."""
CountDistribution = Literal["geometric", "logarithmic", "poisson"] | float
"""Distribution of the number of runs of a search: a name, or η of the truncated negative binomial
distribution."""


@dataclass(frozen=True)
class DpSgd:
    """DP-SGD, DP-Adam and every other method that clips gradients, averages and adds noise."""

    sampling: Sampling
    """How the trainer draws its lots: each record independently with the same probability
    ("poisson"), a fresh lot of exactly batch_size records ("fixed_size"), a random order of
    all records, cut into lots ("shuffled"), or each record in one of the
    round(dataset_size / batch_size) lots of an epoch, independently ("random_allocation",
    `dpfront.samplers`)."""
    dataset_size: Expression | None
    """Number of training records, an integer, which is then public. None only where
    sampling_probability is given."""
    batch_size: Expression | None
    """Size of a lot, for Poisson sampling the expected one; an integer. None where
    sampling_probability is given."""
    noise_multiplier: Expression
    """Standard deviation of the noise divided by the sensitivity under the adjacency of the
    guarantee: of the sum of gradients, the clipping norm where a record is added or removed,
    and twice the clipping norm where one is replaced."""
    epochs: Expression | None = None
    """Length of a run in epochs, of round(dataset_size / batch_size) steps for lots of a fixed
    size. Either this or steps."""
    steps: Expression | None = None
    """Length of a run in steps."""
    convention: Convention | None = None
    """For Poisson sampling with a batch_size, how probability and steps follow from the sizes
    n and m: m/n and round(n/m) steps an epoch ("rounded", the bundled trainers), 1/ceil(n/m)
    and ceil(n/m) steps an epoch ("opacus"), or m/n and ceil(epochs * n/m) steps in all
    ("tensorflow_privacy")."""
    sampling_probability: Expression | None = None
    """For Poisson sampling, the probability with which a step takes a record, in the place of
    batch_size and convention; with steps. Without dataset_size, both are settings that do not
    depend on the number of records."""
    learning_rate: Expression | None = None
    """ε does not depend on it. In a study it lets the engine see how far a run's weights can go
    and how noisily, so that fewer runs do (see `dpfront.DpSgdFeatures`). Together with
    clipping_norm, and with dataset_size."""
    clipping_norm: Expression | None = None
    """Largest norm of a record's gradient, together with learning_rate."""
    optimizer: Optimizer | None = None
    """What the optimizer does with a gradient, together with learning_rate; None is "sgd"."""
    physical_batch_size: Expression | None = None
    """For Poisson sampling with dataset_size, the largest number of records that a step can hold:
    of a larger lot a uniform subset of this size is kept. Where that costs privacy,
    `Client.epsilon` warns (``TRUNCATED_LOTS``) with the smallest size that costs nothing."""
    records_per_user: Expression | None = None
    """For Poisson sampling under "add_remove", the largest number of records of a user: the
    guarantee is then for all records of a user. Records are drawn and clipped one by one."""
    clipping_count_deviation: Expression | None = None
    """For a clipping norm that follows the gradients (Andrew et al. 2021): the standard deviation
    of the noise on the sum of 1/2 for each gradient within the norm and −1/2 for each other one,
    which every step releases as well. The norm must follow from released sums."""
    bands: Expression | None = None
    """For Poisson sampling, the number b of bands of correlated noise (DP-BandMF): the records are
    split into b groups, and step i draws from group i modulo b, with b times the probability that
    batch_size gives. noise_multiplier is for the noise before it is correlated."""


@dataclass(frozen=True)
class RandomAllocation:
    """DP-SGD on randomly allocated records ("balls in bins"), as `dpfront.samplers` allocates them.

    `DpSgd` with the sampling "random_allocation" is the same for lots of a given size.
    """

    steps_per_epoch: Expression
    """Number of steps in an epoch, an integer that does not depend on the data."""
    noise_multiplier: Expression
    """As in `DpSgd`."""
    epochs: Expression
    picks: Expression | None = None
    """Number of steps of an epoch in which a record takes part; None is 1."""
    allocation: Allocation | None = None
    """Whether every epoch draws anew ("fresh", the default) or uses the first draw ("same")."""


@dataclass(frozen=True)
class DpFtrl:
    """DP-FTRL: a gradient method with correlated noise and without sampling.

    With gradients G, one row a step, and a matrix C a run releases C·G + Z for Gaussian Z, or what
    follows from it. With federated learning the records are users or devices.
    """

    steps: Expression
    noise_multiplier: Expression
    """Standard deviation of the entries of Z, of the nodes of trees, over the clipping norm."""
    matrix: NoiseMatrix
    """Trees over the steps ("tree"), a buffered linear Toeplitz matrix ("blt", with buffer_scale
    and buffer_decay), or a Toeplitz matrix by its first column ("toeplitz", with column)."""
    separation: Expression | None = None
    """Least number of steps from one participation of a record to its next; None is all steps: a
    record takes part once. A new tree begins after as many steps."""
    participations: Expression | None = None
    """Largest number of steps in which a record takes part; None is what separation allows."""
    column: Sequence[float] | None = None
    """First entries of the first column of C; others are 0."""
    buffer_scale: Sequence[float] | None = None
    """Scale of each buffer: the column is 1, then the sum of scale·decay^(i−1) for i = 1, 2, …"""
    buffer_decay: Sequence[float] | None = None
    """Decay of each buffer, between 0 and 1."""


@dataclass(frozen=True)
class SparseVector:
    """The sparse vector technique (Avent et al. 2020, Algorithm 1)."""

    cutoff: Expression
    """Number of positive answers after which it stops."""
    noise_scale: Expression
    """Total noise scale b."""


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise on a vector."""

    sensitivity: Expression
    """L2 sensitivity."""
    standard_deviation: Expression


@dataclass(frozen=True)
class Laplace:
    """Laplace noise on a number."""

    sensitivity: Expression
    """L1 sensitivity."""
    scale: Expression


@dataclass(frozen=True)
class OutputPerturbation:
    """Noise on the weights of a linear model (Wu et al. 2017, Algorithm 2)."""

    dataset_size: Expression
    regularization: Expression
    """Coefficient of the ridge penalty."""
    feature_norm: Expression
    """Bound on the L2 norm of a record."""
    standard_deviation: Expression
    """Of the noise on each weight."""
    radius: Expression | None = None
    """Radius of the ball to which iterates are projected; None for no projection."""


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Noise on the objective of a linear model (Chaudhuri, Monteleoni and Sarwate 2011)."""

    epsilon: Expression
    dataset_size: Expression | None = None
    regularization: Expression | None = None
    curvature: Expression | None = None
    """Bound on the second derivative of the loss; 1/4 by default."""
    calibration: Literal["rank_one", "chaudhuri", "continuous"] | None = None
    split: Expression | None = None
    """Share of ε that goes to the regulariser, for the calibration "rank_one"."""


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomised response (Warner 1965), one answer per record."""

    epsilon: Expression
    categories: Expression
    """Number of possible answers."""


@dataclass(frozen=True)
class Selection:
    """A private choice among candidates by their scores, with ε as its parameter."""

    method: Literal["exponential", "permute_and_flip", "report_noisy_max"]
    epsilon: Expression


@dataclass(frozen=True)
class ZeroConcentrated:
    """A mechanism known by ρ: its Rényi divergence of order α is at most ρα."""

    rho: Expression


@dataclass(frozen=True)
class DiscreteGaussian:
    """Discrete Gaussian noise on one integer (Canonne, Kamath and Steinke 2020)."""

    sensitivity: Expression
    """An integer from 1 to 10,000."""
    sigma: Expression
    """σ, from 0.01 to 10,000; the standard deviation is at most σ."""


@dataclass(frozen=True)
class DiscreteLaplace:
    """Discrete Laplace noise on integers, the geometric mechanism: ε = sensitivity / scale."""

    sensitivity: Expression
    """ℓ1 sensitivity, an integer from 1 to 10,000."""
    scale: Expression
    """From 0.01 to 10,000."""


@dataclass(frozen=True)
class RepeatedSelection:
    """The best of a random number of independent private runs (Papernot and Steinke 2022)."""

    base: Mechanism
    """The mechanism of one run."""
    mean_runs: Expression
    eta: Expression | None = None
    """η of the truncated negative binomial distribution. Without any distribution it is 1, the
    geometric one."""
    poisson: bool = False
    """Takes the Poisson distribution."""
    binomial: Expression | None = None
    """Number of tries of the binomial distribution."""
    fixed: bool = False
    """Makes exactly mean_runs runs."""
    max_runs: Expression | None = None
    """Cap on the number of runs, which is drawn given that it is at most this; only with eta."""


@dataclass(frozen=True)
class Part:
    """A mechanism with the number of times that it is applied."""

    mechanism: Mechanism
    count: Expression = 1


@dataclass(frozen=True)
class Composition:
    """Several mechanisms on the same data."""

    parts: tuple[Part, ...]


Mechanism = (
    DpSgd
    | RandomAllocation
    | DpFtrl
    | SparseVector
    | Gaussian
    | Laplace
    | OutputPerturbation
    | ObjectivePerturbation
    | RandomizedResponse
    | Selection
    | ZeroConcentrated
    | DiscreteGaussian
    | DiscreteLaplace
    | RepeatedSelection
    | Composition
)
"""Everything from which ε can follow."""


@dataclass(frozen=True)
class Privacy:
    """A mechanism with the terms of its guarantee."""

    mechanism: Mechanism
    delta: float
    """δ, well below 1/n; 0 for a pure guarantee."""
    adjacency: Adjacency
    """Which data sets are neighbours: one record more or less ("add_remove"), or one record
    exchanged ("replace_one"). ε of the two do not compare."""
    accountant: Accountant = "tightest"
    conversion: Conversion | None = None
    """From Rényi divergences to (ε, δ); required for the accountant "rdp"."""


def opacus(
    *,
    dataset_size: int,
    batch_size: Expression = "batch_size",
    noise_multiplier: Expression = "noise_multiplier",
    epochs: Expression | None = None,
    steps: Expression | None = None,
    delta: float,
    poisson_sampling: bool = True,
    random_allocation: bool = False,
    drop_last: bool = False,
    accountant: Accountant = "tightest",
    learning_rate: Expression | None = None,
    clipping_norm: Expression | None = None,
    optimizer: Optimizer | None = None,
) -> Privacy:
    """Returns the guarantee of a model that Opacus trains.

    It accounts as ``PrivacyEngine.make_private`` does: ``noise_multiplier`` is relative to the
    clipping norm, and neighbours differ by one record more or less. With a data loader of
    ``len(loader)`` lots a record is in a lot with probability ``1 / len(loader)``, and an epoch
    has ``len(loader)`` steps: ``ceil(dataset_size / batch_size)``, or, of a loader with
    ``drop_last=True``, ``dataset_size // batch_size``. Since that follows from ``dataset_size``,
    the number of records is public: a record is zeroed out rather than removed.

    ``learning_rate`` and ``clipping_norm`` (``max_grad_norm`` of Opacus) change nothing in ε. A
    study that names them needs fewer runs: ``opacus(..., learning_rate="lr",
    clipping_norm="max_grad_norm")``, with ``optimizer="normalized"`` for Adam.

    With ``poisson_sampling=False`` the lots come from an ordinary shuffling loader. Opacus
    still accounts them as Poisson lots, which is not a guarantee. Here ε is the valid one, for
    one exchanged record. `Client.epsilon` warns (``SHUFFLED_LOTS``) with what the same training
    would cost with random allocation, Poisson lots and lots of a fixed size.

    With ``poisson_sampling=False`` and ``random_allocation=True`` the lots come from a
    `dpfront.samplers.RandomAllocationSampler` with ``batches_per_epoch(dataset_size, batch_size)``
    batches. Then ε is for one record more or less, and much smaller than of a shuffling loader.
    Opacus's own accountant does not know this sampler: ignore its ε.
    """
    if (epochs is None) == (steps is None):
        raise ValueError("opacus: give either epochs or steps, or the names of their parameters")
    if random_allocation:
        if poisson_sampling or drop_last:
            raise ValueError(
                "opacus: random_allocation goes with poisson_sampling=False and drop_last=False"
            )
        mechanism = DpSgd(
            "random_allocation",
            dataset_size,
            batch_size,
            noise_multiplier,
            epochs,
            steps,
            learning_rate=learning_rate,
            clipping_norm=clipping_norm,
            optimizer=optimizer,
        )
        return Privacy(mechanism, delta, "add_remove", accountant, _conversion(accountant))
    if not poisson_sampling:
        # One exchanged record moves the sum by up to twice the clipping norm.
        multiplier = f"double({expression(noise_multiplier, 'noise_multiplier')}) / 2.0"
        mechanism = DpSgd(
            "shuffled",
            dataset_size,
            batch_size,
            multiplier,
            epochs,
            steps,
            learning_rate=learning_rate,
            clipping_norm=clipping_norm,
            optimizer=optimizer,
        )
        return Privacy(mechanism, delta, "replace_one", accountant, _conversion(accountant))
    lot = f"int({expression(batch_size, 'batch_size')})"
    if drop_last:
        loader = f"({expression(dataset_size, 'dataset_size')} / {lot})"
        if steps is None:
            steps = f"int({expression(epochs, 'epochs')}) * {loader}"
        mechanism = DpSgd(
            "poisson",
            dataset_size,
            None,
            noise_multiplier,
            steps=steps,
            sampling_probability=f"1.0 / double{loader}",
            learning_rate=learning_rate,
            clipping_norm=clipping_norm,
            optimizer=optimizer,
        )
    else:
        mechanism = DpSgd(
            "poisson",
            dataset_size,
            lot,
            noise_multiplier,
            epochs,
            steps,
            convention="opacus",
            learning_rate=learning_rate,
            clipping_norm=clipping_norm,
            optimizer=optimizer,
        )
    return Privacy(mechanism, delta, "add_remove", accountant, _conversion(accountant))


def paper(
    *,
    dataset_size: int,
    batch_size: Expression = "lot_size",
    noise_multiplier: Expression = "math.sqrt(noise_variance)",
    epochs: Expression | None = None,
    steps: Expression | None = None,
    delta: float,
    accountant: Accountant = "rdp",
    learning_rate: Expression | None = None,
    clipping_norm: Expression | None = None,
    optimizer: Optimizer | None = None,
) -> Privacy:
    """Returns the guarantee of Algorithms 3 and 4 of Avent et al. (2020).

    Lots have a fixed size, neighbours differ in one exchanged record, and the noise on the
    averaged gradient has standard deviation 2 L noise_multiplier / batch_size for a clipping
    norm L. By default ε comes from the published accountant, Rényi divergences with the
    classic conversion; ``accountant="tightest"`` gives less for the same runs. The last three
    arguments are as for `opacus`.
    """
    if (epochs is None) == (steps is None):
        raise ValueError("paper: give either epochs or steps, or the names of their parameters")
    mechanism = DpSgd(
        "fixed_size",
        dataset_size,
        batch_size,
        noise_multiplier,
        epochs,
        steps,
        learning_rate=learning_rate,
        clipping_norm=clipping_norm,
        optimizer=optimizer,
    )
    conversion: Conversion | None = "classic" if accountant == "rdp" else None
    return Privacy(mechanism, delta, "replace_one", accountant, conversion)


def _conversion(accountant: Accountant) -> Conversion | None:
    return "improved" if accountant == "rdp" else None
