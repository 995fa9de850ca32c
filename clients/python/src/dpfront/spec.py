"""The spec of a study: parameters, metrics and budgets.

The names are the contract's (docs/reference/studies.md explains each of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypedDict

from dpfront.privacy import Expression, Optimizer, Privacy

__all__ = [
    "Algorithm",
    "Categorical",
    "Constraint",
    "Design",
    "Discrete",
    "DpSgdFeatures",
    "FinalRun",
    "Float",
    "Int",
    "LogUniform",
    "Maximize",
    "Metric",
    "Minimize",
    "Noise",
    "Normal",
    "Parameter",
    "PrivateMode",
    "RandomStopping",
    "RandomStoppingRelease",
    "ShiftedExponential",
    "Slot",
    "StudySpec",
    "Tracked",
    "TrainFilter",
    "Trainer",
    "Transform",
    "Uniform",
    "UpdatableFields",
    "epsilon",
]

Scalar = int | float | str
Condition = Mapping[str, Scalar | Sequence[Scalar]]
Transform = Literal["identity", "log", "logit"]
"""The scale on which the model sees a metric."""
Noise = Literal["none", "unknown", "known"]
"""What is known of the noise of a reported metric (see `Metric`)."""
TrainFilter = Literal["gaussian", "renyi"]
"""How the cost of runs adds up that are chosen from earlier results (see `PrivateMode`)."""
RandomStoppingRelease = Literal["best_value", "curve"]
"""What a study with random_stopping releases: the best value, or its learning curve."""
Algorithm = Literal["default", "random", "grid", "quasi_random", "dpareto", "ehvi", "nsga2"]
"""What suggests configurations: the engine is "default"."""
Computed = Privacy | str


@dataclass(frozen=True)
class Uniform:
    """Uniform on the accepted range."""


@dataclass(frozen=True)
class LogUniform:
    """Uniform in the logarithm on the accepted range."""


@dataclass(frozen=True)
class Normal:
    """Gaussian."""

    mean: float
    standard_deviation: float


@dataclass(frozen=True)
class ShiftedExponential:
    """A shift plus an exponential variable of mean 1/rate."""

    rate: float
    shift: float = 0.0


@dataclass(frozen=True)
class Design:
    """The distribution from which initial and random designs draw a parameter."""

    distribution: Uniform | LogUniform | Normal | ShiftedExponential
    accept_min: float | None = None
    """Draws must exceed this; the smallest value of the domain by default."""
    accept_max: float | None = None
    """Draws must stay below this; the largest value of the domain by default."""


@dataclass(frozen=True)
class Parameter:
    """One of `Float`, `Int`, `Discrete` and `Categorical`."""

    id: str
    """Expressions refer to the parameter by it."""
    condition: Condition | None = field(default=None, kw_only=True)
    """The parameter exists only where another one has certain values: {"optimizer": "adam"}
    or {"optimizer": ["adam", "lamb"]}."""


@dataclass(frozen=True)
class Float(Parameter):
    """Every float in a closed interval."""

    min: float
    max: float
    log: bool = False
    """Whether ratios matter, rather than differences."""
    design: Design | None = None
    grid_levels: int = 0
    """Number of levels for the algorithm "grid"; 0 is 3."""


@dataclass(frozen=True)
class Int(Parameter):
    """Every integer in a closed interval."""

    min: int
    max: int
    log: bool = False
    design: Design | None = None
    grid_levels: int = 0


@dataclass(frozen=True)
class Discrete(Parameter):
    """A finite, increasing list of numbers, which are floats."""

    values: Sequence[float]
    log: bool = False


@dataclass(frozen=True)
class Categorical(Parameter):
    """A finite set of names without an order."""

    categories: Sequence[str]


@dataclass(frozen=True)
class Metric:
    """One of `Minimize`, `Maximize`, `Constraint` and `Tracked`."""

    id: str
    computed: Computed | None = field(default=None, kw_only=True)
    """The mechanism or expression from which the server computes it; None if workers report it."""
    sample_size: float = field(default=0, kw_only=True)
    """For reported rates under "logit" that are averages over test records: the number of
    records."""
    noise: Noise | None = field(default=None, kw_only=True)
    """For reported objectives and constraints: "none" if the metric is a deterministic function of
    the parameters, "known" if every report is a `Mean` with its standard error or several `Runs`;
    None and "unknown" leave the noise to the engine."""
    report_tolerance: float | None = field(default=None, kw_only=True)
    """Largest relative difference between a worker's own report and the computed value that
    raises no warning."""
    unit: str = field(default="", kw_only=True)
    """For people."""


@dataclass(frozen=True)
class Minimize(Metric):
    """An objective: smaller is better."""

    reference_value: float | None = None
    """The anti-ideal value: only points better than it count towards the hypervolume. None takes it
    from the results: a tenth of the front's range beyond its worst value. Computed metrics need
    one."""
    transform: Transform = "identity"
    """Transform for the model: "logit" for rates in [0, 1], "log" for values over orders of
    magnitude."""


@dataclass(frozen=True)
class Maximize(Metric):
    """An objective: larger is better. The fields are as in `Minimize`."""

    reference_value: float | None = None
    transform: Transform = "identity"


@dataclass(frozen=True)
class Constraint(Metric):
    """A metric that must stay within bounds for a configuration to be on the front."""

    min: float | None = None
    max: float | None = None
    transform: Transform = "identity"


@dataclass(frozen=True)
class Tracked(Metric):
    """A metric that is recorded and shown."""


def epsilon(
    privacy: Privacy,
    reference_value: float = 10.0,
    *,
    id: str = "epsilon",
    report_tolerance: float | None = None,
) -> Minimize:
    """Returns ε of a mechanism as an objective, modelled by its logarithm.

    A worker may also report its own ε of the run: a relative difference above
    ``report_tolerance`` raises a warning on the trial.
    """
    return Minimize(
        id,
        reference_value,
        transform="log",
        computed=privacy,
        report_tolerance=report_tolerance,
    )


@dataclass(frozen=True)
class Trainer:
    """The bundled trainer that agents run for a study, with its settings."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Slot:
    """A number of runs that are declared beforehand (see `PrivateMode`).

    A trial takes an unused slot that dominates it. All slots cost their exact composition.
    """

    parameters: Mapping[str, Scalar]
    """Values of the parameters that the privacy metric depends on."""
    count: int = 1


@dataclass(frozen=True)
class PrivateMode:
    """Keeps noisy values only and enforces declared privacy budgets."""

    test_set_size: int
    test_epsilon: float
    train_epsilon: float
    delta: float
    training_shards: int = 0
    max_values: int = 0
    prior_studies_are_public: bool = False
    constant_points_are_public: bool = False
    train_filter: TrainFilter | None = None
    """How the cost of runs adds up; the default is the filter that admits more of them."""
    slots: Sequence[Slot] = ()
    """Runs that are declared beforehand, in place of a filter."""


@dataclass(frozen=True)
class ConstantPoint:
    """A result without any run, such as the error of always predicting one class, at ε = 0.

    It is on the front unless something beats it. Its values are taken as exact and public.
    """

    id: str
    values: Mapping[str, float]
    """A value for every objective."""
    display_name: str = ""
    description: str = ""


@dataclass(frozen=True)
class DpSgdFeatures:
    """Features of DP-SGD that the model uses instead of the parameters: how far the weights of a
    run can move, and with how much noise. The study then needs fewer runs.

    A study has this by default if its `DpSgd` (or `opacus`) names learning_rate and clipping_norm.
    """

    learning_rate: Expression | None = None
    """None takes what the mechanism names, here and below."""
    clipping_norm: Expression | None = None
    optimizer: Optimizer | None = None
    without_public_runs: bool = False
    """Lets models begin without runs on public data (Adult, MNIST, breast cancer, digits)."""
    without_datasets: Sequence[str] = ()
    """Data sets of those that are left out, such as "adult" in a study on Adult."""


@dataclass(frozen=True)
class FinalRun:
    """The run on all training records after a tuning on a secret subset."""

    dataset_size: int
    """Number of all training records."""
    values: Mapping[str, float | int | str]
    """Values of parameters in the final run, by id: of all that its cost depends on, such as
    noise, lot size and epochs. The others come from the tuning."""


@dataclass(frozen=True)
class RandomStopping:
    """Runs a secret random number of independent trials and shows only the best."""

    mean_trials: float
    metric: str
    eta: float | None = None
    """η of the truncated negative binomial distribution. Without any distribution it is 1, the
    geometric one."""
    poisson: bool = False
    """Takes the Poisson distribution."""
    binomial: int | None = None
    """Number of tries of the binomial distribution."""
    fixed: bool = False
    """Runs exactly mean_trials trials."""
    max_trials: int = 0
    """Cap on the number of trials, which is drawn given that it is at most this; only with eta."""
    listed: int = 0
    """Length of the list that candidates are drawn from; 0 is 1,000."""
    subset_share: float = 0
    """Share of the training records, in (0, 1), that candidates see: a secret random subset (see
    ``trial.training_subset``). 0 is all of them. It needs ``final_run``."""
    final_run: FinalRun | None = None
    delta: float = 0
    test_set_size: int = 0
    test_epsilon: float = 0
    release: RandomStoppingRelease | None = None
    """What is shown of the best candidate: its final value, which is the default, or its learning
    curve: a front. Curves need `checkpoint_parameter`."""
    portfolio: int = 0
    """Number of runs that make a candidate, with curves; 0 is 1."""
    curve_points: int = 0
    """Number of values of a curve; 0 is 10."""


@dataclass(frozen=True)
class StudySpec:
    """The spec of a study."""

    parameters: Sequence[Parameter]
    metrics: Sequence[Metric]
    parameter_constraints: Sequence[str] = ()
    """Expressions over the parameters that must hold for a configuration to be tried."""
    checkpoint_parameter: str | None = None
    """The integer parameter whose smaller values a run passes through, such as "epochs". Not
    for schedules that depend on the length of the run."""
    algorithm: Algorithm = "default"
    initial_trials: int = 0
    """Number of trials drawn from the design before the model takes over; 0 is the default
    of the algorithm."""
    published_acquisition: bool = False
    """Takes the acquisition of "dpareto" from the code that was published with the paper: in
    transformed units, below a reference that is estimated from the front. Constant points do not
    enter it: ε = 0 has no logarithm."""
    dp_sgd_features: DpSgdFeatures | bool | None = None
    """Features of DP-SGD that the model uses. With None and True a mechanism has them if it names
    its learning_rate and clipping_norm; with False the model uses the parameters themselves."""
    max_trials: int = 0
    """Budget; 0 is no limit, here and below."""
    max_duration: timedelta | None = None
    max_stagnant_trials: int = 0
    max_parallel_trials: int = 0
    replicates: int = 0
    """Number of independent runs that a worker makes for one trial; 0 is 1."""
    lease: timedelta | None = None
    """How long a worker may be silent; 60 s by default. Trials renew their leases in the
    background."""
    max_attempts: int = 0
    """How often a trial is handed out before it fails for good; 0 is 5."""
    seed: int | None = None
    cost: str | None = None
    """The cost of a trial: None (all equal), the checkpoint parameter, or a reported metric."""
    trainer: Trainer | None = None
    prior_studies: Sequence[str] = ()
    prior_values: Mapping[str, Scalar] = field(default_factory=dict)
    """The values that parameters had in all prior studies that lack them, by id: {"clip": 1.0}
    where this study also varies what was fixed before."""
    early_stopping: bool = True
    """Whether the server asks to stop runs that can no longer add to the front."""
    private_mode: PrivateMode | None = None
    random_stopping: RandomStopping | None = None
    constant_points: Sequence[ConstantPoint] = ()
    """Results that can be had without any run: no front lists what is not better somewhere."""
    test_ledger: str = ""
    """Id of the ledger of the test records. Required with private_mode, and with random_stopping
    that has a test_set_size."""
    train_ledger: str = ""
    """Id of the ledger of the training records. Required with private_mode and
    random_stopping."""


class UpdatableFields(TypedDict, total=False):
    """The fields of `StudySpec` that `Study.update` can change, besides parameters."""

    max_trials: int
    max_duration: timedelta | None
    max_stagnant_trials: int
    max_parallel_trials: int
    lease: timedelta | None
    max_attempts: int
    early_stopping: bool
    test_ledger: str
