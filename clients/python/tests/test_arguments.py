"""Arguments of the wrong kind: every error names the argument."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy
import pytest

import dpfront
from dpfront import Categorical, Client, Discrete, Float, Int, Minimize, Study, Trial
from dpfront import _specs as specs
from dpfront import privacy as p
from dpfront import spec as s

from .conftest import make_study

WRONG = (TypeError, ValueError)
HUGE = 10**400


def refused(name: str, call: Callable[[], object]) -> None:
    """Checks that an error names an argument, in our own words and not protobuf's."""
    with pytest.raises(WRONG) as found:
        call()
    said = str(found.value)
    assert name in said, said
    for foreign in ("bad argument type", "object has no attribute", "builtin", "not iterable"):
        assert foreign not in said, said


@pytest.fixture(scope="module")
def study(shared_server: Any) -> Iterator[Study]:
    with Client(shared_server.address) as client:
        yield make_study(client)


@pytest.mark.parametrize(
    "parameter",
    [
        Categorical("a", [True, False]),  # type: ignore[list-item]
        Categorical("a", [None, "a"]),  # type: ignore[list-item]
        Categorical("a", [1, 2]),  # type: ignore[list-item]
        Categorical("a", "abc"),
        Categorical("a", {"x": 1}),  # type: ignore[arg-type]
        Categorical("a", None),  # type: ignore[arg-type]
        Categorical("a", ["\ud800"]),
        Discrete("a", [1, None]),  # type: ignore[list-item]
        Discrete("a", [True, 2]),
        Discrete("a", 5),  # type: ignore[arg-type]
        Discrete("a", [HUGE]),
        Float("a", "0", 1),  # type: ignore[arg-type]
        Float("a", None, 1),  # type: ignore[arg-type]
        Float("a", False, 1),
        Float("a", 0, HUGE),
        Float("a", 0, 10**5000),
        Float("a", 0, 1, log="yes"),  # type: ignore[arg-type]
        Float("a", 0, 1, design="normal"),  # type: ignore[arg-type]
        Float("a", 0, 1, design=s.Design("normal")),  # type: ignore[arg-type]
        Float("a", 0, 1, design=s.Design(s.Normal("x", 1))),  # type: ignore[arg-type]
        Float("a", 0, 1, grid_levels="3"),  # type: ignore[arg-type]
        Float("a", 0, 1, grid_levels=2**40),
        Float("a", 0, 1, condition=["b"]),  # type: ignore[arg-type]
        Float("a", 0, 1, condition={1: "b"}),  # type: ignore[dict-item]
        Float("a", 0, 1, condition={"b": None}),  # type: ignore[dict-item]
        Int("a", 0, HUGE),
        Int("a", numpy.nan, 1),  # type: ignore[arg-type]
        Int("a", numpy.bool_(True), 1),  # type: ignore[arg-type]
        Int("a", 0, 2**63),
    ],
)
def test_a_parameter(parameter: s.Parameter) -> None:
    refused("parameter a: ", lambda: specs.study_spec(s.StudySpec([parameter], [])))


@pytest.mark.parametrize(
    "metric",
    [
        Minimize("a", "1"),  # type: ignore[arg-type]
        Minimize("a", True),
        Minimize("a", HUGE),
        Minimize("a", 1, transform=None),  # type: ignore[arg-type]
        Minimize("a", computed=5),  # type: ignore[arg-type]
        Minimize("a", computed=p.Privacy(p.Laplace(1, 1), None, "add_remove")),  # type: ignore[arg-type]
        Minimize("a", unit=3),  # type: ignore[arg-type]
        Minimize("a", sample_size="10"),  # type: ignore[arg-type]
        dpfront.Constraint("a", max=[1]),  # type: ignore[arg-type]
        dpfront.epsilon(p.Privacy(p.Laplace(1, 1), 0, "add_remove"), report_tolerance="x", id="a"),  # type: ignore[arg-type]
    ],
)
def test_a_metric(metric: s.Metric) -> None:
    refused("a: ", lambda: specs.study_spec(s.StudySpec([], [metric])))


@pytest.mark.parametrize(
    "value", ["x", HUGE, [3], object(), {"x": 1}, numpy.nan, b"x"], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(s.StudySpec)])
def test_a_field_of_a_study(field: str, value: Any) -> None:
    texts = ("checkpoint_parameter", "cost", "test_ledger", "train_ledger")
    if (field in texts and value == "x") or (field == "prior_values" and value == {"x": 1}):
        return
    fields = {"parameters": [], "metrics": [], field: value}
    refused(field.removesuffix("s"), lambda: specs.study_spec(s.StudySpec(**fields)))


@pytest.mark.parametrize("value", ["x", HUGE, object(), True, [None]])
@pytest.mark.parametrize(
    ("field", "kind", "given"),
    [
        ("private_mode", s.PrivateMode, {}),
        ("random_stopping", s.RandomStopping, {"metric": "a", "mean_trials": 1}),
        ("final_run", s.FinalRun, {"dataset_size": 1, "values": {}}),
        ("slots", s.Slot, {"parameters": {}}),
        ("constant_points", s.ConstantPoint, {"id": "a", "values": {}}),
        ("trainer", s.Trainer, {"name": "a"}),
    ],
)
def test_a_field_within_a_study(field: str, kind: Any, given: Any, value: Any) -> None:
    if field == "private_mode":
        given = {
            "test_set_size": 9,
            "test_epsilon": 1.0,
            "train_epsilon": 1.0,
            "delta": 0.1,
        }
    for f in dataclasses.fields(kind):
        if (isinstance(value, str) and "str" in str(f.type)) or value is (
            True if "bool" in str(f.type) else None
        ):
            continue
        x = kind(**{**given, f.name: value})
        if field == "final_run":
            x, where = s.RandomStopping(1, "a", final_run=x), "random_stopping"
        elif field == "slots":
            x, where = s.PrivateMode(9, 1, 1, 0.1, slots=[x]), "private_mode"
        else:
            where = field
        whole: Any = {where: [x] if field == "constant_points" else x}
        spec = s.StudySpec([], [], **whole)
        refused(f.name, lambda spec=spec: specs.study_spec(spec))  # type: ignore[misc]


MECHANISMS: list[tuple[str, Callable[[Any], p.Privacy]]] = [
    ("batch_size", lambda x: p.opacus(dataset_size=9, batch_size=x, epochs=1, delta=0.1)),
    ("dataset_size", lambda x: p.opacus(dataset_size=x, epochs=1, delta=0.1, drop_last=True)),
    (
        "noise_multiplier",
        lambda x: p.opacus(dataset_size=9, epochs=1, noise_multiplier=x, delta=0.1),
    ),
    ("epochs", lambda x: p.opacus(dataset_size=9, epochs=x, delta=0.1)),
    ("sensitivity", lambda x: p.Privacy(p.Gaussian(x, 1), 0.1, "add_remove")),
    ("is not a mechanism", lambda x: p.Privacy(x, 0.1, "add_remove")),
    ("delta", lambda x: p.Privacy(p.Gaussian(1, 1), x, "add_remove")),
    ("adjacency", lambda x: p.Privacy(p.Gaussian(1, 1), 0.1, x)),
    ("parts", lambda x: p.Privacy(p.Composition((x,)), 0.1, "add_remove")),
]


@pytest.mark.parametrize("value", [True, [1], HUGE, object()])
@pytest.mark.parametrize(("name", "make"), MECHANISMS)
def test_a_mechanism(name: str, make: Callable[[Any], p.Privacy], value: Any) -> None:
    refused(name, lambda: specs.privacy_spec(make(value)))


def client(study: Study) -> Client:
    """Returns a client with the connection of a study."""
    made = Client()
    made._transport = study._transport
    return made


def nothing(trial: Trial) -> None:
    """Is never called."""
    raise AssertionError(trial)


CALLS: list[tuple[str, Callable[[Study, Any], object]]] = [
    ("params", lambda t, x: t.enqueue_trial(x)),
    ("learning_rate", lambda t, x: t.enqueue_trial({"learning_rate": x})),
    ("params", lambda t, x: t.add_trial(x, error=0.5)),
    ("error", lambda t, x: t.add_trial({}, error=x)),
    ("note", lambda t, x: t.add_trial({}, x, error=0.1)),
    ("seeded", lambda t, x: t.add_trial({}, seeded=x, error=0.1)),
    ("user_attrs", lambda t, x: t.enqueue_trial({}, user_attrs=x)),
    ("replicate_of", lambda t, x: t.enqueue_trial(replicate_of=x)),
    ("count", lambda t, x: t.ask_many(x)),
    ("worker_id", lambda t, x: t.ask(x)),
    ("fixed", lambda t, x: t.ask(fixed=x)),
    ("epsilon", lambda t, x: t.ask(at_most={"epsilon": x})),
    ("timeout", lambda t, x: t.ask(timeout=x)),
    ("number", lambda t, x: t.get_trial(x)),
    ("number", lambda t, x: t.stop_trial(x)),
    ("number", lambda t, x: t.delete_trial(x)),
    ("filter", lambda t, x: t.trials(x)),
    ("order_by", lambda t, x: t.trials(order_by=x)),
    ("kind", lambda t, x: t.front(x)),
    ("final_only", lambda t, x: t.front(final_only=x)),
    ("final_only", lambda t, x: t.hypervolumes(final_only=x)),
    ("epsilon", lambda t, x: t.recommend(epsilon=x)),
    ("confidence", lambda t, x: t.recommend(epsilon=1, confidence=x)),
    ("optimize", lambda t, x: t.recommend(epsilon=1, optimize=x)),
    ("measured_only", lambda t, x: t.recommend(epsilon=1, measured_only=x)),
    ("configurations", lambda t, x: t.predict(x)),
    ("runs", lambda t, x: t.expected_gain(x)),
    ("points", lambda t, x: t.slices(points=x)),
    ("params", lambda t, x: t.slices(x)),
    ("x", lambda t, x: t.contour(x, "epochs")),
    ("points", lambda t, x: t.contour("lot_size", "epochs", points=x)),
    ("trials", lambda t, x: t.epsilon_curves(x)),
    ("fprs", lambda t, x: t.tradeoff({}, [x])),
    ("delta", lambda t, x: t.privacy_ledger(x)),
    ("metric", lambda t, x: t.privacy_ledger(metric=x)),
    ("epsilon", lambda t, x: t.release_best("error", epsilon=x)),
    ("at_most", lambda t, x: t.release_best("error", at_most=x)),
    ("kusner", lambda t, x: t.release_best("error", kusner=x)),
    ("delta", lambda t, x: t.release_front(epsilon=1, delta=x)),
    ("max_trials", lambda t, x: t.update(max_trials=x)),
    ("lease", lambda t, x: t.update(lease=x)),
    ("units", lambda t, x: t.update(units=x)),
    ("labels", lambda t, x: t.update(labels=x)),
    ("display_name", lambda t, x: t.update(display_name=x)),
    ("parameters", lambda t, x: t.update(parameters=x)),
    ("prior_values", lambda t, x: t.extend("a", [], x)),
    ("privacy", lambda t, x: t.reaccount(x)),
    ("n_trials", lambda t, x: t.optimize(nothing, n_trials=x)),
    ("n_jobs", lambda t, x: t.optimize(nothing, n_jobs=x)),
    ("timeout", lambda t, x: t.optimize(nothing, timeout=x)),
    ("catch", lambda t, x: t.optimize(nothing, catch=x)),
    ("study", lambda t, x: client(t).study(x)),
    ("filter", lambda t, x: client(t).studies(x)),
    ("ledger", lambda t, x: client(t).ledger(x)),
    ("records", lambda t, x: client(t).create_ledger("a", records=x, epsilon=1, delta=0.1)),
    ("epsilon", lambda t, x: client(t).create_ledger("a", records=1, epsilon=x, delta=0.1)),
    ("utilities", lambda t, x: client(t).select_privately("a", x, 1, 1)),
    ("sensitivity", lambda t, x: client(t).select_privately("a", [1], x, 1)),
    ("request_id", lambda t, x: client(t).select_privately("a", [1], 1, 1, request_id=x)),
    ("name", lambda t, x: client(t).release(x)),
    ("timeout", lambda t, x: Client(client(t).address, timeout=x)),
    ("patience", lambda t, x: Client(client(t).address, patience=x)),
    ("address", lambda t, x: Client(x)),
    ("id", lambda t, x: Study.create(client(t), x, [Float("a", 0, 1)], [Minimize("b")])),
    ("parameters", lambda t, x: Study.create(client(t), "a", x, [Minimize("b")])),
    ("metrics", lambda t, x: Study.create(client(t), "a", [Float("a", 0, 1)], x)),
]


def values(name: str) -> list[Any]:
    """Returns values of a wrong kind for an argument."""
    wrong = [object(), numpy.array([0.5, 0.25]), HUGE]
    return wrong[: {"n_trials": 2, "utilities": 1}.get(name, 3)]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_a_call(study: Study, name: str, call: Callable[[Study, Any], object]) -> None:
    before = len(study.trials())
    for value in values(name):
        refused(name, lambda value=value: call(study, value))  # type: ignore[misc]
    assert len(study.trials()) == before


TELLS: list[tuple[str, Callable[[Trial, Any], object]]] = [
    ("error", lambda t, x: t.tell(error=x)),
    ("error", lambda t, x: t.tell({"error": x})),
    ("error", lambda t, x: t.report(1, error=x)),
    ("error", lambda t, x: t.tell(error=dpfront.Runs([0.5, x]))),
    ("error", lambda t, x: t.tell(error=dpfront.Mean(x, 1))),
    ("standard_error", lambda t, x: t.tell(error=dpfront.Mean(1, x))),
    ("step", lambda t, x: t.report(x, error=0.5)),
    ("step", lambda t, x: t.tell(error=0.5, step=x)),
    ("elapsed", lambda t, x: t.tell(error=0.5, elapsed=x)),
    ("metrics", lambda t, x: t.tell(x)),
    ("reason", lambda t, x: t.infeasible(x)),
    ("reason", lambda t, x: t.fail(x)),
    ("retryable", lambda t, x: t.fail("x", retryable=x)),
    ("reason", lambda t, x: t.release(x)),
    ("loss", lambda t, x: t.set_user_attr("loss", x)),
    ("id", lambda t, x: t.add_artifact(x, "s3://x")),
    ("uri", lambda t, x: t.add_artifact("x", x)),
    ("a", lambda t, x: t.suggest_float("a", x, 1)),
    ("a", lambda t, x: t.suggest_float("a", 0, 1, step=x)),
    ("a", lambda t, x: t.suggest_int("a", 0, x)),
    ("a", lambda t, x: t.suggest_categorical("a", x)),
    ("name", lambda t, x: t.suggest_float(x, 0, 1)),
]


@pytest.mark.parametrize(("name", "call"), TELLS)
def test_a_trial(study: Study, name: str, call: Callable[[Trial, Any], object]) -> None:
    with study.trial() as trial:
        for value in (object(), None if name == "error" else True if name == "a" else b"x", HUGE):
            refused(name, lambda value=value: call(trial, value))  # type: ignore[misc]
        trial.tell(error=0.5)


def test_add_trial_takes_metrics_by_name(study: Study) -> None:
    call: Any = study.add_trial
    refused("note", lambda: call({}, {"error": 0.1}))


def test_numbers_of_other_libraries(study: Study) -> None:
    """Numbers of numpy and other libraries are numbers, wherever one is taken."""
    study.front(final_only=numpy.bool_(True))  # type: ignore[arg-type]
    info = study.enqueue_trial(
        {
            "learning_rate": numpy.float32(0.5),
            "noise_variance": numpy.float64(1),
            "lot_size": numpy.int32(16),
            "epochs": 2.0,
        }
    )
    assert info.params["lot_size"] == 16
    half: list[Any] = [numpy.float16(0.5), numpy.array([0.5]), decimal.Decimal("0.5")]
    for value in half:
        parameters = [
            Float("a", value, numpy.int64(1)),
            Discrete("b", numpy.array([1, 2])),  # type: ignore[arg-type]
            Categorical("c", numpy.array(["x", "y"])),  # type: ignore[arg-type]
        ]
        message = specs.study_spec(s.StudySpec(parameters, [], lease=timedelta(seconds=9)))
        assert message.parameters[0].double_domain.min == 0.5
        assert list(message.parameters[1].discrete_domain.values) == [1, 2]
        assert list(message.parameters[2].categorical_domain.categories) == ["x", "y"]
    study.delete_trial(info.number)
