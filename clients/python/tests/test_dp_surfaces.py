"""The benchmark of other tools on surfaces, with a made-up laboratory in place of dpareto-lab."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "dp_surfaces.py"

# Answers as dpareto-lab bench dp-serve does; its record lists what was asked.
LAB = """
import json, sys
args = sys.argv[1:]
surface, asked, start = args[args.index("--surface") + 1], [], {}
print("a note", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    if "describe" in request:
        answer = {
            "surface": surface, "table": "t", "noiseless": "--noiseless" in args,
            "smooth": False, "reported_epsilon": False, "checkpoint": "epochs",
            "parameters": [
                {"name": "epochs", "min": 1, "max": 64, "integer": True, "logarithmic": True},
                {"name": "noise", "min": 0.1, "max": 16, "integer": False, "logarithmic": True},
            ],
            "objectives": [
                {"name": "epsilon", "reference": 10}, {"name": "error", "reference": 0.4},
            ],
        }
    elif "start" in request:
        asked, start = [], request["start"]
        initial = [{"epochs": 4, "noise": 2.0}] * start["initial"]
        answer = {"initial": initial}
    elif "evaluate" in request:
        c = request["evaluate"]
        asked.append(c)
        if not (1 <= c["epochs"] <= 64 and c["epochs"] == int(c["epochs"])):
            answer = {"error": "epochs are wrong"}
        else:
            epsilon = None if c["noise"] < 0.2 else c["epochs"] / c["noise"]
            error = 0.1 + 1 / (9 + c["epochs"])
            answer = {"epoch": c["epochs"], "epsilon": epsilon, "error": error, "states": []}
    else:
        answer = {
            "surface": surface, "table": "t", "noiseless": "--noiseless" in args,
            "smooth": False, "reported_epsilon": False, "method": start["method"],
            "seed": start["seed"], "initial": start["initial"],
            "epochs": [c["epochs"] for c in asked],
            "reported": [1.0] * len(asked), "observed": [1.0] * len(asked),
            "seconds": request["finish"]["seconds"], "asked": asked,
        }
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dp_surfaces", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    lab = tmp_path / "lab.py"
    lab.write_text(LAB)
    return [
        str(tmp_path / "results.jsonl"), "--surface", "s", "--tables", "t", "--budget", "4",
        "--method", "optuna_tpe", "--lab", f"{sys.executable} {lab}",
    ]  # fmt: skip


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_studies_are_resumed(script: ModuleType, arguments: list[str]) -> None:
    pytest.importorskip("optuna")
    script.main([*arguments, "--seeds", "1"])
    first = read(arguments[0])
    assert [(r["method"], r["seed"], len(r["epochs"])) for r in first] == [("optuna_tpe", 1, 4)]
    script.main([*arguments, "--seeds", "2"])
    again = read(arguments[0])
    assert again[0] == first[0]
    assert [r["seed"] for r in again] == [1, 2]
    assert again[0]["epochs"] != again[1]["epochs"]
    # Another variant of the surface is another study.
    script.main([*arguments, "--seeds", "2", "--noiseless"])
    assert [r["noiseless"] for r in read(arguments[0])] == [False, False, True, True]


def test_initial_points_are_shared(script: ModuleType, arguments: list[str]) -> None:
    pytest.importorskip("optuna")
    script.main([*arguments, "--seeds", "1", "--initial", "3"])
    (record,) = read(arguments[0])
    assert record["asked"][:3] == [{"epochs": 4, "noise": 2}] * 3
    assert record["asked"][3]["noise"] != 2
    assert record["seconds"] > 0


def test_epsilon_is_cut_off(script: ModuleType) -> None:
    told: list[dict[str, float]] = []

    class Tool:
        def ask(self) -> dict[str, float]:
            return {"epochs": 64, "noise": [0.1, 0.3, 16.0][len(told)]}

        def tell(self, configuration: dict[str, float], values: dict[str, float]) -> None:
            told.append(values)

    class Lab:
        def request(self, **fields: Any) -> dict[str, Any]:
            if "evaluate" not in fields:
                return {"initial": []}
            noise = fields["evaluate"]["noise"]
            return {"epsilon": None if noise < 0.2 else 64 / noise, "error": 0.2}

    problem = script.Problem(
        [script.Parameter("epochs", 1, 64, True)], {"epsilon": 10, "error": 0.4}
    )
    script.METHODS["made-up"] = lambda problem, seed: Tool()
    script.study(Lab(), problem, "made-up", 1, 3, 0)
    del script.METHODS["made-up"]
    assert [v["epsilon"] for v in told] == [100, 100, 4]


def test_errors(script: ModuleType, arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        script.main([*arguments, "--method", "oracle"])
    with (
        script.Lab([sys.executable, str(tmp_path / "lab.py"), "--surface", "s"]) as lab,
        pytest.raises(RuntimeError, match="epochs are wrong"),
    ):
        lab.request(evaluate={"epochs": 0.5, "noise": 1})
    with (
        script.Lab([sys.executable, "-c", "input(); raise SystemExit(3)"]) as lab,
        pytest.raises(RuntimeError, match="exit code 3"),
    ):
        lab.request(describe=True)
