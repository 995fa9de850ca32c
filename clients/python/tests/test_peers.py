"""The benchmark's tools, with made-up problems in place of dpareto-lab."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "peers.py"

PROBLEM: dict[str, Any] = {
    "parameters": [
        {"name": "epochs", "min": 1, "max": 64, "integer": True, "logarithmic": True},
        {"name": "shift", "min": -2, "max": 6, "integer": False, "logarithmic": False},
    ],
    "objectives": [
        {"name": "epsilon", "maximize": False, "reference": 10, "logarithmic": True},
        {"name": "accuracy", "maximize": True, "reference": 0.4, "logarithmic": False},
    ],
    "constraints": [],
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Recorded:
    """A tool that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, float], dict[str, float]]] = []

    def ask(self) -> dict[str, float]:
        return {"epochs": 4, "shift": 0.5}

    def tell(self, configuration: dict[str, float], values: dict[str, float]) -> None:
        self.told.append((configuration, values))


def serve(script: ModuleType, tool: Recorded, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    out = io.StringIO()
    script.serve(lambda problem, seed: tool, iter(json.dumps(line) for line in lines), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_tools_are_told_results(script: ModuleType) -> None:
    tool = Recorded()
    answers = serve(
        script,
        tool,
        {"problem": PROBLEM, "seed": 1},
        {"results": []},
        {
            "results": [
                {
                    "configuration": {"epochs": 8.0, "shift": 1},
                    "values": {"epsilon": epsilon, "accuracy": 0.5},
                }
                for epsilon in (3.0, 500.0, None)
            ]
        },
    )
    assert answers[0] == {}
    assert [a["configuration"] for a in answers[1:]] == [{"epochs": 4, "shift": 0.5}] * 2
    assert all(a["seconds"] >= 0 for a in answers[1:])
    # ε is cut off at ten times its reference.
    assert [values["epsilon"] for _, values in tool.told] == [3, 100, 100]
    assert {values["accuracy"] for _, values in tool.told} == {0.5}
    assert isinstance(tool.told[0][0]["epochs"], int)


def test_constraints(script: ModuleType) -> None:
    bounded = {**PROBLEM, "constraints": [{"name": "size", "lower": None, "upper": 5}]}
    tool = Recorded()
    run = {"configuration": {"epochs": 8, "shift": 1}}
    values = {"epsilon": 3, "accuracy": 0.5, "size": 7}
    serve(script, tool, {"problem": bounded, "seed": 1}, {"results": [{**run, "values": values}]})
    assert tool.told[0][1] == values
    with pytest.raises(ValueError, match="size is infinite"):
        serve(
            script,
            tool,
            {"problem": bounded, "seed": 1},
            {"results": [{**run, "values": {**values, "size": None}}]},
        )
    with pytest.raises(ValueError, match="without constraints"):
        script.unconstrained(script.read(bounded))


def test_places(script: ModuleType) -> None:
    for p in script.read(PROBLEM).parameters:
        assert [p.at(0), p.at(1)] == [p.min, p.max]
        assert p.place(p.at(0.5)) == pytest.approx(0.5)
    assert script.read(PROBLEM).parameters[0].at(0.5) == 8


def test_results_are_of_their_suggestions(script: ModuleType) -> None:
    optuna = pytest.importorskip("optuna")
    tool = script.METHODS["optuna_tpe"](script.read(PROBLEM), 1)
    first, second = tool.ask(), tool.ask()
    other = {"epochs": 64, "shift": 6.0}
    for epsilon, configuration in ((2.0, second), (1.0, first), (3.0, other)):
        tool.tell(configuration, {"epsilon": epsilon, "accuracy": 0.5})
    trials = tool._study.trials
    assert [(t.params, t.values[0]) for t in trials] == [(first, 1), (second, 2), (other, 3)]
    assert {t.state for t in trials} == {optuna.trial.TrialState.COMPLETE}


def test_optuna_studies_a_problem() -> None:
    pytest.importorskip("optuna")

    def suggestions(seed: int) -> list[dict[str, float]]:
        """Returns what a study suggests that begins with a shared point."""
        result = {"configuration": {"epochs": 4, "shift": 0}, "values": None}
        asked = []
        with subprocess.Popen(
            [sys.executable, str(SCRIPT), "optuna_tpe"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as tool:  # fmt: skip
            assert tool.stdin is not None
            assert tool.stdout is not None

            def request(line: dict[str, Any]) -> dict[str, Any]:
                print(json.dumps(line), file=tool.stdin, flush=True)
                answer: dict[str, Any] = json.loads(tool.stdout.readline())  # type: ignore[union-attr]
                return answer

            assert request({"problem": PROBLEM, "seed": seed}) == {}
            for _ in range(4):
                c = result["configuration"]
                values = {"epsilon": c["epochs"], "accuracy": 1 / (2 + c["shift"] ** 2)}  # type: ignore[index]
                answer = request({"results": [{**result, "values": values}]})
                result = {"configuration": answer["configuration"]}
                asked.append(answer["configuration"])
        assert tool.returncode == 0
        return asked

    first = suggestions(1)
    for c in first:
        assert c["epochs"] == int(c["epochs"])
        assert 1 <= c["epochs"] <= 64
        assert -2 <= c["shift"] <= 6
    assert suggestions(1) == first
    assert suggestions(2) != first


def test_methods_are_named() -> None:
    refused = subprocess.run(
        [sys.executable, str(SCRIPT), "oracle"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "botorch" in refused.stderr
