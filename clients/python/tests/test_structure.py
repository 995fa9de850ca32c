"""The modules of the package: their size, and the order in which they import each other."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
GENERATED = {"v1", "_details", "_sync"}


def names() -> dict[str, Path]:
    """Returns the modules by name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = names()


def imports(path: Path) -> set[str]:
    """Returns the modules that a module imports, also for types only or in functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found & set(MODULES)


def test_no_import_circles() -> None:
    graph = {name: imports(path) for name, path in MODULES.items()}
    assert len(graph["dpfront"]) > 10
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("dpfront._async.trial") < order.index("dpfront._async.client")


def test_no_long_files() -> None:
    lengths = {
        name: path.read_text(encoding="utf-8").count("\n")
        for name, path in MODULES.items()
        if not GENERATED & set(path.parts)
    }
    assert {name: n for name, n in lengths.items() if n > 600} == {}


def test_import_loads_no_extras() -> None:
    program = "import sys, dpfront; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    extras = {
        "numpy",
        "pandas",
        "matplotlib",
        "plotly",
        "optuna",
        "torch",
        "tqdm",
        "sklearn",
        "jax",
    }
    assert extras & set(loaded) == set()
    parts = {"dpfront.audit", "dpfront.plot", "dpfront._async", "dpfront.integrations"}
    assert parts & set(loaded) == set()  # imported at their first use


def test_all_names_exist() -> None:
    program = (
        "import dpfront\n"
        "assert set(dpfront.__all__) <= set(dir(dpfront))\n"
        "assert all(hasattr(dpfront, name) for name in dir(dpfront))\n"
        "assert not hasattr(dpfront, 'absent')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
