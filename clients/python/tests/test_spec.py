"""Specs reach the server as they were meant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import dpfront
from dpfront import Mean, Runs
from dpfront import privacy as p
from dpfront import spec as s
from dpfront._convert import to_measurement, to_value, to_values
from dpfront._specs import privacy_spec, study_spec
from dpfront.v1 import metric_pb2, parameter_pb2, privacy_pb2, study_pb2

from .conftest import METRICS, PARAMETERS


def test_every_field_of_a_spec() -> None:
    spec = s.StudySpec(
        parameters=[
            s.Categorical("optimizer", ["sgd", "adam"]),
            s.Float("beta", 0.5, 0.99, condition={"optimizer": "adam"}),
            s.Float(
                "rate",
                1e-4,
                1,
                log=True,
                design=s.Design(s.ShiftedExponential(10, 0.001), accept_min=0.001),
                grid_levels=5,
            ),
            s.Float("width", 1, 2, design=s.Design(s.Normal(1.5, 0.1), accept_max=1.9)),
            s.Int("lot", 8, 512, log=True, design=s.Design(s.LogUniform())),
            s.Discrete("momentum", [0, 0.5, 0.9], condition={"lot": [8, 16]}),
            s.Int("epochs", 1, 10, design=s.Design(s.Uniform())),
        ],
        metrics=[
            s.Maximize("accuracy", 0.1, "logit", sample_size=1000, unit="ratio", noise="known"),
            s.Minimize("loss"),
            s.epsilon(p.paper(dataset_size=1000, batch_size="lot", epochs="epochs", delta=1e-6,
                              noise_multiplier=1.0)),
            s.Constraint("gap", max=0.05, noise="none"),
            s.Constraint("weight", min=1, computed="double(epochs) * 2.0", report_tolerance=0.1),
            s.Tracked("seconds", unit="s"),
        ],
        parameter_constraints=["lot * 2 <= 1024"],
        checkpoint_parameter="epochs",
        algorithm="quasi_random",
        initial_trials=7,
        max_trials=9,
        max_duration=timedelta(hours=1),
        max_stagnant_trials=5,
        max_parallel_trials=3,
        replicates=2,
        lease=timedelta(seconds=90),
        max_attempts=4,
        seed=3,
        cost="epochs",
        trainer=s.Trainer("dp-sgd", {"split": "uci"}),
        prior_studies=["old"],
        prior_values={"rate": 1, "optimizer": "adam", "epochs": 4.0},
        early_stopping=False,
    )  # fmt: skip
    message = study_spec(spec)
    by_id = {x.id: x for x in message.parameters}
    assert by_id["optimizer"].scale == parameter_pb2.SCALE_UNSPECIFIED
    assert by_id["beta"].condition.values[0].string_value == "adam"
    assert by_id["rate"].scale == parameter_pb2.SCALE_LOG
    assert by_id["rate"].design.shifted_exponential.rate == 10
    assert by_id["rate"].design.accept_min == 0.001
    assert not by_id["rate"].design.HasField("accept_max")
    assert by_id["rate"].grid_levels == 5
    assert by_id["width"].design.normal.mean == 1.5
    assert by_id["lot"].design.WhichOneof("distribution") == "log_uniform"
    assert [v.int_value for v in by_id["momentum"].condition.values] == [8, 16]
    metrics = {m.id: m for m in message.metrics}
    assert metrics["accuracy"].goal == metric_pb2.GOAL_MAXIMIZE
    assert metrics["accuracy"].reported.sample_size == 1000
    assert metrics["epsilon"].transform == metric_pb2.TRANSFORM_LOG
    assert metrics["epsilon"].computed.privacy.dp_sgd.noise_multiplier == "1.0"
    assert metrics["accuracy"].reported.noise == metric_pb2.NOISE_KNOWN
    assert metrics["accuracy"].reference_value == 0.1
    assert not metrics["loss"].HasField("reference_value")
    assert metrics["gap"].bounds.max == 0.05
    assert metrics["gap"].reported.noise == metric_pb2.NOISE_NONE
    assert metrics["seconds"].reported.noise == metric_pb2.NOISE_UNSPECIFIED
    assert not metrics["gap"].bounds.HasField("min")
    assert metrics["weight"].computed.expression == "double(epochs) * 2.0"
    assert metrics["weight"].computed.report_tolerance == 0.1
    assert metrics["seconds"].role == metric_pb2.METRIC_ROLE_TRACKED
    assert message.algorithm == study_pb2.AlgorithmSpec(
        name=study_pb2.ALGORITHM_QUASI_RANDOM, initial_trials=7
    )
    assert message.budget.max_duration.seconds == 3600
    assert (message.budget.max_trials, message.budget.max_stagnant_trials) == (9, 5)
    assert message.lease.duration.seconds == 90
    assert message.lease.max_attempts == 4
    assert message.cost.WhichOneof("measure") == "checkpoint_parameter"
    assert message.trainer.settings == {"split": "uci"}
    assert message.prior_studies == ["studies/old"]
    assert message.prior_values["rate"].double_value == 1
    assert message.prior_values["optimizer"].string_value == "adam"
    assert message.prior_values["epochs"].int_value == 4
    assert message.disable_early_stopping
    assert message.seed == 3


def test_published_acquisition() -> None:
    spec = s.StudySpec(PARAMETERS, METRICS, algorithm="dpareto", published_acquisition=True)
    assert study_spec(spec).algorithm == study_pb2.AlgorithmSpec(
        name=study_pb2.ALGORITHM_DPARETO, published_acquisition=True
    )


def test_modes_of_publication() -> None:
    private = s.PrivateMode(1000, 1.0, 2.0, 1e-6, training_shards=2, train_filter="renyi")
    message = study_spec(s.StudySpec(PARAMETERS, METRICS, private_mode=private))
    assert message.private_mode.train_epsilon == 2
    assert message.private_mode.training_shards == 2
    assert message.private_mode.train_filter == study_pb2.TRAIN_FILTER_RENYI
    slots = s.PrivateMode(1000, 1.0, 2.0, 1e-6, slots=[s.Slot({"epochs": 3, "noise": 2}, 5)])
    parameters = [s.Int("epochs", 1, 9), s.Float("noise", 1, 9)]
    message = study_spec(s.StudySpec(parameters, METRICS, private_mode=slots))
    assert message.private_mode.slots[0].count == 5
    assert message.private_mode.slots[0].parameters["epochs"].int_value == 3
    assert message.private_mode.slots[0].parameters["noise"].double_value == 2
    tuned = s.RandomStopping(
        10, "error", subset_share=0.1, final_run=s.FinalRun(5000, {"noise": 3, "depth": 4})
    )
    parameters = [s.Float("noise", 1, 10), s.Int("depth", 1, 9)]
    message = study_spec(s.StudySpec(parameters, METRICS, random_stopping=tuned))
    assert message.random_stopping.subset_share == 0.1
    assert message.random_stopping.final_run.dataset_size == 5000
    assert message.random_stopping.final_run.values["noise"].double_value == 3
    assert message.random_stopping.final_run.values["depth"].int_value == 4
    unset = s.RandomStopping(10, "error", max_trials=50, listed=7)
    message = study_spec(s.StudySpec(PARAMETERS, METRICS, random_stopping=unset))
    assert message.random_stopping.WhichOneof("distribution") is None
    assert message.random_stopping.max_trials == 50
    assert message.random_stopping.listed == 7
    poisson = s.RandomStopping(10, "error", poisson=True)
    message = study_spec(s.StudySpec(PARAMETERS, METRICS, random_stopping=poisson))
    assert message.random_stopping.WhichOneof("distribution") == "poisson"
    logarithmic = s.RandomStopping(10, "error", eta=0)
    message = study_spec(s.StudySpec(PARAMETERS, METRICS, random_stopping=logarithmic))
    assert message.random_stopping.WhichOneof("distribution") == "eta"
    two = s.RandomStopping(10, "error", eta=0, fixed=True)
    with pytest.raises(ValueError, match="eta and fixed"):
        study_spec(s.StudySpec(PARAMETERS, METRICS, random_stopping=two))
    curve = s.RandomStopping(10, "error", eta=1, release="curve", portfolio=2, curve_points=5)
    message = study_spec(s.StudySpec(PARAMETERS, METRICS, random_stopping=curve))
    assert message.random_stopping.release == study_pb2.RANDOM_STOPPING_RELEASE_CURVE
    assert (message.random_stopping.portfolio, message.random_stopping.curve_points) == (2, 5)


MECHANISMS: list[tuple[p.Mechanism, str]] = [
    (p.DpSgd("fixed_size", 1000, 10, 1.5, epochs=3), "dp_sgd"),
    (p.DpSgd("random_allocation", 1000, 10, 1.5, epochs=3), "dp_sgd"),
    (p.RandomAllocation(100, 1.5, 3), "random_allocation"),
    (p.RandomAllocation(100, 1.5, 3, picks=2, allocation="same"), "random_allocation"),
    (p.DpFtrl(300, 5.0, "tree", separation=100), "dp_ftrl"),
    (p.DpFtrl(300, 5.0, "toeplitz", column=[1, 0.5]), "dp_ftrl"),
    (p.DpFtrl(300, 5.0, "blt", buffer_scale=[0.25], buffer_decay=[0.5]), "dp_ftrl"),
    (p.SparseVector(5, 10.0), "sparse_vector"),
    (p.Gaussian(1.0, 2.0), "gaussian"),
    (p.Laplace(1.0, 2.0), "laplace"),
    (p.OutputPerturbation(1000, 0.1, 1.0, 0.5, radius=2.0), "output_perturbation"),
    (p.ObjectivePerturbation(0.5, calibration="rank_one", split=0.1), "objective_perturbation"),
    (p.RandomizedResponse(1.0, 4), "randomized_response"),
    (p.Selection("permute_and_flip", 1.0), "selection"),
    (p.ZeroConcentrated(0.1), "zero_concentrated"),
    (p.DiscreteGaussian(2, 5.0), "discrete_gaussian"),
    (p.DiscreteLaplace(2, 5.0), "discrete_laplace"),
    (p.RepeatedSelection(p.Gaussian(1.0, 20.0), 10.0, eta=1.0), "repeated_selection"),
    (p.RepeatedSelection(p.Gaussian(1.0, 20.0), 10.0, max_runs=30), "repeated_selection"),
    (p.RepeatedSelection(p.Gaussian(1.0, 20.0), 10.0, binomial=30), "repeated_selection"),
    (p.RepeatedSelection(p.Gaussian(1.0, 20.0), 10, fixed=True), "repeated_selection"),
    (p.Composition((p.Part(p.Laplace(1.0, 2.0), 3), p.Part(p.Gaussian(1.0, 9.0)))), "composition"),
]


@pytest.mark.parametrize(
    ("mechanism", "field"), MECHANISMS, ids=[f"{f}{i}" for i, (_, f) in enumerate(MECHANISMS)]
)
def test_every_mechanism_is_accepted(
    client: dpfront.Client, mechanism: p.Mechanism, field: str
) -> None:
    """The server parses all expressions and requires all required fields."""
    replacing = (p.DpSgd, p.OutputPerturbation, p.ObjectivePerturbation, p.RandomizedResponse)
    adjacency: p.Adjacency = "replace_one" if isinstance(mechanism, replacing) else "add_remove"
    privacy = p.Privacy(mechanism, 1e-6, adjacency)
    assert privacy_spec(privacy).WhichOneof("mechanism") == field
    assert client.epsilon(privacy).epsilon > 0


def test_distributions_of_repeated_selection() -> None:
    base = p.Gaussian(1, 2)
    two = p.RepeatedSelection(base, 10.0, poisson=True, binomial=20)
    with pytest.raises(ValueError, match="binomial and poisson"):
        privacy_spec(p.Privacy(two, 1e-6, "add_remove"))
    poisson = p.RepeatedSelection(base, 10.0, poisson=True)
    spec = privacy_spec(p.Privacy(poisson, 1e-6, "add_remove"))
    assert spec.repeated_selection.WhichOneof("distribution") == "poisson"
    assert spec.repeated_selection.base.gaussian.sensitivity == "1"
    assert spec.accountant == privacy_pb2.ACCOUNTANT_TIGHTEST


def test_misspelt_choices_name_the_choices() -> None:
    with pytest.raises(ValueError, match="algorithm: 'best' is not one of default, random"):
        study_spec(s.StudySpec(PARAMETERS, METRICS, algorithm="best"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="adjacency: 'add' is not one of add_remove"):
        privacy_spec(p.Privacy(p.Gaussian(1, 1), 0.1, "add"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="str is not a mechanism"):
        privacy_spec(p.Privacy("dp-sgd", 0.1, "add_remove"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="condition names 2 parents"):
        study_spec(s.StudySpec([s.Float("x", 0, 1, condition={"a": 1, "b": 1})], METRICS))
    with pytest.raises(ValueError, match="either epochs or steps"):
        p.opacus(dataset_size=10, delta=0.1)
    with pytest.raises(ValueError, match="either epochs or steps"):
        p.paper(dataset_size=10, delta=0.1, epochs=1, steps=1)


def test_values() -> None:
    assert to_value(2**53, "x").int_value == 2**53
    assert to_value(1.0, "x").HasField("double_value")
    with pytest.raises(TypeError, match="parameter x: is a bool"):
        to_value(True, "parameter x")
    with pytest.raises(TypeError, match="NoneType"):
        to_value(None, "x")


def test_measurements() -> None:
    message = to_measurement({"error": 0.5, "loss": Runs([1, 2])}, 3, 1.5)
    assert message.step == 3
    assert not message.seeded
    assert to_measurement({"error": 0.5}, seeded=True).seeded
    assert message.elapsed.nanos == 500_000_000
    assert list(message.metrics["error"].runs) == [0.5]
    assert list(message.metrics["loss"].runs) == [1, 2]
    nan = float("nan")
    for value in (nan, float("inf"), Runs([0.1, nan]), Mean(nan, 1)):
        with pytest.raises(dpfront.NotFinite, match="error is"):
            to_measurement({"error": value})


def test_a_mean_with_its_standard_error() -> None:
    message = to_measurement({"error": Mean(0.5, 0.01), "exact": Mean(0.25, 0)}).metrics
    assert (message["error"].value, message["error"].standard_error) == (0.5, 0.01)
    assert message["exact"].HasField("standard_error")  # 0 says that there is no noise
    for bad in (-0.1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="error: standard_error: must be finite"):
            to_measurement({"error": Mean(0.5, bad)})
    with pytest.raises(TypeError, match="error: standard_error: None is not a number"):
        to_measurement({"error": Mean(0.5, None)})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [[0.5], (0.8, 0.4), {0.5}, range(3)])
def test_several_values_are_runs_only_when_they_say_so(value: Any) -> None:
    with pytest.raises(TypeError, match=r"error: .* is not a number; .* are Runs\(\[\.\.\.\]\)"):
        to_measurement({"error": value})


@pytest.mark.parametrize("value", ["0.5", b"1", None, True, 1j, {"a": 1}])
def test_what_is_no_number_is_named(value: Any) -> None:
    for wrong in (value, Runs([value])):
        with pytest.raises(TypeError, match=r"error: .* is not a number$"):
            to_measurement({"error": wrong})


def test_runs() -> None:
    assert Runs([1, 2]) == Runs((1, 2))
    for bad in (0.5, "0.5", None):
        with pytest.raises(TypeError, match="is not a list of numbers"):
            Runs(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the list is empty"):
        Runs([])


class Tensor:
    """Behaves as tensors of PyTorch do."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def item(self) -> float:
        if len(self.values) != 1:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.values[0]

    def tolist(self) -> list[float]:
        return list(self.values)

    def __float__(self) -> float:
        return self.item()

    def __iter__(self) -> Any:
        return iter(self.values)


def test_arrays_and_tensors() -> None:
    numpy = pytest.importorskip("numpy")
    assert to_value(numpy.float32(0.5), "x").double_value == 0.5
    assert to_value(numpy.int64(7), "x").int_value == 7
    one: Any
    several: Any
    for one in (numpy.float32(0.5), numpy.array(0.5), numpy.array([0.5]), Tensor(0.5)):
        assert list(to_measurement({"a": one}).metrics["a"].runs) == [0.5]
    for several in (numpy.array([1, 2]), Tensor(1, 2)):
        with pytest.raises(TypeError, match=r"a: .* is not a number; .* Runs"):
            to_measurement({"a": several})
        runs = Runs(several)
        assert list(to_measurement({"a": runs}).metrics["a"].runs) == [1, 2]
    for bad in (numpy.bool_(True), Runs(numpy.array([[0.5]]))):
        with pytest.raises(TypeError, match=r"a: .* is not a number"):
            to_measurement({"a": bad})


def test_expressions_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    mechanism = p.ObjectivePerturbation(
        epsilon=numpy.float64(0.5),
        dataset_size=numpy.int64(1000),
        curvature=numpy.float32(0.25),
    )
    message = privacy_spec(p.Privacy(mechanism, 0, "add_remove")).objective_perturbation
    assert (message.epsilon, message.dataset_size, message.curvature) == ("0.5", "1000", "0.25")


@pytest.mark.parametrize("value", [True, [1], b"1"])
def test_what_is_no_expression_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"scale: .* is not a number or an expression"):
        privacy_spec(p.Privacy(p.Laplace(1.0, value), 0, "add_remove"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"parameter_constraints": "epochs < 5"},
            "parameter_constraints: is one text instead of a list",
        ),
        ({"prior_studies": "old"}, "prior_studies: is one text instead of a list"),
        ({"lease": 60}, "lease: 60 is not a timedelta"),
        ({"max_duration": "1h"}, "max_duration: '1h' is not a timedelta"),
        (
            {"parameters": [s.Categorical("optimizer", "adam")]},
            "parameter optimizer: categories: is one text instead of a list",
        ),
        (
            {"parameters": [s.Int("epochs", 1, 2.5)]},  # type: ignore[arg-type]
            r"parameter epochs: max: 2\.5 is not an integer",
        ),
        ({"max_trials": 2.5}, r"max_trials: 2\.5 is not an integer"),
    ],
)
def test_fields_of_the_wrong_type_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        study_spec(s.StudySpec(**{"parameters": PARAMETERS, "metrics": METRICS, **fields}))


def test_integers_that_come_as_floats() -> None:
    """1e3 is what people write."""
    parameter = s.Int("epochs", 1, 1e3)  # type: ignore[arg-type]
    spec = study_spec(s.StudySpec([parameter], METRICS, max_trials=1e2))  # type: ignore[arg-type]
    assert spec.parameters[0].integer_domain.max == 1000
    assert spec.budget.max_trials == 100
    assert to_values({"layers": 0.0}, {"layers": "int"})["layers"].int_value == 0
    assert to_values({"layers": 0.0}, {"layers": "int"})["layers"].HasField("int_value")
    with pytest.raises(ValueError, match="parameter layers: 9223372036854775808 is out of range"):
        to_values({"layers": 2**63})
