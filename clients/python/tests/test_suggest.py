"""suggest_* of trials, and the space of an objective."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import dpfront
from dpfront import (
    AsyncClient,
    AsyncStudy,
    Categorical,
    Client,
    Discrete,
    Float,
    Int,
    Minimize,
    Study,
    space,
)
from dpfront import _specs as specs
from dpfront._space import categories, float_parameter, int_parameter

from .conftest import Server

PARAMETERS = [
    Float("rate", 1e-4, 1, log=True),
    Float("momentum", 0, 0.9),
    Int("layers", 1, 4),
    Discrete("width", [16, 32, 48, 64]),
    Discrete("drop", [0.0, 0.1, 0.2, 0.3]),
    Categorical("optimizer", ["sgd", "adam"]),
    Categorical("clip", ["None", "1", "True"]),
]


def suggest(trial: Any) -> dict[str, Any]:
    """Suggests what PARAMETERS say."""
    return {
        "rate": trial.suggest_float("rate", 1e-4, 1, log=True),
        "momentum": trial.suggest_float("momentum", 0, 0.9),
        "layers": trial.suggest_int("layers", 1, 4),
        "width": trial.suggest_int("width", 16, 64, step=16),
        "drop": trial.suggest_float("drop", 0, 0.3, step=0.1),
        "optimizer": trial.suggest_categorical("optimizer", ["sgd", "adam"]),
        "clip": trial.suggest_categorical("clip", [None, 1, True]),
        "batch": trial.suggest_int("batch", 256, 256),
        "loss": trial.suggest_categorical("loss", ["hinge"]),
    }


def make(client: Client, id: str, parameters: Any = None, **fields: Any) -> Study:
    fields = {"algorithm": "random", "seed": 3, **fields}
    return Study.create(client, id, parameters or PARAMETERS, [Minimize("error", 1)], **fields)


def test_values(client: Client) -> None:
    study = make(client, "suggest-values")
    assert study.parameters == PARAMETERS
    seen = set()
    for _ in range(6):
        trial = study.ask()
        got = suggest(trial)
        assert {k: type(v) for k, v in got.items() if k != "clip"} == {
            "rate": float,
            "momentum": float,
            "layers": int,
            "width": int,
            "drop": float,
            "optimizer": str,
            "batch": int,
            "loss": str,
        }
        assert got["clip"] in (None, 1, True)
        assert (repr(got.pop("clip")), got.pop("batch")) == (trial.params.pop("clip"), 256)
        assert got.pop("loss") == "hinge"
        params = trial.params
        del params["clip"]
        assert got == params
        seen.add(got["width"])
        trial.tell(error=0.5)
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.suggest_float("speed", 0, 1), "parameter speed: the study has only rate, "),
        (
            lambda t: t.suggest_float("rate", 1e-4, 1),
            "the study has floats from 0.0001 to 1.0, log, and the objective suggests floats "
            "from 0.0001 to 1.0;",
        ),
        (lambda t: t.suggest_float("rate", 1e-3, 1, log=True), "suggests floats from 0.001 to"),
        (lambda t: t.suggest_int("rate", 1, 2), "suggests integers from 1 to 2"),
        (lambda t: t.suggest_int("layers", 1, 5), "the study has integers from 1 to 4"),
        (lambda t: t.suggest_int("width", 16, 64, step=8), "the study has the values 16, 32,"),
        (lambda t: t.suggest_int("width", 16, 64), "suggests integers from 16 to 64"),
        (lambda t: t.suggest_categorical("optimizer", ["sgd", "lamb"]), "'sgd', 'adam'"),
        (lambda t: t.suggest_categorical("clip", ["None", None]), "choices look alike"),
        (lambda t: t.suggest_categorical("optimizer", "adam"), "choices must be a list"),
        (lambda t: t.suggest_categorical("optimizer", []), "choices must be a list"),
        (lambda t: t.suggest_float("rate", 1, 0), "low 1.0 is not a number below high"),
        (lambda t: t.suggest_float("rate", 0, 1, log=True), "low must be positive with log"),
        (lambda t: t.suggest_float("drop", 0, 1, step=0.1, log=True), "exclude each other"),
        (lambda t: t.suggest_int("layers", 1, 4, step=2, log=True), "exclude each other"),
        (lambda t: t.suggest_float("drop", 0, 1, step=1e-9), "has 1000000001 steps, of at most"),
        (lambda t: t.suggest_float("drop", 0, 1, step=0), "step must be positive"),
        (lambda t: t.suggest_float("rate", float("nan"), 1), "low nan is not a number below"),
    ],
)
def test_mismatch(client: Client, call: Callable[[Any], Any], text: str) -> None:
    """An argument that is not the study's names the parameter and both domains."""
    study = make(client, "suggest-mismatch")
    with pytest.raises(ValueError, match=r"^parameter \w+: ") as raised:
        call(study.ask())
    assert text in str(raised.value)


def test_not_whole(client: Client) -> None:
    with pytest.raises(TypeError, match=r"parameter layers: high: 4\.5 is not an integer"):
        make(client, "suggest-mismatch").ask().suggest_int("layers", 1, 4.5)  # type: ignore[arg-type]


def test_condition(client: Client) -> None:
    study = make(
        client,
        "suggest-condition",
        [
            Categorical("optimizer", ["sgd", "adam"]),
            Float("beta", 0, 1, condition={"optimizer": "adam"}),
        ],
    )
    trial = study.ask(fixed={"optimizer": "adam"})
    assert trial.suggest_float("beta", 0, 1) == trial["beta"]
    with pytest.raises(ValueError, match=r"beta: does not exist in this trial: .*optimizer"):
        study.ask(fixed={"optimizer": "sgd"}).suggest_float("beta", 0, 1)


def test_widened(client: Client) -> None:
    """Another process widens a domain: this one's trials may lie outside of what it knows."""
    study = make(client, "suggest-widened", [Int("n", 1, 2), Float("x", 0, 1)])
    other = client.study(study.id)
    info = other.update(parameters=[Int("n", 1, 100)])
    assert info.parameters == ("n", "x")
    assert other.parameters == [Int("n", 1, 100), Float("x", 0, 1)]
    trial = study.ask(fixed={"n": 99})
    with pytest.raises(ValueError, match=r"n: is 99, outside integers .* widened since it was"):
        trial.suggest_int("n", 1, 2)
    with pytest.raises(ValueError, match=r"the study has integers from 1 to 100, and"):
        other.ask().suggest_int("n", 1, 2)
    assert 1 <= other.ask().suggest_int("n", 1, 100) <= 100


def test_space() -> None:
    """The dry call ends at the first other use of the trial."""
    after: list[str] = []

    def objective(trial: Any) -> float:
        suggest(trial)
        assert trial.suggest_int("layers", 1, 4) == 2
        try:
            trial.report(1, error=1)
        except Exception:
            after.append("caught")
        after.append("trained")
        return 0.5

    assert space(objective) == PARAMETERS
    assert after == []
    assert space(suggest) == PARAMETERS


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda t: t.params, "trial.params"),
        (lambda t: t["x"], "trial['x']"),
        (lambda t: t.epsilon, "trial.epsilon"),
        (lambda t: t.tell(error=1), "trial.tell"),
        (lambda t: t.__enter__(), "a with statement"),
    ],
)
def test_space_ends(use: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(ValueError, match="suggested no parameter before it used") as raised:
        space(use)
    assert str(raised.value).endswith(name)


def test_space_errors() -> None:
    with pytest.raises(ValueError, match="suggested no parameter at all"):
        space(lambda t: 1.0)
    with pytest.raises(
        ValueError, match=r"x: is suggested from floats from 0\.0 to 1\.0, and then"
    ):
        space(lambda t: (t.suggest_float("x", 0, 1), t.suggest_float("x", 0, 2)))
    with pytest.raises(ZeroDivisionError):
        space(lambda t: 1 / (t.suggest_int("n", 0, 1) * 0))


def test_middle() -> None:
    """What a dry call returns lies within the domain."""
    got: dict[str, Any] = {}
    space(lambda t: got.update(suggest(t)))
    assert got == {
        "rate": pytest.approx(1e-2),
        "momentum": 0.45,
        "layers": 2,
        "width": 48,
        "drop": 0.2,
        "optimizer": "sgd",
        "clip": None,
        "batch": 256,
        "loss": "hinge",
    }


def test_define_by_run(client: Client) -> None:
    calls = []

    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        n = trial.suggest_int("n", 1, 8, log=True)
        if trial.number > 2:
            trial.suggest_float("late", 0, 1)
        calls.append((x, n))
        return float(x / n)

    study = make(client, "suggest-objective", objective, max_trials=4)
    assert calls == []
    assert study.parameters == [Float("x", 0, 1), Int("n", 1, 8, log=True)]
    assert study.optimize(objective, n_trials=2) == 2
    assert [(t.params["x"], t.params["n"]) for t in study.trials()] == calls
    with pytest.raises(ValueError, match=r"parameter late: .*has only x, n; declare a parameter"):
        study.optimize(objective)


def test_parameters() -> None:
    """What the bridge to Optuna uses, too."""
    assert float_parameter("x", 0, 1, 0.1) == Discrete("x", [k / 10 for k in range(11)])
    assert float_parameter("x", 0, 1, 0.4) == Discrete("x", [0, 0.4, 0.8])
    assert float_parameter("x", 0, 1, 2) is None
    assert float_parameter("x", 1, 1) is None
    assert int_parameter("n", 1, 10, 4) == Discrete("n", [1, 5, 9])
    assert int_parameter("n", 3, 3) is None
    assert int_parameter("n", 1, 3, log=True) == Int("n", 1, 3, log=True)
    assert categories("c", [None, 0.5, "a"]) == {"None": None, "0.5": 0.5, "a": "a"}


def test_every_parameter_comes_back() -> None:
    parameters = [
        *PARAMETERS,
        Float("a", 0, 1, design=dpfront.Design(dpfront.spec.Uniform(), accept_max=0.5)),
        Float("b", 1, 2, design=dpfront.Design(dpfront.spec.LogUniform()), grid_levels=7),
        Int("c", 1, 2, design=dpfront.Design(dpfront.spec.Normal(1, 2))),
        Float("d", 0, 1, design=dpfront.Design(dpfront.spec.ShiftedExponential(2, 1), 0.1)),
        Discrete("e", [1, 2], log=True, condition={"optimizer": ["adam"]}),
    ]
    message = specs.study_spec(dpfront.StudySpec(parameters, []))
    assert [specs.from_parameter(x) for x in message.parameters] == parameters


def test_async(shared_server: Server) -> None:
    async def run() -> None:
        async with AsyncClient(shared_server.address) as client:

            async def objective(trial: Any) -> float:
                x = trial.suggest_float("x", 0, 1)
                await trial.report(1, error=x)
                return float(x)

            async def waits(trial: Any) -> None:
                trial.suggest_int("n", 1, 2)
                await asyncio.sleep(60)

            assert space(waits) == [Int("n", 1, 2)]
            metrics = [Minimize("error", 1)]
            study = await AsyncStudy.create(
                client, "suggest-async", objective, metrics, algorithm="random"
            )
            assert study.parameters == [Float("x", 0, 1)]
            assert await study.optimize(objective, n_trials=2) == 2
            trial = await study.ask()
            with pytest.raises(ValueError, match="parameter x: the study has floats"):
                trial.suggest_int("x", 0, 1)

    asyncio.run(run())
