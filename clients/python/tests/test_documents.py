"""What the documents print works as printed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
README = (PACKAGE / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(binary: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DPARETO_BINARY", binary)
    process = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_first_example_of_the_readme(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "first.py"
    program.write_text(BLOCKS[0])
    body = BLOCKS[0].split("\n\n", 1)[1]
    assert len(body.strip().splitlines()) <= 10
    out = run(binary, str(program), monkeypatch=monkeypatch)
    assert "error" in out
    assert "epsilon" in out
    assert "'noise_multiplier': " in out.splitlines()[-1]


def test_the_study_of_the_readme_is_short() -> None:
    assert len(BLOCKS[1].strip().splitlines()) <= 15


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_all_blocks_are_python(block: int) -> None:
    ast.parse(BLOCKS[block])


@pytest.mark.parametrize(
    ("example", "arguments"),
    [("logistic_regression.py", ["--trials", "4"]), ("scikit_learn.py", ["--trials", "4"])],
)
def test_examples(
    binary: str, example: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if example == "scikit_learn.py":
        pytest.importorskip("sklearn")
    out = run(binary, str(PACKAGE / "examples" / example), *arguments, monkeypatch=monkeypatch)
    assert re.search(r"^ε +\d+\.\d+  error 0\.\d+", out, re.MULTILINE), out


def test_the_picture_of_a_front(binary: str, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import dpareto

    from .conftest import make_study

    with dpareto.local_server(binary=binary) as server:
        study = make_study(server.client())
        for k in range(5):
            study.ask().tell(error=0.5 - k / 20)
        ax = study.plot_front("observed")
        assert ax.get_xscale() == "log"
        assert ax.get_xlabel().startswith("epsilon")
        assert ax.get_ylabel() == "error"
        inside = [p for p in study.get_front("observed") if not p.beyond_reference]
        steps = ax.lines[0].get_xdata()
        assert len(steps) == len(inside) + 1
        assert steps[-1] == 10  # up to the reference
        ax.figure.savefig(tmp_path / "front.png")
        import matplotlib.pyplot as plt

        plt.close(ax.figure)


@pytest.mark.long
def test_the_notebook(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("DPARETO_BINARY", binary)
    notebook = nbformat.read(PACKAGE / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear it before a commit"
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(PACKAGE / "examples")}}
    )
    client.execute()
    images = [
        o
        for cell in notebook.cells
        for o in cell.get("outputs", [])
        if "image/png" in o.get("data", {})
    ]
    assert images
